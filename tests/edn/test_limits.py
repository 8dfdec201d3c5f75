"""Deep and huge texts end in an answer or a sentence, soon: nothing recurses and nothing is quadratic.

None of these looks at a clock. A step that were quadratic in ten million characters would be noticed without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import count, islice
from typing import Any
from uuid import UUID

import pytest

from psi.edn import List, Map, ReadError, Vector, WriteError, dumps, freeze, kind_key, loads

HUGE = 10_000_000


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(ReadError) as caught:
        loads(text, **options)
    return str(caught.value)


def open_quote(column: int) -> str:
    found = f'line 1, column {column}: expected ", found the end of the text'
    return f'{found}; the " opened at line 1, column 1 is not closed'


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("(", ")"), ("{:a ", "}"), ("[(", ")]"), ("[{:a ", "}]")])
def test_ten_thousand_levels_are_read_and_written_again(opening: str, closing: str) -> None:
    levels = 10_000 // (len(closing))
    text = opening * levels + "1" + closing * levels
    assert dumps(loads(text)) == text


def test_one_level_more_is_refused_where_it_opens() -> None:
    expected = "line 1, column 10001: expected at most 10000 levels of nesting, found ["
    assert refusal("[" * 10_001 + "]" * 10_001) == expected
    assert refusal("[" * HUGE) == expected


def test_the_depth_can_be_set() -> None:
    assert loads("[[1]]", max_depth=2) == [[1]]
    assert refusal("[[1]]", max_depth=1) == "line 1, column 2: expected at most 1 levels of nesting, found ["
    assert loads("1", max_depth=0) == 1


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("#{", "}"),
        ("[", "]"),
        ("(", ")"),
        ("{:a ", "}"),
        ("{", " 1}"),
        ("[#{", "}]"),
        ("{[", "] 1}"),
        ("{#{(", ")} 1}"),
    ],
)
def test_two_hundred_levels_are_hashable_and_one_more_is_refused(opening: str, closing: str) -> None:
    brackets = sum(opening.count(bracket) for bracket in "[({")
    levels = 200 // brackets
    text = f"#{{{opening * (levels - 1)}nil{closing * (levels - 1)}}}"
    assert dumps(loads(text)) == text
    assert hash(loads(text)) == hash(loads(text))
    assert loads(text) == loads(text)
    deeper = f"#{{{opening * 10_000}nil{closing * 10_000}}}"
    assert "expected at most 200 levels inside a map key or a set, found " in refusal(deeper)


def test_two_deep_keys_that_are_the_same_are_found_out() -> None:
    deep = "[" * 199 + "]" * 199
    assert refusal(f"#{{{deep} {deep}}}").startswith("line 1, column 1: expected each element of a set once, found [[[")


def test_deep_values_made_in_python_are_written_or_refused() -> None:
    deep: Any = None
    for level in range(10_000):
        deep = ([deep], (deep,), List((deep,)), {"a": deep}, Vector((deep,)))[level % 5]
    assert dumps(deep).count("nil") == 1
    with pytest.raises(WriteError) as caught:
        dumps([deep])
    assert str(caught.value) == (
        "cannot write a value of type list: it is nested deeper than 10000 levels, or holds itself"
    )


def test_sets_in_sets_in_sets_are_written() -> None:
    deep: Any = frozenset()
    for _ in range(5_000):
        deep = frozenset({deep, 1})
    assert dumps(deep) == "#{" * 5_000 + "#{}" + " 1}" * 5_000


@pytest.mark.parametrize(
    ("before", "repeated", "times", "message"),
    [
        ("", "1", HUGE, f"line 1, column 1: expected a number of at most 4300 digits, found one of {HUGE}"),
        ("1.", "1", HUGE, f"line 1, column 1: expected a number of at most 4300 digits, found one of {HUGE + 2}"),
        ("", "7M", HUGE // 2, f"line 1, column 1: expected a number of at most 4300 digits, found one of {HUGE - 1}"),
        ("", ",", HUGE, f"line 1, column {HUGE + 1}: expected a value, found the end of the text"),
        ("", "\n", HUGE, f"line {HUGE + 1}, column 1: expected a value, found the end of the text"),
        ("", ";", HUGE, f"line 1, column {HUGE + 1}: expected a value, found the end of the text"),
        ("", ";\n", HUGE // 2, f"line {HUGE // 2 + 1}, column 1: expected a value, found the end of the text"),
        (":", "a/", HUGE // 2, f"line 1, column 1: expected a keyword, found :{'a/' * 19}…"),
        ('"', "a", HUGE, open_quote(HUGE + 2)),
        ('"', '\\"', HUGE // 10, open_quote(HUGE // 5 + 2)),
        ('"', '""', HUGE // 10, 'line 1, column 3: expected the end of the text, found ""'),
        ("", "]", HUGE // 10, "line 1, column 1: expected a value, found ]"),
        ("", "{", HUGE // 10, "line 1, column 202: expected at most 200 levels inside a map key or a set, found {"),
        (
            "",
            "#_",
            HUGE // 50,
            f"line 1, column {HUGE // 25 + 1}: expected a value after #_, found the end of the text",
        ),
    ],
)
def test_a_huge_text_is_refused_in_a_sentence(before: str, repeated: str, times: int, message: str) -> None:
    assert refusal(before + repeated * times) == message


@pytest.mark.parametrize("sign", [1, -1])
def test_the_longest_numbers_are_read_back(sign: int) -> None:
    longest = sign * (10**4300 - 1)
    assert loads(dumps(longest)) == longest
    assert loads(dumps(Decimal(longest // 10))) == longest // 10


def test_a_huge_string_is_read_and_written_again() -> None:
    for text in ('"' + "a" * HUGE + '"', '"' + "\\n" * (HUGE // 2) + '"', '"' + "ї" * (HUGE // 2) + '"'):
        assert dumps(loads(text)) == text


def test_many_octal_escapes_are_read() -> None:
    assert loads('"' + "\\101" * 200_000 + '"') == "A" * 200_000


def test_a_huge_string_in_a_deep_place_is_not_copied_at_every_level() -> None:
    levels = 10_000
    text = "[" * levels + '"' + "a" * HUGE + '"' + "]" * levels
    assert dumps(loads(text)) == text
    keyed = "{[" * 100 + '"' + "a" * HUGE + '"' + "] 1}" * 100
    assert dumps(loads(keyed)) == keyed


def test_very_many_values_are_read_and_written_again() -> None:
    text = "[" + " ".join(['{:a 1 "b" [nil]}'] * 50_000) + "]"
    assert dumps(loads(text)) == text
    discarded = "#_" * 100_000 + "1 " * 100_000 + "2"
    assert loads(discarded) == 2


# -- numbers that were chosen so that all have one hash, which makes a set of them quadratic

STEP = 2**61 - 1


def alike(form: str, opening: str = "[", closing: str = "]", many: int = 101) -> str:
    """So many numbers that share their hash, each in the form."""
    return opening + " ".join(form.format(STEP * n) for n in range(1, many + 1)) + closing


@pytest.mark.parametrize(
    ("form", "opening", "closing"),
    [
        ("{}", "[", "]"),
        ("{}", "(", ")"),
        ("{}", "#{", "}"),
        ("{} 1", "{", "}"),
        ("-{}", "[", "]"),
        ("{}N", "[", "]"),
        ("{}M", "[", "]"),
        ("{}.0M", "#{", "}"),
        ("[{}]", "#{", "}"),
        ("({}) 1", "{", "}"),
        ("{{:a {}}}", "[", "]"),
        ("#{{{}}}", "#{", "}"),
        ("#_{}", "[", "]"),
    ],
)
def test_numbers_with_one_hash_are_refused_where_they_get_too_many(form: str, opening: str, closing: str) -> None:
    fits = alike(form, opening, closing, 100)
    assert dumps(loads(fits)).count(str(STEP)[:4]) or "#_" in form
    text = alike(form, opening, closing)
    last = text.rindex(str(STEP * 101)) - form.startswith("-")
    column, said = last + 1, refusal(text)
    number = text[last:].split(" ")[0].rstrip("])}")
    assert said == (
        f"line 1, column {column}: expected at most 100 numbers with one hash, found {number}; those that are a "
        "multiple of 2305843009213693951 apart share one, and whatever is keyed by them is slow"
    )
    assert refusal(text) == said, "what was read before counts as much"


def test_uuids_with_one_hash_are_refused_where_they_get_too_many() -> None:
    texts = [f'#uuid "{UUID(int=STEP * n)}"' for n in range(1, 102)]
    assert len(loads(f"#{{{' '.join(texts[:100])}}}")) == 100
    said = refusal(f"[\n{' '.join(texts)}]")
    assert said.startswith("line 2, column 4507: expected at most 100 numbers with one hash, found ")


def test_the_same_number_again_is_none_more_and_other_large_numbers_are_fine() -> None:
    assert len(loads("[" + f"{STEP * 7} " * 1_000 + "]")) == 1_000
    assert len(loads("#{" + " ".join(f"{STEP * 7 + n} {n}.25M" for n in range(5_000)) + "}")) == 10_000
    assert len(loads("#{" + " ".join(f'#uuid "{UUID(int=n << 64)}"' for n in range(5_000)) + "}")) == 5_000


def pairs_alike() -> Iterator[tuple[int, int]]:
    """Pairs of ordinary integers, all with the hash of the first: what Python does with a tuple can be undone."""
    mask, multiplier, start = 2**64 - 1, 14029467366897019727, 2870177450012600261
    undone = pow(multiplier, -1, 2**64)
    for first in count(1):
        lane = (start + first * multiplier) & mask
        lane = ((lane << 31 | lane >> 33) * 11400714785074694791) & mask
        second = (12_345 - lane) * undone & mask
        second -= 2**64 if second >= 2**63 else 0
        if abs(second) < STEP and second not in (-1, -2):
            yield first, second


PAIRS = list(islice(pairs_alike(), 5_000))


@pytest.mark.parametrize(
    ("form", "opening", "what"),
    [
        ("[{} {}]", "#{", "element of a set"),
        ("({} {}) 1", "{", "key of a map"),
        ("{{{} {}}}", "#{", "element of a set"),
    ],
)
def test_composites_with_one_hash_are_refused_where_they_would_be_keys(form: str, opening: str, what: str) -> None:
    assert len({hash(pair) for pair in PAIRS}) == 1
    few, many = (opening + " ".join(form.format(*pair) for pair in PAIRS[:n]) + "}" for n in (100, 101))
    assert len(loads(few)) == 100
    assert refusal(many) == f"line 1, column 1: expected each {what} with a hash that at most 100 share, found more"


def test_of_many_that_are_twice_in_a_set_the_reader_still_says_which() -> None:
    assert refusal("#{" + "[1] " * 1_000 + "}") == (
        "line 1, column 1: expected each element of a set once, found [1] twice"
    )


def test_a_map_whose_entries_are_alike_is_hashed_all_the_same() -> None:
    """None of this looks at a clock either: were it quadratic, five thousand would be noticed and fifty would not."""
    text = "{" + " ".join(f"{first} {second}" for first, second in PAIRS) + "}"
    assert hash(freeze(loads(text))) == hash(next(iter(loads(f"#{{{text}}}"))))
    assert len({kind_key([first, second]) for first, second in PAIRS}) == len(PAIRS)
    assert len({hash(kind_key([first, second])) for first, second in PAIRS}) > len(PAIRS) // 2


def test_maps_in_any_order_have_one_hash_and_maps_that_differ_have_others() -> None:
    one, other = Map({"a": 1, "b": 2}), Map({"b": 2, "a": 1})
    assert (one, hash(one)) == (other, hash(other))
    assert len({hash(Map({"a": n, "b": -n})) for n in range(100)}) == 100
