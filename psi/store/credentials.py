"""Who may come in: users, their API tokens and the logins of browsers, in one SQLite file.

The service and the command line use the file at the same time, each from its own process. Nothing is kept in memory: a
token that was revoked in one is refused in the other by the very next look. A look is one read by an index.

What is stored of a secret is its SHA-256. A slow hash is for passwords, which people choose and others guess; these are
256 random bits, and nobody finds them by trying, however fast. Looking up by the hash is also why no comparison can be
timed: what a caller sends decides where in the index we look, and the hash of a near miss is nowhere near.

Decides nothing about requests, and holds no clock: ``now`` is an argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from psi.core.clock import instant_text
from psi.core.config import is_text
from psi.core.errors import Invalid, NotFound
from psi.core.identity import SCOPES, read_scopes
from psi.core.session import LOCAL_USER
from psi.errors import Failed
from psi.store.private import make_private

__all__ = [
    "LONGEST_NAME",
    "NAME_PATTERN",
    "USER_PATTERN",
    "Credentials",
    "CredentialsUnusable",
    "Login",
    "NewLogin",
    "NewToken",
    "Token",
    "TokenNotFound",
    "is_token",
]

FILE: Final = "auth.db"
LOGIN_LASTS: Final = timedelta(hours=12)
LOGINS_KEPT: Final = 100  # of one token; a program that logs in instead of using its token must not fill the file
NOTED_EVERY: Final = timedelta(minutes=1)  # how often the last use of a token is written down
LONGEST_LIFE: Final = timedelta(days=36_500)
BUSY_MS: Final = 2_000  # how long a change waits for one of another process

_TOKEN: Final = re.compile(r"psi_[A-Za-z0-9_-]{43}")
# As JSON Schema has them, too. Of a name: a line with something in it, and nothing that would rule a terminal.
USER_PATTERN: Final = "^[A-Za-z0-9]([A-Za-z0-9._@+-]{0,62}[A-Za-z0-9])?$"
_RULING: Final = r"\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069"
NAME_PATTERN: Final = rf"^[^{_RULING}]*[^\s{_RULING}][^{_RULING}]*$"
LONGEST_NAME: Final = 200

# Each step leads from one version of the file to the next; PRAGMA user_version says how many are done. Steps are only
# ever added. Times are microseconds since 1970, so that they compare as numbers.
_STEPS: Final = (
    """
    CREATE TABLE users (
        name TEXT PRIMARY KEY,
        created_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        user TEXT NOT NULL REFERENCES users(name),
        name TEXT,
        scopes TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        last_used_at INTEGER,
        revoked_at INTEGER
    );
    CREATE TABLE logins (
        id TEXT PRIMARY KEY,
        hash BLOB NOT NULL UNIQUE,
        token TEXT NOT NULL REFERENCES tokens(id) ON DELETE CASCADE,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    );
    CREATE INDEX logins_of_token ON logins(token, created_at);
    """,
)

_COLUMNS: Final = (
    "tokens.id, tokens.user, tokens.name, tokens.scopes, tokens.created_at, tokens.expires_at, tokens.last_used_at, "
    "tokens.revoked_at"
)


class CredentialsUnusable(Failed):
    """The file cannot be opened, read or written; the sentence says why."""

    code = "auth/store-unusable"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the credentials in {path} cannot be used: {reason}")
        self.path = path


class TokenNotFound(NotFound):
    code = "auth/token-not-found"

    def __init__(self, token_id: str) -> None:
        super().__init__("token not found", token_id=token_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token. The token itself is not: it was shown once, to whoever created it."""

    id: str
    user: str
    name: str | None
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None

    def state(self, now: datetime) -> str:
        """``active``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def as_data(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "user": self.user,
            "name": self.name,
            "scopes": [scope for scope in SCOPES if scope in self.scopes],
            "created_at": instant_text(self.created_at),
            "expires_at": instant_text(self.expires_at) if self.expires_at else None,
            "last_used_at": instant_text(self.last_used_at) if self.last_used_at else None,
            "revoked_at": instant_text(self.revoked_at) if self.revoked_at else None,
        }


class NewToken(NamedTuple):
    text: str  # the secret; nobody can show it again
    token: Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A browser that showed a token. It may what the token may, and no longer than the token does."""

    id: str
    token: Token
    expires_at: datetime


class NewLogin(NamedTuple):
    text: str
    login: Login


def is_token(text: str) -> bool:
    """Whether a text has the form of a token; it need not be one."""
    return _TOKEN.fullmatch(text) is not None


