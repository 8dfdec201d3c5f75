from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.core.clock import instant_text
from psi.faces.graphql.values import instant

ZONES = st.sampled_from([UTC, timezone.utc, timezone(timedelta(0)), timezone(timedelta(hours=2, minutes=30))])  # noqa: UP017
MICROS = st.one_of(st.just(0), st.integers(0, 999).map(lambda each: each * 1_000), st.integers(0, 999_999))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES), MICROS)  # noqa: DTZ001
def test_an_instant_is_told_as_everywhere_else(moment: datetime, micros: int) -> None:
    given_one = moment.replace(microsecond=micros)
    assert instant(given_one) == instant_text(given_one)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0033-04-05T06:07:08Z"),
        (9_000, "0033-04-05T06:07:08.009Z"),
        (9, "0033-04-05T06:07:08.000009Z"),
    ],
)
def test_an_instant_has_no_more_digits_than_it_needs(micros: int, text: str) -> None:
    assert instant(datetime(33, 4, 5, 6, 7, 8, micros, tzinfo=UTC)) == text
