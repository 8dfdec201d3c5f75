"""Instants as text: what is read, what is refused, and how they are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.core.clock import MILLISECOND, SECOND, Moment, instant_text, read_instant

ONE = datetime(2026, 4, 22, 13, 0, tzinfo=UTC)

READ = [
    ("2026-04-22T13:00:00Z", ONE),
    ("2026-04-22T13:00Z", ONE),
    ("2026-04-22t13:00:00z", ONE),
    ("2026-04-22T13:00:00+00:00", ONE),
    ("2026-04-22T13:00:00-00:00", ONE),
    (" 2026-04-22T13:00:00Z\n", ONE),
    ("2026-04-22T13:00:00.5Z", ONE + timedelta(milliseconds=500)),
    ("2026-04-22T13:00:00.050Z", ONE + timedelta(milliseconds=50)),
    ("2026-04-22T13:00:00.000001Z", ONE + timedelta(microseconds=1)),
    ("2026-04-22T13:00:00.123456789Z", ONE + timedelta(microseconds=123_456)),
    ("2026-04-22T13:00:00.000000999Z", ONE),
    ("2026-04-22T23:59:59Z", datetime(2026, 4, 22, 23, 59, 59, tzinfo=UTC)),
    ("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC)),
    ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ("9999-12-31T23:59:59Z", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
]


@pytest.mark.parametrize(("text", "instant"), READ)
def test_an_instant_in_utc_is_read(text: str, instant: datetime) -> None:
    found = read_instant(text)
    assert found == instant
    assert found is not None
    assert found.utcoffset() == timedelta()


NOT_INSTANTS = [
    "",
    " ",
    "Z",
    "soon",
    "2026-04-22",
    "2026-04-22Z",
    "13:00:00Z",
    "2026-04-22T13Z",
    "2026-04-22T13:00:00",
    "2026-04-22 13:00:00Z",
    "2026-04-22T13:00:00+01:00",
    "2026-04-22T13:00:00-00:30",
    "2026-04-22T13:00:00+0000",
    "2026-04-22T13:00:00 Z",
    "2026-04-22T13:00:00.Z",
    "2026-04-22T13:00:00,5Z",
    "2026-04-22T13:00:00.1234567890Z",
    "2026-04-22T13:00.5Z",
    "20260422T130000Z",
    "26-04-22T13:00:00Z",
    "02026-04-22T13:00:00Z",
    "2026-4-22T13:00:00Z",
    "2026-02-29T13:00:00Z",
    "2026-13-01T13:00:00Z",
    "2026-00-01T13:00:00Z",
    "2026-04-31T13:00:00Z",
    "0000-01-01T00:00:00Z",
    "2026-04-22T25:00:00Z",
    "2026-04-22T13:60:00Z",
    "2026-04-22T13:00:61Z",
    "2026-04-22T13:00:00Z and more",
    "1776862800",
    "٢٠٢٦-04-22T13:00:00Z",
]


@pytest.mark.parametrize("text", NOT_INSTANTS)
def test_anything_else_is_no_instant(text: str) -> None:
    assert read_instant(text) is None


SHOWN = [
    (ONE, "2026-04-22T13:00:00Z"),
    (ONE + timedelta(milliseconds=5), "2026-04-22T13:00:00.005Z"),
    (ONE + timedelta(milliseconds=500), "2026-04-22T13:00:00.500Z"),
    (ONE + timedelta(microseconds=1), "2026-04-22T13:00:00.000001Z"),
    (ONE + timedelta(microseconds=1_001), "2026-04-22T13:00:00.001001Z"),
    (datetime(2026, 4, 22, 15, 30, tzinfo=timezone(timedelta(hours=2, minutes=30))), "2026-04-22T13:00:00Z"),
    (datetime(2026, 4, 22, 8, 0, tzinfo=timezone(timedelta(hours=-5))), "2026-04-22T13:00:00Z"),
    (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
]


@pytest.mark.parametrize(("instant", "text"), SHOWN)
def test_an_instant_is_shown_in_utc_with_no_more_digits_than_it_has(instant: datetime, text: str) -> None:
    assert instant_text(instant) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_shown_reads_back_to_the_same_instant(instant: datetime) -> None:
    text = instant_text(instant)
    assert text.endswith("Z")
    assert read_instant(text) == instant


@given(st.text())
def test_reading_any_text_gives_an_instant_with_its_zone_or_nothing(text: str) -> None:
    found = read_instant(text)
    assert found is None or found.tzinfo is UTC


def test_ticks_are_nanoseconds() -> None:
    assert MILLISECOND == 10**6
    assert SECOND == 10**9


def test_a_moment_is_the_wall_and_the_tick() -> None:
    wall, tick = Moment(ONE, 7)
    assert (wall, tick) == (ONE, 7)
