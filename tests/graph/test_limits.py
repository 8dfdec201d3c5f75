"""Deep, wide, long and endless: every request ends, in an answer or in a sentence, and costs what it should.

None of these looks at a clock to judge. What would overflow, raises; what is quadratic where it should not be is
noticed by its count or by the patience of whoever runs the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from psi.edn import Keyword, Map, Vector
from psi.graph import (
    ERRORS,
    AttributeUnreachable,
    Env,
    Graph,
    LimitExceeded,
    Limits,
    Resolver,
    alias,
    equivalence,
    resolver,
)
from tests.graph.recorder import Recorder

Build = Callable[..., Graph]


def linked(levels: int, key: str = "next") -> dict[str, Any]:
    node: dict[str, Any] = {"n": 0}
    for n in range(1, levels + 1):
        node = {"n": n, key: node}
    return node


def depth_of(answer: Any, key: str = "next") -> int:
    depth = 0
    while isinstance(answer, dict) and key in answer:
        depth, answer = depth + 1, answer[key]
    return depth


def exceeded(graph: Graph, query: Any, entity: Any = None, **options: Any) -> LimitExceeded:
    with pytest.raises(LimitExceeded) as caught:
        graph.query_now(query, entity, **options)
    return caught.value


def square(told: Recorder, **options: Any) -> Resolver:
    if options.get("batch"):
        return told.resolver("square", ["n"], ["n2"], lambda items: [{"n2": i["n"] ** 2} for i in items], **options)
    return told.resolver("square", ["n"], ["n2"], lambda data: {"n2": data["n"] ** 2}, **options)


# -- max_depth


def test_joins_may_nest_as_deep_as_the_limit_and_no_deeper(build: Build) -> None:
    graph = build()
    assert depth_of(graph.query_now("[:n {:next ...}]", linked(3), max_depth=3)) == 3
    error = exceeded(graph, "[:n {:next ...}]", linked(4), max_depth=3)
    assert error.limit == "max-depth"
    assert str(error) == "nested deeper than max_depth=3 at [:next :next :next :next]"


@pytest.mark.parametrize(
    ("query", "entity"),
    [
        ("[{:a [{:b [{:c [:n]}]}]}]", {"a": {"b": {"c": {"n": 1}}}}),
        ("[{:a [{:b [{:c [:n]}]}]}]", {"a": [{"b": [{"c": [{"n": 1}]}]}]}),
        ("[{:a [{:b [{[:n 1] [:n]}]}]}]", {"a": {"b": {}}}),
        ("[{:a [{:b {:c [:n {:c [:n]}]}}]}]", {"a": {"b": {"c": {"n": 1}, "n": 0}}}),
    ],
)
def test_every_kind_of_join_counts_and_places_in_lists_do_not(build: Build, query: str, entity: Any) -> None:
    graph = build()
    graph.query_now(query, entity, max_depth=3)
    assert exceeded(graph, query, entity, max_depth=2).limit == "max-depth"
    graph.query_now(query, entity, max_depth=3)


def test_a_depth_that_data_does_not_reach_is_no_error(build: Build) -> None:
    assert build().query_now("[{:a [{:b [{:c [:n]}]}]}]", {"a": []}, max_depth=1) == {"a": []}


def test_resolvers_that_never_stop_giving_children_are_stopped(build: Build, told: Recorder) -> None:
    kid = told.resolver("kid", ["id"], [{"kid": ["id"]}], lambda data: {"kid": {"id": data["id"] + 1}})
    error = exceeded(build(kid), "[:id {:kid ...}]", {"id": 0})
    assert error.limit == "max-depth"
    assert str(error) == "nested deeper than max_depth=1000 at [:kid :kid :kid :kid :kid :kid …]"
    assert told.counts == {"kid": 1001}


def test_limits_belong_to_the_graph_and_may_be_set_anew_for_a_request(build: Build) -> None:
    graph = build(limits=Limits(max_depth=2, max_entities=4))
    assert exceeded(graph, "[:n {:next ...}]", linked(3)).limit == "max-depth"
    assert exceeded(graph, "[{:l [:n]}]", {"l": [{"n": 1}] * 4}).limit == "max-entities"
    assert depth_of(graph.query_now("[:n {:next ...}]", linked(3), max_depth=5)) == 3
    assert len(graph.query_now("[{:l [:n]}]", {"l": [{"n": 1}] * 4}, max_entities=5)["l"]) == 4


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "5"])
def test_a_limit_is_an_integer_of_one_or_more(build: Build, value: Any) -> None:
    for name in ("max_depth", "max_entities"):
        message = f"{name} must be an integer of 1 or more, got {value!r}"
        with pytest.raises(ValueError, match=f"^{message}$".replace("'", ".")):
            Limits(**{name: value})
        with pytest.raises(ValueError, match=f"^{message}$".replace("'", ".")):
            build().query_now("[]", **{name: value})


@pytest.mark.parametrize("value", [0, -1, True, "5"])
async def test_a_timeout_is_a_number_above_zero(build: Build, value: Any) -> None:
    message = f"timeout must be a number of seconds above 0, got {value!r}"
    with pytest.raises(ValueError, match=message):
        build().query_now("[]", timeout=value)
    with pytest.raises(ValueError, match=message):
        await build().query("[]", timeout=value)


# -- max_entities


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("query", "entity", "entities"),
    [
        ("[:n2]", {"n": 1}, 1),
        ("[{:l [:n2]}]", {"l": [{"n": n} for n in range(20)]}, 21),
        ("[{:l [:n2]}]", {"l": [{"n": 1}, None, 5, {"n2": 2}, {"n": 1, "x": 2}, [{"n": 1}]]}, 4),
        ("[{:l [:n2]}]", {"l": [None, {"n": 1}, 5, "x", []]}, 2),
        ("[{:l [:n2]}]", {"l": [5, {"n": 1}, {"n": 2}]}, 3),
        ("[{:l [:n2]}]", {"l": tuple({"n": n} for n in range(20))}, 21),
        ("[{:l [:n2]}]", {"l": frozenset(Map({"n": n}) for n in range(20))}, 21),
        ("[{:l [{:m [:n2]}]}]", {"l": [{"m": [{"n": n} for n in range(5)]}] * 4}, 25),
        ("[{:l [{:m [{:o [:n2]}]}]}]", {"l": [{"m": [{"o": [{"n": n} for n in range(3)]}] * 2}] * 2}, 19),
        ("[{:j [{:l [:n2]}]}]", {"j": {"l": [{"n": n} for n in range(3)]}}, 5),
        ("[:n {:kids ...}]", {"n": 1, "kids": [{"n": 2, "kids": [{"n": 3}]}, {"n": 4}]}, 4),
        ("[{:l {:n [:n2]}}]", {"l": [{"n": n} for n in range(5)]}, 6),
    ],
)
def test_a_request_may_work_on_so_many_entities_and_no_more(
    build: Build, told: Recorder, query: str, entity: Any, entities: int, batch: bool
) -> None:
    graph = build(square(told, batch=batch))
    for _ in range(2):
        graph.query_now(query, entity, max_entities=entities)
        if entities > 1:
            error = exceeded(graph, query, entity, max_entities=entities - 1)
            assert error.limit == "max-entities"
            assert error.message.startswith(f"more entities than max_entities={entities - 1}")


def test_entities_that_a_resolver_leads_to_count_too(build: Build, told: Recorder) -> None:
    rows = told.resolver("rows", [], [{"rows": ["n"]}], lambda data: {"rows": [{"n": n} for n in range(10)]})
    graph = build(rows, square(told, batch=True))
    assert len(graph.query_now("[{:rows [:n2]}]", max_entities=11)["rows"]) == 10
    assert exceeded(graph, "[{:rows [:n2]}]", max_entities=10).limit == "max-entities"


def test_a_graph_that_multiplies_is_stopped_by_the_number_of_entities(build: Build, told: Recorder) -> None:
    kids = told.resolver(
        "kids", ["id"], [{"kids": ["id"]}], lambda data: {"kids": [{"id": data["id"] + n} for n in (1, 2, 3)]}
    )
    error = exceeded(build(kids), "[:id {:kids ...}]", {"id": 0}, max_entities=2_000)
    assert error.limit == "max-entities"
    assert len(told.calls) <= 2_000


# -- the timeout


class Clock:
    """Time that passes only when a resolver says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0
        monkeypatch.setattr("psi.graph.graph.deadline", self.deadline)

    def deadline(self, seconds: float) -> Callable[[], bool]:
        end = self.now + seconds
        return lambda: self.now > end

    def resolver(self, needs: str, gives: str, *, batch: bool = False, cache: bool = True) -> Resolver:
        """Every call takes a second."""

        def function(env: Env, data: Any) -> Any:
            self.now += 1
            return [{gives: 0} for _ in data] if batch else {gives: 0}

        return resolver(
            name=gives, input=[needs], output=[gives], batch=batch, chunk=1 if batch else None, cache=cache
        )(function)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


