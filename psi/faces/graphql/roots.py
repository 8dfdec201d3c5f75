"""The root fields: what can be asked, done and subscribed to. Each is a line or two on the service.

Entities are returned as what is known of them; everything below is the graph's business. Every query is a subscription,
too: the answer now, and again whenever it has changed.
"""

# No `from __future__ import annotations` here: strawberry reads annotations, and the entity types are values.
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import strawberry
from strawberry.types.unset import UNSET

from psi.core.commands import (
    CancelSchedule,
    CloseSession,
    Command,
    CreateSchedule,
    CreateSession,
    StopRun,
    SubmitPrompt,
)
from psi.core.errors import ConfigInvalid, Invalid, ScheduleNotFound, SessionNotFound
from psi.core.schedule import Schedule as Planned
from psi.core.session import Session as Conversation
from psi.core.turn import Turn
from psi.engine import Event as Happened
from psi.engine import RunEvent as RunTold
from psi.eql import calls, parse
from psi.errors import PsiError
from psi.faces.frames import frame
from psi.faces.graphql.names import field_name
from psi.faces.graphql.sources import Live, run_events, session_events
from psi.faces.graphql.types import CONFIG, ENUMS, EQL, JSON, TYPES, Ask, Entities, Entity, Instant, Long
from psi.faces.wire import measure
from psi.graph.attributes import TEXT, Attribute
from resolvers.run import RUN
from resolvers.scheduler import SCHEDULE, told
from resolvers.session import SESSION
from tool.render import as_json
from tool.request import read_map

__all__ = ["SCHEMA"]

if TYPE_CHECKING:
    Graph: TypeAlias = Entity
    Run: TypeAlias = Entity
    RunState: TypeAlias = Any
    Schedule: TypeAlias = Entity
    ScheduleKind: TypeAlias = Any
    ScheduleStatus: TypeAlias = Any
    Session: TypeAlias = Entity
    SessionPhase: TypeAlias = Any
    System: TypeAlias = Entity
else:
    Graph, Run, Schedule, Session, System = (TYPES[each] for each in ("Graph", "Run", "Schedule", "Session", "System"))
    RunState, ScheduleKind = ENUMS["RunState"], ENUMS["ScheduleKind"]
    ScheduleStatus, SessionPhase = ENUMS["ScheduleStatus"], ENUMS["SessionPhase"]

Info: TypeAlias = strawberry.Info[Ask, None]
ID: TypeAlias = strawberry.ID

_MOST: Final = 1_000  # entities on one page
_PAGE: Final = 100


def _given(value: Any) -> Any:
    """An argument that was left out is as good as null."""
    return None if value is UNSET else value


# -- queries


@strawberry.input(description="Which sessions are meant; all that is given has to fit.")
class SessionFilter:
    phases: list[SessionPhase] | None = strawberry.field(default=UNSET, description="in one of these phases")
    name_contains: str | None = strawberry.field(default=UNSET, description="its name has this in it")
    has_pending_schedules: bool | None = strawberry.field(default=UNSET, description="something is still to come")


@strawberry.type(description="One thing that is wrong with a request.")
class Problem:
    path: str = strawberry.field(description="the argument, and what in it; empty where it is the request as a whole")
    message: str = strawberry.field(description="what was wrong and what is accepted")
    code: str = strawberry.field(description="a stable name to match on")
    data: JSON = strawberry.field(description="the facts: bounds, accepted values, ids")


@strawberry.type(description="What is wrong with a session-config, before it is used.")
class ConfigCheck:
    valid: bool
    problems: list[Problem]


def _session(info: Info, id: ID) -> Entity | None:  # noqa: A002
    return Entity("Session", {SESSION: str(id)}, info.context) if info.context.context.has_session(str(id)) else None


def _sessions(info: Info, limit: int, after: ID | None, filter: SessionFilter | None) -> Entities:  # noqa: A002
    found = _page([each.id for each in _fitting(info.context, _given(filter))], limit, _given(after))
    return Entities("Session", [{SESSION: name} for name in found], info.context)


def _fitting(ask: Ask, wanted: SessionFilter | None) -> list[Conversation]:
    found = list(ask.context.sessions())
    if wanted is None:
        return found
    if (phases := _given(wanted.phases)) is not None:
        words = {each.value for each in phases}
        found = [each for each in found if each.phase.value in words]
    if (part := _given(wanted.name_contains)) is not None:
        found = [each for each in found if part.casefold() in (each.name or "").casefold()]
    if (pending := _given(wanted.has_pending_schedules)) is not None:
        found = [each for each in found if (ask.context.pending_count(each.id) > 0) is pending]
    return found


