"""A session: what it is, and whether it is busy. One run at a time; closing waits for the run to end. Pure.

idle ── RunBegan ──▶ streaming ── CompactionBegan ──▶ compacting ── CompactionEnded ──▶ streaming
  ▲                      │                                │
  └──── RunEnded ────────┴────────────────────────────────┘
idle ── CompactionBegan ──▶ compacting ── CompactionEnded ──▶ idle
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from psi.core.clock import Moment, instant_text
from psi.core.config import NO_CONFIG, SessionConfig
from psi.core.errors import Conflict, SessionBusy
from psi.core.message import Scheduled
from psi.edn import Keyword

__all__ = [
    "LOCAL_USER",
    "Close",
    "CloseFailed",
    "CompactionBegan",
    "CompactionEnded",
    "Drain",
    "Event",
    "Forget",
    "Phase",
    "Provenance",
    "Renamed",
    "RunBegan",
    "RunEnded",
    "RunRefused",
    "Session",
    "StopRun",
    "step",
]


# Whoever runs the process. Sessions that nobody in particular created are theirs.
LOCAL_USER: Final = "local"


class Phase(Enum):
    IDLE = Keyword("idle")
    STREAMING = Keyword("streaming")
    COMPACTING = Keyword("compacting")


@dataclass(frozen=True, slots=True)
class Provenance:
    """The schedule that a session was made by, and the session that had asked for it."""

    session: str
    schedule: Scheduled


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    name: str | None = None
    config: SessionConfig = NO_CONFIG
    worktree: str
    owner: str = LOCAL_USER
    created_at: datetime
    updated_at: datetime
    parent: str | None = None
    provenance: Provenance | None = None
    message_count: int = 0
    phase: Phase = Phase.IDLE
    run: str | None = None
    closing: bool = False

    @property
    def is_idle(self) -> bool:
        return self.phase is Phase.IDLE and not self.closing

    @property
    def display_name(self) -> str:
        return self.name or self.id[:12]

    def summary(self) -> dict[str, Any]:
        """The compact form that psi-tool answers with."""
        return {
            "session-id": self.id,
            "session-name": self.name,
            "phase": self.phase.value,
            "created": instant_text(self.created_at),
            "updated": instant_text(self.updated_at),
        }


@dataclass(frozen=True, slots=True)
class RunBegan:
    run: str
    messages: int = 0  # how many were added to the history


@dataclass(frozen=True, slots=True)
class RunRefused:
    """The run could not be saved, so it never was."""

    run: str
    messages: int = 0  # how many had been counted for it


@dataclass(frozen=True, slots=True)
class RunEnded:
    run: str
    messages: int = 0


@dataclass(frozen=True, slots=True)
class CompactionBegan:
    pass


@dataclass(frozen=True, slots=True)
class CompactionEnded:
    pass


@dataclass(frozen=True, slots=True)
class Renamed:
    name: str


@dataclass(frozen=True, slots=True)
class Close:
    pass


@dataclass(frozen=True, slots=True)
class CloseFailed:
    """What was to be deleted could not be: the session goes on."""


Event: TypeAlias = RunBegan | RunRefused | RunEnded | CompactionBegan | CompactionEnded | Renamed | Close | CloseFailed


@dataclass(frozen=True, slots=True)
class Drain:
    """The session is free: what waits for it may go."""

    session: str


@dataclass(frozen=True, slots=True)
class StopRun:
    run: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing holds the session any more."""

    session: str


Effect: TypeAlias = Drain | StopRun | Forget

# Where an event is legal and where it leads; what ends a run or a compaction is decided below, where it came from.
LEGAL: Final[dict[Phase, dict[type, Phase]]] = {
    Phase.IDLE: {RunBegan: Phase.STREAMING, CompactionBegan: Phase.COMPACTING},
    Phase.STREAMING: {RunEnded: Phase.IDLE, RunRefused: Phase.IDLE, CompactionBegan: Phase.COMPACTING},
    Phase.COMPACTING: {RunEnded: Phase.IDLE, RunRefused: Phase.IDLE, CompactionEnded: Phase.STREAMING},
}


def step(session: Session, event: Event, *, now: Moment) -> tuple[Session, tuple[Effect, ...]]:
    """The session after an event, and what follows from it."""
    match event:
        case Renamed(name):
            return replace(session, name=name, updated_at=now.wall), ()
        case CloseFailed():
            return replace(session, closing=False), (Drain(session.id),) if session.phase is Phase.IDLE else ()
        case Close() if session.closing:
            return session, ()
        case Close():
            closing = replace(session, closing=True, updated_at=now.wall)
            if session.run is not None:
                return closing, (StopRun(session.run),)
            return closing, (Forget(session.id),) if session.phase is Phase.IDLE else ()
    to = LEGAL[session.phase].get(type(event))
    if to is None or (isinstance(event, RunBegan) and session.closing):
        if isinstance(event, RunBegan):
            raise SessionBusy(session.id, session.phase.value, session.run)
        raise Conflict(
            f"a session that is {session.phase.value} cannot take {type(event).__name__}", session_id=session.id
        )
    match event:
        case RunBegan(run, messages):
            count = session.message_count + messages
            return replace(session, phase=to, run=run, message_count=count, updated_at=now.wall), ()
        case RunEnded(run) | RunRefused(run) if run != session.run:
            raise Conflict(f"run {run} is not the one under way", session_id=session.id, run_id=session.run)
        case RunEnded(_, messages):
            count = session.message_count + messages
            return _freed(replace(session, phase=to, run=None, message_count=count, updated_at=now.wall))
        case RunRefused(_, messages):
            return _freed(replace(session, phase=to, run=None, message_count=session.message_count - messages))
        case CompactionEnded() if session.run is None:
            return _freed(replace(session, phase=Phase.IDLE))
    return replace(session, phase=to), ()


def _freed(session: Session) -> tuple[Session, tuple[Effect, ...]]:
    return session, (Forget(session.id),) if session.closing else (Drain(session.id),)
