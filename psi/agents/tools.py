"""What an agent may call: a tool's name, what it takes, and the call itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psi.edn import Keyword

__all__ = ["Tool", "ToolCall", "ToolResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call, with the turn it comes from: who may do what is decided by the turn, not by who happens to run."""

    arguments: Mapping[str, Any] | str
    session: str
    run: str
    source: Keyword


@dataclass(frozen=True, slots=True)
class ToolResult:
    content: str
    success: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    schema: Mapping[str, Any] = field(repr=False)  # JSON schema of the arguments
    call: Callable[[ToolCall], Awaitable[ToolResult]] = field(repr=False)
