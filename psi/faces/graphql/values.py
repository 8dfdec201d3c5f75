"""Values on their way out: what the graph knows, as GraphQL's scalars have it. The one place for each conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from psi.core.clock import instant_text
from psi.faces.graphql.names import enum_name
from psi.graph.attributes import (
    DATA,
    FLAG,
    INSTANT,
    INTEGER,
    LONG,
    NAME,
    TEXT,
    WORD,
    Attribute,
    Enum,
    ListOf,
    Scalar,
    Type,
)
from tool.render import as_json

__all__ = ["Convert", "Unfit", "converter", "instant", "words"]

Convert = Callable[[Any], Any]

_INT: Final = 2**31
_LONG: Final = 2**63


class Unfit(TypeError):
    """A value that is not what its attribute was declared to be."""

    def __init__(self, expected: str, value: Any) -> None:
        super().__init__(f"expected {expected}, got {type(value).__name__}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unfit("text", value)
    return str(value)  # a keyword or a symbol loses what made it one


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unfit("a boolean", value)
    return value


def _whole(bound: int, name: str) -> Convert:
    def whole(value: Any) -> int:
        if value.__class__ is not int or not -bound <= value < bound:
            raise Unfit(name, value)
        found: int = value
        return found

    return whole


# A list shows few different instants, or the same ones again: a schedule and its neighbours, a list and its next look.
@lru_cache(maxsize=8_192)
def instant(value: datetime) -> str:
    """What :func:`instant_text` gives, in half the time for those in UTC: a list that has changed has a thousand new
    ones. Put together anew is how a datetime loses its zone soonest."""
    if value.tzinfo is not UTC:
        return instant_text(value)
    text = datetime.combine(value, value.time()).isoformat()
    micros = value.microsecond
    return f"{text[:-3]}Z" if micros and not micros % 1000 else f"{text}Z"


def _instant(value: Any) -> str:
    if not isinstance(value, datetime):
        raise Unfit("an instant", value)
    return instant(value)


def words(kind: Enum) -> Mapping[str, str]:
    """The names in GraphQL of an enum's words. Text alone is found faster than keywords are."""
    return {str(word): enum_name(word) for word in kind.values}


_PLAIN: Final = frozenset((str, int, bool, type(None)))
_NAMES: Final = frozenset((str,))


def _data(value: Any) -> Any:
    # Summaries of errors and configs are flat maps of plain values, in every entry of a list: JSON as they are.
    if value.__class__ is dict and _PLAIN.issuperset(map(type, value.values())) and _NAMES.issuperset(map(type, value)):
        return value
    return as_json(value)


_SCALARS: Final[Mapping[Scalar, Convert]] = {
    TEXT: _text,
    WORD: _text,
    NAME: _text,
    INTEGER: _whole(_INT, "a 32-bit integer"),
    LONG: _whole(_LONG, "a 64-bit integer"),
    FLAG: _flag,
    INSTANT: _instant,
    DATA: _data,
}


def converter(attribute: Attribute) -> Convert:
    """How a value of this attribute, which is not nil, is told."""
    return _of(attribute.type)


def _of(kind: Type) -> Convert:
    match kind:
        case Scalar():
            return _SCALARS[kind]
        case Enum():
            named = words(kind)

            def word(value: Any) -> str:
                found = named.get(value)
                if found is None:
                    raise Unfit(f"one of {', '.join(named)}", value)
                return found

            return word
        case ListOf(element):
            each = _of(element)

            def many(value: Any) -> list[Any]:
                if isinstance(value, frozenset | set):
                    return sorted(map(each, value))
                return [each(item) for item in value]

            return many
    raise TypeError(f"{kind} leads to other entities")
