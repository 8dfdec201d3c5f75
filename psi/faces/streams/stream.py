"""What one client of a session is sent, and in which order. Knows neither sockets nor HTTP.

    nothing runs            session_sync
    a run is under way      stream_start, replay_start, what it told so far, replay_end, and then live
    its end                 stream_end, stream_stopped or error; and session_sync for whoever did not begin it

A client says what it has seen already, a run and a number, and gets only what it has not. It listens first and looks at
the log then, without waiting in between: no frame is lost there and none comes twice.

Nothing is kept for a client but its place in the run's log, from which it is handed a piece at a time, each when it has
taken the one before. So it costs the same whether it reads or not. One that takes nothing for a while although much
waits for it is not read any more, and let go.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, Final, NamedTuple

import orjson

from psi.agents.events import McpStatus
from psi.core.clock import SECOND, Alarm
from psi.core.commands import Caller
from psi.engine import Event, Run, RunEvent, RunLog
from psi.faces.frames import frame
from psi.service import Service

__all__ = ["Frame", "Gone", "Seen", "SessionStream", "Texts", "TooSlow"]

QUEUE: Final = 1_000  # frames that may wait for a client that takes none
QUEUE_BYTES: Final = 8 * 1024 * 1024
PATIENCE: Final = 1  # seconds that it may take none while so much waits
HEARTBEAT: Final = 20  # seconds of silence

_AT_ONCE: Final = 256  # frames that are handed out together
_AT_ONCE_BYTES: Final = 64 * 1024

# Enough for the whole log of a run, so that many who come back at once get the same texts.
_TEXTS: Final = 32_768
_TEXTS_SIZE: Final = 32 << 20  # bytes
_AROUND_TEXT: Final = 300  # bytes of a frame that is kept, besides its text


class TooSlow(Exception):
    """The client has not taken what it was sent for too long; a new connection gets what it missed."""


class Gone(Exception):
    """The session was closed."""


class Seen(NamedTuple):
    """Up to where a client has a run."""

    run: str
    seq: int


class Frame(NamedTuple):
    """A frame on its way: its text, its type, and for those of a run where in it they stand."""

    data: bytes
    type: str
    at: Seen | None = None

    @property
    def text(self) -> str:
        return self.data.decode()


def _plain(type: str, **more: Any) -> Frame:  # noqa: A002
    return Frame(orjson.dumps({"type": type, **more}), type)


class Texts:
    """Frames that were written already: one text for everybody who gets it, as long as somebody may."""

    def __init__(self) -> None:
        # Of each run, by number and size: the rest of a piece has another size than the whole.
        self._kept: dict[str, dict[tuple[int, int], Frame]] = {}
        self._count = 0
        self._size = 0

    def __len__(self) -> int:
        return self._count

    def of(self, told: RunEvent, log: RunLog | None = None) -> Frame:
        """``log``: where it comes from; when that is gone, so are its texts."""
        of_run = self._kept.get(told.run)
        if of_run is None:
            of_run = self._kept[told.run] = {}
            if log is not None:
                weakref.finalize(log, self._forget, told.run)
        found = of_run.get((told.seq, told.size))
        if found is None:
            shown = {**frame(told.event), "run_id": told.run, "seq": told.seq}
            found = Frame(_written(shown), shown["type"], Seen(told.run, told.seq))
            of_run[told.seq, told.size] = found
            self._count += 1
            self._size += len(found.data) + _AROUND_TEXT
            while self._count > _TEXTS or (self._size > _TEXTS_SIZE and self._count > 1):
                self._drop_oldest()
        return found

    def _drop_oldest(self) -> None:
        run, of_run = next(iter(self._kept.items()))
        if of_run:
            gone = of_run.pop(next(iter(of_run)))
            self._count -= 1
            self._size -= len(gone.data) + _AROUND_TEXT
        else:
            del self._kept[run]

    def _forget(self, run: str) -> None:
        for gone in self._kept.pop(run, {}).values():
            self._count -= 1
            self._size -= len(gone.data) + _AROUND_TEXT


def _written(shown: Mapping[str, Any]) -> bytes:
    try:
        written = orjson.dumps(shown)
    except TypeError:  # what an agent tells may be no JSON: numbers beyond 64 bits, half characters
        written = orjson.dumps({key: _safe(value) for key, value in shown.items()})
    # A copy: what orjson gives keeps the room that it was written in, kilobytes for a frame of a hundred bytes.
    return bytes(memoryview(written))


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {str(_safe(key)): _safe(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_safe(below) for below in value]
    return value if isinstance(value, bool | float | None) or -(2**63) <= value < 2**63 else str(value)


class _Began(NamedTuple):
    run: str
    log: RunLog


class _Ended(NamedTuple):
    run: str


class _Said(NamedTuple):
    """Something that belongs to no run of this session."""

    frame: Frame


class _Closed(NamedTuple):
    pass


class _Replay:
    """What of a run a client is told again: as the log was when it came, whatever becomes of that meanwhile."""

    __slots__ = ("_bytes", "_events", "_next")

    def __init__(self, events: list[RunEvent]) -> None:
        self._events = events
        self._next = 0
        self._bytes = sum(each.size for each in events)

    def __len__(self) -> int:
        return len(self._events) - self._next

    def next(self) -> Sequence[RunEvent]:
        """The next piece."""
        found = _piece(self._events[self._next : self._next + _AT_ONCE])
        self._next += len(found)
        self._bytes -= sum(each.size for each in found)
        return found

    def left(self) -> tuple[int, int]:
        """How many are still to be told, and of which size."""
        return len(self), self._bytes


class _Place:
    """Where a client is in a run."""

    __slots__ = ("bytes", "log", "run", "seq")

    def __init__(self, run: str, log: RunLog, seq: int = 0) -> None:
        self.run = run
        self.log = log
        self.seq = seq
        self.bytes = log.told_bytes if seq else 0  # of what it told up to there, about

    def next(self) -> Sequence[RunEvent]:
        """The next piece; nothing where there is none. Raises TooSlow where the log has let go of what comes next."""
        found, missed = self.log.each_after(self.seq, _AT_ONCE)
        if missed:
            raise TooSlow
        found = _piece(found)
        if found:
            self.seq = found[-1].seq
            self.bytes = self.log.told_bytes if self.is_at_the_end else self.bytes + sum(each.size for each in found)
        return found

    @property
    def is_at_the_end(self) -> bool:
        return self.seq == self.log.last


def _piece(events: list[RunEvent]) -> list[RunEvent]:
    """As many of them as are handed out together; at least one, however large it is."""
    size = 0
    for place, each in enumerate(events):
        size += each.size
        if size > _AT_ONCE_BYTES and place:
            return events[:place]
    return events


class SessionStream:
    """The frames for one client, which tells it of the runs that it begins itself."""

    def __init__(self, service: Service, caller: Caller, session: str, texts: Texts, seen: Seen | None = None) -> None:
        self._clock = service.clock
        self._service = service
        self._session = session
        self._texts = texts
        self._mine: set[str] = set()
        self._submitting = 0
        self._submitted = asyncio.Event()
        self._spoke = self._clock.now().tick
        self._notes: deque[_Began | _Ended | _Said | _Closed] = deque()
        self._is_out = False  # a batch was handed out, and nobody has come for the next one
        self._alarm: Alarm | None = None  # rings when nobody has come for too long
        self._pulse: Alarm | None = None  # rings when there was silence, or may have been
        self._has_rung = False
        self._is_too_slow = False
        self._on_too_slow: Callable[[], None] | None = None
        # Before anything is looked at; and looked at here, before anybody else can go on: what a run tells from now on
        # is heard, and what it told before is in its log.
        self._listener = service.listen(session, self._hear, caller)
        run = self._active()
        self._place = _Place(run.id, run.log, run.log.last) if run is not None else None
        self._resumed = run.id if run is not None else None
        self._opening, self._replay = self._first(run, seen)

    def close(self) -> None:
        self._listener.close()
        self._taken()
        if self._pulse is not None:
            self._pulse.cancel()

    def when_too_slow(self, call: Callable[[], None]) -> None:
        """Who is held up by a client that does not read cannot be told by :meth:`batches`."""
        self._on_too_slow = call

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
        """The same, as many at once as there are, within bounds: with many clients it is the number of sendings that
        costs. An empty one after a while in which there was nothing to be told."""
        with closing(self):
            async with aclosing(self._made()) as made:
                async for frames in made:
                    self._spoke = self._clock.now().tick
                    self._is_out = True
                    self._watch()
                    yield frames
                    self._taken()
                    if self._is_too_slow:
                        raise TooSlow

    # -- what there is to be told

    async def _made(self) -> AsyncGenerator[list[Frame], None]:
        yield self._opening
        while len(self._replay):
            await self._turn()
            yield self._frames_of(self._replay.next(), self._place)
        if self._place is not None:
            yield [_plain("replay_end")]
        while True:
            if self._place is not None and (events := self._place.next()):
                yield self._frames_of(events, self._place)
                if not self._place.is_at_the_end:
                    await self._turn()
            elif self._notes:
                if frames := await self._noted(self._notes.popleft()):
                    yield frames
            elif self._listener.is_closed:
                return
            elif await self._is_silent():
                yield [_plain("heartbeat")] if self._place is not None else []

    def _frames_of(self, events: Sequence[RunEvent], place: _Place | None) -> list[Frame]:
        of, log = self._texts.of, place.log if place is not None else None
        return [of(each, log) for each in events]

    async def _noted(self, note: _Began | _Ended | _Said | _Closed) -> list[Frame]:
        match note:
            case _Began(run, log):
                self._place = _Place(run, log)
            case _Ended(run):
                self._place = None
                if self._submitting:
                    await self._submitted.wait()
                is_known = run in self._mine and run != self._resumed
                self._mine.discard(run)
                return [] if is_known else [_plain("session_sync")]
            case _Said(told):
                return [told]
            case _Closed():
                raise Gone
        return []

    def _hear(self, event: Event) -> None:
        """Called from within whatever happens; what a run told is in its log by then."""
        match event.type:
            case "run-started":
                run = self._service.run(event.data.id)
                assert run is not None
                self._notes.append(_Began(run.id, run.log))
            case "run-finished":
                self._notes.append(_Ended(event.data.id))
            case "mcp-status":
                status: McpStatus = event.data
                self._notes.append(_Said(Frame(_written(frame(status)), "mcp_status_update")))
            case "session-closed":
                self._notes.append(_Closed())
                self._watch(is_over=True)
                return
        self._watch()

    def _active(self) -> Run | None:
        session = self._service.session(self._session)
        run = self._service.run(session.run) if session is not None and session.run is not None else None
        # One whose input is still being saved has told nothing; it may yet be refused.
        return run if run is not None and run.log.last else None

    def _first(self, run: Run | None, seen: Seen | None) -> tuple[list[Frame], _Replay]:
        """What the client is told before anything else, and what of a run is told again then."""
        if run is None:
            return [_plain("session_sync")], _Replay([])
        has_some = seen is not None and seen.run == run.id
        told, missed = run.log.after(seen.seq if seen is not None and has_some else 0)
        start = []
        if not has_some and told and told[0].seq == 1:
            start.append(self._texts.of(told.pop(0), run.log))
        count: dict[str, Any] = {"count": len(told), **({"missed": missed} if missed else {})}
        return [*start, _plain("replay_start", **count)], _Replay(told)

    # -- when

    async def _turn(self) -> None:
        """Let others go first, as everybody does who has much to be told."""
        self._listener.line_up()
        await self._listener.turn()

    async def _is_silent(self) -> bool:
        """Wait for what comes next; whether there was nothing for so long that the client should hear of that."""
        if self._pulse is None:
            # Set anew when it has rung, and not for every frame: that would cost as much as sending it.
            self._pulse = self._clock.wake(self._spoke + HEARTBEAT * SECOND, self._ring)
        await self._listener.turn()
        if not self._has_rung:
            return False
        self._pulse, self._has_rung = None, False
        if self._notes or (self._place is not None and not self._place.is_at_the_end):
            return False
        return self._clock.now().tick >= self._spoke + HEARTBEAT * SECOND

    def _ring(self) -> None:
        self._has_rung = True
        self._listener.poke()

    def _watch(self, *, is_over: bool = False) -> None:
        """Where much waits for a client that has not come for it, or all that ever will, look again in a while."""
        if self._is_out and self._alarm is None and (is_over or self._is_far_behind()):
            self._alarm = self._clock.wake(self._clock.now().tick + PATIENCE * SECOND, self._give_up)

    def _is_far_behind(self) -> bool:
        """Too much waits: of the replay, of the run it is in, and of those that have begun since."""
        frames, size = self._replay.left()
        if self._place is not None:
            frames += self._place.log.last - self._place.seq
            size += self._place.log.told_bytes - self._place.bytes
        for note in self._notes:
            frames += 1
            if isinstance(note, _Began):
                frames += note.log.last
                size += note.log.told_bytes
        return frames > QUEUE or size > QUEUE_BYTES

    def _taken(self) -> None:
        self._is_out = False
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _give_up(self) -> None:
        self._is_too_slow = True
        if self._on_too_slow is not None:
            self._on_too_slow()
