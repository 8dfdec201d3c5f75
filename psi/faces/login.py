"""Logins of browsers, and the tokens behind them: ``/login``, ``/logout``, ``/auth/tokens``.

A login is a cookie in place of a token, so that the token itself is typed once and then stays out of the browser. Who
may come here at all is the guard's business; that tokens are for administrators is checked here once more.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import timedelta
from html import escape
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from psi.core.clock import instant_text
from psi.core.config import shown
from psi.core.errors import Conflict, Forbidden, Invalid
from psi.core.identity import ADMIN, SCOPES, Identity
from psi.core.session import LOCAL_USER
from psi.errors import PsiError
from psi.faces.asked import check_name
from psi.faces.auth import COOKIE, Auth, Unauthenticated, reached
from psi.faces.wire import Form, HttpRefused, Unreadable, answer, came_as, read_body, status_of, wanted
from psi.store import Credentials, Login, Token
from psi.store.credentials import LONGEST_LIFE

__all__ = ["LONGEST", "LoginFace", "login_routes"]

_FORM: Final = "application/x-www-form-urlencoded"
LONGEST: Final = int(LONGEST_LIFE.total_seconds())  # that a token may last
_TOKEN_KEYS: Final = ("name", "user", "scopes", "expires_in")

_LOGIN_TAKES: Final = (
    "a login is one field, `token`: an API token such as psi_…, sent as a form (token=psi_…), as JSON "
    '({"token": "psi_…"}) or as EDN'
)

_STYLE: Final = """
:root { color-scheme: light dark; --quiet: #666; --line: #8888; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --quiet: #999; --bad: #f2b8b5; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 4rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
label { display: block; margin-bottom: .3rem; }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; border: 1px solid var(--line);
  border-radius: 6px; }
