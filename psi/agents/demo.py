"""An agent that needs no model: each line of its prompt is a step. For first steps, the console and checks.

/say TEXT         streams TEXT, word by word          /compress       tells of a compression
/think TEXT       streams thinking                    /fail MESSAGE   raises
/wait 500ms|2s    waits, and can be stopped           /empty          ends here, without more text
/tool NAME JSON   calls a tool                        /loop           runs into the limit of iterations
/plan A | B | C   tells of planning                   anything else   is echoed
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from psi.agents.events import (
    AgentEvent,
    CompressionStarted,
    ContextCompressed,
    FinalAnswer,
    PlanningStatus,
    PlanReady,
    TextDelta,
    ThinkingDelta,
    ThinkingEnd,
    ToolFinished,
    ToolStarted,
)
from psi.agents.interface import IterationLimit, TurnContext
from psi.agents.tools import ToolResult
from psi.edn import ReadError, loads
from psi.edn.strict import Twice, read_json

__all__ = ["DemoAgent", "DemoFailure"]

_MAX_TOKENS: Final = 8_192
_PHASES: Final = ("Analysing", "Reflecting", "Planning")
_WAIT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s)")


class DemoFailure(Exception):
    """What ``/fail`` raises."""


class DemoAgent:
    def __init__(self, *, max_iterations: int = 25) -> None:
        self._max_iterations = max_iterations

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        said: list[str] = []
        for line in filter(None, map(str.strip, turn.prompt.split("\n"))):
            if turn.is_stopping():
                return
            command, _, rest = line.partition(" ")
            rest = rest.strip()
            match command:
                case "/empty" if not rest:
                    break
                case "/fail":
                    raise DemoFailure(rest or "asked to fail")
                case "/loop" if not rest:
                    for _ in range(self._max_iterations):
                        if turn.is_stopping():
                            return
                        await turn.wait(0)
                    raise IterationLimit(self._max_iterations)
                case "/wait" if (seconds := _seconds(rest)) is not None:
                    await turn.wait(seconds)
                case "/think" if rest:
                    for delta in _words(rest):
                        yield ThinkingDelta(delta)
                    yield ThinkingEnd()
                case "/plan" if rest:
                    for event in _planning(rest):
                        yield event
                case "/compress" if not rest:
                    for event in _compression(turn):
                        yield event
                case "/tool" if rest:
                    async for event in _tool(turn, rest):
                        yield event
                case _:
                    text = rest if command == "/say" else f"You said: {line}"
                    if text:
                        for delta in _words(f"\n{text}" if said else text):
                            yield TextDelta(delta)
                        said.append(text)
        if turn.is_stopping():
            return
        answer = "\n".join(said)
        yield FinalAnswer(
            answer,
            context_tokens=_tokens(turn) + _count(answer),
            max_context_tokens=_MAX_TOKENS,
            token_count=_count(answer),
        )


def _words(text: str) -> list[str]:
    """The words, each with the space before it, so that together they are the text again."""
    return re.findall(r"\s*\S+\s*\Z|\s*\S+", text)


def _seconds(text: str) -> float | None:
    found = _WAIT.fullmatch(text)
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2] == "ms" else 1)


def _planning(text: str) -> list[AgentEvent]:
    steps = [step.strip() for step in text.split("|")]
    plan = "\n".join(f"{place}. {step}" for place, step in enumerate(steps, start=1))
    return [*(PlanningStatus(phase, label) for phase, label in enumerate(_PHASES, start=1)), PlanReady(plan)]


def _compression(turn: TurnContext) -> list[AgentEvent]:
    before = len(turn.history)
    return [
        CompressionStarted(_tokens(turn), _MAX_TOKENS),
        ContextCompressed(before, 1, f"{before} messages, of which the last one is kept.", 1, _MAX_TOKENS),
    ]


async def _tool(turn: TurnContext, text: str) -> AsyncIterator[AgentEvent]:
    name, _, written = text.partition(" ")
    arguments = _arguments(written.strip() or "{}")
    shown = arguments if isinstance(arguments, Mapping) else {"arguments": written.strip()}
    yield ToolStarted(name, shown)
    if isinstance(arguments, Mapping):
        result = await turn.call(name, arguments)
    else:
        result = ToolResult(f"the arguments of {name} are not a JSON object: {arguments}", success=False)
    yield ToolFinished(name, shown, result.content, result.success, metadata=result.metadata)


def _arguments(text: str) -> Mapping[str, Any] | str:
    """JSON, or EDN for those who think in it; what cannot be read comes back as the reason why."""
    try:
        found = read_json(text)
    except Twice as twice:
        return str(twice)
    except ValueError as not_json:
        try:
            found = loads(text)
        except ReadError:
            return str(not_json)
    return found if isinstance(found, Mapping) else f"found {text[:60]}"


def _count(text: str) -> int:
    return len(text.split())


def _tokens(turn: TurnContext) -> int:
    return sum(_count(message.text) for message in turn.history)
