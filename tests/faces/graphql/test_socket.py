from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from psi.core.commands import Caller, CancelSchedule, CreateSchedule
from psi.faces.server import uvicorn_config
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Served, serving

PROTOCOL = Subprotocol("graphql-transport-ws")


class Client:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, message: Any) -> None:
        await self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    async def receive(self) -> dict[str, Any]:
        async with asyncio.timeout(5):
            found: dict[str, Any] = json.loads(await self.socket.recv())
            return found

    async def begin(self, payload: Any = None) -> None:
        await self.send({"type": "connection_init", **({"payload": payload} if payload else {})})
        assert await self.receive() == {"type": "connection_ack"}

    async def subscribe(self, query: str, name: str = "1", **variables: Any) -> None:
        await self.send({"id": name, "type": "subscribe", "payload": {"query": query, "variables": variables}})

    async def _forever(self) -> None:
        while True:
            await self.socket.recv()

    async def heard(self) -> list[dict[str, Any]]:
        """All that comes before the connection ends."""
        found = []
        with suppress(ConnectionClosed):
            while True:
                found.append(await self.receive())
        return found

    async def closed(self) -> tuple[int, str]:
        async with asyncio.timeout(5):
            with pytest.raises(ConnectionClosed) as closed:
                await self._forever()
        told = closed.value.rcvd
        assert told is not None
        return told.code, told.reason


@asynccontextmanager
async def client(
    served: Served, protocols: tuple[Subprotocol, ...] = (PROTOCOL,), **more: Any
) -> AsyncIterator[Client]:
    async with connect(f"{served.ws_url}/graphql", subprotocols=protocols or None, **more) as talking:
        yield Client(talking)


INIT = {"type": "connection_init"}
SUBSCRIBE = {"id": "1", "type": "subscribe", "payload": {"query": "subscription { sessionEvents { seq } }"}}


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (["{"], 4400),
        ([[1]], 4400),
        (["5"], 4400),
        ([{"type": "nothing"}], 4400),
        ([{}], 4400),
        ([b"\x00binary"], 4400),
        (['{"type": "ping", "type": "ping"}'], 4400),
        (['{"type": "ping", "payload": {"x": NaN}}'], 4400),
        (['{"type": "ping", "payload": {"x": "\\ud800"}}'], 4400),
        ([{"type": "connection_init", "payload": 5}], 4400),
        ([{"type": "connection_init", "payload": []}], 4400),
        ([{"type": "ping", "payload": "x"}], 4400),
        ([{"type": "pong", "payload": 0}], 4400),
        ([INIT, {"type": "subscribe", "payload": {"query": "{ system { version } }"}}], 4400),
        ([INIT, {"id": "1", "type": "subscribe"}], 4400),
        ([INIT, {"id": "1", "type": "subscribe", "payload": {"query": 5}}], 4400),
        ([INIT, {"id": "1", "type": "subscribe", "payload": {"query": "{ a }", "variables": []}}], 4400),
        ([SUBSCRIBE], 4401),
        ([INIT, SUBSCRIBE, SUBSCRIBE], 4409),
        ([INIT, INIT], 4429),
    ],
)
async def test_who_breaks_the_protocol_is_told_how(messages: list[Any], code: int) -> None:
    async with serving() as served, client(served) as talking:
        for message in messages:
            await talking.send(message)
        assert (await talking.closed())[0] == code


@pytest.mark.parametrize("protocols", [(), (Subprotocol("graphql-ws"),)])
async def test_another_protocol_is_not_spoken_here(protocols: tuple[Subprotocol, ...]) -> None:
    async with serving() as served, client(served, protocols) as talking:
        assert await talking.closed() == (4406, "Subprotocol not acceptable")


async def test_a_connection_that_never_begins_is_closed() -> None:
    async with serving(Settings(init_timeout=0.05)) as served, client(served) as talking:
        assert (await talking.closed())[0] == 4408


async def test_a_connection_has_so_many_subscriptions_and_no_more() -> None:
    async with serving(Settings(max_subscriptions=2)) as served, client(served) as talking:
        await talking.begin()
        for name in ("a", "b", "c"):
            await talking.subscribe("subscription { sessionEvents { seq } }", name)
        assert (await talking.closed())[0] == 4429


