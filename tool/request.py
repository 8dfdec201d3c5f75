"""A psi-tool request, read: text or data in, an action with its keys out. Refuses what is not known, with what is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from psi.core.config import key_name, shown
from psi.core.errors import Invalid
from psi.edn import Keyword, ReadError, loads
from psi.edn.strict import Twice, read_json
from tool.declarations import ACTIONS, Action, Op

__all__ = ["Request", "RequestInvalid", "read", "read_map"]

_ACTIONS: Final = {action.name: action for action in ACTIONS}
_EVERY_KEY: Final = {
    "action",
    "op",
    *(key.name for action in ACTIONS for keys in (action.keys, *(op.keys for op in action.ops)) for key in keys),
}


@dataclass(frozen=True, slots=True)
class Request:
    action: str
    op: str | None
    values: Mapping[str, Any]

    def get(self, key: str) -> Any:
        return self.values.get(key)


class RequestInvalid(Invalid):
    """The request cannot be understood; ``action`` and ``op`` are as far as it was."""

    code = "psi-tool/invalid-request"

    def __init__(self, message: str, *, action: str | None = None, op: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.action = action
        self.op = op


def read(request: Any) -> Request:
    """The request as an action with its keys; RequestInvalid with the first thing that is wrong."""
    data = _data(request)
    named: dict[str, Any] = {}
    for key, value in data.items():
        name = key_name(key)
        if name in named:
            raise RequestInvalid(f"key `{name}` is given twice")
        named[name] = value
    action = _action(named)
    op = _op(action, named)
    keys = op.keys if op else action.keys
    allowed = {"action", *(["op"] if op else []), *(key.name for key in keys)}
    place = f"{action.name} {op.name}" if op else action.name
    for name in named:
        if name not in allowed:
            raise RequestInvalid(
                _unknown(name, place, allowed),
                action=action.name,
                op=op.name if op else None,
                key=name,
                accepted=sorted(allowed),
            )
    values = {name: value for name, value in named.items() if name not in ("action", "op")}
    return Request(action.name, op.name if op else None, values)


def _check_names(named: Iterable[str], allowed: set[str], place: str) -> None:
    """Before anything is said to be missing: it may be there under a name that is nearly right."""
    for name in named:
        if name not in allowed:
            raise RequestInvalid(_unknown(name, place, allowed), key=name, accepted=sorted(allowed))


def _unknown(name: str, place: str, allowed: set[str]) -> str:
    if place == "mutate" and name == "entity":
        return "psi-tool mutate does not accept `entity`; give `params`"
    near = get_close_matches(name, sorted(allowed), n=1, cutoff=0.6)
    hint = f"did you mean `{near[0]}`?" if near else f"{place} accepts {_listed(sorted(allowed))}"
    return f"unknown key `{name}`; {hint}"


def _data(request: Any) -> Mapping[Any, Any]:
    if isinstance(request, str | bytes) and not isinstance(request, Keyword):
        request = _parsed(request if isinstance(request, str) else _decoded(request))
    if not isinstance(request, Mapping):
        raise RequestInvalid(f"a psi-tool request is a map with `action`, got {shown(request)}")
    return request


def _decoded(request: bytes) -> str:
    try:
        return request.decode()
    except UnicodeDecodeError as wrong:
        raise RequestInvalid(f"the request is not UTF-8: {wrong.reason} at byte {wrong.start}") from None


def _parsed(text: str) -> Any:
    """JSON where it is JSON, EDN otherwise. ``{"a" 1}`` is EDN, and only that."""
    try:
        return read_json(text)
    except Twice as twice:
        raise RequestInvalid(str(twice)) from None
    except (ValueError, RecursionError) as not_json:
        try:
            return loads(text)
        except ReadError as not_edn:
            looks_like_json = text.lstrip()[1:].lstrip().startswith('"')
            why = f"JSON: {not_json}" if looks_like_json else f"EDN: {not_edn}"
            raise RequestInvalid(f"the request can be read neither as JSON nor as EDN. As {why}") from None


def _word(value: Any) -> str | None:
    return str(value).removeprefix(":") if isinstance(value, str) else None


def _action(named: Mapping[str, Any]) -> Action:
    given = named.get("action")
    if given is None and "query" in named:
        return _ACTIONS["query"]
    found = _ACTIONS.get(_word(given) or "")
    if found is not None:
        return found
    if given is None:
        _check_names(named, _EVERY_KEY, "a request")
        raise RequestInvalid(f"a psi-tool request needs `action`: {_listed(_ACTIONS)}", accepted=list(_ACTIONS))
    raise RequestInvalid(
        f"unknown action {shown(given)}; {_accepted(_word(given), _ACTIONS)}",
        given=shown(given),
        accepted=list(_ACTIONS),
    )


def _op(action: Action, named: Mapping[str, Any]) -> Op | None:
    if not action.ops:
        return None
    ops = {op.name: op for op in action.ops}
    given = named.get("op")
    found = ops.get(_word(given) or "")
    if found is None:
        if given is None:
            allowed = {"action", "op", *(key.name for op in action.ops for key in op.keys)}
            _check_names(named, allowed, action.name)
        problem = (
            f"psi-tool {action.name} needs `op`: {_listed(ops)}"
            if given is None
            else f"unknown {action.name} op {shown(given)}; {_accepted(_word(given), ops)}"
        )
        raise RequestInvalid(problem, action=action.name, accepted=list(ops))
    return found


def _accepted(given: str | None, names: Iterable[str]) -> str:
    near = get_close_matches(given, list(names), n=1) if given else []
    return f"did you mean `{near[0]}`?" if near else f"accepted: {_listed(names)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def read_map(key: str, value: Any) -> dict[Any, Any]:
    """A map that may also come as EDN text; nothing is an empty one."""
    if value is None:
        return {}
    if isinstance(value, str) and not isinstance(value, Keyword):
        try:
            value = loads(value)
        except ReadError as problem:
            raise Invalid(f"`{key}` must be a map or EDN text of one: {problem}", code="psi-tool/invalid-map") from None
    if not isinstance(value, Mapping):
        raise Invalid(f"`{key}` must be a map or EDN text of one, got {shown(value)}", code="psi-tool/invalid-map")
    return {str(name).removeprefix(":") if isinstance(name, str) else name: below for name, below in value.items()}
