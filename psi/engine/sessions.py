"""Who is alive, and in which phase: the one place where a session changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from psi.core import session as machine
from psi.core.clock import Clock
from psi.core.errors import SessionNotFound
from psi.core.session import Session
from psi.engine.bus import Bus

__all__ = ["Sessions"]


class Sessions(Mapping[str, Session]):
    """The sessions there are. Steps them, tells the bus, and hands on what follows."""

    def __init__(self, clock: Clock, bus: Bus, perform: Callable[[machine.Effect], None]) -> None:
        self._clock = clock
        self._bus = bus
        self._perform = perform
        self._all: dict[str, Session] = {}

    def __getitem__(self, session_id: str) -> Session:
        return self._all[session_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    # Said again for their speed: what Mapping makes of these asks twice, and every command asks.

    def get(self, session_id: str, default: Any = None) -> Any:
        return self._all.get(session_id, default)

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._all

    def owner_of(self, session_id: str) -> str | None:
        found = self._all.get(session_id)
        return found.owner if found is not None else None

    def find(self, session_id: str) -> Session:
        found = self._all.get(session_id)
        if found is None:
            raise SessionNotFound(session_id)
        return found

    def take_up(self, sessions: Iterable[Session]) -> None:
        """Those that were there before. Nobody is told: to whoever listens, nothing has happened."""
        self._all.update((session.id, session) for session in sessions)

    def add(self, session: Session) -> None:
        self._all[session.id] = session
        self._bus.publish("session-created", session.id, self._clock.now().wall, session)

    def remove(self, session_id: str) -> None:
        gone = self._all.get(session_id)
        if gone is not None:
            # Told while it is still known whose it is.
            self._bus.publish("session-closed", session_id, self._clock.now().wall, gone)
            del self._all[session_id]

    def step(self, session_id: str, event: machine.Event) -> Session:
        """The session after an event; what follows from it has been set off by then."""
        now = self._clock.now()
        session, effects = machine.step(self.find(session_id), event, now=now)
        self._all[session_id] = session
        self._bus.publish("session-changed", session_id, now.wall, session)
        for effect in effects:
            self._perform(effect)
        return session
