from __future__ import annotations

import os
import re
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from psi.core.errors import Invalid
from psi.store import Credentials, CredentialsUnusable, TokenNotFound
from psi.store.credentials import BUSY_MS, LOGINS_KEPT, is_token

NOW = datetime(2026, 4, 22, 13, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def credentials(tmp_path: Path) -> Iterator[Credentials]:
    with Credentials.open(tmp_path / "data") as opened:
        yield opened


# -- tokens


def test_a_token_is_found_by_its_text_and_by_nothing_else(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW, user="ada", name="laptop")
    assert re.fullmatch(r"psi_[A-Za-z0-9_-]{43}", made.text)
    assert re.fullmatch(r"tok-[0-9a-f]{16}", made.token.id)
    found = credentials.find_token(made.text, now=NOW)
    assert found is not None
    assert (found.id, found.user, found.name) == (made.token.id, "ada", "laptop")
    for wrong in (
        made.text[:-1],
        f"{made.text}x",
        made.text.upper(),
        made.token.id,
        "",
        "psi_" + "a" * 43,
        "psi_é" * 9,
    ):
        assert credentials.find_token(wrong, now=NOW) is None


def test_the_text_of_a_token_stands_nowhere_in_the_files(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW)
    login = credentials.log_in(made.token, now=NOW)
    written = b"".join(file.read_bytes() for file in credentials.path.parent.iterdir())
    assert made.token.id.encode() in written
    for secret in (made.text, made.text.removeprefix("psi_"), login.text):
        assert secret.encode() not in written


def test_a_scope_comes_with_those_that_it_implies(credentials: Credentials) -> None:
    def scopes(*given: str) -> set[str]:
        made = credentials.create_token(now=NOW, scopes=given)
        found = credentials.token(made.token.id)
        assert found is not None
        assert found.scopes == made.token.scopes
        return set(found.scopes)

    assert scopes("read") == {"read"}
    assert scopes("write") == {"read", "write"}
    assert scopes("admin") == {"read", "write", "admin"}


@pytest.mark.parametrize("scopes", [(), ("root",), ("read", "root"), (None,), ("",)])
def test_scopes_that_nobody_knows_are_refused(credentials: Credentials, scopes: tuple[object, ...]) -> None:
    with pytest.raises(Invalid, match="scopes must be some of read, write, admin, got"):
        credentials.create_token(now=NOW, scopes=scopes)
    assert credentials.tokens() == []


@pytest.mark.parametrize("user", ["", " ", "a b", "-a", "a\n", "x" * 65, "ä", 7, None])
def test_a_user_that_is_no_name_is_refused(credentials: Credentials, user: object) -> None:
    with pytest.raises(Invalid, match="`user` must be a name"):
        credentials.create_token(now=NOW, user=user)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "x" * 201, 7])
def test_a_name_that_is_no_line_is_refused(credentials: Credentials, name: object) -> None:
    with pytest.raises(Invalid, match="`name` must be a line"):
        credentials.create_token(now=NOW, name=name)  # type: ignore[arg-type]


@pytest.mark.parametrize("lasts", [timedelta(0), -HOUR, timedelta(days=40_000)])
def test_a_life_that_is_none_or_endless_is_refused(credentials: Credentials, lasts: timedelta) -> None:
    with pytest.raises(Invalid, match="a token must last"):
        credentials.create_token(now=NOW, lasts=lasts)


def test_a_token_expires_at_its_moment_and_not_before(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW, lasts=HOUR)
    found = credentials.find_token(made.text, now=NOW)
    assert found is not None
    assert found.expires_at == NOW + HOUR
    assert found.state(NOW + HOUR - timedelta(microseconds=1)) == "active"
    assert found.state(NOW + HOUR) == "expired"


def test_revoking_ends_a_token_and_once_is_enough(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW)
    assert credentials.revoke(made.token.id, now=NOW + HOUR).revoked_at == NOW + HOUR
    assert credentials.revoke(made.token.id, now=NOW + 2 * HOUR).revoked_at == NOW + HOUR
    found = credentials.find_token(made.text, now=NOW)
    assert found is not None
    assert found.state(NOW) == "revoked"


