"""The two documents the EDN benchmark reads and writes, built the same way every time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psi.edn import Keyword, dumps

__all__ = ["query", "result"]

_SESSION = (
    "psi.agent-session/session-id",
    "psi.agent-session/session-name",
    "psi.agent-session/phase",
    "psi.agent-session/created",
    "psi.agent-session/updated",
)
_SCHEDULE = (
    "psi.scheduler/schedule-id",
    "psi.scheduler/kind",
    "psi.scheduler/status",
    "psi.scheduler/fire-at",
    "psi.scheduler/label",
    "psi.scheduler/message",
)


def query() -> str:
    """About 2 KB of EQL: idents, joins, parameters, and the whitespace of a person's typing."""
    return "[" + "\n ".join(_question(number) for number in range(4)) + "\n :psi.graph/resolver-count]\n"


def _question(number: int) -> str:
    root = f'[:psi.agent-session/session-id "session-{number}"]' if number % 2 else ":psi.agent-session/sessions"
    schedules = ":psi.scheduler/schedules"
    if number % 2:
        schedules = f"({schedules} {{:status #{{:pending :queued}}, :limit {10 * number}}})"
    return (
        f"{{{root}\n"
        f"  [{_lines(_SESSION)}\n"
        f"   (:psi.agent-session/usage {{:window {number + 7} :unit :day}})\n"
        f"   {{{schedules} [{_lines(_SCHEDULE)}]}}]}}"
    )


def _lines(names: tuple[str, ...]) -> str:
    return "\n   ".join(f":{name}" for name in names)


def result() -> str:
    """About 100 KB of answer: maps in vectors in maps, keywords, strings, numbers, instants and identifiers."""
    return dumps({"psi.agent-session/sessions": [_session(number) for number in range(32)]})


def _session(number: int) -> dict[str, Any]:
    start = datetime(2026, 4, 22, 9, 30, tzinfo=UTC) + timedelta(hours=number)
    return {
        "psi.agent-session/session-id": UUID(int=0x1234_5678_9ABC_4DEF_8123_0000_0000_0000 + number),
        "psi.agent-session/session-name": f'Session {number}: the "quoted" one',
        "psi.agent-session/phase": Keyword("idle" if number % 3 else "streaming"),
        "psi.agent-session/created": start,
        "psi.agent-session/usage": {"input-tokens": 1_000 * number, "cost": number * 0.125, "cached?": number % 2 == 0},
        "psi.scheduler/schedules": [_schedule(number, index, start) for index in range(9)],
    }


def _schedule(session: int, index: int, start: datetime) -> dict[str, Any]:
    return {
        "psi.scheduler/schedule-id": f"sch-{session}-{index}",
        "psi.scheduler/kind": Keyword("message" if index % 2 else "session"),
        "psi.scheduler/status": Keyword(("pending", "queued", "delivered")[index % 3]),
        "psi.scheduler/fire-at": start + timedelta(minutes=15 * index),
        "psi.scheduler/label": None if index % 4 == 0 else f"reminder {index}",
        "psi.scheduler/message": f"Look at build {session * 100 + index}\nand say “done” when it passed.",
        "psi.scheduler/attempts": index,
        "psi.scheduler/delay-ms": 60_000 * (index + 1),
    }
