"""What happened, for whoever listens. Publishing never waits; who does not keep up is told how much was missed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, NamedTuple

__all__ = ["Bus", "Event", "Subscription"]

_REMEMBERED: Final = 4_096  # events that a late subscriber can still ask for
_QUEUE: Final = 1_000  # events that wait for a slow one


class Event(NamedTuple):
    """One thing that happened: to which session, when, as the how-manieth, and what."""

    seq: int
    type: str
    session: str | None
    at: datetime
    data: Any


class Subscription:
    """The events of one session, or of all. Iterating gives each; two fields tell of those that do not come."""

    def __init__(self, bus: Bus, session: str | None, limit: int) -> None:
        self.missed = 0  # events that had no room
        self.has_gap = False  # there was more after the number that was asked for than is remembered
        self._bus = bus
        self._session = session
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._closed = False

    def put(self, event: Event) -> None:
        if self._session is not None and event.session != self._session:
            return
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self.missed += 1
        self._waiting.append(event)
        self._ready.set()

    def close(self) -> None:
        self._closed = True
        self._bus.leave(self)
        self._ready.set()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._closed:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


class Bus:
    def __init__(self, *, remembered: int = _REMEMBERED) -> None:
        self.seq = 0
        self._remembered = remembered
        self._recent: deque[Event] = deque()
        self._forgotten = 0  # the newest that was kept once and is no more
        self._subscriptions: set[Subscription] = set()

    def publish(self, type: str, session: str | None, at: datetime, data: Any, *, keep: bool = True) -> None:  # noqa: A002
        """Tell everybody. ``keep``: whether it can be asked for later; a turn's deltas have a buffer of their own."""
        self.seq = seq = self.seq + 1
        event = Event(seq, type, session, at, data)
        if keep:
            if len(self._recent) == self._remembered:
                self._forgotten = self._recent.popleft().seq
            self._recent.append(event)
        for subscription in self._subscriptions:
            subscription.put(event)

    def subscribe(self, session: str | None = None, *, after: int | None = None, limit: int = _QUEUE) -> Subscription:
        """Listen from now on; with ``after`` also to what is remembered of the events behind that number."""
        found = Subscription(self, session, limit)
        self._subscriptions.add(found)
        if after is not None:
            found.has_gap = after < self._forgotten
            for event in self._recent:
                if event.seq > after:
                    found.put(event)
        return found

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def close(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()
