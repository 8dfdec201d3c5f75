"""The changes a store takes and the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from psi.core.message import Message
from psi.core.session import Session
from psi.core.turn import Turn
from psi.errors import Failed

__all__ = ["AddMessages", "Change", "DeleteSession", "SaveSession", "SaveTurn", "Store", "StoreFailed"]


@dataclass(frozen=True, slots=True)
class SaveSession:
    """A new session, or a new state of one. Its messages are counted by the store itself."""

    session: Session


@dataclass(frozen=True, slots=True)
class AddMessages:
    session: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class SaveTurn:
    turn: Turn


@dataclass(frozen=True, slots=True)
class DeleteSession:
    """The session with its messages and its run records."""

    session: str


Change: TypeAlias = SaveSession | AddMessages | SaveTurn | DeleteSession


class StoreFailed(Failed):
    """The store could not do what was asked of it; nothing has changed. The disk may be full, or the file locked."""

    code = "store/failed"

    def __init__(self, reason: str) -> None:
        super().__init__(f"the store does not take this right now: {reason}; nothing was saved")


class Store(Protocol):
    async def commit(self, *changes: Change) -> None:
        """Save all of these, in this order, or none of them. Raises StoreFailed where that is not possible now."""
        ...

    async def check(self) -> None:
        """Raises what stands in the way of reading, or of saving where that went wrong the last time."""
        ...

    async def sessions(self) -> Sequence[Session]:
        """Every session, the oldest first, each idle: who was busy is not a thing to be saved."""
        ...

    async def messages(
        self, session: str, first: int = 0, limit: int | None = None, *, pictures: bool = True
    ) -> Sequence[Message]:
        """A session's history, the oldest first, or so many from a place on; empty where there is no such session.
        ``pictures``: or only how large they are, for those who do not look at them."""
        ...

    async def turns(self, session: str) -> Sequence[Turn]:
        """A session's run records that are kept, the oldest first."""
        ...

    async def turn(self, run: str) -> Turn | None: ...

    async def unfinished(self) -> Sequence[Turn]:
        """Turns that were begun and not ended, the oldest first: nobody is working on them when a store is opened."""
        ...

    async def close(self) -> None: ...
