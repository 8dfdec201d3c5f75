"""Awaiting: what is in flight at the same time, what is shared, and what ends when something else does.

Nothing here waits for time to pass. Two resolvers that meet at a barrier are in flight together, or the test ends after
the patience of ``soon``.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import pytest

from psi.edn import Symbol
from psi.graph import (
    ERRORS,
    AsyncOperation,
    AttributeUnreachable,
    BatchFailed,
    Env,
    Graph,
    LimitExceeded,
    MutationFailed,
    Resolver,
    ResolverFailed,
    mutation,
    resolver,
)
from tests.graph.recorder import Recorder

Build = Callable[..., Graph]
T = TypeVar("T")


async def soon(awaitable: Awaitable[T]) -> T:
    """What never comes fails the test instead of holding it up."""
    async with asyncio.timeout(5):
        return await awaitable


async def a_turn() -> None:
    """Let everything else that is ready go first."""
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()


@contextmanager
def nothing_is_left_behind() -> Iterator[None]:
    """No coroutine is dropped that nobody awaited."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def meets(barrier: asyncio.Barrier, gives: str, name: str | None = None, **options: Any) -> Resolver:
    """An async resolver that answers once so many of them are in flight."""

    async def function(env: Env, data: Any) -> Any:
        await barrier.wait()
        return [{gives: item["id"]} for item in data] if options.get("batch") else {gives: data["id"]}

    return resolver(name=name or gives, input=["id"], output=[gives], **options)(function)


class Held:
    """An async operation that never answers and knows how it ended."""

    def __init__(self) -> None:
        self.called = 0
        self.ended: list[str] = []
        self.started = asyncio.Event()

    async def __call__(self, env: Env, data: Any) -> Any:
        self.called += 1
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise


@asynccontextmanager
async def held() -> AsyncIterator[Held]:
    """However the test goes, what was started has ended."""
    made = Held()
    yield made
    assert made.ended == ["cancelled"] * made.called


# -- side by side


async def test_a_long_query_lets_others_go_on() -> None:
    @resolver(input=["n"], output=["square"])
    def square(env: Env, data: Any) -> Any:
        return {"square": data["n"] ** 2}

    graph = Graph([square], compile_after=None)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await asyncio.sleep(0)
    await graph.query("[{:l [:square]}]", {"l": [{"n": n} for n in range(5_000)]})
    beside.cancel()
    assert turns > 2


async def test_independent_resolvers_of_one_entity_are_in_flight_together(build: Build) -> None:
    barrier = asyncio.Barrier(3)
    graph = build(*(meets(barrier, name) for name in "xyz"))
    assert await soon(graph.query("[:x :y :z]", {"id": 1})) == {"x": 1, "y": 1, "z": 1}


async def test_the_entities_of_a_list_are_in_flight_together(build: Build) -> None:
    graph = build(meets(asyncio.Barrier(4), "x"))
    entity = {"l": [{"id": 1}, {"id": 2}], "j": {"id": 3}, "deep": [{"l": ({"id": 4},)}]}
    assert await soon(graph.query("[{:l [:x]} {:j [:x]} {:deep [{:l [:x]}]}]", entity)) == {
        "l": [{"x": 1}, {"x": 2}],
        "j": {"x": 3},
        "deep": [{"l": ({"x": 4},)}],
    }


async def test_an_entity_goes_on_while_another_still_waits(build: Build) -> None:
    done = asyncio.Event()

    @resolver(input=["id"], output=["a"])
    async def a(env: Env, data: Any) -> Any:
        if data["id"] == 1:
            await done.wait()
        return {"a": data["id"]}

    @resolver(input=["a"], output=["b"])
    async def b(env: Env, data: Any) -> Any:
        if data["a"] == 2:
            done.set()
        return {"b": data["a"] * 10}

    assert await soon(build(a, b).query("[{:l [:b]}]", {"l": [{"id": 1}, {"id": 2}]})) == {"l": [{"b": 10}, {"b": 20}]}


async def test_plain_resolvers_go_on_while_async_ones_wait(build: Build, told: Recorder) -> None:
    done = asyncio.Event()

    @resolver(input=["id"], output=["slow"])
    async def slow(env: Env, data: Any) -> Any:
        await done.wait()
        return {"slow": 1}

    def release(data: Any) -> Any:
        done.set()
        return {"quick": 2}

    quick = told.resolver("quick", ["id"], ["quick"], release)
    both = told.resolver("both", ["slow", "quick"], ["both"], lambda data: {"both": data["slow"] + data["quick"]})
    assert await soon(build(slow, quick, both).query("[:slow :both]", {"id": 1})) == {"slow": 1, "both": 3}


