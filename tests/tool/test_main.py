"""What is said before anything is sent: help, versions, and what is wrong with the line that was typed."""

from __future__ import annotations

import os
import pty
import re
import sys

import pytest

import psi
from tool.arguments import read
from tool.commands import COMMANDS, GROUPS, LATER, Command
from tool.main import main

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PSI_URL", "PSI_SESSION", "PSI_TOKEN", "PSI_DATA"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "line", [["--version"], ["session", "list", "--version"], ["session", "--version"], ["version"]]
)
def test_the_version_is_printed_wherever_it_is_asked_for(line: list[str], capsys: Said) -> None:
    assert main(line) == 0
    assert capsys.readouterr().out == f"psi {psi.__version__}\n"


def test_no_arguments_show_what_there_is(capsys: Said) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(command.words[0] in said for command in COMMANDS)
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("words", [[], ["scheduler"], ["scheduler", "create"]])
def test_help_may_be_asked_for_with_a_word(words: list[str], capsys: Said) -> None:
    assert main([*words, "--help"]) == 0
    said = capsys.readouterr().out
    assert main(["help", *words]) == 0
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_each_command_has_help_with_its_options_and_an_example(
    command: object, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (found,) = (each for each in COMMANDS if each is command)
    assert main([*found.words, "--help"]) == 0
    said = capsys.readouterr().out
    assert found.doc in said
    assert all(example in said for example in found.examples)
    assert all((option.place or option.flag) in said for option in found.all_options)


@pytest.mark.parametrize("word", GROUPS)
def test_a_group_has_help_and_wants_to_know_what_of_it(word: str, capsys: Said) -> None:
    assert main([word, "--help"]) == 0
    said = capsys.readouterr().out
    ops = [command.words[1] for command in COMMANDS if command.words[0] == word]
    assert all(f"{word} {op}" in said for op in ops)
    assert main([word]) == 2
    assert f"There are: {', '.join(ops)}" in capsys.readouterr().err


@pytest.mark.parametrize("word", LATER)
def test_a_command_of_a_later_version_is_named_as_one(word: str, capsys: Said) -> None:
    assert main([word, "list"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "not part of this version" in said.err


WRONG = {
    "an unknown command": (["dance"], "there is no command dance; there are: serve, scheduler"),
    "a mistyped command": (["sesion", "list"], "there is no command sesion; did you mean session?"),
    "a mistyped op": (["session", "lst"], "there is no session lst; did you mean session list?"),
    "a mistyped option": (["scheduler", "create", "--delayms", "5"], "there is no option --delayms; did you mean"),
    "a missing option": (["scheduler", "create", "--kind", "message"], "--message is missing: the prompt"),
    "a missing argument": (["scheduler", "cancel"], "ID is missing: the schedule"),
    "a word that is not accepted": (["scheduler", "create", "--kind", "letter"], "invalid choice: 'letter'"),
    "a number that is none": (["scheduler", "create", "--delay-ms", "soon"], "a whole number is needed, not 'soon'"),
    "a value without quotes": (["session", "submit", "hello", "there"], "what is 'there'?"),
    "a value given twice": (["session", "show", "a", "--session-id", "b"], "SESSION is given twice"),
    "two forms": (["session", "list", "--json", "--edn"], "--json or --edn, not both"),
    "options and no command": (["--json"], "a command or a request is missing"),
    "an option before its command": (["--kind", "message", "scheduler", "create"], "--kind is not known here"),
    "a request and more": (["{:action 1}", "{:action 2}"], "what is '{:action 2}'?"),
    "an empty request": ([" "], "the request is empty"),
    "a URL that is none": (["session", "list", "--url", "localhost"], "is no URL of a service"),
    "a session that cannot be sent": (["session", "list", "--session", "a\nb"], "--session takes printable ASCII"),
    "a token that cannot be sent": (["session", "list", "--token", "Ä"], "--token takes printable ASCII"),
    "a file that is missing": (["session", "create", "--config", "@/no/such"], "/no/such cannot be read: No such file"),
    "an unknown shell": (["completion", "tcsh"], "invalid choice: 'tcsh'"),
    "an unknown format": (["schema", "--format", "xml"], "invalid choice: 'xml'"),
    "an id of a service": (["serve", "--only-id"], "there is no id to give"),
    "an id where there is none": (["query", "[:a]", "--only-id"], "there is no id to give"),
    "an id of a mutation": (["mutate", "a/b", "--only-id"], "there is no id to give"),
    "a word that is hardly like another": (["vision"], "there is no command vision; there are: serve"),
    "an option that is like one by its dashes": (["schema", "--on"], "there is no option --on; there are: --format"),
    "a text that begins with a dash": (["session", "submit", "--wait", "-hello"], "submit -- '-hello'"),
    "one with a space": (["session", "submit", "--hello there"], "submit -- '--hello there'"),
    "an option for a value": (["session", "submit", "--message", "--json"], "write --message=--json"),
    "a value for what takes none": (["session", "list", "--json=yes"], "--json takes no value, and got 'yes'"),
    "a key twice": (["mutate", "a/b", "--params", '{"name": "A", "name": "B"}'], 'key "name" is given twice'),
    "a key twice inside": (["query", "[:a]", "--entity", '{"a": [{"b": 1, "b": 1}]}'], 'key "b" is given twice'),
    "a key twice in a config": (["session", "create", "--config", '{"a": 1, "a": 2}'], 'key "a" is given twice'),
    "a mistyped option before the command": (["--sesion", "x", "session", "list"], "--sesion; did you mean --session?"),
    "a setting before its command": (["--port", "9000", "serve"], "stand behind the command"),
    "an option without its value": (["--url"], "--url needs a value: where the service is"),
    "one before the command is complete": (["session", "--token"], "--token needs a value"),
    "all and one": (["watch", "--all", "--session", "x"], "--all or --session, not both"),
    "a query in no file": (["query", "@/no/such"], "EQL: /no/such cannot be read: No such file"),
    "a request in no file": (["@/no/such"], "REQUEST: /no/such cannot be read: No such file"),
    "standard input twice": (["query", "-", "--entity", "@-"], "standard input can be read for one option only"),
}


@pytest.mark.parametrize(("line", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_meant_ends_with_2_and_a_sentence(line: list[str], said: str, capsys: Said) -> None:
    assert main(line) == 2
    heard = capsys.readouterr()
    assert heard.out == ""
    assert said in heard.err
    assert "Traceback" not in heard.err


VARIABLES = {
    "PSI_URL": ("localhost", "PSI_URL: 'localhost' is no URL of a service"),
    "PSI_TOKEN": ("Ä", "PSI_TOKEN takes printable ASCII"),
    "PSI_SESSION": ("Ä", "PSI_SESSION takes printable ASCII"),
}


@pytest.mark.parametrize(("name", "value"), VARIABLES.items(), ids=VARIABLES.keys())
def test_a_variable_is_blamed_by_its_name(
    name: str, value: tuple[str, str], capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value[0])
    assert main(["session", "show"]) == 2
    assert value[1] in capsys.readouterr().err


def test_a_setting_that_cannot_be_used_ends_with_2_and_names_all_of_them(capsys: Said) -> None:
    assert main(["serve", "--auth=maybe", "--port", "70000", "--rate", "-1", "--data="]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in said] == ["--port", "--data", "--auth", "--rate"]
    assert said[2].endswith('one of 1, 0, true, false, yes, no, on, off, got "maybe"')


@pytest.mark.parametrize("line", [["serve", "--auth=yes", "--no-auth"], ["serve", "--auth", "--auth=off"]])
def test_a_switch_that_is_given_a_value_is_still_turned_one_way_only(line: list[str], capsys: Said) -> None:
    assert main(line) == 2
    assert "--auth or --no-auth, not both" in capsys.readouterr().err


IGNORED = [["--url", "x"], ["--session", "x"], ["--token", "x"], ["--json"], ["--edn"]]


@pytest.mark.parametrize("option", IGNORED, ids=lambda option: option[0])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_each_command_takes_the_shared_options_wherever_they_stand(command: Command, option: list[str]) -> None:
    values = [option.choices[0] if option.choices else "x" for option in command.options if option.required]
    flags = [option.flag for option in command.options if option.required]
    needed = [word for pair in zip(flags, values, strict=True) for word in pair]
    for line in ([*option, *command.words, *needed], [*command.words, *option, *needed]):
        asked = read(line)
        assert asked is not None
        assert asked[0] is command
        # What stands alone is found, too.
        alone = [words for each in command.options if each.required and each.place for words in (each,)]
        if len(alone) == len(flags) == 1:
            asked = read([*option, *command.words, values[0]])
            assert asked is not None
            assert asked[1][alone[0].name] == values[0]


def test_they_change_nothing_where_they_mean_nothing(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["completion", "bash"]) == 0
    plain = capsys.readouterr().out
    assert main(["--url", "x", "completion", "--json", "bash", "--edn"]) == 0
    assert capsys.readouterr().out == plain
    assert "--url" not in " ".join(re.findall(r'" completion"\).*', plain))


def test_help_is_80_columns_wide_where_the_terminal_tells_no_size(
    capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["scheduler", "create", "--help"]) == 0
    wide = capsys.readouterr().out
    monkeypatch.delenv("COLUMNS")
    ours, its = pty.openpty()  # 0 × 0 as long as nobody says otherwise
    with os.fdopen(its, "w") as terminal:
        monkeypatch.setattr(sys, "__stdout__", terminal)
        assert main(["scheduler", "create", "--help"]) == 0
    os.close(ours)
    assert capsys.readouterr().out == wide


def test_an_open_network_without_credentials_is_refused(capsys: Said) -> None:
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "--allow-unauthenticated-network" in capsys.readouterr().err


def test_without_a_service_it_says_which_url_was_tried_and_how_to_start_one(capsys: Said) -> None:
    assert main(["session", "list", "--url", "http://127.0.0.1:1"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "http://127.0.0.1:1" in said.err
    assert "psi-tool serve" in said.err
    assert "make serve" in said.err
