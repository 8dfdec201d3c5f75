from __future__ import annotations

import pytest
from graphql import GraphQLError, get_introspection_query

from psi.faces.graphql.documents import Document, Documents
from psi.faces.graphql.limits import Limited
from psi.faces.graphql.names import FIELDS
from psi.faces.graphql.roots import SCHEMA
from psi.settings import Settings
from tests.faces.graphql.asking import asking


def documents(depth: int = 20, cost: int = 50_000) -> Documents:
    return Documents(SCHEMA._schema, depth=depth, cost=cost)


def refused(found: Document | list[GraphQLError]) -> str:
    assert isinstance(found, list)
    (error,) = found
    assert isinstance(error, Limited), error
    return f"{(error.extensions or {})['code']}: {error.message}"


def test_a_document_is_parsed_once() -> None:
    kept = documents()
    assert kept.get("{ system { version } }") is kept.get("{ system { version } }")


def test_documents_that_were_not_asked_for_lately_are_forgotten() -> None:
    kept = documents()
    first = kept.get("{ system { version } }")
    for place in range(600):
        kept.get(f"{{ a{place}: system {{ version }} }}")
    assert kept.get("{ system { version } }") is not first


def test_a_query_may_be_so_deep_and_no_deeper() -> None:
    def nested(levels: int) -> str:
        return "{ sessions " + "{ contextSessionSummaries " * levels + "{ id }" + " }" * levels + " }"

    limit = documents(depth=5, cost=10**9)
    assert isinstance(limit.get("{ system { version } }"), Document)
    assert refused(limit.get(nested(10))) == "limit/depth: the query is deeper than 5 levels"


def test_depth_counts_through_fragments() -> None:
    text = (
        "{ sessions { ...A } } fragment A on Session { runs { ...B } } "
        "fragment B on Run { session { runs { session { runs { id } } } } }"
    )
    assert isinstance(documents(depth=7, cost=10**9).get(text), Document)
    assert refused(documents(depth=6, cost=10**9).get(text)).startswith("limit/depth")


def test_lists_within_lists_cost_what_they_may_come_to() -> None:
    flat = "{ schedules { scheduleId status } }"  # 1 + 10 × 2
    assert isinstance(documents(cost=21).get(flat), Document)
    assert refused(documents(cost=20).get(flat)) == "limit/cost: the query costs more than 20"
    nested = "{ system { sessions { schedulerSchedules { status } } } }"  # 1 + 1 + 10 × (1 + 10)
    assert isinstance(documents(cost=112).get(nested), Document)
    assert refused(documents(cost=111).get(nested)).startswith("limit/cost")


@pytest.mark.parametrize(
    ("field", "entries"),
    [
        ("sessions(limit: 7) { phase }", 7),
        ("sessions { phase }", 100),
        ("sessions(limit: 1000) { phase }", 1_000),
        ("sessions(limit: -5) { phase }", 1),
        ("schedules { status }", 10),
        ("runs { state }", 10),
    ],
)
def test_a_list_is_taken_to_have_what_its_limit_says(field: str, entries: int) -> None:
    text = f"{{ {field} }}"
    assert isinstance(documents(cost=1 + entries).get(text), Document)
    assert refused(documents(cost=entries).get(text)).startswith("limit/cost")


@pytest.mark.parametrize(
    ("declared", "given", "entries"),
    [
        ("$n: Int!", {"n": 50}, 50),
        ("$n: Int! = 30", {}, 30),
        ("$n: Int! = 30", {"n": 40}, 40),
        ("$n: Int = 30", {"n": 40}, 40),
        ("$n: Int!", {"n": -40}, 1),
    ],
)
async def test_a_limit_in_a_variable_counts_as_what_it_is(declared: str, given: dict[str, int], entries: int) -> None:
    text = f"query({declared}) {{ ...F }} fragment F on Query {{ sessions(limit: $n) {{ phase }} }}"
    async with asking(Settings(query_cost=1 + entries)) as enough, asking(Settings(query_cost=entries)) as too_few:
        for _ in range(2):
            codes = [each["extensions"]["code"] for each in (await enough(text, given)).get("errors", ())]
            assert codes in ([], ["graphql/invalid-limit"])
            assert await too_few(text, given) == {
                "errors": [
                    {
                        "message": f"the query costs more than {entries}",
                        "extensions": {"code": "limit/cost", "limit": entries},
                    }
                ]
            }


