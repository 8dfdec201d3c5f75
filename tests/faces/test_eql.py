"""POST /eql, as it is on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import psi
from psi.core.errors import Invalid
from psi.edn import Keyword, loads
from psi.faces.eql import read_question
from psi.faces.wire import Form
from psi.graph import Env, resolver
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Answer, Served, serving

EDN = "application/edn"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(operations=(forever, broken, endless, pair)) as found:
        yield found


@resolver(name="test/forever", output=["test/forever"])
async def forever(env: Env, _: Any) -> Any:
    await asyncio.Event().wait()


@resolver(name="test/broken", output=["test/broken"])
def broken(env: Env, _: Any) -> Any:
    raise ValueError("the disk is full")


@resolver(name="test/endless", input=["test/n"], output=[{"test/next": ["test/n"]}])
def endless(env: Env, item: Any) -> Any:
    return {"test/next": {"test/n": item["test/n"] + 1}}


@resolver(name="test/pair", input=["test/n"], output=[{"test/pair": ["test/n"]}])
def pair(env: Env, item: Any) -> Any:
    return {"test/pair": [{"test/n": 2 * item["test/n"]}, {"test/n": 2 * item["test/n"] + 1}]}


def error(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


# -- answers


async def test_a_query_in_json_is_answered_in_json(served: Served) -> None:
    answer = await served.post("/eql", {"query": "[:psi.system/version :psi.system/session-count]"})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json; charset=utf-8")
    assert answer.json() == {"psi.system/version": psi.__version__, "psi.system/session-count": 0}


@pytest.mark.parametrize(
    "body",
    [
        "[{:psi.system/sessions [:psi.agent-session/phase]}]",
        "{:query [{:psi.system/sessions [:psi.agent-session/phase]}]}",
    ],
)
async def test_a_query_in_edn_is_answered_in_edn(served: Served, body: str) -> None:
    await served.session()
    answer = await served.post("/eql", body, content_type=EDN)
    assert answer.headers["content-type"] == "application/edn; charset=utf-8"
    assert answer.text == "{:psi.system/sessions [{:psi.agent-session/phase :idle}]}"


async def test_the_form_of_the_answer_follows_accept(served: Served) -> None:
    as_edn = await served.post("/eql", {"query": "[:psi.system/session-count]"}, accept=EDN)
    assert as_edn.text == "{:psi.system/session-count 0}"
    as_json = await served.post("/eql", "[:psi.system/session-count]", accept="application/json")
    assert as_json.json() == {"psi.system/session-count": 0}


async def test_a_query_starts_from_the_invoking_session(served: Served) -> None:
    session = await served.session("First")
    answer = await served.post("/eql", {"query": "[:psi.agent-session/session-name]"}, psi_session=session)
    assert answer.json() == {"psi.agent-session/session-name": "First"}


@pytest.mark.parametrize("as_text", [False, True])
async def test_an_entity_says_where_a_query_starts_as_a_map_or_as_text(served: Served, as_text: bool) -> None:
    session = await served.session("First")
    other = await served.session("Other")
    entity = f'{{:psi.agent-session/session-id "{other}"}}' if as_text else {"psi.agent-session/session-id": other}
    asked = {"query": "[:psi.agent-session/session-name]", "entity": entity}
    answer = await served.post("/eql", asked, psi_session=session)
    assert answer.json() == {"psi.agent-session/session-name": "Other"}


async def test_a_query_may_be_a_list_in_json_and_stand_alone(served: Served) -> None:
    query = ["psi.system/session-count", {"psi.system/sessions": ["psi.agent-session/phase"]}]
    found = {"psi.system/session-count": 0, "psi.system/sessions": []}
    assert (await served.post("/eql", {"query": query})).json() == found
    assert (await served.post("/eql", query)).json() == found


async def test_an_ident_is_a_key_of_the_answer_in_both_forms(served: Served) -> None:
    session = await served.session("First")
    query = f'[{{[:psi.agent-session/session-id "{session}"] [:psi.agent-session/session-name]}}]'
    key = f'[:psi.agent-session/session-id "{session}"]'
    assert (await served.post("/eql", {"query": query})).json() == {key: {"psi.agent-session/session-name": "First"}}
    as_edn = (await served.post("/eql", query, content_type=EDN)).edn()
    assert as_edn == loads(f'{{{key} {{:psi.agent-session/session-name "First"}}}}')


async def test_a_mutation_is_carried_out(served: Served) -> None:
    session = await served.session()
    query = '[(psi.scheduler/create {:kind :message :delay-ms 5000 :message "later"})]'
    answer = await served.post("/eql", query, content_type=EDN, psi_session=session)
    assert answer.status == 200
    assert (await served.post("/eql", {"query": "[:psi.scheduler/pending-count]"}, psi_session=session)).json() == {
        "psi.scheduler/pending-count": 1
    }


# -- lenient and strict


async def test_what_cannot_be_had_stands_beside_what_can(served: Served) -> None:
    answer = await served.post("/eql", {"query": "[:psi.system/session-count :psi.system/sesion-count :test/broken]"})
    assert answer.status == 200
    found = answer.json()
    assert found["psi.system/session-count"] == 0
    errors = found["psi.graph/attribute-errors"]
    assert errors["psi.system/sesion-count"]["cause"] == "attribute-unreachable"
    assert errors["test/broken"]["cause"] == "node-errors"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("[:psi.nope/x]", 422, "graph/attribute-unreachable"),
        ("[:test/broken]", 422, "graph/resolver-failed"),
        ("[(psi.nope/go {})]", 422, "graph/mutation-not-found"),
        ('[(psi.scheduler/cancel {:schedule-id "sch-1"})]', 404, "graph/mutation-failed"),
        ('[(psi.scheduler/create {:kind :message :message "x"})]', 400, "graph/mutation-failed"),
    ],
)
async def test_strictly_the_first_failure_is_the_answer(served: Served, query: str, status: int, code: str) -> None:
    session = await served.session()
    answer = await served.post("/eql", {"query": query, "strict": True}, psi_session=session)
    assert error(answer) == (status, code)
    assert (await served.post("/eql", {"query": query, "strict": False}, psi_session=session)).status == 200


async def test_a_mutation_that_refuses_is_part_of_the_answer_unless_asked_strictly(served: Served) -> None:
    session = await served.session()
    asked = {"query": '[(psi.scheduler/cancel {:schedule-id "sch-1"})]'}
    lenient = await served.post("/eql", asked, psi_session=session)
    assert lenient.status == 200
    assert "psi.graph/mutation-error" in lenient.json()["psi.scheduler/cancel"]
    assert (await served.post("/eql", {**asked, "strict": True}, psi_session=session)).status == 404


async def test_an_error_is_told_in_the_form_of_the_request(served: Served) -> None:
    answer = await served.post("/eql", "{:query [:psi.nope/x] :strict true}", content_type=EDN)
    assert (answer.status, answer.type) == (422, EDN)
    assert answer.edn()["error"]["code"] == "graph/attribute-unreachable"
    assert answer.edn()["error"]["details"]["attributes"] == [Keyword("psi.nope/x")]


async def test_a_conflict_is_a_conflict(served: Served) -> None:
    session = await served.session()
    query = '[(psi.scheduler/create {:kind :message :delay-ms 5000 :message "later"})]'
    for _ in range(50):
        await served.psi.query(query, session)
    answer = await served.post("/eql", {"query": query, "strict": True}, psi_session=session)
    assert answer.status == 409
    assert answer.json()["error"]["details"]["error"]["code"] == "scheduler/cap-exceeded"


# -- explain


async def test_explain_says_what_would_be_called_in_words_and_as_data_and_calls_nothing(served: Served) -> None:
    session = await served.session()
    create = '(psi.scheduler/create {:kind :message :delay-ms 5000 :message "later"})'
    asked = {"query": f"[{create} :psi.scheduler/pending-count]", "explain": True}
    answer = (await served.post("/eql", asked, psi_session=session)).json()
    assert list(answer) == ["explain", "plan"]
    assert answer["explain"].splitlines()[:2] == [
        "known: :psi.agent-session/session-id",
        "mutation psi.scheduler/create",
    ]
    assert [step["resolver"] for step in answer["plan"]["steps"]] == ["psi.scheduler/session-pending-count"]
    counted = await served.post("/eql", {"query": "[:psi.scheduler/pending-count]"}, psi_session=session)
    assert counted.json() == {"psi.scheduler/pending-count": 0}


async def test_explain_tells_why_something_cannot_be_reached(served: Served) -> None:
    query = "[:psi.scheduler/pending-count :psi.scheduler/schedules]"
    answer = await served.post("/eql", {"query": query, "explain": True})
    assert answer.status == 200
    assert answer.json()["explain"].count("not reachable:") == 1


# -- what is refused


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "eql/query-required"),
        ({"query": None}, 400, "eql/query-required"),
        ({"query": 1}, 400, "eql/invalid-request"),
        ({"query": {"a": 1}}, 400, "eql/invalid-request"),
        ({"query": "[:a"}, 400, "edn/read"),
        ({"query": ":a"}, 400, "eql/invalid-query"),
        ({"query": '["a"]'}, 400, "eql/invalid-query"),
        ({"query": "[]", "entity": [1]}, 400, "psi-tool/invalid-map"),
        ({"query": "[]", "entity": "{:a"}, 400, "psi-tool/invalid-map"),
        ({"query": "[]", "strict": "yes"}, 400, "eql/invalid-request"),
        ({"query": "[]", "explain": 1}, 400, "eql/invalid-request"),
        ({"query": "[]", "entitiy": {}}, 400, "eql/unknown-key"),
        ("12", 400, "eql/invalid-request"),
        (["a", 1], 400, "eql/invalid-query"),
        (b"", 400, "http/unreadable"),
        (b"{", 400, "http/unreadable"),
    ],
    ids=str,
)
async def test_a_bad_request_is_refused_with_what_is_wrong(served: Served, body: Any, status: int, code: str) -> None:
    answer = await served.post("/eql", body)
    assert error(answer) == (status, code)


async def test_a_mistyped_key_is_answered_with_the_nearest(served: Served) -> None:
    answer = await served.post("/eql", {"query": "[]", "entitiy": {}})
    assert answer.json()["error"]["message"] == "unknown key `entitiy`; did you mean `entity`?"


async def test_a_session_that_is_not_there_is_not_found(served: Served) -> None:
    assert error(await served.post("/eql", {"query": "[]"}, psi_session="ses-nobody")) == (404, "session/not-found")


async def test_in_edn_a_string_is_no_attribute(served: Served) -> None:
    answer = await served.post("/eql", '{:query ["psi.system/version"]}', content_type=EDN)
    assert (answer.status, answer.edn()["error"]["code"]) == (400, "eql/invalid-query")


def test_a_key_may_not_come_in_two_spellings() -> None:
    with pytest.raises(Invalid, match="`query` is given twice"):
        read_question({"query": "[]", ":query": "[]"}, Form.JSON)


# -- limits


async def test_a_query_that_takes_too_long_is_stopped() -> None:
    settings = Settings(query_timeout=0.05)
    async with serving(settings, operations=(forever,), real_time=True) as served:
        for strict in (True, False):
            answer = await served.post("/eql", {"query": "[:test/forever]", "strict": strict})
            assert error(answer) == (422, "graph/limit-exceeded")


async def test_a_query_that_goes_too_deep_is_stopped(served: Served) -> None:
    asked = {"query": "[:test/n {:test/next ...}]", "entity": {"test/n": 1}}
    answer = await served.post("/eql", asked)
    assert error(answer) == (422, "graph/limit-exceeded")
    assert answer.json()["error"]["details"]["limit"] == "max-depth"


async def test_a_query_that_leads_to_too_many_entities_is_stopped() -> None:
    async with serving(Settings(max_entities=100), operations=(pair,)) as served:
        asked = {"query": "[:test/n {:test/pair 20}]", "entity": {"test/n": 1}}
        answer = await served.post("/eql", asked)
        assert error(answer) == (422, "graph/limit-exceeded")
        assert answer.json()["error"]["details"]["limit"] == "max-entities"
        # The same bounds hold for the query action of psi-tool.
        through_tool = await served.tool({"action": "query", **asked})
        assert through_tool["psi-tool/error"]["code"] == "graph/limit-exceeded"


async def test_an_answer_that_is_out_of_proportion_is_refused(served: Served) -> None:
    """A few thousand entities, each with all of the graph's own description."""
    answer = await served.post("/eql", {"query": "[{:psi.graph/nodes 2} * :psi.graph/resolver-index]"})
    assert error(answer) == (422, "http/answer-too-large")


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with serving(Settings(max_body=1_024)) as served:
        answer = await served.post("/eql", {"query": f"[:a/{'b' * 2_000}]"})
        assert error(answer) == (413, "http/too-large")


