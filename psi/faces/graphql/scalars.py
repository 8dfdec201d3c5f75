"""Scalars on their way in: how each is read from a variable, and JSON from a document. Out is :mod:`values`.

What cannot be read is a ValueError with a sentence, which the library tells with the place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from graphql import (
    FloatValueNode,
    IntValueNode,
    ListValueNode,
    NullValueNode,
    ObjectValueNode,
    ValueNode,
    VariableNode,
)

from psi.core.clock import read_instant
from psi.faces.wire import DEEPEST
from tool.render import as_json

__all__ = ["read_instant_text", "read_json_literal", "read_long", "read_text"]

_DIGITS: Final = 4_300  # of a whole number: what Python reads, from JSON as well


def read_instant_text(value: Any) -> Any:
    found = read_instant(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("an Instant is an ISO-8601 instant in UTC, e.g. 2026-04-22T13:00:00Z")
    return found


def read_long(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise ValueError("a Long is a 64-bit integer")
    return value


def read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError('EQL is a string, e.g. "[:psi.system/version]"')
    return value


def read_json_literal(node: ValueNode, variables: Mapping[str, Any] | None = None) -> Any:
    """What stands in the document, as it would have come in a variable. A variable in it that was not given leaves its
    key out; in a list, where something has to stand, it is null."""
    return _read(node, variables or {}, DEEPEST)


def _read(node: ValueNode, variables: Mapping[str, Any], levels: int) -> Any:
    match node:
        case ListValueNode(values=values):
            below = _below(levels)
            return [_read(each, variables, below) for each in values]
        case ObjectValueNode(fields=fields):
            below = _below(levels)
            return {
                each.name.value: _read(each.value, variables, below)
                for each in fields
                if not isinstance(each.value, VariableNode) or each.value.name.value in variables
            }
        case VariableNode():
            return _came(variables.get(node.name.value))
        case NullValueNode():
            return None
        case IntValueNode():
            return _whole(node.value)
        case FloatValueNode():
            return _number(node.value)
    found: Any = node
    return found.value  # a text, a word or a boolean


def _came(value: Any) -> Any:
    """The value of a variable as it came; read as its type has it, it may be no JSON any more."""
    match value:
        case Enum():
            return value.name
        case Mapping():
            return {name: _came(below) for name, below in value.items()}
        case list():
            return [_came(each) for each in value]
    return as_json(value)


def _below(levels: int) -> int:
    if not levels:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels")
    return levels - 1


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise ValueError(f"a whole number has at most {_DIGITS} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value
