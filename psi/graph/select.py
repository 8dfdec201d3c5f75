"""The answer: what the query asked for, cut out of the finished entity tree. Reads, copies, and resolves nothing.

Iterative, because results nest as deep as the data does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psi.edn import List, Vector, freeze
from psi.graph.level import ERRORS, MUTATION_ERROR, Descent, Level

__all__ = ["Entity", "SetOf", "rebuild", "select", "settled"]


class Entity(dict[Any, Any]):
    """An entity being filled, with two notes about its values."""

    __slots__ = ("ready", "touched")

    def __init__(self, source: Mapping[Any, Any]) -> None:
        super().__init__(source)
        self.ready: dict[Any, Any] = {}  # answers that are already cut, by key
        self.touched: set[Any] = set()  # keys whose values hold other entities being filled


class SetOf(list[Any]):
    """The entities of a set while they are worked on: sets hold only what is frozen."""

    __slots__ = ()


Work = list[tuple[Level, Mapping[Any, Any], dict[Any, Any]]]
Late = list[tuple[dict[Any, Any], Any, list[Any]]]


def select(level: Level, entity: Mapping[Any, Any]) -> dict[Any, Any]:
    """The part of the entity tree that ``level`` asks for, keys in query order."""
    answer: dict[Any, Any] = {}
    late: Late = []
    work: Work = [(level, entity, answer)]
    while work:
        asked, found, out = work.pop()
        ready, touched = (found.ready, found.touched) if type(found) is Entity else (_NOTHING, _NO_KEYS)
        if asked.wildcard:
            for key, value in found.items():
                if key not in asked.cut_keys:
                    out[key] = settled(value) if key in touched else value
        for item in asked.items:
            key = item.key
            if key not in found:
                continue
            value = found[key]
            if item.descent is None:
                out[key] = settled(value) if key in touched else value
            elif key in ready:
                out[key] = ready[key]
            else:
                out[key] = _select_value(item.descent, value, work, out, key, late)
        for key in (ERRORS, MUTATION_ERROR):
            if key in found:
                out[key] = found[key]
    # Sets are frozen last and innermost first, when everything in them is complete.
    for out, key, elements in reversed(late):
        out[key] = frozenset(freeze(element) for element in elements)
    return answer


_NOTHING: dict[Any, Any] = {}
_NO_KEYS: set[Any] = set()


def _select_value(descent: Descent, value: Any, work: Work, out: dict[Any, Any], key: Any, late: Late) -> Any:
    if isinstance(value, Mapping):
        level = descent.pick(value)
        if level is None:
            return None
        below: dict[Any, Any] = {}
        work.append((level, value, below))
        return below
    if isinstance(value, list | tuple | set | frozenset):
        elements: list[Any] = []
        for element in value:
            if isinstance(element, Mapping):
                level = descent.pick(element)
                if level is not None:
                    below = {}
                    work.append((level, element, below))
                    elements.append(below)
            elif element is not None:
                elements.append(element)
        if isinstance(value, SetOf | set | frozenset):
            late.append((out, key, elements))
            return None
        return rebuild(value, elements)
    return value


def rebuild(like: Any, elements: list[Any]) -> Any:
    """The elements in a collection of the same kind."""
    kind = type(like)
    if kind is list or not isinstance(like, tuple):
        return elements
    return kind(elements) if kind in (tuple, List, Vector) else tuple(elements)


def settled(value: Any, without: str | None = None) -> Any:
    """A whole value that was worked on, as others may keep it: plain maps, and sets that are sets again."""
    answer: dict[str, Any] = {}
    work: list[tuple[Any, Any, Any]] = [(value, answer, "")]
    late: list[tuple[Any, Any, list[Any], Any]] = []
    while work:
        found, into, key = work.pop()
        if isinstance(found, Entity):
            out = into[key] = dict.fromkeys(name for name in found if name != without)
            work.extend((below, out, name) for name, below in found.items() if name != without)
        elif isinstance(found, list | tuple):
            elements = into[key] = list(found)
            work.extend((element, elements, place) for place, element in enumerate(found))
            if isinstance(found, SetOf | tuple):
                late.append((into, key, elements, found))
        else:
            into[key] = found
    # What cannot be changed once it is made is made last, innermost first.
    for into, key, elements, like in reversed(late):
        into[key] = frozenset(map(freeze, elements)) if isinstance(like, SetOf) else rebuild(like, elements)
    return answer[""]
