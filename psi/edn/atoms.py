"""What a single token stands for: a name, a number, a character, a string, a tagged string.

Owns how each is spelled. Knows no positions: what is wrong with a token is a Misread, which the reader places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from json.decoder import scanstring  # type: ignore[attr-defined]  # there since Python 2.6, and written in C
from math import inf, isinf, nan
from typing import Any
from uuid import UUID

from psi.edn.grammar import CHARACTERS, MAX_DIGITS, NAME, PART, RESERVED, find_surrogate
from psi.edn.values import Char, Keyword, Symbol

__all__ = ["NAMESPACE", "TAGS", "Misread", "Unclosed", "read_atom", "read_string"]


class Misread(Exception):
    """What was expected of the token at hand, ``offset`` characters into it; ``whole`` is about the value it ends."""

    def __init__(self, expected: str, hint: str = "", *, found: str = "", offset: int = 0, whole: bool = False) -> None:
        self.expected = expected
        self.hint = hint
        self.found = found
        self.offset = offset
        self.whole = whole


class Unclosed(Misread):
    """The token at hand does not belong here, because a bracket or a quote before it is still open."""


def read_atom(token: str) -> Any:
    """The value of a token that is not a bracket or a string and needs no value after it."""
    first = token[0]
    if first == ":":
        return _keyword(token)
    if first in "0123456789" or (first in "+-" and token[1:2] in _DIGITS):
        return _number(token)
    if token in _NAMED_VALUES:
        return _NAMED_VALUES[token]
    if NAME.fullmatch(token):
        return Symbol(token)
    if first == "\\":
        return _char(token)
    raise _not_data(token)


_DIGITS = frozenset("0123456789")
_NAMED_VALUES = {**RESERVED, "##Inf": inf, "##-Inf": -inf, "##NaN": nan, "/": Symbol("/")}

# What Clojure code may hold and data may not, by how it starts. The longer starts come first.
_REFUSED = {
    "#::": "a namespace relative to another is not data",
    "#:": "a namespace before a map is written #:a.b",
    "##": "the symbolic values are ##Inf, ##-Inf and ##NaN",
    "#(": "a function is not data",
    '#"': "a regular expression is not data",
    "#'": "a var is not data",
    "#=": "nothing is evaluated while reading",
    "#?": "a reader conditional is not data",
    "#^": "metadata is not supported",
    "^": "metadata is not supported",
    "'": "a quoted form is not data",
    "`": "a quoted form is not data",
    "~": "an unquoted form is not data",
    "@": "a deref is not data",
}


def _not_data(token: str) -> Misread:
    for start, hint in _REFUSED.items():
        if token.startswith(start):
            return Misread("a value", hint)
    if NAME.fullmatch(token, 1) and token[0] == "#":
        return Misread(f"one of the tags {' '.join(TAGS)}", "other tags are refused, never evaluated")
    return Misread("a value")


def _keyword(token: str) -> Keyword:
    if NAME.fullmatch(token, 1):
        return Keyword(token[1:])
    raise Misread("a keyword", "a keyword relative to a namespace is not data" if token.startswith("::") else "")


_INTEGER = re.compile(r"([-+]?(?:0|[1-9][0-9]*+))N?")
_FLOAT = re.compile(r"([-+]?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)(M?)")
_OTHER_NUMBERS = (
    (re.compile(r"[-+]?[0-9]++/[0-9]++"), "ratios are not supported"),
    (re.compile(r"[-+]?0[xX]\w++"), "hexadecimal is not supported"),
    (re.compile(r"[-+]?[0-9]++[rR]\w++"), "a radix is not supported"),
    (re.compile(r"[-+]?0[0-9]++N?"), "a leading zero means octal, which is not supported"),
)


def _number(token: str) -> int | float | Decimal:
    if (digits := len(token.strip("+-NM"))) > MAX_DIGITS:
        raise Misread(f"a number of at most {MAX_DIGITS} digits", found=f"one of {digits}")
    if match := _INTEGER.fullmatch(token):
        return int(match[1])
    if not (match := _FLOAT.fullmatch(token)):
        raise Misread("a number", next((hint for spelling, hint in _OTHER_NUMBERS if spelling.fullmatch(token)), ""))
    if match[2]:
        try:
            return Decimal(match[1])
        except InvalidOperation:
            raise Misread("a decimal", "the exponent is too large") from None
    number = float(match[1])
    if isinf(number):
        raise Misread("a number that fits 64 bits", "with an M after it, it is a decimal of any size")
    return number


_CHAR = re.compile(r"\\(?:u([0-9a-fA-F]{4})|o([0-3]?[0-7]{1,2})|(\S))")


def _char(token: str) -> Char:
    if token[1:] in CHARACTERS:
        return Char(CHARACTERS[token[1:]])
    if match := _CHAR.fullmatch(token):
        hexadecimal, octal, itself = match.groups()
        char = itself or chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))
        if find_surrogate(char) < 0:
            return Char(char)
        raise Misread("a character", _HALF_OF_A_PAIR)
    raise Misread("a character", r"they are \c, \u0041, \o101 and " + " ".join(rf"\{name}" for name in CHARACTERS))


def read_string(token: str) -> str:
    """The text between the quotes. JSON's reader does the work, once what it would take differently is settled."""
    if token == '"':
        raise Unclosed('"')
    if "\\" not in token:
        return token[1:-1]
    try:
        text: str = scanstring(token, 1, False)[0]
    except ValueError:
        text = ""
    if not text or "\\/" in token or find_surrogate(text) >= 0:
        text = scanstring(_ESCAPE.sub(_settled, token), 1, False)[0]
    return text


