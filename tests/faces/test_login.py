"""Logins and tokens over the wire: the real app on a real server, with real credentials."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from psi.core.errors import Forbidden
from psi.core.identity import Identity, read_scopes
from psi.edn import loads
from psi.faces.auth import Auth
from psi.faces.login import LoginFace
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Answer, Served, serving

FORM = "application/x-www-form-urlencoded"


class House:
    def __init__(self, served: Served, credentials: Credentials) -> None:
        self.served = served
        self.credentials = credentials

    def token(self, scope: str = "write", user: str = "ada", lasts: timedelta | None = None) -> str:
        return self.credentials.create_token(now=datetime.now(UTC), scopes=[scope], user=user, lasts=lasts).text

    async def ask(self, method: str, path: str, body: Any = None, token: str | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            named["authorization"] = f"Bearer {token}"
        return await self.served.request(method, path, body, named)

    async def log_in(self, token: str, **headers: str) -> str:
        answer = await self.ask("POST", "/login", {"token": token}, **headers)
        assert answer.status == 200
        return answer.headers["set-cookie"].partition(";")[0]


@asynccontextmanager
async def house(folder: Path, **settings: Any) -> AsyncIterator[House]:
    with Credentials.open(folder) as credentials:
        async with serving(Settings(auth=True, **settings), credentials=credentials) as served:
            yield House(served, credentials)


# -- logins


async def test_a_token_becomes_a_cookie_and_the_cookie_is_as_good(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/login", {"token": at.token()})
        assert answer.status == 200
        told = answer.json()
        assert (told["user"], told["scopes"]) == ("ada", ["read", "write"])
        cookie, *attributes = answer.headers["set-cookie"].split("; ")
        assert re.fullmatch(r"psi_login=[A-Za-z0-9_-]{43}", cookie)
        assert {each.lower() for each in attributes} == {"httponly", "max-age=43200", "path=/", "samesite=strict"}
        query = {"query": "[:psi.system/version]"}
        assert (await at.ask("POST", "/eql", query)).status == 401
        assert (await at.ask("POST", "/eql", query, cookie=cookie)).status == 200


async def test_a_form_leads_on_to_the_start_page_and_a_bad_token_back_to_the_form(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        own = {"content_type": FORM, "origin": at.served.url}
        answer = await at.ask("POST", "/login", urlencode({"token": f" {at.token()} "}), **own)
        assert (answer.status, answer.headers["location"]) == (303, "/")
        assert "psi_login=" in answer.headers["set-cookie"]
        for body, status in (("token=%3Cb%3E", 401), ("", 400), ("token=", 400), ("token=%ff", 401), ("a&" * 500, 400)):
            answer = await at.ask("POST", "/login", body, **own)
            assert (answer.status, answer.type) == (status, "text/html")
            assert "<b>" not in answer.text
            assert 'role="alert"' in answer.text
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("body", "media", "status", "code"),
    [
        ('{"token": "psi_x"}', "application/json", 401, "auth/invalid-token"),
        ('{"token": 7}', "application/json", 400, "auth/token-required"),
        ("{}", "application/json", 400, "auth/token-required"),
        ("[]", "application/json", 400, "auth/token-required"),
        ("{", "application/json", 400, "http/unreadable"),
        ("token", "application/xml", 415, "http/unsupported-media-type"),
        ("", "application/json", 400, "http/unreadable"),
    ],
)
async def test_a_login_that_cannot_be_says_why(tmp_path: Path, body: str, media: str, status: int, code: str) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/login", body, content_type=media)
        assert (answer.status, answer.json()["error"]["code"]) == (status, code)
        assert "set-cookie" not in answer.headers


async def test_a_login_in_edn_is_answered_in_edn(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/login", f'{{:token "{at.token()}"}}', content_type="application/edn")
        assert answer.status == 200
        assert loads(answer.body)["user"] == "ada"


async def test_the_cookie_is_for_https_alone_where_the_browser_came_by_it(tmp_path: Path) -> None:
    async with house(tmp_path, allowed_origins=("https://psi.example",)) as at:
        answer = await at.ask("POST", "/login", {"token": at.token()}, origin="https://psi.example")
        assert "secure" in answer.headers["set-cookie"].lower().split("; ")


async def test_a_cookie_lasts_no_longer_than_its_token(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/login", {"token": at.token(lasts=timedelta(minutes=10))})
        found = re.search(r"Max-Age=(\d+)", answer.headers["set-cookie"])
        assert found is not None
        assert 590 <= int(found[1]) <= 600


async def test_a_page_of_another_site_can_log_nobody_in(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/login", f"token={at.token()}", content_type=FORM, origin="http://evil.example")
        assert answer.status == 403
        assert "set-cookie" not in answer.headers


async def test_logging_out_ends_the_login_and_takes_the_cookie_back(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        cookie = await at.log_in(at.token())
        answer = await at.ask("POST", "/logout", cookie=cookie)
        assert answer.status == 204
        assert answer.headers["set-cookie"].startswith('psi_login="";')
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert (await at.ask("POST", "/logout", cookie=cookie)).json()["error"]["code"] == "auth/login-ended"
        cookie = await at.log_in(at.token())
        answer = await at.ask("POST", "/logout", "", cookie=cookie, content_type=FORM)
        assert (answer.status, answer.headers["location"]) == (303, "/login")


async def test_logging_in_again_ends_the_login_before(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        first = await at.log_in(at.token())
        second = await at.log_in(at.token(), cookie=first)
        query = {"query": "[:psi.system/version]"}
        assert (await at.ask("POST", "/eql", query, cookie=first)).status == 401
        assert (await at.ask("POST", "/eql", query, cookie=second)).status == 200


async def test_the_page_shows_a_form_or_who_is_there(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        page = await at.ask("GET", "/login")
        assert page.status == 200
        assert 'name="token" type="password"' in page.text
        page = await at.ask("GET", "/login", cookie=await at.log_in(at.token()))
        assert "logged in as <b>ada</b>" in page.text
        assert 'action="/logout"' in page.text


class _Loads(HTMLParser):
    """Whatever a page would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe") or any(name in ("src", "style", "onclick") for name, _ in attrs):
            self.found.append(tag)


