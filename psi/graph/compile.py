"""A plan as a Python function: what a person would write by hand for the same work, with a check wherever a resolver
could break its word.

The generated code is the happy path only: attributes are locals, a list is one loop, the answer is built as it is
asked. Where reality departs from the plan (an exception, a missing or an unexpected key, a value of an odd kind), the
entity is handed over to a :class:`~psi.graph.frame.Frame`, with everything that is known so far, and the loop goes on
with the next. So there is one place that knows what to do when things go wrong, and it is not here.

Batch resolvers cut the function in two: the first half collects inputs and leaves empty answers behind, the second
fills them when the batch has come back.

What is compiled: levels of plain attributes and joins whose plan has no nested inputs and no async resolvers.
Everything else (placeholders, idents, mutations, unions, recursion, wildcards) runs in frames, which hand their plain
joins back to compiled code.

This module decides what is compiled, and how little has to be remembered; :mod:`psi.graph.emit` writes the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from psi.edn import Keyword
from psi.graph.emit import Task, write_module
from psi.graph.index import Index
from psi.graph.level import Level, Levels, Site
from psi.graph.operations import Resolver
from psi.graph.plan import Plan, Planner

if TYPE_CHECKING:
    from psi.graph.request import Request

__all__ = ["Compiled", "Compiler", "Up"]

# The way from an entity up to the root: (above, step, ..), where above is again such a tuple, a frame, or nothing.
Up = Any

_INLINE_DEPTH: Final = 6  # Python allows twenty blocks in each other; a list takes two
# What asks for more at one level gains little from being compiled, which takes longer the more there is.
_MOST_CALLS: Final = 100
_MOST_KEYS: Final = 500


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    one: Callable[[Mapping[Any, Any], Request, Up], Any]
    many: Callable[[Any, Request, Up], list[Any]]
    source: str


class Compiler:
    """Compiles levels for the shapes of entities they meet."""

    def __init__(self, index: Index, planner: Planner) -> None:
        self._index = index
        self._planner = planner

    def compile(self, level: Level, entity: Mapping[Any, Any]) -> Compiled | None:
        """The functions for entities with the keys of this one; ``None`` where frames must do the work."""
        task = self._task(level, tuple(entity), entity)
        if task is None:
            return None
        self._economise(task)
        source, space = write_module(task, self._inline)
        exec(compile(source, f"<plan of {len(task.plan.steps)} steps>", "exec"), space)
        return Compiled(space["one"], space["many"], source)

    def can(self, level: Level) -> bool:
        """Can this level be compiled for any entity at all?"""
        if level.compilable is None:
            level.compilable = self._is_plain(level) and not any(
                resolver.is_async or any(item.below is not None for item in resolver.inputs)
                for resolver in self._callable(level)
            )
        return level.compilable

    @staticmethod
    def _is_plain(level: Level) -> bool:
        if level.calls or level.idents or level.placeholders or level.symbols or level.wildcard or level.inputs:
            return False
        if any(type(attribute) is not str for attribute in level.joins):
            return False
        return not any(d.union or d.cut or d.recursive or d.limited for d in level.joins.values())

    def _task(self, level: Level, keys: tuple[Any, ...], sample: Mapping[Any, Any], depth: int = 0) -> Task | None:
        if not self.can(level):
            return None
        keys = tuple(str(key) if type(key) is Keyword else key for key in keys)
        plan = self._planner.plan(level, {key: {} for key in keys})
        if plan.unreachable or _enters_twice(level, keys, plan):
            return None
        if len(plan.steps) + len(level.joins) > _MOST_CALLS or len(level.items) + len(keys) > _MOST_KEYS:
            return None
        if any(item.attribute in level.joins for step in plan.steps for item in step.inputs):
            return None  # whoever takes a value whole gets it with what was found below it
        return Task(level, keys, plan, self._relevant(level), sample, depth)

    def _inline(self, outer: Task, attribute: str) -> Task | None:
        """The entities of a list, if it can be guessed what they look like and their code has no batches."""
        level = outer.level.joins[attribute].level
        if outer.depth >= _INLINE_DEPTH:
            return None
        sample = _first(outer.sample.get(attribute))
        keys = tuple(sample) if sample else _declared(outer.plan, attribute)
        task = self._task(level, keys, sample, outer.depth + 1) if keys else None
        if task is None or any(step.resolver.batch for step in task.plan.steps):
            return None
        self._economise(task)
        return task

    # -- what plays a part

    def _callable(self, level: Level) -> set[Resolver]:
        """The resolvers that could be called for this level, whatever the entity has."""
        seen: set[Resolver] = set()
        waiting = [need.attribute for need in level.needs]
        while waiting:
            for resolver in self._index.providers(waiting.pop()):
                if resolver not in seen:
                    seen.add(resolver)
                    waiting.extend(item.attribute for item in resolver.inputs)
        return seen

    def _relevant(self, level: Level) -> frozenset[str]:
        wanted = {need.attribute for need in level.needs}
        for resolver in self._callable(level):
            wanted.update(resolver.output, (item.attribute for item in resolver.inputs))
        return frozenset(wanted)

    # -- what has to be remembered

    def _economise(self, task: Task) -> None:
        """Find out how little of the results has to be remembered."""
        family = task.level.levels
        if family.callers is None:
            family.callers = self._callers(family)
        if not family.callers:
            return
        for step in task.plan.steps:
            self._economise_site(step.site, task)

    @staticmethod
    def _economise_site(site: Site, task: Task) -> None:
        family = task.level.levels
        assert family.callers is not None
        site.alone = family.single
        if family.callers.get(site.resolver) == 1:
            site.sole = task.level in family.lists
            if not site.resolver.batch:
                site.compact = tuple(attribute for attribute in site.resolver.output if attribute in task.relevant)

    def _callers(self, family: Levels) -> dict[Resolver, int]:
        """For each resolver, how many levels of a query may call it. Empty where that cannot be told beforehand."""
        found: dict[Resolver, int] = {}
        seen: set[Level] = set()
        reached: Counter[Level] = Counter()
        waiting = [family.root]
        while waiting:
            level = waiting.pop()
            if level in seen:
                continue
            if level.limited:
                return {}
            seen.add(level)
            below = list(level.below())
            reached.update(below)
            waiting.extend(below)
            for resolver in self._callable(level):
                found[resolver] = found.get(resolver, 0) + 1
        family.single = len(seen) == 1 and not family.root.joins
        family.lists = {level for level in family.root.below() if reached[level] == 1 and not reached[family.root]}
        return found


def _enters_twice(level: Level, keys: tuple[Any, ...], plan: Plan) -> bool:
    """Does a step give again what was entered already? Then the later value counts, which frames know how to do."""
    known = set(keys)
    for step in plan.steps:
        if known & level.joins.keys() & step.resolver.output.keys():
            return True
        known.update(step.resolver.output)
    return False


def _first(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, list) and value and type(value[0]) is dict:
        return value[0]
    return {}


def _declared(plan: Plan, attribute: str) -> tuple[str, ...]:
    """What the entities under an attribute have, as far as its resolver says."""
    for step in plan.steps:
        if attribute in step.expects:
            return tuple(step.resolver.output[attribute] or ())
    return ()