button { font: inherit; margin-top: 1rem; padding: .5rem 1.2rem; border: 1px solid var(--line); border-radius: 6px; }
p.bad { color: var(--bad); }
p.quiet { color: var(--quiet); }
"""

# The page's own style is named by its hash; scripts, pictures and frames there are none.
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class UnreadableLogin(HttpRefused):
    status = 415
    code = "http/unsupported-media-type"

    def __init__(self) -> None:
        accepted = [_FORM, "application/json", "application/edn"]
        super().__init__(f"a login is sent as one of {', '.join(accepted)}", accepted=accepted)


class AuthOff(Conflict):
    """There is nothing to log in to."""

    code = "auth/off"

    def __init__(self) -> None:
        super().__init__("authentication is off: no token is needed, and there are none; start psi with --auth")


def login_routes(auth: Auth) -> list[Route]:
    face = LoginFace(auth)
    return [
        # One route for both methods, so that a third one hears of both.
        Route("/login", face.login, methods=["GET", "POST"]),
        Route("/logout", face.log_out, methods=["POST"]),
        Route("/auth/tokens", face.tokens, methods=["GET", "POST"]),
        Route("/auth/tokens/{id}", face.revoke_token, methods=["DELETE"]),
    ]


class LoginFace:
    def __init__(self, auth: Auth) -> None:
        self._auth = auth

    # -- logins

    async def login(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._log_in(request)
        return _page(self._auth.on, request.scope.get("psi.identity"))

    async def _log_in(self, request: Request) -> Response:
        """Show a token, get a cookie. A form gets a page back, JSON gets JSON, EDN gets EDN."""
        credentials = self._credentials()
        by_form = _is_form(request)
        try:
            token = self._auth.check_token(await _token_of(request))
            form = Form.JSON if by_form else _wanted(request)  # who cannot read the answer gets no login either
            now = self._auth.now()
            with reached():
                made = credentials.log_in(token, now=now)
                self._end(request, credentials)  # the login that this one takes the place of
        except (Unauthenticated, Invalid) as refused:
            if not by_form:
                raise
            return _page(True, None, refused)
        if by_form:
            response: Response = RedirectResponse("/", 303)
        else:
            response = answer(_login(made.login), form)
        response.set_cookie(
            COOKIE,
            made.text,
            max_age=int((made.login.expires_at - now).total_seconds()),
            path="/",
            secure=_by_https(request),
            httponly=True,
            samesite="strict",
        )
        return response

    async def log_out(self, request: Request) -> Response:
        if self._auth.credentials is not None:
            with reached():
                self._end(request, self._auth.credentials)
        response = RedirectResponse("/login", 303) if _is_form(request) else Response(status_code=204)
        response.delete_cookie(COOKIE, path="/", secure=_by_https(request), httponly=True, samesite="strict")
        return response

    def _end(self, request: Request, credentials: Credentials) -> None:
        before = request.cookies.get(COOKIE)
        if before:
            credentials.log_out(before)

    # -- tokens

    async def tokens(self, request: Request) -> Response:
        credentials = self._for_administrators(request)
        if request.method == "POST":
            return await self._create_token(request, credentials)
        with reached():
            found = credentials.tokens(request.query_params.get("user"))
        return answer({"tokens": [self._told(token) for token in found]}, _wanted(request))

    async def _create_token(self, request: Request, credentials: Credentials) -> Response:
        asked, came = await read_body(request)
        form = wanted(request.headers.get("accept"), came)
        given = _checked(asked)
        identity: Identity = request.scope["psi.identity"]
        lasts = given.get("expires_in")
        with reached():
            made = credentials.create_token(
                now=self._auth.now(),
                user=given.get("user", identity.user or LOCAL_USER),
                name=given.get("name"),
                scopes=given.get("scopes", ("read", "write")),
                lasts=timedelta(seconds=lasts) if lasts is not None else None,
            )
        headers = {"location": f"/auth/tokens/{made.token.id}"}
        return answer({"token": made.text, **self._told(made.token)}, form, 201, headers)

    async def revoke_token(self, request: Request) -> Response:
        credentials = self._for_administrators(request)
        form = _wanted(request)
        with reached():
            ended = credentials.revoke(request.path_params["id"], now=self._auth.now())
        return answer(self._told(ended), form)

    def _told(self, token: Token) -> dict[str, Any]:
        return {**token.as_data(), "state": token.state(self._auth.now())}

    def _for_administrators(self, request: Request) -> Credentials:
        identity: Identity | None = request.scope.get("psi.identity")
        if identity is None or ADMIN not in identity.scopes:
            raise Forbidden(f"this needs a token with the scope {ADMIN}", code="auth/missing-scope", scope=ADMIN)
        return self._credentials()

    def _credentials(self) -> Credentials:
        if not self._auth.on or self._auth.credentials is None:
            raise AuthOff
        return self._auth.credentials


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM


def _wanted(request: Request) -> Form:
    return wanted(request.headers.get("accept"), came_as(request.headers.get("content-type")))


def _by_https(request: Request) -> bool:
    """Whether the browser came by https: to us, or to somebody in front of us, as the origin of its page tells."""
    return request.url.scheme == "https" or request.headers.get("origin", "").lower().startswith("https://")


async def _token_of(request: Request) -> str:
    if _is_form(request):
        found: Any = _field(await request.body(), "token")
    else:
        try:
            came_as(request.headers.get("content-type"))
        except HttpRefused:
            raise UnreadableLogin from None
        if not await request.body():
            raise Unreadable(f"the body is empty; {_LOGIN_TAKES}")
        data, _ = await read_body(request)
        found = data.get("token") if isinstance(data, Mapping) else None
    if not isinstance(found, str) or not found.strip():
        raise Invalid(f"`token` is missing; {_LOGIN_TAKES}", code="auth/token-required", argument="token")
    return found.strip()


def _field(body: bytes, name: str) -> str | None:
    try:
        return parse_qs(body.decode("utf-8"), max_num_fields=100).get(name, [None])[0]
    except ValueError:  # not UTF-8, or a thousand fields
        return None


def _checked(asked: Any) -> dict[str, Any]:
    """What a new token shall be: every key known, every value of its kind."""
    if not isinstance(asked, Mapping):
        raise Invalid("a token is described by a map", code="auth/invalid-token-request", accepted=list(_TOKEN_KEYS))
    # What is null was left out; keys may be in kebab-case, as EDN has them.
    given = {str(key).replace("-", "_"): value for key, value in asked.items() if value is not None}
    for key in given:
        check_name("key", key, _TOKEN_KEYS, "auth/invalid-token-request")
    scopes = given.get("scopes")
    if scopes is not None and (isinstance(scopes, str | Mapping) or not hasattr(scopes, "__iter__")):
        raise Invalid(f"`scopes` must be a list of some of {', '.join(SCOPES)}", code="auth/invalid-scopes")
    seconds = given.get("expires_in")
    if seconds is not None and (type(seconds) not in (int, float) or not 1 <= seconds <= LONGEST):
        raise Invalid(
            f"`expires_in` must be a number of seconds from 1 to {LONGEST} ({LONGEST_LIFE.days} days), got "
            f"{shown(seconds)}",
            code="auth/invalid-lifetime",
            argument="expires_in",
            minimum=1,
            maximum=LONGEST,
        )
    return given


def _login(login: Login) -> dict[str, Any]:
    scopes = [scope for scope in SCOPES if scope in login.token.scopes]
    return {"user": login.token.user, "scopes": scopes, "expires_at": instant_text(login.expires_at)}


def _page(auth_on: bool, identity: Identity | None, refused: PsiError | None = None) -> Response:
    headers = {"content-security-policy": _POLICY}
    if isinstance(refused, HttpRefused):
        headers |= refused.headers
    status = status_of(refused) if refused is not None else 200
    return HTMLResponse(_html(_content(auth_on, identity, refused)), status, headers)


def _content(auth_on: bool, identity: Identity | None, refused: PsiError | None) -> str:
    if not auth_on:
        return "<p>Nobody has to log in here: psi runs without authentication.</p>"
    if identity is not None:
        who = escape(identity.user or LOCAL_USER)
        return f"""<p>You are logged in as <b>{who}</b>. <a href="/">To the start page</a></p>
<form method="post" action="/logout"><button>Log out</button></form>"""
    said = f'<p class="bad" role="alert">{escape(refused.message)}</p>' if refused is not None else ""
    return f"""{said}
<form method="post" action="/login">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus spellcheck="false">
<button>Log in</button>
</form>
<p class="quiet">Whoever runs psi makes one with <code>psi-tool token create</code>.</p>"""


def _html(content: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>psi: log in</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>psi</h1>
{content}
</body>
</html>
"""
