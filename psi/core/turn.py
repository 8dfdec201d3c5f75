"""A turn: one input and everything up to its closure. Every turn that started leaves one in the history. Pure.

    running ── Answered ──▶ ok          ── Failed ──▶ error        ── Interrupted ──▶ interrupted
            ── LimitReached ──▶ ok      ── Stopped ──▶ stopped
            ── Answered with nothing ──▶ empty

What the history shows of a failure is one sentence; what really happened stands in the turn itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from psi.core.clock import Moment, instant_text
from psi.core.errors import Conflict
from psi.core.message import Message, says, whole, within
from psi.edn import Keyword

__all__ = [
    "LONGEST_TOLD",
    "Answered",
    "Event",
    "Failed",
    "Interrupted",
    "LimitReached",
    "Say",
    "State",
    "Stopped",
    "Turn",
    "begin",
    "note_of",
    "step",
]


# Bytes of an answer that is told with something else around it. Whoever sent the message has to hear that it was taken,
# however much was said to it.
LONGEST_TOLD: Final = 12 << 20


class State(Enum):
    RUNNING = Keyword("running")
    OK = Keyword("ok")
    ERROR = Keyword("error")
    EMPTY = Keyword("empty")
    STOPPED = Keyword("stopped")
    INTERRUPTED = Keyword("interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A run's record, while it is under way and after."""

    id: str
    session: str
    source: Keyword
    started_at: datetime
    state: State = State.RUNNING
    finished_at: datetime | None = None
    answer: str | None = None  # the closure that stands in the history
    error: str | None = None  # what was raised, for the record alone; its stack trace is for the log
    error_class: str | None = None
    message_index: int | None = None  # where in the history that closure stands
    context_tokens: int = 0
    max_context_tokens: int = 0
    token_count: int = 0
    tool_call_count: int = 0
    event_count: int = 0  # how many events it told, its end among them; 0 where nobody lived to count

    def summary(self) -> dict[str, Any]:
        return {
            "run-id": self.id,
            "state": self.state.value,
            "source": self.source,
            "started-at": instant_text(self.started_at),
            "finished-at": instant_text(self.finished_at) if self.finished_at else None,
            "answer": None if self.answer is None else within(self.answer, LONGEST_TOLD),
        }


@dataclass(frozen=True, slots=True)
class Answered:
    text: str
    context_tokens: int = 0
    max_context_tokens: int = 0
    token_count: int = 0


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The agent used up its iterations; that is an end like any other, with what it had said so far."""

    text: str
    limit: int


@dataclass(frozen=True, slots=True)
class Stopped:
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    text: str
    error_class: str
    error: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The process ended before the turn did."""

    text: str = ""


Event: TypeAlias = Answered | LimitReached | Stopped | Failed | Interrupted


@dataclass(frozen=True, slots=True)
class Say:
    """Add this message to the session's history."""

    message: Message


def begin(turn_id: str, message: Message, *, session: str, now: Moment) -> Turn:
    """The turn that a message opens."""
    return Turn(id=turn_id, session=session, source=message.source or Keyword("user"), started_at=now.wall)


def step(turn: Turn, event: Event, *, now: Moment) -> tuple[Turn, tuple[Say, ...]]:
    """The end of a turn, and its closure."""
    if turn.state is not State.RUNNING:
        raise Conflict(f"run {turn.id} has ended already: {turn.state.value}", run_id=turn.id)
    match event:
        case Answered(text, context, most, tokens):
            counted = replace(turn, context_tokens=context, max_context_tokens=most, token_count=tokens)
            if text.strip():
                return _ended(counted, State.OK, text, now)
            return _ended(counted, State.EMPTY, "This turn ended without a result.", now)
        case LimitReached(text, limit):
            note = f"This turn ended at its limit of {limit} iterations."
            return _ended(turn, State.OK, _after(text, note), now, closure="iteration-limit")
        case Stopped(text):
            return _ended(turn, State.STOPPED, text or "This turn was stopped before it said anything.", now)
        case Failed(text, error_class, error):
            failed = replace(turn, error=whole(error), error_class=error_class)
            note = note_of(replace(failed, state=State.ERROR))
            return _ended(failed, State.ERROR, _after(text, note), now)
        case Interrupted(text):
            note = note_of(replace(turn, state=State.INTERRUPTED))
            return _ended(turn, State.INTERRUPTED, _after(text, note), now)


def note_of(turn: Turn) -> str:
    """The sentence that tells of a turn's failure, without what was said before it; nothing for one that went well."""
    match turn.state:
        case State.ERROR:
            return f"This turn failed ({turn.error_class}). The details are in the record of run {turn.id}."
        case State.INTERRUPTED:
            return "This turn was interrupted: the service stopped while it was running."
    return ""


def _after(text: str, note: str) -> str:
    """What was streamed before stays: somebody has read it."""
    return f"{text}\n\n{note}" if text else note


def _ended(
    turn: Turn, state: State, answer: str, now: Moment, closure: str | None = None
) -> tuple[Turn, tuple[Say, ...]]:
    answer = whole(answer)
    mark = Keyword(closure) if closure else None if state is State.OK else state.value
    said = Message(
        role="assistant",
        content=says(answer),
        timestamp=now.wall,
        source=turn.source,
        run_id=turn.id,
        closure=mark,
    )
    return replace(turn, state=state, finished_at=now.wall, answer=answer), (Say(said),)
