"""What psi-tool takes, in the form that each provider of models or each client wants it. Needs no service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tool.commands import OK
from tool.output import EDN, PEOPLE, data, form, text
from tool.render import as_edn

__all__ = ["described", "run"]

NAME = "psi-tool"


def described(name: str) -> dict[str, Any]:
    """psi-tool as a tool of ``openai``, ``anthropic`` or ``mcp``."""
    from tool.declarations import DESCRIPTION
    from tool.schema import json_schema

    about = {"name": NAME, "description": DESCRIPTION}
    match name:
        case "openai":
            return {"type": "function", "function": {**about, "parameters": json_schema()}}
        case "anthropic":
            return {**about, "input_schema": json_schema()}
        case "mcp":
            return {**about, "inputSchema": json_schema()}
    raise ValueError(name)


def run(values: Mapping[str, Any]) -> int:
    """Print it: laid out for a terminal, one line for a pipe. The SDL of GraphQL is text, or a string where JSON or EDN
    is asked for."""
    name = values["format"] or "openai"
    reader = form(values)
    if name == "graphql":
        from psi.faces.graphql import sdl

        written = sdl().rstrip("\n")
        if values["edn"]:
            data(as_edn(written).encode())
        elif values["json"]:
            data(json.dumps(written).encode())
        else:
            text(written)
    elif reader == EDN:
        data(as_edn(described(name)).encode())
    else:
        data(json.dumps(described(name), indent=2 if reader == PEOPLE else None).encode())
    return OK
