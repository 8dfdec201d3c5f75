"""Every form of EQL: what it is written as, what tree it becomes, and that it is written again as it was."""

from __future__ import annotations

from typing import Any

import pytest

from psi.edn import Keyword, List, Map, String, Symbol, Vector, loads
from psi.eql import (
    Call,
    Expression,
    Ident,
    Join,
    Property,
    Query,
    Recursion,
    Union,
    Wildcard,
    parse,
    to_edn,
    unparse,
)

GO = Symbol("cart/add")
X = Map({"x": 1})
SEVERAL = Map({"x": String("s"), "y": Vector((Keyword("k"), String("s"), 1.5, None))})


def asks(*children: Expression) -> Query:
    return Query(children)


A, B = Property("a"), Property("b")

FORMS: list[tuple[str, Query]] = [
    ("[]", asks()),
    ("[:a]", asks(A)),
    ("[:a :b]", asks(A, B)),
    ("[:a :a]", asks(A, A)),
    ("[:user/name]", asks(Property("user/name"))),
    ("[(:a {:x 1})]", asks(Property("a", X))),
    ('[(:a {:x "s" :y [:k "s" 1.5 nil]})]', asks(Property("a", SEVERAL))),
    ("[[:user/id 1]]", asks(Property(Ident("user/id", 1)))),
    ('[[:user/id "ann"]]', asks(Property(Ident("user/id", String("ann"))))),
    ("[[:at [1 {:k 2}]]]", asks(Property(Ident("at", Vector((1, Map({Keyword("k"): 2}))))))),
    ("[([:user/id 1] {:x 1})]", asks(Property(Ident("user/id", 1), X))),
    ("[{:a [:b]}]", asks(Join("a", asks(B)))),
    ("[{:a []}]", asks(Join("a", asks()))),
    ("[{:a [{:b [:a]}]}]", asks(Join("a", asks(Join("b", asks(A)))))),
    ("[{(:a {:x 1}) [:b]}]", asks(Join("a", asks(B), X))),
    ("[{[:user/id 1] [:b]}]", asks(Join(Ident("user/id", 1), asks(B)))),
    ("[{([:user/id 1] {:x 1}) [:b]}]", asks(Join(Ident("user/id", 1), asks(B), X))),
    ("[{:a ...}]", asks(Join("a", Recursion()))),
    ("[{:a 3}]", asks(Join("a", Recursion(3)))),
    ("[{:a 0}]", asks(Join("a", Recursion(0)))),
    ("[{(:a {:x 1}) ...}]", asks(Join("a", Recursion(), X))),
    ("[{:a {:p/id [:b] :q/id []}}]", asks(Join("a", Union((("p/id", asks(B)), ("q/id", asks())))))),
    ("[*]", asks(Wildcard())),
    ("[* {:a [*]}]", asks(Wildcard(), Join("a", asks(Wildcard())))),
    ("[:>/here]", asks(Property(">/here"))),
    ("[{:>/here [:a]}]", asks(Join(">/here", asks(A)))),
    ("[{(:>/here {:x 1}) [:a]}]", asks(Join(">/here", asks(A), X))),
    ("[(cart/add {})]", asks(Call(GO))),
    ("[(cart/add {:x 1})]", asks(Call(GO, X))),
    ("[{(cart/add {:x 1}) [:a]}]", asks(Call(GO, X, asks(A)))),
    ("[{(cart/add {}) [*]}]", asks(Call(GO, Map(), asks(Wildcard())))),
    ("[{(cart/add {}) {:p/id [:b]}}]", asks(Call(GO, Map(), Union((("p/id", asks(B)),))))),
    # Legal EQL that nobody can answer is kept as it came, so that the graph can show it.
    ("[cart/add]", asks(Property(GO))),
    ("[...]", asks(Property(Symbol("...")))),
    ("[[:a 1 2]]", asks(Property(Vector((Keyword("a"), 1, 2))))),
    ("[[]]", asks(Property(Vector()))),
    ("[[a 1]]", asks(Property(Vector((Symbol("a"), 1))))),
    ('[["a" 1]]', asks(Property(Vector((String("a"), 1))))),
    ("[{[1 2] [:a]}]", asks(Join(Vector((1, 2)), asks(A)))),
]


