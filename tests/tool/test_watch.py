"""Following a service: the real one, and a small one of our own that goes away, comes back and closes as it is told."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from psi.core.identity import read_scopes
from psi.edn import loads
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import serving
from tests.tool.cli import MODULE, answering, environment, http, in_terminal, psi_tool, start, time_zone
from tool.board import Board, sentence
from tool.client import address
from tool.watch import Lines, Watch

PROTOCOL = Subprotocol("graphql-transport-ws")


class Watching:
    """A ``psi-tool watch`` with pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self) -> dict[str, Any]:
        """The next event."""
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            text = await self._process.stdout.readline()
        assert text, (await self.ended())[2]
        found: dict[str, Any] = json.loads(text)
        return found

    async def begun(self, make: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        """The first line, with something made again and again until there is one: it sees nothing from before it."""
        first = asyncio.create_task(self.line())
        while not first.done():
            await make()
            await asyncio.wait({first}, timeout=0.05)
        return first.result()

    async def interrupt(self) -> tuple[int | None, str, str]:
        self._process.send_signal(signal.SIGINT)
        return await self.ended()

    async def ended(self) -> tuple[int | None, str, str]:
        async with asyncio.timeout(30):
            out, err = await self._process.communicate()
        return self._process.returncode, out.decode(), err.decode()


@asynccontextmanager
async def watching(*line: str, url: str, **variables: str) -> AsyncIterator[Watching]:
    process = await start("watch", *line, env=environment(PSI_URL=url, **variables))
    try:
        yield Watching(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


# -- the real service


async def test_a_pipe_gets_one_json_line_for_each_event() -> None:
    async with serving(real_time=True) as served, watching(url=served.url) as watch:
        first = await watch.begun(served.session)
        assert first["type"] == "session-created"
        session = await served.session("Seen")
        while first["data"]["session-name"] != "Seen":
            first = await watch.line()
        assert first["session-id"] == session
        await served.tool({"action": "session", "op": "submit", "message": "/say Hello.", "wait": True}, session)
        seen = [await watch.line() for _ in range(6)]
        assert [each["seq"] for each in seen] == list(range(first["seq"] + 1, first["seq"] + 7))
        assert [each["type"] for each in seen[:3]] == ["session-changed", "run-started", "run-event"]
        finished = seen[-1]
        assert (finished["type"], finished["data"]["answer"]) == ("run-finished", "Hello.")
        assert set(finished) == {"seq", "type", "session-id", "at", "data"}
        code, _, err = await watch.interrupt()
        assert (code, err) == (0, "")


async def test_one_session_is_watched_alone() -> None:
    async with serving(real_time=True) as served:
        mine, other = await served.session("mine"), await served.session("other")

        async def both() -> None:
            for session in (other, mine):
                await served.tool({"action": "session", "op": "submit", "message": "x", "wait": True}, session)

        async with watching("--session", mine, url=served.url) as watch:
            await watch.begun(both)
            await both()
            seen = [await watch.line() for _ in range(8)]
            assert {each["session-id"] for each in seen} == {mine}


async def test_watching_a_session_ends_well_when_the_session_is_closed() -> None:
    async with serving(real_time=True) as served:
        mine = await served.session("mine")

        async def work() -> None:
            await served.tool({"action": "session", "op": "submit", "message": "x", "wait": True}, mine)

        async with watching("--session", mine, url=served.url) as watch:
            await watch.begun(work)
            await served.tool({"action": "session", "op": "close"}, mine)
            code, out, err = await watch.ended()
        assert (code, err) == (0, f"Session {mine} was closed.\n")
        assert json.loads(out.splitlines()[-1])["type"] == "session-closed"


async def test_a_session_that_is_not_there_cannot_be_watched() -> None:
    async with serving(real_time=True) as served, watching("--session", "ses-none", url=served.url) as watch:
        code, out, err = await watch.ended()
    assert (code, out) == (1, "")
    assert "session not found: ses-none" in err
    assert "unset" not in err


async def test_one_from_the_environment_is_told_as_such_and_all_can_be_watched_beside_it() -> None:
    async with serving(real_time=True) as served:
        async with watching(url=served.url, PSI_SESSION="ses-none") as watch:
            code, _, err = await watch.ended()
            assert code == 1
            assert "`unset PSI_SESSION`" in err
        async with watching("--all", url=served.url, PSI_SESSION="ses-none") as watch:
            assert (await watch.begun(served.session))["type"] == "session-created"


async def test_edn_is_one_line_for_each_event_too() -> None:
    event = {**told(11)["data"]["sessionEvents"], "data": {"phase": "idle", "no name": [1, None]}}
    turn = ("morning", 10, [{"data": {"sessionEvents": event}, "extensions": {"missed": 2}}], None)
    async with small(turn) as service:
        process = await start("watch", "--edn", env=environment(PSI_URL=service.url))
        assert process.stdout is not None
        async with asyncio.timeout(30):
            lines = [(await process.stdout.readline()).decode() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert loads(lines[0])["missed"] == 2
    assert loads(lines[1]) == {
        "seq": 11,
        "type": "session-changed",
        "session-id": "ses-1",
        "at": "2026-01-01T00:00:00Z",
        "data": {"phase": "idle", "no name": [1, None]},
    }
    assert lines[1].startswith("{:seq 11 ")
    assert '"no name" [1 nil]' in lines[1]


async def test_a_token_opens_what_needs_one_and_shows_its_users_events_alone(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:

        def token(user: str) -> str:
            scopes = read_scopes(["write"])
            return credentials.create_token(now=datetime.now(UTC), user=user, name=None, scopes=scopes, lasts=None).text

        ann, bob = token("ann"), token("bob")
        async with serving(Settings(auth=True), real_time=True, credentials=credentials) as served:

            async def create(name: str, owner: str) -> None:
                body = {"action": "session", "op": "create", "name": name}
                await served.post("/psi-tool", body, authorization=f"Bearer {owner}")

            async with watching(url=served.url) as watch:
                code, _, err = await watch.ended()
                assert code == 1
                assert "PSI_TOKEN" in err
            async with watching(url=served.url, PSI_TOKEN=ann) as watch:

                async def both() -> None:
                    await create("bob's", bob)
                    await create("ann's", ann)

                seen = [await watch.begun(both)]
                await both()
                seen += [await watch.line()]
                assert {each["data"]["session-name"] for each in seen} == {"ann's"}


async def test_it_comes_back_after_the_service_was_away() -> None:
    async with serving(real_time=True) as served:
        process = await start("watch", env=environment(PSI_URL=served.url))
        watch = Watching(process)
        await watch.begun(served.session)
    assert process.stderr is not None
    async with asyncio.timeout(30):
        said = (await process.stderr.readline()).decode()
    assert "trying again" in said
    assert (await watch.interrupt())[0] == 0


async def test_a_terminal_shows_sessions_countdowns_and_events() -> None:
    async with serving(real_time=True) as served:
        session = await served.session("Builds")
        request = {
            "action": "scheduler",
            "op": "create",
            "kind": "message",
            "delay-ms": 600_000,
            "message": "Check [it].",
        }
        await served.tool(request, session)
        async with in_terminal("watch", env=environment(PSI_URL=served.url)) as terminal:
            await terminal.shows("Check [it].")
            shown = await terminal.shows("in 9 min 5")
            assert session in shown
            assert "Builds" in shown
            assert "idle" in shown
            await served.tool({"action": "session", "op": "submit", "message": "/say Hello out there."}, session)
            await terminal.shows("says: Hello out there.")
            await terminal.shows("run ended, ok: Hello out there.")
            terminal.process.send_signal(signal.SIGINT)
            ended = await terminal.ended()
    assert ended.code == 0
    assert "Traceback" not in ended.plain
    assert ended.out.rindex("\x1b[?25h") > ended.out.rindex("\x1b[?25l")  # the cursor is given back
    assert ended.out.rindex("\x1b[?1049l") > ended.out.rindex("\x1b[?1049h")  # and the screen that was there before


async def test_a_terminal_gets_its_screen_back_however_it_ends() -> None:
    async with serving(real_time=True) as served, in_terminal("watch", env=environment(PSI_URL=served.url)) as terminal:
        await terminal.shows("There is no session.")
        terminal.process.send_signal(signal.SIGTERM)
        ended = await terminal.ended()
    assert ended.code == 143
    assert ended.out.rindex("\x1b[?1049l") > ended.out.rindex("\x1b[?1049h")


async def test_a_reader_who_has_gone_ends_it_without_a_word() -> None:
    async with serving(real_time=True) as served:
        reading, writing = os.pipe()
        process = await asyncio.create_subprocess_exec(
            *MODULE, "watch", stdout=writing, stderr=asyncio.subprocess.PIPE, env=environment(PSI_URL=served.url)
        )
        os.close(writing)
        os.close(reading)
        ended = asyncio.create_task(process.communicate())
        try:
            async with asyncio.timeout(30):
                while not ended.done():
                    await served.session()
                    await asyncio.wait({ended}, timeout=0.05)
        finally:
            if process.returncode is None:
                process.kill()
            await ended
    assert (process.returncode, ended.result()[1]) == (141, b"")


# -- a service of our own


@dataclass
class Small:
    """Just enough of the protocol. Each connection is answered by the next of ``turns``: events to tell, then a code to
    close with; None keeps it open."""

    turns: list[tuple[str, int | None, list[dict[str, Any]], int | None]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    pongs: int = 0
    url: str = ""
    headers: list[str | None] = field(default_factory=list)
    closed: asyncio.Queue[int | None] = field(default_factory=asyncio.Queue)

    async def __call__(self, connection: ServerConnection) -> None:
        started, newest, events, code = self.turns.pop(0)
        assert connection.request is not None
        self.headers.append(connection.request.headers.get("Authorization"))
        with suppress(ConnectionClosed):
            await self._talk(connection, started, newest, events, code)
        self.closed.put_nowait(connection.close_code)

    async def _talk(
        self,
        connection: ServerConnection,
        started: str,
        newest: int | None,
        events: list[dict[str, Any]],
        code: int | None,
    ) -> None:
        async for text in connection:
            message = json.loads(text)
            match message["type"]:
                case "connection_init":
                    await connection.send(json.dumps({"type": "ping"}))
                    await connection.send(json.dumps({"type": "connection_ack"}))
                case "pong":
                    self.pongs += 1
                case "subscribe" if message["id"] == "stands":
                    counters = {} if newest is None else {"events": newest}
                    stands = {"psi.system/started-at": started, "psi.system/counters": counters}
                    payload = {"data": {"eql": stands}}
                    await connection.send(json.dumps({"id": "stands", "type": "next", "payload": payload}))
                    await connection.send(json.dumps({"id": "stands", "type": "complete"}))
                case "subscribe":
                    self.asked.append(message["payload"]["variables"])
                    for event in events:
                        await connection.send(json.dumps({"id": "events", "type": "next", "payload": event}))
                    if code is not None:
                        await connection.close(code, "as told")


def told(seq: int, missed: int = 0, kind: str = "session-changed") -> dict[str, Any]:
    event = {"seq": seq, "type": kind, "sessionId": "ses-1", "at": "2026-01-01T00:00:00Z", "data": {}}
    return {"data": {"sessionEvents": event}, **({"extensions": {"missed": missed}} if missed else {})}


@asynccontextmanager
async def small(*turns: tuple[str, int | None, list[dict[str, Any]], int | None]) -> AsyncIterator[Small]:
    service = Small(list(turns))
    async with serve(service, "127.0.0.1", 0, subprotocols=[PROTOCOL]) as server:
        service.url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        yield service


async def test_it_comes_back_with_the_number_of_the_last_event() -> None:
    turns = [("morning", 10, [told(11), told(12)], 1001), ("morning", 14, [told(13), told(14)], None)]
    async with small(*turns) as service, watching("--token", "psi_x", url=service.url) as watch:
        assert [(await watch.line())["seq"] for _ in range(4)] == [11, 12, 13, 14]
        assert service.asked == [{"session": None, "after": 10}, {"session": None, "after": 12}]
        assert service.pongs == 2
        assert service.headers == ["Bearer psi_x"] * 2
        code, _, err = await watch.interrupt()
    assert code == 0
    assert "trying again" in err


async def test_whoever_interrupts_it_has_ended_it_well() -> None:
    async with small(("morning", 10, [told(11)], None)) as service:
        async with watching(url=service.url) as watch:
            assert (await watch.line())["seq"] == 11
            assert (await watch.interrupt())[0] == 0
        async with asyncio.timeout(10):
            assert await service.closed.get() == 1000


async def test_a_service_that_does_not_count_its_events_is_followed_from_now_on() -> None:
    turns = [("morning", None, [told(11)], 1001), ("morning", None, [told(12)], None)]
    async with small(*turns) as service, watching(url=service.url) as watch:
        assert [(await watch.line())["seq"] for _ in range(2)] == [11, 12]
        assert [each["after"] for each in service.asked] == [None, 11]


async def test_and_says_what_it_cannot_know_when_it_comes_back_before_the_first_event() -> None:
    turns = [("morning", None, [], 1001), ("morning", None, [told(12)], None)]
    async with small(*turns) as service, watching(url=service.url) as watch:
        gap = await watch.line()
        assert (gap["type"], gap["missed"]) == ("gap", None)
        assert (await watch.line())["seq"] == 12


async def test_what_was_missed_is_told() -> None:
    turn = ("morning", 10, [told(11), told(40, missed=28)], None)
    async with small(turn) as service, watching(url=service.url) as watch:
        assert (await watch.line())["seq"] == 11
        gap = await watch.line()
        assert (gap["type"], gap["missed"]) == ("gap", 28)
        assert (await watch.line())["seq"] == 40


async def test_one_that_is_missing_may_be_many() -> None:
    async with small(("morning", 10, [told(12, missed=1)], None)) as service, watching(url=service.url) as watch:
        assert (await watch.line())["missed"] is None
        assert (await watch.line())["seq"] == 12


async def test_a_gap_that_no_event_could_carry_is_told_once_and_is_no_event() -> None:
    turn = ("morning", 10, [told(12, missed=1, kind="gap"), told(13)], None)
    async with small(turn) as service, watching(url=service.url) as watch:
        gap = await watch.line()
        assert (gap["type"], gap["missed"], "seq" in gap) == ("gap", None, False)
        assert (await watch.line())["seq"] == 13


async def test_the_real_service_started_anew_is_one_gap_of_unknown_size(tmp_path: Path) -> None:
    async with serving(real_time=True) as served:
        port = served.url.rpartition(":")[2]
        process = await start("watch", env=environment(PSI_URL=served.url))
        watch = Watching(process)
        await watch.begun(served.session)
    service = await start("serve", "--port", port, "--data", str(tmp_path), env=environment())
    try:
        seen = [await watch.begun(lambda: psi_tool("session", "create", "New", "--url", f"http://127.0.0.1:{port}"))]
        while seen[-1]["type"] != "session-created" or seen[-1]["data"]["session-name"] != "New":
            seen.append(await watch.line())
        gaps = [each for each in seen if each["type"] == "gap"]
        assert gaps == [{"type": "gap", "reason": "the service was started anew", "missed": None}]
    finally:
        await watch.interrupt()
        service.terminate()
        await service.communicate()


async def test_a_dumb_terminal_gets_a_line_for_each_event() -> None:
    turn = ("morning", 10, [told(11), told(40, missed=28)], None)
    async with (
        small(turn) as service,
        in_terminal("watch", env=environment(PSI_URL=service.url, TERM="dumb", TZ="UTC")) as terminal,
    ):
        await terminal.shows("could be told …\n00:00:00 ses-1 session is None\n")
        terminal.process.send_signal(signal.SIGINT)
        ended = await terminal.ended()
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert ended.plain.splitlines()[:4] == [
        f"psi at {service.url}: events as they happen; Ctrl-C ends it",
        "00:00:00 ses-1 session is None",
        "… 28 events are missing: more happened than could be told …",
        "00:00:00 ses-1 session is None",
    ]


async def test_a_service_that_was_started_anew_is_told_and_followed_from_its_beginning() -> None:
    # From 0 on it does not have everything, since its numbers begin with its start; that is no gap of its own.
    turns = [("morning", 500, [told(501)], 1001), ("evening", 2, [told(1, missed=1), told(2)], None)]
    async with small(*turns) as service, watching(url=service.url) as watch:
        assert (await watch.line())["seq"] == 501
        gap = await watch.line()
        assert gap == {"type": "gap", "reason": "the service was started anew", "missed": None}
        assert [(await watch.line())["seq"] for _ in range(2)] == [1, 2]
        assert service.asked[-1] == {"session": None, "after": 0}


CLOSED = {4401: "wants a token", 4403: "wants a token", 4400: "same version", 4406: "does not speak"}


@pytest.mark.parametrize(("code", "said"), CLOSED.items())
async def test_a_close_for_good_ends_it_with_1_and_a_sentence(code: int, said: str) -> None:
    async with small(("morning", 1, [], code)) as service, watching(url=service.url) as watch:
        ended, out, err = await watch.ended()
    assert (ended, out) == (1, "")
    assert said in err
    assert service.url in err


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS])
async def test_a_refused_handshake_ends_it_with_1_and_a_sentence(status: HTTPStatus) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(status, '{"error": {"message": "no entry"}}')

    async def never(connection: ServerConnection) -> None:
        raise AssertionError("nobody gets here")

    async with serve(never, "127.0.0.1", 0, process_request=refuse) as server:
        url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        ended = await psi_tool("watch", "--url", url)
    assert ended.code == 1
    assert f"({status.value}): no entry." in ended.err


async def test_another_subprotocol_is_not_ours() -> None:
    async def silent(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with serve(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        ended = await psi_tool("watch", "--url", url)
    assert ended.code == 3
    assert "does not speak graphql-transport-ws" in ended.err


async def test_one_that_speaks_no_tls_is_not_ours_either() -> None:
    async with answering(http(400), reads=False) as server:
        ended = await psi_tool("watch", "--url", server.url.replace("http", "https"))
    assert ended.code == 3
    assert f"so try {server.url}" in ended.err


MESSAGES = {
    "no JSON": "hello",
    "no map": "[1]",
    "a strange answer": json.dumps({"type": "next", "payload": 5}),
    "much ado": "[" * 100_000,
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
async def test_a_socket_that_talks_of_something_else_is_left(message: str) -> None:
    async def strange(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(json.dumps({"type": "connection_ack"}))
        await connection.send(message)
        await connection.wait_closed()

    async with serve(strange, "127.0.0.1", 0, subprotocols=[PROTOCOL]) as server:
        url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        ended = await psi_tool("watch", "--url", url)
    assert ended.code == 3
    assert f"What answers at {url} is no psi service" in ended.err
    assert "Traceback" not in ended.err


async def test_so_is_one_that_closes_before_it_has_said_anything() -> None:
    async def closes(connection: ServerConnection) -> None:
        await connection.recv()

    async with serve(closes, "127.0.0.1", 0, subprotocols=[PROTOCOL]) as server:
        url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        ended = await psi_tool("watch", "--url", url)
    assert ended.code == 3
    assert f"What answers at {url} is no psi service, or one that has stopped" in ended.err


# The library would rather close a connection itself, and would call every end an error then.
@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
async def test_a_service_that_hangs_is_given_up_whatever_it_has_said() -> None:
    async def hangs(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async with answering(b"", stays=True) as silent, serve(hangs, "127.0.0.1", 0, subprotocols=[PROTOCOL]) as server:
        shaken = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        for url in (silent.url, shaken):
            watch = Watch(address(url), None, None, Lines(), patience=0.3)
            said, code = await asyncio.to_thread(watch.run)
            assert code == 3
            assert said.startswith(f"What answers at {url} is no psi service, or one that has stopped: no whole answer")


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
async def test_a_place_that_takes_no_connection_is_told_as_nobody() -> None:
    with socket.socket() as listening, ExitStack() as callers:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):  # whoever comes behind these is not even refused
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        said, code = await asyncio.to_thread(Watch(address(url), None, None, Lines(), patience=0.3).run)
    assert code == 3
    assert said.startswith(f"No psi service is reachable at {url}: no answer within 0.3 s.")


async def test_without_a_service_there_is_nothing_to_watch() -> None:
    ended = await psi_tool("watch", "--url", "http://127.0.0.1:1")
    assert ended.code == 3
    assert "psi-tool serve" in ended.err


# -- the board


NOW = datetime(2026, 4, 22, 12, 50, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _in_utc() -> Iterator[None]:
    with time_zone("UTC"):
        yield


def board(width: int = 120, height: int = 30, only: str | None = None, note: str = "") -> tuple[Board, Console]:
    console = Console(file=io.StringIO(), width=width, height=height, markup=False, highlight=False, color_system=None)
    return Board(address("http://127.0.0.1:8420"), only, note=note, console=console, now=lambda: NOW), console


def picture(found: Board, console: Console) -> list[str]:
    with console.capture() as captured:
        console.print(found.picture())
    return [line.rstrip() for line in captured.get().splitlines()]


def session(name: str, phase: str = "IDLE") -> dict[str, Any]:
    return {"sessionId": f"ses-{name}", "sessionDisplayName": name, "phase": phase, "updated": "2026-04-22T12:49:00Z"}


def test_the_board_has_sessions_schedules_and_events() -> None:
    found, console = board()
    found.answer("sessions", [session("quiet"), session("busy", "STREAMING")])
    later = {
        "scheduleId": "sch-2",
        "status": "PENDING",
        "kind": "MESSAGE",
        "message": "b",
        "fireAt": "2026-04-22T13:00:00Z",
    }
    sooner = {**later, "scheduleId": "sch-1", "fireAt": "2026-04-22T12:50:05Z", "message": "two\nlines"}
    found.answer("schedules", [later, sooner])
    found.state("")
    shown = picture(found, console)
    assert shown[0] == "psi at http://127.0.0.1:8420"
    assert shown[2].startswith("ses-busy")
    assert shown[3].startswith("ses-quiet")
    assert [line.split()[0] for line in shown[5:7]] == ["sch-1", "sch-2"]
    assert "in 5 s" in shown[5]
    assert "two ↵ lines" in shown[5]
    assert shown[-1] == "Nothing has happened yet."


def test_the_text_of_a_run_grows_in_one_line() -> None:
    found, console = board()
    for delta in ("Hello", " out", " there."):
        data = {"run_id": "run-1", "seq": 1, "type": "stream_delta", "delta": delta}
        found.event({"seq": 1, "type": "run-event", "sessionId": "ses-1", "at": "2026-04-22T12:50:00Z", "data": data})
    assert picture(found, console)[-1] == "12:50:00 ses-1 says: Hello out there."


def says(text: str) -> dict[str, Any]:
    data = {"run_id": "run-1", "seq": 1, "type": "stream_delta", "delta": text}
    return {"seq": 1, "type": "run-event", "sessionId": "ses-long", "at": "2026-04-22T12:50:00.123Z", "data": data}


def test_an_event_is_told_by_the_clock_on_the_wall() -> None:
    found, console = board()
    with time_zone("CET-1"):
        found.event(says("Hello"))
        assert picture(found, console)[-1] == "13:50:00 ses-long says: Hello"


EVENTS = {
    50: "12:50:00 a very lo… says: …longer than the line is",
    40: "12:50:00 a very … says: …han the line is",
    200: "12:50:00 a very long nam… says: Hello out there, this is longer than the line is",
}


@pytest.mark.parametrize(("width", "line"), EVENTS.items())
def test_what_happened_is_seen_however_long_the_name_is(width: int, line: str) -> None:
    found, console = board(width)
    found.answer("sessions", [{**session("long"), "sessionDisplayName": "a very long name of a session"}])
    found.event(says("Hello out there, this is longer than the line is"))
    assert picture(found, console)[-1] == line


def test_where_one_session_is_watched_its_name_is_not_told_again_and_again() -> None:
    found, console = board(only="ses-long", note="from PSI_SESSION")
    found.answer("sessions", session("long"))
    found.event(says("Hello"))
    shown = picture(found, console)
    assert shown[-1] == "12:50:00 says: Hello"
    assert "session ses-long (from PSI_SESSION)" in shown[0]


def test_wide_characters_count_twice() -> None:
    found, console = board(40, only="ses-long")
    found.event(says("漢" * 100))
    (line,) = (each for each in picture(found, console) if "says" in each)
    assert cell_len(line) <= 40


GAPS = {7: "7 events are missing: more", 1: "1 event is missing: more", None: "more"}


@pytest.mark.parametrize(("missed", "words"), GAPS.items())
def test_a_gap_is_seen(missed: int | None, words: str) -> None:
    found, console = board()
    found.gap("more happened than could be told", missed)
    assert picture(found, console)[-1] == f"… {words} happened than could be told …"


@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 24), (200, 60)])
def test_the_board_fits_the_terminal(width: int, height: int) -> None:
    found, console = board(width, height)
    found.answer("sessions", [session(f"number {number}") for number in range(50)])
    at = (NOW + timedelta(minutes=5)).isoformat()
    plan = {"scheduleId": "sch-" + "0" * 36, "status": "PENDING", "kind": "MESSAGE", "message": "x" * 200, "fireAt": at}
    found.answer("schedules", [plan] * 50)
    for number in range(300):
        data = {"session-name": "x" * 300, "phase": "idle"}
        found.event(
            {"seq": number, "type": "session-changed", "sessionId": None, "at": "2026-04-22T12:50:00Z", "data": data}
        )
    shown = picture(found, console)
    assert max(map(len, shown)) <= width
    assert len(shown) < height
    assert any("of 50" in line for line in shown)


PLAN = {"scheduleId": "sch-" + "0" * 36, "status": "PENDING", "kind": "MESSAGE", "fireAt": "2026-04-22T12:55:00Z"}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_each_schedule_has_one_line_and_the_rest_is_counted(width: int) -> None:
    found, console = board(width, 24)
    found.answer("sessions", [session("a name " * 30)])
    found.answer("schedules", [{**PLAN, "message": "Check it. " * 20, "label": "build\nand test " * 9}] * 50)
    shown = picture(found, console)
    (above,) = (place for place, line in enumerate(shown) if line.startswith("scheduled"))
    (below,) = (place for place, line in enumerate(shown) if line.startswith("events"))
    each = shown[above + 1 : below]
    assert len(each) == 12
    assert shown[above].startswith("scheduled: 12 of 50, 38 more")
    assert all("in 5 min 00 s" in line and line.endswith("…") and "build" in line for line in each)
    assert all(PLAN["scheduleId"] in line for line in each) or width == 40
    assert above == 3  # the session has one, too


def test_a_queued_schedule_says_so_in_a_word_where_there_is_little_room() -> None:
    found, console = board(80)
    found.answer("schedules", [{**PLAN, "status": "QUEUED", "message": "Check it."}])
    assert f"{PLAN['scheduleId']}  queued  Check it." in picture(found, console)


def test_what_others_wrote_is_shown_on_the_board_and_not_obeyed() -> None:
    found, console = board()
    found.answer("sessions", [session("a\u202eb")])
    found.answer("schedules", [{**PLAN, "message": "c\u2066d", "label": "e\x1bf"}])
    found.event({"seq": 1, "type": "session-\u200fchanged", "sessionId": "ses-\u061c", "at": "\u202e" * 19})
    shown = "\n".join(picture(found, console))
    assert not {"\u202e", "\u2066", "\x1b", "\u200f", "\u061c"} & set(shown)


SENTENCES = {
    "schedule delivered: build": ("schedule-changed", {"status": "delivered", "label": "build", "message": "x"}),
    "schedule being delivered: x": (
        "schedule-changed",
        {"status": "pending", "delivery-phase": "prompt-submit", "message": "x"},
    ),
    "schedule failed: x": (
        "schedule-changed",
        {"status": "failed", "delivery-phase": "prompt-submit", "message": "x"},
    ),
    "session created": ("session-created", {}),
    "session is idle": ("session-changed", {"phase": "idle"}),
    "run started (scheduled)": ("run-started", {"source": "scheduled"}),
    "run ended, stopped: half": ("run-finished", {"state": "stopped", "answer": "half"}),
    "calls psi-tool": ("run-event", {"type": "tool_started", "tool": "psi-tool"}),
    "psi-tool failed: no": ("run-event", {"type": "tool_call", "tool": "psi-tool", "success": False, "result": "no"}),
    "planning status: A": ("run-event", {"type": "planning_status", "label": "A"}),
    "something new": ("something-new", {"a": 1}),
    "odd": ("odd", None),
}


@pytest.mark.parametrize(("words", "event"), SENTENCES.items(), ids=SENTENCES.keys())
def test_an_event_is_told_in_a_few_words(words: str, event: tuple[str, Any]) -> None:
    assert sentence({"type": event[0], "data": event[1]}) == words
