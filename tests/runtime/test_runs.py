from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from psi import Psi
from psi.agents import AgentEvent, FinalAnswer, TextDelta, Tool, ToolCall, ToolResult, TurnContext
from psi.core.commands import Caller, SubmitPrompt
from psi.core.message import picture_part, says
from psi.core.turn import State
from psi.engine import VirtualClock
from psi.engine.clock import settle
from psi.store import Change, DeleteSession, MemoryStore, SaveTurn
from tests.runtime.world import Gated, World, world


async def closure(here: World, session: str) -> dict[str, object]:
    found = await here.ask(session, "[:psi.agent-session/message-history]")
    last: dict[str, object] = found["psi.agent-session/message-history"][-1]
    return last


async def test_one_run_at_a_time_and_nothing_is_stored_for_the_second() -> None:
    clock = VirtualClock()
    async with world(Gated(clock), clock, grace=0) as here:
        session = await here.session()
        run = (await here.submit(session, "first"))["run-id"]
        error = await here.error({"action": "session", "op": "submit", "message": "second"}, session)
        assert error["message"] == "session is busy: a run is active; wait for its end or stop it"
        assert error["data"] == {"session-id": session, "phase": "streaming", "run-id": run}
        assert await here.history(session) == [("user", "first")]


async def test_several_sessions_run_side_by_side() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    async with world(agent, clock) as here:
        one, other = await here.session(), await here.session()
        await here.submit(one, "a")
        await here.submit(other, "b")
        await here.clock.advance()
        assert [prompt for _, prompt, _ in agent.asked] == ["a", "b"]
        agent.let_go(other)
        await here.clock.advance()
        assert [await here.phase(each) for each in (one, other)] == ["streaming", "idle"]
        agent.let_go(one)


async def test_a_failed_turn_leaves_one_sentence_and_the_rest_in_its_record() -> None:
    async with world() as here:
        session = await here.session()
        run = (await here.submit(session, "/say so far\n/fail secret=12", wait=True))["run"]
        note = f"This turn failed (DemoFailure). The details are in the record of run {run['run-id']}."
        assert run["state"] == "error"
        assert (await closure(here, session))["content"] == [{"type": "text", "text": f"so far\n\n{note}"}]
        record = await here.ask(None, "[:psi.run/state :psi.run/error]", **{"psi.run/id": run["run-id"]})
        assert record == {"psi.run/state": "error", "psi.run/error": "DemoFailure: secret=12"}
        assert await here.phase(session) == "idle"


async def test_a_turn_without_text_says_so() -> None:
    async with world() as here:
        session = await here.session()
        run = (await here.submit(session, "/empty", wait=True))["run"]
        assert run["state"] == "empty"
        assert await here.history(session) == [("user", "/empty"), ("assistant", "This turn ended without a result.")]


async def test_reaching_the_iteration_limit_is_a_success() -> None:
    async with world() as here:
        session = await here.session()
        run = (await here.submit(session, "/say half\n/loop", wait=True))["run"]
        assert run["state"] == "ok"
        assert run["answer"] == "half\n\nThis turn ended at its limit of 25 iterations."
        assert (await closure(here, session))["closure"] == "iteration-limit"


async def test_a_stopped_run_keeps_what_it_had_said() -> None:
    async with world() as here:
        session = await here.session()
        await here.submit(session, "/say one two\n/wait 60s\n/say three")
        await here.clock.advance(1)
        answer = (await here.ok({"action": "session", "op": "stop"}, session))["psi-tool/session"]
        assert answer["stopped?"] is True
        await here.clock.advance()
        assert (await here.history(session))[-1] == ("assistant", "one two")
        assert (await closure(here, session))["closure"] == "stopped"
        assert (await here.submit(session, "next", wait=True))["run"]["state"] == "ok"


async def test_whoever_has_stopped_a_run_may_go_on_at_once() -> None:
    async with world() as here:
        session = await here.session()
        for place in range(5):
            await here.submit(session, "/say one\n/wait 60s")
            stopped = (await here.ok({"action": "session", "op": "stop"}, session))["psi-tool/session"]
            assert (stopped["stopped?"], stopped["session"]["phase"]) == (True, "idle")
            assert len(await here.history(session)) == 2 * (place + 1)


async def test_a_turn_that_stops_its_own_session_does_not_wait_for_itself() -> None:
    async with world() as here:
        session = await here.session()
        stop = '/tool psi-tool {"action": "session", "op": "stop"}\n/say more'
        run = (await here.submit(session, stop, wait=True))["run"]
        assert run["state"] == "stopped"


