"""Where the events of a subscription come from. Each source can be iterated, as GraphQL has it, and says what it is:
equal sources give the same events, so that one execution can serve everybody who asks the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Final, NamedTuple

from psi.core.errors import NotFound, SessionNotFound
from psi.core.turn import Turn
from psi.engine import Event as Happened
from psi.engine import Reader, RunEvent, Subscription
from psi.faces.graphql.types import Ask

__all__ = ["Events", "Live", "Source", "Told", "run_events", "session_events"]

_ALL: Final = 1_000_000  # more than is ever remembered


@dataclass(frozen=True, slots=True)
class Told:
    """One event on its way to subscribers. ``seq`` orders it within its source; ``value`` is what the field resolves
    to; ``missed``: events before it that are lost."""

    seq: int
    value: Any
    missed: int = 0


class Backlog(NamedTuple):
    """What a client has to be told first, behind which number it needs the live part, and how much is lost for good."""

    told: Sequence[Told] = ()
    since: int = 0
    missed: int = 0


def _none() -> Backlog:
    return Backlog()


@dataclass(frozen=True, slots=True)
class Events:
    """Things that happen. ``open`` listens from the moment it is called; ``backlog`` gives what a client that comes
    back has to be told first. Between the two nothing may be awaited."""

    key: tuple[Any, ...]
    open: Callable[[], AsyncIterator[Told]] = field(repr=False)
    backlog: Callable[[], Backlog] = field(default=_none, repr=False)

    async def __aiter__(self) -> AsyncIterator[Any]:
        live = self.open()
        first = self.backlog()
        for told in first.told:
            yield told.value
        async for told in live:
            if told.seq > first.since:
                yield told.value


@dataclass(frozen=True, slots=True)
class Live:
    """An answer now, and again when something that was looked at has changed. Answering tells the reader.

    ``is_last``: whether what is answered next can never change again.
    """

    key: tuple[Any, ...]
    reader: Reader = field(repr=False)
    begin: Callable[[], None] = field(repr=False)  # called before each answer
    answer: Callable[[], Any] = field(repr=False)
    is_last: Callable[[], bool] = field(repr=False)

    async def __aiter__(self) -> AsyncIterator[Any]:
        with self.reader as reader:
            while True:
                reader.begin()
                self.begin()
                is_last = self.is_last()
                try:
                    answer = self.answer()
                    if isawaitable(answer):
                        answer = await answer
                except Exception as error:  # noqa: BLE001 – told as the field's error; a later look may go well
                    answer = error
                yield answer
                if is_last:
                    return
                await reader.changed()


Source = Events | Live


class RunNotFound(NotFound):
    code = "run/not-found"

    def __init__(self, run_id: str) -> None:
        super().__init__("run not found", run_id=run_id)


async def _listen(
    subscription: Subscription, told: Callable[[Happened], Any], wanted: Callable[[Happened], bool]
) -> AsyncIterator[Told]:
    missed = 0
    with subscription:
        async for event in subscription:
            if wanted(event):
                yield Told(event.seq, told(event), subscription.missed - missed)
                missed = subscription.missed
            if event.type == "session-closed" and subscription.session is not None:
                return  # nothing happens in it any more


def session_events(
    ask: Ask,
    name: str,
    session: str | None,
    after: int | None,
    told: Callable[[Happened], Any],
    wanted: Callable[[Happened], bool],
) -> Events:
    """What happens in one session until it is closed, or in all that the caller may see; with ``after``, what is
    remembered since."""
    service, caller = ask.service, ask.caller
    if session is not None and service.session(session, caller) is None:
        return _closed(ask, session, after, told, wanted)

    def backlog() -> Backlog:
        if after is None:
            return Backlog(since=service.seq)
        with service.watch(session, caller, after=after, limit=_ALL) as remembered:
            found = [Told(event.seq, told(event)) for event in remembered.waiting() if wanted(event)]
            if remembered.has_gap and not found:
                found = [Told(service.seq, told(_gap(ask, session)))]
            # How much is missing is not known, only that something is.
            return Backlog(found, service.seq, 1 if remembered.has_gap else 0)

    return Events((name, session, caller.user), lambda: _listen(service.watch(session, caller), told, wanted), backlog)


def _closed(
    ask: Ask,
    session: str,
    after: int | None,
    told: Callable[[Happened], Any],
    wanted: Callable[[Happened], bool],
) -> Events:
    """What is remembered of a session that is no more: its last events, up to its end."""
    if after is None:
        raise SessionNotFound(session)
    with ask.service.watch(None, ask.caller, after=after, limit=_ALL) as remembered:
        found = [event for event in remembered.waiting() if event.session == session and wanted(event)]
        # What is missing may have been of others; not if this is where the session begins.
        missed = 1 if remembered.has_gap and found and found[0].type != "session-created" else 0
    if not found:
        raise SessionNotFound(session)
    last = Backlog([Told(event.seq, told(event)) for event in found], found[-1].seq, missed)
    return Events(("closed session", session, after, ask.caller.user), _nothing, lambda: last)


class _Gap:
    """In the place of what happened: that nobody remembers it."""

    def summary(self) -> dict[str, Any]:
        return {"missed": None}


def _gap(ask: Ask, session: str | None) -> Happened:
    """An event for who would otherwise hear of what was lost only when something else happens."""
    return Happened(ask.service.seq, "gap", session, ask.service.clock.now().wall, _Gap())


async def run_events(ask: Ask, run_id: str, after: int, told: Callable[[RunEvent], Any]) -> Events:
    """What a run tells, from its beginning or behind a number. It ends with the run."""
    service, caller = ask.service, ask.caller
    # Held from here on: it may end before somebody listens, and then it is the one who still knows what it told.
    run = service.run(run_id, caller)
    if run is None:
        turn = await ask.aside().context.run(run_id)
        if turn is None:
            raise RunNotFound(run_id)
        return Events(("ended run", run_id, after), _nothing, lambda: _ended(turn, after, told))

    def backlog() -> Backlog:
        kept, missed = run.log.after(after)
        found = [Told(each.seq, told(each)) for each in kept]
        return Backlog(found, max(after, found[-1].seq if found else 0), missed)

    def follow() -> AsyncIterator[Told]:
        if service.run(run_id, caller) is None:
            return _nothing()
        return _run(service.watch(run.session, caller, limit=20_000), run_id, told)

    return Events(("run", run_id), follow, backlog)


def _ended(turn: Turn, after: int, told: Callable[[RunEvent], Any]) -> Backlog:
    """What can still be told of a run that has ended: how, which is on record. What it said before that is gone."""
    last = turn.event_count or after + 1  # nobody lived to count: at least the end is missing
    if after >= last:
        return Backlog(since=after)
    missed = last - after - 1 if turn.event_count else 1
    return Backlog([Told(last, told(RunEvent(turn.id, last, turn)))], last, missed)


async def _run(subscription: Subscription, run_id: str, told: Callable[[RunEvent], Any]) -> AsyncIterator[Told]:
    with subscription:
        async for event in subscription:
            if event.type == "run-event" and event.data.run == run_id:
                yield Told(event.data.seq, told(event.data))
            elif event.type == "run-finished" and event.data.id == run_id:
                return


async def _nothing() -> AsyncIterator[Told]:
    nothing: tuple[Told, ...] = ()
    for told in nothing:
        yield told
