"""What no request gets past: which host and origin it is for, how large, how often, how many, and who is asking.

Plain ASGI around the whole app, for HTTP and WebSockets alike. It puts who is asking into the scope
(``psi.identity``), writes one line of log for each request, and turns an accident inside into an answer that tells
nothing about it. Knows paths only to tell which ones are open to everybody and which are for administrators; what else
may be done there is not its business.

Why a service on loopback needs this at all: a web page that somebody visits runs on their machine, so it reaches what
listens there. Its requests carry the page's ``Origin``; and where a name is made to point at 127.0.0.1 (DNS rebinding),
so that to the browser page and service are one, they carry that name as ``Host``.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from psi.core.errors import Forbidden
from psi.core.identity import ADMIN, READ, Identity
from psi.errors import PsiError
from psi.faces.auth import Auth, Unauthenticated, peer_of
from psi.faces.rates import Rates
from psi.faces.wire import HttpRefused, error_body, session_of, status_of
from psi.settings import Settings, is_loopback, read_origin

__all__ = [
    "PUBLIC",
    "BodyTimeout",
    "BodyTooLarge",
    "Encoded",
    "Guard",
    "HostNotAllowed",
    "OriginNotAllowed",
    "Overloaded",
    "SeveralTypes",
    "TooManyRequests",
]

log = logging.getLogger("psi.faces")
access = logging.getLogger("psi.access")

# Open to everybody who gets this far. All else needs credentials, whether there is such a path or not.
PUBLIC: Final = frozenset({"/", "/healthz", "/login", "/openapi.json", "/readyz"})
_FOR_ADMINISTRATORS: Final = re.compile(r"/(metrics|auth/tokens(/.*)?)", re.DOTALL)

# What takes more than a body usually has: messages with images, and files with the lines of a form around them.
_MESSAGES: Final = re.compile(r"/sessions/[^/]+/messages")
_UPLOADS: Final = re.compile(r"/uploads")
_AROUND_FILES: Final = 1 << 20

# What takes less: there everybody may send something to be read, and all that is to be read is a token.
_LOGIN: Final = re.compile(r"/login")
_LARGEST_LOGIN: Final = 8 << 10  # bytes

# Asked by whatever decides whether this process lives on: never refused for want of room, nor for asking often.
_PROBES: Final = frozenset({"/healthz", "/readyz"})

_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/?#@\[\]]+))(?::[0-9]{1,5})?", re.IGNORECASE)

_CORS_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
_CORS_HEADERS: Final = "Accept, Authorization, Content-Type, Psi-Session"
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


class HostNotAllowed(HttpRefused):
    status = 403
    code = "host/not-allowed"

    def __init__(self, host: str | None) -> None:
        said = "without exactly one Host header" if host is None else f"for the host {host[:100]!r}"
        super().__init__(
            f"this service does not answer requests {said}; it is known as localhost, by the loopback addresses, and "
            "by what the setting allowed_hosts names",
            host=host,
        )


class OriginNotAllowed(HttpRefused):
    status = 403
    code = "origin/not-allowed"

    def __init__(self, origin: str | None) -> None:
        said = "another site" if origin is None else repr(origin[:100])
        super().__init__(
            f"web pages of {said} may not use this service; those that may are in the setting allowed_origins",
            origin=origin,
        )


class SeveralTypes(HttpRefused):
    code = "http/several-content-types"

    def __init__(self, given: int) -> None:
        super().__init__(f"the header Content-Type is there {given} times; a body is of one type", given=given)


class Encoded(HttpRefused):
    """The body would have to be unpacked first, to a size that nobody can tell beforehand."""

    status = 415
    code = "http/unsupported-encoding"
    headers: ClassVar[Mapping[str, str]] = {"Accept-Encoding": "identity"}

    def __init__(self, given: str) -> None:
        super().__init__(
            f"Content-Encoding {given[:100]!r} is not unpacked here; send the body as it is, without that header",
            accepted=["identity"],
        )


class BodyTooLarge(HttpRefused):
    status = 413
    code = "http/too-large"

    def __init__(self, limit: int, setting: str | None = "max_body") -> None:
        why = "and this is not for more" if setting is None else f"which is the setting {setting}"
        super().__init__(f"the body is larger than {limit} bytes, {why}", limit=limit, setting=setting)


class BodyTimeout(HttpRefused):
    status = 408
    code = "http/body-timeout"
    # What is still missing may come at any time, and would be taken for the next request.
    headers: ClassVar[Mapping[str, str]] = {"Connection": "close"}

    def __init__(self, seconds: float, *, whole: bool) -> None:
        missing = "the body did not come in within" if whole else "nothing more of the body came for"
        super().__init__(f"{missing} {seconds:g} s, which is the setting body_timeout", limit=seconds)


class _Bound(NamedTuple):
    """How large a body may be, and which setting says so; ``more`` is what stands around what the setting is about.

    ``whole``: whether all of it has to come in time. What may be large takes as long as its sender's line needs, so
    there it is only never to stand still.
    """

    limit: int
    setting: str | None
    more: int = 0
    whole: bool = False

    @property
    def bytes(self) -> int:
        return self.limit + self.more

    def exceeded(self) -> BodyTooLarge:
        return BodyTooLarge(self.limit, self.setting)


class _Later(HttpRefused):
    """Right, but not now."""

    def __init__(self, message: str, wait: float) -> None:
        seconds = max(1, math.ceil(wait))
        super().__init__(f"{message}; try again in {seconds} s", retry_after=seconds)
        self.headers = {"Retry-After": str(seconds)}  # type: ignore[misc]  # of this one, not of its kind


class TooManyRequests(_Later):
    status = 429
    code = "http/too-many-requests"

    def __init__(self, wait: float) -> None:
        super().__init__("too many requests from this client", wait)


class Overloaded(_Later):
    status = 503
    code = "http/overloaded"

    def __init__(self) -> None:
        super().__init__("too many requests and sockets are open at once", 1)


class Guard:
    """The middleware. ``rates`` is there for sockets, which count what comes in after the handshake."""

    def __init__(
        self, app: ASGIApp, settings: Settings, auth: Auth, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._auth = auth
        self._now = now
        self._body = _Bound(settings.max_body, "max_body", whole=True)
        self._body_timeout = settings.body_timeout
        login = _Bound(_LARGEST_LOGIN, None, whole=True) if settings.max_body > _LARGEST_LOGIN else self._body
        self._bounds = (
            (_MESSAGES, _Bound(settings.max_message, "max_message")),
            (_UPLOADS, _Bound(settings.max_upload, "max_upload", _AROUND_FILES)),
            (_LOGIN, login),
        )
        self._max_connections = settings.max_connections
        self._origins = frozenset(settings.allowed_origins)
        self._credentials_for_pages = settings.auth
        # Where no credentials are needed, the name that a request is for is all that keeps rebinding out. With them
        # it is not, as a browser sends a login only to the name that it was made under.
        self._checks_host = not settings.auth or bool(settings.allowed_hosts)
        # The host we listen on is one of our names, unless it means every address there is.
        self._hosts = frozenset({*settings.allowed_hosts, settings.host} - {"0.0.0.0", "::"})
        self.rates = Rates(settings.rate, settings.burst, now)
        self.open = 0  # requests under way and sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        visit = _Visit(scope, send, self._now)
        try:
            await self._let_in(scope, receive, visit)
        finally:
            visit.log()

    async def _let_in(self, scope: Scope, receive: Receive, visit: _Visit) -> None:
        headers = Headers(scope=scope)
        try:
            if self.open >= self._max_connections and scope["path"] not in _PROBES:
                raise Overloaded
            self._check_host(headers)
            origin = self._check_origin(scope, headers)
        except HttpRefused as refused:
            await visit.refuse(receive, refused)
            return
        if self._origins:
            visit.vary(origin if origin in self._origins else None, with_credentials=self._credentials_for_pages)
        self.open += 1
        try:
            await self._admit(scope, headers, receive, visit)
        finally:
            self.open -= 1

    async def _admit(self, scope: Scope, headers: Headers, receive: Receive, visit: _Visit) -> None:
        try:
            visit.identity, unknown = self._identify(scope)
            if scope["type"] != "http" or scope["path"] not in _PROBES:
                self._check_rate(visit.identity.client if visit.identity else visit.peer)
            if visit.is_preflight(headers):
                await visit.answer_preflight(headers)
                return
            if scope["type"] == "http":
                self._check_scope(scope["path"], visit.identity, unknown)
                self._check_length(scope, headers)
                _check_body(headers)
                _join_accept(scope, headers)
            else:
                session_of(headers)  # by the time its face looks, a socket is open and no status can be told
        except (HttpRefused, Forbidden) as refused:
            await visit.refuse(receive, refused)
            return
        scope["psi.identity"] = visit.identity
        scope["psi.rates"] = self.rates
        reading: Receive = (
            _Bounded(receive, visit, self._bound(scope), self._body_timeout)
            if scope["type"] == "http"
            else _Heard(receive, visit)
        )
        try:
            await self._app(scope, reading, visit.send)
        except Exception as broken:  # noqa: BLE001 – whatever it is: logged with all, told with nothing
            await visit.tell_accident(broken)

    # -- the checks, in their order

    def _check_host(self, headers: Headers) -> None:
        if not self._checks_host:
            return
        given = headers.getlist("host")
        found = _HOST.fullmatch(given[0].strip()) if len(given) == 1 else None
        if found is None:
            raise HostNotAllowed(given[0] if len(given) == 1 else None)
        name = (found[1] or found[2]).lower().removesuffix(".")
        if name not in self._hosts and not is_loopback(name):
            raise HostNotAllowed(given[0])

    def _check_origin(self, scope: Scope, headers: Headers) -> str | None:
        """The page that a request comes from, in its one form; None where it comes from none, or does not say."""
        given = headers.getlist("origin")
        if not given:
            _check_fetch(scope, headers)
            return None
        origin = read_origin(given[0]) if len(given) == 1 else None
        if origin is None or (origin not in self._origins and origin != _own_origin(scope, headers)):
            raise OriginNotAllowed(given[0])
        return origin

    def _identify(self, scope: Scope) -> tuple[Identity | None, Unauthenticated | None]:
        try:
            return self._auth.identify(HTTPConnection(scope)), None
        except Unauthenticated as unknown:
            return None, unknown

    def _check_rate(self, client: str) -> None:
        wait = self.rates.take(client)
        if wait:
            raise TooManyRequests(wait)

    def _check_scope(self, path: str, identity: Identity | None, unknown: Unauthenticated | None) -> None:
        if path in PUBLIC:
            return
        if unknown is not None:
            raise unknown
        needed = ADMIN if _FOR_ADMINISTRATORS.fullmatch(path) else READ
        if identity is None or needed not in identity.scopes:
            raise Forbidden(f"this needs a token with the scope {needed}", code="auth/missing-scope", scope=needed)

    def _bound(self, scope: Scope) -> _Bound:
        """How large a body may be: there are two places that take more than the others, and one that takes less."""
        if scope["method"] == "POST":
            for pattern, bound in self._bounds:
                if pattern.fullmatch(scope["path"]):
                    return bound
        return self._body

    def _check_length(self, scope: Scope, headers: Headers) -> None:
        length = headers.get("content-length", "")
        bound = self._bound(scope)
        if length.isascii() and length.isdigit() and int(length.lstrip("0")[:20] or 0) > bound.bytes:
            raise bound.exceeded()


def _check_body(headers: Headers) -> None:
    """Whether a body can be taken for what its headers say."""
    types = headers.getlist("content-type")
    if len(types) > 1:
        raise SeveralTypes(len(types))
    encoding = ", ".join(headers.getlist("content-encoding"))
    if encoding and any(each.strip().lower() not in ("", "identity") for each in encoding.split(",")):
        raise Encoded(encoding)


def _join_accept(scope: Scope, headers: Headers) -> None:
    """Several lines of a list are one list (RFC 9110, 5.3). Whoever looks behind us sees the first line only."""
    given = headers.getlist("accept")
    if len(given) > 1:
        others = [(name, value) for name, value in headers.raw if name != b"accept"]
        scope["headers"] = [*others, (b"accept", ", ".join(given).encode("latin-1"))]


def _own_origin(scope: Scope, headers: Headers) -> str | None:
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    return read_origin(f"{scheme}://{headers.get('host', '')}")


def _check_fetch(scope: Scope, headers: Headers) -> None:
    """A request of a browser that does not say its origin: a picture, a script, a link. What another site embeds is
    refused; following a link from there is fine, as that shows the answer to the person and not to the site."""
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return
    followed = (
        scope["type"] == "http"
        and scope["method"] in ("GET", "HEAD")
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
    if not followed:
        raise OriginNotAllowed(None)


class _Visit:
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


class _Heard:
    """What a socket's face reads from: all that comes, and how it ended is noted."""

    def __init__(self, receive: Receive, visit: _Visit) -> None:
        self._receive = receive
        self._visit = visit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._visit.closed(message.get("code", 1005))
        return message


