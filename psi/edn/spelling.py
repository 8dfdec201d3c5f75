"""How a single value is spelled: names, numbers, strings, characters, instants.

Owns the text of everything that holds no other values. Does not know where in a value it is, so a refusal here is an
Unwritable, which the writer turns into an error with a path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from json.encoder import encode_basestring  # its escapes are all EDN's too, and it is written in C
from types import NoneType
from typing import Any
from uuid import UUID

from psi.edn.grammar import CHARACTERS, MAX_DIGITS, NAME, RESERVED, find_surrogate
from psi.edn.recent import Recent
from psi.edn.values import Char, Keyword, String, Symbol

__all__ = ["KEYWORDS", "SCALARS", "Unwritable"]


class Unwritable(Exception):
    """A value EDN has no form for, and why."""

    def __init__(self, value: object, reason: str) -> None:
        self.value = value
        self.reason = reason


class _Keywords(Recent[Keyword, str]):
    """Keywords and their texts."""

    def __missing__(self, keyword: Keyword) -> str:
        if not NAME.fullmatch(keyword):
            raise Unwritable(keyword, f"{encode_basestring(keyword)} is not the name of a keyword")
        return self.keep(keyword, f":{keyword}")


KEYWORDS = _Keywords()


def _symbol(symbol: Symbol) -> str:
    if symbol != "/" and (symbol in RESERVED or not NAME.fullmatch(symbol)):
        raise Unwritable(symbol, f"{encode_basestring(symbol)} is not the name of a symbol")
    return symbol


def _char(char: Char) -> str:
    if char in _CHARACTER_NAMES:
        return f"\\{_CHARACTER_NAMES[char]}"
    if find_surrogate(char) >= 0:
        raise Unwritable(char, "half of a surrogate pair is not text")
    if char == "," or (not char.isprintable() and char <= "\uffff"):
        return f"\\u{ord(char):04x}"
    return f"\\{char}"


def _integer(number: int) -> str:
    try:
        text = int.__repr__(number)
    except ValueError:
        raise Unwritable(number, f"it has more than {MAX_DIGITS} digits") from None
    return text if -(2**63) <= number < 2**63 else f"{text}N"


def _float(number: float) -> str:
    if math.isfinite(number):
        return float.__repr__(number)
    return "##NaN" if math.isnan(number) else "##Inf" if number > 0 else "##-Inf"


def _decimal(number: Decimal) -> str:
    text = str(number)
    if not number.is_finite():
        raise Unwritable(number, f"EDN has no decimal {text}")
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise Unwritable(number, f"it has more than {MAX_DIGITS} digits")
    return f"{text}M"


def _instant(moment: datetime) -> str:
    if moment.tzinfo is not UTC:
        if moment.utcoffset() is None:
            raise Unwritable(moment, "without a timezone it is not an instant")
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            raise Unwritable(moment, "in UTC it is outside the years 1 to 9999") from None
    text = datetime.isoformat(moment)[: -len("+00:00")]
    return f'#inst "{text.removesuffix("000")}Z"' if moment.microsecond else f'#inst "{text}.000Z"'


_CHARACTER_NAMES = {character: name for name, character in CHARACTERS.items()}

SCALARS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring,
    String: encode_basestring,
    Keyword: KEYWORDS.__getitem__,
    Symbol: _symbol,
    Char: _char,
    NoneType: lambda _: "nil",
    bool: lambda truth: "true" if truth else "false",
    int: _integer,
    float: _float,
    Decimal: _decimal,
    datetime: _instant,
    UUID: lambda uuid: f'#uuid "{uuid}"',
}
