"""What outlives a turn: sessions, messages and run records, behind one small protocol.

A store saves changes, all of a commit or none, and gives back what was saved. It decides nothing, holds no clock, and
knows nothing of schedules: those are volatile by design and live in the engine.
"""

from psi.store.memory import MemoryStore
from psi.store.protocol import AddMessages, Change, DeleteSession, SaveSession, SaveTurn, Store

__all__ = ["AddMessages", "Change", "DeleteSession", "MemoryStore", "SaveSession", "SaveTurn", "Store"]
