"""What no request gets past, with small apps behind it; what only shows on the wire is in test_guard_on_the_wire."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from psi.core.identity import ALL_SCOPES, Identity
from psi.faces.auth import Auth
from psi.faces.guard import PUBLIC, Guard
from psi.faces.rates import Rates
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.visiting import HOST, Visited, shake_hands, visit

PAGE = "https://page.example"


class Ticks:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Echo:
    """An app that reads the body and tells who asked; over a socket, too."""

    def __init__(self) -> None:
        self.called = 0
        self.identity: Identity | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.called += 1
        self.identity = scope.get("psi.identity")
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            return
        body = await Request(scope, receive).body()
        await JSONResponse({"read": len(body)})(scope, receive, send)


def guarded(app: Any = None, clock: Ticks | None = None, **settings: Any) -> Guard:
    chosen = Settings(**settings)
    return Guard(app or Echo(), chosen, Auth(chosen, None), now=clock or Ticks())


# -- the host


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8420", "LocalHost.", "127.0.0.1:1", "127.3.2.1", "[::1]:8420", "[::1]"]
)
async def test_a_request_for_this_machine_is_let_in(host: str) -> None:
    assert (await visit(guarded(), host=host)).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8420", "localhost.evil.example", "127.0.0.1.evil.example", "127.1", "0.0.0.0", "",
     "localhost@evil.example", "localhost evil", "evil.example#localhost", "[evil.example]", "10.0.0.7",
     "localhost:8420:1"],
)  # fmt: skip
async def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    app = Echo()
    answer = await visit(guarded(app), host=host)
    assert (answer.status, answer.code) == (403, "host/not-allowed")
    assert app.called == 0


async def test_no_host_and_two_hosts_are_refused() -> None:
    assert (await visit(guarded(), host=None)).code == "host/not-allowed"
    assert (await visit(guarded(), headers=[("host", "localhost")])).code == "host/not-allowed"


async def test_names_that_the_settings_allow_are_let_in_and_loopback_stays() -> None:
    guard = guarded(allowed_hosts=("psi.example",))
    assert (await visit(guard, host="PSI.example:80")).status == 200
    assert (await visit(guard, host="localhost")).status == 200
    assert (await visit(guard, host="other.example")).status == 403


async def test_the_address_that_the_service_listens_on_is_one_of_its_names_unless_it_means_all() -> None:
    guard = guarded(host="10.0.0.7", allow_unauthenticated_network=True)
    assert (await visit(guard, host="10.0.0.7:8420")).status == 200
    guard = guarded(host="0.0.0.0", allow_unauthenticated_network=True)
    assert (await visit(guard, host="0.0.0.0:8420")).status == 403
    assert (await visit(guard, host="10.0.0.7:8420")).status == 403


async def test_with_auth_any_name_will_do_until_some_are_named() -> None:
    assert (await visit(guarded(auth=True), path="/healthz", host="psi.example")).status == 200
    guard = guarded(auth=True, allowed_hosts=("psi.example",))
    assert (await visit(guard, path="/healthz", host="psi.example")).status == 200
    assert (await visit(guard, path="/healthz", host="evil.example")).status == 403


# -- the origin


async def test_our_own_pages_and_programs_without_an_origin_are_let_in() -> None:
    guard = guarded()
    assert (await visit(guard, "POST")).status == 200
    assert (await visit(guard, "POST", headers={"origin": f"http://{HOST}"})).status == 200
    assert (await visit(guard, "POST", headers={"origin": "http://localhost"}, host="localhost:80")).status == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "*", f"https://{HOST}", "http://127.0.0.1:3000", "http://localhost:8420",
     "http://127.0.0.1:8420.evil.example", f"http://{HOST}/", f"http://user@{HOST}", "file://"],
)  # fmt: skip
async def test_pages_of_others_are_refused(origin: str) -> None:
    app = Echo()
    answer = await visit(guarded(app), "POST", headers={"origin": origin})
    assert (answer.status, answer.code) == (403, "origin/not-allowed")
    assert "access-control-allow-origin" not in answer.headers
    assert app.called == 0


async def test_two_origins_are_one_too_many() -> None:
    own = ("origin", f"http://{HOST}")
    assert (await visit(guarded(), headers=[own, own])).code == "origin/not-allowed"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_what_another_site_embeds_is_refused_and_following_a_link_is_not(site: str) -> None:
    guard = guarded()
    image = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
    link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    frame = {**link, "sec-fetch-dest": "iframe"}
    assert (await visit(guard, headers=image)).code == "origin/not-allowed"
    assert (await visit(guard, headers=frame)).code == "origin/not-allowed"
    assert (await visit(guard, "POST", headers=link)).code == "origin/not-allowed"
    assert (await visit(guard, headers={"sec-fetch-site": site})).code == "origin/not-allowed"
    assert (await visit(guard, headers=link)).status == 200


@pytest.mark.parametrize("site", ["none", "same-origin"])
async def test_what_a_person_types_or_our_own_page_asks_for_is_let_in(site: str) -> None:
    assert (await visit(guarded(), headers={"sec-fetch-site": site})).status == 200


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
async def test_a_socket_of_another_site_is_refused_in_words_where_the_server_can(headers: Mapping[str, str]) -> None:
    app = Echo()
    answer = await shake_hands(guarded(app), headers=headers)
    assert answer.types == ["websocket.http.response.start", "websocket.http.response.body"]
    assert (answer.status, answer.code) == (403, "origin/not-allowed")
    assert app.called == 0


async def test_and_by_a_code_where_it_cannot() -> None:
    answer = await shake_hands(guarded(), headers={"origin": "http://evil.example"}, can_answer=False)
    assert answer.sent == [{"type": "websocket.close", "code": 4403}]


async def test_a_socket_of_our_own_page_is_let_in() -> None:
    assert (await shake_hands(guarded(), headers={"origin": f"http://{HOST}"})).types == ["websocket.accept"]
    secure = await shake_hands(guarded(), headers={"origin": f"https://{HOST}"}, scheme="wss")
    assert secure.types == ["websocket.accept"]


async def test_a_socket_of_two_sessions_is_refused() -> None:
    one = ("psi-session", "ses-1")
    assert (await shake_hands(guarded(), headers=[one])).types == ["websocket.accept"]
    answer = await shake_hands(guarded(), headers=[one, one])
    assert (answer.status, answer.code) == (400, "http/several-sessions")


async def test_a_socket_for_another_host_is_refused() -> None:
    assert (await shake_hands(guarded(), host="evil.example")).code == "host/not-allowed"


# -- pages from elsewhere that may


async def test_a_page_that_the_settings_allow_may_read_the_answer() -> None:
    guard = guarded(allowed_origins=(PAGE,))
    answer = await visit(guard, "POST", headers={"origin": PAGE})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    assert (await shake_hands(guard, headers={"origin": PAGE})).types == ["websocket.accept"]


async def test_it_may_ask_beforehand() -> None:
    app = Echo()
    asked = {"origin": PAGE, "access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    answer = await visit(guarded(app, allowed_origins=(PAGE,)), "OPTIONS", headers=asked)
    assert (answer.status, answer.body, app.called) == (204, b"", 0)
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert {"authorization", "content-type", "psi-session"} <= {
        name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")
    }
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-private-network" not in answer.headers


async def test_it_may_ask_whether_a_public_page_can_reach_a_private_machine() -> None:
    asked = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-private-network": "true",
    }
    answer = await visit(guarded(allowed_origins=(PAGE,)), "OPTIONS", headers=asked)
    assert answer.headers["access-control-allow-private-network"] == "true"


async def test_asking_beforehand_needs_no_credentials_and_what_is_refused_can_be_read() -> None:
    guard = guarded(auth=True, allowed_origins=(PAGE,))
    asked = {"origin": PAGE, "access-control-request-method": "POST"}
    answer = await visit(guard, "OPTIONS", headers=asked)
    assert (answer.status, answer.headers["access-control-allow-credentials"]) == (204, "true")
    answer = await visit(guard, "POST", headers={"origin": PAGE})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (401, PAGE)
    assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]


async def test_another_page_that_asks_beforehand_is_refused() -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = await visit(guarded(allowed_origins=(PAGE,)), "OPTIONS", headers=asked)
    assert (answer.status, answer.code) == (403, "origin/not-allowed")
    assert "access-control-allow-origin" not in answer.headers


async def test_where_pages_are_allowed_every_answer_says_that_it_depends_on_them() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("x", headers={"vary": "Accept"})(scope, receive, send)

    answer = await visit(guarded(app, allowed_origins=(PAGE,)))
    assert answer.headers["vary"] == "Accept, Origin"
    assert "access-control-allow-origin" not in answer.headers


async def test_options_without_a_question_of_a_page_goes_to_the_app() -> None:
    app = Echo()
    assert (await visit(guarded(app), "OPTIONS")).status == 200
    assert app.called == 1


# -- the size


async def test_a_body_at_the_limit_is_read_and_one_beyond_it_is_not() -> None:
    app = Echo()
    guard = guarded(app, max_body=100)
    assert json.loads((await visit(guard, "POST", body=b"x" * 100)).body) == {"read": 100}
    answer = await visit(guard, "POST", headers={"content-length": "101"}, body=b"x" * 101)
    assert (answer.status, answer.code) == (413, "http/too-large")
    assert answer.read == 0
    assert app.called == 1


async def test_several_lines_of_accept_are_one_list() -> None:
    class Seen:
        headers: list[tuple[bytes, bytes]]

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            self.headers = scope["headers"]
            await Echo()(scope, receive, send)

    seen = Seen()
    lines = [("accept", "text/html"), ("x-other", "1"), ("accept", "application/edn;q=0.5")]
    assert (await visit(guarded(seen), headers=lines)).status == 200
    assert [value for name, value in seen.headers if name == b"accept"] == [b"text/html, application/edn;q=0.5"]
    assert (b"x-other", b"1") in seen.headers


async def test_two_content_types_are_refused_even_if_they_are_the_same() -> None:
    answer = await visit(guarded(), "POST", headers=[("content-type", "application/json")] * 2, body=b"{}")
    assert (answer.status, answer.code) == (400, "http/several-content-types")


@pytest.mark.parametrize("given", ["gzip", "GZip", "identity, br", "x"])
async def test_a_body_that_would_have_to_be_unpacked_is_refused(given: str) -> None:
    answer = await visit(guarded(), "POST", headers={"content-encoding": given}, body=b"x")
    assert (answer.status, answer.code) == (415, "http/unsupported-encoding")
    assert answer.headers["accept-encoding"] == "identity"
    assert "is not unpacked here" in json.loads(answer.body)["error"]["message"]


@pytest.mark.parametrize("given", ["identity", "Identity", ""])
async def test_a_body_that_says_that_it_is_as_it_is_is_read(given: str) -> None:
    assert (await visit(guarded(), "POST", headers={"content-encoding": given}, body=b"x")).status == 200


async def test_a_login_is_no_place_for_much_as_everybody_may_send_one() -> None:
    guard = guarded(max_body=1 << 20)
    assert (await visit(guard, "POST", "/login", body=b"x" * 8_192)).status == 200
    answer = await visit(guard, "POST", "/login", body=b"x" * 8_193)
    assert (answer.status, answer.code) == (413, "http/too-large")
    assert json.loads(answer.body)["error"]["message"] == (
        "the body is larger than 8192 bytes, and this is not for more"
    )
    small = await visit(guarded(max_body=100), "POST", "/login", body=b"x" * 101)
    assert "the setting max_body" in json.loads(small.body)["error"]["message"]


@pytest.mark.parametrize("length", ["9" * 500, "00000000000000000000101"])
async def test_a_length_however_it_is_written_is_a_length(length: str) -> None:
    answer = await visit(guarded(max_body=100), "POST", headers={"content-length": length})
    assert answer.status == 413


async def test_a_stream_is_cut_off_where_it_becomes_too_large_and_read_no_further() -> None:
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while True:
            given += 40
            yield b"x" * 40

    answer = await visit(guarded(max_body=100), "POST", body=endless())
    assert (answer.status, answer.code) == (413, "http/too-large")
    assert given == 120
    assert answer.types == ["http.response.start", "http.response.body"]


async def test_a_length_that_lies_does_not_help() -> None:
    answer = await visit(guarded(max_body=100), "POST", headers={"content-length": "5"}, body=b"x" * 101)
    assert answer.status == 413


async def test_whatever_the_app_says_after_that_goes_nowhere() -> None:
    async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
        for _ in range(3):
            message = await receive()
        assert message["type"] == "http.disconnect"
        await PlainTextResponse("read it all")(scope, receive, send)

    answer = await visit(guarded(stubborn, max_body=100), "POST", body=b"x" * 101)
    assert answer.status == 413
    assert b"read it all" not in answer.body


async def test_an_answer_that_had_begun_is_not_answered_again() -> None:
    async def eager(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.body", "body": b"short"})

    answer = await visit(guarded(eager, max_body=100), "POST", body=b"x" * 101)
    assert (answer.status, answer.body) == (200, b"short")


# -- the rate


async def test_a_client_may_send_a_burst_and_then_as_many_as_the_rate() -> None:
    clock = Ticks()
    guard = guarded(clock=clock, rate=2.0, burst=3)
    assert [(await visit(guard)).status for _ in range(4)] == [200, 200, 200, 429]
    clock.now += 0.5
    assert [(await visit(guard)).status for _ in range(2)] == [200, 429]
    clock.now += 100
    assert [(await visit(guard)).status for _ in range(4)] == [200, 200, 200, 429]


async def test_who_is_refused_is_told_when_to_come_again_and_then_may() -> None:
    clock = Ticks()
    guard = guarded(clock=clock, rate=0.1, burst=1)
    await visit(guard)
    clock.now += 2.5
    answer = await visit(guard)
    assert (answer.status, answer.code) == (429, "http/too-many-requests")
    assert answer.headers["retry-after"] == "8"
    assert json.loads(answer.body)["error"]["details"] == {"retry_after": 8}
    clock.now += 8
    assert (await visit(guard)).status == 200


async def test_a_handshake_counts_and_is_refused_alike() -> None:
    guard = guarded(rate=1.0, burst=2)
    assert (await shake_hands(guard)).types == ["websocket.accept"]
    assert (await visit(guard)).status == 200
    answer = await shake_hands(guard)
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "http/too-many-requests", "1")
    assert (await shake_hands(guard, can_answer=False)).sent == [{"type": "websocket.close", "code": 4429}]


async def test_clients_do_not_take_from_each_other() -> None:
    guard = guarded(rate=1.0, burst=1)
    assert (await visit(guard, client=("10.0.0.1", 1))).status == 200
    assert (await visit(guard, client=("10.0.0.1", 2))).status == 429
    assert (await visit(guard, client=("10.0.0.2", 1))).status == 200


def test_a_rate_that_is_kept_is_never_refused() -> None:
    clock = Ticks()
    rates = Rates(3.0, 1, clock)
    for _ in range(1_000):
        assert rates.take("a") == 0
        clock.now += 1 / 3


def test_buckets_are_bounded_and_the_one_that_was_quiet_longest_goes() -> None:
    rates = Rates(1.0, 1, Ticks(), most=2)
    assert rates.take("a") == 0
    assert rates.take("b") == 0
    assert rates.take("a") > 0
    assert rates.take("c") == 0
    assert len(rates) == 2
    assert rates.take("a") > 0
    assert rates.take("b") == 0


def test_asking_again_and_again_does_not_make_the_wait_longer() -> None:
    rates = Rates(1.0, 1, Ticks())
    rates.take("a")
    assert {rates.take("a") for _ in range(5)} == {1.0}


# -- how long a body may take


async def never() -> AsyncIterator[bytes]:
    yield b"some"
    await asyncio.Event().wait()


@pytest.mark.parametrize("path", ["/thing", "/uploads", "/sessions/ses-1/messages"])
async def test_a_body_that_stands_still_is_answered_and_its_place_is_free_again(path: str) -> None:
    guard = guarded(body_timeout=0.05)
    async with asyncio.timeout(5):
        answer = await visit(guard, "POST", path, body=never())
    assert (answer.status, answer.code) == (408, "http/body-timeout")
    assert answer.headers["connection"] == "close"
    assert answer.types == ["http.response.start", "http.response.body"]
    assert guard.open == 0


async def drops(count: int, seconds: float) -> AsyncIterator[bytes]:
    """A body in pieces, each at its time by the loop's clock."""
    loop = asyncio.get_running_loop()
    for _ in range(count):
        due = asyncio.Event()
        loop.call_later(seconds, due.set)
        await due.wait()
        yield b"x"


