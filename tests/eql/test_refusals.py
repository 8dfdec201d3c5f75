"""What is not EQL is refused in a sentence that says where and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from psi.edn import Char, Keyword, Map, ReadError, String, Symbol, dumps
from psi.eql import QueryError, QueryTooDeep, parse
from psi.errors import Refused

EXPRESSION = "expected an attribute, a join, an ident or a mutation call"
VECTOR = "expected a vector of attributes and joins"
BELOW = "expected a vector, a union map, ... or a number below a join"

TEXT = [
    # not a vector
    ("5", f"invalid query: {VECTOR}, found 5"),
    ("nil", f"invalid query: {VECTOR}, found nil"),
    (":a", f"invalid query: {VECTOR}, found :a"),
    ('"a"', f'invalid query: {VECTOR}, found "a"'),
    ("(:a)", f"invalid query: {VECTOR}, found (:a)"),
    ("#{:a}", f"invalid query: {VECTOR}, found #{{:a}}"),
    ("{:a [:b]}", f"invalid query: {VECTOR}, found {{:a [:b]}}"),
    # no expression
    ("[5]", f"invalid query at [0]: {EXPRESSION}, found 5"),
    ("[:a nil]", f"invalid query at [1]: {EXPRESSION}, found nil"),
    ("[true]", f"invalid query at [0]: {EXPRESSION}, found true"),
    ('["a"]', f'invalid query at [0]: {EXPRESSION}, found "a"'),
    (r"[\a]", rf"invalid query at [0]: {EXPRESSION}, found \a"),
    ("[#{:a}]", f"invalid query at [0]: {EXPRESSION}, found #{{:a}}"),
    ("[(5 {:x 1})]", f"invalid query at [0]: {EXPRESSION}, found 5"),
    ('[("a" {:x 1})]', f'invalid query at [0]: {EXPRESSION}, found "a"'),
    ("[((:a {:x 1}) {:y 2})]", f"invalid query at [0]: {EXPRESSION}, found (:a {{:x 1}})"),
    ("[{5 [:a]}]", f"invalid query at [0]: {EXPRESSION}, found 5"),
    ('[{"a" [:b]}]', f'invalid query at [0]: {EXPRESSION}, found "a"'),
    # where
    ("[:a {:b [:c 5]}]", f"invalid query at [1] :b [1]: {EXPRESSION}, found 5"),
    ("[{:a [{:b/c [5]}]}]", f"invalid query at [0] :a [0] :b/c [0]: {EXPRESSION}, found 5"),
    ("[{[:user/id 1] [5]}]", f"invalid query at [0] [:user/id 1] [0]: {EXPRESSION}, found 5"),
    ('[{[:user/id "x"] [5]}]', f'invalid query at [0] [:user/id "x"] [0]: {EXPRESSION}, found 5'),
    ("[{(m/go {}) [5]}]", f"invalid query at [0] m/go [0]: {EXPRESSION}, found 5"),
    ("[{:a {:p [5]}}]", f"invalid query at [0] :a :p [0]: {EXPRESSION}, found 5"),
    ("[{[1 2] [5]}]", f"invalid query at [0] [1 2] [0]: {EXPRESSION}, found 5"),
    # joins
    ("[{}]", "invalid query at [0]: a join needs a key and a query, found {}"),
    ("[{:a :b}]", f"invalid query at [0] :a: {BELOW}, found :b"),
    ("[{:a nil}]", f"invalid query at [0] :a: {BELOW}, found nil"),
    ("[{:a true}]", f"invalid query at [0] :a: {BELOW}, found true"),
    ("[{:a 1.5}]", f"invalid query at [0] :a: {BELOW}, found 1.5"),
    ('[{:a "..."}]', f'invalid query at [0] :a: {BELOW}, found "..."'),
    ("[{:a (:b)}]", f"invalid query at [0] :a: {BELOW}, found (:b)"),
    ("[{:a -1}]", "invalid query at [0] :a: a recursion limit is 0 or more, found -1"),
    ("[{m/go [:a]}]", "invalid query at [0]: a mutation is called in parentheses: {(m/go {..}) [..]}"),
    ("[({m/go [:a]} {:x 1})]", "invalid query at [0]: a mutation is called in parentheses: {(m/go {..}) [..]}"),
    # unions
    ("[{:a {}}]", "invalid query at [0] :a: a union needs at least one branch"),
    ('[{:a {"p" [:x]}}]', 'invalid query at [0] :a: a union branch is named by an attribute, found "p"'),
    ("[{:a {p [:x]}}]", "invalid query at [0] :a: a union branch is named by an attribute, found p"),
    ("[{:a {[:p 1] [:x]}}]", "invalid query at [0] :a: a union branch is named by an attribute, found [:p 1]"),
    ("[{:a {:p ...}}]", f"invalid query at [0] :a :p: {VECTOR}, found ..."),
    ("[{:a {:p {:q [:x]}}}]", f"invalid query at [0] :a :p: {VECTOR}, found {{:q [:x]}}"),
    # params
    ("[()]", "invalid query at [0]: expected (name {params}), found ()"),
    ("[(:a {} {})]", "invalid query at [0]: expected (name {params}), found (:a {} {})"),
    ("[(:a 1)]", "invalid query at [0]: params must be a map, found 1 in (:a 1)"),
    ("[(:a nil)]", "invalid query at [0]: params must be a map, found nil in (:a nil)"),
    ("[(m/go [:x])]", "invalid query at [0]: params must be a map, found [:x] in (m/go [:x])"),
    ("[{(:a 1) [:b]}]", "invalid query at [0]: params must be a map, found 1 in (:a 1)"),
    ("[({:a [:b]} 1)]", "invalid query at [0]: params must be a map, found 1 in ({:a [:b]} 1)"),
    ("[({} {:x 1})]", "invalid query at [0]: params need one join to belong to, found {}"),
    (
        "[({:a [:b] :c [:d]} {:x 1})]",
        "invalid query at [0]: params need one join to belong to, found {:a [:b] :c [:d]}",
    ),
    # what is long is cut
    (f'[{{:a "{"x" * 100}"}}]', f'invalid query at [0] :a: {BELOW}, found "{"x" * 58}…'),
]


@pytest.mark.parametrize(("text", "message"), TEXT)
def test_the_error_says_where_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == message


DATA: list[tuple[Any, str]] = [
    (None, f"invalid query: {VECTOR}, found nil"),
    (5, f"invalid query: {VECTOR}, found 5"),
    (Keyword("a"), f"invalid query: {VECTOR}, found :a"),
    (Symbol("a"), f"invalid query: {VECTOR}, found a"),
    ({"a": ["b"]}, f'invalid query: {VECTOR}, found {{:a ["b"]}}'),
    ({"a"}, f'invalid query: {VECTOR}, found #{{"a"}}'),
    (1j, f"invalid query: {VECTOR}, found 1j"),
    ([None], f"invalid query at [0]: {EXPRESSION}, found nil"),
    ([String("a")], f'invalid query at [0]: {EXPRESSION}, found "a"'),
    ([Char("a")], rf"invalid query at [0]: {EXPRESSION}, found \a"),
    ([1j], f"invalid query at [0]: {EXPRESSION}, found 1j"),
    ([""], f'invalid query at [0]: {EXPRESSION}, found ""'),
    (["a b"], f'invalid query at [0]: {EXPRESSION}, found "a b"'),
    ([{"a b": ["c"]}], f'invalid query at [0]: {EXPRESSION}, found "a b"'),
    ([()], "invalid query at [0]: expected (name {params}), found []"),
    ([{"a": "b"}], f'invalid query at [0] :a: {BELOW}, found "b"'),
    ([{"a": -1}], "invalid query at [0] :a: a recursion limit is 0 or more, found -1"),
    ([{"a": {}}], "invalid query at [0] :a: a union needs at least one branch"),
    ([{1: ["a"]}], f"invalid query at [0]: {EXPRESSION}, found 1"),
    ([(Symbol("m/go"), 1)], "invalid query at [0]: params must be a map, found 1 in [m/go 1]"),
]


@pytest.mark.parametrize(("data", "message"), DATA)
def test_python_data_is_refused_in_the_same_words(data: Any, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(data)
    assert str(caught.value) == message


def test_text_that_is_not_edn_is_refused_by_the_reader() -> None:
    with pytest.raises(ReadError) as caught:
        parse("[:a {:b [:c]]")
    assert str(caught.value) == (
        "line 1, column 13: expected }, found ]; the { opened at line 1, column 5 is not closed"
    )


def test_a_query_text_holds_one_query() -> None:
    with pytest.raises(ReadError) as caught:
        parse("[:a] [:b]")
    assert str(caught.value) == "line 1, column 6: expected the end of the text, found ["


def test_bytes_that_are_not_utf_8_are_refused_by_the_reader() -> None:
    with pytest.raises(ReadError) as caught:
        parse(b"[:a \xff]")
    assert str(caught.value) == "line 1, column 5: expected UTF-8, found the byte 0xff"


def test_an_error_is_the_callers_fault_and_carries_its_facts() -> None:
    with pytest.raises(QueryError) as caught:
        parse("[:a {:b [:c 5]}]")
    error = caught.value
    assert isinstance(error, Refused)
    assert error.at == (1, "b", 1)
    assert error.problem == f"{EXPRESSION}, found 5"
    assert error.as_data() == {
        "code": "eql/invalid-query",
        "message": f"invalid query at [1] :b [1]: {EXPRESSION}, found 5",
        "data": {"at": [1, "b", 1], "problem": f"{EXPRESSION}, found 5"},
    }


@pytest.mark.parametrize("text", ["[{:a {:p [5]}}]", '[{[:user/id "x"] [5]}]', "[{(m/go {}) [5]}]", "[{[1 2] [5]}]"])
def test_the_facts_of_an_error_can_be_sent_as_edn_and_as_json(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    dumps(caught.value.as_data())
    json.dumps(caught.value.as_data())


def nested(levels: int, inside: Any = "a") -> Any:
    query: Any = [inside]
    for _ in range(levels):
        query = [{"a": query}]
    return query


def test_sixty_four_joins_may_stand_below_each_other_and_no_more() -> None:
    assert parse(dumps(nested(64, Keyword("a")))) == parse(nested(64))
    with pytest.raises(QueryTooDeep) as caught:
        parse(nested(65))
    assert str(caught.value) == "the query nests deeper than 64 levels"


def test_a_query_that_holds_itself_is_refused() -> None:
    query: list[Any] = []
    query.append({"a": query})
    with pytest.raises(QueryTooDeep) as caught:
        parse(query)
    assert str(caught.value) == "the query nests deeper than 64 levels"


DEEP = "[" * 250 + "]" * 250
VALUES = "expected EDN values in params and idents"
TOO_DEEP = f"invalid query at [0]: {VALUES}: a value nested deeper than 200 levels cannot be made hashable"


@pytest.mark.parametrize("text", [f"[(:a {{:x {DEEP}}})]", f"[[:a {DEEP}]]", f"[[{DEEP}]]", f"[(m/go {{:x {DEEP}}})]"])
def test_params_and_idents_that_nest_too_deep_are_a_fault_of_the_query(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == TOO_DEEP


def test_data_as_deep_as_memory_allows_is_refused_and_does_not_overflow() -> None:
    deep: Any = ()
    for _ in range(100_000):
        deep = (deep,)
    queries: list[tuple[Any, str]] = [
        (deep, f"invalid query at [0]: {EXPRESSION}, found a tuple"),
        ([deep], f"invalid query at [0]: {EXPRESSION}, found a tuple"),
        ([{"a": deep}], f"invalid query at [0] :a: {BELOW}, found a tuple"),
        ([("a", deep)], TOO_DEEP),
        ([("a", {"x": deep})], TOO_DEEP),
    ]
    for query, message in queries:
        with pytest.raises(QueryError) as caught:
            parse(query)
        assert str(caught.value) == message


def test_two_params_that_python_holds_for_one_are_refused_rather_than_lost() -> None:
    with pytest.raises(QueryError) as caught:
        parse('[(:a {:x 1 "x" 2})]')
    assert str(caught.value) == 'invalid query at [0]: two params have one name in {:x 1 "x" 2}'


@pytest.mark.parametrize("query", [[("a", {"x": bytearray(b"x")})], [["a", bytearray(b"x")]]])
def test_what_cannot_be_a_part_of_a_key_is_refused(query: Any) -> None:
    with pytest.raises(QueryError) as caught:
        parse(query)
    assert str(caught.value) == f"invalid query at [0]: {VALUES}: unhashable type: 'bytearray'"


def test_params_may_be_any_mapping() -> None:
    assert parse([("a", Map({"x": 1}))]) == parse([("a", {"x": 1})])
