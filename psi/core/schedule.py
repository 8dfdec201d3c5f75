"""One delayed prompt: how it is planned, and what may happen to it until it has ended. Pure.

    pending ── Due, session busy ──▶ queued ── Freed ──▶ ┐
       │                                                 ├─▶ (delivery) ── Accepted ──▶ delivered
       └────── Due, otherwise ──────────────────────────▶┘       ├── Overtaken ──▶ queued
    pending, queued ── Cancelled, Dropped ──▶ cancelled          └── Broken ────▶ failed

Delivery is not a status of its own: while it lasts the schedule is what it was before, with a ``phase``, and can no
longer be cancelled. A schedule that has ended stays as it is, whatever comes late.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from psi.core.clock import MILLISECOND, Moment, instant_text, read_instant
from psi.core.config import SessionConfig, is_text, shown
from psi.core.errors import Invalid, NotCancellable
from psi.core.message import SCHEDULED, Message, Scheduled, says
from psi.edn import Keyword

__all__ = [
    "CAP",
    "MAXIMUM_MS",
    "MINIMUM_MS",
    "PREVIEW",
    "Accepted",
    "Broken",
    "Cancelled",
    "CreateSession",
    "Dropped",
    "Due",
    "ErrorSummary",
    "Event",
    "Freed",
    "Kind",
    "Overtaken",
    "Phase",
    "Schedule",
    "SessionCreated",
    "Status",
    "Submit",
    "plan",
    "prompt_of",
    "step",
]

CAP: Final = 50  # open schedules of one session
MINIMUM_MS: Final = 1_000
MAXIMUM_MS: Final = 24 * 60 * 60 * 1_000
PREVIEW: Final = 200  # characters of the message that a summary shows


class Kind(Enum):
    MESSAGE = Keyword("message")
    SESSION = Keyword("session")


class Status(Enum):
    PENDING = Keyword("pending")
    QUEUED = Keyword("queued")
    DELIVERED = Keyword("delivered")
    CANCELLED = Keyword("cancelled")
    FAILED = Keyword("failed")


class Phase(Enum):
    CREATE_SESSION = Keyword("create-session")
    PROMPT_SUBMIT = Keyword("prompt-submit")


_PENDING: Final = Status.PENDING
_QUEUED: Final = Status.QUEUED


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """Why a delivery failed, as much as may be shown."""

    message: str
    error_class: str
    data: Any = None

    def as_data(self) -> dict[str, Any]:
        return {"message": self.message, "class": self.error_class, "data": self.data}


class Schedule(NamedTuple):
    """A schedule, frozen. A tuple, because a frozen dataclass of this size takes five times as long to make, and there
    may be a hundred thousand."""

    id: str
    session: str  # the one it belongs to, and for kind message the one it is delivered into
    kind: Kind
    message: str
    label: str | None
    created_at: datetime
    fire_at: datetime
    due: int  # the tick at which it fires, whatever the wall clock shows by then
    config: SessionConfig | None = None
    status: Status = Status.PENDING
    phase: Phase | None = None
    created_session: str | None = None
    error: ErrorSummary | None = None

    @property
    def is_open(self) -> bool:
        """Still to come: waiting for its time, for its session, or for its delivery to be over."""
        status = self.status
        return status is _PENDING or status is _QUEUED

    @property
    def in_delivery(self) -> bool:
        return self.phase is not None and self.is_open

    @property
    def order(self) -> tuple[datetime, datetime, str]:
        """Who goes first: the earlier plan, then the earlier request, then the smaller name."""
        return self.fire_at, self.created_at, self.id

    def summary(self) -> dict[str, Any]:
        """The compact form that psi-tool answers with; instants are text, so that it is the same data in JSON."""
        text = self.message
        return {
            "schedule-id": self.id,
            "kind": self.kind.value,
            "label": self.label,
            "message": text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…",
            "status": self.status.value,
            "created-at": instant_text(self.created_at),
            "fire-at": instant_text(self.fire_at),
            "origin-session-id": self.session,
            "created-session-id": self.created_session,
            "delivery-phase": self.phase.value if self.phase else None,
            "error-summary": self.error.as_data() if self.error else None,
            "session-config-summary": self.config.summary() if self.config else None,
        }


# -- planning


def plan(
    id: str,  # noqa: A002 – the field's own name
    session: str,
    kind: Any,
    message: Any,
    label: Any = None,
    delay_ms: Any = None,
    at: Any = None,
    config: SessionConfig | None = None,
    *,
    now: Moment,
) -> Schedule:
    """A new schedule, or Invalid with the rule that was broken. ``config`` was read before; whether there may be one is
    decided here."""
    if not is_text(message) or not message or message.isspace():
        raise Invalid(
            "scheduler create requires a non-blank `message`",
            code="scheduler/message-required",
            argument="message",
            got=_got(message),
        )
    named = _KINDS.get(kind) if type(kind) is str or isinstance(kind, str) else None
    if named is None:
        raise Invalid(
            "scheduler create requires explicit `kind`: `message` or `session`",
            code="scheduler/kind-required",
            argument="kind",
            kind=_got(kind),
            accepted=["message", "session"],
        )
    if label is not None and not is_text(label):
        raise Invalid(
            f"scheduler `label` must be a string, got {shown(label)}", code="scheduler/invalid-label", argument="label"
        )
    if named is _MESSAGE and config is not None:
        raise Invalid(
            "scheduler kind `message` forbids `session-config`",
            code="scheduler/config-forbidden",
            argument="session-config",
        )
    if named is _SESSION and config is None:
        raise Invalid(
            "scheduler kind `session` requires `session-config` (a map; {} is allowed)",
            code="scheduler/config-required",
            argument="session-config",
        )
    fire_at, due = _when(delay_ms, at, now)
    return Schedule(id, session, named, message, label, now.wall, fire_at, due, config)


_MESSAGE: Final = Kind.MESSAGE
_SESSION: Final = Kind.SESSION
_KINDS: Final = {spelling: kind for kind in Kind for spelling in (str(kind.value), f":{kind.value}")}


def _when(delay_ms: Any, at: Any, now: Moment) -> tuple[datetime, int]:
    if delay_ms is not None and at is not None:
        raise Invalid(
            "scheduler create accepts either `delay-ms` or `at`, not both", code="scheduler/two-times", argument="at"
        )
    if delay_ms is not None:
        if type(delay_ms) is not int:
            raise Invalid(
                "delay-ms must be an integer",
                code="scheduler/delay-not-an-integer",
                argument="delay-ms",
                delay_ms=_got(delay_ms),
            )
        if not MINIMUM_MS <= delay_ms <= MAXIMUM_MS:
            _check_bounds(delay_ms, "delay-ms")
        return now.wall + timedelta(0, 0, delay_ms * 1_000), now.tick + delay_ms * MILLISECOND
    if at is None:
        raise Invalid("scheduler create requires `delay-ms` or `at`", code="scheduler/no-time", argument="delay-ms")
    planned = _instant(at)
    ahead = planned - now.wall
    if ahead < timedelta(milliseconds=1):
        return planned, now.tick  # past, now, or so near that it makes no difference
    _check_bounds(ahead // timedelta(milliseconds=1), "at")
    # The bounds look at whole milliseconds; waiting is exact, so that nothing fires before the time that is shown.
    return planned, now.tick + (ahead // timedelta(microseconds=1)) * 1_000


def _check_bounds(delay_ms: int, argument: str) -> None:
    if delay_ms < MINIMUM_MS:
        raise Invalid(
            "delay-ms is below the minimum bound",
            code="scheduler/delay-too-short",
            argument=argument,
            delay_ms=delay_ms,
            minimum=MINIMUM_MS,
        )
    if delay_ms > MAXIMUM_MS:
        raise Invalid(
            "delay-ms exceeds the maximum bound",
            code="scheduler/delay-too-long",
            argument=argument,
            delay_ms=delay_ms,
            maximum=MAXIMUM_MS,
        )


def _instant(at: Any) -> datetime:
    found: datetime | None = None
    if isinstance(at, datetime) and at.tzinfo is not None:  # #inst is an instant already
        with suppress(OverflowError):
            found = at.astimezone(UTC)
    elif is_text(at):
        found = read_instant(at)
    if found is None:
        raise Invalid(
            "scheduler `at` must be an ISO-8601 UTC instant",
            code="scheduler/invalid-instant",
            argument="at",
            at=_got(at),
            accepted="2026-04-22T13:00:00Z",
        )
    return found


def _got(value: Any) -> Any:
    """What came, short enough to be sent back."""
    return value if value is None or isinstance(value, bool | int | float) else _short(value)


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, str) else shown(value)
    return text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…"


def prompt_of(schedule: Schedule, now: Moment) -> Message:
    """The user-role message that a delivery injects."""
    return Message(
        role="user",
        content=says(schedule.message),
        timestamp=now.wall,
        source=SCHEDULED,
        origin=Scheduled(schedule.id, schedule.label),
    )


# -- events and effects


@dataclass(frozen=True, slots=True)
class Due:
    """Its time has come."""

    idle: bool  # is the session it belongs to idle?


@dataclass(frozen=True, slots=True)
class Freed:
    """Its session has become idle and it is first in line."""


@dataclass(frozen=True, slots=True)
class SessionCreated:
    session: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The prompt stands in the session's history and its turn has begun."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody else's turn began first."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The delivery failed, in the phase it was in."""

    error: ErrorSummary


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for it; refused once it is too late."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Its session was closed, or everything is shut down."""


