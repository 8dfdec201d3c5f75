"""Completion, asked of the shells themselves where they are installed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tool.cli import environment, in_terminal
from tool.commands import COMMANDS, Command
from tool.completion import options_of, script

# What is typed, the last word being the one that the cursor is behind, and what must be offered.
TYPED = {
    "the commands": (["psi-tool", ""], {"serve", "scheduler", "session", "query", "watch", "completion", "token"}),
    "one beginning": (["psi-tool", "sche"], {"scheduler", "schema"}),
    "the ops of a group": (["psi-tool", "scheduler", ""], {"create", "list", "cancel"}),
    "behind an option with a value": (["psi-tool", "--session", "list", "scheduler", "c"], {"create", "cancel"}),
    "options": (["psi-tool", "scheduler", "create", "--de"], {"--delay-ms"}),
    "options before a command": (["psi-tool", "--u"], {"--url"}),
    "options between the words": (["psi-tool", "session", "--tok"], {"--token"}),
    "options behind others": (["psi-tool", "--json", "query", "[:a]", "--exp"], {"--explain"}),
    "the words of an option": (["psi-tool", "scheduler", "create", "--kind", ""], {"message", "session"}),
    "some of them": (["psi-tool", "schema", "--format", "a"], {"anthropic"}),
    "words that stand alone": (["psi-tool", "completion", ""], {"bash", "zsh", "fish"}),
    "settings": (["psi-tool", "serve", "--query-d"], {"--query-depth"}),
    "both ways of a switch": (["psi-tool", "serve", "--no-au"], {"--no-auth"}),
    "words of a setting": (["psi-tool", "serve", "--log-level", ""], {"debug", "info", "warning", "error"}),
    "scopes": (["psi-tool", "token", "create", "--scope", ""], {"read", "write", "admin"}),
    "a file": (["psi-tool", "session", "create", "--config", "@con"], {"@config.edn"}),
    "a file for what stands alone": (["psi-tool", "query", "@con"], {"@config.edn"}),
    "a file for a request": (["psi-tool", "@con"], {"@config.edn"}),
    "nothing where anything goes": (["psi-tool", "session", "create", "--name", ""], set()),
    "nothing for a URL": (["psi-tool", "--url", ""], set()),
}

# Typed in one word with its option, and what becomes of it.
JOINED = {
    "--kind=mes": "--kind=message",
    "--session-config=@con": "--session-config=@config.edn",
}

# As bash shows it, which takes words apart at = : and @ before it asks for completion.
IN_BASH = {
    "psi-tool session create --config @con": "@config.edn ",
    "psi-tool session create --config=@con": "--config=@config.edn ",
    "psi-tool session create --config @a\\ f": "@a\\ file.edn ",
    "psi-tool session create --config @fol": "@folder/",
    "psi-tool scheduler create --kind=mes": "--kind=message ",
    "psi-tool query @con": "query @config.edn ",
    "psi-tool @con": "psi-tool @config.edn ",
    "psi-tool serve --data=fol": "--data=folder/",
    "psi-tool --url http://127.0.0.1:8420 session sh": "session show ",
    "psi-tool --url=http://127.0.0.1:8420 session sh": "session show ",
    "true; psi-tool comp": "completion ",
}

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
# As the shell does it: by what is registered for the command.
handler=$(complete -p psi-tool | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$handler" psi-tool "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(script(shell), encoding="utf-8")
    for name in ("config.edn", "a file.edn"):
        (folder / name).write_text("{}", encoding="utf-8")
    (folder / "folder").mkdir()
    return folder


def shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(command: list[str], folder: Path) -> str:
    said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30, cwd=folder)
    assert said.returncode == 0, said.stderr
    assert said.stderr == ""
    return said.stdout


@pytest.mark.parametrize(("typed", "offered"), TYPED.values(), ids=TYPED.keys())
def test_bash_completes(typed: list[str], offered: set[str], scripts: Path) -> None:
    said = run([shell("bash"), "--norc", "-c", BASH, "bash", str(scripts / "bash"), *typed], scripts)
    found = set(said.split())
    assert found >= offered if typed[-1] == "" and len(typed) == 2 else found == offered


@pytest.mark.parametrize(("typed", "becomes"), IN_BASH.items(), ids=IN_BASH.keys())
async def test_bash_completes_what_is_typed_into_it(typed: str, becomes: str, scripts: Path) -> None:
    env = environment(PS1="", INPUTRC=os.devnull)
    async with in_terminal("--norc", "-i", env=env, command=(shell("bash"),)) as terminal:
        terminal.type(f"cd {shlex.quote(str(scripts))} && . ./bash && echo re''ady\n")
        await terminal.shows("ready")
        terminal.type(f"{typed}\t")
        await terminal.shows(becomes)


@pytest.mark.parametrize(("typed", "offered"), TYPED.values(), ids=TYPED.keys())
def test_fish_completes(typed: list[str], offered: set[str], scripts: Path) -> None:
    fish = shell("fish")
    line = " ".join([*map(shlex.quote, typed[:-1]), typed[-1]])
    code = "source $argv[1]; complete -C $argv[2]"
    said = run([fish, "--no-config", "-c", code, str(scripts / "fish"), line], scripts)
    found = {each.split("\t")[0] for each in said.splitlines()}
    assert found >= offered


@pytest.mark.parametrize(("typed", "becomes"), JOINED.items(), ids=JOINED.keys())
def test_fish_completes_behind_an_equals_sign(typed: str, becomes: str, scripts: Path) -> None:
    code = "source $argv[1]; complete -C $argv[2]"
    line = f"psi-tool scheduler create {typed}"
    said = run([shell("fish"), "--no-config", "-c", code, str(scripts / "fish"), line], scripts)
    assert [each.split("\t")[0] for each in said.splitlines()] == [becomes]


def test_zsh_takes_the_script(scripts: Path) -> None:
    run([shell("zsh"), "-n", str(scripts / "zsh")], scripts)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_each_script_knows_every_option_of_every_command(name: str, command: Command) -> None:
    text = script(name)
    assert all(word in text for word in command.words)
    for option in options_of(command):
        assert (f"-l {option.name}" if name == "fish" else option.flag) in text
        assert all(word in text for word in option.choices)


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_quotes_are_balanced_in_the_scripts_that_cannot_be_run_everywhere(name: str) -> None:
    """A doc with an apostrophe must not end its string. Zsh closes and opens again around one, fish escapes it."""
    for line in script(name).splitlines():
        if line.lstrip().startswith("#"):
            continue
        bare = line.replace("'\\''", "") if name == "zsh" else line.replace("\\'", "")
        assert bare.count("'") % 2 == 0, line
