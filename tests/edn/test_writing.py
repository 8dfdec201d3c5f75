"""What each Python value is written as, and which have no form."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from math import inf, nan
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from psi.edn import Char, Keyword, List, Map, String, Symbol, Vector, WriteError, dumps, loads
from psi.errors import Refused


class Colour(Enum):
    RED = 1


class Number(IntEnum):
    ONE = 1


class Word(StrEnum):
    KIND = "psi.scheduler/kind"


class Point(NamedTuple):
    x: int
    y: int


class Text(str):
    pass


class Entity(Mapping[str, Any]):
    """A mapping that is not a dict, as resolvers may return."""

    def __init__(self, **entries: Any) -> None:
        self._entries = entries

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


KYIV = timezone(timedelta(hours=3))

SCALARS: list[tuple[Any, str]] = [
    (None, "nil"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-5, "-5"),
    (2**63 - 1, "9223372036854775807"),
    (2**63, "9223372036854775808N"),
    (-(2**63), "-9223372036854775808"),
    (-(2**63) - 1, "-9223372036854775809N"),
    (1.0, "1.0"),
    (-0.0, "-0.0"),
    (1e100, "1e+100"),
    (5e-324, "5e-324"),
    (inf, "##Inf"),
    (-inf, "##-Inf"),
    (nan, "##NaN"),
    (Decimal("1.50"), "1.50M"),
    (Decimal("1E+3"), "1E+3M"),
    ("", '""'),
    ('say "hi"\\\n\t\r\b\f', r'"say \"hi\"\\\n\t\r\b\f"'),
    ("\0\x1b", r'"\u0000\u001b"'),
    ("é😀", '"é😀"'),
    (String("a"), '"a"'),
    (Text("a"), '"a"'),
    (Keyword("a.b/c?"), ":a.b/c?"),
    (Symbol("->x/y"), "->x/y"),
    (Symbol("/"), "/"),
    (Char("a"), r"\a"),
    (Char("\n"), r"\newline"),
    (Char(" "), r"\space"),
    (Char(","), r"\u002c"),
    (Char("\0"), r"\u0000"),
    (Char("\u00a0"), r"\u00a0"),
    (Char("é"), r"\é"),
    (Char("("), r"\("),
    (Char("😀"), r"\😀"),
    (datetime(2026, 4, 22, 10, tzinfo=UTC), '#inst "2026-04-22T10:00:00.000Z"'),
    (datetime(2026, 4, 22, 10, 0, 0, 120_000, tzinfo=UTC), '#inst "2026-04-22T10:00:00.120Z"'),
    (datetime(2026, 4, 22, 10, 0, 0, 1, tzinfo=UTC), '#inst "2026-04-22T10:00:00.000001Z"'),
    (datetime(2026, 4, 22, 1, 30, tzinfo=KYIV), '#inst "2026-04-21T22:30:00.000Z"'),
    (datetime(1, 1, 1, tzinfo=UTC), '#inst "0001-01-01T00:00:00.000Z"'),
    (UUID("F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"), '#uuid "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"'),
]

COLLECTIONS: list[tuple[Any, str]] = [
    ([], "[]"),
    ((), "[]"),
    (Vector(), "[]"),
    (List(), "()"),
    ({}, "{}"),
    (Map(), "{}"),
    (set(), "#{}"),
    (frozenset(), "#{}"),
    ([1, [2, []], "a"], '[1 [2 []] "a"]'),
    ((1, Vector((2, List((3,))))), "[1 [2 (3)]]"),
    (Point(1, 2), "[1 2]"),
    ([[[]], {}, [{}]], "[[[]] {} [{}]]"),
    ({Keyword("a"): 1, Symbol("b"): [2], String("c"): {}}, '{:a 1 b [2] "c" {}}'),
    ({1: 2, None: 3, 1.5: 4, Char("x"): 5}, r"{1 2 nil 3 1.5 4 \x 5}"),
    ({Vector((Keyword("id"), 1)): [Keyword("a")], Keyword("b"): 2}, "{[:id 1] [:a] :b 2}"),
    ({(1, "a"): frozenset({2})}, '{[1 "a"] #{2}}'),
    ({Map({"a": 1}): {List((1,)): Map()}}, "{{:a 1} {(1) {}}}"),
    ({3, 1, 2}, "#{1 2 3}"),
    ({"b", String("a"), Keyword("a"), Symbol("a")}, '#{"a" "b" :a a}'),
    (frozenset({Vector((2,)), Vector(), Vector((1, 2)), 7}), "#{7 [1 2] [2] []}"),
    (frozenset({frozenset({2, 1}), frozenset()}), "#{#{1 2} #{}}"),
    (frozenset({Vector((Symbol("a"),)), Vector()}), "#{[] [a]}"),
    (OrderedDict(a=1), "{:a 1}"),
    (defaultdict(list, a=[1]), "{:a [1]}"),
    (Entity(a=1, b=[Entity()]), "{:a 1 :b [{}]}"),
]

# A plain str for a key: psi's dicts name attributes that way.
PLAIN_KEYS: list[tuple[Any, str]] = [
    ({"psi.scheduler/kind": Keyword("message")}, "{:psi.scheduler/kind :message}"),
    ({"a": "a"}, '{:a "a"}'),
    ({"hello world": 1}, '{"hello world" 1}'),
    ({"": 1, "1": 2, "a/b/c": 3, ":a": 4, "/": 5}, '{"" 1 "1" 2 "a/b/c" 3 ":a" 4 "/" 5}'),
    ({"nil": 1}, "{:nil 1}"),
    ({"a": 1, String("b"): 2, Symbol("c"): 3}, '{:a 1 "b" 2 c 3}'),
    ({Word.KIND: 1, Text("a"): 2}, "{:psi.scheduler/kind 1 :a 2}"),
    ({("k",): {"k": 1}, "j": 2}, '{["k"] {:k 1} :j 2}'),
]


@pytest.mark.parametrize(("value", "text"), [*SCALARS, *COLLECTIONS, *PLAIN_KEYS])
def test_the_value_is_written_as_the_text(value: Any, text: str) -> None:
    assert dumps(value) == text
    assert dumps([value, {Keyword("k"): value}]) == f"[{text} {{:k {text}}}]"


def test_a_key_of_another_str_type_is_written_like_the_plain_str_it_equals() -> None:
    assert dumps({Text("not.written.before/a"): 1}) == "{:not.written.before/a 1}"
    assert dumps({"not.written.before/a": 1}) == "{:not.written.before/a 1}"
    assert dumps({Text("not written before"): 1}) == '{"not written before" 1}'


@pytest.mark.parametrize("name", ["a", "é", "a b"])
def test_how_a_key_was_written_before_does_not_change_how_its_namesakes_are(name: str) -> None:
    plain, string = {name: 1}, {String(name): 1}
    first = dumps(plain), dumps(string)
    assert (dumps(plain), dumps(string)) == first
    assert first[1] == f'{{"{name}" 1}}'


def test_more_keys_than_are_remembered_are_written_all_the_same() -> None:
    numbered = {f"k{number}": number for number in range(10_000)}
    assert loads(dumps(numbered)) == numbered
    assert dumps({"k0": [Keyword("k0")]}) == "{:k0 [:k0]}"


def cannot(what: str, reason: str) -> str:
    return f"cannot write a value of type {what}: {reason}"


UNKNOWN = "EDN has no form for that type"

UNWRITABLE: list[tuple[Any, str, tuple[Any, ...]]] = [
    (object(), cannot("object", UNKNOWN), ()),
    (b"a", cannot("bytes", UNKNOWN), ()),
    (1j, cannot("complex", UNKNOWN), ()),
    (date(2026, 4, 22), cannot("date", UNKNOWN), ()),
    (timedelta(1), cannot("timedelta", UNKNOWN), ()),
    (Colour.RED, cannot("Colour", UNKNOWN), ()),
    (Number.ONE, cannot("Number", UNKNOWN), ()),
    (Word.KIND, cannot("Word", UNKNOWN), ()),
    (iter(()), cannot("tuple_iterator", UNKNOWN), ()),
    (datetime(2026, 4, 22), cannot("datetime", "without a timezone it is not an instant"), ()),  # noqa: DTZ001
    (
        datetime(1, 1, 1, tzinfo=KYIV),
        cannot("datetime", "in UTC it is outside the years 1 to 9999"),
        (),
    ),
    (Decimal("NaN"), cannot("Decimal", "EDN has no decimal NaN"), ()),
    (Decimal("-Infinity"), cannot("Decimal", "EDN has no decimal -Infinity"), ()),
    (Decimal("1" * 4301), cannot("Decimal", "it has more than 4300 digits"), ()),
    ([10**4300], cannot("int at [0]", "it has more than 4300 digits"), (0,)),
    (Keyword("a b"), cannot("Keyword", '"a b" is not the name of a keyword'), ()),
    (Keyword(""), cannot("Keyword", '"" is not the name of a keyword'), ()),
    (Symbol("nil"), cannot("Symbol", '"nil" is not the name of a symbol'), ()),
    (Symbol("-1"), cannot("Symbol", '"-1" is not the name of a symbol'), ()),
    ("\ud800", cannot("str", "half of a surrogate pair is not text"), ()),
    (Char("\udfff"), cannot("Char", "half of a surrogate pair is not text"), ()),
    ([1, 1j], cannot("complex at [1]", UNKNOWN), (1,)),
    (
        {"a/b": [{}, {"hello world": {Symbol("s"): 1j}}]},
        cannot('complex at [:a/b 1 "hello world" s]', UNKNOWN),
        ("a/b", 1, "hello world", "s"),
    ),
    ({"a": {1j: 2}}, cannot("complex at [:a]", UNKNOWN), ("a",)),
    ({"a": {Keyword(" "): 2}}, cannot("Keyword at [:a]", '" " is not the name of a keyword'), ("a",)),
    ([{(1, (2, 1j)): 3}], cannot("complex at [0 1 1]", UNKNOWN), (0, 1, 1)),
    ([{1j}], cannot("complex at [0]", UNKNOWN), (0,)),
    ({"a": ["é", "\udc00"]}, cannot("str at [:a 1]", "half of a surrogate pair is not text"), ("a", 1)),
]


@pytest.mark.parametrize(("value", "message", "path"), UNWRITABLE)
def test_the_error_names_the_type_and_the_way_to_it(value: Any, message: str, path: tuple[Any, ...]) -> None:
    with pytest.raises(WriteError) as caught:
        dumps(value)
    assert str(caught.value) == message
    assert caught.value.path == path
    assert isinstance(caught.value, Refused)
    assert caught.value.as_data() == {"code": "edn/write", "message": message, "data": {"path": list(path)}}


def test_a_long_way_is_told_by_its_end() -> None:
    value: Any = 1j
    for _ in range(25):
        value = [value]
    with pytest.raises(WriteError) as caught:
        dumps(value)
    assert str(caught.value) == cannot(f"complex at [… {' '.join('0' * 20)}]", UNKNOWN)
    assert caught.value.path == (0,) * 25


def test_what_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["b"] = [loop]
    with pytest.raises(WriteError) as caught:
        dumps(loop)
    assert str(caught.value) == cannot("dict", "it is nested deeper than 10000 levels, or holds itself")
