from __future__ import annotations

import json
from typing import Any

import pytest

from psi.core.commands import Caller
from tests.faces.graphql.asking import Asking, asking

CREATE = """
mutation($s: ID, $kind: ScheduleKind!, $message: String!, $delay: Long, $at: String, $label: String, $config: JSON) {
    createSchedule(
        sessionId: $s, kind: $kind, message: $message, delayMs: $delay, at: $at, label: $label, sessionConfig: $config
    ) {
        schedule { scheduleId status kind label fireAt originSession { schedulerPendingCount } sessionConfigSummary }
        problems { path message code }
    }
}
"""


async def create(ask: Asking, **variables: Any) -> Any:
    given = {"kind": "MESSAGE", "message": "hi", **variables}
    return (await ask.data(CREATE, given))["createSchedule"]


async def test_a_schedule_is_created_and_shown() -> None:
    async with asking() as ask:
        session = await ask.session()
        made = await create(ask, s=session, delay=5_000, label="soon")
        assert made["problems"] == []
        assert made["schedule"] == {
            "scheduleId": made["schedule"]["scheduleId"],
            "status": "PENDING",
            "kind": "MESSAGE",
            "label": "soon",
            "fireAt": "2026-01-01T00:00:05Z",
            "originSession": {"schedulerPendingCount": 1},
            "sessionConfigSummary": None,
        }


@pytest.mark.parametrize(
    ("given", "path", "code"),
    [
        ({"delay": 5}, "delayMs", "scheduler/delay-too-short"),
        ({"delay": 86_400_001}, "delayMs", "scheduler/delay-too-long"),
        ({"delay": 3_000_000_000}, "delayMs", "scheduler/delay-too-long"),
        ({"delay": 5_000, "s": "ses-none"}, "sessionId", "session/not-found"),
        ({"at": "tomorrow"}, "at", "scheduler/invalid-instant"),
        ({"at": "2026-01-01T00:00:00.500Z"}, "at", "scheduler/delay-too-short"),
        ({"delay": 5_000, "at": "2026-01-01T00:00:09Z"}, "at", "scheduler/two-times"),
        ({}, "delayMs", "scheduler/no-time"),
        ({"delay": 5_000, "message": "  "}, "message", "scheduler/message-required"),
        ({"delay": 5_000, "config": {}}, "sessionConfig", "scheduler/config-forbidden"),
        ({"delay": 5_000, "kind": "SESSION"}, "sessionConfig", "scheduler/config-required"),
    ],
)
async def test_a_refusal_names_the_argument_and_changes_nothing(given: dict[str, Any], path: str, code: str) -> None:
    async with asking() as ask:
        session = await ask.session()
        made = await create(ask, **{"s": session, **given})
        assert made["schedule"] is None
        assert [(each["path"], each["code"]) for each in made["problems"]] == [(path, code)]
        assert (await ask.data("{ schedules { scheduleId } }")) == {"schedules": []}


async def test_every_problem_of_a_config_is_told_with_its_path() -> None:
    async with asking() as ask:
        config = {"thinking-level": "x", "preloaded-messages": [{"role": "robot", "content": "a"}]}
        made = await create(ask, s=await ask.session(), kind="SESSION", delay=5_000, config=config)
        paths = [each["path"] for each in made["problems"]]
        assert paths == ["sessionConfig.thinking-level", "sessionConfig.preloaded-messages[0].role"]


async def test_without_a_session_the_refusal_says_what_is_needed() -> None:
    async with asking() as ask:
        made = await create(ask, delay=5_000)
        assert made["problems"][0]["code"] == "session/required"


async def test_the_invoking_session_is_meant_where_none_is_named() -> None:
    async with asking() as ask:
        session, other = await ask.session(), await ask.session()
        await ask.schedule(other)
        caller = Caller(session)
        await ask.data(CREATE, {"kind": "MESSAGE", "message": "hi", "delay": 5_000}, caller)
        found = await ask.data("{ schedules { originSessionId } }", caller=caller)
        assert found == {"schedules": [{"originSessionId": session}]}


