from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from psi.edn import loads
from psi.store import Credentials
from tool.arguments import Values
from tool.commands import find
from tool.tokens import run

ROOT = Path(__file__).resolve().parents[2]


class Output(io.TextIOWrapper):
    """Standard output, as a pipe or as a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def written(self) -> str:
        self.seek(0)
        return self.read()


class Shell:
    """Runs the commands on one data folder, and keeps what they said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = self.err = ""

    def __call__(self, op: str, *, terminal: bool = False, **arguments: Any) -> int:
        command = find(("token", op))
        assert command is not None
        values = Values()
        values.update({option.name: None for option in command.all_options})
        values.update({"data": str(self.folder), **arguments})
        out, err = Output(terminal), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(command, values)
        self.out, self.err = out.written(), err.getvalue()
        return code

    def json(self, op: str, **arguments: Any) -> Any:
        assert self(op, **arguments) == 0
        (line,) = self.out.splitlines()
        return json.loads(line)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_a_token_is_made_for_the_local_user_who_may_read_and_write(shell: Shell) -> None:
    made = shell.json("create")
    assert (made["user"], made["scopes"], made["expires_at"]) == ("local", ["read", "write"], None)
    with Credentials.open(shell.folder) as credentials:
        found = credentials.find_token(made["token"], now=datetime.now(UTC))
    assert found is not None
    assert found.id == made["id"]


def test_a_token_is_what_it_was_asked_to_be(shell: Shell) -> None:
    made = shell.json("create", user="ada", name="laptop", scope="admin", expires="30d")
    assert (made["user"], made["name"], made["scopes"]) == ("ada", "laptop", ["read", "write", "admin"])
    lasts = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert lasts.days == 30
    assert shell.json("create", expires="never")["expires_at"] is None


def test_a_script_can_have_the_token_alone(shell: Shell) -> None:
    assert shell("create", plain=True) == 0
    assert shell.out.startswith("psi_")
    assert len(shell.out.splitlines()) == 1


def test_edn_has_keywords(shell: Shell) -> None:
    assert shell("create", edn=True, user="ada") == 0
    assert loads(shell.out)["expires-at"] is None
    assert ":user" in shell.out


def test_people_are_told_that_it_is_shown_this_once(shell: Shell) -> None:
    assert shell("create", terminal=True, user="ada", scope="read") == 0
    assert shell.out.startswith("psi_")
    assert "only time" in shell.out
    assert "user ada, may read, and holds until it is revoked" in shell.out


def test_tokens_are_listed_without_their_text(shell: Shell) -> None:
    texts = [shell.json("create", user=user)["token"] for user in ("ada", "bob")]
    listed = shell.json("list")["tokens"]
    assert [(token["user"], token["state"]) for token in listed] == [("ada", "active"), ("bob", "active")]
    assert not any(text in shell.out for text in texts)
    assert [token["user"] for token in shell.json("list", user="bob")["tokens"]] == ["bob"]


def test_people_get_a_table(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    made = shell.json("create", user="ada", name="[bold]x")
    assert shell("list", terminal=True) == 0
    assert made["id"] in shell.out
    assert "[bold]x" in shell.out
    assert "active" in shell.out


def test_where_there_are_none_looking_leaves_nothing_behind(shell: Shell) -> None:
    assert shell.json("list") == {"tokens": []}
    assert shell("list", terminal=True) == 0
    assert "psi-tool token create" in shell.out
    assert shell("revoke", id="tok-1") == 1
    assert not shell.folder.exists()


def test_a_revoked_token_is_listed_as_that(shell: Shell) -> None:
    made = shell.json("create")
    assert shell.json("revoke", id=made["id"])["state"] == "revoked"
    assert shell.json("list")["tokens"][0]["state"] == "revoked"
    assert shell("revoke", terminal=True, id=made["id"]) == 0
    assert "is revoked" in shell.out


def test_revoking_what_is_not_there_ends_with_1_and_nothing_named_with_2(shell: Shell) -> None:
    shell.json("create")
    assert shell("revoke", id="tok-1") == 1
    assert shell.err == "psi-tool token revoke: token not found\n"
    assert shell("revoke", id=None) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"scope": "root"}, "scopes must be some of read, write, admin, got root"),
        ({"expires": "soon"}, "--expires must be a length of time such as 30d"),
        ({"expires": "0d"}, "a token must last longer than nothing"),
        ({"user": "a b"}, "`user` must be a name"),
        ({"user": ""}, "`user` must be a name"),
        ({"name": "a\nb"}, "`name` must be a line"),
    ],
)
def test_a_token_that_cannot_be_ends_with_2(shell: Shell, arguments: dict[str, Any], said: str) -> None:
    assert shell("create", **arguments) == 2
    assert said in shell.err
    assert shell.out == ""


def test_a_folder_that_cannot_be_used_is_named(shell: Shell) -> None:
    shell.folder.write_text("a file")
    assert shell("create") == 1
    assert "cannot be used" in shell.err


def test_the_folder_comes_from_the_environment_where_nothing_is_said(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PSI_DATA", str(shell.folder))
    shell.json("create", data=None)
    assert (shell.folder / "auth.db").exists()


def test_the_command_line_leads_here(tmp_path: Path) -> None:
    env = {**os.environ, "PSI_DATA": str(tmp_path / "data")}

    def psi_tool(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tool.main", "token", *words]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)

    made = json.loads(psi_tool("create", "--name", "ci", "--scope", "read").stdout)
    assert (made["name"], made["scopes"]) == ("ci", ["read"])
    assert json.loads(psi_tool("revoke", made["id"]).stdout)["state"] == "revoked"
    ended = psi_tool("revoke", "tok-1")
    assert (ended.returncode, ended.stdout) == (1, "")
