"""The service as a process: how it starts, what it says, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

import psi
from psi.faces.logs import LineFormatter
from psi.faces.server import Unservable, bind, prepare, welcome
from psi.settings import Settings
from tests.faces.serving import Connection

ROOT = Path(__file__).resolve().parents[2]
SERVE = ("-m", "tool.main", "serve", "--port", "0")

# Agents that no person would write, served by a program of its own.
STUBBORN = """
import asyncio, sys
from psi.faces.server import serve
from psi.settings import Settings

class Agent:
    async def run(self, turn):
        print("deaf", flush=True)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
            yield

sys.exit(serve(Settings(port=0, data=sys.argv[1]), agent=Agent()))
"""
BLOCKING = """
import sys
from psi.faces.server import serve
from psi.settings import Settings

class Agent:
    async def run(self, turn):
        print("blocking", flush=True)
        while True:
            pass
        yield

sys.exit(serve(Settings(port=0, data=sys.argv[1]), agent=Agent()))
"""


class Process:
    """A service in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""
        self.port = 0

    async def until(self, words: str) -> None:
        """Wait until it has said something."""
        assert self.process.stdout is not None
        while words not in self.said:
            line = await self.process.stdout.readline()
            assert line, f"ended after saying: {self.said}"
            self.said += line.decode()

    async def ready(self) -> None:
        await self.until("Ctrl-C stops it.")
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)\n", self.said)
        assert found is not None
        self.port = int(found[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port), self.host)
        try:
            yield connection
        finally:
            await connection.close()

    async def tool(self, request: Any, session: str | None = None) -> Any:
        async with self.connect() as connection:
            headers = {"psi-session": session} if session else {}
            return (await connection.request("POST", "/psi-tool", request, headers)).json()

    async def session(self) -> str:
        answer = await self.tool({"action": "session", "op": "create"})
        found: str = answer["psi-tool/session"]["session"]["session-id"]
        return found

    async def ended(self) -> tuple[int, str, str]:
        """Its exit code, and all that it has said on both channels."""
        out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, self.said + out.decode(), err.decode()

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """A signal, and what came of it within the five seconds that there are."""
        self.process.send_signal(number)
        async with asyncio.timeout(5):
            return await self.ended()


@asynccontextmanager
async def started(*arguments: str, ready: bool = True) -> AsyncIterator[Process]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PSI_")}
    pipe = asyncio.subprocess.PIPE
    found = Process(
        await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe
        )
    )
    try:
        async with asyncio.timeout(30):
            if ready:
                await found.ready()
            yield found
    finally:
        if found.process.returncode is None:
            found.process.kill()
            await found.process.communicate()


# -- beginning and end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_says_where_to_go_answers_there_and_stops_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with started(*SERVE, "--data", str(data)) as service:
        base = f"http://{service.host}"
        for line in (
            f"psi {psi.__version__} is listening on {base}",
            f"{base}/",
            f"{base}/graphql",
            f"ws://{service.host}/graphql",
            f"{base}/eql",
            f"--url {base} session create --name First",
            f"curl {base}/psi-tool -H 'Content-Type: application/json' -d '{{\"action\"",
            "Ctrl-C stops it.",
        ):
            assert line in service.said
        assert await service.session()
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        code, out, err = await service.stop(number)
    assert (code, out.splitlines()[-1]) == (0, "psi has stopped.")
    assert "Traceback" not in err


async def test_a_request_is_a_line_of_the_log_on_standard_error(tmp_path: Path) -> None:
    async with started(*SERVE, "--data", str(tmp_path)) as service:
        async with service.connect() as connection:
            await connection.request("GET", "/healthz?token=psi_secret")
        _, out, err = await service.stop()
    (line,) = err.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO psi\.access GET /healthz answered 200 in ", line)
    assert " method=GET path=/healthz status=200 " in line
    assert "secret" not in err + out


async def test_a_level_keeps_lines_out_of_the_log(tmp_path: Path) -> None:
    async with started(*SERVE, "--data", str(tmp_path), "--log-level", "warning") as service:
        await service.session()
        _, _, err = await service.stop()
    assert err == ""


