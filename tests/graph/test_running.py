"""What a query is answered with, rule by rule; the sections are those of the semantics, with and without compiled code.

Errors have their own page, test_errors.py; so have mutations, test_mutations.py, and awaiting, test_async.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

import pytest

from psi.edn import Keyword, List, Map, String, Symbol, Vector, dumps, loads
from psi.eql import QueryError
from psi.graph import (
    ERRORS,
    AllProvidersFailed,
    AttributeMissing,
    AttributeUnreachable,
    BatchFailed,
    Env,
    Graph,
    InvalidEntity,
    LimitExceeded,
    Resolver,
    ResolverFailed,
    alias,
    equivalence,
    resolver,
)
from tests.graph.recorder import Recorder

Build = Callable[..., Graph]


def table(told: Recorder, name: str, key: str, gives: list[Any], rows: Mapping[Any, Any], **options: Any) -> Resolver:
    """A resolver that looks its one input up."""
    return told.resolver(name, [key], gives, lambda data: rows.get(data[key]), **options)


# -- 1 the overall model


def test_an_answer_holds_what_was_asked_in_the_order_it_was_asked(build: Build, told: Recorder) -> None:
    b, c = told.resolver("b", ["a"], ["b"], {"b": 2}), told.resolver("c", ["b"], ["c"], {"c": 3})
    answer = build(b, c).query_now("[:c :a]", {"x": 0, "a": 1})
    assert list(answer.items()) == [("c", 3), ("a", 1)]


def test_the_keys_of_an_answer_are_written_as_keywords(build: Build, told: Recorder) -> None:
    answer = build(told.resolver("b", ["a"], ["b"], {"b": "text"})).query_now("[:b]", {"a": 1})
    assert dumps(answer) == '{:b "text"}'


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_what_is_there_is_there_whatever_its_value(build: Build, told: Recorder, value: Any) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], lambda data: {"b": [data["a"]]}))
    assert graph.query_now("[:a :b]", {"a": value}) == {"a": value, "b": [value]}
    assert graph.query_now("[:b]", {"b": value}) == {"b": value}
    assert told.counts == {"b": 1}


def test_a_resolver_gets_exactly_its_declared_input(build: Build, told: Recorder) -> None:
    sees = told.resolver("sees", ["a", "?b", "?c", {"d": ["e"]}], ["z"], {"z": 1})
    graph = build(sees)
    assert graph.query_now("[:z]", {"a": 1, "b": 2, "x": 3, "d": {"e": 4, "y": 5}}) == {"z": 1}
    assert told.inputs("sees") == [{"a": 1, "b": 2, "d": {"e": 4}}]


def test_a_resolver_without_inputs_gets_an_empty_map(build: Build, told: Recorder) -> None:
    assert build(told.resolver("now", [], ["now"], {"now": 5})).query_now("[:now]", {"x": 1}) == {"now": 5}
    assert told.inputs("now") == [{}]


def test_an_empty_query_calls_nobody(build: Build, told: Recorder) -> None:
    assert build(told.resolver("now", [], ["now"], {"now": 5})).query_now("[]", {"x": 1}) == {}
    assert told.calls == []


def test_the_data_of_the_caller_is_never_changed(build: Build, told: Recorder) -> None:
    price = table(told, "price", "id", ["price"], {1: {"price": 5, "extra": 1}})
    total = told.resolver("total", [{"items": ["price"]}], ["total"], lambda data: {"total": len(data["items"])})
    entity = {"items": [{"id": 1}, None, {"price": 2}], "set": frozenset({Map({"id": 1})}), "one": {"id": 1}}
    before = deepcopy(entity)
    build(price, total).query_now("[:total {:items [:price]} {:set [:price]} {:one [* :price]} :>/x]", entity)
    assert entity == before


def test_what_a_resolver_returned_is_never_changed(build: Build, told: Recorder) -> None:
    rows = {"items": [{"id": 1}, {"id": 1}]}
    items = told.resolver("items", [], [{"items": ["id"]}], rows)
    price = table(told, "price", "id", ["price"], {1: {"price": 5}})
    build(items, price).query_now("[{:items [:price *]}]")
    assert rows == {"items": [{"id": 1}, {"id": 1}]}


def test_a_graph_answers_the_same_every_time_it_is_asked(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], lambda data: {"b": data["a"] + 1}))
    answers = [graph.query_now("[{:l [:b]} :b]", {"a": n, "l": [{"a": n}, {"a": n + 1}]}) for n in range(5)]
    assert answers == [{"l": [{"b": n + 1}, {"b": n + 2}], "b": n + 1} for n in range(5)]


def test_the_context_reaches_every_operation(build: Build) -> None:
    @resolver(output=["city"])
    def city(env: Env, data: Any) -> Any:
        return {"city": env.context["city"]}

    assert build(city).query_now("[:city {:l [:city]}]", {"l": [{}]}, context={"city": "Lviv"}) == {
        "city": "Lviv",
        "l": [{"city": "Lviv"}],
    }


def test_an_entity_is_a_map(build: Build) -> None:
    for entity in (5, "a", [{"a": 1}]):
        with pytest.raises(InvalidEntity) as caught:
            build().query_now("[:a]", entity)  # type: ignore[arg-type]
        assert str(caught.value) == f"an entity is a map of attributes to values, got {dumps(entity)}"


@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType, Map])
def test_an_entity_may_be_any_kind_of_map(build: Build, told: Recorder, kind: Callable[..., Any]) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], lambda data: {"b": data["a"] + 1}))
    assert graph.query_now("[:b]", kind({"a": 1})) == {"b": 2}
    below = {"l": Vector((kind({"a": 1}),)), "m": kind({"a": 2})}
    assert graph.query_now("[{:l [:b]} {:m [:b]}]", kind(below) if kind is not Map else below) == {
        "l": Vector(({"b": 2},)),
        "m": {"b": 3},
    }


def test_edn_data_is_an_entity_as_it_was_read(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["x/a"], ["x/b"], lambda data: {"x/b": data["x/a"] + 1}))
    assert graph.query_now("[:x/b {:l [:x/b]}]", loads("{:x/a 1 :l [{:x/a 2} #:x{:a 3}]}")) == {
        "x/b": 2,
        "l": [{"x/b": 3}, {"x/b": 4}],
    }


# -- 2 entity data


def test_what_the_entity_has_is_never_resolved(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], {"b": "resolved"}))
    assert graph.query_now("[:b]", {"a": 1, "b": None}) == {"b": None}
    assert graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}, {"a": 1, "b": False}]}) == {
        "l": [{"b": "resolved"}, {"b": False}]
    }
    assert told.counts == {"b": 1}


def test_what_a_resolver_returns_undeclared_satisfies_others(build: Build, told: Recorder) -> None:
    more = told.resolver("more", [], ["x"], {"x": 1, "y": 2})
    y = told.resolver("y", ["x"], ["y"], {"y": "not asked"})
    assert build(more, y).query_now("[:x :y]") == {"x": 1, "y": 2}
    assert told.counts == {"more": 1}


def test_what_nobody_declares_cannot_be_asked_strictly_even_if_it_would_come(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("more", [], ["x"], {"x": 1, "y": 2}))
    with pytest.raises(AttributeUnreachable):
        graph.query_now("[:x :y]")
    assert told.calls == []
    assert graph.query_now("[:x :y]", lenient=True) == {"x": 1, "y": 2}


def test_of_two_values_for_an_attribute_the_first_stays(build: Build, told: Recorder) -> None:
    first = told.resolver("first", [], ["x", "n"], {"x": 1, "n": "first"})
    second = told.resolver("second", ["x"], ["y"], {"y": 2, "n": "second", "x": "again"})
    assert build(first, second).query_now("[:y :n :x]") == {"y": 2, "n": "first", "x": 1}


def test_of_two_values_for_a_join_the_last_stays(build: Build, told: Recorder) -> None:
    first = told.resolver("first", [], ["x", {"j": ["n"]}], {"x": 1, "j": {"n": "first"}})
    second = told.resolver("second", ["x"], ["y"], {"y": 2, "j": {"n": "second"}})
    assert build(first, second).query_now("[{:j [:n]} :y]") == {"j": {"n": "second"}, "y": 2}
    assert build(second).query_now("[{:j [:n]} :y]", {"x": 1, "j": {"n": "data"}}) == {"j": {"n": "second"}, "y": 2}


def test_a_resolver_is_no_provider_of_what_it_needs(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("both", ["a"], ["a", "b"], {"a": "new", "b": 2}))
    assert graph.query_now("[:a :b]", {"a": "old"}) == {"a": "old", "b": 2}
    with pytest.raises(AttributeUnreachable):
        graph.query_now("[:a]")


class Awkward(Mapping[str, Any]):
    """A map that is no dict and gives an answer to every question."""

    def __init__(self, **held: Any) -> None:
        self._held = held

    def __getitem__(self, key: str) -> Any:
        return self._held[key]

    def __iter__(self) -> Any:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


def test_a_resolver_may_return_any_kind_of_map(build: Build, told: Recorder) -> None:
    made = (Awkward(b=1), Map({"b": 1}), OrderedDict(b=1), MappingProxyType({"b": 1}))
    for value in made:
        graph = build(told.resolver("b", [], ["b"], value))
        assert graph.query_now("[:b {:l [:b]}]", {"l": [{}, {}]}) == {"b": 1, "l": [{"b": 1}, {"b": 1}]}


# -- 3 joins


COLLECTIONS: list[tuple[Any, Any]] = [
    ({"n": 1}, {"m": 2}),
    ([{"n": 1}, {"n": 2}], [{"m": 2}, {"m": 3}]),
    (({"n": 1}, {"n": 2}), ({"m": 2}, {"m": 3})),
    (List(({"n": 1}, {"n": 2})), List(({"m": 2}, {"m": 3}))),
    (Vector((Map({"n": 1}), Map({"n": 2}))), Vector(({"m": 2}, {"m": 3}))),
    (frozenset({Map({"n": 1}), Map({"n": 2})}), frozenset({Map({"m": 2}), Map({"m": 3})})),
    ([], []),
    (List(()), List(())),
    (frozenset(), frozenset()),
]


@pytest.mark.parametrize(("value", "answer"), COLLECTIONS)
def test_a_join_goes_into_a_map_and_into_each_element_and_keeps_the_kind_of_collection(
    build: Build, told: Recorder, value: Any, answer: Any
) -> None:
    m = told.resolver("m", ["n"], ["m"], lambda data: {"m": data["n"] + 1})
    found = build(m).query_now("[{:j [:m]}]", {"j": value})["j"]
    assert found == answer
    assert type(found) is type(answer)
    source = told.resolver("source", [], [{"j": ["n"]}], {"j": value})
    found = build(m, source).query_now("[{:j [:m]}]")["j"]
    assert found == answer
    assert type(found) is type(answer)


def test_a_set_is_answered_with_a_frozen_one(build: Build) -> None:
    assert build().query_now("[{:s [:n]}]", {"s": {1, "x"}}) == {"s": frozenset({1, "x"})}
    assert build().query_now("[{:s [:n]}]", {"s": frozenset({Map({"n": Vector((1,)), "x": 1})})}) == {
        "s": frozenset({Map({"n": Vector((1,))})})
    }


def test_entities_of_a_set_that_become_equal_are_one(build: Build) -> None:
    pair = frozenset({Map({"n": 1, "id": 1}), Map({"n": 1, "id": 2})})
    assert build().query_now("[{:s [:n]}]", {"s": pair}) == {"s": frozenset({Map({"n": 1})})}


@pytest.mark.parametrize("value", [None, 5, "text", True, 1.5, Keyword("k"), object])
def test_what_is_no_entity_and_no_collection_is_returned_as_it_is(build: Build, value: Any) -> None:
    assert build().query_now("[{:j [:nobody]}]", {"j": value}) == {"j": value}


def test_in_a_collection_entities_are_entered_nil_is_dropped_and_the_rest_is_kept(build: Build) -> None:
    mixed = [{"n": 1}, None, 5, "text", [{"n": 2}], [None], {"n": 3}, None]
    kept = [{"n": 1}, 5, "text", [{"n": 2}], [None], {"n": 3}]
    assert build().query_now("[{:l [:n]}]", {"l": mixed}) == {"l": kept}
    assert build().query_now("[{:l [:n]}]", {"l": tuple(mixed)}) == {"l": tuple(kept)}
    assert build().query_now("[{:l [:n]}]", {"l": [None, None]}) == {"l": []}


def test_a_list_that_begins_with_something_else_is_answered_like_any(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("m", ["n"], ["m"], lambda data: {"m": data["n"] + 1}))
    for _ in range(3):
        assert graph.query_now("[{:l [:m]}]", {"l": [5, None, {"n": 1}, {"m": 0}]}) == {"l": [5, {"m": 2}, {"m": 0}]}


def test_an_empty_subquery_selects_nothing(build: Build) -> None:
    assert build().query_now("[{:j []} {:l []}]", {"j": {"a": 1}, "l": [{"a": 1}, {}, 5]}) == {
        "j": {},
        "l": [{}, {}, 5],
    }


def test_without_a_subquery_the_whole_value_is_returned(build: Build) -> None:
    value = {"a": [1, {"b": None}]}
    assert build().query_now("[:j]", {"j": value}) == {"j": value}


def test_a_value_shows_what_was_added_to_it_for_a_nested_input(build: Build, told: Recorder) -> None:
    price = table(told, "price", "id", ["price"], {1: {"price": 5}})
    total = told.resolver("total", [{"items": ["price"]}], ["total"], {"total": 5})
    assert build(price, total).query_now("[:total :items]", {"items": [{"id": 1}]}) == {
        "total": 5,
        "items": [{"id": 1, "price": 5}],
    }


def test_entities_of_many_shapes_in_one_list_are_answered_alike(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda data: {"b": data["a"] * 10})
    from_c = told.resolver("b from c", ["c"], ["b"], lambda data: {"b": data["c"] * 100})
    shapes = [{"a": 1}, {"b": 2}, {"c": 3}, {"x": 0, "a": 4}, {"a": 5, "x": 0}, {"b": 6, "a": 0}, {"c": 7, "y": 0}]
    assert build(b, from_c).query_now("[{:l [:b]}]", {"l": shapes * 3}) == {
        "l": [{"b": n} for n in (10, 2, 300, 40, 50, 6, 700)] * 3
    }


def test_joins_below_joins_below_joins(build: Build, told: Recorder) -> None:
    m = told.resolver("m", ["n"], ["m"], lambda data: {"m": data["n"] + 1})
    value: Any = {"n": 1}
    answer: Any = {"m": 2}
    query = "[:m]"
    for level in range(12):
        value, answer = ({"j": [value, value]}, {"j": [answer, answer]}) if level % 2 else ({"j": value}, {"j": answer})
        query = f"[{{:j {query}}}]"
    assert build(m).query_now(query, value) == answer
    assert told.counts == {"m": 1}


@pytest.mark.parametrize("depth", [6, 8, 9, 12, 20, 64])
def test_lists_may_stand_in_lists_as_deep_as_a_query_may_be(build: Build, depth: int) -> None:
    value: Any = {"n": 1, "x": 0}
    answer: Any = {"n": 1}
    query = "[:n]"
    for _ in range(depth):
        value, answer, query = {"l": [value]}, {"l": [answer]}, f"[{{:l {query}}}]"
    assert build().query_now(query, value) == answer


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("[{:a [:x]} {:a [:y]}]", {"a": {"y": 2}}),
        ("[{:a [:y]} :a]", {"a": {"x": 1, "y": 2}}),
        ("[:a {:a [:y]}]", {"a": {"y": 2}}),
        ("[:b :b]", {"b": 3}),
    ],
)
def test_of_a_key_that_is_asked_twice_the_last_asking_counts(build: Build, query: str, answer: Any) -> None:
    assert build().query_now(query, {"a": {"x": 1, "y": 2}, "b": 3}) == answer


# -- 4 idents


def test_an_ident_is_an_entity_and_the_key_of_its_answer(build: Build) -> None:
    assert build().query_now("[[:a 1]]") == {Vector((Keyword("a"), 1)): {"a": 1}}


def test_an_ident_starts_a_fresh_entity(build: Build, told: Recorder) -> None:
    name = table(told, "name", "id", ["name"], {1: {"name": "Ann"}, 2: {"name": "Bo"}})
    graph = build(name)
    assert graph.query_now("[{[:id 2] [:id :name]} :name]", {"id": 1}) == {
        Vector(("id", 2)): {"id": 2, "name": "Bo"},
        "name": "Ann",
    }
    with pytest.raises(AttributeUnreachable) as caught:
        graph.query_now("[{[:id 2] [:mood]}]", {"mood": "good"})
    assert caught.value.path == (Vector(("id", 2)),)


def test_what_the_entity_has_under_an_ident_is_where_it_starts(build: Build) -> None:
    ident = Vector((Keyword("id"), 1))
    assert build().query_now("[{[:id 1] [:id :name]}]", {ident: {"name": "Ann", "id": 0}}) == {
        ident: {"id": 1, "name": "Ann"}
    }


def test_idents_work_at_any_depth_and_their_params_do_nothing(build: Build, told: Recorder) -> None:
    name = table(told, "name", "id", ["name"], {2: {"name": "Bo"}})
    assert build(name).query_now("[{:l [{([:id 2] {:x 1}) [:name]}]}]", {"l": [{}, {}]}) == {
        "l": [{Vector(("id", 2)): {"name": "Bo"}}] * 2
    }
    assert told.counts == {"name": 1}


def test_the_value_of_an_ident_reaches_resolvers_as_plain_data(build: Build, told: Recorder) -> None:
    seen = told.resolver("seen", ["at"], ["kinds"], lambda data: {"kinds": [type(data["at"]).__name__]})
    assert build(seen).query_now('[{[:at [1 "x"]] [:kinds]}]') == {
        Vector(("at", Vector((1, String("x"))))): {"kinds": ["list"]}
    }
    assert told.inputs("seen") == [{"at": [1, "x"]}]


# -- 5 unions

FEED = "[{:feed {:post/id [:text] :video/id [:length]}}]"


def test_the_first_branch_whose_key_an_entity_has_is_its_query(build: Build, told: Recorder) -> None:
    text = table(told, "text", "post/id", ["text"], {1: {"text": "hello"}, None: {"text": "nil is a value"}})
    length = table(told, "length", "video/id", ["length"], {2: {"length": 60}})
    feed = [{"video/id": 2}, {"post/id": 1, "video/id": 2}, {"post/id": None}]
    assert build(text, length).query_now(FEED, {"feed": feed}) == {
        "feed": [{"length": 60}, {"text": "hello"}, {"text": "nil is a value"}]
    }
    assert build(text, length).query_now(FEED, {"feed": {"video/id": 2}}) == {"feed": {"length": 60}}


def test_an_entity_that_no_branch_fits_is_dropped_or_nil(build: Build) -> None:
    graph = build()
    assert graph.query_now(FEED, {"feed": [{"ad": 1}, {"post/id": 1, "text": "t"}, {}]}) == {"feed": [{"text": "t"}]}
    assert graph.query_now(FEED, {"feed": {"ad": 1}}) == {"feed": None}


def test_scalars_below_a_union_are_kept_and_nil_is_dropped(build: Build) -> None:
    assert build().query_now(FEED, {"feed": [5, None, "x", [1]]}) == {"feed": [5, "x", [1]]}
    assert build().query_now(FEED, {"feed": "x"}) == {"feed": "x"}


def test_what_the_branch_lacks_is_missing_as_anywhere(build: Build) -> None:
    with pytest.raises(AttributeUnreachable) as caught:
        build().query_now(FEED, {"feed": [{"video/id": 2, "length": 1}, {"post/id": 1}]})
    assert caught.value.path == ("feed", 1)


def test_a_recursion_inside_a_branch_repeats_that_branch(build: Build) -> None:
    query = "[{:feed {:post/id [:post/id {:replies ...}] :video/id [:length]}}]"
    feed = [{"post/id": 1, "replies": [{"post/id": 2}, {"video/id": 3, "post/id": 4, "length": 1}]}]
    assert build().query_now(query, {"feed": feed}) == {
        "feed": [{"post/id": 1, "replies": [{"post/id": 2}, {"post/id": 4}]}]
    }


# -- 6 placeholders


def test_a_placeholder_asks_the_same_entity_under_another_name(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda data: {"b": data["a"] + 1})
    assert build(b).query_now("[{:>/x [:a :b]} :b {:>/y [{:>/z [:b]}]}]", {"a": 1}) == {
        ">/x": {"a": 1, "b": 2},
        "b": 2,
        ">/y": {">/z": {"b": 2}},
    }
    assert told.counts == {"b": 1}


def test_what_only_a_placeholder_asks_is_resolved_once_too(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], {"b": 2}, cache=False)
    assert build(b).query_now("[{:>/x [:b]} {:>/y [:b]}]", {"a": 1}) == {">/x": {"b": 2}, ">/y": {"b": 2}}
    assert told.counts == {"b": 1}


@resolver(input=["a"], output=["x"])
def plus(env: Env, data: Any) -> Any:
    return {"x": data["a"] + env.params.get("k", 0)}


def test_params_inside_a_placeholder_give_it_a_value_of_its_own(build: Build) -> None:
    assert build(plus).query_now("[:x {:>/b [(:x {:k 2})]} {:>/c [(:x {:k 3})]}]", {"a": 1}) == {
        "x": 1,
        ">/b": {"x": 3},
        ">/c": {"x": 4},
    }


def test_what_only_a_placeholder_asks_with_params_is_not_resolved_around_it(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("x", ["a"], ["x"], lambda data: {"x": data["a"]}), placeholder_params=True)
    assert graph.query_now("[{:>/b [(:x {:k 2})]}]", {"a": 1}) == {">/b": {"x": 1}}
    assert told.counts == {"x": 1}
    assert graph.query_now("[{(:>/b {:a 4}) [:x]}]", {"a": 1}) == {">/b": {"x": 4}}
    assert told.inputs("x") == [{"a": 1}, {"a": 4}]


def test_a_placeholder_without_params_shows_what_the_entity_around_it_has(build: Build) -> None:
    assert build(plus).query_now("[{:>/b [:x]} (:x {:k 2})]", {"a": 1}) == {">/b": {"x": 3}, "x": 3}


def test_params_of_a_placeholder_are_data_only_if_the_graph_says_so(build: Build) -> None:
    query = "[{(:>/b {:a 4}) [:a :x]} :x]"
    assert build(plus).query_now(query, {"a": 1}) == {">/b": {"a": 1, "x": 1}, "x": 1}
    assert build(plus, placeholder_params=True).query_now(query, {"a": 1}) == {">/b": {"a": 4, "x": 4}, "x": 1}


def test_a_bare_placeholder_is_the_whole_entity(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], {"b": 2, "extra": 3})
    assert build(b).query_now("[:>/all :b]", {"a": 1}) == {">/all": {"a": 1, "b": 2, "extra": 3}, "b": 2}


def test_an_error_below_a_placeholder_has_its_name_in_the_path(build: Build) -> None:
    with pytest.raises(AttributeUnreachable) as caught:
        build().query_now("[{:>/x [{:j [:nobody]}]}]", {"j": {"a": 1}})
    assert caught.value.path == (">/x", "j")
    with pytest.raises(AttributeUnreachable) as caught:
        build().query_now("[{:>/x [:nobody]}]", {"a": 1})
    assert caught.value.path == (">/x",)


def test_placeholders_work_in_lists_and_with_joins_inside(build: Build, told: Recorder) -> None:
    name = table(told, "name", "id", ["name"], {1: {"name": "Ann"}, 2: {"name": "Bo"}})
    query = "[{:l [{:>/who [:name {:friend [:name]}]}]}]"
    assert build(name).query_now(query, {"l": [{"id": 1, "friend": {"id": 2}}, {"id": 2, "friend": {"id": 1}}]}) == {
        "l": [
            {">/who": {"name": "Ann", "friend": {"name": "Bo"}}},
            {">/who": {"name": "Bo", "friend": {"name": "Ann"}}},
        ]
    }
    assert told.counts == {"name": 2}


def test_a_placeholder_takes_a_plain_query(build: Build) -> None:
    for query in ("[{:>/x ...}]", "[{:>/x {:a [:b]}}]"):
        with pytest.raises(QueryError) as caught:
            build().query_now(query)
        assert str(caught.value) == (
            "invalid query at :>/x: a placeholder repeats its own entity and takes a plain query"
        )


# -- 7 params


@resolver(input=["id"], output=["x", "y", {"j": ["id"]}])
def shows(env: Env, data: Any) -> Any:
    params = dict(env.params)
    return {"x": params, "y": params, "j": {"id": 0}}


@pytest.mark.parametrize("query", ["[(:x {:k 1})]", '[(:x {"k" 1})]', [("x", {"k": 1})]])
def test_params_are_read_from_the_env(build: Build, query: Any) -> None:
    assert build(shows).query_now(query, {"id": 1}) == {"x": {"k": 1}}


def test_without_params_they_are_empty(build: Build) -> None:
    assert build(shows).query_now("[:x]", {"id": 1}) == {"x": {}}


def test_params_reach_a_resolver_as_plain_data(build: Build) -> None:
    found = build(shows).query_now('[(:x {:l [1 "s" :k] :m {:n "t"}})]', {"id": 1})["x"]
    assert found == {"l": [1, "s", Keyword("k")], "m": {"n": "t"}}
    assert (type(found["l"]), type(found["l"][1]), type(found["m"])) == (list, str, dict)


def test_params_of_a_join_reach_its_resolver_and_not_its_subquery(build: Build) -> None:
    for query in ("[{(:j {:k 1}) [:x]} :y]", "[({:j [:x]} {:k 1}) :y]"):
        assert build(shows).query_now(query, {"id": 1}) == {"j": {"x": {}}, "y": {"k": 1}}


def test_one_call_has_the_params_of_all_it_is_asked_for_and_the_later_ones_win(build: Build) -> None:
    merged = {"k": 8, "a": 1, "b": 2}
    assert build(shows).query_now("[(:x {:k 7 :a 1}) (:y {:k 8 :b 2})]", {"id": 1}) == {"x": merged, "y": merged}


def test_params_do_not_travel_to_dependencies_nor_through_aliases(build: Build, told: Recorder) -> None:
    assert build(shows, alias("x", "z")).query_now("[(:z {:k 1})]", {"id": 1}) == {"z": {}}
    z = told.resolver("z", ["x"], ["z"], lambda data: {"z": data["x"]})
    assert build(shows, z).query_now("[(:z {:k 1})]", {"id": 1}) == {"z": {}}


def test_params_are_part_of_what_is_remembered_and_of_what_is_batched(build: Build) -> None:
    calls: list[Any] = []

    @resolver(input=["id"], output=["b"], batch=True)
    def batched(env: Env, items: Any) -> Any:
        calls.append((dict(env.params), [item["id"] for item in items]))
        return [{"b": (item["id"], env.params.get("k"))} for item in items]

    query = "[{:l [(:b {:k 1})]} {:m [(:b {:k 2})]} {:n [(:b {:k 1})]} {:o [:b]}]"
    rows = [{"id": 1}, {"id": 2}]
    assert build(batched).query_now(query, {"l": rows, "m": rows, "n": rows, "o": rows}) == {
        "l": [{"b": (1, 1)}, {"b": (2, 1)}],
        "m": [{"b": (1, 2)}, {"b": (2, 2)}],
        "n": [{"b": (1, 1)}, {"b": (2, 1)}],
        "o": [{"b": (1, None)}, {"b": (2, None)}],
    }
    assert sorted(calls, key=str) == [({"k": 1}, [1, 2]), ({"k": 2}, [1, 2]), ({}, [1, 2])]


def test_params_that_python_holds_for_equal_are_kept_apart(build: Build) -> None:
    query = "[{:l [(:x {:k 1})]} {:m [(:x {:k true})]} {:n [(:x {:k 1.0})]} {:o [(:x {:k [1]})]} {:p [(:x {:k (1)})]}]"
    row = {"id": 1}
    found = build(shows).query_now(query, {"l": row, "m": row, "n": row, "o": row, "p": row})
    kinds = {key: type(below["x"]["k"]).__name__ for key, below in found.items()}
    assert kinds == {"l": "int", "m": "bool", "n": "float", "o": "list", "p": "List"}


def test_params_of_what_is_there_already_do_nothing(build: Build) -> None:
    assert build(shows).query_now("[(:x {:k 1}) {(:j {:k 1}) [:id]}]", {"id": 1, "x": 5, "j": {"id": 7}}) == {
        "x": 5,
        "j": {"id": 7},
    }


OPTIONAL = ["psi.graph/optional?", "com.wsscode.pathom3.connect.operation/optional?"]


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_param_makes_an_attribute_optional_and_is_not_passed_on(build: Build, told: Recorder, name: str) -> None:
    silent = told.resolver("silent", ["id"], ["quiet"], {})
    optional = f"{{:{name} true}}"
    query = f"[(:nobody {optional}) (:quiet {optional}) (:x {optional}) {{(:gone {optional}) [:a]}}]"
    for entity in ({"id": 1}, {"id": 1, "extra": 2}):
        assert build(shows, silent).query_now(query, entity) == {"x": {}}
    with pytest.raises(AttributeUnreachable):
        build(shows).query_now(f"[(:nobody {{:{name} false}})]", {"id": 1})


# -- 8 recursion


def test_an_endless_recursion_repeats_the_enclosing_query_as_deep_as_the_data_goes(
    build: Build, told: Recorder
) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": f"n{data['id']}"})
    tree = {"id": 1, "kids": [{"id": 2, "kids": [{"id": 3}]}, {"id": 4, "kids": []}]}
    assert build(name).query_now("[:name {:kids ...}]", tree) == {
        "name": "n1",
        "kids": [{"name": "n2", "kids": [{"name": "n3"}]}, {"name": "n4", "kids": []}],
    }


def test_resolvers_may_give_the_children_that_recursion_asks_for(build: Build, told: Recorder) -> None:
    rows = {1: {"kids": [{"id": 2}, {"id": 3}]}, 2: {"kids": [{"id": 3}]}}
    kids = told.resolver("kids", ["id"], [{"kids": ["id"]}], lambda data: rows.get(data["id"], {"kids": []}))
    assert build(kids).query_now("[:id {:kids ...}]", {"id": 1}) == {
        "id": 1,
        "kids": [{"id": 2, "kids": [{"id": 3, "kids": []}]}, {"id": 3, "kids": []}],
    }
    assert told.counts == {"kids": 3}


def test_a_child_that_cannot_be_had_is_no_error_in_a_recursion(build: Build, told: Recorder) -> None:
    assert build().query_now("[:a {:kids ...}]", {"a": 1}) == {"a": 1}
    kids = told.resolver("kids", ["id"], [{"kids": ["id"]}], {})
    assert build(kids).query_now("[:id {:kids 5}]", {"id": 1}) == {"id": 1}


NESTED = {"id": 1, "kids": [{"id": 2, "kids": [{"id": 3, "kids": [{"id": 4}]}]}]}


@pytest.mark.parametrize(
    ("limit", "names"),
    [
        (0, ["n1"]),
        (1, ["n1", "n2"]),
        (2, ["n1", "n2", "n3"]),
        (9, ["n1", "n2", "n3", "n4"]),
        (10**9, ["n1", "n2", "n3", "n4"]),
    ],
)
def test_a_limit_bounds_what_is_resolved_and_not_what_is_shown(
    build: Build, told: Recorder, limit: int, names: list[str]
) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": f"n{data['id']}"})
    found: Any = build(name).query_now(f"[:name {{:kids {limit}}}]", NESTED)
    shown = []
    depth = 0
    while found is not None:
        depth += 1
        if "name" in found:
            shown.append(found["name"])
        found = found["kids"][0] if found.get("kids") else None
    assert shown == names
    assert depth == 4
    assert told.counts == {"name": len(names)}


def test_children_below_the_limit_are_cut_to_the_query(build: Build, told: Recorder) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": f"n{data['id']}"})
    assert build(name).query_now(
        "[:name {:kids 0}]", {"id": 1, "kids": [{"id": 2}, {"name": "kept", "x": 1}, None]}
    ) == {
        "name": "n1",
        "kids": [{}, {"name": "kept"}],
    }


def test_two_recursions_in_one_query_have_limits_of_their_own(build: Build) -> None:
    data = {"n": 1, "l": {"n": 2, "l": {"n": 3}, "r": {"n": 4}}, "r": {"n": 5, "r": {"n": 6}}}
    assert build().query_now("[:n {:l 1} {:r ...}]", data) == data


def cyclic() -> dict[str, Any]:
    node: dict[str, Any] = {"id": 1}
    node["next"] = {"id": 2, "next": node}
    return node


def test_data_that_goes_in_a_circle_ends_in_an_error(build: Build) -> None:
    with pytest.raises(LimitExceeded) as caught:
        build().query_now("[:id {:next ...}]", cyclic())
    assert caught.value.limit == "data-cycle"
    assert caught.value.message.startswith("the data goes in a circle: :next leads back to the same entity at [:next ")


def test_resolvers_that_lead_in_a_circle_end_in_an_error_after_few_calls(build: Build, told: Recorder) -> None:
    after = told.resolver("after", ["id"], [{"next": ["id"]}], lambda data: {"next": {"id": (data["id"] + 1) % 3}})
    with pytest.raises(LimitExceeded) as caught:
        build(after).query_now("[:id {:next ...}]", {"id": 0})
    assert caught.value.limit == "data-cycle"
    assert told.counts == {"after": 3}


def test_a_circle_is_no_error_where_a_limit_ends_it(build: Build, told: Recorder) -> None:
    after = told.resolver("after", ["id"], [{"next": ["id"]}], lambda data: {"next": {"id": (data["id"] + 1) % 2}})
    assert build(after).query_now("[:id {:next 3}]", {"id": 0}) == {
        "id": 0,
        "next": {"id": 1, "next": {"id": 0, "next": {"id": 1, "next": {"id": 0}}}},
    }
    assert told.counts == {"after": 2}


def test_equal_children_that_are_no_ancestors_are_no_circle(build: Build) -> None:
    data = {"id": 1, "kids": [{"id": 2}, {"id": 2}, {"id": 3, "kids": [{"id": 2}]}]}
    assert build().query_now("[:id {:kids ...}]", data) == data


def test_a_child_that_only_resembles_its_ancestor_is_no_circle(build: Build, told: Recorder) -> None:
    data = {"id": 1, "kids": {"id": True, "kids": {"id": 1.0, "kids": {"id": 1}}}}
    assert build().query_now("[:id {:kids ...}]", data) == data
    after = told.resolver(
        "after", ["id"], [{"next": ["id"]}], lambda data: {"next": {"id": 1} if data["id"] is True else None}
    )
    assert build(after).query_now("[:id {:next ...}]", {"id": True}) == {"id": True, "next": {"id": 1, "next": None}}


# -- 9 optional and nested inputs


def test_an_optional_input_that_cannot_be_had_is_absent(build: Build, told: Recorder) -> None:
    nick = told.resolver("nick", ["id"], ["nick"], {})
    greet = told.resolver(
        "greet", ["id", "?nick", "?title", "?nobody"], ["hello"], lambda data: {"hello": sorted(data)}
    )
    assert build(nick, greet).query_now("[:hello]", {"id": 1, "title": None}) == {"hello": ["id", "title"]}
    assert told.names == ["nick", "greet"]


def test_an_optional_input_is_resolved_if_it_can_be(build: Build, told: Recorder) -> None:
    nick = told.resolver("nick", ["id"], ["nick"], {"nick": None})
    greet = told.resolver("greet", ["?nick"], ["hello"], lambda data: {"hello": data})
    assert build(nick, greet).query_now("[:hello]", {"id": 1}) == {"hello": {"nick": None}}


@pytest.mark.parametrize("providers", [1, 2])
def test_an_optional_input_whose_providers_all_raise_fails_a_strict_query_and_not_a_lenient_one(
    build: Build, told: Recorder, providers: int
) -> None:
    raising = [told.resolver(f"nick {n}", ["id"], ["nick"], ValueError("no")) for n in range(providers)]
    graph = build(*raising, told.resolver("greet", ["id", "?nick"], ["hello"], lambda data: {"hello": sorted(data)}))
    with pytest.raises((ResolverFailed, AllProvidersFailed)):
        graph.query_now("[:hello]", {"id": 1})
    assert graph.query_now("[:hello]", {"id": 1}, lenient=True) == {"hello": ["id"]}


def test_an_optional_attribute_of_the_query_whose_provider_raises_fails(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", [], ["b"], ValueError("no")))
    with pytest.raises(ResolverFailed):
        graph.query_now("[(:b {:psi.graph/optional? true})]")
    [listed] = graph.query_now("[(:b {:psi.graph/optional? true})]", lenient=True)[ERRORS]
    assert listed == "b"


def cart(told: Recorder, *, items: Any = None) -> list[Resolver]:
    rows = items if items is not None else [{"id": 1}, {"id": 2}]
    return [
        told.resolver("items", ["cart"], [{"items": ["id"]}], {"items": rows}),
        told.resolver("price", ["id"], ["price"], lambda data: {"price": data["id"] * 10} if data["id"] < 9 else {}),
        told.resolver(
            "total",
            [{"items": ["price"]}],
            ["total"],
            lambda data: {"total": sum(item["price"] for item in data["items"] or ())},
        ),
    ]


def test_a_nested_input_is_resolved_in_every_entity_before_the_consumer_runs(build: Build, told: Recorder) -> None:
    assert build(*cart(told)).query_now("[:total]", {"cart": 1}) == {"total": 30}
    assert told.names == ["items", "price", "price", "total"]
    assert told.inputs("total") == [{"items": [{"price": 10}, {"price": 20}]}]


def test_a_nested_input_and_a_join_share_their_entities(build: Build, told: Recorder) -> None:
    assert build(*cart(told)).query_now("[{:items [:id :price]} :total]", {"cart": 1}) == {
        "items": [{"id": 1, "price": 10}, {"id": 2, "price": 20}],
        "total": 30,
    }
    assert told.counts == {"items": 1, "price": 2, "total": 1}


@pytest.mark.parametrize("items", [[], (), frozenset(), None])
def test_a_collection_without_entities_satisfies_a_nested_input_wherever_it_comes_from(
    build: Build, told: Recorder, items: Any
) -> None:
    source = told.resolver("items", ["cart"], [{"items": ["id"]}], lambda data: {"items": items})
    count = told.resolver("count", [{"items": ["id"]}], ["count"], lambda data: {"count": len(data["items"] or ())})
    assert build(source, count).query_now("[:count]", {"cart": 1}) == {"count": 0}
    assert build(source, count).query_now("[:count]", {"items": items}) == {"count": 0}


def test_each_entity_of_a_list_is_taken_as_it_is(build: Build, told: Recorder) -> None:
    assert build(*cart(told)).query_now("[:total]", {"items": [{"id": 1}, {"price": 5}]}) == {"total": 15}
    assert told.inputs("price") == [{"id": 1}]


def test_sets_of_entities_are_looked_into(build: Build, told: Recorder) -> None:
    items = frozenset({Map({"id": 1}), Map({"price": 5})})
    assert build(*cart(told)).query_now("[:total]", {"items": items}) == {"total": 15}


def test_the_kind_of_collection_is_kept_in_a_nested_input(build: Build, told: Recorder) -> None:
    kind = told.resolver("kind", [{"l": ["n"]}], ["kind"], lambda data: {"kind": type(data["l"]).__name__})
    for value, name in (([{"n": 1}], "list"), (({"n": 1},), "tuple"), (List(({"n": 1},)), "List"), ({"n": 1}, "dict")):
        assert build(kind).query_now("[:kind]", {"l": value}) == {"kind": name}
    assert build(kind).query_now("[:kind]", {"l": {Map({"n": 1})}}) == {"kind": "frozenset"}


def test_an_entity_that_cannot_deliver_a_nested_input_fails_at_its_place(build: Build, told: Recorder) -> None:
    graph = build(*cart(told, items=[{"id": 1}, {"id": 9}]))
    with pytest.raises(AttributeMissing) as caught:
        graph.query_now("[:total]", {"cart": 1})
    assert str(caught.value) == (
        "required attributes are missing at [:items 1]:\n- :price: resolver price did not return it"
    )
    found = graph.query_now("[:total]", {"cart": 1}, lenient=True)
    assert "total" not in found
    assert found[ERRORS]["total"]["cause"] == "node-errors"
    assert "total" not in told.names


def test_nested_inputs_may_be_nested_and_optional(build: Build, told: Recorder) -> None:
    price = table(told, "price", "id", ["price"], {1: {"price": 5}})
    report = told.resolver(
        "report",
        [{"orders": [{"lines": ["?price", "id"]}, "?note"]}],
        ["report"],
        lambda data: {"report": data["orders"]},
    )
    orders = [{"lines": [{"id": 1, "x": 0}, {"id": 2}], "note": "n"}, {"lines": []}]
    assert build(price, report).query_now("[:report]", {"orders": orders}) == {
        "report": [{"lines": [{"id": 1, "price": 5}, {"id": 2}], "note": "n"}, {"lines": []}]
    }


def test_an_optional_nested_input_that_cannot_be_had_is_absent(build: Build, told: Recorder) -> None:
    count = told.resolver("count", ["id", {"?items": ["price"]}], ["keys"], lambda data: {"keys": sorted(data)})
    assert build(count).query_now("[:keys]", {"id": 1}) == {"keys": ["id"]}
    assert build(count).query_now("[:keys]", {"id": 1, "items": [{"price": 1}]}) == {"keys": ["id", "items"]}


def test_a_nested_input_waits_for_batches_below_it(build: Build, told: Recorder) -> None:
    price = told.resolver(
        "price", ["id"], ["price"], lambda data: [{"price": item["id"] * 10} for item in data], batch=True
    )
    total = told.resolver(
        "total", [{"items": ["price"]}], ["total"], lambda data: {"total": sum(i["price"] for i in data["items"])}
    )
    carts = [{"items": [{"id": 1}, {"id": 2}]}, {"items": [{"id": 3}]}, {"items": []}]
    assert build(price, total).query_now("[{:carts [:total]}]", {"carts": carts}) == {
        "carts": [{"total": 30}, {"total": 30}, {"total": 0}]
    }
    assert told.inputs("price") == [[{"id": 1}, {"id": 2}, {"id": 3}]]


# -- 10 aliases


def test_an_alias_gives_a_value_another_name_in_one_direction(build: Build) -> None:
    graph = build(alias("a", "b"))
    assert graph.query_now("[:b]", {"a": [1]}) == {"b": [1]}
    with pytest.raises(AttributeUnreachable):
        graph.query_now("[:a]", {"b": 1})


def test_an_equivalence_goes_both_ways_and_in_no_circle(build: Build) -> None:
    graph = build(equivalence("a", "b"), equivalence("b", "c"))
    assert graph.query_now("[:a :b :c]", {"c": 1}) == {"a": 1, "b": 1, "c": 1}
    assert graph.query_now("[:a :b :c]", {"a": None}) == {"a": None, "b": None, "c": None}


def test_a_join_on_an_alias_works_on_the_same_value_again(build: Build, told: Recorder) -> None:
    name = table(told, "name", "id", ["name"], {1: {"name": "Ann"}})
    assert build(alias("a", "b"), name).query_now("[{:a [:id]} {:b [:name]}]", {"a": [{"id": 1}]}) == {
        "a": [{"id": 1}],
        "b": [{"name": "Ann"}],
    }


# -- 11 several providers


def providers(told: Recorder, *answers: Any) -> list[Resolver]:
    """Providers of x, the first with the highest priority."""
    return [
        told.resolver(f"p{place}", ["a"], ["x"], answer, priority=-place)
        for place, answer in enumerate(answers, start=1)
    ]


def test_the_provider_with_the_highest_priority_answers_alone(build: Build, told: Recorder) -> None:
    assert build(*reversed(providers(told, {"x": 1}, {"x": 2}))).query_now("[:x]", {"a": 1}) == {"x": 1}
    assert told.counts == {"p1": 1}


@pytest.mark.parametrize("first", [{}, None, ValueError("no"), {"y": 1}])
def test_a_provider_that_does_not_deliver_gives_way_to_the_next(build: Build, told: Recorder, first: Any) -> None:
    graph = build(*providers(told, first, {"x": 2}, {"x": 3}))
    assert graph.query_now("[:x]", {"a": 1}) == {"x": 2}
    assert graph.query_now("[:x]", {"a": 1}, lenient=True) == {"x": 2}
    assert told.counts == {"p1": 2, "p2": 2}


def test_nil_is_an_answer(build: Build, told: Recorder) -> None:
    assert build(*providers(told, {"x": None}, {"x": 2})).query_now("[:x]", {"a": 1}) == {"x": None}


def test_providers_are_tried_one_after_another_until_one_delivers(build: Build, told: Recorder) -> None:
    graph = build(*providers(told, ValueError("1"), {}, 5, None, {"x": "at last"}))
    assert graph.query_now("[:x]", {"a": 1}) == {"x": "at last"}
    assert told.names == ["p1", "p2", "p3", "p4", "p5"]


def test_the_way_to_another_provider_is_gone_too(build: Build, told: Recorder) -> None:
    direct = told.resolver("direct", ["a"], ["x"], {}, priority=1)
    around = told.resolver("around", ["m"], ["x"], lambda data: {"x": data["m"]})
    middle = told.resolver("middle", ["a"], ["m"], {"m": 7})
    assert build(direct, around, middle).query_now("[:x]", {"a": 1}) == {"x": 7}
    assert told.names == ["direct", "middle", "around"]


def test_a_consumer_gets_its_input_from_whoever_delivers(build: Build, told: Recorder) -> None:
    z = told.resolver("z", ["x"], ["z"], lambda data: {"z": data["x"] * 2})
    assert build(*providers(told, ValueError("no"), {"x": 2}), z).query_now("[:z]", {"a": 1}) == {"z": 4}
    assert told.inputs("z") == [{"x": 2}]


def test_what_another_resolver_brought_along_needs_no_provider(build: Build, told: Recorder) -> None:
    other = told.resolver("other", ["a"], ["y", "x"], {"y": 1, "x": "brought along"})
    graph = build(*providers(told, {"x": 1}, {"x": 2}), other)
    assert graph.query_now("[:y :x]", {"a": 1}) == {"y": 1, "x": "brought along"}
    assert told.counts == {"other": 1}


def test_a_resolver_that_several_attributes_need_is_called_once(build: Build, told: Recorder) -> None:
    both = told.resolver("both", ["a"], ["x", "y"], {"x": 1, "y": 2}, cache=False)
    assert build(both).query_now("[:x :y {:>/p [:x]}]", {"a": 1}) == {"x": 1, "y": 2, ">/p": {"x": 1}}
    assert told.counts == {"both": 1}


def test_in_a_list_each_entity_falls_back_for_itself(build: Build, told: Recorder) -> None:
    first = told.resolver("first", ["a"], ["x"], lambda data: {"x": 1} if data["a"] % 2 else {}, priority=1)
    second = told.resolver("second", ["a"], ["x"], {"x": 2})
    assert build(first, second).query_now("[{:l [:x]}]", {"l": [{"a": n} for n in range(4)]}) == {
        "l": [{"x": 2}, {"x": 1}, {"x": 2}, {"x": 1}]
    }
    assert told.counts == {"first": 4, "second": 2}


# -- 12 cache and batch

ALIKE: list[Any] = [
    *(1, True, 1.0, "1", 0, False, None),
    *("a", Keyword("a"), Symbol("a")),
    *([1], [True], (1.0,), List((1,))),
    *({"n": 1}, {"n": 1.0}, frozenset({1}), frozenset({True})),
]


def test_equal_inputs_are_asked_once_in_a_request_and_again_in_the_next(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda data: {"b": data["a"]})
    graph = build(b)
    entity = {"l": [{"a": 1}, {"a": 2}, {"a": 1}], "m": {"a": 1}, "a": 2}
    for _ in range(2):
        assert graph.query_now("[{:l [:b]} {:m [:b]} :b]", entity) == {
            "l": [{"b": 1}, {"b": 2}, {"b": 1}],
            "m": {"b": 1},
            "b": 2,
        }
    assert sorted(data["a"] for data in told.inputs("b")) == [1, 1, 2, 2]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("more", [{}, {"k": 0}])
@pytest.mark.parametrize("query", ["[:b]", "[:b :c]"])
def test_inputs_that_only_python_holds_for_equal_are_asked_apart(
    build: Build, told: Recorder, batch: bool, more: dict[str, Any], query: str
) -> None:
    def one(data: Any) -> Any:
        return {"b": repr(data["a"]), "c": 0}

    needs = ["a", *more]
    answer = (lambda items: [one(item) for item in items]) if batch else one
    graph = build(told.resolver("b", needs, ["b", "c"], answer, batch=batch))
    entities = [{"a": value, **more} for value in ALIKE]
    found = graph.query_now(f"[{{:l {query}}}]", {"l": entities + entities})["l"]
    assert [entity["b"] for entity in found] == [repr(value) for value in ALIKE] * 2
    asked = told.inputs("b")
    assert len(asked[0] if batch else asked) == len(ALIKE)


@pytest.mark.parametrize("more", [{}, {"k": 0}])
def test_entities_of_other_shapes_share_what_is_remembered(build: Build, told: Recorder, more: dict[str, Any]) -> None:
    graph = build(told.resolver("b", ["a", *more], ["b", "c"], lambda data: {"b": repr(data["a"]), "c": 0}))
    for value in ALIKE:
        told.calls.clear()
        one: dict[str, Any] = {"a": value, **more}
        rows = [one, one | {"c": 1}, one | {"x": 1}, one | {"b": 1}, one]
        assert [row["c"] for row in graph.query_now("[{:l [:b :c]}]", {"l": rows})["l"]] == [0, 1, 0, 0, 0]
        assert told.counts == {"b": 1}, value


def test_an_input_that_is_absent_is_not_one_that_is_nil(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["id", "?a"], ["b"], lambda data: {"b": sorted(data)})
    assert build(b).query_now("[{:l [:b]}]", {"l": [{"id": 1}, {"id": 1, "a": None}, {"id": 1}]}) == {
        "l": [{"b": ["id"]}, {"b": ["a", "id"]}, {"b": ["id"]}]
    }
    assert told.counts == {"b": 2}


def test_nothing_is_an_answer_that_is_remembered(build: Build, told: Recorder) -> None:
    query = "[{:l [(:b {:psi.graph/optional? true})]}]"
    nothing: Any
    for nothing in (None, {}):
        graph = build(told.resolver("b", ["a"], ["b"], nothing))
        assert graph.query_now(query, {"l": [{"a": 1}, {"a": 1}, {"a": 1}]}) == {"l": [{}, {}, {}]}
    assert told.counts == {"b": 2}


def test_an_exception_is_not_remembered(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], ValueError("no")))
    graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}, {"a": 1}]}, lenient=True)
    assert told.counts == {"b": 2}


def test_without_the_cache_every_entity_asks(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], {"b": 1}, cache=False))
    assert graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}] * 3}) == {"l": [{"b": 1}] * 3}
    assert told.counts == {"b": 3}


def test_a_result_that_was_remembered_serves_those_who_want_other_parts_of_it(build: Build, told: Recorder) -> None:
    both = told.resolver("both", ["a"], ["x", "y"], {"x": 1, "y": 2, "z": 3})
    assert build(both).query_now(
        "[{:l [:x]} {:m [:y]} {:n [:x *]}]", {"l": [{"a": 1}], "m": [{"a": 1}], "n": {"a": 1}}
    ) == {
        "l": [{"x": 1}],
        "m": [{"y": 2}],
        "n": {"a": 1, "x": 1, "y": 2, "z": 3},
    }
    assert told.counts == {"both": 1}


def doubled(items: Any) -> Any:
    return [{"b": item["a"] * 2} for item in items]


def test_a_batch_is_called_once_for_the_whole_tree_each_input_once(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True))
    entity = {"l": [{"a": 1}, {"a": 2}, {"a": 1}], "m": [{"n": [{"a": 2}, {"a": 3}]}], "o": {"a": 3}}
    assert graph.query_now("[{:l [:b]} {:m [{:n [:b]}]} {:o [:b]}]", entity) == {
        "l": [{"b": 2}, {"b": 4}, {"b": 2}],
        "m": [{"n": [{"b": 4}, {"b": 6}]}],
        "o": {"b": 6},
    }
    [asked] = told.inputs("b")
    assert sorted(item["a"] for item in asked) == [1, 2, 3]


def test_the_inputs_of_a_batch_stand_in_the_order_in_which_they_were_met(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True))
    graph.query_now("[{:l [:b]}]", {"l": [{"a": n} for n in (3, 1, 2, 1)]})
    assert told.inputs("b") == [[{"a": 3}, {"a": 1}, {"a": 2}]]


@pytest.mark.parametrize(
    "many", [list, tuple, List, lambda found: frozenset(map(Map, found))], ids=["list", "tuple", "List", "set"]
)
def test_batches_are_collected_below_every_kind_of_collection(build: Build, told: Recorder, many: Any) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True))
    found = graph.query_now("[{:l [:b]}]", {"l": many([{"a": 1}, {"a": 2}])})
    assert sorted(entity["b"] for entity in found["l"]) == [2, 4]
    assert len(told.calls) == 1


def test_one_entity_is_a_batch_of_one(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True))
    assert graph.query_now("[:b]", {"a": 4}) == {"b": 8}
    assert told.inputs("b") == [[{"a": 4}]]


def test_a_chain_of_batches_goes_in_waves(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], doubled, batch=True)
    c = told.resolver("c", ["b"], ["c"], lambda items: [{"c": item["b"] + 1} for item in items], batch=True)
    d = told.resolver("d", ["c"], ["d"], lambda data: {"d": -data["c"]})
    assert build(b, c, d).query_now("[{:l [:d]}]", {"l": [{"a": 1}, {"a": 2}]}) == {"l": [{"d": -3}, {"d": -5}]}
    assert told.names == ["b", "c", "d", "d"]


def test_a_batch_that_leads_to_entities_leads_to_batches_below_them(build: Build, told: Recorder) -> None:
    kids = told.resolver(
        "kids", ["id"], [{"kids": ["id"]}], lambda items: [{"kids": [{"id": i["id"] * 10}]} for i in items], batch=True
    )
    name = told.resolver("name", ["id"], ["name"], lambda items: [{"name": f"n{i['id']}"} for i in items], batch=True)
    assert build(kids, name).query_now("[{:l [{:kids [:name]}]}]", {"l": [{"id": 1}, {"id": 2}]}) == {
        "l": [{"kids": [{"name": "n10"}]}, {"kids": [{"name": "n20"}]}]
    }
    assert told.counts == {"kids": 1, "name": 1}


@pytest.mark.parametrize(("chunk", "sizes"), [(1, [1, 1, 1, 1, 1]), (2, [2, 2, 1]), (5, [5]), (9, [5])])
def test_a_batch_is_cut_into_chunks(build: Build, told: Recorder, chunk: int, sizes: list[int]) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True, chunk=chunk))
    assert graph.query_now("[{:l [:b]}]", {"l": [{"a": n} for n in range(5)]}) == {
        "l": [{"b": n * 2} for n in range(5)]
    }
    assert [len(asked) for asked in told.inputs("b")] == sizes


def test_inputs_of_a_batch_are_asked_once_even_without_the_cache(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True, cache=False))
    assert graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}] * 3}) == {"l": [{"b": 2}] * 3}
    assert told.inputs("b") == [[{"a": 1}]]


def test_what_a_batch_gave_before_is_not_asked_again(build: Build, told: Recorder) -> None:
    kids = told.resolver("kids", ["b"], [{"kids": ["a"]}], {"kids": [{"a": 1}, {"a": 5}]})
    b = told.resolver("b", ["a"], ["b"], doubled, batch=True)
    assert build(b, kids).query_now("[:b {:kids [:b]}]", {"a": 1}) == {"b": 2, "kids": [{"b": 2}, {"b": 10}]}
    assert told.inputs("b") == [[{"a": 1}], [{"a": 5}]]


def test_an_item_that_a_batch_has_nothing_for_is_missing_like_any(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], lambda items: [{"b": 1}, None, {}], batch=True))
    entity = {"l": [{"a": 1}, {"a": 2}, {"a": 3}]}
    with pytest.raises(AttributeMissing) as caught:
        graph.query_now("[{:l [:b]}]", entity)
    assert caught.value.path == ("l", 1)
    found = graph.query_now("[{:l [:b]}]", entity, lenient=True)["l"]
    assert [item.get("b") for item in found] == [1, None, None]


def test_a_batch_may_return_a_tuple(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], lambda items: tuple(doubled(items)), batch=True))
    assert graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}, {"a": 2}]}) == {"l": [{"b": 2}, {"b": 4}]}


@pytest.mark.parametrize(
    ("results", "got"),
    [([], "0 results"), ([{"b": 1}] * 3, "3 results"), (None, "NoneType"), ({}, "dict"), ("ab", "str")],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_a_batch_that_returns_another_number_of_results_fails_every_query(
    build: Build, told: Recorder, results: Any, got: str, lenient: bool
) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], lambda items: results, batch=True))
    with pytest.raises(BatchFailed) as caught:
        graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}, {"a": 2}]}, lenient=lenient)
    assert str(caught.value) == (
        f"batch resolver b failed: expected a list of 2 results, one for each input, got {got}"
    )


def test_a_batch_that_raises_gives_way_to_other_providers(build: Build, told: Recorder) -> None:
    first = told.resolver("first", ["a"], ["b"], ValueError("no"), batch=True, priority=1)
    second = told.resolver("second", ["a"], ["b"], lambda data: {"b": data["a"]})
    graph = build(first, second)
    for lenient in (False, True):
        assert graph.query_now("[{:l [:b]}]", {"l": [{"a": 1}, {"a": 2}]}, lenient=lenient) == {
            "l": [{"b": 1}, {"b": 2}]
        }


def test_batches_work_in_every_place_of_a_query(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], doubled, batch=True))
    query = "[{:>/p [:b]} {[:a 5] [:b]} {:u {:a [:b]}} {:kids ...} :b]"
    entity = {"a": 1, "u": [{"a": 2}, {"x": 0}], "kids": [{"a": 3, "u": None}]}
    assert graph.query_now(query, entity) == {
        ">/p": {"b": 2},
        Vector(("a", 5)): {"b": 10},
        "u": [{"b": 4}],
        "kids": [{">/p": {"b": 6}, Vector(("a", 5)): {"b": 10}, "u": None, "b": 6}],
        "b": 2,
    }
    assert len(told.calls) == 1


# -- 13 cycles


def test_a_cycle_of_attributes_with_another_source_works(build: Build, told: Recorder) -> None:
    x = told.resolver("x", ["y"], ["x"], lambda data: {"x": data["y"]})
    y = told.resolver("y", ["x"], ["y"], lambda data: {"y": data["x"]})
    source = told.resolver("source", ["a"], ["y"], {"y": 5})
    assert build(x, y, source).query_now("[:x]", {"a": 1}) == {"x": 5}
    with pytest.raises(AttributeUnreachable):
        build(x, y).query_now("[:x]", {"a": 1})


def test_a_resolver_that_needs_its_own_output_inside_a_nested_input_is_no_way(build: Build, told: Recorder) -> None:
    total = told.resolver("total", [{"parts": ["total"]}], ["total"], {"total": 1})
    parts = told.resolver("parts", [], [{"parts": ["id"]}], {"parts": [{"id": 1}]})
    with pytest.raises(AttributeUnreachable):
        build(total, parts).query_now("[:total]", {})
    assert told.calls == []


# -- 17 the wildcard


def test_the_wildcard_shows_all_that_the_entity_holds_in_the_end_and_resolves_nothing(
    build: Build, told: Recorder
) -> None:
    b = told.resolver("b", ["a"], ["b"], {"b": 2, "extra": 3})
    c = told.resolver("c", ["b"], ["c"], {"c": 4})
    graph = build(b, c)
    assert graph.query_now("[*]", {"a": 1}) == {"a": 1}
    assert told.calls == []
    assert graph.query_now("[* :c]", {"a": 1}) == {"a": 1, "b": 2, "extra": 3, "c": 4}


def test_beside_the_wildcard_a_join_cuts_its_own_value_and_only_that(build: Build) -> None:
    data = {"j": {"x": 1, "y": 2}, "k": {"x": 1, "y": 2}}
    assert build().query_now("[* {:j [:x]}]", data) == {"j": {"x": 1}, "k": {"x": 1, "y": 2}}
    assert build().query_now("[{:j [:x]} *]", data) == {"j": {"x": 1}, "k": {"x": 1, "y": 2}}


def test_the_wildcard_shows_idents_and_placeholders(build: Build) -> None:
    assert build().query_now("[* [:id 1] {:>/p [:a]}]", {"a": 1}) == {
        "a": 1,
        Vector(("id", 1)): {"id": 1},
        ">/p": {"a": 1},
    }


def test_the_wildcard_works_below_joins_and_in_unions(build: Build) -> None:
    data = {"l": [{"a": 1, "x": {"y": 2}}, {}], "u": [{"p": 1, "q": 2}, {"r": 3}]}
    assert build().query_now("[{:l [*]} {:u {:p [*]}}]", data) == {"l": data["l"], "u": [{"p": 1, "q": 2}]}
