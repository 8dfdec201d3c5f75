"""One suite for every face: the same stories in process, over HTTP in JSON and EDN, in EQL, in GraphQL and on the
command line. A story is written once and asserts the same everywhere."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from psi.core.clock import instant_text
from tests.contract.faces import (
    FACES,
    INVALID,
    PREVIEW,
    USAGE,
    Face,
    Opened,
    Problem,
    Refusal,
    Scheduled,
    done,
)
from tests.faces.serving import Served, serving

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86_400_000
RAW = {"kind": "message", "message": "later", "delay-ms": 1000}


@dataclass(frozen=True)
class Place:
    """A psi that is served, on a clock that is moved by hand, and one way to it."""

    name: str
    served: Served
    face: Face

    async def session(self, name: str | None = None) -> str:
        opened: Opened = done(await self.face.open(name))
        return opened.id

    async def schedule(self, session: str, message: str = "later", delay_ms: int = 1000, **keys: Any) -> Scheduled:
        keys = {"kind": "message", "message": message, **({} if "at" in keys else {"delay_ms": delay_ms}), **keys}
        found: Scheduled = done(await self.face.create(session, **keys))
        return found

    async def listed(self, session: str) -> list[Scheduled]:
        found: list[Scheduled] = done(await self.face.scheduled(session))
        return found

    async def looked(self, schedule: Scheduled) -> Scheduled:
        found = await self.face.look(schedule.id)
        assert found is not None
        return found

    async def ready(self, schedules: int = 1) -> str:
        """A session that has this many schedules. Made from inside: how they came about is not the story, and on the
        command line it would be a process for each."""
        made = await self.served.psi.tool({"action": "session", "op": "create"})
        session: str = made["psi-tool/session"]["session"]["session-id"]
        for _ in range(schedules):
            await self.served.psi.tool({"action": "scheduler", "op": "create", **RAW}, session)
        return session

    async def pass_time(self, seconds: float) -> None:
        await self.served.clock.advance(seconds)

    async def everything(self) -> Any:
        """All that a refusal could have changed, seen from inside."""
        context = self.served.psi.service.context()
        sessions = list(context.sessions())
        return (
            sessions,
            [list(context.schedules(each.id)) for each in sessions],
            [list(await context.messages(each.id)) for each in sessions],
            self.served.psi.service.seq,
        )


@pytest.fixture(params=FACES)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    async with serving() as served:
        yield Place(request.param, served, FACES[request.param](served))


def at(ms: float) -> str:
    return (START + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# -- sessions


async def test_a_session_is_created_and_stands_in_the_list(place: Place) -> None:
    first = done(await place.face.open("First"))
    assert first == Opened(first.id, "First", "idle", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    assert re.fullmatch(r"ses-[0-9a-f-]{36}", first.id)
    second = done(await place.face.open())
    assert second.name is None
    assert await place.face.sessions() == [first, second]


async def test_a_session_is_what_its_config_says(place: Place) -> None:
    preloaded = [{"role": "user", "content": "Earlier."}]
    config = {"session-name": "Configured", "thinking-level": "low", "preloaded-messages": preloaded}
    session = done(await place.face.open(config=config))
    assert session.name == "Configured"
    found = done(await place.face.ask(session.id, "[:psi.agent-session/thinking-level]"))
    assert found == {"psi.agent-session/thinking-level": "low"}
    assert [(role, text) for role, text, _ in await place.face.history(session.id)] == [("user", "Earlier.")]


async def test_a_session_with_a_bad_name_or_config_is_not_created(place: Place) -> None:
    blank = await place.face.open(" ")
    assert isinstance(blank, Refusal)
    assert blank.code == "session/invalid-name"
    wrong = await place.face.open(config={"thinking-level": "fierce", "session-name": ""})
    assert isinstance(wrong, Refusal)
    assert wrong.code == "session-config/invalid"
    assert {each.path for each in wrong.problems} == {"thinking-level", "session-name"}
    assert await place.face.sessions() == []


# -- schedules: create, list, cancel


async def test_a_schedule_of_kind_message_is_created_listed_and_cancelled(place: Place) -> None:
    session = await place.session("Origin")
    made = await place.schedule(session, "Check the build.", 600_000, label="build")
    expected = Scheduled(
        id=made.id,
        kind="message",
        label="build",
        message="Check the build.",
        status="pending",
        created_at="2026-01-01T00:00:00Z",
        fire_at="2026-01-01T00:10:00Z",
        origin=session,
        created_session=None,
        phase=None,
        error=None,
        config=None,
    )
    assert re.fullmatch(r"sch-[0-9a-f-]{36}", made.id)
    assert made == expected
    assert await place.listed(session) == [expected]
    assert await place.face.look(made.id) == expected

    gone = replace(expected, status="cancelled")
    assert await place.face.cancel(session, made.id) == gone
    assert await place.listed(session) == []
    assert await place.face.look(made.id) == gone
    await place.pass_time(601)
    assert await place.face.history(session) == []


async def test_a_schedule_of_kind_session_is_created_listed_and_cancelled(place: Place) -> None:
    session = await place.session("Origin")
    config = {
        "session-name": "Fresh",
        "system-prompt": "SECRET",
        "model": "acme:one",
        "thinking-level": "high",
        "skills": ["a", {"name": "b"}],
        "tool-ids": ["psi-tool"],
        "preloaded-messages": [{"role": "user", "content": "SECRET"}],
    }
    made = await place.schedule(session, kind="session", session_config=config)
    assert (made.kind, made.status, made.origin, made.created_session) == ("session", "pending", session, None)
    assert made.config == {
        "session-name": "Fresh",
        "model": {"provider": "acme", "id": "one"},
        "thinking-level": "high",
        "skill-count": 2,
        "tool-count": 1,
        "has-system-prompt?": True,
        "has-developer-prompt?": False,
        "preloaded-message-count": 1,
        "has-prompt-component-selection?": False,
    }
    assert await place.listed(session) == [made]
    assert done(await place.face.cancel(session, made.id)).status == "cancelled"
    await place.pass_time(2)
    assert [each.name for each in await place.face.sessions()] == ["Origin"]


async def test_the_list_is_in_the_order_of_the_plans(place: Place) -> None:
    session = await place.session()
    late = await place.schedule(session, "late", 5_000)
    early = await place.schedule(session, "early", 2_000)
    await place.pass_time(1)
    younger = await place.schedule(session, "as late, but younger", 4_000)
    by_instant = await place.schedule(session, "between", at=at(3_500))
    assert await place.listed(session) == [early, by_instant, late, younger]


async def test_schedules_that_are_alike_are_in_the_order_of_their_names(place: Place) -> None:
    session = await place.session()
    made = [await place.schedule(session) for _ in range(4)]
    assert await place.listed(session) == sorted(made, key=lambda each: each.id)


async def test_a_long_message_is_shown_in_short_by_psi_tool_and_whole_by_the_graph(place: Place) -> None:
    session = await place.session()
    text = "x" * (PREVIEW + 1)
    made = await place.schedule(session, text)
    shown = text if place.face.shows_whole_messages else f"{text[: PREVIEW - 1]}…"
    assert [each.message for each in (made, *await place.listed(session))] == [shown, shown]
    assert (await place.looked(made)).message == text


async def test_a_session_can_be_named_instead_of_invoking(place: Place) -> None:
    session = await place.session()
    made = done(await place.face.create(None, kind="message", message="x", delay_ms=1000, session_id=session))
    assert await place.listed(session) == [made]


# -- refusals


@dataclass(frozen=True)
class Rule:
    """What is given, and how it is refused: by psi, or earlier by a face that knows types of its own."""

    keys: Mapping[str, Any]
    code: str
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    sooner: Mapping[str, str] = field(default_factory=dict)  # face → a part of its own words


def given(*without: str, **keys: Any) -> dict[str, Any]:
    usual = {"kind": "message", "message": "later", "delay_ms": 1000}
    return {key: value for key, value in usual.items() if key not in without} | keys


_NOT_INT = {"GraphQL": "a Long is a 64-bit integer", "command line": "--delay-ms"}
_KIND = "scheduler create requires explicit `kind`: `message` or `session`"
_NO_INTEGER = "delay-ms must be an integer"
_BELOW, _ABOVE = "delay-ms is below the minimum bound", "delay-ms exceeds the maximum bound"
_NO_INSTANT = "scheduler `at` must be an ISO-8601 UTC instant"
_NO_MESSAGE = "scheduler create requires a non-blank `message`"

RULES = {
    "a blank message": Rule(given(message=" \n"), "scheduler/message-required", _NO_MESSAGE),
    "an empty message": Rule(given(message=""), "scheduler/message-required", _NO_MESSAGE),
    "no message": Rule(
        given("message"),
        "scheduler/message-required",
        _NO_MESSAGE,
        sooner={"GraphQL": "(message:)' of type 'String!' is required", "command line": "--message"},
    ),
    "no kind": Rule(
        given("kind"),
        "scheduler/kind-required",
        _KIND,
        {"accepted": ["message", "session"]},
        sooner={"GraphQL": "(kind:)' of type 'ScheduleKind!' is required", "command line": "--kind"},
    ),
    "an unknown kind": Rule(
        given(kind="both"),
        "scheduler/kind-required",
        _KIND,
        {"kind": "both"},
        sooner={"GraphQL": "'BOTH' does not exist in 'ScheduleKind' enum", "command line": "--kind"},
    ),
    "both times": Rule(
        given(at=at(5_000)), "scheduler/two-times", "scheduler create accepts either `delay-ms` or `at`, not both"
    ),
    "no time": Rule(given("delay_ms"), "scheduler/no-time", "scheduler create requires `delay-ms` or `at`"),
    "a delay below the minimum": Rule(
        given(delay_ms=999), "scheduler/delay-too-short", _BELOW, {"delay-ms": 999, "minimum": 1000}
    ),
    "no delay at all": Rule(given(delay_ms=0), "scheduler/delay-too-short", _BELOW, {"minimum": 1000}),
    "a delay back in time": Rule(given(delay_ms=-1), "scheduler/delay-too-short", _BELOW, {"minimum": 1000}),
    "a delay above the maximum": Rule(
        given(delay_ms=DAY + 1), "scheduler/delay-too-long", _ABOVE, {"delay-ms": DAY + 1, "maximum": DAY}
    ),
    "a delay beyond 32 bits": Rule(
        given(delay_ms=2**31),
        "scheduler/delay-too-long",
        _ABOVE,
        {"maximum": DAY},
    ),
    "a delay that is true": Rule(
        given(delay_ms=True), "scheduler/delay-not-an-integer", _NO_INTEGER, {"delay-ms": True}, sooner=_NOT_INT
    ),
    "a delay that is a fraction": Rule(
        given(delay_ms=1000.5), "scheduler/delay-not-an-integer", _NO_INTEGER, {"delay-ms": 1000.5}, sooner=_NOT_INT
    ),
    "a delay that is text": Rule(
        given(delay_ms="soon"), "scheduler/delay-not-an-integer", _NO_INTEGER, {"delay-ms": "soon"}, sooner=_NOT_INT
    ),
    "an at that is no instant": Rule(
        given("delay_ms", at="tomorrow"), "scheduler/invalid-instant", _NO_INSTANT, {"at": "tomorrow"}
    ),
    "an at without a zone": Rule(
        given("delay_ms", at="2026-01-01T00:00:05"),
        "scheduler/invalid-instant",
        _NO_INSTANT,
        {"at": "2026-01-01T00:00:05"},
    ),
    "an at in another zone": Rule(
        given("delay_ms", at="2026-01-01T02:00:05+02:00"), "scheduler/invalid-instant", _NO_INSTANT
    ),
    "an at 1 ms ahead": Rule(
        given("delay_ms", at=at(1)), "scheduler/delay-too-short", _BELOW, {"delay-ms": 1, "minimum": 1000}
    ),
    "an at 999.9 ms ahead": Rule(
        given("delay_ms", at=at(999.9)), "scheduler/delay-too-short", _BELOW, {"delay-ms": 999, "minimum": 1000}
    ),
    "an at more than a day ahead": Rule(
        given("delay_ms", at=at(DAY + 1)), "scheduler/delay-too-long", _ABOVE, {"delay-ms": DAY + 1, "maximum": DAY}
    ),
    "a label that is no text": Rule(
        given(label=5),
        "scheduler/invalid-label",
        "scheduler `label` must be a string, got 5",
        sooner={"GraphQL": "String cannot represent a non string value"},
    ),
    "a config for kind message": Rule(
        given(session_config={}), "scheduler/config-forbidden", "scheduler kind `message` forbids `session-config`"
    ),
    "a bad config for kind message": Rule(
        given(session_config={"a": 1}),
        "scheduler/config-forbidden",
        "scheduler kind `message` forbids `session-config`",
    ),
    "no config for kind session": Rule(
        given(kind="session"),
        "scheduler/config-required",
        "scheduler kind `session` requires `session-config` (a map; {} is allowed)",
    ),
    "unsupported keys": Rule(
        given(kind="session", session_config={"zeal": 1, "tool-defs": [], "session-name": "N"}),
        "session-config/invalid",
        "scheduler session-config contains unsupported keys",
        {"unsupported-keys": ["tool-defs", "zeal"]},
        {
            "tool-defs": "tool-defs: expected a supported key (did you mean `tool-ids`?), got []",
            "zeal": "zeal: expected a supported key, got 1",
        },
    ),
    "a config that is no map": Rule(
        given(kind="session", session_config=[1]),
        "session-config/invalid",
        "scheduler session-config is invalid: expected a map, or an EDN string of one, got [1]",
        problems={"": "expected a map, or an EDN string of one, got [1]"},
    ),
    "a session that is not there": Rule(
        given(session_id="ses-nowhere"), "session/not-found", "session not found", {"session-id": "ses-nowhere"}
    ),
}


def check(place: Place, rule: Rule, refusal: Any) -> None:
    assert isinstance(refusal, Refusal), refusal
    if place.name in rule.sooner:
        assert refusal.code in (INVALID, USAGE)
        assert rule.sooner[place.name] in (refusal.message or "")
        return
    assert refusal.code == rule.code
    assert {each.path: each.message for each in refusal.problems} == dict(rule.problems)
    # GraphQL tells problems one by one: path, message and code, without a sentence for all of them and without data.
    if refusal.message is not None:
        assert refusal.message == rule.message
    else:
        assert place.name == "GraphQL"
        assert refusal.problems
    if refusal.data is not None:
        assert {key: refusal.data[key] for key in rule.data} == dict(rule.data)


@pytest.mark.parametrize("about", RULES)
async def test_what_is_wrong_is_refused_in_the_same_words_and_changes_nothing(place: Place, about: str) -> None:
    if (place.name, about) == ("command line", "a label that is no text"):
        pytest.skip("whatever stands on a command line is text")
    session = await place.ready()
    before = await place.everything()
    check(place, RULES[about], await place.face.create(session, **RULES[about].keys))
    assert await place.everything() == before


async def test_all_problems_of_a_config_are_told_at_once_each_with_its_path(place: Place) -> None:
    session = await place.session()
    config = {
        "session-name": " ",
        "thinking-level": "fierce",
        "tool-ids": ["psi-tool", "hammer"],
        "preloaded-messages": [{"role": "user", "content": "x"}, {"role": "robot", "content": 5}],
    }
    before = await place.everything()
    refusal = await place.face.create(session, **given(kind="session", session_config=config))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "session-config/invalid"
    assert {each.path for each in refusal.problems} == {
        "session-name",
        "thinking-level",
        "tool-ids[1]",
        "preloaded-messages[1].role",
        "preloaded-messages[1].content",
    }
    role = next(each for each in refusal.problems if each.path == "preloaded-messages[1].role")
    assert isinstance(role, Problem)
    assert "expected" in role.message
    assert '"robot"' in role.message
    assert await place.everything() == before


async def test_without_a_session_nothing_is_scheduled(place: Place) -> None:
    words = "psi-tool scheduler action requires invoking or explicit `session-id`"
    for refusal in (await place.face.create(None, **given()), await place.face.cancel(None, "sch-x")):
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.message) == ("session/required", words)


async def test_an_invoking_session_that_is_not_there_is_told(place: Place) -> None:
    face, nobody = place.face, "ses-nowhere"
    answers = [
        await face.create(nobody, **given()),
        await face.scheduled(nobody),
        await face.cancel(nobody, "sch-x"),
        await face.submit(nobody, "x"),
        await face.stop(nobody),
        await face.close(nobody),
    ]
    for refusal in answers:
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.message) == ("session/not-found", "session not found")


async def test_a_schedule_of_another_session_is_not_found_and_not_touched(place: Place) -> None:
    one, other = await place.session(), await place.session()
    schedule = await place.schedule(one)
    before = await place.everything()
    theirs, nobodys = await place.face.cancel(other, schedule.id), await place.face.cancel(other, "sch-nowhere")
    for refusal in (theirs, nobodys):
        assert isinstance(refusal, Refusal)
        assert (refusal.code, refusal.message) == ("scheduler/not-found", "schedule not found")
    assert await place.listed(other) == []
    assert await place.everything() == before


async def test_what_was_cancelled_cannot_be_cancelled_again(place: Place) -> None:
    session = await place.session()
    schedule = await place.schedule(session)
    done(await place.face.cancel(session, schedule.id))
    before = await place.everything()
    refusal = await place.face.cancel(session, schedule.id)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.message) == ("scheduler/not-cancellable", "schedule is not cancellable")
    if refusal.data is not None:
        assert refusal.data == {"schedule-id": schedule.id, "status": "cancelled"}
    assert await place.everything() == before


async def test_the_fifty_first_is_refused_until_one_has_gone(place: Place) -> None:
    session, other = await place.ready(50), await place.session()
    before = await place.everything()
    refusal = await place.face.create(session, **given())
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.message) == ("scheduler/cap-exceeded", "scheduler pending cap exceeded")
    if refusal.data is not None:
        assert refusal.data == {"cap": 50}
    assert await place.everything() == before
    await place.schedule(other)
    await place.face.cancel(session, (await place.listed(session))[0].id)
    await place.schedule(session)
    assert await place.face.pending_count(session) == 50


# -- time passes


@pytest.mark.parametrize("ms", [-60_000, 0, 0.999], ids=["past", "now", "almost now"])
async def test_an_instant_that_is_not_ahead_fires_at_once(place: Place, ms: float) -> None:
    session = await place.session()
    schedule = await place.schedule(session, "now", at=at(ms))
    assert schedule.fire_at == instant_text(START + timedelta(milliseconds=ms))
    await place.pass_time(0)
    assert (await place.looked(schedule)).status == "delivered"
    assert ("user", "now", "scheduled") in await place.face.history(session)


async def test_a_message_is_delivered_into_an_idle_session(place: Place) -> None:
    session = await place.session()
    schedule = await place.schedule(session, "Check.", 2_000, label="L")
    await place.pass_time(1.999)
    assert (await place.looked(schedule)).status == "pending"
    assert await place.face.history(session) == []
    await place.pass_time(0.001)
    delivered = await place.looked(schedule)
    assert delivered == replace(schedule, status="delivered", phase=delivered.phase)
    told = await place.face.history(session)
    assert told[0] == ("user", "Check.", "scheduled")
    assert told[1][:2] == ("assistant", "You said: Check.")
    assert await place.listed(session) == []


async def test_a_busy_session_takes_its_messages_one_after_the_other_when_it_is_free(place: Place) -> None:
    session = await place.session()
    done(await place.face.submit(session, "/wait 10s\n/say first"))
    second = await place.schedule(session, "second planned", 3_000)
    first = await place.schedule(session, "first planned", 2_000)
    await place.pass_time(5)
    assert [(each.id, each.status) for each in await place.listed(session)] == [
        (first.id, "queued"),
        (second.id, "queued"),
    ]
    assert await place.face.pending_count(session) == 2
    cancelled = await place.schedule(session, "never", 1_000)
    await place.pass_time(1)
    assert done(await place.face.cancel(session, cancelled.id)).status == "cancelled"
    await place.pass_time(5)
    assert await place.listed(session) == []
    asked = [text for role, text, _ in await place.face.history(session) if role == "user"]
    assert asked == ["/wait 10s\n/say first", "first planned", "second planned"]


async def test_a_schedule_of_kind_session_opens_one_although_its_origin_is_busy(place: Place) -> None:
    origin = await place.session("Origin")
    done(await place.face.submit(origin, "/wait 60s"))
    config = {"session-name": "Fresh", "preloaded-messages": [{"role": "assistant", "content": "Before."}]}
    schedule = await place.schedule(origin, "Go.", kind="session", label="L", session_config=config)
    await place.pass_time(1)
    delivered = await place.looked(schedule)
    assert (delivered.status, delivered.phase) == ("delivered", "prompt-submit")
    fresh = next(each for each in await place.face.sessions() if each.name == "Fresh")
    assert delivered.created_session == fresh.id
    assert [text for _, text, _ in await place.face.history(fresh.id)] == ["Before.", "Go.", "You said: Go."]
    space = "psi.agent-session"
    query = f"[:{space}/scheduled-origin-session-id :{space}/scheduled-from-schedule-id :{space}/scheduled-from-label]"
    assert done(await place.face.ask(fresh.id, query)) == {
        f"{space}/scheduled-origin-session-id": origin,
        f"{space}/scheduled-from-schedule-id": schedule.id,
        f"{space}/scheduled-from-label": "L",
    }
    assert await place.face.joined(origin) == [(schedule.id, "Origin", "Fresh")]


# -- questions


async def test_counts_and_joins_lead_both_ways(place: Place) -> None:
    session = await place.session("Origin")
    assert await place.face.pending_count(session) == 0
    made = [await place.schedule(session, delay_ms=delay) for delay in (1_000, 2_000)]
    assert await place.face.pending_count(session) == 2
    assert await place.face.joined(session) == [(each.id, "Origin", None) for each in made]
    await place.face.cancel(session, made[0].id)
    assert await place.face.pending_count(session) == 1
    assert len(await place.face.joined(session)) == 2  # whatever their status
    whole = "[:psi.system/session-count {:psi.system/sessions [:psi.agent-session/session-name]}]"
    assert done(await place.face.ask(None, whole)) == {
        "psi.system/session-count": 1,
        "psi.system/sessions": [{"psi.agent-session/session-name": "Origin"}],
    }


async def test_a_mistyped_name_is_told_the_nearest(place: Place) -> None:
    refusal = await place.face.misspell(await place.session())
    if place.name == "GraphQL":
        assert "Did you mean 'schedulerPendingCount'?" in (refusal.message or "")
    else:
        assert refusal.code == "graph/attribute-unreachable"
        assert "Did you mean :psi.scheduler/pending-count?" in (refusal.message or "")


async def test_a_question_that_cannot_be_read_is_told_where(place: Place) -> None:
    refusal = await place.face.ask(None, "[:a")
    assert isinstance(refusal, Refusal)
    assert refusal.code.startswith("edn/")
    assert "line 1" in (refusal.message or "")


async def test_what_there_is_not_is_not_found_by_asking(place: Place) -> None:
    assert await place.face.look("sch-nowhere") is None


# -- runs


async def test_a_prompt_is_answered(place: Place) -> None:
    session = await place.session()
    run = done(await place.face.submit(session, "/say Hello."))
    assert re.fullmatch(r"run-[0-9a-f-]{36}", run)
    await place.pass_time(0)
    assert [(role, text) for role, text, _ in await place.face.history(session)] == [
        ("user", "/say Hello."),
        ("assistant", "Hello."),
    ]


async def test_a_blank_prompt_is_refused(place: Place) -> None:
    session = await place.session()
    before = await place.everything()
    refusal = await place.face.submit(session, " ")
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.message) == (
        "session/message-required",
        "session submit requires a non-blank `message`",
    )
    assert await place.everything() == before


async def test_a_second_prompt_is_refused_while_a_run_is_active_and_leaves_nothing(place: Place) -> None:
    session = await place.session()
    done(await place.face.submit(session, "/wait 60s"))
    before = await place.everything()
    refusal = await place.face.submit(session, "and another")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "session/busy"
    assert await place.everything() == before


async def test_a_run_is_stopped_once(place: Place) -> None:
    session = await place.session()
    assert await place.face.stop(session) is False
    done(await place.face.submit(session, "/say begun\n/wait 60s\n/say never"))
    assert await place.face.stop(session) is True
    await place.pass_time(0)
    assert await place.face.stop(session) is False
    (opened,) = await place.face.sessions()
    assert opened.phase == "idle"
    asked, told = await place.face.history(session)
    assert asked[0] == "user"
    assert told[0] == "assistant"
    assert "begun" in told[1]
    assert "never" not in told[1]


async def test_closing_a_session_ends_its_run_and_cancels_what_it_had_planned(place: Place) -> None:
    session, other = await place.session("Closing"), await place.session("Staying")
    done(await place.face.submit(session, "/wait 60s"))
    await place.schedule(session, "never")
    await place.schedule(session, "never", kind="session", session_config={"session-name": "Never"})
    assert await place.face.close(session) == session
    assert [each.id for each in await place.face.sessions()] == [other]
    refusal = await place.face.scheduled(session)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "session/not-found"
    again = await place.face.close(session)
    assert isinstance(again, Refusal)
    assert again.code == "session/not-found"
    await place.pass_time(120)
    assert [each.name for each in await place.face.sessions()] == ["Staying"]
