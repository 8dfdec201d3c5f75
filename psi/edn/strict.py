"""JSON at its word: a key that is given twice is refused, as in EDN, and so is what is no JSON at all, such as NaN."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["Twice", "no_constant", "once", "read_json"]


class Twice(ValueError):
    """Which of the two is meant would be a guess."""


def read_json(text: str) -> Any:
    """The value, or ValueError with a sentence about what is wrong."""
    return json.loads(text, object_pairs_hook=once, parse_constant=no_constant)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Twice(f"key {json.dumps(twice[:100])} is given twice")
    return found


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
