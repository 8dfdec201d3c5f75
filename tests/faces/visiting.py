"""Requests and handshakes as a server would hand them to an ASGI app, and what the app answers, without a network.

answer = await visit(app, "POST", "/eql", headers={"origin": "http://evil.example"}, body=b"[]")
assert answer.status == 403
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp

__all__ = ["Visited", "shake_hands", "visit"]

HOST = "127.0.0.1:8420"


@dataclass
class Visited:
    """What came back; names of headers in lower case."""

    sent: list[MutableMapping[str, Any]] = field(default_factory=list)
    read: int = 0  # how often the app asked for more

    @property
    def types(self) -> list[str]:
        return [message["type"] for message in self.sent]

    @property
    def _start(self) -> MutableMapping[str, Any]:
        return next(message for message in self.sent if message["type"].endswith("response.start"))

    @property
    def status(self) -> int:
        found: int = self._start["status"]
        return found

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self._start["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent if message["type"].endswith("response.body"))

    @property
    def code(self) -> str:
        """The code of the error that the body tells."""
        found: str = json.loads(self.body)["error"]["code"]
        return found


def _raw(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]


async def visit(
    app: ASGIApp,
    method: str = "GET",
    path: str = "/thing",
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    body: bytes | AsyncIterator[bytes] = b"",
    *,
    query: bytes = b"",
    host: str | None = HOST,
    scheme: str = "http",
    client: tuple[str, int] | None = ("127.0.0.1", 50_000),
) -> Visited:
    visited = Visited()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": path,
        "raw_path": path.encode("utf-8"),
        "query_string": query,
        "root_path": "",
        "headers": [*(_raw({"host": host}) if host is not None else ()), *_raw(headers)],
        "client": client,
        "server": ("127.0.0.1", 8420),
    }
    chunks = body if not isinstance(body, bytes) else _once(body)

    async def receive() -> MutableMapping[str, Any]:
        visited.read += 1
        async for chunk in chunks:
            return {"type": "http.request", "body": chunk, "more_body": True}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        visited.sent.append(message)

    await app(scope, receive, send)
    return visited


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def shake_hands(
    app: ASGIApp,
    path: str = "/socket",
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    *,
    can_answer: bool = True,
    host: str = HOST,
    scheme: str = "ws",
) -> Visited:
    """A WebSocket handshake, then a client that goes away. ``can_answer``: whether the server can refuse in words."""
    visited = Visited()
    scope = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": scheme,
        "path": path,
        "raw_path": path.encode("utf-8"),
        "query_string": b"",
        "root_path": "",
        "headers": [*_raw({"host": host}), *_raw(headers)],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8420),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}} if can_answer else {},
    }
    coming = iter(({"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}))

    async def receive() -> MutableMapping[str, Any]:
        return next(coming)

    async def send(message: MutableMapping[str, Any]) -> None:
        visited.sent.append(message)

    await app(scope, receive, send)
    return visited
