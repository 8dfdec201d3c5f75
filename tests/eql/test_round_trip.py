"""Generated queries: written and read again they are the same; whatever is no query is refused and nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from psi.edn import Char, Keyword, List, Map, ReadError, String, Symbol, Vector, dumps, freeze, loads, thaw
from psi.eql import (
    Call,
    Expression,
    Ident,
    Join,
    Property,
    Query,
    QueryError,
    Recursion,
    Subquery,
    Union,
    Wildcard,
    parse,
    to_edn,
    unparse,
)
from tests.edn.exactly import exactly

NAMES = ["a", "b", "user/id", "user.deep/name", ">/here", "..."]

NAMES_OF_PARAMS = ["x", "y/z"]

attributes = st.sampled_from(NAMES)
symbols = st.sampled_from(["m/go", "go", "*", "..."]).map(Symbol)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5).map(String),
    attributes.map(Keyword),
    symbols,
    st.sampled_from("ab\n").map(Char),
)
flat = st.lists(scalars, max_size=3)
frozen: st.SearchStrategy[Any] = st.one_of(
    scalars,
    flat.map(Vector),
    flat.map(List),
    st.dictionaries(attributes.map(Keyword), scalars, max_size=3).map(Map),
    flat.map(lambda found: Vector((List(found), Map({Keyword("a"): Vector(found)})))),
)
params = st.just(Map()) | st.dictionaries(st.sampled_from(NAMES_OF_PARAMS), frozen, max_size=2).map(Map)
idents = st.builds(Ident, attributes, frozen)
odd_keys = flat.map(Vector).filter(lambda v: len(v) != 2 or not isinstance(v[0], Keyword))
keys: st.SearchStrategy[Any] = st.one_of(attributes, idents, odd_keys)


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Query:
    return Query(tuple(draw(expressions(depth)) for _ in range(draw(st.integers(0, 3)))))


@st.composite
def expressions(draw: st.DrawFn, depth: int) -> Expression:
    match draw(st.integers(0, 5 if depth else 3)):
        case 0:
            return Property(draw(keys), draw(params))
        case 1:
            return Property(draw(symbols.filter(lambda name: name != "*")))
        case 2:
            return Wildcard()
        case 3:
            return Call(draw(symbols), draw(params))
        case 4:
            return Call(draw(symbols), draw(params), draw(subqueries(depth - 1)))
        case _:
            return Join(draw(keys), draw(subqueries(depth - 1)), draw(params))


@st.composite
def subqueries(draw: st.DrawFn, depth: int) -> Subquery:
    match draw(st.integers(0, 3)):
        case 0:
            return Recursion(draw(st.none() | st.integers(0, 9)))
        case 1:
            names = draw(st.lists(attributes, min_size=1, max_size=3, unique=True))
            return Union(tuple((name, draw(trees(depth))) for name in names))
        case _:
            return draw(trees(depth))


@settings(max_examples=100, deadline=None)
@given(trees())
def test_a_query_that_is_written_is_read_as_the_same(query: Query) -> None:
    text = unparse(query)
    assert parse(text) == query
    assert exactly(to_edn(parse(text))) == exactly(to_edn(query))
    assert parse(to_edn(query)) == query
    assert unparse(parse(text)) == text
    assert hash(parse(text)) == hash(query)


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> Any:
    kind = draw(st.integers(0, 5 if depth else 1))
    if kind < 2:
        return thaw(draw(scalars))
    found = [draw(values(depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    match kind:
        case 2:
            return List(found)
        case 3:
            return frozenset(map(freeze, found))
        case 4:
            return {freeze(key): value for key, value in pairwise(found)}
        case _:
            return found


def outcome(query: Any) -> Any:
    try:
        return parse(query)
    except QueryError as error:
        return error.message


@settings(max_examples=150, deadline=None)
@given(values())
def test_any_edn_value_is_a_query_or_refused_with_a_sentence(value: Any) -> None:
    for text in (dumps(value), dumps([value])):
        found = outcome(text)
        if isinstance(found, Query):
            assert parse(unparse(found)) == found
        else:
            assert found.startswith("invalid query")
        assert outcome(text.encode()) == found
    outcome([value])  # as Python data


fragments = ["[", "]", "{", "}", "(", ")", ":a", ":b/c", "*", "...", "m/go", " ", "1", "-1", '"s"', "nil", "#{", ":>/p"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(fragments), max_size=25).map(" ".join))
def test_any_text_is_a_query_or_refused_by_the_reader_or_the_parser(text: str) -> None:
    try:
        query = parse(f"[{text}]")
    except (QueryError, ReadError):
        return
    assert parse(unparse(query)) == query
    assert parse(loads(f"[{text}]")) == query
