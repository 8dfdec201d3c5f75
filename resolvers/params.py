"""The params of psi's own mutations: under their declared names, and none that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from psi.core.config import key_name
from psi.core.errors import Invalid

__all__ = ["named"]


def named(params: Mapping[Any, Any], mutation: str, accepted: Sequence[str]) -> dict[str, Any]:
    """The params under their declared names; one that is mistyped is refused, as a key of a request is."""
    found: dict[str, Any] = {}
    for key, value in params.items():
        name = key if key in accepted else key_name(key)
        if name not in accepted:
            near = get_close_matches(name, accepted, n=1)
            listed = ", ".join(f"`{each}`" for each in accepted)
            hint = f"did you mean `{near[0]}`?" if near else f"{mutation} accepts {listed}"
            raise Invalid(f"unknown param `{name}`; {hint}", code="psi-tool/unknown-param", accepted=list(accepted))
        found[name] = value
    return found
