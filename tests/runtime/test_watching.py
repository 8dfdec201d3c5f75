"""What happens, who hears of it, and who has to look again."""

from __future__ import annotations

import asyncio
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest

from psi.core.commands import Caller, CreateSession
from psi.core.errors import Forbidden, Invalid, SessionNotFound
from psi.engine.bus import Bus, Listener
from psi.engine.clock import settle
from tests.runtime.world import World, world

ALICE, BOB = Caller(user="alice"), Caller(user="bob")


async def session_of(here: World, caller: Caller, name: str = "A") -> str:
    made = await here.psi.service.act(CreateSession(name=name), caller)
    found: str = made.id
    return found


async def test_a_user_hears_of_their_own_sessions_alone() -> None:
    async with world() as here:
        service = here.psi.service
        with service.watch(None, ALICE) as hers, service.watch() as everything:
            await session_of(here, ALICE)
            await session_of(here, BOB)
            assert [event.owner for event in hers.waiting()] == ["alice"]
            assert [event.owner for event in everything.waiting()] == ["alice", "bob"]


async def test_a_user_hears_that_a_session_was_closed_also_afterwards() -> None:
    async with world() as here:
        service = here.psi.service
        session = await session_of(here, ALICE)
        before = service.seq
        await here.ok({"action": "session", "op": "close"}, session)
        with service.watch(None, ALICE, after=before) as back:
            assert back.waiting()[-1].type == "session-closed"
        with service.watch(None, BOB, after=0) as other:
            assert other.waiting() == []


async def test_nobody_watches_a_session_of_somebody_else() -> None:
    async with world() as here:
        session = await session_of(here, ALICE)
        with pytest.raises(SessionNotFound):
            here.psi.service.watch(session, BOB)
        with pytest.raises(SessionNotFound):
            here.psi.service.watch("ses-none")


async def test_a_session_that_a_schedule_makes_belongs_to_whoever_made_the_schedule() -> None:
    async with world() as here:
        session = await session_of(here, ALICE)
        request = {"kind": "session", "message": "hi", "delay-ms": 1_000, "session-config": {"session-name": "Made"}}
        await here.ok({"action": "scheduler", "op": "create", **request}, session)
        await here.clock.advance(2)
        context = here.psi.service.context(ALICE)
        assert [each.name for each in context.sessions()] == ["A", "Made"]


async def test_an_agent_acts_for_the_owner_of_its_session() -> None:
    async with world() as here:
        hers, his = await session_of(here, ALICE), await session_of(here, BOB)
        request = f'{{"action": "session", "op": "show", "session-id": "{his}"}}'
        await here.submit(hers, f"/tool psi-tool {request}", wait=True)
        caller = here.psi.service.acting_for(hers)
        assert (caller.user, caller.is_agent) == ("alice", True)
        with pytest.raises(SessionNotFound):
            here.psi.service.find(his, caller)


async def test_who_may_only_read_changes_nothing() -> None:
    async with world() as here:
        reader = Caller(user="alice", may_write=False)
        with pytest.raises(Forbidden):
            await here.psi.service.act(CreateSession(name="x"), reader)
        with pytest.raises(Forbidden):
            await here.psi.service.query("[{:>/a [(psi.agent-session/create {})]}]", reader)
        assert await here.psi.service.query("[:psi.system/session-count]", reader) == {"psi.system/session-count": 0}


async def answers(here: World, query: str, caller: Caller = ALICE) -> tuple[list[Any], Any]:
    found: list[Any] = []

    async def follow() -> None:
        async for answer in here.psi.service.live(query, caller):
            found.append(answer)

    return found, follow()


async def test_a_live_query_is_asked_again_when_what_it_read_has_changed() -> None:
    async with world() as here:
        session = await session_of(here, ALICE)
        found, follow = await answers(here, "[:psi.system/session-count]")
        task = asyncio.create_task(follow)
        await settle()
        await session_of(here, ALICE)
        await here.clock.advance(1)
        await session_of(here, BOB)
        await here.ok({"action": "session", "op": "close"}, session)
        await here.clock.advance(1)
        task.cancel()
        assert [each["psi.system/session-count"] for each in found] == [1, 2, 1]