# EDN has octal escapes and JSON has not; JSON has the slash and half of a surrogate pair and EDN has not.
_ESCAPE = re.compile(
    r"""\\(?: ["\\bfnrt]
        | u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
        | u(?![dD][89a-fA-F])[0-9a-fA-F]{4}
        | ([0-3][0-7]{2} | [0-7]{1,2}(?![0-7]))
        )?+""",
    re.VERBOSE,
)
_WRONG_ESCAPE = re.compile(r"\\(?:(u[dD][89a-fA-F][0-9a-fA-F]{2})|u[0-9a-fA-F]{0,4}|[0-7]{1,3}|.)", re.DOTALL)
_HALF_OF_A_PAIR = "half of a surrogate pair is not a character"


def _settled(escape: re.Match[str]) -> str:
    if octal := escape[1]:
        return rf"\u{int(octal, 8):04x}"
    if len(escape[0]) > 1:
        return escape[0]
    wrong = _WRONG_ESCAPE.match(escape.string, escape.start())
    assert wrong
    hint = _HALF_OF_A_PAIR if wrong[1] else ""
    raise Misread(r"one of \t \r \n \b \f \\ \" \u0041 \101", hint, found=wrong[0].rstrip(), offset=wrong.start())


# Clojure's reading of RFC 3339: it may stop after any part, and without an offset it is UTC.
_INSTANT = re.compile(
    r"([0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]++)?)?)?)?)?)?)"
    r"(Z|[-+][0-9]{2}:[0-5][0-9])?"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


def _instant(text: str) -> datetime:
    if match := _INSTANT.fullmatch(text):
        moment, offset = match.groups()
        moment += "0000-01-01T00:00:00"[len(moment) :]
        try:
            return datetime.fromisoformat(moment + (offset or "Z")).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise Misread('an instant such as "2026-04-22T10:00:00Z"')


def _uuid(text: str) -> UUID:
    if _UUID.fullmatch(text):
        return UUID(text)
    raise Misread('a UUID such as "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"')


TAGS: dict[str, Callable[[str], Any]] = {"#inst": _instant, "#uuid": _uuid}


# What stands before the map in #:a.b{:c 1}.
NAMESPACE = re.compile(rf"#:{PART}")
