"""Random worlds, entities and queries.

A world knows the truth: the value of every attribute of every identity. Resolvers are drawn at random and each of them
tells the truth or less (it raises, stays silent, forgets an attribute), so that the answer does not depend on who was
asked first: what is compared is what can be reached, what is there, what failed, and the form of the answer.

In a world of tales there is one resolver at most for an attribute, and what it gives is a text that tells how it came
about: from which resolver, which input, which params. There a wrong input or a mixed-up result is seen.

    a0 a1        the identity itself (so 1, 1.0, true, "k" and :k all stand in inputs)
    a2 a3        the identity in a list and in a map
    a4 .. a9     text that names attribute and identity
    g0 g1        the same for everybody, so that a resolver without inputs can know them
    j0 j1 j2     entities, one or several, that resolvers give
    d0 d1 kids   entities that only data has; recursion walks kids
    x0 x1        what resolvers return without having declared it
    s0 s1 s2     what is made of entities, by resolvers with nested inputs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from psi.edn import Keyword, List, Map, String, Symbol, Vector, freeze
from psi.eql import Call, Expression, Ident, Join, Property, Query, Recursion, Subquery, Union, Wildcard
from psi.graph import Env, Mutation, Resolver, mutation, resolver
from psi.graph.level import ERRORS, MUTATION_ERROR

OPTIONAL = "psi.graph/optional?"
LOCAL = [f"a{n}" for n in range(10)]
GLOBAL = ["g0", "g1"]
JOINS = ["j0", "j1", "j2"]
DATA = ["d0", "d1", "kids"]
FOREIGN = ["x0", "x1"]
SUMS = ["s0", "s1", "s2"]

# Python thinks that many of these are the same; EDN does not.
IDENTITIES: tuple[Any, ...] = (
    1,
    True,
    1.0,
    0,
    False,
    "k",
    Keyword("k"),
    Symbol("k"),
    None,
    [1],
    [True],
    {"n": 1},
    {"n": 1.0},
    2,
)


class Refusal(Exception):
    """What operations raise here."""


def exact(value: Any) -> Any:
    """A value as something that is equal only to the same value of the same kind; error maps keep their causes only."""
    if isinstance(value, Mapping):
        return Map({_exact_key(key): _exact_under(key, inner) for key, inner in value.items()})
    if isinstance(value, set | frozenset):
        return ("set", frozenset(map(exact, value)))
    if isinstance(value, list | tuple):
        kind = "vector" if type(value) in (list, Vector) else type(value).__name__
        return (kind, *map(exact, value))
    if isinstance(value, str):
        return ("str" if type(value) in (str, String) else type(value).__name__, str(value))
    return (type(value).__name__, value)


def _exact_key(key: Any) -> Any:
    return str(key) if type(key) in (str, Keyword) else exact(key)


def _exact_under(key: Any, value: Any) -> Any:
    if key == ERRORS:
        return frozenset((str(attribute), str(error["cause"])) for attribute, error in value.items())
    return "failed" if key == MUTATION_ERROR else exact(value)


def told(value: Any) -> str:
    """A value as a text that is the same only for the same value."""
    match value:
        case Mapping():
            return "{" + " ".join(sorted(f"{_exact_key(key)} {told(inner)}" for key, inner in value.items())) + "}"
        case set() | frozenset():
            return "#{" + " ".join(sorted(map(told, value))) + "}"
        case list() | tuple():
            return f"{exact(value)[0]}[{' '.join(map(told, value))}]"
        case str():
            return f"<{value}>" if type(value) in (str, String) else f"{type(value).__name__}<{value}>"
    return repr(value)


_PLACES = {exact(identity): place for place, identity in enumerate(IDENTITIES)}


# -- the truth


@dataclass(frozen=True)
class Kin:
    """Entities as a value: ``kind`` of collection, and in it nothing, scalars, lists of scalars, or entities."""

    kind: str  # one, list, tuple, List, set, nil, scalar
    elements: tuple[Any, ...] = ()

    def build(self, tale: str = "") -> Any:
        made = [
            element.build(f"{tale}[{place}]" if tale else "") if isinstance(element, Child) else element
            for place, element in enumerate(self.elements)
        ]
        match self.kind:
            case "one":
                return next((element for element in made if isinstance(element, dict)), None)
            case "list":
                return made
            case "tuple":
                return tuple(made)
            case "List":
                return List(made)
            case "set":
                return frozenset(map(freeze, made))
            case "scalar":
                return "scalar"
        return None


@dataclass(frozen=True)
class Child:
    identity: int
    has: tuple[str, ...]
    joins: tuple[tuple[str, Kin], ...] = ()

    def build(self, tale: str = "") -> dict[str, Any]:
        identity = IDENTITIES[self.identity]
        found = {a: f"{a} in {tale}" if tale else truth(a, identity) for a in self.has}
        return found | {join: kin.build(tale) for join, kin in self.joins}


def truth(attribute: str, identity: Any) -> Any:
    match attribute:
        case "a0" | "a1":
            return identity
        case "a2":
            return [identity]
        case "a3":
            return {"n": identity}
        case "g0" | "g1" | "x0" | "x1":
            return f"{attribute} of all"
    return f"{attribute} of {_PLACES[exact(identity)]}"


def identity_in(attribute: str, value: Any) -> Any:
    match attribute:
        case "a0" | "a1":
            return value
        case "a2":
            return value[0]
        case "a3":
            return value["n"]
    return IDENTITIES[int(value.rpartition(" ")[2])]


# -- resolvers


@dataclass(frozen=True, repr=False)
class Rule:
    """How one resolver is declared, and how it behaves."""

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    forgets: frozenset[str] = frozenset()
    adds: tuple[str, ...] = ()
    mood: str = "fine"  # fine, raises, invalid, silent, empty
    refuses: frozenset[int] = frozenset()  # places of the identities for which it raises
    batch: bool = False
    chunk: int | None = None
    priority: int = 0
    cache: bool = True
    is_async: bool = False
    inside: tuple[tuple[str, Any], ...] = ()  # nested inputs
    shapes: tuple[tuple[str, Any], ...] = ()  # what it says is inside the entities that it gives

    def __repr__(self) -> str:
        said = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        return f"Rule({', '.join(f'{name}={value!r}' for name, value, usual in said if value != usual)})"


@dataclass
class Log:
    """What operations were asked, and what they should not have been asked."""

    answered: Counter[Any] = field(default_factory=Counter)
    mutations: Counter[Any] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def repeated(self, cached: set[str]) -> list[Any]:
        return [call for call, times in self.answered.items() if times > 1 and call[0] in cached]


@dataclass(frozen=True)
class World:
    rules: tuple[Rule, ...]
    kin: tuple[tuple[str, Kin], ...]
    tales: bool = False

    def operations(self, log: Log, *, asynchronous: bool = False) -> list[Resolver | Mutation]:
        return [*(self._resolver(rule, log, asynchronous) for rule in self.rules), *mutations(log)]

    @property
    def cached(self) -> set[str]:
        return {rule.name for rule in self.rules if rule.cache}

    @property
    def single(self) -> bool:
        """Is every attribute given by one resolver at most? Then what is called does not depend on choices."""
        given = [attribute for rule in self.rules for attribute in (*rule.output, *rule.adds)]
        return len(given) == len(set(given))

    @property
    def doubtful(self) -> bool:
        """May an exception behind an optional input be met or not, depending on the order?"""
        raising = any(rule.mood in ("raises", "invalid") or rule.refuses for rule in self.rules)
        return raising and any(rule.optional for rule in self.rules) and not self.single

    def _resolver(self, rule: Rule, log: Log, asynchronous: bool) -> Resolver:
        def one(env: Env, data: Any) -> Any:
            required = {*rule.required, *(attribute for attribute, _ in rule.inside if attribute[0] != "?")}
            if not required <= set(data) <= {*required, *rule.optional, *(a.lstrip("?") for a, _ in rule.inside)}:
                log.problems.append(f"{rule} got {data}")
            identity = None
            if not self.tales:
                identity = next((identity_in(a, data[a]) for a in rule.required if a in LOCAL), None)
            if rule.mood == "raises" or (rule.refuses and _PLACES[exact(identity)] in rule.refuses):
                raise Refusal(rule.name)
            log.answered[rule.name, exact(data), exact(env.params)] += 1
            match rule.mood:
                case "invalid":
                    return 5
                case "silent":
                    return None
                case "empty":
                    return {}
            given = [attribute for attribute in (*rule.output, *rule.adds) if attribute not in rule.forgets]
            kin = dict(self.kin)
            if self.tales:
                tale = f"{rule.name}({told(data)}{told(env.params) if env.params else ''})"
                return {a: kin[a].build(f"{a} of {tale}") if a in kin else f"{a} of {tale}" for a in given}
            return {a: kin[a].build() if a in kin else truth(a, identity) for a in given}

        def many(env: Env, data: Any) -> Any:
            if len({exact(item) for item in data}) < len(data):
                log.problems.append(f"{rule.name} got an input twice in one call: {data}")
            if rule.chunk is not None and len(data) > rule.chunk:
                log.problems.append(f"{rule.name} takes {rule.chunk} inputs, got {len(data)}")
            return [one(env, item) for item in data]

        plain: Callable[[Env, Any], Any] = many if rule.batch else one

        async def later(env: Env, data: Any) -> Any:
            return plain(env, data)

        return resolver(
            name=rule.name,
            input=[
                *rule.required,
                *(f"?{attribute}" for attribute in rule.optional),
                *({a: b} for a, b in rule.inside),
            ],
            output=[{a: dict(rule.shapes)[a]} if a in dict(rule.shapes) else a for a in rule.output],
            batch=rule.batch,
            chunk=rule.chunk,
            priority=rule.priority,
            cache=rule.cache,
        )(later if rule.is_async and asynchronous else plain)


def mutations(log: Log) -> list[Mutation]:
    def logged(name: str, answer: Callable[[Any], Any]) -> Mutation:
        def run(env: Env, params: Any) -> Any:
            log.mutations[name, exact(params)] += 1
            return answer(params)

        return mutation(name)(run)

    def refuse(params: Any) -> Any:
        raise Refusal("m/fail")

    return [
        logged("m/echo", dict),
        logged("m/one", lambda params: {"a0": 1, "g1": "g1 of all"}),
        logged("m/many", lambda params: [{"a0": 1}, None, {"a1": True}, "scalar", {"a0": 1}]),
        logged("m/none", lambda params: None),
        logged("m/fail", refuse),
    ]


# -- throwing dice


class Dice:
    """Choices read from bytes. Drawing each choice from Hypothesis would take most of the time of a test; a few strings
    of bytes cost next to nothing, and a smaller byte, or none, means the simpler choice, so that failures shrink."""

    def __init__(self, data: bytes) -> None:
        self._rest = iter(data)

    def below(self, limit: int) -> int:
        return next(self._rest, 0) % limit

    def chance(self, percent: int) -> bool:
        return next(self._rest, 0) * 100 >= (100 - percent) * 256

    def one(self, pool: Sequence[Any]) -> Any:
        return pool[self.below(len(pool))]

    def some(self, pool: Sequence[Any], least: int, most: int) -> tuple[Any, ...]:
        left = list(pool)
        count = min(len(left), least + self.below(most - least + 1))
        return tuple(left.pop(self.below(len(left))) for _ in range(count))


Thrown = TypeVar("Thrown")


def thrown(size: int, make: Callable[[Dice], Thrown]) -> st.SearchStrategy[Thrown]:
    return st.binary(min_size=size, max_size=size).map(lambda data: make(Dice(data)))


# -- drawing worlds


def worlds(
    *, failing: bool = False, adding: bool = False, tales: bool = False, sums: bool = False
) -> st.SearchStrategy[World]:
    def world(drawn: list[Rule], kin: list[Kin], summing: list[Rule]) -> World:
        ordered = [
            replace(rule, name=f"r{number}", priority=rule.priority * 10 + number)
            for number, rule in enumerate([*drawn, *summing])
        ]
        chosen = _one_for_each(ordered) if tales else ordered
        return World(tuple(chosen), tuple(zip(JOINS, kin, strict=True)), tales)

    rules = st.lists(thrown(24, lambda dice: _rule(dice, failing, adding, tales)), max_size=9)
    kin = st.lists(thrown(40, lambda dice: _kin(dice, 1)), min_size=len(JOINS), max_size=len(JOINS))
    summing = st.lists(thrown(24, _sum), max_size=3) if sums else st.just([])
    return st.builds(world, rules, kin, summing)


def _one_for_each(drawn: list[Rule]) -> Iterator[Rule]:
    """The same rules, each giving only what none before it gives."""
    given: set[str] = set()
    for rule in drawn:
        output = tuple(attribute for attribute in rule.output if attribute not in given)
        adds = tuple(attribute for attribute in rule.adds if attribute not in given)
        if output:
            given |= {*output, *adds}
            yield replace(rule, output=output, adds=adds)


def _rule(dice: Dice, failing: bool, adding: bool, tales: bool) -> Rule:
    output = dice.some([*LOCAL[1:], *GLOBAL, *JOINS], 1, 3)
    # Mostly upwards, so that much is reachable; sometimes anything, so that there are cycles.
    highest = min((LOCAL.index(a) for a in output if a in LOCAL), default=6)
    # Not in tales: what an optional input brings on a way that leads in a circle depends on where one begins.
    lower = LOCAL[: max(1, highest)]
    inputs = LOCAL if not tales and dice.chance(25) else lower
    known = any(attribute in LOCAL for attribute in output)
    required = dice.some(inputs, 1 if known else 0, 2)
    if dice.chance(20) and not (tales and known):
        required = (*required, dice.one([*GLOBAL, *([] if tales else JOINS)]))
    others = [a for a in (lower if tales else [*LOCAL, *GLOBAL]) if a not in required and a not in output]
    optional = dice.some(others, 1, 2) if dice.chance(30) else ()
    batch = dice.chance(30)
    chunk = dice.one([None, 1, 2]) if batch else None
    mood, forgets, refuses = "fine", frozenset[str](), frozenset[int]()
    if failing and dice.chance(40):
        match dice.one(["forgets", "raises", "silent", "empty", "invalid", "refuses"]):
            case "forgets":
                forgets = frozenset(dice.some(output, 1, 2))
            case "refuses" if set(required) & set(LOCAL) and (not batch or chunk == 1):
                refuses = frozenset(dice.some(range(len(IDENTITIES)), 1, 4))
            case "refuses":
                mood = "raises"
            case other:
                mood = other
    adds: tuple[str, ...] = ()
    if adding and dice.chance(40):
        free = FOREIGN if failing else [a for a in [*GLOBAL, *FOREIGN, *(LOCAL if known else [])] if a not in output]
        adds = dice.some(free, 1, 2)
    return Rule(
        name="",
        required=required,
        optional=optional,
        output=output,
        forgets=forgets,
        adds=adds,
        mood=mood,
        refuses=refuses,
        batch=batch,
        chunk=chunk,
        priority=dice.below(5),
        cache=not dice.chance(20),
        is_async=dice.chance(40),
        shapes=tuple((join, list(dice.some(LOCAL, 1, 3))) for join in output if join in JOINS and tales),
    )


def _sum(dice: Dice) -> Rule:
    """A resolver that looks into entities."""
    output = dice.some(SUMS, 1, 2)
    inside = []
    for attribute in dice.some([*JOINS, *DATA], 1, 2):
        spec: list[Any] = [f"?{a}" if dice.chance(25) else a for a in dice.some([*LOCAL, *GLOBAL], 0, 2)]
        if dice.chance(20):
            spec.append({dice.one(DATA): list(dice.some(LOCAL, 0, 2))})
        # Optional ones of data only: whether one that cannot be planned is there all the same is a matter of order.
        inside.append((f"?{attribute}" if attribute in DATA and dice.chance(30) else attribute, spec))
    required = dice.some(LOCAL[:3], 0, 1)
    return Rule(
        name="",
        required=required,
        output=output,
        inside=tuple(inside),
        batch=dice.chance(20),
        cache=not dice.chance(20),
        is_async=dice.chance(40),
    )


def _kin(dice: Dice, depth: int) -> Kin:
    kind = dice.one(["one", "list", "list", "list", "tuple", "List", "set", "nil", "scalar"])
    if kind in ("nil", "scalar"):
        return Kin(kind)
    elements = [
        dice.one([None, 7, "text", (1, 2)]) if dice.chance(20) else _child(dice, depth - 1)
        for _ in range(dice.below(5))
    ]
    if elements and dice.chance(30):
        elements.append(elements[0])
    return Kin(kind, tuple(elements))


def _child(dice: Dice, depth: int, joinable: Sequence[str] = DATA) -> Child:
    has = dice.some([*LOCAL, *GLOBAL], 0, 3) if dice.chance(20) else ("a0", *dice.some(LOCAL[1:], 0, 2))
    joins = dice.some(joinable, 0, 2) if depth > 0 else ()
    return Child(dice.below(len(IDENTITIES)), has, tuple((join, _kin(dice, depth)) for join in joins))


def entities(joinable: Sequence[str] = DATA) -> st.SearchStrategy[dict[Any, Any]]:
    def entity(dice: Dice) -> dict[Any, Any]:
        as_from_text = dice.chance(30)
        built = _child(dice, 2, joinable).build()
        return {Keyword(key): value for key, value in built.items()} if as_from_text else built

    return thrown(120, entity)


# -- drawing queries

PARAMS = (1, True, 1.0, String("k"), Keyword("k"), None, Vector((1,)), Vector((True,)))


@dataclass(frozen=True)
class Asking:
    """What queries may be made of."""

    wildcards: bool = True
    unions: bool = True
    unknown: bool = True
    calls: bool = True
    attributes: tuple[str, ...] = (*LOCAL, *GLOBAL)
    joins: tuple[str, ...] = (*JOINS, *DATA[:2])


def queries(asking: Asking = Asking()) -> st.SearchStrategy[Query]:
    expression = thrown(48, lambda dice: _expression(dice, asking, 3))
    return st.lists(expression, min_size=1, max_size=6).map(_as_query)


def _query(dice: Dice, asking: Asking, depth: int) -> Query:
    return _as_query([_expression(dice, asking, depth) for _ in range(dice.below(5))])


def _as_query(children: list[Expression]) -> Query:
    """Every placeholder and every ident once: whether mutations in one that another replaces are run is nobody's
    promise, and a Python map cannot tell the idents [:a0 1] and [:a0 true] apart."""
    last: dict[Any, Expression] = {}
    for child in children:
        if isinstance(child, Property | Join) and (child.is_placeholder or isinstance(child.key, Ident)):
            last[_loosely(child)] = child
    return Query(tuple(child for child in children if last.get(_loosely(child), child) is child))


def _loosely(child: Expression) -> Any:
    if not isinstance(child, Property | Join):
        return None
    return child.key.as_key() if isinstance(child.key, Ident) else child.key


def _expression(dice: Dice, asking: Asking, depth: int) -> Expression:
    form = dice.one(_FORMS)
    params = _params(dice)
    match form:
        case "join" | "kids" | "placeholder" if depth > 0:
            return _join(dice, asking, depth - 1, form, params)
        case "ident":
            ident = Ident(dice.one(["a0", "a1"]), freeze(dice.one(IDENTITIES)))
            return Join(ident, _query(dice, asking, depth - 1)) if depth > 0 and dice.chance(70) else Property(ident)
        case "call" if asking.calls:
            name = Symbol(dice.one(["m/echo", "m/one", "m/many", "m/none", "m/fail", "m/unknown"]))
            below = _query(dice, asking, depth - 1) if depth > 0 and dice.chance(60) else None
            return Call(name, Map({"a0": dice.one(PARAMS)}), below)
        case "wildcard" if asking.wildcards:
            return Property(">/p") if dice.chance(30) else Wildcard()
        case "unknown" if asking.unknown:
            return Property("unknown", params)
    return Property(dice.one([*asking.attributes, *asking.joins]), params)


_FORMS = (
    *["property"] * 7,
    *["join"] * 6,
    *["kids"] * 2,
    *["placeholder"] * 2,
    "ident",
    "call",
    "wildcard",
    "unknown",
)


def _params(dice: Dice) -> Map:
    kind = dice.one(["none"] * 8 + ["optional", "k"])
    if kind == "optional":
        return Map({OPTIONAL: True})
    return Map({dice.one(["k", "l"]): dice.one(PARAMS)}) if kind == "k" else Map()


def _join(dice: Dice, asking: Asking, depth: int, form: str, params: Map) -> Join:
    below: Subquery
    if form == "placeholder":
        return Join(dice.one([">/p", ">/q"]), _query(dice, asking, depth))
    if form == "kids":
        below = _query(dice, asking, depth) if dice.chance(20) else dice.one([Recursion(), *map(Recursion, range(3))])
        return Join("kids", below, params)
    if asking.unions and dice.chance(20):
        names = dice.some(["a0", "a2", "a5", "g0", "d0"], 1, 3)
        below = Union(tuple((name, _query(dice, asking, depth)) for name in names))
    else:
        below = _query(dice, asking, depth)
    return Join(dice.one(asking.joins), below, params)
