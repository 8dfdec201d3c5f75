"""The same frames as server-sent events, as they stand on the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from psi.engine.clock import settle
from psi.faces.streams.stream import PATIENCE
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Connection, Served, serving
from tests.faces.streams.talking import Torrent, talk

_PATIENCE = 5


class Events:
    """Reads an answer that never ends, event by event."""

    def __init__(self, connection: Connection, headers: dict[str, str]) -> None:
        self._connection = connection
        self._rest = ""
        self.headers = headers
        self.last_id: str | None = None

    async def next(self) -> dict[str, Any]:
        """The next event's data. Its name and its id have to fit."""
        async with asyncio.timeout(_PATIENCE):
            while True:
                block = await self.block()
                fields = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
                named = {name: value for name, _, value in fields}
                if "data" in named:
                    break
        data: dict[str, Any] = json.loads(named["data"])
        assert named["event"] == ("run_error" if data["type"] == "error" else data["type"])
        if "seq" in data:
            self.last_id = named["id"]
            assert self.last_id == f"{data['run_id']}:{data['seq']}"
        else:
            assert "id" not in named  # so that a browser comes back with the last place in a run
        return data

    async def until(self, kind: str) -> list[dict[str, Any]]:
        found = [await self.next()]
        while found[-1]["type"] != kind:
            found.append(await self.next())
        return found

    async def block(self) -> str:
        while "\n\n" not in self._rest:
            self._rest += (await self._chunk()).decode()
        block, _, self._rest = self._rest.partition("\n\n")
        return block

    async def _chunk(self) -> bytes:
        reader = self._connection.reader
        size = int((await reader.readline()).strip() or b"0", 16)
        if not size:
            raise EOFError
        found = await reader.readexactly(size)
        await reader.readline()
        return found

    def pause(self) -> None:
        """Read nothing from here on."""
        self._connection.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's can

    def resume(self) -> None:
        self._connection.writer.transport.resume_reading()  # type: ignore[attr-defined]

    async def until_cut(self) -> list[dict[str, Any]]:
        """All that comes before the connection breaks."""
        found = []
        with suppress(OSError, EOFError):
            while True:
                found.append(await self.next())
        return found

    async def has_ended(self) -> bool:
        with pytest.raises(EOFError):
            await self.until("nothing of this type")
        return True


