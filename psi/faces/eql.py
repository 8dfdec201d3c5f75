"""``POST /eql``: a query in the body, the graph's answer in the answer. Knows no attribute.

Lenient, unless strictness is asked for: what cannot be had stands beside what can, under
``psi.graph/attribute-errors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from psi.core.commands import Caller
from psi.core.config import key_name, shown
from psi.core.errors import Invalid
from psi.edn import dumps
from psi.faces.asked import check_name
from psi.faces.wire import Form, answer, caller_of, read_body, wanted
from psi.service import Service
from psi.settings import Settings
from tool.request import read_map

__all__ = ["KEYS", "EqlFace", "Question", "depth_for", "read_question"]

KEYS: Final = ("query", "entity", "strict", "explain")


@dataclass(frozen=True, slots=True)
class Question:
    query: Any
    entity: Mapping[Any, Any]
    strict: bool = False
    explain: bool = False


def depth_for(settings: Settings) -> int:
    """How deep an answer may nest. A GraphQL query is as deep as it is written; an EQL query may recurse through the
    data, so it gets five times as much."""
    return 5 * settings.query_depth


class EqlFace:
    def __init__(self, service: Service, settings: Settings) -> None:
        self._service = service
        self._timeout = settings.query_timeout
        self._max_entities = settings.max_entities
        self._max_depth = depth_for(settings)

    async def ask(self, request: Request) -> Response:
        caller = caller_of(request)
        data, came = await read_body(request)
        form = wanted(request.headers.get("accept"), came)
        asked = read_question(data, came)
        if caller.session is not None:
            self._service.find(caller.session, caller)
        if asked.explain:
            return answer(self._explained(asked, caller), form)
        found = await self._service.query(
            asked.query,
            caller,
            entity=asked.entity,
            lenient=not asked.strict,
            timeout=self._timeout,
            max_depth=self._max_depth,
            max_entities=self._max_entities,
        )
        return answer(found, form)

    def _explained(self, asked: Question, caller: Caller) -> dict[str, Any]:
        """What would be called, in words and as data; nothing is."""
        return {
            "explain": self._service.explain(asked.query, caller, entity=asked.entity),
            "plan": self._service.plan(asked.query, caller, entity=asked.entity),
        }


def read_question(data: Any, came: Form) -> Question:
    """What is asked: a map with ``query``, or the query alone."""
    if isinstance(data, list):
        data = {"query": data}
    if not isinstance(data, Mapping):
        raise Invalid(
            f"a request to /eql is a map with `query`, or the query vector alone, got {shown(data)}",
            code="eql/invalid-request",
        )
    named: dict[str, Any] = {}
    for key, value in data.items():
        name = key_name(key)
        check_name("key", name, KEYS, "eql/unknown-key")
        if name in named:
            raise Invalid(f"key `{name}` is given twice", code="eql/invalid-request")
        named[name] = value
    if named.get("query") is None:
        raise Invalid("a request to /eql needs `query`: an EQL vector", code="eql/query-required")
    return Question(
        _query(named["query"], came),
        read_map("entity", named.get("entity")),
        _flag(named, "strict"),
        _flag(named, "explain"),
    )


def _query(given: Any, came: Form) -> Any:
    if isinstance(given, str):
        return str(given)
    if not isinstance(given, list):
        raise Invalid(f"`query` must be an EQL vector, got {shown(given)}", code="eql/invalid-request")
    # As text a string stays a string; as data it would pass for an attribute.
    return dumps(given) if came is Form.EDN else given


def _flag(named: Mapping[str, Any], name: str) -> bool:
    value = named.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise Invalid(f"`{name}` must be true or false, got {shown(value)}", code="eql/invalid-request")
    return value
