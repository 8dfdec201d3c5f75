"""``psi.agent-session``: what a session is, says and does. ``psi.session-info``: all of them, in short."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from psi.core.commands import CloseSession, CreateSession, StopRun, SubmitPrompt
from psi.core.config import THINKING_LEVELS, SessionConfig
from psi.core.session import Phase, Session
from psi.edn import thaw
from psi.graph import Env, mutation, resolver
from psi.graph.attributes import DATA, FLAG, INSTANT, INTEGER, TEXT, WORD, Attribute, Entity, Enum, ListOf, Many
from resolvers.params import named

__all__ = ["ATTRIBUTES", "ENTITIES", "OPERATIONS"]

SESSION: Final = "psi.agent-session/session-id"
RUN: Final = "psi.run/id"

ATTRIBUTES: Final = (
    Attribute(SESSION, TEXT, "the name of a session: ses- and a UUID"),
    Attribute("psi.agent-session/session-name", TEXT, "what it was called", nullable=True),
    Attribute("psi.agent-session/session-display-name", TEXT, "its name, or else the beginning of its id"),
    Attribute("psi.agent-session/phase", Enum("SessionPhase", tuple(p.value for p in Phase)), "what it is doing"),
    Attribute("psi.agent-session/is-streaming", FLAG, "whether a run is under way"),
    Attribute("psi.agent-session/is-compacting", FLAG, "whether its context is being compressed"),
    Attribute("psi.agent-session/is-idle", FLAG, "whether it would take an input now"),
    Attribute("psi.agent-session/model", DATA, "provider and id of its model", nullable=True),
    Attribute(
        "psi.agent-session/thinking-level", Enum("ThinkingLevel", THINKING_LEVELS), "how hard it thinks", nullable=True
    ),
    Attribute("psi.agent-session/system-prompt", TEXT, "its system prompt", nullable=True),
    Attribute("psi.agent-session/developer-prompt", TEXT, "its developer prompt", nullable=True),
    Attribute("psi.agent-session/developer-prompt-source", WORD, "where that comes from", nullable=True),
    Attribute("psi.agent-session/skills", ListOf(DATA), "its skills, each with a name"),
    Attribute("psi.agent-session/tool-ids", ListOf(TEXT), "the tools it may use; nil: all of them", nullable=True),
    Attribute("psi.agent-session/cache-breakpoints", ListOf(WORD), "where its prompt may be cached"),
    Attribute("psi.agent-session/prompt-component-selection", DATA, "what its prompt is made of", nullable=True),
    Attribute("psi.agent-session/message-history", ListOf(DATA), "its messages, the oldest first"),
    Attribute("psi.agent-session/message-count", INTEGER, "how many there are"),
    Attribute("psi.agent-session/worktree-path", TEXT, "the folder it works in"),
    Attribute("psi.agent-session/owner", TEXT, "the user it belongs to"),
    Attribute("psi.agent-session/created", INSTANT, "when it was created"),
    Attribute("psi.agent-session/updated", INSTANT, "when something last happened in it"),
    Attribute("psi.agent-session/scheduled-origin-session-id", TEXT, "who had it scheduled", nullable=True),
    Attribute("psi.agent-session/scheduled-from-schedule-id", TEXT, "by which schedule", nullable=True),
    Attribute("psi.agent-session/scheduled-from-label", TEXT, "under which label", nullable=True),
    Attribute("psi.agent-session/parent-session-id", TEXT, "whose child it is", nullable=True),
    Attribute("psi.agent-session/active-run-id", TEXT, "the run that is under way", nullable=True),
    Attribute("psi.agent-session/stopped?", FLAG, "answer of a mutation: whether there was a run to stop"),
    Attribute("psi.agent-session/closed?", FLAG, "answer of a mutation: the session is closed"),
    Attribute(
        "psi.agent-session/context-session-summaries", Many("psi.session-info/id"), "every session, the oldest first"
    ),
    Attribute("psi.session-info/id", TEXT, "the name of the session"),
    Attribute("psi.session-info/display-name", TEXT, "its name, or else the beginning of its id"),
    Attribute("psi.session-info/created", INSTANT, "when it was created"),
    Attribute("psi.session-info/updated", INSTANT, "when something last happened in it"),
    Attribute("psi.session-info/parent-session-id", TEXT, "whose child it is", nullable=True),
    Attribute("psi.session-info/worktree-path", TEXT, "the folder it works in"),
)

ENTITIES: Final = (
    Entity("Session", "A conversation with its history and its config.", "psi.agent-session", SESSION),
    Entity("SessionInfo", "A session in short.", "psi.session-info", "psi.session-info/id"),
)

_STATE: Final[dict[str, Callable[[Session], Any]]] = {
    "session-name": lambda session: session.name,
    "session-display-name": lambda session: session.display_name,
    "phase": lambda session: session.phase.value,
    "is-streaming": lambda session: session.phase is Phase.STREAMING,
    "is-compacting": lambda session: session.phase is Phase.COMPACTING,
    "is-idle": lambda session: session.is_idle,
    "message-count": lambda session: session.message_count,
    "worktree-path": lambda session: session.worktree,
    "owner": lambda session: session.owner,
    "created": lambda session: session.created_at,
    "updated": lambda session: session.updated_at,
    "parent-session-id": lambda session: session.parent,
    "active-run-id": lambda session: session.run,
    "scheduled-origin-session-id": lambda session: session.provenance and session.provenance.session,
    "scheduled-from-schedule-id": lambda session: session.provenance and session.provenance.schedule.schedule_id,
    "scheduled-from-label": lambda session: session.provenance and session.provenance.schedule.label,
}
_CONFIG: Final[dict[str, Callable[[SessionConfig], Any]]] = {
    "model": lambda config: config.model and config.model.as_data(),
    "thinking-level": lambda config: config.thinking_level,
    "system-prompt": lambda config: config.system_prompt,
    "developer-prompt": lambda config: config.developer_prompt,
    "developer-prompt-source": lambda config: config.developer_prompt_source,
    "skills": lambda config: [thaw(skill) for skill in config.skills],
    "tool-ids": lambda config: None if config.tool_ids is None else list(config.tool_ids),
    "cache-breakpoints": lambda config: config.cache_breakpoints,
    "prompt-component-selection": lambda config: thaw(config.prompt_component_selection),
}


def _named(names: Mapping[str, Any]) -> list[str]:
    return [f"psi.agent-session/{name}" for name in names]


@resolver(name="psi.agent-session/state", input=[SESSION], output=_named(_STATE))
def state(env: Env, entity: Mapping[str, Any]) -> Any:
    found = env.context.session(entity[SESSION])
    return found and {f"psi.agent-session/{name}": read(found) for name, read in _STATE.items()}


@resolver(name="psi.agent-session/config", input=[SESSION], output=_named(_CONFIG))
def config(env: Env, entity: Mapping[str, Any]) -> Any:
    found = env.context.session(entity[SESSION])
    return found and {f"psi.agent-session/{name}": read(found.config) for name, read in _CONFIG.items()}


@resolver(name="psi.agent-session/history", input=[SESSION], output=["psi.agent-session/message-history"])
async def history(env: Env, entity: Mapping[str, Any]) -> Any:
    if not env.context.has_session(entity[SESSION]):
        return None
    messages = await env.context.messages(entity[SESSION])
    return {"psi.agent-session/message-history": [message.as_data() for message in messages]}


_INFO: Final = [
    "psi.session-info/id",
    "psi.session-info/display-name",
    "psi.session-info/created",
    "psi.session-info/updated",
    "psi.session-info/parent-session-id",
    "psi.session-info/worktree-path",
]


@resolver(name="psi.session-info/all", output=[{"psi.agent-session/context-session-summaries": _INFO}])
def summaries(env: Env, _: Any) -> Any:
    return {"psi.agent-session/context-session-summaries": [_info(each) for each in env.context.sessions()]}


def _info(session: Session) -> dict[str, Any]:
    return {
        "psi.session-info/id": session.id,
        "psi.session-info/display-name": session.display_name,
        "psi.session-info/created": session.created_at,
        "psi.session-info/updated": session.updated_at,
        "psi.session-info/parent-session-id": session.parent,
        "psi.session-info/worktree-path": session.worktree,
    }


@resolver(name="psi.session-info/session", input=["psi.session-info/id"], output=[SESSION])
def session_of_info(env: Env, info: Mapping[str, Any]) -> Any:
    """From the short form to the session itself."""
    return {SESSION: info["psi.session-info/id"]}


@mutation("psi.agent-session/create", params=["name", "config"], output=[SESSION])
async def create(env: Env, params: Mapping[str, Any]) -> Any:
    """A fresh session, where the invoking one works."""
    params = named(params, create.name, create.params)
    command = CreateSession(name=params.get("name"), config=params.get("config"))
    return {SESSION: (await env.context.act(command, env.context.caller)).id}


@mutation("psi.agent-session/submit", params=["message", "session-id"], output=[SESSION, RUN])
async def submit(env: Env, params: Mapping[str, Any]) -> Any:
    """Submit a prompt; the run goes on after the answer."""
    params = named(params, submit.name, submit.params)
    command = SubmitPrompt(message=params.get("message"), session=params.get("session-id"))
    run = await env.context.act(command, env.context.caller)
    return {SESSION: run.session, RUN: run.id}


@mutation("psi.agent-session/stop", params=["session-id"], output=["psi.agent-session/stopped?"])
async def stop(env: Env, params: Mapping[str, Any]) -> Any:
    """Ask the session's run to stop."""
    params = named(params, stop.name, stop.params)
    return {
        "psi.agent-session/stopped?": await env.context.act(
            StopRun(session=params.get("session-id")), env.context.caller
        )
    }


@mutation("psi.agent-session/close", params=["session-id"], output=["psi.agent-session/closed?"])
async def close(env: Env, params: Mapping[str, Any]) -> Any:
    """Close the session: its run is stopped, its schedules are cancelled."""
    params = named(params, close.name, close.params)
    await env.context.act(CloseSession(session=params.get("session-id")), env.context.caller)
    return {"psi.agent-session/closed?": True}


OPERATIONS: Final = (state, config, history, summaries, session_of_info, create, submit, stop, close)
