"""``/openapi.json``: every HTTP endpoint, for programs. Made from the declarations that the endpoints themselves use.

Describes; checks nothing. What is accepted is decided where a request is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

import psi
from psi.core.config import BREAKPOINTS, THINKING_LEVELS
from psi.core.identity import SCOPES
from psi.core.message import ROLES
from psi.core.session import Phase
from psi.core.turn import State
from psi.faces.auth import COOKIE
from psi.faces.eql import depth_for
from psi.faces.inputs import LARGEST_IMAGE, LONGEST_CONTENT, MOST_FILES, MOST_IMAGES
from psi.faces.login import LONGEST
from psi.faces.rest import MOST, PAGE
from psi.faces.streams.seen import LARGEST_SEQ, RUN, RUN_AND_SEQ
from psi.faces.wire import Form, answer
from psi.settings import Settings
from tool.declarations import ACTIONS, DESCRIPTION
from tool.schema import json_schema

__all__ = ["OpenApiFace", "document"]

JSON: Final = Form.JSON.value
EDN: Final = Form.EDN.value

_HTML: Final = "text/html"
_EVENTS: Final = "text/event-stream"

_ADMIN_ONLY: Final = "Needs the scope `admin`."

_TEXT: Final = {"type": "string"}
_INSTANT: Final = {"type": "string", "description": "ISO-8601, in UTC"}
_EDN_TEXT: Final = {"type": "string", "format": "edn", "description": "EDN text"}

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


class OpenApiFace:
    def __init__(self, settings: Settings) -> None:
        self._document = document(settings)

    async def show(self, request: Request) -> Response:
        return answer(self._document)


def document(settings: Settings) -> dict[str, Any]:
    """The whole of it, as OpenAPI 3.1 has it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "psi",
            "version": psi.__version__,
            "summary": "A live, queryable runtime for agent sessions.",
            "description": _about(settings),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        # Without auth nothing has to be sent, and whatever is sent does no harm.
        "security": [*([] if settings.auth else [{}]), {"token": []}, {"login": []}],
        "tags": [
            {"name": "psi", "description": "what psi does"},
            {"name": "access", "description": "who may"},
            {"name": "operation", "description": "how the service is"},
        ],
        "paths": {
            "/": {"get": _start()},
            "/psi-tool": {"post": _psi_tool()},
            "/eql": {"post": _eql()},
            "/graphql": {"get": _graphql_get(), "post": _graphql_post()},
            "/sessions": {"get": _sessions(), "post": _create_session()},
            "/sessions/{session_id}": {"get": _session(), "delete": _delete_session()},
            "/sessions/{session_id}/messages": {"post": _submit(settings)},
            "/sessions/{session_id}/stop": {"post": _stop()},
            "/sessions/{session_id}/events": {"get": _events()},
            "/uploads": {"post": _upload(settings)},
            "/login": {"get": _login_page(), "post": _login()},
            "/logout": {"post": _logout()},
            "/auth/tokens": {"get": _tokens(), "post": _create_token()},
            "/auth/tokens/{id}": {"delete": _revoke_token()},
            "/healthz": {"get": _status("healthz", "Whether the process answers at all", "ok")},
            "/readyz": {"get": _status("readyz", "Whether it is worth sending work here", "ready")},
            "/metrics": {"get": _metrics()},
            "/openapi.json": {"get": _openapi()},
        },
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "an API token, `psi_…`, made by `psi-tool token create`",
                },
                "login": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "set by `POST /login`"},
            },
            "parameters": {"session": _SESSION},
            "schemas": _SCHEMAS,
        },
    }


def _about(settings: Settings) -> str:
    return (
        "Bodies are JSON or EDN, told by Content-Type; answers follow Accept, and without one the form of the "
        f"request. A body has at most {settings.max_body} bytes, a message to a session {settings.max_message}, an "
        f"upload {settings.max_upload}. A query leads to at most {settings.max_entities} "
        f"entities, nests at most {depth_for(settings)} deep in EQL and {settings.query_depth} in GraphQL, and takes "
        f"at most {settings.query_timeout:g} s. A client may send {settings.burst} requests at once and "
        f"{settings.rate:g} a second in the long run. "
        "Subscriptions are served by WebSocket at /graphql, with the protocol graphql-transport-ws."
    )


# -- the parts

_SESSION: Final = {
    "name": "Psi-Session",
    "in": "header",
    "required": False,
    "description": "the invoking session, `ses-…`; left out, there is none",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}

