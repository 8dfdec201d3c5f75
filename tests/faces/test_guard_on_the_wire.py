"""What of the guard only shows between a real server and a real client: uploads, handshakes, connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from psi.engine.clock import settle
from psi.faces.auth import Auth
from psi.faces.guard import Guard
from psi.faces.server import Server, bind, uvicorn_config
from psi.settings import Settings
from tests.faces.serving import Answer, Connection


async def size(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def broken(request: Request) -> Response:
    raise ZeroDivisionError("the password is swordfish")


async def unread(request: Request) -> Response:
    return PlainTextResponse("not a byte")


async def half(request: Request) -> Response:
    async def begun(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"100")]})
        raise ZeroDivisionError("the password is swordfish")

    return begun  # type: ignore[return-value]  # anything that is called like an answer is one


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        return


class Left:
    """Around the guard: tells when somebody has left it."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.left = asyncio.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.app(scope, receive, send)
        finally:
            self.left.release()


@dataclass(frozen=True)
class Place:
    port: int
    guard: Guard
    watched: Left

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port), self.host)
        try:
            yield connection
        finally:
            await connection.close()

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        async with self.connected() as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await connection.request(method, path, body, named)


@asynccontextmanager
async def listening(**chosen: Any) -> AsyncIterator[Place]:
    settings = Settings(**chosen)
    routes = [
        Route("/size", size, methods=["POST"]),
        Route("/broken", broken),
        Route("/half", half),
        Route("/unread", unread, methods=["GET", "POST"]),
        WebSocketRoute("/echo", echo),
    ]
    guard = Guard(Starlette(routes=routes), settings, Auth(settings, None))
    watched = Left(guard)
    socket = bind("127.0.0.1", 0)
    port = socket.getsockname()[1]
    ready = asyncio.Event()
    server = Server(uvicorn_config(watched, settings), started=ready.set)  # type: ignore[arg-type]  # any app will do
    running = asyncio.create_task(server.serve(sockets=[socket]))
    try:
        await ready.wait()
        yield Place(port, guard, watched)
    finally:
        server.stop()
        await running


# -- uploads


async def test_an_upload_that_is_too_large_is_answered_and_the_connection_goes_on() -> None:
    async with listening(max_body=1_000) as place, place.connected() as connection:
        answer = await connection.request("POST", "/size", b"x" * 300_000)
        assert (answer.status, answer.json()["error"]["code"]) == (413, "http/too-large")
        answer = await connection.request("POST", "/size", b"x" * 1_000)
        assert (answer.status, answer.text) == (200, "1000")


async def test_who_asks_before_sending_is_told_not_to() -> None:
    async with listening(max_body=1_000) as place, place.connected() as connection:
        await connection.send("POST", "/size", None, {"content-length": "5000000", "expect": "100-continue"})
        assert (await connection.answer()).status == 413  # and not 100, which is what would invite the body


async def test_an_upload_without_an_end_is_answered_while_it_still_comes() -> None:
    async with asyncio.timeout(10), listening(max_body=10_000) as place, place.connected() as connection:
        await connection.send("POST", "/size", None, {"transfer-encoding": "chunked"})
        chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"

        async def upload() -> None:
            while True:
                connection.writer.write(chunk)
                await connection.writer.drain()

        uploading = asyncio.create_task(upload())
        answer = await connection.answer()
        assert answer.status == 413
        assert place.guard.open == 0
        uploading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await uploading


async def test_a_client_that_goes_away_in_the_middle_of_an_upload_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with listening() as place:
        async with place.connected() as connection:
            await connection.send("POST", "/unread", b"x" * 10, {"content-length": "1000"})
            assert (await connection.answer()).status == 200
        await place.watched.left.acquire()
        assert place.guard.open == 0
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_an_upload_that_stands_still_is_answered_and_the_connection_closed() -> None:
    async with asyncio.timeout(10), listening(body_timeout=0.1) as place, place.connected() as connection:
        await connection.send("POST", "/size", b"x" * 10, {"content-length": "1000"})
        answer = await connection.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (408, "http/body-timeout")
        assert answer.headers["connection"] == "close"
        assert await connection.reader.read() == b""
        await place.watched.left.acquire()
        assert place.guard.open == 0


