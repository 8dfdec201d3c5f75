"""What can go wrong when a graph is built or asked.

    Refused
    ├── InvalidOperation        an operation is declared wrongly            (when the Graph is built)
    ├── AttributeUnreachable    nothing leads from the entity to it         (before any resolver of that entity runs)
    ├── InvalidEntity           what the query starts from is not a map
    ├── MutationNotFound
    └── AsyncOperation          query_now met an operation that must be awaited
    Failed
    ├── AttributeMissing        resolvers ran and did not deliver it
    ├── ResolverFailed          a resolver raised
    │   └── BatchFailed         a batch resolver raised or gave the wrong number of results
    ├── InvalidResponse         a resolver gave something that is not a map
    ├── AllProvidersFailed      every provider was tried, at least one raised
    ├── MutationFailed          a mutation raised
    └── LimitExceeded           too deep, too many entities, too slow, or a cycle in the data

Paths are tuples of attributes, indexes and idents from the root of the query. ``cause`` of a lenient error is one of
``CAUSES``; nothing else ever stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from psi.edn import Keyword, Symbol, Vector, dumps
from psi.edn import WriteError as _WriteError
from psi.errors import Failed, PsiError, Refused

__all__ = [
    "CAUSES",
    "AllProvidersFailed",
    "AsyncOperation",
    "AttributeMissing",
    "AttributeUnreachable",
    "BatchFailed",
    "InvalidEntity",
    "InvalidOperation",
    "InvalidResponse",
    "LimitExceeded",
    "MutationFailed",
    "MutationNotFound",
    "ResolverFailed",
]

Path = tuple[Any, ...]

CAUSES: Final = ("attribute-unreachable", "node-errors")


def shown(value: Any, limit: int = 80) -> str:
    """A value as a person writes it in a query, cut to one line."""
    if isinstance(value, str) and not isinstance(value, Symbol):
        return f":{value}"
    try:
        text = dumps(value)
    except _WriteError:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown_value(value: Any, limit: int = 80) -> str:
    """A value as data: strings in quotes."""
    try:
        text = dumps(value)
    except _WriteError:
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _at(path: Path) -> str:
    return f" at [{' '.join(_step(step) for step in path)}]" if path else ""


def _step(step: Any) -> str:
    return str(step) if isinstance(step, int) else shown(step)


def path_data(path: Path) -> Vector:
    """A path as EDN: attributes become keywords."""
    return Vector(Keyword(step) if type(step) is str else step for step in path)


def told(error: Exception) -> str:
    """What an operation raised, in a few words. Errors of ours say it themselves; of others the kind is half the
    story."""
    if isinstance(error, PsiError):
        return error.message
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 – an error that cannot even be told
        return name
    return f"{name}: {text}".encode(errors="backslashreplace").decode() if text else name


class InvalidOperation(Refused):
    """An operation's declaration contradicts itself or another one."""

    code = "graph/invalid-operation"

    def __init__(self, operation: str, problem: str) -> None:
        super().__init__(f"{operation}: {problem}")
        self.operation = operation
        self.problem = problem

    def facts(self) -> dict[str, Any]:
        return {"operation": self.operation, "problem": self.problem}


class AttributeUnreachable(Refused):
    """No resolver leads from what is known to what was asked. ``reasons`` says why, attribute by attribute."""

    code = "graph/attribute-unreachable"

    def __init__(self, reasons: Sequence[Any], path: Path = ()) -> None:
        lines = "\n".join(line for reason in reasons for line in reason.lines())
        super().__init__(f"no path to these attributes{_at(path)}:\n{lines}")
        self.reasons = tuple(reasons)
        self.attributes = tuple(reason.attribute for reason in reasons)
        self.path = path

    def facts(self) -> dict[str, Any]:
        return {
            "path": path_data(self.path),
            "attributes": [Keyword(a) if type(a) is str else a for a in self.attributes],
            "reasons": [reason.as_data() for reason in self.reasons],
        }


class AsyncOperation(Refused):
    """``query_now`` has no event loop to await with."""

    code = "graph/async-operation"

    def __init__(self, operation: str) -> None:
        super().__init__(f"{operation} is asynchronous: use `await graph.query(..)` instead of `query_now`")
        self.operation = operation

    def facts(self) -> dict[str, Any]:
        return {"operation": self.operation}


