"""What ``psi-tool watch`` shows in a terminal: sessions, countdowns that tick, the latest events; and where a terminal
has no places to put them, the events alone, one line each. Fetches nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from tool.client import Address
from tool.output import Writing, flush, plain, text
from tool.tables import Row, moment, one_line, schedule_row, session_row, terminal

__all__ = ["Board", "Plain", "sentence"]

_KEPT: Final = 200
_FEWEST: Final = 3  # events that are shown, however small the terminal is
_PAUSE: Final = 0.1  # seconds between two pictures, however much happens
_LONGEST_NAME: Final = 16  # columns of an event's line that its session gets, and where there are few
_SHORTEST_NAME: Final = 8
# How wide a terminal is that has room for everything, and for an id beside what is said.
_ROOM_FOR_ALL: Final = 110
_ROOM_FOR_IDS: Final = 76


def _now() -> datetime:
    return datetime.now(UTC)


class Board:
    """``note``: what is to be known about the session that is watched."""

    tick = 0.5

    def __init__(
        self,
        at: Address,
        session: str | None,
        *,
        note: str = "",
        console: Console | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._at = at
        self._session = session
        self._note = note
        self._now = now
        self._console = console or terminal()
        self._events: deque[_Line] = deque(maxlen=_KEPT)
        self._schedules: list[dict[str, Any]] = []
        self._sessions: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}
        self._state = "connecting"
        self._drawn = 0.0
        self._flowing: tuple[Any, Any] | None = None  # the run and the kind of text that the last line goes on with
        # On the other screen: a terminal that is made narrower would break the lines of the last picture, which would
        # then stay above the next one.
        self._live = Live(console=self._console, screen=True, auto_refresh=False, get_renderable=self.picture)

    def open(self) -> None:
        """Take the terminal. Apart from making a board, so that whoever has one can promise beforehand to close it."""
        with Writing():
            self._live.start(refresh=True)

    def close(self) -> None:
        with Writing():
            self._live.stop()

    # -- what is told

    def event(self, event: Mapping[str, Any]) -> None:
        data = event.get("data") if isinstance(event.get("data"), Mapping) else {}
        assert data is not None
        flows = (data.get("run_id"), data.get("type")) if "delta" in data else None
        if flows is not None and flows == self._flowing and self._events:
            self._events[-1].text.append(one_line(data["delta"]))
        else:
            self._events.append(self._line(event))
        self._flowing = flows
        self._show_soon()

    def gap(self, reason: str, missed: int | None) -> None:
        self._events.append(_Line("", "", _gap(reason, missed), Text(), "yellow"))
        self._flowing = None
        self._show_soon()

    def answer(self, name: str, value: Any) -> None:
        if name == "schedules":
            self._schedules = sorted(map(_schedule, _listed(value)), key=lambda each: str(each["fire-at"]))
        elif name == "sessions":
            self._sessions = [_session(each) for each in _listed(value)]
            self._names |= {each["session-id"]: each["session-name"] for each in self._sessions}
        self._show_soon()

    def state(self, words: str) -> None:
        self._state = words

    def refresh(self) -> None:
        self._drawn = monotonic()
        with Writing():
            self._live.refresh()

    def _show_soon(self) -> None:
        """Now, or with the next tick: ten thousand events a second are no ten thousand pictures."""
        if monotonic() - self._drawn >= _PAUSE:
            self.refresh()

    # -- how it looks

    def picture(self) -> RenderableType:
        """Everything, as large as the terminal is."""
        width, height = self._console.size
        now = self._now()
        head = self._head()
        taken = len(head.wrap(self._console, width)) + 3  # with the rules
        room = height - 1 - taken - max(_FEWEST, height // 4)
        sessions, schedules = _shares(room, len(self._sessions), len(self._schedules))
        busy_first = sorted(self._sessions, key=lambda each: str(each["updated"]), reverse=True)
        busy_first.sort(key=lambda each: each["phase"] == "idle")
        above: list[RenderableType] = [
            head,
            _rule("sessions", len(self._sessions), sessions),
            *_lines(
                [_session_cells(each, width, now) for each in busy_first[:sessions]], width, "There is no session."
            ),
            _rule("scheduled", len(self._schedules), schedules),
            *_lines(
                [_schedule_cells(each, width, now) for each in self._schedules[:schedules]],
                width,
                "Nothing is scheduled.",
            ),
            _rule("events"),
        ]
        return Group(*above, *self._latest(max(_FEWEST, height - 1 - taken - sessions - schedules), width))

    def _head(self) -> Text:
        head = Text(f"psi at {self._at}", "bold")
        if self._session:
            head.append(f", session {plain(self._session)}")
            head.append(f" ({self._note})" if self._note else "", "not bold")
        if self._state:
            head.append(f"  {plain(self._state)}", "yellow")
        return head

    def _latest(self, room: int, width: int) -> list[Text]:
        """The newest lines, one row each."""
        latest = [line.cut(width) for line in list(self._events)[-room:]]
        return latest or [Text("Nothing has happened yet.", "bright_black")]

    def _line(self, event: Mapping[str, Any]) -> _Line:
        session = str(event.get("sessionId") or "")
        # Where there is one session only, everything is about that one.
        who = "" if self._session else one_line(self._names.get(session) or session[:12])
        what, colon, text = one_line(sentence(event)).partition(": ")
        return _Line(moment(event.get("at"), "%H:%M:%S"), who, f"{what}{colon}", Text(text))


class Plain:
    """For a terminal that knows lines and nothing else."""

    tick = None

    def __init__(self, at: Address) -> None:
        self._at = at

    def event(self, event: Mapping[str, Any]) -> None:
        session = one_line(event.get("sessionId") or "")
        parts = (moment(event.get("at"), "%H:%M:%S"), session, one_line(sentence(event)))
        self._line(" ".join(filter(None, parts)))

    def gap(self, reason: str, missed: int | None) -> None:
        self._line(_gap(reason, missed))

    def answer(self, name: str, value: Any) -> None:
        pass

    def state(self, words: str) -> None:
        self._line(plain(words) or f"psi at {self._at}: events as they happen; Ctrl-C ends it")

    def refresh(self) -> None:
        pass

    def _line(self, words: str) -> None:
        text(words)
        flush()


def _gap(reason: str, missed: int | None) -> str:
    how_many = f"{missed} events are missing: " if missed else ""
    return f"… {'1 event is missing: ' if missed == 1 else how_many}{reason} …"


@dataclass(frozen=True, slots=True)
class _Line:
    """An event: when, who and what, and the text behind it, which may grow."""

    clock: str
    who: str
    what: str
    text: Text
    style: str = ""

    def cut(self, width: int) -> Text:
        """As much as fits in one row. What happened counts more than to whom, and of the text the end counts."""
        name = Text(self.who, "cyan")
        name.truncate(max(_SHORTEST_NAME, min(_LONGEST_NAME, width // 5)), overflow="ellipsis")
        parts = (Text(self.clock, "bright_black"), name, Text(self.what, self.style))
        head = Text(" ").join(part for part in parts if part.plain)
        whole = Text.assemble(head, self.text, no_wrap=True)
        if whole.cell_len <= width:
            return whole
        if head.cell_len >= width:
            head.truncate(width, overflow="ellipsis")
            return head
        return Text.assemble(head, "…", _end(self.text, width - head.cell_len - 1), no_wrap=True)


def _end(text: Text, cells: int) -> Text:
    """The end of a text, as long as there is room for it."""
    start = len(text)
    room = cells
    for place in range(len(text) - 1, -1, -1):
        room -= cell_len(text.plain[place])
        if room < 0:
            break
        start = place
    return text[start:] if start < len(text) else Text()


def _rule(title: str, there_are: int = 0, shown: int = 0) -> Rule:
    more = f": {shown} of {there_are}, {there_are - shown} more" if there_are > shown else ""
    return Rule(f"{title}{more}", align="left", style="bright_black")


def _shares(room: int, sessions: int, schedules: int) -> tuple[int, int]:
    """How many lines each gets. Sessions leave two thirds where there is much of both; what is empty says so in one."""
    sessions, schedules = max(1, sessions), max(1, schedules)
    of_sessions = min(sessions, max(1, room // 3, room - schedules))
    return of_sessions, min(schedules, max(1, room - of_sessions))


def _session_cells(session: Mapping[str, Any], width: int, now: datetime) -> Row:
    row = session_row(session, now)
    return row if width >= _ROOM_FOR_IDS else row[1:]


def _schedule_cells(schedule: Mapping[str, Any], width: int, now: datetime) -> Row:
    name, when, status, kind, label, message = schedule_row(schedule, now)
    if width >= _ROOM_FOR_ALL:
        return name, when, status, kind, label, message
    when = status if schedule["status"] == "queued" else when  # the shorter way to say so
    return (name, when, label, message) if width >= _ROOM_FOR_IDS else (when, label, message)


def _lines(rows: list[Row], width: int, nothing: str) -> list[Text]:
    """One line each, in columns, cut where the terminal ends: a table would rather give one of them many lines."""
    if not rows:
        return [Text(nothing, "bright_black", no_wrap=True, overflow="ellipsis")]
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = Text(no_wrap=True, overflow="ellipsis")
        for cell, wide in zip(row, widths, strict=True):
            if wide:  # a column that nobody has takes no room
                line.append_text(cell).append(" " * (wide - cell.cell_len + 2))
        line.rstrip()
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines


def _listed(value: Any) -> list[Mapping[str, Any]]:
    found = value if isinstance(value, list) else [value]
    return [each for each in found if isinstance(each, Mapping)]


def _schedule(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "schedule-id": one_line(given.get("scheduleId")),
        "status": str(given.get("status", "")).lower(),
        "kind": str(given.get("kind", "")).lower(),
        "label": one_line(given.get("label") or ""),
        "message": one_line(given.get("message") or "")[:200],
        "fire-at": given.get("fireAt"),
    }


def _session(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session-id": one_line(given.get("sessionId")),
        "session-name": one_line(given.get("sessionDisplayName") or ""),
        "phase": str(given.get("phase", "")).lower(),
        "updated": given.get("updated"),
    }


def sentence(event: Mapping[str, Any]) -> str:
    """What happened, in a few words."""
    kind = str(event.get("type", ""))
    data = event.get("data")
    if not isinstance(data, Mapping):
        return kind.replace("-", " ")
    match kind:
        case "schedule-changed":
            what = data.get("label") or data.get("message") or data.get("schedule-id")
            # While it is delivered it stays what it was, which would read as if it had just been made.
            is_under_way = data.get("delivery-phase") and data.get("status") in ("pending", "queued")
            return f"schedule {'being delivered' if is_under_way else data.get('status')}: {what}"
        case "session-created" | "session-closed":
            return kind.replace("-", " ")
        case "session-changed":
            return f"session is {data.get('phase')}"
        case "run-started":
            return f"run started ({data.get('source')})"
        case "run-finished":
            return f"run ended, {data.get('state')}: {data.get('answer') or ''}"
        case "run-event":
            return _told(data)
    return kind.replace("-", " ")


def _told(frame: Mapping[str, Any]) -> str:
    """What a run tells."""
    kind = str(frame.get("type", "")).replace("_", " ")
    match frame.get("type"):
        case "stream_delta":
            return f"says: {frame.get('delta')}"
        case "thinking_delta":
            return f"thinks: {frame.get('delta')}"
        case "tool_started":
            return f"calls {frame.get('tool')}"
        case "tool_call":
            return f"{frame.get('tool')} {'answered' if frame.get('success') else 'failed'}: {frame.get('result')}"
        case "stream_end":
            return "has ended"
        case "error":
            return f"failed: {frame.get('message')}"
    more = frame.get("label") or frame.get("summary") or ""
    return f"{kind}: {more}" if more else kind
