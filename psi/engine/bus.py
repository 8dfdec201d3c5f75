"""What happened, for whoever listens. Publishing never waits; who does not keep up is told how much was missed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from psi.core.topics import touched
from psi.engine.interest import Interest

__all__ = ["Bus", "Event", "Subscription"]

_REMEMBERED: Final = 4_096  # events that a late subscriber can still ask for
_QUEUE: Final = 1_000  # events that wait for a slow one
_AT_ONCE: Final = 4  # subscriptions that are woken before everything else goes on; each has a millisecond's tenth to do
_BYTES: Final = 32 << 20  # what remembered events may weigh


class Event(NamedTuple):
    """One thing that happened: to which session, when, as the how-manieth, and what. ``owner``: whose session it is."""

    seq: int
    type: str
    session: str | None
    at: datetime
    data: Any
    owner: str | None = None
    weight: int = 0  # about how many bytes it keeps alive that nothing else does


_new: Final = tuple.__new__


class Subscription:
    """The events of one session, or of all that a user has. Iterating gives each; two fields tell of those that do not
    come."""

    def __init__(
        self, bus: Bus, session: str | None, user: str | None, limit: int, most_bytes: int | None = None
    ) -> None:
        self.missed = 0  # events that had no room
        self.overrun = False  # with ``most_bytes``: there was no room, and so nothing comes any more
        self.on_overrun: Callable[[], None] | None = None  # for those who may be held up where they cannot see that
        self.has_gap = False  # there was more after the number that was asked for than is remembered
        self._bus = bus
        self.session = session
        self._user = user
        self._limit = limit
        self._most_bytes = most_bytes
        self._bytes = 0
        self._waiting: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._in_line = False  # to be woken
        self._closed = False

    def wake(self) -> None:
        """Its turn has come."""
        self._in_line = False
        self._ready.set()

    def put(self, event: Event) -> None:
        if self._user is not None and event.owner != self._user:
            return
        if self._most_bytes is not None:
            if self.overrun:
                return
            size = getattr(event.data, "size", 0)
            self._bytes += size
            # The first may be as large as it is, as a long answer: nobody was slow before it came.
            if self._waiting and (len(self._waiting) >= self._limit or (size and self._bytes > self._most_bytes)):
                self.overrun = True
                self._waiting.clear()
                self._ready.set()
                if self.on_overrun is not None:
                    self.on_overrun()
                return
        elif len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self.missed += 1
        self._waiting.append(event)
        if self._most_bytes is None:
            self._ready.set()
        elif not self._in_line:
            self._in_line = True
            self._bus.line_up(self)

    @property
    def is_over(self) -> bool:
        """Nothing comes any more, and everything that came was taken."""
        return self._closed and not self._waiting

    def poke(self) -> None:
        """Wake who waits in :meth:`take`, though nothing has happened."""
        self._ready.set()

    async def take(self) -> list[Event]:
        """All that has come; waits for the first. Nothing, where it was poked, overrun or closed."""
        if not self._waiting and not self._closed and not self.overrun:
            self._ready.clear()
            await self._ready.wait()
        found = list(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return found

    def waiting(self) -> list[Event]:
        """What has come and was not taken yet."""
        return list(self._waiting)

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


def _nobody(session: str) -> str | None:
    return None


class Bus:
    def __init__(
        self,
        *,
        interest: Interest | None = None,
        owner_of: Callable[[str], str | None] = _nobody,
        start: int = 0,
        remembered: int = _REMEMBERED,
    ) -> None:
        """``start``: the number before the first event. One that no earlier bus has reached makes numbers that are
        remembered from then recognisable."""
        self.seq = self._start = start
        # The newest event that is not remembered, or no more: of each session, of each user, of all.
        self._untold: dict[str | None, int] = {}
        self._untold_of: dict[str | None, int] = {}
        self._untold_all = start
        self._interest = interest
        self.owner_of = owner_of
        self._at_once = max(remembered >> 3, 1)  # so many are forgotten together
        self._most = remembered + self._at_once - 1
        self._recent: deque[Event] = deque()
        self._weight = 0
        # By the session they listen to, so that an event costs as much as there are listeners for it; None: to all.
        self._subscriptions: dict[str | None, set[Subscription]] = {}
        self._line: deque[Subscription] = deque()

    @property
    def published(self) -> int:
        """How many events there were."""
        return self.seq - self._start

    def publish(
        self,
        type: str,  # noqa: A002
        session: str | None,
        at: datetime,
        data: Any,
        *,
        keep: bool = True,
        weight: int = 0,
    ) -> None:
        """Tell everybody. ``keep``: whether it can be asked for later; a turn's deltas have a buffer of their own."""
        self.seq = seq = self.seq + 1
        owner = None if session is None else self.owner_of(session)
        # As the class would make it, in half the time: an event is made for each of a hundred thousand schedules.
        event = _new(Event, (seq, type, session, at, data, owner, weight))
        if keep:
            recent = self._recent
            if len(recent) == self._most:
                self._forget(self._at_once)
            recent.append(event)
            if weight:
                self._weight += weight
                while self._weight > _BYTES and len(recent) > 1:
                    self._forget(1)
        else:
            self._untold[session] = self._untold_of[owner] = self._untold_all = seq
        if self._interest:
            self._interest.touch(touched(type, session, owner, data))
        subscriptions = self._subscriptions
        if subscriptions:
            for subscription in subscriptions.get(None, ()):
                subscription.put(event)
            if session is not None:
                for subscription in subscriptions.get(session, ()):
                    subscription.put(event)

    def subscribe(
        self,
        session: str | None = None,
        *,
        user: str | None = None,
        after: int | None = None,
        limit: int = _QUEUE,
        most_bytes: int | None = None,
    ) -> Subscription:
        """Listen from now on; with ``after`` also to what is remembered of the events behind that number. ``user``: to
        what happens in this user's sessions alone. ``most_bytes``: whoever does not keep up is not told with gaps but
        not at all any more."""
        found = Subscription(self, session, user, limit, most_bytes)
        self._subscriptions.setdefault(session, set()).add(found)
        if after is not None:
            after = after or self._start  # 0: from the beginning
            # A number that is not reached yet is from before a restart: nothing is known of what came between.
            is_foreign = after > self.seq
            if session is not None:
                untold = self._untold.get(session, self._start)
            else:
                untold = self._untold_all if user is None else self._untold_of.get(user, self._start)
            found.has_gap = is_foreign or after < max(untold, self._start)
            for event in self._recent:
                if (is_foreign or event.seq > after) and session in (None, event.session):
                    found.put(event)
        return found

    def _forget(self, count: int) -> None:
        """Forget the oldest, and keep in mind whose they were: who lost nothing is told of no gap."""
        untold, untold_of, recent = self._untold, self._untold_of, self._recent
        for _ in range(count):
            seq, kind, session, _at, _data, owner, weight = recent.popleft()
            self._weight -= weight
            if kind == "session-closed":
                untold.pop(session, None)  # the last of its session: nobody can ask for one that is not there
            elif untold.get(session, 0) < seq:
                untold[session] = seq
            if untold_of.get(owner, 0) < seq:
                untold_of[owner] = seq
            if self._untold_all < seq:
                self._untold_all = seq

    def line_up(self, subscription: Subscription) -> None:
        """Wake a subscription soon: a few at a time, so that whatever else is due gets its turn in between. A run that
        hundreds follow would otherwise wait for all of them before it can go on; so they wait for it, and find more at
        once when they are woken."""
        if not self._line:
            asyncio.get_running_loop().call_soon(self._wake_some)
        self._line.append(subscription)

    def _wake_some(self) -> None:
        line = self._line
        for _ in range(min(_AT_ONCE, len(line))):
            line.popleft().wake()
        if line:
            asyncio.get_running_loop().call_soon(self._wake_some)

    def leave(self, subscription: Subscription) -> None:
        listening = self._subscriptions.get(subscription.session)
        if listening is not None:
            listening.discard(subscription)
            if not listening:
                del self._subscriptions[subscription.session]

    def close(self) -> None:
        for subscription in [each for listening in self._subscriptions.values() for each in listening]:
            subscription.close()
