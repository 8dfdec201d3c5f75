"""What outlives a turn: sessions, messages and run records, behind one small protocol; beside them, credentials.

A store saves changes, all of a commit or none, and gives back what was saved. It decides nothing, holds no clock, and
knows nothing of schedules: those are volatile by design and live in the engine.
"""

from psi.store.credentials import Credentials, CredentialsUnusable, Login, NewLogin, NewToken, Token, TokenNotFound
from psi.store.lock import FolderTaken
from psi.store.memory import MemoryStore
from psi.store.protocol import AddMessages, Change, DeleteSession, SaveSession, SaveTurn, Store, StoreFailed
from psi.store.sqlite import SqliteStore, StoreUnreadable, StoreUnusable

__all__ = [
    "AddMessages",
    "Change",
    "Credentials",
    "CredentialsUnusable",
    "DeleteSession",
    "FolderTaken",
    "Login",
    "MemoryStore",
    "NewLogin",
    "NewToken",
    "SaveSession",
    "SaveTurn",
    "SqliteStore",
    "Store",
    "StoreFailed",
    "StoreUnreadable",
    "StoreUnusable",
    "Token",
    "TokenNotFound",
]
