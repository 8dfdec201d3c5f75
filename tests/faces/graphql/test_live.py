from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from psi.core.commands import Caller
from psi.engine.clock import settle
from psi.faces.graphql.channels import Channels, Follower
from psi.faces.graphql.operations import Subscribed
from tests.faces.graphql.asking import Asking, asking


class Following:
    """Followers of one psi, and how often something was executed for them."""

    def __init__(self, ask: Asking, tasks: asyncio.TaskGroup) -> None:
        self.ask = ask
        self.executed = 0
        self.channels = Channels(self._start)
        self._tasks = tasks
        self._started: list[asyncio.Task[None]] = []

    def _start(self, work: Any) -> asyncio.Task[None]:
        task = self._tasks.create_task(work)
        self._started.append(task)
        return task

    async def follow(
        self, text: str, variables: dict[str, Any] | None = None, *, limit: int = 256, caller: Caller | None = None
    ) -> Follower:
        subscribed = await self.ask.subscribe(text, variables, caller or Caller())
        payload = Subscribed.payload

        async def counted(value: Any) -> str:
            self.executed += 1
            return await payload(subscribed, value)

        follower = self.channels.follow(_Counted(subscribed, counted), limit, lambda: None)  # type: ignore[arg-type]
        await settle()
        return follower

    async def pass_time(self, seconds: float = 1) -> None:
        await self.ask.clock.advance(seconds)
        await settle()

    def close(self) -> None:
        for task in self._started:
            task.cancel()


class _Counted:
    """A subscription whose executions are counted."""

    def __init__(self, subscribed: Subscribed, payload: Any) -> None:
        self.key, self.source, self.payload = subscribed.key, subscribed.source, payload


def taken(follower: Follower) -> list[Any]:
    """What has come, and for each how many were lost before it."""
    found = []
    while len(follower):
        text, missed = follower.take()
        found.append((json.loads(text)["data"], missed) if missed else json.loads(text)["data"])
    return found


class _Open:
    async def __aenter__(self) -> Following:
        self._asking = asking()
        self._tasks = asyncio.TaskGroup()
        ask = await self._asking.__aenter__()
        await self._tasks.__aenter__()
        self._following = Following(ask, self._tasks)
        return self._following

    async def __aexit__(self, *failure: Any) -> None:
        self._following.close()
        await self._tasks.__aexit__(*failure)
        await self._asking.__aexit__(*failure)


def following() -> _Open:
    return _Open()


SCHEDULES = "subscription($s: ID!) { schedules(sessionId: $s) { status } }"


async def test_a_live_query_answers_now_and_when_its_answer_has_changed() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow(SCHEDULES, {"s": session})
        assert taken(follower) == [{"schedules": []}]
        await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time()
        assert taken(follower) == [{"schedules": [{"status": "PENDING"}]}]
        await here.pass_time(60)
        assert taken(follower)[-1] == {"schedules": [{"status": "DELIVERED"}]}


async def test_a_change_elsewhere_does_not_run_it_again() -> None:
    async with following() as here:
        mine, theirs = await here.ask.session(), await here.ask.session()
        follower = await here.follow(
            "subscription($s: ID!) { session(id: $s) { phase messageCount runs { state } "
            "schedulerSchedules { status originSession { phase } } } }",
            {"s": mine},
        )
        assert here.executed == 1
        await here.ask.schedule(theirs, delay_ms=1_000)
        await here.ask.psi.tool({"action": "session", "op": "submit", "message": "/say hi"}, theirs)
        await here.pass_time(5)
        await here.ask.session("another")
        await here.pass_time()
        assert here.executed == 1
        await here.ask.schedule(mine)
        await here.pass_time()
        assert here.executed == 2
        assert len(taken(follower)) == 2


async def test_an_answer_that_stays_the_same_is_not_sent_again() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow("subscription($s: ID!) { session(id: $s) { sessionName } }", {"s": session})
        await here.ask.psi.tool({"action": "session", "op": "submit", "message": "/say hi"}, session)
        await here.pass_time()
        assert here.executed > 1
        assert taken(follower) == [{"session": {"sessionName": "First"}}]


