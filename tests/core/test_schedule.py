"""One delayed prompt: every bound of its plan, and everything that may happen to it, written out from the spec."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.core.clock import Moment, instant_text
from psi.core.config import NO_CONFIG, SessionConfig
from psi.core.errors import Conflict, Invalid, NotCancellable
from psi.core.schedule import (
    Accepted,
    Broken,
    Cancelled,
    CreateSession,
    Dropped,
    Due,
    ErrorSummary,
    Event,
    Freed,
    Kind,
    Overtaken,
    Phase,
    Schedule,
    SessionCreated,
    Status,
    Submit,
    plan,
    prompt_of,
    step,
)
from psi.edn import Keyword, dumps

WALL = datetime(2026, 4, 22, 13, 0, tzinfo=UTC)
TICK = 5_000_000_000
NOW = Moment(WALL, TICK)
DAY_MS = 86_400_000


def planned(**wishes: Any) -> Schedule:
    """A plan that is right but for what the test wishes."""
    return plan(id="sch-1", session="ses-1", now=NOW, **{"kind": "message", "message": "Look.", **wishes})


def refusal(**wishes: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        planned(**wishes)
    return caught.value


# -- planning


def test_a_message_is_planned_as_it_was_asked_for() -> None:
    assert planned(delay_ms=5_000, label="tea") == Schedule(
        id="sch-1",
        session="ses-1",
        kind=Kind.MESSAGE,
        message="Look.",
        label="tea",
        created_at=WALL,
        fire_at=WALL + timedelta(seconds=5),
        due=TICK + 5_000_000_000,
        config=None,
        status=Status.PENDING,
        phase=None,
        created_session=None,
        error=None,
    )


def test_a_session_is_planned_with_its_config() -> None:
    config = SessionConfig(session_name="night watch")
    schedule = planned(kind="session", config=config, delay_ms=1_000)
    assert (schedule.kind, schedule.config, schedule.session) == (Kind.SESSION, config, "ses-1")


def test_a_session_may_be_planned_with_an_empty_config() -> None:
    assert planned(kind="session", config=NO_CONFIG, delay_ms=1_000).config == NO_CONFIG


@pytest.mark.parametrize("kind", ["message", ":message", Keyword("message")])
def test_a_kind_may_be_a_keyword_or_its_text(kind: str) -> None:
    assert planned(kind=kind, delay_ms=1_000).kind is Kind.MESSAGE


@pytest.mark.parametrize("message", [None, "", "  ", "\n\t", 5, True, ["Look."], {"text": "Look."}])
def test_a_message_that_is_blank_or_no_text_is_refused(message: Any) -> None:
    error = refusal(message=message, delay_ms=1_000)
    assert str(error) == "scheduler create requires a non-blank `message`"
    assert error.code == "scheduler/message-required"


@pytest.mark.parametrize("kind", [None, "", "Message", "messages", "prompt", "::message", 5, True, ["message"], {}])
def test_a_kind_is_given_and_never_guessed(kind: Any) -> None:
    error = refusal(kind=kind, delay_ms=1_000)
    assert str(error) == "scheduler create requires explicit `kind`: `message` or `session`"
    assert error.code == "scheduler/kind-required"
    assert error.facts()["accepted"] == ["message", "session"]


def test_a_config_does_not_make_a_kind() -> None:
    error = refusal(kind=None, config=NO_CONFIG, delay_ms=1_000)
    assert str(error) == "scheduler create requires explicit `kind`: `message` or `session`"


@pytest.mark.parametrize("config", [NO_CONFIG, SessionConfig(session_name="x")])
def test_a_message_forbids_a_config_even_an_empty_one(config: SessionConfig) -> None:
    error = refusal(kind="message", config=config, delay_ms=1_000)
    assert str(error) == "scheduler kind `message` forbids `session-config`"
    assert error.code == "scheduler/config-forbidden"


def test_a_session_requires_a_config() -> None:
    error = refusal(kind="session", delay_ms=1_000)
    assert str(error) == "scheduler kind `session` requires `session-config` (a map; {} is allowed)"
    assert error.code == "scheduler/config-required"


@pytest.mark.parametrize(("label", "got"), [(5, "5"), (True, "true"), (["tea"], '["tea"]')])
def test_a_label_that_is_no_text_is_refused(label: Any, got: str) -> None:
    error = refusal(label=label, delay_ms=1_000)
    assert str(error) == f"scheduler `label` must be a string, got {got}"
    assert error.code == "scheduler/invalid-label"


def test_a_label_may_be_left_out() -> None:
    assert planned(delay_ms=1_000).label is None


@pytest.mark.parametrize("delay_ms", [1_000, 1_001, DAY_MS - 1, DAY_MS])
def test_a_delay_within_its_bounds_is_counted_from_now(delay_ms: int) -> None:
    schedule = planned(delay_ms=delay_ms)
    assert schedule.fire_at == WALL + timedelta(milliseconds=delay_ms)
    assert schedule.due == TICK + delay_ms * 1_000_000


@given(st.integers(1_000, DAY_MS))
def test_every_delay_within_its_bounds_is_accepted(delay_ms: int) -> None:
    assert planned(delay_ms=delay_ms).due - TICK == delay_ms * 1_000_000


@pytest.mark.parametrize("delay_ms", [999, 1, 0, -1, -(10**30)])
def test_a_delay_below_a_second_is_refused(delay_ms: int) -> None:
    assert refusal(delay_ms=delay_ms).as_data() == {
        "code": "scheduler/delay-too-short",
        "message": "delay-ms is below the minimum bound",
        "data": {"delay-ms": delay_ms, "minimum": 1_000},
    }


@pytest.mark.parametrize("delay_ms", [DAY_MS + 1, 10**30])
def test_a_delay_above_a_day_is_refused(delay_ms: int) -> None:
    assert refusal(delay_ms=delay_ms).as_data() == {
        "code": "scheduler/delay-too-long",
        "message": "delay-ms exceeds the maximum bound",
        "data": {"delay-ms": delay_ms, "maximum": DAY_MS},
    }


@pytest.mark.parametrize("delay_ms", [True, False, 1.5, 5_000.0, "5000", "", [5_000], {}])
def test_a_delay_that_is_no_integer_is_refused(delay_ms: Any) -> None:
    error = refusal(delay_ms=delay_ms)
    assert str(error) == "delay-ms must be an integer"
    assert error.code == "scheduler/delay-not-an-integer"


def at(milliseconds: float) -> str:
    return instant_text(WALL + timedelta(milliseconds=milliseconds))


@pytest.mark.parametrize("ahead", [-DAY_MS * 400, -DAY_MS, -1_000, -1, -0.001, 0, 0.001, 0.5, 0.999])
def test_an_instant_that_is_past_or_less_than_a_millisecond_ahead_fires_at_once(ahead: float) -> None:
    schedule = planned(at=at(ahead))
    assert schedule.due == TICK
    assert schedule.fire_at == WALL + timedelta(milliseconds=ahead)
    assert schedule.status is Status.PENDING


@pytest.mark.parametrize(("ahead", "whole"), [(1, 1), (1.999, 1), (500, 500), (999, 999), (999.999, 999)])
def test_an_instant_less_than_a_second_ahead_is_refused(ahead: float, whole: int) -> None:
    assert refusal(at=at(ahead)).as_data() == {
        "code": "scheduler/delay-too-short",
        "message": "delay-ms is below the minimum bound",
        "data": {"delay-ms": whole, "minimum": 1_000},
    }


@pytest.mark.parametrize("ahead", [1_000, 1_000.001, 60_000, DAY_MS - 0.001, DAY_MS, DAY_MS + 0.5, DAY_MS + 0.999])
def test_an_instant_within_the_bounds_is_accepted_by_its_whole_milliseconds(ahead: float) -> None:
    schedule = planned(at=at(ahead))
    assert schedule.fire_at == WALL + timedelta(milliseconds=ahead)
    assert int(ahead) * 1_000_000 <= schedule.due - TICK < (int(ahead) + 1) * 1_000_000


@pytest.mark.parametrize(("ahead", "whole"), [(DAY_MS + 1, DAY_MS + 1), (DAY_MS * 400, DAY_MS * 400)])
def test_an_instant_more_than_a_day_ahead_is_refused(ahead: int, whole: int) -> None:
    assert refusal(at=at(ahead)).as_data() == {
        "code": "scheduler/delay-too-long",
        "message": "delay-ms exceeds the maximum bound",
        "data": {"delay-ms": whole, "maximum": DAY_MS},
    }


def test_an_instant_may_be_one_already_whatever_its_zone() -> None:
    there = timezone(timedelta(hours=2))
    schedule = planned(at=(WALL + timedelta(seconds=10)).astimezone(there))
    assert schedule.due == TICK + 10_000_000_000
    assert schedule.summary()["fire-at"] == "2026-04-22T13:00:10Z"


NOT_INSTANTS: list[tuple[Any, Any]] = [
    ("soon", "soon"),
    ("", ""),
    ("2026-04-22T13:00:10", "2026-04-22T13:00:10"),
    ("2026-04-22T13:00:10+02:00", "2026-04-22T13:00:10+02:00"),
    ("2026-02-30T13:00:10Z", "2026-02-30T13:00:10Z"),
    (1_776_862_810, 1_776_862_810),
    (True, True),
    (["2026-04-22T13:00:10Z"], '["2026-04-22T13:00:10Z"]'),
    ("x" * 500, "x" * 199 + "…"),
]


@pytest.mark.parametrize(("wish", "got"), NOT_INSTANTS)
def test_what_is_no_instant_in_utc_is_refused_and_told(wish: Any, got: Any) -> None:
    assert refusal(at=wish).as_data() == {
        "code": "scheduler/invalid-instant",
        "message": "scheduler `at` must be an ISO-8601 UTC instant",
        "data": {"at": got, "accepted": "2026-04-22T13:00:00Z"},
    }


def test_an_instant_without_its_zone_is_refused() -> None:
    naive = WALL.replace(tzinfo=None)
    assert str(refusal(at=naive)) == "scheduler `at` must be an ISO-8601 UTC instant"


@pytest.mark.parametrize("wishes", [{"delay_ms": 5_000, "at": at(5_000)}, {"delay_ms": "x", "at": "y"}])
def test_two_times_are_refused(wishes: dict[str, Any]) -> None:
    error = refusal(**wishes)
    assert str(error) == "scheduler create accepts either `delay-ms` or `at`, not both"
    assert error.code == "scheduler/two-times"


def test_no_time_is_refused() -> None:
    error = refusal()
    assert str(error) == "scheduler create requires `delay-ms` or `at`"
    assert error.code == "scheduler/no-time"


@given(st.timedeltas(min_value=timedelta(days=-2), max_value=timedelta(days=2)))
def test_an_instant_is_judged_by_its_whole_milliseconds_and_never_fires_before_it(ahead: timedelta) -> None:
    whole = max(ahead, timedelta()) // timedelta(milliseconds=1)
    if whole == 0:
        assert planned(at=WALL + ahead).due == TICK
    elif whole < 1_000:
        assert str(refusal(at=WALL + ahead)) == "delay-ms is below the minimum bound"
    elif whole > DAY_MS:
        assert str(refusal(at=WALL + ahead)) == "delay-ms exceeds the maximum bound"
    else:
        schedule = planned(at=WALL + ahead)
        assert schedule.fire_at == WALL + ahead
        assert (schedule.due - TICK) // 1_000 == ahead // timedelta(microseconds=1)


# -- what may happen

WAITING = Schedule(
    id="sch-1",
    session="ses-1",
    kind=Kind.MESSAGE,
    message="Look.",
    label="tea",
    created_at=WALL,
    fire_at=WALL + timedelta(seconds=5),
    due=TICK,
)
QUEUED = WAITING._replace(status=Status.QUEUED)
SUBMITTING = WAITING._replace(phase=Phase.PROMPT_SUBMIT)
SUBMITTING_FROM_THE_QUEUE = QUEUED._replace(phase=Phase.PROMPT_SUBMIT)
FRESH = WAITING._replace(kind=Kind.SESSION, config=NO_CONFIG)
CREATING = FRESH._replace(phase=Phase.CREATE_SESSION)
CREATED = FRESH._replace(phase=Phase.PROMPT_SUBMIT, created_session="ses-2")
ERROR = ErrorSummary("no such model", "ModelError", {"model": "x"})

CHANGES: list[tuple[str, Schedule, Event, Schedule, tuple[Any, ...]]] = [
    # kind message
    ("idle: delivered now", WAITING, Due(idle=True), SUBMITTING, (Submit("sch-1", "ses-1"),)),
    ("busy: queued", WAITING, Due(idle=False), QUEUED, ()),
    ("freed: its turn", QUEUED, Freed(), SUBMITTING_FROM_THE_QUEUE, (Submit("sch-1", "ses-1"),)),
    ("accepted", SUBMITTING, Accepted(), WAITING._replace(status=Status.DELIVERED), ()),
    ("accepted from the queue", SUBMITTING_FROM_THE_QUEUE, Accepted(), WAITING._replace(status=Status.DELIVERED), ()),
    ("overtaken", SUBMITTING, Overtaken(), QUEUED, ()),
    ("overtaken again", SUBMITTING_FROM_THE_QUEUE, Overtaken(), QUEUED, ()),
    ("broken", SUBMITTING, Broken(ERROR), SUBMITTING._replace(status=Status.FAILED, error=ERROR), ()),
    (
        "broken from the queue",
        SUBMITTING_FROM_THE_QUEUE,
        Broken(ERROR),
        SUBMITTING._replace(status=Status.FAILED, error=ERROR),
        (),
    ),
    # kind session never waits for its origin
    ("origin idle", FRESH, Due(idle=True), CREATING, (CreateSession("sch-1"),)),
    ("origin busy", FRESH, Due(idle=False), CREATING, (CreateSession("sch-1"),)),
    ("created", CREATING, SessionCreated("ses-2"), CREATED, (Submit("sch-1", "ses-2"),)),
    ("accepted there", CREATED, Accepted(), CREATED._replace(status=Status.DELIVERED), ()),
    ("not created", CREATING, Broken(ERROR), CREATING._replace(status=Status.FAILED, error=ERROR), ()),
    ("created, not prompted", CREATED, Broken(ERROR), CREATED._replace(status=Status.FAILED, error=ERROR), ()),
    # called off
    ("cancelled", WAITING, Cancelled(), WAITING._replace(status=Status.CANCELLED), ()),
    ("cancelled in the queue", QUEUED, Cancelled(), WAITING._replace(status=Status.CANCELLED), ()),
    ("session cancelled", FRESH, Cancelled(), FRESH._replace(status=Status.CANCELLED), ()),
    ("dropped", WAITING, Dropped(), WAITING._replace(status=Status.CANCELLED), ()),
    ("dropped in the queue", QUEUED, Dropped(), WAITING._replace(status=Status.CANCELLED), ()),
    ("session dropped", FRESH, Dropped(), FRESH._replace(status=Status.CANCELLED), ()),
]


@pytest.mark.parametrize(
    ("before", "event", "after", "effects"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_an_event_in_its_place_leads_to_just_this(
    before: Schedule, event: Event, after: Schedule, effects: tuple[Any, ...]
) -> None:
    assert step(before, event, now=NOW) == (after, effects)


def test_a_delivery_that_has_not_reached_anybody_ends_with_its_session() -> None:
    assert step(CREATING, Dropped(), now=NOW) == (FRESH._replace(status=Status.CANCELLED), ())


@pytest.mark.parametrize("schedule", [SUBMITTING, SUBMITTING_FROM_THE_QUEUE, CREATED])
def test_a_prompt_that_is_on_its_way_is_not_called_off(schedule: Schedule) -> None:
    assert step(schedule, Dropped(), now=NOW) == (schedule, ())


OUT_OF_PLACE: list[tuple[Schedule, Event]] = [
    (WAITING, Freed()),
    (WAITING, SessionCreated("ses-9")),
    (WAITING, Accepted()),
    (WAITING, Overtaken()),
    (WAITING, Broken(ERROR)),
    (QUEUED, Due(idle=True)),
    (QUEUED, Due(idle=False)),
    (QUEUED, SessionCreated("ses-9")),
    (QUEUED, Accepted()),
    (QUEUED, Overtaken()),
    (QUEUED, Broken(ERROR)),
    (SUBMITTING, Due(idle=True)),
    (SUBMITTING, Due(idle=False)),
    (SUBMITTING, Freed()),
    (SUBMITTING_FROM_THE_QUEUE, Due(idle=True)),
    (SUBMITTING_FROM_THE_QUEUE, Freed()),
    (FRESH, Freed()),
    (FRESH, SessionCreated("ses-9")),
    (FRESH, Accepted()),
    (FRESH, Overtaken()),
    (FRESH, Broken(ERROR)),
    (CREATING, Due(idle=True)),
    (CREATING, Due(idle=False)),
    (CREATING, Freed()),
    (CREATING, Overtaken()),
    (CREATED, Due(idle=True)),
    (CREATED, Freed()),
    (CREATED, Overtaken()),
]


@pytest.mark.parametrize(("schedule", "event"), OUT_OF_PLACE)
def test_an_event_out_of_place_changes_nothing(schedule: Schedule, event: Event) -> None:
    assert step(schedule, event, now=NOW) == (schedule, ())


@pytest.mark.parametrize("schedule", [WAITING, FRESH])
@pytest.mark.parametrize("idle", [True, False])
def test_an_alarm_before_its_time_fires_nothing(schedule: Schedule, idle: bool) -> None:
    assert step(schedule, Due(idle), now=Moment(WALL, TICK - 1)) == (schedule, ())


def test_time_is_counted_in_ticks_whatever_the_wall_shows() -> None:
    tomorrow, yesterday = WALL + timedelta(days=1), WALL - timedelta(days=1)
    assert step(WAITING, Due(idle=True), now=Moment(tomorrow, TICK - 1)) == (WAITING, ())
    assert step(WAITING, Due(idle=True), now=Moment(yesterday, TICK))[0] == SUBMITTING


ENDED = [
    WAITING._replace(status=Status.DELIVERED),
    WAITING._replace(status=Status.CANCELLED),
    SUBMITTING._replace(status=Status.FAILED, error=ERROR),
    SUBMITTING._replace(status=Status.CANCELLED),
    CREATED._replace(status=Status.DELIVERED),
    FRESH._replace(status=Status.CANCELLED),
    CREATING._replace(status=Status.CANCELLED),
    CREATING._replace(status=Status.FAILED, error=ERROR),
    CREATED._replace(status=Status.FAILED, error=ERROR),
]
LATE: list[Event] = [
    Due(idle=True),
    Due(idle=False),
    Freed(),
    SessionCreated("ses-9"),
    Accepted(),
    Overtaken(),
    Broken(ErrorSummary("late", "Late")),
    Dropped(),
]


@pytest.mark.parametrize("schedule", ENDED)
@pytest.mark.parametrize("event", LATE)
def test_a_schedule_that_has_ended_stays_as_it_is_whatever_comes_late(schedule: Schedule, event: Event) -> None:
    assert step(schedule, event, now=Moment(WALL + timedelta(days=9), TICK * 9)) == (schedule, ())


@given(st.lists(st.sampled_from(LATE)))
def test_a_cancelled_schedule_never_comes_back(events: list[Event]) -> None:
    for before in (WAITING, QUEUED, FRESH):
        cancelled, _ = step(before, Cancelled(), now=NOW)
        after = cancelled
        for event in events:
            after, effects = step(after, event, now=NOW)
            assert effects == ()
        assert after == cancelled


@given(st.sampled_from([WAITING, FRESH]), st.lists(st.sampled_from([*LATE, Cancelled()])))
def test_once_a_schedule_has_ended_it_has_no_more_effects(schedule: Schedule, events: list[Event]) -> None:
    ended: Schedule | None = None
    for event in events:
        try:
            schedule, effects = step(schedule, event, now=NOW)
        except NotCancellable:
            continue
        assert not (ended and effects)
        assert ended is None or schedule == ended
        if not schedule.is_open:
            ended = schedule


@pytest.mark.parametrize("schedule", ENDED)
def test_what_has_ended_cannot_be_cancelled(schedule: Schedule) -> None:
    with pytest.raises(NotCancellable) as caught:
        step(schedule, Cancelled(), now=NOW)
    assert isinstance(caught.value, Conflict)
    assert caught.value.as_data() == {
        "code": "scheduler/not-cancellable",
        "message": "schedule is not cancellable",
        "data": {"schedule-id": "sch-1", "status": schedule.status.value},
    }


@pytest.mark.parametrize("schedule", [SUBMITTING, SUBMITTING_FROM_THE_QUEUE, CREATING, CREATED])
def test_a_delivery_under_way_cannot_be_cancelled(schedule: Schedule) -> None:
    with pytest.raises(NotCancellable) as caught:
        step(schedule, Cancelled(), now=NOW)
    assert str(caught.value) == "schedule is not cancellable"


@pytest.mark.parametrize("schedule", [WAITING, QUEUED, SUBMITTING, SUBMITTING_FROM_THE_QUEUE, FRESH, CREATING, CREATED])
def test_a_schedule_is_open_until_its_delivery_is_over(schedule: Schedule) -> None:
    assert schedule.is_open
    assert schedule.in_delivery is (schedule.phase is not None)


@pytest.mark.parametrize("schedule", ENDED)
def test_a_schedule_that_has_ended_is_neither_open_nor_in_delivery(schedule: Schedule) -> None:
    assert not schedule.is_open
    assert not schedule.in_delivery


def test_who_goes_first_is_decided_by_plan_then_request_then_name() -> None:
    late, early = WALL + timedelta(seconds=2), WALL + timedelta(seconds=1)
    first = WAITING._replace(id="sch-9", fire_at=early, created_at=late)
    second = WAITING._replace(id="sch-8", fire_at=late, created_at=early)
    third = WAITING._replace(id="sch-1", fire_at=late, created_at=late)
    fourth = WAITING._replace(id="sch-2", fire_at=late, created_at=late)
    found = sorted([fourth, third, second, first], key=lambda each: each.order)
    assert found == [first, second, third, fourth]


# -- how it is told


def test_the_prompt_is_a_message_of_the_user_that_names_its_schedule() -> None:
    assert prompt_of(WAITING, NOW).as_data() == {
        "role": "user",
        "content": [{"type": "text", "text": "Look."}],
        "timestamp": WALL,
        "source": "scheduled",
        "schedule-id": "sch-1",
        "label": "tea",
    }


def test_the_prompt_of_a_schedule_without_a_label_says_so() -> None:
    assert prompt_of(WAITING._replace(label=None), NOW).as_data()["label"] is None


def test_the_prompt_has_the_whole_message() -> None:
    assert prompt_of(WAITING._replace(message="x" * 5_000), NOW).text == "x" * 5_000


def test_the_summary_of_a_message() -> None:
    assert QUEUED.summary() == {
        "schedule-id": "sch-1",
        "kind": "message",
        "label": "tea",
        "message": "Look.",
        "status": "queued",
        "created-at": "2026-04-22T13:00:00Z",
        "fire-at": "2026-04-22T13:00:05Z",
        "origin-session-id": "ses-1",
        "created-session-id": None,
        "delivery-phase": None,
        "error-summary": None,
        "session-config-summary": None,
    }


def test_kind_status_and_phase_are_keywords_in_edn() -> None:
    summary = CREATED._replace(status=Status.DELIVERED).summary()
    shown = [dumps(summary[key]) for key in ("kind", "status", "delivery-phase")]
    assert shown == [":session", ":delivered", ":prompt-submit"]


def test_the_summary_of_a_session_whose_prompt_failed() -> None:
    failed = CREATED._replace(status=Status.FAILED, error=ERROR, config=SessionConfig(session_name="night watch"))
    assert failed.summary() == {
        "schedule-id": "sch-1",
        "kind": "session",
        "label": "tea",
        "message": "Look.",
        "status": "failed",
        "created-at": "2026-04-22T13:00:00Z",
        "fire-at": "2026-04-22T13:00:05Z",
        "origin-session-id": "ses-1",
        "created-session-id": "ses-2",
        "delivery-phase": "prompt-submit",
        "error-summary": {"message": "no such model", "class": "ModelError", "data": {"model": "x"}},
        "session-config-summary": {
            "session-name": "night watch",
            "model": None,
            "thinking-level": None,
            "skill-count": 0,
            "tool-count": 0,
            "has-system-prompt?": False,
            "has-developer-prompt?": False,
            "preloaded-message-count": 0,
            "has-prompt-component-selection?": False,
        },
    }


@pytest.mark.parametrize("length", [1, 199, 200])
def test_a_message_of_up_to_two_hundred_characters_is_shown_whole(length: int) -> None:
    assert WAITING._replace(message="x" * length).summary()["message"] == "x" * length


@pytest.mark.parametrize("length", [201, 5_000])
def test_a_longer_message_is_shown_by_a_preview_of_two_hundred_characters(length: int) -> None:
    preview = WAITING._replace(message="x" * length).summary()["message"]
    assert preview == "x" * 199 + "…"
    assert len(preview) == 200