async def test_every_value_of_the_largest_page_may_be_asked_for() -> None:
    values = " ".join(each.name for each in FIELDS["Session"].values() if each.leads_to is None)
    async with asking() as ask:
        await ask.session()
        assert len((await ask.data(f"{{ sessions(limit: 1000) {{ __typename {values} }} }}"))["sessions"]) == 1


def test_aliases_are_counted_each() -> None:
    text = "{ " + " ".join(f"a{place}: system {{ version }}" for place in range(100)) + " }"
    assert refused(documents(cost=150).get(text)).startswith("limit/cost")


def test_fragments_that_multiply_each_other_are_stopped() -> None:
    fragments = " ".join(f"fragment F{n} on Session {{ ...F{n + 1} ...F{n + 1} }}" for n in range(40))
    text = f"{{ sessions {{ ...F0 }} }} {fragments} fragment F40 on Session {{ phase }}"
    assert refused(documents().get(text)).startswith("limit/cost")


def test_fragments_that_lead_to_each_other_in_every_order_are_stopped() -> None:
    names = [f"F{n}" for n in range(14)]
    spreads = " ".join(f"...{name}" for name in names)
    text = f"{{ sessions {{ {spreads} }} }} " + " ".join(f"fragment {n} on Session {{ {spreads} }}" for n in names)
    assert refused(documents().get(text)).startswith("limit/cost")


def test_a_document_has_so_many_fragments_and_no_more() -> None:
    def several(count: int) -> str:
        names = [f"F{place}" for place in range(count)]
        spreads = " ".join(f"...{name}" for name in names)
        return f"{{ {spreads} }} " + " ".join(f"fragment {name} on Query {{ k{name}: __typename }}" for name in names)

    assert isinstance(documents().get(several(100)), Document)
    assert refused(documents().get(several(301))) == "limit/fragments: the document has more than 300 fragments"


def test_a_fragment_within_itself_is_said_to_be_so() -> None:
    found = documents().get("{ sessions { ...A } } fragment A on Session { ...A phase }")
    assert isinstance(found, list)
    assert "Cannot spread fragment" in found[0].message


def test_a_document_of_too_many_tokens_is_not_read() -> None:
    assert (
        refused(documents().get("{ " + "a " * 30_000 + "}")) == "limit/tokens: the document has more than 8000 tokens"
    )


def test_a_document_nested_for_ever_is_not_read() -> None:
    assert refused(documents().get("{ a" * 5_000)).startswith("limit/")


def test_introspection_is_within_the_usual_limits() -> None:
    settings = Settings()
    kept = documents(settings.query_depth, settings.query_cost)
    assert isinstance(kept.get(get_introspection_query(input_value_deprecation=True)), Document)


@pytest.mark.parametrize("text", ["", "{", "{ a(b: ) }", "query { } }", "\x00", "{ nope }"])
def test_what_is_no_document_is_told_with_its_place(text: str) -> None:
    found = documents().get(text)
    assert isinstance(found, list)
    assert found[0].message


async def test_a_query_may_look_at_so_many_entities_and_no_more() -> None:
    async with asking(Settings(max_entities=5)) as ask:
        for _ in range(6):
            await ask.session()
        response = await ask("{ sessions { phase } }")
        assert response["data"] is None
        assert response["errors"][0]["extensions"]["code"] == "graph/limit-exceeded"
        assert "max_entities=5" in response["errors"][0]["message"]


def test_what_validation_would_compare_with_itself_for_seconds_is_stopped_soon() -> None:
    inner = " ".join("runs { " + "id " * 15 + "}" for _ in range(15))
    text = "{ " + " ".join(f"sessions {{ {inner} }}" for _ in range(15)) + " }"
    found = documents(cost=10**9).get(text)
    assert isinstance(found, list)
    assert (found[0].extensions or {})["code"] == "limit/cost"
    assert "exceeded 10000 field comparisons" in found[0].message


def test_introspection_may_be_asked_for_a_few_times_at_once() -> None:
    def several(count: int) -> str:
        return "{ " + " ".join(f"a{place}: __schema {{ types {{ name }} }}" for place in range(count)) + " }"

    assert isinstance(documents().get(several(5)), Document)
    assert refused(documents().get(several(6))).startswith("limit/introspections")


def test_a_refusal_is_remembered() -> None:
    kept = documents()
    assert kept.get("{ nope }") is kept.get("{ nope }")