# -- connections that do not ask


async def is_quiet(connection: Connection, seconds: float) -> bool:
    """Whether that long nothing is heard, not even that it is over."""
    try:
        async with asyncio.timeout(seconds):
            await connection.reader.read(1)
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize("said", [b"", b"\r\n", b"GET", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "])
async def test_a_connection_that_does_not_get_to_the_end_of_a_head_is_closed(said: bytes) -> None:
    async with asyncio.timeout(10), listening(head_timeout=0.1) as place, place.connected() as connection:
        connection.writer.write(said)
        assert await connection.reader.read() == b""


LINE = b"X-Long: " + b"x" * 1_000 + b"\r\n"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + LINE * 78 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + LINE * 78,
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 78_000,
        b"GET /" + b"x" * 78_000,
    ],
    ids=["many headers", "headers without an end", "one header", "an address"],
)
async def test_a_head_that_is_too_large_is_refused_before_it_has_ended(said: bytes) -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        for start in range(0, len(said), 10_000):
            connection.writer.write(said[start : start + 10_000])
            await settle()
        answer = await connection.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (431, "http/head-too-large")
        assert answer.headers["connection"] == "close"
        with contextlib.suppress(ConnectionError):
            assert await connection.reader.read() == b""


async def test_what_came_before_a_head_does_not_count_for_it() -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        body = b"x" * 100_000
        first = b"POST /size HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(body)
        connection.writer.write(first + body[:100])
        await settle()
        connection.writer.write(body[100:] + b"GET /unread HTTP/1.1\r\nHo")
        assert (await connection.answer()).status == 200
        connection.writer.write(b"st: 127.0.0.1\r\n\r\n")
        assert (await connection.answer()).status == 200


async def test_lines_behind_a_body_are_bounded_too() -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        connection.writer.write(
            b"POST /size HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
        )
        with contextlib.suppress(ConnectionError):
            for _ in range(100_000):
                connection.writer.write(LINE)
                await connection.writer.drain()
                if connection.reader.at_eof():
                    break
        assert connection.writer.is_closing() or connection.reader.at_eof()


async def test_a_head_of_usual_size_is_none_too_large() -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        for _ in range(3):
            answer = await connection.request("GET", "/unread", headers={f"x-{place}": "x" * 1_000 for place in "abc"})
            assert answer.status == 200


@pytest.mark.parametrize(
    "said", [b"FOO / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\x16\x03\x01"]
)
async def test_what_is_no_http_is_answered_as_every_other_error(said: bytes) -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        connection.writer.write(said)
        answer = await connection.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "http/malformed")
        assert await connection.reader.read() == b""


CHUNKED = b"POST /size HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("pieces", [[CHUNKED + b"zz\r\n"], [CHUNKED, b"5\r\nhello\r\n", b"oh no\r\n"]])
async def test_a_body_that_is_no_http_is_answered_too(pieces: list[bytes]) -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        for piece in pieces:
            connection.writer.write(piece)
            await settle()
        answer = await connection.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "http/malformed")
        assert answer.headers["connection"] == "close"
        assert await connection.reader.read() == b""
        await place.watched.left.acquire()  # and nobody waits for the rest


async def test_a_body_that_is_no_http_spoils_no_answer_that_has_been_given_or_begun() -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        connection.writer.write(CHUNKED.replace(b"/size", b"/unread"))
        assert (await connection.answer()).status == 200
        connection.writer.write(b"zz\r\n")
        assert await connection.reader.read() == b""


async def test_a_body_that_is_no_http_behind_a_request_that_waits_is_not_taken_for_its_answer() -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        connection.writer.write(
            b"POST /size HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n\r\nx" + CHUNKED + b"zz\r\n"
        )
        assert await connection.reader.read() == b""


