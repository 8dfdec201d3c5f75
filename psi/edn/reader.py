"""EDN text to Python values. Never recurses, never evaluates; works out a position only when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from operator import length_hint
from typing import Any
from uuid import UUID

from psi.edn.alike import MOST_ALIKE, Alike, are_alike, can_be_alike
from psi.edn.atoms import NAMESPACE, TAGS, Misread, Unclosed, read_atom, read_string
from psi.edn.grammar import MAX_DEPTH, RESERVED
from psi.edn.recent import Recent
from psi.edn.tokens import CLOSERS, CLOSING, END, TOKEN, decoded, placed, short
from psi.edn.values import HASHABLE_DEPTH, Keyword, List, Map, String, Symbol, Vector
from psi.edn.writer import dumps

__all__ = ["loads"]

# What waits for a value: a discard, a tag, a #:namespace, and the text itself, which after that waits for its end.
# The two of the text are told apart by identity; no token could be either.
_DISCARD, _TEXT = "#_", "the text"

_NOTHING: Any = object()

# Names and numbers by their token. A keyword read twice is then one object, which is what a dict finds fastest.
_KNOWN: Recent[str, Any] = Recent()


def loads(text: str | bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """The one value the text holds; comments and discarded forms may stand around it."""
    text = decoded(text)
    tokens = TOKEN.findall(text)
    source = iter(tokens)
    try:
        return _read(source, max_depth)
    except Misread as wrong:
        raise placed(wrong, text, tokens, len(tokens) - length_hint(source) - 1) from None


def _read(source: Iterator[str], max_depth: int) -> Any:
    known = _KNOWN.get
    outer: list[tuple[str, list[Any], list[str], int]] = []
    opener = ""
    items: list[Any] = []
    waiting = [_TEXT]
    frozen = 0
    alike = Alike()
    for token in source:
        value = known(token, _NOTHING)
        if value is _NOTHING:
            if not token:
                break
            if token[0] == '"':
                value = read_string(token)
                if frozen or (opener == "{" and not len(items) & 1):
                    value = String(value)
            elif token in CLOSERS:
                if frozen or token == "#{" or (opener == "{" and not len(items) & 1):
                    inner = frozen + 1
                    if inner > HASHABLE_DEPTH:
                        raise Misread(f"at most {HASHABLE_DEPTH} levels inside a map key or a set")
                else:
                    inner = 0
                outer.append((opener, items, waiting, frozen))
                if len(outer) > max_depth:
                    raise Misread(f"at most {max_depth} levels of nesting")
                opener, items, waiting, frozen = token, [], [], inner
                continue
            elif token in CLOSING:
                if waiting or token != CLOSERS[opener]:
                    raise _misplaced(opener, waiting)
                value = _collection(opener, items, frozen)
                opener, items, waiting, frozen = outer.pop()
            elif token[0] == "#" and (token == _DISCARD or token in TAGS or NAMESPACE.fullmatch(token)):
                waiting.append(token)
                continue
            else:
                value = read_atom(token)
                if not can_be_alike(value):
                    _KNOWN.keep(token, value)
                elif alike.meet(value):
                    raise _crowd()
        if waiting:
            value = _awaited(waiting, value)
            if value is _NOTHING:
                continue
            if value.__class__ is UUID and alike.meet(value):
                raise _crowd()
        items.append(value)
    if waiting != [END]:
        raise _misplaced(opener, waiting)
    return items[0]


def _collection(opener: str, items: list[Any], frozen: int) -> Any:
    if opener == "[":
        return Vector(items) if frozen else items
    if opener == "(":
        return List(items)
    if opener == "{":
        if len(items) > 2 * MOST_ALIKE:
            _check_alike("key of a map", items[::2])
        alternating = iter(items)
        entries = dict(zip(alternating, alternating))  # noqa: B905  strict= costs more than the zip
        if 2 * len(entries) != len(items):
            raise _collision("key of a map", items[::2]) if not len(items) & 1 else _no_value(items[-1])
        return Map(entries) if frozen else entries
    _check_alike("element of a set", items)
    elements = frozenset(items)
    if len(elements) != len(items):
        raise _collision("element of a set", items)
    return elements


def _check_alike(what: str, items: list[Any]) -> None:
    """Before the items are hashed into one: that would be slow already. Looks at composites, too, such as [1 2]."""
    if not are_alike(items):
        return
    alike = Alike()
    for item in items:
        if item in alike.get(hash(item), ()):
            raise _collision(what, items)
        if alike.meet(item):
            raise Misread(f"each {what} with a hash that at most {MOST_ALIKE} share", found="more", whole=True)


def _crowd() -> Misread:
    return Misread(
        f"at most {MOST_ALIKE} numbers with one hash",
        "those that are a multiple of 2305843009213693951 apart share one, and whatever is keyed by them is slow",
    )


def _no_value(key: Any) -> Misread:
    return Misread(f"a value after the key {short(dumps(key))}")


def _collision(what: str, items: list[Any]) -> Misread:
    """Which two are equal. EDN tells 1 from 1.0 and true, Python does not, and keeping one of them would lose data."""
    seen: dict[Any, Any] = {}
    for item in items:
        if item in seen:
            break
        seen[item] = item
    first, second = short(dumps(seen[item])), short(dumps(item))
    found = f"{first} twice" if first == second else f"{first} and {second}, which are equal in Python"
    return Misread(f"each {what} once", found=found, whole=True)


def _awaited(waiting: list[str], value: Any) -> Any:
    """What becomes of a value that stands after the tokens in ``waiting``; the nearest of them takes it first."""
    while waiting:
        token = waiting.pop()
        if token is END:
            raise Misread(END, whole=True)
        if token is _TEXT:
            waiting.append(END)
            return value
        if token == _DISCARD:
            return _NOTHING
        value = _tagged(token, value)
    return value


def _tagged(token: str, value: Any) -> Any:
    if tag := TAGS.get(token):
        if type(value) is not str and type(value) is not String:
            raise Misread(f"a string after {token}", whole=True)
        return tag(value)
    if not isinstance(value, dict):
        raise Misread(f"a map after {short(token)}", whole=True)
    keys = [_qualified(key, token.removeprefix("#:")) for key in value]
    entries = dict(zip(keys, value.values(), strict=True))
    if len(entries) != len(keys):
        raise _collision("key of a map", keys)
    return type(value)(entries)


def _qualified(key: Any, namespace: str) -> Any:
    if isinstance(key, Keyword) or (isinstance(key, Symbol) and key != "/"):
        if key.namespace is None:
            return type(key)(f"{namespace}/{key}")
        # The symbol _/nil stays as it is: without its namespace it would be no symbol.
        if key.namespace == "_" and key.name not in RESERVED:
            return type(key)(key.name)
    return key


def _misplaced(opener: str, waiting: list[str]) -> Misread:
    """Why the token at hand, a closing bracket or the end of the text, cannot stand where it does."""
    if waiting and waiting[-1] is END:
        return Misread(END)
    if waiting:
        return Misread("a value" if waiting[-1] is _TEXT else f"a value after {short(waiting[-1])}")
    return Unclosed(CLOSERS[opener])
