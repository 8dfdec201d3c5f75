"""Plans as text people can read: who would be called for what, in which order, and why something cannot be had."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

import pytest

from psi.edn import Keyword, Vector, dumps, loads
from psi.eql import parse
from psi.graph import (
    AttributeUnreachable,
    CacheInfo,
    Env,
    Graph,
    Mutation,
    Operation,
    Resolver,
    alias,
    equivalence,
    mutation,
    resolver,
)


def silent(env: Env, data: Any) -> Any:
    raise AssertionError("a plan calls nobody")


def gives(name: str, needs: list[Any], output: list[Any], **options: Any) -> Resolver:
    return resolver(name=name, input=needs, output=output, **options)(silent)


CHAIN = (gives("b", ["a"], ["b"]), gives("c", ["b"], ["c"]), gives("d", ["c"], ["d"]))
CART = (
    gives("items", ["cart/id"], [{"items": ["item/id"]}]),
    gives("price", ["item/id"], ["price"]),
    gives("total", [{"items": ["price"]}], ["total"]),
)


def explained(operations: Any, query: Any, entity: Any = None) -> str:
    return Graph(operations).explain(query, entity) + "\n"


def plan(text: str) -> str:
    return dedent(text).lstrip("\n")


# -- golden plans


def test_a_chain_is_called_from_what_is_known_to_what_is_asked() -> None:
    assert explained(CHAIN, "[:d]", {"a": 1}) == plan("""
        known: :a
        1. b: :a -> :b
        2. c: :b -> :c   (after 1)
        3. d: :c -> :d   (after 2)
    """)


def test_a_chain_begins_at_the_last_thing_that_is_known() -> None:
    assert explained(CHAIN, "[:d]", {"a": 1, "c": 3}) == plan("""
        known: :a :c
        1. d: :c -> :d
    """)


def test_what_is_there_needs_no_call() -> None:
    assert explained(CHAIN, "[:a *]", {"a": None}) == "known: :a\n"
    assert explained(CHAIN, "[]") == "known: nothing\n"


def test_a_resolver_that_several_need_is_called_once_before_them() -> None:
    diamond = [gives("top", ["a"], ["t"]), gives("left", ["t"], ["l"]), gives("right", ["t"], ["r"])]
    assert explained([*diamond, gives("bottom", ["l", "r"], ["z"])], "[:z]", {"a": 1}) == plan("""
        known: :a
        1. top: :a -> :t
        2. left: :t -> :l   (after 1)
        3. right: :t -> :r   (after 1)
        4. bottom: :l :r -> :z   (after 2, 3)
    """)


def test_a_resolver_that_gives_several_things_is_one_call() -> None:
    assert explained([gives("both", ["a"], ["x", "y", "unasked"])], "[:x :y]", {"a": 1}) == plan("""
        known: :a
        1. both: :a -> :x :y
    """)


SEVERAL = (
    gives("low", ["a"], ["x"]),
    gives("high", ["a"], ["x"], priority=2),
    gives("middle", ["b"], ["x"], priority=1),
)


@pytest.mark.parametrize(
    ("entity", "step"),
    [
        ({"a": 1}, "1. high: :a -> :x   (priority 2; else low)"),
        ({"b": 1}, "1. middle: :b -> :x   (priority 1)"),
        ({"a": 1, "b": 1}, "1. high: :a -> :x   (priority 2; else middle, low)"),
    ],
)
def test_of_several_providers_the_highest_priority_that_can_be_fed_goes_first(entity: Any, step: str) -> None:
    assert explained(SEVERAL, "[:x]", entity).splitlines()[1:] == [step]


def test_of_equal_providers_the_one_with_more_of_its_inputs_at_hand_goes_first() -> None:
    far, middle, near = gives("far", ["m"], ["x"]), gives("m", ["a"], ["m"]), gives("near", ["a"], ["x"])
    assert explained([far, middle, near], "[:x]", {"a": 1}) == plan("""
        known: :a
        1. near: :a -> :x   (else far)
    """)
    assert explained([far, middle, near], "[:x]", {"m": 1, "a": 1}) == plan("""
        known: :m :a
        1. far: :m -> :x   (else near)
    """)


def test_the_priority_of_what_leads_to_a_provider_does_not_count() -> None:
    first, second = gives("first", ["p"], ["x"]), gives("second", ["q"], ["x"])
    p, q = gives("p", ["a"], ["p"]), gives("q", ["a"], ["q"], priority=9)
    assert explained([first, second, p, q], "[:x]", {"a": 1}) == plan("""
        known: :a
        1. p: :a -> :p
        2. first: :p -> :x   (after 1; else second)
    """)


def test_what_must_be_called_anyway_makes_another_call_unnecessary() -> None:
    small, big = gives("small", ["a"], ["x"]), gives("big", ["a"], ["x", "y"])
    assert explained([small, big], "[:x :y]", {"a": 1}) == plan("""
        known: :a
        1. big: :a -> :x :y   (else small)
    """)


def test_an_optional_input_is_got_if_it_can_be() -> None:
    nick = gives("nick", ["id"], ["nick"])
    assert explained([nick, gives("greet", ["id", "?nick", "?title"], ["greeting"])], "[:greeting]", {"id": 1}) == plan(
        """
        known: :id
        1. nick: :id -> :nick
        2. greet: :id :nick? :title? -> :greeting   (after 1)
        """
    )


def test_an_attribute_that_the_query_calls_optional_is_not_reported() -> None:
    assert explained(CHAIN, "[(:nobody {:psi.graph/optional? true})]", {"a": 1}) == "known: :a\n"


def test_a_nested_input_is_planned_inside_the_entities_it_looks_into() -> None:
    assert explained(CART, "[:total]", {"cart/id": 1}) == plan("""
        known: :cart/id
        1. items: :cart/id -> :items
        2. total: {:items [..]} -> :total   (after 1)
        :items
          known: :item/id
          1. price: :item/id -> :price
    """)
    assert explained(CART, "[:total]", {"items": [{"price": 1}]}) == plan("""
        known: :items
        1. total: {:items [..]} -> :total
        :items
          known: :price
    """)
    assert explained(CART, "[:total]", {"items": []}) == plan("""
        known: :items
        1. total: {:items [..]} -> :total
        :items
          planned when its entities are there
    """)


def test_a_cycle_is_cut_where_it_would_come_back() -> None:
    there_and_back = [equivalence("a", "b"), gives("b", ["x"], ["b"])]
    assert explained(there_and_back, "[:a]", {"x": 1}) == plan("""
        known: :x
        1. b: :x -> :b
        2. -unqualified/b->a--alias: :b -> :a   (after 1)
    """)


def test_batch_async_priority_and_params_are_told() -> None:
    async def later(env: Env, data: Any) -> Any: ...

    name = gives("name", ["id"], ["name", "age"], batch=True, priority=1)
    mail = resolver(name="mail", input=["name"], output=["mail"])(later)
    query = '[(:name {:lang "uk" :as :short}) (:age {:lang "de"}) :mail]'
    assert explained([name, mail], query, {"id": 1}) == plan("""
        known: :id
        1. name: :id -> :name :age   (batch; priority 1; params {:lang "de" :as :short})
        2. mail: :name -> :mail   (async; after 1)
    """)


def test_below_a_join_the_plan_is_that_of_the_first_entity_or_of_what_is_declared() -> None:
    query = "[{:items [:price]} {:friends [:price]}]"
    assert explained(CART, query, {"cart/id": 1, "friends": [None, {"price": 1}]}) == plan("""
        known: :cart/id :friends
        1. items: :cart/id -> :items
        :items
          known: :item/id
          1. price: :item/id -> :price
        :friends
          known: :price
    """)


def test_a_recursion_leads_to_the_same_again() -> None:
    kids = gives("kids", ["id"], [{"kids": ["id"]}])
    expected = plan("""
        known: :id
        1. kids: :id -> :kids
        :kids
          the same again
    """)
    assert explained([kids], "[:id {:kids ...}]", {"id": 1}) == expected
    assert explained([kids], "[:id {:kids 3}]", {"id": 1}) == expected


def test_each_branch_of_a_union_has_its_own_plan() -> None:
    text, length = gives("text", ["post/id"], ["text"]), gives("length", ["video/id"], ["length"])
    query = "[{:feed {:post/id [:text] :video/id [:length]}}]"
    feed = [{"post/id": 1}, {"video/id": 2}]
    assert explained([text, length], query, {"feed": feed}) == plan("""
        known: :feed
        [:feed :post/id]
          known: :post/id
          1. text: :post/id -> :text
        [:feed :video/id]
          known: :video/id
          1. length: :video/id -> :length
    """)


def test_idents_and_placeholders_have_their_own_plans() -> None:
    name = gives("name", ["id"], ["name"])
    assert explained(
        [name], "[{[:id 2] [:name]} {:>/same [:name]} {:>/other [(:name {:up true})]}]", {"id": 1}
    ) == plan(
        """
        known: :id
        1. name: :id -> :name
        [:id 2]
          known: :id
          1. name: :id -> :name
        :>/same
          known: :id :name
        :>/other
          known: :id
          1. name: :id -> :name   (params {:up true})
        """
    )


def test_mutations_are_named_first_and_unknown_ones_are_marked() -> None:
    go = mutation("m/go")(silent)
    assert explained([go, *CHAIN], "[:b {(m/go {}) [:c]} (m/stop {})]", {"a": 1}) == plan("""
        known: :a
        mutation m/go
        mutation m/stop (unknown)
        1. b: :a -> :b
    """)


# -- why not


def why(operations: Any, query: str, entity: Any = None) -> str:
    """The reasons that ``explain`` gives, which must be those of the error."""
    graph = Graph(operations)
    with pytest.raises(AttributeUnreachable) as caught:
        graph.query_now(query, entity)
    heading, *reasons = caught.value.message.splitlines()
    assert heading == "no path to these attributes:"
    told = [line for line in graph.explain(query, entity).splitlines() if line.strip().startswith("-")]
    assert told == reasons
    return "\n".join(reasons) + "\n"


USER = (gives("user", ["user/id"], ["user/name", "user/mail"]),)


@pytest.mark.parametrize(
    ("attribute", "hint"),
    [
        ("user/nmae", " Did you mean :user/name?"),
        ("user/Mail", " Did you mean :user/mail?"),
        ("name", " Did you mean :user/name?"),
        ("person/name", " Did you mean :user/name?"),
        ("zebra", ""),
    ],
)
def test_an_unknown_attribute_is_said_to_be_so_with_the_nearest_name(attribute: str, hint: str) -> None:
    assert why(USER, f"[:{attribute}]") == (
        f"- :{attribute} is unknown: no resolver gives it, and the entity does not have it.{hint}\n"
    )


def test_an_attribute_that_is_only_needed_has_to_come_with_the_entity() -> None:
    assert why(USER, "[:user/id]") == "- :user/id is given by no resolver: it has to come with the entity.\n"


def test_the_way_to_a_missing_input_is_told_step_by_step() -> None:
    assert why(CHAIN, "[:d]") == plan("""
        - :d is given by d, whose inputs cannot be reached:
          - :c is given by c, whose inputs cannot be reached:
            - :b is given by b, whose inputs cannot be reached:
              - :a is given by no resolver: it has to come with the entity.
    """)


def test_the_inputs_of_every_provider_are_told_and_reachable_ones_are_not() -> None:
    providers = [gives("x1", ["p"], ["x"]), gives("x2", ["a", "q", "?r"], ["x"]), gives("x3", ["s", "t"], ["x"])]
    assert why(providers, "[:x]", {"a": 1}) == plan("""
        - :x is given by x1, x2 and x3, whose inputs cannot be reached:
          - :p is given by no resolver: it has to come with the entity.
          - :q is given by no resolver: it has to come with the entity.
          - :s is given by no resolver: it has to come with the entity.
          - :t is given by no resolver: it has to come with the entity.
    """)


def test_what_is_needed_to_get_itself_is_told_to_be_so() -> None:
    assert why([equivalence("a", "b")], "[:a]") == plan("""
        - :a is given by -unqualified/b->a--alias, whose inputs cannot be reached:
          - :b is given by -unqualified/a->b--alias, whose inputs cannot be reached:
            - :a is needed to get itself.
    """)


def test_a_value_whose_entities_lack_what_a_nested_input_needs_is_told() -> None:
    total = [gives("total", [{"items": ["price", "?tax", "amount"]}], ["total"])]
    assert why(total, "[:total]", {"items": [{"amount": 1}]}) == plan("""
        - :total is given by total, whose inputs cannot be reached:
          - :items is there, but its entities do not have :price.
    """)
    assert why([*total, gives("items", [], [{"items": ["id"]}])], "[:total]") == plan("""
        - :total is given by total, whose inputs cannot be reached:
          - :items is there, but its entities do not have :price :amount.
    """)


def test_only_what_is_declared_counts_for_a_nested_input() -> None:
    vague = [gives("items", [], ["items"]), gives("total", [{"items": ["price"]}], ["total"])]
    assert why(vague, "[:total]") == plan("""
        - :total is given by total, whose inputs cannot be reached:
          - :items is there, but its entities do not have :price.
    """)


def test_the_name_of_a_mutation_is_no_attribute() -> None:
    assert why([mutation("m/go")(silent)], "[:m/go]") == (
        "- :m/go is a mutation, not an attribute: call it as (m/go {..}).\n"
    )


def test_a_vector_that_is_no_ident_is_an_attribute_that_nobody_knows() -> None:
    assert why([], "[[:a 1 2]]") == ("- [:a 1 2] is unknown: no resolver gives it, and the entity does not have it.\n")


def test_every_attribute_that_cannot_be_had_is_told() -> None:
    assert why(CHAIN, "[:x :a :y :b]", {"a": 1}) == plan("""
        - :x is unknown: no resolver gives it, and the entity does not have it.
        - :y is unknown: no resolver gives it, and the entity does not have it.
    """)


def test_the_reasons_are_data_too() -> None:
    with pytest.raises(AttributeUnreachable) as caught:
        Graph([*CHAIN, *CART]).query_now("[:b :total :prize]", {"items": [{"x": 1}]})
    assert caught.value.attributes == ("b", "total", "prize")
    assert [reason.as_data() for reason in caught.value.reasons] == [
        {
            "attribute": Keyword("b"),
            "kind": Keyword("inputs"),
            "resolvers": [
                {"resolver": "b", "needs": [{"attribute": Keyword("a"), "kind": Keyword("not-given")}]},
            ],
        },
        {
            "attribute": Keyword("total"),
            "kind": Keyword("inputs"),
            "resolvers": [
                {
                    "resolver": "total",
                    "needs": [
                        {"attribute": Keyword("items"), "kind": Keyword("nested"), "lacking": [Keyword("price")]}
                    ],
                },
            ],
        },
        {"attribute": Keyword("prize"), "kind": Keyword("unknown"), "nearest": Keyword("price")},
    ]


def test_where_in_the_tree_an_attribute_cannot_be_had_is_part_of_the_error() -> None:
    with pytest.raises(AttributeUnreachable) as caught:
        Graph(CART).query_now("[{:l [{:m [:price]}]}]", {"l": [{"m": {"price": 1}}, {"m": {}}]})
    assert str(caught.value) == (
        "no path to these attributes at [:l 1 :m]:\n"
        "- :price is given by price, whose inputs cannot be reached:\n"
        "  - :item/id is given inside :items alone: ask there, or bring it with the entity."
    )
    assert caught.value.path == ("l", 1, "m")


# -- plans as data


def test_a_plan_is_data() -> None:
    go = mutation("m/go")(silent)
    assert Graph([*CART, go]).plan("[(:total {:vat 20}) (m/go {}) {:items [:nobody]}]", {"cart/id": 1}) == {
        "query": "[(:total {:vat 20}) (m/go {}) {:items [:nobody]}]",
        "known": [Keyword("cart/id")],
        "mutations": ["m/go"],
        "steps": [
            {
                "resolver": "items",
                "input": [Keyword("cart/id")],
                "expects": [Keyword("items")],
                "params": {},
                "after": [],
                "batch": False,
                "async": False,
                "priority": 0,
                "else": [],
            },
            {
                "resolver": "total",
                "input": [Keyword("items")],
                "expects": [Keyword("total")],
                "params": {"vat": 20},
                "after": [0],
                "batch": False,
                "async": False,
                "priority": 0,
                "else": [],
            },
        ],
        "unreachable": [],
        "joins": [
            {
                "key": Keyword("items"),
                "plan": {
                    "query": "[:nobody]",
                    "known": [Keyword("item/id")],
                    "mutations": [],
                    "steps": [
                        {
                            "resolver": "price",
                            "input": [Keyword("item/id")],
                            "expects": [Keyword("price")],
                            "params": {},
                            "after": [],
                            "batch": False,
                            "async": False,
                            "priority": 0,
                            "else": [],
                        }
                    ],
                    "unreachable": [{"attribute": Keyword("nobody"), "kind": Keyword("unknown")}],
                    "joins": [],
                },
            }
        ],
    }


QUERIES = [
    "[:d]",
    "[:nobody {[:a 1] [:b]} [:a 2]]",
    "[{:>/x [:b]} :>/y *]",
    "[:a {:kids ...}]",
    "[{:feed {:a [:b] :c [:d]}}]",
    '[(:b {:x [1 "s" :k {:y nil}]}) (m/go {}) symbol [1 2 3]]',
    "[{[:a 1 2] [:b]}]",
]


@pytest.mark.parametrize("query", QUERIES)
def test_every_plan_can_be_sent_as_edn_and_as_json(query: str) -> None:
    made = Graph(CHAIN).plan(query, {"a": 1, "feed": [{"a": 1}]})
    assert dumps(loads(dumps(made))) == dumps(made)
    assert json.loads(json.dumps(made))["query"] == query


def test_a_plan_can_be_asked_for_in_every_form_of_a_query() -> None:
    graph = Graph(CHAIN)
    made = graph.plan("[:d]", {"a": 1})
    assert graph.plan(["d"], {"a": 1}) == graph.plan(parse("[:d]"), {"a": 1}) == made
    assert graph.explain(["d"], {"a": 1}) == graph.explain("[:d]", {"a": 1})


def test_the_key_of_an_ident_in_a_plan_is_the_ident() -> None:
    [join] = Graph(CHAIN).plan("[{[:a 1] [:b]}]")["joins"]
    assert join["key"] == Vector((Keyword("a"), 1))


# -- the cache


def test_a_query_is_planned_once_and_found_again_in_every_form() -> None:
    graph = Graph(_answering())
    for _ in range(3):
        graph.query_now("[:b]", {"a": 1})
    assert graph.cache_info() == CacheInfo(hits=2, misses=1, evictions=0, size=1, max_size=512)
    graph.query_now(["b"], {"a": 1})
    graph.query_now(parse("[:b]"), {"a": 1})
    graph.query_now([Keyword("b")], {"a": 1})
    assert graph.cache_info() == CacheInfo(hits=4, misses=2, evictions=0, size=2, max_size=512)


def test_plan_and_explain_use_the_same_cache() -> None:
    graph = Graph(_answering())
    graph.plan("[:b]")
    graph.explain("[:b]")
    graph.query_now("[:b]", {"a": 1})
    assert graph.cache_info() == CacheInfo(hits=2, misses=1, evictions=0, size=1, max_size=512)


async def test_awaited_queries_are_counted_alike() -> None:
    graph = Graph(_answering())
    await graph.query("[:b]", {"a": 1})
    await graph.query("[:b]", {"a": 1})
    assert graph.cache_info() == CacheInfo(hits=1, misses=1, evictions=0, size=1, max_size=512)


def test_the_cache_is_bounded_and_counts_what_it_drops() -> None:
    graph = Graph(_answering(), cache_size=2)
    for place in range(5):
        graph.query_now(f"[(:b {{:n {place}}})]", {"a": 1})
    assert graph.cache_info() == CacheInfo(hits=0, misses=5, evictions=3, size=2, max_size=2)


def test_what_is_asked_often_outlives_what_is_asked_once() -> None:
    graph = Graph(_answering(), cache_size=4)
    for place in range(20):
        graph.query_now("[:b]", {"a": 1})
        graph.query_now(f"[(:b {{:n {place}}})]", {"a": 1})
    assert graph.cache_info() == CacheInfo(hits=19, misses=21, evictions=17, size=4, max_size=4)


def test_a_query_that_is_refused_is_not_kept() -> None:
    graph = Graph(_answering())
    for query in ("[5]", "[:b", [5]):
        with pytest.raises(Exception, match="expected"):
            graph.query_now(query)
    assert graph.cache_info() == CacheInfo(hits=0, misses=0, evictions=0, size=0, max_size=512)


def test_entities_of_other_shapes_share_the_query_but_not_the_plan() -> None:
    graph = Graph(_answering())
    assert graph.query_now("[:b]", {"a": 1}) == {"b": 2}
    assert graph.query_now("[:b]", {"b": 5}) == {"b": 5}
    assert graph.query_now("[:b]", {"x": 1, "a": 2}) == {"b": 3}
    assert graph.cache_info() == CacheInfo(hits=2, misses=1, evictions=0, size=1, max_size=512)


def test_queries_that_python_holds_for_equal_are_kept_apart() -> None:
    @resolver(output=["kind"])
    def kind(env: Env, data: Any) -> Any:
        return {"kind": type(env.params["of"]).__name__}

    graph = Graph([kind])
    for value in (1, True, 1.0):
        assert graph.query_now([("kind", {"of": value})]) == {"kind": type(value).__name__}


def _answering() -> list[Operation]:
    @resolver(input=["a"], output=["b"])
    def b(env: Env, data: Any) -> Any:
        return {"b": data["a"] + 1}

    made: list[Resolver | Mutation] = [b, alias("b", "c")]
    return made
