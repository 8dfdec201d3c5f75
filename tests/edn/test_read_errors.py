"""Every way a text can be wrong, with the whole sentence a person gets to see."""

from __future__ import annotations

import pytest

from psi.edn import ReadError, loads
from psi.errors import Refused

STRUCTURE = {
    "": "line 1, column 1: expected a value, found the end of the text",
    "[1 \0 2]": "line 1, column 4: expected a value, found the character U+0000",
    "[:a \u200b]": "line 1, column 5: expected a value, found the character U+200B",
    "[1] \u00a0": "line 1, column 5: expected a value, found the character U+00A0",
    " ,; nothing\n ": "line 2, column 2: expected a value, found the end of the text",
    "1 2": "line 1, column 3: expected the end of the text, found 2",
    "1\n  [2 3]": "line 2, column 3: expected the end of the text, found [",
    "1 ]": "line 1, column 3: expected the end of the text, found ]",
    "]": "line 1, column 1: expected a value, found ]",
    "[1 2": "line 1, column 5: expected ], found the end of the text; the [ opened at line 1, column 1 is not closed",
    "[1\n {:a (2\n ; rest": (
        "line 3, column 8: expected ), found the end of the text; the ( opened at line 2, column 6 is not closed"
    ),
    "[1 #{2]": "line 1, column 7: expected }, found ]; the #{ opened at line 1, column 4 is not closed",
    "{:a [1 2}": "line 1, column 9: expected ], found }; the [ opened at line 1, column 5 is not closed",
    "{:a 1\n :b}": "line 2, column 4: expected a value after the key :b, found }",
    '{:a 1 "b" #_ 2}': 'line 1, column 15: expected a value after the key "b", found }',
    "#_": "line 1, column 3: expected a value after #_, found the end of the text",
    "#_ 1": "line 1, column 5: expected a value, found the end of the text",
    "[1 #_]": "line 1, column 6: expected a value after #_, found ]",
    "[1 #inst]": "line 1, column 9: expected a value after #inst, found ]",
}

COLLISIONS = {
    "[{:a 1 :b 2 :a 3}]": "line 1, column 2: expected each key of a map once, found :a twice",
    "{:a {nil 1\n nil 2}}": "line 1, column 5: expected each key of a map once, found nil twice",
    '#{1 "a" "a"}': 'line 1, column 1: expected each element of a set once, found "a" twice',
    "{1 :a true :b}": "line 1, column 1: expected each key of a map once, found 1 and true, which are equal in Python",
    "#{1 2 1.0}": "line 1, column 1: expected each element of a set once, found 1 and 1.0, which are equal in Python",
    "#{0 false}": "line 1, column 1: expected each element of a set once, found 0 and false, which are equal in Python",
    "#{[1] [1M]}": (
        "line 1, column 1: expected each element of a set once, found [1] and [1M], which are equal in Python"
    ),
    "{[1] :a (1) :b}": (
        "line 1, column 1: expected each key of a map once, found [1] and (1), which are equal in Python"
    ),
    "#:x{:a 1 :x/a 2}": "line 1, column 4: expected each key of a map once, found :x/a twice",
}

NUMBERS = {
    "22/7": "line 1, column 1: expected a number, found 22/7; ratios are not supported",
    "[1 -007]": ("line 1, column 4: expected a number, found -007; a leading zero means octal, which is not supported"),
    "0x1F": "line 1, column 1: expected a number, found 0x1F; hexadecimal is not supported",
    "36rZZ": "line 1, column 1: expected a number, found 36rZZ; a radix is not supported",
    "1.": "line 1, column 1: expected a number, found 1.",
    "1a": "line 1, column 1: expected a number, found 1a",
    "+1_000": "line 1, column 1: expected a number, found +1_000",
    "1٣": "line 1, column 1: expected a number, found 1٣",
    "1.5N": "line 1, column 1: expected a number, found 1.5N",
    ".5": "line 1, column 1: expected a value, found .5",
    "1e999": (
        "line 1, column 1: expected a number that fits 64 bits, found 1e999; "
        "with an M after it, it is a decimal of any size"
    ),
    "1e9999999999999999999M": (
        "line 1, column 1: expected a decimal, found 1e9999999999999999999M; the exponent is too large"
    ),
}