async def test_a_running_turn_gets_its_closure_and_whoever_waits_hears_of_it(tmp_path: Path) -> None:
    async with started(*SERVE, "--data", str(tmp_path)) as service:
        session = await service.session()
        async with service.connect() as connection:
            said = '/say so far\n/tool psi-tool {"action": "session", "op": "create"}\n/wait 60s'
            body = {"action": "session", "op": "submit", "message": said, "wait": True}
            await connection.send("POST", "/psi-tool", body, {"psi-session": session})
            while (await service.tool({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] < 2:
                pass  # the second session tells that the text before it was said
            service.process.send_signal(signal.SIGTERM)
            run = (await connection.answer()).json()["psi-tool/session"]["run"]
        code, _, err = await service.ended()
    assert (code, run["state"]) == (0, "interrupted")
    assert "so far" in json.dumps(run)
    assert "Traceback" not in err


async def shown(service: Process, session: str) -> dict[str, Any]:
    answer = await service.tool({"action": "session", "op": "show"}, session)
    found: dict[str, Any] = answer["psi-tool/session"]["session"]
    return found


async def test_sockets_are_told_that_the_service_goes(tmp_path: Path) -> None:
    async with started(*SERVE, "--data", str(tmp_path)) as service:
        async with connect(f"ws://{service.host}/graphql", subprotocols=["graphql-transport-ws"]) as ws:  # type: ignore[list-item]
            await ws.send('{"type": "connection_init"}')
            assert json.loads(await ws.recv())["type"] == "connection_ack"
            service.process.send_signal(signal.SIGTERM)
            with suppress(ConnectionClosed):
                while await ws.recv():
                    pass
            assert ws.close_code == 1001
        code, _, err = await service.ended()
    assert code == 0
    assert "Traceback" not in err


async def test_clients_that_hang_do_not_keep_it(tmp_path: Path) -> None:
    async with (
        started(*SERVE, "--data", str(tmp_path)) as service,
        service.connect() as idle,
        service.connect() as uploading,
        service.connect() as halfway,
        service.connect(),
    ):
        await idle.request("GET", "/healthz")
        await uploading.send("POST", "/eql", b'{"query":', {"content-length": "1000"})
        halfway.writer.write(b"GET /healthz HT")
        await service.session()
        code, out, err = await service.stop()
    assert (code, out.splitlines()[-1]) == (0, "psi has stopped.")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(STUBBORN, id="swallows cancellation"),
        pytest.param(BLOCKING, id="blocks the loop"),
    ],
)
async def test_an_agent_that_does_not_listen_does_not_keep_it(program: str, tmp_path: Path) -> None:
    async with started("-c", program, str(tmp_path)) as service:
        session = await service.session()
        body = {"action": "session", "op": "submit", "message": "go"}
        if program is BLOCKING:
            async with service.connect() as connection:
                await connection.send("POST", "/psi-tool", body, {"psi-session": session})
                await service.until("blocking")
                code, _, err = await service.stop()
        else:
            await service.tool(body, session)
            await service.until("deaf")
            code, _, err = await service.stop()
    assert code == 0
    assert "something did not end in time and was left behind" in err
    assert "Traceback" not in err


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with started("-c", STUBBORN, str(tmp_path)) as service:
        session = await service.session()
        await service.tool({"action": "session", "op": "submit", "message": "go"}, session)
        service.process.send_signal(signal.SIGINT)
        await service.until("Stopping.")
        service.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(1):
            code, _, err = await service.ended()
    assert code == 130
    assert "Traceback" not in err


# -- what keeps it from starting


async def refused(*arguments: str) -> str:
    """The one sentence that it ends with."""
    async with started(*arguments, ready=False) as service:
        code, out, err = await service.ended()
    assert (code, out) == (1, "")
    (sentence,) = err.splitlines()
    return sentence


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        said = await refused("-m", "tool.main", "serve", "--port", str(port), "--data", str(tmp_path))
    assert said == (
        f"psi cannot start: port {port} on 127.0.0.1 is in use; stop what listens there, or choose another with --port "
        "(0 takes a free one)"
    )


