"""One operation from its text to its answer: found, checked, executed, told. Knows neither HTTP nor sockets."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Final

import orjson
from graphql import ExecutionResult, GraphQLError, GraphQLSyntaxError, OperationType, create_source_event_stream

from psi.core.clock import Clock
from psi.core.commands import Caller
from psi.engine import Reader
from psi.errors import PsiError
from psi.faces.graphql.documents import Document, Documents
from psi.faces.graphql.execute import GraphExecutor
from psi.faces.graphql.limits import Limited
from psi.faces.graphql.pace import Pace
from psi.faces.graphql.roots import SCHEMA
from psi.faces.graphql.sources import Events, Live, Source
from psi.faces.graphql.types import Ask, refused
from psi.faces.wire import LARGEST, TooLarge
from psi.service import Service
from psi.settings import Settings

__all__ = ["Asked", "BadRequest", "Operations", "Prepared", "Subscribed", "written"]

log = logging.getLogger("psi.graphql")

_KEYS: Final = ("query", "variables", "operationName", "extensions")


class BadRequest(Exception):
    """Not a GraphQL request at all."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as every transport brings it."""

    query: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    operation_name: str | None = None

    @classmethod
    def read(cls, data: Any) -> Asked:
        """From the map of a request; BadRequest says what is wrong with it."""
        if isinstance(data, list):
            raise BadRequest("batches of operations are not supported; send one request for each")
        if not isinstance(data, Mapping):
            raise BadRequest('a GraphQL request is a JSON object such as {"query": "{ system { version } }"}')
        query = data.get("query")
        if not isinstance(query, str):  # one that is empty is no document, and the parser says so
            raise BadRequest("`query` must be the text of a GraphQL document")
        variables, name, extensions = data.get("variables"), data.get("operationName"), data.get("extensions")
        if variables is not None and not isinstance(variables, Mapping):
            raise BadRequest("`variables` must be an object")
        if name is not None and not isinstance(name, str):
            raise BadRequest("`operationName` must be a string")
        if extensions is not None and not isinstance(extensions, Mapping):
            raise BadRequest("`extensions` must be an object")
        return cls(query, variables or {}, name or None)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request whose document may be executed."""

    asked: Asked
    document: Document

    @property
    def kind(self) -> OperationType | None:
        found = self.document.operation(self.asked.operation_name)
        return found.operation if found is not None else None


@dataclass(frozen=True, slots=True, eq=False)
class Subscribed:
    """A subscription that was understood: where its events come from, and how each is executed. Those with an equal key
    get equal payloads."""

    key: tuple[Any, ...]
    source: Source
    executor: GraphExecutor

    async def payload(self, value: Any) -> str:
        """One event as the payload of a message."""
        self.executor.context_value.pace.begin()
        response = await _executed(self.executor.build_per_event_executor(value), serially=False)
        try:
            return written(response).decode()
        except TooLarge as large:
            return orjson.dumps({"data": None, "errors": [refused(large).formatted]}).decode()


class Operations:
    """Everything that GraphQL can be asked of one service."""

    def __init__(self, service: Service, settings: Settings) -> None:
        self._service = service
        self._settings = settings
        self._schema = SCHEMA._schema  # what strawberry has made for graphql-core
        self._documents = Documents(self._schema, depth=settings.query_depth, cost=settings.query_cost)

    @property
    def clock(self) -> Clock:
        return self._service.clock

    def prepare(self, asked: Asked) -> Prepared | list[GraphQLError]:
        """The request with its document, or what is wrong with that."""
        found = self._documents.get(asked.query)
        return found if isinstance(found, list) else Prepared(asked, found)

    def check(self, caller: Caller) -> None:
        """A call that names a session which is not there, or not the caller's, is refused as a whole."""
        if caller.session is not None:
            self._service.find(caller.session, caller)

    async def run(self, prepared: Prepared, caller: Caller) -> dict[str, Any]:
        """The response to a query or a mutation."""
        executor = self._executor(prepared, caller)
        if isinstance(executor, list):
            return {"errors": [_error(each) for each in executor]}
        return await _executed(executor)

    async def subscribe(self, prepared: Prepared, caller: Caller) -> Subscribed | list[GraphQLError]:
        """A subscription, or why it is none."""
        reader = self._service.reader()
        executor = self._executor(prepared, caller, reader)
        if isinstance(executor, list):
            return executor
        try:
            stream: Any = create_source_event_stream(executor)
            source = await stream if isawaitable(stream) else stream
        except GraphQLError as error:
            return [error]
        if isinstance(source, ExecutionResult):
            return source.errors or []
        assert isinstance(source, Events | Live)
        key = (prepared.document.text, prepared.asked.operation_name, executor.flags, source.key, caller)
        return Subscribed(key, source, executor)

    def _executor(
        self, prepared: Prepared, caller: Caller, reader: Reader | None = None
    ) -> GraphExecutor | list[GraphQLError]:
        asked, document = prepared.asked, prepared.document
        ask = Ask(
            self._service,
            caller,
            self._service.context(caller, reader),
            # What a mutation has done is told, however long that took: nobody else knows it.
            Pace(None if prepared.kind is OperationType.MUTATION else self._settings.query_timeout),
            reader,
            self._settings.max_entities,
        )
        made = GraphExecutor.build(
            self._schema,
            document.node,
            context_value=ask,
            raw_variable_values=dict(asked.variables),
            operation_name=asked.operation_name,
            selections=document.selections,
            deciding=document.deciding,
        )
        if isinstance(made, GraphExecutor):
            try:
                self._documents.check(document, made.operation, made.variable_values.coerced)
            except Limited as limited:
                return [limited]
        assert isinstance(made, GraphExecutor | list)
        return made


