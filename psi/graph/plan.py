"""Which resolvers to call for one entity, and in which order. A plan is data; nothing here calls anything.

A plan is optimistic: it takes every resolver at its word. When one does not keep it (raises, leaves out what it
declared), the runner asks for another plan from where it then stands, with that resolver spent. So alternatives need
no branches in a plan, and a plan stays a straight line that can be printed and compiled.

Reachability is a least fixed point over the index: an attribute that can only be had through itself is not reachable,
which is how cycles between attributes are cut.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from psi.edn import Map
from psi.eql.ast import NO_PARAMS
from psi.graph.index import Index
from psi.graph.level import ERRORS, Descent, Level, Need, Site
from psi.graph.operations import Resolver
from psi.graph.shape import Input, Inputs, Shape, merge_shapes, shape_key

__all__ = ["Plan", "Planner", "Reach", "Step", "Unwinding", "shape_of", "unwind"]

_ANSWERS_KEPT = 4096

Stack: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Call one resolver. ``after`` are the places of the steps whose results it needs."""

    site: Site  # the resolver with its params
    inputs: Inputs  # those of its inputs that will be there
    expects: tuple[str, ...]  # what later steps or the query rely on; anything else it gives is welcome, not awaited
    after: tuple[int, ...]
    waits_for: tuple[str, ...]  # attributes whose entities must be complete first: nested inputs
    after_mask: int  # ``after`` as bits
    expected: frozenset[str]  # ``expects`` as a set

    @property
    def resolver(self) -> Resolver:
        return self.site.resolver


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    steps: tuple[Step, ...]
    unreachable: Mapping[str, None]  # wanted, and no way leads there; in the order they were wanted
    is_async: str | None  # the name of a resolver that has to be awaited, if there is one
    descents: Mapping[str, Descent]  # where values are entered: the level's joins and the steps' nested inputs


