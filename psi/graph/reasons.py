"""Why an attribute cannot be reached, in words and as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from psi.edn import Keyword
from psi.graph.errors import shown
from psi.graph.index import Index
from psi.graph.operations import Resolver
from psi.graph.plan import Planner, Reach
from psi.graph.shape import Input, Shape

__all__ = ["Lack", "Reason", "reason"]

# Past this many steps down a chain of missing inputs the story helps nobody.
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Lack:
    """One resolver that would give the attribute, and the inputs that nobody provides."""

    resolver: str
    needs: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """``unknown``: no resolver gives it. ``inputs``: some would, but lack inputs. ``nested``: its values lack
    something."""

    attribute: Any
    kind: str
    lacks: tuple[Lack, ...] = ()
    nearest: str | None = None

    def lines(self, indent: str = "") -> list[str]:
        name = shown(self.attribute)
        if self.kind == "unknown":
            hint = f" Did you mean {shown(self.nearest)}?" if self.nearest else ""
            return [f"{indent}- {name} is unknown: no resolver gives it, and the entity does not have it.{hint}"]
        if self.kind == "circular":
            return [f"{indent}- {name} is needed to get itself."]
        if self.kind == "nested":
            return [f"{indent}- {name} is there, but its entities do not have what is needed of them."]
        lines = [f"{indent}- {name} is given by {_listed(self.lacks)}, whose inputs cannot be reached:"]
        for lack in self.lacks:
            for need in lack.needs:
                lines.extend(need.lines(indent + "  "))
        return lines

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "attribute": Keyword(self.attribute) if type(self.attribute) is str else self.attribute,
            "kind": Keyword(self.kind),
        }
        if self.nearest:
            data["nearest"] = Keyword(self.nearest)
        if self.lacks:
            data["resolvers"] = [
                {"resolver": lack.resolver, "needs": [need.as_data() for need in lack.needs]} for lack in self.lacks
            ]
        return data


def _listed(lacks: tuple[Lack, ...]) -> str:
    names = [lack.resolver for lack in lacks]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def reason(index: Index, planner: Planner, available: Shape, attribute: Any) -> Reason:
    """Why ``attribute`` cannot be had from an entity of this shape."""
    reach = Reach(planner, index, available, frozenset(), frozenset())
    return _reason(index, reach, available, attribute, frozenset())


def _reason(index: Index, reach: Reach, available: Shape, attribute: Any, above: frozenset[Any]) -> Reason:
    if attribute in available:
        return Reason(attribute, "nested")
    if attribute in above:
        return Reason(attribute, "circular")
    providers = index.providers(attribute)
    if not providers:
        nearest = index.nearest(attribute) if type(attribute) is str else None
        return Reason(attribute, "unknown", nearest=nearest)
    inner = above | {attribute}
    lacks = tuple(Lack(r.name, _needs(index, reach, available, r, inner)) for r in providers)
    return Reason(attribute, "inputs", lacks)


def _needs(
    index: Index, reach: Reach, available: Shape, resolver: Resolver, above: frozenset[Any]
) -> tuple[Reason, ...]:
    if len(above) > _DEPTH:
        return ()
    return tuple(
        Reason(item.attribute, "nested")
        if _had_but_hollow(reach, item)
        else _reason(index, reach, available, item.attribute, above)
        for item in resolver.inputs
        if not item.optional and not reach.has(item.attribute, item.below)
    )


def _had_but_hollow(reach: Reach, item: Input) -> bool:
    return item.below is not None and reach.has(item.attribute, None)