async def test_the_page_loads_nothing_and_may_not(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        page = await at.ask("GET", "/login")
        loads_ = _Loads()
        loads_.feed(page.text)
        assert loads_.found == []
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'sha256-")
        assert "form-action 'self'" in policy
        assert "unsafe" not in policy


async def test_where_nobody_needs_to_log_in_nobody_can() -> None:
    async with serving() as served:
        assert "without authentication" in (await served.get("/login")).text
        for method, path in (("POST", "/login"), ("GET", "/auth/tokens"), ("POST", "/auth/tokens")):
            answer = await served.request(method, path, {})
            assert (answer.status, answer.json()["error"]["code"]) == (409, "auth/off")
        assert (await served.post("/logout")).status == 204


# -- tokens


async def test_an_administrator_makes_lists_and_revokes_tokens(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        admin = at.token("admin", "root")
        answer = await at.ask("POST", "/auth/tokens", {"name": "ci", "user": "bob", "scopes": ["read"]}, admin)
        assert answer.status == 201
        made = answer.json()
        assert answer.headers["location"] == f"/auth/tokens/{made['id']}"
        assert (made["user"], made["name"], made["scopes"], made["state"]) == ("bob", "ci", ["read"], "active")
        query = {"query": "[:psi.system/version]"}
        assert (await at.ask("POST", "/eql", query, made["token"])).status == 200

        listed = (await at.ask("GET", "/auth/tokens", token=admin)).json()["tokens"]
        assert [token["user"] for token in listed] == ["root", "bob"]
        assert all("token" not in token and "hash" not in token for token in listed)
        assert [t["id"] for t in (await at.ask("GET", "/auth/tokens?user=bob", token=admin)).json()["tokens"]] == [
            made["id"]
        ]

        ended = (await at.ask("DELETE", f"/auth/tokens/{made['id']}", token=admin)).json()
        assert (ended["id"], ended["state"]) == (made["id"], "revoked")
        assert (await at.ask("POST", "/eql", query, made["token"])).json()["error"]["code"] == "auth/revoked-token"


async def test_a_token_without_a_word_is_for_whoever_makes_it_and_may_read_and_write(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        made = (await at.ask("POST", "/auth/tokens", {}, at.token("admin", "root"))).json()
        assert (made["user"], made["scopes"], made["expires_at"]) == ("root", ["read", "write"], None)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"scope": ["read"]}, "auth/invalid-token-request"),
        ([], "auth/invalid-token-request"),
        ({"scopes": []}, "auth/invalid-scopes"),
        ({"scopes": "admin"}, "auth/invalid-scopes"),
        ({"scopes": ["root"]}, "auth/invalid-scopes"),
        ({"scopes": [["read"]]}, "auth/invalid-scopes"),
        ({"scopes": 7}, "auth/invalid-scopes"),
        ({"user": ""}, "auth/invalid-user"),
        ({"user": 7}, "auth/invalid-user"),
        ({"user": "a b"}, "auth/invalid-user"),
        ({"name": ""}, "auth/invalid-name"),
        ({"name": {"a": 1}}, "auth/invalid-name"),
        ({"expires_in": 0}, "auth/invalid-lifetime"),
        ({"expires_in": True}, "auth/invalid-lifetime"),
        ({"expires_in": "1h"}, "auth/invalid-lifetime"),
        ({"expires_in": 1e10}, "auth/invalid-lifetime"),
    ],
)
async def test_a_token_that_cannot_be_is_refused_and_none_is_made(tmp_path: Path, asked: Any, code: str) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/auth/tokens", asked, at.token("admin"))
        assert (answer.status, answer.json()["error"]["code"]) == (400, code)
        assert len(at.credentials.tokens()) == 1


