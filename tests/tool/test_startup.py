"""A request starts quickly: what it imports is argparse, json and a socket, and nothing that is heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tool.cli import answering, environment, http, psi_tool

ENVELOPE = {"psi-tool/action": "session", "psi-tool/overall-status": "ok", "psi-tool/duration-ms": 0}
OWN = {"tool", "tool.main", "tool.arguments", "tool.commands", "tool.ask", "tool.client", "tool.output"}

# Prints what was imported, as the last line.
COUNTED = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
import runpy
runpy.run_module("tool.main", run_name="__main__")
"""


def allowed() -> set[str]:
    """What the three and what they import bring with them, in this Python."""
    code = "import argparse, http.client, json, runpy, atexit, sys; print(json.dumps(sorted(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    return set(json.loads(said.stdout))


LINES = {
    "a command": ["scheduler", "create", "--kind", "message", "--delay-ms", "1000", "--message", "x"],
    "a raw request": ['{:action "session" :op "list"}'],
    "a query": ["query", "[:a]", "--entity", '{"a": 1}'],
    "EDN": ["session", "list", "--edn"],
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
async def test_a_request_imports_argparse_json_and_http_at_the_most(line: list[str]) -> None:
    body = "{:psi-tool/overall-status :ok}" if "--edn" in line else json.dumps(ENVELOPE)
    async with answering(http(200, body)) as server:
        said = await psi_tool(
            *line,
            env=environment(PSI_URL=server.url, PSI_SESSION="ses-1", PSI_TOKEN="psi_x"),
            command=(sys.executable, "-c", COUNTED),
        )
    assert said.code == 0, said.err
    imported = set(json.loads(said.err.splitlines()[-1]))
    beyond = {name for name in imported - allowed() - OWN if not name.startswith(("_", "encodings."))}
    # gettext, which argparse asks for its words, looks for their language when there is one.
    assert beyond - {"locale"} == set()
    assert not imported & {"psi", "typing", "dataclasses", "inspect", "asyncio", "rich", "pathlib", "shutil"}


async def test_the_installed_command_and_the_module_are_the_same() -> None:
    installed = Path(sys.executable).with_name("psi-tool")
    if not installed.exists():
        pytest.skip(f"psi-tool is not installed beside {sys.executable}")
    by_name = await psi_tool("schema", command=(str(installed),))
    by_module = await psi_tool("schema")
    assert by_name == by_module
    assert by_name.code == 0
