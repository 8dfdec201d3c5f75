"""Who provides what: the operations of a graph, validated once and looked up by attribute and by name. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from psi.graph.errors import InvalidOperation
from psi.graph.operations import Mutation, Operation, Resolver
from psi.graph.shape import Inputs, Shape

__all__ = ["Index"]


class Index:
    """The resolvers and mutations of one graph. Never changes; another set of operations is another index."""

    def __init__(self, operations: Iterable[Operation | Iterable[Operation]]) -> None:
        self.resolvers: dict[str, Resolver] = {}
        self.mutations: dict[str, Mutation] = {}
        for operation in _flat(operations):
            self._register(operation)
        self.order = {resolver: place for place, resolver in enumerate(self.resolvers.values())}
        self._providers: dict[str, tuple[Resolver, ...]] = {}
        consumers: dict[str, list[Resolver]] = {}
        for resolver in self.resolvers.values():
            own_inputs = {item.attribute for item in resolver.inputs}
            for attribute in resolver.output:
                # What a resolver needs it cannot be the source of.
                if attribute not in own_inputs:
                    self._providers[attribute] = (*self._providers.get(attribute, ()), resolver)
            for item in resolver.inputs:
                if not item.optional:
                    consumers.setdefault(item.attribute, []).append(resolver)
        self.consumers = {attribute: tuple(found) for attribute, found in consumers.items()}
        self.sources = tuple(r for r in self.resolvers.values() if all(item.optional for item in r.inputs))
        self.component = _components(self.resolvers.values())
        self.entered = _entered(resolver.inputs for resolver in self.resolvers.values())
        self.attributes = _all_attributes(self.resolvers.values())

    def _register(self, operation: Operation) -> None:
        if not isinstance(operation, Resolver | Mutation):
            raise InvalidOperation(
                repr(operation), "not an operation; expected what @resolver, @mutation, alias or equivalence give"
            )
        if operation.name in self.resolvers or operation.name in self.mutations:
            raise InvalidOperation(operation.name, "two operations have this name; give one of them another `name`")
        if isinstance(operation, Resolver):
            self.resolvers[operation.name] = operation
        else:
            self.mutations[operation.name] = operation

    def providers(self, attribute: Any) -> tuple[Resolver, ...]:
        """The resolvers that give this attribute, in the order they were registered."""
        return self._providers.get(attribute, ())

    def nearest(self, attribute: str) -> str | None:
        """The known attribute most like a mistyped one."""
        others = [known for known in self.attributes if known != attribute]
        found = get_close_matches(attribute, others, n=1, cutoff=0.7)
        if found:
            return found[0]
        local = attribute.rpartition("/")[2]
        same_local = [known for known in others if known.rpartition("/")[2] == local]
        return same_local[0] if len(same_local) == 1 else None

    def nearest_mutation(self, name: str) -> str | None:
        return next(iter(get_close_matches(name, self.mutations, n=1, cutoff=0.6)), None)


def _flat(operations: Iterable[Operation | Iterable[Operation]]) -> Iterator[Operation]:
    for item in operations:
        if isinstance(item, Resolver | Mutation) or not isinstance(item, list | tuple):
            yield item  # type: ignore[misc]  # anything else is refused by name when it is registered
        else:
            yield from _flat(item)


def _components(resolvers: Iterable[Resolver]) -> dict[str, int]:
    """Attributes that can be needed to get each other, as numbered groups; those that cannot be are left out.

    The strongly connected components of the graph attribute → inputs of its providers, by Tarjan's algorithm with a
    stack of its own: chains of resolvers may be longer than Python's.
    """
    needs: dict[str, list[str]] = {}
    for resolver in resolvers:
        for attribute in resolver.output:
            needs.setdefault(attribute, []).extend(item.attribute for item in resolver.inputs)
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: dict[str, int] = {}
    for start, first_needs in needs.items():
        if start in number:
            continue
        work: list[tuple[str, Iterator[str]]] = [(start, iter(first_needs))]
        number[start] = lowest[start] = len(number)
        path.append(start)
        on_path.add(start)
        while work:
            attribute, rest = work[-1]
            deeper = next((need for need in rest if need not in number or need in on_path), None)
            if deeper is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[attribute])
                if lowest[attribute] == number[attribute]:
                    _close_component(attribute, path, on_path, found)
            elif deeper in number:
                lowest[attribute] = min(lowest[attribute], number[deeper])
            else:
                number[deeper] = lowest[deeper] = len(number)
                path.append(deeper)
                on_path.add(deeper)
                work.append((deeper, iter(needs.get(deeper, ()))))
    return found


def _close_component(last: str, path: list[str], on_path: set[str], found: dict[str, int]) -> None:
    members = path[path.index(last) :]
    del path[len(path) - len(members) :]
    on_path.difference_update(members)
    if len(members) > 1:
        group = len(found)
        found.update(dict.fromkeys(members, group))


def _entered(all_inputs: Iterable[Inputs]) -> frozenset[str]:
    """The attributes that nested inputs look into: all that an entity's shape must tell more of than their presence."""
    found: set[str] = set()

    def collect(inputs: Inputs) -> None:
        for item in inputs:
            if item.below is not None:
                found.add(item.attribute)
                collect(item.below)

    for inputs in all_inputs:
        collect(inputs)
    return frozenset(found)


def _all_attributes(resolvers: Iterable[Resolver]) -> tuple[str, ...]:
    found: dict[str, None] = {}

    def from_inputs(inputs: Inputs) -> None:
        for item in inputs:
            found[item.attribute] = None
            from_inputs(item.below or ())

    def from_shape(shape: Shape) -> None:
        for attribute, below in shape.items():
            found[attribute] = None
            from_shape(below or {})

    for resolver in resolvers:
        from_inputs(resolver.inputs)
        from_shape(resolver.output)
    return tuple(found)
