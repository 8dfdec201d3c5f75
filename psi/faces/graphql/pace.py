"""How an operation shares the process with others: one thing at a time, everybody else in between, and an end to it.

The engine bounds a query; an operation may consist of hundreds of them, and its root fields are begun side by side. So
they take turns here, and one clock counts for all of them.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from psi.graph import LimitExceeded

__all__ = ["Pace"]

_LONG_ENOUGH = 0.01  # seconds after which others are let in


class Pace:
    """``async with pace:`` around each piece of work. Raises LimitExceeded when the time of the operation is up."""

    __slots__ = ("_deadline", "_rested", "_seconds", "_turn")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self.begin()

    def begin(self) -> None:
        """The time counts from here: of an operation, or of one answer of a live query."""
        self._rested = monotonic()
        self._deadline = None if self._seconds is None else self._rested + self._seconds

    @property
    def left(self) -> float | None:
        """The seconds that are left; None where there is no end."""
        return None if self._deadline is None else max(self._deadline - monotonic(), 0.001)

    async def __aenter__(self) -> None:
        await self._turn.acquire()
        try:
            now = monotonic()
            if now - self._rested > _LONG_ENOUGH:
                await asyncio.sleep(0)
                now = self._rested = monotonic()
            if self._deadline is not None and now >= self._deadline:
                raise LimitExceeded("timeout", f"the operation took longer than its {self._seconds:g} s")
        except BaseException:
            self._turn.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._turn.release()
