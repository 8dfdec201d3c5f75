"""What an agent tells while it works: frozen values, one for each thing that a watcher may want to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = [
    "AgentEvent",
    "CompressionStarted",
    "ContextCompressed",
    "FinalAnswer",
    "McpStatus",
    "PlanReady",
    "PlanningStatus",
    "ProfileSwitched",
    "TextDelta",
    "ThinkingDelta",
    "ThinkingEnd",
    "ToolFinished",
    "ToolStarted",
    "TurnThinking",
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer. The pieces of a turn, put together, are its text."""

    delta: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    delta: str


@dataclass(frozen=True, slots=True)
class ThinkingEnd:
    pass


@dataclass(frozen=True, slots=True)
class TurnThinking:
    """A whole block of reasoning, from a model that does not stream it."""

    thinking: str
    is_subagent: bool = False


@dataclass(frozen=True, slots=True)
class PlanningStatus:
    phase: int  # 1 analysis, 2 reflection, 3 plan
    label: str
    is_subagent: bool = False


@dataclass(frozen=True, slots=True)
class PlanReady:
    plan: str
    is_subagent: bool = False


@dataclass(frozen=True, slots=True)
class ToolStarted:
    tool: str
    args: Mapping[str, Any]
    is_subagent: bool = False


@dataclass(frozen=True, slots=True)
class ToolFinished:
    tool: str
    args: Mapping[str, Any]
    result: str
    success: bool
    is_subagent: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompressionStarted:
    """From here to ContextCompressed the session is compacting."""

    context_tokens: int
    max_context_tokens: int


@dataclass(frozen=True, slots=True)
class ContextCompressed:
    messages_before: int
    messages_after: int
    summary: str
    context_tokens: int
    max_context_tokens: int


@dataclass(frozen=True, slots=True)
class ProfileSwitched:
    profile_id: str
    profile_name: str


@dataclass(frozen=True, slots=True)
class McpStatus:
    server_name: str
    status: str  # connected, disconnected
    tool_count: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The end of a turn that went well. An agent that ends without one has answered with what it streamed."""

    content: str
    context_tokens: int = 0  # 0: the agent does not know
    max_context_tokens: int = 0
    token_count: int = 0


AgentEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ThinkingEnd
    | TurnThinking
    | PlanningStatus
    | PlanReady
    | ToolStarted
    | ToolFinished
    | CompressionStarted
    | ContextCompressed
    | ProfileSwitched
    | McpStatus
    | FinalAnswer
)