async def test_a_usual_body_has_to_come_in_time_as_a_whole_and_a_large_one_only_to_keep_coming() -> None:
    guard = guarded(body_timeout=0.3)
    async with asyncio.timeout(5):
        assert (await visit(guard, "POST", body=drops(10, 0.05))).status == 408
        assert (await visit(guard, "POST", "/uploads", body=drops(10, 0.05))).status == 200
        assert (await visit(guard, "POST", body=drops(2, 0.05))).status == 200


async def test_what_comes_after_the_body_may_take_its_time() -> None:
    async def lasting(scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await receive()  # until the client leaves, which it does not
        await PlainTextResponse(body)(scope, receive, send)

    assert await told(guarded(lasting, body_timeout=0.01), b"all") == (200, b"all")


async def test_a_body_that_stands_still_behind_an_answer_that_has_begun_does_not_spoil_it() -> None:
    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(receive())
        await asyncio.sleep(0)  # it waits
        await send({"type": "http.response.start", "status": 200, "headers": []})
        done, _ = await asyncio.wait([leaving], timeout=0.1)
        assert not done
        leaving.cancel()
        await send({"type": "http.response.body", "body": b"all of it"})

    assert await told(guarded(streaming, body_timeout=0.01)) == (200, b"all of it")


async def told(guard: Guard, *whole: bytes) -> tuple[int, bytes]:
    """What a client hears that sends a whole body, or nothing of it, and then stays and is silent."""
    coming = [{"type": "http.request", "body": body, "more_body": False} for body in whole]
    sent: list[Any] = []

    async def receive() -> Any:
        if not coming:
            await asyncio.Event().wait()
        return coming.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    place = {"method": "POST", "path": "/thing", "scheme": "http", "query_string": b""}
    await guard({"type": "http", **place, "headers": [(b"host", HOST.encode())]}, receive, send)
    return sent[0]["status"], sent[1]["body"]


# -- how many at once


class Waiting:
    """An app whose answers wait until they are told to go on."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        self.begun.release()
        await self.go_on.wait()
        if scope["type"] == "http":
            await PlainTextResponse("done")(scope, receive, send)


async def test_requests_and_sockets_share_a_number_of_places() -> None:
    app = Waiting()
    guard = guarded(app, max_connections=2)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(visit(guard))
        tasks.create_task(shake_hands(guard))
        await app.begun.acquire()
        await app.begun.acquire()
        answer = await visit(guard)
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "http/overloaded", "1")
        refused = await shake_hands(guard)
        assert (refused.status, refused.code) == (503, "http/overloaded")
        assert (await shake_hands(guard, can_answer=False)).sent == [{"type": "websocket.close", "code": 1013}]
        app.go_on.set()
    assert first.result().body == b"done"
    assert guard.open == 0
    assert (await visit(guard)).status == 200


async def test_whoever_looks_after_the_process_always_gets_an_answer() -> None:
    app = Waiting()
    guard = guarded(app, max_connections=1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(visit(guard))
        await app.begun.acquire()
        probe = tasks.create_task(visit(guard, path="/healthz"))
        await app.begun.acquire()
        app.go_on.set()
    assert probe.result().status == 200


async def test_and_however_often_it_looks() -> None:
    guard = guarded(burst=1)
    assert (await visit(guard)).status == 200
    assert (await visit(guard)).status == 429
    for path in ("/healthz", "/readyz") * 3:
        assert (await visit(guard, path=path)).status == 200
    assert (await shake_hands(guard, "/healthz")).status == 429  # nobody looks that way


async def test_a_place_is_given_back_whatever_happens() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    app = Waiting()
    guard = guarded(broken, max_connections=1)
    await visit(guard)
    assert guard.open == 0
    guard = guarded(app, max_connections=1)
    task = asyncio.create_task(visit(guard))
    await app.begun.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert guard.open == 0


# -- who is asking


class House:
    """A guard with real credentials behind it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.app = Echo()
        self.settings = Settings(auth=True, **settings)
        self.credentials = Credentials.open(folder)
        self.auth = Auth(self.settings, self.credentials)
        self.guard = Guard(self.app, self.settings, self.auth, now=Ticks())

    def token(self, scope: str = "read", user: str = "ada") -> str:
        return self.credentials.create_token(now=self.auth.now(), scopes=[scope], user=user).text

    async def visit(self, path: str, token: str | None = None, method: str = "GET") -> Visited:
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        return await visit(self.guard, method, path, headers=headers)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path)
    yield made
    made.credentials.close()


