"""Everything that can be done, as values: what each face makes of its request before anything happens.

Values may still be wrong in them: a command is checked where it is carried out, so that every face refuses alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from psi.edn import Map

__all__ = [
    "NOBODY",
    "Caller",
    "CancelSchedule",
    "CloseSession",
    "Command",
    "CreateSchedule",
    "CreateSession",
    "ListSchedules",
    "ListSessions",
    "ShowSession",
    "StopRun",
    "SubmitPrompt",
]


class Caller(NamedTuple):
    """Who asks: the session that a call comes from, whether it is the agent of a running turn, and for which user.

    Without a user it is whoever runs the process, who sees and may do everything.
    """

    session: str | None = None
    is_agent: bool = False
    user: str | None = None
    may_write: bool = True


NOBODY = Caller()


class CreateSchedule(NamedTuple):
    """A tuple rather than a dataclass, as a schedule itself is: this is the command that comes by the thousand."""

    kind: Any
    message: Any
    delay_ms: Any = None
    at: Any = None
    label: Any = None
    session_config: Any = None
    session: Any = None  # None: the caller's own; likewise below


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchedules:
    session: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSchedule:
    schedule_id: Any
    session: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession:
    name: Any = None
    config: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessions:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSession:
    session: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitPrompt:
    message: Any
    session: Any = None
    content: tuple[Map, ...] | None = None  # the message's parts, where there is more to it than its text


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    session: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseSession:
    session: Any = None


Command: TypeAlias = (
    CreateSchedule
    | ListSchedules
    | CancelSchedule
    | CreateSession
    | ListSessions
    | ShowSession
    | SubmitPrompt
    | StopRun
    | CloseSession
)
