"""How much a client may ask for: a bucket for each, filled at one pace. Holds no clock and refuses nobody by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["Rates"]

MOST_CLIENTS: Final = 10_000


class Rates:
    """Token buckets, each kept as the one moment at which it will be full again (GCRA).

    The number of buckets is bounded: the client that was heard of longest ago is forgotten first, and is mostly one
    whose bucket is full again, which is what a client that nobody knows has, too.
    """

    def __init__(self, rate: float, burst: int, now: Callable[[], float], *, most: int = MOST_CLIENTS) -> None:
        self._step = 1 / rate
        self._room = burst / rate
        self._now = now
        self._most = most
        self._full_at: dict[str, float] = {}  # the order is that of the last request

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, client: str) -> float:
        """0 where the client may go on; else the seconds until it may, and then nothing was taken."""
        now = self._now()
        full_at = max(self._full_at.pop(client, now), now)
        wait = full_at + self._step - now - self._room
        # What is left over of sums of fractions must not refuse the last request of a burst.
        allowed = wait <= self._step * 1e-6
        self._full_at[client] = full_at + self._step if allowed else full_at
        if len(self._full_at) > self._most:
            del self._full_at[next(iter(self._full_at))]
        return 0.0 if allowed else wait
