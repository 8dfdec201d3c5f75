"""The header Psi-Session, on every face that takes it: of two sessions none is guessed at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.faces.serving import Served, serving


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as found:
        yield found


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/psi-tool", {"action": "session", "op": "list"}),
        ("POST", "/eql", {"query": "[:psi.system/version]"}),
        ("POST", "/graphql", {"query": "{ system { version } }"}),
        ("POST", "/sessions", {}),
        ("POST", "/uploads", b"some"),
        ("GET", "/sessions/SESSION/events", None),
    ],
)
async def test_a_request_of_two_sessions_is_refused(served: Served, method: str, path: str, body: Any) -> None:
    session = await served.session()
    twice = {"psi-session": f"{session}\r\nPsi-Session: {session}"}
    answer = await served.request(method, path.replace("SESSION", session), body, twice)
    assert (answer.status, answer.json()["error"]["code"]) == (400, "http/several-sessions")
    assert served.psi.service.context().counters()["sessions"] == 1


async def test_and_so_is_a_handshake(served: Served) -> None:
    twice = [("Psi-Session", "ses-1"), ("Psi-Session", "ses-2")]
    with pytest.raises(InvalidStatus) as caught:
        async with connect(
            f"{served.ws_url}/graphql",
            additional_headers=twice,
            subprotocols=["graphql-transport-ws"],  # type: ignore[list-item]  # a name is a text
        ):
            pytest.fail("it was let in")
    assert caught.value.response.status_code == 400
