"""One suite for every store: what a store must do, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from psi.core.config import read_config
from psi.core.message import USER, Message, Scheduled, picture_part, says
from psi.core.session import Phase, Provenance, Session
from psi.core.turn import State, Turn
from psi.edn import Keyword
from psi.store import AddMessages, DeleteSession, MemoryStore, SaveSession, SaveTurn, Store
from psi.store.sqlite import SqliteStore

Open = Callable[..., AsyncIterator[Store]]


async def memory(folder: Path, **more: Any) -> AsyncIterator[Store]:
    yield MemoryStore(**more)


async def sqlite(folder: Path, **more: Any) -> AsyncIterator[Store]:
    store = await SqliteStore.open(folder, **more)
    yield store
    await store.close()


STORES: dict[str, Open] = {"memory": memory, "sqlite": sqlite}
NOW = datetime(2026, 1, 1, 12, 30, 15, 250_001, tzinfo=UTC)


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async for found in STORES[request.param](tmp_path):
        yield found


@pytest.fixture(params=STORES)
async def small(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store that keeps three run records of a session."""
    async for found in STORES[request.param](tmp_path, kept_turns=3):
        yield found


def session(name: str = "ses-1") -> Session:
    return Session(id=name, name="N", worktree="w", created_at=NOW, updated_at=NOW)


def message(text: str, seconds: int = 0) -> Message:
    return Message(role="user", content=says(text), timestamp=NOW + timedelta(seconds=seconds), source=USER)


def turn(name: str = "run-1", of: str = "ses-1") -> Turn:
    return Turn(id=name, session=of, source=USER, started_at=NOW)


async def test_what_was_committed_comes_back(store: Store) -> None:
    await store.commit(SaveSession(session()), AddMessages("ses-1", (message("a"), message("b"))), SaveTurn(turn()))
    assert list(await store.sessions()) == [replace(session(), message_count=2)]
    assert [each.text for each in await store.messages("ses-1")] == ["a", "b"]
    assert list(await store.turns("ses-1")) == [turn()]
    assert await store.turn("run-1") == turn()


async def test_a_part_of_a_history_can_be_read_alone(store: Store) -> None:
    await store.commit(SaveSession(session()), AddMessages("ses-1", tuple(message(str(place)) for place in range(5))))

    async def read(*part: Any) -> str:
        return "".join(each.text for each in await store.messages("ses-1", *part))

    assert [await read(), await read(3), await read(1, 2), await read(4, 9), await read(5), await read(0, 0)] == [
        "01234",
        "34",
        "12",
        "4",
        "",
        "",
    ]


@pytest.mark.parametrize(
    "parts",
    [
        "",
        'a\nb\0ü\u2028😀\\"',
        [],
        [{"type": "text", "text": "as text"}],
        [{"type": Keyword("text"), "text": "a"}, {"type": Keyword("text"), "text": "b"}],
        [{"type": Keyword("text"), "text": "a", "lang": "uk"}],
        [{"type": Keyword("text"), "text": Keyword("a")}],
        [{"type": Keyword("image"), "media-type": "image/png", "data": "aGk="}],
    ],
)
async def test_content_comes_back_as_it_was(store: Store, parts: Any) -> None:
    told = Message(role="user", content=says(parts))
    await store.commit(SaveSession(session()), AddMessages("ses-1", (told,)))
    [found] = await store.messages("ses-1")
    assert found == told
    for kept, given in zip(found.content, told.content, strict=True):
        assert [(type(value), value) for value in kept.values()] == [(type(value), value) for value in given.values()]


async def test_pictures_come_with_their_message_or_as_their_size(store: Store) -> None:
    one, other = picture_part("image/png", "aGk="), picture_part("image/gif", "aGVsbG8h")
    seen = Message(role="user", content=(*says("look"), one, *says("and"), other))
    await store.commit(SaveSession(session()), SaveSession(session("ses-2")))
    await store.commit(AddMessages("ses-1", (message("a"), seen)), AddMessages("ses-2", (seen, message("b"))))
    await store.commit(AddMessages("ses-1", (message("c"), seen)))
    assert list(await store.messages("ses-1")) == [message("a"), seen, message("c"), seen]
    assert list(await store.messages("ses-1", 1, 2)) == [seen, message("c")]
    assert list(await store.messages("ses-1", 3, 1)) == [seen]
    (light,) = await store.messages("ses-1", 3, 1, pictures=False)
    assert [part.get("size") for part in light.content] == [None, 2, None, 6]
    assert light.text == "look\nand"
    await store.commit(DeleteSession("ses-1"))
    assert list(await store.messages("ses-2")) == [seen, message("b")]


async def test_messages_keep_their_order_and_every_field(store: Store) -> None:
    told = replace(message("a", 5), run_id="run-1", role="assistant")
    await store.commit(SaveSession(session()), AddMessages("ses-1", (message("a"),)))
    await store.commit(AddMessages("ses-1", (told,)))
    assert list(await store.messages("ses-1")) == [message("a"), told]


async def test_a_message_moves_the_time_of_its_session(store: Store) -> None:
    await store.commit(SaveSession(session()), AddMessages("ses-1", (message("a", 60),)))
    assert [each.updated_at for each in await store.sessions()] == [NOW + timedelta(seconds=60)]


async def test_a_later_state_replaces_an_earlier_one(store: Store) -> None:
    await store.commit(SaveSession(session()), SaveTurn(turn()))
    done = replace(turn(), state=State.OK, answer="done", finished_at=NOW)
    await store.commit(SaveTurn(done), SaveSession(replace(session(), name="M")))
    assert await store.turn("run-1") == done
    assert [each.name for each in await store.sessions()] == ["M"]


