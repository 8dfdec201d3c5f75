"""Why an attribute cannot be reached, in words and as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from psi.edn import Keyword
from psi.graph.errors import shown
from psi.graph.index import Index
from psi.graph.operations import Resolver
from psi.graph.plan import Planner, Reach
from psi.graph.shape import Input, Shape

__all__ = ["Lack", "Reason", "reasons_for"]

# Past this many steps down a chain of missing inputs the story helps nobody.
_DEPTH = 4
_HINTS = 10


@dataclass(frozen=True, slots=True)
class Lack:
    """One resolver that would give the attribute, and the inputs that nobody provides."""

    resolver: str
    needs: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """What stands in the way to an attribute.

    ``unknown``: nobody has heard of it. ``not-given``: resolvers need it and none gives it, so it has to come with
    the entity. ``mutation``: it is the name of one. ``inputs``: resolvers would give it, but for their inputs.
    ``nested``: it is there, but its entities lack something. ``circular``: it is needed to get itself.
    """

    attribute: Any
    kind: str
    lacks: tuple[Lack, ...] = ()
    nearest: str | None = None
    below: tuple[str, ...] = ()

    def lines(self, indent: str = "") -> list[str]:
        name = shown(self.attribute)
        if self.kind != "inputs":
            return [f"{indent}- {name} {self._sentence()}"]
        lines = [f"{indent}- {name} is given by {_listed(self.lacks)}, whose inputs cannot be reached:"]
        for lack in self.lacks:
            for need in lack.needs:
                lines.extend(need.lines(indent + "  "))
        return lines

    def _sentence(self) -> str:
        match self.kind:
            case "unknown":
                hint = f" Did you mean {shown(self.nearest)}?" if self.nearest else ""
                return f"is unknown: no resolver gives it, and the entity does not have it.{hint}"
            case "not-given":
                return "is given by no resolver: it has to come with the entity."
            case "mutation":
                return f"is a mutation, not an attribute: call it as ({self.attribute} {{..}})."
            case "circular":
                return "is needed to get itself."
            case _:
                return f"is there, but its entities do not have {' '.join(map(shown, self.below))}."

    def as_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "attribute": Keyword(self.attribute) if type(self.attribute) is str else self.attribute,
            "kind": Keyword(self.kind),
        }
        if self.nearest:
            data["nearest"] = Keyword(self.nearest)
        if self.below:
            data["lacking"] = [Keyword(attribute) for attribute in self.below]
        if self.lacks:
            data["resolvers"] = [
                {"resolver": lack.resolver, "needs": [need.as_data() for need in lack.needs]} for lack in self.lacks
            ]
        return data


def _listed(lacks: tuple[Lack, ...]) -> str:
    names = [lack.resolver for lack in lacks]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def reasons_for(index: Index, planner: Planner, available: Shape, attributes: Iterable[Any]) -> list[Reason]:
    """Why these attributes cannot be had from an entity of this shape."""
    reach = Reach(planner, index, available, frozenset(), frozenset())
    # Looking for what a typo may have meant is slow, and after some of them it is no typo any more.
    return [
        _reason(index, reach, available, attribute, frozenset(), hints=place < _HINTS)
        for place, attribute in enumerate(attributes)
    ]


def _reason(
    index: Index, reach: Reach, available: Shape, attribute: Any, above: frozenset[Any], *, hints: bool = True
) -> Reason:
    if attribute in above:
        return Reason(attribute, "circular")
    providers = index.providers(attribute)
    if not providers:
        return _without_providers(index, attribute, hints=hints)
    inner = above | {attribute}
    lacks = tuple(Lack(r.name, _needs(index, reach, available, r, inner)) for r in providers)
    return Reason(attribute, "inputs", lacks)


def _without_providers(index: Index, attribute: Any, *, hints: bool) -> Reason:
    if type(attribute) is not str:
        return Reason(attribute, "unknown")
    if attribute in index.mutations:
        return Reason(attribute, "mutation")
    if attribute in index.attributes:
        return Reason(attribute, "not-given")
    return Reason(attribute, "unknown", nearest=index.nearest(attribute) if hints else None)


def _needs(
    index: Index, reach: Reach, available: Shape, resolver: Resolver, above: frozenset[Any]
) -> tuple[Reason, ...]:
    if len(above) > _DEPTH:
        return ()
    return tuple(
        _hollow(reach, item)
        if reach.has(item.attribute, None)
        else _reason(index, reach, available, item.attribute, above)
        for item in resolver.inputs
        if not item.optional and not reach.has(item.attribute, item.below)
    )


def _hollow(reach: Reach, item: Input) -> Reason:
    """The attribute is to be had, but not what is needed inside it."""
    lacking = tuple(b.attribute for b in item.below or () if not b.optional and not reach.has(item.attribute, (b,)))
    return Reason(item.attribute, "nested", below=lacking)