class Credentials:
    """The file, opened. Belongs to one thread."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self.path = path

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Credentials:
        """Open the file in a data folder; both are created where they are missing, for their owner alone."""
        path = Path(folder) / FILE
        try:
            make_private(path)
            db = sqlite3.connect(path, timeout=BUSY_MS / 1_000, isolation_level=None)
        except (OSError, sqlite3.Error) as broken:
            raise CredentialsUnusable(str(path), _reason(broken)) from broken
        opened = cls(db, path)
        try:
            opened._prepare()
        except BaseException:
            db.close()
            raise
        return opened

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Credentials:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- tokens

    def create_token(
        self,
        *,
        now: datetime,
        user: str = LOCAL_USER,
        name: str | None = None,
        scopes: Iterable[object] = ("read", "write"),
        lasts: timedelta | None = None,
    ) -> NewToken:
        """A new token for a user, who is made known by it. ``lasts``: until it expires; None, until it is revoked."""
        _check(user, name, lasts)
        text = f"psi_{secrets.token_urlsafe(32)}"
        token = Token(
            id=f"tok-{secrets.token_hex(8)}",
            user=user,
            name=name,
            scopes=read_scopes(scopes),
            created_at=_utc(now),
            expires_at=_utc(now) + lasts if lasts is not None else None,
        )
        with self._change():
            self._db.execute("INSERT INTO users VALUES (?, ?) ON CONFLICT DO NOTHING", (user, _micros(now)))
            self._db.execute(
                "INSERT INTO tokens (id, hash, user, name, scopes, created_at, expires_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    token.id,
                    _hash(text),
                    user,
                    name,
                    " ".join(scope for scope in SCOPES if scope in token.scopes),
                    _micros(token.created_at),
                    _micros(token.expires_at),
                ),
            )
        return NewToken(text, token)

    def tokens(self, user: str | None = None) -> list[Token]:
        """All tokens, or one user's, the oldest first; those that have ended, too."""
        asked = "SELECT " + _COLUMNS + " FROM tokens WHERE ? IS NULL OR user = ? ORDER BY created_at, id"
        return [_token(row) for row in self._read(asked, user, user)]

    def token(self, token_id: str) -> Token | None:
        rows = self._read("SELECT " + _COLUMNS + " FROM tokens WHERE id = ?", token_id)
        return _token(rows[0]) if rows else None

    def revoke(self, token_id: str, *, now: datetime) -> Token:
        """End a token and its logins, from the next look on. Once is enough: a second time changes nothing."""
        with self._change():
            self._db.execute(
                "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (_micros(now), token_id)
            )
            self._db.execute("DELETE FROM logins WHERE token = ?", (token_id,))
        found = self.token(token_id)
        if found is None:
            raise TokenNotFound(token_id)
        return found

    def find_token(self, text: str, *, now: datetime) -> Token | None:
        """The token that a text is, whatever its state; the use of a good one is noted. None: it is none."""
        if not is_token(text):
            return None
        rows = self._read("SELECT " + _COLUMNS + " FROM tokens WHERE hash = ?", _hash(text))
        if not rows:
            return None
        found = _token(rows[0])
        self._note_use(found, now)
        return found

    # -- logins

    def log_in(self, token: Token, *, now: datetime) -> NewLogin:
        """A login by a token that was found good."""
        text = secrets.token_urlsafe(32)
        expires = _utc(now) + LOGIN_LASTS
        if token.expires_at is not None:
            expires = min(expires, token.expires_at)
        login = Login(id=f"login-{secrets.token_hex(8)}", token=token, expires_at=expires)
        with self._change():
            self._db.execute("DELETE FROM logins WHERE expires_at <= ?", (_micros(now),))
            self._db.execute(
                "INSERT INTO logins VALUES (?, ?, ?, ?, ?)",
                (login.id, _hash(text), token.id, _micros(now), _micros(expires)),
            )
            self._db.execute(
                "DELETE FROM logins WHERE token = ? AND id NOT IN "
                "(SELECT id FROM logins WHERE token = ? ORDER BY created_at DESC, rowid DESC LIMIT ?)",
                (token.id, token.id, LOGINS_KEPT),
            )
        return NewLogin(text, login)

    def find_login(self, text: str, *, now: datetime) -> Login | None:
        """A login that still holds, by its secret; its token may have ended. None: there is none."""
        return self._login("logins.hash = ?", _hash(text), now)

    def login(self, login_id: str, *, now: datetime) -> Login | None:
        return self._login("logins.id = ?", login_id, now)

    def log_out(self, text: str) -> bool:
        """End a login. False: there was none."""
        with self._change():
            return self._db.execute("DELETE FROM logins WHERE hash = ?", (_hash(text),)).rowcount > 0

    def _login(self, where: str, value: object, now: datetime) -> Login | None:
        asked = (
            "SELECT " + _COLUMNS + ", logins.id, logins.expires_at FROM logins JOIN tokens ON tokens.id = token WHERE "
        )
        rows = self._read(asked + where + " AND logins.expires_at > ?", value, _micros(now))
        if not rows:
            return None
        *of_token, login_id, expires = rows[0]
        login = Login(id=login_id, token=_token(of_token), expires_at=_moment(expires))
        self._note_use(login.token, now)
        return login

    # -- the file

    def _prepare(self) -> None:
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            # A revocation must not come back after a power cut. NORMAL could lose the last changes; see _note_use.
            self._db.execute("PRAGMA synchronous = FULL")
            if self._version() != len(_STEPS):
                with self._change():  # two processes may have come this far; only one is let in here at a time
                    self._migrate()
        except sqlite3.Error as broken:
            raise CredentialsUnusable(str(self.path), _reason(broken)) from broken

    def _version(self) -> int:
        version: int = self._db.execute("PRAGMA user_version").fetchone()[0]
        return version

    def _migrate(self) -> None:
        version = self._version()
        if version > len(_STEPS):
            raise CredentialsUnusable(
                str(self.path), f"they were written by a newer psi (version {version}; this one knows {len(_STEPS)})"
            )
        for step in _STEPS[version:]:
            for statement in step.split(";"):
                self._db.execute(statement)
        self._db.execute(f"PRAGMA user_version = {len(_STEPS)}")

    def _read(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as broken:
            raise CredentialsUnusable(str(self.path), _reason(broken)) from broken

    @contextmanager
    def _change(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as broken:
            raise CredentialsUnusable(str(self.path), _reason(broken)) from broken

    def _note_use(self, token: Token, now: datetime) -> None:
        """Write down that a token was used, where the last note is old enough.

        A request waits for this, so it neither waits for another process nor for the disk: whoever is late is noted at
        the next use, and a note that a power cut takes is no loss.
        """
        if token.state(now) != "active":
            return
        if token.last_used_at is not None and abs(now - token.last_used_at) < NOTED_EVERY:
            return
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA busy_timeout = 0")
            self._db.execute("PRAGMA synchronous = NORMAL")
            try:
                self._db.execute("UPDATE tokens SET last_used_at = ? WHERE id = ?", (_micros(now), token.id))
            finally:
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


def _is(pattern: str, text: str) -> bool:
    # A `$` would let a line end after it.
    return is_text(text) and not text.endswith("\n") and re.search(pattern, text) is not None


def _check(user: object, name: object, lasts: timedelta | None) -> None:
    if not isinstance(user, str) or not _is(USER_PATTERN, user):
        raise Invalid(
            "`user` must be a name of 1 to 64 letters, digits and . _ @ + -, beginning and ending with a letter or a "
            f"digit, got {user!r:.80}",
            code="auth/invalid-user",
        )
    if name is not None and not (isinstance(name, str) and len(name) <= LONGEST_NAME and _is(NAME_PATTERN, name)):
        raise Invalid(
            f"`name` must be a line of at most {LONGEST_NAME} characters, got {name!r:.80}", code="auth/invalid-name"
        )
    if lasts is not None and not timedelta(0) < lasts <= LONGEST_LIFE:
        raise Invalid(
            f"a token must last longer than nothing and at most {LONGEST_LIFE.days} days", code="auth/invalid-lifetime"
        )


def _reason(broken: Exception) -> str:
    if isinstance(broken, OSError):
        return broken.strerror or type(broken).__name__
    if isinstance(broken, sqlite3.OperationalError) and "locked" in str(broken):
        return "another process is changing them; try again"
    return str(broken)


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _token(row: Iterable[Any]) -> Token:
    token_id, user, name, scopes, created, expires, used, revoked = row
    return Token(
        id=token_id,
        user=user,
        name=name,
        scopes=frozenset(scopes.split()),
        created_at=_moment(created),
        expires_at=_moment(expires) if expires is not None else None,
        last_used_at=_moment(used) if used is not None else None,
        revoked_at=_moment(revoked) if revoked is not None else None,
    )


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _micros(moment: datetime | None) -> int | None:
    return (moment - _EPOCH) // timedelta(microseconds=1) if moment is not None else None


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
