"""The description put together from those of the faces."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

import psi
from psi.faces.auth import COOKIE
from psi.faces.eql import depth_for
from psi.faces.openapi import access, asking, service, sessions
from psi.faces.openapi.words import ERROR, INVOKING
from psi.faces.wire import answer
from psi.settings import Settings

__all__ = ["OpenApiFace", "document"]

_FACES: Final = (asking, sessions, access, service)


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
        "paths": {path: each for face in _FACES for path, each in face.paths(settings).items()},
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "an API token, `psi_…`, made by `psi-tool token create`",
                },
                "login": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "set by `POST /login`"},
            },
            "parameters": {"session": INVOKING},
            "schemas": {"Error": ERROR, **{name: each for face in _FACES for name, each in face.SCHEMAS.items()}},
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
