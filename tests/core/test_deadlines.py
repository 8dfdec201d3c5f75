"""Who is woken, and when; the same as a dict that is searched from end to end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from psi.core.deadlines import Deadlines


def test_nobody_is_woken_where_nothing_was_set() -> None:
    deadlines: Deadlines[str] = Deadlines()
    assert len(deadlines) == 0
    assert deadlines.next() is None
    assert deadlines.pop(10**18) == []


def test_a_key_is_woken_at_its_time_and_not_before() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    assert deadlines.pop(9) == []
    assert "a" in deadlines
    assert deadlines.pop(10) == ["a"]
    assert "a" not in deadlines


def test_a_key_is_woken_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    assert deadlines.pop(10) == ["a"]
    assert deadlines.pop(20) == []
    assert deadlines.next() is None


def test_the_earliest_comes_first_however_they_were_set() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("c", 30)
    deadlines.set("a", 10)
    deadlines.set("b", 20)
    assert deadlines.next() == 10
    assert deadlines.pop(100) == ["a", "b", "c"]


def test_what_is_due_together_comes_in_the_order_in_which_it_was_set() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for key in ("z", "a", "m"):
        deadlines.set(key, 10)
    assert deadlines.pop(10) == ["z", "a", "m"]


def test_keys_need_no_order_of_their_own() -> None:
    deadlines: Deadlines[object] = Deadlines()
    keys: list[object] = [frozenset({1}), "a", 1j, None]
    for key in keys:
        deadlines.set(key, 10)
    assert deadlines.pop(10) == keys


def test_only_the_last_time_that_was_set_counts() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("later", 10)
    deadlines.set("later", 30)
    deadlines.set("sooner", 30)
    deadlines.set("sooner", 10)
    assert len(deadlines) == 2
    assert deadlines.next() == 10
    assert deadlines.pop(29) == ["sooner"]
    assert deadlines.next() == 30
    assert deadlines.pop(30) == ["later"]


def test_what_was_called_off_is_not_woken() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("b", 20)
    deadlines.drop("a")
    assert "a" not in deadlines
    assert len(deadlines) == 1
    assert deadlines.next() == 20
    assert deadlines.pop(100) == ["b"]


def test_calling_off_what_is_not_there_does_nothing() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.drop("b")
    deadlines.drop("b")
    assert deadlines.pop(10) == ["a"]


def test_a_key_can_be_set_again_after_it_was_called_off() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.drop("a")
    deadlines.set("a", 10)
    assert deadlines.pop(10) == ["a"]
    assert deadlines.pop(10) == []


def test_clearing_calls_everything_off_and_new_ones_can_follow() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.clear()
    assert len(deadlines) == 0
    assert deadlines.next() is None
    assert deadlines.pop(100) == []
    deadlines.set("a", 20)
    assert deadlines.pop(100) == ["a"]


def test_thousands_of_changes_leave_the_last_ones() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for round_ in range(1_000):
        for key in range(5):
            deadlines.set(key, 10_000 - round_ + key)
    for key in (1, 3):
        deadlines.drop(key)
    assert len(deadlines) == 3
    assert deadlines.next() == 9_001
    assert deadlines.pop(20_000) == [0, 2, 4]


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 50))), st.sets(st.integers(0, 300)))
def test_setting_and_dropping_many_leaves_what_a_dict_would_hold(sets: list[tuple[int, int]], drops: set[int]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    for key, due in sets:
        deadlines.set(key, due)
    for key in drops:
        deadlines.drop(key)
    model = {key: due for key, due in dict(sets).items() if key not in drops}
    assert set(deadlines.pop(50)) == set(model)


class AgainstADict(RuleBasedStateMachine):
    """Every step is also taken by the plainest thing that could work."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines: Deadlines[int] = Deadlines()
        self.model: dict[int, int] = {}  # in the order in which they were last set

    @rule(key=st.integers(0, 8), due=st.integers(0, 30))
    def sets(self, key: int, due: int) -> None:
        self.deadlines.set(key, due)
        self.model.pop(key, None)
        self.model[key] = due

    @rule(keys=st.lists(st.integers(0, 8), min_size=1), dues=st.lists(st.integers(0, 30), min_size=10, max_size=10))
    def sets_many_times(self, keys: list[int], dues: list[int]) -> None:
        for due in dues:
            for key in keys:
                self.sets(key, due)

    @rule(key=st.integers(0, 8))
    def drops(self, key: int) -> None:
        self.deadlines.drop(key)
        self.model.pop(key, None)

    @rule(now=st.integers(-1, 31))
    def pops(self, now: int) -> None:
        due = sorted((key for key in self.model if self.model[key] <= now), key=lambda key: self.model[key])
        assert self.deadlines.pop(now) == due
        for key in due:
            del self.model[key]

    @rule()
    def clears(self) -> None:
        self.deadlines.clear()
        self.model.clear()

    @invariant()
    def they_agree(self) -> None:
        assert len(self.deadlines) == len(self.model)
        assert [key for key in range(9) if key in self.deadlines] == sorted(self.model)
        assert self.deadlines.next() == min(self.model.values(), default=None)


TestTheHeapAgreesWithADict = AgainstADict.TestCase
TestTheHeapAgreesWithADict.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