def _page(names: list[str], limit: int, after: str | None) -> list[str]:
    if not 1 <= limit <= _MOST:
        raise Invalid(f"`limit` must be from 1 to {_MOST}, got {limit}", code="graphql/invalid-limit")
    if after is not None:
        if after not in names:
            raise Invalid("`after` must be the id of an entry of this list", code="graphql/invalid-cursor", after=after)
        names = names[names.index(after) + 1 :]
    return names[:limit]


def _meant(ask: Ask, named: Any) -> str | None:
    """The session that is named, or else the invoking one."""
    given = _given(named)
    return ask.caller.session if given is None else str(given)


def _own(ask: Ask, named: Any) -> list[str]:
    """The session that is meant: the one that is named, or the invoking one, or else all that the caller may see."""
    meant = _meant(ask, named)
    if meant is None:
        return ask.context.session_names()
    ask.context.has_session(meant)
    return [ask.service.find(meant, ask.caller).id]


def _schedule(info: Info, id: ID) -> Entity | None:  # noqa: A002
    found = info.context.context.schedule(str(id))
    return None if found is None else Entity("Schedule", {SCHEDULE: found.id}, info.context)


def _schedules(info: Info, session_id: ID | None, statuses: list[ScheduleStatus] | None) -> Entities:
    ask = info.context
    found: list[Planned] = []
    for name in _own(ask, session_id):
        found += ask.context.schedules(name)
    if (wanted := _given(statuses)) is not None:
        words = {each.value for each in wanted}
        found = [each for each in found if each.status.value in words]
    return Entities("Schedule", [told(each) for each in found], ask, lasting=True)


async def _run(info: Info, id: ID) -> Entity | None:  # noqa: A002
    found = await info.context.context.run(str(id))
    return None if found is None else Entity("Run", {RUN: found.id}, info.context)


async def _runs(info: Info, session_id: ID | None, states: list[RunState] | None) -> Entities:
    ask = info.context
    found: list[Turn] = []
    for name in _own(ask, session_id):
        found.extend(await ask.context.runs(name))
    if (wanted := _given(states)) is not None:
        words = {each.value for each in wanted}
        found = [each for each in found if each.state.value in words]
    return Entities("Run", [{RUN: each.id} for each in found], ask)


def _seed(query: EQL, entity: JSON | None) -> dict[Any, Any]:
    """What a query in EQL starts from; refused where the query may not be asked here."""
    if calls(parse(str(query))):
        raise Invalid(
            "`eql` and `live` ask and change nothing; mutations have fields of their own, or go to POST /eql",
            code="graphql/eql-mutation",
        )
    return read_map("entity", _given(entity))


async def _eql(info: Info, query: EQL, entity: JSON | None) -> Any:
    ask = info.context
    seed = _seed(query, entity)
    async with ask.pace:
        answer = await ask.service.query(
            str(query),
            ask.caller,
            entity=seed,
            lenient=True,
            timeout=ask.pace.left,
            max_entities=ask.max_entities,
            context=ask.context,
        )
        measure(answer)
        return as_json(answer)


@strawberry.type(description="What can be asked.")
class Query:
    @strawberry.field(description="A session by its id; null where there is none.")
    def session(self, info: Info, id: ID) -> Session | None:  # noqa: A002
        return _session(info, id)

    @strawberry.field(description="Sessions, the oldest first. `after`: the id of the last one of the page before.")
    def sessions(
        self,
        info: Info,
        limit: int = _PAGE,
        after: ID | None = UNSET,
        filter: SessionFilter | None = UNSET,  # noqa: A002
    ) -> list[Session]:
        return _sessions(info, limit, after, filter)  # type: ignore[return-value]

    @strawberry.field(description="A schedule by its id, whatever its status; null where there is none.")
    def schedule(self, info: Info, id: ID) -> Schedule | None:  # noqa: A002
        return _schedule(info, id)

    @strawberry.field(description="Schedules of one session, or of all; in the order of their plans.")
    def schedules(
        self,
        info: Info,
        session_id: ID | None = UNSET,
        statuses: list[ScheduleStatus] | None = UNSET,
    ) -> list[Schedule]:
        return _schedules(info, session_id, statuses)  # type: ignore[return-value]

    @strawberry.field(description="A run by its id, under way or on record; null where there is none.")
    async def run(self, info: Info, id: ID) -> Run | None:  # noqa: A002
        return await _run(info, id)

    @strawberry.field(description="Runs of one session, or of all; the oldest first.")
    async def runs(self, info: Info, session_id: ID | None = UNSET, states: list[RunState] | None = UNSET) -> list[Run]:
        return await _runs(info, session_id, states)  # type: ignore[return-value]

    @strawberry.field(description="What the graph knows about itself.")
    def graph(self, info: Info) -> Graph:
        return Entity("Graph", {}, info.context)

    @strawberry.field(description="The runtime itself.")
    def system(self, info: Info) -> System:
        return Entity("System", {}, info.context)

    @strawberry.field(description="Checks a session-config as `createSchedule` and `createSession` would.")
    def validate_session_config(self, info: Info, config: JSON) -> ConfigCheck:
        try:
            info.context.service.check_config(_config(config))
        except ConfigInvalid as invalid:
            return ConfigCheck(valid=False, problems=_problems(invalid, ""))
        return ConfigCheck(valid=True, problems=[])

    @strawberry.field(description="Asks in EQL; failures stand beside the data.")
    async def eql(self, info: Info, query: EQL, entity: JSON | None = UNSET) -> JSON:
        return JSON(await _eql(info, query, entity))