async def test_cancelling_twice_is_refused_the_second_time() -> None:
    async with asking() as ask:
        session = await ask.session()
        schedule = await ask.schedule(session)
        text = (
            "mutation($s: ID, $id: ID!) { cancelSchedule(sessionId: $s, scheduleId: $id) "
            "{ schedule { status } problems { code } } }"
        )
        given = {"s": session, "id": schedule}
        assert (await ask.data(text, given))["cancelSchedule"] == {"schedule": {"status": "CANCELLED"}, "problems": []}
        again = (await ask.data(text, given))["cancelSchedule"]
        assert again == {"schedule": None, "problems": [{"code": "scheduler/not-cancellable"}]}


async def test_a_prompt_is_submitted_refused_while_busy_and_stopped() -> None:
    async with asking() as ask:
        session = await ask.session()
        submit = (
            "mutation($s: ID, $m: String!) { submitPrompt(sessionId: $s, message: $m) "
            "{ run { id state } session { phase } problems { code } } }"
        )
        begun = (await ask.data(submit, {"s": session, "m": "/wait 60s"}))["submitPrompt"]
        assert begun["run"]["state"] == "RUNNING"
        assert begun["session"] == {"phase": "STREAMING"}
        busy = (await ask.data(submit, {"s": session, "m": "hi"}))["submitPrompt"]
        assert busy == {"run": None, "session": None, "problems": [{"code": "session/busy"}]}
        stop = "mutation($s: ID) { stopRun(sessionId: $s) { stopped problems { code } } }"
        assert (await ask.data(stop, {"s": session}))["stopRun"] == {"stopped": True, "problems": []}
        await ask.clock.advance(1)
        assert (await ask.data(stop, {"s": session}))["stopRun"] == {"stopped": False, "problems": []}
        states = await ask.data("query($s: ID) { runs(sessionId: $s, states: [STOPPED]) { state } }", {"s": session})
        assert states == {"runs": [{"state": "STOPPED"}]}


async def test_sessions_come_in_pages() -> None:
    async with asking() as ask:
        names = [await ask.session(f"S{place}") for place in range(5)]
        text = "query($after: ID) { sessions(limit: 2, after: $after) { sessionId } }"
        seen: list[str] = []
        after = None
        while page := (await ask.data(text, {"after": after}))["sessions"]:
            seen += [each["sessionId"] for each in page]
            after = seen[-1]
        assert seen == names


async def test_a_config_is_checked_before_it_is_used() -> None:
    async with asking() as ask:
        text = "query($c: JSON!) { validateSessionConfig(config: $c) { valid problems { path } } }"
        good = await ask.data(text, {"c": {"session-name": "A"}})
        assert good == {"validateSessionConfig": {"valid": True, "problems": []}}
        bad = await ask.data(text, {"c": {"session-name": ""}})
        assert bad == {"validateSessionConfig": {"valid": False, "problems": [{"path": "session-name"}]}}
        assert not (await ask.data(text, {"c": 5}))["validateSessionConfig"]["valid"]


async def test_a_reader_may_ask_but_not_change() -> None:
    async with asking() as ask:
        reader = Caller(user="local", may_write=False)
        await ask.session()
        assert len((await ask.data("{ sessions { phase } }", caller=reader))["sessions"]) == 1
        made = await ask.data("mutation { createSession { session { phase } problems { code } } }", caller=reader)
        assert made == {"createSession": {"session": None, "problems": [{"code": "auth/read-only"}]}}


async def test_a_query_in_eql_changes_nothing() -> None:
    async with asking() as ask:
        asked = await ask('{ eql(query: "[(psi.agent-session/create {})]") }')
        assert asked["errors"][0]["extensions"]["code"] == "graphql/eql-mutation"
        assert await ask.data("{ sessions { phase } }") == {"sessions": []}


