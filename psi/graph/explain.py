"""A plan for people: what would be called, in which order and why something cannot be. Reads plans, makes none.

A plan is made for one entity; what lies below its joins is known only when it is there. Where the entity at hand, or
the declaration of a resolver, tells what the entities below look like, their plan is shown too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from psi.edn import Keyword, Vector, dumps
from psi.eql import unparse
from psi.graph.errors import shown
from psi.graph.index import Index
from psi.graph.level import Descent, Level
from psi.graph.plan import Plan, Planner, Reach, Step, shape_of
from psi.graph.reasons import Reason, reasons_for
from psi.graph.shape import Input, Shape

__all__ = ["PlanTree", "plan_tree"]

# A recursive query has no end on paper.
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class PlanTree:
    """The plan for one entity and, as far as they can be foreseen, for the entities below it."""

    level: Level
    known: tuple[str, ...]
    plan: Plan
    others: tuple[tuple[str, ...], ...]  # for each step, the resolvers that come into play if it does not deliver
    unknown_mutations: tuple[str, ...]
    reasons: tuple[Reason, ...]
    # Attribute, [attribute branch] of a union, ident or placeholder → its plan, or None where it cannot be foreseen.
    below: Mapping[Any, PlanTree | None]
    again: frozenset[Any]  # those that lead to the same query again

    def as_data(self) -> dict[str, Any]:
        """The plan as EDN and JSON can carry it."""
        return {
            "query": unparse(self.level.query),
            "known": [Keyword(attribute) for attribute in self.known],
            "steps": [_step_data(*pair) for pair in zip(self.plan.steps, self.others, strict=True)],
            "mutations": [call.name for call, _, _ in self.level.calls],
            "unreachable": [found.as_data() for found in self.reasons],
            "joins": [
                {"key": Keyword(key) if type(key) is str else key, "plan": self._below_data(key, tree)}
                for key, tree in self.below.items()
            ],
        }

    def _below_data(self, key: Any, tree: PlanTree | None) -> Any:
        if key in self.again:
            return Keyword("again")
        return None if tree is None else tree.as_data()

    def __str__(self) -> str:
        return "\n".join(self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        known = " ".join(map(shown, self.known)) or "nothing"
        yield f"{indent}known: {known}"
        for call, _, _ in self.level.calls:
            yield f"{indent}mutation {call.name}" + (" (unknown)" if call.name in self.unknown_mutations else "")
        for place, (step, others) in enumerate(zip(self.plan.steps, self.others, strict=True), start=1):
            yield f"{indent}{place}. {_step_text(step, others)}"
        if self.reasons:
            yield f"{indent}not reachable:"
        for found in self.reasons:
            yield from found.lines(indent)
        for key, tree in self.below.items():
            yield f"{indent}{shown(key)}"
            if key in self.again:
                yield f"{indent}  the same again"
            elif tree is None:
                yield f"{indent}  planned when its entities are there"
            else:
                yield from tree._lines(indent + "  ")


def plan_tree(index: Index, planner: Planner, level: Level, entity: Mapping[Any, Any], depth: int = 0) -> PlanTree:
    """The plan for this entity, and for what is below it."""
    return _tree(index, planner, level, shape_of(entity, index.entered), entity, depth)


def _tree(
    index: Index, planner: Planner, level: Level, shape: Shape, entity: Mapping[Any, Any], depth: int
) -> PlanTree:
    plan = planner.plan(level, shape)
    reasons = tuple(reasons_for(index, planner, shape, plan.unreachable))
    below: dict[Any, PlanTree | None] = {}
    again = frozenset(a for a, d in plan.descents.items() if d.recursive or d.limited)
    below.update(dict.fromkeys(again))
    for attribute, descent in plan.descents.items():
        for key, target in _targets(attribute, descent):
            branch = key[1] if isinstance(key, Vector) else None
            known = (attribute, branch)
            below[key] = None if depth >= _DEEPEST else _below(index, planner, plan, known, target, entity, depth)
    for ident, descent_below in level.idents:
        if descent_below is not None:
            start = {ident.attribute: ident.value}
            below[ident.as_key()] = plan_tree(index, planner, descent_below.level, start, depth + 1)
    for placeholder in level.placeholders:
        if placeholder.level is not None and depth < _DEEPEST:
            seen = {**shape, **{a: b for step in plan.steps for a, b in step.resolver.output.items()}}
            start_shape = shape if placeholder.fresh else seen
            below[placeholder.key] = _tree(index, planner, placeholder.level, start_shape, entity, depth + 1)
    unknown = tuple(call.name for call, _, _ in level.calls if call.name not in index.mutations)
    reached: dict[Any, Reach] = {}
    others = tuple(_others(planner, shape, plan, step, reached) for step in plan.steps)
    return PlanTree(level, tuple(map(str, shape)), plan, others, unknown, reasons, below, again)


def _others(planner: Planner, shape: Shape, plan: Plan, step: Step, reached: dict[Any, Reach]) -> tuple[str, ...]:
    planned = {other.resolver for other in plan.steps}
    found = (resolver for attribute in step.expects for resolver in planner.viable(shape, attribute, reached))
    ranked = sorted({r for r in found if r not in planned}, key=lambda r: (-r.priority, r.name))
    return tuple(resolver.name for resolver in ranked)


def _targets(attribute: str, descent: Descent) -> Iterator[tuple[Any, Level]]:
    if descent.union:
        for name, level in descent.branches():
            yield Vector((Keyword(attribute), Keyword(name))), level
    elif not descent.cut and not descent.recursive and not descent.limited:
        yield attribute, descent.level


def _below(
    index: Index,
    planner: Planner,
    plan: Plan,
    known: tuple[str, str | None],
    level: Level,
    entity: Mapping[Any, Any],
    depth: int,
) -> PlanTree | None:
    attribute, branch = known
    sample = _sample(entity.get(attribute), branch)
    if sample is not None:
        return plan_tree(index, planner, level, sample, depth + 1)
    declared = next((step.resolver.output[attribute] for step in plan.steps if attribute in step.expects), None)
    return _tree(index, planner, level, declared, {}, depth + 1) if declared else None


def _sample(value: Any, branch: str | None) -> Mapping[Any, Any] | None:
    """An entity of the value to plan for; for a branch of a union, one that it fits."""
    elements = value if isinstance(value, list | tuple | set | frozenset) else (value,)
    entities = (element for element in elements if isinstance(element, Mapping))
    return next((entity for entity in entities if branch is None or branch in entity), None)


def _step_text(step: Step, others: tuple[str, ...]) -> str:
    resolver = step.resolver
    needs = " ".join(map(_input_text, resolver.inputs)) or "nothing"
    marks = [
        *(["batch"] if resolver.batch else []),
        *(["async"] if resolver.is_async else []),
        *([f"priority {resolver.priority}"] if resolver.priority else []),
        *([f"params {dumps(step.site.params)}"] if step.site.params else []),
        *([f"after {', '.join(str(place + 1) for place in step.after)}"] if step.after else []),
        *([f"else {', '.join(others)}"] if others else []),
    ]
    suffix = f"   ({'; '.join(marks)})" if marks else ""
    return f"{resolver.name}: {needs} -> {' '.join(map(shown, step.expects))}{suffix}"


def _input_text(item: Input) -> str:
    name = shown(item.attribute) if item.below is None else f"{{{shown(item.attribute)} [..]}}"
    return f"{name}?" if item.optional else name


def _step_data(step: Step, others: tuple[str, ...]) -> dict[str, Any]:
    resolver = step.resolver
    return {
        "resolver": resolver.name,
        "input": [Keyword(item.attribute) for item in step.inputs],
        "expects": [Keyword(attribute) for attribute in step.expects],
        "params": step.site.params,
        "after": list(step.after),
        "batch": resolver.batch,
        "async": resolver.is_async,
        "priority": resolver.priority,
        "else": list(others),
    }
