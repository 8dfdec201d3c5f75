"""What one entity is asked: a query seen from a single node of the result tree.

A query tree becomes a tree of levels, made on demand and shared: a recursive query is one level that leads to itself.
A level knows which attributes it needs, where its joins lead and what its placeholders repeat. It does not know the
entity, nor who provides what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Final, TypeAlias

from psi.edn import Map, Symbol, kind_key
from psi.eql import Call, Ident, Join, Property, Query, QueryError, Recursion, Subquery, Union, Wildcard
from psi.eql.ast import NO_PARAMS
from psi.graph.operations import Resolver
from psi.graph.shape import Inputs

__all__ = [
    "ERRORS",
    "MUTATION_ERROR",
    "OPTIONAL",
    "Descent",
    "Item",
    "Level",
    "Levels",
    "Need",
    "Placeholder",
    "Site",
]

# Where the lenient mode puts what went wrong, beside the data.
ERRORS: Final = "psi.graph/attribute-errors"
MUTATION_ERROR: Final = "psi.graph/mutation-error"

# A param that makes a queried attribute optional; Pathom's name is understood, because its clients send it.
OPTIONAL: Final = ("psi.graph/optional?", "com.wsscode.pathom3.connect.operation/optional?")

Limits: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Need:
    """An attribute that this level wants resolved."""

    attribute: str
    required: bool = True  # its absence is an error
    optional: bool = False  # the query said that it may be absent
    asked: bool = True  # by the query itself, not only by a placeholder or a nested input


@dataclass(frozen=True, slots=True)
class Item:
    """One key of the answer."""

    key: Any
    descent: Descent | None = None


@dataclass(frozen=True, slots=True)
class Placeholder:
    """``{:>/name [..]}``: the same entity under a name."""

    key: str
    level: Level | None  # None: the whole entity as it is
    params: Map
    fresh: bool  # starts from the entity as it came, because its own params ask for other values


class Descent:
    """Where a join leads, element by element."""

    __slots__ = ("_branches", "_levels", "_make", "_order", "_target", "cut", "limited", "recursive")

    def __init__(
        self,
        levels: Levels,
        make: tuple[Any, ...] = (),
        *,
        branches: tuple[tuple[str, Level], ...] = (),
        cut: bool = False,
        recursive: bool = False,
        limited: bool = False,
    ) -> None:
        self._levels = levels
        self._make = make
        self._target: Level | None = None
        self._branches = branches
        self._order = {attribute: place for place, (attribute, _) in enumerate(branches)}
        self.cut = cut  # the recursion limit is reached: the value is shown, not processed
        self.recursive = recursive
        self.limited = limited

    def branches(self) -> tuple[tuple[str, Level], ...]:
        """The branches of a union."""
        return self._branches

    def targets(self) -> Iterator[Level]:
        if self._branches:
            yield from (level for _, level in self._branches)
        elif not self.limited and not self.cut:
            yield self.level

    @property
    def union(self) -> bool:
        return bool(self._branches)

    @property
    def level(self) -> Level:
        """The level below. Made on first use, so that ``{:kids 1000000}`` costs what the data is deep."""
        if self._target is None:
            self._target = self._levels.of(*self._make)
        return self._target

    def pick(self, element: Mapping[Any, Any]) -> Level | None:
        """The level for this element; ``None`` where no branch of a union fits it."""
        if not self._branches:
            return self.level
        if len(self._branches) > len(element):
            first = min((self._order[key] for key in element if key in self._order), default=None)
            return None if first is None else self._branches[first][1]
        return next((level for attribute, level in self._branches if attribute in element), None)

    def with_inputs(self, inputs: Inputs) -> Descent:
        """The same descent, where the elements must also have what a resolver's nested input needs."""
        if self._branches:
            branches = tuple((name, level.with_inputs(inputs)) for name, level in self._branches)
            return Descent(self._levels, branches=branches)
        if self.cut:
            return Descent(self._levels, (Query(), (), inputs))
        below = self.level.with_inputs(inputs)
        return Descent(self._levels, (below.query, below.limits, below.inputs))


class Site:
    """One resolver with one set of params: what is remembered and batched together during a request."""

    __slots__ = ("alone", "compact", "params", "resolver", "sole")

    def __init__(self, resolver: Resolver, params: Map) -> None:
        self.resolver = resolver
        self.params = params
        self.alone = False  # called at most once in a request: nothing to remember
        self.compact: tuple[str, ...] = ()  # called by one level only: remember just what that level can use
        self.sole = False  # called by one level only, for the entities of one list


