"""What a terminal is shown, line by line, without one."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from tests.tool.cli import time_zone
from tool.output import Unwritten
from tool.tables import Strange, ages, complain, countdown, moment, schedule_rows, session_rows, show, token_rows

NOW = datetime(2026, 4, 22, 12, 50, tzinfo=UTC)
SESSION = {
    "session-id": "ses-7d44e4a1-0f0c-4c5e-9d51-3f5b8c1f2a60",
    "session-name": "Builds",
    "phase": "idle",
    "created": "2026-04-22T12:00:00Z",
    "updated": "2026-04-22T12:00:00Z",
}


@pytest.fixture(autouse=True)
def _in_utc() -> Iterator[None]:
    with time_zone("UTC"):
        yield


def console(width: int = 120) -> Console:
    return Console(file=io.StringIO(), width=width, markup=False, highlight=False, emoji=False, color_system=None)


def lines(shown: Console) -> list[str]:
    assert isinstance(shown.file, io.StringIO)
    return [line.rstrip() for line in shown.file.getvalue().splitlines()]


def envelope(action: str, op: str | None, content: Any, key: str | None = None) -> dict[str, Any]:
    return {
        "psi-tool/action": action,
        **({f"psi-tool/{action}-op": op} if op else {}),
        "psi-tool/overall-status": "ok",
        "psi-tool/duration-ms": 0,
        f"psi-tool/{key or action}": content,
    }


LENGTHS = {
    0: "due",
    -5: "due",
    0.2: "in 1 s",
    42: "in 42 s",
    60: "in 1 min 00 s",
    598: "in 9 min 58 s",
    3_599: "in 59 min 59 s",
    7_500: "in 2 h 05 min",
    86_400: "in 1 d 0 h",
}


@pytest.mark.parametrize(("seconds", "words"), LENGTHS.items())
def test_a_countdown_reads_as_people_say_it(seconds: float, words: str) -> None:
    assert countdown((NOW + timedelta(seconds=seconds)).isoformat(), NOW) == words


@pytest.mark.parametrize("instant", [None, "", "soon", "2026-04-22T13:00:00", 5])
def test_what_is_no_instant_has_no_countdown(instant: object) -> None:
    assert countdown(instant, NOW) == ""
    assert ages(instant, NOW) == ""


def test_an_age_is_told() -> None:
    assert ages("2026-04-22T12:47:00Z", NOW) == "3 min 00 s ago"
    assert ages("2026-04-22T12:50:00Z", NOW) == "now"


def test_a_moment_is_told_by_the_clock_of_whoever_reads_it() -> None:
    with time_zone("CET-1"):
        assert moment("2026-04-22T13:00:00.786685Z") == "2026-04-22 14:00:00 CET"
    assert moment("2026-04-22T13:00:00Z") == "2026-04-22 13:00:00 UTC"


@pytest.mark.parametrize("instant", [None, "soon", "2026-04-22T13:00:00", 5])
def test_what_is_no_instant_is_no_moment(instant: object) -> None:
    assert moment(instant) == ""


LONG = {
    "schedule-id": "sch-" + "0" * 36,
    "kind": "message",
    "label": "a label that is " + "long " * 20,
    "message": "Check it.\n" * 40,
    "status": "queued",
}


@pytest.mark.parametrize(("width", "height"), [(70, 4), (100, 4), (140, 2), (200, 2)])
def test_a_schedule_with_much_text_has_a_line_or_a_few(width: int, height: int) -> None:
    shown = console(width)
    shown.print(schedule_rows([LONG], width, NOW))
    told = lines(shown)
    assert len(told) == height
    assert LONG["schedule-id"] in "\n".join(told)
    assert "a label that is lon…" in "\n".join(told)
    assert "Check it." in told[-1]
    assert told[-1].endswith("…")
    assert max(map(len, told)) <= width


def test_short_texts_stay_in_a_table_where_long_ones_would_not() -> None:
    for name, height in (("Builds", 2), ("A long name " * 9, 4)):
        shown = console(78)
        shown.print(session_rows([{**SESSION, "session-name": name}], 78, NOW))
        assert len(lines(shown)) == height


def test_schedules_are_a_table_where_there_is_room() -> None:
    shown = console()
    row = {"schedule-id": "sch-1", "kind": "message", "label": "build", "message": "Check [it].", "status": "pending"}
    fire = {"fire-at": "2026-04-22T12:59:58Z"}
    shown.print(schedule_rows([{**row, **fire}, {**row, "status": "queued", "label": None}], 120, NOW))
    assert lines(shown) == [
        "schedule  when                      status   kind     label  message",
        "sch-1     in 9 min 58 s             pending  message  build  Check [it].",
        "sch-1     when its session is idle  queued   message         Check [it].",
    ]


def test_and_lines_below_each_other_where_there_is_none() -> None:
    shown = console(50)
    row = {"schedule-id": "sch-1", "kind": "message", "label": "b", "message": "Check it.", "status": "pending"}
    shown.print(schedule_rows([{**row, "fire-at": "2026-04-22T12:50:09Z"}], 50, NOW))
    assert lines(shown) == ["sch-1", "  in 9 s  pending  message  b", "  Check it."]


ANSWERS = {
    "no schedules": (envelope("scheduler", "list", {"schedules": []}), ["Nothing is scheduled."]),
    "no sessions": (
        envelope("session", "list", {"sessions": []}),
        ["There is no session. `psi-tool session create` makes one."],
    ),
    "a run that was waited for": (
        envelope("session", "submit", {"session": SESSION, "run-id": "run-1", "run": {"state": "ok", "answer": "Hi."}}),
        ["Hi."],
    ),
    "a run that said nothing": (
        envelope("session", "submit", {"session": SESSION, "run-id": "r", "run": {"state": "empty", "answer": None}}),
        ["(the run ended: empty)"],
    ),
    "a run that goes on": (
        envelope("session", "submit", {"session": SESSION, "run-id": "run-1"}),
        ["run      run-1", f"session  {SESSION['session-id']}"],
    ),
    "a stop": (envelope("session", "stop", {"session": SESSION, "stopped?": True}), ["The run was asked to stop."]),
    "nothing to stop": (
        envelope("session", "stop", {"session": SESSION, "stopped?": False, "reason": "no active run"}),
        ["Nothing to stop: no active run."],
    ),
    "a close": (
        envelope("session", "close", {"session": SESSION, "closed?": True}),
        [f"Closed {SESSION['session-id']}."],
    ),
    "a result": (envelope("query", None, {"a/b": ["x", None]}, "result"), None),
    "an op of the future": (envelope("cron", "add", {"job": 1}), None),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS.keys())
def test_each_answer_is_told_in_its_own_words(answer: dict[str, Any], expected: list[str] | None) -> None:
    shown = console()
    show(answer, shown)
    if expected is not None:
        assert lines(shown) == expected
    else:
        assert lines(shown)[0] == "{"


@pytest.mark.parametrize("width", [20, 80, 200])
def test_what_is_to_be_copied_stands_there_as_it_is(width: int) -> None:
    run = {"state": "error", "answer": "It failed.", "run-id": "run-f81d4fae-7dec-41d0-a765-00a0c91e6bf6"}
    shown = console(width)
    show(envelope("session", "submit", {"session": SESSION, "run-id": run["run-id"], "run": run}), shown)
    query = f"psi-tool query '[:psi.run/error]' --entity '{{:psi.run/id \"{run['run-id']}\"}}'"
    assert lines(shown)[-1] == f"  {query}"
    result = {"a/b": "a long text " * 30, "c": [1, None]}
    shown = console(width)
    show(envelope("query", None, result, "result"), shown)
    assert json.loads("\n".join(lines(shown)), strict=True) == result


def test_a_failed_schedule_says_why() -> None:
    shown = console()
    error = {"message": "the agent was gone"}
    show(
        envelope(
            "scheduler", "create", {"schedule": {"schedule-id": "sch-1", "status": "failed", "error-summary": error}}
        ),
        shown,
    )
    assert "failed with  the agent was gone" in lines(shown)


SUMMARY: dict[str, Any] = {
    "session-name": None,
    "model": None,
    "thinking-level": None,
    "skill-count": 0,
    "tool-count": 0,
    "has-system-prompt?": False,
    "has-developer-prompt?": False,
    "preloaded-message-count": 0,
    "has-prompt-component-selection?": False,
}
CONFIGS = {
    "nothing said": SUMMARY,
    "name Sum, thinking low": {**SUMMARY, "session-name": "Sum", "thinking-level": "low"},
    "model a:b, 1 skill, 2 tools, 3 messages": {
        **SUMMARY,
        "model": {"provider": "a", "id": "b"},
        "skill-count": 1,
        "tool-count": 2,
        "preloaded-message-count": 3,
    },
    "a system prompt, a developer prompt": {**SUMMARY, "has-system-prompt?": True, "has-developer-prompt?": True},
}


@pytest.mark.parametrize(("words", "summary"), CONFIGS.items(), ids=CONFIGS.keys())
def test_a_schedule_tells_what_its_session_is_to_be(words: str, summary: dict[str, Any]) -> None:
    shown = console()
    schedule = {"schedule-id": "sch-1", "kind": "session", "session-config-summary": summary}
    show(envelope("scheduler", "create", {"schedule": schedule}), shown)
    assert f"config    {words}" in lines(shown)


def test_an_answer_of_something_else_is_strange() -> None:
    with pytest.raises(Strange, match="no list of sessions"):
        show(envelope("session", "list", {}), console())


def test_an_error_that_is_none_is_told_all_the_same() -> None:
    shown = console()
    show({"psi-tool/overall-status": "error", "psi-tool/error": "no"}, errors=shown)
    assert lines(shown) == ["the service said error and no more"]


HINTS = {
    "a known code": ({"message": "session not found", "code": "session/not-found"}, "psi-tool session list"),
    "the id": (
        {"message": "session not found", "code": "session/not-found", "data": {"session-id": "ses-1"}},
        "session not found: ses-1",
    ),
    "a minimum": (
        {"message": "too short", "data": {"delay-ms": 5, "minimum": 1000}},
        "Accepted: at least 1000 ms (1 s) from now.",
    ),
    "a maximum": (
        {"message": "too long", "data": {"delay-ms": 1, "maximum": 86_400_000}},
        "Accepted: at most 86400000 ms (24 h) from now.",
    ),
    "a cap": ({"message": "cap exceeded", "data": {"cap": 50}}, "Accepted: at most 50."),
    "an example": (
        {"message": "must be an instant", "data": {"at": "x", "accepted": "2026-04-22T13:00:00Z"}},
        "Accepted: such as 2026-04-22T13:00:00Z.",
    ),
    "a list": ({"message": "Unknown", "data": {"nearest": None, "accepted": ["a/b", "c/d"]}}, "Accepted: a/b, c/d."),
    "the nearest": (
        {"message": "Unknown", "code": "x", "data": {"nearest": "psi.scheduler/create"}},
        "Did you mean psi.",
    ),
    "each problem": (
        {
            "message": "unsupported keys",
            "data": {"unsupported-keys": ["a"], "problems": [{"path": "a", "message": "a: is not supported"}]},
        },
        "unsupported keys\na: is not supported",
    ),
    "nothing at all": ({}, "the service said error and no more"),
}


@pytest.mark.parametrize(("error", "said"), HINTS.values(), ids=HINTS.keys())
def test_an_error_comes_with_what_helps(error: dict[str, Any], said: str) -> None:
    shown = console()
    complain(error, shown)
    assert said in "\n".join(lines(shown))


SAID = {
    "with all of them": {"message": "unknown action; accepted: `a`, `b`", "data": {"accepted": ["a", "b"]}},
    "with the nearest": {"message": "unknown key `ac`; did you mean `act`?", "data": {"accepted": ["act", "op"]}},
    "facts that are none": {"message": "no", "data": ["accepted"]},
}


@pytest.mark.parametrize("error", SAID.values(), ids=SAID.keys())
def test_what_the_message_says_is_not_said_again(error: dict[str, Any]) -> None:
    shown = console()
    complain(error, shown)
    assert lines(shown) == [error["message"]]


TOKEN = {
    "id": "tok-0123456789abcdef",
    "user": "ada",
    "name": "laptop",
    "scopes": ["read", "write", "admin"],
    "state": "active",
    "created_at": "2026-04-22T12:50:00Z",
    "expires_at": "2026-05-22T12:50:00Z",
    "last_used_at": None,
}


def test_tokens_are_a_table_where_there_is_room() -> None:
    shown = console(132)
    shown.print(token_rows([TOKEN], 132))
    assert [line.split()[0] for line in lines(shown)] == ["token", "tok-0123456789abcdef"]
    assert lines(shown)[1].endswith("2026-05-22 12:50             ada   laptop")


def test_and_a_few_lines_each_where_a_table_would_break_words() -> None:
    shown = console(80)
    shown.print(token_rows([{**TOKEN, "last_used_at": "2026-04-23T00:00:00Z"}], 80))
    assert lines(shown) == [
        "tok-0123456789abcdef",
        "  active  read, write, admin  user ada",
        "  created 2026-04-22 12:50  expires 2026-05-22 12:50  used 2026-04-23 00:00",
        "  laptop",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_what_a_token_is_called_is_shown_and_not_obeyed(width: int) -> None:
    shown = console(width)
    shown.print(token_rows([{**TOKEN, "name": "a\u202eb\x1bc", "user": "[red]\u2066"}], width))
    said = "\n".join(lines(shown))
    assert "a\ufffdb\ufffdc" in said
    assert "[red]\ufffd" in said


class Full(io.StringIO):
    """A file on a disk that is full."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_table_that_cannot_be_written_is_an_error_of_its_own() -> None:
    with pytest.raises(Unwritten, match="the output could not be written: No space left on device"):
        show(ANSWERS["a close"][0], Console(file=Full()))
