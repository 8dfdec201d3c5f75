"""What every face calls: ``query`` asks the graph, ``act`` carries out a command, ``watch`` listens.

Checks what a command says and whose it is, then hands it to the engine. Knows no request format and renders nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from psi.core import schedule as schedules
from psi.core.clock import Clock
from psi.core.commands import (
    NOBODY,
    Caller,
    CancelSchedule,
    CloseSession,
    Command,
    CreateSchedule,
    CreateSession,
    ListSchedules,
    ListSessions,
    ShowSession,
    StopRun,
    SubmitPrompt,
)
from psi.core.config import NO_CONFIG, SessionConfig, is_text, read_config, shown
from psi.core.errors import Forbidden, Invalid, SessionNotFound, SessionRequired
from psi.core.message import USER, Message, says
from psi.core.schedule import Schedule
from psi.core.session import LOCAL_USER, Session
from psi.engine import Engine, Event, Listener, Reader, Run, Subscription
from psi.eql import Query, calls, parse, repeats_calls, size
from psi.graph import Graph, LimitExceeded, Limits, Operation
from resolvers import OPERATIONS, ROOT_SEEDS, Context

__all__ = ["Service"]

_LONGEST_NAME: Final = 200
_LARGEST_QUERY: Final = 5_000  # attributes, joins and calls
_SURELY_SMALL: Final = 2 * _LARGEST_QUERY  # characters: an expression has at least one, and one between it and the next
_READING: Final = frozenset((ListSchedules, ListSessions, ShowSession))


class Service:
    def __init__(
        self,
        engine: Engine,
        operations: Iterable[Operation] = (),
        *,
        limits: Limits | None = None,
        timeout: float | None = None,
    ) -> None:
        """``limits`` and ``timeout`` (seconds) hold for queries that bring none of their own."""
        self._engine = engine
        self._timeout = timeout
        self.graph = Graph([*OPERATIONS, *operations], limits=limits)
        self._now: dict[type[Any], Callable[[Any, Caller], Any]] = {
            CreateSchedule: self._create_schedule,
            ListSchedules: self._list_schedules,
            CancelSchedule: self._cancel_schedule,
            ListSessions: self._list_sessions,
            ShowSession: self._show_session,
        }
        self._later: dict[type[Any], Callable[[Any, Caller], Awaitable[Any]]] = {
            CreateSession: self._create_session,
            SubmitPrompt: self._submit,
            StopRun: self._stop_run,
            CloseSession: self._close_session,
        }

    async def act(self, command: Command, caller: Caller = NOBODY) -> Any:
        """Carry out a command. Raises Refused where it cannot be; then nothing has changed."""
        if not caller.may_write and type(command) not in _READING:
            raise Forbidden("this token may read but not write", code="auth/read-only")
        at_once = self._now.get(type(command))
        if at_once is not None:
            return at_once(command, caller)
        return await self._later[type(command)](command, caller)

    async def query(
        self,
        query: Any,
        caller: Caller = NOBODY,
        *,
        entity: Mapping[Any, Any] | None = None,
        lenient: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 – a bound of the request, not a wait
        max_depth: int | None = None,
        max_entities: int | None = None,
        context: Context | None = None,
    ) -> dict[Any, Any]:
        """Ask the graph. The root is the caller's session, unless ``entity`` says something else.

        ``context``: a view that was made before, for those who ask several things as one.
        """
        if not caller.may_write and calls(parse(query)):
            raise Forbidden("this token may read but not write", code="auth/read-only")
        _check_size(query)
        if _repeats(query):
            raise Invalid(
                "a mutation beside a recursive join would be called again for every entity that it leads to; "
                "call it in a query of its own",
                code="graph/repeated-call",
            )
        return await self.graph.query(
            query,
            self._root(caller, entity),
            context=context or self.context(caller),
            lenient=lenient,
            timeout=self._timeout if timeout is None else timeout,
            max_depth=max_depth,
            max_entities=max_entities,
        )

    async def live(
        self,
        query: Any,
        caller: Caller = NOBODY,
        *,
        entity: Mapping[Any, Any] | None = None,
        lenient: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 – likewise
    ) -> AsyncIterator[dict[Any, Any]]:
        """The answer now, and again whenever it has changed. Asked anew only when something that was looked at has."""
        _check_size(query)
        parsed = parse(query)
        if calls(parsed):
            raise Invalid("a live query cannot call mutations", code="live/mutation")
        with self.reader() as reader:
            context = self.context(caller, reader)
            last: Any = None
            while True:
                reader.begin()
                answer = await self.query(
                    parsed, caller, entity=entity, lenient=lenient, timeout=timeout, context=context
                )
                if answer != last:
                    last = answer
                    yield answer
                await reader.changed()

    def reader(self) -> Reader:
        """Somebody who looks again when what was looked at has changed; see :meth:`context`."""
        return self._engine.interest.reader()

    def plan(self, query: Any, caller: Caller = NOBODY, *, entity: Mapping[Any, Any] | None = None) -> dict[str, Any]:
        """What would be called for a query, as data; nothing is."""
        _check_size(query)
        return self.graph.plan(query, self._root(caller, entity))

    def explain(self, query: Any, caller: Caller = NOBODY, *, entity: Mapping[Any, Any] | None = None) -> str:
        """The same in words."""
        _check_size(query)
        return self.graph.explain(query, self._root(caller, entity))

    def watch(
        self,
        session: str | None = None,
        caller: Caller = NOBODY,
        *,
        after: int | None = None,
        limit: int = 1_000,
    ) -> Subscription:
        """What happens from now on, in one session or in all that the caller may see; with ``after``, what is
        remembered since then, too."""
        if session is not None:
            self.find(session, caller)
        return self._engine.bus.subscribe(session, user=caller.user, after=after, limit=limit)

    def listen(self, session: str, hear: Callable[[Event], None], caller: Caller = NOBODY) -> Listener:
        """Hear of what happens in one session at the very moment, and be woken for it in turn with others."""
        self.find(session, caller)
        return self._engine.bus.listen(session, hear)

    @property
    def clock(self) -> Clock:
        return self._engine.clock

    @property
    def seq(self) -> int:
        """The number of the newest event."""
        return self._engine.bus.seq

    def run(self, run_id: str, caller: Caller = NOBODY) -> Run | None:
        """A run that is under way in a session that the caller may see."""
        found = self._engine.runs.active(run_id)
        return found if found is not None and self.session(found.session, caller) is not None else None

    def check_config(self, config: Any) -> SessionConfig:
        """Read a session-config as ``act`` would."""
        return read_config(config, tools=self._engine.tools)

    def session(self, session_id: str, caller: Caller = NOBODY) -> Session | None:
        """A session by its name; None where there is none, or none of the caller's: the two are not told apart."""
        found = self._engine.sessions.get(session_id)
        return found if found is not None and caller.user in (None, found.owner) else None

    def find(self, session_id: str, caller: Caller = NOBODY) -> Session:
        found = self.session(session_id, caller)
        if found is None:
            raise SessionNotFound(session_id)
        return found

    def acting_for(self, session_id: str) -> Caller:
        """The agent of a session's turn: it may do there what the session's owner may."""
        return Caller(session_id, is_agent=True, user=self.find(session_id).owner)

    # -- whose

    def within(self, named: Any, caller: Caller) -> Caller:
        """The caller as if it asked from within the session that is named; as it is, where none is. An agent asks from
        within its own: what it may do elsewhere has commands that name the session."""
        if named is None:
            return caller
        session = self._whose("query", named, caller)
        if caller.is_agent and session.id != caller.session:
            raise Invalid(
                "an agent asks from within its own session; leave `session-id` out, or name the other one in `entity`",
                code="session/not-yours",
                argument="session-id",
                session_id=session.id,
            )
        return caller._replace(session=session.id)

    def _root(self, caller: Caller, entity: Mapping[Any, Any] | None) -> dict[Any, Any]:
        seed = {ROOT_SEEDS[0]: caller.session} if caller.session is not None else {}
        return {**seed, **(entity or {})}

    def context(self, caller: Caller = NOBODY, reader: Reader | None = None) -> Context:
        """What the caller may see. A reader is told of what is looked at through it."""
        engine = self._engine
        return Context(
            caller=caller,
            clock=engine.clock,
            started=engine.started,
            sessions=engine.sessions,
            agenda=engine.scheduler.agenda,
            store=engine.store,
            index=self.graph.index,
            act=self.act,
            counters=self._counters,
            note=reader.note if reader is not None else None,
        )

    def _counters(self) -> dict[str, int]:
        engine = self._engine
        return {
            "sessions": len(engine.sessions),
            "open-schedules": engine.scheduler.agenda.open_count,
            "active-runs": len(engine.runs),
            "events": engine.bus.seq,
            "events-published": engine.bus.published,
        }

    def _whose(self, action: str, named: Any, caller: Caller) -> Session:
        """The session that is meant: the one that is named, or else the caller's own."""
        if named is None:
            named = caller.session
            if named is None:
                raise SessionRequired(action)
        elif not isinstance(named, str):
            raise Invalid(
                f"`session-id` must be a string, got {shown(named)}", code="session/invalid-id", argument="session-id"
            )
        return self.find(named, caller)

    def _scheduling(self, named: Any, caller: Caller) -> Session:
        if caller.is_agent and named is not None and named != caller.session:
            raise Invalid(
                "an agent schedules for its own session only; leave `session-id` out",
                code="scheduler/not-your-session",
                argument="session-id",
                session_id=named if isinstance(named, str) else shown(named),
            )
        return self._whose("scheduler", named, caller)

    # -- schedules

    def _create_schedule(self, command: CreateSchedule, caller: Caller) -> Schedule:
        session = self._scheduling(command.session, caller)
        engine = self._engine
        given = command.session_config
        schedule = schedules.plan(
            engine.new_id("sch-"),
            session.id,
            command.kind,
            command.message,
            command.label,
            command.delay_ms,
            command.at,
            None if given is None else self._scheduled_config(command),
            now=engine.clock.now(),
        )
        return engine.scheduler.add(schedule)

    def _scheduled_config(self, command: CreateSchedule) -> SessionConfig:
        """Where a config has no business being, that is what its sender should hear, not what is wrong in it."""
        is_session = isinstance(command.kind, str) and command.kind.removeprefix(":") == "session"
        return self.check_config(command.session_config) if is_session else NO_CONFIG

    def _list_schedules(self, command: ListSchedules, caller: Caller) -> list[Schedule]:
        return self._engine.scheduler.agenda.open_of(self._scheduling(command.session, caller).id)

    def _cancel_schedule(self, command: CancelSchedule, caller: Caller) -> Schedule:
        session = self._scheduling(command.session, caller)
        if not isinstance(command.schedule_id, str) or not command.schedule_id:
            raise Invalid(
                "scheduler cancel requires a string `schedule-id`",
                code="scheduler/schedule-id-required",
                argument="schedule-id",
                schedule_id=None if command.schedule_id is None else shown(command.schedule_id),
            )
        return self._engine.scheduler.cancel(session.id, command.schedule_id)

    # -- sessions

    async def _create_session(self, command: CreateSession, caller: Caller) -> Session:
        name = command.name
        if name is not None and not (is_text(name) and name.strip() and len(name) <= _LONGEST_NAME):
            raise Invalid(
                f"session `name` must be a non-blank string of at most {_LONGEST_NAME} characters, got {shown(name)}",
                code="session/invalid-name",
                argument="name",
            )
        config = NO_CONFIG
        if command.config is not None:
            config = read_config(command.config, tools=self._engine.tools, who="session")
        origin = self.session(caller.session, caller) if caller.session else None
        return await self._engine.create_session(
            name=name,
            config=config,
            worktree=origin.worktree if origin else None,
            owner=caller.user or (origin.owner if origin else LOCAL_USER),
        )

    def _list_sessions(self, command: ListSessions, caller: Caller) -> list[Session]:
        return list(self.context(caller).sessions())

    def _show_session(self, command: ShowSession, caller: Caller) -> Session:
        return self._whose("session", command.session, caller)

    async def _submit(self, command: SubmitPrompt, caller: Caller) -> Run:
        session = self._whose("session", command.session, caller)
        text = command.message
        if not is_text(text) or not text.strip():
            raise Invalid(
                "session submit requires a non-blank `message`", code="session/message-required", argument="message"
            )
        content = says(text) if command.content is None else command.content
        return await self._engine.runs.submit(session.id, Message(role="user", content=content, source=USER))

    async def _stop_run(self, command: StopRun, caller: Caller) -> bool:
        session = self._whose("session", command.session, caller)
        if session.run is None:
            return False
        stopped = self._engine.runs.stop(session.run)
        # Whoever stops a run wants the session back: told when it is free. A turn cannot wait for its own end.
        if not (caller.is_agent and session.id == caller.session):
            await self._engine.runs.left(session.run)
        return stopped

    async def _close_session(self, command: CloseSession, caller: Caller) -> Session:
        """The session as it was when it went: its run, if there was one, has ended by then."""
        session = self._whose("session", command.session, caller)
        if caller.is_agent and session.id == caller.session:
            raise Invalid(
                "an agent cannot close the session its own turn runs in", code="session/own-turn", session_id=session.id
            )
        # Its last events tell that; a few are kept, as others may still follow the one that is looked for.
        with self._engine.bus.subscribe(session.id, limit=16) as told:
            await self._engine.close_session(session.id)
            return next((event.data for event in told.waiting() if event.type == "session-closed"), session)


def _repeats(query: Any) -> bool:
    if not isinstance(query, str):
        return repeats_calls(parse(query))
    if "(" not in query:
        return False  # nothing is called, which need not be read to know
    return _text_repeats(query) if len(query) <= _SURELY_SMALL else repeats_calls(parse(query))


@lru_cache(maxsize=512)
def _text_repeats(query: str) -> bool:
    return repeats_calls(parse(query))


def _check_size(query: Any) -> None:
    """Planning is not interrupted by a time-out, so what is to be planned is bounded beforehand."""
    if isinstance(query, Query) or (isinstance(query, str) and len(query) <= _SURELY_SMALL):
        return  # made by a face that has bounds of its own; or so short that it need not be read to know
    found = size(parse(query))
    if found > _LARGEST_QUERY:
        raise LimitExceeded(
            "query-size", f"the query has {found} attributes, joins and calls; at most {_LARGEST_QUERY} are accepted"
        )
