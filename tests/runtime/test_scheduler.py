from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from psi.agents import AgentEvent, DemoAgent, FinalAnswer, TurnContext
from psi.core.session import Session
from psi.engine import VirtualClock
from psi.store import AddMessages, Change, MemoryStore, SaveSession
from tests.runtime.world import Gated, world


async def test_a_scheduled_message_comes_back_as_a_user_message_with_its_provenance() -> None:
    async with world() as here:
        session = await here.session()
        schedule = await here.schedule(session, "/say hello", 5000, label="greet")
        await here.clock.advance(4.999)
        assert await here.history(session) == []
        await here.clock.advance(0.001)
        found = await here.ask(session, "[:psi.agent-session/message-history]")
        first, second = found["psi.agent-session/message-history"]
        assert first == {
            "role": "user",
            "content": [{"type": "text", "text": "/say hello"}],
            "timestamp": here.clock.now().wall,
            "source": "scheduled",
            "schedule-id": schedule,
            "label": "greet",
            "run-id": second["run-id"],
        }
        assert second["content"] == [{"type": "text", "text": "hello"}]
        assert await here.of(schedule, "status") == "delivered"
        assert await here.of(schedule, "delivery-phase") is None


async def test_a_scheduled_session_is_fresh_top_level_and_says_where_it_comes_from() -> None:
    async with world(worktree="/somewhere") as here:
        session = await here.session()
        config = {
            "session-name": "Morning",
            "preloaded-messages": [{"role": "user", "content": "Look at the last change first."}],
        }
        schedule = await here.schedule(session, "review", label="am", config=config)
        await here.clock.advance(1)
        assert await here.of(schedule, "delivery-phase") == "prompt-submit"
        created = await here.of(schedule, "created-session-id")
        query = """[:psi.agent-session/session-name :psi.agent-session/scheduled-origin-session-id
                    :psi.agent-session/scheduled-from-schedule-id :psi.agent-session/scheduled-from-label
                    :psi.agent-session/parent-session-id :psi.agent-session/worktree-path]"""
        assert await here.ask(created, query) == {
            "psi.agent-session/session-name": "Morning",
            "psi.agent-session/scheduled-origin-session-id": session,
            "psi.agent-session/scheduled-from-schedule-id": schedule,
            "psi.agent-session/scheduled-from-label": "am",
            "psi.agent-session/parent-session-id": None,
            "psi.agent-session/worktree-path": "/somewhere",
        }
        assert await here.history(created) == [
            ("user", "Look at the last change first."),
            ("user", "review"),
            ("assistant", "You said: review"),
        ]
        assert await here.history(session) == []


async def test_a_session_kind_does_not_wait_for_a_busy_origin() -> None:
    clock = VirtualClock()
    async with world(Gated(clock), clock, grace=0) as here:
        session = await here.session()
        await here.submit(session, "long")
        schedule = await here.schedule(session, config={})
        await here.clock.advance(1)
        assert await here.of(schedule, "status") == "delivered"


async def test_a_busy_session_gets_its_queue_one_by_one_by_plan() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    async with world(agent, clock, grace=0) as here:
        session = await here.session()
        await here.submit(session, "first")
        late = await here.schedule(session, "late", 3000)
        early = await here.schedule(session, "early", 2000)
        await here.clock.advance(5)
        assert [await here.of(each, "status") for each in (late, early)] == ["queued", "queued"]
        agent.let_go(session)
        await here.clock.advance()
        assert [await here.of(each, "status") for each in (late, early)] == ["queued", "delivered"]
        agent.let_go(session)
        await here.clock.advance()
        agent.let_go(session)
        await here.clock.advance()
        assert [prompt for _, prompt, _ in agent.asked] == ["first", "early", "late"]
        assert await here.phase(session) == "idle"


