"""One suite for every store: what a store must do, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from psi.core.message import USER, Message, says
from psi.core.session import Phase, Session
from psi.core.turn import State, Turn
from psi.store import AddMessages, DeleteSession, MemoryStore, SaveSession, SaveTurn, Store

STORES: dict[str, Callable[[], Store]] = {"memory": MemoryStore}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    return STORES[request.param]()


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
    await store.close()


async def test_run_records_are_bounded() -> None:
    store = MemoryStore(kept_turns=3)
    await store.commit(SaveSession(session()))
    for place in range(5):
        await store.commit(SaveTurn(turn(f"run-{place}")))
    assert [each.id for each in await store.turns("ses-1")] == ["run-2", "run-3", "run-4"]
    assert await store.turn("run-0") is None