_ENVELOPE: Final = {
    "type": "object",
    "description": "how it went; see docs/psi-tool.md",
    "properties": {
        "psi-tool/action": {"type": ["string", "null"], "enum": [*(action.name for action in ACTIONS), None]},
        "psi-tool/overall-status": {"type": "string", "enum": ["ok", "error"]},
        "psi-tool/duration-ms": {"type": "integer", "minimum": 0},
        **{f"psi-tool/{action.name}-op": _TEXT for action in ACTIONS if action.ops},
        **{f"psi-tool/{action.name}": {"type": "object"} for action in ACTIONS if action.ops},
        "psi-tool/mutation": _TEXT,
        "psi-tool/result": {},
        "psi-tool/error": {
            "type": "object",
            "properties": {
                "message": _TEXT,
                "class": _TEXT,
                "code": _TEXT,
                "phase": {"type": "string", "enum": ["validate", "execute"]},
                "data": {"type": "object"},
            },
            "required": ["message", "class", "code", "phase", "data"],
        },
    },
    "required": ["psi-tool/action", "psi-tool/overall-status", "psi-tool/duration-ms"],
    "additionalProperties": False,
}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


_NAME: Final = {"type": ["string", "null"], "maxLength": 200, "pattern": r"\S"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_INSTANT_OR_NULL: Final = {**_INSTANT, "type": ["string", "null"]}
_COUNT: Final = {"type": "integer", "minimum": 0}
_WORD: Final = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9-]{0,40}$"}

# What stands in a query as data: an attribute, a join, an ident. Which of them mean something is no matter of form.
_EXPRESSION: Final = {"type": ["string", "object", "array"]}

# What EDN text of a map looks like. That it is one, only its reader can tell.
_MAP_TEXT: Final = r"^[\s,]*\{[\s\S]*\}[\s,]*$"

# What an image looks like: base64, alone or in a data URI.
_IMAGE: Final = "^(data:image/(png|jpeg|gif|webp);base64,)?([A-Za-z0-9+/]{4})+$"


def _edn(example: str) -> dict[str, Any]:
    """A body in EDN. The example is told in words: tools that send examples refuse to send one in a form that they do
    not know, and with it the whole operation."""
    return {"schema": {**_EDN_TEXT, "description": f"EDN text, for example `{example}`"}}