class Levels:
    """Makes the levels of one query and remembers them, so that equal questions share their plans."""

    def __init__(self) -> None:
        self._made: dict[Any, Level] = {}
        self._sites: dict[tuple[Resolver, Any], Site] = {}
        self.root: Level = Level(self, Query(), (), ())  # the first that is made
        self.height = 0  # joins below each other, as written
        self.single = False  # the query is about one entity alone
        self.lists: set[Level] = set()  # the levels that are reached once: by one join of the root
        self.callers: dict[Resolver, int] | None = None  # how many levels may call it; found out when first compiled

    def site(self, resolver: Resolver, params: Map) -> Site:
        key = (resolver, kind_key(params))
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = Site(resolver, params)
        return site

    def of(self, query: Query, limits: Limits = (), inputs: Inputs = ()) -> Level:
        key = (query, limits, inputs)
        level = self._made.get(key)
        if level is None:
            level = Level(self, query, limits, inputs)
            if not self._made:
                self.root = level
                self.height = _height(query)
            self._made[key] = level
            level.fill()
        return level


class Level:
    """One entity's questions, in query order; the last of several for one key decides."""

    __slots__ = (
        "answer_list",
        "calls",
        "compilable",
        "cut_keys",
        "framed",
        "hits",
        "idents",
        "inputs",
        "items",
        "joins",
        "levels",
        "limits",
        "met",
        "needs",
        "one",
        "params",
        "placeholders",
        "plans",
        "query",
        "seen_hits",
        "symbols",
        "wildcard",
    )

    def __init__(self, levels: Levels, query: Query, limits: Limits, inputs: Inputs) -> None:
        self.levels = levels
        self.query = query
        self.limits = limits
        self.inputs = inputs
        self.items: tuple[Item, ...] = ()
        self.cut_keys: frozenset[Any] = frozenset()  # those of which only a part is asked
        self.needs: tuple[Need, ...] = ()
        self.joins: dict[str, Descent] = {}
        self.params: dict[str, Map] = {}
        self.calls: tuple[tuple[Call, Descent | None, tuple[str, ...]], ...] = ()
        self.idents: tuple[tuple[Ident, Descent | None], ...] = ()
        self.placeholders: tuple[Placeholder, ...] = ()
        self.symbols: tuple[Symbol, ...] = ()
        self.wildcard = False
        self.plans: dict[Any, Any] = {}
        self.hits = 0  # how often it was asked as a whole query, and how often when the cache last looked
        self.seen_hits = 0
        self.met: dict[tuple[Any, ...], int] = {}  # keys of an entity → how many such were answered without compiling
        self.framed: Any = None  # the functions that do so
        self.compilable: bool | None = None  # found out when it is first asked for
        self.one: dict[tuple[Any, ...], Any] = {}  # keys of an entity → compiled function for one such entity
        self.answer_list: Callable[[list[Any], Any, Any], list[Any]] = self._first_list  # the latest one for lists

    def _first_list(self, elements: list[Any], request: Any, up: Any) -> list[Any]:
        answers: list[Any] = request.enter_list(self, elements, up)
        return answers

    def below(self) -> Iterator[Level]:
        """The levels that this one leads to; nothing for a limited recursion, whose levels are made as it goes."""
        for descent in (*self.joins.values(), *(d for _, d in self.idents), *(d for _, d, _ in self.calls)):
            if descent is not None:
                yield from descent.targets()
        for placeholder in self.placeholders:
            if placeholder.level is not None:
                yield placeholder.level

    @property
    def limited(self) -> bool:
        """Does a recursion with a limit begin here?"""
        return any(descent.limited for descent in self.joins.values())

    def with_inputs(self, inputs: Inputs) -> Level:
        new = tuple(item for item in inputs if item not in self.inputs)
        return self.levels.of(self.query, self.limits, self.inputs + new) if new else self

    def descents_with(self, nested: Mapping[str, Inputs]) -> dict[str, Descent]:
        """The joins of this level, extended by what resolvers need inside the values."""
        descents = dict(self.joins)
        for attribute, inputs in nested.items():
            descents[attribute] = _extended(self.levels, descents.get(attribute), inputs)
        return descents

    def fill(self) -> None:
        """Read the query. Apart from ``__init__``, because a recursive level is found again while it is read."""
        items: dict[Any, Item] = {}
        needs: dict[str, Need] = {}
        idents: dict[Ident, Descent | None] = {}
        placeholders: dict[str, Placeholder] = {}
        calls: list[tuple[Call, Descent | None, tuple[str, ...]]] = []
        symbols = []
        for child in self.query.children:
            match child:
                case Wildcard():
                    self.wildcard = True
                case Call(name, _, query):
                    descent = self._descent(name, query) if query is not None else None
                    calls.append((child, descent, ()))
                    items.pop(name, None)
                    items[name] = Item(name, descent)
                case Property() | Join() if child.is_placeholder:
                    assert isinstance(child.key, str)
                    placeholder = self._placeholder(child)
                    placeholders.pop(child.key, None)
                    placeholders[child.key] = placeholder
                    below = None if placeholder.level is None else Descent(self.levels, _made_of(placeholder.level))
                    items[child.key] = Item(child.key, below)
                    if placeholder.level is not None:
                        for call, descent, path in placeholder.level.calls:
                            calls.append((call, descent, (child.key, *path)))
                case Property(Ident() as ident) | Join(Ident() as ident):
                    below = self._descent(ident, child.query) if isinstance(child, Join) else None
                    idents[ident] = below
                    items[ident.as_key()] = Item(ident.as_key(), below)
                case Property(Symbol() as symbol) | Join(Symbol() as symbol):
                    symbols.append(symbol)
                    items[symbol] = Item(symbol)
                case Property() | Join():
                    self._attribute(child, items, needs)
        for placeholder in placeholders.values():
            for attribute in _hoisted(placeholder):
                needs.setdefault(attribute, Need(attribute, required=False, asked=False))
        for item in self.inputs:
            known = needs.get(item.attribute)
            required = not item.optional or (known is not None and known.required)
            asked = known is not None and known.asked
            needs[item.attribute] = Need(item.attribute, required, not required, asked)
            if item.below is not None:
                self.joins[item.attribute] = _extended(self.levels, self.joins.get(item.attribute), item.below)
        self.items = tuple(items.values())
        self.cut_keys = frozenset(item.key for item in self.items if item.descent is not None)
        self.needs = tuple(needs.values())
        self.idents = tuple(idents.items())
        self.placeholders = tuple(placeholders.values())
        self.calls = tuple(calls)
        self.symbols = tuple(symbols)

    def _attribute(self, child: Property | Join, items: dict[Any, Item], needs: dict[str, Need]) -> None:
        key: Any = intern(child.key) if type(child.key) is str else child.key
        descent = self._descent(key, child.query) if isinstance(child, Join) else None
        items.pop(key, None)
        needs.pop(key, None)
        self.joins.pop(key, None)
        items[key] = Item(key, descent)
        optional = any(child.params.get(name) for name in OPTIONAL)
        recursive = isinstance(child, Join) and isinstance(child.query, Recursion)
        needs[key] = Need(key, required=not optional and not recursive and key != ERRORS, optional=optional)
        if descent is not None:
            self.joins[key] = descent
        params = {name: value for name, value in child.params.items() if name not in OPTIONAL}
        if params:
            self.params[key] = Map({**self.params.get(key, {}), **params})

    def _descent(self, key: Any, query: Subquery) -> Descent:
        match query:
            case Query():
                return Descent(self.levels, (query,))
            case Union(branches):
                return Descent(self.levels, branches=tuple((name, self.levels.of(q)) for name, q in branches))
            case Recursion(limit):
                remaining = dict(self.limits).get(key, limit)
                if remaining is None:
                    return Descent(self.levels, (self.query, self.limits), recursive=True)
                if remaining == 0:
                    return Descent(self.levels, (self.query, self.limits), cut=True)
                limits = tuple(sorted({**dict(self.limits), key: remaining - 1}.items()))
                return Descent(self.levels, (self.query, limits), limited=True)

    def _placeholder(self, child: Property | Join) -> Placeholder:
        assert isinstance(child.key, str)
        if isinstance(child, Property):
            return Placeholder(child.key, None, NO_PARAMS, fresh=False)
        if not isinstance(child.query, Query):
            raise QueryError("a placeholder repeats its own entity and takes a plain query", (child.key,))
        fresh = any(isinstance(below, Property | Join) and below.params for below in child.query.children)
        return Placeholder(child.key, self.levels.of(child.query), child.params, fresh)


def _height(query: Query) -> int:
    below = [child.query for child in query.children if isinstance(child, Join | Call) and child.query is not None]
    heights = [
        max(map(_height, (branch for _, branch in found.branches)), default=0)
        if isinstance(found, Union)
        else _height(found)
        if isinstance(found, Query)
        else 0
        for found in below
    ]
    return 1 + max(heights) if heights else 0


def _extended(levels: Levels, descent: Descent | None, inputs: Inputs) -> Descent:
    return Descent(levels, (Query(), (), inputs)) if descent is None else descent.with_inputs(inputs)


def _made_of(level: Level) -> tuple[Any, ...]:
    return (level.query, level.limits, level.inputs)


def _hoisted(placeholder: Placeholder) -> Iterator[str]:
    """What the parent resolves on behalf of a placeholder, so that both see one value."""
    if placeholder.level is None:
        return
    for need in placeholder.level.needs:
        if need.attribute not in placeholder.level.params and not placeholder.params:
            yield need.attribute
