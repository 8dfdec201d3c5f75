"""The graph's semantics in the plainest words: slow, recursive, no plans, no caches, no batches, no compiled code.

Written from graph-semantics.md and not from psi/graph, so that the engine has somebody to disagree with. It always runs
as the lenient mode does and notes on the way what would have ended a strict request. Resolvers are called one entity at
a time; params and operations are the engine's own values, because they are only data.

What it leaves open, because the semantics do: among providers of equal rank it goes by registration, and independent
attributes are got in query order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from psi.edn import List, Map, Symbol, Vector, freeze
from psi.eql import Call, Expression, Ident, Join, Property, Query, Recursion, Union, Wildcard
from psi.graph import ERRORS, MUTATION_ERROR, Env, Mutation, Resolver
from psi.graph.shape import Input, Inputs, Shape

OPTIONAL = "psi.graph/optional?"

Error = Mapping[str, str]

# Kinds of failures, named like the engine's errors.
UNREACHABLE, MISSING, ALL_FAILED = "AttributeUnreachable", "AttributeMissing", "AllProvidersFailed"
MUTATION_FAILED, NO_MUTATION = "MutationFailed", "MutationNotFound"


class Entity(dict[Any, Any]):
    """A map of the tree that was worked on."""

    def __init__(self, source: Mapping[Any, Any]) -> None:
        super().__init__(source)
        known = source if isinstance(source, Entity) else None
        self.errors: dict[Any, Error] = dict(known.errors) if known else {}  # what the query asked and did not get
        self.lacking: dict[Any, Error] = dict(known.lacking) if known else {}  # the same of nested inputs
        self.branch: Query | None = known.branch if known else None  # of a union, where the query has one

    def failed(self) -> dict[Any, Error]:
        return {key: error for key, error in (self.lacking | self.errors).items() if key not in self}


@dataclass
class Answer:
    data: dict[Any, Any]
    failures: set[str] = field(default_factory=set)  # what would have ended a strict request; empty where nothing would
    swallowed: set[str] = field(default_factory=set)  # what was raised behind an optional input


class Reference:
    def __init__(self, operations: Iterable[Resolver | Mutation]) -> None:
        operations = list(operations)
        self.resolvers = [operation for operation in operations if isinstance(operation, Resolver)]
        self.mutations = {operation.name: operation for operation in operations if isinstance(operation, Mutation)}
        self.failures: set[str] = set()
        self.swallowed: set[str] = set()

    def answer(self, query: Query, entity: Mapping[Any, Any]) -> Answer:
        self.failures, self.swallowed = set(), set()
        reach = self.reach(shape_of(entity))
        unreachable = any(isinstance(need, str) and need not in reach for need in required(query))
        data = select(query, self.fill(query, entity))
        # The root is planned before anything runs, mutations included.
        failures = {UNREACHABLE} | (self.failures & {NO_MUTATION}) if unreachable else self.failures
        return Answer(data, failures, self.swallowed)

    # -- one entity

    def fill(self, query: Query, source: Mapping[Any, Any]) -> Entity:
        return Filling(self, query, source).run()

    def enter(self, query: Query, child: Join | Call, value: Any) -> Any:
        """What a join leads into, element by element."""
        asked = below(query, child)
        if asked is None:  # a recursion that has reached its limit
            return value
        return each(value, lambda element: self.enter_one(asked, element))

    def enter_one(self, asked: Query | Union, value: Mapping[Any, Any]) -> Entity | None:
        branch = branch_for(asked, value)
        if branch is None:
            return None
        entity = self.fill(branch, value)
        # What it has got since must not make it look like another kind of entity.
        entity.branch = branch if isinstance(asked, Union) else None
        return entity

    def enter_for_input(self, inputs: Inputs, value: Mapping[Any, Any]) -> Entity:
        entity = self.fill(as_query(inputs), value)
        entity.lacking |= entity.errors
        entity.errors = dict(value.errors) if isinstance(value, Entity) else {}
        return entity

    def mutate(self, query: Query, call: Call) -> Any:
        mutation = self.mutations.get(str(call.name))
        if mutation is None:
            self.failures.add(NO_MUTATION)
            return {MUTATION_ERROR: "not found"}
        try:
            value = mutation(Env(call.params, None), dict(call.params))
        except Exception:  # noqa: BLE001 – whatever a mutation raises is its answer
            self.failures.add(MUTATION_FAILED)
            return {MUTATION_ERROR: "failed"}
        return value if call.query is None else self.enter(query, call, value)

    # -- what can be had at all, told from declarations alone

    def providers(self, attribute: str) -> list[Resolver]:
        """An output that is also an input is no output."""
        return [r for r in self.resolvers if attribute in r.output and attribute not in {i.attribute for i in r.inputs}]

    def reach(
        self, have: Shape, without: frozenset[str] = frozenset(), depth: int = 0
    ) -> dict[str, list[Shape | None]]:
        """Every attribute that can be got from what is there, going through none of ``without``."""
        found: dict[str, list[Shape | None]] = {attribute: [shape] for attribute, shape in have.items()}
        used: set[Resolver] = set()
        while new := [r for r in self.resolvers if r not in used and self.feeds(found, r, depth)]:
            for resolver in new:
                used.add(resolver)
                for attribute, shape in resolver.output.items():
                    if attribute not in without and resolver in self.providers(attribute) and attribute not in have:
                        found.setdefault(attribute, []).append(shape)
        return found

    def feeds(self, found: Mapping[str, list[Shape | None]], resolver: Resolver, depth: int) -> bool:
        return all(self.met(found, item, depth) for item in resolver.inputs if not item.optional)

    def met(self, found: Mapping[str, list[Shape | None]], item: Input, depth: int = 0) -> bool:
        if item.attribute not in found:
            return False
        return item.below is None or any(self.satisfies(s, item.below, depth) for s in found[item.attribute])

    def satisfies(self, shape: Shape | None, inputs: Inputs, depth: int = 0) -> bool:
        """Does a value of this shape lead to all that is needed inside it? One without entities (None) does."""
        if shape is None:
            return True
        if depth > 3:  # a resolver that needs its own output inside a nested input
            return False
        reach = self.reach(shape, depth=depth + 1)
        return all(self.met(reach, item, depth + 1) for item in inputs if not item.optional)


class Filling:
    """One entity: first mutations, then attributes, then what is inside them, then placeholders, then the checks."""

    def __init__(self, reference: Reference, query: Query, source: Mapping[Any, Any]) -> None:
        self.reference = reference
        self.query = query
        self.source = source
        self.entity = Entity(source)
        self.entity.errors = {}
        self.children = last_of_each(query)
        self.called: dict[Resolver, set[str]] = {}

    def run(self) -> Entity:
        entity, reference = self.entity, self.reference
        for child in self.query.children:
            if isinstance(child, Call):
                entity[child.name] = reference.mutate(self.query, child)
        lost = {attribute: self.want(Input(attribute)) for attribute in self.attributes()}
        for key, child in self.children.items():
            if isinstance(child, Join) and key in entity and isinstance(child.key, str) and not child.is_placeholder:
                entity[key] = reference.enter(self.query, child, entity[key])
        for child in self.children.values():
            if isinstance(child, Property | Join) and isinstance(child.key, Ident):
                self.ident(child, child.key)
        current = Entity(entity)
        for child in self.children.values():
            if isinstance(child, Property | Join) and child.is_placeholder:
                entity[child.key] = self.placeholder(child, current)
        self.check(lost)
        return entity

    def attributes(self) -> dict[str, None]:
        """What is asked, and what placeholders without params of their own ask of the same entity."""
        return dict.fromkeys(hoisted(self.query))

    def ident(self, child: Property | Join, ident: Ident) -> None:
        known = self.source.get(ident.as_key())
        start = Entity(known if isinstance(known, Mapping) else {})
        start[ident.attribute] = ident.value
        found = self.reference.enter(self.query, child, start) if isinstance(child, Join) else start
        self.entity[ident.as_key()] = found

    def placeholder(self, child: Property | Join, current: Entity) -> Entity:
        if isinstance(child, Property):
            return Entity(current)
        assert isinstance(child.query, Query)
        fresh = any(isinstance(c, Property | Join) and c.params for c in child.query.children)
        start = Entity(self.source if fresh else current)
        start.lacking = {}  # that was asked of the entity around it
        return self.reference.fill(child.query, start)

    def check(self, lost: Mapping[str, set[str]]) -> None:
        reach = self.reference.reach(shape_of(self.source))
        needed = set(required(self.query))
        for key, child in self.children.items():
            if not isinstance(child, Property | Join) or not isinstance(key, str) or child.is_placeholder:
                continue
            if key in self.entity:
                continue
            kinds = lost[key]
            raised = kinds - {MISSING, UNREACHABLE}
            if is_optional(child) and not raised:
                continue
            self.entity.errors[key] = {"cause": "node-errors" if key in reach else "attribute-unreachable"}
            self.reference.failures |= kinds if key in needed else raised

    # -- one attribute

    def want(self, item: Input, going: frozenset[str] = frozenset()) -> set[str]:
        """Get an attribute into the entity. Answers with the kinds of failures; with none, it is there."""
        attribute = item.attribute
        if attribute not in self.entity:
            lost = self.resolve(item, going)
            if lost:
                return lost
        if item.below is None:
            return set()
        if attribute in self.source and not self.reference.satisfies(
            shape_of_value(self.source[attribute]), item.below
        ):
            return {UNREACHABLE}
        # What is inside is got in the tree itself, where the query sees it too.
        below = item.below
        found = each(self.entity[attribute], lambda element: self.reference.enter_for_input(below, element))
        self.entity[attribute] = found
        return set() if delivers(self.entity[attribute], item.below) else {MISSING}

    def resolve(self, item: Input, going: frozenset[str]) -> set[str]:
        attribute = item.attribute
        if attribute in going:
            return {UNREACHABLE}
        inner = going | {attribute}
        ways = self.ways(item, inner)
        lost = []
        for way in ways:
            lost.append(self.call(way, inner))
            if attribute in self.entity:
                return set()
        if not ways:
            return {UNREACHABLE}
        kinds = set().union(*lost)
        raised = kinds - {MISSING, UNREACHABLE}
        # Several ways that were lost to one and the same failure may be told by that failure.
        return ({ALL_FAILED} | raised if len(ways) > 1 else raised) if raised else {MISSING}

    def ways(self, item: Input, going: frozenset[str]) -> list[Resolver]:
        reference, entity = self.reference, self.entity
        found = reference.reach(shape_of(self.source), going)
        able = [
            r
            for r in reference.providers(item.attribute)
            if reference.feeds(found, r, 0)
            and (item.below is None or reference.satisfies(r.output[item.attribute], item.below))
        ]
        there = {r: sum(needed.attribute in entity for needed in r.inputs) for r in able}
        return sorted(able, key=lambda r: (-r.priority, -there[r], len(r.inputs) - there[r]))

    def call(self, resolver: Resolver, going: frozenset[str]) -> set[str]:
        """Call a resolver once for this entity, if what it requires can be had. Answers with the kinds of failures."""
        if resolver in self.called:
            return self.called[resolver]
        for item in resolver.inputs:
            if not item.optional and (lost := self.want(item, going)):
                return lost
        for item in resolver.inputs:
            if item.optional:
                raised = self.want(item, going) - {MISSING, UNREACHABLE}
                self.reference.swallowed |= raised
        if resolver in self.called:  # for one of those inputs
            return self.called[resolver]
        data = cut(self.entity, resolver.inputs)
        env = Env(self.params(resolver), None)
        try:
            result = resolver(env, [data])[0] if resolver.batch else resolver(env, data)
        except Exception:  # noqa: BLE001 – whatever a resolver raises is its answer
            self.called[resolver] = {"BatchFailed" if resolver.batch else "ResolverFailed"}
            return self.called[resolver]
        if result is not None and not isinstance(result, Mapping):
            self.called[resolver] = {"InvalidResponse"}
            return self.called[resolver]
        self.called[resolver] = {MISSING}
        for key, value in (result or {}).items():
            # The first writer wins, but not where the query looks inside.
            if key not in self.entity or isinstance(self.children.get(key), Join):
                self.entity[key] = value
        return self.called[resolver]

    def params(self, resolver: Resolver) -> Map:
        merged: dict[Any, Any] = {}
        for child in self.query.children:
            if not isinstance(child, Property | Join) or not isinstance(child.key, str) or child.key in self.source:
                continue
            if resolver in self.reference.providers(child.key):
                merged |= {name: value for name, value in child.params.items() if name != OPTIONAL}
        return Map(merged)


# -- reading queries


def key_of(child: Expression) -> Any:
    if isinstance(child, Wildcard):
        return Symbol("*")
    if isinstance(child, Call):
        return child.name
    return child.key.as_key() if isinstance(child.key, Ident) else child.key


def last_of_each(query: Query) -> dict[Any, Expression]:
    """Of several expressions for one key the last one counts, in its own place."""
    found: dict[Any, Expression] = {}
    for child in query.children:
        found.pop(key_of(child), None)
        found[key_of(child)] = child
    return found


def is_optional(child: Expression) -> bool:
    return not isinstance(child, Wildcard) and bool(child.params.get(OPTIONAL))


def has_params(child: Property | Join) -> bool:
    return any(name != OPTIONAL for name in child.params)


def required(query: Query) -> Iterator[Any]:
    for key, child in last_of_each(query).items():
        if not isinstance(child, Property | Join) or isinstance(child.key, Ident) or child.is_placeholder:
            continue
        if not is_optional(child) and not (isinstance(child, Join) and isinstance(child.query, Recursion)):
            yield key


def hoisted(query: Query, inside: bool = False) -> Iterator[str]:
    for child in last_of_each(query).values():
        if not isinstance(child, Property | Join) or not isinstance(child.key, str) or (inside and has_params(child)):
            continue
        if not child.is_placeholder:
            yield child.key
        elif isinstance(child, Join) and isinstance(child.query, Query) and not child.params:
            yield from hoisted(child.query, inside=True)


def below(query: Query, child: Join | Call) -> Query | Union | None:
    """The query of what a join leads into; ``None`` where a recursion ends."""
    if isinstance(child.query, Recursion):
        return repeated(query, child) if child.query.limit != 0 else None
    return child.query


def repeated(query: Query, child: Join | Call) -> Query:
    """The enclosing query once more, with one round less to go."""
    assert isinstance(child.query, Recursion)
    if not child.query.limit:
        return query
    less = replace(child, query=Recursion(child.query.limit - 1))
    return Query(tuple(less if other is child else other for other in query.children))


def branch_for(asked: Query | Union, value: Mapping[Any, Any]) -> Query | None:
    if isinstance(asked, Query):
        return asked
    return next((branch for name, branch in asked.branches if name in value), None)


def as_query(inputs: Inputs) -> Query:
    """A nested input as a query."""
    children: list[Expression] = []
    for item in inputs:
        params = Map({OPTIONAL: True}) if item.optional else Map()
        if item.below is None:
            children.append(Property(item.attribute, params))
        else:
            children.append(Join(item.attribute, as_query(item.below), params))
    return Query(tuple(children))


# -- reading and cutting data


class InSet(list[Any]):
    """The elements of a set while they are worked on."""


def is_set(value: Any) -> bool:
    return isinstance(value, set | frozenset | InSet)


def is_collection(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def like(value: Any, elements: list[Any]) -> Any:
    return type(value)(elements) if type(value) in (List, Vector, tuple) else elements


def shape_of(value: Mapping[Any, Any]) -> Shape:
    return {attribute: shape_of_value(inner) for attribute, inner in value.items() if isinstance(attribute, str)}


def shape_of_value(value: Any) -> Shape | None:
    """What is inside a value: for a collection the keys of all its maps together, None where it holds nothing."""
    if isinstance(value, Mapping):
        return shape_of(value)
    if value is None or (is_collection(value) and all(element is None for element in value)):
        return None
    shape: dict[str, Shape | None] = {}
    for element in value if is_collection(value) else ():
        if isinstance(element, Mapping):
            shape |= shape_of(element)
    return shape


def each(value: Any, change: Callable[[Mapping[Any, Any]], Any]) -> Any:
    """The value with its maps changed. Nils in a collection, and maps of which nothing is left, are dropped."""
    if isinstance(value, Mapping):
        return change(value)
    if not is_collection(value):
        return value
    changed = [change(element) if isinstance(element, Mapping) else element for element in value]
    elements = [element for element in changed if element is not None]
    return InSet(elements) if is_set(value) else like(value, elements)


def cut(entity: Mapping[Any, Any], inputs: Inputs) -> dict[str, Any]:
    """Exactly the declared input."""
    data = {}
    for item in inputs:
        inner = item.below
        if item.attribute in entity and (inner is None or delivers(entity[item.attribute], inner)):
            value = entity[item.attribute]
            data[item.attribute] = whole(value if inner is None else each(value, partial(cut, inputs=inner)))
    return data


def delivers(value: Any, inputs: Inputs) -> bool:
    """Has every map in the value what is required of it?"""
    maps = [value] if isinstance(value, Mapping) else value if is_collection(value) else []
    return all(
        item.attribute in element and (item.below is None or delivers(element[item.attribute], item.below))
        for element in maps
        if isinstance(element, Mapping)
        for item in inputs
        if not item.optional
    )


def whole(value: Any) -> Any:
    """A value as it then is, with what was got and what failed inside it."""
    if isinstance(value, InSet):
        return frozenset(freeze(whole(element)) for element in value)
    if isinstance(value, Entity):
        failed = value.failed()
        return {key: whole(inner) for key, inner in value.items()} | ({ERRORS: failed} if failed else {})
    return like(value, [whole(element) for element in value]) if isinstance(value, list | tuple) else value


def select(query: Query, entity: Mapping[Any, Any]) -> dict[Any, Any]:
    """The part of the tree that was asked for, in query order."""
    children = last_of_each(query)
    out = {key: whole(value) for key, value in entity.items()} if Symbol("*") in children else {}
    for key, child in children.items():
        if key in entity and not isinstance(child, Wildcard):
            inner = None if isinstance(child, Property) else child.query
            out[key] = whole(entity[key]) if inner is None else select_value(query, child, entity[key])
    errors = entity.failed() if isinstance(entity, Entity) else entity.get(ERRORS, {})
    if errors:
        out[ERRORS] = dict(errors)
    if MUTATION_ERROR in entity:
        out[MUTATION_ERROR] = entity[MUTATION_ERROR]
    return out


def select_value(query: Query, child: Any, value: Any) -> Any:
    asked: Query | Union = repeated(query, child) if isinstance(child.query, Recursion) else child.query

    def one(element: Mapping[Any, Any]) -> Any:
        branch = element.branch if isinstance(element, Entity) and element.branch else branch_for(asked, element)
        return None if branch is None else select(branch, element)

    return whole(each(value, one))