async def test_queries_beside_the_subscriptions_are_as_many_as_anybody_likes() -> None:
    async with serving(Settings(max_subscriptions=2)) as served, client(served) as talking:
        await talking.begin()
        for name in ("a", "b"):
            await talking.subscribe("subscription { sessionEvents { seq } }", name)
        for number in range(300):
            await talking.subscribe("{ system { version } }", str(number))
        told = [await talking.receive() for _ in range(600)]
        assert {each["id"] for each in told if each["type"] == "complete"} == set(map(str, range(300)))


async def test_a_ping_is_answered_with_what_it_carried() -> None:
    async with serving() as served, client(served) as talking:
        await talking.send({"type": "ping", "payload": {"a": 1}})
        assert await talking.receive() == {"type": "pong", "payload": {"a": 1}}
        await talking.send({"type": "pong"})
        await talking.begin()


async def test_queries_and_mutations_are_answered_once() -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        await talking.subscribe('mutation { createSession(name: "A") { session { sessionName } } }', "m")
        answer = {"createSession": {"session": {"sessionName": "A"}}}
        assert await talking.receive() == {"id": "m", "type": "next", "payload": {"data": answer}}
        assert await talking.receive() == {"id": "m", "type": "complete"}
        await talking.subscribe("{ sessions { sessionName } }", "m")
        assert (await talking.receive())["payload"]["data"] == {"sessions": [{"sessionName": "A"}]}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("subscription { nope }", "Cannot query field 'nope'"),
        ("{", "Syntax Error"),
        ('subscription { sessionEvents(sessionId: "ses-none") { seq } }', "session not found"),
        ('subscription { runEvents(runId: "run-none") { seq } }', "run not found"),
        ("subscription($a: Int!) { sessions(limit: $a) { phase } }", "$a"),
        ("subscription { a: sessionEvents { seq } b: sessionEvents { seq } }", "only one"),
        ('subscription { live(query: "[") }', "expected ]"),
        ("", "Syntax Error"),
        (" \n", "Syntax Error"),
        ("query A { system { version } } query B { system { version } }", "Must provide operation name"),
        ("query($a: Int!) { sessions(limit: $a) { phase } }", "$a"),
    ],
)
async def test_what_cannot_be_subscribed_to_is_an_error_of_that_operation(query: str, message: str) -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        await talking.subscribe(query)
        answer = await talking.receive()
        assert answer["type"] == "error"
        assert message.lower() in answer["payload"][0]["message"].lower()
        await talking.subscribe("{ system { version } }", "still open")
        while (answer := await talking.receive())["id"] != "still open":
            pass
        assert answer["type"] == "next"


async def test_what_went_wrong_while_executing_stands_beside_the_data() -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        await talking.subscribe("{ sessions(limit: 0) { phase } }")
        answer = await talking.receive()
        assert answer["type"] == "next"
        assert answer["payload"]["data"] is None
        assert await talking.receive() == {"id": "1", "type": "complete"}


async def test_an_operation_that_is_not_in_its_document_is_an_error() -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        payload = {"query": "query A { system { version } }", "operationName": "C"}
        await talking.send({"id": "1", "type": "subscribe", "payload": payload})
        answer = await talking.receive()
        assert (answer["type"], answer["payload"][0]["message"]) == ("error", "Unknown operation named 'C'.")


async def test_events_arrive_until_the_client_has_enough() -> None:
    async with serving() as served, client(served) as talking:
        session = await served.session()
        await talking.begin()
        await talking.subscribe("subscription($s: ID) { scheduleChanged(sessionId: $s) { label } }", "s", s=session)
        await talking.subscribe("{ system { version } }", "in order")
        await talking.receive()
        await talking.receive()
        request = {"action": "scheduler", "op": "create", "kind": "message", "message": "x", "delay-ms": 9_000}
        await served.tool({**request, "label": "one"}, session)
        assert (await talking.receive())["payload"] == {"data": {"scheduleChanged": {"label": "one"}}}
        await talking.send({"id": "s", "type": "complete"})
        await served.tool({**request, "label": "two"}, session)
        await talking.subscribe("{ system { version } }", "after")
        assert (await talking.receive())["id"] == "after"