async def test_what_is_planned_earlier_goes_first_even_if_it_was_queued_later() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    async with world(agent, clock, grace=0) as here:
        session = await here.session()
        await here.submit(session, "first")
        await here.schedule(session, "queued first", 1000)
        await here.clock.advance(2)
        past = (clock.now().wall - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        await here.schedule(session, "planned first", at=past)
        await here.clock.advance()
        agent.let_go(session)
        await here.clock.advance()
        assert [prompt for _, prompt, _ in agent.asked] == ["first", "planned first"]


async def test_a_compacting_session_is_busy() -> None:
    class Compacting:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            from psi.agents import CompressionStarted, ContextCompressed

            yield CompressionStarted(90, 100)
            await turn.wait(10)
            yield ContextCompressed(9, 1, "short", 10, 100)
            await turn.wait(10)
            yield FinalAnswer("done")

    async with world(Compacting()) as here:
        session = await here.session()
        await here.submit(session, "long")
        schedule = await here.schedule(session)
        await here.clock.advance(2)
        assert await here.phase(session) == "compacting"
        assert await here.of(schedule, "status") == "queued"
        await here.clock.advance(10)
        assert await here.phase(session) == "streaming"
        assert await here.of(schedule, "status") == "queued"
        await here.clock.advance(10)
        assert await here.of(schedule, "status") == "delivered"


@pytest.mark.parametrize("hours", [-48, 48])
async def test_setting_the_wall_clock_neither_fires_early_nor_holds_back(hours: int) -> None:
    async with world() as here:
        session = await here.session()
        schedule = await here.schedule(session, delay_ms=10_000)
        await here.clock.advance(5)
        here.clock.set_wall(here.clock.now().wall + timedelta(hours=hours))
        await here.clock.advance(4.999)
        assert await here.of(schedule, "status") == "pending"
        await here.clock.advance(0.001)
        assert await here.of(schedule, "status") == "delivered"


@pytest.mark.parametrize("behind", [0.0, 1.0, 3600.0, -0.0009])
async def test_an_instant_that_is_past_or_as_good_as_now_fires_at_once(behind: float) -> None:
    async with world() as here:
        session = await here.session()
        at = (here.clock.now().wall - timedelta(seconds=behind)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        schedule = await here.schedule(session, at=at)
        await here.clock.advance()
        assert await here.of(schedule, "status") == "delivered"


async def test_a_cancelled_schedule_never_fires_and_cannot_be_cancelled_again() -> None:
    async with world() as here:
        session = await here.session()
        schedule = await here.schedule(session)
        answer = (await here.cancel(session, schedule))["psi-tool/scheduler"]
        assert answer["cancelled?"] is True
        assert answer["schedule"]["status"] == "cancelled"
        await here.clock.advance(5)
        assert await here.history(session) == []
        error = (await here.cancel(session, schedule))["psi-tool/error"]
        assert error["message"] == "schedule is not cancellable"
        assert error["data"] == {"schedule-id": schedule, "status": "cancelled"}


async def test_a_queued_schedule_can_be_cancelled_and_leaves_the_queue() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    async with world(agent, clock, grace=0) as here:
        session = await here.session()
        await here.submit(session, "first")
        one, other = await here.schedule(session, "one"), await here.schedule(session, "other")
        await here.clock.advance(1)
        await here.cancel(session, one)
        agent.let_go(session)
        await here.clock.advance()
        assert [await here.of(each, "status") for each in (one, other)] == ["cancelled", "delivered"]


async def test_another_sessions_schedule_is_neither_seen_nor_cancelled() -> None:
    async with world() as here:
        mine, theirs = await here.session(), await here.session()
        schedule = await here.schedule(theirs)
        assert await here.listed(mine) == []
        error = (await here.cancel(mine, schedule))["psi-tool/error"]
        assert error["message"] == "schedule not found"
        assert await here.of(schedule, "status") == "pending"


async def test_the_51st_is_refused_and_changes_nothing() -> None:
    async with world() as here:
        session = await here.session()
        for _ in range(50):
            await here.schedule(session)
        request = {"action": "scheduler", "op": "create", "kind": "message", "message": "x", "delay-ms": 1000}
        error = await here.error(request, session)
        assert error["message"] == "scheduler pending cap exceeded"
        assert error["data"] == {"cap": 50}
        assert len(await here.listed(session)) == 50
        await here.schedule(await here.session())  # the cap is each session's own


async def test_closing_a_session_cancels_what_it_had_planned() -> None:
    async with world() as here:
        session = await here.session()
        schedule = await here.schedule(session)
        await here.ok({"action": "session", "op": "close"}, session)
        assert await here.of(schedule, "status") == "cancelled"
        await here.clock.advance(5)
        assert (await here.error({"action": "session", "op": "show"}, session))["message"] == "session not found"


async def test_a_prompt_that_is_on_its_way_when_its_session_is_closed_counts_as_delivered() -> None:
    class Slow(MemoryStore):
        saving = asyncio.Event()

        async def commit(self, *changes: Change) -> None:
            if isinstance(changes[0], AddMessages):
                await self.saving.wait()
            await super().commit(*changes)

    store = Slow()
    async with world(store=store) as here:
        session = await here.session()
        schedule = await here.schedule(session)
        await here.clock.advance(1)
        assert await here.of(schedule, "status") == "pending"
        error = (await here.cancel(session, schedule))["psi-tool/error"]
        assert error["message"] == "schedule is not cancellable"
        closing = asyncio.create_task(here.ok({"action": "session", "op": "close"}, session))
        await here.clock.advance()
        assert not closing.done()
        store.saving.set()
        await closing
        assert await here.of(schedule, "status") == "delivered"


async def test_a_session_that_was_made_for_a_schedule_called_off_meanwhile_goes_again() -> None:
    class Slow(MemoryStore):
        saving = asyncio.Event()
        slow = False

        async def commit(self, *changes: Change) -> None:
            if self.slow and isinstance(changes[0], SaveSession):
                await self.saving.wait()
            await super().commit(*changes)

    store = Slow()
    async with world(store=store) as here:
        session = await here.session()
        schedule = await here.schedule(session, config={})
        store.slow = True
        await here.clock.advance(1)
        await here.ok({"action": "session", "op": "close"}, session)
        store.saving.set()
        await here.clock.advance()
        assert await here.of(schedule, "status") == "cancelled"
        assert await here.of(schedule, "created-session-id") is None
        assert (await here.ok({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 0


async def test_nothing_fires_after_the_end() -> None:
    clock = VirtualClock()
    agent = Gated(clock)
    async with world(agent, clock) as here:
        session = await here.session()
        schedule = await here.schedule(session)
        psi = here.psi
    await clock.advance(10)
    assert agent.asked == []
    found = await psi.query("[:psi.scheduler/status]", entity={"psi.scheduler/schedule-id": schedule})
    assert found == {"psi.scheduler/status": "cancelled"}


class Failing(MemoryStore):
    """A store that refuses some changes."""

    def __init__(self, *refused: type[Change]) -> None:
        super().__init__()
        self.refused: tuple[type[Change], ...] = ()
        self.later = refused

    async def commit(self, *changes: Change) -> None:
        if any(isinstance(change, self.refused) for change in changes):
            raise OSError("the disk is full")
        await super().commit(*changes)


async def test_a_session_that_cannot_be_made_fails_the_schedule_in_that_phase() -> None:
    store = Failing()
    async with world(store=store) as here:
        session = await here.session()
        schedule = await here.schedule(session, config={})
        store.refused = (SaveSession,)
        await here.clock.advance(1)
        assert await here.of(schedule, "status") == "failed"
        assert await here.of(schedule, "delivery-phase") == "create-session"
        assert await here.of(schedule, "created-session-id") is None
        assert await here.of(schedule, "error-summary") == {
            "message": "the disk is full",
            "class": "OSError",
            "data": {},
        }


async def test_a_prompt_that_cannot_be_submitted_keeps_the_session_that_was_made() -> None:
    store = Failing()
    async with world(store=store) as here:
        session = await here.session()
        schedule = await here.schedule(session, config={})
        store.refused = (AddMessages,)
        await here.clock.advance(1)
        assert await here.of(schedule, "status") == "failed"
        assert await here.of(schedule, "delivery-phase") == "prompt-submit"
        created = await here.of(schedule, "created-session-id")
        store.refused = ()
        assert await here.phase(created) == "idle"
        assert (await here.submit(created, "again", wait=True))["run"]["state"] == "ok"


async def test_a_message_that_cannot_be_saved_fails_and_the_next_in_line_goes() -> None:
    clock = VirtualClock()
    store = Failing()
    agent = Gated(clock)
    async with world(agent, clock, store=store, grace=0) as here:
        session = await here.session()
        await here.submit(session, "first")
        one, other = await here.schedule(session, "one", 1000), await here.schedule(session, "other", 2000)
        await here.clock.advance(3)
        refusals = iter([(AddMessages,), ()])
        plain = store.commit

        async def refuse_once(*changes: Any) -> None:
            if isinstance(changes[0], AddMessages) and changes[0].messages[0].text == "one":
                store.refused = next(refusals)
                try:
                    await plain(*changes)
                finally:
                    store.refused = ()
            else:
                await plain(*changes)

        store.commit = refuse_once  # type: ignore[method-assign]
        agent.let_go(session)
        await here.clock.advance()
        assert [await here.of(each, "status") for each in (one, other)] == ["failed", "delivered"]


async def test_no_agent_for_a_session_fails_the_delivery_and_not_the_runtime() -> None:
    def pick(session: Session) -> DemoAgent:
        if session.config.model is not None:
            raise LookupError(f"no agent for {session.config.model}")
        return DemoAgent()

    async with world(pick) as here:
        session = await here.session()
        schedule = await here.schedule(session, config={"model": "acme:one"})
        await here.clock.advance(1)
        assert await here.of(schedule, "status") == "failed"
        assert await here.of(schedule, "delivery-phase") == "prompt-submit"
        assert (await here.of(schedule, "error-summary"))["message"] == "no agent for acme:one"
        assert await here.of(schedule, "created-session-id") is not None


async def test_the_newest_thousand_that_have_ended_stay_queryable() -> None:
    async with world() as here:
        session = await here.session()
        names = []
        for _ in range(1010):
            names.append(await here.schedule(session))
            await here.cancel(session, names[-1])
        found = await here.ask(session, "[{:psi.scheduler/schedules [:psi.scheduler/schedule-id]}]")
        kept = {each["psi.scheduler/schedule-id"] for each in found["psi.scheduler/schedules"]}
        assert kept == set(names[10:])


async def test_an_agent_schedules_itself() -> None:
    async with world() as here:
        session = await here.session()
        request = (
            '{"action": "scheduler", "op": "create", "kind": "message", "delay_ms": 60000, "message": "/say back"}'
        )
        run = await here.submit(session, f"/tool psi-tool {request}\n/say see you", wait=True)
        assert run["run"]["answer"] == "see you"
        (planned,) = await here.listed(session)
        assert planned["origin-session-id"] == session
        await here.clock.advance(60)
        assert (await here.history(session))[-2:] == [("user", "/say back"), ("assistant", "back")]


async def test_an_agent_schedules_for_nobody_else() -> None:
    async with world() as here:
        mine, theirs = await here.session(), await here.session()
        request = f'{{"action": "scheduler", "op": "list", "session-id": "{theirs}"}}'
        with here.psi.watch(mine) as events:
            await here.submit(mine, f"/tool psi-tool {request}", wait=True)
            told = [event.data.event async for event in _until(events, "run-finished") if event.type == "run-event"]
        finished = next(event for event in told if type(event).__name__ == "ToolFinished")
        assert finished.success is False
        assert "an agent schedules for its own session only" in finished.result


async def _until(events: Any, last: str) -> AsyncIterator[Any]:
    async for event in events:
        yield event
        if event.type == last:
            return