class _Bounded:
    """What the app reads from: the body, as long as it is not too large and comes in time. What is beyond is not
    kept."""

    def __init__(self, receive: Receive, visit: _Visit, bound: _Bound, seconds: float) -> None:
        self._receive = receive
        self._visit = visit
        self._bound = bound
        self._limit = bound.bytes
        self._read = 0
        self._seconds = seconds
        self._until: float | None = None  # by the loop's clock, and once somebody has begun to read
        self._is_whole = False
        self._is_refused = False

    async def __call__(self) -> Message:
        if self._is_refused:
            return {"type": "http.disconnect"}
        try:
            message = await self._next()
        except TimeoutError:
            return await self._refuse(BodyTimeout(self._seconds, whole=self._bound.whole))
        if message["type"] == "http.request":
            self._is_whole = not message.get("more_body", False)
            self._read += len(message.get("body", b""))
            if self._read > self._limit:
                return await self._refuse(self._bound.exceeded())
        return message

    async def _next(self) -> Message:
        # Who reads on after the whole body, or while the answer is on its way, waits for the client to leave; that may
        # take as long as it takes.
        if not self._is_whole and self._visit.status is None:
            try:
                async with asyncio.timeout_at(self._deadline()):
                    return await self._receive()
            except TimeoutError:
                if self._visit.status is None:
                    raise
        return await self._receive()

    def _deadline(self) -> float:
        if self._until is None or not self._bound.whole:
            self._until = asyncio.get_running_loop().time() + self._seconds
        return self._until

    async def _refuse(self, refused: HttpRefused) -> Message:
        """The app hears that nobody is there any more; what the sender hears is why."""
        self._is_refused = True
        if self._visit.status is None:
            await self._visit.refuse(self._receive, refused)
        return {"type": "http.disconnect"}