async def _executed(executor: GraphExecutor, *, serially: bool | None = None) -> dict[str, Any]:
    result = executor.execute_operation(serially)
    if isawaitable(result):
        result = await result
    if executor.limited is not None:
        return {"data": None, "errors": [_error(executor.limited)]}
    return told(result)


def told(result: Any) -> dict[str, Any]:
    """A result as the response has it."""
    if result.errors:
        return {"data": result.data, "errors": [_error(each) for each in result.errors]}
    return {"data": result.data}


def errors(found: list[GraphQLError]) -> list[dict[str, Any]]:
    return [_error(each) for each in found]


def _error(error: GraphQLError) -> dict[str, Any]:
    """An error as clients see it, with a code. What we did not foresee is told in the log, and here only that it
    happened."""
    original = error.original_error
    shown: dict[str, Any] = dict(error.formatted)
    if isinstance(original, PsiError):
        shown["message"] = original.message
        shown["extensions"] = refused(original).extensions
    elif original is not None and not isinstance(original, GraphQLError) and not _is_standard(error, original):
        log.error("a GraphQL field failed", exc_info=original, extra={"path": error.path})
        shown["message"] = "something went wrong inside psi; its log says what"
        shown["extensions"] = {"code": "psi/internal"}
    if "code" not in shown.get("extensions", ()):
        shown["extensions"] = {**shown.get("extensions", {}), "code": _code(error)}
    return shown


def _is_standard(error: GraphQLError, original: Exception) -> bool:
    """What the library itself tells: a value that does not fit its type on the way out; or on the way in, which is
    before anything of ours is executed, so that there is no path yet."""
    return _is_null(original) or (error.path is None and isinstance(original, ValueError))


def _is_null(original: Exception | None) -> bool:
    return isinstance(original, TypeError) and str(original).startswith("Cannot return null for non-nullable field")


def _code(error: GraphQLError) -> str:
    """The library has none of its own."""
    if isinstance(error, GraphQLSyntaxError):
        return "graphql/syntax"
    return "graphql/unfit-value" if _is_null(error.original_error) else "graphql/invalid"


def is_limited(found: list[GraphQLError]) -> bool:
    return any(isinstance(each, Limited) for each in found)


def written(response: Mapping[str, Any]) -> bytes:
    """The response as text, or why it is none: too large."""
    try:
        found = orjson.dumps(response)
    except TypeError:
        # Integers beyond 64 bits and half characters; rare, and the standard library has a form for both.
        found = json.dumps(response, separators=(",", ":")).encode("ascii")
    if len(found) > LARGEST:
        raise TooLarge
    return found
