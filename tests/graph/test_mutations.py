"""Mutations: when they run, what they are given, what becomes of their result, and of their failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from psi.edn import Keyword, Symbol, Vector, dumps
from psi.errors import Failed, Refused
from psi.graph import (
    ERRORS,
    MUTATION_ERROR,
    AttributeUnreachable,
    Env,
    Graph,
    MutationFailed,
    MutationNotFound,
    mutation,
)
from tests.graph.recorder import Recorder

Build = Callable[..., Graph]


def test_the_result_stands_under_the_name_of_the_mutation(build: Build, told: Recorder) -> None:
    answer = build(told.mutation("cart/add", {"cart/size": 1})).query_now("[(cart/add {:item/id 7})]")
    assert answer == {Symbol("cart/add"): {"cart/size": 1}}
    assert dumps(answer) == "{cart/add {:cart/size 1}}"
    assert told.calls == [("cart/add", {"item/id": 7})]


@pytest.mark.parametrize("result", [None, 5, "text", [1, None], {"a": None}])
def test_without_a_join_the_result_is_returned_as_it_is(build: Build, told: Recorder, result: Any) -> None:
    assert build(told.mutation("m/go", result)).query_now("[(m/go {})]") == {Symbol("m/go"): result}


def test_a_mutation_gets_its_params_as_plain_data_and_nothing_of_the_entity(build: Build) -> None:
    @mutation("m/go")
    def go(env: Env, params: Any) -> Any:
        return [params, dict(env.params), env.context, type(params["l"]).__name__]

    assert build(go).query_now('[(m/go {:l [1 "s"]})]', {"a": 1}, context=7) == {
        Symbol("m/go"): [{"l": [1, "s"]}, {"l": [1, "s"]}, 7, "list"]
    }


def test_a_mutation_may_keep_and_change_the_params_it_was_given(build: Build) -> None:
    kept: list[Any] = []

    @mutation("m/keep")
    def keep(env: Env, params: Any) -> Any:
        params["seen"] = len(kept)
        kept.append(params)
        return dict(params)

    graph = build(keep)
    for expected in range(3):
        assert graph.query_now("[(m/keep {:x 1})]") == {Symbol("m/keep"): {"x": 1, "seen": expected}}


def test_mutations_run_in_order_before_anything_is_read(build: Build, told: Recorder) -> None:
    b = told.resolver("b", [], ["b"], {"b": 1})
    graph = build(b, told.mutation("m/one", 1), told.mutation("m/two", 2))
    answer = graph.query_now("[:b (m/two {}) {:>/p [:b]} (m/one {})]")
    assert answer == {"b": 1, Symbol("m/two"): 2, ">/p": {"b": 1}, Symbol("m/one"): 1}
    assert told.names == ["m/two", "m/one", "b"]


def test_what_a_mutation_changed_is_seen_by_the_resolvers(build: Build) -> None:
    store = {"n": 1}
    told = Recorder()
    n = told.resolver("n", [], ["n"], lambda data: dict(store))
    more = told.mutation("n/more", lambda params: store.update(n=store["n"] + params["by"]))
    assert build(n, more).query_now("[:n (n/more {:by 2}) {:>/p [:n]}]") == {
        "n": 3,
        Symbol("n/more"): None,
        ">/p": {"n": 3},
    }


def test_every_occurrence_runs_and_the_last_result_stays(build: Build, told: Recorder) -> None:
    echo = told.mutation("m/echo", dict)
    assert build(echo).query_now("[(m/echo {:n 1}) (m/echo {:n 2})]") == {Symbol("m/echo"): {"n": 2}}
    assert told.inputs("m/echo") == [{"n": 1}, {"n": 2}]


def test_a_mutation_in_a_placeholder_runs_once_and_its_result_stands_there(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/echo", dict), told.resolver("b", [], ["b"], {"b": 1}))
    query = "[{:>/one [(m/echo {:n 1}) :b]} {:>/two [{:>/deep [{(m/echo {:n 2}) [:n :b]}]}]} (m/echo {:n 3})]"
    assert graph.query_now(query) == {
        ">/one": {Symbol("m/echo"): {"n": 1}, "b": 1},
        ">/two": {">/deep": {Symbol("m/echo"): {"n": 2, "b": 1}}},
        Symbol("m/echo"): {"n": 3},
    }
    assert told.inputs("m/echo") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_with_a_join_the_result_is_an_entity(build: Build, told: Recorder) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": f"n{data['id']}"})
    graph = build(name, told.mutation("m/one", {"id": 1, "x": 2}), told.mutation("m/none", None))
    assert graph.query_now("[{(m/one {}) [:name]} {(m/none {}) [:name]}]", {"name": "of the surrounding"}) == {
        Symbol("m/one"): {"name": "n1"},
        Symbol("m/none"): None,
    }
    assert graph.query_now("[{(m/one {}) [* :name]}]") == {Symbol("m/one"): {"id": 1, "x": 2, "name": "n1"}}


def test_with_a_join_each_element_of_a_collection_is_an_entity(build: Build, told: Recorder) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": f"n{data['id']}"})
    many = told.mutation("m/many", [{"id": 1}, None, 5, {"id": 2}])
    assert build(name, many).query_now("[{(m/many {}) [:name]}]") == {
        Symbol("m/many"): [{"name": "n1"}, 5, {"name": "n2"}]
    }


def test_a_union_below_a_mutation_picks_by_its_result(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/go", {"post/id": 1, "text": "t"}))
    assert graph.query_now("[{(m/go {}) {:user/id [:name] :post/id [:text]}}]") == {Symbol("m/go"): {"text": "t"}}


def test_the_result_is_not_part_of_the_surrounding_entity(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/go", {"a": 1}), told.resolver("b", ["a"], ["b"], {"b": 1}))
    with pytest.raises(AttributeUnreachable):
        graph.query_now("[(m/go {}) :b]")
    assert told.calls == []


def test_what_the_result_lacks_fails_below_the_mutation(build: Build, told: Recorder) -> None:
    with pytest.raises(AttributeUnreachable) as caught:
        build(told.mutation("m/go", {"a": 1})).query_now("[{(m/go {}) [:nobody]}]")
    assert caught.value.path == (Symbol("m/go"),)
    assert caught.value.message.splitlines()[0] == "no path to these attributes at [m/go]:"


def test_the_declared_output_is_not_enforced(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/go", {"other": 1}, output=["declared"]))
    assert graph.query_now("[(m/go {})]") == {Symbol("m/go"): {"other": 1}}


def test_below_a_join_a_mutation_runs_for_every_entity(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/go", lambda params: len(told.calls)))
    assert graph.query_now("[{:l [(m/go {}) :a]}]", {"l": [{"a": 1}, {"a": 2}]}) == {
        "l": [{Symbol("m/go"): 1, "a": 1}, {Symbol("m/go"): 2, "a": 2}]
    }


def test_the_wildcard_shows_the_results_of_mutations(build: Build, told: Recorder) -> None:
    assert build(told.mutation("m/go", 1)).query_now("[* (m/go {})]", {"a": 1}) == {"a": 1, Symbol("m/go"): 1}


# -- failures


@pytest.mark.parametrize(
    ("name", "hint"), [("cart/ad", "; did you mean cart/add?"), ("cart/remove", ""), ("add", ""), ("zebra", "")]
)
def test_a_mutation_that_nobody_knows_is_refused_with_the_nearest_name(
    build: Build, told: Recorder, name: str, hint: str
) -> None:
    with pytest.raises(MutationNotFound) as caught:
        build(told.mutation("cart/add", 1)).query_now(f"[({name} {{}})]")
    assert str(caught.value) == f"mutation {name} not found{hint}"
    assert isinstance(caught.value, Refused)


def test_the_facts_of_a_mutation_that_is_not_found(build: Build, told: Recorder) -> None:
    with pytest.raises(MutationNotFound) as caught:
        build(told.mutation("cart/add", 1)).query_now("[{:l [(cart/ad {})]}]", {"l": [{}]})
    assert caught.value.as_data() == {
        "code": "graph/mutation-not-found",
        "message": "mutation cart/ad not found at [:l 0]; did you mean cart/add?",
        "data": {"mutation": "cart/ad", "path": Vector((Keyword("l"), 0)), "nearest": "cart/add"},
    }


def test_nothing_runs_if_one_of_the_mutations_is_not_found(build: Build, told: Recorder) -> None:
    with pytest.raises(MutationNotFound):
        build(told.mutation("m/go", 1)).query_now("[(m/go {}) (m/stop {})]")
    with pytest.raises(MutationNotFound):
        build(told.mutation("m/go", 1)).query_now("[(m/go {}) {:>/p [(m/stop {})]}]")
    assert told.calls == []


def test_a_mutation_that_raises_stops_the_request(build: Build, told: Recorder) -> None:
    raised = ValueError("sold out")
    graph = build(told.mutation("m/go", raised), told.mutation("m/next", 1), told.resolver("b", [], ["b"], {"b": 1}))
    with pytest.raises(MutationFailed) as caught:
        graph.query_now("[:b (m/go {}) (m/next {})]")
    error = caught.value
    assert isinstance(error, Failed)
    assert error.__cause__ is raised
    assert told.names == ["m/go"]
    assert error.as_data() == {
        "code": "graph/mutation-failed",
        "message": "mutation m/go failed: ValueError: sold out",
        "data": {"mutation": "m/go", "path": Vector(), "reason": "ValueError: sold out"},
    }


def test_a_lenient_answer_holds_the_failure_in_place_of_the_result_and_goes_on(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/go", ValueError("sold out")), told.mutation("m/next", {"a": 1}))
    found = graph.query_now("[(m/go {}) {(m/next {}) [:a]} (m/gp {}) :b]", {"b": 2}, lenient=True)
    assert found[Symbol("m/next")] == {"a": 1}
    assert found["b"] == 2
    assert ERRORS not in found
    assert found[Symbol("m/go")] == {
        MUTATION_ERROR: {
            "code": "graph/mutation-failed",
            "message": "mutation m/go failed: ValueError: sold out",
            "data": {"mutation": "m/go", "path": Vector(), "reason": "ValueError: sold out"},
        }
    }
    assert found[Symbol("m/gp")] == {
        MUTATION_ERROR: {
            "code": "graph/mutation-not-found",
            "message": "mutation m/gp not found; did you mean m/go?",
            "data": {"mutation": "m/gp", "path": Vector(), "nearest": "m/go"},
        }
    }
    dumps(found)
    json.dumps(found)


def test_a_failure_is_shown_whole_below_a_join_too(build: Build, told: Recorder) -> None:
    graph = build(told.mutation("m/go", ValueError("sold out")))
    found = graph.query_now("[{(m/go {}) [:a]} {:>/p [{(m/go {}) [:a]}]}]", lenient=True)
    for below in (found, found[">/p"]):
        assert below[Symbol("m/go")][MUTATION_ERROR]["code"] == "graph/mutation-failed"


def test_a_result_whose_attributes_fail_leniently_lists_them(build: Build, told: Recorder) -> None:
    found = build(told.mutation("m/go", {"a": 1})).query_now("[{(m/go {}) [:a :nobody]}]", lenient=True)
    assert found[Symbol("m/go")]["a"] == 1
    assert list(found[Symbol("m/go")][ERRORS]) == ["nobody"]
