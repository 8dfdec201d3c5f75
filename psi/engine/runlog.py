"""What a run has told so far, numbered, for those who come late. Bounded; gone when the run has ended.

When there is too much, pieces of text that follow each other become one first: whoever reads them puts them together
anyway. A client that had read up to the middle of such a piece gets its rest.
"""

from __future__ import annotations

from collections import deque
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


class _Kept:
    """Events in the log: one, or a row of pieces put together. ``ends``: where in the text each of them ends."""

    __slots__ = ("ends", "event", "first", "last", "size")

    def __init__(self, told: RunEvent) -> None:
        self.first = self.last = told.seq
        self.event = told.event
        self.size = told.size
        self.ends: list[int] | None = None


class RunLog:
    def __init__(self, run: str, *, kept: int = KEPT, most_bytes: int = BYTES) -> None:
        self._run = run
        self._most = kept
        self._most_bytes = most_bytes
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self.last = 0  # the number of the newest
        self._forgotten = 0  # the number of the newest that is no more

    def add(self, event: AgentEvent | Opened | Turn) -> RunEvent:
        self.last += 1
        told = RunEvent(self._run, self.last, event, _size(event))
        self._kept.append(_Kept(told))
        self._bytes += told.size
        if len(self._kept) > self._most or self._bytes > self._most_bytes:
            self._make_room()
        return told

    def after(self, seq: int) -> tuple[list[RunEvent], int]:
        """What is kept of the events behind that number, and how many behind it are not."""
        found = []
        for kept in self._kept:
            if kept.last > seq:
                if kept.first > seq:
                    found.append(RunEvent(self._run, kept.last, kept.event, kept.size))
                else:
                    rest = _rest(kept, seq)
                    found.append(RunEvent(self._run, kept.last, rest, _size(rest)))
        kept_start = 1 if seq < 1 and found and found[0].seq == 1 else 0
        return found, max(self._forgotten - max(seq, 0) - kept_start, 0)

    def _make_room(self) -> None:
        together: deque[_Kept] = deque()
        for kept in self._kept:
            if not (together and _join(together[-1], kept)):
                together.append(kept)
        self._kept = together
        self._bytes = sum(kept.size for kept in together)
        # Still too much: the oldest go, and a part of them at once, so that this is not done for every event.
        if len(together) > self._most * 15 // 16 or self._bytes > self._most_bytes * 15 // 16:
            # But never how it began: who comes late has to know what this is an answer to.
            opened = together.popleft() if isinstance(together[0].event, Opened) else None
            while together and (len(together) > self._most * 7 // 8 or self._bytes > self._most_bytes * 7 // 8):
                gone = together.popleft()
                self._bytes -= gone.size
                self._forgotten = gone.last
            if opened is not None:
                together.appendleft(opened)


def _join(before: _Kept, after: _Kept) -> bool:
    """Put two pieces of one text together, if that is what they are."""
    one, other = before.event, after.event
    if type(one) is not type(other) or not isinstance(one, TextDelta | ThinkingDelta):
        return False
    assert isinstance(other, TextDelta | ThinkingDelta)
    if len(one.delta) + len(other.delta) > PIECE:
        return False
    length = len(one.delta)
    ends = before.ends or [length]
    ends += [length + end for end in after.ends or [len(other.delta)]]
    before.ends = ends
    before.event = type(one)(one.delta + other.delta)
    before.last = after.last
    before.size = _size(before.event) + 8 * len(ends)
    return True


def _rest(kept: _Kept, seq: int) -> AgentEvent:
    """What of a piece is behind a number in the middle of it."""
    assert kept.ends is not None
    assert isinstance(kept.event, TextDelta | ThinkingDelta)
    return type(kept.event)(kept.event.delta[kept.ends[seq - kept.first] :])


def _size(event: Any) -> int:
    if isinstance(event, TextDelta | ThinkingDelta):
        return _OVERHEAD + len(event.delta)
    if isinstance(event, Opened):
        return _OVERHEAD + len(event.message.text)
    return _OVERHEAD + sum(_length(getattr(event, each.name)) for each in fields(event))


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return len(repr(value)) if isinstance(value, dict | list | tuple) else 8
