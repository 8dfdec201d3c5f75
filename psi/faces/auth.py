"""Who is asking: from what a request carries, a token or a login cookie, to an identity, or a clear 401.

Nothing is remembered between two requests, so a token that was revoked is refused at once. Decides nothing about what
an identity may do with whose session: that is the service's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar, Final

from starlette.requests import HTTPConnection

from psi.core.clock import Clock
from psi.core.identity import ALL_SCOPES, Identity
from psi.engine import SystemClock
from psi.faces.wire import HttpRefused
from psi.settings import Settings
from psi.store import Credentials, CredentialsUnusable, Login, Token

__all__ = ["COOKIE", "Auth", "CredentialsUnreachable", "Unauthenticated", "peer_of", "reached"]

log = logging.getLogger("psi.faces.auth")

COOKIE: Final = "psi_login"
CHALLENGE: Final = 'Bearer realm="psi"'

_UNKNOWN_PEER: Final = "unknown"


class Unauthenticated(HttpRefused):
    """Nobody knows who is asking. ``code`` tells why; whoever holds a token may hear that it has expired."""

    status = 401
    code = "auth/required"
    headers: ClassVar[Mapping[str, str]] = {"WWW-Authenticate": CHALLENGE}

    def __init__(self, message: str, *, code: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        if code is not None:
            self.code = code  # type: ignore[misc]  # one class for all reasons, a stable code for each


class CredentialsUnreachable(HttpRefused):
    """What credentials are checked against cannot be read or written right now. Why is in the log."""

    status = 503
    code = "auth/unavailable"
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}

    def __init__(self) -> None:
        super().__init__("credentials cannot be checked right now; try again in 5 s", retry_after=5)


@contextmanager
def reached() -> Iterator[None]:
    """Around whatever needs the file of credentials: what is wrong with the file is nothing for a caller."""
    try:
        yield
    except CredentialsUnusable as broken:
        log.error("credentials cannot be checked: %s", broken.message)
        raise CredentialsUnreachable from broken


class Auth:
    """Checks credentials where they are needed. Without ``credentials`` a service with auth on lets nobody in."""

    def __init__(self, settings: Settings, credentials: Credentials | None, clock: Clock | None = None) -> None:
        self._on = settings.auth
        self.credentials = credentials
        self._clock = clock or SystemClock()

    @property
    def on(self) -> bool:
        return self._on

    def now(self) -> datetime:
        return self._clock.now().wall

    def identify(self, connection: HTTPConnection) -> Identity:
        """Who sends this: the token in ``Authorization: Bearer``, or else the login cookie. Raises Unauthenticated."""
        if not self._on:
            return Identity(None, ALL_SCOPES, peer_of(connection.scope))
        given = connection.headers.getlist("authorization")
        if given:
            # A token that is sent and is bad is not made good by a cookie that comes with it.
            return self.identify_token(_bearer(given))
        cookie = connection.cookies.get(COOKIE)
        if cookie:
            return self._identify_login(cookie)
        raise Unauthenticated(
            "this needs a token: send it as `Authorization: Bearer psi_…`, or log in at /login with a browser; "
            "`psi-tool token create` makes one"
        )

    def identify_token(self, text: object, client: str = _UNKNOWN_PEER) -> Identity:
        """Who a token stands for. ``client``: what rates are counted by where no token is needed."""
        if not self._on:
            return Identity(None, ALL_SCOPES, client)
        return _identity(self.check_token(text))

    def check_token(self, text: object) -> Token:
        """The token that a text is, if it is good."""
        found = None
        if isinstance(text, str) and self.credentials is not None:
            with reached():
                found = self.credentials.find_token(text, now=self.now())
        if found is None:
            raise Unauthenticated(
                "this token is not known here; `psi-tool token list` shows those that are", code="auth/invalid-token"
            )
        return self._good(found)

    def still(self, identity: Identity) -> Identity:
        """The identity again, as its credentials are by now: for connections that stay open. Raises Unauthenticated
        once the token or the login behind it has ended."""
        if not self._on:
            return identity
        found: Token | None = None
        with reached():
            if self.credentials is not None and identity.client.startswith("login-"):
                return self._of_login(self.credentials.login(identity.client, now=self.now()))
            if self.credentials is not None:
                found = self.credentials.token(identity.client)
        if found is None:
            raise Unauthenticated("this token is not known here any more", code="auth/invalid-token")
        return _identity(self._good(found))

    def _identify_login(self, cookie: str) -> Identity:
        if self.credentials is None:
            return self._of_login(None)
        with reached():
            return self._of_login(self.credentials.find_login(cookie, now=self.now()))

    def _of_login(self, login: Login | None) -> Identity:
        if login is None:
            raise Unauthenticated("this login has ended; log in again at /login", code="auth/login-ended")
        return _identity(self._good(login.token), login.id)

    def _good(self, token: Token) -> Token:
        state = token.state(self.now())
        if state == "active":
            return token
        said = "has expired" if state == "expired" else "was revoked"
        raise Unauthenticated(
            f"this token {said}; `psi-tool token create` makes a new one", code=f"auth/{state}-token", token_id=token.id
        )


def peer_of(scope: Mapping[str, Any]) -> str:
    """The address at the other end, as what rates are counted by.

    Of an IPv6 address the first half counts: the second is the peer's own to choose, as often as it likes.
    """
    client = scope.get("client")
    if not client:
        return _UNKNOWN_PEER
    host: str = client[0]
    if ":" not in host:
        return host
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4 or address.is_loopback:
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped) if mapped is not None else str(ip_network(f"{address}/64", strict=False))


def _bearer(given: list[str]) -> str:
    scheme, _, text = given[0].strip().partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not text.strip():
        raise Unauthenticated(
            "Authorization cannot be used as it is; send it once, as `Authorization: Bearer psi_…`",
            code="auth/invalid-authorization",
        )
    return text.strip()


def _identity(token: Token, client: str | None = None) -> Identity:
    return Identity(token.user, token.scopes, client or token.id)