class InvalidEntity(Refused):
    """A query starts from a map of what is known."""

    code = "graph/invalid-entity"

    def __init__(self, entity: Any) -> None:
        super().__init__(f"an entity is a map of attributes to values, got {shown_value(entity)}")
        self.entity = entity


class MutationNotFound(Refused):
    code = "graph/mutation-not-found"

    def __init__(self, name: str, path: Path = (), nearest: str | None = None) -> None:
        hint = f"; did you mean {nearest}?" if nearest else ""
        super().__init__(f"mutation {name} not found{_at(path)}{hint}")
        self.name = name
        self.path = path
        self.nearest = nearest

    def facts(self) -> dict[str, Any]:
        return {"mutation": self.name, "path": path_data(self.path), "nearest": self.nearest}


def _cause(error: Failed) -> dict[str, Any]:
    """What an operation raised on purpose keeps its code and its facts; of anything else the sentence is enough."""
    return {"error": error.__cause__.as_data()} if isinstance(error.__cause__, PsiError) else {}


class _AtPath(Failed):
    """A failure at one place of the result tree."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path

    def facts(self) -> dict[str, Any]:
        return {"path": path_data(self.path)}


class AttributeMissing(_AtPath):
    """The plan was right, the resolvers ran, the attributes are still not there."""

    code = "graph/attribute-missing"

    def __init__(self, details: Iterable[tuple[Any, str]], path: Path = ()) -> None:
        self.details = tuple(details)
        self.attributes = tuple(attribute for attribute, _ in self.details)
        lines = "\n".join(f"- {shown(attribute)}: {why}" for attribute, why in self.details)
        super().__init__(f"required attributes are missing{_at(path)}:\n{lines}", path)

    def facts(self) -> dict[str, Any]:
        reasons = {shown(attribute): why for attribute, why in self.details}
        named = [Keyword(a) if type(a) is str else a for a in self.attributes]
        return {**super().facts(), "attributes": named, "reasons": reasons}


class ResolverFailed(_AtPath):
    """A resolver raised; ``__cause__`` is what it raised."""

    code = "graph/resolver-failed"
    what: ClassVar[str] = "resolver"

    def __init__(self, operation: str, reason: str, path: Path = ()) -> None:
        super().__init__(f"{self.what} {operation} failed{_at(path)}: {reason}", path)
        self.operation = operation
        self.reason = reason

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "operation": self.operation, "reason": self.reason, **_cause(self)}


class BatchFailed(ResolverFailed):
    code = "graph/batch-failed"
    what = "batch resolver"


class InvalidResponse(ResolverFailed):
    code = "graph/invalid-response"

    def __init__(self, operation: str, response: Any, path: Path = ()) -> None:
        super().__init__(operation, f"expected a map or nothing, got {shown_value(response)}", path)
        self.response = response


class AllProvidersFailed(_AtPath):
    code = "graph/all-providers-failed"

    def __init__(self, attribute: str, failures: Sequence[Failed], silent: Sequence[str] = (), path: Path = ()) -> None:
        told = [*(failure.message for failure in failures), *(f"{name} did not return it" for name in silent)]
        super().__init__(f"every provider of {shown(attribute)} failed{_at(path)}: {'; '.join(told)}", path)
        self.attribute = attribute
        self.silent = tuple(silent)
        self.failures = tuple(failures)

    def facts(self) -> dict[str, Any]:
        return {
            **super().facts(),
            "attribute": Keyword(self.attribute),
            "failures": [failure.as_data() for failure in self.failures],
            "silent": list(self.silent),
        }


class MutationFailed(_AtPath):
    code = "graph/mutation-failed"

    def __init__(self, name: str, reason: str, path: Path = ()) -> None:
        super().__init__(f"mutation {name} failed{_at(path)}: {reason}", path)
        self.name = name
        self.reason = reason

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "mutation": self.name, "reason": self.reason, **_cause(self)}


class LimitExceeded(_AtPath):
    """The request was stopped: ``limit`` names which bound it met."""

    code = "graph/limit-exceeded"

    def __init__(self, limit: str, message: str, path: Path = ()) -> None:
        where = _at(path) if len(path) <= 6 else f"{_at(path[:6])[:-1]} …]"
        super().__init__(f"{message}{where}", path)
        self.limit = limit

    def facts(self) -> dict[str, Any]:
        return {"limit": self.limit, "path": path_data(self.path[:6]), "depth": len(self.path)}
