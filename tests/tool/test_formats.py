from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from psi.edn import loads
from tool.declarations import DESCRIPTION
from tool.formats import described
from tool.main import main
from tool.schema import json_schema

Said = pytest.CaptureFixture[str]

WHERE = {"openai": ("function", "parameters"), "anthropic": ("input_schema",), "mcp": ("inputSchema",)}


@pytest.mark.parametrize(("form", "path"), WHERE.items())
def test_a_provider_gets_the_schema_where_it_looks_for_it(form: str, path: tuple[str, ...], capsys: Said) -> None:
    assert main(["schema", "--format", form]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    tool = json.loads(said)
    assert tool == described(form)
    about = tool["function"] if form == "openai" else tool
    assert (about["name"], about["description"]) == ("psi-tool", DESCRIPTION)
    for key in path:
        tool = tool[key]
    assert tool == json_schema()


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all that are inside it, each with its place."""
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from schemas(below, f"{path}/{name}")
    if isinstance(schema.get("items"), dict):
        yield from schemas(schema["items"], f"{path}/[]")


@pytest.mark.parametrize(("form", "path"), WHERE.items())
def test_nothing_is_in_a_schema_that_some_provider_refuses_a_tool_for(form: str, path: tuple[str, ...]) -> None:
    tool = described(form)
    for key in path:
        tool = tool[key]
    for place, schema in schemas(tool):
        assert schema.get("type") in ("object", "array", "string", "integer", "boolean"), place
        assert not set(schema) & {"anyOf", "oneOf", "allOf", "not", "$ref", "const", "default"}, place
        if schema["type"] == "object":
            assert isinstance(schema.get("properties"), dict), place
            assert isinstance(schema.get("additionalProperties"), bool), place
        if schema["type"] == "array":
            assert isinstance(schema.get("items"), dict), place
        assert place == "" or schema.get("description"), place
        assert "enum" not in schema or len(set(schema["enum"])) == len(schema["enum"]) > 0, place


def test_a_model_is_not_told_that_it_may_leave_out_what_its_schema_requires() -> None:
    schema = json_schema()
    assert schema["required"] == ["action"]
    assert "no `action`" not in json.dumps(schema)


def test_openai_is_what_is_printed_where_nothing_is_said(capsys: Said) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "function"


def test_edn_has_keywords_for_keys(capsys: Said) -> None:
    assert main(["schema", "--format", "mcp", "--edn"]) == 0
    found = loads(capsys.readouterr().out)
    assert found["name"] == "psi-tool"
    assert found["inputSchema"]["required"] == ["action"]


def test_graphql_is_the_sdl(capsys: Said) -> None:
    from graphql import build_schema

    assert main(["schema", "--format", "graphql"]) == 0
    schema = build_schema(capsys.readouterr().out)
    assert schema.query_type is not None
    assert "sessions" in schema.query_type.fields


def test_it_is_a_string_where_json_or_edn_is_asked_for(capsys: Said) -> None:
    assert main(["schema", "--format", "graphql"]) == 0
    sdl = capsys.readouterr().out.rstrip("\n")
    assert main(["schema", "--format", "graphql", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == sdl
    assert main(["--edn", "schema", "--format", "graphql"]) == 0
    assert loads(capsys.readouterr().out) == sdl
