"""What resolvers are given: everything that the caller may see, and one way to hand on a command.

There is no way around it to a session of somebody else, so a resolver cannot show one by mistake. Whoever wants to know
when an answer is out of date passes ``note``, and is told each topic that was looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from psi.core import topics
from psi.core.agenda import Agenda
from psi.core.clock import Clock, Moment
from psi.core.commands import Caller, Command
from psi.core.message import Message
from psi.core.schedule import Schedule
from psi.core.session import Session
from psi.core.topics import Topic
from psi.core.turn import Turn
from psi.graph.index import Index
from psi.store import Store

__all__ = ["Context"]


def _forget(topic: Topic) -> None:
    """For those who look once."""


class Context:
    """One caller's view of the runtime."""

    __slots__ = (
        "_agenda",
        "_counters",
        "_note",
        "_sessions",
        "_store",
        "_user",
        "act",
        "caller",
        "clock",
        "index",
        "started",
    )

    def __init__(
        self,
        *,
        caller: Caller,
        clock: Clock,
        started: Moment,
        sessions: Mapping[str, Session],
        agenda: Agenda,
        store: Store,
        index: Index,
        act: Callable[[Command, Caller], Awaitable[Any]],
        counters: Callable[[], Mapping[str, int]],
        note: Callable[[Topic], None] | None = None,
    ) -> None:
        self.caller = caller
        self.clock = clock
        self.started = started
        self.index = index  # of the graph that is being asked
        self.act = act
        self._user = caller.user
        self._sessions = sessions
        self._agenda = agenda
        self._store = store
        self._counters = counters
        self._note = note or _forget

    # -- sessions

    def session(self, name: Any) -> Session | None:
        """A session by its name; None where there is none, or none of the caller's."""
        if not isinstance(name, str):
            return None
        self._note(topics.session(name))
        return self._seen(name)

    def has_session(self, name: Any) -> bool:
        """Whether there is one, whatever it is doing."""
        if not isinstance(name, str):
            return False
        self._note(topics.existence(name))
        return self._seen(name) is not None

    def sessions(self) -> Iterable[Session]:
        """All of them, the oldest first."""
        self._note(topics.sessions(self._user))
        found = [each for each in self._sessions.values() if self._user is None or each.owner == self._user]
        for each in found:
            self._note(topics.session(each.id))
        return found

    def session_names(self) -> list[str]:
        self._note(topics.sessions(self._user))
        return [name for name, each in self._sessions.items() if self._user is None or each.owner == self._user]

    async def messages(
        self, name: str, first: int = 0, limit: int | None = None, *, pictures: bool = True
    ) -> Sequence[Message]:
        self._note(topics.messages_of(name))
        if self._seen(name) is None:
            return ()
        return await self._store.messages(name, first, limit, pictures=pictures)

    # -- runs

    async def runs(self, name: str) -> Sequence[Turn]:
        self._note(topics.runs_of(name))
        return await self._store.turns(name) if self._seen(name) is not None else ()

    async def run(self, name: Any) -> Turn | None:
        if not isinstance(name, str):
            return None
        self._note(topics.run(name))
        found = await self._store.turn(name)
        return found if found is not None and self._seen(found.session) is not None else None

    # -- schedules

    def schedule(self, name: Any) -> Schedule | None:
        if not isinstance(name, str):
            return None
        self._note(topics.schedule(name))
        found = self._agenda.get(name)
        if found is None or self._user is None:
            return found
        return found if self._seen(found.session) is not None else None

    def schedules(self, name: str) -> Sequence[Schedule]:
        """A session's own, whatever their status."""
        self._note(topics.schedules_of(name))
        return self._agenda.all_of(name) if self._seen(name) is not None else ()

    def pending_count(self, name: str) -> int:
        self._note(topics.schedules_of(name))
        return self._agenda.pending_count(name) if self._seen(name) is not None else 0

    # -- the whole

    def counters(self) -> dict[str, int]:
        for topic in (topics.sessions, topics.agenda, topics.running):
            self._note(topic(self._user))
        counted = dict(self._counters())
        if self._user is not None:
            own = [each for each in self._sessions.values() if each.owner == self._user]
            counted["sessions"] = len(own)
            counted["open-schedules"] = sum(self._agenda.pending_count(each.id) for each in own)
            counted["active-runs"] = sum(each.run is not None for each in own)
            del counted["events-published"]  # other users' among them; the newest number is where one begins to listen
        return counted

    def _seen(self, name: Any) -> Session | None:
        found = self._sessions.get(name)
        if found is None or self._user is None or found.owner == self._user:
            return found
        return None
