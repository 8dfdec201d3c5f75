"""What the description is written in: the forms of bodies, answers and refusals. Knows no endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from psi.faces.wire import Form

__all__ = [
    "ADMIN_ONLY",
    "COUNT",
    "EDN",
    "EDN_TEXT",
    "ERROR",
    "EVENTS",
    "HTML",
    "INSTANT",
    "INSTANT_OR_NULL",
    "INVOKING",
    "JSON",
    "NAME",
    "TEXT",
    "TEXT_OR_NULL",
    "WORD",
    "answered",
    "body",
    "closed",
    "edn_body",
    "forms",
    "operation",
    "parameter",
    "problem",
    "ref",
    "shown",
    "told",
]

JSON: Final = Form.JSON.value
EDN: Final = Form.EDN.value
HTML: Final = "text/html"
EVENTS: Final = "text/event-stream"
ADMIN_ONLY: Final = "Needs the scope `admin`."
TEXT: Final = {"type": "string"}
INSTANT: Final = {"type": "string", "description": "ISO-8601, in UTC"}
EDN_TEXT: Final = {"type": "string", "format": "edn", "description": "EDN text"}

# What can go wrong anywhere, and what is said then.
_PROBLEMS: Final[Mapping[int, tuple[str, str, str]]] = {
    400: ("it cannot be understood", "http/unreadable", "the body is empty; a request in JSON or EDN is expected"),
    401: ("it needs a token", "auth/required", "this needs a token: send it as `Authorization: Bearer psi_…`"),
    403: (
        "whoever asks is known, or comes from a place that is, and may not",
        "auth/read-only",
        "this token may read but not write",
    ),
    404: ("what it names is not there, or is somebody else's", "session/not-found", "session not found"),
    405: ("not by this method", "http/method-not-allowed", "GET is not possible here; accepted: POST"),
    406: ("no form of the answer is accepted", "http/not-acceptable", "Accept takes none of what there is"),
    408: ("the body did not arrive in time", "http/body-timeout", "the body did not arrive within 30 s"),
    409: ("right, but not now", "session/busy", "session is busy: a run is active; wait for its end or stop it"),
    413: ("the body is too large", "http/too-large", "the body is larger than 1048576 bytes"),
    415: (
        "the body is of another kind",
        "http/unsupported-media-type",
        "Content-Type 'text/csv' cannot be read here; send application/json or application/edn",
    ),
    422: (
        "understood, and still without an answer: not reachable in strict mode, or over a limit",
        "graph/limit-exceeded",
        "the query took longer than 10 s",
    ),
    429: ("too many requests; `Retry-After` says when to come back", "http/rate-limited", "too many requests"),
    503: ("closing, or too much at once", "psi/closed", "psi is shutting down and accepts nothing new"),
}

_EVERYWHERE: Final = (403, 408, 413, 429, 503)
_PROTECTED: Final = (401, *_EVERYWHERE)
INVOKING: Final = {
    "name": "Psi-Session",
    "in": "header",
    "required": False,
    "description": "the invoking session, `ses-…`; left out, there is none",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


NAME: Final = {"type": ["string", "null"], "maxLength": 200, "pattern": r"\S"}
TEXT_OR_NULL: Final = {"type": ["string", "null"]}
INSTANT_OR_NULL: Final = {**INSTANT, "type": ["string", "null"]}
COUNT: Final = {"type": "integer", "minimum": 0}
WORD: Final = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9-]{0,40}$"}


def edn_body(example: str) -> dict[str, Any]:
    """A body in EDN. The example is told in words: tools that send examples refuse to send one in a form that they do
    not know, and with it the whole operation."""
    return {"schema": {**EDN_TEXT, "description": f"EDN text, for example `{example}`"}}


def closed(properties: Mapping[str, Any], required: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def told(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object that always has all of its keys."""
    return closed(properties, properties)


def operation(
    name: str,
    summary: str,
    responses: Mapping[int, Any],
    problems: Iterable[int] = (),
    *,
    tag: str = "psi",
    public: bool = False,
    edn: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """One operation. ``problems``: the statuses it answers an error with, besides those that all do."""
    everywhere = _EVERYWHERE if public else _PROTECTED
    found = {**responses, **{s: problem(s, edn=edn) for s in (*problems, *everywhere) if s not in responses}}
    return {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        **({"security": []} if public else {}),
        **more,
        "responses": {str(status): found[status] for status in sorted(found)},
    }


def problem(status: int, *, edn: bool = False) -> dict[str, Any]:
    words, code, message = _PROBLEMS[status]
    example = {"error": {"code": code, "message": message, "details": {}}}
    headers: dict[str, Any] = {}
    if status == 401:
        headers["WWW-Authenticate"] = {"schema": TEXT}
    if status == 429:
        headers["Retry-After"] = {"schema": {"type": "string", "pattern": "^[0-9]+$"}}
    return {
        "description": f"{HTTPStatus(status).phrase}: {words}",
        **({"headers": headers} if headers else {}),
        "content": {
            JSON: {"schema": ref("Error"), "example": example},
            **({EDN: {"schema": EDN_TEXT}} if edn else {}),
        },
    }


def answered(description: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": dict(content)}


def body(content: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": dict(content)}


def forms(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {JSON: {"schema": dict(schema)}, EDN: {"schema": EDN_TEXT}}


def parameter(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": dict(schema)}


def shown(schema: Mapping[str, Any], example: Any) -> dict[str, Any]:
    """JSON with an example, or EDN for those who ask for it."""
    return {JSON: {"schema": dict(schema), "example": example}, EDN: {"schema": EDN_TEXT}}


ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "a stable name to match on"},
                "message": {
                    "type": "string",
                    "description": "what was wrong and, where that helps, what is accepted",
                },
                "details": {"type": "object", "description": "the facts"},
            },
            "required": ["code", "message", "details"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}
