"""Writing a plan as Python source. Knows how the happy path looks in code; decides nothing and runs nothing.

One module of source is made for one level and one shape of entity:

    one(x, run, up)        the answer for one entity
    many(xs, run, up)      the answers for a list of them: one loop, with the joins below as loops inside it
    resume_N(...)          the rest, after the batch at step N has come back

Names in the code, each with a suffix for how deep it is nested: ``x`` the entity, ``v0 v1 ..`` its attributes, ``r0
r1 ..`` the results of its steps, ``o0 o1 ..`` the answers of its joins, ``out`` and ``add`` the list of answers,
``k`` and ``h`` the key and the value of a remembered result. ``p`` says where the entity stands, for the one
``except`` that catches all: the step on its turn, -2 while the entity is looked at, -1 while other entities are
worked on, whose failures are their own, and a large number more while a key is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from psi.edn import List, Map, Vector
from psi.graph.level import Level
from psi.graph.plan import Plan, Step
from psi.graph.values import ABSENT_KEY, all_differ, all_of_size, fits, place_of

__all__ = ["UNSET", "Departure", "Full", "Odd", "Task", "write_module"]


class _Unset:
    def __repr__(self) -> str:
        return "<unset>"


UNSET: Final = _Unset()


class Odd(Exception):
    """Raised inside compiled code where an entity is not what the code was made for."""


class Full(tuple[Any, ...]):
    """Stands in a compact cache for a result that is kept whole in the other one. Empty, so that it matches no
    input."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where in a function's locals an entity's values are: for whoever takes over when it leaves the happy path."""

    level: Level
    plan: Plan
    values: Mapping[str, str]  # attribute → name
    joins: Mapping[str, str]  # attribute → name of its answer
    results: tuple[str, ...]  # step → name of its result

    def departure(self, place: int, names: Mapping[str, Any], joined: tuple[str, ...] | None = None) -> Departure:
        """What is known of an entity that departs at this step, -1 being before all of them.

        ``joined`` are the joins that were answered by then, where it is not just all of the steps before. The locals
        alone do not tell: they may hold answers of the entity before.
        """
        steps = self.plan.steps
        if joined is None:
            made = {attribute: step for step, planned in enumerate(steps) for attribute in planned.expects}
            joined = tuple(attribute for attribute in self.joins if made.get(attribute, -1) < place)
        answers = {attribute: names[self.joins[attribute]] for attribute in joined}
        done = tuple(self._known(step, names) for step in range(max(place, 0)))
        result = names.get(self.results[place], UNSET) if place >= 0 else UNSET
        return Departure(self.level, self.plan, place, done, result, answers)

    def _known(self, step: int, names: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """What a step gave, and whether that is all: of a remembered result only the values in use are at hand."""
        result = names.get(self.results[step], UNSET)
        if result is not UNSET:
            return result, True
        return {a: names[self.values[a]] for a in self.plan.steps[step].expects}, False


@dataclass(frozen=True, slots=True, eq=False)
class Departure:
    """An entity that left the happy path, and how far it had come."""

    level: Level
    plan: Plan
    place: int  # the step on its turn; -1: a value that cannot be entered here
    done: tuple[tuple[Mapping[str, Any], bool], ...]  # what the steps before gave, and whether that is all they gave
    result: Any  # what this one gave, or UNSET
    joined: dict[str, Any]  # answers of joins


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One level to be written for entities with these keys."""

    level: Level
    keys: tuple[Any, ...]
    plan: Plan
    relevant: frozenset[str]  # attributes that could play a part; other keys of an entity make no difference
    sample: Mapping[Any, Any]  # an entity to guess from what the lists inside look like
    depth: int  # loops around it in the same function


# A task for the entities of a list that a join leads into, where they can be guessed and written in place.
Inliner = Callable[[Task, str], "Task | None"]

_FEW: Final = 2  # so many single look-ups are cheaper than one look at the whole
_KEYING: Final = 1_000_000
_ATOMS: Final = frozenset((type(None), str, int, float, bool))
_KINDS: Final = frozenset((int, str))
_DEEP: Final = frozenset((tuple, List, Vector, frozenset, Map))  # equal although their elements differ in kind


def write_module(task: Task, inliner: Inliner) -> tuple[str, dict[str, Any]]:
    """The source, and the constants it refers to."""
    module = _Module()
    batches = [place for place, step in enumerate(task.plan.steps) if step.resolver.batch]
    texts = [_write_one(module, task, inliner), _write_many(module, task, inliner)]
    texts.extend(_write_resume(module, task, inliner, batch) for batch in batches)
    return "\n\n".join(texts) + "\n", module.constants


def _write_one(module: _Module, task: Task, inliner: Inliner) -> str:
    function = _Function(module, "one(x, run, up)")
    function.count(None, "up")
    body = _Body(function, task, inliner, "", "one", "up")
    body.entity(-1)
    if (batch := body.next_batch(-1)) is not None:
        function.settle()
        function.line(f"run.park({body.site(batch)}, resume_{batch}, ((None, {body.state(batch)}),), answer, up)")
        function.line("return answer")
    return function.text()


def _write_many(module: _Module, task: Task, inliner: Inliner) -> str:
    function = _Function(module, "many(xs, run, up)")
    function.count("xs", "up")
    body = _Body(function, task, inliner, "", "many", "up, place_of(xs, x, len(out))")
    batch = body.next_batch(-1)
    body.at_once()
    function.line("out = []")
    function.line("add = out.append")
    if batch is not None:
        function.line("parked = []")
    body.look_ahead("xs")
    with function.block(f"for x in {function.in_time('xs', 'up')}:"):
        body.entity(-1)
    if batch is not None:
        function.line("if parked:")
        function.line(f"    run.park({body.site(batch)}, resume_{batch}, parked, out, up)")
    function.settle()
    function.line("return out")
    return function.text()


def _write_resume(module: _Module, task: Task, inliner: Inliner, before: int) -> str:
    """``out`` is the list, or the one map, that waits for the answer."""
    function = _Function(module, f"resume_{before}(parked, out, found, errors, run, up)")
    function.line("many = out.__class__ is list")
    body = _Body(function, task, inliner, "", "resume", "(up, i) if many else up")
    batch = body.next_batch(before)
    if batch is not None:
        function.line("waiting = []")
    with function.block(f"for i, {body.state_names(before)} in parked:"):
        body.entity(before)
    if batch is not None:
        function.line("if waiting:")
        function.line(f"    run.park({body.site(batch)}, resume_{batch}, waiting, out, up)")
    function.settle()
    return function.text()


class _Module:
    """The constants of the source and their names. Attribute names are literals in it, everything else is a
    constant."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {
            "UNSET": UNSET,
            "Odd": Odd,
            "Full": Full,
            "ATOMS": _ATOMS,
            "KINDS": _KINDS,
            "DEEP": _DEEP,
            "all_differ": all_differ,
            "all_of_size": all_of_size,
            "fits": fits,
            "place_of": place_of,
        }
        self._names: dict[int, str] = {}

    def name(self, value: Any, kind: str) -> str:
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = f"{kind}_{len(self._names)}"
            self.constants[known] = value
        return known

    def key(self, attribute: Any) -> str:
        return repr(attribute) if type(attribute) is str else self.name(attribute, "KEY")


