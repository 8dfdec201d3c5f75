"""What each piece of EDN is read as, to the last type."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any
from uuid import UUID

import pytest

from psi.edn import Char, Keyword, List, Map, String, Symbol, Vector, loads
from tests.edn.exactly import exactly

K, S, T, C = Keyword, Symbol, String, Char


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


ATOMS: list[tuple[str, Any]] = [
    ("nil", None),
    ("true", True),
    ("false", False),
    ("0", 0),
    ("-0", 0),
    ("+5", 5),
    ("-17", -17),
    ("42N", 42),
    ("9223372036854775808", 2**63),
    ("0.0", 0.0),
    ("-0.0", -0.0),
    ("1.5", 1.5),
    ("+1.5e3", 1500.0),
    ("1E-3", 0.001),
    ("12e+2", 1200.0),
    ("1M", Decimal(1)),
    ("-1.50M", Decimal("-1.50")),
    ("1e3M", Decimal("1e3")),
    ("##Inf", inf),
    ("##-Inf", -inf),
    ("##NaN", nan),
    ('""', ""),
    ('"two\nlines"', "two\nlines"),
    (r'"\t\r\n\\\"\b\f"', '\t\r\n\\"\b\f'),
    (r'"\u00e9\u00E9"', "éé"),
    (r'"\ud83d\ude00!"', "😀!"),
    (r'"\0\7\12\377\1234"', "\0\7\n\u00ffS4"),
    (r'"\\/ \\u0041 \\101"', r"\/ \u0041 \101"),
    ('"; not a comment"', "; not a comment"),
    (r"\a", C("a")),
    (r"\newline", C("\n")),
    (r"\return", C("\r")),
    (r"\space", C(" ")),
    (r"\tab", C("\t")),
    (r"\formfeed", C("\f")),
    (r"\backspace", C("\b")),
    (r"\u0041", C("A")),
    (r"\o101", C("A")),
    (r"\o0", C("\0")),
    (r"\u", C("u")),
    (r"\o", C("o")),
    (r"\(", C("(")),
    (r"\"", C('"')),
    (r"\\", C("\\")),
    (r"\;", C(";")),
    (r"\,", C(",")),
    (r"\é", C("é")),
    (r"\😀", C("😀")),
    (":a", K("a")),
    (":a.b/c-d?", K("a.b/c-d?")),
    (":>/p", K(">/p")),
    (":a:b", K("a:b")),
    (":a#b", K("a#b")),
    (":-", K("-")),
    (":+/x", K("+/x")),
    (":nil", K("nil")),
    (":é/ї", K("é/ї")),
    ("a", S("a")),
    ("/", S("/")),
    ("+", S("+")),
    ("-", S("-")),
    ("*", S("*")),
    ("...", S("...")),
    (".foo", S(".foo")),
    ("->x", S("->x")),
    ("-a1", S("-a1")),
    ("foo/bar", S("foo/bar")),
    ("a#b", S("a#b")),
    ("a'", S("a'")),
    ("nil?", S("nil?")),
    ("_", S("_")),
]

TAGGED: list[tuple[str, Any]] = [
    ('#inst "2026"', at(2026, 1, 1)),
    ('#inst "2026-04"', at(2026, 4, 1)),
    ('#inst "2026-04-22"', at(2026, 4, 22)),
    ('#inst "2026-04-22T10"', at(2026, 4, 22, 10)),
    ('#inst "2026-04-22T10:30"', at(2026, 4, 22, 10, 30)),
    ('#inst "2026-04-22T10:30:15"', at(2026, 4, 22, 10, 30, 15)),
    ('#inst "2026-04-22T10:30:15Z"', at(2026, 4, 22, 10, 30, 15)),
    ('#inst "2026-04-22T10:30:15.5Z"', at(2026, 4, 22, 10, 30, 15, 500_000)),
    ('#inst "2026-04-22T10:30:15.123456789Z"', at(2026, 4, 22, 10, 30, 15, 123_456)),
    ('#inst "2026-04-22T10:30:15.000-00:00"', at(2026, 4, 22, 10, 30, 15)),
    ('#inst "2026-04-22T01:30:15+02:00"', at(2026, 4, 21, 23, 30, 15)),
    ('#inst "2026-04-22T23:30-05:30"', at(2026, 4, 23, 5, 0)),
    ('#inst ; why\n "2026"', at(2026, 1, 1)),
    ('#inst #_ foo "2026"', at(2026, 1, 1)),
    ('#uuid "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6"', UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
]

COLLECTIONS: list[tuple[str, Any]] = [
    ("[]", []),
    ("()", List()),
    ("{}", {}),
    ("#{}", frozenset()),
    ("[1 [2 (3 [4])]]", [1, [2, List((3, [4]))]]),
    ('{:a "b", c [1]}', {K("a"): "b", S("c"): [1]}),
    ('{"j1" 1}', {T("j1"): 1}),
    ('{:a 1 "a" 2 a 3 \\a 4}', {K("a"): 1, T("a"): 2, S("a"): 3, C("a"): 4}),
    ('#{:a "a" a \\a}', frozenset({K("a"), T("a"), S("a"), C("a")})),
    ('{[:id "x"] {:a ["y"]}}', {Vector((K("id"), T("x"))): {K("a"): ["y"]}}),
    ('{(:a {:b "c"}) [:d]}', {List((K("a"), Map({K("b"): T("c")}))): [K("d")]}),
    ('#{[1 ["a"]] {:k ["v"]}}', frozenset({Vector((1, Vector((T("a"),)))), Map({K("k"): Vector((T("v"),))})})),
    ('#{["a"] [:a] [a]}', frozenset({Vector((T("a"),)), Vector((K("a"),)), Vector((S("a"),))})),
    ("[#{#{1}}]", [frozenset({frozenset({1})})]),
    ("{{1 2} {3 4}}", {Map({1: 2}): {3: 4}}),
    ("{nil 1 false 2 1.5 3}", {None: 1, False: 2, 1.5: 3}),
    ('[a"b"\\c[d]:e]', [S("a"), "b", C("c"), [S("d")], K("e")]),
    (
        '#:x{:a 1 :_/b 2 :y/c 3 sym 4 _/t 5 "s" 6 7 8}',
        {K("x/a"): 1, K("b"): 2, K("y/c"): 3, S("x/sym"): 4, S("t"): 5, T("s"): 6, 7: 8},
    ),
    ("#:x {:a {:b 1}}", {K("x/a"): {K("b"): 1}}),
    ("{#:x{:a 1} 2}", {Map({K("x/a"): 1}): 2}),
    ("#:x.y{/ 1 _/nil 2}", {S("/"): 1, S("_/nil"): 2}),
]

AROUND: list[tuple[str, Any]] = [
    (" ,\t\r\n1,,", 1),
    ("; a comment\n1 ; another", 1),
    ("1;", 1),
    ("#_ a 1", 1),
    ("1 #_ a #_b", 1),
    ("[1 #_ 2 3]", [1, 3]),
    ("#_ #_ a b c", S("c")),
    ("[#_ #_ #_ a b c]", []),
    ("[#_ [1 #_ 2 {:a #{3}}] 4]", [4]),
    ('[#_ #inst "2026" 1]', [1]),
    ('{:a #_ "x" [1] #_ :b}', {K("a"): [1]}),
    ('{#_ "x" "y" 1}', {T("y"): 1}),
    ("[#_#_#_a b c]", []),
    ("[1;2\n3]", [1, 3]),
]


@pytest.mark.parametrize(("text", "value"), [*ATOMS, *TAGGED, *COLLECTIONS, *AROUND])
def test_the_text_is_read_as_the_value(text: str, value: Any) -> None:
    assert exactly(loads(text)) == exactly(value)
    assert exactly(loads(text.encode())) == exactly(value)


@pytest.mark.parametrize(("text", "value"), ATOMS)
def test_an_atom_is_read_the_same_inside_a_collection_and_next_to_a_bracket(text: str, value: Any) -> None:
    assert exactly(loads(f"[{text} {text}]")) == exactly([value, value])


def test_a_keyword_read_twice_is_one_object() -> None:
    first, second = loads("[:psi.scheduler/kind :psi.scheduler/kind]")
    assert first is second
    assert loads(":psi.scheduler/kind") is first


def test_more_keywords_than_are_remembered_are_read_all_the_same() -> None:
    names = [f"n{number}" for number in range(10_000)]
    assert loads("[" + " ".join(f":{name}" for name in names) + "]") == names
    assert loads("[:n0 :n9999]") == ["n0", "n9999"]


def test_keys_are_found_by_the_plain_string() -> None:
    result = loads('{:psi.scheduler/kind :message "j1" {:a 1}}')
    assert result["psi.scheduler/kind"] == "message"
    assert result["j1"]["a"] == 1
