"""The faces that are asked: psi-tool, EQL and GraphQL."""

from __future__ import annotations

from typing import Any, Final

from psi.faces.openapi.words import EDN, EDN_TEXT, JSON, TEXT, answered, body, edn_body, operation, ref
from psi.settings import Settings
from tool.declarations import ACTIONS, DESCRIPTION
from tool.schema import json_schema

__all__ = ["SCHEMAS", "paths"]

_ENVELOPE: Final = {
    "type": "object",
    "description": "how it went; see docs/psi-tool.md",
    "properties": {
        "psi-tool/action": {"type": ["string", "null"], "enum": [*(action.name for action in ACTIONS), None]},
        "psi-tool/overall-status": {"type": "string", "enum": ["ok", "error"]},
        "psi-tool/duration-ms": {"type": "integer", "minimum": 0},
        **{f"psi-tool/{action.name}-op": TEXT for action in ACTIONS if action.ops},
        **{f"psi-tool/{action.name}": {"type": "object"} for action in ACTIONS if action.ops},
        "psi-tool/mutation": TEXT,
        "psi-tool/result": {},
        "psi-tool/error": {
            "type": "object",
            "properties": {
                "message": TEXT,
                "class": TEXT,
                "code": TEXT,
                "phase": {"type": "string", "enum": ["validate", "execute"]},
                "data": {"type": "object"},
            },
            "required": ["message", "class", "code", "phase", "data"],
        },
    },
    "required": ["psi-tool/action", "psi-tool/overall-status", "psi-tool/duration-ms"],
    "additionalProperties": False,
}

# What stands in a query as data: an attribute, a join, an ident. Which of them mean something is no matter of form.
_EXPRESSION: Final = {"type": ["string", "object", "array"]}

# What EDN text of a map looks like. That it is one, only its reader can tell.
_MAP_TEXT: Final = r"^[\s,]*\{[\s\S]*\}[\s,]*$"


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
    return operation(
        "psiTool",
        "Carry out a psi-tool request",
        {
            200: answered(
                "the envelope; `psi-tool/overall-status` says whether it went well",
                {JSON: {"schema": ref("PsiToolEnvelope"), "example": envelope}, EDN: {"schema": EDN_TEXT}},
            ),
            400: answered(
                "the body cannot be read as what its Content-Type says, and the envelope tells why; or a header is "
                "wrong",
                {
                    JSON: {"schema": {"anyOf": [ref("PsiToolEnvelope"), ref("Error")]}, "example": unread},
                    EDN: {"schema": EDN_TEXT},
                },
            ),
        },
        (406, 415),
        edn=True,
        description=DESCRIPTION,
        parameters=[{"$ref": "#/components/parameters/session"}],
        requestBody=body(
            {
                JSON: {
                    "schema": {
                        "anyOf": [
                            ref("PsiToolRequest"),
                            {"description": "anything else is answered, too, by an envelope that says what is wrong"},
                        ]
                    },
                    "examples": {"schedule": {"value": example}, "sessions": {"value": list_sessions}},
                },
                EDN: edn_body('{:action "session" :op "list"}'),
            }
        ),
    )


def _eql() -> dict[str, Any]:
    return operation(
        "eql",
        "Ask the attribute graph in EQL, or call its mutations",
        {
            200: answered(
                "the answer: a map of what was asked for; with `explain`, `explain` and `plan`",
                {
                    JSON: {"schema": {"type": "object"}, "example": {"psi.system/session-count": 0}},
                    EDN: {"schema": EDN_TEXT, "example": "{:psi.system/session-count 0}"},
                },
            ),
        },
        (400, 404, 406, 409, 415, 422),
        edn=True,
        parameters=[{"$ref": "#/components/parameters/session"}],
        requestBody=body(
            {
                JSON: {
                    "schema": ref("EqlRequest"),
                    "examples": {
                        "count": {"value": {"query": "[:psi.system/session-count]"}},
                        "sessions": {
                            "value": {"query": "[{:psi.system/sessions [:psi.agent-session/phase]}]", "strict": True}
                        },
                        "explain": {"value": {"query": "[:psi.scheduler/pending-count]", "explain": True}},
                    },
                },
                EDN: edn_body("[:psi.system/session-count :psi.system/version]"),
            }
        ),
    )


_GRAPHQL: Final = "application/graphql-response+json"


def _graphql_answers() -> dict[int, Any]:
    content = {kind: {"schema": ref("GraphQLAnswer")} for kind in (JSON, _GRAPHQL)}
    refused = {**content, JSON: {"schema": {"anyOf": [ref("GraphQLAnswer"), ref("Error")]}}}
    return {
        200: answered("the data, and errors beside it", content),
        400: answered("not a GraphQL request, or not a valid one", refused),
        422: answered("over a limit: depth, cost or time", refused),
    }


def _graphql_get() -> dict[str, Any]:
    return operation(
        "graphqlGet",
        "A GraphQL query; mutations are sent by POST",
        _graphql_answers(),
        (405, 406),
        parameters=[
            {
                "name": "query",
                "in": "query",
                "required": True,
                "schema": {"type": "string"},
                "example": "{ __typename }",
            },
            {"name": "operationName", "in": "query", "schema": TEXT},
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
    return operation(
        "graphqlPost",
        "A GraphQL query or mutation",
        _graphql_answers(),
        (406, 415),
        requestBody=body({JSON: {"schema": ref("GraphQLRequest"), "example": example}}),
    )


SCHEMAS: Final[dict[str, Any]] = {
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
            "query": {"type": "string"},
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
                "items": {"type": "object", "properties": {"message": TEXT}, "required": ["message"]},
            },
            "extensions": {"type": "object"},
        },
    },
}


def paths(settings: Settings) -> dict[str, Any]:
    return {
        "/psi-tool": {"post": _psi_tool()},
        "/eql": {"post": _eql()},
        "/graphql": {"get": _graphql_get(), "post": _graphql_post()},
    }
