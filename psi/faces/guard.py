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

import math
import re
import time
from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from psi.core.errors import Forbidden
from psi.core.identity import ADMIN, READ, Identity
from psi.faces.auth import Auth, Unauthenticated
from psi.faces.bodies import Bounded, Bounds
from psi.faces.rates import Rates
from psi.faces.visit import Heard, Visit
from psi.faces.wire import HttpRefused, session_of
from psi.settings import Settings, is_loopback, read_origin

__all__ = [
    "PUBLIC",
    "Guard",
    "HostNotAllowed",
    "OriginNotAllowed",
    "Overloaded",
    "TooManyRequests",
]

# Open to everybody who gets this far. All else needs credentials, whether there is such a path or not.
PUBLIC: Final = frozenset({"/", "/healthz", "/login", "/openapi.json", "/readyz"})
_FOR_ADMINISTRATORS: Final = re.compile(r"/(metrics|auth/tokens(/.*)?)", re.DOTALL)

# Asked by whatever decides whether this process lives on: never refused for want of room, nor for asking often.
_PROBES: Final = frozenset({"/healthz", "/readyz"})

_HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/?#@\[\]]+))(?::[0-9]{1,5})?", re.IGNORECASE)


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
        self._bounds = Bounds(settings)
        self._body_timeout = settings.body_timeout
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
        visit = Visit(scope, send, self._now)
        try:
            await self._let_in(scope, receive, visit)
        finally:
            visit.log()

    async def _let_in(self, scope: Scope, receive: Receive, visit: Visit) -> None:
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

    async def _admit(self, scope: Scope, headers: Headers, receive: Receive, visit: Visit) -> None:
        try:
            visit.identity, unknown = self._identify(scope)
            if scope["type"] != "http" or scope["path"] not in _PROBES:
                self._check_rate(visit.identity.client if visit.identity else visit.peer)
            if visit.is_preflight(headers):
                await visit.answer_preflight(headers)
                return
            if scope["type"] == "http":
                self._check_scope(scope["path"], visit.identity, unknown)
                self._bounds.check(scope, headers)
                _join_accept(scope, headers)
            else:
                session_of(headers)  # by the time its face looks, a socket is open and no status can be told
        except (HttpRefused, Forbidden) as refused:
            await visit.refuse(receive, refused)
            return
        scope["psi.identity"] = visit.identity
        scope["psi.rates"] = self.rates
        reading: Receive = (
            Bounded(receive, visit, self._bounds.of(scope), self._body_timeout)
            if scope["type"] == "http"
            else Heard(receive, visit)
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
