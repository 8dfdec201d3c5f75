"""Connections as uvicorn makes them, with bounds that it has no word for: how long a head may take and how large it may
be, how many there are. What is no HTTP, or no handshake, is answered as every other error is. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidHeader, InvalidMethod

from psi.faces.sockets import ABORT, LARGEST, RAW
from psi.faces.wire import HttpRefused, error_response

__all__ = ["Config", "Http", "Socket"]

log = logging.getLogger("psi.faces.server")

_LARGEST_HEAD: Final = 64 << 10  # bytes


class Config(uvicorn.Config):
    """uvicorn's configuration, and what it has no word for: the bounds of a connection that has not asked yet."""

    def __init__(self, *arguments: Any, head_timeout: float, most_connections: int, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.head_timeout = head_timeout
        self.most_connections = most_connections


class Malformed(HttpRefused):
    """What came over the wire is no HTTP that could be read."""

    code = "http/malformed"

    def __init__(self) -> None:
        super().__init__("this is no HTTP request that can be read")


class HeadTooLarge(HttpRefused):
    status = 431
    code = "http/head-too-large"

    def __init__(
        self,
        what: str = f"the head of a request, its address and its headers, has at most {_LARGEST_HEAD >> 10} KiB",
        limit: int = _LARGEST_HEAD,
    ) -> None:
        super().__init__(what, limit=limit)


class BadHandshake(HttpRefused):
    """What asks for a WebSocket does not ask as its standard (RFC 6455) has it."""

    code = "ws/bad-handshake"


class OtherWebSocket(BadHandshake):
    status = 426
    code = "ws/unsupported-version"
    headers: ClassVar[Mapping[str, str]] = {"Upgrade": "websocket", "Sec-WebSocket-Version": "13"}

    def __init__(self) -> None:
        super().__init__("version 13 of the WebSocket protocol is spoken here; say so in Sec-WebSocket-Version")


class NoGet(BadHandshake):
    status = 405
    headers: ClassVar[Mapping[str, str]] = {"Allow": "GET"}

    def __init__(self) -> None:
        super().__init__("a WebSocket is asked for with GET")


def _handshake_refusal(wrong: Exception) -> HttpRefused:
    """What somebody hears whose handshake the library does not take."""
    match wrong:
        case InvalidHeader(name="Sec-WebSocket-Version", value=str(value)) if value.isdigit():
            return OtherWebSocket()
        case InvalidHeader(name=name):
            return BadHandshake(f"{name}: {_NEEDED.get(name, 'this cannot be read')}")
        case InvalidMethod():
            return NoGet()
    if type(wrong).__name__ in _TOO_LARGE:
        return HeadTooLarge("a line of a handshake has at most 8 KiB, and there are at most 128 of them", 8 << 10)
    return BadHandshake("a WebSocket is asked for in HTTP/1.1")


# By their names, as older versions of websockets do not have them.
_TOO_LARGE: Final = frozenset({"RequestLineTooLong", "HeaderLineTooLong", "TooManyHeaders"})
_NEEDED: Final = {
    "Sec-WebSocket-Key": "a handshake has this header once, with 16 bytes in base64",
    "Sec-WebSocket-Version": "a handshake has this header once, and it is 13",
}


def _as_sent(refused: HttpRefused) -> bytes:
    """The answer as it goes over the wire, and the last one there."""
    response = error_response(refused)
    head = f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\n"
    named = b"".join(b"%b: %b\r\n" % pair for pair in response.raw_headers)
    return head.encode() + named + b"connection: close\r\n\r\n" + bytes(response.body)


class Http(HttpToolsProtocol):
    """uvicorn's own, which waits for ever for the head of a request, however large it grows; but who does not get to
    the end of one in time is let go, as is who sends too much of it, and there are not more connections than the
    service has room for. What cannot be read is answered as every other error is."""

    config: Config

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._head_timer: asyncio.TimerHandle | None = None
        self._in_message = False
        self._in_head = False
        self._has_begun = False  # a head, in what came last
        self._head_size = 0
        self._is_handed_over = False  # to a WebSocket

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > self.config.most_connections:
            log.warning("too many connections are open, one more was closed", extra={"open": len(self.connections) - 1})
            transport.close()
        else:
            self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self._unset_keepalive_if_required()  # which uvicorn leaves to itself where a connection broke
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._has_begun = False
        super().data_received(data)
        if self._in_head and not self._has_begun and not self.transport.is_closing():
            # More of half a head, which the parser holds: what it has not told yet may be one line without an end. The
            # piece that it began in does not count, for what came before it in there belongs to others.
            self._head_size += len(data)
            if self._head_size > _LARGEST_HEAD:
                self._refuse(HeadTooLarge())
        self._watch_the_clock()

    def on_message_begin(self) -> None:
        self._in_message = self._in_head = self._has_begun = True
        self._head_size = 0
        super().on_message_begin()
        extensions: dict[str, Any] = {ABORT: self.transport.abort}
        self.scope["extensions"] = extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:  # behind the body, where nobody looks at them
            self._head_size += len(name) + len(value)
            if self._head_size > _LARGEST_HEAD:
                raise HeadTooLarge
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if self._head_size > _LARGEST_HEAD:
            raise HeadTooLarge  # the parser stops at that, and has it answered as what it cannot read
        super().on_headers_complete()
        self._in_head = False  # and not before: until now an answer to this one has no cycle

    def on_message_complete(self) -> None:
        self._in_message = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HeadTooLarge() if self._head_size > _LARGEST_HEAD else Malformed())

    def _refuse(self, refused: HttpRefused) -> None:
        if not self._is_owed_an_answer():
            self.transport.close()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever it would answer by now: its body is none
            self.cycle.message_event.set()
        self.transport.write(_as_sent(refused))
        self.transport.close()

    def _is_owed_an_answer(self) -> bool:
        """Whether the next answer on this connection is the one to what came last, and has not begun."""
        cycle: RequestResponseCycle | None = self.cycle  # which uvicorn says is always there
        if cycle is None:
            return True
        if self._in_message and not self._in_head:  # in a body: the answer is that of its request
            return not cycle.response_started and not self.pipeline
        return cycle.response_complete

    def handle_websocket_upgrade(self) -> None:
        self._is_handed_over = True
        super().handle_websocket_upgrade()

    def _watch_the_clock(self) -> None:
        """After some bytes came: until when must something follow?"""
        if self._is_handed_over or self.transport.is_closing():
            self._stop_head_timer()
        elif self.cycle is not None and not self.cycle.response_complete:
            self._stop_head_timer()  # a request is under way; how long its body may take is the guard's to say
        elif self._in_message:
            # Half a head; or what is left of a body that was answered already and that nobody reads.
            if self._head_timer is None:
                self._start_head_timer()
        elif self.cycle is not None:
            # Between two requests. uvicorn has stopped its timer for whatever came, which was no request.
            self._stop_head_timer()
            if self.timeout_keep_alive_task is None:
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self.config.head_timeout, self._let_go)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _let_go(self) -> None:
        self._head_timer = None
        self.transport.close()


