from __future__ import annotations

import json

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