@pytest.mark.parametrize(("text", "tree"), FORMS)
def test_the_text_becomes_the_tree_and_the_tree_the_text(text: str, tree: Query) -> None:
    assert parse(text) == tree
    assert unparse(tree) == text


@pytest.mark.parametrize(("text", "tree"), FORMS)
def test_text_bytes_edn_values_and_the_tree_itself_are_the_same_query(text: str, tree: Query) -> None:
    assert parse(text.encode()) == tree
    assert parse(to_edn(tree)) == tree
    assert parse(tree) is tree
    if '["a"' not in text:  # in Python data that is an ident: a plain string is an attribute there
        assert parse(loads(text)) == tree


WRITTEN_SHORTER = [
    ("[(:a {})]", "[:a]"),
    ("[(:a)]", "[:a]"),
    ("[(cart/add)]", "[(cart/add {})]"),
    ("[{(cart/add) [:a]}]", "[{(cart/add {}) [:a]}]"),
    ("[({:a [:b]} {})]", "[{:a [:b]}]"),
    ("[,:a ; and\n #_:c :b]", "[:a :b]"),
    ("[#:user{:a [:b]}]", "[{:user/a [:b]}]"),
    ("[{:a 3N}]", "[{:a 3}]"),
]


@pytest.mark.parametrize(("text", "written"), WRITTEN_SHORTER)
def test_what_says_the_same_is_written_in_one_way(text: str, written: str) -> None:
    assert unparse(parse(text)) == written
    assert parse(written) == parse(text)


def test_params_of_a_join_may_stand_in_any_of_three_places() -> None:
    around_the_key = parse("[{(:a {:x 1}) [:b]}]")
    assert parse("[({:a [:b]} {:x 1})]") == around_the_key
    assert parse([({"a": ["b"]}, {"x": 1})]) == around_the_key
    assert parse("[(:a {:x 1})]") == asks(Property("a", X))


def test_params_in_two_places_are_joined_and_the_outer_ones_win() -> None:
    assert parse("[({(:a {:x 1 :y 1}) [:b]} {:x 2 :z 2})]") == parse("[{(:a {:x 2 :y 1 :z 2}) [:b]}]")
    assert parse("[({(cart/add {:x 1}) [:b]} {:y 2})]") == parse("[{(cart/add {:x 1 :y 2}) [:b]}]")


def test_a_map_with_several_entries_is_as_many_joins() -> None:
    assert parse("[{:a [:b] :b [:a]} :c]") == parse("[{:a [:b]} {:b [:a]} :c]")


def test_the_names_of_params_are_plain_strings_and_their_values_stay_apart() -> None:
    [child] = parse('[(:a {:k :v "s" "v" y v})]')
    assert isinstance(child, Property)
    assert [(type(name), type(value)) for name, value in child.params.items()] == [
        (str, Keyword),
        (String, String),
        (Symbol, Symbol),
    ]


