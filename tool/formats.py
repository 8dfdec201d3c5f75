"""What psi-tool takes, in the form that each provider of models or each client wants it. Needs no service."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from tool.output import text

__all__ = ["as_edn", "described", "run"]

NAME = "psi-tool"
_NAME = re.compile(r"[^\W\d][\w.*+!?$%&=<>-]*(/[^\W\d][\w.*+!?$%&=<>-]*)?")


def described(form: str) -> dict[str, Any]:
    """psi-tool as a tool of ``openai``, ``anthropic`` or ``mcp``."""
    from tool.declarations import DESCRIPTION
    from tool.schema import json_schema

    about = {"name": NAME, "description": DESCRIPTION}
    match form:
        case "openai":
            return {"type": "function", "function": {**about, "parameters": json_schema()}}
        case "anthropic":
            return {**about, "input_schema": json_schema()}
        case "mcp":
            return {**about, "inputSchema": json_schema()}
    raise ValueError(form)


def run(values: Mapping[str, Any]) -> int:
    """Print it: laid out for a terminal, one line for a pipe. The SDL of GraphQL is text in any case."""
    form = values["format"] or "openai"
    if form == "graphql":
        from psi.faces.graphql import sdl

        text(sdl().rstrip("\n"))
    elif values["edn"]:
        text(as_edn(described(form)))
    else:
        laid_out = sys.stdout.isatty() and not values["json"]
        text(json.dumps(described(form), ensure_ascii=True, indent=2 if laid_out else None))
    return 0


def as_edn(value: Any) -> str:
    """JSON data as EDN: its keys are keywords where they can be."""
    from psi.edn import dumps

    return dumps(_keywords(value))


def _keywords(value: Any) -> Any:
    from psi.edn import Keyword

    if isinstance(value, Mapping):
        named = ((Keyword(key) if _NAME.fullmatch(key) else key, below) for key, below in value.items())
        return {key: _keywords(below) for key, below in named}
    return [_keywords(each) for each in value] if isinstance(value, list) else value
