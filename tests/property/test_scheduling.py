"""Random lives of sessions and schedules, against a model written from the specification and nothing else.

Nothing fires early, nothing fires twice, what was cancelled is never delivered, the queue drains in the order of its
plans, and what the graph counts is what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from psi.core.clock import read_instant
from psi.engine import VirtualClock
from tests.runtime.world import Gated, World, world

T = TypeVar("T")

CAP = 50
KINDS = st.sampled_from(["message", "message", "message", "session"])
DELAYS = st.sampled_from([1000, 1000, 1500, 2000, 2500, 4000])


@dataclass
class Planned:
    session: str
    kind: str
    message: str
    due: int  # milliseconds that must have passed
    fire_at: datetime
    created_at: datetime
    status: str = "pending"


class Scheduling(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.clock = VirtualClock()
        self.agent = Gated(self.clock)
        self.named = 0
        self.here: World = self.run(
            self.stack.enter_async_context(world(self.agent, self.clock, new_id=self.new_id, grace=0))
        )
        self.passed = 0
        self.busy: dict[str, bool] = {}
        self.plans: dict[str, Planned] = {}
        self.closed: set[str] = set()
        self.delivered: dict[str, list[str]] = {}  # session → scheduled prompts, in the order of their delivery
        self.serial = 0

    def new_id(self, prefix: str) -> str:
        """The same names in every run, but not in the order in which they are given."""
        self.named += 1
        return f"{prefix}{self.named * 7919 % 10007:05}"

    def run(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(asyncio.ensure_future(work, loop=self.loop))

    def settle(self) -> None:
        self.run(self.clock.advance(0))

    def pick(self, data: st.DataObject, names: Any) -> str:
        found: str = data.draw(st.sampled_from(list(names)))
        return found

    # -- what can happen

    @initialize()
    def two_sessions(self) -> None:
        for _ in range(2):
            self.open_a_session()

    @precondition(lambda self: len(self.busy) < 3)
    @rule()
    def open_a_session(self) -> None:
        self.busy[self.run(self.here.session())] = False

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), kind=KINDS, delays=st.lists(DELAYS, min_size=1, max_size=4), past=st.booleans())
    def create(self, data: st.DataObject, kind: str, delays: list[int], past: bool) -> None:
        session = self.pick(data, self.busy)
        for delay in delays:
            self.create_one(session, kind, delay, past)

    def create_one(self, session: str, kind: str, delay: int, past: bool) -> None:
        self.serial += 1
        message = f"prompt {self.serial}"
        wall = self.clock.now().wall
        request: dict[str, Any] = {"action": "scheduler", "op": "create", "kind": kind, "message": message}
        request |= {"session-config": {}} if kind == "session" else {}
        if past and self.serial % 4 == 0:
            ahead = -delay
            request["at"] = (wall + timedelta(milliseconds=ahead)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        else:
            ahead = delay
            request["delay-ms"] = delay
        answer = self.run(self.here.psi.tool(request, session))
        if sum(p.session == session and p.status in ("pending", "queued") for p in self.plans.values()) >= CAP:
            assert answer["psi-tool/error"]["message"] == "scheduler pending cap exceeded"
            return
        told = answer["psi-tool/scheduler"]["schedule"]
        assert told["status"] == "pending"
        fire_at, created_at = read_instant(told["fire-at"]), read_instant(told["created-at"])
        assert created_at == wall
        assert fire_at == wall + timedelta(milliseconds=ahead)
        due = self.passed + max(ahead, 0)
        self.plans[told["schedule-id"]] = Planned(session, kind, message, due, fire_at, created_at)
        if ahead < 0:
            self.let_time_pass(0)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), delays=st.lists(DELAYS, min_size=2, max_size=4), ends=st.integers(0, 3))
    def a_queue_builds_up(self, data: st.DataObject, delays: list[int], ends: int) -> None:
        """What chance alone would rarely bring about: several wait for one session, and some of them get their turn."""
        session = self.pick(data, self.busy)
        self.writes(session)
        for delay in delays:
            self.create_one(session, "message", delay, past=False)
        self.let_time_pass(5000)
        for _ in range(ends):
            if self.busy[session]:
                self.ends(session)

    @precondition(lambda self: self.busy)
    @rule(data=st.data())
    def a_user_writes(self, data: st.DataObject) -> None:
        self.writes(self.pick(data, self.busy))

    def writes(self, session: str) -> None:
        request = {"action": "session", "op": "submit", "message": "from a user"}
        answer = self.run(self.here.psi.tool(request, session))
        assert answer["psi-tool/overall-status"] == ("error" if self.busy[session] else "ok")
        self.busy[session] = True
        self.settle()

    @precondition(lambda self: any(self.busy.values()))
    @rule(data=st.data())
    def a_turn_ends(self, data: st.DataObject) -> None:
        self.ends(self.pick(data, [name for name, busy in self.busy.items() if busy]))

    def ends(self, session: str) -> None:
        self.agent.let_go(session)
        self.settle()
        waiting = [
            (plan.fire_at, plan.created_at, name)
            for name, plan in self.plans.items()
            if plan.session == session and plan.status == "queued"
        ]
        if waiting:
            self.is_delivered(min(waiting)[2], session)
        else:
            self.busy[session] = False

    @precondition(lambda self: self.plans)
    @rule(data=st.data(), own=st.booleans())
    def cancel(self, data: st.DataObject, own: bool) -> None:
        name = self.pick(data, self.plans)
        plan = self.plans[name]
        session = plan.session if own else next((other for other in self.busy if other != plan.session), plan.session)
        if session in self.closed:
            return
        answer = self.run(self.here.cancel(session, name))
        if session != plan.session:
            assert answer["psi-tool/error"]["message"] == "schedule not found"
        elif plan.status in ("pending", "queued"):
            assert answer["psi-tool/scheduler"]["cancelled?"] is True
            plan.status = "cancelled"
        else:
            assert answer["psi-tool/error"]["message"] == "schedule is not cancellable"
            assert answer["psi-tool/error"]["data"] == {"schedule-id": name, "status": plan.status}

    @precondition(lambda self: len(self.busy) > 2)
    @rule(data=st.data())
    def close_a_session(self, data: st.DataObject) -> None:
        session = self.pick(data, self.busy)
        closing = self.loop.create_task(self.here.ok({"action": "session", "op": "close"}, session))
        self.settle()
        if self.busy[session]:
            self.agent.let_go(session)
        self.run(closing)
        del self.busy[session]
        self.closed.add(session)
        for plan in self.plans.values():
            if plan.session == session and plan.status in ("pending", "queued"):
                plan.status = "cancelled"

    @rule(ms=st.sampled_from([0, 1, 999, 1000, 1500, 5000]))
    def let_time_pass(self, ms: int) -> None:
        self.run(self.clock.advance(ms / 1000))
        self.passed += ms
        due = [(p.due, p.fire_at, p.created_at, name) for name, p in self.plans.items() if p.due <= self.passed]
        for _, _, _, name in sorted(due):
            plan = self.plans[name]
            if plan.status != "pending":
                continue
            if plan.kind == "session":
                created = self.run(self.here.of(name, "created-session-id"))
                assert created is not None
                assert created not in self.busy
                self.is_delivered(name, created)
            elif self.busy[plan.session]:
                plan.status = "queued"
            else:
                self.is_delivered(name, plan.session)

    @rule(hours=st.sampled_from([-30, -1, 1, 30]))
    def somebody_sets_the_wall_clock(self, hours: int) -> None:
        self.clock.set_wall(self.clock.now().wall + timedelta(hours=hours))
        self.settle()

    def is_delivered(self, name: str, session: str) -> None:
        plan = self.plans[name]
        plan.status = "delivered"
        self.busy[session] = True
        self.delivered.setdefault(session, []).append(plan.message)

    # -- what must be true whatever happened

    @invariant()
    def the_graph_agrees(self) -> None:
        for name, plan in self.plans.items():
            assert self.run(self.here.of(name, "status")) == plan.status
        for session, busy in self.busy.items():
            own = {name: plan for name, plan in self.plans.items() if plan.session == session}
            still_open = {name for name, plan in own.items() if plan.status in ("pending", "queued")}
            query = "[:psi.scheduler/pending-count :psi.agent-session/is-idle {:psi.scheduler/schedules [*]}]"
            answer = self.run(self.here.ask(session, query))
            assert answer["psi.scheduler/pending-count"] == len(still_open)
            assert answer["psi.agent-session/is-idle"] is not busy
            assert {each["psi.scheduler/schedule-id"] for each in answer["psi.scheduler/schedules"]} == set(own)
            listed = [each["schedule-id"] for each in self.run(self.here.listed(session))]
            assert listed == sorted(still_open, key=lambda name: (own[name].fire_at, own[name].created_at, name))

    @invariant()
    def every_prompt_arrives_once_in_its_place_and_never_early(self) -> None:
        due = {plan.message: plan.due for plan in self.plans.values()}
        arrived: dict[str, list[str]] = {}
        for session, prompt, tick in self.agent.asked:
            if prompt in due:
                arrived.setdefault(session, []).append(prompt)
                assert tick >= due[prompt] * 1_000_000
        assert arrived == self.delivered

    def teardown(self) -> None:
        asked = len(self.agent.asked)
        self.run(self.stack.aclose())
        self.run(self.clock.advance(100))
        self.loop.close()
        assert len(self.agent.asked) == asked  # nothing fires after the end


TestScheduling = Scheduling.TestCase
TestScheduling.settings = settings(max_examples=60, stateful_step_count=40)
