"""A subscription that stays open for weeks must not keep anything of the events that it was told.

graphql-core 3.3.1 and 3.3.2 keep about a kilobyte of each. Measured over a real socket, and against the same events
with nobody listening, because the runtime remembers the newest of them for those who come back.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from itertools import pairwise
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from psi.core.commands import Caller, CancelSchedule, CreateSchedule
from tests.faces.serving import Served, serving

WARM_UP = 400
ROUNDS = 4
EVENTS = 300  # a round
MOST = 150  # bytes an event
PACE = 0.05  # seconds; a live query looks again a little faster than this

EVENTS_OF = 'subscription { sessionEvents(sessionId: "%s") { seq type at data } }'
PENDING_OF = 'subscription { session(id: "%s") { schedulerPendingCount } }'


def test_graphql_core_is_the_version_that_keeps_nothing() -> None:
    assert version("graphql-core") == "3.3.0"


async def test_a_subscription_keeps_nothing_of_an_event_that_was_told() -> None:
    # Time stands still: texts of instants are remembered, so many and no more, and would be counted here.
    assert await kept(EVENTS_OF, 0) - await kept(None, 0) < MOST * EVENTS


async def test_a_live_query_keeps_nothing_of_an_answer_that_was_told() -> None:
    assert await kept(PENDING_OF, PACE) - await kept(None, PACE) < MOST * EVENTS


async def kept(query: str | None, pace: float) -> int:
    """Bytes that are kept after so many events: in the round that keeps least, for what is kept of every event is kept
    in each of them, while a table that grows or a cache that fills does so in one."""
    async with serving() as served:
        session = await served.session()
        async with following(served, query % session if query else None) as socket:
            tracemalloc.start()
            try:
                await happen(served, session, socket, WARM_UP, pace)
                marks = [held()]
                for _ in range(ROUNDS):
                    await happen(served, session, socket, EVENTS, pace)
                    marks.append(held())
            finally:
                tracemalloc.stop()
    return min(after - before for before, after in pairwise(marks))


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def happen(served: Served, session: str, socket: ClientConnection | None, count: int, pace: float) -> None:
    """Changes, each of which whoever follows has received before the next one."""
    act, caller = served.psi.service.act, Caller(session)
    create = CreateSchedule(kind="message", message="look", delay_ms=86_000_000)
    made: Any = None
    for _ in range(count):
        if made is None:
            made = await act(create, caller)
        else:
            made = await act(CancelSchedule(schedule_id=made.id), caller) and None
        if pace:
            await served.clock.advance(pace)
        if socket is not None:
            message = json.loads(await socket.recv())
            assert message["type"] == "next"


@asynccontextmanager
async def following(served: Served, query: str | None) -> AsyncIterator[ClientConnection | None]:
    if query is None:
        yield None
        return
    url, protocol = f"{served.ws_url}/graphql", Subprotocol("graphql-transport-ws")
    async with connect(url, subprotocols=[protocol]) as socket:
        await socket.send('{"type": "connection_init"}')
        assert json.loads(await socket.recv()) == {"type": "connection_ack"}
        await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": {"query": query}}))
        if query.startswith(PENDING_OF[:24]):
            assert json.loads(await socket.recv())["type"] == "next"
        else:
            await socket.send('{"type": "ping"}')
            assert json.loads(await socket.recv()) == {"type": "pong"}
        yield socket