async def test_a_run_is_followed_to_its_end_and_completed() -> None:
    async with serving() as served, client(served) as talking:
        session = await served.session()
        begun = await served.tool({"action": "session", "op": "submit", "message": "/wait 1s\n/say hi"}, session)
        await talking.begin()
        text = "subscription($r: ID!) { runEvents(runId: $r) { seq type data } }"
        await talking.subscribe(text, r=begun["psi-tool/session"]["run-id"])
        first = await talking.receive()
        told = first["payload"]["data"]["runEvents"]
        assert told == {"seq": 1, "type": "stream_start", "data": {"type": "stream_start", "source": "user"}}
        await served.clock.advance(2)
        types = []
        while (answer := await talking.receive())["type"] == "next":
            types.append(answer["payload"]["data"]["runEvents"]["type"])
        assert types == ["stream_delta", "stream_end"]
        assert answer == {"id": "1", "type": "complete"}


async def test_who_comes_back_with_after_misses_nothing() -> None:
    text = "subscription($s: ID, $after: Long) { sessionEvents(sessionId: $s, after: $after) { seq data } }"
    request = {"action": "scheduler", "op": "create", "kind": "message", "message": "x", "delay-ms": 9_000}
    async with serving() as served:
        session = await served.session()
        async with client(served) as talking:
            await talking.begin()
            await talking.subscribe(text, s=session, after=0)
            seen = [(await talking.receive())["payload"]["data"]["sessionEvents"]]
        for place in range(3):
            await served.tool({**request, "label": f"away {place}"}, session)
        async with client(served) as talking:
            await talking.begin()
            await talking.subscribe(text, s=session, after=seen[-1]["seq"])
            for _ in range(3):
                seen.append((await talking.receive())["payload"]["data"]["sessionEvents"])
            await served.tool({**request, "label": "live"}, session)
            seen.append((await talking.receive())["payload"]["data"]["sessionEvents"])
        labels = [each["data"].get("label") for each in seen]
        assert labels == [None, "away 0", "away 1", "away 2", "live"]
        assert [each["seq"] for each in seen] == sorted({each["seq"] for each in seen})


async def test_a_client_that_does_not_read_is_told_of_the_gap_and_holds_nobody_up() -> None:
    async with serving(Settings(socket_queue=8)) as served:
        session = await served.session()
        text = "subscription($s: ID) { scheduleChanged(sessionId: $s) { message } }"
        async with client(served, max_queue=1, max_size=None) as slow, client(served) as quick:
            for each in (slow, quick):
                await each.begin()
                await each.subscribe(text, s=session)
                await each.subscribe("{ system { version } }", "ready")
                while (await each.receive())["type"] != "complete":
                    pass
            request = {"action": "scheduler", "op": "create", "kind": "message", "delay-ms": 60_000}
            sent = 0
            for place in range(400):
                made = await served.tool({**request, "message": f"{place}" + "x" * 200_000}, session)
                schedule = made["psi-tool/scheduler"]["schedule"]["schedule-id"]
                await served.tool({"action": "scheduler", "op": "cancel", "schedule-id": schedule}, session)
                sent += 2
                for _ in range(2):
                    assert "extensions" not in (await quick.receive())["payload"]
                if place > 40:
                    break
            received = missed = 0
            while received + missed < sent:
                payload = (await slow.receive())["payload"]
                received += 1
                missed += payload.get("extensions", {}).get("missed", 0)
            assert missed > 0
            assert received + missed == sent


async def test_sockets_are_told_when_the_service_goes() -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        await talking.subscribe("subscription { sessionEvents { seq } }")
        served.server.stop()
        assert (await talking.closed())[0] == 1001


async def test_who_comes_back_to_a_service_that_began_anew_is_told_of_the_gap() -> None:
    text = "subscription($s: ID, $after: Long) { sessionEvents(sessionId: $s, after: $after) { seq type } }"
    async with serving() as served, client(served) as back:
        session = await served.session()
        await back.begin()
        await back.subscribe(text, s=session, after=5_000)  # a number from before this service began
        first = (await back.receive())["payload"]
        assert first["data"]["sessionEvents"]["type"] == "session-created"
        assert first["extensions"] == {"missed": 1}


async def test_a_gap_is_told_with_the_first_event_where_nothing_is_remembered() -> None:
    text = "subscription($s: ID, $after: Long) { sessionEvents(sessionId: $s, after: $after) { type } }"
    async with serving() as served, client(served) as back:
        first, second = await served.session(), await served.session()
        await back.begin()
        await back.subscribe(text, s=second, after=5_000)
        assert (await back.receive())["payload"]["extensions"] == {"missed": 1}
        assert first != second