async def test_a_chain_of_async_and_plain_resolvers(build: Build, told: Recorder) -> None:
    @resolver(input=["a"], output=["b"])
    async def b(env: Env, data: Any) -> Any:
        await a_turn()
        return {"b": data["a"] + 1}

    c = told.resolver("c", ["b"], ["c"], lambda data: {"c": data["b"] * 10})

    @resolver(input=["c"], output=["d"])
    async def d(env: Env, data: Any) -> Any:
        return {"d": data["c"] + 1}

    graph = build(b, c, d)
    assert await soon(graph.query("[:d {:l [:d]}]", {"a": 1, "l": [{"a": 2}, {"b": 7}]})) == {
        "d": 21,
        "l": [{"d": 31}, {"d": 71}],
    }


async def test_batches_and_async_resolvers_are_in_flight_together(build: Build) -> None:
    barrier = asyncio.Barrier(3)
    graph = build(meets(barrier, "x"), meets(barrier, "y", batch=True), meets(barrier, "z", batch=True))
    assert await soon(graph.query("[{:l [:y]} {:m [:z]} :x]", {"id": 1, "l": [{"id": 2}], "m": [{"id": 3}]})) == {
        "l": [{"y": 2}],
        "m": [{"z": 3}],
        "x": 1,
    }


async def test_the_chunks_of_a_batch_are_in_flight_together(build: Build) -> None:
    graph = build(meets(asyncio.Barrier(3), "x", batch=True, chunk=2))
    assert await soon(graph.query("[{:l [:x]}]", {"l": [{"id": n} for n in range(5)]})) == {
        "l": [{"x": n} for n in range(5)]
    }


async def test_an_async_batch_is_called_once_for_the_whole_tree(build: Build, told: Recorder) -> None:
    @resolver(input=["id"], output=["x"], batch=True)
    async def x(env: Env, items: Any) -> Any:
        told.calls.append(("x", [item["id"] for item in items]))
        await a_turn()
        return [{"x": -item["id"]} for item in items]

    entity = {"l": [{"id": 1}, {"id": 2}, {"id": 1}], "j": {"id": 3}}
    assert await soon(build(x).query("[{:l [:x]} {:j [:x]}]", entity)) == {
        "l": [{"x": -1}, {"x": -2}, {"x": -1}],
        "j": {"x": -3},
    }
    [(_, asked)] = told.calls
    assert sorted(asked) == [1, 2, 3]


async def test_what_became_ready_together_is_batched_together(build: Build, told: Recorder) -> None:
    barrier = asyncio.Barrier(3)
    y = told.resolver("y", ["x"], ["y"], lambda items: [{"y": item["x"]} for item in items], batch=True)
    graph = build(meets(barrier, "x"), y)
    assert await soon(graph.query("[{:l [:y]}]", {"l": [{"id": n} for n in range(3)]})) == {
        "l": [{"y": n} for n in range(3)]
    }
    assert len(told.calls) == 1


async def test_two_requests_to_one_graph_do_not_share_what_they_know(build: Build) -> None:
    calls: list[Any] = []
    barrier = asyncio.Barrier(2)

    @resolver(input=["id"], output=["who"])
    async def who(env: Env, data: Any) -> Any:
        calls.append(env.context)
        await barrier.wait()
        return {"who": env.context}

    graph = build(who)
    both = asyncio.gather(graph.query("[:who]", {"id": 1}, context="a"), graph.query("[:who]", {"id": 1}, context="b"))
    one, other = await soon(both)
    assert (one, other) == ({"who": "a"}, {"who": "b"})
    assert sorted(calls) == ["a", "b"]


async def test_a_resolver_may_ask_the_graph_itself(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda data: {"b": data["a"] + 1})

    @resolver(input=["a"], output=["asked"])
    async def asks(env: Env, data: Any) -> Any:
        return {"asked": await env.context.query("[:b]", {"a": data["a"] * 10})}

    graph = build(b, asks)
    assert await soon(graph.query("[:asked :b]", {"a": 1}, context=graph)) == {"asked": {"b": 11}, "b": 2}


