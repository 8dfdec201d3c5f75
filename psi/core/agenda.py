"""The schedules of all sessions: whose they are, how many are open, which is next. Holds no clock and wakes nobody."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

from psi.core.errors import CapExceeded
from psi.core.schedule import CAP, Schedule, Status

__all__ = ["Agenda"]

KEPT: Final = 1_000  # ended schedules of one session that can still be asked for


class _Own:
    """The schedules of one session, by name."""

    __slots__ = ("ended", "listed", "open")

    def __init__(self) -> None:
        self.listed: list[Schedule] | None = None  # all of them in order, until one changes
        self.open: dict[str, None] = {}
        self.ended: deque[str] = deque()


class Agenda:
    """Every schedule that is open, and the newest of those that have ended.

    Reading one session's schedules costs as much as that session has of them, however many the others have.
    """

    def __init__(self, *, cap: int = CAP, kept: int = KEPT) -> None:
        self._cap = cap
        self._kept = kept
        self._all: dict[str, Schedule] = {}
        self._own: dict[str, _Own] = {}
        self._departed: deque[str] = deque()  # ended schedules whose session is gone
        self._open = 0

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Schedule]:
        return iter(self._all.values())

    @property
    def open_count(self) -> int:
        return self._open

    def get(self, schedule_id: str) -> Schedule | None:
        return self._all.get(schedule_id)

    def pending_count(self, session: str) -> int:
        """How many are still to come, waiting ones included."""
        own = self._own.get(session)
        return len(own.open) if own else 0

    def check_cap(self, session: str) -> None:
        if self.pending_count(session) >= self._cap:
            raise CapExceeded(self._cap)

    def add(self, schedule: Schedule) -> None:
        """Enter a new schedule, unless its session has as many as it may."""
        own = self._own.get(schedule.session)
        if own is None:
            own = self._own[schedule.session] = _Own()
        elif len(own.open) >= self._cap:
            raise CapExceeded(self._cap)
        own.open[schedule.id] = None
        own.listed = None
        self._all[schedule.id] = schedule
        self._open += 1

    def put(self, schedule: Schedule) -> None:
        """Replace a schedule by what has become of it."""
        was = self._all[schedule.id]
        self._all[schedule.id] = schedule
        own = self._own.get(schedule.session)
        if own is not None:
            own.listed = None
        if was.is_open and not schedule.is_open:
            self._open -= 1
            if own is not None:
                del own.open[schedule.id]
            self._keep(self._departed if own is None else own.ended, schedule.id)

    def open_of(self, session: str) -> list[Schedule]:
        """Pending and queued ones, in the order in which they are planned."""
        own = self._own.get(session)
        return sorted((self._all[each] for each in own.open), key=_order) if own else []

    def all_of(self, session: str) -> list[Schedule]:
        """Whatever their status, in the same order."""
        own = self._own.get(session)
        if own is None:
            return []
        if own.listed is None:
            own.listed = sorted((self._all[each] for each in (*own.open, *own.ended)), key=_order)
        return list(own.listed)

    def first_queued(self, session: str) -> Schedule | None:
        """The one that goes next when its session is idle: by its plan, not by when it joined the queue."""
        own = self._own.get(session)
        if own is None:
            return None
        found = [self._all[each] for each in own.open]
        waiting = (each for each in found if each.status is Status.QUEUED and not each.in_delivery)
        return min(waiting, key=_order, default=None)

    def forget(self, session: str) -> None:
        """Its session is gone. What has ended can still be asked for by name, as far as there is room."""
        own = self._own.pop(session, None)
        if own is not None:
            for name in own.ended:
                self._keep(self._departed, name)

    def _keep(self, ended: deque[str], name: str) -> None:
        ended.append(name)
        if len(ended) > self._kept:
            del self._all[ended.popleft()]


# What Schedule.order gives, at the speed of C: a session's list is sorted whenever somebody looks at it.
_order: Final = itemgetter(*(Schedule._fields.index(each) for each in ("fire_at", "created_at", "id")))
