"""Answers as JSON data: keywords lose their colon, instants are ISO-8601 with a Z, sets are sorted lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

from psi.core.clock import instant_text
from psi.edn import WriteError, dumps

__all__ = ["as_json"]


# What is JSON already; most of what there is to write, so it is asked first, and by class alone.
_PLAIN: Final = frozenset((str, int, bool, type(None)))


def as_json(value: Any) -> Any:
    """The value in the types that JSON has."""
    if value.__class__ in _PLAIN:
        return value
    if value.__class__ is dict:
        return {
            key if key.__class__ is str else _key(key): below if below.__class__ in _PLAIN else as_json(below)
            for key, below in value.items()
        }
    match value:
        case None | bool() | int():
            return value
        case str():
            return str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return instant_text(value)
        case Mapping():
            return {_key(key): as_json(below) for key, below in value.items()}
        case set() | frozenset():
            return sorted(map(as_json, value), key=str)
        case list() | tuple():
            return [as_json(item) for item in value]
        case UUID():
            return str(value)
        case Decimal() | Fraction():
            return float(value)
    return _written(value)


def _key(key: Any) -> str:
    return str(key) if isinstance(key, str) else _written(key)


def _written(value: Any) -> str:
    try:
        return dumps(value)
    except WriteError:
        return str(value)
