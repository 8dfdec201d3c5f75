"""Attributes as things of their own: a name, a type and a sentence, declared once for every face to derive from.

The engine needs no declarations; whoever wants names to be complete, values to be checked or a schema to be made of
them keeps a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from psi.edn import Keyword, Symbol
from psi.graph.errors import InvalidOperation

__all__ = [
    "DATA",
    "FLAG",
    "INSTANT",
    "INTEGER",
    "LONG",
    "NAME",
    "TEXT",
    "WORD",
    "Attribute",
    "Attributes",
    "Entity",
    "Enum",
    "ListOf",
    "Many",
    "One",
    "Scalar",
    "Type",
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without parts that the graph would look into."""

    name: str
    accepts: Callable[[Any], bool] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.name


TEXT: Final = Scalar("text", lambda value: isinstance(value, str) and not isinstance(value, Keyword | Symbol))
WORD: Final = Scalar("keyword", lambda value: isinstance(value, Keyword))
NAME: Final = Scalar("symbol", lambda value: isinstance(value, Symbol))
INTEGER: Final = Scalar("integer", lambda value: isinstance(value, int) and not isinstance(value, bool))
LONG: Final = Scalar("large integer", INTEGER.accepts)  # may outgrow 32 bits, which some faces have to know
FLAG: Final = Scalar("boolean", lambda value: isinstance(value, bool))
INSTANT: Final = Scalar("instant", lambda value: isinstance(value, datetime) and value.tzinfo is not None)
DATA: Final = Scalar("data", lambda value: True)  # an open map or anything else, as it is


@dataclass(frozen=True, slots=True)
class Enum:
    """One of these keywords."""

    name: str
    values: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Keyword) and value in self.values

    def __str__(self) -> str:
        return " ".join(f":{value}" for value in self.values)


@dataclass(frozen=True, slots=True)
class ListOf:
    element: Type

    def accepts(self, value: Any) -> bool:
        many = isinstance(value, list | tuple | set | frozenset)
        return many and all(self.element.accepts(item) for item in value)

    def __str__(self) -> str:
        return f"list of {self.element}"


@dataclass(frozen=True, slots=True)
class One:
    """Leads to one entity, known by this attribute."""

    identity: str

    def accepts(self, value: Any) -> bool:
        return isinstance(value, Mapping) and self.identity in value

    def __str__(self) -> str:
        return f"→ {self.identity}"


@dataclass(frozen=True, slots=True)
class Many:
    """Leads to a list of entities, each known by this attribute."""

    identity: str

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(each, Mapping) and self.identity in each for each in value)

    def __str__(self) -> str:
        return f"→ many {self.identity}"


Type: TypeAlias = Scalar | Enum | ListOf | One | Many


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: Type
    doc: str
    nullable: bool = False

    def accepts(self, value: Any) -> bool:
        return (self.nullable and value is None) or self.type.accepts(value)

    @property
    def namespace(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def local(self) -> str:
        return self.name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Entity:
    """A kind of thing that attributes are about: known by ``identity``, or the only one of its kind.

    ``home`` is the namespace whose attributes are its own; those of other namespaces that it leads to are guests.
    """

    name: str
    doc: str
    home: str
    identity: str | None = None


class Attributes(Mapping[str, Attribute]):
    """The attributes there are, each declared once."""

    def __init__(self, declared: Iterable[Attribute]) -> None:
        self._all: dict[str, Attribute] = {}
        for attribute in declared:
            if attribute.name in self._all:
                raise InvalidOperation(attribute.name, "this attribute is declared twice")
            self._all[attribute.name] = attribute

    def __getitem__(self, name: str) -> Attribute:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def problems(self, data: Mapping[Any, Any]) -> list[str]:
        """What in a map of attributes was not declared, or is not what was declared; looks into joins."""
        found: list[str] = []
        for name, value in data.items():
            attribute = self._all.get(name)
            if attribute is None:
                found.append(f"{name} is not declared")
            elif not attribute.accepts(value):
                found.append(f"{name} is declared as {attribute.type}, got {value!r}")
            elif isinstance(attribute.type, One) and value is not None:
                found += self.problems(value)
            elif isinstance(attribute.type, Many):
                found += [problem for each in value for problem in self.problems(each)]
        return found