def test_revoking_what_is_not_there_says_so(credentials: Credentials) -> None:
    with pytest.raises(TokenNotFound) as caught:
        credentials.revoke("tok-1", now=NOW)
    assert caught.value.facts() == {"token-id": "tok-1"}


def test_tokens_are_listed_the_oldest_first_and_by_user(credentials: Credentials) -> None:
    first = credentials.create_token(now=NOW, user="ada").token
    second = credentials.create_token(now=NOW + MINUTE, user="bob").token
    assert [token.id for token in credentials.tokens()] == [first.id, second.id]
    assert [token.id for token in credentials.tokens("bob")] == [second.id]
    assert credentials.tokens("eve") == []


def test_the_use_of_a_token_is_noted_at_most_once_a_minute(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW)

    def used(after: timedelta) -> datetime | None:
        credentials.find_token(made.text, now=NOW + after)
        found = credentials.token(made.token.id)
        assert found is not None
        return found.last_used_at

    assert used(timedelta(0)) == NOW
    assert used(timedelta(seconds=59)) == NOW
    assert used(MINUTE) == NOW + MINUTE
    assert used(-HOUR) == NOW - HOUR  # somebody has set the clock back; a note from the future would stay for ever


def test_trying_a_token_that_has_ended_is_no_use_of_it(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW)
    credentials.revoke(made.token.id, now=NOW)
    credentials.find_token(made.text, now=NOW)
    found = credentials.token(made.token.id)
    assert found is not None
    assert found.last_used_at is None


def test_a_token_as_data_says_all_but_the_secret(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW, user="ada", scopes=["admin"], lasts=HOUR)
    assert made.token.as_data() == {
        "id": made.token.id,
        "user": "ada",
        "name": None,
        "scopes": ["read", "write", "admin"],
        "created_at": "2026-04-22T13:00:00Z",
        "expires_at": "2026-04-22T14:00:00Z",
        "last_used_at": None,
        "revoked_at": None,
    }


# -- logins


def test_a_login_holds_for_twelve_hours(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW)
    login = credentials.log_in(made.token, now=NOW)
    found = credentials.find_login(login.text, now=NOW + 11 * HOUR)
    assert found is not None
    assert (found.id, found.token.id) == (login.login.id, made.token.id)
    assert credentials.login(found.id, now=NOW) is not None
    assert credentials.find_login(login.text, now=NOW + 12 * HOUR) is None
    assert credentials.find_login("", now=NOW) is None
    assert credentials.find_login(made.text, now=NOW) is None


def test_a_login_lasts_no_longer_than_its_token(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW, lasts=HOUR)
    login = credentials.log_in(made.token, now=NOW)
    assert login.login.expires_at == NOW + HOUR
    assert credentials.find_login(login.text, now=NOW + HOUR) is None


def test_revoking_a_token_ends_its_logins_and_no_others(credentials: Credentials) -> None:
    first, second = (credentials.create_token(now=NOW).token for _ in range(2))
    ended, kept = (credentials.log_in(token, now=NOW).text for token in (first, second))
    credentials.revoke(first.id, now=NOW)
    assert credentials.find_login(ended, now=NOW) is None
    assert credentials.find_login(kept, now=NOW) is not None


def test_logging_out_ends_one_login(credentials: Credentials) -> None:
    token = credentials.create_token(now=NOW).token
    ended, kept = (credentials.log_in(token, now=NOW).text for _ in range(2))
    assert credentials.log_out(ended)
    assert not credentials.log_out(ended)
    assert credentials.find_login(ended, now=NOW) is None
    assert credentials.find_login(kept, now=NOW) is not None


def test_logins_are_bounded_the_oldest_go_first_and_expired_ones_at_once(credentials: Credentials) -> None:
    token = credentials.create_token(now=NOW).token
    texts = [credentials.log_in(token, now=NOW).text for _ in range(LOGINS_KEPT + 2)]
    held = [credentials.find_login(text, now=NOW) is not None for text in texts]
    assert held == [False, False, *[True] * LOGINS_KEPT]
    credentials.log_in(token, now=NOW + 13 * HOUR)
    with sqlite3.connect(credentials.path) as db:
        assert db.execute("SELECT count(*) FROM logins").fetchone() == (1,)
    db.close()


# -- the file


