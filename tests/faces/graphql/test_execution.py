"""Our way of executing is compared with strawberry's own, field by field, on the same schema and the same data."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import pytest
from graphql import get_introspection_query

from psi.core.turn import Turn
from psi.faces.graphql.execute import Compiled, Layouts
from psi.faces.graphql.pace import Pace
from psi.graph import Env, Operation, resolver
from psi.settings import Settings
from psi.store import MemoryStore
from tests.faces.graphql.asking import Asking, asking

SCHEDULE = "psi.scheduler/schedule-id"

ALL_OF_A_SCHEDULE = """
    scheduleId kind label message source createdAt fireAt status originSessionId createdSessionId deliveryPhase
    errorSummary sessionConfigSummary originSession { sessionId } createdSession { sessionName }
"""

CORPUS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "scalars": ("{ sessions { sessionId sessionName phase isIdle messageCount created updated model skills } }", {}),
    "every field of a schedule": (f"{{ schedules {{ {ALL_OF_A_SCHEDULE} }} }}", {}),
    "joins both ways": (
        (
            "{ sessions { schedulerSchedules { status originSession { sessionName schedulerPendingCount } } "
            "runs { state "
            "session { phase } } } }"
        ),
        {},
    ),
    "aliases": ("{ a: schedules { x: status y: status s: scheduleId } b: schedules { status } }", {}),
    "one field under two keys with different selections": (
        (
            "{ sessions { a: schedulerSchedules { status } b: schedulerSchedules { kind fireAt } "
            "schedulerSchedules { label } } }"
        ),
        {},
    ),
    "the same key twice is merged": ("{ sessions { runs { id } runs { state } sessionId sessionId } }", {}),
    "fragments": (
        (
            "{ sessions { ...A ...B } } fragment A on Session { sessionId ...C } fragment B on Session { phase } "
            "fragment C on Session { schedulerSchedules { ... on Schedule { status } } }"
        ),
        {},
    ),
    "inline fragments without a type": ("{ sessions { ... { phase ... @include(if: true) { sessionName } } } }", {}),
    "typename": (
        "{ __typename sessions { __typename schedulerSchedules { t: __typename } } system { __typename } }",
        {},
    ),
    "skip": (
        (
            "query($no: Boolean!) { sessions { phase @skip(if: $no) sessionName @include(if: $no) "
            "...F @skip(if: $no) } } "
            "fragment F on Session { isIdle }"
        ),
        {"no": True},
    ),
    "skip, the other way": (
        (
            "query($no: Boolean!) { sessions { phase @skip(if: $no) sessionName @include(if: $no) "
            "...F @skip(if: $no) } } "
            "fragment F on Session { isIdle }"
        ),
        {"no": False},
    ),
    "a default decides": ("query($no: Boolean = true) { sessions { sessionId phase @skip(if: $no) } }", {}),
    "variables in an open map": (
        (
            "query($text: String, $number: Long = 7, $status: ScheduleStatus, $list: [Boolean], $map: JSON) "
            '{ eql(query: "[*]", entity: {text: $text, many: [$number, $status, {below: $list}], map: $map}) }'
        ),
        {"text": "a", "status": "PENDING", "list": [True, None], "map": {"a": [1.5]}},
    ),
    "variables": (
        (
            "query($statuses: [ScheduleStatus!], $limit: Int = 1) { schedules(statuses: $statuses) { status } "
            "sessions(limit: $limit) { sessionName } }"
        ),
        {"statuses": ["CANCELLED", "DELIVERED"]},
    ),
    "filters": ('{ sessions(filter: {nameContains: "sec", phases: [IDLE]}) { sessionName } }', {}),
    "open maps": ("{ graph { resolverIndex capabilities attrIndex } sessions { messageHistory model } }", {}),
    "null for what is not there": ('{ session(id: "ses-none") { phase } schedule(id: "sch-none") { status } }', {}),
    "a run that is not there": ('{ run(id: "run-none") { state } }', {}),
    "background jobs": ("{ sessions { backgroundJobs { id kind status isTerminal schedulerStatus } } }", {}),
    "summaries": ("{ sessions { contextSessionSummaries { id displayName agentSessionPhase } } }", {}),
    "plain objects": (
        "{ validateSessionConfig(config: {model: 5, bad: 1}) { valid problems { path message code } } }",
        {},
    ),
    "eql": ('{ eql(query: "[:psi.system/version {:psi.system/sessions [:psi.agent-session/phase]} :nope/x]") }', {}),
    "introspection": (get_introspection_query(), {}),
    "introspection beside data": ('{ __type(name: "Schedule") { name kind } system { version } }', {}),
    "an argument out of bounds": ("{ sessions(limit: 0) { phase } }", {}),
    "a session that is not there": ('{ schedules(sessionId: "ses-none") { status } }', {}),
    "a variable of another type": ("query($limit: Int!) { sessions(limit: $limit) { phase } }", {"limit": "x"}),
    "a variable that is missing": ("query($limit: Int!) { sessions(limit: $limit) { phase } }", {}),
    "text that is a number": ("{ eql(query: 5) }", {}),
    "a number that is text": ('subscription { sessionEvents(after: "x") { seq } }', {}),
    "a number that is not whole": ("subscription { sessionEvents(after: 1.5) { seq } }", {}),
    "a number for text, in a variable": ("query($q: EQL!) { eql(query: $q) }", {"q": 5}),
    "a number beyond all bounds": ('{ eql(query: "[:a]", entity: {a: [1e400]}) }', {}),
    "a number of very many digits": (f'{{ eql(query: "[:a]", entity: {{a: {"9" * 5_000}}}) }}', {}),
    "a field that does not exist": ("{ sessions { nope } }", {}),
    "no selection below an entity": ("{ sessions }", {}),
    "a syntax error": ("{ sessions { ", {}),
}


async def populate(ask: Asking) -> None:
    first, second = await ask.session("First"), await ask.session("Second")
    await ask.schedule(first, "/say one", 1_000, label="a")
    await ask.schedule(first, "/say two\n/fail no", 2_000)
    await ask.schedule(second, "x" * 300, 60_000)
    gone = await ask.schedule(second, "never", 50_000)
    await ask.psi.tool({"action": "scheduler", "op": "cancel", "schedule-id": gone}, second)
    request = {
        "action": "scheduler",
        "op": "create",
        "kind": "session",
        "message": "/say fresh",
        "delay-ms": 3_000,
        "session-config": {"session-name": "Made", "model": "demo:one", "skills": ["read"], "thinking-level": "low"},
    }
    await ask.psi.tool(request, second)
    await ask.clock.advance(10)


def comparable(response: Mapping[str, Any]) -> Any:
    """Errors in the order of their paths: fields that run side by side fail in any order."""
    if "errors" not in response:
        return dict(response)
    listed = sorted(response["errors"], key=lambda each: (str(each.get("path")), each["message"]))
    return {**response, "errors": listed}


@pytest.mark.parametrize("name", CORPUS)
async def test_both_ways_of_executing_answer_alike(name: str) -> None:
    text, variables = CORPUS[name]
    async with asking(Settings(query_cost=1_000_000)) as ask:
        await populate(ask)
        stock = comparable(await ask.stock(text, variables))
        for _ in range(3):  # the first answer is not compiled yet, the later ones are
            assert comparable(await ask(text, variables)) == stock
        assert "data" in stock or stock["errors"]


async def test_the_corpus_meets_what_it_is_about() -> None:
    async with asking() as ask:
        await populate(ask)
        statuses = {each["status"] for each in (await ask.data("{ schedules { status } }"))["schedules"]}
        assert {"DELIVERED", "CANCELLED", "PENDING"} <= statuses
        sessions = (await ask.data("{ sessions { sessionName runs { state } } }"))["sessions"]
        assert [each["sessionName"] for each in sessions] == ["First", "Second", "Made"]
        assert {run["state"] for each in sessions for run in each["runs"]} == {"OK", "ERROR"}


def broken(*, label: Any = None, status: Any = None, raises: bool = False) -> Operation:
    """A resolver that comes before ours and says something else."""

    @resolver(
        name="test/broken",
        input=["psi.agent-session/session-id"],
        output=[{"psi.scheduler/schedules": [SCHEDULE, "psi.scheduler/status", "psi.scheduler/label"]}],
        priority=10,
    )
    def schedules(env: Env, _: Any) -> Any:
        if raises:
            raise ValueError("no luck")
        good = {SCHEDULE: "sch-1", "psi.scheduler/status": status, "psi.scheduler/label": label}
        return {"psi.scheduler/schedules": [good]}

    return schedules


ODD = [
    pytest.param({"status": None}, id="nil where none may be"),
    pytest.param({"status": "nothing"}, id="a word the enum does not have"),
]


@pytest.mark.parametrize("odd", ODD)
async def test_what_does_not_fit_its_type_is_an_error_and_reaches_as_far_as_it_must(odd: dict[str, Any]) -> None:
    async with asking(operations=[broken(**odd)]) as ask:
        session = await ask.session()
        text = "query($id: ID!) { session(id: $id) { sessionName schedulerSchedules { scheduleId status label } } }"
        stock = comparable(await ask.stock(text, {"id": session}))
        ours = comparable(await ask(text, {"id": session}))
        assert ours["data"] == stock["data"] == {"session": None}
        assert [each["path"] for each in ours["errors"]] == [["session", "schedulerSchedules", 0, "status"]]
        assert ours == stock


async def test_an_attribute_that_cannot_be_resolved_says_so_at_its_place() -> None:
    @resolver(
        name="test/failing", input=["psi.agent-session/session-id"], output=["psi.agent-session/model"], priority=9
    )
    def model(env: Env, _: Any) -> Any:
        raise ValueError("no luck")

    async with asking(operations=[model]) as ask:
        session = await ask.session()
        text = "query($id: ID!) { session(id: $id) { sessionName model } }"
        assert comparable(await ask(text, {"id": session})) == comparable(await ask.stock(text, {"id": session}))


async def test_an_entity_that_has_gone_is_null_with_the_reason() -> None:
    async with asking() as ask:
        first, second = await ask.session(), await ask.session()
        made = await ask.data(
            "mutation($s: ID) { closeSession(sessionId: $s) { closedSessionId problems { code } } }", {"s": first}
        )
        assert made == {"closeSession": {"closedSessionId": first, "problems": []}}
        left = await ask.data("{ sessions { sessionId } }")
        assert left == {"sessions": [{"sessionId": second}]}


class Broken(MemoryStore):
    async def turns(self, session: str) -> Sequence[Turn]:
        raise RuntimeError("the password is hunter2")


async def test_what_breaks_inside_is_not_shown() -> None:
    async with asking(store=Broken()) as ask:
        session = await ask.session()
        response = await ask("query($id: ID) { runs(sessionId: $id) { id } }", {"id": session})
        assert "hunter2" not in str(response)
        assert response["errors"][0]["extensions"] == {"code": "psi/internal"}


async def test_selections_are_compiled_once_for_a_document() -> None:
    async with asking() as ask:
        await populate(ask)
        text = "query($no: Boolean!) { sessions { phase @skip(if: $no) sessionId } }"
        for no in (True, False, True, False, True):
            await ask.data(text, {"no": no})
        document = ask.operations._documents.get(text)
        assert not isinstance(document, list)
        assert len(document.selections) == 2


async def test_no_field_gets_the_selection_of_another() -> None:
    # A library that remembers selections by addresses mixes them up where something is awaited; one time in ten here.
    async with asking() as ask:
        session = await ask.session()
        await ask.psi.tool({"action": "session", "op": "submit", "message": "/say x", "wait": True}, session)
        for place in range(100):
            text = (
                f'{{ sessions {{ n{place}: sessionName }} session(id: "{session}") {{ o: owner }} '
                "runs { session { p: phase } } }"
            )
            assert await ask.data(text) == {
                "sessions": [{f"n{place}": "First"}],
                "session": {"o": "local"},
                "runs": [{"session": {"p": "IDLE"}}],
            }


async def test_a_variable_that_is_null_is_not_one_that_was_left_out() -> None:
    text = "query($x: Boolean = true) { system { version @skip(if: $x) sessionCount } }"
    async with asking() as ask:
        for variables in ({}, {"x": None}, {"x": False}, {"x": True}, {"x": None}, {}):
            assert await ask(text, variables) == await ask.stock(text, variables), variables


async def test_each_operation_of_a_document_has_its_own_defaults() -> None:
    text = (
        "query A($x: Boolean = true) { ...F } query B($x: Boolean = false) { ...F } "
        "fragment F on Query { system { version @skip(if: $x) sessionCount } }"
    )
    async with asking() as ask:
        for operation in ("A", "B", "A"):
            assert await ask(text, operation=operation) == await ask.stock(text, operation=operation)


async def test_a_variable_of_the_same_name_decides_nothing_in_another_operation() -> None:
    text = (
        "query A($x: Boolean!) { system { version @skip(if: $x) sessionCount } } "
        "query B($x: JSON!) { validateSessionConfig(config: $x) { valid } system { sessionCount } }"
    )
    async with asking() as ask:
        found = await ask(text, {"x": {}}, operation="B")
        assert found == {"data": {"validateSessionConfig": {"valid": True}, "system": {"sessionCount": 0}}}


async def test_what_is_compiled_for_one_document_is_bounded() -> None:
    names = [f"v{place}" for place in range(10)]
    declared = ", ".join(f"${name}: Boolean!" for name in names)
    chosen = " ".join(f"{name}: version @skip(if: ${name})" for name in names)
    text = f"query({declared}) {{ system {{ sessionCount {chosen} }} }}"
    async with asking() as ask:
        for place in range(600):
            await ask.data(text, {name: bool(place >> bit & 1) for bit, name in enumerate(names)})
        document = ask.operations._documents.get(text)
        assert not isinstance(document, list)
        assert len(document.selections) <= 256


async def test_an_operation_of_many_queries_has_one_time_for_all_of_them() -> None:
    asked = " ".join(f's{place}: eql(query: "[:psi.slow/it]")' for place in range(100))

    @resolver(output=["psi.slow/it"])
    async def slow(env: Env, _: Any) -> Any:
        await asyncio.sleep(0.1)
        return {"psi.slow/it": 1}

    async with asking(Settings(query_timeout=0.2), [slow]) as ask:
        began = monotonic()
        response = await ask(f"{{ {asked} }}")
        assert monotonic() - began < 5  # all of them would take ten seconds
        assert {each["extensions"]["code"] for each in response["errors"]} == {"graph/limit-exceeded"}
        assert (await ask.data("{ system { version } }"))["system"]


async def test_an_operation_of_many_queries_lets_others_go_on() -> None:
    entries = 200

    @resolver(output=[{"psi.busy/list": ["psi.busy/it"]}])
    def busy(env: Env, _: Any) -> Any:
        return {"psi.busy/list": [{"psi.busy/it": place} for place in range(entries)]}

    async with asking(None, [busy]) as ask:
        query = "[{:psi.busy/list [:psi.busy/it]}]"
        asked = " ".join(f's{place}: eql(query: "{query}")' for place in range(300))
        going = asyncio.create_task(ask(f"{{ {asked} }}"))
        rounds = 0
        while not going.done():
            await asyncio.sleep(0)
            rounds += 1
        assert "errors" not in going.result()
        assert rounds > 100


async def test_one_large_value_under_many_keys_is_too_large_before_it_is_made() -> None:
    async with asking() as ask:
        asked = " ".join(f"a{place}: attrIndex" for place in range(1_900))
        response = await ask(f"{{ graph {{ {asked} }} }}")
        assert response["errors"][0]["extensions"]["code"] == "http/answer-too-large"
        few = await ask.data("{ graph { a: attrIndex b: attrIndex } }")
        assert few["graph"]["a"] == few["graph"]["b"]


async def test_what_a_mutation_has_done_is_told_however_long_it_took() -> None:
    async with asking(Settings(query_timeout=0.001)) as ask:
        made = " ".join(f"a{place}: createSession {{ session {{ sessionId }} }}" for place in range(50))
        response = await ask(f"mutation {{ {made} }}")
        assert "errors" not in response
        assert len({each["session"]["sessionId"] for each in response["data"].values()}) == 50


async def test_whoever_is_cancelled_while_others_go_on_leaves_the_turn_to_the_next() -> None:
    pace = Pace(None)
    pace._rested -= 1  # long ago: the next one lets others in first
    entering = asyncio.create_task(pace.__aenter__())
    await asyncio.sleep(0)
    entering.cancel()
    async with asyncio.timeout(5), pace:
        pass


FULL = get_introspection_query(
    specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
)


async def test_the_whole_schema_may_be_asked_for_five_times_at_once() -> None:
    fragments = FULL[FULL.index("fragment FullType") :]
    whole = "__schema { queryType { name } types { ...FullType } directives { name args { ...InputValue } } }"
    text = "{ " + " ".join(f"a{place}: {whole}" for place in range(5)) + " } " + fragments
    async with asking() as ask:
        found = await ask.data(text)
        assert found["a0"] == found["a4"]


def wide(count: int, field: str) -> str:
    """The same field under many keys."""
    return " ".join(f"a{place}: {field}" for place in range(count))


HOSTILE = {
    "a fragment under many keys": f"{{ __schema {{ {wide(1_000, 'types { ...T }')} }} }} "
    "fragment T on __Type { name fields { name args { name } } }",
    "where null may be": f"{{ __schema {{ types {{ {wide(700, 'fields { args { defaultValue } }')} }} }} }}",
    "beside what is awaited": f"{{ sessions {{ phase }} __schema {{ {wide(700, 'types { fields { name } }')} }} }}",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_schema_that_is_asked_for_a_thousand_times_is_not_told(name: str) -> None:
    async with asking() as ask:
        await ask.session()
        for _ in range(2):
            began = monotonic()
            response = await ask(HOSTILE[name])
            assert monotonic() - began < 3  # 0.2 s here, and 8 s without a bound
            assert response == {
                "data": None,
                "errors": [
                    {
                        "message": "the answer has more than 25000 fields",
                        "extensions": {"code": "limit/cost", "limit": 25_000},
                    }
                ],
            }


@pytest.mark.parametrize(
    ("literal", "variables", "found"),
    [
        ("{a: $x, b: {c: $x, d: 1}}", {}, {"a": None, "b": {"d": 1}}),
        ("{a: [$x, 1, [$x]]}", {}, {"a": [None, 1, [None]]}),
        ("{a: $x, b: [$x]}", {"x": None}, {"a": None, "b": [None]}),
        ("{a: $x, b: [$x]}", {"x": "PENDING"}, {"a": "PENDING", "b": ["PENDING"]}),
        ('{a: "1", b: 1, c: 1.5, d: true, e: null, f: WORD, g: []}', {}, None),
        (f"{{a: {'9' * 4_300}}}", {}, {"a": int("9" * 4_300)}),
        (f"{{a: {'[' * 127}{']' * 127}}}", {}, None),
    ],
)
async def test_an_open_map_in_a_document_is_what_it_would_be_in_a_variable(
    literal: str, variables: dict[str, Any], found: Any
) -> None:
    async with asking() as ask:
        text = f'query($x: ScheduleStatus) {{ eql(query: "[:a :b :c :d :e :f :g]", entity: {literal}) }}'
        told = (await ask(text.replace("($x: ScheduleStatus)", "") if "$x" not in literal else text, variables))[
            "data"
        ]["eql"]
        told.pop("psi.graph/attribute-errors", None)
        if found is None:
            found = json.loads(re.sub(r"(\b[a-g]\b):", r'"\1":', literal).replace("WORD", '"WORD"'))
        assert {name: told.get(name) for name in found} == found


@pytest.mark.parametrize(
    ("literal", "problem"),
    [
        ("1e400", "the number 1e400 is out of range"),
        ("9" * 4_301, "a whole number has at most 4300 digits"),
        ("[" * 129 + "]" * 129, "it is nested deeper than 128 levels"),
    ],
)
async def test_what_json_cannot_carry_is_refused_with_a_sentence(literal: str, problem: str) -> None:
    async with asking() as ask:
        (error,) = (await ask(f"{{ validateSessionConfig(config: {literal}) {{ valid }} }}"))["errors"]
        assert f"encountered error '{problem}'" in error["message"]
        assert error["extensions"] == {"code": "graphql/invalid"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "graphql/syntax"),
        ("{ nope }", "graphql/invalid"),
        ("query A { system { version } } query B { system { version } }", "graphql/invalid"),
        ("query($n: Int!) { sessions(limit: $n) { phase } }", "graphql/invalid"),
        ("{ sessions(limit: 0) { phase } }", "graphql/invalid-limit"),
    ],
)
async def test_every_error_has_a_code(text: str, code: str) -> None:
    async with asking() as ask:
        assert [each["extensions"]["code"] for each in (await ask(text))["errors"]] == [code]


async def test_a_list_in_which_something_has_changed_is_told_as_it_is_now() -> None:
    async with asking() as ask:
        session = await ask.session()
        names = [await ask.schedule(session, f"{place}") for place in range(5)]
        text = "{ schedules { scheduleId message status label } }"
        for changed in names:
            first = await ask(text)
            assert first == await ask.stock(text)
            await ask.psi.tool({"action": "scheduler", "op": "cancel", "schedule-id": changed}, session)
        last = await ask(text)
        assert last == await ask.stock(text)
        assert {each["status"] for each in last["data"]["schedules"]} == {"CANCELLED"}


async def test_the_same_list_under_other_names_is_laid_out_on_its_own() -> None:
    async with asking() as ask:
        await ask.schedule(await ask.session(), "x")
        for text in ("{ schedules { a: message } }", "{ schedules { b: message } }", "{ a: schedules { a: message } }"):
            for _ in range(2):
                assert await ask(text) == await ask.stock(text)


def test_what_was_laid_out_is_kept_within_bounds_and_laid_out_once() -> None:
    laid_out: list[int] = []

    class Counting(Compiled):
        def __init__(self) -> None:
            self.many = self._many

        def _many(self, seeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
            laid_out.append(len(seeds))
            return [{"told": seed["n"]} for seed in seeds]

    layouts, one, other = Layouts(most=10), Counting(), Counting()
    seeds = [{"n": n} for n in range(8)]
    expected = [{"told": n} for n in range(8)]
    assert layouts.many(one, seeds) == layouts.many(one, seeds) == expected
    assert layouts.many(one, [seeds[3], {"n": 9}, seeds[3]]) == [{"told": 3}, {"told": 9}, {"told": 3}]
    assert laid_out == [8, 1]
    assert layouts.many(other, seeds) == expected
    assert len(layouts) == 8
    assert layouts.many(one, seeds) == expected
    assert laid_out == [8, 1, 8, 8]
    many = [{"n": n} for n in range(11)]
    assert layouts.many(one, many) == [{"told": n} for n in range(11)]
    assert len(layouts) <= 10