async def test_a_client_that_neither_reads_nor_answers_is_let_go() -> None:
    def impatient(*arguments: Any) -> Any:
        config = uvicorn_config(*arguments)
        config.ws_ping_interval = config.ws_ping_timeout = 0.2
        return config

    async with serving(real_time=True, config=impatient) as served:
        session = await served.session()
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(deaf, ("127.0.0.1", served.port))
        head = (
            f"GET /graphql HTTP/1.1\r\nHost: {served.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
        )
        await loop.sock_sendall(deaf, head.encode())
        while b"\r\n\r\n" not in await loop.sock_recv(deaf, 4_096):
            pass
        query = f'subscription {{ scheduleChanged(sessionId: "{session}") {{ message }} }}'
        for message in (INIT, {"id": "1", "type": "subscribe", "payload": {"query": query}}):
            body = json.dumps(message).encode()
            size = bytes([128 | len(body)]) if len(body) < 126 else b"\xfe" + len(body).to_bytes(2, "big")
            await loop.sock_sendall(deaf, b"\x81" + size + bytes(4) + body)

        def following() -> float | None:
            return served.app.metrics.registry.get_sample_value("psi_subscriptions")

        async with asyncio.timeout(10):
            while not following():  # noqa: ASYNC110 – seen from outside, as whoever scrapes it would
                await asyncio.sleep(0.01)
            act, caller = served.psi.service.act, Caller(session)
            for _ in range(60):
                made = await act(CreateSchedule(kind="message", message="x" * 100_000, delay_ms=80_000_000), caller)
                await act(CancelSchedule(schedule_id=made.id), caller)
            while following():  # noqa: ASYNC110 – likewise
                await asyncio.sleep(0.05)
        deaf.close()


async def test_operations_on_a_socket_count_as_requests_do() -> None:
    async with serving(Settings(rate=0.001, burst=5)) as served, client(served) as talking:
        await talking.begin()
        kinds = []
        for place in range(8):
            await talking.subscribe("{ system { version } }", str(place))
            answer = await talking.receive()
            kinds.append(answer["type"])
            if answer["type"] == "next":
                await talking.receive()
        assert kinds.count("error") >= 3
        assert answer["payload"][0]["extensions"]["code"] == "limit/rate"


async def test_a_number_below_nought_is_none_of_an_event() -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        await talking.subscribe("subscription { sessionEvents(after: -5) { seq } }")
        assert "0 or more" in (await talking.receive())["payload"][0]["message"]


async def test_whoever_asks_without_reading_is_not_listened_to_until_they_read() -> None:
    async with serving() as served, client(served) as talking:
        ping = json.dumps({"type": "ping", "payload": {"x": "a" * 100_000}})
        talking.socket.transport.pause_reading()
        sent = 0
        with suppress(TimeoutError):
            while sent < 2_000:
                async with asyncio.timeout(0.5):
                    await talking.socket.send(ping)
                    sent += 1
        assert sent < 1_000  # 100 MB, which nobody has room for
        talking.socket.transport.resume_reading()
        for _ in range(sent):
            assert (await talking.receive())["type"] == "pong"


async def test_numbers_beyond_64_bits_are_sent_back_as_they_came() -> None:
    async with serving() as served, client(served) as talking:
        await talking.send({"type": "ping", "payload": {"n": 10**30}})
        assert await talking.receive() == {"type": "pong", "payload": {"n": 10**30}}


async def test_a_token_that_was_revoked_is_told_nothing_more(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        now = datetime.now(UTC)
        own, other = (credentials.create_token(now=now, scopes=["write"], user="ada") for _ in range(2))
        async with serving(Settings(auth=True), credentials=credentials, token=other.text) as served:
            session = await served.session()
            async with client(served) as talking:
                await talking.begin({"token": own.text})
                await talking.subscribe("subscription { sessionEvents { type } }")
                await talking.send({"type": "ping"})
                assert await talking.receive() == {"type": "pong"}
                credentials.revoke(own.token.id, now=now)
                await served.clock.advance(2)
                act, caller = served.psi.service.act, Caller(session)
                await act(CreateSchedule(kind="message", message="secret", delay_ms=60_000), caller)
                assert await talking.heard() == []
                assert await talking.closed() == (4403, "these credentials count no more")
