"""What only a store on a disk has to do: be there again, be one version, be one process's."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from psi import Psi
from psi.core.message import USER, Message, says
from psi.core.session import Session
from psi.core.turn import State, Turn
from psi.faces.wire import status_of
from psi.store import (
    AddMessages,
    FolderTaken,
    SaveSession,
    SaveTurn,
    SqliteStore,
    StoreFailed,
    StoreUnreadable,
    StoreUnusable,
)

_SMALL = 1 << 15  # bytes that a file may have: the log of changes has had room for more
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = Session(id="ses-1", name="N", worktree="w", created_at=NOW, updated_at=NOW)
MESSAGE = Message(role="user", content=says("hello"), timestamp=NOW, source=USER, run_id="run-1")
TURN = Turn(id="run-1", session="ses-1", source=USER, started_at=NOW)


async def test_what_was_saved_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION), AddMessages("ses-1", (MESSAGE,)), SaveTurn(TURN))
    await store.close()
    again = await SqliteStore.open(tmp_path)
    assert list(await again.sessions()) == [replace(SESSION, message_count=1)]
    assert list(await again.messages("ses-1")) == [MESSAGE]
    assert await again.turn("run-1") == TURN
    await again.close()


async def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    await (await SqliteStore.open(folder)).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_a_folder_is_one_processs_and_free_again_afterwards(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    with pytest.raises(FolderTaken, match=f"in use by process {os.getpid()}"):
        await SqliteStore.open(tmp_path)
    await store.close()
    await (await SqliteStore.open(tmp_path)).close()


async def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path)).close()
    with sqlite3.connect(tmp_path / "psi.db") as file:
        file.execute("INSERT INTO schema_version VALUES (99, 'later')")
    file.close()
    with pytest.raises(StoreUnusable, match="later version of psi: its schema is 99, this one knows 1"):
        await SqliteStore.open(tmp_path)


async def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "psi.db").write_text("this is no database, and long enough for somebody to notice" * 20)
    with pytest.raises(StoreUnusable, match=r"psi\.db cannot be used"):
        await SqliteStore.open(tmp_path)


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnusable, match="file"):
        await SqliteStore.open(tmp_path / "file")


async def test_opening_twice_changes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        await (await SqliteStore.open(tmp_path)).close()
    with sqlite3.connect(tmp_path / "psi.db") as file:
        assert file.execute("SELECT version FROM schema_version").fetchall() == [(1,)]
    file.close()


async def test_a_turn_that_was_under_way_gets_its_closure_at_the_next_start(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION), AddMessages("ses-1", (MESSAGE,)), SaveTurn(TURN))
    await store.close()
    for _ in range(2):  # and only one
        async with Psi.open(tmp_path) as psi:
            answer = await psi.query(
                "[:psi.agent-session/is-idle :psi.agent-session/message-count :psi.agent-session/message-history"
                " {:psi.agent-session/runs [:psi.run/state]}]",
                "ses-1",
            )
            assert answer["psi.agent-session/is-idle"] is True
            assert answer["psi.agent-session/message-count"] == 2
            closure = answer["psi.agent-session/message-history"][-1]
            assert (closure["role"], closure["closure"]) == ("assistant", "interrupted")
            assert answer["psi.agent-session/runs"] == [{"psi.run/state": State.INTERRUPTED.value}]


async def test_sessions_outlive_their_runtime_and_schedules_do_not(tmp_path: Path) -> None:
    async with Psi.open(tmp_path) as psi:
        made = await psi.tool(
            {"action": "session", "op": "create", "name": "Kept", "config": {"thinking-level": "low"}}
        )
        session = made["psi-tool/session"]["session"]["session-id"]
        told = await psi.tool({"action": "session", "op": "submit", "message": "/say hi", "wait": True}, session)
        assert told["psi-tool/session"]["run"]["answer"] == "hi"
        request = {"action": "scheduler", "op": "create", "kind": "message", "message": "x", "delay-ms": 600_000}
        await psi.tool(request, session)
    async with Psi.open(tmp_path) as psi:
        answer = await psi.query(
            "[:psi.agent-session/session-name :psi.agent-session/thinking-level :psi.agent-session/message-count"
            " :psi.scheduler/pending-count :psi.scheduler/schedules]",
            session,
        )
        assert answer == {
            "psi.agent-session/session-name": "Kept",
            "psi.agent-session/thinking-level": "low",
            "psi.agent-session/message-count": 2,
            "psi.scheduler/pending-count": 0,
            "psi.scheduler/schedules": [],
        }
        with psi.watch(after=0) as events:
            assert events.waiting() == []  # nobody has created it just now
        await psi.tool({"action": "session", "op": "close"}, session)
    async with Psi.open(tmp_path) as psi:
        assert (await psi.query("[:psi.system/session-count]"))["psi.system/session-count"] == 0


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


async def test_what_is_kept_is_for_its_owner_alone_whoever_may_look_into_the_folder(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)  # noqa: PTH101 – where others may look
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION))
    modes = modes_in(tmp_path)
    await store.close()
    assert modes.keys() >= {"psi.db", "psi.db-wal", "psi.db-shm"}
    assert set(modes.values()) == {0o600}


async def test_a_disk_that_takes_nothing_is_told_as_such_and_looked_at_again(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION))
    with closing(sqlite3.connect(tmp_path / "psi.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await store.check()  # nobody knows yet
        with pytest.raises(StoreFailed, match="the store does not take this right now: database is locked") as caught:
            await store.commit(AddMessages("ses-1", (MESSAGE,)))
        assert status_of(caught.value) == 503
        with pytest.raises(StoreFailed):
            await store.check()
        other.execute("ROLLBACK")
    await store.check()
    await store.commit(AddMessages("ses-1", (MESSAGE,)))
    assert list(await store.messages("ses-1")) == [MESSAGE]
    await store.close()


async def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION))
    await store.close()
    with closing(sqlite3.connect(tmp_path / "psi.db")) as file:
        file.execute("UPDATE sessions SET config = '{'")
        file.commit()
    with pytest.raises(StoreUnusable, match=r"psi\.db is damaged: session ses-1 cannot be read"):
        async with Psi.open(tmp_path):
            pass


async def test_what_is_damaged_beneath_a_running_service_is_named_in_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION), AddMessages("ses-1", (MESSAGE,)), SaveTurn(TURN))
    with closing(sqlite3.connect(tmp_path / "psi.db")) as file:
        file.execute("UPDATE runs SET record = '{'")
        file.commit()
    for reading, what in ((store.turn("run-1"), "run run-1"), (store.turns("ses-1"), "the runs of session ses-1")):
        with pytest.raises(StoreUnreadable) as caught:
            await reading
        assert caught.value.message == f"{what} cannot be read; the log says why"
        assert status_of(caught.value) == 500
    assert str(tmp_path) in caplog.text
    await store.close()


async def test_a_disk_without_room_is_no_better_for_having_room_for_next_to_nothing(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION))
    with closing(sqlite3.connect(tmp_path / "psi.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed):
            await store.commit(AddMessages("ses-1", (MESSAGE,)))
        other.execute("ROLLBACK")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL, before[1]))
    try:
        with pytest.raises(StoreFailed, match="File too large"):
            await store.check()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    await store.check()
    await store.close()


async def test_reading_does_not_wait_for_who_writes(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    await store.commit(SaveSession(SESSION), AddMessages("ses-1", (MESSAGE,)))
    with closing(sqlite3.connect(tmp_path / "psi.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        saving = asyncio.create_task(store.commit(AddMessages("ses-1", (MESSAGE,))))
        assert list(await store.messages("ses-1")) == [MESSAGE]
        assert not saving.done()
        other.execute("ROLLBACK")
        await saving
    assert len(await store.messages("ses-1")) == 2
    await store.close()


async def test_a_file_with_broken_pages_ends_in_a_sentence(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    many = tuple(Message(role="user", content=says("x" * 3_000), timestamp=MESSAGE.timestamp) for _ in range(100))
    await store.commit(SaveSession(SESSION), AddMessages("ses-1", many), SaveTurn(TURN))
    await store.close()
    path = tmp_path / "psi.db"
    content = bytearray(path.read_bytes())
    for page in range(3, len(content) // 4_096):
        content[page * 4_096 : page * 4_096 + 2_000] = b"\xff" * 2_000
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"psi\.db cannot be"):
        async with Psi.open(tmp_path):
            pass


async def test_a_look_that_is_given_up_leaves_no_transaction_behind(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path)
    try:
        await store.commit(SaveSession(SESSION))
        with closing(sqlite3.connect(tmp_path / "psi.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreFailed):
                await store.commit(AddMessages("ses-1", (MESSAGE,)))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await store.check()
            other.execute("ROLLBACK")
        await store.commit(AddMessages("ses-1", (MESSAGE,)))
    finally:
        await store.close()
