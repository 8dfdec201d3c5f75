"""Which attribute is which field of which type: derived from the registry, one to one. Knows no GraphQL library.

An entity type has its identity and everything that resolvers lead to from there. A field is named by the local name of
its attribute where that is in the type's home namespace, and with the last part of its namespace before it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from psi.graph import Graph
from psi.graph.attributes import TEXT, Attribute, Entity, Many, One
from psi.graph.index import Index
from resolvers import ATTRIBUTES, ENTITIES, OPERATIONS

__all__ = ["FIELDS", "Field", "by_identity", "enum_name", "field_name"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an entity type."""

    name: str
    attribute: Attribute
    leads_to: str | None  # the entity type below, for a join
    owns: bool = False  # what a join leads to belongs to this entity alone
    is_id: bool = False  # the entity's own id, or that of another


def field_name(attribute: Attribute, home: str) -> str:
    local = _camel(attribute.local)
    if attribute.namespace == home:
        return local
    last = attribute.namespace.rpartition(".")[2]
    return _camel(last) + local[:1].upper() + local[1:]


def enum_name(word: str) -> str:
    return word.upper().replace("-", "_")


def _camel(text: str) -> str:
    first, *rest = text.removesuffix("?").split("-")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def by_identity() -> Mapping[str, Entity]:
    return {entity.identity: entity for entity in ENTITIES if entity.identity is not None}


@cache
def _index() -> Index:
    return Graph(OPERATIONS).index


def _reachable(known: Iterable[str]) -> set[str]:
    """Everything that resolvers alone lead to."""
    found = set(known)
    waiting = list(_index().resolvers.values())
    while True:
        ready = [each for each in waiting if all(need.optional or need.attribute in found for need in each.inputs)]
        if not ready:
            return found
        waiting = [each for each in waiting if each not in ready]
        found.update(attribute for each in ready for attribute in each.output)


def _given(identity: str) -> set[str]:
    """What an entity has for certain wherever a join leads to it."""
    shapes = [
        set(below)
        for each in _index().resolvers.values()
        for name, below in each.output.items()
        if below and isinstance(ATTRIBUTES[name].type, One | Many) and _target(ATTRIBUTES[name]) == identity
    ]
    return {identity}.union(set.intersection(*shapes) if shapes else ())


def _target(attribute: Attribute) -> str | None:
    return attribute.type.identity if isinstance(attribute.type, One | Many) else None


def _id_name(identity: str) -> str:
    """How the id of an entity is called elsewhere: session-id, run-id."""
    namespace, _, local = identity.rpartition("/")
    return local if local != "id" else f"{namespace.rpartition('.')[2]}-id"


def _is_id(attribute: Attribute) -> bool:
    identities = by_identity()
    called = tuple(f"-{_id_name(identity)}" for identity in identities)
    return attribute.name in identities or (attribute.type is TEXT and f"-{attribute.local}".endswith(called))


def _fields(entity: Entity) -> tuple[Field, ...]:
    anywhere = _reachable(())
    own = {name for name in anywhere if name in ATTRIBUTES and ATTRIBUTES[name].namespace == entity.home}
    reach = own if entity.identity is None else own | (_reachable(_given(entity.identity)) - anywhere)
    entities = by_identity()
    found = []
    # Its own first, then the guests, each in the order of their declaration.
    for attribute in sorted(ATTRIBUTES.values(), key=lambda each: each.namespace != entity.home):
        if attribute.name in reach:
            target = _target(attribute)
            leads_to = entities[target].name if target else None
            owns = isinstance(attribute.type, Many) and attribute.name not in anywhere
            found.append(Field(field_name(attribute, entity.home), attribute, leads_to, owns, _is_id(attribute)))
    return tuple(found)


FIELDS: Final[Mapping[str, Mapping[str, Field]]] = {
    entity.name: {field.name: field for field in _fields(entity)} for entity in ENTITIES
}
