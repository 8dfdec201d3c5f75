"""Moments, the clock protocol, and instants as text. Holds no clock and never reads one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

__all__ = ["MILLISECOND", "SECOND", "Alarm", "Clock", "Moment", "instant_text", "read_instant"]

MILLISECOND: Final = 1_000_000  # in ticks, which are nanoseconds
SECOND: Final = 1_000 * MILLISECOND


class Moment(NamedTuple):
    """Now, twice: what the clock on the wall shows, and a count that only ever grows.

    People are told the wall's time; waiting is counted in ticks, so that setting the wall clock neither fires anything
    early nor holds it back.
    """

    wall: datetime
    tick: int  # nanoseconds since some start


class Alarm(Protocol):
    """A wake-up that was asked for and can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The one source of time. Everything else is told what time it is."""

    def now(self) -> Moment: ...

    def wake(self, tick: int, call: Callable[[], None]) -> Alarm:
        """Call once the count has reached ``tick``: perhaps late, never early."""
        ...


_INSTANT = re.compile(
    r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})(:\d{2}(?:\.(\d{1,9}))?)?(?:Z|[+-]00:00)", re.ASCII | re.IGNORECASE
)


def read_instant(text: str) -> datetime | None:
    """An ISO-8601 instant in UTC; None for anything else, a time without its zone included."""
    found = _INSTANT.fullmatch(text.strip())
    if found is None:
        return None
    date, minutes, seconds, fraction = found.groups()
    whole = (seconds or ":00").partition(".")[0]
    try:
        moment = datetime.fromisoformat(f"{date}T{minutes}{whole}")
    except ValueError:
        return None
    return moment.replace(microsecond=int((fraction or "0").ljust(6, "0")[:6]), tzinfo=UTC)


def instant_text(moment: datetime) -> str:
    """The instant as every face shows it: UTC, with a ``Z``, and no more digits than it has."""
    plain = moment.astimezone(UTC).replace(tzinfo=None)
    if plain.microsecond % 1000:
        return f"{plain.isoformat(timespec='microseconds')}Z"
    return f"{plain.isoformat(timespec='milliseconds' if plain.microsecond else 'seconds')}Z"
