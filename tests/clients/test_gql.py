"""gql, the Python client, over WebSockets, against a psi that is really served. Its transports for HTTP each need a
library that the project has no other use for; HTTP is tried by plain requests elsewhere."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gql import Client, GraphQLRequest, gql
from gql.transport.exceptions import TransportConnectionFailed, TransportQueryError
from gql.transport.websockets import WebsocketsTransport

import psi
from psi.core.commands import Caller, CreateSchedule
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Served, serving

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def over_socket(served: Served, **more: Any) -> Client:
    transport = WebsocketsTransport(
        url=f"{served.ws_url}/graphql", subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL], **more
    )
    return Client(transport=transport)


async def schedule(served: Served, session: str, label: str) -> None:
    create = CreateSchedule(kind="message", message="/say hi", delay_ms=60_000, label=label)
    await served.psi.service.act(create, Caller(session))


async def test_queries_and_mutations_go_over_the_socket() -> None:
    create = GraphQLRequest(
        "mutation ($name: String) { createSession(name: $name) { session { sessionName } problems { code } } }",
        variable_values={"name": "From Python"},
    )
    async with serving() as served, over_socket(served) as session:
        assert await session.execute(gql("{ system { version } }")) == {"system": {"version": psi.__version__}}
        assert await session.execute(create) == {
            "createSession": {"session": {"sessionName": "From Python"}, "problems": []}
        }


async def test_a_bad_operation_is_told_what_is_wrong() -> None:
    async with serving() as served, over_socket(served) as session:
        with pytest.raises(TransportQueryError, match="Cannot query field 'versoin' on type 'System'"):
            await session.execute(gql("{ system { versoin } }"))
        assert await session.execute(gql("{ system { version } }"))


async def test_the_schema_that_the_client_fetches_checks_its_documents() -> None:
    async with serving() as served:
        client = over_socket(served)
        client.fetch_schema_from_transport = True
        async with client:
            assert client.schema is not None
            assert client.schema.get_type("Schedule") is not None


async def test_who_comes_back_with_after_gets_everything_once() -> None:
    events = "subscription ($id: ID, $after: Long) { sessionEvents(sessionId: $id, after: $after) { seq data } }"

    async def some(served: Served, session: str, after: int, count: int) -> list[Any]:
        found = []
        request = GraphQLRequest(events, variable_values={"id": session, "after": after})
        async with over_socket(served) as connected, aclosing(connected.subscribe(request)) as results:
            async for result in results:
                found.append(result["sessionEvents"])
                if len(found) == count:
                    break
        return found

    async with serving() as served:
        session = await served.session()
        start = served.psi.service.seq
        for number in range(3):
            await schedule(served, session, f"change {number}")
        first = await some(served, session, start, 2)
        for number in range(3, 6):
            await schedule(served, session, f"change {number}")
        rest = await some(served, session, first[-1]["seq"], 4)
    assert [each["data"]["label"] for each in (*first, *rest)] == [f"change {number}" for number in range(6)]


async def test_a_live_query_is_answered_again_when_its_answer_has_changed() -> None:
    async with serving() as served:
        session = await served.session()
        live = gql('subscription { live(query: "[:psi.system/schedule-count]") }')
        counts = []
        async with over_socket(served) as connected, aclosing(connected.subscribe(live)) as results:
            async for result in results:
                counts.append(result["live"]["psi.system/schedule-count"])
                if len(counts) == 3:
                    break
                await schedule(served, session, "one more")
                await served.clock.advance(1)
    assert counts == [0, 1, 2]


@pytest.mark.parametrize("payload", [{}, {"token": "psi_" + "x" * 43}])
async def test_without_good_credentials_the_connection_is_closed_with_4403(tmp_path: Path, payload: Any) -> None:
    with Credentials.open(tmp_path) as credentials:
        async with serving(Settings(auth=True), credentials=credentials) as served:
            with pytest.raises(TransportConnectionFailed) as refused:
                async with over_socket(served, init_payload=payload):
                    pytest.fail("it was let in")
    assert "4403" in f"{refused.value} {refused.value.__cause__!r}"


async def test_a_token_lets_in_by_the_first_message_or_by_a_header(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        token = credentials.create_token(user="alice", scopes=["read"], now=NOW).text
        bearer = {"Authorization": f"Bearer {token}"}
        async with serving(Settings(auth=True), credentials=credentials) as served:
            for client in (over_socket(served, init_payload=bearer), over_socket(served, headers=bearer)):
                async with client as session:
                    assert await session.execute(gql("{ system { version } }"))
            async with over_socket(served, init_payload=bearer) as session:
                created = await session.execute(gql('mutation { createSession(name: "no") { problems { code } } }'))
    assert created == {"createSession": {"problems": [{"code": "auth/read-only"}]}}
