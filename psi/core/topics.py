"""What can be looked at, as names: so that whoever looked can be told when it has changed. Pure.

A reader notes the topics of what it read; an event touches topics. Where the two meet, the reader is out of date. A
topic is as narrow as a change: one session's schedules are not another's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = [
    "Topic",
    "agenda",
    "existence",
    "messages_of",
    "run",
    "running",
    "runs_of",
    "schedule",
    "schedules_of",
    "session",
    "sessions",
    "touched",
]

Topic: TypeAlias = tuple[str, str]


def sessions(user: str | None) -> Topic:
    """Which sessions there are, of one user or of all."""
    return ("sessions", user or "")


def agenda(user: str | None) -> Topic:
    """How many schedules are open."""
    return ("agenda", user or "")


def running(user: str | None) -> Topic:
    """How many runs are under way."""
    return ("running", user or "")


def session(name: str) -> Topic:
    return ("session", name)


def existence(name: str) -> Topic:
    """Whether there is such a session, whatever it is doing."""
    return ("existence", name)


def messages_of(name: str) -> Topic:
    return ("messages", name)


def runs_of(name: str) -> Topic:
    return ("runs", name)


def run(name: str) -> Topic:
    return ("run", name)


def schedules_of(name: str) -> Topic:
    return ("schedules", name)


def schedule(name: str) -> Topic:
    return ("schedule", name)


def touched(kind: str, session_id: str | None, owner: str | None, data: Any) -> tuple[Topic, ...]:
    """The topics that an event of the bus touches; ``data`` is what the event carries."""
    name = session_id or ""
    match kind:
        case "schedule-changed":
            return (("schedule", data.id), ("schedules", name), *_both(agenda, owner))
        case "session-changed":
            return (("session", name),)
        case "session-created" | "session-closed":
            return (("session", name), ("existence", name), *_both(sessions, owner), *_both(agenda, owner))
        case "run-started" | "run-finished":
            return (("run", data.id), ("runs", name), ("messages", name), *_both(running, owner))
    return ()


def _both(topic: Callable[[str | None], Topic], owner: str | None) -> tuple[Topic, ...]:
    """What changes for a user changes for whoever sees everything."""
    return (topic(None),) if owner is None else (topic(None), topic(owner))