async def test_a_live_query_calls_no_mutations() -> None:
    async with world() as here:
        with pytest.raises(Invalid, match="live query"):
            await anext(here.psi.service.live("[(psi.agent-session/create {})]"))


async def test_what_others_run_is_no_gap_for_a_user() -> None:
    async with world() as here:
        service = here.psi.service
        hers, his = await session_of(here, ALICE), await session_of(here, BOB)
        before = service.seq
        await here.submit(his, "/say a b c", wait=True)
        with service.watch(None, ALICE, after=before) as back, service.watch(None, BOB, after=before) as gone:
            assert (back.has_gap, gone.has_gap) == (False, True)
        await here.submit(hers, "/say a", wait=True)
        with service.watch(None, ALICE, after=before) as back:
            assert back.has_gap


def test_what_is_remembered_is_bounded_by_its_weight() -> None:
    bus = Bus()
    now = datetime.now(UTC)
    for place in range(40):
        bus.publish("run-finished", "ses-1", now, place, weight=1 << 20)
    with bus.subscribe(after=1) as back:
        assert [event.data for event in back.waiting()] == list(range(8, 40))
        assert back.has_gap


def test_a_busy_session_loses_nothing_of_a_quiet_one() -> None:
    owners = {"quiet": "alice", "busy": "bob"}
    bus = Bus(owner_of=owners.get, start=100, remembered=16)
    now = datetime.now(UTC)
    bus.publish("schedule-created", "quiet", now, 0)
    for place in range(50):
        bus.publish("schedule-created", "busy", now, place)
    told = [bus.subscribe("quiet", after=101), bus.subscribe(user="alice", after=101)]
    gone = [bus.subscribe("quiet", after=100), bus.subscribe("busy", after=101), bus.subscribe(after=101)]
    assert [each.has_gap for each in told + gone] == [False, False, True, True, True]
    with bus.subscribe("busy", after=bus.seq - 16) as back:
        assert (len(back.waiting()), back.has_gap) == (16, False)  # so many at least


def test_of_sessions_that_were_closed_long_ago_nothing_is_kept() -> None:
    now = datetime.now(UTC)

    def kept(sessions: int) -> int:
        bus = Bus(remembered=16)
        for place in range(sessions):
            for what in ("session-created", "schedule-created", "session-closed"):
                bus.publish(what, f"ses-{place}", now, None)
        return len(pickle.dumps(bus))

    assert kept(2_000) < 2 * kept(20)


async def test_many_who_follow_are_woken_a_few_at_a_time() -> None:
    bus = Bus()
    now = datetime.now(UTC)
    heard: list[int] = []
    seen: list[int] = []

    async def follow(number: int, listener: Listener) -> None:
        await listener.turn()
        seen.append(number)

    listeners = [bus.listen("ses-1", lambda event: heard.append(event.seq)) for _ in range(100)]
    async with asyncio.TaskGroup() as tasks:
        for number, each in enumerate(listeners):
            tasks.create_task(follow(number, each))
        await asyncio.sleep(0)
        bus.publish("run-event", "ses-1", now, None, keep=False)
        assert len(heard) == 100  # at once
        rounds = 0
        while len(seen) < 100:
            before = len(seen)
            await asyncio.sleep(0)
            rounds += 1
            assert len(seen) - before <= 8
    assert rounds > 10


async def test_what_belongs_to_no_session_is_told_in_every_session_of_its_owner() -> None:
    owners = {"hers": "alice", "hers too": "alice", "his": "bob"}
    bus = Bus(owner_of=owners.get)
    heard: dict[str, list[str]] = {name: [] for name in owners}
    for name in owners:
        bus.listen(name, lambda event, name=name: heard[name].append(event.type))  # type: ignore[misc]
    bus.tell_all("mcp-status", "alice", datetime.now(UTC), None, but="hers")
    assert heard == {"hers": [], "hers too": ["mcp-status"], "his": []}
