"""Agents: who answers a turn. The interface, the events they tell, the tools they may call, and the adapters.

An agent is an async generator of events. It neither saves nor delivers anything, knows nothing of sockets, and is asked
to stop rather than made to.
"""

from psi.agents.demo import DemoAgent
from psi.agents.events import (
    AgentEvent,
    CompressionStarted,
    ContextCompressed,
    FinalAnswer,
    McpStatus,
    PlanningStatus,
    PlanReady,
    ProfileSwitched,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolFinished,
    ToolStarted,
    TurnThinking,
)
from psi.agents.interface import Agent, IterationLimit, TurnContext
from psi.agents.tools import Tool, ToolCall, ToolResult

__all__ = [
    "Agent",
    "AgentEvent",
    "CompressionStarted",
    "ContextCompressed",
    "DemoAgent",
    "FinalAnswer",
    "IterationLimit",
    "McpStatus",
    "PlanReady",
    "PlanningStatus",
    "ProfileSwitched",
    "TextDelta",
    "ThinkingDelta",
    "ThinkingEnd",
    "Tool",
    "ToolCall",
    "ToolFinished",
    "ToolResult",
    "ToolStarted",
    "TurnContext",
    "TurnThinking",
]
