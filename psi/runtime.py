"""psi inside a program: everything put together, opened once and closed once.

    async with Psi.open() as psi:
        created = await psi.tool({"action": "session", "op": "create", "name": "First"})

The one place that knows all the parts; it has no logic of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from psi.agents import Agent, DemoAgent, Tool
from psi.core.clock import Clock
from psi.core.commands import Caller
from psi.core.session import Session
from psi.engine import Engine, Subscription, SystemClock
from psi.engine.ids import new_id
from psi.errors import Refused
from psi.graph import Limits, Operation
from psi.service import Service
from psi.store import MemoryStore, SqliteStore, Store
from tool.call import PsiTool

__all__ = ["Psi"]


class Psi:
    """A running psi. Made by :meth:`open`; belongs to one event loop."""

    def __init__(self, engine: Engine, service: Service, tool: PsiTool, grace: float) -> None:
        self._engine = engine
        self._tool = tool
        self._grace = grace
        self._is_open = True
        self.service = service

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        data: str | os.PathLike[str] | None = None,
        *,
        agent: str | Agent | Callable[[Session], Agent] = "demo",
        tools: Iterable[Tool] = (),
        operations: Iterable[Operation] = (),
        limits: Limits | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 – a bound of each query, not a wait
        clock: Clock | None = None,
        store: Store | None = None,
        worktree: str | os.PathLike[str] | None = None,
        new_id: Callable[[str], str] = new_id,
        grace: float = 4.0,
    ) -> AsyncIterator[Psi]:
        """Open a runtime; leaving the block stops its runs, each with a closure, and cancels its schedules.

        ``data`` is the folder for what shall outlive the process: sessions, messages and run records. Without it they
        are kept in memory. ``agent`` answers the turns: ``"demo"``, an agent, or a function that picks one for a
        session.
        ``limits`` and ``timeout``: how much one query may cost, and how many seconds it may take. ``grace``: seconds
        that runs have to stop by themselves when the runtime closes.
        """
        clock = clock or SystemClock()
        agent_for = _agent_for(agent)
        if store is None:
            store = MemoryStore() if data is None else await SqliteStore.open(Path(data))
        known: dict[str, Tool] = {}
        raised: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    engine = Engine(
                        clock=clock,
                        store=store,
                        tasks=tasks,
                        agent_for=agent_for,
                        tools=known,
                        worktree=os.fspath(worktree) if worktree is not None else str(Path.cwd()),
                        new_id=new_id,
                    )
                    service = Service(engine, operations, limits=limits, timeout=timeout)
                    tool = PsiTool(service, clock)
                    for each in (tool.as_tool(), *tools):
                        if each.name in known:
                            raise ValueError(f"two tools are called {each.name}")
                        known[each.name] = each
                    await engine.load()
                    psi = cls(engine, service, tool, grace)
                    try:
                        yield psi
                    finally:
                        await psi.close()
                except Exception as error:  # noqa: BLE001 – kept out of the task group, which would wrap it
                    raised = error
        finally:
            await store.close()
        if raised is not None:
            raise raised

    async def close(self, grace: float | None = None) -> None:
        """Stop every run, each with a closure, and cancel the schedules, while what there is can still be asked.
        Leaving the block does the same; whoever has to tell others first calls this before."""
        self._is_open = False
        await self._engine.close(self._grace if grace is None else grace)

    @property
    def is_open(self) -> bool:
        """Whether new work is taken."""
        return self._is_open

    async def check(self) -> None:
        """Raises what the store raises when it cannot be read, or cannot save."""
        await self._engine.store.check()

    async def tool(
        self, request: Mapping[str, Any] | str, session: str | None = None, *, caller: Caller | None = None
    ) -> dict[str, Any]:
        """Carry out a psi-tool request, given as data or as EDN or JSON text. Never raises for a bad one: the envelope
        says what was wrong. ``caller``: who asks, where that is more than a session."""
        return await self._tool(request, caller or Caller(session))

    async def query(
        self, query: Any, session: str | None = None, *, entity: Mapping[Any, Any] | None = None, lenient: bool = False
    ) -> dict[Any, Any]:
        """Ask the graph, from the root of a session. Raises what :meth:`psi.graph.Graph.query` raises."""
        return await self.service.query(query, Caller(session), entity=entity, lenient=lenient)

    def watch(self, session: str | None = None, *, after: int | None = None) -> Subscription:
        """What happens, as it happens."""
        return self.service.watch(session, after=after)


def _agent_for(agent: Any) -> Callable[[Session], Agent]:
    if agent == "demo":
        agent = DemoAgent()
    elif isinstance(agent, str):
        raise Refused(f"unknown agent {agent!r}; this version has: demo")
    if hasattr(agent, "run"):
        return lambda _: agent
    if callable(agent):
        return agent  # type: ignore[no-any-return]
    raise Refused(f"an agent has a method `run`, or is a function that gives one for a session; got {agent!r}")
