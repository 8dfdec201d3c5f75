from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from psi.core.commands import Caller
from psi.engine.clock import settle
from psi.faces.graphql.channels import Channels, Follower
from psi.faces.graphql.operations import Subscribed
from psi.faces.graphql.sources import Events
from psi.store import MemoryStore
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


@pytest.mark.parametrize("name", ["schedules", "runs"])
async def test_a_live_query_about_a_session_that_is_closed_says_so_and_ends(name: str) -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow(
            f"subscription($s: ID!) {{ {name}(sessionId: $s) {{ __typename }} }}", {"s": session}
        )
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.pass_time()
        texts = [follower.take()[0] for _ in range(len(follower))]
        assert json.loads(texts[-1])["errors"][0]["extensions"]["code"] == "session/not-found"
        assert follower.done


async def test_a_live_query_for_a_session_that_is_closed_is_null_at_its_end() -> None:
    async with following() as here:
        session = await here.ask.session()
        follower = await here.follow("subscription($s: ID!) { session(id: $s) { sessionName } }", {"s": session})
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.pass_time()
        assert taken(follower) == [{"session": {"sessionName": "First"}}, {"session": None}]
        assert follower.done
        assert len(here.ask.psi._engine.interest) == 0


@pytest.mark.parametrize("name", ["eql", "live"])
async def test_a_live_query_in_eql_ends_with_the_session_that_it_starts_from(name: str) -> None:
    async with following() as here:
        session, other = await here.ask.session(), await here.ask.session()
        text = f'subscription($e: JSON) {{ {name}(query: "[:psi.system/version]", entity: $e) }}'
        by_entity = await here.follow(text, {"e": f'{{:psi.agent-session/session-id "{session}"}}'})
        by_caller = await here.follow(text, caller=Caller(session))
        others = await here.follow(text, caller=Caller(other))
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.pass_time()
        assert (by_entity.done, by_caller.done, others.done) == (True, True, False)


async def test_the_events_of_a_session_end_with_it() -> None:
    async with following() as here:
        session = await here.ask.session()
        events, changes = await here.follow(EVENTS, {"s": session}), await here.follow(CHANGED, {"s": session})
        everything = await here.follow(EVENTS)
        await here.ask.schedule(session, delay_ms=60_000)
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.pass_time()
        assert taken(events)[-1]["sessionEvents"]["type"] == "session-closed"
        assert [each["scheduleChanged"]["status"] for each in taken(changes)] == ["PENDING", "CANCELLED"]
        assert (events.done, changes.done, everything.done) == (True, True, False)


async def test_the_last_events_of_a_session_are_told_when_it_is_closed_already() -> None:
    async with following() as here:
        session, other = await here.ask.session(), await here.ask.session()
        watching = await here.follow(EVENTS, {"s": session})
        await here.ask.schedule(session, delay_ms=60_000)
        await here.pass_time(0)
        last = taken(watching)[-1]["sessionEvents"]["seq"]
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        await here.ask.schedule(other, delay_ms=60_000)
        await here.pass_time(0)
        back = await here.follow(EVENTS, {"s": session, "after": last})
        told = [json.loads(await back.payload(each.value))["data"]["sessionEvents"] for each in back.backlog]
        assert told == [each["sessionEvents"] for each in taken(watching)]
        assert told[-1]["type"] == "session-closed"
        assert (back.missed, back.done) == (0, True)


@pytest.mark.parametrize("caller", [Caller(), Caller(user="local"), Caller(user="alice")])
async def test_who_may_not_see_a_session_is_told_nothing_of_its_end(caller: Caller) -> None:
    async with following() as here:
        session = await here.ask.session()
        await here.ask.psi.tool({"action": "session", "op": "close"}, session)
        found = await here.ask.refusal(EVENTS, {"s": session, "after": 0}, caller)
        assert (found is None) is (caller.user != "alice")
        assert (found or {}).get("code", "session/not-found") == "session/not-found"
        newest = here.ask.psi.service.seq
        for after in (None, newest):  # nothing is left to tell
            refused = await here.ask.refusal(EVENTS, {"s": session, "after": after}, caller)
            assert refused is not None
            assert refused["code"] == "session/not-found"


NEVER = {
    "EQL that is none": ('live(query: "[:a")', "edn/read"),
    "EQL that changes something": ('live(query: "[(psi.agent-session/create {})]")', "graphql/eql-mutation"),
    "the same under its other name": ('eql(query: "[(psi.agent-session/create {})]")', "graphql/eql-mutation"),
    "an entity that is no map": ('live(query: "[:a]", entity: [1])', "psi-tool/invalid-map"),
    "an entity that cannot be read": ('live(query: "[:a]", entity: "{:a")', "psi-tool/invalid-map"),
    "a query that is too large": (
        f'live(query: "[{" ".join(f":a/b{place}" for place in range(5_001))}]")',
        "graph/limit-exceeded",
    ),
    "a page of nothing": ("sessions(limit: 0) { phase }", "graphql/invalid-limit"),
    "a page behind what is none": ('sessions(after: "ses-none") { phase }', "graphql/invalid-cursor"),
    "schedules of nobody": ('schedules(sessionId: "ses-none") { status }', "session/not-found"),
    "runs of nobody": ('runs(sessionId: "ses-none") { state }', "session/not-found"),
    "a run of nobody": ('runEvents(runId: "run-none") { seq }', "run/not-found"),
}


@pytest.mark.parametrize("name", NEVER)
async def test_what_can_never_be_answered_is_refused_when_it_is_subscribed_to(name: str) -> None:
    text, code = NEVER[name]
    async with following() as here:
        refused = await here.ask.refusal(f"subscription {{ {text} }}")
        assert refused is not None
        assert refused["code"] == code
        assert len(here.ask.psi._engine.interest) == 0


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


async def test_a_gap_that_no_event_can_carry_is_an_event_itself() -> None:
    store = MemoryStore()
    async with asking(store=store) as before:
        session = await before.session()
        last = before.psi.service.seq
    async with asking(store=store) as after:
        newest = after.psi.service.seq
        text = EVENTS.replace("seq type", "seq type sessionId at data")
        for named in (session, None):
            back = await after.subscribe(text, {"s": named, "after": last})
            assert isinstance(back.source, Events)
            found = back.source.backlog()
            (gap,) = found.told
            assert (gap.seq, found.since, found.missed) == (newest, newest, 1)
            assert json.loads(await back.payload(gap.value))["data"]["sessionEvents"] == {
                "seq": newest,
                "type": "gap",
                "sessionId": named,
                "at": "2026-01-01T00:00:00Z",
                "data": {"missed": None},
            }
            again = await after.subscribe(text, {"s": named, "after": newest})
            assert isinstance(again.source, Events)
            assert again.source.backlog() == ([], newest, 0)


async def test_what_only_happens_is_not_looked_at_again() -> None:
    async with following() as here:
        session = await here.ask.session()
        text = "subscription { scheduleChanged { status originSession { phase runs { state } } } }"
        follower = await here.follow(text)
        begun = await here.ask.psi.tool({"action": "session", "op": "submit", "message": "/say hi"}, session)
        await here.ask.schedule(session)
        await here.pass_time(10)
        ended = await here.follow(
            "subscription($r: ID!) { runEvents(runId: $r) { seq } }", {"r": begun["psi-tool/session"]["run-id"]}
        )
        assert len(taken(follower)) > 1
        assert ended.done
        assert len(here.ask.psi._engine.interest) == 0


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
