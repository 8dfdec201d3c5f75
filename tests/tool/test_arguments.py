"""From what was typed to a command with its values, wherever the options stand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tool.arguments import read
from tool.commands import RAW


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PSI_URL", "PSI_SESSION", "PSI_TOKEN", "PSI_DATA"):
        monkeypatch.delenv(name, raising=False)


def asked(*line: str) -> tuple[str, dict[str, Any]]:
    """The command and what was given for it."""
    found = read(line)
    assert found is not None
    command, values = found
    return command.name, {name: value for name, value in values.items() if value is not None}


@pytest.mark.parametrize(
    "line",
    [
        ["--url", "U", "--json", "scheduler", "list"],
        ["scheduler", "list", "--url", "U", "--json"],
        ["scheduler", "--url", "U", "list", "--json"],
        ["--url=U", "scheduler", "--json", "list"],
        ["--json", "scheduler", "list", "--url=U"],
    ],
)
def test_shared_options_may_stand_anywhere(line: list[str]) -> None:
    assert asked(*line) == ("scheduler list", {"url": "U", "json": True})


@pytest.mark.parametrize("line", [["cancel", "sch-1"], ["cancel", "--schedule-id", "sch-1"], ["cancel", "--", "sch-1"]])
def test_what_a_command_is_about_may_stand_alone(line: list[str]) -> None:
    assert asked("scheduler", *line) == ("scheduler cancel", {"schedule-id": "sch-1"})


def test_an_option_may_stand_before_what_stands_alone() -> None:
    assert asked("session", "show", "--json", "ses-1", "--url", "U")[1] == {
        "session-id": "ses-1",
        "json": True,
        "url": "U",
    }


def test_a_whole_schedule() -> None:
    line = "scheduler create --kind message --delay-ms 600000 --message Check --label L --at T --session-config {}"
    assert asked(*line.split()) == (
        "scheduler create",
        {"kind": "message", "delay-ms": 600000, "message": "Check", "label": "L", "at": "T", "session-config": "{}"},
    )


@pytest.mark.parametrize("text", ["{:action 1}", '{"action": 1}', "-", "[:a]", " {:a 1}", '#inst "x"', ""])
def test_what_is_no_word_is_a_request(text: str) -> None:
    found = read(["--json", text, "--session", "S"])
    assert found is not None
    command, values = found
    assert command is RAW
    assert (values["request"], values["session"], values["json"]) == (text, "S", True)


def test_a_variable_is_taken_where_the_option_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSI_URL", "http://variable")
    monkeypatch.setenv("PSI_SESSION", "ses-variable")
    monkeypatch.setenv("PSI_TOKEN", "")
    assert asked("session", "list", "--session", "ses-option")[1] == {
        "url": "http://variable",
        "session": "ses-option",
    }


def test_where_a_value_came_from_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSI_URL", "http://variable")
    monkeypatch.setenv("PSI_SESSION", "ses-variable")
    found = read(["session", "show", "--url", "http://option"])
    assert found is not None
    _, values = found
    assert (values.source("url"), values.from_variable("url")) == ("--url", "")
    assert (values.source("session"), values.from_variable("session")) == ("PSI_SESSION", "ses-variable")


@pytest.mark.parametrize("line", [["session", "list"], ["session", "create", "First"]])
def test_what_needs_no_session_takes_none_from_the_environment(
    line: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSI_SESSION", "ses-variable")
    assert "session" not in asked(*line)[1]
    assert asked(*line, "--session", "ses-option")[1]["session"] == "ses-option"


def test_all_wins_over_a_session_that_was_not_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSI_SESSION", "ses-variable")
    assert asked("watch", "--all")[1]["all"] is True


@pytest.mark.parametrize("line", [["--", "{:query [:a]}"], ["--json", "--", "{:query [:a]}"]])
def test_behind_two_dashes_a_request_is_a_request(line: list[str]) -> None:
    found = read(line)
    assert found is not None
    assert (found[0], found[1]["request"]) == (RAW, "{:query [:a]}")


@pytest.mark.parametrize("line", [["--", "session", "list"], ["session", "--", "list"], ["session", "list", "--"]])
def test_and_a_command_is_a_command(line: list[str]) -> None:
    assert asked(*line) == ("session list", {})


def test_options_are_not_guessed_from_their_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read(["scheduler", "create", "--kind", "message", "--mess", "x"])
    assert ended.value.code == 2
    assert "there is no option --mess; did you mean --message?" in capsys.readouterr().err


def test_a_text_that_begins_with_a_dash_is_given_with_an_equals_sign() -> None:
    assert asked("session", "submit", "--message=-5 degrees")[1] == {"message": "-5 degrees"}


@pytest.mark.parametrize(
    "line",
    [
        ["scheduler", "create", "--kind", "message", "--message", "-5 degrees", "--label", "-x"],
        ["session", "submit", "--message", "-hello", "--wait"],
        ["session", "create", "--config", "-", "--name", "--not an option"],
    ],
)
def test_or_behind_the_option_as_any_other_value(line: list[str]) -> None:
    values = asked(*line)[1]
    for flag, value in itertools.pairwise(line):
        if flag.startswith("--") and flag not in ("--wait", "--not an option"):
            assert values[flag[2:]] == value


def test_behind_two_dashes_a_text_may_begin_with_one() -> None:
    assert asked("session", "submit", "--wait", "--", "-hello")[1] == {"message": "-hello", "wait": True}


def test_flags_of_serve_are_the_settings() -> None:
    name, values = asked("serve", "--port", "0", "--auth", "--data", "D")
    assert name == "serve"
    assert (values["port"], values["auth"], values["data"]) == ("0", True, "D")
    assert asked("serve", "--no-auth")[1]["auth"] is False
    assert asked("serve", "--auth=off")[1]["auth"] is False