async def test_without_auth_everybody_may_everywhere() -> None:
    app = Echo()
    for path in ("/eql", "/metrics", "/auth/tokens", "/"):
        assert (await visit(guarded(app), path=path)).status == 200
        assert app.identity == Identity(None, ALL_SCOPES, "127.0.0.1")


@pytest.mark.parametrize("path", sorted(PUBLIC))
async def test_a_public_path_needs_no_credentials_and_bad_ones_do_no_harm(house: House, path: str) -> None:
    for token in (None, "psi_nonsense"):
        assert (await house.visit(path, token)).status == 200
        assert house.app.identity is None
    assert (await house.visit(path, house.token())).status == 200
    assert house.app.identity is not None


@pytest.mark.parametrize(
    "path",
    [
        "/eql",
        "/psi-tool",
        "/graphql",
        "/metrics",
        "/auth/tokens",
        "/logout",
        "/nowhere",
        "/login/",
        "//",
        "/healthz/x",
        "",
    ],
)
async def test_any_other_path_answers_401_without_reaching_the_app(house: House, path: str) -> None:
    for token in (None, "psi_nonsense"):
        answer = await house.visit(path, token, "POST")
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="psi"'
        assert answer.code in ("auth/required", "auth/invalid-token")
    assert house.app.called == 0


