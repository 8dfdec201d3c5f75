"""What ``psi-tool watch`` shows in a terminal: sessions, countdowns that tick, the latest events. Fetches nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import monotonic
from types import TracebackType
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from tool.client import Address
from tool.output import Writing, plain
from tool.tables import Row, schedule_row, session_row, terminal

__all__ = ["Board", "sentence"]

_KEPT: Final = 200
_FEWEST: Final = 3  # events that are shown, however small the terminal is
_PAUSE: Final = 0.1  # seconds between two pictures, however much happens
_LONGEST_LABEL: Final = 20
# How wide a terminal is that has room for everything, and for an id beside what is said.
_ROOM_FOR_ALL: Final = 110
_ROOM_FOR_IDS: Final = 76


def _now() -> datetime:
    return datetime.now(UTC)


class Board:
    tick = 0.5

    def __init__(
        self,
        at: Address,
        session: str | None,
        *,
        console: Console | None = None,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._at = at
        self._session = session
        self._now = now
        self._console = console or terminal()
        self._events: deque[Text] = deque(maxlen=_KEPT)
        self._schedules: list[dict[str, Any]] = []
        self._sessions: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}
        self._state = "connecting"
        self._drawn = 0.0
        self._flowing: tuple[Any, Any] | None = None  # the run and the kind of text that the last line goes on with
        self._live = Live(console=self._console, auto_refresh=False, get_renderable=self.picture)

    def __enter__(self) -> Board:
        with Writing():
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with Writing():
            self._live.stop()

    # -- what is told

    def event(self, event: Mapping[str, Any]) -> None:
        data = event.get("data") if isinstance(event.get("data"), Mapping) else {}
        assert data is not None
        flows = (data.get("run_id"), data.get("type")) if "delta" in data else None
        if flows is not None and flows == self._flowing and self._events:
            self._events[-1].append(_one_line(data["delta"]))
        else:
            self._events.append(self._line(event))
        self._flowing = flows
        self._show_soon()

    def gap(self, reason: str, missed: int | None) -> None:
        how_many = f"{missed} events are missing: " if missed else ""
        self._events.append(Text(f"… {how_many}{reason} …", "yellow"))
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
        if self._state:
            head.append(f"  {plain(self._state)}", "yellow")
        return head

    def _latest(self, room: int, width: int) -> list[Text]:
        """The newest lines, one row each; of a text that is longer the end counts."""
        latest = []
        for line in list(self._events)[-room:]:
            short = line.copy()
            if len(short) > width:
                short = Text.assemble(short[: width // 3], "…", short[-(width - width // 3 - 1) :])
            short.no_wrap = True
            latest.append(short)
        return latest or [Text("Nothing has happened yet.", "bright_black")]

    def _line(self, event: Mapping[str, Any]) -> Text:
        clock = _one_line(event.get("at", ""))[11:19]
        session = str(event.get("sessionId") or "")
        who = _one_line(self._names.get(session) or session[:12])
        line = Text.assemble((clock, "bright_black"), " ", (who, "cyan") if who else "", " " if who else "")
        return line.append(_one_line(sentence(event)))


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
    label.truncate(_LONGEST_LABEL, overflow="ellipsis")
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
        "schedule-id": _one_line(given.get("scheduleId")),
        "status": str(given.get("status", "")).lower(),
        "kind": str(given.get("kind", "")).lower(),
        "label": _one_line(given.get("label") or ""),
        "message": _one_line(given.get("message") or "")[:200],
        "fire-at": given.get("fireAt"),
    }


def _session(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session-id": _one_line(given.get("sessionId")),
        "session-name": _one_line(given.get("sessionDisplayName") or ""),
        "phase": str(given.get("phase", "")).lower(),
        "updated": given.get("updated"),
    }


def _one_line(text: object) -> str:
    return plain(text).replace("\n", " ↵ ").replace("\t", " ")


def sentence(event: Mapping[str, Any]) -> str:
    """What happened, in a few words."""
    kind = str(event.get("type", ""))
    data = event.get("data")
    if not isinstance(data, Mapping):
        return kind.replace("-", " ")
    match kind:
        case "schedule-changed":
            what = data.get("label") or data.get("message") or data.get("schedule-id")
            return f"schedule {data.get('status')}: {what}"
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