async def test_context_variables_of_the_caller_are_seen_by_resolvers(build: Build) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")

    async def read(env: Env, data: Any) -> Any:
        await a_turn()
        return {"x": tenant.get(), "y": tenant.get()}

    graph = build(resolver(name="x", output=["x"])(read), resolver(name="y", output=["y"])(read))
    tenant.set("north")
    assert await soon(graph.query("[:x :y]")) == {"x": "north", "y": "north"}


# -- shared results


async def test_the_same_input_in_flight_is_asked_once(build: Build) -> None:
    calls: list[int] = []
    arrived = asyncio.Event()

    @resolver(input=["id"], output=["x", "y"])
    async def x(env: Env, data: Any) -> Any:
        calls.append(data["id"])
        await arrived.wait()
        return {"x": data["id"], "y": -data["id"]}

    @resolver(input=["id"], output=["z"])
    async def z(env: Env, data: Any) -> Any:
        arrived.set()
        return {"z": 0}

    entity = {"id": 1, "l": [{"id": 1}, {"id": 2}, {"id": 1}], "j": {"id": 2}}
    assert await soon(build(x, z).query("[:x :z {:l [:y]} {:j [:x]}]", entity)) == {
        "x": 1,
        "z": 0,
        "l": [{"y": -1}, {"y": -2}, {"y": -1}],
        "j": {"x": 2},
    }
    assert sorted(calls) == [1, 2]


async def test_without_the_cache_everyone_asks_for_himself(build: Build) -> None:
    barrier = asyncio.Barrier(3)
    assert await soon(build(meets(barrier, "x", cache=False)).query("[{:l [:x]}]", {"l": [{"id": 1}] * 3})) == {
        "l": [{"x": 1}] * 3
    }


async def test_all_who_share_a_result_share_its_failure_too(build: Build) -> None:
    calls: list[Any] = []

    @resolver(input=["id"], output=["x"])
    async def x(env: Env, data: Any) -> Any:
        calls.append(data)
        await a_turn()
        raise ValueError("no")

    found = await soon(build(x).query("[{:l [:x]}]", {"l": [{"id": 1}, {"id": 1}]}, lenient=True))
    assert [list(entity[ERRORS]) for entity in found["l"]] == [["x"], ["x"]]
    assert len(calls) == 1


# -- plain functions that return awaitables