def _config(given: Any) -> Any:
    """A session-config whose keys may be written as names are in GraphQL: a literal cannot have a dash in them."""
    if isinstance(given, Mapping):
        return {_HUMP.sub(r"-\1", key).lower() if _NAME.fullmatch(key) else key: _config(given[key]) for key in given}
    return [_config(each) for each in given] if isinstance(given, list) else given


_NAME: Final = re.compile(r"[a-z]+([A-Z][a-z]+)+")
_HUMP: Final = re.compile(r"([A-Z])")


# -- mutations


@strawberry.type
class SchedulePayload:
    schedule: Schedule | None = None
    problems: list[Problem] = strawberry.field(default_factory=list)


@strawberry.type
class SessionPayload:
    session: Session | None = None
    problems: list[Problem] = strawberry.field(default_factory=list)


@strawberry.type
class ClosePayload:
    closed_session_id: ID | None = None
    problems: list[Problem] = strawberry.field(default_factory=list)


@strawberry.type
class RunPayload:
    run: Run | None = None
    session: Session | None = None
    problems: list[Problem] = strawberry.field(default_factory=list)


@strawberry.type
class StopPayload:
    stopped: bool = strawberry.field(default=False, description="whether there was a run to stop")
    session: Session | None = None
    problems: list[Problem] = strawberry.field(default_factory=list)


# What is not found is what an argument names; the runtime does not know that there was one.
_ARGUMENTS: Final[Mapping[type[PsiError], str]] = {SessionNotFound: "session-id", ScheduleNotFound: "schedule-id"}


def _camel(key: str) -> str:
    return field_name(Attribute(f"request/{key}", TEXT, ""), "request")


def _problems(error: PsiError, config: str) -> list[Problem]:
    """A refusal as the problems it consists of; ``config`` is the argument that a session-config came in."""
    if isinstance(error, ConfigInvalid):
        return [
            Problem(
                path=".".join(filter(None, (config, each.path))),
                message=str(each),
                code=error.code,
                data=JSON({"expected": each.expected, "got": each.got}),
            )
            for each in error.problems
        ]
    argument = getattr(error, "argument", None) or _ARGUMENTS.get(type(error))
    return [
        Problem(
            path=_camel(argument) if argument else "",
            message=error.message,
            code=error.code,
            data=JSON(error.facts()),
        )
    ]


async def _act(info: Info, command: Command, payload: Any, config: str, done: Callable[[Any], dict[str, Any]]) -> Any:
    try:
        result = await info.context.service.act(command, info.context.caller)
    except PsiError as error:
        return payload(problems=_problems(error, config))
    return payload(**done(result))


