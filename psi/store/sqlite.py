"""A store in one SQLite file: what was committed is there after a crash, all of a commit or none of it.

One connection writes, through WAL, and another one reads, so that neither waits for the other. Commits that come while
one is being written wait and go together in the next transaction: syncing to the disk costs the same for one as for
fifty. Whoever waits is told when theirs is on the disk, or why it is not; one that cannot be written fails alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import aiosqlite

from psi.core.config import read_config
from psi.core.message import Message, Scheduled, is_picture, picture_part, says, text_part, without_pictures
from psi.core.session import Provenance, Session
from psi.core.turn import State, Turn
from psi.edn import Keyword, String, dumps, loads
from psi.errors import Failed, PsiError
from psi.store.lock import Lock
from psi.store.private import make_private
from psi.store.protocol import AddMessages, Change, DeleteSession, SaveSession, SaveTurn, StoreFailed

__all__ = ["SqliteStore", "StoreUnreadable", "StoreUnusable"]

log = logging.getLogger("psi.store")

_T = TypeVar("_T")

FILE: Final = "psi.db"
KEPT: Final = 1_000  # run records of one session
BUSY_MS: Final = 2_000

# Each step leads from one version to the next. Steps are only ever added.
STEPS: Final = (
    """
    CREATE TABLE sessions (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT,
        owner TEXT NOT NULL,
        worktree TEXT NOT NULL,
        config TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        parent TEXT,
        origin TEXT
    );
    CREATE TABLE messages (
        session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        role TEXT NOT NULL,
        text TEXT,
        content TEXT,
        at INTEGER,
        source TEXT,
        origin TEXT,
        run TEXT,
        closure TEXT,
        PRIMARY KEY (session, place)
    ) WITHOUT ROWID;
    CREATE TABLE pictures (
        session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        part INTEGER NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (session, place, part)
    );
    CREATE TABLE runs (
        place INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        state TEXT NOT NULL,
        record TEXT NOT NULL
    );
    CREATE INDEX runs_of_session ON runs (session, place);
    CREATE INDEX runs_under_way ON runs (state) WHERE state = 'running';
    """,
)


class StoreUnusable(Failed):
    """The file cannot be used: from a later version, damaged, or not to be written."""

    code = "store/unusable"


class StoreUnreadable(Failed):
    """Something that was kept cannot be read any more. Where it lies and what is wrong with it is for the log alone."""

    code = "store/unreadable"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be read; the log says why")


class SqliteStore:
    """Made by :meth:`open`."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        reading: aiosqlite.Connection,
        path: Path,
        lock: Lock,
        kept_turns: int,
    ) -> None:
        self._connection = connection
        self._reading = reading
        self._path = path
        self._is_failing = False  # the last transaction did not get to the disk
        self._lock = lock
        self._kept_turns = kept_turns
        self._waiting: list[tuple[Sequence[Change], asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._using = asyncio.Lock()  # one transaction at a time on the one connection

    @classmethod
    async def open(cls, folder: Path, *, kept_turns: int = KEPT) -> SqliteStore:
        """The store in this folder, which is made where it is not there; its file is brought to this version. One
        process has a folder to itself."""
        path = folder / FILE
        try:
            lock = Lock(folder)
        except OSError as error:
            raise StoreUnusable(f"{folder} cannot be used: {error.strerror or error}") from error
        try:
            connection = await _connect(path)
            try:
                reading = await _connect_reader(path)
            except BaseException:
                await connection.close()
                raise
            return cls(connection, reading, path, lock, kept_turns)
        except BaseException:
            lock.release()
            raise

    # -- writing

    async def commit(self, *changes: Change) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((changes, done))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        # Whoever loses patience does not take the commit back: it may be on the disk already.
        await asyncio.shield(done)

    async def _write(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting, []
            async with self._using:
                await self._transaction(together)

    async def _transaction(self, together: list[tuple[Sequence[Change], asyncio.Future[None]]]) -> None:
        failed: dict[int, Exception] = {}
        try:
            await self._connection.execute("BEGIN IMMEDIATE")
            for place, (changes, _) in enumerate(together):
                try:
                    await self._connection.execute("SAVEPOINT one")
                    for change in changes:
                        await self._apply(change)
                    await self._connection.execute("RELEASE one")
                except Exception as error:  # noqa: BLE001 – this commit fails alone
                    failed[place] = _told(error)
                    await self._connection.execute("ROLLBACK TO one")
                    await self._connection.execute("RELEASE one")
            await self._connection.execute("COMMIT")
            self._is_failing = any(isinstance(each, StoreFailed) for each in failed.values())
        except Exception as error:
            log.warning("a transaction failed", exc_info=error)
            self._is_failing = True
            await self._roll_back()
            failed = dict.fromkeys(range(len(together)), _told(error))
        for place, (_, done) in enumerate(together):
            if not done.done():
                problem = failed.get(place)
                done.set_result(None) if problem is None else done.set_exception(problem)

    async def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                await self._connection.execute("ROLLBACK")
        except aiosqlite.Error:
            log.exception("a failed transaction could not be rolled back")

    async def check(self) -> None:
        if not self._is_failing:
            await self._all("SELECT version FROM schema_version LIMIT 1")
            return
        # Whoever loses patience leaves no transaction behind: this goes on to its end.
        await asyncio.shield(asyncio.ensure_future(self._try_to_write()))

    async def _try_to_write(self) -> None:
        async with self._using:
            try:
                # Something has to be written to know: what was there is written once more. And there has to be room for
                # more than that, which may go where something was before.
                await asyncio.to_thread(_take_up_room, self._path.parent)
                await self._connection.execute("BEGIN IMMEDIATE")
                await self._connection.execute("UPDATE schema_version SET applied_at = applied_at")
                await self._connection.execute("COMMIT")
            except (aiosqlite.Error, OSError) as error:
                await self._roll_back()
                raise StoreFailed(str(error)) from error
        self._is_failing = False

    async def _apply(self, change: Change) -> None:
        execute = self._connection.execute
        match change:
            case SaveSession(session):
                await execute(
                    "INSERT INTO sessions (id, name, owner, worktree, config, created_at, updated_at, parent, origin)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name,"
                    " owner = excluded.owner, worktree = excluded.worktree, config = excluded.config,"
                    " updated_at = excluded.updated_at, parent = excluded.parent, origin = excluded.origin",
                    _session_row(session),
                )
            case AddMessages(name, messages):
                await self._require(name)
                if not messages:
                    return
                first = await self._one("SELECT coalesce(max(place) + 1, 0) FROM messages WHERE session = ?", name)
                rows = [(name, first[0] + place, *_message_row(each)) for place, each in enumerate(messages)]
                await self._connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
                pictures = [
                    (name, place, part, str(each["data"]))
                    for place, message in enumerate(messages, first[0])
                    for part, each in enumerate(message.content)
                    if is_picture(each)
                ]
                if pictures:
                    await self._connection.executemany("INSERT INTO pictures VALUES (?, ?, ?, ?)", pictures)
                latest = _micros(messages[-1].timestamp)
                if latest is not None:
                    await execute("UPDATE sessions SET updated_at = max(updated_at, ?) WHERE id = ?", (latest, name))
            case SaveTurn(turn):
                await self._require(turn.session)
                await execute(
                    "INSERT INTO runs (id, session, state, record) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (id) DO UPDATE SET state = excluded.state, record = excluded.record",
                    (turn.id, turn.session, str(turn.state.value), _turn_text(turn)),
                )
                await execute(
                    "DELETE FROM runs WHERE session = ?1 AND place <= (SELECT place FROM runs WHERE session = ?1"
                    " ORDER BY place DESC LIMIT 1 OFFSET ?2)",
                    (turn.session, self._kept_turns),
                )
            case DeleteSession(name):
                await execute("DELETE FROM sessions WHERE id = ?", (name,))

    async def _require(self, session: str) -> None:
        if await self._one("SELECT 1 FROM sessions WHERE id = ?", session) is None:
            raise LookupError(f"no session {session} to save something for")

    # -- reading

    async def sessions(self) -> Sequence[Session]:
        rows = await self._all(
            "SELECT id, name, owner, worktree, config, created_at, updated_at, parent, origin,"
            " (SELECT count(*) FROM messages WHERE session = sessions.id) FROM sessions ORDER BY place"
        )
        return [self._read(_session, row, f"session {row[0]}") for row in rows]

    async def messages(
        self, session: str, first: int = 0, limit: int | None = None, *, pictures: bool = True
    ) -> Sequence[Message]:
        with _legible(f"the history of session {session}"):
            return await self._messages(session, first, limit, pictures)

    async def _messages(self, session: str, first: int, limit: int | None, pictures: bool) -> Sequence[Message]:
        rows = await self._all(
            "SELECT role, text, content, at, source, origin, run, closure FROM messages"
            " WHERE session = ? AND place >= ? ORDER BY place LIMIT ?",
            session,
            first,
            -1 if limit is None else limit,
        )
        found = [self._read(_message, row, f"a message of session {session}") for row in rows]
        if pictures and any(content is not None for _, _, content, *_ in rows):
            # Kept apart, as they came: what is megabytes is neither written nor read as EDN.
            kept = await self._all(
                "SELECT place, part, data FROM pictures WHERE session = ? AND place BETWEEN ? AND ?",
                session,
                first,
                first + len(found) - 1,
            )
            for place, part, data in kept:
                found[place - first] = _with_picture(found[place - first], part, data)
        return found

    async def turns(self, session: str) -> Sequence[Turn]:
        with _legible(f"the runs of session {session}"):
            rows = await self._all("SELECT record FROM runs WHERE session = ? ORDER BY place", session)
            return [self._read(_turn, row[0], "a run record") for row in rows]

    async def turn(self, run: str) -> Turn | None:
        with _legible(f"run {run}"):
            rows = await self._all("SELECT record FROM runs WHERE id = ?", run)
            return self._read(_turn, rows[0][0], f"the record of run {run}") if rows else None

    async def unfinished(self) -> Sequence[Turn]:
        rows = await self._all("SELECT record FROM runs WHERE state = 'running' ORDER BY place")
        return [self._read(_turn, row[0], "a run record") for row in rows]

    async def close(self) -> None:
        if self._writing is not None:
            await asyncio.wait([self._writing])
        # The reader first: the last one to go puts the log of changes into the file, and has to be able to write.
        await self._reading.close()
        await self._connection.close()
        self._lock.release()

    async def _all(self, query: str, *values: Any) -> list[Any]:
        try:
            return list(await self._reading.execute_fetchall(query, values))
        except aiosqlite.Error as error:
            raise StoreUnusable(f"{self._path} cannot be read: {error}") from error

    def _read(self, read: Callable[[Any], _T], row: Any, what: str) -> _T:
        """What a row says; where nobody can tell, which one it is."""
        try:
            return read(row)
        except (PsiError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise StoreUnusable(f"{self._path} is damaged: {what} cannot be read ({error})") from error

    async def _one(self, query: str, *values: Any) -> Any:
        """A row, in the middle of a transaction."""
        return next(iter(await self._connection.execute_fetchall(query, values)), None)


@contextmanager
def _legible(what: str) -> Iterator[None]:
    """Around what is read for somebody's request: where it lies and what is wrong with it is none of theirs."""
    try:
        yield
    except StoreUnusable as unusable:
        log.error("%s", unusable.message)
        raise StoreUnreadable(what) from unusable


_ROOM: Final = 1 << 16  # bytes: more than nearly every commit takes


def _take_up_room(folder: Path) -> None:
    """OSError where there is none."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM))
        file.flush()
        os.fsync(file.fileno())


def _told(error: Exception) -> Exception:
    """What whoever waits for a commit hears: of SQLite's errors, that it could not be saved now."""
    return StoreFailed(str(error)) if isinstance(error, aiosqlite.Error) else error


async def _connect(path: Path) -> aiosqlite.Connection:
    try:
        make_private(path)
        connection = await aiosqlite.connect(path, isolation_level=None)
    except (aiosqlite.Error, OSError) as error:
        raise StoreUnusable(f"{path} cannot be opened: {error}") from error
    try:
        # FULL: what was acknowledged survives the machine, too, and not only the process.
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", f"busy_timeout = {BUSY_MS}"):
            await connection.execute(f"PRAGMA {pragma}")
        await _migrate(connection, path)
    except aiosqlite.Error as error:
        await connection.close()
        raise StoreUnusable(f"{path} cannot be used: {error}") from error
    except BaseException:
        await connection.close()
        raise
    return connection


async def _connect_reader(path: Path) -> aiosqlite.Connection:
    """A second connection, which sees what was committed and nothing else."""
    connection = await aiosqlite.connect(path, isolation_level=None)
    try:
        for pragma in ("query_only = ON", f"busy_timeout = {BUSY_MS}"):
            await connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        await connection.close()
        raise
    return connection


async def _migrate(connection: aiosqlite.Connection, path: Path) -> None:
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
    )
    rows = await connection.execute_fetchall("SELECT coalesce(max(version), 0) FROM schema_version")
    done = next(iter(rows))[0]
    if done > len(STEPS):
        raise StoreUnusable(
            f"{path} was made by a later version of psi: its schema is {done}, this one knows {len(STEPS)}"
        )
    for version, step in enumerate(STEPS[done:], start=done + 1):
        await connection.executescript(
            f"BEGIN IMMEDIATE; {step}; INSERT INTO schema_version VALUES ({version}, datetime('now')); COMMIT;"
        )


# -- rows. Instants are microseconds since 1970; maps and lists are EDN, which keeps keywords, instants and sets.

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + micros * _MICROSECOND


def _session_row(session: Session) -> tuple[Any, ...]:
    origin = session.provenance
    made_by = None if origin is None else dumps([origin.session, origin.schedule.schedule_id, origin.schedule.label])
    return (
        session.id,
        session.name,
        session.owner,
        session.worktree,
        dumps(session.config.as_data()),
        _micros(session.created_at),
        _micros(session.updated_at),
        session.parent,
        made_by,
    )


def _session(row: Any) -> Session:
    name, called, owner, worktree, config, created, updated, parent, origin, count = row
    made_by = None
    if origin is not None:
        session, schedule, label = loads(origin)
        made_by = Provenance(session, Scheduled(schedule, label))
    data = loads(config)
    return Session(
        id=name,
        name=called,
        owner=owner,
        worktree=worktree,
        # A tool that is gone by now is still what the session was told to have.
        config=read_config(data, tools=tuple(data.get("tool-ids") or ()), who="session", kept=True),
        created_at=_EPOCH + created * _MICROSECOND,
        updated_at=_EPOCH + updated * _MICROSECOND,
        parent=parent,
        provenance=made_by,
        message_count=count,
    )


def _message_row(message: Message) -> tuple[Any, ...]:
    origin = message.origin
    message = without_pictures(message)
    text = _only_text(message.content)
    return (
        message.role,
        text,
        dumps(list(message.content)) if text is None else None,
        _micros(message.timestamp),
        None if message.source is None else str(message.source),
        None if origin is None else dumps([origin.schedule_id, origin.label]),
        message.run_id,
        None if message.closure is None else str(message.closure),
    )


def _only_text(content: Sequence[Mapping[str, Any]]) -> str | None:
    """The text of a message that is one text, as nearly all are: a long history is read much faster if it need not be
    parsed. None where there is more to it."""
    text = content[0].get("text") if len(content) == 1 else None
    return text if isinstance(text, String) and content[0] == text_part(text) else None


def _with_picture(message: Message, place: int, data: str) -> Message:
    parts = list(message.content)
    parts[place] = picture_part(parts[place]["media-type"], data)
    return replace(message, content=tuple(parts))


def _message(row: Any) -> Message:
    role, text, content, at, source, origin, run, closure = row
    return Message(
        role=role,
        content=says(text if content is None else loads(content)),
        timestamp=_moment(at),
        source=None if source is None else Keyword(source),
        origin=None if origin is None else Scheduled(*loads(origin)),
        run_id=run,
        closure=None if closure is None else Keyword(closure),
    )


_TURN: Final[Iterable[str]] = tuple(Turn.__dataclass_fields__)


def _turn_text(turn: Turn) -> str:
    return dumps(
        {name: value for name in _TURN if (value := getattr(turn, name)) is not None and name != "state"}
        | {"state": turn.state.value}
    )


def _turn(text: str) -> Turn:
    data = dict(loads(text))
    return Turn(**{str(name): value for name, value in data.items() if name != "state"}, state=State(data["state"]))