PYTHON: list[tuple[Any, str]] = [
    ([], "[]"),
    (["user/name"], "[:user/name]"),
    (("a", "b"), "[:a :b]"),
    ([Keyword("a")], "[:a]"),
    (Vector(("a",)), "[:a]"),
    ([("a", {"x": 1})], "[(:a {:x 1})]"),
    ([("a", {"x": ["s", {"y": "s"}]})], '[(:a {:x ["s" {:y "s"}]})]'),
    ([List((Keyword("a"), {"x": 1}))], "[(:a {:x 1})]"),
    ([{"a": ["b"]}], "[{:a [:b]}]"),
    ([{"a": ["b"], "c": ["d"]}], "[{:a [:b]} {:c [:d]}]"),
    ([{("a", Map({"x": 1})): ["b"]}], "[{(:a {:x 1}) [:b]}]"),
    ([({"a": ["b"]}, {"x": 1})], "[{(:a {:x 1}) [:b]}]"),
    ([["user/id", 1]], "[[:user/id 1]]"),
    ([("user/id", 1)], "[[:user/id 1]]"),
    ([("user/id", "ann")], '[[:user/id "ann"]]'),
    ([{("user/id", 1): ["a"]}], "[{[:user/id 1] [:a]}]"),
    ([{Vector(("user/id", 1)): ["a"]}], "[{[:user/id 1] [:a]}]"),
    ([{"a": "..."}], "[{:a ...}]"),
    ([{"a": Symbol("...")}], "[{:a ...}]"),
    ([{"a": 3}], "[{:a 3}]"),
    ([{"a": {"p/id": ["b"]}}], "[{:a {:p/id [:b]}}]"),
    (["*"], "[*]"),
    ([Symbol("*")], "[*]"),
    ([(Symbol("cart/add"), {"x": 1})], "[(cart/add {:x 1})]"),
    ([{(Symbol("cart/add"), Map({"x": 1})): ["a"]}], "[{(cart/add {:x 1}) [:a]}]"),
    ([">/here", {">/there": ["a"]}], "[:>/here {:>/there [:a]}]"),
]


@pytest.mark.parametrize(("data", "text"), PYTHON)
def test_plain_python_data_is_a_query_too(data: Any, text: str) -> None:
    assert unparse(parse(data)) == text
    assert parse(data) == parse(text)


def test_a_colon_before_a_name_is_allowed_as_it_is_in_the_declaration_of_an_operation() -> None:
    assert parse([":a", {":b": [":c"]}]) == parse("[:a {:b [:c]}]")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[(:a {:x 1})]", "[(:a {:x true})]"),
        ("[(:a {:x 1})]", "[(:a {:x 1.0})]"),
        ("[(:a {:x [1]})]", "[(:a {:x (1)})]"),
        ("[(:a {:x [1]})]", "[(:a {:x [true]})]"),
        ('[(:a {:x "b"})]', "[(:a {:x :b})]"),
        ("[{[:a 1] [:b]}]", "[{[:a true] [:b]}]"),
        ("[{:a {:b [[:c 0]]}}]", "[{:a {:b [[:c false]]}}]"),
    ],
)
def test_queries_that_ask_for_different_things_are_never_equal(one: str, other: str) -> None:
    assert parse(one) != parse(other)
    assert len({parse(one), parse(other)}) == 2


def test_equal_queries_are_one_key_and_different_ones_are_not() -> None:
    one, same, other = parse("[:a {:b [(:c {:x 1})]}]"), parse("[:a {:b [(:c {:x 1})]}]"), parse("[:a {:b [:c]}]")
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert {one: 1}[same] == 1
    assert len({one, same, other}) == 2


def test_a_query_is_walked_in_the_order_it_was_written() -> None:
    assert list(parse("[:b :a]")) == [B, A]


@pytest.mark.parametrize(
    ("text", "is_placeholder"),
    [
        ("[:>/a]", True),
        ("[{:>/a [:b]}]", True),
        ("[:a]", False),
        ("[:a/b]", False),
        ("[[:>/a 1]]", False),
        ("[>/a]", False),
    ],
)
def test_a_placeholder_is_a_keyword_in_the_namespace_of_the_arrow(text: str, is_placeholder: bool) -> None:
    [child] = parse(text)
    assert isinstance(child, Property | Join)
    assert child.is_placeholder is is_placeholder


def test_the_key_of_an_ident_in_the_answer_is_the_ident_itself() -> None:
    assert Ident("user/id", 1).as_key() == Vector((Keyword("user/id"), 1))