HANDSHAKE = {
    "upgrade": "websocket",
    "connection": "Upgrade",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "code"),
    [
        ("GET", "/echo", {"sec-websocket-key": "short"}, 400, "ws/bad-handshake"),
        ("GET", "/echo", {"sec-websocket-key": ""}, 400, "ws/bad-handshake"),
        ("GET", "/echo", {"sec-websocket-key": "AAAA"}, 400, "ws/bad-handshake"),
        ("GET", "/echo", {"sec-websocket-version": "8"}, 426, "ws/unsupported-version"),
        ("GET", "/echo", {"sec-websocket-version": "thirteen"}, 400, "ws/bad-handshake"),
        ("POST", "/echo", {}, 405, "ws/bad-handshake"),
        ("GET", "/echo?" + "x" * 9_000, {}, 431, "http/head-too-large"),
        ("GET", "/echo", {"x-long": "x" * 9_000}, 431, "http/head-too-large"),
        ("GET", "/echo", {f"x-{n}": "1" for n in range(130)}, 431, "http/head-too-large"),
        ("GET", "/echo", {"content-length": "3"}, 400, "ws/bad-handshake"),
    ],
)
async def test_a_bad_handshake_is_answered_as_every_other_error(
    method: str, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        answer = await connection.request(method, path, headers={**HANDSHAKE, **headers})
        assert (answer.status, answer.type) == (status, "application/json")
        assert answer.json()["error"]["code"] == code
        assert await connection.reader.read() == b""
        if status == 426:
            assert answer.headers["sec-websocket-version"] == "13"
            assert answer.headers["upgrade"] == "websocket"


async def test_a_good_handshake_is_answered_with_101() -> None:
    async with asyncio.timeout(10), listening() as place, place.connected() as connection:
        answer = await connection.request("GET", "/echo", headers=HANDSHAKE)
        assert answer.status == 101
        assert answer.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_a_head_that_comes_byte_by_byte_gets_no_more_time() -> None:
    async with asyncio.timeout(10), listening(head_timeout=0.2) as place, place.connected() as connection:
        connection.writer.write(b"GET /unread HTTP/1.1\r\nX-Slow: ")
        with contextlib.suppress(ConnectionError):
            while await is_quiet(connection, 0.02):
                connection.writer.write(b"x")


async def test_a_second_head_is_waited_for_no_longer_than_the_first_once_it_has_begun() -> None:
    async with asyncio.timeout(10), listening(head_timeout=0.2) as place, place.connected() as connection:
        assert (await connection.request("GET", "/unread")).status == 200
        connection.writer.write(b"GET /unre")
        assert await connection.reader.read() == b""


async def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for_either() -> None:
    async with asyncio.timeout(10), listening(head_timeout=0.2) as place, place.connected() as connection:
        await connection.send("POST", "/unread", b"x", {"content-length": "1000"})
        assert (await connection.answer()).status == 200
        connection.writer.write(b"x")
        assert await connection.reader.read() == b""


async def test_between_two_requests_and_during_one_and_on_a_socket_there_is_more_time() -> None:
    async with asyncio.timeout(10), listening(head_timeout=0.1) as place, place.connected() as connection:
        assert (await connection.request("POST", "/unread", b"x" * 100_000)).status == 200
        async with connect(f"ws://{place.host}/echo") as socket:
            assert await is_quiet(connection, 0.3)  # three times what a head may take
            await socket.send("still here")
            assert await socket.recv() == "still here"
        await connection.send("POST", "/size", b"x", {"content-length": "2"})
        assert await is_quiet(connection, 0.3)
        connection.writer.write(b"x")
        assert (await connection.answer()).text == "2"


async def test_there_are_twice_as_many_connections_as_places_and_not_one_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        asyncio.timeout(10),
        listening(max_connections=1) as place,
        place.connected() as first,
        place.connected() as second,
    ):
        assert (await first.request("GET", "/unread")).status == 200
        assert (await second.request("GET", "/unread")).status == 200
        async with place.connected() as third:
            with contextlib.suppress(ConnectionError):
                assert await third.reader.read() == b""
        assert (await first.request("GET", "/unread")).status == 200
    assert "too many connections" in caplog.text


# -- what goes wrong inside


