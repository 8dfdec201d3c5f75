"""What an operation needs and what it gives, as data: inputs and output shapes.

Declarations are written with plain Python (``["item/id", "?item/hint", {"item/prices": ["price/cents"]}]``) or as EDN
(``[:item/id (? :item/hint) {:item/prices [:price/cents]}]``); both end here as the same frozen values. Knows nothing of
entities, plans or queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, TypeAlias

from psi.edn import Keyword, Symbol, Vector, loads

__all__ = ["Input", "Inputs", "Shape", "ShapeError", "inputs_of", "merge_shapes", "output_of", "shape_key"]


@dataclass(frozen=True, slots=True)
class Input:
    """One needed attribute. ``below`` holds what its value must have in turn, ``None`` where the value is taken
    whole."""

    attribute: str
    optional: bool = False
    below: Inputs | None = None


Inputs: TypeAlias = tuple[Input, ...]

# What a map has or will have: attribute → shape of its value. ``None`` stands for a value without entities (an empty
# collection, nil): it satisfies every nested need, because there is nothing in it that could lack something.
Shape: TypeAlias = "Mapping[str, Shape | None]"


class ShapeError(ValueError):
    """A declaration that cannot be read; the operation's constructor adds whose it is."""


def inputs_of(declared: Any) -> Inputs:
    """Read an input declaration; the last word on an attribute that is named twice is the stricter one."""
    found: dict[str, Input] = {}
    for item in _items(declared, "input"):
        for new in _inputs_of_item(item):
            found[new.attribute] = _merge_inputs(found[new.attribute], new) if new.attribute in found else new
    return tuple(found.values())


def _inputs_of_item(item: Any) -> Iterable[Input]:
    if isinstance(item, Mapping):
        for key, below in item.items():
            head = _single(key)
            yield Input(head.attribute, head.optional, inputs_of(below))
    else:
        yield _single(item)


def _single(item: Any) -> Input:
    match item:
        case Symbol():
            pass
        case str() if item.startswith("?") and len(item) > 1:
            return Input(_attribute(item[1:]), optional=True)
        case str():
            return Input(_attribute(item))
        case tuple() if not isinstance(item, Vector) and len(item) == 2 and item[0] == "?":
            return Input(_attribute(item[1]), optional=True)
    raise ShapeError(f"expected an attribute, '?attribute' or {{attribute: [..]}}, found {item!r}")


def _merge_inputs(one: Input, other: Input) -> Input:
    below = other.below if one.below is None else one.below if other.below is None else (*one.below, *other.below)
    return Input(one.attribute, one.optional and other.optional, below)


def output_of(declared: Any) -> Shape:
    """Read an output declaration. The branches of a union are all possible, so their attributes are joined."""
    shape: Shape = {}
    for item in _items(declared, "output"):
        shape = merge_shapes(shape, _output_of_item(item))
    return shape


def _output_of_item(item: Any) -> Shape:
    if isinstance(item, Mapping):
        return {_attribute(key): _output_below(below) for key, below in item.items()}
    return {_attribute(item): {}}


def _output_below(below: Any) -> Shape:
    if isinstance(below, Mapping):
        shape: Shape = {}
        for branch in below.values():
            shape = merge_shapes(shape, output_of(branch))
        return shape
    return output_of(below)


def merge_shapes(one: Shape, other: Shape) -> Shape:
    """The attributes of both, nested ones joined."""
    merged = dict(one)
    for attribute, below in other.items():
        mine = merged.get(attribute)
        merged[attribute] = merge_shapes(mine, below) if mine and below else (mine or below)
    return merged


def shape_key(shape: Shape | None) -> Any:
    """A shape as a hashable value."""
    if not shape:
        return shape if shape is None else ()
    return frozenset((attribute, shape_key(below)) for attribute, below in shape.items())


def _items(declared: Any, what: str) -> Iterable[Any]:
    if isinstance(declared, str) and declared.lstrip().startswith("["):
        declared = loads(declared)
    if isinstance(declared, str | Mapping) or not isinstance(declared, Iterable):
        raise ShapeError(f"expected a list of attributes as {what}, found {declared!r}")
    return declared


def _attribute(item: Any) -> str:
    if isinstance(item, Symbol) or not isinstance(item, str) or not item:
        raise ShapeError(f"expected an attribute name, found {item!r}")
    name = str(item)
    if not isinstance(item, Keyword) and name.startswith(":"):
        name = name[1:]
    if not name or any(c.isspace() or c in "[]{}()\"';" for c in name):
        raise ShapeError(f"{item!r} is not an attribute name")
    return intern(name)
