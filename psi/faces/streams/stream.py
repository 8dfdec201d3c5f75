"""What one client of a session is sent, and in which order. Knows neither sockets nor HTTP.

    nothing runs            session_sync
    a run is under way      stream_start, replay_start, what it told so far, replay_end, and then live
    its end                 stream_end, stream_stopped or error; and session_sync for whoever did not begin it

A client says what it has seen already, a run and a number, and gets only what it has not. It subscribes first and looks
at the log then, without waiting in between: no frame is lost there and none comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, closing
from typing import Any, Final, NamedTuple

import orjson

from psi.core.clock import SECOND, Alarm
from psi.core.commands import Caller
from psi.engine import Event, Run, RunEvent, Subscription
from psi.faces.frames import frame
from psi.service import Service

__all__ = ["Frame", "Gone", "Seen", "SessionStream", "Texts", "TooSlow"]

QUEUE: Final = 1_000  # frames that wait for a client
QUEUE_BYTES: Final = 8 * 1024 * 1024
HEARTBEAT: Final = 20  # seconds of silence in a run

_TEXTS: Final = 4_096
_TEXTS_SIZE: Final = 16 << 20  # characters


class TooSlow(Exception):
    """The client has not read what it was sent for too long; a new connection gets what it missed."""


class Gone(Exception):
    """The session was closed."""


class Seen(NamedTuple):
    """Up to where a client has a run."""

    run: str
    seq: int


class Frame(NamedTuple):
    """A frame on its way: its text, its type, and for those of a run where in it they stand."""

    text: str
    type: str
    at: Seen | None = None


def _plain(type: str, **more: Any) -> Frame:  # noqa: A002
    return Frame(orjson.dumps({"type": type, **more}).decode(), type)


class Texts:
    """Frames that were written already: one text for everybody who gets it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, int], Frame] = {}
        self._size = 0

    def of(self, told: RunEvent) -> Frame:
        key = (told.run, told.seq, told.size)  # the rest of a piece has another size than the whole
        found = self._kept.get(key)
        if found is None:
            shown = {**frame(told.event), "run_id": told.run, "seq": told.seq}
            found = Frame(_written(shown), shown["type"], Seen(told.run, told.seq))
            self._size += len(found.text)
            while self._kept and (len(self._kept) >= _TEXTS or self._size > _TEXTS_SIZE):
                self._size -= len(self._kept.pop(next(iter(self._kept))).text)
            self._kept[key] = found
        return found


def _written(shown: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(shown).decode()
    except TypeError:  # what an agent tells may be no JSON: numbers beyond 64 bits, half characters
        return orjson.dumps({key: _safe(value) for key, value in shown.items()}).decode()


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {str(_safe(key)): _safe(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(below) for below in value]
    return value if isinstance(value, bool | float | None) or -(2**63) <= value < 2**63 else str(value)


class SessionStream:
    """The frames for one client. ``mine`` is told the runs that this client has begun itself."""

    def __init__(self, service: Service, caller: Caller, session: str, texts: Texts, seen: Seen | None = None) -> None:
        self._service = service
        self._session = session
        self._texts = texts
        self._seen = seen
        self._mine: set[str] = set()
        self._submitting = 0
        self._submitted = asyncio.Event()
        self._spoke = service.clock.now().tick
        # Before anything is looked at; and looked at here, before anybody else can go on: what a run tells from now on
        # is waiting, and what it told before is in its log, as long as it runs.
        self._subscription: Subscription = service.watch(session, caller, limit=QUEUE, most_bytes=QUEUE_BYTES)
        run = self._active()
        self._running = run.id if run is not None else None
        self._beginning, self._known = self._first(run)

    def close(self) -> None:
        self._subscription.close()

    def when_too_slow(self, call: Callable[[], None]) -> None:
        """Who is held up by a client that does not read cannot be told by :meth:`frames`."""
        self._subscription.on_overrun = call

    def submits(self) -> None:
        """This client is about to begin a run. Its end may be told before anybody knows its name."""
        self._submitting += 1
        self._submitted.clear()

    def submitted(self, run: str | None) -> None:
        if run is not None:
            self._mine.add(run)
        self._submitting -= 1
        if not self._submitting:
            self._submitted.set()

    async def frames(self) -> AsyncIterator[Frame]:
        """Everything, until the client is too slow, the session has gone, or psi is closed."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for each in batch:
                    yield each

    async def batches(self) -> AsyncGenerator[list[Frame], None]:
        """The same, as many at once as there are: with many clients it is the number of sendings that costs."""
        with closing(self._subscription):
            first, skip, running = self._beginning, self._known, self._running
            self._beginning = []
            yield first
            del first
            async for events in self._events():
                frames: list[Frame] = []
                for event in events:
                    match event.type:
                        case "run-event":
                            told: RunEvent = event.data
                            running = told.run
                            if told.run != skip.run or told.seq > skip.seq:
                                frames.append(self._texts.of(told))
                        case "run-finished":
                            running = None
                            if self._submitting:
                                yield frames
                                frames = []
                                await self._submitted.wait()
                            if event.data.id not in self._mine or event.data.id == skip.run:
                                frames.append(_plain("session_sync"))
                            self._mine.discard(event.data.id)
                        case "session-closed":
                            yield frames
                            raise Gone
                if not events and running is not None:
                    frames.append(_plain("heartbeat"))
                if frames:
                    self._spoke = self._service.clock.now().tick
                    yield frames

    def _active(self) -> Run | None:
        session = self._service.session(self._session)
        run = self._service.run(session.run) if session is not None and session.run is not None else None
        # One whose input is still being saved has told nothing; it may yet be refused.
        return run if run is not None and run.log.last else None

    def _first(self, run: Run | None) -> tuple[list[Frame], Seen]:
        """What the client is told before anything else, and up to where it knows the run then."""
        if run is None:
            return [_plain("session_sync")], Seen("", 0)
        after = self._seen.seq if self._seen is not None and self._seen.run == run.id else 0
        kept, missed = run.log.after(after)
        told = [self._texts.of(each) for each in kept]
        start = []
        if told and told[0].type == "stream_start":
            start.append(told.pop(0))
        count: dict[str, Any] = {"count": len(told), **({"missed": missed} if missed else {})}
        return [*start, _plain("replay_start", **count), *told, _plain("replay_end")], Seen(run.id, run.log.last)

    async def _events(self) -> AsyncIterator[list[Event]]:
        """What happens, as much as there is; nothing at all after a while in which the client was sent nothing."""
        subscription, clock = self._subscription, self._service.clock
        alarm: Alarm | None = None
        try:
            while not subscription.is_over:
                if alarm is None:
                    silent = self._spoke + HEARTBEAT * SECOND
                    alarm = clock.wake(silent, subscription.poke)
                found = await subscription.take()
                if subscription.overrun:
                    raise TooSlow
                if found:
                    yield found
                elif (now := clock.now().tick) >= silent:
                    # Set anew when it has rung, and not for every frame: that would cost as much as sending it.
                    alarm = None
                    if now >= self._spoke + HEARTBEAT * SECOND:
                        self._spoke = now
                        yield []
        finally:
            if alarm is not None:
                alarm.cancel()
