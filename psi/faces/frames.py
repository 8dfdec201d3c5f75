"""What a run tells, as the frames that clients get: one JSON object for each event, with a ``type``. Sends nothing."""

from __future__ import annotations

from typing import Any

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
from psi.core.turn import State, Turn, note_of
from psi.engine import Opened
from tool.render import as_json

__all__ = ["frame"]


def frame(event: AgentEvent | Opened | Turn) -> dict[str, Any]:
    """The frame of one event; the end of a run is its turn."""
    match event:
        case Opened():
            return _opened(event)
        case Turn():
            return _turn(event)
        case TextDelta(delta):
            return {"type": "stream_delta", "delta": delta}
        case ThinkingDelta(delta):
            return {"type": "thinking_delta", "delta": delta}
        case ThinkingEnd():
            return {"type": "thinking_end"}
        case TurnThinking(thinking, is_subagent):
            return {"type": "turn_thinking", "thinking": thinking, "is_subagent": is_subagent}
        case PlanningStatus(phase, label, is_subagent):
            return {"type": "planning_status", "phase": phase, "label": label, "is_subagent": is_subagent}
        case PlanReady(plan, is_subagent):
            return {"type": "plan_ready", "plan": plan, "is_subagent": is_subagent}
        case ToolStarted(tool, args, is_subagent):
            return {"type": "tool_started", "tool": tool, "args": as_json(args), "is_subagent": is_subagent}
        case ToolFinished():
            return {
                "type": "tool_call",
                "tool": event.tool,
                "args": as_json(event.args),
                "result": event.result,
                "success": event.success,
                "is_subagent": event.is_subagent,
                "metadata": as_json(event.metadata),
            }
        case CompressionStarted(tokens, most):
            return {"type": "compression_started", "context_tokens": tokens, "max_context_tokens": most}
        case ContextCompressed():
            return {
                "type": "context_compressed",
                "messages_before": event.messages_before,
                "messages_after": event.messages_after,
                "summary": event.summary,
                "context_tokens": event.context_tokens,
                "max_context_tokens": event.max_context_tokens,
            }
        case ProfileSwitched(profile, name):
            return {"type": "profile_switched", "profile_id": profile, "profile_name": name}
        case McpStatus():
            return {
                "type": "mcp_status_update",
                "server_name": event.server_name,
                "status": event.status,
                "tool_count": event.tool_count,
                "error": event.error or "",
            }
        case FinalAnswer():
            raise TypeError("a final answer is told as the end of its turn")


def _opened(opened: Opened) -> dict[str, Any]:
    """Where a turn comes from is told with its beginning: nobody may have sent it from here."""
    message = opened.message
    found: dict[str, Any] = {"type": "stream_start", "source": str(opened.turn.source)}
    if message.origin is not None:
        found |= {"schedule_id": message.origin.schedule_id, "label": message.origin.label, "content": message.text}
    return found


def _turn(turn: Turn) -> dict[str, Any]:
    match turn.state:
        case State.RUNNING:
            return {"type": "stream_start", "source": str(turn.source)}
        case State.STOPPED:
            return {"type": "stream_stopped"}
        case State.ERROR | State.INTERRUPTED:
            return {"type": "error", "message": note_of(turn)}
        case State.OK | State.EMPTY:
            # By the clock on the wall, which may have been set back meanwhile.
            elapsed = max((turn.finished_at - turn.started_at).total_seconds(), 0.0) if turn.finished_at else 0.0
            return {
                "type": "stream_end",
                "content": turn.answer or "",
                "context_tokens": turn.context_tokens,
                "max_context_tokens": turn.max_context_tokens,
                "elapsed_seconds": elapsed,
                "tool_call_count": turn.tool_call_count,
                "token_count": turn.token_count,
                "message_index": turn.message_index,
            }
