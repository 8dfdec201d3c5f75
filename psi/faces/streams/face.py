"""Streams as the app mounts them: one object for both transports, closed with the service."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from psi.faces.auth import Auth
from psi.faces.sockets import Lines
from psi.faces.streams.socket import Connection
from psi.faces.streams.sse import events
from psi.faces.streams.stream import Texts
from psi.faces.uploads import Uploads
from psi.faces.wire import caller_of
from psi.service import Service
from psi.settings import Settings

__all__ = ["StreamsFace"]


class StreamsFace:
    def __init__(self, service: Service, settings: Settings, auth: Auth, uploads: Uploads) -> None:
        self._service = service
        self._settings = settings
        self._auth = auth
        self._uploads = uploads
        self._texts = Texts()
        self._lines = Lines()

    async def socket(self, socket: WebSocket) -> None:
        with self._lines.opened(socket) as line:
            await Connection(line, self._service, self._auth, self._settings, self._uploads, self._texts).serve()

    async def events(self, request: Request) -> Response:
        return events(request, caller_of(request), self._service, self._auth, self._texts)

    async def close(self) -> None:
        """Every socket is told that the service goes, and closed."""
        await self._lines.close()
