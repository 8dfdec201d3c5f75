"""The npm client graphql-ws, as browsers and Node programs use it, against a psi that is really served."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import psi
from psi.core.commands import Caller, CreateSchedule
from psi.settings import Settings
from psi.store import Credentials
from tests.clients.node import Script, needs_node, node
from tests.faces.serving import Served, serving

pytestmark = needs_node

PROTOCOL = "graphql-transport-ws"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def client(served: Served, scenario: str, **options: Any) -> AbstractAsyncContextManager[Script]:
    return node("client.mjs", scenario, json.dumps({"url": f"{served.ws_url}/graphql", **options}))


async def schedule(served: Served, session: str, label: str) -> str:
    create = CreateSchedule(kind="message", message="/say hi", delay_ms=60_000, label=label)
    found: str = (await served.psi.service.act(create, Caller(session))).id
    return found


async def test_queries_and_mutations_go_over_the_socket() -> None:
    create = {
        "query": "mutation ($n: String) { createSession(name: $n) { session { sessionName } problems { code } } }",
        "variables": {"n": "From Node"},
    }
    async with (
        serving() as served,
        client(served, "run", operations=[{"query": "{ system { version } }"}, create]) as script,
    ):
        told = await script.rest()
        assert [each.name for each in served.psi.service.context().sessions()] == ["From Node"]
    assert told == [
        {"data": {"system": {"version": psi.__version__}}},
        {"complete": True},
        {"data": {"createSession": {"session": {"sessionName": "From Node"}, "problems": []}}},
        {"complete": True},
    ]


async def test_a_bad_operation_is_told_what_is_wrong_and_the_socket_stays() -> None:
    operations = [
        {"query": "{ system { versoin } }"},
        {"query": "{ system {"},
        {"query": 'subscription { sessionEvents(sessionId: "ses-nobody") { seq } }'},
        {"query": "{ system { version } }"},
    ]
    async with serving() as served, client(served, "run", operations=operations) as script:
        unknown, unclosed, nobody, *fine = await script.rest()
    assert unknown["errors"][0]["message"].startswith("Cannot query field 'versoin' on type 'System'.")
    assert unclosed["errors"][0]["message"] == "Syntax Error: Expected Name, found <EOF>."
    assert nobody["errors"][0]["extensions"]["code"] == "session/not-found"
    assert fine[0] == {"data": {"system": {"version": psi.__version__}}}


async def test_a_subscription_is_followed_and_completed_by_the_client() -> None:
    async with serving() as served:
        session = await served.session()
        operation = {
            "query": "subscription Changes($id: ID) { scheduleChanged(sessionId: $id) { label status } }",
            "variables": {"id": session},
        }
        async with client(served, "follow", operation=operation, count=2) as script:
            assert await script.told() == {"following": True}
            for label in ("first", "second", "too late"):
                await schedule(served, session, label)
            assert [await script.told() for _ in range(3)] == [
                {"data": {"scheduleChanged": {"label": "first", "status": "PENDING"}}},
                {"data": {"scheduleChanged": {"label": "second", "status": "PENDING"}}},
                {"left": True},
            ]
            await script.go_on()
            assert await script.rest() == []


async def test_a_run_is_followed_until_the_service_completes_it() -> None:
    async with serving() as served:
        session = await served.session()
        submitted = await served.tool(
            {"action": "session", "op": "submit", "message": "/wait 5s\n/say hello there"}, session
        )
        run = submitted["psi-tool/session"]["run-id"]
        operation = {
            "query": "subscription ($run: ID!) { runEvents(runId: $run) { seq type data } }",
            "variables": {"run": run},
        }
        async with client(served, "run", operations=[operation]) as script:
            first = await script.told()
            await served.clock.advance(5)
            *rest, complete = await script.rest()
    events = [each["data"]["runEvents"] for each in (first, *rest)]
    assert complete == {"complete": True}
    assert [each["seq"] for each in events] == list(range(1, len(events) + 1))
    assert [events[0]["type"], events[-1]["type"]] == ["stream_start", "stream_end"]
    assert "".join(each["data"].get("delta", "") for each in events) == "hello there"


async def test_a_live_query_is_answered_again_when_its_answer_has_changed() -> None:
    async with serving() as served:
        session, other = await served.session(), await served.session("Other")
        operation = {"query": f'subscription {{ session(id: "{session}") {{ schedulerPendingCount }} }}'}
        async with client(served, "follow", operation=operation, count=2) as script:
            both = [await script.told(), await script.told()]
            assert {"following": True} in both
            assert {"data": {"session": {"schedulerPendingCount": 0}}} in both
            await schedule(served, other, "elsewhere")
            await schedule(served, session, "here")
            await served.clock.advance(1)  # a live query looks again after a moment, and not for each of many changes
            assert await script.told() == {"data": {"session": {"schedulerPendingCount": 1}}}


async def test_who_was_cut_off_comes_back_and_gets_everything_once() -> None:
    """Closed by the service, and torn off; what happens meanwhile is not lost."""
    query = """subscription Events($session: ID!, $after: Long) {
        sessionEvents(sessionId: $session, after: $after) { seq data }
    }"""
    async with serving() as served:
        session = await served.session()
        after = served.psi.service.seq
        everything = served.psi.service.watch(session)
        labels = iter(range(1_000))

        async def some() -> None:
            for _ in range(3):
                await schedule(served, session, f"change {next(labels)}")

        came: list[Any] = []
        closes: list[int] = []
        async with client(served, "resume", query=query, session=session, after=after, until="last") as script:
            for cut in (_shut_down, _tear_off):
                assert await script.told() == {"connected": True}
                await some()
                came += [await script.told() for _ in range(3)]
                await some()  # on its way, or not: some of it may come before the end
                cut(served)
                await some()  # while nobody is connected
                while "closed" not in (told := await script.told()):
                    came.append(told)
                closes.append(told["closed"])
                await script.go_on()
                # What it comes back for was told before it could ask.
            await schedule(served, session, "last")
            rest = await script.rest()
            came += [each for each in rest if "seq" in each]
        with everything:
            expected = [event.seq for event in everything.waiting()]
    assert closes == [1012, 1006]
    assert [each["seq"] for each in came] == expected
    assert len(expected) == 19
    assert not any(each.get("extensions") for each in came)


def _shut_down(served: Served) -> None:
    for connection in list(served.server.server_state.connections):
        connection.shutdown()


def _tear_off(served: Served) -> None:
    for connection in list(served.server.server_state.connections):
        connection.transport.abort()


INIT = {"type": "connection_init"}
SUBSCRIBE = {"id": "1", "type": "subscribe", "payload": {"query": "subscription { sessionEvents { seq } }"}}


@pytest.mark.parametrize(
    ("messages", "code", "reason"),
    [
        pytest.param([{"type": "hello"}], 4400, "Unknown message type 'hello'", id="unknown message"),
        pytest.param([SUBSCRIBE], 4401, "Unauthorized", id="subscribe before init"),
        pytest.param([], 4408, "Connection initialisation timeout", id="no init"),
        pytest.param([INIT, SUBSCRIBE, SUBSCRIBE], 4409, "Subscriber for 1 already exists", id="id in use"),
        pytest.param([INIT, INIT], 4429, "Too many initialisation requests", id="init twice"),
        pytest.param(
            [INIT, SUBSCRIBE, {**SUBSCRIBE, "id": "2"}],
            4429,
            "Too many subscriptions: at most 1 on one connection",
            id="too many subscriptions",
        ),
    ],
)
async def test_who_breaks_the_protocol_is_closed_with_its_code(messages: list[Any], code: int, reason: str) -> None:
    settings = Settings(init_timeout=0.3 if code == 4408 else 10.0, max_subscriptions=1)
    async with (
        serving(settings) as served,
        client(served, "raw", protocols=[PROTOCOL], messages=[json.dumps(each) for each in messages]) as script,
    ):
        *_, last = await script.rest()
    assert last == {"closed": code, "reason": reason}


async def test_a_socket_without_the_subprotocol_is_closed_with_its_code() -> None:
    async with serving() as served, client(served, "raw", protocols=[], messages=[]) as script:
        assert await script.rest() == [{"closed": 4406, "reason": "Subprotocol not acceptable"}]


async def test_a_client_of_another_subprotocol_gives_up_by_itself() -> None:
    """It may, because the handshake names no protocol that it knows; so does the reference server's client."""
    async with serving() as served, client(served, "raw", protocols=["graphql-ws"], messages=[]) as script:
        assert await script.rest() == [{"error": "Server sent no subprotocol"}, {"closed": 1006, "reason": ""}]


