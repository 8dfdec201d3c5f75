"""Time as it is, and time that tests move by hand. Both count in ticks that no change of the wall clock touches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from typing import Final

from psi.core.clock import SECOND, Alarm, Moment

__all__ = ["SystemClock", "VirtualClock"]

# Where there is such a clock, time that the machine slept through counts, too.
_TICKS: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

# The loop's own timer stands still while the machine sleeps, so that a long wait is looked after now and then.
_LONGEST: Final = 15.0


_new: Final = tuple.__new__


class SystemClock:
    """The machine's clocks, and alarms on the running event loop."""

    def now(self) -> Moment:
        return _new(Moment, (datetime.now(UTC), time.clock_gettime_ns(_TICKS)))  # as the class would, and faster

    def wake(self, tick: int, call: Callable[[], None]) -> Alarm:
        return _SystemAlarm(tick, call)


class _SystemAlarm:
    __slots__ = ("_call", "_handle", "_loop", "_tick")

    def __init__(self, tick: int, call: Callable[[], None]) -> None:
        self._tick = tick
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle
        self._wait()

    def _wait(self) -> None:
        ahead = (self._tick - time.clock_gettime_ns(_TICKS)) / SECOND
        if ahead <= 0:
            self._handle = self._loop.call_soon(self._call)
        else:
            self._handle = self._loop.call_later(min(ahead, _LONGEST), self._look)

    def _look(self) -> None:
        if time.clock_gettime_ns(_TICKS) >= self._tick:
            self._call()
        else:
            self._wait()

    def cancel(self) -> None:
        self._handle.cancel()


class _VirtualAlarm:
    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class VirtualClock:
    """A clock that stands still until it is moved, and then passes every alarm on its way in order."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._wall = start
        self._tick = 0
        self._alarms: list[tuple[int, int, _VirtualAlarm]] = []
        self._serial = 0

    def now(self) -> Moment:
        return Moment(self._wall, self._tick)

    def wake(self, tick: int, call: Callable[[], None]) -> Alarm:
        alarm = _VirtualAlarm(call)
        self._serial += 1
        heappush(self._alarms, (tick, self._serial, alarm))
        return alarm

    async def advance(self, seconds: float = 0) -> None:
        """Let time pass. What an alarm sets off is over, as far as it can be, before the clock goes on."""
        target = self._tick + round(seconds * SECOND)
        await settle()
        while self._alarms and self._alarms[0][0] <= target:
            tick, _, alarm = heappop(self._alarms)
            if alarm.call is not None:
                self._move_to(max(tick, self._tick))
                alarm.call()
                await settle()
        self._move_to(target)

    def set_wall(self, wall: datetime) -> None:
        """Somebody sets the clock on the wall. Not a moment passes."""
        self._wall = wall

    def _move_to(self, tick: int) -> None:
        self._wall += timedelta(microseconds=(tick - self._tick) // 1_000)
        self._tick = tick


async def settle(passes: int = 40) -> None:
    """Let everything on the loop that needs no time go as far as it can."""
    for _ in range(passes):
        await asyncio.sleep(0)
