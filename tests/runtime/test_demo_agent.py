from __future__ import annotations

from typing import Any

import pytest

from psi.agents import (
    CompressionStarted,
    ContextCompressed,
    PlanningStatus,
    PlanReady,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolFinished,
    ToolStarted,
)
from psi.core.turn import Turn
from psi.engine import Opened
from tests.runtime.world import World, world


async def events_of(here: World, prompt: str) -> tuple[list[Any], str]:
    session = await here.session()
    found: list[Any] = []
    with here.psi.watch(session) as events:
        await here.submit(session, prompt)
        await here.clock.advance(10)
        async for event in events:
            if event.type == "run-event" and not isinstance(event.data.event, Turn | Opened):
                found.append(event.data.event)
            elif event.type == "run-finished":
                break
    return found, event.data.answer


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("hello", "You said: hello"),
        ("/say one  two", "one  two"),
        ("/say a\nb\n\n/say c", "a\nYou said: b\nc"),
        ("/dance now", "You said: /dance now"),
        ("/wait soon", "You said: /wait soon"),
        ("/say a\n/empty\n/say b", "a"),
        ("/think hm\n/say a", "a"),
        ("/wait 500ms\n/say a", "a"),
        ("/wait 1.5s\n/say a", "a"),
    ],
)
async def test_the_answer_is_what_was_said_and_echoed_joined_with_newlines(prompt: str, answer: str) -> None:
    async with world() as here:
        events, found = await events_of(here, prompt)
        assert found == answer
        assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == answer


async def test_text_comes_word_by_word() -> None:
    async with world() as here:
        events, _ = await events_of(here, "/say one two three\nfour")
        deltas = [event.delta for event in events if isinstance(event, TextDelta)]
        assert deltas == ["one", " two", " three", "\nYou", " said:", " four"]


async def test_thinking_planning_and_compression_are_told() -> None:
    async with world() as here:
        events, _ = await events_of(here, "/think so so\n/plan look | read\n/compress\n/say done")
        assert [event for event in events if not isinstance(event, TextDelta)] == [
            ThinkingDelta("so"),
            ThinkingDelta(" so"),
            ThinkingEnd(),
            PlanningStatus(1, "Analysing"),
            PlanningStatus(2, "Reflecting"),
            PlanningStatus(3, "Planning"),
            PlanReady("1. look\n2. read"),
            CompressionStarted(10, 8192),
            ContextCompressed(1, 1, "1 messages, of which the last one is kept.", 1, 8192),
        ]


@pytest.mark.parametrize(
    ("written", "args", "result"),
    [
        ("nothing {}", {}, "unknown tool nothing; this session has: psi-tool"),
        ("psi-tool {", {"arguments": "{"}, "the arguments of psi-tool are not a JSON object: "),
        ("psi-tool [1]", {"arguments": "[1]"}, "the arguments of psi-tool are not a JSON object: found [1]"),
    ],
)
async def test_a_tool_that_cannot_be_called_is_reported(written: str, args: dict[str, Any], result: str) -> None:
    async with world() as here:
        events, _ = await events_of(here, f"/tool {written}\n/say a")
        started, finished = events[:2]
        assert started == ToolStarted(written.split(maxsplit=1)[0], args)
        assert isinstance(finished, ToolFinished)
        assert not finished.success
        assert finished.result.startswith(result)


async def test_a_tool_may_be_called_in_edn() -> None:
    async with world() as here:
        events, _ = await events_of(here, '/tool psi-tool {:action "session" :op "list"}\n/say a')
        assert events[1].success
        assert '"session-count": 1' in events[1].result


async def test_a_line_ends_with_a_newline_and_with_nothing_else() -> None:
    async with world() as here:
        session = await here.session()
        run = (await here.submit(session, "/say a\u2028b\x0bc\r\nd", wait=True))["run"]
        assert run["answer"] == "a\u2028b\x0bc\nYou said: d"
