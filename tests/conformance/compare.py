"""Is an answer the same as the expected one? As data: maps and sets unordered, kinds of values told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psi.edn import Keyword, Symbol, loads


def same(expected: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    if "error" in expected or "error" in got:
        return bool(expected.get("error", {}).get("kind") == got.get("error", {}).get("kind"))
    if "data" in expected:
        return (
            "data" in got
            and _value(expected["data"]) == _value(got["data"])
            and _errors(expected["attr_errors"]) == _errors(got["attr_errors"])
        )
    return "ok" in got and _value(expected["ok"]) == _value(got["ok"])


def called_too_often(expected: Mapping[str, Any], got: Mapping[str, Any]) -> list[str]:
    """The resolvers that were called more often than Pathom calls them."""
    allowed = expected["calls"]
    return sorted(name for name, sizes in got["calls"].items() if len(sizes) > len(allowed.get(name, ())))


def _errors(errors: list[dict[str, Any]]) -> set[tuple[Any, Any, str]]:
    return {(_value(error["path"]), _value(error["attr"]), error["cause"]) for error in errors}


def _value(text: str) -> Any:
    return _distinct(loads(text))


def _distinct(value: Any) -> Any:
    """The value in a form in which 1, 1.0 and true differ, and a keyword from a string."""
    if isinstance(value, Mapping):
        return ("map", frozenset((_distinct(key), _distinct(below)) for key, below in value.items()))
    if isinstance(value, list | tuple):
        return ("sequence", tuple(map(_distinct, value)))
    if isinstance(value, frozenset):
        return ("set", frozenset(map(_distinct, value)))
    kind = type(value) if isinstance(value, Keyword | Symbol) or not isinstance(value, str) else str
    return (kind, value)