async def test_a_data_folder_that_cannot_be_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    said = await refused(*SERVE, "--data", str(tmp_path / "file"))
    assert re.fullmatch(
        r"psi cannot start: the data folder \S+ cannot be written to: .*; choose another with --data", said
    )


def test_a_host_that_nobody_knows_is_said() -> None:
    with pytest.raises(Unservable, match=r"host 'nowhere\.invalid' is not known: .*; give an address of this machine"):
        bind("nowhere.invalid", 0)


def test_a_host_that_is_elsewhere_is_said() -> None:
    with pytest.raises(Unservable, match=r"host 192\.0\.2\.1 is not an address of this machine"):
        bind("192.0.2.1", 0)


def test_a_name_with_two_addresses_is_served_at_one() -> None:
    with bind("localhost", 0) as listening:
        assert listening.family == socket.AF_INET


def test_a_data_folder_is_created_for_its_owner_alone_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    folder = prepare(str(tmp_path / "a" / "b"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    prepare(str(shared))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    assert list(shared.iterdir()) == []


# -- what it says


def test_the_usual_address_needs_no_url() -> None:
    said = welcome(Settings(), "127.0.0.1", 8420)
    assert "psi-tool session create --name First" in said
    assert "--url" not in said
    assert "Authorization" not in said


@pytest.mark.parametrize(
    ("host", "url"), [("::1", "http://[::1]:1"), ("0.0.0.0", "http://127.0.0.1:1"), ("::", "http://[::1]:1")]
)
def test_an_address_is_one_that_can_be_gone_to(host: str, url: str) -> None:
    assert f"is listening on {url}\n" in welcome(Settings(), host, 1)


EVERYWHERE = "It listens on every address of this machine, so other machines reach it, too."
ANYBODY = "WARNING: it asks for no token; anybody on the network can use it, and do everything."


@pytest.mark.parametrize(
    ("host", "auth", "lines"),
    [
        ("127.0.0.1", False, [""]),
        ("::1", False, [""]),
        ("0.0.0.0", True, [EVERYWHERE, ""]),
        ("0.0.0.0", False, [EVERYWHERE, ANYBODY, ""]),
        ("::", False, [EVERYWHERE, ANYBODY, ""]),
        ("192.0.2.7", False, [ANYBODY, ""]),
        ("192.0.2.7", True, [""]),
    ],
)
def test_who_else_can_reach_it_stands_right_below(host: str, auth: bool, lines: list[str]) -> None:
    said = welcome(Settings(auth=auth), host, 1).split("\n")
    assert said[1 : 1 + len(lines)] == lines


def test_with_auth_it_says_how_to_get_a_token() -> None:
    said = welcome(Settings(auth=True, data="my data"), "127.0.0.1", 8420)
    assert "token create" in said
    assert "--data 'my data'" in said
    assert 'curl http://127.0.0.1:8420/psi-tool -H "Authorization: Bearer $PSI_TOKEN"' in said


# -- the log


def line(message: str, *arguments: object, error: BaseException | None = None, **fields: Any) -> str:
    trace = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("psi.x", logging.INFO, "", 1, message, arguments, trace)
    vars(record).update(created=1776862800.5, **fields)
    return LineFormatter().format(record)


def test_a_record_is_a_sentence_and_its_fields() -> None:
    said = line("%s was saved", "it", ms=1.25, user=None, path="/a b", empty="", tricky='x" y=1')
    assert said == (
        '2026-04-22T13:00:00.500Z INFO psi.x it was saved ms=1.25 user=None path="/a b" empty="" tricky="x\\" y=1"'
    )


def test_a_record_is_one_line_whatever_it_holds() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        said = line("first\nsecond \x1b[31mred", error=error, more="a\nb\u2028c")
    assert len(said.splitlines()) == 1
    assert "\x1b" not in said
    assert 'exception="Traceback (most recent call last):\\n' in said
    assert "first\\nsecond" in said