async def test_stopping_where_nothing_runs_changes_nothing() -> None:
    async with world() as here:
        session = await here.session()
        answer = (await here.ok({"action": "session", "op": "stop"}, session))["psi-tool/session"]
        assert answer["stopped?"] is False
        assert answer["reason"] == "no active run"


async def test_an_agent_that_does_not_listen_is_made_to_stop_and_is_closed() -> None:
    ended = []

    class Deaf:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            try:
                yield TextDelta("words")
                await asyncio.Event().wait()
            finally:
                ended.append(turn.run)

    async with world(Deaf()) as here:
        session = await here.session()
        run = (await here.submit(session, "go"))["run-id"]
        await here.clock.advance()
        stopping = asyncio.create_task(here.ok({"action": "session", "op": "stop"}, session))
        await here.clock.advance(1.9)
        assert ended == []
        assert not stopping.done()
        await here.clock.advance(0.1)
        assert ended == [run]
        assert (await stopping)["psi-tool/session"]["stopped?"] is True
        assert (await here.history(session))[-1] == ("assistant", "words")
        assert await here.phase(session) == "idle"


async def test_a_generator_that_goes_on_after_a_stop_is_closed_at_its_next_event() -> None:
    ended = []

    class Endless:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            try:
                while True:
                    yield TextDelta("x")
                    await asyncio.sleep(0)
            finally:
                ended.append(turn.run)

    async with world(Endless()) as here:
        session = await here.session()
        run = (await here.submit(session, "go"))["run-id"]
        await here.ok({"action": "session", "op": "stop"}, session)
        await here.clock.advance()
        assert ended == [run]


async def test_a_run_that_is_under_way_at_the_end_gets_its_closure() -> None:
    store = MemoryStore()
    async with world(store=store) as here:
        session = await here.session()
        await here.submit(session, "/say half\n/wait 60s")
        await here.clock.advance(1)
    said = (await store.messages(session))[-1]
    assert said.text == "half\n\nThis turn was interrupted: the service stopped while it was running."
    assert said.closure == "interrupted"


