"""The spelling rules that reading and writing share. Nothing here reads or writes."""

from __future__ import annotations

import re

__all__ = ["CHARACTERS", "MAX_DEPTH", "MAX_DIGITS", "NAME", "PART", "RESERVED", "find_surrogate"]

# The EDN grammar for symbols, and for keywords after their colon: a prefix may stand before one slash, and neither side
# starts with a digit (nor with a sign or dot before one), a colon or a hash. Hence no :1, a/, :/a or a/b/c; Clojure
# takes the first, by an accident of its regex. The quote inside a name is Clojure's.
PART = r"(?:[-+.](?!\d)|[*!?$%&=<>]|[^\W\d])[\w.*+!\-?$%&=<>:#']*+"
NAME = re.compile(rf"{PART}(?:/{PART})?")

# Symbols by their spelling, values by their meaning.
RESERVED = {"nil": None, "true": True, "false": False}

CHARACTERS = {
    "newline": "\n",
    "return": "\r",
    "space": " ",
    "tab": "\t",
    "formfeed": "\f",
    "backspace": "\b",
}

MAX_DEPTH = 10_000

# Python's own bound on int(text), kept here for every number: beyond it, turning digits into a number is quadratic.
MAX_DIGITS = 4_300


def find_surrogate(text: str) -> int:
    """Where half of a UTF-16 pair stands, or -1: Python can hold one in a str, but it is not text and has no UTF-8."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as wrong:
            return wrong.start
    return -1
