"""``psi.run``: turns while they run, and their records afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from psi.core.turn import State, Turn
from psi.graph import Env, resolver
from psi.graph.attributes import DATA, INSTANT, INTEGER, TEXT, WORD, Attribute, Entity, Enum, Many, One

__all__ = ["ATTRIBUTES", "ENTITIES", "OPERATIONS"]

SESSION: Final = "psi.agent-session/session-id"
RUN: Final = "psi.run/id"

ATTRIBUTES: Final = (
    Attribute("psi.agent-session/runs", Many(RUN), "the session's runs that are on record, the oldest first"),
    Attribute(RUN, TEXT, "the name of a run: run- and a UUID"),
    Attribute("psi.run/source", WORD, "where its input came from: :user, :scheduled"),
    Attribute("psi.run/state", Enum("RunState", tuple(s.value for s in State)), "how it stands"),
    Attribute("psi.run/started-at", INSTANT, "when it began"),
    Attribute("psi.run/finished-at", INSTANT, "when it ended", nullable=True),
    Attribute("psi.run/answer", TEXT, "the closure it left in the history", nullable=True),
    Attribute("psi.run/error", TEXT, "what went wrong, in full", nullable=True),
    Attribute("psi.run/prompt-ref", DATA, "the template its prompt was made from", nullable=True),
    Attribute("psi.run/tool-call-count", INTEGER, "how many tools it called"),
    Attribute("psi.run/session-id", TEXT, "the session it runs in"),
    Attribute("psi.run/session", One(SESSION), "the same, to ask on", nullable=True),
)

ENTITIES: Final = (Entity("Run", "A turn while it is running, and its record afterwards.", "psi.run", RUN),)

_OUTPUT: Final = [
    "psi.run/source",
    "psi.run/state",
    "psi.run/started-at",
    "psi.run/finished-at",
    "psi.run/answer",
    "psi.run/error",
    "psi.run/prompt-ref",
    "psi.run/tool-call-count",
    "psi.run/session-id",
]


@resolver(name="psi.run/session-runs", input=[SESSION], output=[{"psi.agent-session/runs": [RUN, *_OUTPUT]}])
async def session_runs(env: Env, session: Mapping[str, Any]) -> Any:
    if not env.context.has_session(session[SESSION]):
        return None
    turns = await env.context.runs(session[SESSION])
    return {"psi.agent-session/runs": [{RUN: turn.id, **_told(turn)} for turn in turns]}


@resolver(name="psi.run/by-id", input=[RUN], output=_OUTPUT)
async def run_by_id(env: Env, run: Mapping[str, Any]) -> Any:
    found = await env.context.run(run[RUN])
    return found and _told(found)


@resolver(name="psi.run/session", input=["psi.run/session-id"], output=[{"psi.run/session": [SESSION]}])
def session_of_run(env: Env, run: Mapping[str, Any]) -> Any:
    name = run["psi.run/session-id"]
    return {"psi.run/session": {SESSION: name} if env.context.has_session(name) else None}


def _told(turn: Turn) -> dict[str, Any]:
    return {
        "psi.run/source": turn.source,
        "psi.run/state": turn.state.value,
        "psi.run/started-at": turn.started_at,
        "psi.run/finished-at": turn.finished_at,
        "psi.run/answer": turn.answer,
        "psi.run/error": turn.error,
        "psi.run/prompt-ref": None,
        "psi.run/tool-call-count": turn.tool_call_count,
        "psi.run/session-id": turn.session,
    }


OPERATIONS: Final = (session_runs, run_by_id, session_of_run)
