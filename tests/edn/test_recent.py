"""The memory of the reader and the writer is bounded."""

from __future__ import annotations

from psi.edn.recent import Recent


def test_what_is_kept_is_found_again() -> None:
    recent: Recent[str, int] = Recent()
    assert recent.keep("a", 1) == 1
    assert recent["a"] == 1


def test_it_never_holds_more_than_it_may() -> None:
    recent: Recent[str, int] = Recent()
    for number in range(3 * Recent.MOST):
        recent.keep(str(number), number)
        assert len(recent) <= Recent.MOST
    assert recent[str(3 * Recent.MOST - 1)] == 3 * Recent.MOST - 1


def test_a_long_text_is_passed_through_and_not_kept() -> None:
    recent: Recent[str, int] = Recent()
    assert recent.keep("a" * (Recent.LONGEST + 1), 1) == 1
    assert not recent
