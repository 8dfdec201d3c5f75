"""A way to a service that can be closed and opened again, as if the service had gone and come back. Reads nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from psi.faces.server import bind

__all__ = ["Detour", "detour"]


class Detour:
    """A port of its own that leads to another. While it is closed, connections are refused."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def open(self) -> None:
        listening = bind("127.0.0.1", self.port)
        self.port = listening.getsockname()[1]
        self._server = await asyncio.start_server(self._lead, sock=listening)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, back}
        async with asyncio.TaskGroup() as group:
            group.create_task(self._copy(reader, back))
            group.create_task(self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        writer.close()
        self._open.discard(writer)


@asynccontextmanager
async def detour(target: int) -> AsyncIterator[Detour]:
    found = Detour(target)
    await found.open()
    try:
        yield found
    finally:
        await found.close()
