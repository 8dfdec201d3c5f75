"""Answers as JSON data: keywords lose their colon, instants are ISO-8601 with a Z, sets are sorted lists. And what is
JSON data to begin with as EDN."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

from psi.core.clock import instant_text
from psi.edn import Keyword, WriteError, dumps

__all__ = ["as_edn", "as_json"]

_NAME: Final = re.compile(r"[^\W\d][\w.*+!?$%&=<>-]*(/[^\W\d][\w.*+!?$%&=<>-]*)?")

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


def as_edn(value: Any, named: Callable[[str], str] = str) -> str:
    """JSON data as EDN text: keys are keywords where they can be. ``named``: a key as EDN calls it."""
    return dumps(_keywords(value, named))


def _keywords(value: Any, named: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        keys = {key: named(key) for key in value}
        return {
            Keyword(name) if _NAME.fullmatch(name) else name: _keywords(value[key], named) for key, name in keys.items()
        }
    return [_keywords(each, named) for each in value] if isinstance(value, list) else value