NAMES = {
    ":": "line 1, column 1: expected a keyword, found :",
    ":/": "line 1, column 1: expected a keyword, found :/",
    ":/a": "line 1, column 1: expected a keyword, found :/a",
    ":a/": "line 1, column 1: expected a keyword, found :a/",
    ":a/b/c": "line 1, column 1: expected a keyword, found :a/b/c",
    ":1": "line 1, column 1: expected a keyword, found :1",
    ":a/1": "line 1, column 1: expected a keyword, found :a/1",
    "::a": "line 1, column 1: expected a keyword, found ::a; a keyword relative to a namespace is not data",
    "a/": "line 1, column 1: expected a value, found a/",
    "/a": "line 1, column 1: expected a value, found /a",
    "a/b/c": "line 1, column 1: expected a value, found a/b/c",
    "a|b": "line 1, column 1: expected a value, found a|b",
    "\ufeff1": "line 1, column 1: expected a value, found 1",
}

ESCAPES = r"one of \t \r \n \b \f \\ \" \u0041 \101"
CHARACTERS = r"they are \c, \u0041, \o101 and \newline \return \space \tab \formfeed \backspace"
HALF = "half of a surrogate pair is not a character"


def open_quote(end: str, start: str) -> str:
    return f'{end}: expected ", found the end of the text; the " opened at {start} is not closed'


STRINGS = {
    '["abc': open_quote("line 1, column 6", "line 1, column 2"),
    '"a\nb\\"': open_quote("line 2, column 4", "line 1, column 1"),
    '"\\': open_quote("line 1, column 3", "line 1, column 1"),
    r'{:a "x\qy"}': rf"line 1, column 7: expected {ESCAPES}, found \q",
    '"one\n two \\/"': rf"line 2, column 6: expected {ESCAPES}, found \/",
    r'"\u12"': rf"line 1, column 2: expected {ESCAPES}, found \u12",
    r'"\400"': rf"line 1, column 2: expected {ESCAPES}, found \400",
    r'"\n \9"': rf"line 1, column 5: expected {ESCAPES}, found \9",
    '"a\\\n"': rf"line 1, column 3: expected {ESCAPES}, found " + "\\",
    r'"\ud83d!"': rf"line 1, column 2: expected {ESCAPES}, found \ud83d; {HALF}",
    r'"\ude00\ud83d"': rf"line 1, column 2: expected {ESCAPES}, found \ude00; {HALF}",
    '"\ud800"': "line 1, column 2: expected text, found half of a surrogate pair",
    r"\ud800": rf"line 1, column 1: expected a character, found \ud800; {HALF}",
    r"\abc": rf"line 1, column 1: expected a character, found \abc; {CHARACTERS}",
    r"\o400": rf"line 1, column 1: expected a character, found \o400; {CHARACTERS}",
    r"\u41": rf"line 1, column 1: expected a character, found \u41; {CHARACTERS}",
    "[\\ ]": rf"line 1, column 2: expected a character, found \; {CHARACTERS}",
    "[\\": rf"line 1, column 2: expected a character, found \; {CHARACTERS}",
}

INSTANT = 'expected an instant such as "2026-04-22T10:00:00Z"'
UUID = 'expected a UUID such as "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"'
TAGS = "expected one of the tags #inst #uuid"
NEVER = "other tags are refused, never evaluated"

