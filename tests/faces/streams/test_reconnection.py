"""Clients are cut off and come back, wherever that falls: what each one saw, put together, is the run, once."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psi.agents import AgentEvent, McpStatus, TextDelta, ThinkingDelta, TurnContext
from psi.core.commands import Caller, StopRun
from psi.engine.clock import settle
from psi.engine.runlog import RunLog
from psi.faces.streams.stream import PATIENCE, Seen, SessionStream, Texts, TooSlow
from tests.faces.streams.following import LAST, Client, Stepping, reference
from tests.runtime.world import world

CLIENTS = 3
STEPS = st.lists(st.integers(0, 5), min_size=1, max_size=5).map(lambda steps: " ".join(map(str, steps)))
PROMPTS = st.one_of(STEPS, STEPS, st.just("now"))
WHO = st.integers(0, CLIENTS - 1)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("reconnect"), WHO, st.booleans()),  # whoever is there is cut, whoever is not comes back
        st.tuples(st.just("read"), WHO, st.integers(1, 8)),
        st.tuples(st.just("second")),
        st.tuples(st.just("moment"), st.integers(1, 6)),
        st.one_of(
            st.tuples(st.just("say"), WHO, PROMPTS),
            st.tuples(st.just("submit"), PROMPTS),
            st.tuples(st.just("stop")),
        ),
    ),
    min_size=30,
    max_size=80,
)


@given(ACTIONS)
@settings(max_examples=150)
def test_clients_that_are_cut_anywhere_have_every_frame_once_and_in_order(actions: list[tuple[Any, ...]]) -> None:
    asyncio.run(_live_through(actions))


async def _live_through(actions: list[tuple[Any, ...]]) -> None:
    async with world(Stepping()) as here:
        service, session, texts = here.psi.service, await here.session(), Texts()
        watching = service.watch(session, limit=100_000)
        clients = [Client(service, session, texts) for _ in range(CLIENTS)]
        clients[0].connect(resumes=False)
        waiting: list[asyncio.Task[Any]] = []
        moving = asyncio.create_task(here.clock.advance(0))
        for name, *more in actions:
            client = clients[more[0]] if name in ("reconnect", "read", "say") else clients[0]
            match name:
                case "reconnect" if client.is_connected:
                    await client.cut()
                case "reconnect":
                    client.connect(resumes=more[1])
                case "read" if client.is_connected:
                    for _ in range(more[1]):
                        await client.read()
                case "say" if client.is_connected:
                    waiting.append(asyncio.create_task(client.submit(more[1])))
                case "submit":
                    request = {"action": "session", "op": "submit", "message": more[0]}
                    waiting.append(asyncio.create_task(here.psi.tool(request, session)))
                case "stop":
                    await service.act(StopRun(session=session), Caller(session))
                case "second":
                    # Not waited for, so that what comes next falls into what it sets off.
                    await moving
                    moving = asyncio.create_task(here.clock.advance(1))
                case "moment":
                    await settle(more[0])
        await moving
        await here.clock.advance(30)  # longer than any run, and heartbeats come
        await asyncio.gather(*waiting)
        for client in clients:
            if client.is_connected:
                await client.read_all()
        told = reference(watching.waiting())
        watching.close()
        for client in clients:
            _check(client, told)
            if client.is_connected:
                await client.cut()
            client.connect(resumes=True)
            await client.read_all()
            assert [frame["type"] for frame in client.frames] == ["session_sync"]
            await client.cut()


def _check(client: Client, told: dict[str, list[str]]) -> None:
    for run, frames in client.runs.items():
        assert frames == told[run][: len(frames)]
    if not client.is_connected:
        return
    assert client.frames
    # Whatever it has seen something of over this connection, it has the whole of.
    for run in {frame["run_id"] for frame in client.frames if "run_id" in frame}:
        assert client.runs[run] == told[run]
    shown = [frame for frame in client.frames if frame["type"] != "heartbeat"]
    types = [frame["type"] for frame in shown]
    if "replay_start" in types:
        start = types.index("replay_start")
        knew = client.resumed is not None and client.resumed == shown[start + 1].get("run_id", client.resumed)
        assert types[:start] == ["stream_start"] or (knew and not start)
        assert types[start + 1 + shown[start]["count"]] == "replay_end"
        assert types.count("replay_start") == types.count("replay_end") == 1
    else:
        assert types[0] == "session_sync"
    for place, frame in enumerate(shown):
        if frame["type"] in LAST:
            follows = types[place + 1] if place + 1 < len(types) else None
            assert (follows == "session_sync") == (frame["run_id"] not in client.began)


@pytest.mark.parametrize("resumes", [True, False])
async def test_a_client_that_is_cut_after_any_frame_and_comes_back_at_any_later_one_has_them_all(resumes: bool) -> None:
    seconds = 5
    async with world(Stepping()) as here:
        service, texts = here.psi.service, Texts()
        for leaves in range(seconds):
            for back in range(leaves, seconds):
                for reads in range(1, 10):
                    session = await here.session()
                    client = Client(service, session, texts)
                    with service.watch(session, limit=1_000) as watching:
                        await here.submit(session, "1 2 0 3")
                        await here.clock.advance(leaves)
                        client.connect(resumes=False)
                        for _ in range(reads):
                            await client.read(20)
                        await client.cut()
                        await here.clock.advance(back - leaves)
                        client.connect(resumes=resumes)
                        await here.clock.advance(seconds)
                        await client.read_all()
                        told = reference(watching.waiting())
                    ended = [frame["type"] for frame in client.frames] == ["session_sync"]
                    assert ended == (back == seconds - 1)
                    for run, frames in told.items():
                        assert ended or client.runs[run] == frames
                    assert client.frames[-1]["type"] == "session_sync"
                    await client.cut()


async def test_a_run_that_ends_between_connecting_and_the_first_frame_leaves_no_gap() -> None:
    async with world(Stepping()) as here:
        session = await here.session()
        client = Client(here.psi.service, session, Texts())
        with here.psi.service.watch(session, limit=1_000) as watching:
            await here.submit(session, "2 2")
            await here.clock.advance(1)
            client.connect(resumes=False)
            await here.clock.advance(1)
            await client.read_all()
            [frames] = reference(watching.waiting()).values()
        assert list(client.runs.values()) == [frames]
        types = [frame["type"] for frame in client.frames]
        assert types[:2] == ["stream_start", "replay_start"]
        assert types[-2:] == ["stream_end", "session_sync"]
        await client.cut()


async def test_whoever_says_that_it_has_nothing_of_the_run_yet_is_told_all_of_it_within_the_replay() -> None:
    async with world(Stepping()) as here:
        session = await here.session()
        client = Client(here.psi.service, session, Texts())
        run = (await here.submit(session, "2 2"))["run-id"]
        await here.clock.advance(1)
        client.resume_at(Seen(run, 0))
        await client.read_all()
        types = [frame["type"] for frame in client.frames]
        assert types[:2] == ["replay_start", "stream_start"]
        assert client.frames[0]["count"] == types.index("replay_end") - 1 == 3
        await client.cut()


async def test_the_status_of_a_tool_server_is_told_in_every_session_and_once() -> None:
    class Noticing:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield McpStatus("files", "disconnected", 0, "gone")
            yield McpStatus("files", "connected", 3)

    async with world(Noticing()) as here:
        there, elsewhere = await here.session(), await here.session()
        clients = [Client(here.psi.service, name, Texts()) for name in (there, elsewhere)]
        for each in clients:
            each.connect(resumes=False)
        await here.submit(there, "go", wait=True)
        told = []
        for each in clients:
            await each.read_all()
            told.append([frame for frame in each.frames if frame["type"] == "mcp_status_update"])
            await each.cut()
        assert [frame["seq"] for frame in told[0]] == [2, 3]
        plain = {"type": "mcp_status_update", "server_name": "files"}
        assert told[1] == [
            {**plain, "status": "disconnected", "tool_count": 0, "error": "gone"},
            {**plain, "status": "connected", "tool_count": 3, "error": ""},
        ]


async def test_whoever_comes_back_to_a_long_run_lets_others_go_on_in_between() -> None:
    class Long:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            for place in range(10_000):
                yield TextDelta(f"{place}") if place % 2 else ThinkingDelta("h")
            await turn.wait(60)

    async with world(Long()) as here:
        session = await here.session()
        await here.submit(session, "go")
        await here.clock.advance(1)
        await settle(500)
        streams = [SessionStream(here.psi.service, Caller(), session, Texts()) for _ in range(20)]
        handed = 0

        async def follow(stream: SessionStream) -> None:
            nonlocal handed
            async for batch in stream.batches():
                handed += len(batch)
                if batch[-1].type == "replay_end":
                    break

        async with asyncio.TaskGroup() as tasks:
            for each in streams:
                tasks.create_task(follow(each))
            most = passes = 0
            while handed < 20 * 10_000:
                before = handed
                await asyncio.sleep(0)
                most, passes = max(most, handed - before), passes + 1
            assert most <= 8 * 256
            assert passes >= 20 * 10_000 // (8 * 256)
        for each in streams:
            each.close()


async def test_whoever_takes_nothing_is_let_go_of_also_when_the_run_it_is_in_has_ended() -> None:
    async with world() as here:
        session = await here.session()
        stream = SessionStream(here.psi.service, Caller(), session, Texts())
        given_up: list[bool] = []
        stream.when_too_slow(lambda: given_up.append(True))
        batches = stream.batches()
        await anext(batches)  # and it never comes for the next one
        for _ in range(4):
            assert given_up == []
            await here.submit(session, f"/say {'w ' * 300}", wait=True)
        await here.clock.advance(PATIENCE)
        assert given_up == [True]
        with pytest.raises(TooSlow):
            await anext(batches)


async def test_whoever_takes_nothing_is_let_go_of_with_the_session() -> None:
    async with world() as here:
        session = await here.session()
        stream = SessionStream(here.psi.service, Caller(), session, Texts())
        given_up: list[bool] = []
        stream.when_too_slow(lambda: given_up.append(True))
        batches = stream.batches()
        await anext(batches)
        await here.ok({"action": "session", "op": "close"}, session)
        await here.clock.advance(PATIENCE - 0.1)
        assert given_up == []
        await here.clock.advance(0.1)
        assert given_up == [True]
        await batches.aclose()


async def test_texts_of_a_run_go_with_its_log() -> None:
    texts = Texts()
    async with world(Stepping()) as here:
        session = await here.session()
        client = Client(here.psi.service, session, texts)
        client.connect(resumes=False)
        await here.submit(session, "20 1")
        await here.clock.advance(1)
        await settle(200)
        await client.read_all()
        assert len(texts) > 20
        await here.clock.advance(1)
        await client.read_all()
        await client.cut()
        gc.collect()
        assert len(texts) == 0


PIECES = st.lists(
    st.one_of(st.builds(TextDelta, st.text("ab", max_size=3)), st.builds(ThinkingDelta, st.text("ab", max_size=3))),
    min_size=8,
    max_size=40,
)


@given(PIECES, st.integers(4, 12), st.booleans())
def test_whoever_had_a_part_of_a_piece_gets_its_rest_also_where_others_got_the_whole(
    events: list[AgentEvent], room: int, backwards: bool
) -> None:
    log, texts = RunLog("run-1", kept=room), Texts()
    for event in events:
        texts.of(log.add(event))
    seen = range(len(events) + 1)
    for after in reversed(seen) if backwards else seen:
        kept, missed = log.after(after)
        alone = Texts()  # one that nobody else was written by
        assert [texts.of(each) for each in kept] == [alone.of(each) for each in kept]
        rest = "".join(each.event.delta for each in kept)  # type: ignore[union-attr]
        assert rest == "".join(event.delta for event in events[after + missed :])  # type: ignore[union-attr]
