"""One request or one socket on its way through the guard: what it is answered, what every answer says besides, and the
lines of the log about it. Decides nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from psi.core.identity import Identity
from psi.errors import PsiError
from psi.faces.auth import peer_of
from psi.faces.wire import HttpRefused, error_body, status_of

__all__ = ["Heard", "Visit"]

log = logging.getLogger("psi.faces")
access = logging.getLogger("psi.access")

_CORS_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
_CORS_HEADERS: Final = "Accept, Authorization, Content-Type, Last-Event-ID, Psi-Session"
_CORS_EXPOSED: Final = "Location, Retry-After, WWW-Authenticate"
_CORS_REMEMBERED: Final = "600"  # seconds

_ALWAYS: Final = (
    (b"x-content-type-options", b"nosniff"),
    # Not `no-referrer`: the browser would send `Origin: null` with our own login form.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)

_FOR_PAGES: Final = (
    # For a page that says nothing itself: it may show text, and nothing else.
    (
        b"content-security-policy",
        b"default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
)

# What a token looks like; should one stand in a path by mistake, it stays out of the log all the same.
_SECRET: Final = re.compile(r"psi_[A-Za-z0-9_-]{20,}")
_LONGEST_PATH: Final = 200

# For servers that cannot answer a handshake with a status of ours; the status is where each one comes from.
_CLOSE_CODES: Final = {401: 4401, 403: 4403, 429: 4429, 503: 1013}


class Visit:
    """One request or one socket on its way through: what it was answered, and by when."""

    def __init__(self, scope: Scope, send: Send, now: Callable[[], float]) -> None:
        self._scope = scope
        self._send = send
        self._now = now
        self._started = now()
        self._is_socket = scope["type"] == "websocket"
        self._more: dict[str, str] = {}  # headers that every answer to this one has
        self.peer = peer_of(scope)
        self.identity: Identity | None = None
        self.status: int | None = None
        self.code: int | None = None  # that a socket was closed with, by whoever was first
        self.answered = False  # in full, by us; whatever the app still says goes nowhere

    # -- on the way out

    async def send(self, message: Message) -> None:
        if self.answered:
            return
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            self.status = message["status"]
            message = {**message, "headers": self._completed(message.get("headers", ()))}
        elif message["type"] == "websocket.accept":
            self.status = 101
            self._log_opened()
        elif message["type"] == "websocket.close":
            if self.status is None:
                self.status = 403  # which is what servers make of a socket that is closed before it was opened
            self.closed(message.get("code", 1000))
        await self._send(message)

    def closed(self, code: int) -> None:
        if self.code is None:
            self.code = code

    def _completed(self, given: Any) -> list[tuple[bytes, bytes]]:
        """The headers of an answer with those that it lacks; what an app has said itself stands."""
        raw = list(given)
        said = {name.lower(): value for name, value in raw}
        raw += [header for header in _ALWAYS if header[0] not in said]
        if said.get(b"content-type", b"").startswith(b"text/html"):
            raw += [header for header in _FOR_PAGES if header[0] not in said]
        if not self._more:
            return raw
        headers = MutableHeaders(raw=raw)
        for name, value in self._more.items():
            if name == "Vary":
                headers.add_vary_header(value)
            else:
                headers[name] = value
        return headers.raw

    async def refuse(self, receive: Receive, refused: PsiError) -> None:
        """Answer in the app's place."""
        more = refused.headers if isinstance(refused, HttpRefused) else {}
        await self._answer(status_of(refused), error_body(refused), more, receive)

    async def _answer(
        self, status: int, body: Mapping[str, Any], more: Mapping[str, str], receive: Receive | None = None
    ) -> None:
        content = orjson.dumps(body)
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]
        headers += [
            (b"content-type", b"application/json; charset=utf-8"),
            (b"content-length", str(len(content)).encode("latin-1")),
        ]
        if not self._is_socket:
            shown = b"" if self._scope["method"] == "HEAD" else content
            await self.send({"type": "http.response.start", "status": status, "headers": headers})
            await self.send({"type": "http.response.body", "body": shown})
        else:
            if receive is not None:
                await receive()  # websocket.connect: what we answer is the answer to that
            if "websocket.http.response" in self._scope.get("extensions", {}):
                await self.send({"type": "websocket.http.response.start", "status": status, "headers": headers})
                await self.send({"type": "websocket.http.response.body", "body": content})
            else:
                self.status = status
                await self.send({"type": "websocket.close", "code": _CLOSE_CODES.get(status, 1011)})
        self.answered = True

    async def tell_accident(self, broken: Exception) -> None:
        """What the app did not expect is for our log alone."""
        if self.answered:  # it stumbled over what we had taken away from it
            return
        log.error(
            "an unexpected error in %s %s", self._method, self._path, exc_info=broken, extra={"client": self._client}
        )
        if self.status is None:
            told = {"code": "psi/internal", "message": "something went wrong inside the service", "details": {}}
            await self._answer(500, {"error": told}, {})
        elif self._is_socket and self.status == 101:
            await self._close_socket()

    async def _close_socket(self) -> None:
        try:
            await self.send({"type": "websocket.close", "code": 1011})
        except (RuntimeError, OSError):  # it was closed already, by either side
            return

    # -- pages from elsewhere

    def vary(self, origin: str | None, *, with_credentials: bool) -> None:
        """The answer depends on who asks; ``origin`` is a page that may read it."""
        self._more["Vary"] = "Origin"
        if origin is None:
            return
        self._more["Access-Control-Allow-Origin"] = origin
        self._more["Access-Control-Expose-Headers"] = _CORS_EXPOSED
        self._more["Cross-Origin-Resource-Policy"] = "cross-origin"
        if with_credentials:  # without logins there is no cookie that a page could mean
            self._more["Access-Control-Allow-Credentials"] = "true"

    def is_preflight(self, headers: Headers) -> bool:
        """The browser asks whether a page that we know may send something."""
        return (
            not self._is_socket
            and self._scope["method"] == "OPTIONS"
            and "Access-Control-Allow-Origin" in self._more
            and "access-control-request-method" in headers
        )

    async def answer_preflight(self, headers: Headers) -> None:
        answer = {
            "Access-Control-Allow-Methods": _CORS_METHODS,
            "Access-Control-Allow-Headers": _CORS_HEADERS,
            "Access-Control-Max-Age": _CORS_REMEMBERED,
        }
        if headers.get("access-control-request-private-network") == "true":
            answer["Access-Control-Allow-Private-Network"] = "true"
        told = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.items()]
        await self.send({"type": "http.response.start", "status": 204, "headers": told})
        await self.send({"type": "http.response.body", "body": b""})
        self.answered = True

    # -- the log

    @property
    def _method(self) -> str:
        return "WebSocket" if self._is_socket else str(self._scope["method"])

    @property
    def _path(self) -> str:
        """The path as it may be written into a line: no query, no secret, nothing that would begin a new line."""
        path: str = self._scope["path"]
        if "psi_" in path:
            path = _SECRET.sub("psi_…", path)
        if not path.isprintable():
            path = path.encode("unicode_escape").decode("ascii")
        return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"

    @property
    def _client(self) -> str:
        return self.identity.client if self.identity is not None else self.peer

    def log(self) -> None:
        """The line of a request that is answered, or of a socket that is over."""
        if not access.isEnabledFor(logging.INFO):
            return
        seconds = self._now() - self._started
        if self._is_socket and self.status == 101:
            after = round(seconds, 3)
            code = "no code" if self.code is None else self.code
            fields = self._fields(code=self.code, seconds=after)
            access.info(
                "%s %s closed its socket with %s after %s s", self._method, self._path, code, after, extra=fields
            )
            return
        ms = round(seconds * 1_000, 3)
        ended = "ended without an answer" if self.status is None else f"answered {self.status}"
        access.info("%s %s %s in %s ms", self._method, self._path, ended, ms, extra=self._fields(ms=ms))

    def _log_opened(self) -> None:
        # A socket may stay for days; who is connected should not come out only when they leave.
        if access.isEnabledFor(logging.INFO):
            access.info("%s %s opened a socket", self._method, self._path, extra=self._fields())

    def _fields(self, **more: Any) -> dict[str, Any]:
        return {
            "method": self._method,
            "path": self._path,
            "status": self.status,
            **more,
            "client": self._client,
            "user": self.identity.user if self.identity is not None else None,
        }


class Heard:
    """What a socket's face reads from: all that comes, and how it ended is noted."""

    def __init__(self, receive: Receive, visit: Visit) -> None:
        self._receive = receive
        self._visit = visit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._visit.closed(message.get("code", 1005))
        return message