async def test_an_accident_behind_a_framework_shows_nothing_of_itself(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as place:
        answer = await place.request("GET", "/broken")
        assert answer.status == 500
        assert b"swordfish" not in answer.body
        assert b"Traceback" not in answer.body
    assert "swordfish" in caplog.text


async def test_an_answer_that_breaks_off_is_closed_and_not_completed() -> None:
    async with listening() as place, place.connected() as connection:
        await connection.send("GET", "/half")
        with pytest.raises(asyncio.IncompleteReadError):
            await connection.answer()


# -- heads, hosts and origins


async def test_head_gets_the_headers_of_get_and_no_body() -> None:
    async with listening() as place, place.connected() as connection:
        answer = await connection.request("HEAD", "/unread")
        assert (answer.status, answer.headers["content-length"]) == (200, "10")
        answer = await connection.request("HEAD", "/unread", headers={"origin": "http://evil.example"})
        assert answer.status == 403
        assert (await connection.request("GET", "/unread")).text == "not a byte"


async def test_what_rebinding_and_other_pages_send_is_refused() -> None:
    async with listening() as place:
        assert (await place.request("GET", "/unread", host=f"evil.example:{place.port}")).status == 403
        assert (await place.request("POST", "/size", b"x", origin="http://evil.example")).status == 403
        assert (await place.request("POST", "/size", b"x", origin=f"http://{place.host}")).status == 200


async def refused(place: Place, **more: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        async with connect(f"ws://{place.host}/echo", **more):
            pytest.fail("it was let in")
    body = caught.value.response.body
    assert body is not None
    return caught.value.response.status_code, Answer(0, {}, bytes(body)).json()["error"]["code"]


async def test_a_socket_of_another_page_is_refused_with_a_status_that_the_client_sees() -> None:
    async with listening() as place:
        assert await refused(place, origin="http://evil.example") == (403, "origin/not-allowed")
        host = {"Host": "evil.example"}
        with pytest.raises(InvalidStatus) as caught:
            async with connect(f"ws://{place.host}/echo", additional_headers=host):
                pytest.fail("it was let in")
        assert caught.value.response.status_code in (400, 403)  # two hosts are no HTTP at all to some servers
        async with connect(f"ws://{place.host}/echo", origin=f"http://{place.host}") as socket:  # type: ignore[arg-type]
            await socket.send("hello")
            assert await socket.recv() == "hello"


async def test_a_handshake_that_is_refused_is_one_line_and_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "psi.access")
    async with listening() as place:
        await refused(place, origin="http://evil.example")
        await place.watched.left.acquire()
    (line,) = worth_reading(caplog)
    assert line.startswith("WebSocket /echo answered 403 in ")


def worth_reading(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What a service writes: all of ours, and of the server below only what is wrong."""
    kept = (each for each in caplog.records if each.name == "psi.access" or each.levelno >= logging.WARNING)
    return [record.getMessage() for record in kept]


async def test_a_socket_that_comes_and_goes_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "psi.access")
    async with listening() as place:
        async with connect(f"ws://{place.host}/echo") as socket:
            await socket.close(4000)
        await place.watched.left.acquire()
    opened, closed = worth_reading(caplog)
    assert opened == "WebSocket /echo opened a socket"
    assert closed.startswith("WebSocket /echo closed its socket with 4000 after 0.")


async def test_handshakes_count_as_requests() -> None:
    async with listening(rate=0.01, burst=1) as place:
        async with connect(f"ws://{place.host}/echo") as socket:
            await socket.send("messages do not")
            assert await socket.recv()
        assert await refused(place) == (429, "http/too-many-requests")


async def test_an_open_socket_takes_a_place_until_it_is_closed() -> None:
    async with asyncio.timeout(10), listening(max_connections=1) as place:
        async with connect(f"ws://{place.host}/echo"):
            answer = await place.request("GET", "/unread")
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert await refused(place) == (503, "http/overloaded")
        for _ in range(3):  # the socket, and the two that were refused
            await place.watched.left.acquire()
        assert (await place.request("GET", "/unread")).status == 200


async def test_a_path_that_would_begin_a_new_line_does_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "psi.access")
    async with listening() as place:
        await place.request("GET", "/x%0d%0aGET%20/admin?token=secret")
    (record,) = [record for record in caplog.records if record.name == "psi.access"]
    assert record.getMessage().startswith("GET /x\\r\\nGET /admin answered 404")
    assert "secret" not in caplog.text