async def test_a_session_comes_back_idle(store: Store) -> None:
    await store.commit(SaveSession(replace(session(), phase=Phase.STREAMING, run="run-1", closing=True)))
    assert list(await store.sessions()) == [session()]


async def test_a_commit_that_fails_changes_nothing(store: Store) -> None:
    await store.commit(SaveSession(session()))
    with pytest.raises(LookupError):
        await store.commit(AddMessages("ses-1", (message("a"),)), AddMessages("ses-9", (message("b"),)))
    assert list(await store.messages("ses-1")) == []


async def test_deleting_takes_everything_of_the_session_and_nothing_else(store: Store) -> None:
    for name in ("ses-1", "ses-2"):
        await store.commit(
            SaveSession(session(name)), AddMessages(name, (message("a"),)), SaveTurn(turn(f"run-{name}", name))
        )
    await store.commit(DeleteSession("ses-1"))
    await store.commit(DeleteSession("ses-1"))
    assert [each.id for each in await store.sessions()] == ["ses-2"]
    assert list(await store.messages("ses-1")) == []
    assert list(await store.turns("ses-1")) == []
    assert await store.turn("run-ses-1") is None
    assert await store.turn("run-ses-2") is not None


async def test_what_is_not_there_is_empty(store: Store) -> None:
    assert list(await store.messages("nobody")) == []
    assert list(await store.turns("nobody")) == []
    assert await store.turn("nothing") is None
    assert list(await store.unfinished()) == []


async def test_run_records_are_bounded(small: Store) -> None:
    await small.commit(SaveSession(session()), SaveSession(session("ses-2")), SaveTurn(turn("other", "ses-2")))
    for place in range(5):
        await small.commit(SaveTurn(turn(f"run-{place}")))
    assert [each.id for each in await small.turns("ses-1")] == ["run-2", "run-3", "run-4"]
    assert await small.turn("run-0") is None
    assert await small.turn("other") is not None


async def test_turns_that_have_not_ended_are_found(store: Store) -> None:
    await store.commit(SaveSession(session()), SaveTurn(turn("run-1")), SaveTurn(turn("run-2")))
    await store.commit(SaveTurn(replace(turn("run-1"), state=State.OK, finished_at=NOW)))
    assert [each.id for each in await store.unfinished()] == ["run-2"]


async def test_every_field_of_a_session_comes_back(store: Store) -> None:
    config = read_config(
        {
            "session-name": "C",
            "system-prompt": "be \u00e4 good\nagent",
            "developer-prompt": "",
            "developer-prompt-source": Keyword("explicit"),
            "model": "demo:one",
            "thinking-level": "high",
            "skills": ["read", {"name": "write", "level": 3}],
            "tool-ids": ["psi-tool", "gone"],
            "preloaded-messages": [{"role": "user", "content": "hello", "timestamp": NOW}],
            "cache-breakpoints": [Keyword("system")],
            "prompt-component-selection": {"components": [Keyword("a")], "agents-md?": True},
        },
        tools=("psi-tool", "gone"),
    )
    whole = Session(
        id="ses-1",
        name=None,
        owner="alice",
        config=config,
        worktree="/a b",
        created_at=NOW,
        updated_at=NOW + timedelta(microseconds=1),
        parent="ses-0",
        provenance=Provenance("ses-0", Scheduled("sch-1", None)),
    )
    await store.commit(SaveSession(whole))
    assert list(await store.sessions()) == [whole]


async def test_every_field_of_a_turn_comes_back(store: Store) -> None:
    whole = Turn(
        id="run-1",
        session="ses-1",
        source=Keyword("scheduled"),
        started_at=NOW,
        state=State.ERROR,
        finished_at=NOW + timedelta(seconds=1),
        answer="it failed",
        error="ValueError: no",
        error_class="ValueError",
        message_index=7,
        context_tokens=1,
        max_context_tokens=2,
        token_count=3,
        tool_call_count=4,
    )
    await store.commit(SaveSession(session()), SaveTurn(whole))
    assert await store.turn("run-1") == whole


async def test_a_scheduled_message_with_parts_of_its_own_comes_back(store: Store) -> None:
    parts: list[dict[str, Any]] = [
        {"type": Keyword("text"), "text": "a"},
        {"type": Keyword("image"), "data": "aGk=", "sizes": [1, 2.5, None]},
    ]
    whole = replace(
        message("x"),
        content=says(parts),
        source=Keyword("scheduled"),
        origin=Scheduled("sch-1", "label"),
        run_id="run-1",
        closure=Keyword("stopped"),
        timestamp=None,
    )
    await store.commit(SaveSession(session()), AddMessages("ses-1", (whole,)))
    assert list(await store.messages("ses-1")) == [whole]


async def test_commits_side_by_side_keep_their_order_and_fail_alone(store: Store) -> None:
    await store.commit(SaveSession(session()))
    told = await asyncio.gather(
        *(store.commit(AddMessages("ses-9" if place == 5 else "ses-1", (message(str(place)),))) for place in range(20)),
        return_exceptions=True,
    )
    assert [isinstance(each, LookupError) for each in told] == [place == 5 for place in range(20)]
    assert [each.text for each in await store.messages("ses-1")] == [str(p) for p in range(20) if p != 5]


async def test_a_commit_that_nobody_waits_for_any_more_is_kept(store: Store) -> None:
    await store.commit(SaveSession(session()))
    impatient = asyncio.create_task(store.commit(AddMessages("ses-1", (message("a"),))))
    await asyncio.sleep(0)
    impatient.cancel()
    with suppress(asyncio.CancelledError):
        await impatient
    await store.commit(AddMessages("ses-1", (message("b"),)))
    assert [each.text for each in await store.messages("ses-1")] == ["a", "b"]