async def test_a_token_is_let_in_as_its_user(house: House) -> None:
    assert (await house.visit("/eql", house.token("read", "bob"))).status == 200
    assert house.app.identity is not None
    assert (house.app.identity.user, house.app.identity.scopes) == ("bob", frozenset({"read"}))


@pytest.mark.parametrize("path", ["/metrics", "/auth/tokens", "/auth/tokens/tok-1", "/auth/tokens/\n"])
async def test_what_is_for_administrators_needs_that_scope(house: House, path: str) -> None:
    for scope in ("read", "write"):
        answer = await house.visit(path, house.token(scope))
        assert (answer.status, answer.code) == (403, "auth/missing-scope")
    assert house.app.called == 0
    assert (await house.visit(path, house.token("admin"))).status == 200


async def test_a_revoked_token_is_refused_by_the_next_request(house: House) -> None:
    text = house.token()
    assert (await house.visit("/eql", text)).status == 200
    house.credentials.revoke(house.credentials.tokens()[0].id, now=house.auth.now())
    assert (await house.visit("/eql", text)).code == "auth/revoked-token"


async def test_a_socket_without_credentials_reaches_its_face_which_decides(house: House) -> None:
    for headers in ({}, {"authorization": "Bearer psi_nonsense"}):
        assert (await shake_hands(house.guard, headers=headers)).types == ["websocket.accept"]
        assert house.app.identity is None
    token = {"authorization": f"Bearer {house.token()}"}
    assert (await shake_hands(house.guard, headers=token)).types == ["websocket.accept"]
    assert house.app.identity is not None


