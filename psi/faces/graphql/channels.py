"""Who follows what. One execution and one serialisation serve everybody who asks the same; nobody waits for anybody.

    source ──▶ channel: executes each event once ──▶ follower: a bounded queue ──▶ its socket

A follower that does not keep up loses its oldest payloads and is told how many with the next one that it gets.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from psi.faces.graphql.operations import Subscribed
from psi.faces.graphql.sources import Events, Told

__all__ = ["Channels", "Follower"]

log = logging.getLogger("psi.graphql")

_MOST_BYTES: Final = 8 << 20  # that wait for one follower; characters, to be exact


class Follower:
    """One subscriber's end of a channel. ``ready`` is called when there is something to take."""

    __slots__ = ("_bytes", "_channel", "_limit", "_ready", "_since", "_waiting", "backlog", "done", "missed", "payload")

    def __init__(self, subscribed: Subscribed, limit: int, ready: Callable[[], None]) -> None:
        self.payload = subscribed.payload
        self.backlog: Sequence[Told] = ()  # what it has to be told first, still to be executed
        self.missed = 0
        self.done = False
        self._since = 0
        self._limit = limit
        self._ready = ready
        self._waiting: deque[str] = deque()
        self._bytes = 0
        self._channel: _Channel | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, channel: _Channel, since: int) -> None:
        self._channel = channel
        self._since = since

    def put(self, text: str, seq: int | None, missed: int = 0) -> None:
        if seq is not None and seq <= self._since:
            return
        self.missed += missed
        self._bytes += len(text)
        # The newest may be as large as it is: whatever else there was, it is what counts.
        while self._waiting and (len(self._waiting) >= self._limit or self._bytes > _MOST_BYTES):
            self._bytes -= len(self._waiting.popleft())
            self.missed += 1
        self._waiting.append(text)
        self._ready()

    def end(self) -> None:
        self.done = True
        self._ready()

    def take(self) -> tuple[str, int]:
        """The next payload, and how many before it were lost."""
        missed, self.missed = self.missed, 0
        text = self._waiting.popleft()
        self._bytes -= len(text)
        return text, missed

    def leave(self) -> None:
        if self._channel is not None:
            self._channel.leave(self)
            self._channel = None


class _Channel:
    def __init__(self, channels: Channels, subscribed: Subscribed) -> None:
        self._channels = channels
        self._subscribed = subscribed
        self._followers: set[Follower] = set()
        self._latest: str | None = None
        source = subscribed.source
        # Listening begins here, before anybody can have missed anything.
        self._live: AsyncIterator[Any] = source.open() if isinstance(source, Events) else source.__aiter__()
        self._task = channels.start(self._run())

    def join(self, follower: Follower, since: int) -> None:
        follower.begin(self, since)
        self._followers.add(follower)
        if self._latest is not None:
            follower.put(self._latest, None)

    def leave(self, follower: Follower) -> None:
        self._followers.discard(follower)
        if not self._followers:
            self._channels.drop(self._subscribed.key, self)
            self._task.cancel()

    async def _run(self) -> None:
        try:
            if isinstance(self._subscribed.source, Events):
                async for told in self._live:
                    text = await self._subscribed.payload(told.value)
                    for follower in self._followers:
                        follower.put(text, told.seq, told.missed)
            else:
                async for value in self._live:
                    text = await self._subscribed.payload(value)
                    if text != self._latest:
                        self._latest = text
                        for follower in self._followers:
                            follower.put(text, None)
        except Exception:
            log.exception("a subscription failed")
        finally:
            self._channels.drop(self._subscribed.key, self)
            for follower in list(self._followers):
                follower.end()


class Channels:
    """The channels that somebody follows."""

    def __init__(self, start: Callable[[Any], asyncio.Task[None]]) -> None:
        self.start = start
        self._channels: dict[tuple[Any, ...], _Channel] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def follow(self, subscribed: Subscribed, limit: int, ready: Callable[[], None]) -> Follower:
        """Join those who follow the same, or be the first. Nothing is awaited here, so that between what is remembered
        and what is live there is no gap and nothing comes twice."""
        follower = Follower(subscribed, limit, ready)
        channel = self._channels.get(subscribed.key)
        if channel is None:
            channel = self._channels[subscribed.key] = _Channel(self, subscribed)
        since = 0
        if isinstance(subscribed.source, Events):
            follower.backlog, since, follower.missed = subscribed.source.backlog()
        channel.join(follower, since)
        return follower

    def drop(self, key: tuple[Any, ...], channel: _Channel) -> None:
        if self._channels.get(key) is channel:
            del self._channels[key]
