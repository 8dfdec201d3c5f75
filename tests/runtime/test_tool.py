"""psi-tool in process: every rule, message and key of the envelope, and that a refused request changes nothing."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psi import Psi
from psi.agents.events import ToolFinished
from psi.edn import Keyword, dumps, loads
from psi.graph import resolver
from tests.runtime.world import World, world
from tool.render import as_json

CREATE = {"action": "scheduler", "op": "create", "kind": "message", "message": "later", "delay-ms": 1000}

SUMMARY = [
    *("schedule-id", "kind", "label", "message", "status", "created-at", "fire-at", "origin-session-id"),
    *("created-session-id", "delivery-phase", "error-summary", "session-config-summary"),
]
CONFIG_SUMMARY = [
    *("session-name", "model", "thinking-level", "skill-count", "tool-count", "has-system-prompt?"),
    *("has-developer-prompt?", "preloaded-message-count", "has-prompt-component-selection?"),
]


def without(*keys: str, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in CREATE.items() if key not in keys} | {
        key.replace("_", "-"): value for key, value in more.items()
    }


def instant(here: World, ms: float) -> str:
    return (here.clock.now().wall + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def test_an_unknown_key_is_a_fact_of_its_error() -> None:
    async with world() as here:
        error = await here.error({"action": "scheduler", "op": "list", "limt": 5})
        assert error["data"]["key"] == "limt"


async def test_the_envelope_of_a_success() -> None:
    async with world() as here:
        session = await here.session()
        answer = await here.psi.tool(without(label="L"), session)
        assert list(answer) == [
            "psi-tool/action",
            "psi-tool/scheduler-op",
            "psi-tool/overall-status",
            "psi-tool/duration-ms",
            "psi-tool/scheduler",
        ]
        assert answer["psi-tool/action"] == Keyword("scheduler")
        assert answer["psi-tool/scheduler-op"] == Keyword("create")
        assert answer["psi-tool/duration-ms"] == 0
        schedule = answer["psi-tool/scheduler"]["schedule"]
        assert list(schedule) == SUMMARY
        assert schedule | {"schedule-id": "sch-"} == {
            "schedule-id": "sch-",
            "kind": "message",
            "label": "L",
            "message": "later",
            "status": "pending",
            "created-at": "2026-01-01T00:00:00Z",
            "fire-at": "2026-01-01T00:00:01Z",
            "origin-session-id": session,
            "created-session-id": None,
            "delivery-phase": None,
            "error-summary": None,
            "session-config-summary": None,
        }
        assert json.loads(json.dumps(answer)) == as_json(answer)
        assert loads(dumps(answer)) == answer


async def test_the_envelope_of_an_error() -> None:
    async with world() as here:
        answer = await here.psi.tool(CREATE)
        assert answer == {
            "psi-tool/action": "scheduler",
            "psi-tool/scheduler-op": "create",
            "psi-tool/overall-status": "error",
            "psi-tool/duration-ms": 0,
            "psi-tool/error": {
                "message": "psi-tool scheduler action requires invoking or explicit `session-id`",
                "class": "SessionRequired",
                "code": "session/required",
                "phase": "validate",
                "data": {"action": "scheduler"},
            },
        }


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no message": (without("message"), "scheduler create requires a non-blank `message`"),
    "a blank message": (without(message=" \n"), "scheduler create requires a non-blank `message`"),
    "a message that is no text": (without(message=5), "scheduler create requires a non-blank `message`"),
    "no kind": (without("kind"), "scheduler create requires explicit `kind`: `message` or `session`"),
    "another kind": (without(kind="both"), "scheduler create requires explicit `kind`: `message` or `session`"),
    "both times": (
        without(at="2026-01-01T00:00:05Z"),
        "scheduler create accepts either `delay-ms` or `at`, not both",
    ),
    "no time": (without("delay-ms"), "scheduler create requires `delay-ms` or `at`"),
    "too soon": (without(delay_ms=999), "delay-ms is below the minimum bound"),
    "nothing to wait for": (without(delay_ms=0), "delay-ms is below the minimum bound"),
    "back in time": (without(delay_ms=-5), "delay-ms is below the minimum bound"),
    "too late": (without(delay_ms=86_400_001), "delay-ms exceeds the maximum bound"),
    "a truth": (without(delay_ms=True), "delay-ms must be an integer"),
    "a fraction": (without(delay_ms=1.5), "delay-ms must be an integer"),
    "a whole float": (without(delay_ms=5000.0), "delay-ms must be an integer"),
    "a text": (without(delay_ms="5000"), "delay-ms must be an integer"),
    "not an instant": (without("delay-ms", at="tomorrow"), "scheduler `at` must be an ISO-8601 UTC instant"),
    "a day": (without("delay-ms", at="2026-01-01"), "scheduler `at` must be an ISO-8601 UTC instant"),
    "no zone": (without("delay-ms", at="2026-01-01T00:00:05"), "scheduler `at` must be an ISO-8601 UTC instant"),
    "another zone": (
        without("delay-ms", at="2026-01-01T02:00:05+02:00"),
        "scheduler `at` must be an ISO-8601 UTC instant",
    ),
    "no such day": (without("delay-ms", at="2026-02-30T00:00:00Z"), "scheduler `at` must be an ISO-8601 UTC instant"),
    "a number as instant": (without("delay-ms", at=5), "scheduler `at` must be an ISO-8601 UTC instant"),
    "a label that is no text": (without(label=5), "scheduler `label` must be a string, got 5"),
    "a config where none belongs": (
        without(session_config={}),
        "scheduler kind `message` forbids `session-config`",
    ),
    "no config where one belongs": (
        without(kind="session"),
        "scheduler kind `session` requires `session-config` (a map; {} is allowed)",
    ),
    "an unsupported key": (
        without(kind="session", session_config={"tool-defs": [], "a": 1}),
        "scheduler session-config contains unsupported keys",
    ),
    "a mistyped key": (without("delay-ms", delayms=1000), "unknown key `delayms`; did you mean `delay-ms`?"),
    "a key of another op": (
        without(**{"schedule-id": "x"}),
        (
            "unknown key `schedule-id`; scheduler create accepts `action`, `at`, `delay-ms`, `kind`, `label`, "
            "`message`, `op`, `session-config`, `session-id`"
        ),
    ),
    "a session that is not there": (without(**{"session-id": "ses-x"}), "session not found"),
    "a session that is no text": (without(**{"session-id": 5}), "`session-id` must be a string, got 5"),
    "an unknown op": (
        {"action": "scheduler", "op": "creat"},
        'unknown scheduler op "creat"; did you mean `create`?',
    ),
    "no op": ({"action": "scheduler"}, "psi-tool scheduler needs `op`: `create`, `list`, `cancel`"),
    "an unknown action": (
        {"action": "dance"},
        'unknown action "dance"; accepted: `query`, `mutate`, `scheduler`, `session`',
    ),
    "no action": ({}, "a psi-tool request needs `action`: `query`, `mutate`, `scheduler`, `session`"),
    "no schedule to cancel": (
        {"action": "scheduler", "op": "cancel"},
        "scheduler cancel requires a string `schedule-id`",
    ),
    "a schedule that is no text": (
        {"action": "scheduler", "op": "cancel", "schedule-id": 5},
        "scheduler cancel requires a string `schedule-id`",
    ),
    "an unknown schedule": (
        {"action": "scheduler", "op": "cancel", "schedule-id": "sch-x"},
        "schedule not found",
    ),
    "an unknown mutation": ({"action": "mutate", "mutation": "psi/no"}, "Unknown psi-tool mutation: psi/no"),
    "a mutation with an entity": (
        {"action": "mutate", "mutation": "psi.scheduler/cancel", "entity": {}},
        "psi-tool mutate does not accept `entity`; give `params`",
    ),
    "params that are no map": (
        {"action": "mutate", "mutation": "psi.scheduler/cancel", "params": [1]},
        "`params` must be a map or EDN text of one, got [1]",
    ),
    "an entity that is no map": (
        {"query": "[:psi.system/version]", "entity": "[1]"},
        "`entity` must be a map or EDN text of one, got [1]",
    ),
    "half a character": (without(message="\ud800"), "scheduler create requires a non-blank `message`"),
    "a mistyped param": (
        {"action": "mutate", "mutation": "psi.scheduler/create", "params": {"mesage": "x"}},
        "unknown param `mesage`; did you mean `message`?",
    ),
    "no query": ({"action": "query"}, "psi-tool query requires `query`: an EQL vector"),
    "an empty prompt": (
        {"action": "session", "op": "submit", "message": ""},
        "session submit requires a non-blank `message`",
    ),
    "a name that is no name": (
        {"action": "session", "op": "create", "name": " "},
        'session `name` must be a non-blank string of at most 200 characters, got " "',
    ),
}


@pytest.mark.parametrize("about", REFUSED)
async def test_what_is_refused_says_why_and_changes_nothing(about: str) -> None:
    request, message = REFUSED[about]
    async with world() as here:
        session = await here.session()
        error = await here.error(request, session)
        assert error["message"] == message
        assert error["class"]
        assert error["phase"] in ("validate", "execute")
        assert await here.listed(session) == []
        assert await here.history(session) == []
        assert (await here.ok({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 1


@pytest.mark.parametrize(
    ("request_", "facts"),
    [
        (without(delay_ms=999), {"delay-ms": 999, "minimum": 1000}),
        (without(delay_ms=86_400_001), {"delay-ms": 86_400_001, "maximum": 86_400_000}),
        (without("delay-ms", at="soon"), {"at": "soon", "accepted": "2026-04-22T13:00:00Z"}),
    ],
)
async def test_the_data_of_an_error_has_the_bound_or_the_input(request_: Any, facts: dict[str, Any]) -> None:
    async with world() as here:
        assert (await here.error(request_, await here.session()))["data"] == facts


@pytest.mark.parametrize(
    ("ahead", "message"),
    [
        (1, "delay-ms is below the minimum bound"),
        (999.9, "delay-ms is below the minimum bound"),
        (86_400_001, "delay-ms exceeds the maximum bound"),
    ],
)
async def test_an_instant_has_the_same_bounds_in_whole_milliseconds(ahead: float, message: str) -> None:
    async with world() as here:
        request = without("delay-ms", at=instant(here, ahead))
        assert (await here.error(request, await here.session()))["message"] == message


@pytest.mark.parametrize("ahead", [-1e9, -1, 0, 0.999, 1000, 86_400_000, 86_400_000.9])
async def test_an_instant_within_them_is_taken_as_it_is(ahead: float) -> None:
    async with world() as here:
        at = instant(here, ahead)
        schedule = await here.schedule(await here.session(), at=at)
        assert await here.of(schedule, "fire-at") == datetime.fromisoformat(at)


async def test_an_edn_instant_is_an_instant() -> None:
    async with world() as here:
        session = await here.session()
        request = '{:action "scheduler" :op "create" :kind :message :message "x" :at #inst "2026-01-01T00:00:05Z"}'
        schedule = (await here.ok(request, session))["psi-tool/scheduler"]["schedule"]
        assert schedule["fire-at"] == "2026-01-01T00:00:05Z"


async def test_a_request_may_be_data_json_or_edn_and_mean_the_same() -> None:
    async with world() as here:
        session = await here.session()
        forms = [
            CREATE,
            json.dumps(CREATE),
            dumps(CREATE),
            {key.replace("-", "_"): value for key, value in CREATE.items()},
            {Keyword(key): value for key, value in CREATE.items()},
            {f":{key}": value for key, value in CREATE.items()},
            {**CREATE, "action": Keyword("scheduler"), "op": Keyword("create"), "kind": Keyword("message")},
        ]
        for form in forms:
            told = (await here.ok(form, session))["psi-tool/scheduler"]["schedule"]
            assert (told["kind"], told["message"]) == ("message", "later")
        assert len(await here.listed(session)) == len(forms)


@pytest.mark.parametrize("request_", ["", "{", "[1]", "nil", "{:a", '{"a": }', 5, None, [], b"\xff", "{:a #x 1}"])
async def test_what_is_no_request_is_refused(request_: Any) -> None:
    async with world() as here:
        assert (await here.error(request_))["phase"] == "validate"


async def test_a_session_may_be_named_instead_of_invoking() -> None:
    async with world() as here:
        session = await here.session()
        await here.ok({**CREATE, "session-id": session})
        assert len(await here.listed(session)) == 1


async def test_an_invoking_session_that_is_not_there_is_an_error() -> None:
    async with world() as here:
        error = await here.error({"query": "[:psi.system/version]"}, "ses-gone")
        assert (error["message"], error["data"]) == ("session not found", {"session-id": "ses-gone"})


async def test_a_config_summary_tells_no_secrets() -> None:
    config = {
        "session-name": "N",
        "system-prompt": "SECRET",
        "developer-prompt": "SECRET",
        "model": "acme:one",
        "thinking-level": "high",
        "skills": ["a", {"name": "b"}],
        "tool-ids": ["psi-tool"],
        "preloaded-messages": [{"role": "user", "content": "SECRET"}],
        "cache-breakpoints": ["system"],
        "prompt-component-selection": {"agents-md?": True},
    }
    async with world() as here:
        session = await here.session()
        answer = await here.ok({**without(kind="session"), "session-config": config}, session)
        summary = answer["psi-tool/scheduler"]["schedule"]["session-config-summary"]
        assert list(summary) == CONFIG_SUMMARY
        assert summary == {
            "session-name": "N",
            "model": {"provider": "acme", "id": "one"},
            "thinking-level": "high",
            "skill-count": 2,
            "tool-count": 1,
            "has-system-prompt?": True,
            "has-developer-prompt?": True,
            "preloaded-message-count": 1,
            "has-prompt-component-selection?": True,
        }
        assert "SECRET" not in str(answer)


async def test_the_seeds_own_example_is_taken() -> None:
    request = """{:action "scheduler" :op "create" :kind "session" :label "morning-review" :at "2026-01-01T13:00:00Z"
      :message "Review the overnight changes and summarize risks."
      :session-config {:session-name "Morning review" :thinking-level :high :cache-breakpoints #{:system}
        :preloaded-messages [{:role "user" :content [{:type :text :text "Context: the last merged change."}]
                              :timestamp #inst "2026-01-01T12:59:00Z"}]}}"""
    async with world() as here:
        session = await here.session()
        schedule = (await here.ok(request, session))["psi-tool/scheduler"]["schedule"]
        assert schedule["session-config-summary"]["preloaded-message-count"] == 1
        assert "Context" not in str(schedule)


async def test_a_long_message_is_cut_in_summaries_and_whole_in_the_graph() -> None:
    async with world() as here:
        session = await here.session()
        schedule = await here.schedule(session, "m" * 5000)
        (summary,) = await here.listed(session)
        assert len(summary["message"]) == 200
        assert await here.of(schedule, "message") == "m" * 5000


async def test_the_list_is_sorted_by_plan() -> None:
    async with world() as here:
        session = await here.session()
        for delay in (3000, 1000, 2000):
            await here.schedule(session, str(delay), delay)
        assert [each["message"] for each in await here.listed(session)] == ["1000", "2000", "3000"]


async def test_a_query_may_start_from_an_entity_in_every_form() -> None:
    async with world() as here:
        session = await here.session("Named")
        entity = {"psi.agent-session/session-id": session}
        for form in (entity, dumps(entity), {f":{key}": value for key, value in entity.items()}):
            answer = await here.ok({"action": "query", "query": "[:psi.agent-session/session-name]", "entity": form})
            assert answer["psi-tool/result"] == {"psi.agent-session/session-name": "Named"}
        answer = await here.ok("{:query [:psi.agent-session/session-name]}", session)
        assert answer["psi-tool/result"] == {"psi.agent-session/session-name": "Named"}


async def test_a_mutation_answers_its_name_and_its_result() -> None:
    async with world() as here:
        session = await here.session()
        params = {"kind": "message", "message": "x", "delay-ms": 1000}
        answer = await here.ok({"action": "mutate", "mutation": "psi.scheduler/create", "params": params}, session)
        assert answer["psi-tool/mutation"] == "psi.scheduler/create"
        (listed,) = await here.listed(session)
        assert answer["psi-tool/result"] == {"psi.scheduler/schedule-id": listed["schedule-id"]}


async def test_an_invoking_session_that_is_no_text_is_an_error() -> None:
    async with world() as here:
        wrong: Any = ["x"]
        assert (await here.error(CREATE, wrong))["message"] == "session not found"


async def test_params_of_a_mutation_may_be_written_as_models_write_them() -> None:
    async with world() as here:
        session = await here.session()
        params = {"kind": "message", "message": "x", "delay_ms": 1000}
        await here.ok({"action": "mutate", "mutation": "psi.scheduler/create", "params": params}, session)
        assert len(await here.listed(session)) == 1


async def test_what_a_mutation_refuses_is_told_as_if_asked_directly() -> None:
    async with world() as here:
        session = await here.session()
        request = {"action": "mutate", "mutation": "psi.scheduler/create", "params": dumps({"message": "x"})}
        error = await here.error(request, session)
        assert error["message"] == "scheduler create requires explicit `kind`: `message` or `session`"
        assert error["phase"] == "validate"


async def test_sessions_are_created_listed_shown_and_submitted_to() -> None:
    async with world() as here:
        session = await here.session("First")
        show = (await here.ok({"action": "session", "op": "show", "session-id": session}))["psi-tool/session"]
        assert show["session"] == {
            "session-id": session,
            "session-name": "First",
            "phase": "idle",
            "created": "2026-01-01T00:00:00Z",
            "updated": "2026-01-01T00:00:00Z",
        }
        listed = (await here.ok({"action": "session", "op": "list"}))["psi-tool/session"]
        assert listed == {"session-count": 1, "sessions": [show["session"]]}
        answer = await here.submit(session, "hi", wait=True)
        assert answer["run"]["answer"] == "You said: hi"
        assert answer["session"]["phase"] == "idle"


async def test_a_session_config_is_checked_at_creation_with_all_its_problems() -> None:
    async with world() as here:
        config = {"thinking-level": "extreme", "preloaded-messages": [{"role": "boss", "content": "x"}], "model": 5}
        error = await here.error({"action": "session", "op": "create", "config": config})
        assert [problem["path"] for problem in error["data"]["problems"]] == [
            "thinking-level",
            "preloaded-messages[0].role",
            "model",
        ]
        assert error["message"].startswith("session config is invalid: thinking-level: expected one of ")


async def test_a_fault_in_an_operation_is_an_error_without_a_stack_trace() -> None:
    @resolver(output=["broken"])
    def broken(env: Any, _: Any) -> Any:
        raise RuntimeError("oh no")

    async with world(operations=[broken]) as here:
        error = await here.error({"query": "[:broken]"})
        assert error["class"] == "ResolverFailed"
        assert "Traceback" not in str(error)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=6,
)
KEYS = ["action", "op", "kind", "message", "delay-ms", "at", "label", "session-config", "query", "entity", "params"]
words = st.sampled_from(["scheduler", "session", "create", "list", "cancel", "submit", "message", "query", "mutate"])


@settings(max_examples=150)
@given(requests=st.lists(st.dictionaries(st.sampled_from(KEYS), words | values, max_size=6), max_size=4))
def test_whatever_comes_an_envelope_goes(requests: list[dict[str, Any]]) -> None:
    import asyncio

    async def ask() -> None:
        async with Psi.open(grace=0) as psi:
            made = await psi.tool({"action": "session", "op": "create"})
            session = made["psi-tool/session"]["session"]["session-id"]
            for request in requests:
                answer = await psi.tool(request, session)
                assert answer["psi-tool/overall-status"] in ("ok", "error")
                assert ("psi-tool/error" in answer) == (answer["psi-tool/overall-status"] == "error")
                json.dumps(as_json(answer))
                dumps(answer)

    asyncio.run(ask())


async def test_a_real_clock_fires_too() -> None:
    """The one test that waits: a second of real time, on the machine's own clock."""
    async with Psi.open() as psi:
        made = await psi.tool({"action": "session", "op": "create"})
        session = made["psi-tool/session"]["session"]["session-id"]
        with psi.watch(session) as events:
            await psi.tool(CREATE, session)
            seen = []
            async for event in events:
                seen.append(event)
                if event.type == "run-finished":
                    break
        planned = next(event.data for event in seen if event.type == "schedule-changed")
        delivered = next(event for event in seen if event.type == "run-started")
        assert timedelta(0) <= delivered.at - planned.fire_at < timedelta(seconds=2)


CALL = '(psi.scheduler/create {:kind :message :delay-ms 600000 :message "later"})'


@pytest.mark.parametrize(
    "query",
    [
        f"[{{{CALL} [:nope/x]}}]",
        f'[{CALL} {{[:psi.agent-session/session-id "ses-none"] [:psi.agent-session/phase]}}]',
        f'[{CALL} (psi.scheduler/cancel {{:schedule-id "sch-none"}})]',
    ],
    ids=["what is below it cannot be had", "what is beside it cannot be had", "a second call is refused"],
)
async def test_a_query_that_fails_after_a_call_says_what_was_done_and_what_came_of_it(query: str) -> None:
    async with world() as here:
        session = await here.session()
        error = await here.error({"action": "query", "query": query}, session)
        [schedule] = await here.listed(session)
        assert error["phase"] == "execute"
        assert error["message"].endswith(". Before that was carried out, and stays so: psi.scheduler/create")
        [done] = error["data"]["done"]
        assert done["operation"] == "psi.scheduler/create"
        assert done["result"]["psi.scheduler/schedule-id"] == schedule["schedule-id"]


async def test_a_query_that_fails_before_any_call_has_done_nothing() -> None:
    async with world() as here:
        session = await here.session()
        error = await here.error({"action": "query", "query": f"[{CALL} :nope/x]"}, session)
        assert error["phase"] == "validate"
        assert "done" not in error["data"]
        assert await here.listed(session) == []


@pytest.mark.parametrize(
    "query",
    [
        f"[{CALL} {{:psi.system/sessions ...}}]",
        f"[{CALL} {{:psi.system/sessions 3}}]",
        f"[{{:>/here [{CALL}]}} {{:psi.system/sessions ...}}]",
        f"[{{:psi.system/sessions [{CALL}]}} {{:>/here [{{:psi.system/sessions ...}}]}}]",
    ],
)
async def test_a_call_that_a_recursion_would_repeat_is_refused(query: str) -> None:
    async with world() as here:
        session = await here.session()
        error = await here.error({"action": "query", "query": query}, session)
        assert error["code"] == "graph/repeated-call"
        assert await here.listed(session) == []


async def test_a_call_next_to_a_level_that_recurs_is_no_repeated_one() -> None:
    async with world() as here:
        session = await here.session()
        tree = "{:psi.agent-session/context-session-summaries [:psi.session-info/id {:psi.session-info/session 1}]}"
        await here.psi.tool({"action": "query", "query": f"[{CALL} {tree}]"}, session)
        assert len(await here.listed(session)) == 1


async def test_a_query_and_a_mutation_may_name_their_session() -> None:
    async with world() as here:
        session = await here.session("Named")
        query = {"action": "query", "query": "[:psi.agent-session/session-name]", "session-id": session}
        assert (await here.ok(query))["psi-tool/result"] == {"psi.agent-session/session-name": "Named"}
        params = {"kind": "message", "message": "x", "delay-ms": 600_000}
        await here.ok({"action": "mutate", "mutation": "psi.scheduler/create", "params": params, "session_id": session})
        assert len(await here.listed(session)) == 1
        error = await here.error({**query, "session-id": "ses-none"})
        assert error["code"] == "session/not-found"


async def test_an_agent_asks_from_within_its_own_session_alone() -> None:
    async with world() as here:
        other, own = await here.session("Other"), await here.session("Own")
        params = '{"kind": "message", "message": "x", "delay-ms": 600000}'
        for name, count in ((other, 0), (own, 1)):
            request = (
                '{"action": "mutate", "mutation": "psi.scheduler/create", '
                f'"params": {params}, "session-id": "{name}"}}'
            )
            await here.submit(own, f"/tool psi-tool {request}", wait=True)
            assert len(await here.listed(name)) == count


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ('{"action": "session", "op": "list", "op": "create"}', 'key "op" is given twice'),
        (
            '{"action": "session", "op": "create", "config": {"model": "a:b", "model": "c:d"}}',
            'key "model" is given twice',
        ),
        (
            b'{"action": "session", "op": "create", "name": "\xff"}',
            "the request is not UTF-8: invalid start byte at byte 47",
        ),
        ({"acton": "scheduler", "op": "list"}, "unknown key `acton`; did you mean `action`?"),
        ({"querry": "[]"}, "unknown key `querry`; did you mean `query`?"),
        ({"action": "scheduler", "opp": "list"}, "unknown key `opp`; did you mean `op`?"),
        ({"action": "session", "oop": "create"}, "unknown key `oop`; did you mean `op`?"),
    ],
)
async def test_what_is_mistyped_or_said_twice_is_named_and_not_guessed_at(request_: Any, message: str) -> None:
    async with world() as here:
        session = await here.session()
        assert (await here.error(request_, session))["message"] == message
        assert (await here.ok({"action": "session", "op": "list"}))["psi-tool/session"]["session-count"] == 1


async def test_an_agent_that_says_a_key_twice_is_told_so() -> None:
    async with world() as here:
        session = await here.session()
        with here.psi.watch(session) as events:
            await here.submit(session, '/tool psi-tool {"action": "session", "op": "list", "op": "create"}', wait=True)
            results = [each.data.event for each in events.waiting() if each.type == "run-event"]
        [finished] = [each for each in results if isinstance(each, ToolFinished)]
        assert (finished.success, 'key "op" is given twice' in finished.result) == (False, True)


async def test_the_log_has_of_a_failed_turn_what_kind_it_was_and_not_what_was_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    async with world() as here:
        await here.submit(await here.session(), "/fail the secret reason", wait=True)
    assert "an agent failed with DemoFailure" in caplog.text
    assert "secret" not in caplog.text
