"""GraphQL over HTTP: GET for queries, POST for queries and mutations, by the GraphQL-over-HTTP conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from graphql import OperationType
from starlette.requests import Request
from starlette.responses import Response

from psi.core.commands import Caller
from psi.faces.graphql.operations import Asked, BadRequest, Operations, errors, is_limited, written
from psi.faces.wire import HttpRefused, TooLarge, Unreadable, decoded, is_utf8, liking, read_json

__all__ = ["GraphQLHttp"]

_RESPONSE: Final = "application/graphql-response+json"
_JSON: Final = "application/json"
_GRAPHQL: Final = "application/graphql"


class NotGraphQL(HttpRefused):
    """A body or query string that is no GraphQL request."""

    code = "graphql/bad-request"


class NotReadable(HttpRefused):
    status = 415
    code = "http/unsupported-media-type"

    def __init__(self, given: str) -> None:
        accepted = [_JSON, _GRAPHQL]
        super().__init__(
            f"Content-Type {given[:100]!r} cannot be read here; send {' or '.join(accepted)}", accepted=accepted
        )


class NotOffered(HttpRefused):
    status = 406
    code = "http/not-acceptable"

    def __init__(self, accept: str) -> None:
        available = [_RESPONSE, _JSON]
        super().__init__(
            f"Accept {accept[:100]!r} takes none of what there is: {', '.join(available)}", available=available
        )


class QueriesOnly(HttpRefused):
    status = 405
    code = "graphql/method-not-allowed"
    headers = {"Allow": "POST"}  # noqa: RUF012 – a constant of the class, as its parent's


class GraphQLHttp:
    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def __call__(self, request: Request, caller: Caller) -> Response:
        media = _media(request.headers.get("accept"))
        self._operations.check(caller)
        asked = _from_query(request) if request.method in ("GET", "HEAD") else await _from_body(request)
        prepared = self._operations.prepare(asked)
        if isinstance(prepared, list):
            # Clients of plain JSON expect 200 for a well-formed answer that says what is wrong with the document.
            status = 422 if is_limited(prepared) else 400 if media == _RESPONSE else 200
            return _answer({"errors": errors(prepared)}, status, media)
        if prepared.kind is OperationType.SUBSCRIPTION:
            raise NotGraphQL("subscriptions go over a WebSocket at this address, protocol graphql-transport-ws")
        if prepared.kind is OperationType.MUTATION and request.method != "POST":
            raise QueriesOnly("mutations need POST")
        response = await self._operations.run(prepared, caller)
        return _answer(response, _status(response, media), media)


def _status(response: Mapping[str, Any], media: str) -> int:
    """200 where it was executed, unless a limit was in the way."""
    codes = {each.get("extensions", {}).get("code") for each in response.get("errors", ())}
    if codes & _LIMITS:
        return 422
    return 400 if "data" not in response and media == _RESPONSE else 200


_LIMITS: Final = frozenset(("graph/limit-exceeded", "limit/cost", TooLarge.code))


def _answer(response: Mapping[str, Any], status: int, media: str) -> Response:
    return Response(written(response), status, media_type=f"{media}; charset=utf-8")


def _media(accept: str | None) -> str:
    """What Accept likes best; application/json, unless the newer type is liked more, or asked for by name as much."""
    if accept is None or not accept.strip():
        return _JSON
    plain, newer = liking(accept, _JSON), liking(accept, _RESPONSE)
    if max(plain, newer) <= 0:
        raise NotOffered(accept)
    if plain == newer:
        return _RESPONSE if _RESPONSE in accept.lower() else _JSON
    return _RESPONSE if newer > plain else _JSON


async def _from_body(request: Request) -> Asked:
    given = request.headers.get("content-type") or ""
    media = given.partition(";")[0].strip().lower()
    if media not in (_JSON, _GRAPHQL) or not is_utf8(given):
        raise NotReadable(given or "none")
    try:
        text = decoded(await request.body())
    except Unreadable as wrong:
        raise NotGraphQL(wrong.message) from None
    return _read({"query": text} if media == _GRAPHQL else read_json(text))


def _from_query(request: Request) -> Asked:
    given = request.query_params
    data: dict[str, Any] = {"query": given.get("query"), "operationName": given.get("operationName")}
    for name in ("variables", "extensions"):
        if given.get(name):
            data[name] = read_json(given[name], f"the parameter `{name}`")
    return _read(data)


def _read(data: Any) -> Asked:
    try:
        return Asked.read(data)
    except BadRequest as bad:
        raise NotGraphQL(str(bad)) from None
