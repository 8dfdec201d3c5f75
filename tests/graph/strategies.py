"""Random worlds, entities and queries.

A world knows the truth: the value of every attribute of every identity. Resolvers are drawn at random and each of them
tells the truth or less (it raises, stays silent, forgets an attribute), so that the answer does not depend on who was
asked first: what is compared is what can be reached, what is there, what failed, and the form of the answer.

    a0 a1        the identity itself (so 1, 1.0, true, "k" and :k all stand in inputs)
    a2 a3        the identity in a list and in a map
    a4 .. a9     text that names attribute and identity
    g0 g1        the same for everybody, so that a resolver without inputs can know them
    j0 j1 j2     entities, one or several
    kids         the tree that recursion walks; only ever in the entity
    x0 x1        what resolvers return without having declared it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from psi.edn import Keyword, List, Map, String, Symbol, Vector, freeze
from psi.eql import Call, Expression, Ident, Join, Property, Query, Recursion, Subquery, Union, Wildcard
from psi.graph import Env, Mutation, Resolver, mutation, resolver
from psi.graph.level import ERRORS, MUTATION_ERROR

OPTIONAL = "psi.graph/optional?"
LOCAL = [f"a{n}" for n in range(10)]
GLOBAL = ["g0", "g1"]
JOINS = ["j0", "j1", "j2"]
FOREIGN = ["x0", "x1"]

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


_PLACES = {exact(identity): place for place, identity in enumerate(IDENTITIES)}


# -- the truth


@dataclass(frozen=True)
class Kin:
    """Entities as a value: ``kind`` of collection, and in it nothing, scalars, lists of scalars, or entities."""

    kind: str  # one, list, tuple, List, set, nil, scalar
    elements: tuple[Any, ...] = ()

    def build(self) -> Any:
        made = [element.build() if isinstance(element, Child) else element for element in self.elements]
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

    def build(self) -> dict[str, Any]:
        found = {attribute: truth(attribute, IDENTITIES[self.identity]) for attribute in self.has}
        return found | {join: kin.build() for join, kin in self.joins}


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


@dataclass(frozen=True)
class Rule:
    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    output: tuple[str, ...]
    forgets: frozenset[str] = frozenset()
    adds: tuple[str, ...] = ()
    mood: str = "fine"  # fine, raises, invalid, silent, empty
    refuses: frozenset[int] = frozenset()  # places of the identities for which it raises
    batch: bool = False
    chunk: int | None = None
    priority: int = 0
    cache: bool = True
    is_async: bool = False


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
            if not set(rule.required) <= set(data) <= {*rule.required, *rule.optional}:
                log.problems.append(f"{rule.name} needs {rule.required} and may have {rule.optional}, got {data}")
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
            input=[*rule.required, *(f"?{attribute}" for attribute in rule.optional)],
            output=list(rule.output),
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


# -- drawing worlds

_FEW = st.integers(0, 99)


def _chance(draw: st.DrawFn, percent: int) -> bool:
    """True about so often; shrinks to False."""
    return draw(_FEW) >= 100 - percent


def _some(draw: st.DrawFn, pool: list[Any], least: int, most: int) -> tuple[Any, ...]:
    most = min(most, len(pool))
    return tuple(draw(st.lists(st.sampled_from(pool), min_size=min(least, most), max_size=most, unique=True)))


@st.composite
def worlds(
    draw: st.DrawFn, *, failing: bool, adding: bool = False, optional: bool = True, single: bool = False
) -> World:
    rules: list[Rule] = []
    spoken: set[str] = set()
    count = draw(st.integers(1, 9))
    priorities = draw(st.permutations(range(count)))
    batches, asynchronous = _chance(draw, 60), _chance(draw, 70)
    for number in range(count):
        pool = [a for a in [*LOCAL[1:], *GLOBAL, *JOINS] if a not in spoken]
        if not pool:
            break
        output = _some(draw, pool, 1, 3)
        if single:
            spoken |= set(output)
        # Mostly upwards, so that much is reachable; sometimes anything, so that there are cycles.
        highest = min((LOCAL.index(a) for a in output if a in LOCAL), default=6)
        inputs = LOCAL[: max(1, highest)] if _chance(draw, 75) else LOCAL
        known = any(attribute in LOCAL for attribute in output)
        required = _some(draw, inputs, 1 if known else 0, 2)
        if _chance(draw, 20):
            required = (*required, draw(st.sampled_from([*GLOBAL, *JOINS])))
        others = [a for a in [*LOCAL, *GLOBAL] if a not in required and a not in output]
        maybe = _some(draw, others, 1, 2) if optional and _chance(draw, 30) else ()
        batch = batches and _chance(draw, 40)
        chunk = draw(st.sampled_from([None, 1, 2])) if batch else None
        mood, forgets, refuses = "fine", frozenset[str](), frozenset[int]()
        if failing and _chance(draw, 40):
            match draw(st.sampled_from(["forgets", "raises", "silent", "empty", "invalid", "refuses"])):
                case "forgets":
                    forgets = frozenset(_some(draw, list(output), 1, 2))
                case "refuses" if required and set(required) & set(LOCAL) and (not batch or chunk == 1):
                    refuses = frozenset(_some(draw, list(range(len(IDENTITIES))), 1, 4))
                case "refuses":
                    mood = "raises"
                case other:
                    mood = other
        adds = ()
        if adding and _chance(draw, 40):
            free = (
                FOREIGN if failing else [a for a in [*GLOBAL, *FOREIGN, *(LOCAL if known else [])] if a not in output]
            )
            adds = tuple(a for a in _some(draw, free, 1, 2) if a not in spoken)
            if single:
                spoken |= set(adds)
        rules.append(
            Rule(
                name=f"r{number}",
                required=required,
                optional=maybe,
                output=output,
                forgets=forgets,
                adds=adds,
                mood=mood,
                refuses=refuses,
                batch=batch,
                chunk=chunk,
                priority=priorities[number],
                cache=not _chance(draw, 20),
                is_async=asynchronous and _chance(draw, 50),
            )
        )
    return World(tuple(rules), tuple((join, draw(kins(1))) for join in JOINS))


@st.composite
def kins(draw: st.DrawFn, depth: int) -> Kin:
    kind = draw(st.sampled_from(["one", "list", "list", "list", "tuple", "List", "set", "nil", "scalar"]))
    if kind in ("nil", "scalar"):
        return Kin(kind)
    child = children(depth - 1)
    odd = st.sampled_from([None, 7, "text", (1, 2)])
    elements = draw(st.lists(child | child | child | odd, max_size=4))
    if elements and _chance(draw, 30):
        elements.append(elements[0])
    return Kin(kind, tuple(elements))


@st.composite
def children(draw: st.DrawFn, depth: int = 0) -> Child:
    has = ["a0", *_some(draw, LOCAL, 0, 2)] if _chance(draw, 80) else _some(draw, [*LOCAL, *GLOBAL], 0, 3)
    joins = _some(draw, [*JOINS, "kids"], 0, 2) if depth > 0 else ()
    identity = draw(st.integers(0, len(IDENTITIES) - 1))
    return Child(identity, tuple(dict.fromkeys(has)), tuple((join, draw(kins(depth))) for join in joins))


@st.composite
def entities(draw: st.DrawFn) -> dict[Any, Any]:
    built = draw(children(2)).build()
    if _chance(draw, 30):
        return {Keyword(key): value for key, value in built.items()}  # as EDN text would have given it
    return built


# -- drawing queries

_VALUES = st.sampled_from([1, True, 1.0, String("k"), Keyword("k"), None, Vector((1,)), Vector((True,))])


@dataclass(frozen=True)
class Asking:
    """What queries may be made of."""

    wildcards: bool = True
    unknown: bool = True
    calls: bool = True
    attributes: tuple[str, ...] = (*LOCAL, *GLOBAL)
    joins: tuple[str, ...] = tuple(JOINS)


@st.composite
def queries(draw: st.DrawFn, asking: Asking = Asking(), depth: int = 3, least: int = 1) -> Query:
    return Query(tuple(draw(st.lists(expressions(asking, depth), min_size=least, max_size=5 if depth > 1 else 4))))


_FORMS = (
    *["property"] * 7,
    *["join"] * 6,
    *["kids"] * 2,
    "placeholder",
    "placeholder",
    "ident",
    "call",
    "wildcard",
    "unknown",
)


@st.composite
def expressions(draw: st.DrawFn, asking: Asking, depth: int) -> Expression:
    form = draw(st.sampled_from(_FORMS))
    params = draw(some_params())
    match form:
        case "join" | "kids" | "placeholder" if depth > 0:
            return draw(joins(asking, depth - 1, form, params))
        case "ident":
            ident = Ident(draw(st.sampled_from(["a0", "a1"])), freeze(draw(st.sampled_from(IDENTITIES))))
            if depth > 0 and _chance(draw, 70):
                return Join(ident, draw(queries(asking, depth - 1)))
            return Property(ident)
        case "call" if asking.calls:
            name = draw(st.sampled_from(["m/echo", "m/one", "m/many", "m/none", "m/fail", "m/unknown"]))
            below = draw(queries(asking, depth - 1)) if depth > 0 and _chance(draw, 60) else None
            return Call(Symbol(name), Map({"a0": draw(_VALUES)}), below)
        case "wildcard" if asking.wildcards:
            return draw(st.sampled_from([Wildcard(), Wildcard(), Property(">/p")]))
        case "unknown" if asking.unknown:
            return Property("unknown", params)
    return Property(draw(st.sampled_from([*asking.attributes, *asking.joins])), params)


@st.composite
def some_params(draw: st.DrawFn) -> Map:
    kind = draw(st.sampled_from(["none"] * 8 + ["optional", "k"]))
    if kind == "optional":
        return Map({OPTIONAL: True})
    return Map({draw(st.sampled_from(["k", "l"])): draw(_VALUES)}) if kind == "k" else Map()


@st.composite
def joins(draw: st.DrawFn, asking: Asking, depth: int, form: str, params: Map) -> Join:
    below: Subquery
    if form == "placeholder":
        return Join(draw(st.sampled_from([">/p", ">/q"])), draw(queries(asking, depth, 0)))
    if form == "kids":
        below = draw(st.sampled_from([Recursion(), Recursion(0), Recursion(1), Recursion(2)]) | queries(asking, depth))
        return Join("kids", below, params)
    if _chance(draw, 20):
        names = _some(draw, ["a0", "a2", "a5", "g0", "j0"], 1, 3)
        below = Union(tuple((name, draw(queries(asking, depth, 0))) for name in names))
    else:
        below = draw(queries(asking, depth, 0))
    return Join(draw(st.sampled_from(asking.joins)), below, params)