@strawberry.type(description="What can be done. A refusal is told in `problems`, and then nothing has changed.")
class Mutation:
    @strawberry.mutation(description="Schedules a prompt. Exactly one of `delayMs` and `at` is needed.")
    async def create_schedule(
        self,
        info: Info,
        kind: ScheduleKind,
        message: str,
        session_id: ID | None = UNSET,
        delay_ms: Long | None = UNSET,
        at: str | None = UNSET,
        label: str | None = UNSET,
        session_config: JSON | None = UNSET,
    ) -> SchedulePayload:
        command = CreateSchedule(
            kind=kind.value,
            message=message,
            delay_ms=_given(delay_ms),
            at=_given(at),
            label=_given(label),
            session_config=_config(_given(session_config)),
            session=_given(session_id),
        )
        return await _act(
            info,
            command,
            SchedulePayload,
            "sessionConfig",
            lambda schedule: {"schedule": Entity("Schedule", {SCHEDULE: schedule.id}, info.context)},
        )

    @strawberry.mutation(description="Cancels a schedule that is pending or queued.")
    async def cancel_schedule(self, info: Info, schedule_id: ID, session_id: ID | None = UNSET) -> SchedulePayload:
        return await _act(
            info,
            CancelSchedule(schedule_id=str(schedule_id), session=_given(session_id)),
            SchedulePayload,
            "",
            lambda schedule: {"schedule": Entity("Schedule", {SCHEDULE: schedule.id}, info.context)},
        )

    @strawberry.mutation(description="A fresh session.")
    async def create_session(self, info: Info, name: str | None = UNSET, config: JSON | None = UNSET) -> SessionPayload:
        command = CreateSession(name=_given(name), config=_config(_given(config)))
        return await _act(info, command, SessionPayload, "config", lambda made: _told_session(info, made.id))

    @strawberry.mutation(description="Stops the session's run, cancels its schedules and lets it go.")
    async def close_session(self, info: Info, session_id: ID | None = UNSET) -> ClosePayload:
        command = CloseSession(session=_given(session_id))
        return await _act(info, command, ClosePayload, "", lambda gone: {"closed_session_id": gone.id})

    @strawberry.mutation(description="Submits a prompt; the run goes on after the answer. Refused while one is active.")
    async def submit_prompt(self, info: Info, message: str, session_id: ID | None = UNSET) -> RunPayload:
        command = SubmitPrompt(message=message, session=_given(session_id))
        return await _act(
            info,
            command,
            RunPayload,
            "",
            lambda run: {"run": Entity("Run", {RUN: run.id}, info.context), **_told_session(info, run.session)},
        )

    @strawberry.mutation(description="Asks the session's run to stop.")
    async def stop_run(self, info: Info, session_id: ID | None = UNSET) -> StopPayload:
        command = StopRun(session=_given(session_id))
        meant = _meant(info.context, session_id)
        return await _act(
            info, command, StopPayload, "", lambda was: {"stopped": was, **_told_session(info, str(meant))}
        )


def _told_session(info: Info, name: str) -> dict[str, Any]:
    return {"session": Entity("Session", {SESSION: name}, info.context)}


# -- subscriptions


@strawberry.type(description="One thing that happened.")
class Event:
    seq: Long = strawberry.field(description="grows with every event; give the last one as `after` to come back")
    type: str = strawberry.field(description="what happened, e.g. `schedule-changed`, `run-started`")
    session_id: ID | None
    at: Instant
    data: JSON = strawberry.field(description="what it happened to, in short")


@strawberry.type(description="One thing that a run told.")
class RunEvent:
    run_id: ID
    seq: Long = strawberry.field(description="1, 2, 3 … within the run; give the last one as `after` to come back")
    type: str = strawberry.field(description="e.g. `stream_start`, `stream_delta`, `tool_call`, `stream_end`")
    data: JSON = strawberry.field(description="the frame, with its type")


_START: Final = Long(0)


def _check_after(after: int | None) -> None:
    if after is not None and after < 0:
        raise Invalid(f"`after` must be the number of an event, 0 or more, got {after}", code="graphql/invalid-cursor")


def _event(happened: Happened) -> Event:
    data = happened.data
    shown = {"run_id": data.run, "seq": data.seq, **frame(data.event)} if isinstance(data, RunTold) else data.summary()
    session = ID(happened.session) if happened.session is not None else None
    return Event(
        seq=Long(happened.seq), type=happened.type, session_id=session, at=Instant(happened.at), data=JSON(shown)
    )


def _run_event(told_: RunTold) -> RunEvent:
    shown = frame(told_.event)
    return RunEvent(run_id=ID(told_.run), seq=Long(told_.seq), type=shown["type"], data=JSON(shown))


def _live(ask: Ask, name: str, arguments: Mapping[str, Any], answer: Callable[[], Any]) -> Any:
    if ask.reader is None:
        raise Invalid("this field can only be subscribed to", code="graphql/not-a-subscription")
    # What can never be answered is refused at once; what goes wrong later is an error of the field.
    check = _CHECKS.get(name)
    session = check(ask, **arguments) if check is not None else None
    key = (name, json.dumps(arguments, default=_written, sort_keys=True), ask.caller)

    def is_last() -> bool:
        return session is not None and not ask.context.has_session(session)

    return Live(key, ask.reader, ask.pace.begin, answer, is_last)