# -- who asks


async def test_a_token_that_may_only_read_reads_and_changes_nothing_and_nobody_sees_what_is_not_theirs(
    tmp_path: Path,
) -> None:
    with Credentials.open(tmp_path) as credentials:
        now = datetime.now(UTC)
        ada = credentials.create_token(now=now, user="ada", name=None, scopes=("write",), lasts=None).text
        reader = credentials.create_token(now=now, user="ada", name=None, scopes=("read",), lasts=None).text
        bob = credentials.create_token(now=now, user="bob", name=None, scopes=("write",), lasts=None).text
        async with serving(Settings(auth=True), credentials=credentials, token=ada) as served:
            session = await served.session("hers")
            asked = {"query": "[{:psi.system/sessions [:psi.agent-session/session-name]}]"}
            hers = {"psi.system/sessions": [{"psi.agent-session/session-name": "hers"}]}

            def as_(token: str) -> dict[str, str]:
                return {"authorization": f"Bearer {token}", "psi_session": session}

            assert (await served.post("/eql", asked)).json() == hers
            assert (await served.post("/eql", asked, **as_(reader))).json() == hers
            closing = {"query": "[(psi.agent-session/close {})]"}
            assert error(await served.post("/eql", closing, **as_(reader))) == (403, "auth/read-only")
            explained = await served.post("/eql", {**closing, "explain": True}, **as_(reader))
            assert explained.status == 200  # nothing is called
            assert error(await served.post("/eql", asked, **as_(bob))) == (404, "session/not-found")
            his = await served.post("/eql", asked, authorization=f"Bearer {bob}")
            assert his.json() == {"psi.system/sessions": []}
            refused = await served.post("/eql", asked, authorization="Bearer psi_nonsense")
            assert error(refused) == (401, "auth/invalid-token")


async def test_a_query_has_so_many_attributes_and_no_more() -> None:
    async with serving() as served:
        large = "[" + " ".join(f":a/x{place}" for place in range(5_001)) + "]"
        for more in ({}, {"explain": True}, {"strict": True}):
            answer = await served.post("/eql", {"query": large, **more})
            assert (answer.status, answer.json()["error"]["code"]) == (422, "graph/limit-exceeded")
            assert "at most 5000 are accepted" in answer.json()["error"]["message"]
        told = await served.tool({"query": large})
        assert told["psi-tool/error"]["data"]["limit"] == "query-size"
        nested = "[{:psi.graph/nodes [" + ":a/b " * 5_000 + "]}]"
        assert (await served.post("/eql", {"query": nested})).status == 422
        many = "[" + " ".join(":psi.system/version" for _ in range(5_000)) + "]"
        assert (await served.post("/eql", {"query": many})).status == 200
