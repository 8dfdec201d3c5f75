"""The one timer: everything that has to be woken, behind a single alarm of the clock."""

from __future__ import annotations

from collections.abc import Callable

from psi.core.clock import Alarm, Clock
from psi.core.deadlines import Deadlines

__all__ = ["Timer"]


class Timer:
    """Wakes names at their ticks: those that are due together, together."""

    def __init__(self, clock: Clock, ring: Callable[[list[str]], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._deadlines: Deadlines[str] = Deadlines()
        self._armed: int | None = None
        self._alarm: Alarm | None = None

    def __len__(self) -> int:
        return len(self._deadlines)

    def set(self, name: str, due: int) -> None:
        self._deadlines.set(name, due)
        if self._armed is None or due < self._armed:
            self._arm_for(due)

    def drop(self, name: str) -> None:
        # The alarm stays as it is: waking for nothing is cheaper than looking for what is next at every drop.
        self._deadlines.drop(name)

    def close(self) -> None:
        """Nothing is woken from here on."""
        self._deadlines.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._armed = None

    def _arm_for(self, due: int) -> None:
        if self._armed is None or due < self._armed:
            if self._alarm is not None:
                self._alarm.cancel()
            self._armed = due
            self._alarm = self._clock.wake(due, self._wake)

    def _wake(self) -> None:
        self._armed = self._alarm = None
        names = self._deadlines.pop(self._clock.now().tick)
        try:
            if names:
                self._ring(names)
        finally:
            due = self._deadlines.next()
            if due is not None:
                self._arm_for(due)
