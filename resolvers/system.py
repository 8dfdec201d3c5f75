"""``psi.system``: the runtime itself."""

from __future__ import annotations

from typing import Any, Final

import psi
from psi.core.clock import MILLISECOND
from psi.graph import Env, resolver
from psi.graph.attributes import DATA, INSTANT, INTEGER, LONG, TEXT, Attribute, Entity, Many

__all__ = ["ATTRIBUTES", "ENTITIES", "OPERATIONS"]

SESSION: Final = "psi.agent-session/session-id"

ATTRIBUTES: Final = (
    Attribute("psi.system/version", TEXT, "the version of psi"),
    Attribute("psi.system/started-at", INSTANT, "when this runtime was opened"),
    Attribute("psi.system/uptime-ms", LONG, "for how long it has been open"),
    Attribute("psi.system/clock", INSTANT, "what its clock shows"),
    Attribute(
        "psi.system/counters",
        DATA,
        "how many sessions, open schedules and active runs there are, and the number of the newest event",
    ),
    Attribute("psi.system/session-count", INTEGER, "how many sessions there are"),
    Attribute("psi.system/schedule-count", INTEGER, "how many schedules are pending or queued, in all sessions"),
    Attribute("psi.system/active-run-count", INTEGER, "how many runs are under way"),
    Attribute("psi.system/sessions", Many(SESSION), "every session, the oldest first"),
)


ENTITIES: Final = (Entity("System", "The runtime itself.", "psi.system"),)


@resolver(name="psi.system/identity", output=["psi.system/version", "psi.system/started-at"])
def identity(env: Env, _: Any) -> Any:
    return {"psi.system/version": psi.__version__, "psi.system/started-at": env.context.started.wall}


@resolver(name="psi.system/time", output=["psi.system/clock", "psi.system/uptime-ms"])
def time(env: Env, _: Any) -> Any:
    now = env.context.clock.now()
    return {
        "psi.system/clock": now.wall,
        "psi.system/uptime-ms": (now.tick - env.context.started.tick) // MILLISECOND,
    }


@resolver(
    name="psi.system/counts",
    output=[
        "psi.system/counters",
        "psi.system/session-count",
        "psi.system/schedule-count",
        "psi.system/active-run-count",
    ],
)
def counts(env: Env, _: Any) -> Any:
    counters = env.context.counters()
    return {
        "psi.system/counters": counters,
        "psi.system/session-count": counters["sessions"],
        "psi.system/schedule-count": counters["open-schedules"],
        "psi.system/active-run-count": counters["active-runs"],
    }


@resolver(name="psi.system/sessions", output=[{"psi.system/sessions": [SESSION]}])
def sessions(env: Env, _: Any) -> Any:
    return {"psi.system/sessions": [{SESSION: name} for name in env.context.session_names()]}


OPERATIONS: Final = (identity, time, counts, sessions)