async def test_a_burst_of_changes_is_seen_together() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow(SCHEDULES, {"s": session})
        for _ in range(40):
            await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time()
        assert here.executed <= 3
        assert len(taken(follower)[-1]["schedules"]) == 40


async def test_a_live_query_in_eql_knows_what_it_reads_too() -> None:
    async with following() as here:
        mine, theirs = await here.ask.session(), await here.ask.session()
        query = f'[{{[:psi.agent-session/session-id "{mine}"] [:psi.scheduler/pending-count]}}]'
        follower = await here.follow("subscription($q: EQL!) { live(query: $q) }", {"q": query})
        await here.ask.schedule(theirs)
        await here.pass_time()
        assert here.executed == 1
        await here.ask.schedule(mine)
        await here.pass_time()
        counts = [next(iter(each["live"].values()))["psi.scheduler/pending-count"] for each in taken(follower)]
        assert counts == [0, 1]


async def test_a_list_of_sessions_follows_those_that_come_and_go() -> None:
    async with following() as here:
        follower = await here.follow("subscription { sessions { sessionName } }")
        session = await here.ask.session("One")
        await here.pass_time()
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.pass_time()
        assert taken(follower) == [{"sessions": []}, {"sessions": [{"sessionName": "One"}]}, {"sessions": []}]


async def test_a_session_that_is_not_there_yet_is_seen_when_it_comes() -> None:
    async with following() as here:
        follower = await here.follow('subscription { sessions(filter: {nameContains: "late"}) { sessionName } }')
        await here.ask.session("Too late")
        await here.pass_time()
        assert taken(follower)[-1] == {"sessions": [{"sessionName": "Too late"}]}


async def test_a_live_query_whose_subject_goes_says_so_and_goes_on() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow(SCHEDULES, {"s": session})
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.pass_time()
        texts = [follower.take()[0] for _ in range(len(follower))]
        assert json.loads(texts[-1])["errors"][0]["extensions"]["code"] == "session/not-found"
        assert not follower.done


async def test_equal_subscriptions_share_one_execution() -> None:
    async with following() as here:
        session = await here.ask.session()
        followers = [await here.follow(SCHEDULES, {"s": session}) for _ in range(20)]
        assert here.executed == 1
        await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time()
        assert here.executed == 2
        for follower in followers:
            assert taken(follower) == [{"schedules": []}, {"schedules": [{"status": "PENDING"}]}]


async def test_users_never_share_an_execution() -> None:
    async with following() as here:
        await here.ask.session("Local's")
        text = "subscription { sessions { sessionName } }"
        everybody = await here.follow(text)
        alice = await here.follow(text, caller=Caller(user="alice"))
        assert taken(everybody) == [{"sessions": [{"sessionName": "Local's"}]}]
        assert taken(alice) == [{"sessions": []}]


async def test_nothing_is_executed_for_nobody() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow(SCHEDULES, {"s": session})
        follower.leave()
        await settle()
        await here.ask.schedule(session)
        await here.pass_time()
        assert here.executed == 1
        assert len(here.channels) == 0
        assert len(here.ask.psi._engine.interest) == 0


CHANGED = "subscription($s: ID!) { scheduleChanged(sessionId: $s) { status deliveryPhase } }"


async def test_each_change_is_told_as_it_was() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow(CHANGED, {"s": session})
        await here.ask.schedule(session, delay_ms=1_000)
        await here.pass_time(2)
        assert [each["scheduleChanged"] for each in taken(follower)] == [
            {"status": "PENDING", "deliveryPhase": None},
            {"status": "PENDING", "deliveryPhase": "PROMPT_SUBMIT"},
            {"status": "DELIVERED", "deliveryPhase": None},
        ]


async def test_a_slow_follower_is_bounded_and_told_what_it_missed() -> None:
    async with following() as here:
        session = await here.ask.session()
        slow = await here.follow(CHANGED, {"s": session}, limit=3)
        quick = await here.follow(CHANGED, {"s": session}, limit=100)
        for _ in range(10):
            await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time(0)
        assert [each[1] if isinstance(each, tuple) else 0 for each in taken(slow)] == [7, 0, 0]
        assert len(taken(quick)) == 10


