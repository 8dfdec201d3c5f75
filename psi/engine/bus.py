"""What happened, for whoever listens. Publishing never waits; who does not keep up is told how much was missed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from psi.core.topics import touched
from psi.engine.interest import Interest

__all__ = ["Bus", "Event", "Listener", "Subscription"]

_REMEMBERED: Final = 4_096  # events that a late subscriber can still ask for
_QUEUE: Final = 1_000  # events that wait for a slow one
_AT_ONCE: Final = 4  # listeners that are woken before everything else goes on; each has up to a millisecond to do
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

    def __init__(self, bus: Bus, session: str | None, user: str | None, limit: int) -> None:
        self.missed = 0  # events that had no room
        self.has_gap = False  # there was more after the number that was asked for than is remembered
        self._bus = bus
        self.session = session
        self._user = user
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._closed = False

    def put(self, event: Event) -> None:
        if self._user is not None and event.owner != self._user:
            return
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self.missed += 1
        self._waiting.append(event)
        self._ready.set()

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


class Listener:
    """Hears each event of a session at once, and is woken for what it has heard when its turn has come. Nothing waits
    for it here, so that nothing can be lost; what it heard of is looked up where it is kept."""

    def __init__(self, bus: Bus, session: str, hear: Callable[[Event], None]) -> None:
        self._bus = bus
        self.session = session
        self._hear = hear
        self._ready = asyncio.Event()
        self._in_line = False
        self.is_closed = False

    def put(self, event: Event) -> None:
        self._hear(event)
        self.line_up()

    def line_up(self) -> None:
        """There is something to do, when its turn has come."""
        if not self._in_line:
            self._in_line = True
            self._bus.line_up(self)

    def wake(self) -> None:
        """Its turn has come."""
        self._in_line = False
        self._ready.set()

    def poke(self) -> None:
        """Wake it out of turn."""
        self._ready.set()

    async def turn(self) -> None:
        """Until it is woken; at once where it was since the last time."""
        await self._ready.wait()
        self._ready.clear()

    def close(self) -> None:
        self.is_closed = True
        self._bus.leave(self)
        self._ready.set()


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
        self._subscriptions: dict[str | None, set[Subscription | Listener]] = {}
        self._line: deque[Listener] = deque()

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
    ) -> Subscription:
        """Listen from now on; with ``after`` also to what is remembered of the events behind that number. ``user``: to
        what happens in this user's sessions alone."""
        found = Subscription(self, session, user, limit)
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

    def listen(self, session: str, hear: Callable[[Event], None]) -> Listener:
        """``hear`` is called with each event of the session, from within whatever makes it happen."""
        found = Listener(self, session, hear)
        self._subscriptions.setdefault(session, set()).add(found)
        return found

    def tell_all(self, type: str, owner: str | None, at: datetime, data: Any, *, but: str) -> None:  # noqa: A002
        """Tell whoever listens to any session of this owner of what belongs to none of them; ``but`` one, which has
        heard it already."""
        event = Event(self.seq, type, None, at, data, owner)
        for session, listening in list(self._subscriptions.items()):
            if session is not None and session != but and self.owner_of(session) == owner:
                for each in listening:
                    if isinstance(each, Listener):
                        each.put(event)

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

    def line_up(self, listener: Listener) -> None:
        """Wake a listener soon: a few at a time, so that whatever else is due gets its turn in between. A run that
        hundreds follow would otherwise wait for all of them before it can go on; so they wait for it, and find more at
        once when they are woken."""
        if not self._line:
            asyncio.get_running_loop().call_soon(self._wake_some)
        self._line.append(listener)

    def _wake_some(self) -> None:
        line = self._line
        for _ in range(min(_AT_ONCE, len(line))):
            line.popleft().wake()
        if line:
            asyncio.get_running_loop().call_soon(self._wake_some)

    def leave(self, subscription: Subscription | Listener) -> None:
        listening = self._subscriptions.get(subscription.session)
        if listening is not None:
            listening.discard(subscription)
            if not listening:
                del self._subscriptions[subscription.session]

    def close(self) -> None:
        for subscription in [each for listening in self._subscriptions.values() for each in listening]:
            subscription.close()
