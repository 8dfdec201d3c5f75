"""What psi-tool takes: actions, ops and keys, declared once.

The reader of requests, the JSON schema that agents get and the reference page are made from this. The command line has
a table of its own, :mod:`tool.commands`, since reading this one costs more than a request; a test holds it to this.
Which values a key accepts is said in words here and decided where the command is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from psi.core.config import CONFIG_KEYS
from psi.core.schedule import CAP, MAXIMUM_MS, MINIMUM_MS

__all__ = ["ACTIONS", "DESCRIPTION", "Action", "Key", "Op"]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a request."""

    name: str
    doc: str
    schema: Mapping[str, Any] = field(repr=False)
    required: bool = False


@dataclass(frozen=True, slots=True)
class Op:
    name: str
    doc: str
    keys: tuple[Key, ...] = ()
    example: str = field(default="", kw_only=True, repr=False)  # a request, as EDN


@dataclass(frozen=True, slots=True)
class Action:
    """An action has ops, or is one thing itself and has keys."""

    name: str
    doc: str
    ops: tuple[Op, ...] = ()
    keys: tuple[Key, ...] = ()
    example: str = field(default="", kw_only=True, repr=False)
    more: str = field(default="", kw_only=True, repr=False)  # what is accepted besides, and not offered to a model


# One type for each key, and nothing left open: there are providers that refuse a tool as a whole for a union of types,
# an array without `items` or an object without `properties`. What is accepted besides stands on the reference page.
_TEXT: Final = {"type": "string"}
_MAP: Final = {"type": "object", "properties": {}, "additionalProperties": True}

_SESSION: Final = Key("session-id", "the session that is meant; left out, the invoking one", _TEXT)
_CONFIG_DOC: Final = "keys: " + ", ".join(f"`{key.name}`" for key in CONFIG_KEYS)

DESCRIPTION: Final = (
    "Asks and changes the running psi: schedule a prompt for later, in this session or in a fresh one; list and cancel "
    "what is scheduled; create, list, show, submit to, stop and close sessions; query the live attribute graph in EQL; "
    "call one of its mutations. Answers an envelope with psi-tool/overall-status ok or error."
)

ACTIONS: Final = (
    Action(
        "query",
        "Asks the attribute graph, from the root of the invoking session.",
        more="A request with `query` and no `action` means this one. In an EDN request the vector may stand as it is.",
        keys=(
            Key("query", "an EQL vector as EDN text, e.g. `[:psi.scheduler/pending-count]`", _TEXT, required=True),
            Key("entity", "a map of attributes that the query starts from", _MAP),
            _SESSION,
        ),
        example="""\
{:action "query"
 :query [:psi.scheduler/pending-count {:psi.scheduler/schedules [:psi.scheduler/status]}]}""",
    ),
    Action(
        "mutate",
        "Calls a mutation of the graph by its name.",
        keys=(
            Key("mutation", "its qualified name, e.g. `psi.scheduler/cancel`", _TEXT, required=True),
            Key("params", "a map of its params", _MAP),
            _SESSION,
        ),
        example="""\
{:action "mutate"
 :mutation psi.scheduler/create
 :params {:kind :message :delay-ms 600000 :message "Check the build."}}""",
    ),
    Action(
        "scheduler",
        "Delayed prompts: one-shot, volatile, in memory. A session sees and cancels its own only.",
        ops=(
            Op(
                "create",
                "Schedules a prompt. Exactly one of `delay-ms` and `at` is needed. "
                f"A session has at most {CAP} that are still to come.",
                (
                    Key(
                        "kind",
                        "`message`: the prompt comes back as a turn of this session, as soon as it is idle; `session`: "
                        "it opens a fresh top-level session. Never inferred",
                        {"type": "string", "enum": ["message", "session"]},
                        required=True,
                    ),
                    Key("message", "the prompt, written as a todo for whoever will read it", _TEXT, required=True),
                    Key(
                        "delay-ms",
                        f"milliseconds from now, {MINIMUM_MS} to {MAXIMUM_MS} (24 hours)",
                        {"type": "integer", "minimum": MINIMUM_MS, "maximum": MAXIMUM_MS},
                    ),
                    Key(
                        "at",
                        "an ISO-8601 instant in UTC, e.g. `2026-04-22T13:00:00Z`; what is past fires at once, "
                        "otherwise the same bounds hold",
                        _TEXT,
                    ),
                    Key("label", "a short name for people", _TEXT),
                    Key(
                        "session-config",
                        f"for kind `session`, where it is required (`{{}}` is allowed); {_CONFIG_DOC}",
                        _MAP,
                    ),
                    _SESSION,
                ),
                example="""\
{:action "scheduler" :op "create" :kind "session" :delay-ms 600000 :label "nightly"
 :message "Summarise what changed today."
 :session-config {:session-name "Summary" :thinking-level :low :tool-ids ["psi-tool"]}}""",
            ),
            Op(
                "list",
                "The pending and queued schedules of the session, in the order of their plans.",
                (_SESSION,),
                example='{:action "scheduler" :op "list"}',
            ),
            Op(
                "cancel",
                "Cancels a schedule that is pending or queued.",
                (Key("schedule-id", "the schedule, `sch-…`", _TEXT, required=True), _SESSION),
                example='{:action "scheduler" :op "cancel" :schedule-id "sch-f81d4fae-7dec-41d0-a765-00a0c91e6bf6"}',
            ),
        ),
    ),
    Action(
        "session",
        "The sessions themselves.",
        ops=(
            Op(
                "create",
                "A fresh session.",
                (
                    Key("name", "what it is called", _TEXT),
                    Key("config", f"what it is told to be; {_CONFIG_DOC}", _MAP),
                ),
                example='{:action "session" :op "create" :name "First" :config {:thinking-level :low}}',
            ),
            Op("list", "Every session, the oldest first.", example='{:action "session" :op "list"}'),
            Op("show", "One session.", (_SESSION,), example='{:action "session" :op "show"}'),
            Op(
                "submit",
                "Submits a prompt and answers with the run's id. Refused while a run is active.",
                (
                    Key("message", "the prompt", _TEXT, required=True),
                    Key("wait", "true: answer when the run has ended, with its answer", {"type": "boolean"}),
                    _SESSION,
                ),
                example='{:action "session" :op "submit" :message "/say Hello." :wait true}',
            ),
            Op(
                "stop",
                "Asks the session's run to stop.",
                (_SESSION,),
                example='{:action "session" :op "stop"}',
            ),
            Op(
                "close",
                "Stops the session's run, cancels its schedules and lets it go.",
                (_SESSION,),
                example='{:action "session" :op "close"}',
            ),
        ),
    ),
)