LATE = "the request took longer than its timeout"


@pytest.mark.parametrize("lenient", [False, True])
def test_a_long_list_is_stopped_when_its_time_is_up(build: Build, clock: Clock, lenient: bool) -> None:
    graph = build(clock.resolver("n", "x"))
    entity = {"l": [{"n": n} for n in range(1000)]}
    error = exceeded(graph, "[{:l [:x]}]", entity, timeout=10, lenient=lenient)
    assert error.limit == "timeout"
    assert str(error).startswith(LATE)
    assert clock.now <= 10 + 64 + 1


def test_a_tree_is_stopped_when_its_time_is_up(build: Build, clock: Clock) -> None:
    graph = build(clock.resolver("n", "x"))
    assert exceeded(graph, "[:x {:next ...}]", linked(900), timeout=10).limit == "timeout"
    assert clock.now <= 10 + 64 + 1


def test_lists_below_lists_are_stopped_when_their_time_is_up(build: Build, clock: Clock) -> None:
    graph = build(clock.resolver("n", "x", cache=False))
    entity = {"l": [{"m": [{"n": n} for n in range(50)]} for _ in range(50)]}
    assert exceeded(graph, "[{:l [{:m [:x]}]}]", entity, timeout=10).limit == "timeout"
    assert clock.now <= 10 + 64 + 1


