"""The service as one ASGI app: which path leads to which face. Has no logic of its own and opens no socket.

Every request is counted (``Metered``), then let in or refused (``Guard``), then answered by the face it is for.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from psi.errors import PsiError
from psi.faces.auth import Auth
from psi.faces.eql import EqlFace
from psi.faces.graphql import GraphQLFace
from psi.faces.guard import Guard
from psi.faces.health import HealthFace
from psi.faces.login import login_routes
from psi.faces.metrics import Metered, Metrics
from psi.faces.openapi import OpenApiFace
from psi.faces.pages import start_page
from psi.faces.rest import rest_routes
from psi.faces.streams import StreamsFace
from psi.faces.tool import ToolFace
from psi.faces.uploads import Uploads, data_folder
from psi.faces.wire import HttpRefused, error_response, form_for
from psi.runtime import Psi
from psi.settings import Settings
from psi.store import Credentials

__all__ = ["App", "create_app"]

_UNMATCHED: Final = "unmatched"


class NoSuchPlace(HttpRefused):
    status = 404
    code = "http/not-found"

    def __init__(self) -> None:
        super().__init__("there is nothing at this address; GET /openapi.json lists what there is")


class WrongMethod(HttpRefused):
    status = 405
    code = "http/method-not-allowed"

    def __init__(self, method: str, allowed: list[str]) -> None:
        super().__init__(f"{method[:40]} is not possible here; accepted: {', '.join(allowed)}", accepted=allowed)


class Internal(HttpRefused):
    """A fault of ours. What it was is in the log, and only there."""

    status = 500
    code = "psi/internal"

    def __init__(self) -> None:
        super().__init__("something went wrong inside psi; its log says what")


class App:
    """A callable as ASGI has it. ``close`` tells the sockets that it is over."""

    def __init__(self, psi: Psi, settings: Settings, credentials: Credentials | None = None) -> None:
        self.metrics = Metrics(lambda: psi.service.context().counters())
        auth = Auth(settings, credentials)
        self._graphql = GraphQLFace(psi.service, settings, auth, self.metrics)
        uploads = Uploads(data_folder(settings), settings.max_upload)
        self._streams = StreamsFace(psi.service, settings, auth, uploads)
        health = HealthFace(psi, self.metrics)
        self.routes: list[BaseRoute] = [
            Route("/", start_page),
            Route("/psi-tool", ToolFace(psi).call, methods=["POST"]),
            Route("/eql", EqlFace(psi.service, settings).ask, methods=["POST"]),
            Route("/graphql", self._graphql.http, methods=["GET", "POST"]),
            WebSocketRoute("/graphql", self._graphql.socket),
            WebSocketRoute("/ws/sessions/{session_id}", self._streams.socket),
            Route("/sessions/{session_id}/events", self._streams.events),
            Route("/healthz", health.alive),
            Route("/readyz", health.ready),
            Route("/metrics", health.metrics),
            Route("/openapi.json", OpenApiFace(settings).show),
            *login_routes(auth),
            *rest_routes(psi.service, uploads),
        ]
        self._paths = {route.path for route in self.routes if isinstance(route, Route)}
        app = Starlette(
            routes=self.routes,
            exception_handlers={
                PsiError: _refused,
                HTTPException: _http_refused,
                ClientDisconnect: _gone,
                Exception: _failed,
            },
        )
        app.router.redirect_slashes = False  # one address for each thing; a guess would hide a typo
        app.router.default = _nowhere
        self._app = Metered(Guard(app, settings, auth), self.metrics, self._pattern)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """Every socket is told and closed; what is answered now is answered to the end."""
        await self._graphql.close()
        await self._streams.close()

    def _pattern(self, scope: Scope) -> str:
        """The pattern of the route that a request is for."""
        path = scope["path"]
        if path in self._paths:
            return str(path)
        found = (
            route for route in self.routes if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
        )
        return next((route.path for route in found), _UNMATCHED)


def create_app(psi: Psi, settings: Settings, credentials: Credentials | None = None) -> App:
    """The app for a runtime that is open. ``credentials``: who has tokens, needed where ``settings.auth`` is on."""
    return App(psi, settings, credentials)


async def _refused(request: Request, error: Any) -> Response:
    return error_response(error, form_for(request))


async def _http_refused(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        allowed = sorted(each.strip() for each in (error.headers or {}).get("Allow", "").split(","))
        return error_response(
            WrongMethod(request.method, allowed), form_for(request), headers={"allow": ", ".join(allowed)}
        )
    refused = HttpRefused(str(error.detail))
    refused.status = error.status_code  # type: ignore[misc]  # whatever the framework refuses by itself
    return error_response(refused, form_for(request))


async def _gone(request: Request, error: Any) -> Response:
    """Nobody is there to read this; it stands in the numbers."""
    return Response(status_code=499)


async def _failed(request: Request, error: Any) -> Response:
    return error_response(Internal(), form_for(request))


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(NoSuchPlace())
    if scope["type"] == "websocket":
        socket = WebSocket(scope, receive, send)
        if "websocket.http.response" in scope.get("extensions", {}):
            await socket.send_denial_response(response)
        else:
            await socket.close()
        return
    await response(scope, receive, send)
