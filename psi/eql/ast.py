"""The query tree: frozen values that compare and hash by content as EDN has it, so that a query can be a cache key.

Query        a vector of expressions
Property     :a            (:a {:p 1})          [:id 1]
Join         {:a [..]}     {(:a {:p 1}) [..]}   {[:id 1] [..]}   with a Query, a Union or a Recursion below
Call         (m/go {..})   {(m/go {..}) [..]}   a mutation, alone or with a query on its result
Wildcard     *
Union        {:post/id [..] :video/id [..]}     a query for each kind of entity
Recursion    ...  or  3                         the enclosing query again, for ever or so many times
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from psi.edn import Keyword, Map, Symbol, Vector, kind_key

__all__ = [
    "NO_PARAMS",
    "PLACEHOLDER_NAMESPACE",
    "Call",
    "Expression",
    "Ident",
    "Join",
    "Key",
    "Property",
    "Query",
    "Recursion",
    "Subquery",
    "Union",
    "Wildcard",
    "calls",
    "repeats_calls",
    "size",
]

NO_PARAMS: Final = Map()

PLACEHOLDER_NAMESPACE: Final = ">/"


@dataclass(frozen=True, slots=True)
class Ident:
    """Names one entity by an attribute and its value: ``[:user/id 1]``."""

    attribute: str
    value: Any = field(compare=False)
    _value_key: Any = field(init=False, repr=False)  # equal as EDN has it: 1 is not true

    def __post_init__(self) -> None:
        object.__setattr__(self, "_value_key", kind_key(self.value))

    def as_key(self) -> Vector:
        """The key under which the answer stands."""
        return Vector((Keyword(self.attribute), self.value))


# A plain str is an attribute. A Symbol or a Vector of another length than 2 is legal EQL that nobody can answer; it is
# kept as it came, so that the error can show it.
Key: TypeAlias = "str | Ident | Symbol | Vector"


@dataclass(frozen=True, slots=True)
class Property:
    key: Key
    params: Map = field(default=NO_PARAMS, compare=False)
    _keys: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", (kind_key(self.key), kind_key(self.params)))

    @property
    def is_placeholder(self) -> bool:
        return is_placeholder(self.key)


@dataclass(frozen=True, slots=True)
class Join:
    key: Key
    query: Subquery
    params: Map = field(default=NO_PARAMS, compare=False)
    _keys: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", (kind_key(self.key), kind_key(self.params)))

    @property
    def is_placeholder(self) -> bool:
        return is_placeholder(self.key)


@dataclass(frozen=True, slots=True)
class Call:
    name: Symbol
    params: Map = field(default=NO_PARAMS, compare=False)
    query: Subquery | None = None
    _keys: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", kind_key(self.params))


@dataclass(frozen=True, slots=True)
class Wildcard:
    pass


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[tuple[str, Query], ...]


@dataclass(frozen=True, slots=True)
class Recursion:
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    children: tuple[Expression, ...] = ()
    # Hashing a large tree on every cache look-up would cost more than running it.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.children))

    def __hash__(self) -> int:
        return self._hash

    def __iter__(self) -> Iterator[Expression]:
        return iter(self.children)


Expression: TypeAlias = Property | Join | Call | Wildcard
Subquery: TypeAlias = Query | Union | Recursion


def calls(query: Query) -> bool:
    """Whether a mutation is called anywhere in the query."""
    return any(isinstance(each, Call) for level in _levels(query) for each in level)


def repeats_calls(query: Query) -> bool:
    """Whether a mutation is called in something that a recursion repeats: its level, and all that is below."""
    return any(
        isinstance(each, Join) and isinstance(each.query, Recursion) and calls(level)
        for level in _levels(query)
        for each in _same_entity(level)
    )


def _same_entity(level: Query) -> Iterator[Expression]:
    """What is asked about one entity: on this level, and under placeholders."""
    for each in level.children:
        yield each
        if isinstance(each, Join) and each.is_placeholder and isinstance(each.query, Query):
            yield from _same_entity(each.query)


def size(query: Query) -> int:
    """How many expressions the query has, on all its levels."""
    return sum(len(level.children) for level in _levels(query))


def _levels(query: Query) -> Iterator[Query]:
    waiting: list[Subquery | None] = [query]
    while waiting:
        match waiting.pop():
            case Query(children) as level:
                yield level
                waiting += [each.query for each in children if isinstance(each, Join | Call)]
            case Union(branches):
                waiting += [below for _, below in branches]


def is_placeholder(key: Key) -> bool:
    """True for ``:>/name``: the same entity again, under a name."""
    return isinstance(key, str) and not isinstance(key, Symbol) and key.startswith(PLACEHOLDER_NAMESPACE)