async def test_rates_are_counted_by_token_and_those_without_one_by_address(tmp_path: Path) -> None:
    house = House(tmp_path, rate=1.0, burst=2)
    first, second = house.token(), house.token()
    assert [(await house.visit("/eql", first)).status for _ in range(3)] == [200, 200, 429]
    assert (await house.visit("/eql", second)).status == 200
    assert [(await house.visit("/eql")).status for _ in range(3)] == [401, 401, 429]
    assert (await house.visit("/")).status == 429
    assert (await visit(house.guard, path="/healthz", client=("10.0.0.2", 1))).status == 200
    house.credentials.close()


async def test_a_file_of_credentials_that_has_gone_bad_is_no_way_in(house: House) -> None:
    token = house.token()
    db = sqlite3.connect(house.credentials.path)
    with db:
        db.execute("ALTER TABLE tokens RENAME TO gone")
    db.close()
    answer = await house.visit("/eql", token)
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "auth/unavailable", "5")
    assert b"auth.db" not in answer.body
    assert house.app.called == 0


# -- what comes back


async def test_every_answer_says_what_browsers_must_not_do() -> None:
    for answer in (await visit(guarded()), await visit(guarded(), host="evil.example")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "content-security-policy" not in answer.headers


async def test_a_page_may_load_nothing_unless_it_says_otherwise() -> None:
    def showing(**headers: str) -> Guard:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            await HTMLResponse("<p>hello", headers=named)(scope, receive, send)

        return guarded(app)

    answer = await visit(showing())
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["x-frame-options"] == "DENY"
    answer = await visit(showing(content_security_policy="default-src 'self'", cache_control="max-age=60"))
    assert answer.headers["content-security-policy"] == "default-src 'self'"
    assert answer.headers["cache-control"] == "max-age=60"


async def test_a_refusal_of_head_has_no_body() -> None:
    answer = await visit(guarded(), "HEAD", host="evil.example")
    assert (answer.status, answer.body) == (403, b"")
    assert int(answer.headers["content-length"]) > 0


SECRET = "the password is swordfish"


async def test_an_accident_is_told_as_nothing_but_that_and_logged_with_all(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError(SECRET)

    answer = await visit(guarded(broken))
    assert (answer.status, answer.code) == (500, "psi/internal")
    assert b"swordfish" not in answer.body
    assert b"ZeroDivision" not in answer.body
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert SECRET in caplog.text


async def test_an_accident_in_the_middle_of_an_answer_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError(SECRET)

    answer = await visit(guarded(broken))
    assert answer.types == ["http.response.start"]
    assert SECRET in caplog.text


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        (True, ["websocket.accept", "websocket.close"]),
        (False, ["websocket.http.response.start", "websocket.http.response.body"]),
    ],
)
async def test_an_accident_behind_a_socket_closes_it(
    accepted: bool, expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        if accepted:
            await send({"type": "websocket.accept"})
        raise ZeroDivisionError(SECRET)

    answer = await shake_hands(guarded(broken))
    assert answer.types == expected
    assert SECRET in caplog.text


async def test_what_is_no_request_goes_to_the_app() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*_: Any) -> Any:
        return {}

    await guarded(app)({"type": "lifespan"}, nothing, nothing)
    assert seen == ["lifespan"]


