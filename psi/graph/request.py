"""One query being answered: what its frames and its compiled functions share. Neither waits nor reads a clock.

Also the way back from compiled code: an entity that departs from the happy path is taken over here by a frame.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from psi.edn import Map, thaw
from psi.eql.ast import NO_PARAMS
from psi.eql.parse import MAX_DEPTH
from psi.errors import Done
from psi.graph.compile import Up
from psi.graph.emit import UNSET, Departure
from psi.graph.errors import LimitExceeded
from psi.graph.frame import Frame, path_of
from psi.graph.level import Level, Site
from psi.graph.memory import Memory
from psi.graph.operations import Env
from psi.graph.select import select
from psi.graph.values import input_key

if TYPE_CHECKING:
    from psi.graph.engine import Engine

__all__ = ["Batch", "Limits", "Request", "Waiting"]

_BETWEEN_LOOKS: Final = 64  # entities between two looks at the clock
_BETWEEN_GLANCES: Final = 8  # the same inside a list


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may cost before it is stopped with a clear error."""

    max_depth: int = 1000  # joins below each other
    max_entities: int = 1_000_000
    is_shallow: bool = field(init=False, repr=False, compare=False)  # a query may be written deeper than that

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_shallow", isinstance(self.max_depth, int) and self.max_depth < MAX_DEPTH)
        for name in ("max_depth", "max_entities"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer of 1 or more, got {value!r}")


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """An awaitable on its way, and who wants what it gives."""

    name: str
    awaitable: Awaitable[Any]
    deliver: Callable[[Any, Exception | None], None]


class Batch:
    """Inputs collected for one batch resolver with one set of params, each input once."""

    __slots__ = ("aligned", "inputs", "results", "site", "waiters")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.aligned = False  # one list asks, each of its entities for something else
        self.results: Sequence[Any] | None = None  # then this is all it needs: the results in that order
        self.inputs: dict[Any, Any] = {}
        self.waiters: list[Callable[[Mapping[Any, Any], Mapping[Any, Exception]], None]] = []

    def settle(self, request: Request, found: Mapping[Any, Any], errors: Mapping[Any, Exception]) -> None:
        """Hand out what came back, in the order in which it was asked for; each goes as far as it can before the
        next."""
        for waiter in self.waiters:
            waiter(found, errors)
            request.run()


_EMPTY_ENV: Final = Env(NO_PARAMS, None)


class Request:
    """Everything that the frames and the compiled functions of one query share."""

    __slots__ = (
        "_envs",
        "_expired",
        "_glances",
        "_granted",
        "_memory",
        "_returned",
        "_spent",
        "batches",
        "budget",
        "context",
        "done",
        "engine",
        "is_tired",
        "late",
        "lenient",
        "limits",
        "plain_env",
        "stack",
        "sync",
        "tired",
        "waiting",
    )

    def __init__(
        self,
        engine: Engine,
        context: Any,
        lenient: bool,
        limits: Limits,
        expired: Callable[[], bool] | None,
        sync: bool,
    ) -> None:
        self.engine = engine
        self.sync = sync
        self.limits = limits
        self.context = context
        self.done: list[Done] = []  # mutations that went well, in their order
        self.lenient = lenient
        self.plain_env = _EMPTY_ENV if context is None else Env(NO_PARAMS, context)
        self.stack: list[Frame] = []
        self.tired: Callable[[], bool] | None = None  # whether it has held up others for long enough
        self.is_tired = False
        self.batches: dict[Site, Batch] = {}
        self.waiting: list[Waiting] = []
        self._memory: Memory | None = None
        self.late: list[tuple[Frame, dict[Any, Any]]] = []
        # Entities that may still be worked on before the limits are looked at again.
        self.budget = self._granted = (
            limits.max_entities if expired is None else min(limits.max_entities, _BETWEEN_LOOKS)
        )
        self._spent = 0
        self._glances = 0
        self._returned = 0
        self._expired = expired
        self._envs: dict[int, Env] = {}

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            self._memory = Memory()  # a query about one entity never needs it
        return self._memory

    def env(self, params: Map) -> Env:
        if not params:
            return self.plain_env
        key = id(params)  # the plan holds them alive
        found = self._envs.get(key)
        if found is None:
            found = self._envs[key] = Env(thaw(params), self.context)
        return found

    def batch(self, site: Site) -> Batch:
        found = self.batches.get(site)
        if found is None:
            found = self.batches[site] = Batch(site)
        return found

    def wait(self, name: str, awaitable: Awaitable[Any], deliver: Callable[[Any, Exception | None], None]) -> None:
        self.waiting.append(Waiting(name, awaitable, deliver))

    def run(self) -> bool:
        """Let every frame on the stack go as far as it can without waiting; or until the request is ``tired``, and then
        some may be left. True when none are."""
        stack = self.stack
        tired = self.tired
        while stack:
            frame = stack.pop()
            frame.queued = False
            frame.run()
            if tired is not None and tired():
                self.is_tired = True
                return not stack
        return True

    def admit(self, frame: Frame) -> None:
        if frame.depth > self.limits.max_depth:
            raise LimitExceeded("max-depth", f"nested deeper than max_depth={self.limits.max_depth}", frame.path())
        self.budget -= 1
        if self.budget < 0:
            self.spend(frame)

    def spend(self, up: Up) -> None:
        """The budget of entities is used up: look at the limits and, if they allow, get another."""
        limit = self.limits.max_entities
        self._spent += self._granted - self.budget
        if self._spent > limit:
            raise LimitExceeded("max-entities", f"more entities than max_entities={limit}", path_of(up))
        if self._expired is not None and self._expired():
            raise LimitExceeded("timeout", "the request took longer than its timeout", path_of(up))
        self.budget = self._granted = min(limit - self._spent, _BETWEEN_LOOKS if self._expired is not None else limit)

    def spend_on(self, elements: Sequence[Any], up: Up) -> None:
        """A list is longer than what is left of the budget; but only entities count."""
        others = sum(not isinstance(element, Mapping) for element in elements)
        self.budget += others
        self._returned += others
        if self.budget < 0:
            self.spend(up)

    def glance(self, up: Up) -> None:
        """Look at the clock every few calls."""
        if self._expired is not None:
            self._glances += 1
            if not self._glances % _BETWEEN_GLANCES and self._expired():
                raise LimitExceeded("timeout", "the request took longer than its timeout", path_of(up))

    @property
    def timed(self) -> bool:
        return self._expired is not None

    def in_time(self, elements: Sequence[Any], up: Up) -> Iterator[Any]:
        """The elements of a list, with a look at the clock now and then."""
        for place, element in enumerate(elements):
            if not place % _BETWEEN_GLANCES and self._expired is not None and self._expired():
                raise LimitExceeded("timeout", "the request took longer than its timeout", path_of(up))
            yield element

    # -- what compiled functions call when they meet something they were not made for

    def enter_one(self, level: Level, entity: Mapping[Any, Any], up: Up) -> Any:
        """The answer of one entity; compiled on the first of its shape."""
        return self.entrance(level, entity)(entity, self, up)

    def entrance(self, level: Level, entity: Mapping[Any, Any]) -> Any:
        """The function for entities like this one, compiled or not."""
        if self.limits.is_shallow and level.levels.height > self.limits.max_depth:
            return self.engine.framed(level).one  # only frames count how deep they are
        return level.one.get(tuple(entity)) or self.engine.compiled(level, entity).one

    def enter_list(self, level: Level, elements: list[Any], up: Up) -> list[Any]:
        """The answers of a list that no loop was compiled for yet; the first entity in it decides for which shape one
        is."""
        if elements and type(elements[0]) is dict:
            made = self.engine.compiled(level, elements[0], len(elements))
            if made is not level.framed or not self.engine.compiles(level):
                level.answer_list = made.many
            return made.many(elements, self, up)
        out: list[Any] = []
        for place, element in enumerate(elements):
            if isinstance(element, Mapping):
                out.append(self.enter_one(level, element, (up, place)))
            elif element is not None:
                out.append(element)
        return out

    def other(self, level: Level, element: Any, up: Up, out: list[Any]) -> None:
        """An element that the loop was not made for: another shape, or no entity at all."""
        if isinstance(element, Mapping):
            self.budget += 1  # it was counted with the list
            out.append(self.enter_one(level, element, up))
            return
        if self._returned:
            self._returned -= 1
        else:
            self.budget += 1
        if element is not None:
            out.append(element)

    def fetch(self, site: Site, data: dict[str, Any]) -> Any:
        """Call a resolver whose input is not its own key."""
        resolver = site.resolver
        key = input_key(data, resolver.inputs)
        value = self.memory.recall(site, data, key)
        if value is UNSET:
            value = resolver.function(self.env(site.params), data)
            self.memory.remember(site, data, key, value)
        return value

    def park(self, site: Site, resume: Callable[..., None], parked: Any, out: Any, up: Up) -> None:
        def receive(found: Mapping[Any, Any], errors: Mapping[Any, Exception]) -> None:
            resume(parked, out, found, errors, self, up)

        self.batch(site).waiters.append(receive)

    def park_list(
        self,
        site: Site,
        resume: Callable[..., None],
        entities: list[Any],
        keys: list[Any],
        inputs: list[Any],
        out: Any,
        up: Up,
    ) -> None:
        """Park all entities of a list at once. If nobody else has asked and no key occurs twice, results need no
        keys."""
        batch = self.batch(site)
        known = self.memory.whole(site) if site.resolver.cache else ()
        pairs = zip(keys, inputs, strict=True)
        batch.inputs.update(pairs if not known else [(key, data) for key, data in pairs if key not in known])
        places = range(len(entities))
        batch.aligned = site.sole and len(batch.inputs) == len(keys) and not batch.waiters

        def receive(found: Mapping[Any, Any], errors: Mapping[Any, Exception]) -> None:
            if batch.results is not None:
                resume(zip(places, entities, places, strict=True), out, batch.results, errors, self, up)
            else:
                resume(zip(places, entities, keys, strict=True), out, found, errors, self, up)

        batch.waiters.append(receive)

    def depart(
        self,
        departure: Departure,
        entity: Mapping[Any, Any],
        up: Up,
        error: Exception | None,
        out: dict[Any, Any],
    ) -> dict[Any, Any]:
        """Go on with an entity in a frame, from where compiled code left it."""
        self.budget += 1  # it was counted when it was met
        frame = Frame(self, departure.level, entity, up=up)
        frame.resume(departure, error)
        return self.answer(frame, out)

    def frame(self, level: Level, entity: Mapping[Any, Any], up: Up) -> dict[Any, Any]:
        """The answer of one entity that no code was compiled for."""
        return self.answer(Frame(self, level, entity, up=up), {})

    def answer(self, frame: Frame, out: dict[Any, Any]) -> dict[Any, Any]:
        """Run a frame now, before anything else; its answer may be completed later."""
        if self.is_tired:  # others have waited for long enough: this is for whoever drives the request
            self.enqueue(frame)
            self.late.append((frame, out))
            return out
        before = self.stack
        self.stack = []
        self.enqueue(frame)
        if not self.run():
            before = [*before, *self.stack]  # whoever drives the request goes on with them
        self.stack = before
        if frame.complete:
            out.update(select(frame.level, frame.entity))
        else:
            self.late.append((frame, out))
        return out

    def finish(self) -> None:
        """Everything is there: cut the answers that had to wait."""
        for frame, out in self.late:
            out.update(select(frame.level, frame.entity))
        self.late.clear()

    def enqueue(self, frame: Frame) -> None:
        if not frame.queued:
            frame.queued = True
            self.stack.append(frame)