@pytest.mark.parametrize("seconds", [1e30, 3_153_600_001, 0.5, 5e-324])
async def test_a_token_that_would_last_too_long_or_no_time_hears_how_long_it_may(
    tmp_path: Path, seconds: float
) -> None:
    async with house(tmp_path) as at:
        told = (await at.ask("POST", "/auth/tokens", {"expires_in": seconds}, at.token("admin"))).json()["error"]
        assert "seconds from 1 to 3153600000 (36500 days), got " in told["message"]
        assert told["details"] == {"minimum": 1, "maximum": 3_153_600_000}
        longest = await at.ask("POST", "/auth/tokens", {"expires_in": 3_153_600_000}, at.token("admin"))
        assert longest.status == 201


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, "http/unreadable"),
        (b"", "http/unreadable"),
        ({}, "auth/token-required"),
        ({"tokens": "psi_x"}, "auth/token-required"),
    ],
)
async def test_a_login_without_a_token_hears_what_a_login_takes(tmp_path: Path, body: Any, code: str) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/login", body)
        assert (answer.status, answer.json()["error"]["code"]) == (400, code)
        for way in ("a form (token=psi_…)", 'JSON ({"token": "psi_…"})', "EDN"):
            assert way in answer.json()["error"]["message"]


async def test_a_mistyped_key_is_told_the_right_one(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("POST", "/auth/tokens", {"scope": ["read"]}, at.token("admin"))
        assert answer.json()["error"]["message"] == "unknown key `scope`; did you mean `scopes`?"


async def test_who_cannot_read_the_answer_changes_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        admin = at.token("admin")
        (known,) = at.credentials.tokens()
        answer = await at.ask("DELETE", f"/auth/tokens/{known.id}", token=admin, accept="text/csv")
        assert answer.status == 406
        answer = await at.ask("POST", "/auth/tokens", {}, admin, accept="text/csv")
        assert answer.status == 406
        answer = await at.ask("POST", "/login", {"token": admin}, accept="text/csv")
        assert (answer.status, "set-cookie" in answer.headers) == (406, False)
        assert [token.revoked_at for token in at.credentials.tokens()] == [None]


async def test_a_token_that_is_not_there_cannot_be_revoked(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("DELETE", "/auth/tokens/tok-1", token=at.token("admin"))
        assert (answer.status, answer.json()["error"]["code"]) == (404, "auth/token-not-found")


@pytest.mark.parametrize("scope", ["read", "write"])
async def test_who_is_no_administrator_sees_and_makes_no_tokens(tmp_path: Path, scope: str) -> None:
    async with house(tmp_path) as at:
        token = at.token(scope)
        (known,) = at.credentials.tokens()
        for method, path in (("GET", "/auth/tokens"), ("POST", "/auth/tokens"), ("DELETE", f"/auth/tokens/{known.id}")):
            answer = await at.ask(method, path, {}, token)
            assert (answer.status, answer.json()["error"]["code"]) == (403, "auth/missing-scope")
        assert len(at.credentials.tokens()) == 1
        assert (await at.ask("GET", "/metrics", token=token)).status == 403


async def test_a_method_that_is_not_possible_is_told_those_that_are(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        answer = await at.ask("PUT", "/login", {})
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


# -- what a user sees


async def test_users_see_their_own_sessions_and_a_reader_changes_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        ada, bob, reader = at.token(user="ada"), at.token(user="bob"), at.token("read", "ada")
        create = {"action": "session", "op": "create", "name": "Ada's"}
        made = (await at.ask("POST", "/psi-tool", create, ada)).json()
        session = made["psi-tool/session"]["session"]["session-id"]

        async def count(token: str) -> int:
            answer = await at.ask("POST", "/psi-tool", {"action": "session", "op": "list"}, token)
            found: int = answer.json()["psi-tool/session"]["session-count"]
            return found

        assert [await count(token) for token in (ada, bob, reader)] == [1, 0, 1]
        show = {"action": "session", "op": "show", "session-id": session}
        assert (await at.ask("POST", "/psi-tool", show, bob)).json()["psi-tool/error"]["code"] == "session/not-found"
        refused = (await at.ask("POST", "/psi-tool", create, reader)).json()
        assert refused["psi-tool/error"]["code"] == "auth/read-only"
        assert await count(ada) == 1


async def test_tokens_are_for_administrators_even_where_no_guard_stands_before_them(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        face = LoginFace(Auth(Settings(auth=True), credentials))
        for identity in (None, Identity("ada", read_scopes(["write"]), "tok-1")):
            scope: dict[str, Any] = {
                "type": "http",
                "method": "GET",
                "path": "/auth/tokens",
                "headers": [],
                "psi.identity": identity,
            }
            with pytest.raises(Forbidden):
                await face.tokens(Request(scope))