async def test_closing_a_session_stops_its_run_first() -> None:
    async with world() as here:
        session = await here.session()
        await here.submit(session, "/wait 60s")
        await here.clock.advance(1)
        answer = await here.ok({"action": "session", "op": "close"}, session)
        assert answer["psi-tool/session"]["closed?"] is True
        assert (await here.ok({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 0


@pytest.mark.parametrize("prompt", [None, "/wait 60s", "/say " + "word " * 200 + "\n/wait 60s"])
async def test_a_session_that_is_closed_is_told_as_it_was_when_it_went(prompt: str | None) -> None:
    async with world() as here:
        session = await here.session()
        if prompt is not None:
            await here.submit(session, prompt)
            await here.clock.advance(1)
        told = (await here.ok({"action": "session", "op": "close"}, session))["psi-tool/session"]
        assert (told["closed?"], told["session"]["session-id"], told["session"]["phase"]) == (True, session, "idle")


async def test_who_loses_patience_waiting_for_a_run_takes_nothing_down() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    async with world(agent, clock) as here:
        session = await here.session()
        waiting = asyncio.create_task(here.submit(session, "long", wait=True))
        await here.clock.advance()
        waiting.cancel()
        await here.clock.advance()
        assert await here.phase(session) == "streaming"
        agent.let_go(session)
        await here.clock.advance()
        assert await here.history(session) == [("user", "long"), ("assistant", "done: long")]


async def test_closing_goes_on_when_who_asked_for_it_is_gone() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    close = {"action": "session", "op": "close"}
    async with world(agent, clock) as here:
        session = await here.session()
        await here.submit(session, "long")
        first = asyncio.create_task(here.ok(close, session))
        await here.clock.advance()
        first.cancel()
        second = asyncio.create_task(here.ok(close, session))
        await here.clock.advance()
        assert not second.done()
        error = await here.error({"action": "session", "op": "submit", "message": "no"}, session)
        assert error["class"] == "SessionBusy"
        agent.let_go(session)
        assert (await second)["psi-tool/session"]["closed?"] is True
        assert (await here.ok({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 0


async def test_a_session_that_cannot_be_deleted_goes_on() -> None:
    class Stubborn(MemoryStore):
        async def commit(self, *changes: Change) -> None:
            if isinstance(changes[0], DeleteSession):
                raise OSError("the disk is full")
            await super().commit(*changes)

    async with world(store=Stubborn()) as here:
        session = await here.session()
        error = await here.error({"action": "session", "op": "close"}, session)
        assert error["class"] == "OSError"
        assert (await here.submit(session, "still here", wait=True))["run"]["state"] == "ok"


async def test_an_answer_that_was_not_declared_final_is_what_was_streamed() -> None:
    class Plain:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield TextDelta("a")
            yield TextDelta("b")

    async with world(Plain()) as here:
        session = await here.session()
        assert (await here.submit(session, "go", wait=True))["run"]["answer"] == "ab"


async def test_an_agent_whose_final_answer_is_empty_has_said_what_was_streamed() -> None:
    class Short:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield TextDelta("all of it")
            yield FinalAnswer("", token_count=3)

    async with world(Short()) as here:
        session = await here.session()
        run = (await here.submit(session, "go", wait=True))["run"]
        assert (run["state"], run["answer"]) == ("ok", "all of it")


async def test_an_agent_or_a_tool_that_would_end_the_process_ends_its_own_work_alone() -> None:
    class Leaving:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield FinalAnswer((await turn.call("leave", {})).content)
            sys.exit(3)

    class Abrupt:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            if turn.prompt:
                sys.exit(3)
            yield FinalAnswer("never")

    async def leave(asked: ToolCall) -> ToolResult:
        sys.exit(2)

    async with world(Leaving(), tools=[Tool(name="leave", description="", schema={}, call=leave)]) as here:
        session = await here.session()
        assert (await here.submit(session, "go", wait=True))["run"]["answer"] == "leave failed: SystemExit: 2"
    async with world(Abrupt()) as here:
        session = await here.session()
        assert (await here.submit(session, "go", wait=True))["run"]["state"] == "error"
        assert (await here.submit(session, "go", wait=True))["run"]["state"] == "error"


async def test_a_session_whose_maker_is_gone_before_it_is_saved_is_there_for_everybody() -> None:
    class Slow(MemoryStore):
        def __init__(self) -> None:
            super().__init__()
            self.gate = asyncio.Event()

        async def commit(self, *changes: Change) -> None:
            await self.gate.wait()
            await super().commit(*changes)

    store = Slow()
    async with world(store=store) as here:
        making = asyncio.create_task(here.session("Left behind"))
        await here.clock.advance()
        making.cancel()
        store.gate.set()
        await here.clock.advance()
        assert [each.name for each in await store.sessions()] == ["Left behind"]
        listed = await here.ok({"action": "session", "op": "list"})
        assert [each["session-name"] for each in listed["psi-tool/session"]["sessions"]] == ["Left behind"]


async def test_an_agent_gets_pictures_when_it_asks_for_them() -> None:
    picture = picture_part("image/png", "iVBORw0KGgo=")
    seen: list[Any] = []

    class Looking:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            seen.append(turn.history[-1].content[1].get("size"))
            seen.append((await turn.history_with_pictures())[-1].content[1])
            yield FinalAnswer("a picture")

    async with world(Looking()) as here:
        session = await here.session()
        await here.psi.service.act(
            SubmitPrompt(message="look", content=(*says("look"), picture), session=session), Caller(session)
        )
        await here.clock.advance(1)
        assert seen == [8, picture]


@pytest.mark.parametrize(
    "event",
    ["text", TextDelta(5), FinalAnswer(None), FinalAnswer("b", token_count=None), FinalAnswer("b", token_count=10**50)],  # type: ignore[arg-type]
)
async def test_an_agent_that_yields_what_it_should_not_fails_its_turn_and_nothing_else(event: AgentEvent) -> None:
    class Odd:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield event

    async with world(Odd()) as here:
        session = await here.session()
        assert (await here.submit(session, "go", wait=True))["run"]["state"] == "error"
        assert (await here.submit(session, "go", wait=True))["run"]["state"] == "error"


async def test_an_agent_sees_the_history_up_to_its_prompt() -> None:
    seen = []

    class Reading:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            seen.append([message.text for message in turn.history])
            yield FinalAnswer("ok")

    async with world(Reading()) as here:
        session = await here.session()
        await here.submit(session, "one", wait=True)
        await here.submit(session, "two", wait=True)
        assert seen == [["one"], ["one", "ok", "two"]]


async def test_tools_are_those_that_the_session_may_use() -> None:
    async with world() as here:
        session = await here.session(config={"tool-ids": []})
        with here.psi.watch(session) as events:
            await here.submit(session, '/tool psi-tool {"action": "session", "op": "list"}', wait=True)
            async for event in events:
                if event.type == "run-event" and type(event.data.event).__name__ == "ToolFinished":
                    break
        assert event.data.event.result == "unknown tool psi-tool; this session has: none"


async def test_what_a_caller_raises_inside_the_block_is_what_leaves_it() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with world():
            raise KeyError("mine")


class Waiting(MemoryStore):
    """A store that takes its time, from when it is told to until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        self.go = asyncio.Event()

    async def commit(self, *changes: Change) -> None:
        if self.slow:
            await self.go.wait()
        await super().commit(*changes)


async def test_a_run_that_is_stopped_before_its_agent_begins_asks_no_agent() -> None:
    clock, store = VirtualClock(), Waiting()
    agent = Gated(clock)
    async with Psi.open(clock=clock, store=store, agent=agent) as psi:
        made = await psi.tool({"action": "session", "op": "create"})
        session = made["psi-tool/session"]["session"]["session-id"]
        store.slow = True
        submitting = asyncio.create_task(
            psi.tool({"action": "session", "op": "submit", "message": "go", "wait": True}, session)
        )
        await settle()
        stopping = asyncio.create_task(psi.tool({"action": "session", "op": "stop"}, session))
        # Longer than an agent may take to stop: it is the store that is waited for, and that cannot be cut off.
        await clock.advance(10)
        store.slow = False
        store.go.set()
        assert (await stopping)["psi-tool/session"]["stopped?"] is True
        run = (await submitting)["psi-tool/session"]["run"]
        assert run["state"] == "stopped"
        assert agent.asked == []
        again = asyncio.create_task(
            psi.tool({"action": "session", "op": "submit", "message": "next", "wait": True}, session)
        )
        await settle()
        agent.let_go(session)
        assert (await again)["psi-tool/session"]["run"]["answer"] == "done: next"


class Full(MemoryStore):
    """A store that takes nothing while it is full."""

    is_full = False
    refused = 0

    async def commit(self, *changes: Change) -> None:
        if self.is_full:
            self.refused += 1
            raise OSError("the disk is full")
        await super().commit(*changes)


async def test_a_closure_that_cannot_be_saved_is_tried_until_it_is() -> None:
    store = Full()
    async with world(store=store) as here:
        session = await here.session()
        with here.psi.watch(session) as events:
            await here.submit(session, "/say first\n/wait 1s\n/say end")
            store.is_full = True
            await here.clock.advance(60)
            assert store.refused > 10
            assert await here.phase(session) == "streaming"  # nobody was told of an end
            assert "run-finished" not in [event.type for event in events.waiting()]
            assert (await here.error({"action": "session", "op": "submit", "message": "x"}, session))["class"] == (
                "SessionBusy"
            )
            store.is_full = False
            await here.clock.advance(10)
            assert "run-finished" in [event.type for event in events.waiting()]
        assert (await here.history(session))[-1] == ("assistant", "first\nend")
        assert await here.phase(session) == "idle"


async def test_a_closure_that_cannot_be_saved_does_not_keep_psi_from_closing() -> None:
    store = Full()
    async with world(store=store) as here:
        session = await here.session()
        await here.submit(session, "/wait 1s\n/say end")
        store.is_full = True
        await here.clock.advance(30)
        events = here.psi.watch(session)
    told = [event.data for event in events.waiting() if event.type == "run-finished"]
    assert [turn.state for turn in told] == [State.INTERRUPTED]
    assert [turn.state for turn in await store.unfinished()] == [State.RUNNING]


@pytest.mark.parametrize("end", ["/say done", "/loop", "/fail x", "/empty"])
async def test_the_tools_of_a_turn_are_counted_however_it_ends(end: str) -> None:
    async with world() as here:
        session = await here.session()
        await here.submit(session, f"/tool nope {{}}\n{end}", wait=True)
        (run,) = (await here.ask(session, "[{:psi.agent-session/runs [:psi.run/tool-call-count]}]"))[
            "psi.agent-session/runs"
        ]
        assert run == {"psi.run/tool-call-count": 1}


async def test_an_exception_that_cannot_say_what_it_is_fails_its_turn_and_nothing_else() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    class Failing:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield TextDelta("a")
            raise Mute

    async with world(Failing()) as here:
        session = await here.session()
        assert (await here.submit(session, "go", wait=True))["run"]["state"] == "error"


async def test_a_closure_that_can_never_be_saved_does_not_keep_its_session() -> None:
    class Particular(MemoryStore):
        async def commit(self, *changes: Change) -> None:
            if any(isinstance(each, SaveTurn) and each.turn.finished_at for each in changes):
                raise ValueError("this cannot be written")
            await super().commit(*changes)

    async with world(store=Particular()) as here:
        session = await here.session()
        run = (await here.submit(session, "/say a", wait=True))["run"]
        assert (run["state"], await here.phase(session)) == ("interrupted", "idle")  # and not as if it were saved
