"""What a run has told so far, numbered, for those who come late. Bounded; gone when the run has ended.

When there is too much, pieces of text that follow each other become one first: whoever reads them puts them together
anyway. A client that had read up to the middle of such a piece gets its rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from psi.agents.events import AgentEvent, TextDelta, ThinkingDelta
from psi.core.message import Message
from psi.core.turn import Turn

__all__ = ["Opened", "RunEvent", "RunLog"]

KEPT: Final = 20_000  # events
BYTES: Final = 32 * 1024 * 1024
PIECE: Final = 64 * 1024  # characters of a piece that others were put together in
_OVERHEAD: Final = 200  # bytes of an event, besides its text


@dataclass(frozen=True, slots=True)
class Opened:
    """A run begins, with this input."""

    turn: Turn
    message: Message


class RunEvent(NamedTuple):
    """One thing that a run told: its beginning, its end, which is its turn, and between them what the agent told."""

    run: str
    seq: int  # 1, 2, 3 … within the run
    event: AgentEvent | Opened | Turn
    size: int = _OVERHEAD  # about, in bytes


class _Kept(NamedTuple):
    """Events in the log: one, or a row of pieces put together. ``ends``: where in the text each of them ends. Never
    changed: whoever has taken a part of the log still has what it took."""

    first: int
    told: RunEvent  # its number is that of the last
    ends: tuple[int, ...] | None = None


def _last(kept: _Kept) -> int:
    return kept.told.seq


class RunLog:
    def __init__(self, run: str, *, kept: int = KEPT, most_bytes: int = BYTES) -> None:
        self._run = run
        self._most = kept
        self._most_bytes = most_bytes
        self._kept: list[_Kept] = []
        self._bytes = 0
        self.last = 0  # the number of the newest
        self.told_bytes = 0  # of all that was ever told
        self._forgotten = 0  # the number of the newest that is no more

    def add(self, event: AgentEvent | Opened | Turn) -> RunEvent:
        self.last += 1
        told = RunEvent(self._run, self.last, event, _size(event))
        self._kept.append(_Kept(self.last, told))
        self._bytes += told.size
        self.told_bytes += told.size
        # At its end nothing is driven out: it is gone in a moment as a whole, and who is nearly there shall get there.
        if (len(self._kept) > self._most or self._bytes > self._most_bytes) and not isinstance(event, Turn):
            self._make_room()
        return told

    def after(self, seq: int) -> tuple[list[RunEvent], int]:
        """What is kept of the events behind that number, and how many behind it are not."""
        start = bisect_right(self._kept, seq, key=_last)
        found = [each.told for each in self._kept[start:]]
        if found and self._kept[start].first <= seq:
            rest = _rest(self._kept[start], seq)
            found[0] = RunEvent(self._run, found[0].seq, rest, _size(rest))
        return found, self._lost(seq, found)

    def each_after(self, seq: int, most: int) -> tuple[list[RunEvent], int]:
        """The same for those who follow: so many at the most, and pieces that were put together one by one again, as
        they were told."""
        start = bisect_right(self._kept, seq, key=_last)
        found: list[RunEvent] = []
        for kept in self._kept[start : start + most]:
            if kept.ends is None:
                found.append(kept.told)
            else:
                found += _apart(kept, seq, most - len(found))
            if len(found) >= most:
                break
        return found, self._lost(seq, found)

    def _lost(self, seq: int, found: list[RunEvent]) -> int:
        kept_start = 1 if seq < 1 and found and found[0].seq == 1 else 0
        return max(self._forgotten - max(seq, 0) - kept_start, 0)

    def _make_room(self) -> None:
        together = _together(self._kept)
        # The newest comes on top of what there is room for: nobody has had a chance to read it yet, however large it
        # is, nor what it would drive out.
        newest = together[-1].told.size
        size = sum(kept.told.size for kept in together) - newest
        # Still too much: the oldest go, and a part of them at once, so that this is not done for every event.
        if len(together) > self._most * 15 // 16 or size > self._most_bytes * 15 // 16:
            # But never how it began: who comes late has to know what this is an answer to.
            begun = 1 if isinstance(together[0].told.event, Opened) else 0
            gone = begun
            while gone < len(together) - 1 and (
                len(together) - gone + begun > self._most * 7 // 8 or size > self._most_bytes * 7 // 8
            ):
                size -= together[gone].told.size
                self._forgotten = together[gone].told.seq
                gone += 1
            del together[begun:gone]
        self._kept, self._bytes = together, size + newest


def _together(kept: Iterable[_Kept]) -> list[_Kept]:
    """The same with pieces of one text put together where they follow each other."""
    found: list[_Kept] = []
    row: list[_Kept] = []
    length = 0
    for each in kept:
        event = each.told.event
        size = len(event.delta) if isinstance(event, TextDelta | ThinkingDelta) else PIECE
        if row and (length + size > PIECE or type(event) is not type(row[0].told.event)):
            found.append(_joined(row))
            row, length = [], 0
        row.append(each)
        length += size
    if row:
        found.append(_joined(row))
    return found


def _joined(row: list[_Kept]) -> _Kept:
    if len(row) == 1:
        return row[0]
    texts: list[str] = []
    ends: list[int] = []
    length = 0
    for each in row:
        text = _text(each)
        texts.append(text)
        ends += [length + end for end in each.ends or (len(text),)]
        length += len(text)
    kind: Any = type(row[0].told.event)
    event = kind("".join(texts))
    told = RunEvent(row[0].told.run, row[-1].told.seq, event, _size(event) + 8 * len(ends))
    return _Kept(row[0].first, told, tuple(ends))


def _apart(kept: _Kept, seq: int, most: int) -> list[RunEvent]:
    """The pieces behind that number, the first so many of them."""
    assert kept.ends is not None
    text, kind = _text(kept), type(kept.told.event)
    place = max(seq - kept.first + 1, 0)
    begin = kept.ends[place - 1] if place else 0
    found = []
    for number, end in enumerate(kept.ends[place : place + most], kept.first + place):
        event: Any = kind(text[begin:end])  # type: ignore[call-arg, arg-type]  # one of two, which have the same
        found.append(RunEvent(kept.told.run, number, event, _size(event)))
        begin = end
    return found


def _text(kept: _Kept) -> str:
    event = kept.told.event
    assert isinstance(event, TextDelta | ThinkingDelta)
    return event.delta


def _rest(kept: _Kept, seq: int) -> AgentEvent:
    """What of a piece is behind a number in the middle of it."""
    assert kept.ends is not None
    assert isinstance(kept.told.event, TextDelta | ThinkingDelta)
    return type(kept.told.event)(_text(kept)[kept.ends[seq - kept.first] :])


def _size(event: Any) -> int:
    if isinstance(event, TextDelta | ThinkingDelta):
        return _OVERHEAD + _length(event.delta)
    if isinstance(event, Opened):
        return _OVERHEAD + _length(event.message.text)
    return _OVERHEAD + sum(_length(getattr(event, each.name)) for each in fields(event))


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
    return len(repr(value)) if isinstance(value, dict | list | tuple) else 8
