"""Who is busy and who is idle: every phase and every event, written out by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from psi.core.clock import Moment
from psi.core.errors import Conflict, SessionBusy
from psi.core.session import (
    Close,
    CompactionBegan,
    CompactionEnded,
    Drain,
    Event,
    Forget,
    Phase,
    Renamed,
    RunBegan,
    RunEnded,
    RunRefused,
    Session,
    StopRun,
    step,
)

BORN = datetime(2026, 4, 22, 13, 0, tzinfo=UTC)
LATER = BORN + timedelta(minutes=5)
NOW = Moment(LATER, 7)

IDLE = Session(id="ses-1", worktree="/tree", created_at=BORN, updated_at=BORN, message_count=4)
STREAMING = replace(IDLE, phase=Phase.STREAMING, run="run-1")
COMPACTING = replace(IDLE, phase=Phase.COMPACTING)
COMPACTING_IN_A_RUN = replace(STREAMING, phase=Phase.COMPACTING)


def closing(session: Session) -> Session:
    return replace(session, closing=True)


LEGAL: list[tuple[Session, Event, dict[str, Any], tuple[Any, ...]]] = [
    # idle
    (
        IDLE,
        RunBegan("run-1", 2),
        {"phase": Phase.STREAMING, "run": "run-1", "message_count": 6, "updated_at": LATER},
        (),
    ),
    (IDLE, CompactionBegan(), {"phase": Phase.COMPACTING}, ()),
    # streaming
    (
        STREAMING,
        RunEnded("run-1", 3),
        {"phase": Phase.IDLE, "run": None, "message_count": 7, "updated_at": LATER},
        (Drain("ses-1"),),
    ),
    (STREAMING, RunRefused("run-1", 2), {"phase": Phase.IDLE, "run": None, "message_count": 2}, (Drain("ses-1"),)),
    (STREAMING, CompactionBegan(), {"phase": Phase.COMPACTING}, ()),
    # compacting, inside a run and outside of one
    (COMPACTING_IN_A_RUN, CompactionEnded(), {"phase": Phase.STREAMING}, ()),
    (
        COMPACTING_IN_A_RUN,
        RunEnded("run-1"),
        {"phase": Phase.IDLE, "run": None, "updated_at": LATER},
        (Drain("ses-1"),),
    ),
    (COMPACTING_IN_A_RUN, RunRefused("run-1"), {"phase": Phase.IDLE, "run": None}, (Drain("ses-1"),)),
    (COMPACTING, CompactionEnded(), {"phase": Phase.IDLE}, (Drain("ses-1"),)),
    # closing waits for the run, and for a compaction
    (IDLE, Close(), {"closing": True, "updated_at": LATER}, (Forget("ses-1"),)),
    (STREAMING, Close(), {"closing": True, "updated_at": LATER}, (StopRun("run-1"),)),
    (COMPACTING_IN_A_RUN, Close(), {"closing": True, "updated_at": LATER}, (StopRun("run-1"),)),
    (COMPACTING, Close(), {"closing": True, "updated_at": LATER}, ()),
    (
        closing(STREAMING),
        RunEnded("run-1", 1),
        {"phase": Phase.IDLE, "run": None, "message_count": 5, "updated_at": LATER},
        (Forget("ses-1"),),
    ),
    (closing(STREAMING), RunRefused("run-1"), {"phase": Phase.IDLE, "run": None}, (Forget("ses-1"),)),
    (closing(COMPACTING), CompactionEnded(), {"phase": Phase.IDLE}, (Forget("ses-1"),)),
    (closing(COMPACTING_IN_A_RUN), CompactionEnded(), {"phase": Phase.STREAMING}, ()),
]


@pytest.mark.parametrize(("session", "event", "changed", "effects"), LEGAL)
def test_an_event_in_its_place_changes_just_this(
    session: Session, event: Event, changed: dict[str, Any], effects: tuple[Any, ...]
) -> None:
    assert step(session, event, now=NOW) == (replace(session, **changed), effects)


EVERY_PHASE = [IDLE, STREAMING, COMPACTING, COMPACTING_IN_A_RUN]


@pytest.mark.parametrize("session", [*EVERY_PHASE, *map(closing, EVERY_PHASE)])
def test_a_session_can_be_renamed_at_any_time(session: Session) -> None:
    after, effects = step(session, Renamed("night watch"), now=NOW)
    assert after == replace(session, name="night watch", updated_at=LATER)
    assert effects == ()


@pytest.mark.parametrize("session", EVERY_PHASE)
def test_closing_twice_does_nothing_more(session: Session) -> None:
    once, _ = step(session, Close(), now=NOW)
    assert step(once, Close(), now=Moment(LATER + timedelta(hours=1), 8)) == (once, ())


BUSY = [
    (STREAMING, "streaming", "run-1"),
    (COMPACTING_IN_A_RUN, "compacting", "run-1"),
    (COMPACTING, "compacting", None),
    (closing(STREAMING), "streaming", "run-1"),
    (closing(IDLE), "idle", None),
]


@pytest.mark.parametrize(("session", "phase", "run"), BUSY)
def test_a_session_takes_one_run_at_a_time_and_none_once_it_closes(
    session: Session, phase: str, run: str | None
) -> None:
    with pytest.raises(SessionBusy) as caught:
        step(session, RunBegan("run-2"), now=NOW)
    assert caught.value.as_data() == {
        "code": "session/busy",
        "message": "session is busy: a run is active; wait for its end or stop it",
        "data": {"session-id": "ses-1", "phase": phase, "run-id": run},
    }


ILLEGAL: list[tuple[Session, Event, str]] = [
    (IDLE, RunEnded("run-1"), "a session that is idle cannot take RunEnded"),
    (IDLE, RunRefused("run-1"), "a session that is idle cannot take RunRefused"),
    (IDLE, CompactionEnded(), "a session that is idle cannot take CompactionEnded"),
    (STREAMING, CompactionEnded(), "a session that is streaming cannot take CompactionEnded"),
    (COMPACTING, CompactionBegan(), "a session that is compacting cannot take CompactionBegan"),
    (COMPACTING_IN_A_RUN, CompactionBegan(), "a session that is compacting cannot take CompactionBegan"),
]


@pytest.mark.parametrize(("session", "event", "message"), ILLEGAL)
def test_an_event_out_of_place_is_refused(session: Session, event: Event, message: str) -> None:
    with pytest.raises(Conflict) as caught:
        step(session, event, now=NOW)
    assert caught.value.as_data() == {"code": "psi/conflict", "message": message, "data": {"session-id": "ses-1"}}


ANOTHERS: list[tuple[Session, Event, str | None]] = [
    (STREAMING, RunEnded("run-9"), "run-1"),
    (STREAMING, RunRefused("run-9"), "run-1"),
    (COMPACTING_IN_A_RUN, RunEnded("run-9"), "run-1"),
    (COMPACTING, RunEnded("run-9"), None),
    (COMPACTING, RunRefused("run-9"), None),
]


@pytest.mark.parametrize(("session", "event", "run"), ANOTHERS)
def test_a_run_that_is_not_under_way_cannot_end(session: Session, event: Event, run: str | None) -> None:
    with pytest.raises(Conflict) as caught:
        step(session, event, now=NOW)
    assert str(caught.value) == "run run-9 is not the one under way"
    assert caught.value.facts() == {"session-id": "ses-1", "run-id": run}


def test_a_run_that_was_refused_leaves_the_session_as_it_was_before() -> None:
    began, _ = step(IDLE, RunBegan("run-1", 2), now=Moment(BORN, 1))
    after, _ = step(began, RunRefused("run-1", 2), now=NOW)
    assert after == IDLE


@pytest.mark.parametrize(
    ("session", "idle"),
    [(IDLE, True), (STREAMING, False), (COMPACTING, False), (COMPACTING_IN_A_RUN, False), (closing(IDLE), False)],
)
def test_a_session_is_idle_when_it_neither_streams_nor_compacts_nor_closes(session: Session, idle: bool) -> None:
    assert session.is_idle is idle


def test_a_session_without_a_name_is_shown_by_the_beginning_of_its_id() -> None:
    session = replace(IDLE, id="0123456789abcdef")
    assert session.display_name == "0123456789ab"
    assert replace(session, name="night watch").display_name == "night watch"


def test_the_summary_says_who_it_is_and_what_it_does() -> None:
    assert replace(STREAMING, name="night watch", updated_at=LATER).summary() == {
        "session-id": "ses-1",
        "session-name": "night watch",
        "phase": "streaming",
        "created": "2026-04-22T13:00:00Z",
        "updated": "2026-04-22T13:05:00Z",
    }
