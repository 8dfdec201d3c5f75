"""A client of ``/ws/sessions/{id}`` over a real socket, with short words for what tests say and hear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from psi.agents import AgentEvent, TextDelta, TurnContext
from tests.faces.serving import Served

__all__ = ["Talk", "Torrent", "talk"]

_PATIENCE = 5  # seconds for what should be there at once


class Talk:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, content: str, **more: Any) -> None:
        await self.send({"type": "message", "content": content, **more})

    async def send(self, frame: Any) -> None:
        await self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(_PATIENCE):
            found: dict[str, Any] = json.loads(await self.socket.recv())
            return found

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """All frames up to one of this type."""
        found = [await self.next()]
        while found[-1]["type"] != kind:
            found.append(await self.next())
        return found

    async def types(self, kind: str) -> list[str]:
        return [frame["type"] for frame in await self.until(kind)]

    async def is_silent(self) -> bool:
        """Whether nothing more comes, though everything that was under way has been answered."""
        waiter = await self.socket.ping()
        async with asyncio.timeout(_PATIENCE):
            await waiter
        try:
            async with asyncio.timeout(0.05):
                await self.socket.recv()
        except TimeoutError:
            return True
        return False

    async def closed(self) -> tuple[int, str]:
        async with asyncio.timeout(_PATIENCE):
            with pytest.raises(ConnectionClosed) as closed:
                await self._forever()
        told = closed.value.rcvd
        assert told is not None
        return told.code, told.reason

    async def _forever(self) -> None:
        while True:
            await self.socket.recv()


@asynccontextmanager
async def talk(served: Served, session: str, query: str = "", **more: Any) -> AsyncIterator[Talk]:
    more.setdefault("max_size", 1 << 24)
    async with connect(f"{served.ws_url}/ws/sessions/{session}{query}", **more) as socket:
        yield Talk(socket)


class Torrent:
    """An agent that says more than a socket holds, without a pause longer than others need to be served; and then
    thinks for a minute."""

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        for place in range(2_500):
            yield TextDelta(f"{place} {'x' * 6_000}")
            if place % 20 == 0:
                await asyncio.sleep(0.001)
        await turn.wait(60)
