"""What agents and people are told about psi-tool: its JSON schema and its reference page, from the declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from psi.core.clock import Moment
from psi.core.config import CONFIG_KEYS
from psi.core.schedule import CAP, MAXIMUM_MS, MINIMUM_MS, PREVIEW, Status, plan
from psi.core.session import Phase
from psi.core.turn import State
from psi.edn import dumps
from tool.declarations import ACTIONS, DESCRIPTION, Action, Key, Op

__all__ = ["json_schema", "reference"]

_REQUEST = (
    "A request is a map, as JSON or EDN. Keys are kebab-case; `delay_ms` is taken for `delay-ms`. A key that is not "
    "known is refused with the nearest one that is. Where a map is taken, EDN text of one is taken, too."
)

_INVOKING = (
    "The invoking session is no part of the request. It is the header `Psi-Session` over HTTP, `--session` or "
    "`PSI_SESSION` on the command line, the `session` of `await psi.tool(request, session=...)` in a program, and the "
    "session of the running turn when an agent calls the tool. An agent schedules for its own session only."
)
_CONFIG = (
    "Exactly these keys; nil says the same as leaving one out. All problems are reported together, each with its path."
)

# What each word means. A word of the machines that is not explained here is a KeyError, so the page cannot lack one.
_STATUSES: Final = {
    Status.PENDING: "its time has not come",
    Status.QUEUED: "its time has come; its session is busy and takes it when it is idle",
    Status.DELIVERED: "its prompt stands in a history and the turn has begun",
    Status.CANCELLED: "somebody cancelled it, its session was closed, or psi was",
    Status.FAILED: "its delivery failed; `delivery-phase` says where and `error-summary` why",
}
_PHASES: Final = {
    Phase.IDLE: "takes an input",
    Phase.STREAMING: "a run is under way",
    Phase.COMPACTING: "its context is being compressed",
}
_STATES: Final = {
    State.RUNNING: "under way",
    State.OK: "ended with an answer, or at its limit of iterations",
    State.ERROR: "the agent failed; `psi.run/error` has the details",
    State.EMPTY: "ended without text",
    State.STOPPED: "was stopped; what it had said is kept",
    State.INTERRUPTED: "psi was closed before it ended",
}


def json_schema() -> dict[str, Any]:
    """One flat object, which every model provider accepts; which key goes with what is said in its description."""
    properties: dict[str, Any] = {
        "action": {
            "type": "string",
            "enum": [action.name for action in ACTIONS],
            "description": " ".join(f"{action.name}: {action.doc}" for action in ACTIONS),
        },
        "op": {
            "type": "string",
            "enum": list(dict.fromkeys(op.name for action in ACTIONS for op in action.ops)),
            "description": " ".join(
                f"{action.name}: {', '.join(op.name for op in action.ops)}." for action in ACTIONS if action.ops
            ),
        },
    }
    used: dict[str, list[tuple[str, Key]]] = {}
    for place, keys in _places():
        for key in keys:
            used.setdefault(key.name, []).append((place, key))
    for name, found in used.items():
        docs = dict.fromkeys(key.doc for _, key in found)
        if len(docs) == 1:
            description = f"{', '.join(place for place, _ in found)}: {found[0][1].doc}"
        else:
            description = "; ".join(f"{place}: {key.doc}" for place, key in found)
        properties[name] = {**found[0][1].schema, "description": description}
    return {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}


def _places() -> Iterator[tuple[str, tuple[Key, ...]]]:
    for action in ACTIONS:
        if action.keys:
            yield action.name, action.keys
        for op in action.ops:
            yield f"{action.name} {op.name}", op.keys


def reference() -> str:
    """The reference page, as Markdown."""
    lines = [
        "# psi-tool: reference",
        "",
        "<!-- Made by `make docs` from tool/declarations.py and tool/schema.py; a test compares. -->",
        "",
        DESCRIPTION,
        "",
        "How to use it, step by step: [scheduling](scheduling.md). What the words mean: [concepts](concepts.md).",
        "",
        "## Request",
        "",
        _REQUEST,
        "",
        _INVOKING,
        "",
        "## Answer",
        "",
        *_envelope(),
    ]
    for action in ACTIONS:
        lines += ["", *_action(action)]
    lines += [
        "",
        "## session-config",
        "",
        _CONFIG,
    ]
    lines += ["", *_table(("key", "value"), ((f"`{key.name}`", key.takes) for key in CONFIG_KEYS))]
    lines += ["", "## Words", "", "Schedules, `status`:", "", *_words("status", Status, _STATUSES)]
    lines += ["", "Sessions, `phase`:", "", *_words("phase", Phase, _PHASES)]
    lines += ["", "Runs, `state`:", "", *_words("state", State, _STATES)]
    return "\n".join([*lines, ""])


_ENVELOPE: Final = (
    ("`psi-tool/action`", "the action; nil where the request was not understood so far"),
    ("`psi-tool/scheduler-op`, `psi-tool/session-op`", "the op, for an action that has ops"),
    ("`psi-tool/overall-status`", "`:ok` or `:error`"),
    ("`psi-tool/duration-ms`", "how long it took, by psi's own clock"),
    (
        "`psi-tool/scheduler`",
        "`create`: `schedule`; `cancel`: `schedule`, `cancelled?`; `list`: `schedule-count`, `schedules`",
    ),
    (
        "`psi-tool/session`",
        (
            "`session`, to which `submit` adds `run-id` (and `run` with `wait`), `stop` adds `stopped?` and `reason`, "
            "`close` adds `closed?`; `list`: `session-count`, `sessions`"
        ),
    ),
    ("`psi-tool/result`", "of `query` and `mutate`: what the graph answered"),
    ("`psi-tool/mutation`", "of `mutate`: the name that was called"),
    ("`psi-tool/error`", "only with `:error`"),
)
_ERROR: Final = (
    ("`message`", "a sentence: what was wrong and, where that helps, what is accepted"),
    ("`class`", "the kind of error"),
    (
        "`code`",
        "a stable name to match on, such as `scheduler/delay-too-short`, and `psi/internal` for a fault inside psi",
    ),
    ("`phase`", "`:validate`: the request is wrong as it stands; `:execute`: it could not be carried out"),
    ("`data`", "the facts: bounds, accepted keys, ids"),
)


def _envelope() -> Iterator[str]:
    yield (
        "Every request is answered by an envelope; nothing is raised. A call that failed has changed nothing. Only a "
        "query may fail after a mutation in it was carried out; then the message says so, and `done` in `data` has "
        "what came of it."
    )
    yield ""
    yield from _table(("key", "what"), _ENVELOPE)
    yield ""
    yield "`psi-tool/error` holds:"
    yield ""
    yield from _table(("key", "what"), _ERROR)
    yield ""
    yield "In JSON, keywords lose their colon. Instants are ISO-8601 text in UTC, with a `Z`. An answer to `create`:"
    yield ""
    yield from ("```edn", _answer(), "```")
    yield ""
    yield (
        f"`message` is a preview of at most {PREVIEW} characters; the whole text is `:psi.scheduler/message` in "
        f"the graph. Bounds: {MINIMUM_MS} ms to {MAXIMUM_MS} ms ahead, {CAP} pending and queued schedules a session."
    )


def _answer() -> str:
    """An envelope as it is, made by the machine itself, so that the page cannot show another."""
    schedule = plan(
        id="sch-f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
        session="ses-7d44e4a1-0f0c-4c5e-9d51-3f5b8c1f2a60",
        kind="message",
        message="Check the build.",
        label="build",
        delay_ms=600_000,
        now=Moment(datetime(2026, 4, 22, 12, 50, tzinfo=UTC), 0),
    )
    pad = "\n" + " " * len("{:psi-tool/scheduler {:schedule {")
    summary = pad.join(dumps({key: value})[1:-1] for key, value in schedule.summary().items())
    return (
        "{:psi-tool/action :scheduler\n"
        " :psi-tool/scheduler-op :create\n"
        " :psi-tool/overall-status :ok\n"
        " :psi-tool/duration-ms 0\n"
        f" :psi-tool/scheduler {{:schedule {{{summary}}}}}}}"
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _words(head: str, words: Iterable[Any], meanings: Mapping[Any, str]) -> Iterator[str]:
    return _table((head, "means"), ((f"`:{each.value}`", meanings[each]) for each in words))


def _action(action: Action) -> Iterator[str]:
    yield f"## {action.name}"
    yield ""
    yield f"{action.doc} {action.more}".rstrip()
    yield from _keys(action.keys)
    yield from _example(action.example)
    for op in action.ops:
        yield from _op(action, op)


def _op(action: Action, op: Op) -> Iterator[str]:
    yield ""
    yield f"### {action.name} {op.name}"
    yield ""
    yield op.doc
    yield from _keys(op.keys)
    yield from _example(op.example)


def _keys(keys: tuple[Key, ...]) -> Iterator[str]:
    if keys:
        yield ""
        yield from _table(
            ("key", "needed", "what"), ((f"`{key.name}`", "yes" if key.required else "", key.doc) for key in keys)
        )


def _example(example: str) -> Iterator[str]:
    if example:
        yield from ("", "```edn", example, "```")
