"""What EDN values are in Python, and when two of them are equal."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import permutations
from operator import eq, ne
from typing import Any

import pytest

import psi.edn
from psi.edn import Char, Keyword, List, Map, String, Symbol, Vector, WriteError, freeze, thaw
from tests.edn.exactly import exactly

KINDS = (Keyword, Symbol, String, Char)


def test_the_public_names_are_these() -> None:
    assert psi.edn.__all__ == [
        "Char",
        "Keyword",
        "List",
        "Map",
        "ReadError",
        "String",
        "Symbol",
        "Vector",
        "WriteError",
        "dumps",
        "freeze",
        "kind_key",
        "loads",
        "thaw",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_any_kind_equals_the_plain_string_and_finds_its_key(kind: type[str]) -> None:
    for one, other in (("a", kind("a")), (kind("a"), "a"), (kind("a"), kind("a"))):
        assert eq(one, other)
        assert not ne(one, other)
    assert ne(kind("a"), "b")
    assert ne(kind("a"), 1)
    assert {"a": 1}[kind("a")] == 1
    assert {kind("a"): 1}["a"] == 1


@pytest.mark.parametrize(("one", "other"), list(permutations(KINDS, 2)))
def test_texts_of_two_kinds_are_never_equal(one: type[str], other: type[str]) -> None:
    assert ne(one("a"), other("a"))
    assert not eq(one("a"), other("a"))
    assert len({one("a"), other("a")}) == 2
    assert one("a") not in {other("a"): 1}
    assert not isinstance(one("a"), other)
    assert not issubclass(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_a_str_and_says_what_kind(kind: type[str]) -> None:
    assert isinstance(kind("a"), str)
    assert isinstance(kind("a"), kind)
    assert repr(kind("a")) == f"{kind.__name__}('a')"
    assert json.dumps({kind("a"): kind("b")}) == '{"a": "b"}'
    assert exactly(pickle.loads(pickle.dumps(kind("a")))) == exactly(kind("a"))


@pytest.mark.parametrize(
    ("text", "namespace", "name"),
    [("a", None, "a"), ("a/b", "a", "b"), ("a.b/c-d?", "a.b", "c-d?"), ("/", None, "/"), (">/p", ">", "p")],
)
def test_a_name_has_a_namespace_before_the_slash_or_none(text: str, namespace: str | None, name: str) -> None:
    assert (Keyword(text).namespace, Keyword(text).name) == (namespace, name)
    assert (Symbol(text).namespace, Symbol(text).name) == (namespace, name)


@pytest.mark.parametrize("text", ["", "ab"])
def test_a_char_is_one_character(text: str) -> None:
    with pytest.raises(ValueError, match=f"a Char is one character, found {len(text)}"):
        Char(text)


def test_vectors_and_lists_are_equal_when_their_elements_are() -> None:
    assert eq(Vector((1, 2)), List((1, 2)))
    assert eq(Vector((1, 2)), (1, 2))
    assert len({Vector((1, 2)), List((1, 2))}) == 1
    assert (repr(Vector((1, 2))), repr(List(()))) == ("Vector((1, 2))", "List(())")


def test_a_map_is_a_dict_that_can_be_a_key() -> None:
    one, same = Map({"a": 1, "b": 2}), Map([("b", 2), ("a", 1)])
    assert one == same == {"a": 1, "b": 2}
    assert hash(one) == hash(same)
    assert {one: "found"}[same] == "found"
    assert repr(one) == "Map({'a': 1, 'b': 2})"
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert exactly(again) == exactly(one)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setitem__("a", 2),
        lambda m: m.__delitem__("a"),
        lambda m: m.__ior__({"a": 2}),
        lambda m: m.clear(),
        lambda m: m.pop("a"),
        lambda m: m.popitem(),
        lambda m: m.setdefault("b", 2),
        lambda m: m.update(a=2),
    ],
)
def test_a_map_cannot_be_changed(change: Any) -> None:
    entries = Map({"a": 1})
    with pytest.raises(TypeError, match="a Map cannot be changed"):
        change(entries)
    assert entries == {"a": 1}


def test_a_map_holds_hashable_values_only() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        Map({"a": []})


@pytest.mark.parametrize(
    ("value", "frozen"),
    [
        (1, 1),
        (None, None),
        ("a", String("a")),
        (Keyword("a"), Keyword("a")),
        ([1, "a"], Vector((1, String("a")))),
        ((1, [2]), Vector((1, Vector((2,))))),
        (List(([1],)), List((Vector((1,)),))),
        ({"a": ["b"]}, Map({"a": Vector((String("b"),))})),
        ({1, 2}, frozenset({1, 2})),
        ([{"a": {"b": [{1}]}}], Vector((Map({"a": Map({"b": Vector((frozenset({1}),))})}),))),
    ],
)
def test_freezing_gives_the_hashable_form(value: Any, frozen: Any) -> None:
    assert exactly(freeze(value)) == exactly(frozen)
    assert isinstance(hash(freeze(value)), int)


def test_freezing_leaves_the_original_alone() -> None:
    value = {"a": [1, {"b": "c"}]}
    freeze(value)
    assert value == {"a": [1, {"b": "c"}]}


def test_freezing_stops_where_hashing_would_recurse_too_deep() -> None:
    deep: list[Any] = []
    for _ in range(199):
        deep = [deep]
    assert isinstance(hash(freeze(deep)), int)
    with pytest.raises(WriteError, match="a value nested deeper than 200 levels cannot be made hashable"):
        freeze([deep])


def test_freezing_what_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(WriteError, match="nested deeper than 200 levels"):
        freeze(loop)


def test_thawing_gives_back_the_plain_form_of_what_was_frozen() -> None:
    plain = {"a": ["text", {"b": [1, None]}, List(("x", [2]))], "c": Keyword("k"), "d": frozenset({1})}
    assert exactly(thaw(freeze(plain))) == exactly(plain)
