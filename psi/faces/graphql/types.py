"""Entity types, scalars and enums, made from the registry with strawberry. Executes nothing by itself.

What a root field returns for an entity is an :class:`Entity`: what is known of it, and whom to ask for the rest. Stock
execution asks it field by field; ours takes what it knows and asks the graph once (:mod:`psi.faces.graphql.execute`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import new_class
from typing import Any, Final, NewType, Optional

import strawberry
from graphql import GraphQLError
from strawberry.schema.config import StrawberryConfig
from strawberry.schema_directive import Location

from psi.core.commands import Caller
from psi.edn import Keyword
from psi.engine import Reader
from psi.eql import Property, Query
from psi.errors import PsiError
from psi.faces.graphql.names import FIELDS, Field, enum_name
from psi.faces.graphql.pace import Pace
from psi.faces.graphql.scalars import read_instant_text, read_json_literal, read_long, read_text
from psi.faces.graphql.values import Unfit, converter, instant
from psi.graph import ERRORS
from psi.graph.attributes import DATA, FLAG, INSTANT, INTEGER, LONG, Enum, ListOf, Many, One, Scalar, Type
from psi.graph.attributes import Entity as Described
from psi.service import Service
from resolvers import ATTRIBUTES, ENTITIES, Context
from tool.render import as_json

__all__ = [
    "CONFIG",
    "ENUMS",
    "EQL",
    "JSON",
    "TYPES",
    "Ask",
    "Entities",
    "Entity",
    "Instant",
    "Long",
    "refused",
    "unresolved",
]

Instant = NewType("Instant", object)
JSON = NewType("JSON", object)
Long = NewType("Long", int)
EQL = NewType("EQL", str)


# -- whom to ask


@dataclass(frozen=True, slots=True)
class Ask:
    """One operation's way to psi: the caller, what the caller may see, and how much an answer may cost."""

    service: Service
    caller: Caller
    context: Context
    pace: Pace
    reader: Reader | None = None  # of a live query: is told what was looked at
    max_entities: int | None = None

    def aside(self) -> Ask:
        """The same for those who look once: what they look at is not followed."""
        return replace(self, context=self.service.context(self.caller), reader=None)

    async def query(self, query: Query, entity: Mapping[str, Any]) -> dict[Any, Any]:
        return await self.service.query(
            query,
            self.caller,
            entity=entity,
            lenient=True,
            timeout=self.pace.left,
            max_entities=self.max_entities,
            context=self.context,
        )


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity: its type, what is known of it, and whom to ask for the rest."""

    type: str
    seed: Mapping[str, Any]
    ask: Ask

    async def field(self, name: str) -> Any:
        """A single field, as stock execution wants it. Slow, plain, and what the fast way is compared with."""
        field = FIELDS[self.type][name]
        attribute = field.attribute
        answer = await self.ask.query(Query((Property(attribute.name),)), self.seed)
        if attribute.name not in answer:
            raise unresolved(attribute.name, answer)
        value = answer[attribute.name]
        if value is None:
            return None
        match attribute.type:
            case One():
                return Entity(str(field.leads_to), value, self.ask)
            case Many():
                return Entities(str(field.leads_to), value, self.ask)
            case Enum(called):
                try:
                    return ENUMS[called](value)
                except ValueError:
                    raise misfit(attribute.name, Unfit(f"one of {', '.join(attribute.type.values)}", value)) from None
        try:
            return converter(attribute)(value)
        except (TypeError, ValueError) as problem:
            raise misfit(attribute.name, problem) from None


class Entities(Sequence[Entity]):
    """A list of entities that is not taken apart before somebody wants to. ``lasting``: what is known of them are
    values, each the same object in every list as long as nothing changes."""

    __slots__ = ("ask", "lasting", "seeds", "type")

    def __init__(
        self,
        type: str,  # noqa: A002
        seeds: Sequence[Mapping[str, Any]],
        ask: Ask,
        *,
        lasting: bool = False,
    ) -> None:
        self.type = type
        self.seeds = seeds
        self.ask = ask
        self.lasting = lasting

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, place: Any) -> Any:
        return Entity(self.type, self.seeds[place], self.ask)

    def __iter__(self) -> Iterator[Entity]:
        return (Entity(self.type, seed, self.ask) for seed in self.seeds)


# -- errors, as every way of execution tells them


def unresolved(attribute: str, answer: Mapping[Any, Any]) -> GraphQLError:
    """An attribute that an answer should have and does not."""
    problem = answer.get(ERRORS, {}).get(attribute, {})
    for node in problem.get("nodes", ()):
        error = node.get("error")
        if error is not None:
            data = error["data"]
            told = f"resolver {data['operation']} failed: {data['reason']}" if "reason" in data else error["message"]
            return GraphQLError(f"{attribute}: {told}", extensions={"code": error["code"]})
    told = problem.get("message", "it could not be resolved")
    return GraphQLError(f"{attribute}: {told}", extensions={"code": "graph/attribute-missing"})


def misfit(attribute: str, problem: Exception) -> GraphQLError:
    return GraphQLError(f"{attribute}: {problem}", extensions={"code": "graphql/unfit-value"})


def refused(error: PsiError) -> GraphQLError:
    """A refusal as an error of the field that it is about."""
    return GraphQLError(error.sentence(), extensions={"code": error.code, "data": as_json(error.disclosed())})


# -- what strawberry is told


def _default(source: Any, name: str) -> Any:
    return source.field(name) if isinstance(source, Entity) else getattr(source, name)


CONFIG: Final = StrawberryConfig(
    default_resolver=_default,
    scalar_map={
        Instant: strawberry.scalar(
            name="Instant",
            description="An instant in UTC, as ISO-8601 text with a Z.",
            serialize=lambda value: value if isinstance(value, str) else instant(value),
            parse_value=read_instant_text,
        ),
        JSON: strawberry.scalar(
            name="JSON",
            description="An open map, a list or any other value, as JSON has it.",
            serialize=as_json,
            parse_value=lambda value: value,
            parse_literal=read_json_literal,
        ),
        Long: strawberry.scalar(
            name="Long", description="A whole number of 64 bits.", serialize=int, parse_value=read_long
        ),
        EQL: strawberry.scalar(
            name="EQL", description="A query in EQL, as EDN text.", serialize=str, parse_value=read_text
        ),
    },
)


@strawberry.schema_directive(
    locations=[Location.FIELD_DEFINITION],
    name="attribute",
    description="The attribute of the graph that a field shows.",
)
class AttributeName:
    name: str


def _enums() -> dict[str, type[enum.Enum]]:
    found: dict[str, type[enum.Enum]] = {}
    for attribute in ATTRIBUTES.values():
        kind = attribute.type
        if isinstance(kind, Enum) and kind.name not in found:
            members = {enum_name(word): Keyword(word) for word in kind.values}
            made: Any = enum.Enum(kind.name, members)  # type: ignore[misc]  # made from the registry
            found[kind.name] = strawberry.enum(made)
    return found


ENUMS: Final = _enums()

_SCALARS: Final[Mapping[Scalar, str]] = {INTEGER: "int", LONG: "Long", FLAG: "bool", INSTANT: "Instant", DATA: "JSON"}


def _annotation(field: Field) -> str:
    written = "ID" if field.is_id else _written(field.attribute.type, field)
    return f"Optional[{written}]" if field.attribute.nullable else written


def _written(kind: Type, field: Field) -> str:
    match kind:
        case One():
            return str(field.leads_to)
        case Many():
            return f"list[{field.leads_to}]"
        case ListOf(element):
            return f"list[{_written(element, field)}]"
        case Enum(name):
            return name
        case Scalar():
            return _SCALARS.get(kind, "str")


# By these names the types find each other, and themselves, when the schema is made of them.
_NAMES: Final[dict[str, Any]] = {
    **ENUMS,
    "Instant": Instant,
    "JSON": JSON,
    "Long": Long,
    "ID": strawberry.ID,
    "list": list,
    "int": int,
    "bool": bool,
    "str": str,
    "Optional": Optional,
}


def _field(field: Field) -> Any:
    return strawberry.field(
        name=field.name, description=field.attribute.doc, directives=[AttributeName(name=field.attribute.name)]
    )


def _type(entity: Described) -> Any:
    fields = FIELDS[entity.name].values()
    body = {
        "__annotations__": {field.name: _annotation(field) for field in fields},
        **{field.name: _field(field) for field in fields},
    }
    made: Any = strawberry.type(
        new_class(entity.name, (), {}, lambda names: names.update(body)), description=entity.doc
    )
    # Types lead to each other: what a field leads to is a name until all of them are there.
    for each in made.__strawberry_definition__.fields:
        each.type_annotation.namespace = _NAMES
    return made


TYPES: Final[Mapping[str, Any]] = {entity.name: _type(entity) for entity in ENTITIES}
_NAMES.update(TYPES)