class Awaitee:
    """Neither a coroutine nor a future."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, None, Any]:
        yield from a_turn().__await__()
        return self._value


def as_coroutine(value: Any) -> Awaitable[Any]:
    return _returned(value)


async def _returned(value: Any) -> Any:
    await a_turn()
    return value


def as_future(value: Any) -> Awaitable[Any]:
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, value)
    return future


WAYS = [as_coroutine, as_future, Awaitee]


@pytest.mark.parametrize("way", WAYS, ids=["coroutine", "future", "awaitable"])
async def test_a_plain_function_may_return_something_to_be_awaited(build: Build, told: Recorder, way: Any) -> None:
    x = told.resolver("x", ["id"], ["x"], lambda data: way({"x": data["id"]}))
    y = told.resolver("y", ["id"], ["y"], lambda items: way([{"y": item["id"]} for item in items]), batch=True)
    go = told.mutation("m/go", lambda params: way({"id": 5}))
    graph = build(x, y, go)
    for _ in range(2):
        query = "[{(m/go {}) [:x]} :x {:l [:x]} {:m [:y]}]"
        entity = {"id": 1, "l": [{"id": 1}, {"id": 2}, {"id": 2}], "m": [{"id": 1}, {"id": 2}]}
        assert await soon(graph.query(query, entity)) == {
            Symbol("m/go"): {"x": 5},
            "x": 1,
            "l": [{"x": 1}, {"x": 2}, {"x": 2}],
            "m": [{"y": 1}, {"y": 2}],
        }
    assert told.counts == {"m/go": 2, "x": 6, "y": 2}


# -- mutations


async def test_async_mutations_run_one_after_another_before_anything_is_read(build: Build) -> None:
    seen: list[str] = []

    def step(name: str) -> Any:
        @mutation(name)
        async def run(env: Env, params: Any) -> Any:
            seen.append(f"{name} begins")
            await a_turn()
            await a_turn()
            seen.append(f"{name} ends")
            return {"id": 1}

        return run

    @resolver(input=["id"], output=["x"])
    async def x(env: Env, data: Any) -> Any:
        seen.append(f"x of {data['id']}")
        return {"x": data["id"]}

    graph = build(step("m/one"), step("m/two"), x)
    assert await soon(graph.query("[:x (m/one {}) {:>/p [{(m/two {}) [:x]}]}]", {"id": 2})) == {
        "x": 2,
        Symbol("m/one"): {"id": 1},
        ">/p": {Symbol("m/two"): {"x": 1}},
    }
    assert seen == ["m/one begins", "m/one ends", "m/two begins", "m/two ends", "x of 1", "x of 2"]


async def test_an_async_mutation_that_raises_stops_the_ones_after_it(build: Build, told: Recorder) -> None:
    @mutation("m/go")
    async def go(env: Env, params: Any) -> Any:
        await a_turn()
        raise ValueError("no")

    graph = build(go, told.mutation("m/next", 1))
    with pytest.raises(MutationFailed) as caught:
        await soon(graph.query("[(m/go {}) (m/next {})]"))
    assert str(caught.value) == "mutation m/go failed: ValueError: no"
    assert told.calls == []
    found = await soon(graph.query("[(m/go {}) (m/next {})]", lenient=True))
    assert found[Symbol("m/next")] == 1


# -- query_now


@resolver(input=["id"], output=["x"])
async def later(env: Env, data: Any) -> Any:
    return {"x": data["id"]}


@resolver(input=["id"], output=["y"], batch=True)
async def batched(env: Env, items: Any) -> Any:
    return [{"y": item["id"]} for item in items]


@mutation("m/later")
async def go_later(env: Env, params: Any) -> Any:
    return {}


@resolver(input=["id"], output=["hidden"])
def hidden(env: Env, data: Any) -> Any:
    return _returned({"hidden": 1})


@resolver(input=["id"], output=["sums"], batch=True)
def hidden_batch(env: Env, items: Any) -> Any:
    return _returned([{"sums": 1} for _ in items])


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("[:x]", "later"),
        ("[{:l [:x]}]", "later"),
        ("[:y]", "batched"),
        ("[{:l [:y]}]", "batched"),
        ("[(m/later {})]", "m/later"),
        ("[{:>/p [(m/later {})]}]", "m/later"),
        ("[:hidden]", "hidden"),
        ("[{:l [:hidden]}]", "hidden"),
        ("[{:l [:sums]}]", "hidden_batch"),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_without_an_event_loop_what_must_be_awaited_is_refused_in_a_sentence(
    build: Build, query: str, name: str, lenient: bool
) -> None:
    graph = build(later, batched, go_later, hidden, hidden_batch)
    with nothing_is_left_behind():
        with pytest.raises(AsyncOperation) as caught:
            graph.query_now(query, {"id": 1, "l": [{"id": 1}, {"id": 2}, {"id": 1}]}, lenient=lenient)
        assert str(caught.value) == f"{name} is asynchronous: use `await graph.query(..)` instead of `query_now`"
        assert caught.value.as_data()["data"] == {"operation": name}
        del caught


def test_nothing_was_called_when_an_operation_of_the_entity_is_refused(build: Build, told: Recorder) -> None:
    graph = build(later, go_later, told.resolver("b", ["id"], ["b"], {"b": 1}), told.mutation("m/go", 1))
    for query in ("[:b :x]", "[(m/go {}) :x]", "[(m/go {}) (m/later {}) :b]"):
        with pytest.raises(AsyncOperation):
            graph.query_now(query, {"id": 1})
    assert told.calls == []


def test_async_operations_that_are_not_needed_do_no_harm(build: Build, told: Recorder) -> None:
    graph = build(later, told.resolver("plain", ["id"], ["x"], {"x": "plain"}, priority=1))
    assert graph.query_now("[:x]", {"id": 1}) == {"x": "plain"}
    assert graph.query_now("[:x]", {"id": 1, "x": 0}) == {"x": 0}


async def test_query_now_works_inside_a_running_loop(build: Build, told: Recorder) -> None:
    assert build(told.resolver("b", ["a"], ["b"], {"b": 1})).query_now("[:b]", {"a": 1}) == {"b": 1}


async def test_a_query_of_plain_operations_needs_no_turn_of_the_loop(build: Build, told: Recorder) -> None:
    graph = build(
        told.resolver("b", ["a"], ["b"], {"b": 1}),
        told.resolver("c", ["a"], ["c"], lambda i: [{"c": 1}] * len(i), batch=True),
    )
    coroutine = graph.query("[:b]", {"a": 1})
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    assert ended.value.value == {"b": 1}


# -- failures


async def test_in_strict_mode_the_first_failure_cancels_what_is_in_flight(build: Build) -> None:
    async with held() as other:

        @resolver(input=["id"], output=["x"])
        async def fails(env: Env, data: Any) -> Any:
            await other.started.wait()
            raise ValueError("no")

        graph = build(fails, resolver(input=["id"], output=["y"])(other))
        with pytest.raises(ResolverFailed) as caught:
            await soon(graph.query("[{:l [:x]} {:m [:y]}]", {"l": [{"id": 1}], "m": [{"id": 1}, {"id": 2}]}))
        assert str(caught.value) == "resolver fails failed at [:l 0]: ValueError: no"
        assert isinstance(caught.value.__cause__, ValueError)
        assert other.called == 2


async def test_a_failure_in_one_entity_cancels_its_own_neighbours_too(build: Build) -> None:
    async with held() as other:

        @resolver(input=["id"], output=["x"])
        async def fails(env: Env, data: Any) -> Any:
            await other.started.wait()
            raise ValueError("no")

        graph = build(fails, resolver(input=["id"], output=["y"])(other))
        with pytest.raises(ResolverFailed):
            await soon(graph.query("[:x :y]", {"id": 1}, timeout=0.5))
        assert other.called == 1


async def test_in_lenient_mode_the_others_go_on(build: Build) -> None:
    failed = asyncio.Event()

    @resolver(input=["id"], output=["x"])
    async def fails(env: Env, data: Any) -> Any:
        failed.set()
        raise ValueError("no")

    @resolver(input=["id"], output=["y"])
    async def waits(env: Env, data: Any) -> Any:
        await failed.wait()
        await a_turn()
        return {"y": 1}

    found = await soon(build(fails, waits).query("[:x :y {:l [:x :y]}]", {"id": 1, "l": [{"id": 2}]}, lenient=True))
    assert (found["y"], found["l"][0]["y"]) == (1, 1)
    assert (list(found[ERRORS]), list(found["l"][0][ERRORS])) == (["x"], ["x"])


async def test_an_async_provider_that_raises_gives_way_to_the_next(build: Build, told: Recorder) -> None:
    async def fails(env: Env, data: Any) -> Any:
        await a_turn()
        raise ValueError("no")

    async def nothing(env: Env, data: Any) -> Any:
        await a_turn()

    graph = build(
        resolver(name="1", input=["id"], output=["x"], priority=3)(fails),
        resolver(name="2", input=["id"], output=["x"], priority=2, batch=True)(fails),
        resolver(name="3", input=["id"], output=["x"], priority=1)(nothing),
        told.resolver("4", ["id"], ["x"], lambda data: {"x": data["id"]}),
    )
    assert await soon(graph.query("[{:l [:x]}]", {"l": [{"id": 1}, {"id": 2}]})) == {"l": [{"x": 1}, {"x": 2}]}
    assert told.counts == {"4": 2}


async def test_an_async_batch_that_raises_or_miscounts_fails_as_a_plain_one(build: Build) -> None:
    async def fails(env: Env, items: Any) -> Any:
        await a_turn()
        raise ValueError("no")

    async def miscounts(env: Env, items: Any) -> Any:
        await a_turn()
        return [{}]

    entity = {"l": [{"id": 1}, {"id": 2}]}
    for function, message in (
        (fails, "batch resolver x failed at [:l 0]: ValueError: no"),
        (miscounts, "batch resolver x failed: expected a list of 2 results, one for each input, got 1 results"),
    ):
        graph = build(resolver(name="x", input=["id"], output=["x"], batch=True)(function))
        with pytest.raises(BatchFailed) as caught:
            await soon(graph.query("[{:l [:x]}]", entity))
        assert str(caught.value) == message


async def test_a_timeout_of_a_resolver_is_its_own_failure(build: Build) -> None:
    @resolver(input=["id"], output=["x"])
    async def slow(env: Env, data: Any) -> Any:
        raise TimeoutError("database")

    for query in ("[:x]", "[{:l [:x]}]"):
        with pytest.raises(ResolverFailed) as caught:
            await soon(build(slow).query(query, {"id": 1, "l": [{"id": 1}, {"id": 2}]}, timeout=60))
        assert caught.value.reason == "TimeoutError: database"


@pytest.mark.parametrize("query", ["[:x]", "[:x :y]", "[{:l [:x]}]"])
async def test_a_resolver_whose_own_work_was_cancelled_ends_the_request(build: Build, query: str) -> None:
    async def cancelled(env: Env, data: Any) -> Any:
        work = asyncio.get_running_loop().create_future()
        work.cancel()
        return await work

    graph = build(resolver(name="x", input=["id"], output=["x"])(cancelled), meets(asyncio.Barrier(1), "y"))
    with pytest.raises((ResolverFailed, asyncio.CancelledError)):
        await soon(graph.query(query, {"id": 1, "l": [{"id": 1}, {"id": 2}]}))


async def test_a_request_that_fails_before_it_awaits_leaves_nothing_behind(build: Build) -> None:
    graph = build(later, hidden)
    entity = {"l": [{"id": 1}, {}]}
    for query in ("[{:l [:x]}]", "[{:l [:hidden]}]"):
        with nothing_is_left_behind(), pytest.raises(AttributeUnreachable):
            await graph.query(query, entity)
    with nothing_is_left_behind(), pytest.raises(AttributeUnreachable):
        graph.query_now("[{:l [:hidden]}]", entity)


async def test_a_request_that_meets_a_limit_leaves_nothing_behind(build: Build) -> None:
    with nothing_is_left_behind(), pytest.raises(LimitExceeded):
        await build(later).query("[{:l [:x]}]", {"l": [{"id": n} for n in range(10)]}, max_entities=5)


# -- the end of time


async def test_a_request_that_takes_too_long_is_stopped_and_its_resolvers_are_cancelled(build: Build) -> None:
    async with held() as never:
        graph = build(resolver(name="never", input=["id"], output=["x"])(never))
        for query in ("[:x]", "[{:l [:x]}]"):
            with pytest.raises(LimitExceeded) as caught:
                await soon(graph.query(query, {"id": 1, "l": [{"id": 1}, {"id": 2}]}, timeout=0.001))
            assert caught.value.limit == "timeout"
            assert str(caught.value) == "the request took longer than its timeout of 0.001 s"
        assert never.called == 3


async def test_a_lenient_request_that_takes_too_long_is_stopped_too(build: Build) -> None:
    async with held() as never:
        graph = build(resolver(name="never", input=["id"], output=["x"])(never))
        with pytest.raises(LimitExceeded):
            await soon(graph.query("[:x]", {"id": 1}, timeout=0.001, lenient=True))


async def test_a_timeout_that_is_not_reached_changes_nothing(build: Build) -> None:
    assert await soon(build(later).query("[{:l [:x]}]", {"l": [{"id": 1}, {"id": 2}]}, timeout=60)) == {
        "l": [{"x": 1}, {"x": 2}]
    }


@pytest.mark.parametrize("query", ["[:x]", "[{:l [:x]}]", "[(m/never {})]", "[{:l [:y]}]"])
async def test_when_the_caller_is_cancelled_so_is_all_that_is_in_flight(build: Build, query: str) -> None:
    async with held() as never:
        graph = build(
            resolver(name="x", input=["id"], output=["x"])(never),
            resolver(name="y", input=["id"], output=["y"], batch=True)(never),
            mutation("m/never")(never),
        )
        asking = asyncio.create_task(graph.query(query, {"id": 1, "l": [{"id": 1}, {"id": 2}]}))
        await soon(never.started.wait())
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(asking)
        assert never.called >= 1


async def test_a_caller_may_bound_a_request_from_outside(build: Build) -> None:
    async with held() as never:
        graph = build(resolver(name="x", input=["id"], output=["x"])(never))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await graph.query("[{:l [:x]}]", {"l": [{"id": 1}, {"id": 2}]})


async def test_after_a_failed_request_the_graph_answers_the_next(build: Build) -> None:
    async with held() as never:
        graph = build(resolver(name="x", input=["id"], output=["x"])(never), later_y())
        with pytest.raises(LimitExceeded):
            await soon(graph.query("[:x :y]", {"id": 1}, timeout=0.001))
        assert await soon(graph.query("[:y]", {"id": 1})) == {"y": 1}


def later_y() -> Resolver:
    async def y(env: Env, data: Any) -> Any:
        await a_turn()
        return {"y": data["id"]}

    return resolver(input=["id"], output=["y"])(y)
