"""What every face calls: ``query`` asks the graph, ``act`` carries out a command, ``watch`` listens.

Checks what a command says and whose it is, then hands it to the engine. Knows no request format and renders nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from psi.core import schedule as schedules
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
from psi.core.errors import Invalid, SessionRequired
from psi.core.message import USER, Message, says
from psi.core.schedule import Schedule
from psi.core.session import Session
from psi.engine import Engine, Run, Subscription
from psi.graph import Graph, Limits, Operation
from resolvers import OPERATIONS, ROOT_SEEDS, Context

__all__ = ["Service"]

_LONGEST_NAME: Final = 200


class Service:
    def __init__(self, engine: Engine, operations: Iterable[Operation] = (), *, limits: Limits | None = None) -> None:
        self._engine = engine
        self.graph = Graph([*OPERATIONS, *operations], limits=limits)
        self._now: dict[type[Any], Callable[[Any, Caller], Any]] = {
            CreateSchedule: self._create_schedule,
            ListSchedules: self._list_schedules,
            CancelSchedule: self._cancel_schedule,
            ListSessions: self._list_sessions,
            ShowSession: self._show_session,
            StopRun: self._stop_run,
        }
        self._later: dict[type[Any], Callable[[Any, Caller], Awaitable[Any]]] = {
            CreateSession: self._create_session,
            SubmitPrompt: self._submit,
            CloseSession: self._close_session,
        }

    async def act(self, command: Command, caller: Caller = NOBODY) -> Any:
        """Carry out a command. Raises Refused where it cannot be; then nothing has changed."""
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
    ) -> dict[Any, Any]:
        """Ask the graph. The root is the caller's session, unless ``entity`` says something else."""
        return await self.graph.query(
            query, self._root(caller, entity), context=self._context(caller), lenient=lenient, timeout=timeout
        )

    def explain(self, query: Any, caller: Caller = NOBODY, *, entity: Mapping[Any, Any] | None = None) -> str:
        """What would be called for a query; nothing is."""
        return self.graph.explain(query, self._root(caller, entity))

    def watch(self, session: str | None = None, *, after: int | None = None, limit: int = 1_000) -> Subscription:
        """What happens from now on, in one session or in all; with ``after``, what is remembered since then, too."""
        return self._engine.bus.subscribe(session, after=after, limit=limit)

    def check_config(self, config: Any) -> SessionConfig:
        """Read a session-config as ``act`` would."""
        return read_config(config, tools=self._engine.tools)

    def session(self, session_id: str) -> Session | None:
        return self._engine.sessions.get(session_id)

    # -- whose

    def _root(self, caller: Caller, entity: Mapping[Any, Any] | None) -> dict[Any, Any]:
        seed = {ROOT_SEEDS[0]: caller.session} if caller.session is not None else {}
        return {**seed, **(entity or {})}

    def _context(self, caller: Caller) -> Context:
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
        )

    def _counters(self) -> dict[str, int]:
        engine = self._engine
        return {
            "sessions": len(engine.sessions),
            "open-schedules": engine.scheduler.agenda.open_count,
            "active-runs": len(engine.runs),
            "events": engine.bus.seq,
        }

    def _whose(self, action: str, named: Any, caller: Caller) -> Session:
        """The session that is meant: the one that is named, or else the caller's own."""
        if named is None:
            named = caller.session
            if named is None:
                raise SessionRequired(action)
        elif not isinstance(named, str):
            raise Invalid(f"`session-id` must be a string, got {shown(named)}", code="session/invalid-id")
        return self._engine.sessions.find(named)

    def _scheduling(self, named: Any, caller: Caller) -> Session:
        if caller.is_agent and named is not None and named != caller.session:
            raise Invalid(
                "an agent schedules for its own session only; leave `session-id` out",
                code="scheduler/not-your-session",
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
            )
        config = NO_CONFIG
        if command.config is not None:
            config = read_config(command.config, tools=self._engine.tools, who="session")
        origin = self._engine.sessions.get(caller.session) if caller.session else None
        return await self._engine.create_session(name=name, config=config, worktree=origin.worktree if origin else None)

    def _list_sessions(self, command: ListSessions, caller: Caller) -> list[Session]:
        return list(self._engine.sessions.values())

    def _show_session(self, command: ShowSession, caller: Caller) -> Session:
        return self._whose("session", command.session, caller)

    async def _submit(self, command: SubmitPrompt, caller: Caller) -> Run:
        session = self._whose("session", command.session, caller)
        text = command.message
        if not is_text(text) or not text.strip():
            raise Invalid("session submit requires a non-blank `message`", code="session/message-required")
        return await self._engine.runs.submit(session.id, Message(role="user", content=says(text), source=USER))

    def _stop_run(self, command: StopRun, caller: Caller) -> bool:
        session = self._whose("session", command.session, caller)
        return session.run is not None and self._engine.runs.stop(session.run)

    async def _close_session(self, command: CloseSession, caller: Caller) -> Session:
        session = self._whose("session", command.session, caller)
        if caller.is_agent and session.id == caller.session:
            raise Invalid(
                "an agent cannot close the session its own turn runs in", code="session/own-turn", session_id=session.id
            )
        await self._engine.close_session(session.id)
        return session
