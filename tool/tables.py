"""Envelopes as people read them in a terminal: tables, countdowns, sentences. Never used for a pipe.

Whatever a session or a schedule is called, its text is shown and never obeyed: control characters of somebody else do
not reach the terminal, and brackets are no markup.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.json import JSON
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tool.output import Writing, plain
from tool.refusals import helps, sentence

__all__ = [
    "Row",
    "Strange",
    "ages",
    "complain",
    "countdown",
    "moment",
    "one_line",
    "schedule_row",
    "schedule_rows",
    "session_row",
    "session_rows",
    "show",
    "terminal",
    "token_rows",
]

# An id is there to be copied whole. Where a table would leave less than this for the text that people wrote, everything
# else goes on lines below it.
_LEAST_TEXT: Final = 16
_ROOM_FOR_TOKENS: Final = 132

_PHASES: Final = {"idle": "green", "streaming": "yellow", "compacting": "magenta"}
_STATUSES: Final = {
    "pending": "cyan",
    "queued": "yellow",
    "delivered": "green",
    "cancelled": "bright_black",
    "failed": "red",
}
_STATES: Final = {"active": "green", "expired": "yellow", "revoked": "bright_black"}
# In a list a text has a line, and a label its share of it; a record and --json have the whole.
_LONGEST_LABEL: Final = 20

Row = tuple[Text, ...]


class Strange(Exception):
    """An answer that is not what this request is answered with."""


def terminal(*, stderr: bool = False) -> Console:
    # NO_COLOR, TERM and the width are rich's own business.
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def show(
    envelope: Mapping[str, Any],
    console: Console | None = None,
    errors: Console | None = None,
    *,
    variable: str = "",
) -> None:
    """Print an envelope; an error goes to stderr, as a sentence. ``variable``: the session that the environment gave.

    Raises Strange for what no psi service of this version answers.
    """
    if envelope["psi-tool/overall-status"] != "ok":
        error = envelope.get("psi-tool/error")
        complain(error if isinstance(error, Mapping) else {}, errors, variable=variable)
        return
    console = console or terminal()
    action = str(envelope.get("psi-tool/action"))
    content = envelope.get(f"psi-tool/{action}")
    told = _TOLD.get((action, envelope.get(f"psi-tool/{action}-op")))
    if told is not None and isinstance(content, Mapping):
        shown = told(content, console.width, datetime.now(UTC))
    else:
        shown = _data(envelope["psi-tool/result"] if "psi-tool/result" in envelope else dict(envelope))
    with Writing():
        # Nothing is cut off where the terminal ends. Tables keep to its width by themselves; what is to be copied, a
        # command or JSON, would be something else with a piece of it missing or a line break in the middle.
        console.print(Group(shown), crop=False)


def complain(error: Mapping[str, Any], errors: Console | None = None, *, variable: str = "") -> None:
    """An error as one red sentence, and below it what helps."""
    errors = errors or terminal(stderr=True)
    errors.print(Text(plain(sentence(error)), "red"))
    if hint := helps(error, variable):
        errors.print(Text(plain(hint)))


def _data(value: Any) -> RenderableType:
    return _unbroken(JSON(json.dumps(_safe(value), ensure_ascii=False), indent=2).text)


def _unbroken(text: Text) -> Text:
    """As it stands, however narrow the terminal is; within a group, since a text alone is made anew for printing."""
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _safe(value: Any) -> Any:
    match value:
        case str():
            return plain(value)
        case list():
            return [_safe(each) for each in value]
        case dict():
            return {plain(key): _safe(below) for key, below in value.items()}
    return value


# -- time


def countdown(fire_at: object, now: datetime) -> str:
    """``in 9 min 58 s``; nothing for what is no instant."""
    try:
        left = datetime.fromisoformat(str(fire_at)) - now
    except (ValueError, TypeError):
        return ""
    # Rounded up, so that what is still to come never reads as due.
    seconds = -int(-left.total_seconds() // 1)
    return f"in {_length(seconds)}" if seconds > 0 else "due"


def ages(instant: object, now: datetime) -> str:
    """``3 min ago``."""
    try:
        seconds = int((now - datetime.fromisoformat(str(instant))).total_seconds())
    except (ValueError, TypeError):
        return ""
    return f"{_length(seconds)} ago" if seconds > 0 else "now"


def moment(instant: object, form: str = "%Y-%m-%d %H:%M:%S %Z") -> str:
    """When something is, by the clock on the wall of whoever reads it; nothing for what is no instant."""
    try:
        found = datetime.fromisoformat(str(instant))
    except ValueError:
        return ""
    return f"{found.astimezone():{form}}" if found.tzinfo else ""


def _length(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    if seconds < 86_400:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60:02} min"
    return f"{seconds // 86_400} d {seconds % 86_400 // 3_600} h"


def _when(schedule: Mapping[str, Any], now: datetime) -> str:
    match schedule.get("status"):
        case "pending":
            return countdown(schedule.get("fire-at"), now)
        case "queued":
            return "when its session is idle"
    return ""


# -- schedules, sessions and tokens


def schedule_row(schedule: Mapping[str, Any], now: datetime) -> Row:
    """Its id, when, status, kind, label and message."""
    return (
        Text(plain(schedule.get("schedule-id", "")), "bold"),
        Text(_when(schedule, now)),
        _coloured(schedule.get("status"), _STATUSES),
        _text(schedule.get("kind")),
        _short(schedule.get("label"), _LONGEST_LABEL),
        Text(one_line(schedule.get("message"))),
    )


def session_row(session: Mapping[str, Any], now: datetime) -> Row:
    """Its id, phase, age and name."""
    return (
        Text(plain(session.get("session-id", "")), "bold"),
        _coloured(session.get("phase"), _PHASES),
        Text(ages(session.get("updated"), now)),
        Text(one_line(session.get("session-name"))),
    )


def schedule_rows(schedules: Sequence[Mapping[str, Any]], width: int, now: datetime) -> RenderableType:
    if not schedules:
        return Text("Nothing is scheduled.", "bright_black")
    return _listed(
        ("schedule", "when", "status", "kind", "label", "message"),
        [schedule_row(each, now) for each in schedules],
        width,
    )


def session_rows(sessions: Sequence[Mapping[str, Any]], width: int, now: datetime) -> RenderableType:
    if not sessions:
        return Text("There is no session. `psi-tool session create` makes one.", "bright_black")
    return _listed(
        ("session", "phase", "updated", "name"),
        [session_row(each, now) for each in sessions],
        width,
    )


def token_rows(tokens: Sequence[Mapping[str, Any]], width: int) -> RenderableType:
    """Tokens as their data has them, each with its ``state``."""
    is_narrow = width < _ROOM_FOR_TOKENS
    cards, rows = [], []
    for each in tokens:
        name = Text(plain(each["id"]), "bold")
        state, may = _coloured(each["state"], _STATES), Text(", ".join(each["scopes"]))
        created, expires, used = (_minute(each[key]) for key in ("created_at", "expires_at", "last_used_at"))
        user, called = _text(each["user"]), _text(each["name"])
        rows.append((name, state, may, Text(created), Text(expires), Text(used), user, called))
        # Without heads each moment has to say itself what it is.
        told = (("created", created), ("expires", expires), ("used", used))
        moments = [Text(f"{what} {moment}") for what, moment in told if moment]
        cards.append(_card(name, (state, may, Text.assemble("user ", user)), moments, (called,)))
    if is_narrow:
        return Group(*cards)
    heads = ("token", "state", "may", "created", "expires", "last used", "user", "name")
    return _table(heads, rows, width)


def _minute(instant: str | None) -> str:
    return moment(instant, "%Y-%m-%d %H:%M")


def _listed(heads: tuple[str, ...], rows: Sequence[Row], width: int) -> RenderableType:
    """A line for each; a few where a line would leave too little of the text that people wrote, which comes last."""
    longest = max(row[-1].cell_len for row in rows)
    if _room(heads, rows, width) < min(longest, _LEAST_TEXT):
        return Group(*(_card(name, facts, (_short(text.plain, 2 * (width - 4)),)) for name, *facts, text in rows))
    return _table(heads, rows, width)


def _room(heads: tuple[str, ...], rows: Sequence[Row], width: int) -> int:
    """What a table would leave for its last column."""
    others = list(zip(heads, *([cell.plain for cell in row] for row in rows), strict=True))[:-1]
    return width - sum(max(map(cell_len, column)) + 2 for column in others)


def _table(heads: tuple[str, ...], rows: Sequence[Row], width: int) -> Table:
    table = Table(box=None, header_style="bright_black", pad_edge=False)
    for head in heads:
        table.add_column(head, no_wrap=True)
    room = max(_room(heads, rows, width), _LEAST_TEXT)
    for *facts, text in rows:
        table.add_row(*facts, _short(text.plain, room))
    return table


def _card(name: Text, *lines: Iterable[Text]) -> RenderableType:
    """A row where there is no room for one: its name, and below it what is known, the text that somebody wrote last."""
    joined = (Text("  ", overflow="fold").join(each for each in line if each.plain) for line in lines)
    return Group(name, *(Padding(line, (0, 0, 0, 2)) for line in joined if line.plain))


def _record(pairs: Iterable[tuple[str, RenderableType]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if not (isinstance(value, Text) and not value.plain):
            grid.add_row(name, value)
    return grid


def one_line(value: object) -> str:
    """A text that somebody wrote, where there is one line for it."""
    return "" if value is None else plain(value).replace("\n", " ↵ ").replace("\t", " ")


def _short(value: object, cells: int) -> Text:
    text = Text(one_line(value), overflow="fold")
    text.truncate(cells, overflow="ellipsis")
    return text


def _text(value: object) -> Text:
    return Text("" if value is None else plain(value), overflow="fold")


def _coloured(word: object, colours: Mapping[str, str]) -> Text:
    return Text(plain(word or ""), colours.get(str(word), ""))


def _schedule(schedule: Mapping[str, Any], now: datetime) -> Table:
    error = schedule.get("error-summary")
    return _record(
        (
            ("schedule", Text(plain(schedule.get("schedule-id", "")), "bold")),
            ("status", _coloured(schedule.get("status"), _STATUSES)),
            ("when", Text(_when(schedule, now))),
            ("fires at", Text(moment(schedule.get("fire-at")))),
            ("kind", _text(schedule.get("kind"))),
            ("label", _text(schedule.get("label"))),
            ("message", _text(schedule.get("message"))),
            ("config", Text(_config(schedule.get("session-config-summary")), overflow="fold")),
            ("session", _text(schedule.get("origin-session-id"))),
            ("created session", _text(schedule.get("created-session-id"))),
            ("failed with", _text(error.get("message") if isinstance(error, Mapping) else None)),
        )
    )


def _config(summary: object) -> str:
    """What a fresh session is to be: what was said about it, and nothing of what was not."""
    if not isinstance(summary, Mapping):
        return ""
    model = summary.get("model")
    counted = (("skill-count", "skill"), ("tool-count", "tool"), ("preloaded-message-count", "message"))
    given = (
        ("has-system-prompt?", "a system prompt"),
        ("has-developer-prompt?", "a developer prompt"),
        ("has-prompt-component-selection?", "a selection of prompt components"),
    )
    said = (
        ("name", summary.get("session-name")),
        ("model", f"{model.get('provider')}:{model.get('id')}" if isinstance(model, Mapping) else None),
        ("thinking", summary.get("thinking-level")),
    )
    parts = [f"{name} {plain(value)}" for name, value in said if value]
    parts += [f"{many} {what}{'' if many == 1 else 's'}" for key, what in counted if (many := summary.get(key))]
    parts += [what for key, what in given if summary.get(key)]
    return ", ".join(parts) or "nothing said"


def _session(session: Mapping[str, Any], now: datetime) -> Table:
    return _record(
        (
            ("session", Text(plain(session.get("session-id", "")), "bold")),
            ("name", _text(session.get("session-name"))),
            ("phase", _coloured(session.get("phase"), _PHASES)),
            ("created", Text(moment(session.get("created")))),
            ("updated", Text(ages(session.get("updated"), now))),
        )
    )


# -- what each request is answered with

Content = Mapping[str, Any]


def _created_schedule(content: Content, width: int, now: datetime) -> RenderableType:
    return _schedule(_one(content, "schedule"), now)


def _listed_schedules(content: Content, width: int, now: datetime) -> RenderableType:
    return schedule_rows(_several(content, "schedules"), width, now)


def _cancelled(content: Content, width: int, now: datetime) -> RenderableType:
    return Group(Text("Cancelled.", "green"), _schedule(_one(content, "schedule"), now))


def _one_session(content: Content, width: int, now: datetime) -> RenderableType:
    return _session(_one(content, "session"), now)


def _listed_sessions(content: Content, width: int, now: datetime) -> RenderableType:
    return session_rows(_several(content, "sessions"), width, now)


def _submitted(content: Content, width: int, now: datetime) -> RenderableType:
    run = content.get("run")
    if not isinstance(run, Mapping):
        return _record((("run", Text(plain(content.get("run-id")), "bold")), ("session", _text(_id(content)))))
    colour = "" if run.get("state") == "ok" else "yellow"
    answer = Text(plain(run.get("answer") or f"(the run ended: {run.get('state')})"), colour)
    if run.get("state") != "error":
        return answer
    # The answer names a record, and this is where it stands.
    query = f"psi-tool query '[:psi.run/error]' --entity '{{:psi.run/id \"{plain(run.get('run-id'))}\"}}'"
    return Group(answer, Text("Why:"), _unbroken(Text(f"  {query}")))


def _stopped(content: Content, width: int, now: datetime) -> RenderableType:
    if content.get("stopped?"):
        return Text("The run was asked to stop.", "green")
    return Text(f"Nothing to stop: {plain(content.get('reason') or 'no active run')}.")


def _closed(content: Content, width: int, now: datetime) -> RenderableType:
    return Text(f"Closed {plain(_id(content))}.", "green")


def _id(content: Content) -> str:
    session = content.get("session")  # None where it was closed meanwhile
    return str(session.get("session-id", "")) if isinstance(session, Mapping) else ""


def _one(content: Content, key: str) -> Mapping[str, Any]:
    found = content.get(key)
    if not isinstance(found, Mapping):
        raise Strange(f"its answer has no {key}")
    return found


def _several(content: Content, key: str) -> list[Mapping[str, Any]]:
    found = content.get(key)
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise Strange(f"its answer has no list of {key}")
    return found


_TOLD: Final[dict[tuple[str, Any], Callable[[Content, int, datetime], RenderableType]]] = {
    ("scheduler", "create"): _created_schedule,
    ("scheduler", "list"): _listed_schedules,
    ("scheduler", "cancel"): _cancelled,
    ("session", "create"): _one_session,
    ("session", "list"): _listed_sessions,
    ("session", "show"): _one_session,
    ("session", "submit"): _submitted,
    ("session", "stop"): _stopped,
    ("session", "close"): _closed,
}
