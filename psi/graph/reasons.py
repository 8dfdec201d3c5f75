"""Why an attribute cannot be reached, in words and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
_LONGEST = 50


@dataclass(frozen=True, slots=True)
class Lack:
    """One resolver that would give the attribute, and the inputs that nobody provides."""

    resolver: str
    needs: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """What stands in the way to an attribute.

    ``unknown``: nobody has heard of it. ``not-given``: resolvers need it and none gives it, so it has to come with
    the entity. ``inside``: resolvers give it, but only within what they give under another attribute. ``mutation``: it
    is the name of one. ``inputs``: resolvers would give it, but for their inputs.
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
            case "inside":
                return (
                    f"is given inside {' '.join(map(shown, self.below))} alone: ask there, or bring it with the entity."
                )
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
            data["inside" if self.kind == "inside" else "lacking"] = [Keyword(attribute) for attribute in self.below]
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
    # Looking for what a typo may have meant is slow, and after some of them it is no typo any more. Likewise a story
    # that branches at every step is cut when it has become long.
    found = []
    for place, attribute in enumerate(attributes):
        telling = _Telling(index, reach, hints=place < _HINTS)
        found.append(telling.reason(attribute, frozenset()))
    return found


def _around(attribute: str, shape: Shape) -> Iterator[str]:
    """The attributes of a shape, at any depth, whose entities have this one."""
    for name, below in shape.items():
        if below:
            if attribute in below:
                yield name
            yield from _around(attribute, below)


class _Telling:
    """One attribute's story in the making."""

    def __init__(self, index: Index, reach: Reach, *, hints: bool) -> None:
        self._index = index
        self._reach = reach
        self._hints = hints
        self._left = _LONGEST

    def reason(self, attribute: Any, above: frozenset[Any]) -> Reason:
        self._left -= 1
        if attribute in above:
            return Reason(attribute, "circular")
        providers = self._index.providers(attribute)
        if not providers:
            return self._without_providers(attribute)
        inner = above | {attribute}
        return Reason(attribute, "inputs", tuple(Lack(r.name, self._needs(r, inner)) for r in providers))

    def _without_providers(self, attribute: Any) -> Reason:
        if type(attribute) is not str:
            return Reason(attribute, "unknown")
        if attribute in self._index.mutations:
            return Reason(attribute, "mutation")
        if attribute in self._index.attributes:
            around = {name for each in self._index.resolvers.values() for name in _around(attribute, each.output)}
            return (
                Reason(attribute, "inside", below=tuple(sorted(around))) if around else Reason(attribute, "not-given")
            )
        return Reason(attribute, "unknown", nearest=self._index.nearest(attribute) if self._hints else None)

    def _needs(self, resolver: Resolver, above: frozenset[Any]) -> tuple[Reason, ...]:
        if len(above) > _DEPTH:
            return ()
        found = []
        for item in resolver.inputs:
            if item.optional or self._reach.has(item.attribute, item.below):
                continue
            if self._left <= 0:
                break
            hollow = self._reach.has(item.attribute, None)
            found.append(self._hollow(item) if hollow else self.reason(item.attribute, above))
        return tuple(found)

    def _hollow(self, item: Input) -> Reason:
        """The attribute is to be had, but not what is needed inside it."""
        needed = (below for below in item.below or () if not below.optional)
        lacking = tuple(below.attribute for below in needed if not self._reach.has(item.attribute, (below,)))
        return Reason(item.attribute, "nested", below=lacking)
