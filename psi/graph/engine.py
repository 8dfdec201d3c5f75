"""What all requests to one graph share: its index, its planner, its compiler, and what is worth compiling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from psi.graph.compile import Compiled, Compiler, Up
from psi.graph.index import Index
from psi.graph.level import Level
from psi.graph.plan import Planner
from psi.graph.request import Limits, Request

__all__ = ["Engine"]

# Entities of so many different shapes are compiled for at one level; past that they are no shapes but noise.
_SHAPES_PER_LEVEL: Final = 64


class Engine:
    """Answers entities with compiled functions once they have shown up often enough, and with frames before.

    Compiling costs about as much as answering a hundred small entities without it. So a query that is asked once is not
    compiled for, and one that is asked again, or that meets a list, is.
    """

    def __init__(self, index: Index, limits: Limits, *, compile_after: int | None, placeholder_params: bool) -> None:
        self.index = index
        self.planner = Planner(index)
        self.limits = limits
        self.placeholder_params = placeholder_params
        self._compile_after = compile_after
        self._compiler = Compiler(index, self.planner)

    def compiles(self, level: Level) -> bool:
        return self._compile_after is not None and self._compiler.can(level)

    @staticmethod
    def framed(level: Level) -> Compiled:
        """The same face without compiled code behind it."""
        if level.framed is None:
            level.framed = _framed(level)
        made: Compiled = level.framed
        return made

    def compiled(self, level: Level, entity: Mapping[Any, Any], count: int = 1) -> Compiled:
        """The functions for entities like this one, of which ``count`` are to be answered."""
        framed = self.framed(level)
        if not self.compiles(level) or len(level.one) >= _SHAPES_PER_LEVEL:
            return framed
        keys = tuple(entity)
        if len(level.met) >= _SHAPES_PER_LEVEL:
            level.met.clear()
        met = level.met[keys] = level.met.get(keys, 0) + count
        assert self._compile_after is not None
        if met <= self._compile_after:
            return framed
        made = self._compiler.compile(level, entity) or framed
        level.one[keys] = made.one
        return made


def _framed(level: Level) -> Compiled:
    def one(entity: Mapping[Any, Any], request: Request, up: Up) -> Any:
        return request.frame(level, entity, up)

    def many(elements: Any, request: Request, up: Up) -> list[Any]:
        out: list[Any] = []
        for place, element in enumerate(elements):
            if isinstance(element, Mapping):
                out.append(request.frame(level, element, (up, place)))
            elif element is not None:
                out.append(element)
        return out

    return Compiled(one, many, "")
