"""Due → deliver, busy → wait, idle → drain. Decides nothing: :mod:`psi.core.schedule` does.

timer ── due ──▶ step ──▶ Submit ────────▶ runs.start ── saved ──▶ Accepted ──▶ delivered
                  │                            └── busy ──▶ Overtaken ──▶ queued
                  └────▶ CreateSession ──▶ a task ──▶ SessionCreated ──▶ Submit …
session idle ──▶ drain ──▶ the first that is queued ──▶ Freed ──▶ Submit …
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from psi.core import schedule as machine
from psi.core.agenda import Agenda
from psi.core.clock import Clock
from psi.core.errors import RuntimeClosed, ScheduleNotFound, SessionBusy
from psi.core.schedule import (
    Accepted,
    Broken,
    Cancelled,
    Dropped,
    Due,
    ErrorSummary,
    Freed,
    Overtaken,
    Schedule,
    SessionCreated,
    Status,
    prompt_of,
)
from psi.engine.bus import Bus
from psi.engine.runs import Runs
from psi.engine.sessions import Sessions
from psi.engine.timer import Timer
from psi.errors import PsiError

__all__ = ["Scheduler"]

log = logging.getLogger("psi.scheduler")

Create = Callable[[Schedule], Awaitable[str]]


class Scheduler:
    """The schedules of all sessions, their timer and their deliveries."""

    def __init__(
        self,
        clock: Clock,
        bus: Bus,
        sessions: Sessions,
        runs: Runs,
        tasks: asyncio.TaskGroup,
        create_session: Create,
        discard_session: Callable[[str], Awaitable[None]],
    ) -> None:
        self.agenda = Agenda()
        self._clock = clock
        self._bus = bus
        self._sessions = sessions
        self._runs = runs
        self._tasks = tasks
        self._create_session = create_session
        self._discard_session = discard_session
        self._timer = Timer(clock, self._ring)
        self._closed = False

    def add(self, schedule: Schedule) -> Schedule:
        """Take on a schedule that was planned just now."""
        if self._closed:
            raise RuntimeClosed
        self.agenda.add(schedule)
        self._timer.set(schedule.id, schedule.due)
        self._bus.publish("schedule-changed", schedule.session, schedule.created_at, schedule)
        return schedule

    def cancel(self, session: str, schedule_id: str) -> Schedule:
        found = self.agenda.get(schedule_id)
        if found is None or found.session != session:
            raise ScheduleNotFound(schedule_id)
        cancelled = self._step(found, Cancelled())
        self._timer.drop(schedule_id)
        return cancelled

    def drop_all(self, session: str) -> list[str]:
        """A session goes: what it had planned will not happen."""
        dropped = []
        for schedule in self.agenda.open_of(session):
            self._timer.drop(schedule.id)
            if self._step(schedule, Dropped()).status is Status.CANCELLED:
                dropped.append(schedule.id)
        return dropped

    def drain(self, session: str) -> None:
        """A session is idle: the first in line goes, and the next only after its turn."""
        while not self._closed and session in self._sessions and self._sessions[session].is_idle:
            waiting = self.agenda.first_queued(session)
            if waiting is None:
                return
            self._step(waiting, Freed())

    def close(self) -> None:
        """Everything that is open is cancelled, and nothing fires from here on."""
        self._closed = True
        self._timer.close()
        for schedule in [each for each in self.agenda if each.is_open]:
            self._step(schedule, Dropped())

    # -- the way of a delivery

    def _ring(self, names: list[str]) -> None:
        due = [found for name in names if (found := self.agenda.get(name)) is not None]
        # Those that are due at one look go in the order of their plans, however the heap had them.
        for schedule in sorted(due, key=lambda each: each.order):
            session = self._sessions.get(schedule.session)
            self._step(schedule, Due(idle=session is not None and session.is_idle))

    def _step(self, schedule: Schedule, event: machine.Event) -> Schedule:
        now = self._clock.now()
        after, effects = machine.step(schedule, event, now=now)
        if after is not schedule:
            self.agenda.put(after)
            self._bus.publish("schedule-changed", after.session, now.wall, after)
        for effect in effects:
            self._perform(effect)
        return after

    def _tell(self, schedule_id: str, event: machine.Event) -> Schedule | None:
        """An event for a schedule as it is by now."""
        found = self.agenda.get(schedule_id)
        return None if found is None else self._step(found, event)

    def _perform(self, effect: machine.Effect) -> None:
        match effect:
            case machine.CreateSession(schedule_id):
                self._tasks.create_task(self._create(schedule_id), name=f"deliver {schedule_id}")
            case machine.Submit(schedule_id, session):
                self._submit(schedule_id, session)

    async def _create(self, schedule_id: str) -> None:
        schedule = self.agenda.get(schedule_id)
        if schedule is None or not schedule.is_open:
            return
        try:
            session = await self._create_session(schedule)
        except Exception as error:  # noqa: BLE001 – whatever stood in the way is kept with the schedule
            self._tell(schedule_id, Broken(_summary(error)))
            return
        after = self._tell(schedule_id, SessionCreated(session))
        if after is None or after.created_session != session:
            # Called off while the session was being made: nobody would ever use it.
            await self._discard_session(session)

    def _submit(self, schedule_id: str, session: str) -> None:
        schedule = self.agenda.get(schedule_id)
        assert schedule is not None
        try:
            self._runs.start(
                session, prompt_of(schedule, self._clock.now()), lambda error: self._told(schedule_id, error)
            )
        except SessionBusy as busy:
            after = self._tell(schedule_id, Overtaken())
            if after is not None and after.in_delivery:
                self._tell(schedule_id, Broken(_summary(busy)))
        except Exception as error:  # noqa: BLE001 – likewise
            self._tell(schedule_id, Broken(_summary(error)))

    def _told(self, schedule_id: str, error: Exception | None) -> None:
        self._tell(schedule_id, Accepted() if error is None else Broken(_summary(error)))


def _summary(error: Exception) -> ErrorSummary:
    """What may be shown of an error: its own facts where it has some, never where it was raised."""
    log.warning("a schedule could not be delivered", exc_info=error)
    data: Any = error.facts() if isinstance(error, PsiError) else {}
    return ErrorSummary(str(error) or type(error).__name__, type(error).__name__, data)