class _Function:
    """The lines of one function. The prologue is what its loops need only once."""

    def __init__(self, module: _Module, signature: str) -> None:
        self.module = module
        self._signature = signature
        self._prologue: dict[str, None] = {}
        self._lines: list[str] = []
        self._depth = 1

    def once(self, *lines: str) -> None:
        for line in lines:
            self._prologue[f"    {line}"] = None

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def count(self, elements: str | None, up: str) -> None:
        """Take entities off the request's budget, in a local that is settled at the end."""
        self.once("budget = left = run.budget")
        self.line(f"left -= len({elements})" if elements else "left -= 1")
        self.line("if left < 0:")
        self.line("    run.budget -= budget - left")
        self.line(f"    run.spend_on({elements}, {up})" if elements else f"    run.spend({up})")
        self.line("    budget = left = run.budget")

    def tell(self) -> None:
        """Before others count on: what was counted here so far."""
        if "    budget = left = run.budget" in self._prologue:
            self.line("run.budget -= budget - left")
            self.line("budget = left")

    def in_time(self, elements: str, up: str) -> str:
        self.once("timed = run.timed")
        return f"run.in_time({elements}, {up}) if timed else {elements}"

    def settle(self) -> None:
        if "    budget = left = run.budget" in self._prologue:
            self.line("run.budget -= budget - left")
            self.line("if run.budget < 0: run.spend(up)")

    def block(self, opening: str) -> _Block:
        self.line(opening)
        return _Block(self, 1)

    def deeper(self, by: int) -> None:
        self._depth += by

    def text(self) -> str:
        return "\n".join((f"def {self._signature}:", *self._prologue, *self._lines))


