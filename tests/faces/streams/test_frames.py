"""Every frame has exactly the fields that the protocol says, and those that tell where in which run it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from psi.agents import (
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
    TurnContext,
    TurnThinking,
)
from psi.engine import RunEvent
from psi.faces.streams.stream import Texts
from tests.faces.serving import Served, serving
from tests.faces.streams.talking import talk

EVERYTHING: list[tuple[AgentEvent, dict[str, Any]]] = [
    (ThinkingDelta("hm"), {"type": "thinking_delta", "delta": "hm"}),
    (ThinkingEnd(), {"type": "thinking_end"}),
    (TurnThinking("so", True), {"type": "turn_thinking", "thinking": "so", "is_subagent": True}),
    (
        PlanningStatus(2, "Reflecting"),
        {"type": "planning_status", "phase": 2, "label": "Reflecting", "is_subagent": False},
    ),
    (PlanReady("1. look", True), {"type": "plan_ready", "plan": "1. look", "is_subagent": True}),
    (
        ToolStarted("grep", {"for": "x", "in": ["a", 1, None]}),
        {"type": "tool_started", "tool": "grep", "args": {"for": "x", "in": ["a", 1, None]}, "is_subagent": False},
    ),
    (
        ToolFinished("grep", {"for": "x"}, "none", False, metadata={"ms": 3}),
        {
            "type": "tool_call",
            "tool": "grep",
            "args": {"for": "x"},
            "result": "none",
            "success": False,
            "is_subagent": False,
            "metadata": {"ms": 3},
        },
    ),
    (
        CompressionStarted(90, 100),
        {"type": "compression_started", "context_tokens": 90, "max_context_tokens": 100},
    ),
    (
        ContextCompressed(9, 2, "short", 10, 100),
        {
            "type": "context_compressed",
            "messages_before": 9,
            "messages_after": 2,
            "summary": "short",
            "context_tokens": 10,
            "max_context_tokens": 100,
        },
    ),
    (
        ProfileSwitched("p-1", "Careful"),
        {"type": "profile_switched", "profile_id": "p-1", "profile_name": "Careful"},
    ),
    (
        McpStatus("files", "disconnected", 0, "gone"),
        {
            "type": "mcp_status_update",
            "server_name": "files",
            "status": "disconnected",
            "tool_count": 0,
            "error": "gone",
        },
    ),
    (TextDelta("Hello"), {"type": "stream_delta", "delta": "Hello"}),
]


class Telling:
    """An agent that tells what it was given, and ends as it was told to."""

    def __init__(self, *events: AgentEvent) -> None:
        self._events = events

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        for event in self._events:
            yield event


async def frames_of(served: Served, prompt: str, last: str) -> list[dict[str, Any]]:
    """The frames of one turn, without run_id and seq, which are checked here."""
    session = await served.session()
    async with talk(served, session) as one:
        assert await one.next() == {"type": "session_sync"}
        await one.say(prompt)
        found = await one.until(last)
        assert await one.is_silent()  # no session_sync for whoever began it
    [run] = {frame.pop("run_id") for frame in found}
    assert run.startswith("run-")
    assert [frame.pop("seq") for frame in found] == list(range(1, len(found) + 1))
    return found


async def test_every_event_of_an_agent_is_told_as_its_frame() -> None:
    final = FinalAnswer("Hello there", context_tokens=7, max_context_tokens=100, token_count=2)
    async with serving(agent=Telling(*(event for event, _ in EVERYTHING), final)) as served:
        assert await frames_of(served, "go", "stream_end") == [
            {"type": "stream_start", "source": "user"},
            *(frame for _, frame in EVERYTHING),
            {
                "type": "stream_end",
                "content": "Hello there",
                "context_tokens": 7,
                "max_context_tokens": 100,
                "elapsed_seconds": 0.0,
                "tool_call_count": 1,
                "token_count": 2,
                "message_index": 1,
            },
        ]


async def test_an_agent_that_counts_nothing_is_told_with_zeros() -> None:
    async with serving(agent=Telling(TextDelta("a"), TextDelta("b"))) as served:
        end = (await frames_of(served, "go", "stream_end"))[-1]
        assert end["content"] == "ab"
        assert (end["context_tokens"], end["max_context_tokens"], end["token_count"]) == (0, 0, 0)


async def test_what_is_no_json_in_an_event_is_told_as_well_as_it_can_be() -> None:
    odd = ToolStarted("t", {"large": 2**70, "half": "\ud800", "list": [2**64]})
    async with serving(agent=Telling(odd, TextDelta("a"))) as served:
        told = (await frames_of(served, "go", "stream_end"))[1]
        assert told == {
            "type": "tool_started",
            "tool": "t",
            "args": {"large": str(2**70), "half": "?", "list": [str(2**64)]},
            "is_subagent": False,
        }


@pytest.mark.parametrize(
    ("prompt", "types", "last"),
    [
        ("/say a b", ["stream_start", "stream_delta", "stream_delta", "stream_end"], {"content": "a b"}),
        (
            "/plan a | b\n/say c",
            ["stream_start", *["planning_status"] * 3, "plan_ready", "stream_delta", "stream_end"],
            {"content": "c"},
        ),
        ("/empty", ["stream_start", "stream_end"], {"content": "This turn ended without a result."}),
        ("/loop", ["stream_start", "stream_end"], {"content": "This turn ended at its limit of 25 iterations."}),
        (
            "/compress\n/say c",
            ["stream_start", "compression_started", "context_compressed", "stream_delta", "stream_end"],
            {"content": "c"},
        ),
        (
            '/tool psi-tool {"action": "session", "op": "list"}\n/say c',
            ["stream_start", "tool_started", "tool_call", "stream_delta", "stream_end"],
            {"tool_call_count": 1},
        ),
    ],
)
async def test_each_step_of_the_demo_agent_has_its_frames(prompt: str, types: list[str], last: dict[str, Any]) -> None:
    async with serving() as served:
        found = await frames_of(served, prompt, "stream_end")
        assert [frame["type"] for frame in found] == types
        assert last.items() <= found[-1].items()


async def test_an_agent_that_fails_is_told_in_a_sentence_without_details() -> None:
    async with serving() as served:
        found = await frames_of(served, "/say partly\n/fail the secret reason", "error")
        assert [frame["type"] for frame in found] == ["stream_start", "stream_delta", "error"]
        assert found[-1].keys() == {"type", "message"}
        assert found[-1]["message"].startswith("This turn failed (DemoFailure).")  # what was said before was streamed
        assert "secret" not in found[-1]["message"]


def test_texts_that_are_kept_for_others_are_bounded_by_their_size() -> None:
    texts = Texts()
    for place in range(40):
        texts.of(RunEvent("run-1", place, TextDelta("x" * (1 << 20))))
    assert len(texts._kept) < 32
