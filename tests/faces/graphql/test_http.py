from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from psi.settings import Settings
from tests.faces.serving import serving

VERSION = "{ system { __typename } }"
ANSWER = {"data": {"system": {"__typename": "System"}}}
NEWER = "application/graphql-response+json"
WIDE = " ".join(f"a{place}: kind" for place in range(1_900))


async def test_a_query_is_answered_by_post_and_by_get() -> None:
    async with serving() as served:
        posted = await served.post("/graphql", {"query": VERSION})
        assert (posted.status, posted.json(), posted.type) == (200, ANSWER, "application/json")
        got = await served.get(f"/graphql?query={quote(VERSION)}")
        assert (got.status, got.json()) == (200, ANSWER)


async def test_the_document_may_come_alone() -> None:
    async with serving() as served:
        posted = await served.post("/graphql", VERSION, content_type="application/graphql")
        assert posted.json() == ANSWER


async def test_variables_and_the_name_of_the_operation_are_taken_along() -> None:
    text = "query A($n: Int!) { sessions(limit: $n) { phase } } query B { system { __typename } }"
    async with serving() as served:
        request: dict[str, Any] = {"query": text, "operationName": "A", "variables": {"n": 1}}
        assert (await served.post("/graphql", request)).json() == {"data": {"sessions": []}}
        in_address = "&".join(
            f"{name}={quote(value if isinstance(value, str) else json.dumps(value))}" for name, value in request.items()
        )
        assert (await served.get(f"/graphql?{in_address}")).json() == {"data": {"sessions": []}}
        unclear = await served.post("/graphql", {"query": text})
        assert "Must provide operation name" in unclear.json()["errors"][0]["message"]


async def test_the_header_names_the_invoking_session() -> None:
    async with serving() as served:
        session = await served.session()
        text = (
            'mutation { createSchedule(kind: MESSAGE, message: "x", delayMs: 5000) { schedule { originSessionId } } }'
        )
        made = await served.post("/graphql", {"query": text}, psi_session=session)
        assert made.json()["data"]["createSchedule"]["schedule"] == {"originSessionId": session}


@pytest.mark.parametrize("query", ["{ nope }", "{", "", " ", "query($a: Int!) { sessions(limit: $a) { phase } }"])
async def test_what_is_wrong_with_a_document_has_the_status_its_client_expects(query: str) -> None:
    async with serving() as served:
        older = await served.post("/graphql", {"query": query})
        assert older.status == 200
        newer = await served.post("/graphql", {"query": query}, accept=NEWER)
        assert (newer.status, newer.type) == (400, NEWER)
        assert newer.json() == older.json()
        assert "data" not in newer.json()


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {"content_type": "application/json"}, 400, "http/unreadable"),
        ("[]", {"content_type": "application/json"}, 400, "graphql/bad-request"),
        ('[{"query": "{ a }"}]', {"content_type": "application/json"}, 400, "graphql/bad-request"),
        ('{"query": 5}', {"content_type": "application/json"}, 400, "graphql/bad-request"),
        ('{"query": "{ a }", "variables": 5}', {"content_type": "application/json"}, 400, "graphql/bad-request"),
        ("query={a}", {"content_type": "application/x-www-form-urlencoded"}, 415, "http/unsupported-media-type"),
        ("{}", {"content_type": "text/plain"}, 415, "http/unsupported-media-type"),
        ('{"query": "{ a }"}', {"content_type": "application/json", "accept": "text/csv"}, 406, "http/not-acceptable"),
        (
            '{"query": "subscription { sessionEvents { seq } }"}',
            {"content_type": "application/json"},
            400,
            "graphql/bad-request",
        ),
    ],
)
async def test_what_is_no_request_is_refused(body: Any, headers: dict[str, str], status: int, code: str) -> None:
    async with serving() as served:
        answer = await served.post("/graphql", body, **headers)
        assert (answer.status, answer.json()["error"]["code"]) == (status, code)


async def test_a_mutation_needs_post() -> None:
    async with serving() as served:
        answer = await served.get(f"/graphql?query={quote('mutation { createSession { problems { code } } }')}")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert (await served.tool({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 0


@pytest.mark.parametrize(
    ("settings", "query", "code"),
    [
        (Settings(query_depth=2), "{ sessions { runs { id } } }", "limit/depth"),
        (Settings(query_cost=5), "{ sessions { phase } }", "limit/cost"),
        (Settings(max_entities=1), "{ sessions { phase } }", "graph/limit-exceeded"),
        (Settings(), f"{{ __schema {{ types {{ {WIDE} }} }} }}", "limit/cost"),
    ],
)
async def test_more_than_may_be_asked_is_told_with_422(settings: Settings, query: str, code: str) -> None:
    async with serving(settings) as served:
        for _ in range(3):
            await served.session()
        answer = await served.post("/graphql", {"query": query})
        assert answer.status == 422
        assert answer.json()["errors"][0]["extensions"]["code"] == code


async def test_an_answer_that_is_larger_than_what_there_is_is_refused() -> None:
    async with serving() as served:
        session = await served.session()
        request = {"action": "scheduler", "op": "create", "kind": "message", "delay-ms": 60_000, "message": "x" * 4_000}
        for _ in range(45):
            await served.tool(request, session)
        text = (
            "query($id: ID!) { session(id: $id) { schedulerSchedules { originSession { schedulerSchedules "
            "{ originSession { schedulerSchedules { message } } } } } } }"
        )
        answer = await served.post("/graphql", {"query": text, "variables": {"id": session}})
        assert answer.status == 422
        assert answer.json()["errors"][0]["extensions"]["code"] == "http/answer-too-large"


async def test_what_costs_too_much_for_its_variables_is_told_with_422() -> None:
    async with serving(Settings(query_cost=50)) as served:
        text = "query($n: Int!) { sessions(limit: $n) { phase } }"
        for limit, status in ((10, 200), (100, 422)):
            for accept in ("application/json", NEWER):
                request = {"query": text, "variables": {"n": limit}}
                assert (await served.post("/graphql", request, accept=accept)).status == status


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (f"{NEWER};q=0.1, application/json", "application/json"),
        (f"application/json;q=0.1, {NEWER}", NEWER),
        (f"{NEWER}, application/json", NEWER),
        (f"application/json;q=0, */*;q=0.1, {NEWER};q=0.2", NEWER),
        ("*/*", "application/json"),
    ],
)
async def test_the_form_of_the_answer_is_the_one_that_is_liked_best(accept: str, expected: str) -> None:
    async with serving() as served:
        assert (await served.post("/graphql", {"query": VERSION}, accept=accept)).type == expected


async def test_bodies_are_read_as_everywhere_else() -> None:
    async with serving() as served:
        body = json.dumps({"query": VERSION})
        marked = await served.post("/graphql", "\ufeff" + body, content_type="application/json")
        assert marked.json() == ANSWER
        other = await served.post("/graphql", body, content_type="application/json; charset=utf-16")
        assert (other.status, other.json()["error"]["code"]) == (415, "http/unsupported-media-type")
        odd = await served.get(f"/graphql?query={quote(VERSION)}&variables=%7B")
        assert odd.json()["error"]["message"].startswith("the parameter `variables` cannot be read as JSON")