# -- the log


async def test_a_request_is_one_line_with_its_fields(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "psi.access")
    token = house.token("read", "bob")
    await house.visit("/eql", token)
    (record,) = caplog.records
    assert record.getMessage() == "GET /eql answered 200 in 0.0 ms"
    fields = {name: getattr(record, name) for name in ("method", "path", "status", "ms", "client", "user")}
    client = house.credentials.tokens()[0].id
    assert fields == {"method": "GET", "path": "/eql", "status": 200, "ms": 0.0, "client": client, "user": "bob"}
    assert token not in caplog.text


async def test_how_long_it_took_is_told_in_milliseconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Ticks()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        clock.now += 1.25
        await Response()(scope, receive, send)

    caplog.set_level(logging.INFO, "psi.access")
    await visit(guarded(slow, clock))
    assert caplog.records[0].ms == 1250.0  # type: ignore[attr-defined]


async def test_refusals_and_sockets_have_their_line_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "psi.access")
    guard = guarded()
    await visit(guard, host="evil.example")
    await shake_hands(guard)
    await shake_hands(guard, headers={"origin": "null"})
    await shake_hands(guard, headers={"origin": "null"}, can_answer=False)
    assert [record.getMessage().partition(" in ")[0] for record in caplog.records] == [
        "GET /thing answered 403",
        "WebSocket /socket opened a socket",
        "WebSocket /socket closed its socket with no code after 0.0 s",
        "WebSocket /socket answered 403",
        "WebSocket /socket answered 403",
    ]