TAGGED = {
    "[#foo/bar 1]": f"line 1, column 2: {TAGS}, found #foo/bar; {NEVER}",
    "#Inst 1": f"line 1, column 1: {TAGS}, found #Inst; {NEVER}",
    '#inst "yesterday"': f'line 1, column 7: {INSTANT}, found "yesterday"',
    '#inst "2026-13"': f'line 1, column 7: {INSTANT}, found "2026-13"',
    '#inst "2026-02-30"': f'line 1, column 7: {INSTANT}, found "2026-02-30"',
    '#inst "2026-04-22T24"': f'line 1, column 7: {INSTANT}, found "2026-04-22T24"',
    '#inst "2026-04-22 10:00"': f'line 1, column 7: {INSTANT}, found "2026-04-22 10:00"',
    '#inst "2026-04-22T10:00+25:00"': f'line 1, column 7: {INSTANT}, found "2026-04-22T10:00+25:00"',
    '#inst "2026-04-22T10:00+02:60"': f'line 1, column 7: {INSTANT}, found "2026-04-22T10:00+02:60"',
    '#inst "0001-01-01T00:00+01:00"': f'line 1, column 7: {INSTANT}, found "0001-01-01T00:00+01:00"',
    '#inst "0000"': f'line 1, column 7: {INSTANT}, found "0000"',
    '#inst "٢٠٢٦"': f'line 1, column 7: {INSTANT}, found "٢٠٢٦"',
    "#inst 2026": "line 1, column 7: expected a string after #inst, found 2026",
    "#inst [1 2]": "line 1, column 7: expected a string after #inst, found [",
    '#uuid "f81d4fae7dec11d0a76500a0c91e6bf6"': f'line 1, column 7: {UUID}, found "f81d4fae7dec11d0a76500a0c91e6bf6"',
    "#uuid :a": "line 1, column 7: expected a string after #uuid, found :a",
    "#:x [1]": "line 1, column 5: expected a map after #:x, found [",
    "#:x/y{:a 1}": "line 1, column 1: expected a value, found #:x/y; a namespace before a map is written #:a.b",
    "#::x{:a 1}": "line 1, column 1: expected a value, found #::x; a namespace relative to another is not data",
    "##Infinity": (
        "line 1, column 1: expected a value, found ##Infinity; the symbolic values are ##Inf, ##-Inf and ##NaN"
    ),
}

CODE = {
    "^:a b": "line 1, column 1: expected a value, found ^:a; metadata is not supported",
    "^{:a 1} b": "line 1, column 1: expected a value, found ^; metadata is not supported",
    "#^a b": "line 1, column 1: expected a value, found #^a; metadata is not supported",
    "'a": "line 1, column 1: expected a value, found 'a; a quoted form is not data",
    "`a": "line 1, column 1: expected a value, found `a; a quoted form is not data",
    "~a": "line 1, column 1: expected a value, found ~a; an unquoted form is not data",
    "@a": "line 1, column 1: expected a value, found @a; a deref is not data",
    "#'a": "line 1, column 1: expected a value, found #'a; a var is not data",
    "#(+ 1 %)": "line 1, column 1: expected a value, found #(; a function is not data",
    '[#"a+"]': 'line 1, column 2: expected a value, found #"; a regular expression is not data',
    "#=(+ 1 2)": "line 1, column 1: expected a value, found #=; nothing is evaluated while reading",
    "#?(:clj 1)": "line 1, column 1: expected a value, found #?; a reader conditional is not data",
    "# inst": "line 1, column 1: expected a value, found #",
}

LONG = {
    "[" + "x" * 39 + "/]": "line 1, column 2: expected a value, found " + "x" * 39 + "/",
    "[" + "x" * 40 + "/]": "line 1, column 2: expected a value, found " + "x" * 39 + "…",
    '{"' + "k" * 50 + '"}': 'line 1, column 54: expected a value after the key "' + "k" * 38 + "…, found }",
    "#:" + "n" * 50: "line 1, column 53: expected a value after #:" + "n" * 37 + "…, found the end of the text",
    "1" * 4301: "line 1, column 1: expected a number of at most 4300 digits, found one of 4301",
}

CASES = [*{**STRUCTURE, **COLLISIONS, **NUMBERS, **NAMES, **STRINGS, **TAGGED, **CODE, **LONG}.items()]


@pytest.mark.parametrize(("text", "message"), CASES)
def test_the_error_says_where_what_was_expected_and_what_was_found(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        loads(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[1\n \xff]", "line 2, column 2: expected UTF-8, found the byte 0xff"),
        ("é\xe9".encode() + b"\xe9", "line 1, column 3: expected UTF-8, found the byte 0xe9"),
        (
            b"[1",
            "line 1, column 3: expected ], found the end of the text; the [ opened at line 1, column 1 is not closed",
        ),
    ],
)
def test_bytes_are_refused_in_the_same_words(text: bytes, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        loads(text)
    assert str(caught.value) == message


def test_the_error_carries_its_facts_for_a_program() -> None:
    with pytest.raises(ReadError) as caught:
        loads("{:a 1\n :b}")
    error = caught.value
    assert isinstance(error, Refused)
    assert (error.line, error.column, error.expected, error.found, error.hint) == (
        2,
        4,
        "a value after the key :b",
        "}",
        "",
    )
    assert error.as_data() == {
        "code": "edn/read",
        "message": "line 2, column 4: expected a value after the key :b, found }",
        "data": {"line": 2, "column": 4, "expected": "a value after the key :b", "found": "}"},
    }
