"""Who has looked at what, and has to look again. Knows topics, not what stands behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Final

from psi.core.clock import MILLISECOND, Alarm, Clock
from psi.core.topics import Topic

__all__ = ["Interest", "Reader"]

# A reader looks again at most this often, however fast things change: what comes in between is seen together.
_PACE: Final = 25 * MILLISECOND


class Reader:
    """One who looks again and again. Notes what it reads while it reads, so that a change in the middle counts, too."""

    def __init__(self, interest: Interest, clock: Clock) -> None:
        self._interest = interest
        self._clock = clock
        self._topics: set[Topic] = set()
        self._stale = asyncio.Event()
        self._began = clock.now().tick - _PACE

    def begin(self) -> None:
        """From here on it reads anew: what it knew of before no longer counts."""
        self._interest.drop(self, self._topics)
        self._topics = set()
        self._stale.clear()
        self._began = self._clock.now().tick

    def note(self, topic: Topic) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._interest.add(self, topic)

    def tell(self) -> None:
        self._stale.set()

    async def changed(self) -> None:
        """Until something that was noted has changed."""
        await self._stale.wait()
        earliest = self._began + _PACE
        if self._clock.now().tick < earliest:
            over = asyncio.Event()
            alarm: Alarm = self._clock.wake(earliest, over.set)
            try:
                await over.wait()
            finally:
                alarm.cancel()

    def close(self) -> None:
        self._interest.drop(self, self._topics)
        self._topics = set()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class Interest:
    """Readers by the topics they have noted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._readers: dict[Topic, set[Reader]] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def reader(self) -> Reader:
        return Reader(self, self._clock)

    def add(self, reader: Reader, topic: Topic) -> None:
        self._readers.setdefault(topic, set()).add(reader)

    def drop(self, reader: Reader, topics: Iterable[Topic]) -> None:
        for topic in topics:
            found = self._readers.get(topic)
            if found is not None:
                found.discard(reader)
                if not found:
                    del self._readers[topic]

    def touch(self, topics: Iterable[Topic]) -> None:
        """These have changed."""
        for topic in topics:
            for reader in self._readers.get(topic, ()):
                reader.tell()
