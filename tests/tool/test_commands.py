"""The table of commands agrees with what psi-tool declares, and with itself."""

from __future__ import annotations

import re
import shlex

import pytest

from psi.core.identity import SCOPES as DECLARED_SCOPES
from tool import commands
from tool.arguments import read
from tool.commands import COMMANDS, GROUPS, LATER, RAW, SHARED, Command, find
from tool.declarations import ACTIONS, Action, Key, Op

PLACES = [(action, op) for action in ACTIONS for op in (action.ops or (None,))]
# What a command has beyond the keys of its request.
BEYOND: dict[tuple[str, ...], set[str]] = {("query",): {"explain"}}
KINDS = {"integer": commands.INTEGER, "boolean": commands.FLAG, "object": commands.MAP}


def kind_of(key: Key) -> str:
    return KINDS.get(key.schema["type"], commands.TEXT)


@pytest.mark.parametrize(("action", "op"), PLACES, ids=lambda each: each.name if each else "-")
def test_each_declared_action_and_op_is_a_command_with_the_same_keys(action: Action, op: Op | None) -> None:
    words: tuple[str, ...] = (action.name, op.name) if op else (action.name,)
    command = find(words)
    assert command is not None
    declared = {key.name: key for key in (op or action).keys}
    typed = {option.name: option for option in command.options if option.name not in BEYOND.get(words, set())}
    assert set(typed) == set(declared)
    for name, key in declared.items():
        assert typed[name].required == key.required, name
        assert typed[name].kind == kind_of(key), name
        assert typed[name].choices == tuple(key.schema.get("enum", ())), name


def test_no_command_sends_a_request_that_is_not_declared() -> None:
    declared = {(action.name, *([op.name] if op else [])) for action, op in PLACES}
    sending = {command.words for command in COMMANDS if command.does in ("request", "query")}
    assert sending == declared


def test_the_bounds_that_help_names_are_those_of_the_declaration() -> None:
    (delay,) = (key for action, op in PLACES if op for key in op.keys if key.name == "delay-ms")
    command = find(("scheduler", "create"))
    assert command is not None
    (option,) = (each for each in command.options if each.name == "delay-ms")
    assert str(delay.schema["minimum"]) in option.doc
    assert str(delay.schema["maximum"]) in option.doc


def test_the_scopes_are_those_that_tokens_have() -> None:
    assert set(commands.SCOPES) == set(DECLARED_SCOPES)


EXAMPLES = [(command, example) for command in (RAW, *COMMANDS) for example in command.examples]


@pytest.mark.parametrize(("command", "example"), EXAMPLES, ids=[example[:50] for _, example in EXAMPLES])
def test_an_example_is_the_command_it_stands_beside(command: Command, example: str) -> None:
    inside = re.search(r"\$\((.*)\)", example)
    line = shlex.split(inside[1] if inside else example.partition(" | ")[2] or example)
    if ">" in line:
        line = line[: line.index(">")]
    assert line[0] == "psi-tool"
    asked = read(line[1:])
    assert asked is not None
    assert asked[0] is command


def test_a_word_has_one_meaning() -> None:
    names = [command.words for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert set(LATER) & {words[0] for words in names} == set()
    assert set(GROUPS) == {words[0] for words in names if len(words) == 2}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_an_option_has_one_meaning_within_a_command(command: Command) -> None:
    names = [option.name for option in command.all_options]
    assert len(set(names)) == len(names)
    assert sum(bool(option.place) for option in command.options) <= 1
    assert all(option.doc for option in command.all_options)
    shared = {option.name for option in SHARED}
    assert {option.name for option in command.options} & shared == set()