Event: TypeAlias = Due | Freed | SessionCreated | Accepted | Overtaken | Broken | Cancelled | Dropped


@dataclass(frozen=True, slots=True)
class CreateSession:
    """Make the fresh session that this schedule is to be delivered into."""

    schedule: str


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit the prompt to this session."""

    schedule: str
    session: str


Effect: TypeAlias = CreateSession | Submit


def step(schedule: Schedule, event: Event, *, now: Moment) -> tuple[Schedule, tuple[Effect, ...]]:
    """What becomes of a schedule. What comes too late changes nothing; only a cancellation that does is an error."""
    match event:
        case Cancelled():
            if not schedule.is_open or schedule.in_delivery:
                raise NotCancellable(schedule.id, schedule.status.value)
            return schedule._replace(status=Status.CANCELLED), ()
        case _ if not schedule.is_open:
            return schedule, ()
        case Dropped() if schedule.phase is Phase.PROMPT_SUBMIT:
            return schedule, ()  # its prompt is on its way and may be read: what becomes of that is told by its session
        case Dropped():
            return schedule._replace(status=Status.CANCELLED, phase=None), ()
        case Due() | Freed() if schedule.in_delivery:
            return schedule, ()
        case Due() if now.tick < schedule.due or schedule.status is not Status.PENDING:
            return schedule, ()  # an alarm from before it was set anew, or a second one
        case Due() if schedule.kind is Kind.SESSION:
            return schedule._replace(phase=Phase.CREATE_SESSION), (CreateSession(schedule.id),)
        case Due(idle=False):
            return schedule._replace(status=Status.QUEUED), ()
        case Freed() if schedule.status is not Status.QUEUED:
            return schedule, ()
        case Due() | Freed():
            return schedule._replace(phase=Phase.PROMPT_SUBMIT), (Submit(schedule.id, schedule.session),)
        case _ if not schedule.in_delivery:
            return schedule, ()
        case SessionCreated(session) if schedule.phase is Phase.CREATE_SESSION:
            created = schedule._replace(phase=Phase.PROMPT_SUBMIT, created_session=session)
            return created, (Submit(schedule.id, session),)
        case Accepted() if schedule.phase is Phase.PROMPT_SUBMIT:
            phase = schedule.phase if schedule.kind is Kind.SESSION else None
            return schedule._replace(status=Status.DELIVERED, phase=phase), ()
        case Overtaken() if schedule.kind is Kind.MESSAGE:
            return schedule._replace(status=Status.QUEUED, phase=None), ()
        case Broken(error):
            return schedule._replace(status=Status.FAILED, error=error), ()
    return schedule, ()