@pytest.mark.parametrize("params", [None, {"token": "psi_" + "x" * 43}, {"Authorization": "Bearer nothing"}])
async def test_without_good_credentials_the_connection_is_closed_with_4403(tmp_path: Path, params: Any) -> None:
    with Credentials.open(tmp_path) as credentials:
        async with (
            serving(Settings(auth=True), credentials=credentials) as served,
            client(served, "run", params=params, operations=[{"query": "{ system { version } }"}]) as script,
        ):
            told = await script.rest()
    assert {"refused": 4403, "reason": "Forbidden"} in told


@pytest.mark.parametrize("form", ["token", "Authorization"])
async def test_a_token_in_the_first_message_lets_in(tmp_path: Path, form: str) -> None:
    with Credentials.open(tmp_path) as credentials:
        token = credentials.create_token(user="alice", scopes=["read"], now=NOW).text
        params = {form: f"Bearer {token}" if form == "Authorization" else token}
        async with (
            serving(Settings(auth=True), credentials=credentials) as served,
            client(served, "run", params=params, operations=[{"query": "{ system { version } }"}]) as script,
        ):
            told = await script.rest()
    assert told[0] == {"data": {"system": {"version": psi.__version__}}}


async def test_a_client_is_told_when_the_service_goes_away() -> None:
    async with serving() as served:
        session = await served.session()
        operation = {"query": f'subscription {{ scheduleChanged(sessionId: "{session}") {{ label }} }}'}
        async with client(served, "follow", operation=operation, count=1) as script:
            assert await script.told() == {"following": True}
            closing = asyncio.create_task(served.app.close())
            complaint = await script.complaints()
            await closing
    assert "1001" in complaint
