"""Where text is cut into tokens, and where in the text a token is: what stands there is the reader's business."""

from __future__ import annotations

import re
from itertools import islice

from psi.edn.atoms import Misread, Unclosed
from psi.edn.errors import ReadError
from psi.edn.grammar import find_surrogate

__all__ = ["CLOSERS", "CLOSING", "END", "TOKEN", "decoded", "placed", "short"]

# Every character belongs to a token or to what stands before one, so nothing is skipped unseen; \Z takes what follows
# the last token. All repeats are possessive: they never go back, so the time is linear whatever the text.
TOKEN = re.compile(
    r"""
    [\t-\r\x1c-\x20,]*+ (?: ;[^\n]*+ [\t-\r\x1c-\x20,]*+ )*+
    (   " [^"\\]*+ (?: \\. [^"\\]*+ )*+ "
    |   [()\[\]{}]
    |   \\. [^\t-\r\x1c-\x20,;"()\[\]{}\\]*+
    |   \#[_{("]
    |   [^\t-\r\x1c-\x20,;"()\[\]{}\\]++
    |   ["\\]
    |   \Z
    )
    """,
    re.VERBOSE | re.DOTALL,
)
CLOSERS = {"(": ")", "[": "]", "{": "}", "#{": "}"}
CLOSING = frozenset(CLOSERS.values())

END = "the end of the text"


def decoded(text: str | bytes) -> str:
    """The text, which is refused if it could not have come from UTF-8."""
    if isinstance(text, str):
        if (half := find_surrogate(text)) >= 0:
            raise ReadError(*_position(text, half), "text", "half of a surrogate pair")
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as wrong:
        before = text[: wrong.start].decode()
        raise ReadError(*_position(before, len(before)), "UTF-8", f"the byte 0x{text[wrong.start]:02x}") from None


def placed(wrong: Misread, text: str, tokens: list[str], index: int) -> ReadError:
    """The error for what is wrong with the token at an index."""
    token = tokens[index]
    hint = wrong.hint
    offset = _offset(text, index) + wrong.offset
    if isinstance(wrong, Unclosed):
        opening = index if token == '"' else _opening(tokens, index)
        line, column = _position(text, _offset(text, opening))
        hint = f"the {tokens[opening]} opened at line {line}, column {column} is not closed"
        if token == '"':
            token, offset = "", len(text)
    elif wrong.whole and token in CLOSING:
        index = _opening(tokens, index)
        token, offset = tokens[index], _offset(text, index)
    return ReadError(*_position(text, offset), wrong.expected, wrong.found or _named(token), hint)


def _named(token: str) -> str:
    """The token as it can be shown: what has no form on paper by its number."""
    if not token:
        return END
    return short(token) or f"the character U+{ord(token[0]):04X}"


def _opening(tokens: list[str], index: int) -> int:
    """Where the innermost bracket open before a token was opened."""
    opened = []
    for position, token in enumerate(islice(tokens, index)):
        if token in CLOSERS:
            opened.append(position)
        elif token in CLOSING:
            opened.pop()
    return opened[-1]


def _offset(text: str, index: int) -> int:
    return next(islice(TOKEN.finditer(text), index, None)).start(1)


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def short(text: str) -> str:
    """Enough of it to be recognised, on one line."""
    start = text if len(text) <= 40 else f"{text[:39]}…"
    return "".join(character if character.isprintable() else " " for character in start).strip()