async def test_a_socket_has_a_line_as_it_opens_and_one_as_it_closes_with_code_and_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Ticks()

    async def left(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        assert [record.getMessage() for record in caplog.records] == ["WebSocket /socket opened a socket"]
        clock.now += 642.45
        await receive()

    async def sent_away(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 4008})
        await receive()  # what a server says then is not what it was closed with first

    caplog.set_level(logging.INFO, "psi.access")
    await shake_hands(guarded(left, clock))
    opened, closed = caplog.records
    assert opened.status == 101  # type: ignore[attr-defined]
    assert closed.getMessage() == "WebSocket /socket closed its socket with 1000 after 642.45 s"
    assert (closed.code, closed.seconds) == (1000, 642.45)  # type: ignore[attr-defined]
    await shake_hands(guarded(sent_away))
    assert caplog.records[-1].code == 4008  # type: ignore[attr-defined]


async def test_neither_a_query_nor_a_token_nor_a_second_line_gets_into_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    secret = "psi_" + "a" * 43
    await visit(guarded(), path=f"/x/{secret}", query=f"api_token={secret}".encode())
    await visit(guarded(), path="/x\r\nGET /admin answered 200")
    await visit(guarded(), path="/" + "x" * 5_000)
    first, second, third = (record.getMessage() for record in caplog.records)
    assert first.startswith("GET /x/psi_… answered")
    assert "\n" not in second
    assert len(third) < 300
    assert secret not in caplog.text
    assert "api_token" not in caplog.text
