"""``psi.scheduler``: schedules, whatever their status. And ``psi.background-job``: the same, seen as jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from psi.core.commands import CancelSchedule, CreateSchedule
from psi.core.message import SCHEDULED
from psi.core.schedule import Kind, Phase, Schedule, Status
from psi.edn import Keyword
from psi.graph import Env, mutation, resolver
from psi.graph.attributes import DATA, FLAG, INSTANT, INTEGER, TEXT, WORD, Attribute, Entity, Enum, Many, One
from resolvers.params import named

__all__ = ["ATTRIBUTES", "ENTITIES", "OPERATIONS", "told"]

SESSION: Final = "psi.agent-session/session-id"
SCHEDULE: Final = "psi.scheduler/schedule-id"

_JOB_STATUS: Final = {
    Status.PENDING: Keyword("running"),
    Status.QUEUED: Keyword("running"),
    Status.DELIVERED: Keyword("completed"),
    Status.CANCELLED: Keyword("cancelled"),
    Status.FAILED: Keyword("failed"),
}
_JOB_KIND: Final = {Kind.MESSAGE: Keyword("scheduled-prompt"), Kind.SESSION: Keyword("scheduled-session")}

ATTRIBUTES: Final = (
    Attribute("psi.scheduler/schedules", Many(SCHEDULE), "the session's schedules, whatever their status"),
    Attribute("psi.scheduler/pending-count", INTEGER, "how many of them are still to come: pending and queued"),
    Attribute(SCHEDULE, TEXT, "the name of a schedule: sch- and a UUID"),
    Attribute("psi.scheduler/kind", Enum("ScheduleKind", tuple(k.value for k in Kind)), "what it delivers into"),
    Attribute("psi.scheduler/label", TEXT, "what its creator called it", nullable=True),
    Attribute("psi.scheduler/message", TEXT, "the prompt, whole"),
    Attribute("psi.scheduler/source", WORD, "the source that its turn will have: :scheduled"),
    Attribute("psi.scheduler/created-at", INSTANT, "when it was created"),
    Attribute("psi.scheduler/fire-at", INSTANT, "when it fires, by the wall clock of its creation"),
    Attribute("psi.scheduler/status", Enum("ScheduleStatus", tuple(s.value for s in Status)), "where it stands"),
    Attribute("psi.scheduler/origin-session-id", TEXT, "the session it belongs to"),
    Attribute("psi.scheduler/created-session-id", TEXT, "the session it has made", nullable=True),
    Attribute(
        "psi.scheduler/delivery-phase",
        Enum("DeliveryPhase", tuple(p.value for p in Phase)),
        "how far its delivery came",
        nullable=True,
    ),
    Attribute("psi.scheduler/error-summary", DATA, "why its delivery failed: message, class, data", nullable=True),
    Attribute("psi.scheduler/session-config-summary", DATA, "counts and flags of its session-config", nullable=True),
    Attribute("psi.scheduler/origin-session", One(SESSION), "the session it belongs to, if open", nullable=True),
    Attribute("psi.scheduler/created-session", One(SESSION), "the session it has made, if open", nullable=True),
    Attribute("psi.agent-session/background-jobs", Many("psi.background-job/id"), "the session's schedules as jobs"),
    Attribute("psi.background-job/id", TEXT, "schedule/ and the schedule's name"),
    Attribute(
        "psi.background-job/job-kind", Enum("BackgroundJobKind", tuple(_JOB_KIND.values())), "what kind of job it is"
    ),
    Attribute("psi.background-job/kind", Enum("BackgroundJobKind", tuple(_JOB_KIND.values())), "the same, shorter"),
    Attribute(
        "psi.background-job/status",
        Enum("BackgroundJobStatus", tuple(dict.fromkeys(_JOB_STATUS.values()))),
        "running, or how it ended",
    ),
    Attribute("psi.background-job/is-terminal", FLAG, "whether it has ended"),
    Attribute("psi.background-job/tool-name", TEXT, "the tool that made it: psi-tool"),
    Attribute("psi.background-job/session-id", TEXT, "the session it belongs to"),
    Attribute("psi.background-job/label", TEXT, "what its creator called it", nullable=True),
    Attribute("psi.background-job/started-at", INSTANT, "when it was created"),
)

ENTITIES: Final = (
    Entity("Schedule", "One delayed prompt.", "psi.scheduler", SCHEDULE),
    Entity("BackgroundJob", "A schedule, seen as a job.", "psi.background-job", "psi.background-job/id"),
)

_SCHEDULE_OUTPUT: Final = [
    "psi.scheduler/kind",
    "psi.scheduler/label",
    "psi.scheduler/message",
    "psi.scheduler/source",
    "psi.scheduler/created-at",
    "psi.scheduler/fire-at",
    "psi.scheduler/status",
    "psi.scheduler/origin-session-id",
    "psi.scheduler/created-session-id",
    "psi.scheduler/delivery-phase",
    "psi.scheduler/error-summary",
    "psi.scheduler/session-config-summary",
]


@resolver(
    name="psi.scheduler/session-schedules",
    input=[SESSION],
    output=[{"psi.scheduler/schedules": [SCHEDULE, *_SCHEDULE_OUTPUT]}],
)
def session_schedules(env: Env, session: Mapping[str, Any]) -> Any:
    if not env.context.has_session(session[SESSION]):
        return None
    return {"psi.scheduler/schedules": [told(each) for each in env.context.schedules(session[SESSION])]}


@resolver(name="psi.scheduler/session-pending-count", input=[SESSION], output=["psi.scheduler/pending-count"])
def session_pending_count(env: Env, session: Mapping[str, Any]) -> Any:
    if not env.context.has_session(session[SESSION]):
        return None
    return {"psi.scheduler/pending-count": env.context.pending_count(session[SESSION])}


@resolver(name="psi.scheduler/schedule-by-id", input=[SCHEDULE], output=_SCHEDULE_OUTPUT)
def schedule_by_id(env: Env, entity: Mapping[str, Any]) -> Any:
    found: Schedule | None = env.context.schedule(entity[SCHEDULE])
    return None if found is None else told(found)


# A schedule is a value: what was told of it once is told again, in every list and at every look of a live query.
_TOLD: Final[dict[str, tuple[Schedule, dict[str, Any]]]] = {}
_MOST_TOLD: Final = 4_096


def told(schedule: Schedule) -> dict[str, Any]:
    """A schedule as the graph shows it; not to be changed by who reads it."""
    found = _TOLD.get(schedule[0])
    if found is not None and found[0] is schedule:
        return found[1]
    if len(_TOLD) >= _MOST_TOLD:
        del _TOLD[next(iter(_TOLD))]
    made = _tell(schedule)
    _TOLD[schedule[0]] = (schedule, made)
    return made


def _tell(schedule: Schedule) -> dict[str, Any]:
    """Written for lists of thousands: the tuple is taken apart once, and the word behind an enum's member is read
    without the detour that ``value`` makes."""
    name, session, kind, message, label, created, fires, _, config, status, phase, made, error = schedule
    return {
        SCHEDULE: name,
        "psi.scheduler/kind": kind._value_,
        "psi.scheduler/label": label,
        "psi.scheduler/message": message,
        "psi.scheduler/source": SCHEDULED,
        "psi.scheduler/created-at": created,
        "psi.scheduler/fire-at": fires,
        "psi.scheduler/status": status._value_,
        "psi.scheduler/origin-session-id": session,
        "psi.scheduler/created-session-id": made,
        "psi.scheduler/delivery-phase": None if phase is None else phase._value_,
        "psi.scheduler/error-summary": None if error is None else error.as_data(),
        "psi.scheduler/session-config-summary": None if config is None else config.summary(),
    }


@resolver(
    name="psi.scheduler/origin-session",
    input=["psi.scheduler/origin-session-id"],
    output=[{"psi.scheduler/origin-session": [SESSION]}],
)
def origin_session(env: Env, schedule: Mapping[str, Any]) -> Any:
    return {"psi.scheduler/origin-session": _session(env, schedule["psi.scheduler/origin-session-id"])}


@resolver(
    name="psi.scheduler/created-session",
    input=["psi.scheduler/created-session-id"],
    output=[{"psi.scheduler/created-session": [SESSION]}],
)
def created_session(env: Env, schedule: Mapping[str, Any]) -> Any:
    return {"psi.scheduler/created-session": _session(env, schedule["psi.scheduler/created-session-id"])}


def _session(env: Env, session_id: str | None) -> dict[str, str] | None:
    return {SESSION: session_id} if session_id is not None and env.context.has_session(session_id) else None


_JOB_OUTPUT: Final = [
    "psi.background-job/id",
    "psi.background-job/job-kind",
    "psi.background-job/kind",
    "psi.background-job/status",
    "psi.background-job/is-terminal",
    "psi.background-job/tool-name",
    "psi.background-job/session-id",
    "psi.background-job/label",
    "psi.background-job/started-at",
    SCHEDULE,
]


@resolver(
    name="psi.background-job/session-jobs",
    input=[SESSION],
    output=[{"psi.agent-session/background-jobs": _JOB_OUTPUT}],
)
def session_jobs(env: Env, session: Mapping[str, Any]) -> Any:
    if not env.context.has_session(session[SESSION]):
        return None
    return {"psi.agent-session/background-jobs": [_job(each) for each in env.context.schedules(session[SESSION])]}


def _job(schedule: Schedule) -> dict[str, Any]:
    kind = _JOB_KIND[schedule.kind]
    return {
        "psi.background-job/id": f"schedule/{schedule.id}",
        "psi.background-job/job-kind": kind,
        "psi.background-job/kind": kind,
        "psi.background-job/status": _JOB_STATUS[schedule.status],
        "psi.background-job/is-terminal": not schedule.is_open,
        "psi.background-job/tool-name": "psi-tool",
        "psi.background-job/session-id": schedule.session,
        "psi.background-job/label": schedule.label,
        "psi.background-job/started-at": schedule.created_at,
        SCHEDULE: schedule.id,
    }


@mutation(
    "psi.scheduler/create",
    params=["kind", "message", "delay-ms", "at", "label", "session-config", "session-id"],
    output=[SCHEDULE],
)
async def create(env: Env, params: Mapping[str, Any]) -> Any:
    """Schedule a prompt, for the invoking session or the one that ``session-id`` names."""
    params = named(params, create.name, create.params)
    command = CreateSchedule(
        kind=params.get("kind"),
        message=params.get("message"),
        delay_ms=params.get("delay-ms"),
        at=params.get("at"),
        label=params.get("label"),
        session_config=params.get("session-config"),
        session=params.get("session-id"),
    )
    return {SCHEDULE: (await env.context.act(command, env.context.caller)).id}


@mutation("psi.scheduler/cancel", params=["schedule-id", "session-id"], output=[SCHEDULE])
async def cancel(env: Env, params: Mapping[str, Any]) -> Any:
    """Cancel a pending or queued schedule of the session."""
    params = named(params, cancel.name, cancel.params)
    command = CancelSchedule(schedule_id=params.get("schedule-id"), session=params.get("session-id"))
    return {SCHEDULE: (await env.context.act(command, env.context.caller)).id}


OPERATIONS: Final = (
    session_schedules,
    session_pending_count,
    schedule_by_id,
    origin_session,
    created_session,
    session_jobs,
    create,
    cancel,
)
