"""The agent interface: what an agent is given, what it gives, and how it is asked to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from psi.agents.events import AgentEvent
from psi.agents.tools import Tool, ToolCall, ToolResult
from psi.core.config import SessionConfig
from psi.core.message import Message
from psi.edn import Keyword
from psi.errors import Failed

__all__ = ["Agent", "IterationLimit", "TurnContext"]


class IterationLimit(Failed):
    """The agent has gone round as often as it may. Counts as an end, not as a failure."""

    code = "agent/iteration-limit"

    def __init__(self, limit: int) -> None:
        super().__init__(f"the agent reached its limit of {limit} iterations")
        self.limit = limit

    def facts(self) -> dict[str, Any]:
        return {"limit": self.limit}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """All that an agent knows of its turn.

    It asks ``is_stopping`` before each model call and after each tool. Waiting goes through ``wait``, which ends early
    when the turn is to stop, and which a virtual clock can move.
    """

    session: str
    run: str
    source: Keyword
    prompt: str
    history: Sequence[Message]  # the prompt's own message is its last; of pictures it has the size alone
    config: SessionConfig
    tools: Mapping[str, Tool]
    is_stopping: Callable[[], bool] = field(repr=False)
    wait: Callable[[float], Awaitable[None]] = field(repr=False)
    # The history with the pictures themselves, which may be hundreds of megabytes, for who shows them to a model.
    history_with_pictures: Callable[[], Awaitable[Sequence[Message]]] = field(repr=False)

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolResult:
        """Call a tool. A tool that does not exist or that breaks is a result, too: the agent can read it and go on."""
        tool = self.tools.get(name)
        if tool is None:
            known = ", ".join(sorted(self.tools)) or "none"
            return ToolResult(f"unknown tool {name}; this session has: {known}", success=False)
        call = ToolCall(arguments=arguments, session=self.session, run=self.run, source=self.source)
        try:
            return await tool.call(call)
        # A tool is somebody else's code: its failure is the agent's to handle, and it ends no process either.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return ToolResult(f"{name} failed: {type(error).__name__}: {error}", success=False)


class Agent(Protocol):
    def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """The events of one turn. Raising is a failed turn; the generator is closed where a turn is stopped."""
        ...
