"""Python values to EDN text. Never recurses, so depth costs memory only; never guesses at a type it does not know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from itertools import pairwise, repeat
from typing import Any

from psi.edn.errors import WriteError
from psi.edn.grammar import MAX_DEPTH, NAME, find_surrogate
from psi.edn.recent import Recent
from psi.edn.spelling import KEYWORDS, SCALARS, Unwritable
from psi.edn.values import Keyword, List, Map, String, Vector

__all__ = ["dumps"]

Parts = Iterator[tuple[str, Any]]


def dumps(value: Any) -> str:
    """The EDN text of a value.

    A plain str is a string, except as a map key that spells a keyword: psi's dicts have attribute names for keys, so
    ``{"psi.scheduler/kind": Keyword("message")}`` is written ``{:psi.scheduler/kind :message}``.
    """
    try:
        text = _write(value)
    except Unwritable as refusal:
        culprit = refusal.value
        raise _refused(value, lambda item: item is culprit, refusal.reason) from None
    if find_surrogate(text) >= 0:
        raise _refused(value, _has_surrogate, "half of a surrogate pair is not text")
    return text


def _write(root: Any) -> str:
    """Each part comes with the text before it: a space, or a key between spaces.

    The space before the first part is taken away at the end, with the NUL that every opening bracket leaves there. No
    other NUL is in the text: strings and characters escape theirs, names have none.
    """
    pieces: list[str] = []
    write = pieces.append
    scalar_of = SCALARS.get
    collection_of = _COLLECTIONS.get
    outer: list[tuple[Parts, str]] = []
    parts: Parts = iter((("", root),))
    close = ""
    while True:
        for before, item in parts:
            write(before)
            kind = type(item)
            scalar = scalar_of(kind)
            if scalar is not None:
                write(scalar(item))
                continue
            collection = collection_of(kind)
            if collection is None:
                kind = _nearest(item)
                if kind in SCALARS:
                    write(SCALARS[kind](item))
                    continue
                collection = _COLLECTIONS[kind]
            if len(outer) == MAX_DEPTH:
                raise Unwritable(root, f"it is nested deeper than {MAX_DEPTH} levels, or holds itself")
            outer.append((parts, close))
            bracket, close, parts_of = collection
            write(bracket)
            # Without strict=, here and below: a keyword argument costs more than the zip itself.
            parts = parts_of(item, pieces) if parts_of else zip(_SPACES, item)  # noqa: B905
            break
        else:
            if not outer:
                return _without_first_spaces("".join(pieces))
            write(close)
            parts, close = outer.pop()


def _without_first_spaces(text: str) -> str:
    return text.replace("\0 ", "").replace("\0", "")


def _nearest(value: Any) -> type:
    """The known type that a value's own type descends from. A member of an Enum is not taken for its value."""
    if not isinstance(value, Enum):
        for ancestor in type(value).__mro__:
            if ancestor in SCALARS or ancestor in _COLLECTIONS:
                return ancestor
        if isinstance(value, Mapping):
            return dict
    raise Unwritable(value, "EDN has no form for that type")


_SPACES = repeat(" ")


def _entries(entries: Mapping[Any, Any], _: list[str]) -> Parts:
    keys = [*map(_KEYS.__getitem__, entries)]
    pairs = zip(keys, entries.values())  # noqa: B905
    return pairs if "" not in keys else _entries_with_collections(entries, pairs)


def _entries_with_collections(entries: Mapping[Any, Any], pairs: Parts) -> Parts:
    for key, (before, value) in zip(entries, pairs):  # noqa: B905
        if not before:
            yield " ", key
        yield before or " ", value


def _elements(elements: Collection[Any], pieces: list[str]) -> Parts:
    """Python gives the elements of a set in an order of its own; their text gives one that is always the same."""
    if SCALARS.keys() >= {*map(type, elements)}:
        pieces += sorted(f" {SCALARS[type(element)](element)}" for element in elements)
        return
    starts = []
    for element in elements:
        starts.append(len(pieces))
        yield " ", element
    if starts:
        texts = ["".join(pieces[start:end]) for start, end in pairwise((*starts, len(pieces)))]
        pieces[starts[0] :] = sorted(map(_without_first_spaces, texts))


class _Keys(Recent[Any, str]):
    """Keys and the text that goes before their values: none if the key has to be written as a part of its own.

    Kept are keywords only, filed under the Keyword. A plain str of that name finds it there too; a String or a Symbol,
    not being equal to it, does not.
    """

    def __missing__(self, key: Any) -> str:
        if type(key) in _COLLECTIONS:
            return ""
        key = _as_key(key)
        if type(key) is Keyword:
            return self.keep(key, f" {KEYWORDS[key]} ")
        return f" {SCALARS[type(key)](key)} " if type(key) in SCALARS else ""


def _as_key(key: Any) -> Any:
    """A str that is none of EDN's own kinds spells a keyword if it can; a dict could not tell it from that keyword."""
    if type(key) is str or (isinstance(key, str) and type(key) not in SCALARS):
        return Keyword(key) if NAME.fullmatch(key) else String(key)
    return key


_KEYS = _Keys()

_COLLECTIONS: dict[type, tuple[str, str, Callable[[Any, list[str]], Parts] | None]] = {
    dict: ("{\0", "}", _entries),
    Map: ("{\0", "}", _entries),
    list: ("[\0", "]", None),
    tuple: ("[\0", "]", None),
    Vector: ("[\0", "]", None),
    List: ("(\0", ")", None),
    set: ("#{\0", "}", _elements),
    frozenset: ("#{\0", "}", _elements),
}


def _has_surrogate(item: Any) -> bool:
    return isinstance(item, str) and find_surrogate(item) >= 0


def _refused(root: Any, is_culprit: Callable[[Any], bool], reason: str) -> WriteError:
    culprit, path = _find(root, is_culprit)
    steps = [dumps(_as_key(step)) for step in path[-20:]]
    if len(path) > len(steps):
        steps.insert(0, "…")
    where = f" at [{' '.join(steps)}]" if steps else ""
    return WriteError(f"cannot write a value of type {type(culprit).__name__}{where}: {reason}", path)


_HERE = object()


def _find(root: Any, is_culprit: Callable[[Any], bool]) -> tuple[Any, tuple[Any, ...]]:
    """The culprit and the way to it. Only a refusal pays for the way: the value is walked once more, in order."""
    path: list[Any] = []
    levels = [iter([(_HERE, root)])]
    while levels:
        del path[len(levels) - 1 :]
        for step, item in levels[-1]:
            path.append(step)
            if is_culprit(item):
                return item, tuple(step for step in path if step is not _HERE)
            levels.append(_steps(item))
            break
        else:
            levels.pop()
    return root, ()


def _steps(value: Any) -> Iterator[tuple[Any, Any]]:
    """What a value holds and the step that leads there. To a key or an element of a set there is none."""
    match value:
        case Mapping():
            for key, item in value.items():
                yield _HERE, key
                yield key, item
        case list() | tuple():
            yield from enumerate(value)
        case set() | frozenset():
            yield from ((_HERE, item) for item in value)
