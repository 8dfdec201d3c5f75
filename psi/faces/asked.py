"""The names in a request, its keys and parameters: one that is not known is a mistake that somebody should hear of."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from starlette.requests import Request

from psi.core.config import shown
from psi.core.errors import Invalid

__all__ = ["asked_of", "check_name"]

_LONGEST = 100  # characters of a name that are told


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
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        check_name("parameter", name, accepted, "rest/unknown-parameter")
        if name in found:
            raise Invalid(f"parameter `{name}` is given twice", code="rest/invalid-parameter", argument=name)
        found[name] = value
    return found
