"""psi-tool against the real service: a process with pipes, or in a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from psi.core.identity import read_scopes
from psi.edn import loads
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Served, serving
from tests.tool.cli import MODULE, Ended, answering, environment, http, in_terminal, psi_tool, start
from tool.arguments import read
from tool.ask import run


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(real_time=True) as found:
        yield found


def env_of(served: Served, session: str | None = None, **more: str) -> dict[str, str]:
    return environment(PSI_URL=served.url, **({"PSI_SESSION": session} if session else {}), **more)


async def ok(served: Served, *line: str, session: str | None = None) -> dict[str, Any]:
    ended = await psi_tool(*line, env=env_of(served, session))
    assert ended.code == 0, ended
    assert ended.err == ""
    envelope: dict[str, Any] = ended.json()
    assert envelope["psi-tool/overall-status"] == "ok"
    return envelope


# -- pipes


async def test_a_session_and_its_schedules_from_the_first_to_the_last_command(served: Served) -> None:
    created = await ok(served, "session", "create", "First", "--config", "{:thinking-level :low}")
    session = created["psi-tool/session"]["session"]["session-id"]
    line = ["--kind", "message", "--delay-ms", "600000", "--message", "Check the build – now.", "--label", "build"]
    made = (await ok(served, "scheduler", "create", *line, session=session))["psi-tool/scheduler"]["schedule"]
    assert (made["message"], made["label"], made["status"]) == ("Check the build – now.", "build", "pending")

    listed = (await ok(served, "scheduler", "list", "--session", session))["psi-tool/scheduler"]
    assert [each["schedule-id"] for each in listed["schedules"]] == [made["schedule-id"]]
    counted = await ok(served, "query", "[:psi.scheduler/pending-count]", session=session)
    assert counted["psi-tool/result"] == {"psi.scheduler/pending-count": 1}

    cancelled = await ok(served, "scheduler", "cancel", made["schedule-id"], session=session)
    assert cancelled["psi-tool/scheduler"]["cancelled?"] is True
    told = await ok(served, "session", "submit", "/say Hello.", "--wait", session=session)
    assert told["psi-tool/session"]["run"]["answer"] == "Hello."
    assert (await ok(served, "session", "stop", session))["psi-tool/session"]["stopped?"] is False
    assert (await ok(served, "session", "close", session))["psi-tool/session"]["closed?"] is True
    assert (await ok(served, "session", "list"))["psi-tool/session"]["session-count"] == 0


@pytest.mark.parametrize(
    "config", ['{:session-name "Late" :thinking-level :low}', '{"session-name": "Late"}', "@edn", "@-"]
)
async def test_a_config_comes_as_edn_as_json_or_from_a_file(served: Served, config: str, tmp_path: Path) -> None:
    session = await served.session()
    stdin = None
    if config == "@edn":
        file = tmp_path / "config.edn"
        file.write_text('{:session-name "Late"}', encoding="utf-8")
        config = f"@{file}"
    elif config == "@-":
        stdin = b'{"session-name": "Late"}'
    line = ["--kind", "session", "--delay-ms", "60000", "--message", "x", "--session-config", config]
    ended = await psi_tool("scheduler", "create", *line, env=env_of(served, session), stdin=stdin)
    schedule = ended.json()["psi-tool/scheduler"]["schedule"]
    assert schedule["session-config-summary"]["session-name"] == "Late"


async def test_a_mutation_takes_its_params_as_a_map(served: Served) -> None:
    named = await ok(served, "mutate", "psi.agent-session/create", "--params", '{:name "Made"}')
    assert named["psi-tool/mutation"] == "psi.agent-session/create"
    assert len(served.psi.service.context().session_names()) == 1


async def test_an_entity_is_where_a_query_starts(served: Served) -> None:
    session = await served.session("Named")
    entity = json.dumps({"psi.agent-session/session-id": session})
    found = await ok(served, "query", "[:psi.agent-session/session-name]", "--entity", entity)
    assert found["psi-tool/result"] == {"psi.agent-session/session-name": "Named"}


RAW = {
    "EDN": '{:action "session" :op "create" :name "Ü"}',
    "JSON": '{"action": "session", "op": "create", "name": "Ü"}',
    "EDN with strings as keys": '{"action" "session" "op" "create" "name" "Ü"}',
}


@pytest.mark.parametrize("request_", RAW.values(), ids=RAW.keys())
@pytest.mark.parametrize("way", ["argument", "standard input"])
async def test_any_request_goes_as_it_is(served: Served, request_: str, way: str) -> None:
    if way == "argument":
        ended = await psi_tool(request_, env=env_of(served))
    else:
        ended = await psi_tool("-", env=env_of(served), stdin=request_.encode())
    assert ended.code == 0, ended
    assert ended.json()["psi-tool/session"]["session"]["session-name"] == "Ü"


async def test_the_id_alone_is_what_a_script_wants(served: Served) -> None:
    made = await psi_tool("session", "create", "First", "--only-id", env=env_of(served))
    session = made.out.strip()
    assert served.psi.service.session(session) is not None
    line = ["scheduler", "create", "--kind", "message", "--delay-ms", "600000", "--message", "x", "--only-id"]
    planned = await psi_tool(*line, env=env_of(served, session))
    assert planned.out.startswith("sch-")
    begun = await psi_tool("session", "submit", "hello", "--only-id", env=env_of(served, session))
    assert begun.out.startswith("run-")
    sessions = await psi_tool("session", "list", "--only-id", env=env_of(served))
    assert sessions.out == f"{session}\n"
    schedules = await psi_tool("scheduler", "list", "--only-id", env=env_of(served, session))
    assert schedules.out == planned.out
    other = await served.session()
    nothing = await psi_tool("scheduler", "list", "--only-id", env=env_of(served, other))
    assert (nothing.code, nothing.out) == (0, "")


async def test_and_where_there_is_none_nothing_can_be_taken_for_it(served: Served) -> None:
    refused = await psi_tool("session", "create", "", "--only-id", env=env_of(served))
    assert (refused.code, refused.out) == (1, "")
    assert "`name` must be a non-blank string" in refused.err
    asked = await psi_tool('{:query "[:psi.system/version]"}', "--only-id", env=env_of(served))
    assert (asked.code, asked.out) == (2, "")
    assert "no id to give" in asked.err


async def test_a_session_that_has_gone_does_not_lock_the_shell_out(served: Served) -> None:
    lost = await served.session("Lost")
    await ok(served, "session", "close", lost)
    await ok(served, "session", "list", session=lost)
    await ok(served, "session", "create", "New", session=lost)
    typed = await psi_tool("session", "list", "--session", lost, env=env_of(served))
    assert typed.code == 1
    shown = await terminal(served, "query", "[:psi.system/version]", session=lost)
    assert shown.code == 1
    assert f"session not found: {lost}" in shown.plain
    assert "`unset PSI_SESSION`" in shown.plain
    typed = await terminal(served, "query", "[:psi.system/version]", "--session", lost)
    assert f"session not found: {lost}" in typed.plain
    assert "PSI_SESSION" not in typed.plain


FAILED = {"/fail": 1, "/empty": 0, "/say Hello.": 0}


@pytest.mark.parametrize(("prompt", "code"), FAILED.items(), ids=FAILED.keys())
@pytest.mark.parametrize("form", ["--json", "--edn", "--only-id"])
async def test_a_run_that_was_waited_for_and_failed_ends_with_1(
    served: Served, prompt: str, code: int, form: str
) -> None:
    session = await served.session("{:run {:state :error}} :run {")
    ended = await psi_tool("session", "submit", prompt, "--wait", form, env=env_of(served, session))
    assert (ended.code, ended.err) == (code, "")
    assert ended.out


async def test_and_says_where_the_reason_stands(served: Served) -> None:
    session = await served.session()
    shown = await terminal(served, "session", "submit", "/fail no luck", "--wait", session=session)
    assert shown.code == 1
    (query,) = (line for line in shown.plain.splitlines() if "psi-tool query" in line)
    found = await ok(served, *shlex.split(query)[1:])
    assert "no luck" in found["psi-tool/result"]["psi.run/error"]


@pytest.mark.parametrize("way", ["@file", "-", "@-"])
async def test_a_query_and_a_request_may_stand_elsewhere(served: Served, way: str, tmp_path: Path) -> None:
    for text, line in (("[:psi.system/version]", ["query"]), ('{:query "[:psi.system/version]"}', [])):
        file = tmp_path / "asked"
        file.write_text(f"{text}\n", encoding="utf-8")
        given = f"@{file}" if way == "@file" else way
        ended = await psi_tool(*line, given, env=env_of(served), stdin=None if way == "@file" else text.encode())
        assert ended.code == 0, ended
        assert set(ended.json()["psi-tool/result"]) == {"psi.system/version"}


async def test_edn_is_answered_where_it_is_asked_for(served: Served) -> None:
    session = await served.session()
    ended = await psi_tool("scheduler", "list", "--edn", env=env_of(served, session))
    assert ended.code == 0
    assert loads(ended.out)["psi-tool/scheduler"] == {"schedule-count": 0, "schedules": []}
    refused = await psi_tool("scheduler", "cancel", "nope", "--edn", env=env_of(served, session))
    assert refused.code == 1
    assert loads(refused.out)["psi-tool/overall-status"] == "error"


async def test_a_text_that_looks_like_a_status_does_not_make_one(served: Served) -> None:
    name = "{:psi-tool/overall-status :error}"
    ended = await psi_tool("session", "create", name, "--edn", env=env_of(served))
    assert ended.code == 0
    assert loads(ended.out)["psi-tool/session"]["session"]["session-name"] == name


REFUSED = {
    "by the service": (["scheduler", "cancel", "nope"], "schedule not found"),
    "no such action": (['{"action": "dance"}'], "unknown action"),
    "unreadable EDN": (["{:action "], "EDN"),
    "unreadable JSON": (['{"action": '], "JSON"),
    "bytes that are no text": (["{:action \udcff}"], "UTF-8"),
    "half a character": (["session", "create", "\udcff"], ""),
    "below a bound": (
        ["scheduler", "create", "--kind", "message", "--message", "x", "--delay-ms", "1"],
        "minimum bound",
    ),
    "no time": (["scheduler", "create", "--kind", "message", "--message", "x"], "requires `delay-ms` or `at`"),
    "a map that is none": (["query", "[:a]", "--entity", "[1]"], "`entity` must be a map"),
}


@pytest.mark.parametrize(("line", "said"), REFUSED.values(), ids=REFUSED.keys())
async def test_an_error_of_the_service_ends_with_1_and_its_envelope(served: Served, line: list[str], said: str) -> None:
    session = await served.session()
    ended = await psi_tool(*line, env=env_of(served, session))
    assert ended.code == 1, ended
    assert ended.err == ""
    envelope = ended.json()
    assert envelope["psi-tool/overall-status"] == "error"
    assert said in envelope["psi-tool/error"]["message"]


async def test_a_plan_is_explained(served: Served) -> None:
    session = await served.session()
    ended = await psi_tool("query", "[:psi.scheduler/pending-count]", "--explain", env=env_of(served, session))
    assert ended.code == 0
    assert "psi.scheduler/session-pending-count" in ended.json()["explain"]
    assert ended.json()["plan"]["query"] == "[:psi.scheduler/pending-count]"
    wrong = await psi_tool("query", "[:a", "--explain", env=env_of(served, session))
    assert wrong.code == 1
    assert "expected ]" in wrong.json()["error"]["message"]
    as_edn = await psi_tool("query", "[:psi.system/version]", "--explain", "--edn", env=env_of(served))
    assert "explain" in loads(as_edn.out)


@pytest.mark.parametrize("line", [["-"], ["query", "-"], ["session", "create", "--config", "@-"]])
async def test_a_standard_input_that_was_closed_is_named(line: list[str]) -> None:
    ended = await psi_tool("-c", 'exec "$@" <&-', "sh", *MODULE, *line, command=("sh",))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.endswith(": standard input is closed\n")


async def test_a_port_that_is_taken_leaves_no_folder_behind(served: Served, tmp_path: Path) -> None:
    port = served.url.rpartition(":")[2]
    ended = await psi_tool("serve", "--port", port, "--data", str(tmp_path / "data"))
    assert ended.code == 1
    assert f"port {port} on 127.0.0.1 is in use" in ended.err
    assert not (tmp_path / "data").exists()


# -- refusals of HTTP


NO_ENVELOPE = {
    "no token": (
        http(401, {"error": {"code": "a", "message": "this needs a token: send it as `Authorization`; so it is"}}),
        "refused (401): this needs a token. Give a token with --token",
    ),
    "a token that has ended": (
        http(401, {"error": {"code": "a", "message": "this token was revoked; `psi-tool token create` makes one"}}),
        "refused (401): this token was revoked. Give a token with --token",
    ),
    "not allowed": (http(403, {"error": {"code": "a", "message": "not yours"}}), "refused (403): not yours."),
    "too much": (http(413, {"error": {"code": "a", "message": "too large"}}), "refused (413): too large."),
    "too often": (http(429, {"error": {"code": "a", "message": "slow"}}, retry_after="7"), "Try again in 7 s."),
    "busy": (http(503, {"error": {"code": "a", "message": "full"}}), "(503): full. It is starting, stopping"),
    "broken": (http(500, {"error": {"code": "a", "message": "a fault"}}), "The log of the service says more."),
}


@pytest.mark.parametrize("form", ["--json", "--edn"])
@pytest.mark.parametrize(("answer", "said"), NO_ENVELOPE.values(), ids=NO_ENVELOPE.keys())
async def test_what_is_no_envelope_becomes_a_sentence_that_helps(answer: bytes, said: str, form: str) -> None:
    async with answering(answer) as server:
        ended = await psi_tool("session", "list", form, "--url", server.url)
    assert ended.code == 1
    assert ended.out == ""
    assert said in ended.err
    assert server.url in ended.err
    assert "Traceback" not in ended.err


NO_PSI = {
    "another site": (http(404, b"<html>no</html>"), "it says 404"),
    "a broken site": (http(500, b"<html>broken</html>"), "it says 500"),
    "a site with a gate": (http(401, b"who are you?"), "it says 401"),
    "a site that likes everything": (http(200, b"<html>yes</html>"), "it says 200"),
    "somewhere else": (http(302, location="https://psi.example/"), "it says 302 and leads to https://psi.example/"),
    "some JSON": (http(200, {"hello": "world"}), "it says 200"),
    "JSON without an end": (http(200, b"[" * 100_000), "it says 200"),
    "no HTTP": (b"220 mail ESMTP\r\n", "its answer is not HTTP"),
    "garbage": (b"\x00\x01garbage\n\xff" * 100, "its answer is not HTTP"),
    "an absurd length": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}", "larger than"),
    "nothing": (b"", "the connection was closed without an answer"),
}


@pytest.mark.parametrize("line", [["session", "list", "--json"], ["query", "[:a]", "--explain", "--edn"], ["watch"]])
@pytest.mark.parametrize(("answer", "why"), NO_PSI.values(), ids=NO_PSI.keys())
async def test_what_is_no_psi_service_ends_a_request_and_a_watch_alike(
    answer: bytes, why: str, line: list[str]
) -> None:
    async with answering(answer) as server:
        ended = await psi_tool(*line, "--url", server.url)
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(f"What answers at {server.url} is no psi service")
    assert "psi-tool serve --port " in ended.err
    assert ended.err.count("\n") == 1
    if line != ["watch"]:
        assert why in ended.err


async def test_an_error_of_the_real_service_is_told_as_its_own_in_edn_too(served: Served) -> None:
    ended = await psi_tool("session", "list", "--edn", "--url", f"{served.url}/nowhere")
    assert ended.code == 1
    assert "refused (404): " in ended.err


HANGING = {
    "a command": ["session", "list"],
    "a query": ["query", "[:a]"],
    "a plan": ["query", "[:a]", "--explain"],
    "a prompt that is not waited for": ["session", "submit", "x"],
    "a raw one": ['{"action": "session", "op": "submit", "message": "x", "wait": false}'],
    "a raw one that speaks of waiting": ['{"action": "session", "op": "submit", "message": ":wait"}'],
    "one in EDN": ['{:action "session" :op "submit" :message "please wait"}'],
}
WAITING = {
    "a command": ["session", "submit", "x", "--wait"],
    "a raw one": ['{"action": "session", "op": "submit", "message": "x", "wait": true}'],
    "one in EDN": ['{:action "session" :op "submit" :message "x" :wait true}'],
    "one in EDN with strings for keys": ['{"action" "session" "op" "submit" "message" "x" "wait" true}'],
}


@pytest.mark.parametrize("line", HANGING.values(), ids=HANGING.keys())
async def test_a_service_that_hangs_is_given_up_with_3(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    async with answering(b"", stays=True) as server:
        asked = read([*line, "--url", server.url])
        assert asked is not None
        assert await asyncio.to_thread(run, *asked, 0.2) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing came for 0.2 s; whether the request was carried out is not known" in said.err


@pytest.mark.parametrize("line", WAITING.values(), ids=WAITING.keys())
async def test_but_a_run_takes_as_long_as_it_takes(line: list[str]) -> None:
    async with answering(b"", stays=True) as server:
        asked = read([*line, "--url", server.url])
        assert asked is not None
        waiting = asyncio.create_task(asyncio.to_thread(run, *asked, 0.05))
        # Ten times as long as another request would be given.
        assert not (await asyncio.wait({waiting}, timeout=0.5))[0]
        server.hang_up()
        assert await waiting == 3


STRANGE: dict[str, dict[str, Any]] = {
    "no list": {"session-op": "list", "session": {}},
    "a list of something else": {"session-op": "list", "session": {"sessions": [1]}},
    "no session": {"session-op": "show", "session": {"session": "x"}},
    "no schedule": {"action": "scheduler", "scheduler-op": "create", "scheduler": {}},
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE.keys())
async def test_an_answer_that_no_psi_gives_is_told_in_a_terminal_too(answer: dict[str, Any]) -> None:
    told = {"action": "session", "overall-status": "ok", **answer}
    envelope = {f"psi-tool/{name}": value for name, value in told.items()}
    async with (
        answering(http(200, envelope)) as server,
        in_terminal("session", "list", "--url", server.url, env=environment(), columns=200) as terminal_,
    ):
        shown = await terminal_.ended()
    assert shown.code == 3
    assert (
        f"What answers at {server.url} is no psi service, or one of another version: its answer has no" in shown.plain
    )


async def test_a_broken_answer_ends_with_3_and_says_what_is_not_known() -> None:
    async with answering(b"") as server:
        ended = await psi_tool("session", "create", "--url", server.url)
    assert ended.code == 3
    assert "whether the request was carried out is not known" in ended.err


async def test_a_body_that_is_too_large_is_refused_by_the_real_service() -> None:
    async with serving(Settings(max_body=1024)) as served:
        ended = await psi_tool("-", env=env_of(served), stdin=b'{:action "' + b"x" * 4000 + b'"}')
    assert ended.code == 1
    assert "refused (413)" in ended.err


# -- signals and pipes


async def test_an_interrupt_ends_a_request_with_130_and_without_a_word(served: Served) -> None:
    session = await served.session()
    with served.psi.watch(session) as happening:
        process = await start("session", "submit", "/wait 60s", "--wait", env=env_of(served, session))
        async with asyncio.timeout(30):
            while (await anext(happening)).type != "run-started":
                pass
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")
    await ok(served, "session", "stop", session)


@pytest.mark.parametrize("line", [["session", "list"], ["--help"], ["schema"]])
async def test_a_reader_who_has_gone_is_no_error_worth_a_word(served: Served, line: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        *MODULE, *line,
        stdout=writing, stderr=asyncio.subprocess.PIPE, env=env_of(served),
    )  # fmt: skip
    os.close(writing)
    _, err = await process.communicate()
    assert (process.returncode, err) == (141, b"")


# -- a terminal


async def terminal(served: Served, *line: str, session: str | None = None, columns: int = 120, **more: str) -> Ended:
    async with in_terminal(*line, columns=columns, env=env_of(served, session, **more)) as shown:
        return await shown.ended()


async def test_a_terminal_gets_schedules_with_a_countdown(served: Served) -> None:
    session = await served.session()
    for delay, label in ((600_000, "build"), (7_200_000, "later")):
        line = ["--kind", "message", "--delay-ms", str(delay), "--message", "Check the build.", "--label", label]
        made = await terminal(served, "scheduler", "create", *line, session=session)
        assert made.code == 0
        assert "pending" in made.plain
    listed = await terminal(served, "scheduler", "list", session=session)
    head, first, second = listed.plain.splitlines()
    assert head.split() == ["schedule", "when", "status", "kind", "label", "message"]
    assert first.startswith("sch-")
    assert "in 9 min 5" in first or "in 10 min 00 s" in first
    assert "Check the build." in first
    assert "in 1 h 59 min" in second or "in 2 h 00 min" in second


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
async def test_ids_stay_whole_however_narrow_the_terminal_is(served: Served, columns: int) -> None:
    session = await served.session("A session with a long name " * 4)
    line = ["--kind", "message", "--delay-ms", "600000", "--message", "Check it. " * 15]
    made = (await ok(served, "scheduler", "create", *line, session=session))["psi-tool/scheduler"]["schedule"]
    sessions = (await terminal(served, "session", "list", columns=columns)).plain
    schedules = (await terminal(served, "scheduler", "list", session=session, columns=columns)).plain
    assert session in sessions
    assert made["schedule-id"] in schedules
    assert max(map(len, (sessions + schedules).splitlines())) <= columns


async def test_an_error_is_a_red_sentence_with_a_hint(served: Served) -> None:
    shown = await terminal(served, "scheduler", "list")
    assert shown.code == 1
    assert "\x1b[31m" in shown.out
    assert "requires invoking or explicit `session-id`" in shown.plain
    assert "--session ID or PSI_SESSION" in shown.plain
    assert "psi-tool/error" not in shown.plain


async def test_no_color_is_respected(served: Served) -> None:
    for line in (["scheduler", "list"], ["session", "list"], ["query", "[:psi.system/version]"]):
        shown = await terminal(served, *line, NO_COLOR="1")
        assert "\x1b[3" not in shown.out, shown.out


async def test_json_is_json_in_a_terminal_too(served: Served) -> None:
    shown = await terminal(served, "session", "list", "--json")
    assert json.loads(shown.plain)["psi-tool/session"]["session-count"] == 0


async def test_a_result_and_a_plan_are_laid_out(served: Served) -> None:
    session = await served.session()
    shown = await terminal(served, "query", "[:psi.scheduler/pending-count]", session=session)
    assert '"psi.scheduler/pending-count": 0' in shown.plain
    plan = await terminal(served, "query", "[:psi.scheduler/pending-count]", "--explain", session=session)
    assert plan.plain.startswith("known: :psi.agent-session/session-id\n1. psi.scheduler/session-pending-count")
    wrong = await terminal(served, "query", "[:psi.scheduler/pending-count", "--explain", session=session)
    assert "expected ]" in wrong.plain


async def test_what_others_wrote_does_not_reach_the_terminal_as_a_command(served: Served) -> None:
    session = await served.session("evil \x1b]0;title\x07 [red]name[/red]")
    shown = await terminal(served, "session", "show", session)
    assert "\x1b]" not in shown.out
    assert "\x07" not in shown.out
    assert "[red]name[/red]" in shown.plain


async def test_without_a_service_a_terminal_is_told_in_red() -> None:
    async with in_terminal("session", "list", "--url", "http://127.0.0.1:1", env=environment()) as terminal_:
        shown = await terminal_.ended()
    assert shown.code == 3
    assert "psi-tool serve" in shown.plain
    assert "\x1b[31m" in shown.out


# -- the service itself, by the same command


async def test_serve_and_a_first_request(tmp_path: Path) -> None:
    process = await start("serve", "--port", "0", "--data", str(tmp_path / "data"), env=environment())
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        url = line.split()[-1]
        assert url.startswith("http://127.0.0.1:")
        ended = await psi_tool("session", "create", "First", "--url", url)
        assert ended.code == 0
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == 0


async def test_tokens_are_made_listed_used_and_revoked(tmp_path: Path) -> None:
    env = environment(PSI_DATA=str(tmp_path))
    made = (await psi_tool("token", "create", "laptop", "--scope", "read", env=env)).json()
    alone = await psi_tool("token", "create", "--plain", "--data", str(tmp_path), env=environment())
    assert alone.out.startswith("psi_")
    listed = (await psi_tool("token", "list", env=env)).json()["tokens"]
    assert made["id"] in [each["id"] for each in listed]
    assert made["token"] not in json.dumps(listed)
    assert (await psi_tool("token", "revoke", made["id"], env=env)).code == 0
    assert (await psi_tool("token", "revoke", "tok-none", env=env)).code == 1
    assert (await psi_tool("token", "create", "--expires", "soon", env=env)).code == 2


async def test_a_token_is_sent_and_a_missing_one_is_asked_for(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        made = credentials.create_token(
            now=datetime.now(UTC), user="ann", name=None, scopes=read_scopes(["write"]), lasts=None
        )
        async with serving(Settings(auth=True), real_time=True, credentials=credentials) as served:
            without = await psi_tool("session", "create", "First", env=env_of(served))
            assert without.code == 1
            assert "PSI_TOKEN" in without.err
            with_it = await psi_tool("session", "create", "First", env=env_of(served, PSI_TOKEN=made.text))
            assert with_it.code == 0, with_it
            assert made.text not in with_it.out