def _closed(properties: Mapping[str, Any], required: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def _told(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object that always has all of its keys."""
    return _closed(properties, properties)


_SUMMARY: Final[dict[str, Any]] = {
    "id": {"type": "string", "description": "`ses-…`"},
    "name": _TEXT_OR_NULL,
    "phase": {"type": "string", "enum": [str(phase.value) for phase in Phase]},
    "owner": {"type": "string", "description": "the user it belongs to"},
    "created_at": _INSTANT,
    "updated_at": _INSTANT,
    "message_count": _COUNT,
    "pending_schedules": _COUNT,
    "pending_recall": {"type": "null", "description": "the recall that waits; this version has none"},
}
_RUN_STATES: Final = [str(state.value) for state in State]

_TEXT_PART: Final = _told({"type": {"const": "text"}, "text": _TEXT})
_IMAGE_PART: Final = _told(
    {
        "type": {"const": "image"},
        "media_type": {"type": "string", "pattern": "^image/[a-z0-9][a-z0-9.+-]{0,100}$"},
        "data": {"type": "string", "pattern": "^([A-Za-z0-9+/]{4})+$", "description": "base64"},
    }
)

_OF_SESSIONS: Final[dict[str, Any]] = {
    "SessionConfig": _closed(
        {
            "session_name": _NAME,
            "system_prompt": _TEXT_OR_NULL,
            "developer_prompt": _TEXT_OR_NULL,
            "developer_prompt_source": _WORD,
            "model": {
                "anyOf": [
                    {"type": "string", "pattern": "^[A-Za-z0-9._/-]+:[A-Za-z0-9._:/-]+$"},
                    _told({name: {"type": "string", "pattern": r"\S"} for name in ("provider", "id")}),
                ]
            },
            "thinking_level": {"type": "string", "enum": list(THINKING_LEVELS)},
            "skills": {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
            "tool_ids": {
                "type": "array",
                "items": {"type": "string", "enum": ["psi-tool"]},
                "description": "tools that the runtime has; psi-tool always is one",
            },
            "preloaded_messages": {
                "type": "array",
                "items": _told(
                    {
                        "role": {"type": "string", "enum": list(ROLES)},
                        "content": {
                            "anyOf": [
                                {"type": "string", "minLength": 1},
                                {"type": "array", "minItems": 1, "items": {"anyOf": [_TEXT_PART, _IMAGE_PART]}},
                            ]
                        },
                    }
                ),
            },
            "cache_breakpoints": {"type": "array", "items": {"type": "string", "enum": list(BREAKPOINTS)}},
            "prompt_component_selection": _closed(
                {
                    "components": {"type": "array", "items": _WORD},
                    **{
                        name: {"type": "array", "items": _TEXT}
                        for name in ("tool_names", "skill_names", "extension_prompt_contributions")
                    },
                    "agents_md?": {"type": "boolean"},
                }
            ),
        },
        description="a session-config; keys in kebab-case are taken as well, and so are all forms of docs/psi-tool.md",
    ),
    "SessionRequest": _closed({"name": _NAME, "config": _ref("SessionConfig")}),
    "SessionSummary": _told(_SUMMARY),
    "Session": _told({**_SUMMARY, "active_run_id": _TEXT_OR_NULL}),
    "SessionWithMessages": _told(
        {
            **_SUMMARY,
            "active_run_id": _TEXT_OR_NULL,
            "messages": {"type": "array", "items": _ref("Message")},
            "messages_next": {
                "type": ["integer", "null"],
                "description": "where there is more: what `messages_after` has to be to go on",
            },
        }
    ),
    "Message": _told(
        {
            "index": {**_COUNT, "description": "its place in the history"},
            "role": {"type": "string", "enum": list(ROLES)},
            "content": {"type": "string", "description": "its text"},
            "images": {
                "type": "array",
                "items": _told({"media_type": _TEXT_OR_NULL, "size": {**_COUNT, "description": "bytes"}}),
            },
            "created_at": _INSTANT_OR_NULL,
            "source": {**_TEXT_OR_NULL, "description": "where its turn comes from: `user`, `scheduled`"},
            "run_id": _TEXT_OR_NULL,
            "schedule_id": {**_TEXT_OR_NULL, "description": "the schedule that it was injected by"},
            "label": {**_TEXT_OR_NULL, "description": "that schedule's label"},
            "closure": {**_TEXT_OR_NULL, "description": "how the turn ended, where that was not with an answer"},
        }
    ),
    "MessageRequest": _closed(
        {
            "content": {"type": "string", "pattern": r"\S", "maxLength": LONGEST_CONTENT},
            "images": {
                "type": ["array", "null"],
                "maxItems": MOST_IMAGES,
                "items": {"type": "string", "pattern": _IMAGE},
                "description": f"base64 or data URI, at most {LARGEST_IMAGE >> 20} MiB each when decoded",
            },
            "files": {
                "type": ["array", "null"],
                "maxItems": MOST_FILES,
                "items": _closed(
                    {
                        "name": _TEXT_OR_NULL,
                        "path": {"type": "string", "minLength": 1},
                        "size": _COUNT,
                        "sha256": _TEXT,
                    },
                    ["path"],
                ),
                "description": "uploads of one's own, as `POST /uploads` has answered them",
            },
        },
        ["content"],
    ),
    "Run": _told(
        {
            "run_id": _TEXT,
            "session_id": _TEXT,
            "state": {"type": "string", "enum": _RUN_STATES},
            "source": _TEXT,
            "started_at": _INSTANT,
            "finished_at": _INSTANT_OR_NULL,
            "answer": {**_TEXT_OR_NULL, "description": "the closure that it left in the history"},
            "error": {"anyOf": [{"type": "null"}, _told({"class": _TEXT_OR_NULL, "message": _TEXT})]},
            "message_index": {"type": ["integer", "null"], "description": "where in the history the closure stands"},
            **dict.fromkeys(("context_tokens", "max_context_tokens", "token_count", "tool_call_count"), _COUNT),
        }
    ),
    "Upload": _told(
        {
            "name": _TEXT,
            "path": {"type": "string", "description": "what `files` of a message takes"},
            "size": {**_COUNT, "description": "bytes"},
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        }
    ),
}

_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {
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
    },
    "PsiToolRequest": {**json_schema(), "title": "a psi-tool request"},
    "PsiToolEnvelope": _ENVELOPE,
    "EqlRequest": {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "query": {
                        "type": ["string", "array"],
                        "items": _EXPRESSION,
                        "description": "an EQL vector: EDN text, or a list of attributes and joins",
                    },
                    "entity": {
                        "anyOf": [{"type": ["object", "null"]}, {"type": "string", "pattern": _MAP_TEXT}],
                        "description": "what it starts from besides the invoking session: a map, or EDN text of one",
                    },
                    "strict": {
                        "type": ["boolean", "null"],
                        "description": "true: the first failure is the answer; otherwise they stand beside the data",
                    },
                    "explain": {"type": ["boolean", "null"], "description": "true: what would be called; nothing is"},
                },
                "required": ["query"],
                "additionalProperties": False,
            },
            {"type": "array", "items": _EXPRESSION, "description": "the query alone"},
        ]
    },
    "GraphQLRequest": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1},
            "operationName": {"type": ["string", "null"]},
            "variables": {"type": ["object", "null"]},
            "extensions": {"type": ["object", "null"]},
        },
        "required": ["query"],
    },
    "GraphQLAnswer": {
        "type": "object",
        "properties": {
            "data": {"type": ["object", "null"]},
            "errors": {
                "type": "array",
                "items": {"type": "object", "properties": {"message": _TEXT}, "required": ["message"]},
            },
            "extensions": {"type": "object"},
        },
    },
    "Status": {
        "type": "object",
        "properties": {"status": _TEXT, "version": _TEXT},
        "required": ["status", "version"],
        "additionalProperties": False,
    },
    "Token": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "`tok-…`"},
            "user": _TEXT,
            "name": {"type": ["string", "null"]},
            "scopes": {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}},
            "created_at": _INSTANT,
            **{name: {**_INSTANT, "type": ["string", "null"]} for name in ("expires_at", "last_used_at", "revoked_at")},
            "state": {"type": "string", "enum": ["active", "expired", "revoked"]},
        },
        "required": ["id", "user", "scopes", "created_at", "state"],
    },
    "TokenRequest": {
        "type": "object",
        "properties": {
            "name": {"type": ["string", "null"], "description": "what it is for"},
            "user": {"type": ["string", "null"], "description": "whom it stands for; left out, whoever asks"},
            "scopes": {
                "type": ["array", "null"],
                "items": {"type": "string", "enum": list(SCOPES)},
                "minItems": 1,
                "description": "each implies those before it; left out, `read` and `write`",
            },
            "expires_in": {
                "type": ["number", "null"],
                "exclusiveMinimum": 0,
                "maximum": LONGEST,
                "description": "seconds; left out, it does not expire",
            },
        },
        "additionalProperties": False,
    },
    **_OF_SESSIONS,
    "Login": {
        "type": "object",
        "properties": {
            "user": _TEXT,
            "scopes": {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}},
            "expires_at": _INSTANT,
        },
        "required": ["user", "scopes", "expires_at"],
        "additionalProperties": False,
    },
}


def _operation(
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
    found = {**responses, **{s: _problem(s, edn=edn) for s in (*problems, *everywhere) if s not in responses}}
    return {
        "operationId": name,
        "summary": summary,
        "tags": [tag],
        **({"security": []} if public else {}),
        **more,
        "responses": {str(status): found[status] for status in sorted(found)},
    }


def _problem(status: int, *, edn: bool = False) -> dict[str, Any]:
    words, code, message = _PROBLEMS[status]
    example = {"error": {"code": code, "message": message, "details": {}}}
    headers: dict[str, Any] = {}
    if status == 401:
        headers["WWW-Authenticate"] = {"schema": _TEXT}
    if status == 429:
        headers["Retry-After"] = {"schema": {"type": "string", "pattern": "^[0-9]+$"}}
    return {
        "description": f"{HTTPStatus(status).phrase}: {words}",
        **({"headers": headers} if headers else {}),
        "content": {
            JSON: {"schema": _ref("Error"), "example": example},
            **({EDN: {"schema": _EDN_TEXT}} if edn else {}),
        },
    }


def _answer(description: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": dict(content)}


def _body(content: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": dict(content)}


def _forms(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {JSON: {"schema": dict(schema)}, EDN: {"schema": _EDN_TEXT}}


# -- the operations


def _psi_tool() -> dict[str, Any]:
    example = {
        "action": "scheduler",
        "op": "create",
        "kind": "message",
        "delay-ms": 600_000,
        "message": "Check the build.",
    }
    list_sessions = {"action": "session", "op": "list"}
    envelope = {
        "psi-tool/action": "session",
        "psi-tool/session-op": "list",
        "psi-tool/overall-status": "ok",
        "psi-tool/duration-ms": 0,
        "psi-tool/session": {"session-count": 0, "sessions": []},
    }
    unread = {
        "psi-tool/action": None,
        "psi-tool/overall-status": "error",
        "psi-tool/duration-ms": 0,
        "psi-tool/error": {
            "message": "the body is empty; a request in JSON or EDN is expected",
            "class": "Unreadable",
            "code": "http/unreadable",
            "phase": "validate",
            "data": {},
        },
    }
    return _operation(
        "psiTool",
        "Carry out a psi-tool request",
        {
            200: _answer(
                "the envelope; `psi-tool/overall-status` says whether it went well",
                {JSON: {"schema": _ref("PsiToolEnvelope"), "example": envelope}, EDN: {"schema": _EDN_TEXT}},
            ),
            400: _answer(
                "the body cannot be read as what its Content-Type says, and the envelope tells why; or a header is "
                "wrong",
                {
                    JSON: {"schema": {"anyOf": [_ref("PsiToolEnvelope"), _ref("Error")]}, "example": unread},
                    EDN: {"schema": _EDN_TEXT},
                },
            ),
        },
        (406, 415),
        edn=True,
        description=DESCRIPTION,
        parameters=[{"$ref": "#/components/parameters/session"}],
        requestBody=_body(
            {
                JSON: {
                    "schema": {
                        "anyOf": [
                            _ref("PsiToolRequest"),
                            {"description": "anything else is answered, too, by an envelope that says what is wrong"},
                        ]
                    },
                    "examples": {"schedule": {"value": example}, "sessions": {"value": list_sessions}},
                },
                EDN: _edn('{:action "session" :op "list"}'),
            }
        ),
    )


def _eql() -> dict[str, Any]:
    return _operation(
        "eql",
        "Ask the attribute graph in EQL, or call its mutations",
        {
            200: _answer(
                "the answer: a map of what was asked for; with `explain`, `explain` and `plan`",
                {
                    JSON: {"schema": {"type": "object"}, "example": {"psi.system/session-count": 0}},
                    EDN: {"schema": _EDN_TEXT, "example": "{:psi.system/session-count 0}"},
                },
            ),
        },
        (400, 404, 406, 409, 415, 422),
        edn=True,
        parameters=[{"$ref": "#/components/parameters/session"}],
        requestBody=_body(
            {
                JSON: {
                    "schema": _ref("EqlRequest"),
                    "examples": {
                        "count": {"value": {"query": "[:psi.system/session-count]"}},
                        "sessions": {
                            "value": {"query": "[{:psi.system/sessions [:psi.agent-session/phase]}]", "strict": True}
                        },
                        "explain": {"value": {"query": "[:psi.scheduler/pending-count]", "explain": True}},
                    },
                },
                EDN: _edn("[:psi.system/session-count :psi.system/version]"),
            }
        ),
    )


_GRAPHQL: Final = "application/graphql-response+json"


def _graphql_answers() -> dict[int, Any]:
    content = {kind: {"schema": _ref("GraphQLAnswer")} for kind in (JSON, _GRAPHQL)}
    refused = {**content, JSON: {"schema": {"anyOf": [_ref("GraphQLAnswer"), _ref("Error")]}}}
    return {
        200: _answer("the data, and errors beside it", content),
        400: _answer("not a GraphQL request, or not a valid one", refused),
        422: _answer("over a limit: depth, cost or time", refused),
    }


def _graphql_get() -> dict[str, Any]:
    return _operation(
        "graphqlGet",
        "A GraphQL query; mutations are sent by POST",
        _graphql_answers(),
        (405, 406),
        parameters=[
            {
                "name": "query",
                "in": "query",
                "required": True,
                "schema": {"type": "string", "minLength": 1},
                "example": "{ __typename }",
            },
            {"name": "operationName", "in": "query", "schema": _TEXT},
            {
                "name": "variables",
                "in": "query",
                "description": "a JSON object",
                "content": {JSON: {"schema": {"type": "object"}}},
            },
            {
                "name": "extensions",
                "in": "query",
                "description": "a JSON object",
                "content": {JSON: {"schema": {"type": "object"}}},
            },
        ],
    )


def _graphql_post() -> dict[str, Any]:
    example = {"query": "query First { sessions(limit: 10) { __typename } }"}
    return _operation(
        "graphqlPost",
        "A GraphQL query or mutation",
        _graphql_answers(),
        (406, 415),
        requestBody=_body({JSON: {"schema": _ref("GraphQLRequest"), "example": example}}),
    )


# -- sessions

_EXAMPLE_ID: Final = "ses-7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b"
_EXAMPLE_RUN: Final = "run-0b9d6c1e-2f3a-4b5c-8d7e-6f5a4b3c2d1e"
_EXAMPLE_SESSION: Final = {
    "id": _EXAMPLE_ID,
    "name": "First",
    "phase": "idle",
    "owner": "local",
    "created_at": "2026-04-22T13:00:00Z",
    "updated_at": "2026-04-22T13:00:00Z",
    "message_count": 0,
    "pending_schedules": 0,
    "pending_recall": None,
}
_OF_PATH: Final = {
    "name": "session_id",
    "in": "path",
    "required": True,
    "description": "its id, `ses-…`",
    "schema": {"type": "string", "minLength": 1, "pattern": "^[^/]+$"},
}
_SWITCH: Final = {"type": "string", "enum": ["1", "0", "true", "false"]}


def _parameter(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": dict(schema)}


def _shown(schema: Mapping[str, Any], example: Any) -> dict[str, Any]:
    """JSON with an example, or EDN for those who ask for it."""
    return {JSON: {"schema": dict(schema), "example": example}, EDN: {"schema": _EDN_TEXT}}


def _sessions() -> dict[str, Any]:
    page = _told(
        {
            "sessions": {"type": "array", "items": _ref("SessionSummary")},
            "next": {"type": ["string", "null"], "description": "where there is more: what `after` has to be to go on"},
        }
    )
    return _operation(
        "sessions",
        "The sessions that the caller may see, the oldest first",
        {200: _answer("a page of them", _shown(page, {"sessions": [_EXAMPLE_SESSION], "next": None}))},
        (400, 404, 406),
        edn=True,
        parameters=[
            _parameter("limit", f"how many; {PAGE} unless told", {"type": "integer", "minimum": 1, "maximum": MOST}),
            _parameter("after", "the id of the last one of the page before", _TEXT),
            _parameter("pending_recall", "1: those that wait for a recall", _SWITCH),
        ],
    )


def _create_session() -> dict[str, Any]:
    made = _answer("the session", _shown(_ref("Session"), {**_EXAMPLE_SESSION, "active_run_id": None}))
    made["headers"] = {"Location": {"schema": _TEXT}}
    return _operation(
        "createSession",
        "Begin a session",
        {201: made},
        (400, 404, 406, 415),
        edn=True,
        parameters=[{"$ref": "#/components/parameters/session"}],
        requestBody=_body(
            {
                JSON: {
                    "schema": _ref("SessionRequest"),
                    "examples": {
                        "named": {"value": {"name": "First"}},
                        "configured": {"value": {"config": {"session_name": "Review", "thinking_level": "low"}}},
                    },
                }
            },
            required=False,
        ),
    )


def _session() -> dict[str, Any]:
    example = {**_EXAMPLE_SESSION, "active_run_id": None, "messages": [], "messages_next": None}
    return _operation(
        "session",
        "A session with its messages",
        {200: _answer("the session; its messages, or as many as fit", _shown(_ref("SessionWithMessages"), example))},
        (400, 404, 406, 422),
        edn=True,
        parameters=[
            _OF_PATH,
            _parameter(
                "messages_after",
                "the index of a message: only those behind it",
                {"type": "integer", "minimum": 0, "maximum": 10**15},
            ),
            _parameter("limit", "how many messages at most", {"type": "integer", "minimum": 1, "maximum": MOST}),
        ],
    )


def _delete_session() -> dict[str, Any]:
    return _operation(
        "deleteSession",
        "Delete a session with its history; its run is stopped and its schedules are cancelled",
        {200: _answer("it is gone", _shown(_told({"deleted": {"const": True}}), {"deleted": True}))},
        (400, 404, 406, 409),
        edn=True,
        parameters=[
            _OF_PATH,
            _parameter("delete_automations", "1: whatever is bound to it goes with it", _SWITCH),
        ],
    )


def _submit(settings: Settings) -> dict[str, Any]:
    begun = _told({"run_id": _TEXT, "session_id": _TEXT, "state": {"const": "running"}})
    run = {
        "run_id": _EXAMPLE_RUN,
        "session_id": _EXAMPLE_ID,
        "state": "ok",
        "source": "user",
        "started_at": "2026-04-22T13:00:00Z",
        "finished_at": "2026-04-22T13:00:01Z",
        "answer": "You said: Hello.",
        "error": None,
        "message_index": 1,
        "context_tokens": 4,
        "max_context_tokens": 8_192,
        "token_count": 3,
        "tool_call_count": 0,
    }
    return _operation(
        "submitMessage",
        "Send a message to a session; a run begins that answers it",
        {
            200: _answer("with `wait`: how the run ended", _shown(_ref("Run"), run)),
            202: _answer(
                "the message is saved and the run has begun",
                _shown(begun, {"run_id": _EXAMPLE_RUN, "session_id": _EXAMPLE_ID, "state": "running"}),
            ),
        },
        (400, 404, 406, 409, 415),
        edn=True,
        description=f"A session has one run at a time. The body has at most {settings.max_message} bytes.",
        parameters=[_OF_PATH, _parameter("wait", "1: the answer comes when the run has ended", _SWITCH)],
        requestBody=_body({JSON: {"schema": _ref("MessageRequest"), "example": {"content": "Hello."}}}),
    )


def _stop() -> dict[str, Any]:
    told = {
        "anyOf": [
            _told({"ok": {"const": True}}),
            _told({"ok": {"const": False}, "reason": {"const": "no active run"}}),
        ]
    }
    return _operation(
        "stopRun",
        "Ask the session's run to stop",
        {200: _answer("whether there was one", _shown(told, {"ok": True}))},
        (400, 404, 406),
        edn=True,
        parameters=[_OF_PATH],
    )


def _events() -> dict[str, Any]:
    seen = _closed(
        {
            "run_id": {"type": "string", "pattern": f"^{RUN}$", "description": "the run of the last event"},
            "after": {"type": "integer", "minimum": 0, "maximum": LARGEST_SEQ, "description": "its number in the run"},
        },
        ["run_id", "after"],
    )
    return _operation(
        "sessionEvents",
        "What happens in a session, as server-sent events; goes on until one side ends it",
        {200: _answer("the frames, as a WebSocket at /ws/sessions/{session_id} has them", {_EVENTS: {}})},
        (400, 404, 406),
        edn=True,
        parameters=[
            _OF_PATH,
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "`RUN:SEQ`, the id of the last event that was seen: what came behind it is sent first",
                "schema": {"type": "string", "pattern": f"^({RUN_AND_SEQ})?$"},
            },
            {
                "name": "seen",
                "in": "query",
                "description": "the last event that was seen, for who cannot send headers: `run_id=RUN&after=SEQ`",
                "style": "form",
                "explode": True,  # two parameters of the address, both or neither
                "schema": seen,
            },
        ],
    )


def _upload(settings: Settings) -> dict[str, Any]:
    several = _told({"files": {"type": "array", "items": _ref("Upload"), "minItems": 2}})
    example = {
        "name": "report.pdf",
        "path": "/srv/psi/uploads/local/5b0c8f6e-3f7d-4a55-9a53-0d7f2b6f2a11/report.pdf",
        "size": 48_213,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    }
    return _operation(
        "upload",
        "Send a file that messages can then refer to",
        {
            201: _answer(
                "what was stored; where a form had several files, all of them under `files`",
                _shown({"anyOf": [_ref("Upload"), several]}, example),
            )
        },
        (400, 406, 409, 415),
        edn=True,
        description="The file as the body, or a form with some; no body is a file without a byte. All files of a "
        f"request have at most {settings.max_upload} bytes together. Refused with 409 where psi keeps its data in "
        "memory.",
        parameters=[
            _parameter(
                "name",
                "what a file that is the body is called; a Content-Disposition header may say it instead, and without "
                "either it is `file`",
                {"type": "string", "pattern": r"\S"},
            )
        ],
        requestBody=_body(
            {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {"file": {"type": "string", "format": "binary"}},
                        "required": ["file"],
                    }
                },
            },
            required=False,
        ),
    )


_URLENCODED: Final = "application/x-www-form-urlencoded"
_LOGIN_EXAMPLE: Final = {"token": "psi_Ny1tF0mIb3fZkq7cQwEoR5sVxT2uYhLgJaPdK9B4vMc"}


def _login_page() -> dict[str, Any]:
    return _operation(
        "loginPage",
        "A page to log in on",
        {200: _answer("the page", {_HTML: {"schema": _TEXT}})},
        tag="access",
        public=True,
    )


def _login() -> dict[str, Any]:
    asked = {
        "type": "object",
        "properties": {"token": {"type": "string", "minLength": 1, "description": "an API token, `psi_…`"}},
        "required": ["token"],
    }
    refused = {status: _problem(status, edn=True) for status in (400, 401)}
    for each in refused.values():
        each["content"][_HTML] = {"schema": _TEXT}  # a form gets a page back
    return _operation(
        "login",
        "Show a token, get a cookie that stands for it",
        {
            200: _answer(
                "logged in; the cookie is in `Set-Cookie`",
                {JSON: {"schema": _ref("Login")}, EDN: {"schema": _EDN_TEXT}},
            ),
            303: {"description": "logged in by a form; on to the start page"},
            **refused,
        },
        (406, 409, 415),
        tag="access",
        public=True,
        edn=True,
        requestBody=_body(
            {
                JSON: {"schema": asked, "example": _LOGIN_EXAMPLE},
                _URLENCODED: {"schema": asked, "example": _LOGIN_EXAMPLE},
                EDN: _edn('{:token "psi_Ny1tF0mIb3fZkq7cQwEoR5sVxT2uYhLgJaPdK9B4vMc"}'),
            }
        ),
    )


def _logout() -> dict[str, Any]:
    return _operation(
        "logout",
        "End the login that the cookie stands for",
        {
            204: {"description": "it has ended, if there was one"},
            303: {"description": "likewise, by a form; on to the login page"},
        },
        tag="access",
    )


def _tokens() -> dict[str, Any]:
    listed = {
        "type": "object",
        "properties": {"tokens": {"type": "array", "items": _ref("Token")}},
        "required": ["tokens"],
        "additionalProperties": False,
    }
    return _operation(
        "tokens",
        "All tokens, without the texts that they are known by",
        {200: _answer("the tokens, revoked and expired ones among them", _forms(listed))},
        (406, 409),
        tag="access",
        edn=True,
        description=_ADMIN_ONLY,
        parameters=[{"name": "user", "in": "query", "description": "this user's only", "schema": _TEXT}],
    )


def _create_token() -> dict[str, Any]:
    created = {
        "allOf": [_ref("Token")],
        "type": "object",
        "properties": {"token": {"type": "string", "description": "the text to send; shown this once"}},
        "required": ["token"],
    }
    answered = _answer("the token, with its text this once", _forms(created))
    answered["headers"] = {"Location": {"schema": _TEXT}}
    return _operation(
        "createToken",
        "Make a token",
        {201: answered},
        (400, 406, 409, 415),
        tag="access",
        edn=True,
        description=_ADMIN_ONLY,
        requestBody=_body(
            {
                JSON: {"schema": _ref("TokenRequest"), "example": {"name": "ci", "scopes": ["read", "write"]}},
                EDN: _edn('{:name "ci" :scopes ["read"] :expires-in 86400}'),
            }
        ),
    )


def _revoke_token() -> dict[str, Any]:
    return _operation(
        "revokeToken",
        "Revoke a token; its logins end with it",
        {200: _answer("the token as it is now", _forms(_ref("Token")))},
        (404, 406, 409),
        tag="access",
        edn=True,
        description=_ADMIN_ONLY,
        parameters=[
            {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "its id, `tok-…`",
                "schema": {"type": "string", "minLength": 1, "pattern": "^[^/]+$"},
            }
        ],
    )


def _start() -> dict[str, Any]:
    return _operation(
        "start",
        "A small page that says what this is",
        {200: _answer("the page", {_HTML: {"schema": _TEXT}})},
        tag="operation",
        public=True,
    )


def _status(name: str, summary: str, word: str) -> dict[str, Any]:
    example = {"status": word, "version": psi.__version__}
    return _operation(
        name,
        summary,
        {200: _answer("yes", {JSON: {"schema": _ref("Status"), "example": example}})},
        tag="operation",
        public=True,
    )


def _metrics() -> dict[str, Any]:
    return _operation(
        "metrics",
        "The numbers of the service, for Prometheus",
        {
            200: _answer(
                "text as Prometheus reads it",
                {"text/plain": {"schema": _TEXT}, "application/openmetrics-text": {"schema": _TEXT}},
            )
        },
        tag="operation",
        description=_ADMIN_ONLY,
    )


def _openapi() -> dict[str, Any]:
    return _operation(
        "openapi",
        "This document",
        {200: _answer("OpenAPI 3.1", {JSON: {"schema": {"type": "object", "required": ["openapi", "paths"]}}})},
        tag="operation",
        public=True,
    )
