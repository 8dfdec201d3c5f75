"""Cutting an operation's input out of an entity, and naming it so that equal inputs are known again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from psi.edn import List, Map, Vector, kind_key
from psi.graph.level import ERRORS
from psi.graph.select import Entity, SetOf, rebuild, settled
from psi.graph.shape import Inputs

__all__ = ["ABSENT_KEY", "all_differ", "all_of_size", "cut_input", "fits", "input_key", "place_of"]


class _Absent:
    def __repr__(self) -> str:
        return "<absent>"


_ABSENT: Final = _Absent()
ABSENT_KEY: Final = _ABSENT  # how an optional input that is not there stands in a key

# Of these kinds two values are equal exactly when they are the same to EDN: they can be keys as they are. Not so bool
# and float (1, 1.0 and True are one key to Python), nor the texts that are no strings.
_SAFE: Final = frozenset((int, str))

_WORTH_A_LOOK: Final = 8

_WORKED_ON: Final = frozenset((Entity, SetOf, list, tuple, List, Vector))  # may hold entities being filled


def cut_input(entity: Mapping[Any, Any], inputs: Inputs) -> dict[str, Any] | None:
    """Exactly the declared input, nothing more; ``None`` when something required is not there."""
    data: dict[str, Any] = {}
    for item in inputs:
        attribute = item.attribute
        if attribute in entity:
            value = entity[attribute]
            if item.below is not None:
                value = _cut_value(value, item.below)
                if value is _ABSENT:
                    if item.optional:
                        continue
                    return None
            elif type(value) in _WORKED_ON:
                value = settled(value, without=ERRORS)
            data[attribute] = value
        elif not item.optional:
            return None
    return data


def _cut_value(value: Any, below: Inputs) -> Any:
    if isinstance(value, Mapping):
        cut = cut_input(value, below)
        return _ABSENT if cut is None else cut
    if isinstance(value, list | tuple | set | frozenset):
        is_set = isinstance(value, SetOf | set | frozenset)
        elements: list[Any] = []
        for element in value:
            if isinstance(element, Mapping):
                cut = cut_input(element, below)
                if cut is None:
                    return _ABSENT
                elements.append(Map(cut) if is_set else cut)
            else:
                elements.append(element)
        return frozenset(elements) if is_set else rebuild(value, elements)
    return value


def input_key(data: Mapping[str, Any], inputs: Inputs) -> Any:
    """A hashable name for an input: the value itself for one input, a tuple in declared order for several."""
    if len(inputs) == 1:
        value = data.get(inputs[0].attribute, ABSENT_KEY)
        return value if type(value) in _SAFE else _key(value)
    return tuple([_key(data.get(item.attribute, ABSENT_KEY)) for item in inputs])


def _key(value: Any) -> Any:
    return value if value is ABSENT_KEY else kind_key(value)


def place_of(elements: Sequence[Any], element: Any, at_least: int) -> int:
    """Where an element stands in its list; what was dropped before it counts."""
    places = range(at_least, len(elements))
    return next((place for place in places if elements[place] is element), at_least)


def fits(element: Any, keys: tuple[Any, ...], relevant: frozenset[str]) -> bool:
    """Is it an entity that has, of all that is relevant, just these keys?"""
    return isinstance(element, Mapping) and all((key in element) == (key in keys) for key in relevant)


def all_of_size(elements: Sequence[Any], size: int) -> bool:
    """Has every element so many keys? Asked once for a list that is not tiny, it need not be asked of each."""
    if len(elements) < _WORTH_A_LOOK:
        return False
    try:
        return set(map(len, elements)) == {size}
    except TypeError:
        return False


def all_differ(elements: Sequence[Any], attribute: str) -> bool:
    """Does no value of this attribute occur twice? Cheaper than remembering each, if the list is not tiny."""
    if len(elements) < _WORTH_A_LOOK:
        return False
    try:
        return len({element[attribute] for element in elements}) == len(elements)
    except (KeyError, TypeError):
        return False
