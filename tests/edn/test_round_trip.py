"""Whatever is written is read back the same, to the last type; and no text at all brings the reader down."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from psi.edn import Char, Keyword, List, ReadError, Symbol, dumps, freeze, loads
from tests.edn.exactly import exactly

# Spelled out from the EDN specification, not taken from the code.
STARTS = [*"abXYzéї_*!?$%&=<>", "-", "+", ".", "->", "+a", "..", ".-"]
RESTS = ["", "a", "Z9", "-b", "?", "!", ".c", "*", "+1", "_", "%&", "=<>", ":d", "#e", "'", "ї0"]


@st.composite
def names(draw: st.DrawFn) -> str:
    sides = draw(st.integers(1, 2))
    return "/".join(draw(st.sampled_from(STARTS)) + draw(st.sampled_from(RESTS)) for _ in range(sides))


characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, max_size=12)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**80), max_value=2**80),
    st.floats(allow_nan=False),
    st.just(math.nan),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.datetimes(timezones=st.just(UTC)),
    st.uuids(),
    st.builds(Keyword, names()),
    st.builds(Symbol, names() | st.just("/")),
    st.builds(Char, characters),
)


@st.composite
def collections(draw: st.DrawFn, kinds: list[Callable[[Any], Any]], inner: st.SearchStrategy[Any]) -> Any:
    kind = draw(st.sampled_from(kinds))
    return kind(draw(st.lists(inner, max_size=4)))


def pairs_of(items: list[Any]) -> dict[Any, Any]:
    """A map from every value, in its hashable form, to the next."""
    return {freeze(key): item for key, item in pairwise(items)}


def set_of(items: list[Any]) -> frozenset[Any]:
    return frozenset(map(freeze, items))


values: st.SearchStrategy[Any] = st.recursive(
    scalars | texts, lambda inner: collections([list, List, set_of, pairs_of], inner), max_leaves=15
)


@given(values)
@settings(max_examples=250, deadline=None)
def test_what_is_written_is_read_back_exactly(value: Any) -> None:
    text = dumps(value)
    assert exactly(loads(text)) == exactly(value)
    assert exactly(loads(text.encode())) == exactly(value)
    assert dumps(loads(text)) == text


@given(values)
@settings(max_examples=120, deadline=None)
def test_freezing_gives_what_is_read_in_a_hashable_position(value: Any) -> None:
    frozen = freeze(value)
    assert exactly(loads(f"#{{{dumps(value)}}}")) == exactly(frozenset({frozen}))
    assert dumps(frozen) == dumps(value)


FRAGMENTS = [
    *"()[]{}\"\\#:;^'`~@/,. \n\t",
    *(
        "#{",
        "#_",
        "#:a",
        "#:a{",
        "##",
        "##Inf",
        "#inst ",
        "#uuid ",
        "#foo ",
        "\\u",
        "\\o",
        "\\newline",
        "::",
        "...",
        "_/",
    ),
    *(
        "nil",
        "true",
        "a",
        "a/b",
        ":a",
        ":_/a",
        ":a/b",
        "0",
        "1",
        "-1",
        "1.5",
        "1e9",
        "1M",
        "1N",
        "22/7",
        "07",
        "e",
        "N",
    ),
    *(
        '"a"',
        '"\\n',
        '"\\ud83d',
        "\\ude00",
        '"2026-04-22T10:00:00Z"',
        '"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"',
        "ї",
        "\0",
    ),
]
# Brackets around a random middle: left to chance, most texts would be refused at once for an unclosed one.
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)
wrapped = st.sampled_from(["{}", "[{}]", "({})", "#{{{}}}", "{{{}}}", "{{{} 1}}", "#:n{{{}}}", "[#_ {} {}]"])
ednish = st.builds(lambda form, *middles: form.format(*middles), wrapped, fragments, fragments)


def outcome(text: str | bytes) -> Any:
    try:
        return loads(text)
    except ReadError as error:
        return error


@given(ednish | st.text(max_size=20))
@settings(max_examples=800, deadline=None)
def test_any_text_is_a_value_that_can_be_written_again_or_a_read_error(text: str) -> None:
    value = outcome(text)
    if isinstance(value, ReadError):
        assert str(value).startswith(f"line {value.line}, column {value.column}: expected {value.expected}, found ")
        assert 1 <= value.line <= text.count("\n") + 1
        assert 1 <= value.column <= len(text) + 1
    else:
        assert exactly(loads(dumps(value))) == exactly(value)


@given(st.binary(max_size=20))
@settings(max_examples=120, deadline=None)
def test_any_bytes_are_read_as_their_text_is_or_refused(data: bytes) -> None:
    value = outcome(data)
    if not (isinstance(value, ReadError) and value.expected == "UTF-8"):
        assert exactly(value) == exactly(outcome(data.decode()))
