"""Outputs that cannot be written, and text that a terminal would obey."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faces.serving import serving
from tests.tool.cli import MODULE, Ended, answering, environment, http, in_terminal, psi_tool
from tool.output import plain

FULL = Path("/dev/full")
SENTENCE = "psi-tool: the output could not be written: No space left on device\n"
OBEYED = [chr(code) for code in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
NAME = f"evil {''.join(OBEYED)}\x1b\x07\x9b name"
NEVER = {*OBEYED, "\x07", "\x9b"}


async def into(file: Path, *line: str, env: Mapping[str, str] | None = None) -> Ended:
    """Run it with its output in a file."""
    with file.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            *MODULE, *line, stdout=out, stderr=asyncio.subprocess.PIPE, env=dict(env or environment())
        )
        async with asyncio.timeout(60):
            _, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, "", err.decode())


needs_full = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")

LINES = {
    "nothing": [],
    "the version": ["--version"],
    "help": ["scheduler", "create", "--help"],
    "help of a group": ["session", "--help"],
    "a schema": ["schema"],
    "a schema as EDN": ["schema", "--edn"],
    "the SDL": ["schema", "--format", "graphql"],
    "completion": ["completion", "bash"],
    "a new token": ["token", "create"],
    "tokens": ["token", "list"],
    "tokens as EDN": ["token", "list", "--edn"],
}


@needs_full
@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
async def test_an_output_that_cannot_be_written_ends_with_1_and_a_sentence(line: list[str], tmp_path: Path) -> None:
    ended = await into(FULL, *line, env=environment(PSI_DATA=str(tmp_path)))
    assert (ended.code, ended.err) == (1, SENTENCE)


@needs_full
@pytest.mark.parametrize("form", ["--json", "--edn", "--only-id"])
async def test_so_does_an_answer_of_the_service(form: str) -> None:
    session = {"session": {"session-id": "ses-1"}}
    envelope = {"psi-tool/action": "session", "psi-tool/overall-status": "ok", "psi-tool/session": session}
    body = "{:psi-tool/overall-status :ok}" if form == "--edn" else json.dumps(envelope)
    async with answering(http(200, body)) as server:
        ended = await into(FULL, "session", "create", "x", form, "--url", server.url)
    assert (ended.code, ended.err) == (1, SENTENCE)


@needs_full
async def test_help_is_not_lost_silently_where_nothing_is_buffered() -> None:
    ended = await into(FULL, "session", "list", "--help", env=environment(PYTHONUNBUFFERED="1"))
    assert (ended.code, ended.err) == (1, SENTENCE)


@needs_full
async def test_watching_ends_with_its_output_and_does_not_take_it_for_a_lost_connection() -> None:
    async with serving(real_time=True) as served:
        ended = asyncio.create_task(into(FULL, "watch", env=environment(PSI_URL=served.url)))
        async with asyncio.timeout(60):
            while not ended.done():
                await served.session()
                await asyncio.wait({ended}, timeout=0.05)
    assert (ended.result().code, ended.result().err) == (1, SENTENCE)


@needs_full
async def test_an_error_is_told_all_the_same() -> None:
    ended = await into(FULL, "session", "list", "--url", "http://127.0.0.1:1")
    assert ended.code == 3
    assert "No psi service" in ended.err


async def test_an_output_that_was_closed_is_named() -> None:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'exec "$@" >&-', "sh", *MODULE, "schema"), stderr=asyncio.subprocess.PIPE, env=environment()
    )
    async with asyncio.timeout(60):
        _, err = await process.communicate()
    assert process.returncode == 1
    assert err == b"psi-tool: the output could not be written: standard output is closed\n"


def test_control_characters_are_shown_as_what_they_are_not() -> None:
    assert plain("a\x1b[2Jb\x00\x9bc\nd\te") == "a\ufffd[2Jb\ufffd\ufffdc\nd\te"


@pytest.mark.parametrize("mark", OBEYED, ids=lambda mark: f"U+{ord(mark):04X}")
def test_marks_that_turn_the_direction_of_writing_are_no_different(mark: str) -> None:
    assert plain(f"a{mark}b") == "a\ufffdb"


SHOWN = {
    "a table": ["session", "list"],
    "a record": ["session", "show"],
    "a result": ["query", "[:psi.agent-session/session-display-name]"],
    "JSON": ["session", "list", "--json"],
    "EDN": ["session", "list", "--edn"],
}


@pytest.mark.parametrize("line", SHOWN.values(), ids=SHOWN.keys())
async def test_a_terminal_never_gets_them(line: list[str]) -> None:
    async with serving(real_time=True) as served:
        env = environment(PSI_URL=served.url, PSI_SESSION=await served.session(NAME), NO_COLOR="1")
        async with in_terminal(*line, env=env, columns=200) as terminal:
            shown = await terminal.ended()
    assert shown.code == 0, shown.out
    assert "evil" in shown.out
    assert not NEVER & set(shown.out)
    if "--json" in line:
        (session,) = json.loads(shown.plain)["psi-tool/session"]["sessions"]
        assert session["session-name"] == NAME


async def test_a_pipe_gets_what_the_service_said_byte_by_byte(tmp_path: Path) -> None:
    body = json.dumps({"psi-tool/overall-status": "ok", "psi-tool/result": "\u202e"}, ensure_ascii=False)
    async with answering(http(200, body)) as server:
        await into(tmp_path / "out", "query", "[:a]", "--url", server.url)
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"{body}\n"


async def test_what_was_typed_is_shown_and_not_obeyed() -> None:
    async with in_terminal("da\u202ence", env=environment()) as terminal:
        shown = await terminal.ended()
    assert shown.code == 2
    assert "\u202e" not in shown.out


NARROW = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]


@pytest.mark.parametrize("variables", NARROW, ids=["ascii", "POSIX"])
async def test_an_encoding_that_lacks_characters_is_no_reason_to_fail(
    variables: dict[str, str], tmp_path: Path
) -> None:
    async with serving(real_time=True) as served:
        env = environment(PSI_URL=served.url, PSI_SESSION=await served.session("Käse – 漢"), **variables)
        for line in SHOWN.values():
            async with in_terminal(*line, env=env, columns=200) as terminal:
                shown = await terminal.ended()
            assert shown.code == 0, shown.out
            assert "K?se ? ?" in shown.plain or r"K\u00e4se \u2013 \u6f22" in shown.plain
    await psi_tool("token", "create", "Käse", "--data", str(tmp_path))
    for line in (["--help"], ["completion", "bash"], ["token", "create"], ["token", "list", "--edn"], ["schema"]):
        ended = await psi_tool(*line, env={**env, "PSI_DATA": str(tmp_path)})
        assert (ended.code, ended.err) == (0, "")


async def test_a_pipe_gets_data_in_utf_8_whatever_the_terminal_has(tmp_path: Path) -> None:
    env = environment(PSI_DATA=str(tmp_path), PYTHONIOENCODING="ascii")
    await psi_tool("token", "create", "Käse", env=env)
    assert (await psi_tool("token", "list", env=env)).json()["tokens"][0]["name"] == "Käse"
    assert ':name "Käse"' in (await psi_tool("token", "list", "--edn", env=env)).out


async def test_a_standard_error_that_was_closed_is_no_reason_to_fail() -> None:
    ended = await psi_tool("-c", 'exec "$@" 2>&-', "sh", *MODULE, "session", "lst", command=("sh",))
    assert (ended.code, ended.out) == (2, "")


@pytest.mark.parametrize("term", ["dumb", "unknown"])
async def test_a_terminal_without_colours_gets_none(term: str) -> None:
    env = environment(TERM=term)
    async with in_terminal("session", "list", "--url", "http://127.0.0.1:1", env=env) as terminal:
        shown = await terminal.ended()
    assert shown.code == 3
    assert "\x1b" not in shown.out
