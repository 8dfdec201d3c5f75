"""What the graph says of sessions, schedules and itself is true."""

from __future__ import annotations

from typing import Any

from psi.edn import Keyword, Symbol
from psi.graph import Resolver
from psi.graph.shape import Shape
from resolvers import ATTRIBUTES, OPERATIONS
from tests.runtime.world import World, world


async def lively(here: World) -> str:
    """A session in which a little of everything has happened."""
    session = await here.session("Lively", {"skills": ["s"], "thinking-level": "low", "model": "acme:one"})
    await here.submit(session, "hi", wait=True)
    await here.schedule(session, config={})
    await here.schedule(session)
    await here.clock.advance(2)
    await here.schedule(session, delay_ms=60_000)
    await here.cancel(session, await here.schedule(session, delay_ms=60_000))
    return session


async def described(here: World) -> dict[str, Any]:
    names = " ".join(f":{name}" for name in ATTRIBUTES if name.startswith("psi.graph/"))
    found = await here.ask(None, f"[{names}]")
    return {name.removeprefix("psi.graph/"): value for name, value in found.items()}


async def test_every_root_queryable_attribute_resolves_to_what_it_is_declared_as() -> None:
    async with world() as here:
        session = await lively(here)
        told = await described(here)
        names = told["root-queryable-attrs"]
        assert names == sorted(names)
        assert not set(names) & set(told["root-seeds"])
        for name in names:
            found = await here.ask(session, f"[:{name}]")
            assert ATTRIBUTES.problems(found) == []


async def test_what_is_not_root_queryable_cannot_be_had_from_the_root() -> None:
    async with world() as here:
        session = await lively(here)
        told = await described(here)
        given = {name for each in OPERATIONS if isinstance(each, Resolver) for name in each.output}
        for name in given - set(told["root-queryable-attrs"]) - set(told["root-seeds"]):
            answer = await here.psi.tool({"query": f"[:{name}]"}, session)
            assert answer["psi-tool/error"]["code"] == "graph/attribute-unreachable"


async def test_entities_resolve_to_what_is_declared_both_ways() -> None:
    query = """[{:psi.scheduler/schedules [* {:psi.scheduler/origin-session [:psi.agent-session/phase]}
                                             {:psi.scheduler/created-session [:psi.agent-session/created]}
                                             :psi.scheduler/kind]}
                {:psi.agent-session/runs [* {:psi.run/session [:psi.agent-session/session-id]}]}
                {:psi.agent-session/background-jobs [*]}
                {:psi.agent-session/context-session-summaries [* :psi.agent-session/message-count]}
                {:psi.system/sessions [:psi.agent-session/session-id]}]"""
    async with world() as here:
        session = await lively(here)
        found = await here.ask(session, query)
        assert ATTRIBUTES.problems({k: v for k, v in found.items() if k != "psi.scheduler/schedules"}) == []
        origins = [each["psi.scheduler/origin-session"] for each in found["psi.scheduler/schedules"]]
        assert origins == [{"psi.agent-session/phase": "idle"}] * 4
        jobs = found["psi.agent-session/background-jobs"]
        assert sorted(job["psi.background-job/status"] for job in jobs) == [
            "cancelled",
            "completed",
            "completed",
            "running",
        ]
        assert {job["psi.background-job/kind"] for job in jobs} == {"scheduled-prompt", "scheduled-session"}
        assert all(job["psi.background-job/id"].startswith("schedule/sch-") for job in jobs)


def shapes(shape: Shape) -> set[str]:
    return {*shape, *(name for below in shape.values() for name in shapes(below or {}))}


def test_no_operation_gives_what_is_not_declared_and_everything_declared_is_given() -> None:
    given = {name for operation in OPERATIONS for name in shapes(operation.output)}
    own_kinds = {"psi.resolver/sym", "psi.resolver/input", "psi.resolver/output"}
    in_values = own_kinds | {"psi.attr/produced-by", "psi.attr/reachable-via"}
    assert given - set(ATTRIBUTES) == set()
    assert set(ATTRIBUTES) - given - in_values == set()


async def test_counts_nodes_edges_and_indexes_agree() -> None:
    async with world() as here:
        told = await described(here)
        assert told["resolver-count"] == len(told["resolver-syms"]) == len(told["resolver-index"])
        assert told["mutation-count"] == len(told["mutation-syms"]) > 0
        ids = [node["id"] for node in told["nodes"]]
        assert len(ids) == len(set(ids))
        kinds = [node["type"] for node in told["nodes"]]
        assert kinds.count("resolver") == told["resolver-count"]
        assert kinds.count("mutation") == told["mutation-count"]
        assert kinds.count("capability") == len(told["capabilities"]) == len(told["domain-coverage"])
        assert all(edge["from"] in ids and edge["to"] in ids for edge in told["edges"])
        for capability, coverage in zip(told["capabilities"], told["domain-coverage"], strict=True):
            assert {key: capability[key] for key in coverage} == coverage
            assert coverage["operation-count"] == coverage["resolver-count"] + coverage["mutation-count"]
        assert sum(each["resolver-count"] for each in told["domain-coverage"]) == told["resolver-count"]
        assert sum(each["mutation-count"] for each in told["domain-coverage"]) == told["mutation-count"]
        syms = [each["psi.resolver/sym"] for each in told["resolver-index"]]
        assert syms == sorted(syms) == told["resolver-syms"]
        for name, about in told["attr-index"].items():
            assert isinstance(name, Keyword)
            assert all(isinstance(each, Symbol) and each in syms for each in about["psi.attr/produced-by"])
            assert set(about["psi.attr/reachable-via"]) == set(about["psi.attr/produced-by"])
        edge = {"from": "psi.scheduler/schedule-id", "via": "psi.scheduler/schedule-by-id", "to": "psi.scheduler/kind"}
        assert edge in told["dependencies"]


async def test_the_system_counts_what_there_is() -> None:
    async with world() as here:
        await lively(here)
        await here.clock.advance(3)
        query = """[:psi.system/session-count :psi.system/schedule-count :psi.system/active-run-count
                    :psi.system/uptime-ms :psi.system/version]"""
        found = await here.ask(None, query)
        assert found["psi.system/session-count"] == 2
        assert found["psi.system/schedule-count"] == 1
        assert found["psi.system/active-run-count"] == 0
        assert found["psi.system/uptime-ms"] == 5000


async def test_an_unknown_session_or_schedule_has_no_attributes() -> None:
    async with world() as here:
        for key in ("psi.agent-session/session-id", "psi.scheduler/schedule-id", "psi.run/id"):
            name = {"psi.agent-session/session-id": "phase", "psi.scheduler/schedule-id": "status"}.get(key, "state")
            query = f"[:{key.partition('/')[0]}/{name}]"
            answer = await here.psi.tool({"query": query, "entity": {key: "nobody"}})
            assert answer["psi-tool/error"]["code"] == "graph/attribute-missing"


async def test_mutations_are_commands_whose_answers_can_be_asked_on() -> None:
    async with world() as here:
        session = await here.session()
        query = """[{(psi.scheduler/create {:kind "message" :message "x" :delay-ms 1000})
                     [:psi.scheduler/status {:psi.scheduler/origin-session [:psi.scheduler/pending-count]}]}]"""
        answer = await here.ask(session, query)
        assert answer == {
            "psi.scheduler/create": {
                "psi.scheduler/status": "pending",
                "psi.scheduler/origin-session": {"psi.scheduler/pending-count": 1},
            }
        }
