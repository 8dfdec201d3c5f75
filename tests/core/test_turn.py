"""Every turn that began ends once, and leaves its closure in the history."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from psi.core.clock import Moment
from psi.core.errors import Conflict
from psi.core.message import SCHEDULED, USER, Message, says
from psi.core.turn import Answered, Event, Failed, Interrupted, LimitReached, Say, State, Stopped, Turn, begin, step
from psi.edn import Keyword

START = datetime(2026, 4, 22, 13, 0, tzinfo=UTC)
END = START + timedelta(seconds=9)
NOW = Moment(END, 9)

RUNNING = Turn(id="run-1", session="ses-1", source=USER, started_at=START)

NOTHING = "This turn ended without a result."
LIMIT = "This turn ended at its limit of 25 iterations."
SILENT = "This turn was stopped before it said anything."
FAILED = "This turn failed (TimeoutError). The details are in the record of run run-1."
INTERRUPTED = "This turn was interrupted: the service stopped while it was running."

ENDS: list[tuple[Event, State, str, str | None]] = [
    (Answered("Done."), State.OK, "Done.", None),
    (Answered("  Done.\n"), State.OK, "  Done.\n", None),
    (Answered(""), State.EMPTY, NOTHING, "empty"),
    (Answered(" \n\t"), State.EMPTY, NOTHING, "empty"),
    (LimitReached("So far.", 25), State.OK, f"So far.\n\n{LIMIT}", "iteration-limit"),
    (LimitReached("", 25), State.OK, LIMIT, "iteration-limit"),
    (Stopped("Half a"), State.STOPPED, "Half a", "stopped"),
    (Stopped(""), State.STOPPED, SILENT, "stopped"),
    (Failed("Half a", "TimeoutError", "no answer in 30 s"), State.ERROR, f"Half a\n\n{FAILED}", "error"),
    (Failed("", "TimeoutError", "no answer in 30 s"), State.ERROR, FAILED, "error"),
    (Interrupted("Half a"), State.INTERRUPTED, f"Half a\n\n{INTERRUPTED}", "interrupted"),
    (Interrupted(), State.INTERRUPTED, INTERRUPTED, "interrupted"),
]


@pytest.mark.parametrize(("event", "state", "answer", "closure"), ENDS)
def test_a_turn_ends_in_one_state_with_one_closure(
    event: Event, state: State, answer: str, closure: str | None
) -> None:
    after, effects = step(RUNNING, event, now=NOW)
    assert (after.state, after.answer, after.finished_at) == (state, answer, END)
    assert (after.id, after.session, after.source, after.started_at) == ("run-1", "ses-1", USER, START)
    said = Message(
        role="assistant",
        content=says(answer),
        timestamp=END,
        source=USER,
        run_id="run-1",
        closure=Keyword(closure) if closure else None,
    )
    assert effects == (Say(said),)


@pytest.mark.parametrize(("late", "_state", "_answer", "_closure"), ENDS)
@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State.OK, "run run-1 has ended already: ok"),
        (State.ERROR, "run run-1 has ended already: error"),
        (State.EMPTY, "run run-1 has ended already: empty"),
        (State.STOPPED, "run run-1 has ended already: stopped"),
        (State.INTERRUPTED, "run run-1 has ended already: interrupted"),
    ],
)
def test_a_turn_that_has_ended_never_ends_again(
    late: Event, _state: State, _answer: str, _closure: str | None, state: State, message: str
) -> None:
    with pytest.raises(Conflict) as caught:
        step(replace(RUNNING, state=state), late, now=NOW)
    assert caught.value.as_data() == {"code": "psi/conflict", "message": message, "data": {"run-id": "run-1"}}


@pytest.mark.parametrize(("text", "state"), [("Done.", State.OK), ("", State.EMPTY)])
def test_what_an_answer_cost_is_kept_in_the_turn(text: str, state: State) -> None:
    answered = Answered(text, context_tokens=11, max_context_tokens=200, token_count=33)
    after, _ = step(RUNNING, answered, now=NOW)
    assert after.state is state
    assert (after.context_tokens, after.max_context_tokens, after.token_count) == (11, 200, 33)


@pytest.mark.parametrize("event", [Answered("Done."), Stopped(""), LimitReached("", 25), Failed("", "E", "e")])
def test_what_was_counted_while_it_ran_stays_however_it_ended(event: Event) -> None:
    after, _ = step(replace(RUNNING, tool_call_count=4, event_count=9), event, now=NOW)
    assert (after.tool_call_count, after.event_count) == (4, 9)


def test_what_went_wrong_stands_in_the_turn_and_not_in_the_history() -> None:
    after, (say,) = step(RUNNING, Failed("", "TimeoutError", "the key sk-1 was refused"), now=NOW)
    assert (after.error_class, after.error) == ("TimeoutError", "the key sk-1 was refused")
    assert "sk-1" not in say.message.text
    assert "sk-1" not in str(after.summary())


@pytest.mark.parametrize(("event", "state", "answer", "closure"), ENDS)
def test_only_a_failure_leaves_an_error(event: Event, state: State, answer: str, closure: str | None) -> None:
    after, _ = step(RUNNING, event, now=NOW)
    assert (after.error is not None) is (state is State.ERROR)
    assert (after.error_class is not None) is (state is State.ERROR)


@pytest.mark.parametrize(("source", "expected"), [(None, "user"), (USER, "user"), (SCHEDULED, "scheduled")])
def test_a_message_opens_a_turn_of_its_source(source: Keyword | None, expected: str) -> None:
    turn = begin("run-1", Message(role="user", content=says("Go."), source=source), session="ses-1", now=NOW)
    assert turn == Turn(id="run-1", session="ses-1", source=Keyword(expected), started_at=END)
    assert turn.state is State.RUNNING


def test_the_closure_has_the_source_of_its_turn() -> None:
    _, (say,) = step(replace(RUNNING, source=SCHEDULED), Answered("Done."), now=NOW)
    assert say.message.source == SCHEDULED


def test_the_summary_of_a_turn_under_way_has_no_end() -> None:
    assert RUNNING.summary() == {
        "run-id": "run-1",
        "state": "running",
        "source": "user",
        "started-at": "2026-04-22T13:00:00Z",
        "finished-at": None,
        "answer": None,
    }


def test_the_summary_of_a_turn_that_has_ended_has_its_answer() -> None:
    after, _ = step(RUNNING, Answered("Done."), now=NOW)
    assert after.summary() == {
        "run-id": "run-1",
        "state": "ok",
        "source": "user",
        "started-at": "2026-04-22T13:00:00Z",
        "finished-at": "2026-04-22T13:00:09Z",
        "answer": "Done.",
    }


@pytest.mark.parametrize(
    ("told", "written"),
    [("a\ud83d\ude00b", "a😀b"), ("a\ud83d", "a\ufffd"), ("\ude00b", "\ufffdb"), ("\0ü😀", "\0ü😀")],
)
def test_a_closure_can_be_written_down_whatever_the_agent_told(told: str, written: str) -> None:
    after, (say,) = step(RUNNING, Answered(told), now=NOW)
    assert (after.answer, say.message.text) == (written, written)
    failed, _ = step(RUNNING, Failed("", "ValueError", told), now=NOW)
    assert failed.error == written