@asynccontextmanager
async def following(served: Served, session: str, query: str = "", **headers: str) -> AsyncIterator[Events]:
    async with served.connect() as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await connection.send("GET", f"/sessions/{session}/events{query}", headers={**served.headers, **named})
        head = (await connection.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        assert head[0] == "HTTP/1.1 200 OK"
        pairs = (line.partition(": ") for line in head[1:] if line)
        yield Events(connection, {name.lower(): value for name, _, value in pairs})


async def submit(served: Served, session: str, content: str) -> str:
    answer = await served.post(f"/sessions/{session}/messages", {"content": content})
    found: str = answer.json()["run_id"]
    return found


async def test_events_carry_the_frames_of_the_socket() -> None:
    async with serving() as served:
        session = await served.session()
        async with following(served, session) as events, talk(served, session) as socket:
            assert events.headers["content-type"].startswith("text/event-stream")
            assert events.headers["cache-control"] == "no-store"
            assert await events.next() == await socket.next() == {"type": "session_sync"}
            await submit(served, session, "/think so\n/say one\n/say two")
            assert await events.until("session_sync") == await socket.until("session_sync")


async def test_last_event_id_resumes_behind_any_frame() -> None:
    async with serving() as served:
        session = await served.session()
        run = await submit(served, session, "/say a b c d\n/wait 10s\n/say e")
        async with following(served, session) as whole:
            frames = await whole.until("replay_end")
            told = [frame for frame in frames if "seq" in frame]
            assert [frame["seq"] for frame in told] == [1, 2, 3, 4, 5]
            for seq in range(1, 6):
                end = {"type": "replay_end"}
                expected = [{"type": "replay_start", "count": 5 - seq}, *told[seq:], end]
                async with following(served, session, last_event_id=f"{run}:{seq}") as one:
                    assert await one.until("replay_end") == expected
                async with following(served, session, f"?run_id={run}&after={seq}") as one:
                    assert await one.until("replay_end") == expected
            async with following(served, session, last_event_id=whole.last_id or "") as last:
                await last.until("replay_end")
                await served.clock.advance(11)
                rest = await whole.until("session_sync")
                assert await last.until("session_sync") == rest
                assert [frame["type"] for frame in rest] == ["stream_delta", "stream_end", "session_sync"]
        async with following(served, session, last_event_id=f"{run}:3") as late:
            assert await late.next() == {"type": "session_sync"}


FROM_THE_BEGINNING = ["stream_start", "replay_start", "stream_delta", "replay_end"]


@pytest.mark.parametrize(
    ("query", "header"), [("", ""), ("", "run-gone:3"), ("", "x:0"), ("?run_id=run-gone&after=3", ""), ("", "a:b:3")]
)
async def test_whoever_has_seen_nothing_or_another_run_gets_everything(query: str, header: str) -> None:
    async with serving() as served:
        session = await served.session()
        await submit(served, session, "/say a\n/wait 10s")
        async with following(served, session, query, last_event_id=header) as one:
            assert [frame["type"] for frame in await one.until("replay_end")] == FROM_THE_BEGINNING


async def test_what_a_browser_sends_by_itself_goes_before_the_address_that_it_repeats() -> None:
    async with serving() as served:
        session = await served.session()
        run = await submit(served, session, "/say a b c d\n/wait 10s")
        async with following(served, session, f"?run_id={run}&after=1", last_event_id=f"{run}:4") as one:
            assert await one.next() == {"type": "replay_start", "count": 1}


@pytest.mark.parametrize(
    ("query", "headers", "status", "says"),
    [
        ("?run_id=x&after=abc", {}, 400, "`after` must be a whole number from 0 to 1000000000000000"),
        ("?run_id=x&after=-1", {}, 400, "`after` must be a whole number"),
        ("?run_id=x&after=1&after=2", {}, 400, "parameter `after` is given twice"),
        ("?after=1", {}, 400, "`run_id` has to say in which"),
        ("?run_id=x", {}, 400, "`run_id` needs `after`"),
        ("?run_id=&after=1", {}, 400, "`run_id` must be the id of a run"),
        ("?runid=x&after=1", {}, 400, "unknown parameter `runid`; did you mean `run_id`?"),
        ("?wait=1", {}, 400, "unknown parameter `wait`"),
        ("", {"last_event_id": "x"}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("", {"last_event_id": "x:"}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("", {"last_event_id": ":1"}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("", {"last_event_id": "x:-1"}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("", {"last_event_id": "x:1e3"}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("", {"last_event_id": "\xe9:1"}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("", {"last_event_id": "run-1:" + "9" * 26}, 400, "Last-Event-ID must be RUN:SEQ"),
        ("?after=x", {"last_event_id": "x:1"}, 400, "`after` must be a whole number"),
        ("", {"accept": "application/json"}, 406, "takes no text/event-stream"),
        ("", {"accept": "text/event-stream;q=0, */*"}, 406, "takes no text/event-stream"),
    ],
)
async def test_what_makes_no_sense_is_refused_in_a_sentence(
    query: str, headers: dict[str, str], status: int, says: str
) -> None:
    async with serving() as served:
        path = f"/sessions/{await served.session()}/events{query}"
        answer = await served.get(path, **headers)
        assert (answer.status, answer.type) == (status, "application/json")
        assert says in answer.json()["error"]["message"]


async def test_two_last_event_ids_are_refused() -> None:
    async with serving() as served, served.connect() as connection:
        path = f"/sessions/{await served.session()}/events"
        lines = f"GET {path} HTTP/1.1\r\nHost: {served.host}\r\n" + "Last-Event-ID: run-1:1\r\n" * 2
        connection.writer.write(f"{lines}\r\n".encode())
        assert (await connection.answer()).status == 400


@pytest.mark.parametrize("accept", ["*/*", "text/*", "text/event-stream", "text/html, text/event-stream;q=0.1"])
async def test_whoever_takes_events_gets_them(accept: str) -> None:
    async with serving() as served, following(served, await served.session(), accept=accept) as one:
        assert await one.next() == {"type": "session_sync"}


async def test_a_heartbeat_is_an_event_without_an_id() -> None:
    async with serving() as served:
        session = await served.session()
        await submit(served, session, "/wait 50s")
        async with following(served, session) as one:
            await one.until("replay_end")
            before = one.last_id
            await served.clock.advance(20)
            assert await one.next() == {"type": "heartbeat"}
            assert one.last_id == before


async def test_head_asks_for_the_head_alone() -> None:
    async with serving() as served:
        session = await served.session()
        async with served.connect() as connection:
            for path, status in ((session, 200), ("ses-none", 404)):
                answer = await connection.request("HEAD", f"/sessions/{path}/events", headers=served.headers)
                assert (answer.status, answer.body) == (status, b"")


async def test_a_comment_comes_now_and_then_where_nothing_happens() -> None:
    async with serving() as served:
        session = await served.session()
        async with following(served, session) as one:
            assert await one.next() == {"type": "session_sync"}
            await served.clock.advance(20)
            assert await one.block() == ": still here"
            await served.clock.advance(20)
            assert await one.block() == ": still here"


async def test_whoever_goes_away_leaves_nothing_behind() -> None:
    async with serving() as served:
        session = await served.session()
        bus = served.psi.service._engine.bus  # whose subscribers nobody else can count
        for _ in range(3):
            async with following(served, session) as one:
                await one.next()
                assert bus._subscriptions
        async with asyncio.timeout(_PATIENCE):
            while bus._subscriptions:
                await settle()


async def test_whoever_does_not_read_is_cut_off_and_can_come_back_for_the_rest() -> None:
    async with serving(agent=Torrent()) as served:
        session = await served.session()
        async with following(served, session) as deaf, talk(served, session) as one:
            await deaf.next()
            await one.next()
            deaf.pause()
            await one.say("go")
            seen = [await one.next() for _ in range(2_501)]
            await served.clock.advance(PATIENCE)
            async with asyncio.timeout(_PATIENCE):
                while len(served.server.server_state.connections) > 1:  # the one that reads
                    await settle()
            deaf.resume()
            some = await deaf.until_cut()
            assert some == seen[: len(some)]
            assert len(some) < len(seen)
            async with following(served, session, last_event_id=deaf.last_id or "") as back:
                assert [frame for frame in await back.until("replay_end") if "seq" in frame] == seen[len(some) :]


async def test_a_session_that_is_deleted_and_a_service_that_goes_end_the_events() -> None:
    async with serving() as served:
        gone, stays = await served.session(), await served.session()
        async with following(served, gone) as one, following(served, stays) as other:
            await one.next()
            await other.next()
            await served.request("DELETE", f"/sessions/{gone}")
            assert await one.has_ended()
            served.server.stop()
            assert await other.has_ended()


async def test_no_such_session_and_no_credentials_are_answered_with_their_status(tmp_path: Path) -> None:
    async with serving() as served:
        answer = await served.get("/sessions/ses-none/events")
        assert (answer.status, answer.json()["error"]["code"]) == (404, "session/not-found")
    with Credentials.open(tmp_path) as credentials:
        ada, bob = (
            credentials.create_token(now=datetime.now(UTC), scopes=["write"], user=user).text for user in ("ada", "bob")
        )
        async with serving(Settings(auth=True), credentials=credentials, token=ada) as served:
            session = await served.session()
            path = f"/sessions/{session}/events"
            assert (await served.get(path, authorization="Bearer psi_wrong")).status == 401
            assert (await served.get(path, authorization=f"Bearer {bob}")).status == 404
            async with following(served, session) as one:
                assert await one.next() == {"type": "session_sync"}