def test_a_chain_of_one_entity_is_stopped_when_its_time_is_up(build: Build, clock: Clock) -> None:
    graph = build(*(clock.resolver(f"a{n}", f"a{n + 1}") for n in range(200)))
    assert exceeded(graph, "[:a200]", {"a0": 0}, timeout=10).limit == "timeout"
    assert clock.now <= 10 + 64 + 1


def test_the_chunks_of_a_batch_are_stopped_when_their_time_is_up(build: Build, clock: Clock) -> None:
    graph = build(clock.resolver("n", "x", batch=True))
    entity = {"l": [{"n": n} for n in range(200)]}
    assert exceeded(graph, "[{:l [:x]}]", entity, timeout=10).limit == "timeout"
    assert clock.now <= 10 + 64 + 1


async def test_an_awaited_request_of_plain_resolvers_is_stopped_too(build: Build, clock: Clock) -> None:
    graph = build(clock.resolver("n", "x"))
    with pytest.raises(LimitExceeded) as caught:
        await graph.query("[{:l [:x]}]", {"l": [{"n": n} for n in range(1000)]}, timeout=10)
    assert caught.value.limit == "timeout"


def test_a_request_that_keeps_its_time_is_answered(build: Build, clock: Clock) -> None:
    graph = build(clock.resolver("n", "x"))
    assert len(graph.query_now("[{:l [:x]}]", {"l": [{"n": n} for n in range(300)]}, timeout=300)["l"]) == 300


# -- deep data


def test_a_linked_list_of_nine_hundred_levels_is_walked(build: Build, told: Recorder) -> None:
    graph = build(square(told))
    for query in ("[:n2 {:next ...}]", "[:n2 {:next 100000}]"):
        answer = graph.query_now(query, linked(900))
        assert depth_of(answer) == 900
        assert answer["next"]["n2"] == 899**2
    assert told.counts == {"square": 2 * 901}


def test_a_linked_list_that_resolvers_unroll_is_walked(build: Build, told: Recorder) -> None:
    after = told.resolver(
        "after", ["n"], [{"next": ["n"]}], lambda data: {"next": {"n": data["n"] + 1} if data["n"] < 900 else None}
    )
    answer = build(after).query_now("[:n {:next ...}]", {"n": 0})
    assert depth_of(answer) == 901
    assert told.counts == {"after": 901}


def test_a_linked_list_through_lists_sets_and_unions_is_walked(build: Build) -> None:
    node: Any = {"n": 0}
    for n in range(900):
        node = {"n": n, "next": (node,)} if n % 2 else {"n": n, "next": [node]}
    graph = build()
    answer = graph.query_now("[:n {:next ...}]", node)
    depth = 0
    while answer.get("next"):
        [answer] = answer["next"]
        depth += 1
    assert depth == 900
    deep_set: Any = Map({"n": 0})
    for n in range(90):
        deep_set = Map({"n": n, "next": frozenset({deep_set})})
    answer = graph.query_now("[:n {:next ...}]", deep_set)
    depth = 0
    while answer.get("next"):
        [answer] = answer["next"]
        depth += 1
    assert depth == 90


def test_the_wildcard_beside_a_recursion_goes_as_deep(build: Build) -> None:
    assert depth_of(build().query_now("[* {:next ...}]", linked(900))) == 900


