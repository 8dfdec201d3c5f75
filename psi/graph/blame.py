"""What went wrong in an entity that was filled: which resolvers are to blame for an attribute that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from psi.edn import Keyword, Symbol
from psi.errors import Failed
from psi.graph.errors import AllProvidersFailed
from psi.graph.level import ERRORS
from psi.graph.operations import Resolver
from psi.graph.plan import Unwinding, shape_of, unwind
from psi.graph.reasons import reasons_for

if TYPE_CHECKING:
    from psi.graph.frame import Frame

__all__ = ["all_failed", "lenient_errors", "missing_details"]


def all_failed(frame: Frame, attribute: str) -> Failed | None:
    """The failure behind an attribute that was lost; ``None`` where nothing raised and it is merely missing."""
    return _Story(frame).of_attribute(attribute)


class _Story:
    """Follows what failed back to what raised. Looks at each attribute and each resolver once, without recursion."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._found: dict[Any, Failed | None] = {}

    def of_attribute(self, attribute: str) -> Failed | None:
        return unwind(self._attribute(attribute))

    def of_resolver(self, resolver: Resolver) -> Failed | None:
        return unwind(self._resolver(resolver))

    def _attribute(self, attribute: str) -> Unwinding[Failed | None]:
        if attribute in self._frame.entity:
            return None
        if attribute not in self._found:
            self._found[attribute] = None  # what comes back to itself adds nothing
            tried = _tried(self._frame, attribute)
            failures = []
            for resolver in tried:
                failure = yield self._resolver(resolver)
                failures.append(failure)
            self._found[attribute] = self._summed_up(attribute, tried, failures)
        return self._found[attribute]

    def _summed_up(self, attribute: str, tried: tuple[Resolver, ...], failures: list[Failed | None]) -> Failed | None:
        raised = [failure for failure in failures if failure is not None]
        if not raised:
            return None
        if len(raised) == len(tried) and all(failure is raised[0] for failure in raised):
            return raised[0]
        silent = [resolver.name for resolver, failure in zip(tried, failures, strict=True) if failure is None]
        distinct = list({id(failure): failure for failure in raised}.values())
        return AllProvidersFailed(attribute, distinct[:_TOLD], silent[:_TOLD], self._frame.path())

    def _resolver(self, resolver: Resolver) -> Unwinding[Failed | None]:
        known = self._frame.failures.get(resolver)
        if known is not None:
            return known
        if resolver not in self._found:
            self._found[resolver] = None
            for item in resolver.inputs:
                if not item.optional:
                    failure = yield self._attribute(item.attribute)
                    if failure is not None:
                        self._found[resolver] = failure
                        break
        return self._found[resolver]


# So many failures of one attribute are told; a list of dozens says no more.
_TOLD = 8


def _tried(frame: Frame, attribute: str) -> tuple[Resolver, ...]:
    """The providers that could be planned when the entity came in."""
    engine = frame.request.engine
    return engine.planner.viable(shape_of(frame.source, engine.index.entered), attribute, frame.reached)


def lenient_errors(frame: Frame) -> dict[Any, Any]:
    """Attribute → error, for everything this level wanted and the entity does not have."""
    errors: dict[Any, Any] = {}
    optional = {need.attribute for need in frame.level.needs if need.optional}
    wanted = {need.attribute: None for need in frame.level.needs if need.asked or need.required}
    # What a resolver needed inside a value is part of the story of what it could not give.
    wanted |= {a: None for a in frame.first_plan.descents if a not in frame.level.joins}
    lacking = [attribute for attribute in wanted if attribute not in frame.entity and attribute != ERRORS]
    unreachable = _unreachable(frame, [a for a in lacking if a in frame.first_plan.unreachable and a not in optional])
    for attribute in lacking:
        if attribute in optional and all_failed(frame, attribute) is None:
            continue
        if attribute in unreachable:
            errors[attribute] = unreachable[attribute]
        else:
            nodes = [_node(frame, resolver) for resolver in _tried(frame, attribute)]
            message = "; ".join(str(node["message"]) for node in nodes) or "nothing provides it"
            errors[attribute] = {"cause": Keyword("node-errors"), "message": message, "nodes": nodes}
    for symbol in frame.level.symbols:
        if symbol not in frame.entity:
            errors[symbol] = {"cause": Keyword("attribute-unreachable"), "message": _why_missing(frame, symbol)}
    return errors


def _unreachable(frame: Frame, attributes: list[Any]) -> dict[Any, dict[str, Any]]:
    if not attributes:
        return {}
    engine = frame.request.engine
    known = shape_of(frame.source, engine.index.entered)
    return {
        why.attribute: {
            "cause": Keyword("attribute-unreachable"),
            "message": "\n".join(why.lines()).removeprefix("- "),
            "reason": why.as_data(),
        }
        for why in reasons_for(engine.index, engine.planner, known, attributes)
    }


def _node(frame: Frame, resolver: Resolver) -> dict[str, Any]:
    node: dict[str, Any] = {"resolver": resolver.name, "cause": Keyword("node-exception")}
    failure = frame.failures.get(resolver)
    if failure is None:
        failure = _Story(frame).of_resolver(resolver)
        node["cause"] = Keyword("attribute-missing" if failure is None else "ancestor-error")
    if failure is not None:
        return node | {"message": failure.message, "error": failure.as_data()}
    lacking = _lacking(frame, resolver)
    node["message"] = _story(frame, resolver)
    return node | {"missing": [Keyword(attribute) for attribute in lacking]} if lacking else node


def missing_details(frame: Frame, attributes: Iterable[Any]) -> list[tuple[Any, str]]:
    """For each missing attribute, who should have delivered it and why nobody did."""
    return [(attribute, _why_missing(frame, attribute)) for attribute in attributes]


def _why_missing(frame: Frame, attribute: Any) -> str:
    if isinstance(attribute, Symbol):
        if attribute in frame.request.engine.index.mutations:
            return f"it names a mutation; call it as ({attribute} {{..}})"
        return f"a symbol is not an attribute; write :{attribute}"
    tried = _tried(frame, attribute)
    if not tried:
        return "nothing provides it"
    return "; ".join(_story(frame, resolver) for resolver in tried)


def _story(frame: Frame, resolver: Resolver) -> str:
    lacking = _lacking(frame, resolver)
    if lacking:
        return f"resolver {resolver.name} was not called, its input is missing: {', '.join(f':{a}' for a in lacking)}"
    return f"resolver {resolver.name} did not return it"


def _lacking(frame: Frame, resolver: Resolver) -> list[str]:
    return [item.attribute for item in resolver.inputs if not item.optional and item.attribute not in frame.entity]
