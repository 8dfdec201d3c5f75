from __future__ import annotations

from types import SimpleNamespace

from psi.core import topics
from psi.core.topics import touched


def test_a_schedule_touches_itself_its_session_and_the_agenda() -> None:
    assert set(touched("schedule-changed", "ses-1", "alice", SimpleNamespace(id="sch-1"))) == {
        topics.schedule("sch-1"),
        topics.schedules_of("ses-1"),
        topics.agenda(None),
        topics.agenda("alice"),
    }


def test_a_run_touches_the_history_it_writes() -> None:
    found = touched("run-finished", "ses-1", None, SimpleNamespace(id="run-1"))
    assert {topics.run("run-1"), topics.runs_of("ses-1"), topics.messages_of("ses-1")} <= set(found)


def test_a_session_that_comes_or_goes_touches_the_list_of_sessions() -> None:
    for kind in ("session-created", "session-closed"):
        assert {topics.sessions(None), topics.existence("ses-1")} <= set(touched(kind, "ses-1", None, None))
    assert topics.sessions(None) not in touched("session-changed", "ses-1", None, None)


def test_what_a_run_says_touches_nothing_that_can_be_looked_at() -> None:
    assert touched("run-event", "ses-1", None, None) == ()


def test_what_one_user_does_touches_nothing_of_another() -> None:
    found = touched("session-created", "ses-1", "alice", None)
    assert topics.sessions("alice") in found
    assert topics.sessions("bob") not in found
