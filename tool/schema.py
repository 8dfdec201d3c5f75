"""What agents and people are told about psi-tool: its JSON schema and its reference page, from the declarations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psi.core.config import CONFIG_KEYS
from tool.declarations import ACTIONS, DESCRIPTION, Action, Key, Op

__all__ = ["json_schema", "reference"]

_REQUEST = (
    "A request is a map, as JSON or EDN. Keys are kebab-case; `delay_ms` is taken for `delay-ms`. A key that is not "
    "known is refused with the nearest one that is."
)


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
        "<!-- Made by `make docs` from tool/declarations.py; a test compares. -->",
        "",
        DESCRIPTION,
        "",
        _REQUEST,
    ]
    for action in ACTIONS:
        lines += ["", *_action(action)]
    lines += [
        "",
        "## session-config",
        "",
        "Exactly these keys. All problems are reported together, each with its path.",
    ]
    lines += ["", "| key | value |", "|---|---|"]
    lines += [f"| `{key.name}` | {key.takes} |" for key in CONFIG_KEYS]
    return "\n".join([*lines, ""])


def _action(action: Action) -> Iterator[str]:
    yield f"## {action.name}"
    yield ""
    yield action.doc
    yield from _keys(action.keys)
    for op in action.ops:
        yield from _op(action, op)


def _op(action: Action, op: Op) -> Iterator[str]:
    yield ""
    yield f"### {action.name} {op.name}"
    yield ""
    yield op.doc
    yield from _keys(op.keys)


def _keys(keys: tuple[Key, ...]) -> Iterator[str]:
    if keys:
        yield from ("", "| key | needed | what |", "|---|---|---|")
        for key in keys:
            yield f"| `{key.name}` | {'yes' if key.required else ''} | {key.doc} |"
