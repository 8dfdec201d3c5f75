"""The door of this room: a graph of operations that answers queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from psi.eql import parse
from psi.errors import PsiError
from psi.graph.drive import abandon, begin, deadline, drive, drive_now
from psi.graph.engine import Engine
from psi.graph.errors import InvalidEntity
from psi.graph.explain import PlanTree, plan_tree
from psi.graph.index import Index
from psi.graph.level import Level, Levels
from psi.graph.operations import Operation
from psi.graph.request import Limits, Request

__all__ = ["CacheInfo", "Graph"]


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """How well the plan cache serves: queries found in it, queries planned, queries dropped to make room."""

    hits: int
    misses: int
    evictions: int
    size: int
    max_size: int


class Graph:
    """Operations that answer queries. Checked when it is built; its operations never change afterwards.

    What it learns about queries does change, without locks: a graph belongs to one thread, as an event loop does.
    """

    def __init__(
        self,
        operations: Iterable[Operation | Iterable[Operation]],
        *,
        limits: Limits | None = None,
        cache_size: int = 512,
        placeholder_params: bool = False,
        compile_after: int | None = 1,
    ) -> None:
        """``placeholder_params``: the params of a placeholder become data of its entity, as Pathom's plugin does.

        ``compile_after``: how many entities of a shape are answered before code is compiled for it; ``None`` for never.
        It changes how fast answers come, not what they are.
        """
        self.index = Index(operations)
        self._engine = Engine(
            self.index, limits or Limits(), compile_after=compile_after, placeholder_params=placeholder_params
        )
        self._queries = _QueryCache(cache_size)

    async def query(
        self,
        query: Any,
        entity: Mapping[Any, Any] | None = None,
        *,
        context: Any = None,
        lenient: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 – a bound of the request, not a wait
        max_depth: int | None = None,
        max_entities: int | None = None,
    ) -> dict[Any, Any]:
        """Answer a query about an entity.

        ``query`` is EDN text, EDN data or a :class:`psi.eql.Query`. Strict by default: the first failure is raised and
        nothing is answered. ``lenient`` answers what it can and puts the failures beside the data, under ``ERRORS``.
        """
        request = self._request(context, lenient, timeout, max_depth, max_entities, sync=False)
        begin(request)
        try:
            answer = self._start(request, query, entity)
            if request.batches or request.waiting or request.late:
                await drive(request, timeout)
        except BaseException as error:
            _left(request, error)
            raise
        return answer

    def query_now(
        self,
        query: Any,
        entity: Mapping[Any, Any] | None = None,
        *,
        context: Any = None,
        lenient: bool = False,
        timeout: float | None = None,
        max_depth: int | None = None,
        max_entities: int | None = None,
    ) -> dict[Any, Any]:
        """The same without an event loop, where every operation that is called is plain."""
        request = self._request(context, lenient, timeout, max_depth, max_entities, sync=True)
        try:
            answer = self._start(request, query, entity)
            if request.batches or request.waiting or request.late:
                drive_now(request)
        except BaseException as error:
            _left(request, error)
            raise
        return answer

    def plan(self, query: Any, entity: Mapping[Any, Any] | None = None) -> dict[str, Any]:
        """What would be called, as data that EDN and JSON can carry; nothing is called."""
        return self._plan(query, entity).as_data()

    def explain(self, query: Any, entity: Mapping[Any, Any] | None = None) -> str:
        """The same in words; and why an attribute cannot be reached."""
        return str(self._plan(query, entity))

    def _plan(self, query: Any, entity: Mapping[Any, Any] | None) -> PlanTree:
        if entity is not None and not isinstance(entity, Mapping):
            raise InvalidEntity(entity)
        return plan_tree(self.index, self._engine.planner, self._queries.level(query), entity or {})

    def cache_info(self) -> CacheInfo:
        return self._queries.info()

    def _request(
        self,
        context: Any,
        lenient: bool,
        timeout: float | None,
        max_depth: int | None,
        max_entities: int | None,
        *,
        sync: bool,
    ) -> Request:
        limits = self._engine.limits
        if timeout is None and max_depth is None and max_entities is None:
            return Request(self._engine, context, lenient, limits, None, sync)
        if max_depth is not None or max_entities is not None:
            limits = replace(
                limits,
                max_depth=limits.max_depth if max_depth is None else max_depth,
                max_entities=limits.max_entities if max_entities is None else max_entities,
            )
        expired = None if timeout is None else deadline(timeout)
        return Request(self._engine, context, lenient, limits, expired, sync)

    def _start(self, request: Request, query: Any, entity: Mapping[Any, Any] | None) -> dict[Any, Any]:
        level = self._queries.level(query)
        if entity is None:
            entity = {}
        elif entity.__class__ is not dict and not isinstance(entity, Mapping):
            raise InvalidEntity(entity)
        function = None if request.limits.is_shallow else level.one.get(tuple(entity))
        if function is None:
            function = request.entrance(level, entity)
        answer: dict[Any, Any] = function(entity, request, None)
        return answer

    def __repr__(self) -> str:
        return f"<Graph of {len(self.index.resolvers)} resolvers and {len(self.index.mutations)} mutations>"


class _QueryCache:
    """Queries and all that was found out about them: levels, plans, compiled functions.

    Bounded. What was asked again since it was last looked at gets another turn before it is dropped; that is nearly as
    good as knowing the order of use, and costs a query one addition.
    """

    def __init__(self, max_size: int) -> None:
        if max_size < 1:
            raise ValueError(f"cache_size must be 1 or more, got {max_size}")
        self._max_size = max_size
        self._levels: dict[Any, Level] = {}
        self._hits = 0
        self._misses = 0
        self._evictions = 0

    def level(self, query: Any) -> Level:
        level = self._levels.get(query) if query.__class__ is str else None
        if level is None:
            level = self._find(query)
        level.hits += 1
        return level

    def _find(self, query: Any) -> Level:
        key = query if type(query) is str else parse(query)
        level = self._levels.get(key)
        if level is None:
            level = Levels().of(parse(key))
            self._misses += 1
            self._hits -= 1  # the first use of a level is not a hit
            level.seen_hits = 1
            while len(self._levels) >= self._max_size:
                self._evict()
            self._levels[key] = level
        return level

    def _evict(self) -> None:
        key, level = next(iter(self._levels.items()))
        del self._levels[key]
        if level.hits > level.seen_hits:
            level.seen_hits = level.hits
            self._levels[key] = level
        else:
            self._hits += level.hits
            self._evictions += 1

    def info(self) -> CacheInfo:
        hits = self._hits + sum(level.hits for level in self._levels.values())
        return CacheInfo(hits, self._misses, self._evictions, len(self._levels), self._max_size)


def _left(request: Request, error: BaseException) -> None:
    """The request ends here; what it has done by now is told with the reason."""
    abandon(request)
    if isinstance(error, PsiError):
        error.done = tuple(request.done)