@pytest.mark.skipif(os.name != "posix", reason="modes are a thing of POSIX")
def test_folder_and_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Credentials.open(tmp_path / "data") as credentials:
            credentials.create_token(now=NOW)
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "data").iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert modes == {"auth.db": 0o600, "auth.db-wal": 0o600, "auth.db-shm": 0o600}


@pytest.mark.skipif(os.name != "posix", reason="modes are a thing of POSIX")
def test_a_file_that_others_could_read_is_closed_to_them_and_a_folder_that_was_there_is_left_alone(
    tmp_path: Path,
) -> None:
    Credentials.open(tmp_path).close()
    tmp_path.chmod(0o755)
    (tmp_path / "auth.db").chmod(0o644)
    Credentials.open(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "auth.db").stat().st_mode) == 0o600
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_what_was_saved_is_there_again(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        made = credentials.create_token(now=NOW, lasts=HOUR)
    with Credentials.open(tmp_path) as credentials:
        assert credentials.tokens() == [made.token]


def test_another_process_revokes_and_the_very_next_look_knows(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom datetime import datetime, UTC\nfrom psi.store import Credentials\n"
        "with Credentials.open(sys.argv[1]) as credentials:\n"
        "    credentials.revoke(sys.argv[2], now=datetime(2026, 4, 22, 13, tzinfo=UTC))\n"
    )
    with Credentials.open(tmp_path) as credentials:
        made = credentials.create_token(now=NOW)
        login = credentials.log_in(made.token, now=NOW)
        assert credentials.find_login(login.text, now=NOW) is not None
        subprocess.run([sys.executable, "-c", code, str(tmp_path), made.token.id], check=True, timeout=60, cwd=ROOT)
        found = credentials.find_token(made.text, now=NOW)
        assert found is not None
        assert found.state(NOW) == "revoked"
        assert credentials.find_login(login.text, now=NOW) is None


def test_looking_up_waits_for_nobody_who_is_writing_and_the_note_is_made_the_next_time(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        made = credentials.create_token(now=NOW)
        other = sqlite3.connect(credentials.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        before = time.perf_counter()
        found = credentials.find_token(made.text, now=NOW)
        assert time.perf_counter() - before < BUSY_MS / 2_000  # half of what a change would wait
        assert found is not None
        token = credentials.token(made.token.id)
        assert token is not None
        assert token.last_used_at is None
        other.execute("ROLLBACK")
        other.close()
        credentials.find_token(made.text, now=NOW)
        token = credentials.token(made.token.id)
        assert token is not None
        assert token.last_used_at == NOW


def test_two_that_open_a_fresh_folder_at_once_both_can(tmp_path: Path) -> None:
    code = "import sys\nfrom psi.store import Credentials\nCredentials.open(sys.argv[1]).close()"
    command = [sys.executable, "-c", code, str(tmp_path / "data")]
    started = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) for _ in range(4)]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in started] == [(b"", 0)] * 4


def test_a_file_of_a_newer_psi_is_left_alone(tmp_path: Path) -> None:
    Credentials.open(tmp_path).close()
    db = sqlite3.connect(tmp_path / "auth.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(CredentialsUnusable, match="written by a newer psi \\(version 99; this one knows 1\\)"):
        Credentials.open(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "auth.db").write_text("hello " * 1_000)
    with pytest.raises(CredentialsUnusable, match=r"auth\.db cannot be used: file is not a database"):
        Credentials.open(tmp_path)


def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(CredentialsUnusable, match="cannot be used: "):
        Credentials.open(tmp_path / "data")


def test_a_change_that_fails_changes_nothing(credentials: Credentials) -> None:
    made = credentials.create_token(now=NOW)
    unknown = credentials.create_token(now=NOW).token
    db = sqlite3.connect(credentials.path)
    with db:
        db.execute("DELETE FROM tokens WHERE id = ?", (unknown.id,))
    db.close()
    with pytest.raises(CredentialsUnusable, match="FOREIGN KEY"):
        credentials.log_in(unknown, now=NOW)
    assert credentials.log_in(made.token, now=NOW)


def test_only_what_has_the_form_of_a_token_is_looked_up() -> None:
    assert is_token("psi_" + "a" * 43)
    assert not is_token("psi_" + "a" * 42)
    assert not is_token("psi_" + "a" * 43 + "\n")