class Socket(WebSocketsSansIOProtocol):
    """uvicorn's own, which waits for a slow reader before it takes more; but who neither reads nor answers is let go,
    and not waited for until everything that was sent is read."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse(_handshake_refusal(self.conn.handshake_exc))  # of which uvicorn knows nothing

    def handle_connect(self, event: Any) -> None:
        self.conn.accept(event)  # once to see what is wrong with it, before uvicorn answers that in its own words
        if self.conn.handshake_exc is not None:
            self._refuse(_handshake_refusal(self.conn.handshake_exc))
            return
        super().handle_connect(event)
        # The task that serves it has not begun yet.
        extensions: dict[str, Any] = {**self.scope["extensions"], RAW: self.send_raw, LARGEST: self.set_largest}
        self.scope["extensions"] = extensions

    def _refuse(self, refused: HttpRefused) -> None:
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.transport.write(_as_sent(refused))
        self.transport.close()

    def set_largest(self, size: int) -> None:
        self.conn.max_message_size = size

    async def send_raw(self, frames: bytes) -> None:
        """Frames as they go over the wire: whoever tells many the same makes them once, and sends several at a time."""
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(frames)

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close":
            # Few bytes, and the last: whoever has not read the rest yet hears why, too, if they ever do.
            self.writable.set()
        await super().send(message)
        if self.close_sent and self.initial_response is not None:
            # Refused in words, all of them. uvicorn does not note that, and would complain that there was no answer.
            self.handshake_complete = True
        if self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(self.close_timeout, self._let_go)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._let_go()

    def _let_go(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()
