"""What a request remembers: the results of resolvers, so that none is called twice with the same input.

Two forms side by side. The whole result is kept where several levels of a query may want different parts of it. Where
only one level can call a resolver, compiled code keeps just the values that level can use, which is smaller and
faster; a result that lacks some of them is kept whole, and a :class:`~psi.graph.emit.Full` stands in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from psi.edn import kind_key
from psi.graph.emit import UNSET, Full
from psi.graph.level import Site
from psi.graph.values import ABSENT_KEY

__all__ = ["Memory"]


class Memory:
    """The results of one request, by site and input."""

    __slots__ = ("_caught_up", "_seen", "compacts", "wholes")

    def __init__(self) -> None:
        self.wholes: dict[Site, dict[Any, Any]] = {}
        self.compacts: dict[Site, dict[Any, Any]] = {}
        self._seen: dict[Site, set[Any]] = {}
        self._caught_up: dict[Site, int] = {}

    def whole(self, site: Site) -> dict[Any, Any]:
        found = self.wholes.get(site)
        if found is None:
            found = self.wholes[site] = {}
        return found

    def compact(self, site: Site) -> dict[Any, Any]:
        """Inputs and the values of ``site.compact``; for one input and one value, just the value by the input."""
        found = self.compacts.get(site)
        if found is None:
            found = self.compacts[site] = {}
        return found

    def recall(self, site: Site, data: Mapping[str, Any], key: Any, expects: tuple[str, ...] = ()) -> Any:
        """A result that is remembered, wherever; ``UNSET`` where there is none."""
        if site.compact and all(attribute in site.compact for attribute in expects):
            values = self._recall_compact(site, [data.get(item.attribute, ABSENT_KEY) for item in site.resolver.inputs])
            if values is not None:
                return dict(zip(site.compact, values, strict=True))
        return self.whole(site).get(key, UNSET)

    def _recall_compact(self, site: Site, inputs: list[Any]) -> tuple[Any, ...] | None:
        found = self.compact(site)
        if len(inputs) == 1 == len(site.compact):
            value = found.get(inputs[0], UNSET) if type(inputs[0]) in (int, str) or inputs[0] is ABSENT_KEY else UNSET
            return None if value is UNSET or value.__class__ is Full else (value,)
        with suppress(TypeError):  # what cannot be a key was not kept here
            for key in (inputs[0] if inputs else None, tuple(inputs)):
                entry = found.get(key, ())
                if entry and all(_same(a, b) for a, b in zip(entry, inputs, strict=False)):
                    return tuple(entry[len(inputs) :])
        return None

    def remember(self, site: Site, data: Mapping[str, Any], key: Any, value: Any) -> None:
        """Keep a whole result, and leave word of it where compiled code looks first."""
        self.whole(site)[key] = value
        if site.compact:
            inputs = [data.get(item.attribute, ABSENT_KEY) for item in site.resolver.inputs]
            known = self.compact(site)
            first = inputs[0] if inputs else None
            with suppress(TypeError):  # what cannot be a key is not looked for there either
                where = tuple(inputs) if len(inputs) > 1 and first in known else first
                if where not in known or not known[where]:
                    known[where] = Full()
                if site in self._seen:
                    self._seen[site].add(first)

    def seen(self, site: Site) -> set[Any]:
        """First inputs that were met, for a list whose answers tell the rest."""
        found = self._seen.get(site)
        if found is None:
            found = self._seen[site] = set()
        return found

    def catch_up(self, site: Site, keys: tuple[str, ...], answers: Sequence[Any], end: int) -> None:
        """Make entries of the answers that were given since the last time; ``keys`` are inputs, then values."""
        known = self.compact(site)
        inputs = len(site.resolver.inputs)
        for place in range(self._caught_up.get(site, 0), end):
            answer = answers[place]
            if isinstance(answer, dict) and all(key in answer for key in keys):
                entry = tuple(answer[key] for key in keys)
                with suppress(TypeError):  # as above
                    known[entry[:inputs] if entry[0] in known else entry[0]] = entry
        self._caught_up[site] = end

    def forget(self, site: Site, key: Any) -> None:
        self.whole(site).pop(key, None)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and (one is other or kind_key(one) == kind_key(other))
