"""One entity being filled.

A frame follows its plan step by step, enters the values its joins lead into, and is done when nothing is left to
call. Frames never call each other. They are put on the request's stack and taken from it, so that the depth of the
data is never the depth of Python's stack, and so that a frame which must wait (for a batch, for an awaitable, for the
entities below it) simply leaves the stack until its answer is in its inbox.

Order inside one entity: mutations, joins into what is there already, idents, resolvers, placeholders, checks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from psi.edn import List, kind_key, thaw
from psi.eql import Call
from psi.errors import Done, Failed, PsiError
from psi.graph.blame import all_failed, lenient_errors, missing_details
from psi.graph.compile import Up
from psi.graph.emit import UNSET, Departure, Odd
from psi.graph.errors import (
    AsyncOperation,
    AttributeMissing,
    AttributeUnreachable,
    BatchFailed,
    InvalidResponse,
    LimitExceeded,
    MutationFailed,
    MutationNotFound,
    Path,
    ResolverFailed,
    shown,
    told,
)
from psi.graph.level import ERRORS, MUTATION_ERROR, Descent, Level, Placeholder, Site
from psi.graph.operations import Resolver
from psi.graph.plan import Plan, Reach, Step, shape_of
from psi.graph.reasons import reasons_for
from psi.graph.select import Entity, SetOf, rebuild
from psi.graph.shape import Shape, shape_key
from psi.graph.values import cut_input, input_key

if TYPE_CHECKING:
    from psi.graph.request import Request

__all__ = ["Frame", "path_of"]

_MUTATE, _ENTER, _IDENTS, _RESOLVE, _PLACEHOLDERS, _CHECK, _DONE = range(7)

_PLANS_PER_LEVEL: Final = 256


class Frame:
    """One entity being filled."""

    __slots__ = (
        "called",
        "depth",
        "descents",
        "done",
        "entity",
        "failures",
        "first_plan",
        "hoisted",
        "in_flight",
        "inbox",
        "key",
        "landmark",
        "level",
        "lost",
        "mutated",
        "open_below",
        "parent",
        "phase",
        "plan",
        "queued",
        "reached",
        "request",
        "source",
        "spent",
        "stale",
        "started",
        "steps_here",
        "up",
    )

    def __init__(
        self,
        request: Request,
        level: Level,
        source: Mapping[Any, Any],
        parent: Frame | None = None,
        steps_here: Path = (),
        *,
        up: Up = None,
    ) -> None:
        self.request = request
        self.level = level
        self.source = source
        self.entity = Entity(source)
        self.parent = parent
        self.steps_here = steps_here
        self.up = up
        self.depth: int = depth_of(up) if parent is None else parent.depth + 1
        self.phase = _MUTATE
        self.plan: Plan = _UNPLANNED
        self.first_plan: Plan = _UNPLANNED
        self.descents: Mapping[str, Descent] = {}
        self.started = 0
        self.done = 0
        self.spent: set[Resolver] = set()
        self.failures: dict[Resolver, Failed | None] = {}
        self.lost: set[str] = set()
        self.reached: dict[Any, Reach] = {}
        self.inbox: list[tuple[int, Any, Exception | None]] = []
        self.in_flight = 0
        self.open_below: dict[Any, int] = {}
        self.stale = False
        self.queued = False
        self.called = 0
        self.mutated = False
        self.hoisted: dict[tuple[str, ...], dict[Any, Any]] = {}
        self.key: Any = None
        self.landmark: Frame | None = None
        request.admit(self)

    def path(self) -> Path:
        steps: list[Path] = []
        frame = self
        while frame.parent is not None:
            steps.append(frame.steps_here)
            frame = frame.parent
        steps.append(path_of(frame.up))
        return tuple(step for here in reversed(steps) for step in here)

    @property
    def complete(self) -> bool:
        return self.phase == _DONE and not (self.open_below and any(self.open_below.values()))

    def resume(self, departure: Departure, error: Exception | None) -> None:
        """Take over from compiled code: what was called is called, what was entered is entered."""
        self.entity.ready = departure.joined
        self._adopt(departure.plan)
        self.first_plan = departure.plan
        place, value = departure.place, departure.result
        if place < 0:
            self.phase = _ENTER
            return
        self.phase = _RESOLVE
        for before, (values, whole) in enumerate(departure.done):
            self._already(before, values, whole=whole)
        if isinstance(value, Sharing) or (value is UNSET and (error is None or isinstance(error, Odd))):
            return  # not called yet
        self.started |= 1 << place
        resolver = self.plan.steps[place].resolver
        if value is UNSET:
            assert error is not None
            failed = _failed(BatchFailed if resolver.batch else ResolverFailed, resolver.name, error, self.path())
            self.inbox.append((place, None, failed))
        elif isinstance(value, Awaitable):
            data = cut_input(self.entity, resolver.inputs)
            assert data is not None
            self._accept(place, data, input_key(data, resolver.inputs), value, [])
        else:
            self._remember(place, value)
            self.inbox.append((place, value, None))

    def _remember(self, place: int, value: Any) -> None:
        """Compiled code keeps only what is as it should be; an odd result must be known again, too."""
        site = self.plan.steps[place].site
        if site.compact and site.resolver.cache:
            data = cut_input(self.entity, site.resolver.inputs)
            if data is not None:
                self.request.memory.remember(site, data, input_key(data, site.resolver.inputs), value)

    def _already(self, place: int, value: Mapping[Any, Any], *, whole: bool) -> None:
        """A step that compiled code has done: its values are known, and those to be entered are entered."""
        self.started |= 1 << place
        self.done |= 1 << place
        if whole:  # otherwise what else it gave is remembered, and can be asked for again
            self.spent.add(self.plan.steps[place].resolver)
        for key, item in value.items():
            self.entity.setdefault(key, item)

    # -- the way through the phases

    def run(self) -> None:
        if self.plan is _UNPLANNED:
            self._start()
        if self.phase == _MUTATE and not self._mutate():
            return
        if self.phase == _ENTER:
            self.phase = _IDENTS
            if self._enter_known():
                return
        if self.phase == _IDENTS:
            self.phase = _RESOLVE
            if self._idents():
                return
        if self.phase == _RESOLVE and not self._resolve():
            return
        if self.phase == _PLACEHOLDERS and not self._placeholders():
            return
        if self.phase == _CHECK:
            self._check()

    def _start(self) -> None:
        self._look_before_calling()
        self._adopt(self._planned())
        self.first_plan = self.plan
        unreachable = self.plan.unreachable
        if unreachable and not self.request.lenient:
            self._refuse(
                [need.attribute for need in self.level.needs if need.required and need.attribute in unreachable]
            )

    def _look_before_calling(self) -> None:
        """What is sure to be refused is refused before anything has changed."""
        if self.mutated:
            return
        index = self.request.engine.index
        for call, _, _ in self.level.calls:
            found = index.mutations.get(call.name)
            if found is None and not self.request.lenient:
                raise MutationNotFound(call.name, self.path(), index.nearest_mutation(call.name))
            if found is not None and found.is_async and self.request.sync:
                raise AsyncOperation(call.name)

    def _refuse(self, attributes: list[str]) -> None:
        if attributes:
            index, planner = self.request.engine.index, self.request.engine.planner
            known = shape_of(self.entity, index.entered)
            raise AttributeUnreachable(reasons_for(index, planner, known, attributes), self.path())

    def _planned(self) -> Plan:
        request = self.request
        entered = request.engine.index.entered
        shape: Shape | None = None
        key: Any = tuple(self.entity)
        if entered and not entered.isdisjoint(self.entity):
            shape = shape_of(self.entity, entered)
            key = shape_key(shape)
        if self.spent:
            key = (key, tuple(self.source), frozenset(self.spent))
        plans = self.level.plans
        plan: Plan | None = plans.get(key)
        if plan is None:
            if shape is None:
                shape = {key: {} for key in self.entity}
            plan = request.engine.planner.plan(self.level, shape, frozenset(self.spent), self._origin())
            if len(plans) >= _PLANS_PER_LEVEL:
                plans.pop(next(iter(plans)), None)
            plans[key] = plan
        return plan

    def _origin(self) -> Shape | None:
        return shape_of(self.source, self.request.engine.index.entered) if self.spent else None

    def _adopt(self, plan: Plan) -> None:
        if self.request.sync and plan.is_async is not None:
            raise AsyncOperation(plan.is_async)
        self.plan = plan
        self.descents = plan.descents
        self.started = self.done = 0

    def _wait_below(self, children: list[Frame]) -> bool:
        """Let the entities below go first; comes back here when they went as far as they can."""
        if not children:
            return False
        request = self.request
        request.enqueue(self)
        for child in children:
            self.open_below[child.key] = self.open_below.get(child.key, 0) + 1
        for child in reversed(children):
            request.enqueue(child)
        return True

    # -- mutations

    def _mutate(self) -> bool:
        calls = self.level.calls
        if self.mutated:
            self.called = len(calls)
        while True:
            children: list[Frame] = []
            while self.inbox:
                _, value, error = self.inbox.pop()
                self._mutated(calls[self.called - 1], value, error, children)
            if self._wait_below(children) or self.in_flight:
                return False
            if self.called == len(calls):
                self.phase = _ENTER
                return True
            self.called += 1
            self._call_mutation(calls[self.called - 1][0])

    def _call_mutation(self, call: Call) -> None:
        request = self.request
        found = request.engine.index.mutations.get(call.name)
        if found is None:
            error = MutationNotFound(call.name, self.path(), request.engine.index.nearest_mutation(call.name))
            self.inbox.append((0, None, error))
            return
        try:
            value = found.function(request.env(call.params), thaw(call.params))
        except Exception as error:  # noqa: BLE001 – whatever a mutation raises is its answer
            self.inbox.append((0, None, _failed(MutationFailed, call.name, error, self.path())))
            return
        if found.is_async or isinstance(value, Awaitable):
            self._await(found.name, value, 0, MutationFailed)
        else:
            self.inbox.append((0, value, None))

    def _mutated(
        self,
        asked: tuple[Call, Descent | None, tuple[str, ...]],
        value: Any,
        error: Exception | None,
        children: list[Frame],
    ) -> None:
        call, descent, placeholder = asked
        if error is not None:
            if not self.request.lenient or not isinstance(error, PsiError):
                raise error
            value = {MUTATION_ERROR: error.as_data()}
            descent = None
        else:
            self.request.done.append(Done(str(call.name), value))
        into = self.entity if not placeholder else self.hoisted.setdefault(placeholder, {})
        into[call.name] = value if descent is None else self._enter(call.name, descent, value, children)

    # -- going into values

    def _enter_known(self) -> bool:
        children: list[Frame] = []
        entity = self.entity
        for attribute, descent in self.descents.items():
            if attribute in entity and attribute not in entity.ready:
                entity[attribute] = self._enter(attribute, descent, entity[attribute], children)
        return self._wait_below(children)

    def _idents(self) -> bool:
        children: list[Frame] = []
        for ident, descent in self.level.idents:
            key = ident.as_key()
            known = self.entity.get(key)
            start = {**(known if isinstance(known, Mapping) else {}), ident.attribute: thaw(ident.value)}
            self.entity[key] = start if descent is None else self._enter(key, descent, start, children)
        return self._wait_below(children)

    def _enter(self, key: Any, descent: Descent, value: Any, children: list[Frame]) -> Any:
        """The value with its entities replaced by the ones now being filled."""
        if descent.cut:
            return value
        if type(value) is list and self._hands_over(key, descent):
            self.entity.ready[key] = descent.level.answer_list(value, self.request, (self, key))
            return value
        if type(value) is dict and self._hands_over(key, descent):
            self.entity.ready[key] = self.request.enter_one(descent.level, value, (self, key))
            return value
        self.entity.touched.add(key)
        if isinstance(value, Mapping):
            level = descent.pick(value)
            return None if level is None else self._child(level, value, (key,), descent, children)
        if not isinstance(value, list | tuple | set | frozenset):
            return value
        elements: list[Any] = []
        entered: list[Frame] = []
        for place, element in enumerate(value):
            if type(element) is dict or isinstance(element, Mapping):
                level = descent.pick(element)
                if level is not None:
                    elements.append(self._child(level, element, (key, place), descent, entered))
            elif element is not None:
                elements.append(element)
        # Lists are walked from their end, as Pathom does: when the query fails at the last element, none before it
        # has been asked.
        children.extend(reversed(entered) if isinstance(value, List) else entered)
        return SetOf(elements) if isinstance(value, SetOf | set | frozenset) else rebuild(value, elements)

    def _hands_over(self, key: Any, descent: Descent) -> bool:
        """May compiled code answer this join? Only if nobody here looks inside the value again."""
        if descent.union or descent.recursive or not self.request.engine.compiles(descent.level):
            return False
        limits = self.request.limits
        if limits.is_shallow and self.level.levels.height > limits.max_depth:
            return False
        level = self.level
        return not level.wildcard and not level.placeholders and self.plan.descents.get(key) is level.joins.get(key)

    def _child(
        self, level: Level, source: Mapping[Any, Any], steps: Path, descent: Descent, children: list[Frame]
    ) -> dict[Any, Any]:
        child = Frame(self.request, level, source, self, steps)
        child.key = steps[0]
        if descent.recursive:
            child.refuse_cycle()
        children.append(child)
        return child.entity

    def refuse_cycle(self) -> None:
        """An unbounded recursion that meets the same entity again on its way down would never end."""
        # Brent's way: compare with one entity above, and take another for it at depths 1, 2, 4, 8, ... A circle is
        # found when that one lies in it, at the cost of a comparison for each entity.
        above = self.parent
        assert above is not None
        landmark = above.landmark if above.landmark is not None and above.depth & (above.depth - 1) else above
        self.landmark = landmark
        if landmark.level is self.level and (landmark.source is self.source or _same_items(landmark, self)):
            message = f"the data goes in a circle: {shown(self.key)} leads back to the same entity"
            raise LimitExceeded("data-cycle", message, self.path())

    # -- resolvers

    def _resolve(self) -> bool:
        while True:
            children: list[Frame] = []
            while self.inbox:
                place, value, error = self.inbox.pop(0)
                if error is not None:
                    self._fail(place, error)
                else:
                    self._deliver(place, value, children)
                if children:
                    break
            if self._wait_below(children):
                return False
            if self.inbox:
                continue
            if self.stale:
                if self.in_flight:
                    if not self.request.lenient:
                        self._raise_if_lost(self._planned())
                    return False
                self._replan(children)
                if self._wait_below(children):
                    return False
            if self._advance(children):
                if self._wait_below(children):
                    return False
                continue
            if self.inbox or self.stale:
                continue
            if self.done == (1 << len(self.plan.steps)) - 1:
                self.phase = _PLACEHOLDERS
                return True
            return False

    def _advance(self, children: list[Frame]) -> bool:
        """Start what can be started. True as soon as something came back that has to be looked at first."""
        entity = self.entity
        for place, step in enumerate(self.plan.steps):
            bit = 1 << place
            if self.started & bit or self.done & step.after_mask != step.after_mask:
                continue
            if step.waits_for and any(self.open_below.get(attribute) for attribute in step.waits_for):
                continue
            self.started |= bit
            if step.expected <= entity.keys():
                self.done |= bit
                continue
            if self.lost and any(item.attribute in self.lost and not item.optional for item in step.inputs):
                self._miss(place)
                if self.stale:
                    return True
                continue
            if self._call(place, step, children):
                return False
            if children or self.stale:
                return True
        return False

    def _call(self, place: int, step: Step, children: list[Frame]) -> bool:
        """Start one step. True when the frame should go no further before its answer is there."""
        resolver = step.resolver
        request = self.request
        request.glance(self)
        data = cut_input(self.entity, resolver.inputs)
        if data is None:
            self._miss(place)
            return False
        site = step.site
        key = input_key(data, resolver.inputs) if resolver.cache or resolver.batch else None
        known = request.memory.recall(site, data, key, step.expects) if resolver.cache else UNSET
        if isinstance(known, Sharing):
            known.append((self, place))
            self.in_flight += 1
            return False
        if known is not UNSET:
            self._deliver(place, known, children)
            return False
        if resolver.batch:
            batch = request.batch(site)
            batch.inputs.setdefault(key, data)
            batch.waiters.append(self._waiter(place, key))
            self.in_flight += 1
            # What comes after may not be wanted any more when this one fails. Async ones are not waited for: they are
            # slow, and run beside the others.
            return not resolver.is_async
        try:
            value = resolver.function(request.env(site.params), data)
        except Exception as error:  # noqa: BLE001 – whatever a resolver raises is its answer
            self._fail(place, _failed(ResolverFailed, resolver.name, error, self.path()))
            return False
        self._accept(place, data, key, value, children)
        return False

    def _accept(self, place: int, data: Mapping[str, Any], key: Any, value: Any, children: list[Frame]) -> None:
        """What a resolver returned: remember it, wait for it, or take it."""
        site = self.plan.steps[place].site
        resolver = site.resolver
        if type(value) is not dict and isinstance(value, Awaitable):
            if resolver.cache:
                sharing = Sharing(((self, place),))
                self.request.memory.remember(site, data, key, sharing)
                self.in_flight += 1
                self.request.wait(resolver.name, value, sharing.delivery(self.request, site, data, key))
            else:
                self._await(resolver.name, value, place, ResolverFailed)
            return
        if resolver.cache:
            self.request.memory.remember(site, data, key, value)
        self._deliver(place, value, children)

    def _waiter(self, place: int, key: Any) -> Callable[[Mapping[Any, Any], Mapping[Any, Exception]], None]:
        def receive(found: Mapping[Any, Any], errors: Mapping[Any, Exception]) -> None:
            error = errors.get(key)
            failed = (
                None
                if error is None
                else _failed(BatchFailed, self.plan.steps[place].resolver.name, error, self.path())
            )
            self.receive(place, found.get(key), failed)

        return receive

    def _await(self, name: str, value: Awaitable[Any], place: int, kind: Callable[..., Failed]) -> None:
        self.in_flight += 1

        def deliver(value: Any, error: Exception | None) -> None:
            self.receive(place, value, None if error is None else _failed(kind, name, error, self.path()))

        self.request.wait(name, value, deliver)

    def receive(self, place: int, value: Any, error: Exception | None) -> None:
        """An answer that was waited for has come."""
        self.in_flight -= 1
        self.inbox.append((place, value, error))
        self.request.enqueue(self)

    def _deliver(self, place: int, value: Any, children: list[Frame]) -> None:
        step = self.plan.steps[place]
        resolver = step.resolver
        if value is None:
            value = {}
        elif type(value) is not dict and not isinstance(value, Mapping):
            self._fail(place, InvalidResponse(resolver.name, value, self.path()))
            return
        self.done |= 1 << place
        self.spent.add(resolver)
        entity = self.entity
        descents, joins = self.descents, self.level.joins
        for key, item in value.items():
            # A value that the query enters is taken anew, any other is kept as it first came.
            if key in descents and (key in joins or key not in entity):
                entity.ready.pop(key, None)
                entity[key] = self._enter(key, descents[key], item, children)
            elif key not in entity:
                entity[key] = item
        if not step.expected <= entity.keys():
            self._miss(place)

    def _fail(self, place: int, error: Exception) -> None:
        if not isinstance(error, Failed):
            raise error
        self.failures[self.plan.steps[place].resolver] = error
        self._miss(place)

    def _miss(self, place: int) -> None:
        """A step did not deliver. If nobody else could either, there is nothing to plan again."""
        step = self.plan.steps[place]
        self.done |= 1 << place
        self.spent.add(step.resolver)
        self.failures.setdefault(step.resolver, None)
        providers = self.request.engine.index.providers
        for attribute in step.expects:
            if attribute not in self.entity:
                self.lost.add(attribute)
                if any(other not in self.spent for other in providers(attribute)):
                    self.stale = True
        if not self.request.lenient and any(self.failures.values()):
            self.stale = True  # whether it can be done without has to be found out, and whose fault it is if not

    def _replan(self, children: list[Frame]) -> None:
        """A resolver did not do what it declared: plan again from here, without it."""
        before = self.descents
        self._adopt(self._planned())
        self.stale = False
        self.lost.clear()
        if not self.request.lenient:
            self._raise_if_lost(self.plan)
        for attribute, descent in self.descents.items():
            plain = self.level.joins.get(attribute)
            entered = attribute in before and (descent is plain or before[attribute] is not plain)
            if attribute in self.entity and not entered:
                self.entity.ready.pop(attribute, None)
                self.entity[attribute] = self._enter(attribute, descent, self.entity[attribute], children)

    def _raise_if_lost(self, plan: Plan) -> None:
        """In strict mode a failure ends the request, unless there is another way to what it was for."""
        if any(self.failures.values()):
            for attribute in self._out_of_reach(plan):
                error = all_failed(self, attribute)
                if error is not None:
                    raise error

    def _out_of_reach(self, plan: Plan) -> Iterator[str]:
        """What was wanted, be it as an option, and no way is left to it."""
        made = {attribute for step in plan.steps for attribute in step.resolver.output}
        wanted = [need.attribute for need in self.level.needs]
        wanted.extend(item.attribute for step in plan.steps for item in step.resolver.inputs if item.optional)
        return (a for a in wanted if a not in made and a not in self.entity and a not in self.first_plan.unreachable)

    # -- placeholders and the end

    def _placeholders(self) -> bool:
        placeholders = self.level.placeholders
        if placeholders and any(self.open_below.values()):
            return False
        self.phase = _CHECK
        if not placeholders:
            return True
        children: list[Frame] = []
        now = dict(self.entity)  # placeholders do not see each other
        for placeholder in placeholders:
            if placeholder.level is None:
                self.entity[placeholder.key] = Entity(now)
                self.entity.touched.add(placeholder.key)
            else:
                self.entity[placeholder.key] = self._repeat(placeholder, placeholder.level, now, children)
        for child in children:
            child._start()
        return not self._wait_below(children)

    def _repeat(
        self, placeholder: Placeholder, level: Level, now: Mapping[Any, Any], children: list[Frame]
    ) -> dict[Any, Any]:
        data_params = placeholder.params if self.request.engine.placeholder_params else None
        start = {**self.source, **data_params} if data_params else self.source if placeholder.fresh else now
        child = Frame(self.request, level, start, self, (placeholder.key,))
        child.key = placeholder.key
        child.mutated = True  # the parent ran them, in their order
        for path, results in self.hoisted.items():
            if path[0] == placeholder.key:
                if len(path) == 1:
                    child.entity.update(results)
                else:
                    child.hoisted[path[1:]] = results
        children.append(child)
        return child.entity

    def _check(self) -> None:
        entity = self.entity
        self.phase = _DONE
        if self.request.lenient:
            errors = lenient_errors(self)
            if errors:
                entity[ERRORS] = errors
        else:
            missing = [need.attribute for need in self.level.needs if need.required and need.attribute not in entity]
            missing.extend(symbol for symbol in self.level.symbols if symbol not in entity)
            if missing:
                raise AttributeMissing(missing_details(self, missing), self.path())
        self._complete()

    def _complete(self) -> None:
        """Tell the entities above, up to the first that still waits for others."""
        frame = self
        while frame.complete:
            above = frame.parent
            if above is None:
                return
            above.open_below[frame.key] -= 1
            if above.phase != _DONE:
                if not above.open_below[frame.key]:
                    above.request.enqueue(above)
                return
            frame = above


def path_of(up: Up) -> Path:
    """The steps from the root down to where ``up`` leads."""
    steps: list[Any] = []
    while up is not None:
        if isinstance(up, Frame):
            return (*up.path(), *reversed(steps))
        steps.extend(reversed(up[1:]))
        up = up[0]
    return tuple(reversed(steps))


def depth_of(up: Up) -> int:
    """How many joins lead there; the places in lists do not count."""
    return sum(not isinstance(step, int) for step in path_of(up))


class Sharing(list[tuple[Frame, int]]):
    """Stands in the cache while a result is awaited, and collects who else wants it."""

    def delivery(
        self, request: Request, site: Site, data: Mapping[str, Any], key: Any
    ) -> Callable[[Any, Exception | None], None]:
        def deliver(value: Any, error: Exception | None) -> None:
            if error is None:
                request.memory.remember(site, data, key, value)
            else:
                request.memory.forget(site, key)
            for frame, place in reversed(self):
                failed = None if error is None else _failed(ResolverFailed, site.resolver.name, error, frame.path())
                frame.receive(place, value, failed)

        return deliver


def _failed(kind: Callable[..., Failed], name: str, error: Exception, path: Path) -> Failed:
    if isinstance(error, LimitExceeded):
        raise error
    failure = kind(name, told(error), path)
    failure.__cause__ = error
    return failure


def _same_items(one: Frame, other: Frame) -> bool:
    return one.source.keys() == other.source.keys() and kind_key(one.source) == kind_key(other.source)


_UNPLANNED: Final = Plan((), {}, None, {})
