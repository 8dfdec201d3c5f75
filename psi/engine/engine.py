"""Everything that runs, put together: opened once, closed once. What faces call is :mod:`psi.service`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from psi.agents.interface import Agent
from psi.agents.tools import Tool
from psi.core import session as machine
from psi.core import turn as turns
from psi.core.clock import Clock
from psi.core.config import SessionConfig
from psi.core.errors import RuntimeClosed
from psi.core.message import Scheduled
from psi.core.schedule import Schedule
from psi.core.session import LOCAL_USER, Close, CloseFailed, Provenance, Session
from psi.core.turn import Turn
from psi.engine.bus import Bus
from psi.engine.ids import NewId, new_id
from psi.engine.interest import Interest
from psi.engine.runs import Runs
from psi.engine.scheduler import Scheduler
from psi.engine.sessions import Sessions
from psi.store import AddMessages, Change, DeleteSession, SaveSession, SaveTurn, Store

__all__ = ["Engine"]

log = logging.getLogger("psi.engine")


def _first_number(clock: Clock) -> int:
    """Where events begin to be counted: with the microseconds of the moment, which no earlier runtime has counted up
    to. So a number that a client has kept over a restart is known to be old, and JavaScript can still hold it."""
    return int(clock.now().wall.timestamp() * 1_000_000)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A session that is being closed: when its run has left it, and when it is no more."""

    free: asyncio.Future[None]
    gone: asyncio.Future[None]


class Engine:
    def __init__(
        self,
        *,
        clock: Clock,
        store: Store,
        tasks: asyncio.TaskGroup,
        agent_for: Callable[[Session], Agent],
        tools: Mapping[str, Tool],
        worktree: str,
        new_id: NewId = new_id,
    ) -> None:
        self.clock = clock
        self.store = store
        self.interest = Interest(clock)
        self.bus = Bus(interest=self.interest, start=_first_number(clock))
        self.tools = tools
        self.worktree = worktree
        self.new_id = new_id
        self.started = clock.now()
        self.sessions = Sessions(clock, self.bus, self._perform)
        self.bus.owner_of = self.sessions.owner_of
        self.runs = Runs(clock, self.bus, store, self.sessions, tasks, agent_for, tools, new_id)
        self.scheduler = Scheduler(
            clock, self.bus, self.sessions, self.runs, tasks, self._session_for, self.close_session
        )
        self._leaving: dict[str, _Leaving] = {}
        self._tasks = tasks
        self._closed = False

    async def load(self) -> None:
        """Take up what the store has kept. Turns that were under way when the last process ended get their closure."""
        kept = await self.store.sessions()
        unfinished = await self.store.unfinished()
        if unfinished:
            places = {session.id: session.message_count for session in kept}
            for turn in unfinished:
                await self._interrupted(turn, places[turn.session])
                places[turn.session] += 1
            kept = await self.store.sessions()
        self.sessions.take_up(kept)

    async def _interrupted(self, turn: Turn, place: int) -> None:
        ended, said = turns.step(turn, turns.Interrupted(), now=self.clock.now())
        closure = tuple(each.message for each in said)
        await self.store.commit(AddMessages(turn.session, closure), SaveTurn(replace(ended, message_index=place)))
        log.warning("a turn was interrupted", extra={"run": turn.id, "session": turn.session})

    async def create_session(
        self,
        *,
        name: str | None = None,
        config: SessionConfig,
        worktree: str | None = None,
        owner: str = LOCAL_USER,
        provenance: Provenance | None = None,
    ) -> Session:
        """A fresh top-level session, with the messages that its config gives it to begin with."""
        if self._closed:
            raise RuntimeClosed
        now = self.clock.now()
        session = Session(
            id=self.new_id("ses-"),
            name=name or config.session_name,
            config=config,
            worktree=worktree or self.worktree,
            owner=owner,
            created_at=now.wall,
            updated_at=now.wall,
            provenance=provenance,
            message_count=len(config.preloaded_messages),
        )
        preloaded = tuple(
            message if message.timestamp else replace(message, timestamp=now.wall)
            for message in config.preloaded_messages
        )
        changes: list[Change] = [SaveSession(session)]
        if preloaded:
            changes.append(AddMessages(session.id, preloaded))
        # A task of its own: whoever asked may be gone before it is saved, but then it is there all the same.
        made: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks.create_task(self._add_session(session, changes, made), name=f"create {session.id}")
        await asyncio.shield(made)
        return session

    async def _add_session(self, session: Session, changes: Sequence[Change], made: asyncio.Future[None]) -> None:
        try:
            await self.store.commit(*changes)
        except Exception as error:  # noqa: BLE001 – whatever a store raises, it is told to whoever asked
            made.set_exception(error)
            made.exception()  # who may be gone
        else:
            self.sessions.add(session)
            made.set_result(None)
        finally:
            if not made.done():
                made.cancel()

    async def close_session(self, session_id: str) -> None:
        """Cancel what it had planned, stop its run, and when that has left its closure, let the session go."""
        self.sessions.find(session_id)
        leaving = self._leaving.get(session_id)
        if leaving is None:
            loop = asyncio.get_running_loop()
            leaving = self._leaving[session_id] = _Leaving(loop.create_future(), loop.create_future())
            # A task of its own: whoever asked may lose patience, the closing goes on.
            self._tasks.create_task(self._close_session(session_id, leaving), name=f"close {session_id}")
        await asyncio.shield(leaving.gone)

    async def _close_session(self, session_id: str, leaving: _Leaving) -> None:
        self.scheduler.drop_all(session_id)
        self.sessions.step(session_id, Close())
        await leaving.free
        try:
            await self.store.commit(DeleteSession(session_id))
        except Exception as error:  # noqa: BLE001 – whatever a store raises, the session is still there
            self.sessions.step(session_id, CloseFailed())
            leaving.gone.set_exception(error)
            leaving.gone.exception()  # told to whoever waits; nobody may
        else:
            self.sessions.remove(session_id)
            self.scheduler.agenda.forget(session_id)
            leaving.gone.set_result(None)
        finally:
            del self._leaving[session_id]

    async def close(self, grace: float = 4.0) -> None:
        """Nothing fires afterwards, and every run that was under way has a closure."""
        self._closed = True
        self.scheduler.close()
        await self.runs.close(grace)
        leaving = [each.gone for each in self._leaving.values()]
        if leaving:
            await asyncio.wait(leaving)
        self.bus.close()

    def _perform(self, effect: machine.Effect) -> None:
        match effect:
            case machine.Drain(session_id):
                self.scheduler.drain(session_id)
            case machine.StopRun(run_id):
                self.runs.stop(run_id)
            case machine.Forget(session_id):
                leaving = self._leaving[session_id]
                if not leaving.free.done():
                    leaving.free.set_result(None)

    async def _session_for(self, schedule: Schedule) -> str:
        """The fresh session of a schedule: where its origin works, but neither its child nor in its way."""
        assert schedule.config is not None
        origin = self.sessions.find(schedule.session)
        created = await self.create_session(
            config=schedule.config,
            worktree=origin.worktree,
            owner=origin.owner,
            provenance=Provenance(schedule.session, Scheduled(schedule.id, schedule.label)),
        )
        return created.id
