"""Who may: logins and tokens."""

from __future__ import annotations

from typing import Any, Final

from psi.core.identity import SCOPES
from psi.faces.login import LONGEST
from psi.faces.openapi.words import (
    ADMIN_ONLY,
    EDN,
    EDN_TEXT,
    HTML,
    INSTANT,
    JSON,
    TEXT,
    answered,
    body,
    edn_body,
    forms,
    operation,
    problem,
    ref,
)
from psi.settings import Settings

__all__ = ["SCHEMAS", "paths"]

_URLENCODED: Final = "application/x-www-form-urlencoded"
_LOGIN_EXAMPLE: Final = {"token": "psi_Ny1tF0mIb3fZkq7cQwEoR5sVxT2uYhLgJaPdK9B4vMc"}


def _login_page() -> dict[str, Any]:
    return operation(
        "loginPage",
        "A page to log in on",
        {200: answered("the page", {HTML: {"schema": TEXT}})},
        tag="access",
        public=True,
    )


def _login() -> dict[str, Any]:
    asked = {
        "type": "object",
        "properties": {"token": {"type": "string", "minLength": 1, "description": "an API token, `psi_…`"}},
        "required": ["token"],
    }
    refused = {status: problem(status, edn=True) for status in (400, 401)}
    for each in refused.values():
        each["content"][HTML] = {"schema": TEXT}  # a form gets a page back
    return operation(
        "login",
        "Show a token, get a cookie that stands for it",
        {
            200: answered(
                "logged in; the cookie is in `Set-Cookie`",
                {JSON: {"schema": ref("Login")}, EDN: {"schema": EDN_TEXT}},
            ),
            303: {"description": "logged in by a form; on to the start page"},
            **refused,
        },
        (406, 409, 415),
        tag="access",
        public=True,
        edn=True,
        requestBody=body(
            {
                JSON: {"schema": asked, "example": _LOGIN_EXAMPLE},
                _URLENCODED: {"schema": asked, "example": _LOGIN_EXAMPLE},
                EDN: edn_body('{:token "psi_Ny1tF0mIb3fZkq7cQwEoR5sVxT2uYhLgJaPdK9B4vMc"}'),
            }
        ),
    )


def _logout() -> dict[str, Any]:
    return operation(
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
        "properties": {"tokens": {"type": "array", "items": ref("Token")}},
        "required": ["tokens"],
        "additionalProperties": False,
    }
    return operation(
        "tokens",
        "All tokens, without the texts that they are known by",
        {200: answered("the tokens, revoked and expired ones among them", forms(listed))},
        (406, 409),
        tag="access",
        edn=True,
        description=ADMIN_ONLY,
        parameters=[{"name": "user", "in": "query", "description": "this user's only", "schema": TEXT}],
    )


def _create_token() -> dict[str, Any]:
    created = {
        "allOf": [ref("Token")],
        "type": "object",
        "properties": {"token": {"type": "string", "description": "the text to send; shown this once"}},
        "required": ["token"],
    }
    made = answered("the token, with its text this once", forms(created))
    made["headers"] = {"Location": {"schema": TEXT}}
    return operation(
        "createToken",
        "Make a token",
        {201: made},
        (400, 406, 409, 415),
        tag="access",
        edn=True,
        description=ADMIN_ONLY,
        requestBody=body(
            {
                JSON: {"schema": ref("TokenRequest"), "example": {"name": "ci", "scopes": ["read", "write"]}},
                EDN: edn_body('{:name "ci" :scopes ["read"] :expires-in 86400}'),
            }
        ),
    )


def _revoke_token() -> dict[str, Any]:
    return operation(
        "revokeToken",
        "Revoke a token; its logins end with it",
        {200: answered("the token as it is now", forms(ref("Token")))},
        (404, 406, 409),
        tag="access",
        edn=True,
        description=ADMIN_ONLY,
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


SCHEMAS: Final[dict[str, Any]] = {
    "Token": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "`tok-…`"},
            "user": TEXT,
            "name": {"type": ["string", "null"]},
            "scopes": {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}},
            "created_at": INSTANT,
            **{name: {**INSTANT, "type": ["string", "null"]} for name in ("expires_at", "last_used_at", "revoked_at")},
            "state": {"type": "string", "enum": ["active", "expired", "revoked"]},
        },
        "required": ["id", "user", "scopes", "created_at", "state"],
    },
    "TokenRequest": {
        "type": "object",
        "properties": {
            "name": {
                "type": ["string", "null"],
                "maxLength": 200,
                "pattern": r"\S",
                "description": "what it is for: a line of printable characters",
            },
            "user": {
                "type": ["string", "null"],
                "pattern": r"^[A-Za-z0-9]([A-Za-z0-9._@+-]{0,62}[A-Za-z0-9])?$",
                "description": "whom it stands for; left out, whoever asks",
            },
            "scopes": {
                "type": ["array", "null"],
                "items": {"type": "string", "enum": list(SCOPES)},
                "minItems": 1,
                "description": "each implies those before it; left out, `read` and `write`",
            },
            "expires_in": {
                "type": ["number", "null"],
                "minimum": 1,
                "maximum": LONGEST,
                "description": "seconds; left out, it does not expire",
            },
        },
        "additionalProperties": False,
    },
    "Login": {
        "type": "object",
        "properties": {
            "user": TEXT,
            "scopes": {"type": "array", "items": {"type": "string", "enum": list(SCOPES)}},
            "expires_at": INSTANT,
        },
        "required": ["user", "scopes", "expires_at"],
        "additionalProperties": False,
    },
}


def paths(settings: Settings) -> dict[str, Any]:
    return {
        "/login": {"get": _login_page(), "post": _login()},
        "/logout": {"post": _logout()},
        "/auth/tokens": {"get": _tokens(), "post": _create_token()},
        "/auth/tokens/{id}": {"delete": _revoke_token()},
    }