class _Block:
    def __init__(self, function: _Function, by: int) -> None:
        self._function = function
        self._by = by

    def __enter__(self) -> None:
        self._function.deeper(self._by)

    def __exit__(self, *_: object) -> None:
        self._function.deeper(-self._by)


class _Body:
    """The code for one entity, at one place of one function."""

    def __init__(self, function: _Function, task: Task, inliner: Inliner, suffix: str, mode: str, up: str) -> None:
        self._function = function
        self._module = function.module
        self._task = task
        self._inliner = inliner
        self._suffix = suffix
        self._mode = mode  # one, many, inline, resume
        self._up = up  # the way up to this entity, as the parts of a tuple
        self._level = task.level
        self._plan = task.plan
        self._steps = task.plan.steps
        self._x = f"x{suffix}"
        self._p = f"p{suffix}"
        self._var: dict[str, str] = {}
        self._out: dict[str, str] = {}
        self._fresh: dict[int, str] = {}
        self._laid_out: Layout | None = None
        self._made = {attribute: place for place, step in enumerate(self._steps) for attribute in step.expects}
        self._given = [key for key in task.keys if self._is_used(key)]

    def _is_used(self, key: Any) -> bool:
        return any(item.key == key for item in self._level.items) or any(
            item.attribute == key for step in self._steps for item in step.inputs
        )

    def _line(self, text: str) -> None:
        self._function.line(text)

    def _key(self, attribute: Any) -> str:
        return self._module.key(attribute)

    def _here(self) -> str:
        """The way up to this entity, as one expression."""
        return f"({self._up})" if "," in self._up else self._up

    def site(self, place: int) -> str:
        return self._module.name(self._steps[place].site, "SITE")

    def next_batch(self, after: int) -> int | None:
        places = range(after + 1, len(self._steps))
        return next((place for place in places if self._steps[place].resolver.batch), None)

    def _segment(self, after: int) -> list[int]:
        """The steps from here up to the next batch."""
        batch = self.next_batch(after)
        return list(range(after + 1, len(self._steps) if batch is None else batch))

    # -- an entity from its beginning, or from the batch it waited for

    def entity(self, after: int) -> None:
        segment = self._segment(after)
        batch = self.next_batch(after)
        stages = [*((after,) if after >= 0 else ()), *segment, *((batch,) if batch is not None else ())]
        at_once = after < 0 and self._mode != "one" and stages and not any(a in self._given for a in self._level.joins)
        if at_once:
            # The first step begins where the entity is looked at; which of the two went wrong shows in the entity.
            self._line(f"{self._p} = {self._begins(stages[0])}")
        elif after < 0:
            self._line(f"{self._p} = -2")
        results = [self._result(place) for place in stages if place != batch]
        if results:
            self._function.once("unset = UNSET")
            self._line(f"{' = '.join(results)} = unset")
        with self._function.block("try:"):
            if after < 0:
                self._guard()
                self._joins(None)
            else:
                self._restore(after)
            for place in segment:
                if (not self._is_keyed(place) or place in self._fresh) and not (at_once and place == stages[0]):
                    self._line(f"{self._p} = {place}")
                self._call(place)
                self._joins(place)
            if batch is None:
                self._answer()
            else:
                self._line(f"{self._p} = {batch}")
                self._park(batch)
        with self._function.block("except Exception as error:"):
            self._line(f"if {self._p} == -1:")
            self._line("    raise")
            if self._mode != "one":
                for place in filter(self._is_told, range(len(self._steps))):
                    self._catch_up(place)  # whoever takes over looks for entries
            if after < 0:
                keys = self._module.name((tuple(self._task.keys), self._task.relevant), "KEYS")
                misfit = f"not fits({self._x}, *{keys})" if at_once else f"{self._p} == -2"
                with self._function.block(f"if {misfit}:"):
                    self._other()
            if after >= 0:
                # What is caught at the batch itself is only that its result is not there; it may have failed.
                self._line(f"if {self._p} == {after}: error = errors.get(k)")
            if batch is not None:
                self._line(f"if {self._p} == {batch}: error = None")
            self._line(f"if {self._p} >= {_KEYING}: error = None")
            self._depart(f"{self._p} % {_KEYING}, locals()", "error")

    def _begins(self, place: int) -> int:
        return place + _KEYING if self._is_keyed(place) and place not in self._fresh else place

    def _guard(self) -> None:
        for key in self._given:
            self._load(key)
        if self._mode == "one":
            return  # whoever calls has looked at the keys
        unused = [key for key in self._task.keys if key in self._task.relevant and key not in self._given]
        strange = sorted(self._task.relevant - set(self._task.keys), key=str)
        unlike = [f"{self._key(key)} not in {self._x}" for key in unused]
        if not self._given:
            unlike.insert(0, f"{self._x}.__class__ is not dict")  # nothing was read that only an entity has
        if len(strange) <= _FEW:
            unlike.extend(f"{self._key(key)} in {self._x}" for key in strange)
        elif self._counts_keys():
            unlike.insert(0, f"not even{self._suffix} and len({self._x}) != {len(self._task.keys)}")
        else:
            unlike.append(f"not {self._module.name(frozenset(strange), 'STRANGE')}.isdisjoint({self._x})")
        if unlike:
            self._line(f"if {' or '.join(unlike)}:")
            self._line("    raise Odd")

    def _counts_keys(self) -> bool:
        """Is the number of keys enough to tell an entity of this shape, once the ones that are used are there?"""
        strange = self._task.relevant - set(self._task.keys)
        return len(strange) > _FEW and all(key in self._task.relevant for key in self._task.keys)

    def _other(self) -> None:
        """Not an entity of the shape this was written for, or no entity at all."""
        level = self._module.name(self._level, "LEVEL")
        if self._mode == "one":
            self._line(f"return run.frame({level}, x, up)")  # which counts it
        else:
            out = f"out{self._suffix}"
            self._line(f"run.other({level}, {self._x}, {self._here()}, {out})")
            self._line("continue")

    def _restore(self, batch: int) -> None:
        """The values of an entity that was parked: out of itself, and out of the state it left behind."""
        for key in self._given:
            if self._is_used_after(key, batch):
                self._load(key)
        for attribute in self._known_before(batch):
            self._var[attribute] = f"s{self._position(attribute)}"
        for attribute in self._joined_before(batch):
            self._out[attribute] = f"o{self._position(attribute)}"
        self._line(f"p = {batch}")
        self._line(f"r{batch} = found[k]")
        self._extract(batch)
        self._joins(batch)

    def _is_used_after(self, key: str, batch: int) -> bool:
        later = (item.attribute for step in self._steps[batch + 1 :] for item in step.inputs)
        return any(item.key == key and item.descent is None for item in self._level.items) or key in later

    # -- attributes

    def _load(self, key: Any) -> None:
        self._line(f"{self._new(key)} = {self._x}[{self._key(key)}]")

    def _new(self, attribute: str) -> str:
        if attribute not in self._var:
            self._var[attribute] = f"v{len(self._var)}{self._suffix}"
        return self._var[attribute]

    def _result(self, place: int) -> str:
        return f"r{place}{self._suffix}"

    def _known_before(self, batch: int) -> list[str]:
        return [attribute for attribute, place in self._made.items() if place < batch]

    def _joined_before(self, place: int) -> list[str]:
        return [a for a in self._level.joins if a in self._given or self._made.get(a, place) < place]

    def _position(self, attribute: str) -> int:
        return [*self._made, *self._level.joins].index(attribute)

    # -- calls

    def _call(self, place: int) -> None:
        step = self._steps[place]
        site = step.site
        env = f"env_{place}{self._suffix}" if site.params else "env"
        params = f"run.env({self._module.name(site.params, 'PARAMS')})" if site.params else "run.plain_env"
        self._function.once(f"{env} = {params}")
        call = f"{self._module.name(step.resolver.function, 'call')}({env}, {self._input(step)})"
        if not step.resolver.cache or site.alone:
            self._line(f"{self._result(place)} = {call}")
            self._extract(place)
            return
        cache = f"cache_{place}{self._suffix}"
        kind = "compact" if site.compact else "whole"
        self._function.once(
            "memory = run.memory",
            f"{cache} = memory.{kind}s.get({self.site(place)})",
            f"if {cache} is None: {cache} = memory.{kind}({self.site(place)})",
        )
        if not site.compact:
            self._call_whole(place, call, cache)
        elif self._is_single(place):
            self._call_single(place, call, cache)
        else:
            self._call_compact(place, call, cache)

    def _call_whole(self, place: int, call: str, cache: str) -> None:
        """Remember the whole result, because others may want other parts of it."""
        step, result = self._steps[place], self._result(place)
        self._line(f"if {self._safe(step)}:")
        self._line(f"    k = {self._input_key(step)}")
        self._line(f"    {result} = {cache}.get(k, UNSET)")
        self._line(f"    if {result} is UNSET:")
        self._line(f"        {result} = {cache}[k] = {call}")
        self._line("else:")
        self._line(f"    {result} = run.fetch({self.site(place)}, {self._input(step)})")
        self._extract(place)

    def _is_single(self, place: int) -> bool:
        site = self._steps[place].site
        return len(site.compact) == 1 == len(site.resolver.inputs)

    def _call_single(self, place: int, call: str, cache: str) -> None:
        """One input, one value: the input is the key where its kind allows it, and the value is all that is kept."""
        step = self._steps[place]
        key = self._input_key(step)
        [name] = self._compact_names(step)
        with self._unless_new(place, call, [name]):
            with self._function.block(f"if {self._safe(step)}:"):
                self._line(f"if {key} in {cache}:")
                self._line(f"    {name} = {cache}[{key}]")
                self._line(f"    if {name}.__class__ is Full:")
                self._line("        raise Odd")
                with self._function.block("else:"):
                    self._line(f"{self._result(place)} = {call}")
                    self._extract_compact(place, [name])
                    self._line(f"{cache}[{key}] = {name}")
            with self._function.block("else:"):
                self._line(f"{self._result(place)} = run.fetch({self.site(place)}, {self._input(step)})")
                self._extract_compact(place, [name])

    def _call_compact(self, place: int, call: str, cache: str) -> None:
        """Keep the inputs with the values. The first input is the key; where it is not enough, all of them are.

        To Python 1, 1.0 and true are one key: a remembered entry is taken only if its inputs are of the same kinds.
        """
        step, result = self._steps[place], self._result(place)
        used = {item.attribute: self._var[item.attribute] for item in step.inputs}
        absent = self._module.name(ABSENT_KEY, "ABSENT")
        inputs = [used.get(item.attribute, absent) for item in step.resolver.inputs]
        names = self._compact_names(step)
        entry = f"({', '.join([*inputs, *names])},)"
        taken = f"{', '.join([*('_' for _ in inputs), *names])}, = h"
        key = inputs[0] if inputs else "None"
        with self._unless_new(place, call, names), self._at_first_sight(place, call, names, key):
            self._line(f"{self._p} = {_KEYING + place}")
            with self._function.block(f"if {key} not in {cache}:"):
                self._line(f"{self._p} = {place}")
                self._line(f"{result} = {call}")
                self._extract_compact(place, names)
                self._line(f"{cache}[{key}] = {entry}")
                if self._is_told(place):
                    self._line(f"{self._seen(place)}.add({key})")
            with self._function.block("else:"):
                self._line(f"h = {cache}[{key}]")
                with self._function.block(f"if {self._same_inputs(inputs)}:"):
                    self._line(taken)
                if len(inputs) < 2:
                    self._line("else: raise Odd")
                    return
                deep = " or ".join(f"{name}.__class__ in DEEP" for name in inputs)
                self._line(f"elif h.__class__ is Full or {deep}: raise Odd")
                with self._function.block("else:"):
                    self._line(f"k = ({', '.join(inputs)})")
                    with self._function.block(f"if k not in {cache}:"):
                        self._line(f"{self._p} = {place}")
                        self._line(f"{result} = {call}")
                        self._extract_compact(place, names)
                        self._line(f"{cache}[k] = {entry}")
                    with self._function.block("else:"):
                        self._line(f"h = {cache}[k]")
                        self._line(f"if not ({self._same_inputs(inputs)}): raise Odd")
                        self._line(taken)

    def _same_inputs(self, inputs: list[str]) -> str:
        if not inputs:
            return "h"
        tests = [f"h[{n}].__class__ is {name}.__class__" for n, name in enumerate(inputs)]
        tests += [f"h[{n}] == {name}" for n, name in enumerate(inputs) if n]
        tests += [f"{name}.__class__ not in DEEP" for name in inputs]
        return f"h and {' and '.join(tests)}"

    def _unless_new(self, place: int, call: str, names: list[str]) -> _Block:
        """Where all inputs of a list are known to differ, and no other list asks this resolver, nothing is
        remembered."""
        new = self._fresh.get(place)
        if new is None:
            return _Block(self._function, 0)
        with self._function.block(f"if {new}:"):
            self._line(f"{self._result(place)} = {call}")
            self._extract_compact(place, names)
        return self._function.block("else:")

    def _at_first_sight(self, place: int, call: str, names: list[str], key: str) -> _Block:
        """Where one list is all that asks, and its answers tell both inputs and values, the answers are the memory.

        It is enough to note what was seen. Only when something is seen again, the answers so far are made into entries.
        """
        if not self._is_told(place) or self._mode == "one":
            return _Block(self._function, 0)
        seen = self._seen(place)
        self._line(f"{self._p} = {_KEYING + place}")
        with self._function.block(f"if {key} not in {seen}:"):
            self._line(f"{seen}.add({key})")
            self._line(f"{self._p} = {place}")
            self._line(f"{self._result(place)} = {call}")
            self._extract_compact(place, names)
        block = self._function.block("else:")
        with block:
            self._catch_up(place)
        return block

    def _is_told(self, place: int) -> bool:
        step = self._steps[place]
        inputs = [item.attribute for item in step.resolver.inputs]
        shown = {item.key for item in self._level.items if item.descent is None}
        return (
            step.site.sole
            and self._is_keyed(place)
            and len(step.inputs) == len(inputs) >= 2
            and shown.issuperset((*inputs, *step.site.compact))
        )

    def _seen(self, place: int) -> str:
        seen = f"seen_{place}{self._suffix}"
        self._function.once("memory = run.memory", f"{seen} = memory.seen({self.site(place)})")
        return seen

    def _catch_up(self, place: int) -> None:
        site = self._steps[place].site
        keys = self._module.name((*(item.attribute for item in site.resolver.inputs), *site.compact), "KEYS")
        answers = "out, i if many else 0" if self._mode == "resume" else f"out{self._suffix}, len(out{self._suffix})"
        self._line(f"memory.catch_up({self.site(place)}, {keys}, {answers})")

    def look_ahead(self, elements: str) -> None:
        """Before a loop: are its entities of one size, and the inputs of its first calls all different?"""
        if self._counts_keys():
            self._line(f"even{self._suffix} = all_of_size({elements}, {len(self._task.keys)})")
        for place, step in enumerate(self._steps):
            site = step.site
            inputs = [item.attribute for item in step.inputs]
            if (
                site.sole
                and site.compact
                and len(site.resolver.inputs) == 1 == len(inputs)
                and inputs[0] in self._given
            ):
                name = self._fresh[place] = f"new_{place}{self._suffix}"
                self._line(f"{name} = all_differ({elements}, {self._key(inputs[0])})")

    def _is_keyed(self, place: int) -> bool:
        site = self._steps[place].site
        return bool(site.compact) and site.resolver.cache and not site.alone and not self._is_single(place)

    def _compact_names(self, step: Step) -> list[str]:
        return [self._new(a) if a in step.expects else f"w{n}" for n, a in enumerate(step.site.compact)]

    def _extract_compact(self, place: int, names: list[str]) -> None:
        for name, attribute in zip(names, self._steps[place].site.compact, strict=True):
            self._line(f"{name} = {self._result(place)}[{self._key(attribute)}]")
        self._watch(place)

    def _extract(self, place: int) -> None:
        for attribute in self._steps[place].expects:
            self._line(f"{self._new(attribute)} = {self._result(place)}[{self._key(attribute)}]")
        self._watch(place)

    def _watch(self, place: int) -> None:
        """What a resolver brings unasked can change what comes after: later results, values entered already."""
        step, result = self._steps[place], self._result(place)
        watched = sorted(self._welcome(place) - set(step.resolver.output), key=str)
        if not watched:
            return
        if len(watched) <= _FEW:
            unlike = " or ".join(f"{self._key(attribute)} in {result}" for attribute in watched)
        else:
            watch = self._module.name(frozenset(watched), "WATCH")
            unlike = f"not {watch}.isdisjoint({result})"
        self._line(f"if {unlike}:")
        self._line("    raise Odd")

    def _welcome(self, place: int) -> set[str]:
        """What comes later, was given up as out of reach but would be taken, or is entered already."""
        later = self._steps[place + 1 :]
        known = {*self._given, *self._made}
        return {
            *(attribute for step in later for attribute in step.expects),
            *(item.attribute for step in later for item in step.resolver.inputs if item.attribute not in known),
            *(need.attribute for need in self._level.needs if need.attribute not in known),
            *self._level.joins,
        }

    def _input(self, step: Step) -> str:
        used = {item.attribute for item in step.inputs}
        names = [item.attribute for item in step.resolver.inputs if item.attribute in used]
        return "{" + ", ".join(f"{self._key(name)}: {self._var[name]}" for name in names) + "}"

    def _input_key(self, step: Step) -> str:
        used = {item.attribute: self._var[item.attribute] for item in step.inputs}
        absent = self._module.name(ABSENT_KEY, "ABSENT")
        parts = [used.get(item.attribute, absent) for item in step.resolver.inputs]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def _safe(self, step: Step) -> str:
        values = [self._var[item.attribute] for item in step.inputs]
        return " and ".join(f"({v}.__class__ is int or {v}.__class__ is str)" for v in values) or "True"

    # -- batches

    def state(self, batch: int) -> str:
        """What an entity needs to go on after a batch."""
        known = [self._var[a] for a in self._known_before(batch)]
        joined = [self._out[a] for a in self._joined_before(batch)]
        return ", ".join(["x", "k", *known, *joined])

    def state_names(self, batch: int) -> str:
        """What the same is called when it goes on."""
        known = [f"s{self._position(a)}" for a in self._known_before(batch)]
        joined = [f"o{self._position(a)}" for a in self._joined_before(batch)]
        return ", ".join(["x", "k", *known, *joined])

    def _batch_inputs(self, batch: int) -> None:
        known = f"run.memory.whole({self.site(batch)})" if self._steps[batch].resolver.cache else "()"
        self._function.once(f"inputs = run.batch({self.site(batch)}).inputs", f"known = {known}")

    def _park(self, batch: int) -> None:
        step = self._steps[batch]
        self._batch_inputs(batch)
        safe = self._safe(step)
        if safe != "True":
            self._line(f"if not ({safe}):")
            self._line("    raise Odd")
        self._line(f"k = {self._input_key(step)}")
        self._line("if k not in inputs and k not in known:")
        self._line(f"    inputs[k] = {self._input(step)}")
        if self._mode == "resume":
            self._line(f"waiting.append((i, {self.state(batch)}))")
        elif self._mode == "many":
            self._line(f"parked.append((len(out), {self.state(batch)}))")
            self._line("add(None)")
        else:
            self._line("answer = {}")

    def at_once(self) -> None:
        """A list whose every entity begins with the same batch: its inputs are collected without a loop of ours."""
        if not self._steps or not self._steps[0].resolver.batch or self._level.joins or len(self._task.keys) != 1:
            return
        step = self._steps[0]
        [key] = self._task.keys
        if [item.attribute for item in step.resolver.inputs] != [key]:
            return
        self._batch_inputs(0)
        name = self._key(key)
        with self._function.block("try:"):
            self._line(f"ks = [x[{name}] for x in xs]")
            self._line("alike = set(map(len, xs)) == {1} and set(map(type, ks)) <= KINDS")
        self._line("except (KeyError, TypeError):")
        self._line("    alike = False")
        with self._function.block("if alike:"):
            self._function.settle()
            self._line("out = [None] * len(xs)")
            self._line(f"run.park_list({self.site(0)}, resume_0, xs, ks, [{{{name}: k}} for k in ks], out, up)")
            self._line("return out")

    # -- joins

    def _joins(self, place: int | None) -> None:
        for attribute in self._level.joins:
            if attribute in self._given if place is None else self._made.get(attribute) == place:
                self._join(attribute, place)

    def _join(self, attribute: str, place: int | None) -> None:
        below = self._level.joins[attribute].level
        value = self._var[attribute]
        out = f"o{self._position(attribute)}{self._suffix}"
        level = self._module.name(below, "LEVEL")
        up = f"({self._up}, {self._key(attribute)})"
        self._line(f"{self._p} = -1")
        self._line(f"t = {value}.__class__")
        with self._function.block("if t is list:"):
            self._list(attribute, value, out, level, up)
        with self._function.block("elif t is dict:"):
            self._function.tell()
            self._line(f"{out} = run.enter_one({level}, {value}, {up})")
        self._line("elif t in ATOMS:")
        self._line(f"    {out} = {value}")
        with self._function.block("else:"):
            joined = self._module.name(tuple(self._out), "JOINED")
            self._depart(f"{-1 if place is None else place}, locals(), {joined}", "None")
        self._out[attribute] = out

    def _list(self, attribute: str, value: str, out: str, level: str, up: str) -> None:
        inner = self._inliner(self._task, attribute)
        if inner is None:
            self._function.tell()
            self._line(f"{out} = {level}.answer_list({value}, run, {up})")
            return
        suffix = f"{self._suffix}_{self._position(attribute)}"
        self._function.count(value, up)
        self._line(f"out{suffix} = []")
        self._line(f"add{suffix} = out{suffix}.append")
        place = f"place_of({value}, x{suffix}, len(out{suffix}))"
        body = _Body(self._function, inner, self._inliner, suffix, "inline", f"{up}, {place}")
        body.look_ahead(value)
        with self._function.block(f"for x{suffix} in {self._function.in_time(value, up)}:"):
            body.entity(-1)
        self._line(f"{out} = out{suffix}")

    # -- ends

    def _answer(self) -> None:
        pairs = []
        for item in self._level.items:
            value = self._out.get(item.key) if item.descent is not None else self._var.get(item.key)
            if value is not None:
                pairs.append(f"{self._key(item.key)}: {value}")
        answer = "{" + ", ".join(pairs) + "}"
        if self._mode == "resume":
            self._line(f"if many: out[i] = {answer}")
            self._line(f"else: out.update({answer})")
        elif self._mode == "one":
            self._function.settle()
            self._line(f"return {answer}")
        else:
            self._line(f"add{self._suffix}({answer})")

    def _depart(self, known: str, error: str) -> None:
        """Hand the entity over, with all that this function knows of it."""
        known = f"{self._layout()}.departure({known}), {self._x}, {self._here()}, {error}"
        if self._mode == "one":
            self._function.settle()
            self._line(f"return run.depart({known}, {{}})")
            return
        if self._mode == "resume":
            self._line(f"if many: out[i] = run.depart({known}, {{}})")
            self._line(f"else: run.depart({known}, out)")
        else:
            self._line(f"add{self._suffix}(run.depart({known}, {{}}))")
        self._line("continue")

    def _layout(self) -> str:
        if self._laid_out is None:
            results = tuple(self._result(place) for place in range(len(self._steps)))
            self._laid_out = Layout(self._level, self._plan, self._var, self._out, results)
        return self._module.name(self._laid_out, "LAYOUT")
