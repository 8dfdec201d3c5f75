"""A psi on a virtual clock, and short words for what tests do with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psi import Psi
from psi.agents import AgentEvent, DemoAgent, FinalAnswer, TurnContext
from psi.engine import VirtualClock

__all__ = ["Gated", "World", "world"]


class Gated:
    """An agent whose turns last until they are let go, and which notes what it was asked and when."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._gates: dict[str, asyncio.Event] = {}
        self.asked: list[tuple[str, str, int]] = []

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        self.asked.append((turn.session, turn.prompt, self._clock.now().tick))
        gate = self._gates[turn.session] = asyncio.Event()
        await gate.wait()
        yield FinalAnswer(f"done: {turn.prompt}")

    def let_go(self, session: str) -> None:
        self._gates.pop(session).set()

    def let_all_go(self) -> None:
        for session in list(self._gates):
            self.let_go(session)


class World:
    def __init__(self, psi: Psi, clock: VirtualClock) -> None:
        self.psi = psi
        self.clock = clock

    async def ok(self, request: Any, session: str | None = None) -> dict[str, Any]:
        """The envelope of a request that must succeed."""
        answer = await self.psi.tool(request, session)
        assert answer["psi-tool/overall-status"] == "ok", answer
        return answer

    async def error(self, request: Any, session: str | None = None) -> dict[str, Any]:
        """The error of a request that must not."""
        answer = await self.psi.tool(request, session)
        assert answer["psi-tool/overall-status"] == "error", answer
        found: dict[str, Any] = answer["psi-tool/error"]
        return found

    async def session(self, name: str | None = None, config: Any = None) -> str:
        request: dict[str, Any] = {"action": "session", "op": "create"}
        if name:
            request["name"] = name
        if config:
            request["config"] = config
        found: str = (await self.ok(request))["psi-tool/session"]["session"]["session-id"]
        return found

    async def submit(self, session: str, message: str, **more: Any) -> dict[str, Any]:
        request = {"action": "session", "op": "submit", "message": message, **more}
        found: dict[str, Any] = (await self.ok(request, session))["psi-tool/session"]
        return found

    async def schedule(
        self, session: str, message: str = "later", delay_ms: int = 1000, config: Any = None, **more: Any
    ) -> str:
        """A message, or with a config a session."""
        request = {
            "action": "scheduler",
            "op": "create",
            "kind": "message" if config is None else "session",
            "message": message,
            **({} if config is None else {"session-config": config}),
            **({} if "at" in more else {"delay-ms": delay_ms}),
            **more,
        }
        found: str = (await self.ok(request, session))["psi-tool/scheduler"]["schedule"]["schedule-id"]
        return found

    async def listed(self, session: str) -> list[dict[str, Any]]:
        answer = (await self.ok({"action": "scheduler", "op": "list"}, session))["psi-tool/scheduler"]
        assert answer["schedule-count"] == len(answer["schedules"])
        found: list[dict[str, Any]] = answer["schedules"]
        return found

    async def cancel(self, session: str, schedule: str) -> dict[str, Any]:
        return await self.psi.tool({"action": "scheduler", "op": "cancel", "schedule-id": schedule}, session)

    async def ask(self, session: str | None, query: str, **entity: Any) -> dict[str, Any]:
        return await self.psi.query(query, session, entity=entity or None)

    async def of(self, schedule: str, attribute: str) -> Any:
        """One attribute of a schedule, from the graph."""
        name = f"psi.scheduler/{attribute}"
        return (await self.psi.query(f"[:{name}]", entity={"psi.scheduler/schedule-id": schedule}))[name]

    async def history(self, session: str) -> list[tuple[str, str]]:
        found = await self.ask(session, "[:psi.agent-session/message-history]")
        messages = found["psi.agent-session/message-history"]
        return [(message["role"], message["content"][0]["text"]) for message in messages]

    async def phase(self, session: str) -> str:
        found: str = (await self.ask(session, "[:psi.agent-session/phase]"))["psi.agent-session/phase"]
        return found


@asynccontextmanager
async def world(agent: Any = None, clock: VirtualClock | None = None, **more: Any) -> AsyncIterator[World]:
    clock = clock or VirtualClock()
    async with Psi.open(clock=clock, agent=agent or DemoAgent(), **more) as psi:
        yield World(psi, clock)
