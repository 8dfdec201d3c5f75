"""Equality that Python's own is too kind for: the same types all the way down, 1.0 is not 1, and NaN is NaN."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any


def exactly(value: Any) -> Hashable:
    """A form of the value that is equal to that of another only if both are the same to the last type."""
    match value:
        case Mapping():
            return type(value), frozenset((exactly(key), exactly(item)) for key, item in value.items())
        case list() | tuple():
            return type(value), tuple(exactly(item) for item in value)
        case set() | frozenset():
            return type(value), frozenset(exactly(item) for item in value)
        case datetime():
            return type(value), value.isoformat()
        case _:
            return type(value), str(value)
