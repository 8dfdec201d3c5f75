"""The names in a request, its keys and parameters: one that is not known is a mistake that somebody should hear of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from starlette.requests import Request

from psi.core.config import shown
from psi.core.errors import Invalid

__all__ = ["asked_of", "check_name", "number_of", "told_once"]

_LONGEST = 100  # characters of a name that are told
_MOST_DIGITS = 20


def check_name(what: str, name: str, accepted: Iterable[str], code: str) -> None:
    """Refuse a name that is not one of these, with the nearest one or with all of them."""
    known = list(accepted)
    if name in known:
        return
    told = shown(name)[1:-1][:_LONGEST]
    near = get_close_matches(name[:_LONGEST], known, n=1)
    listed = ", ".join(f"`{each}`" for each in known) or "none"
    hint = f"did you mean `{near[0]}`?" if near else f"accepted: {listed}"
    raise Invalid(f"unknown {what} `{told}`; {hint}", code=code, **{what: told}, accepted=known)


def asked_of(request: Request, *accepted: str) -> dict[str, str]:
    """The parameters behind the ``?``, each of them known and there once."""
    for name in request.query_params:
        check_name("parameter", name, accepted, "rest/unknown-parameter")
    return told_once(request.query_params.multi_items())


def told_once(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters by their names, none of which may come twice."""
    found: dict[str, str] = {}
    for name, value in given:
        if name in found:
            raise Invalid(f"parameter `{name}` is given twice", code="rest/invalid-parameter", argument=name)
        found[name] = value
    return found


def number_of(asked: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    """A whole number that was asked for; None where it was not."""
    text = asked.get(name)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and low <= int(text) <= high:
        return int(text)
    raise Invalid(
        f"`{name}` must be a whole number from {low} to {high}, got {shown(text)}",
        code="rest/invalid-parameter",
        argument=name,
    )
