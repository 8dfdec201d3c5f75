"""Who must be woken, and when. Holds no clock and never sleeps."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["Deadlines"]

K = TypeVar("K", bound=Hashable)

# Below this many entries it is not worth the trouble to throw away what has been called off.
_FEW = 64


class Deadlines(Generic[K]):
    """A heap of ticks. A key has one deadline at most; what was called off lies in the heap until it comes up, or until
    there is more of it than of anything else."""

    __slots__ = ("_heap", "_live", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, K]] = []
        self._live: dict[K, int] = {}  # key → serial of the entry that counts
        self._serial = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: object) -> bool:
        return key in self._live

    def set(self, key: K, due: int) -> None:
        """Wake this key at ``due``, and at no other time it was set to before."""
        self._serial = serial = self._serial + 1
        again = key in self._live
        self._live[key] = serial
        heappush(self._heap, (due, serial, key))
        if again:
            self._tidy()

    def drop(self, key: K) -> None:
        """Call it off; nothing happens where there is nothing to call off."""
        if self._live.pop(key, None) is not None:
            self._tidy()

    def next(self) -> int | None:
        """The earliest deadline there is."""
        heap = self._heap
        while heap:
            due, serial, key = heap[0]
            if self._live.get(key) == serial:
                return due
            heappop(heap)
        return None

    def pop(self, now: int) -> list[K]:
        """The keys whose time has come, the earliest first; they have no deadline afterwards."""
        found: list[K] = []
        heap, live = self._heap, self._live
        while heap and heap[0][0] <= now:
            _, serial, key = heappop(heap)
            if live.get(key) == serial:
                del live[key]
                found.append(key)
        return found

    def clear(self) -> None:
        self._heap.clear()
        self._live.clear()

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._live) + _FEW:
            self._heap = [entry for entry in self._heap if self._live.get(entry[2]) == entry[1]]
            heapify(self._heap)