async def test_a_follower_of_large_answers_is_bounded_by_their_size() -> None:
    async with following() as here:
        session = await here.ask.session()
        slow = await here.follow(
            "subscription($s: ID) { scheduleChanged(sessionId: $s) { message } }", {"s": session}, limit=100
        )
        for _ in range(12):
            await here.ask.schedule(session, message="x" * 1_000_000, delay_ms=60_000)
        await here.pass_time(0)
        found = taken(slow)
        assert len(found) == 8
        assert found[0][1] == 4


EVENTS = "subscription($s: ID, $after: Long) { sessionEvents(sessionId: $s, after: $after) { seq type } }"


async def test_who_comes_back_gets_what_was_missed_and_nothing_twice() -> None:
    async with following() as here:
        session = await here.ask.session()
        watching = await here.follow(EVENTS, {"s": session})
        await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time(0)
        last = taken(watching)[-1]["sessionEvents"]["seq"]
        for _ in range(3):
            await here.ask.schedule(session, delay_ms=60_000)
        back = await here.follow(EVENTS, {"s": session, "after": last})
        await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time(0)
        remembered = [told.seq for told in back.backlog]
        live = [each["sessionEvents"]["seq"] for each in taken(back)]
        assert remembered + live == [each["sessionEvents"]["seq"] for each in taken(watching)]
        assert len(remembered) == 3
        assert len(live) == 1


async def test_who_comes_back_too_late_is_told_of_the_gap() -> None:
    async with following() as here:
        session = await here.ask.session()
        for _ in range(2_200):
            schedule = await here.ask.schedule(session)
            await here.ask.psi.tool({"action": "scheduler", "op": "cancel", "schedule-id": schedule}, session)
        back = await here.follow(EVENTS, {"s": session, "after": 1})
        assert back.missed > 0


async def frames(source: Any) -> AsyncIterator[Any]:
    async for value in source:
        yield value


async def test_a_run_is_followed_from_its_beginning_to_its_end() -> None:
    async with following() as here:
        session = await here.ask.session()
        begun = await here.ask.psi.tool({"action": "session", "op": "submit", "message": "/say a b\n/wait 5s"}, session)
        run = begun["psi-tool/session"]["run-id"]
        text = "subscription($r: ID!, $after: Long! = 0) { runEvents(runId: $r, after: $after) { seq type data } }"
        await settle()
        whole = await here.follow(text, {"r": run})
        rest = await here.follow(text, {"r": run, "after": 2})
        await here.pass_time(6)
        seen = [each.seq for each in whole.backlog] + [each["runEvents"]["seq"] for each in taken(whole)]
        assert seen == [1, 2, 3, 4]
        assert whole.done
        assert [each.seq for each in rest.backlog] + [each["runEvents"]["seq"] for each in taken(rest)] == [3, 4]
        for after, missed in ((0, 3), (2, 1), (3, 0)):
            afterwards = await here.follow(text, {"r": run, "after": after})
            (ended,) = afterwards.backlog
            told = json.loads(await afterwards.payload(ended.value))["data"]["runEvents"]
            assert (told["seq"], told["type"], afterwards.missed) == (4, "stream_end", missed)
        for after in (4, 50):
            nothing = await here.follow(text, {"r": run, "after": after})
            await here.pass_time(0)
            assert (list(nothing.backlog), nothing.missed, nothing.done) == ([], 0, True)


async def test_a_run_that_ends_before_anybody_listens_is_still_told_whole() -> None:
    async with following() as here:
        session = await here.ask.session()
        begun = await here.ask.psi.tool({"action": "session", "op": "submit", "message": "/say a\n/wait 5s"}, session)
        text = "subscription($r: ID!) { runEvents(runId: $r) { seq type } }"
        await settle()
        subscribed = await here.ask.subscribe(text, {"r": begun["psi-tool/session"]["run-id"]})
        await here.pass_time(6)
        follower = here.channels.follow(subscribed, 100, lambda: None)
        assert [each.seq for each in follower.backlog] == [1, 2, 3]


async def test_each_event_of_a_subscription_is_counted_by_itself() -> None:
    async with following() as here:
        session = await here.ask.session()
        wide = " ".join(f"a{place}: seq" for place in range(1_900))
        follower = await here.follow(f"subscription {{ sessionEvents {{ {wide} }} }}")
        for _ in range(20):
            await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time(0)
        assert len(taken(follower)) == 20
