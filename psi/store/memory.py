"""A store for one process and one life: plain dictionaries, gone with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from psi.core.message import Message, without_pictures
from psi.core.session import Phase, Session
from psi.core.turn import State, Turn
from psi.store.protocol import AddMessages, Change, DeleteSession, SaveSession, SaveTurn

__all__ = ["MemoryStore"]

KEPT: Final = 1_000  # run records of one session


class _Kept:
    __slots__ = ("messages", "session", "turns")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.messages: list[Message] = []
        self.turns: dict[str, Turn] = {}


class MemoryStore:
    def __init__(self, *, kept_turns: int = KEPT) -> None:
        self._kept_turns = kept_turns
        self._sessions: dict[str, _Kept] = {}
        self._turns: dict[str, str] = {}  # run → session

    async def commit(self, *changes: Change) -> None:
        # Everything that can be wrong is looked for before anything is changed.
        known = set()
        for change in changes:
            match change:
                case SaveSession(session):
                    known.add(session.id)
                case AddMessages(session=name) | SaveTurn(Turn(session=name)) if (
                    name not in known and name not in self._sessions
                ):
                    raise LookupError(f"no session {name} to save something for")
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case SaveSession(session):
                kept = self._sessions.get(session.id)
                if kept is None:
                    self._sessions[session.id] = _Kept(session)
                else:
                    kept.session = session
            case AddMessages(name, messages):
                kept = self._sessions[name]
                kept.messages.extend(messages)
                latest = messages[-1].timestamp if messages else None
                if latest is not None and latest > kept.session.updated_at:
                    kept.session = replace(kept.session, updated_at=latest)
            case SaveTurn(turn):
                turns = self._sessions[turn.session].turns
                turns[turn.id] = turn
                self._turns[turn.id] = turn.session
                if len(turns) > self._kept_turns:
                    oldest = next(iter(turns))
                    del turns[oldest], self._turns[oldest]
            case DeleteSession(name):
                gone = self._sessions.pop(name, None)
                for run in gone.turns if gone else ():
                    del self._turns[run]

    async def check(self) -> None:
        """There is always room."""

    async def sessions(self) -> Sequence[Session]:
        return [
            replace(kept.session, message_count=len(kept.messages), phase=Phase.IDLE, run=None, closing=False)
            for kept in self._sessions.values()
        ]

    async def messages(
        self, session: str, first: int = 0, limit: int | None = None, *, pictures: bool = True
    ) -> Sequence[Message]:
        kept = self._sessions.get(session)
        found = kept.messages[first : None if limit is None else first + limit] if kept else []
        return found if pictures else [without_pictures(message) for message in found]

    async def turns(self, session: str) -> Sequence[Turn]:
        kept = self._sessions.get(session)
        return list(kept.turns.values()) if kept else []

    async def turn(self, run: str) -> Turn | None:
        session = self._turns.get(run)
        return self._sessions[session].turns[run] if session is not None else None

    async def unfinished(self) -> Sequence[Turn]:
        turns = (turn for kept in self._sessions.values() for turn in kept.turns.values())
        return [turn for turn in turns if turn.state is State.RUNNING]

    async def close(self) -> None:
        """Nothing is held that would have to be given back."""
