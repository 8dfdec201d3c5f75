"""GraphQL as the app mounts it: one object for both transports, closed with the service."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from psi.faces.auth import Auth
from psi.faces.graphql.channels import Channels
from psi.faces.graphql.http import GraphQLHttp
from psi.faces.graphql.operations import Operations
from psi.faces.graphql.roots import SCHEMA
from psi.faces.graphql.socket import Connection
from psi.faces.metrics import Metrics
from psi.faces.sockets import Lines
from psi.faces.wire import caller_of
from psi.service import Service
from psi.settings import Settings

__all__ = ["GraphQLFace", "sdl"]


def sdl() -> str:
    """The schema, as text."""
    return f"{SCHEMA.as_str()}\n"


class GraphQLFace:
    def __init__(self, service: Service, settings: Settings, auth: Auth, metrics: Metrics) -> None:
        self._settings = settings
        self._auth = auth
        self._metrics = metrics
        self._operations = Operations(service, settings)
        self._http = GraphQLHttp(self._operations)
        self._channels = Channels(self._start)
        self._lines = Lines()
        # A channel outlives whoever came first, so it belongs to nobody's task group; here they are all known.
        self._tasks: set[asyncio.Task[None]] = set()

    async def http(self, request: Request) -> Response:
        return await self._http(request, caller_of(request))

    async def socket(self, socket: WebSocket) -> None:
        with self._lines.opened(socket) as line:
            await Connection(line, self._operations, self._channels, self._auth, self._settings, self._metrics).serve()

    async def close(self) -> None:
        """Every socket is told that the service goes, and closed."""
        await self._lines.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