class Planner:
    """Plans for one index. Remembers what is reachable from which shape."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._satisfied: dict[Any, bool] = {}
        self._asking: set[Any] = set()
        self._circular = False

    def plan(
        self,
        level: Level,
        available: Shape,
        spent: frozenset[Resolver] = frozenset(),
        origin: Shape | None = None,
    ) -> Plan:
        """The calls that get what ``level`` needs from an entity of this shape.

        ``origin`` is the shape with which the entity came, when it has changed since. A resolver may return more than
        it declares, and that satisfies whoever wants it; but only ways that were open at the beginning are taken, so
        that what can happen is known before anything is called.
        """
        return _Planning(self, self._index, level, available, spent, origin).run()

    def viable(self, available: Shape, attribute: Any, reached: dict[Any, Reach]) -> tuple[Resolver, ...]:
        """The providers of an attribute whose inputs can be reached, without going through the attribute itself.

        ``reached`` remembers what was found out about this shape, from one question to the next.
        """
        in_the_way = attribute if attribute in self._index.component else None
        reach = reached.get(in_the_way)
        if reach is None:
            excluded: Stack = frozenset() if in_the_way is None else frozenset((attribute,))
            reach = reached[in_the_way] = Reach(self, self._index, available, excluded, frozenset())
        return tuple(resolver for resolver in self._index.providers(attribute) if reach.feeds(resolver))

    def satisfies(self, available: Shape | None, needs: Inputs) -> bool:
        """Can entities of this shape deliver these needs, alone or with the help of resolvers?"""
        if available is None:
            return True
        open_needs = tuple(item for item in needs if not item.optional)
        if not open_needs:
            return True
        key = (shape_key(available), open_needs)
        known = self._satisfied.get(key)
        if known is not None:
            return known
        if key in self._asking:
            # A need that comes back to itself through nested inputs is not satisfied by that way.
            self._circular = True
            return False
        self._asking.add(key)
        try:
            reach = Reach(self, self._index, available, frozenset(), frozenset())
            known = all(reach.has(item.attribute, item.below) for item in open_needs)
        finally:
            self._asking.discard(key)
        if not self._asking:
            self._circular = False
        # A "no" found while going in a circle holds only inside that circle.
        if known or not self._circular:
            if len(self._satisfied) >= _ANSWERS_KEPT:
                self._satisfied.clear()
            self._satisfied[key] = known
        return known


class Reach:
    """Everything that can be had from a shape, without the excluded attributes and the spent resolvers."""

    def __init__(
        self, planner: Planner, index: Index, available: Shape, excluded: Stack, spent: frozenset[Resolver]
    ) -> None:
        self._planner = planner
        self._available = available
        self._known: dict[str, list[Shape | None]] = {attribute: [below] for attribute, below in available.items()}
        self._run(index, excluded, spent)

    def _run(self, index: Index, excluded: Stack, spent: frozenset[Resolver]) -> None:
        waiting = [r for r in index.sources if r not in spent]
        for attribute in self._available:
            waiting.extend(index.consumers.get(attribute, ()))
        done: set[Resolver] = set()
        while waiting:
            resolver = waiting.pop()
            if resolver in done or resolver in spent or not self.feeds(resolver):
                continue
            done.add(resolver)
            own = {item.attribute for item in resolver.inputs}
            for attribute, below in resolver.output.items():
                if attribute in excluded or attribute in own or attribute in self._available:
                    continue  # what the entity has is never taken from a resolver
                self._known.setdefault(attribute, []).append(below)
                waiting.extend(index.consumers.get(attribute, ()))

    def feeds(self, resolver: Resolver) -> bool:
        """Are all required inputs of this resolver to be had?"""
        return all(self.has(item.attribute, item.below) for item in resolver.inputs if not item.optional)

    def has(self, attribute: str, below: Inputs | None) -> bool:
        shapes = self._known.get(attribute)
        if shapes is None:
            return False
        return below is None or any(self._planner.satisfies(shape, below) for shape in shapes)


class _Planning:
    """One plan in the making: a walk from what is wanted down to what is there."""

    def __init__(
        self,
        planner: Planner,
        index: Index,
        level: Level,
        available: Shape,
        spent: frozenset[Resolver],
        origin: Shape | None,
    ) -> None:
        self._planner = planner
        self._index = index
        self._level = level
        self._available: dict[str, Shape | None] = dict(available)
        self._now = available
        self._origin = origin
        self._spent = spent
        self._reached: dict[Stack, tuple[Reach, ...]] = {}
        self._order: list[Resolver] = []
        self._made_by: dict[str, int] = {}
        self._inputs_used: dict[Resolver, Inputs] = {}
        self._nested: dict[str, Inputs] = {}

    def run(self) -> Plan:
        unreachable = []
        for need in sorted(self._level.needs, key=lambda need: self._turn(need.attribute, frozenset())):
            if need.attribute in self._available:
                continue
            if not unwind(self._want(Input(need.attribute), frozenset())) and not _silent(need):
                unreachable.append(need.attribute)
        steps = self._steps()
        is_async = next((step.resolver.name for step in steps if step.resolver.is_async), None)
        return Plan(steps, dict.fromkeys(unreachable), is_async, self._level.descents_with(self._nested))

    def _want(self, item: Input, stack: Stack) -> Wanting:
        """Add the calls that lead to this attribute; answers whether there are any that do."""
        attribute = item.attribute
        if attribute in self._available:
            if item.below is None:
                return True
            if not self._planner.satisfies(self._available[attribute], item.below):
                return False
            self._need_below(attribute, item.below)
            return True
        if attribute in stack:
            return False
        inner = stack | {attribute}
        chosen = self._choose(item, inner)
        if chosen is None:
            return False
        used = []
        for needed in sorted(chosen.inputs, key=lambda needed: (needed.optional, self._turn(needed.attribute, inner))):
            met = yield self._want(needed, inner)
            if met:
                used.append(needed)
            elif not needed.optional:
                return False
            # Getting one input may have brought what was wanted.
            if attribute in self._available and item.below is None:
                return True
        if chosen not in self._inputs_used:
            self._inputs_used[chosen] = tuple(used)
            place = len(self._order)
            self._order.append(chosen)
            for output, below in chosen.output.items():
                if output not in self._available:
                    self._available[output] = below
                    self._made_by[output] = place
        if item.below is not None:
            self._need_below(attribute, item.below)
        return attribute in self._available

    def _turn(self, attribute: str, stack: Stack) -> tuple[bool, int]:
        """When to see to this attribute. One with a choice of providers comes after those without: what must be called
        anyway may have brought it by then. Among several of them, the surest provider goes first."""
        if attribute in self._available or len(self._index.providers(attribute)) < 2:
            return (False, 0)
        candidates = self._candidates(Input(attribute), stack | {attribute})
        return (True, -max(resolver.priority for resolver in candidates)) if len(candidates) > 1 else (False, 0)

    def _candidates(self, item: Input, stack: Stack) -> list[Resolver]:
        reached = self._reach(item.attribute, stack)
        return [
            resolver
            for resolver in self._index.providers(item.attribute)
            if resolver not in self._spent
            and resolver not in self._inputs_used
            and (item.below is None or self._planner.satisfies(resolver.output[item.attribute], item.below))
            and all(reach.feeds(resolver) for reach in reached)
        ]

    def _choose(self, item: Input, stack: Stack) -> Resolver | None:
        """The best provider: highest priority, most inputs already there, fewest still to get, first registered."""
        candidates = self._candidates(item, stack)
        if not candidates:
            return None
        return min(
            candidates,
            key=lambda r: (
                -r.priority,
                -sum(needed.attribute in self._available for needed in r.inputs),
                sum(needed.attribute not in self._available for needed in r.inputs),
                self._index.order[r],
            ),
        )

    def _reach(self, attribute: str, stack: Stack) -> tuple[Reach, ...]:
        """What can be had without what is being sought already; only attributes that need each other are in the way."""
        component = self._index.component
        group = component.get(attribute)
        stack = frozenset() if group is None else frozenset(a for a in stack if component.get(a) == group)
        found = self._reached.get(stack)
        if found is None:
            found = (Reach(self._planner, self._index, self._now, stack, self._spent),)
            if self._origin is not None:
                found = (*found, Reach(self._planner, self._index, self._origin, stack, frozenset()))
            self._reached[stack] = found
        return found

    def _need_below(self, attribute: str, below: Inputs) -> None:
        known = self._nested.get(attribute, ())
        self._nested[attribute] = known + tuple(item for item in below if item not in known)

    def _steps(self) -> tuple[Step, ...]:
        """The chosen calls without those that turned out not to be needed, because another brought what they were
        for."""
        wanted: list[dict[str, None]] = [{} for _ in self._order]
        for need in self._level.needs:
            self._mark(need.attribute, wanted)
        for place in reversed(range(len(self._order))):
            if wanted[place]:
                for item in self._inputs_used[self._order[place]]:
                    self._mark(item.attribute, wanted)
        live = [place for place, attributes in enumerate(wanted) if attributes]
        moved = {place: position for position, place in enumerate(live)}
        return tuple(self._step(self._order[place], tuple(wanted[place]), moved) for place in live)

    def _mark(self, attribute: str, wanted: list[dict[str, None]]) -> None:
        place = self._made_by.get(attribute)
        if place is not None:
            wanted[place][attribute] = None

    def _step(self, resolver: Resolver, expects: tuple[str, ...], moved: Mapping[int, int]) -> Step:
        makers = {self._made_by.get(item.attribute) for item in self._inputs_used[resolver]}
        after = tuple(sorted(moved[place] for place in makers if place is not None))
        waits_for = tuple(item.attribute for item in resolver.inputs if item.below is not None)
        site = self._level.levels.site(resolver, self._params(resolver))
        mask = sum(1 << place for place in after)
        return Step(site, self._inputs_used[resolver], expects, after, waits_for, mask, frozenset(expects))

    def _params(self, resolver: Resolver) -> Map:
        """Params belong to the call: those of all attributes that it may provide, later ones winning."""
        found = [self._level.params[a] for a in self._level.params if self._provides(resolver, a)]
        if len(found) < 2:
            return found[0] if found else NO_PARAMS
        merged: dict[Any, Any] = {}
        for params in found:
            merged |= params
        return Map(merged)

    def _provides(self, resolver: Resolver, attribute: str) -> bool:
        return resolver in self._index.providers(attribute)


T = TypeVar("T")

# A function that recurses by yielding itself: chains of resolvers may be longer than Python's stack.
Unwinding: TypeAlias = Generator["Unwinding[T]", T, T]
Wanting: TypeAlias = Unwinding[bool]


def unwind(first: Unwinding[T]) -> T:
    stack = [first]
    answers: list[T] = []
    while stack:
        try:
            stack.append(stack[-1].send(answers.pop()) if answers else next(stack[-1]))
        except StopIteration as end:
            stack.pop()
            answers.append(end.value)
    return answers[0]


def _silent(need: Need) -> bool:
    return need.optional or (not need.asked and not need.required) or need.attribute == ERRORS


def shape_of(entity: Mapping[Any, Any], entered: frozenset[str]) -> Shape:
    """The shape of an entity: what it has, and what is inside the values that nested inputs look into."""
    if entered.isdisjoint(entity):
        return {attribute: {} for attribute in entity}
    return _Shaping(entered).entity(entity)


class _Shaping:
    """Looks at each map of the data once, however it hangs together: data may share its parts, and go in circles."""

    def __init__(self, entered: frozenset[str]) -> None:
        self._entered = entered
        self._seen: dict[int, Shape] = {}

    def entity(self, entity: Mapping[Any, Any], depth: int = 0) -> Shape:
        known = self._seen.get(id(entity))
        if known is not None:
            return known
        shape: dict[str, Shape | None] = {}
        self._seen[id(entity)] = {}  # inside itself it adds nothing
        for attribute, value in entity.items():
            enters = attribute in self._entered and depth < _DEEPEST
            shape[attribute] = self._value(value, depth) if enters else {}
        self._seen[id(entity)] = shape
        return shape

    def _value(self, value: Any, depth: int) -> Shape | None:
        if isinstance(value, Mapping):
            return self.entity(value, depth + 1)
        if value is None:
            return None
        if not isinstance(value, list | tuple | set | frozenset):
            return {}
        merged: Shape | None = None
        for element in value:
            if isinstance(element, Mapping):
                shape = self.entity(element, depth + 1)
                merged = shape if merged is None or merged == shape else merge_shapes(merged, shape)
            elif element is not None and merged is None:
                merged = {}
        return merged


# Nested inputs reach a few levels down, and shapes are keys of a cache: what lies deeper does not count.
_DEEPEST = 8
