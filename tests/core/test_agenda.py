"""The schedules of all sessions: the cap, the order, and how long what has ended can be asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.core.agenda import Agenda
from psi.core.errors import CapExceeded
from psi.core.schedule import Kind, Phase, Schedule, Status

WALL = datetime(2026, 4, 22, 13, 0, tzinfo=UTC)
ENDS = [Status.DELIVERED, Status.CANCELLED, Status.FAILED]


def made(
    name: str, session: str = "a", *, fire: int = 10, created: int = 0, status: Status = Status.PENDING
) -> Schedule:
    return Schedule(
        id=name,
        session=session,
        kind=Kind.MESSAGE,
        message="Look.",
        label=None,
        created_at=WALL + timedelta(seconds=created),
        fire_at=WALL + timedelta(seconds=fire),
        due=fire * 1_000_000_000,
        status=status,
    )


def holding(*schedules: Schedule) -> Agenda:
    agenda = Agenda()
    for schedule in schedules:
        agenda.add(schedule)
    return agenda


def ids(schedules: list[Schedule]) -> list[str]:
    return [schedule.id for schedule in schedules]


def test_an_empty_agenda_knows_nobody() -> None:
    agenda = Agenda()
    assert (len(agenda), list(agenda), agenda.open_count) == (0, [], 0)
    assert agenda.get("sch-1") is None
    assert agenda.pending_count("a") == 0
    assert agenda.open_of("a") == []
    assert agenda.all_of("a") == []
    assert agenda.first_queued("a") is None
    agenda.check_cap("a")
    agenda.forget("a")


def test_a_schedule_is_found_by_its_name() -> None:
    schedule = made("sch-1")
    agenda = holding(schedule)
    assert agenda.get("sch-1") == schedule
    assert agenda.get("sch-2") is None
    assert list(agenda) == [schedule]


def test_each_session_sees_its_own() -> None:
    agenda = holding(made("sch-1", "a"), made("sch-2", "b"), made("sch-3", "a"))
    assert ids(agenda.open_of("a")) == ["sch-1", "sch-3"]
    assert ids(agenda.open_of("b")) == ["sch-2"]
    assert (agenda.pending_count("a"), agenda.pending_count("b"), agenda.open_count) == (2, 1, 3)


# -- the cap


def full() -> Agenda:
    return holding(*(made(f"sch-{number}") for number in range(50)))


def test_a_session_has_at_most_fifty_and_the_next_is_refused() -> None:
    agenda = full()
    with pytest.raises(CapExceeded) as caught:
        agenda.add(made("sch-50"))
    assert caught.value.as_data() == {
        "code": "scheduler/cap-exceeded",
        "message": "scheduler pending cap exceeded",
        "data": {"cap": 50},
    }


def test_what_was_refused_leaves_nothing_behind() -> None:
    agenda = full()
    with pytest.raises(CapExceeded):
        agenda.add(made("sch-50"))
    assert agenda.get("sch-50") is None
    assert (len(agenda), agenda.open_count, agenda.pending_count("a")) == (50, 50, 50)


def test_the_cap_can_be_asked_before() -> None:
    agenda = full()
    with pytest.raises(CapExceeded) as caught:
        agenda.check_cap("a")
    assert str(caught.value) == "scheduler pending cap exceeded"
    agenda.check_cap("b")


def test_forty_nine_leave_room_for_one() -> None:
    agenda = holding(*(made(f"sch-{number}") for number in range(49)))
    agenda.check_cap("a")
    agenda.add(made("sch-49"))
    assert agenda.pending_count("a") == 50


def test_the_cap_of_one_session_is_not_anothers() -> None:
    agenda = full()
    agenda.add(made("sch-50", "b"))
    assert agenda.pending_count("b") == 1


def test_queued_ones_count_towards_the_cap() -> None:
    agenda = full()
    for number in range(50):
        agenda.put(made(f"sch-{number}", status=Status.QUEUED))
    with pytest.raises(CapExceeded) as caught:
        agenda.add(made("sch-50"))
    assert str(caught.value) == "scheduler pending cap exceeded"


@pytest.mark.parametrize("status", ENDS)
def test_one_that_has_ended_makes_room(status: Status) -> None:
    agenda = full()
    agenda.put(made("sch-7", status=status))
    agenda.check_cap("a")
    agenda.add(made("sch-50"))
    with pytest.raises(CapExceeded):
        agenda.add(made("sch-51"))


# -- the order

UNORDERED = [
    made("sch-d", fire=20, created=5),
    made("sch-c", fire=20, created=5),
    made("sch-b", fire=20, created=1),
    made("sch-z", fire=10, created=9),
]


def test_open_ones_are_listed_by_plan_then_request_then_name() -> None:
    assert ids(holding(*UNORDERED).open_of("a")) == ["sch-z", "sch-b", "sch-c", "sch-d"]


def test_every_status_is_listed_in_the_same_order() -> None:
    agenda = holding(*UNORDERED)
    agenda.put(UNORDERED[3]._replace(status=Status.DELIVERED))
    agenda.put(UNORDERED[1]._replace(status=Status.CANCELLED))
    agenda.put(UNORDERED[0]._replace(status=Status.QUEUED))
    assert ids(agenda.all_of("a")) == ["sch-z", "sch-b", "sch-c", "sch-d"]
    assert ids(agenda.open_of("a")) == ["sch-b", "sch-d"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=50))
def test_the_order_does_not_depend_on_the_order_of_arrival(plans: list[tuple[int, int]]) -> None:
    schedules = [made(f"sch-{at:02}", fire=fire, created=created) for at, (fire, created) in enumerate(plans)]
    expected = [f"sch-{at:02}" for at, _ in sorted(enumerate(plans), key=lambda each: (*each[1], each[0]))]
    assert ids(holding(*schedules).open_of("a")) == expected
    assert ids(holding(*reversed(schedules)).open_of("a")) == expected


# -- draining


def test_the_first_in_line_is_the_earliest_plan_and_not_the_first_to_queue() -> None:
    agenda = holding(*UNORDERED)
    for schedule in UNORDERED:
        agenda.put(schedule._replace(status=Status.QUEUED))
    drained = []
    while (first := agenda.first_queued("a")) is not None:
        drained.append(first.id)
        agenda.put(first._replace(status=Status.DELIVERED))
    assert drained == ["sch-z", "sch-b", "sch-c", "sch-d"]


def test_one_that_is_still_pending_is_not_in_line() -> None:
    agenda = holding(made("sch-1", fire=1), made("sch-2", fire=2))
    assert agenda.first_queued("a") is None
    agenda.put(made("sch-2", fire=2, status=Status.QUEUED))
    first = agenda.first_queued("a")
    assert first is not None
    assert first.id == "sch-2"


def test_one_whose_delivery_is_under_way_is_not_in_line() -> None:
    agenda = holding(made("sch-1", fire=1), made("sch-2", fire=2))
    agenda.put(made("sch-1", fire=1, status=Status.QUEUED)._replace(phase=Phase.PROMPT_SUBMIT))
    agenda.put(made("sch-2", fire=2, status=Status.QUEUED))
    first = agenda.first_queued("a")
    assert first is not None
    assert first.id == "sch-2"


@pytest.mark.parametrize("status", ENDS)
def test_one_that_has_ended_has_left_the_line(status: Status) -> None:
    agenda = holding(made("sch-1"))
    agenda.put(made("sch-1", status=Status.QUEUED))
    agenda.put(made("sch-1", status=status))
    assert agenda.first_queued("a") is None


def test_the_line_of_one_session_is_not_anothers() -> None:
    agenda = holding(made("sch-1", "a", fire=1), made("sch-2", "b", fire=2))
    agenda.put(made("sch-1", "a", fire=1, status=Status.QUEUED))
    assert agenda.first_queued("b") is None


# -- what has ended


def ended(agenda: Agenda, name: str, session: str = "a") -> None:
    agenda.add(made(name, session))
    agenda.put(made(name, session, status=Status.DELIVERED))


@pytest.mark.parametrize("status", ENDS)
def test_what_has_ended_can_still_be_asked_for(status: Status) -> None:
    agenda = holding(made("sch-1"))
    after = made("sch-1", status=status)
    agenda.put(after)
    assert agenda.get("sch-1") == after
    assert agenda.all_of("a") == [after]
    assert agenda.open_of("a") == []
    assert (agenda.pending_count("a"), agenda.open_count) == (0, 0)


def test_the_newest_thousand_that_have_ended_are_kept() -> None:
    agenda = holding(made("sch-open"))
    for number in range(1_003):
        ended(agenda, f"sch-{number}")
    assert [agenda.get(f"sch-{number}") for number in range(3)] == [None, None, None]
    assert agenda.get("sch-3") is not None
    assert agenda.get("sch-1002") is not None
    assert len(agenda.all_of("a")) == 1_001
    assert agenda.get("sch-open") is not None


def test_a_thousand_that_have_ended_are_all_kept() -> None:
    agenda = Agenda()
    for number in range(1_000):
        ended(agenda, f"sch-{number}")
    assert len(agenda.all_of("a")) == 1_000


def test_what_one_session_has_ended_takes_no_room_from_another() -> None:
    agenda = Agenda(kept=2)
    ended(agenda, "sch-b", "b")
    for number in range(5):
        ended(agenda, f"sch-{number}", "a")
    assert ids(agenda.all_of("a")) == ["sch-3", "sch-4"]
    assert ids(agenda.all_of("b")) == ["sch-b"]


def test_the_newest_are_those_that_ended_last() -> None:
    agenda = Agenda(kept=1)
    agenda.add(made("sch-1"))
    agenda.add(made("sch-2"))
    agenda.put(made("sch-2", status=Status.CANCELLED))
    agenda.put(made("sch-1", status=Status.DELIVERED))
    assert agenda.get("sch-2") is None
    assert agenda.get("sch-1") is not None


def test_putting_what_has_ended_again_counts_it_once() -> None:
    agenda = holding(made("sch-1"), made("sch-2"))
    agenda.put(made("sch-1", status=Status.FAILED))
    agenda.put(made("sch-1", status=Status.FAILED))
    assert (agenda.open_count, agenda.pending_count("a"), len(agenda.all_of("a"))) == (1, 1, 2)


# -- a session that is gone


def test_a_session_that_is_gone_has_no_schedules_but_they_are_found_by_name() -> None:
    agenda = Agenda()
    ended(agenda, "sch-1")
    agenda.forget("a")
    assert agenda.all_of("a") == []
    assert agenda.open_of("a") == []
    assert agenda.pending_count("a") == 0
    assert agenda.get("sch-1") == made("sch-1", status=Status.DELIVERED)


def test_forgetting_one_session_leaves_the_others() -> None:
    agenda = holding(made("sch-b", "b"))
    ended(agenda, "sch-a", "a")
    agenda.forget("a")
    agenda.forget("a")
    assert ids(agenda.open_of("b")) == ["sch-b"]
    assert agenda.open_count == 1


def test_memory_stays_bounded_however_many_sessions_come_and_go() -> None:
    agenda = Agenda(kept=3)
    for number in range(50):
        session = f"ses-{number}"
        for nth in range(5):
            ended(agenda, f"sch-{number}-{nth}", session)
        agenda.forget(session)
    assert len(agenda) == 3
    assert agenda.get("sch-49-4") is not None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 12), st.sampled_from(list(Status)))))
def test_the_counts_are_what_counting_them_one_by_one_gives(changes: list[tuple[str, int, Status]]) -> None:
    agenda = Agenda(cap=100, kept=100)
    model: dict[str, Schedule] = {}
    for session, number, status in changes:
        name = f"sch-{session}-{number:02}"
        if name not in model:
            model[name] = made(name, session)
            agenda.add(model[name])
        elif model[name].is_open:
            model[name] = made(name, session, status=status)
            agenda.put(model[name])
    for session in "ab":
        own = sorted((each for each in model.values() if each.session == session), key=lambda each: each.id)
        waiting = [each for each in own if each.is_open]
        assert agenda.all_of(session) == own
        assert agenda.open_of(session) == waiting
        assert agenda.pending_count(session) == len(waiting)
        queued = [each for each in waiting if each.status is Status.QUEUED]
        assert agenda.first_queued(session) == (queued[0] if queued else None)
    assert agenda.open_count == sum(each.is_open for each in model.values())
    assert len(agenda) == len(model)
