"""POST /psi-tool, as it is on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from psi.edn import Keyword
from tests.faces.serving import Answer, Served, serving

EDN = "application/edn"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as found:
        yield found


async def test_a_json_request_gets_its_envelope_as_json(served: Served) -> None:
    answer = await served.post("/psi-tool", {"action": "session", "op": "create", "name": "First"})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json; charset=utf-8")
    envelope = answer.json()
    assert envelope["psi-tool/overall-status"] == "ok"
    assert envelope["psi-tool/session"]["session"]["session-name"] == "First"


async def test_an_edn_request_gets_its_envelope_as_edn(served: Served) -> None:
    answer = await served.post("/psi-tool", '{:action "session" :op "list"}', content_type=EDN)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/edn; charset=utf-8")
    assert answer.edn()["psi-tool/overall-status"] == Keyword("ok")
    assert answer.text.startswith("{:psi-tool/action :session")


@pytest.mark.parametrize(
    ("body", "headers", "form"),
    [
        ('{"action": "session", "op": "list"}', {"accept": EDN}, EDN),
        ('{:action "session" :op "list"}', {"content_type": EDN, "accept": "application/json"}, "application/json"),
        ('{:action "session" :op "list"}', {}, EDN),
        ('{"action": "session", "op": "list"}', {"content_type": "text/plain"}, "application/json"),
        ('{"action" "session" "op" "list"}', {"content_type": "text/plain", "accept": "*/*"}, EDN),
    ],
)
async def test_the_form_of_the_answer_follows_accept_and_else_the_request(
    served: Served, body: str, headers: dict[str, str], form: str
) -> None:
    answer = await served.post("/psi-tool", body, **headers)
    assert (answer.status, answer.type) == (200, form)
    envelope = answer.json() if form == "application/json" else answer.edn()
    assert envelope["psi-tool/session"] == {"session-count": 0, "sessions": []}


async def test_the_header_names_the_invoking_session(served: Served) -> None:
    session = await served.session()
    created = await served.tool(
        {"action": "scheduler", "op": "create", "kind": "message", "delay-ms": 5_000, "message": "/say later"}, session
    )
    assert created["psi-tool/scheduler"]["schedule"]["origin-session-id"] == session
    await served.clock.advance(6)
    shown = await served.post("/eql", {"query": "[:psi.agent-session/message-count]"}, psi_session=session)
    assert shown.json() == {"psi.agent-session/message-count": 2}


async def test_a_session_that_is_not_there_is_told_in_the_envelope(served: Served) -> None:
    answer = await served.post("/psi-tool", {"action": "session", "op": "list"}, psi_session="ses-nobody")
    assert answer.status == 200
    assert answer.json()["psi-tool/error"]["code"] == "session/not-found"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"action": "dance"}, "psi-tool/invalid-request"),
        ({}, "psi-tool/invalid-request"),
        ([1, 2], "psi-tool/invalid-request"),
        ({"action": "scheduler", "op": "list"}, "session/required"),
        ({"action": "query", "query": "[:psi.nope/x]"}, "graph/attribute-unreachable"),
        ({"action": "query", "query": "[:a"}, "edn/read"),
    ],
)
async def test_a_request_that_is_refused_is_answered_200_with_an_envelope_that_says_so(
    served: Served, request_: Any, code: str
) -> None:
    answer = await served.post("/psi-tool", request_)
    assert answer.status == 200
    assert answer.json()["psi-tool/overall-status"] == "error"
    assert answer.json()["psi-tool/error"]["code"] == code


def unread(answer: Answer) -> str:
    envelope = answer.json() if answer.type == "application/json" else answer.edn()
    assert list(envelope) == [
        "psi-tool/action",
        "psi-tool/overall-status",
        "psi-tool/duration-ms",
        "psi-tool/error",
    ]
    assert envelope["psi-tool/action"] is None
    assert envelope["psi-tool/overall-status"] == "error"
    error: dict[str, Any] = envelope["psi-tool/error"]
    assert (error["code"], error["phase"]) == ("http/unreadable", "validate")
    message: str = error["message"]
    return message


@pytest.mark.parametrize(
    ("body", "headers", "problem"),
    [
        (b"", {}, "the body is empty"),
        (b"{", {"content_type": "application/json"}, "cannot be read as JSON"),
        (b"{:action", {"content_type": EDN}, "cannot be read as EDN"),
        (b'{"action": "\xff"}', {"content_type": "application/json"}, "not UTF-8"),
        (b'{"action": "query", "action": "query"}', {"content_type": "application/json"}, "given twice"),
        (b"[" * 3_000, {"content_type": "application/json"}, "cannot be read as JSON"),
    ],
)
async def test_a_body_that_cannot_be_read_is_answered_400_with_an_envelope(
    served: Served, body: bytes, headers: dict[str, str], problem: str
) -> None:
    answer = await served.post("/psi-tool", body, **headers)
    assert answer.status == 400
    assert problem in unread(answer)


async def test_a_body_in_another_form_is_refused_and_so_is_an_answer_in_another(served: Served) -> None:
    csv = await served.post("/psi-tool", "a,b", content_type="text/csv")
    assert (csv.status, csv.json()["error"]["code"]) == (415, "http/unsupported-media-type")
    html = await served.post("/psi-tool", {"action": "session", "op": "create"}, accept="text/html")
    assert (html.status, html.json()["error"]["code"]) == (406, "http/not-acceptable")
    assert (await served.tool({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 0


async def test_only_post_is_possible_and_the_answer_says_so(served: Served) -> None:
    answer = await served.get("/psi-tool")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == "GET is not possible here; accepted: POST"


async def test_a_slash_too_many_leads_nowhere_rather_than_somewhere_else(served: Served) -> None:
    answer = await served.post("/psi-tool/", {"action": "session", "op": "list"})
    assert (answer.status, answer.json()["error"]["code"]) == (404, "http/not-found")


async def test_one_connection_serves_many_requests(served: Served) -> None:
    async with served.connect() as connection:
        for name in "abc":
            body = {"action": "session", "op": "create", "name": name}
            assert (await connection.request("POST", "/psi-tool", body)).status == 200
    assert (await served.tool({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 3


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing_behind(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    async with served.connect() as connection:
        await connection.send("POST", "/psi-tool", b'{"action":', {"content-length": "1000"})
        assert (await served.get("/healthz")).status == 200
    assert (await served.get("/healthz")).status == 200
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