def test_a_batch_at_every_level_of_a_deep_list_goes_level_by_level(build: Build, told: Recorder) -> None:
    answer = build(square(told, batch=True)).query_now("[:n2 {:next ...}]", linked(300))
    assert depth_of(answer) == 300
    assert len(told.calls) == 1


def test_deeper_data_than_the_limit_ends_in_a_sentence(build: Build) -> None:
    error = exceeded(build(), "[:n {:next ...}]", linked(100_000))
    assert str(error) == "nested deeper than max_depth=1000 at [:next :next :next :next :next :next …]"


def test_a_larger_limit_lets_data_be_deeper_than_the_stack_of_python(build: Build) -> None:
    assert depth_of(build().query_now("[:n {:next ...}]", linked(3_000), max_depth=10_000)) == 3_000
    assert depth_of(build().query_now("[:n {:next 100000}]", linked(3_000), max_depth=10_000)) == 3_000


def in_lists(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def in_tuples(levels: int) -> Any:
    value: Any = ()
    for _ in range(levels):
        value = (value,)
    return value


def in_maps(levels: int) -> Any:
    return linked(levels)


@pytest.mark.parametrize("deep", [in_lists, in_tuples, in_maps])
def test_values_of_any_depth_pass_through(build: Build, deep: Callable[[int], Any]) -> None:
    @resolver(output=["shown"])
    def shown(env: Env, data: Any) -> Any:
        return {"shown": value}

    value = deep(100_000)
    graph = build(alias("v", "alias"), shown)
    for query in ("[:v]", "[*]", "[{:v [:n]}]", "[:>/x]", "[{:>/x [:v]}]", "[{:l [:v]}]", "[:alias]", "[:shown]"):
        assert len(graph.query_now(query, {"v": value, "l": [{"v": value}]})) >= 1


@pytest.mark.parametrize("deep", [in_lists, in_tuples, in_maps])
@pytest.mark.parametrize("query", ["[:x]", "[{:l [:x]}]", "[{:l [:both]}]", "[{:l [:many]}]"])
def test_values_of_any_depth_may_be_an_input(
    build: Build, told: Recorder, deep: Callable[[int], Any], query: str
) -> None:
    graph = build(
        told.resolver("x", ["v"], ["x"], {"x": 1}),
        told.resolver("both", ["n", "v"], ["both", "other"], {"both": 1, "other": 2}),
        told.resolver("many", ["v"], ["many"], lambda items: [{"many": 1} for _ in items], batch=True),
    )
    value = deep(20_000)
    graph.query_now(query, {"v": value, "n": 0, "l": [{"v": value, "n": 0}] * 2})
    assert 1 <= len(told.calls) <= 2  # what is too deep to be compared need not be known again


# -- long and wide plans


def chain(length: int) -> list[Resolver]:
    def link(n: int) -> Resolver:
        return resolver(name=f"r{n}", input=[f"a{n}"], output=[f"a{n + 1}"])(
            lambda env, data: {f"a{n + 1}": data[f"a{n}"] + 1}
        )

    return [link(n) for n in range(length)]


def test_a_chain_of_two_thousand_resolvers_is_planned_and_run(build: Build) -> None:
    graph = build(*chain(2_000))
    for _ in range(2):
        assert graph.query_now("[:a2000]", {"a0": 0}) == {"a2000": 2_000}
    with pytest.raises(AttributeUnreachable) as caught:
        graph.query_now("[:a2000]")
    assert len(str(caught.value)) < 10_000


def test_a_chain_over_a_list_is_run_for_each(build: Build) -> None:
    assert build(*chain(200)).query_now("[{:l [:a200]}]", {"l": [{"a0": n} for n in range(20)]}) == {
        "l": [{"a200": n + 200} for n in range(20)]
    }


def test_a_query_of_two_thousand_attributes_is_planned_and_run(build: Build) -> None:
    def one(n: int) -> Resolver:
        return resolver(name=f"r{n}", input=["id"], output=[f"a{n}"])(lambda env, data: {f"a{n}": data["id"] + n})

    graph = build(*(one(n) for n in range(2_000)))
    query = f"[{' '.join(f':a{n}' for n in range(2_000))}]"
    assert graph.query_now(query, {"id": 1}) == {f"a{n}": n + 1 for n in range(2_000)}
    assert graph.query_now(f"[{{:l {query}}}]", {"l": [{"id": 1}] * 2})["l"][1]["a1999"] == 2_000


def test_one_resolver_may_give_two_thousand_attributes(build: Build, told: Recorder) -> None:
    names = [f"a{n}" for n in range(2_000)]
    graph = build(told.resolver("wide", ["id"], names, dict.fromkeys(names, 1)))
    assert graph.query_now(names, {"id": 1}) == dict.fromkeys(names, 1)
    assert told.counts == {"wide": 1}


def test_a_query_of_two_thousand_unknown_attributes_is_refused(build: Build) -> None:
    with pytest.raises(AttributeUnreachable) as caught:
        build(*chain(50)).query_now([f"b{n}" for n in range(2_000)], {"a0": 1})
    assert len(caught.value.attributes) == 2_000


CLIQUE = [f"c{n}" for n in range(12)]


def clique() -> list[Any]:
    return [equivalence(one, other) for place, one in enumerate(CLIQUE) for other in CLIQUE[place + 1 :]]


def test_attributes_that_all_lead_to_each_other_are_planned_and_refused_soon(build: Build) -> None:
    graph = build(*clique())
    assert graph.query_now(CLIQUE, {"c5": 1}) == dict.fromkeys(CLIQUE, 1)
    with pytest.raises(AttributeUnreachable) as caught:
        graph.query_now(CLIQUE, {"x": 1})
    assert caught.value.attributes == tuple(CLIQUE)
    assert len(str(caught.value)) < 500_000
    assert len(graph.explain(CLIQUE, {"x": 1})) < 500_000
    assert len(graph.query_now(CLIQUE, {"x": 1}, lenient=True)[ERRORS]) == 12


def test_providers_that_all_fail_are_each_tried_once(build: Build, told: Recorder) -> None:
    providers = [told.resolver(f"p{n}", ["a"], ["x"], ValueError("no") if n % 2 else {}) for n in range(100)]
    with pytest.raises(Exception, match="every provider of :x failed"):
        build(*providers).query_now("[:x]", {"a": 1})
    assert len(told.calls) == 100
    assert len(set(told.names)) == 100


def test_a_maze_of_failing_ways_is_left_after_few_calls(build: Build, told: Recorder) -> None:
    """Ten stages with four ways each, of which the last works: no more calls than there are resolvers."""
    ways = [
        told.resolver(
            f"s{stage}w{way}",
            [f"s{stage}"],
            [f"s{stage + 1}"],
            {f"s{stage + 1}": stage} if way == 3 else {},
            priority=-way,
        )
        for stage in range(10)
        for way in range(4)
    ]
    assert build(*ways).query_now("[:s10]", {"s0": 0}) == {"s10": 9}
    assert len(told.calls) == 40


# -- large lists


def test_a_list_of_a_hundred_thousand_entities_is_answered(told: Recorder) -> None:
    graph = Graph([square(told)])
    answer = graph.query_now("[{:l [:n2]}]", {"l": [{"n": n % 1000} for n in range(100_000)]})
    assert len(answer["l"]) == 100_000
    assert answer["l"][-1] == {"n2": 999**2}
    assert told.counts == {"square": 1000}


def test_a_batch_of_a_hundred_thousand_is_one_call(told: Recorder) -> None:
    graph = Graph([square(told, batch=True)])
    answer = graph.query_now("[{:l [:n2]}]", {"l": [{"n": n} for n in range(100_000)]})
    assert answer["l"][-1] == {"n2": 99_999**2}
    assert [len(asked) for asked in told.inputs("square")] == [100_000]


def test_without_compiled_code_a_large_list_is_answered_too(told: Recorder) -> None:
    graph = Graph([square(told)], compile_after=None)
    assert len(graph.query_now("[{:l [:n2]}]", {"l": [{"n": 1}] * 10_000})["l"]) == 10_000
    assert told.counts == {"square": 1}


def test_entities_of_very_many_shapes_are_answered(build: Build, told: Recorder) -> None:
    shapes = [{"n": n, f"extra{n}": n} for n in range(500)]
    graph = build(square(told))
    for entity in shapes:
        assert graph.query_now("[:n2]", entity) == {"n2": entity["n"] ** 2}
    assert [e["n2"] for e in graph.query_now("[{:l [:n2]}]", {"l": shapes})["l"]] == [n**2 for n in range(500)]


def test_very_many_different_queries_are_answered(build: Build, told: Recorder) -> None:
    graph = build(square(told), cache_size=8)
    for n in range(300):
        assert graph.query_now(f"[(:n2 {{:page {n}}})]", {"n": n}) == {"n2": n**2}
    assert graph.cache_info().size == 8


def test_very_many_idents_are_answered(build: Build, told: Recorder) -> None:
    graph = build(square(told, batch=True))
    answer = graph.query_now([{Vector((Keyword("n"), n)): ["n2"]} for n in range(1_000)])
    assert answer[Vector(("n", 999))] == {"n2": 999**2}
    assert len(told.calls) == 1
