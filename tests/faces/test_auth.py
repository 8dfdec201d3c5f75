"""Who is asking, as :class:`psi.faces.auth.Auth` tells from what a request carries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from psi.core.commands import Caller
from psi.core.identity import ALL_SCOPES, Identity
from psi.engine import VirtualClock
from psi.faces.auth import COOKIE, Auth, CredentialsUnreachable, Unauthenticated, peer_of
from psi.faces.wire import status_of
from psi.settings import Settings
from psi.store import Credentials, NewToken

ON = Settings(auth=True)


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.credentials = Credentials.open(folder)
        self.auth = Auth(ON, self.credentials, self.clock)

    def token(self, *scopes: str, lasts: timedelta | None = None, user: str = "ada") -> NewToken:
        wall = self.clock.now().wall
        return self.credentials.create_token(now=wall, user=user, scopes=scopes or ("write",), lasts=lasts)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.credentials.close()


def connection(*headers: tuple[str, str], client: tuple[str, int] | None = ("10.0.0.7", 1)) -> HTTPConnection:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return HTTPConnection({"type": "http", "headers": raw, "client": client, "path": "/", "method": "GET"})


def bearer(text: str) -> HTTPConnection:
    return connection(("authorization", f"Bearer {text}"))


def refusal(auth: Auth, asked: HTTPConnection) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as caught:
        auth.identify(asked)
    assert status_of(caught.value) == 401
    assert caught.value.headers["WWW-Authenticate"].startswith("Bearer")
    return caught.value


def test_without_auth_everybody_is_whoever_runs_the_process() -> None:
    auth = Auth(Settings(), None)
    nobody = Identity(None, ALL_SCOPES, "10.0.0.7")
    assert auth.identify(connection()) == nobody
    assert auth.identify(bearer("nonsense")) == nobody
    assert auth.identify_token("nonsense", "10.0.0.7") == nobody
    assert auth.still(nobody) == nobody


def test_a_token_stands_for_its_user_with_its_scopes(world: World) -> None:
    made = world.token("write", user="ada")
    expected = Identity("ada", frozenset({"read", "write"}), made.token.id)
    assert world.auth.identify(bearer(made.text)) == expected
    assert world.auth.identify(connection(("authorization", f"  bEARER   {made.text} "))) == expected
    assert world.auth.identify_token(made.text, client="10.0.0.7") == expected


def test_a_login_stands_for_the_user_of_its_token(world: World) -> None:
    made = world.token("read")
    login = world.credentials.log_in(made.token, now=world.clock.now().wall)
    found = world.auth.identify(connection(("cookie", f"a=b; {COOKIE}={login.text}; c=d")))
    assert found == Identity("ada", frozenset({"read"}), login.login.id)


def test_an_identity_becomes_a_caller_who_may_write_or_not(world: World) -> None:
    def caller(*scopes: str) -> Caller:
        return world.auth.identify_token(world.token(*scopes).text).caller("ses-1")

    assert caller("read") == Caller("ses-1", user="ada", may_write=False)
    assert caller("write") == Caller("ses-1", user="ada", may_write=True)
    assert caller("admin") == Caller("ses-1", user="ada", may_write=True)
    assert Identity(None, ALL_SCOPES, "x").caller(None) == Caller()


def test_nothing_at_all_is_told_what_is_needed(world: World) -> None:
    refused = refusal(world.auth, connection())
    assert refused.code == "auth/required"
    assert "Authorization: Bearer psi_…" in refused.message


@pytest.mark.parametrize("text", ["psi_" + "a" * 43, "psi_", "nonsense", "é" * 50, "psi_" + "a" * 100_000])
def test_a_token_that_nobody_made_is_refused(world: World, text: str) -> None:
    assert refusal(world.auth, bearer(text)).code == "auth/invalid-token"


@pytest.mark.parametrize("value", ["Basic YTpi", "Bearer", "Bearer ", "", "psi_abc"])
def test_another_kind_of_authorization_is_refused(world: World, value: str) -> None:
    assert refusal(world.auth, connection(("authorization", value))).code == "auth/invalid-authorization"


def test_two_authorizations_are_one_too_many(world: World) -> None:
    made = world.token()
    twice = connection(("authorization", f"Bearer {made.text}"), ("authorization", f"Bearer {made.text}"))
    assert refusal(world.auth, twice).code == "auth/invalid-authorization"


def test_a_bad_token_is_not_made_good_by_a_cookie(world: World) -> None:
    login = world.credentials.log_in(world.token().token, now=world.clock.now().wall)
    both = connection(("authorization", "Bearer psi_x"), ("cookie", f"{COOKIE}={login.text}"))
    assert refusal(world.auth, both).code == "auth/invalid-token"


@pytest.mark.parametrize("value", [None, 7, {"a": 1}, "", b"psi_"])
def test_a_token_that_is_no_text_is_refused(world: World, value: object) -> None:
    with pytest.raises(Unauthenticated):
        world.auth.identify_token(value)


async def test_a_token_is_refused_from_the_moment_it_expires(world: World) -> None:
    made = world.token(lasts=timedelta(minutes=5))
    login = world.credentials.log_in(made.token, now=world.clock.now().wall)
    await world.clock.advance(299)
    assert world.auth.identify(bearer(made.text))
    await world.clock.advance(1)
    refused = refusal(world.auth, bearer(made.text))
    assert (refused.code, refused.facts()) == ("auth/expired-token", {"token-id": made.token.id})
    assert refusal(world.auth, connection(("cookie", f"{COOKIE}={login.text}"))).code == "auth/login-ended"


def test_a_token_is_refused_from_the_moment_it_is_revoked(world: World) -> None:
    made = world.token()
    login = world.credentials.log_in(made.token, now=world.clock.now().wall)
    world.credentials.revoke(made.token.id, now=world.clock.now().wall)
    assert refusal(world.auth, bearer(made.text)).code == "auth/revoked-token"
    assert refusal(world.auth, connection(("cookie", f"{COOKIE}={login.text}"))).code == "auth/login-ended"


def test_a_connection_that_stays_open_can_ask_whether_its_credentials_still_hold(world: World) -> None:
    made = world.token()
    login = world.credentials.log_in(made.token, now=world.clock.now().wall)
    by_token = world.auth.identify_token(made.text)
    by_login = world.auth.identify(connection(("cookie", f"{COOKIE}={login.text}")))
    assert world.auth.still(by_token) == by_token
    assert world.auth.still(by_login) == by_login
    world.credentials.log_out(login.text)
    with pytest.raises(Unauthenticated):
        world.auth.still(by_login)
    world.credentials.revoke(made.token.id, now=world.clock.now().wall)
    with pytest.raises(Unauthenticated):
        world.auth.still(by_token)


def test_with_auth_on_and_no_file_nobody_comes_in() -> None:
    auth = Auth(ON, None)
    assert refusal(auth, bearer("psi_" + "a" * 43)).code == "auth/invalid-token"
    assert refusal(auth, connection(("cookie", f"{COOKIE}=x"))).code == "auth/login-ended"
    with pytest.raises(Unauthenticated):
        auth.still(Identity("ada", ALL_SCOPES, "tok-1"))


def test_a_file_that_cannot_be_read_lets_nobody_in_and_tells_nothing_about_itself(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    made = world.token()
    with sqlite3.connect(world.credentials.path) as db:
        db.execute("DROP TABLE logins")
        db.execute("DROP TABLE tokens")
    db.close()
    for asked in (bearer(made.text), connection(("cookie", f"{COOKIE}=x"))):
        with pytest.raises(CredentialsUnreachable) as caught:
            world.auth.identify(asked)
        assert status_of(caught.value) == 503
        assert "auth.db" not in caught.value.message
    assert "no such table" in caplog.text


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::1", "::1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::2", "::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("not:an:address", "not:an:address"),
    ],
)
def test_a_peer_is_its_address_or_what_it_cannot_choose_of_it(address: str, peer: str) -> None:
    assert peer_of({"client": (address, 1)}) == peer


def test_a_peer_without_an_address_has_a_name_all_the_same() -> None:
    assert peer_of({"client": None}) == peer_of({}) == "unknown"