async def test_a_user_sees_their_own_and_nothing_else() -> None:
    async with asking() as ask:
        mine, theirs = Caller(user="alice"), Caller(user="bob")
        made = await ask.data('mutation { createSession(name: "A") { session { sessionId owner } } }', caller=mine)
        session = made["createSession"]["session"]
        assert session["owner"] == "alice"
        assert (await ask.data("{ sessions { sessionId } system { sessionCount } }", caller=theirs)) == {
            "sessions": [],
            "system": {"sessionCount": 0},
        }
        text = "query($id: ID!) { session(id: $id) { phase } }"
        assert (await ask.data(text, {"id": session["sessionId"]}, theirs)) == {"session": None}
        assert (await ask.data(text, {"id": session["sessionId"]}, mine)) == {"session": {"phase": "IDLE"}}


@pytest.mark.parametrize("form", [dict, "{:psi.agent-session/session-id %s}"])
async def test_an_entity_may_be_a_map_or_edn_text_of_one(form: Any) -> None:
    async with asking() as ask:
        session = await ask.session()
        key = "psi.agent-session/session-id"
        entity = {f":{key}": session} if form is dict else form % json.dumps(session)
        text = 'query($e: JSON) { eql(query: "[:psi.agent-session/session-name]", entity: $e) }'
        assert await ask.data(text, {"e": entity}) == {"eql": {"psi.agent-session/session-name": "First"}}


@pytest.mark.parametrize("entity", ["{:a", "[:a]", 5, [1], True])
async def test_an_entity_that_is_no_map_is_refused(entity: Any) -> None:
    async with asking() as ask:
        response = await ask('query($e: JSON) { eql(query: "[:a]", entity: $e) }', {"e": entity})
        assert response["errors"][0]["extensions"]["code"] == "psi-tool/invalid-map"
        assert "`entity` must be a map or EDN text of one" in response["errors"][0]["message"]


@pytest.mark.parametrize(
    ("mutation", "path", "code"),
    [
        ('closeSession(sessionId: "ses-none")', "sessionId", "session/not-found"),
        ('stopRun(sessionId: "ses-none")', "sessionId", "session/not-found"),
        ('submitPrompt(sessionId: "ses-none", message: "x")', "sessionId", "session/not-found"),
        ('cancelSchedule(sessionId: "ses-none", scheduleId: "x")', "sessionId", "session/not-found"),
        ('cancelSchedule(sessionId: $s, scheduleId: "sch-none")', "scheduleId", "scheduler/not-found"),
    ],
)
async def test_what_is_not_found_is_told_by_the_argument_that_names_it(mutation: str, path: str, code: str) -> None:
    async with asking() as ask:
        session = await ask.session()
        declared = "($s: ID)" if "$s" in mutation else ""
        made = await ask.data(f"mutation{declared} {{ it: {mutation} {{ problems {{ path code }} }} }}", {"s": session})
        assert made == {"it": {"problems": [{"path": path, "code": code}]}}


async def test_the_keys_of_a_config_may_be_written_as_graphql_writes_names() -> None:
    text = """mutation {
      createSession(config: {sessionName: "Nightly", thinkingLevel: "low",
        preloadedMessages: [{role: "user", content: [{type: "text", text: "sessionName stays"}]}]}) {
        session { sessionName thinkingLevel messageHistory } problems { path message }
      }
    }"""
    async with asking() as ask:
        made = (await ask.data(text))["createSession"]
        assert made["problems"] == []
        assert (made["session"]["sessionName"], made["session"]["thinkingLevel"]) == ("Nightly", "LOW")
        assert made["session"]["messageHistory"][0]["content"][0]["text"] == "sessionName stays"
        wrong = await ask.data('{ validateSessionConfig(config: {sessionNam: "x"}) { valid problems { message } } }')
        assert wrong["validateSessionConfig"]["valid"] is False