def _written(value: Any) -> Any:
    return None if value is UNSET else getattr(value, "value", None) or vars(value)


# Each looks at the arguments of a live query with what its answer uses, and gives the session that it is about, where
# there is one: when that is closed, there is nothing more to tell.


def _check_page(ask: Ask, limit: int, after: ID | None = None, **_: Any) -> str | None:
    _page(ask.aside().context.session_names(), limit, _given(after))
    return None


def _check_own(ask: Ask, session_id: ID | None = None, **_: Any) -> str | None:
    _own(ask.aside(), session_id)
    return _meant(ask, session_id)


def _check_eql(ask: Ask, query: EQL, entity: JSON | None = None) -> str | None:
    seed = _seed(query, entity)
    ask.service.plan(str(query), ask.caller, entity=seed)
    named = seed.get(SESSION, ask.caller.session)
    return named if isinstance(named, str) else None


def _named(ask: Ask, id: ID) -> str | None:  # noqa: A002
    return str(id)


_CHECKS: Final[Mapping[str, Callable[..., str | None]]] = {
    "session": _named,
    "sessions": _check_page,
    "schedules": _check_own,
    "runs": _check_own,
    "eql": _check_eql,
    "live": _check_eql,
}


def _live_form(name: str) -> Any:
    """A query's field as a subscription: same arguments, same type, and an answer for every change."""
    of_query = next(each for each in Query.__strawberry_definition__.fields if each.python_name == name)  # type: ignore[attr-defined]
    resolver = of_query.base_resolver
    assert resolver is not None
    function = resolver.wrapped_func
    asked = signature(function)

    def subscribe(self: Any, info: Info, **arguments: Any) -> Any:
        return _live(info.context, name, arguments, lambda: function(self, info, **arguments))

    returned: Any = AsyncGenerator[asked.return_annotation, None]  # type: ignore[name-defined]
    subscribe.__signature__ = asked.replace(return_annotation=returned)  # type: ignore[attr-defined]
    subscribe.__annotations__ = {**function.__annotations__, "return": returned}
    subscribe.__name__ = name
    return strawberry.subscription(
        resolver=subscribe, description=f"Live: {of_query.description[0].lower()}{of_query.description[1:]}"
    )


@strawberry.type(description="What can be followed. A client that is too slow is told how much it missed.")
class Subscription:
    @strawberry.subscription(description="A session's schedules, each as it was when it changed.")
    def schedule_changed(self, info: Info, session_id: ID | None = UNSET) -> AsyncGenerator[Schedule, None]:
        ask = info.context.aside()

        def changed(happened: Happened) -> Entity:
            schedule = happened.data
            # What it was at that moment, and not what has become of it by the time somebody reads this.
            return Entity("Schedule", told(schedule), ask)

        named = _meant(ask, session_id)
        return session_events(  # type: ignore[return-value]
            ask, "scheduleChanged", named, None, changed, lambda event: event.type == "schedule-changed"
        )

    @strawberry.subscription(
        description="Everything that happens in a session, or in all. `after`: begin behind this event, as far as it "
        "is remembered; the single events of runs are not."
    )
    def session_events(
        self, info: Info, session_id: ID | None = UNSET, after: Long | None = UNSET
    ) -> AsyncGenerator[Event, None]:
        named = _meant(info.context, session_id)
        _check_after(_given(after))
        return session_events(  # type: ignore[return-value]
            info.context, "sessionEvents", named, _given(after), _event, lambda event: True
        )

    @strawberry.subscription(description="What a run tells, from its beginning or behind `after`; ends with the run.")
    async def run_events(self, info: Info, run_id: ID, after: Long = _START) -> AsyncGenerator[RunEvent, None]:
        _check_after(after)
        return await run_events(info.context, str(run_id), after, _run_event)  # type: ignore[return-value]

    @strawberry.subscription(description="An EQL query: its answer now, and again whenever it has changed.")
    def live(self, info: Info, query: EQL, entity: JSON | None = UNSET) -> AsyncGenerator[JSON, None]:
        arguments = {"query": query, "entity": _given(entity)}
        return _live(info.context, "live", arguments, lambda: _eql(info, query, entity))

    session = _live_form("session")
    sessions = _live_form("sessions")
    schedule = _live_form("schedule")
    schedules = _live_form("schedules")
    run = _live_form("run")
    runs = _live_form("runs")
    graph = _live_form("graph")
    system = _live_form("system")
    eql = _live_form("eql")


SCHEMA: Final = strawberry.Schema(query=Query, mutation=Mutation, subscription=Subscription, config=CONFIG)
