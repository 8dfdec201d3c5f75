"""/openapi.json says what is so: checked by hand where words are at stake, and by schemathesis against a service."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from starlette.routing import Route

from psi.faces.guard import PUBLIC
from psi.faces.openapi import document
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Served, serving
from tool.schema import json_schema

ROOT = Path(__file__).resolve().parents[2]

# Which texts are queries, which attributes they may name, and which characters can be printed is not for a JSON schema
# to say. Everything else is held to all there is.
CONFIG = """
[[operations]]
include-path = ["/eql", "/auth/tokens"]
checks.positive_data_acceptance.enabled = false
"""

# Where bodies are EDN, all that the document says is that they are texts.
EDN_CONFIG = """
checks.positive_data_acceptance.enabled = false
checks.negative_data_rejection.enabled = false
"""


def operations(found: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


DOCUMENT = document(Settings())
OPERATIONS = [pytest.param(*each, id=f"{each[1]} {each[0]}") for each in operations(DOCUMENT)]


async def test_it_is_served_to_everybody_as_json() -> None:
    async with serving(Settings(auth=True)) as served:
        answer = await served.get("/openapi.json")
        assert (answer.status, answer.type) == (200, "application/json")
        assert answer.json() == document(Settings(auth=True))


async def test_every_route_is_described_with_its_methods_and_nothing_else_is() -> None:
    async with serving() as served:
        routes = {
            (route.path, method)
            for route in served.app.routes
            if isinstance(route, Route)
            for method in set(route.methods or ()) - {"HEAD"}
        }
    assert routes == {(path, method) for path, method, _ in operations(DOCUMENT)}


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_what_is_public_is_what_the_guard_lets_everybody_in_to(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    assert (operation.get("security") == []) == (path in PUBLIC)
    assert ("401" in operation["responses"]) == (path not in PUBLIC or method == "POST")


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_an_operation_has_a_name_words_and_the_refusals_that_all_have(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    assert operation["operationId"]
    assert operation["summary"]
    assert {"403", "413", "429", "503"} <= operation["responses"].keys()
    if method == "POST" and "requestBody" in operation:
        assert {"400", "415"} <= operation["responses"].keys()


def test_the_names_of_operations_are_told_apart() -> None:
    names = [operation["operationId"] for _, _, operation in operations(DOCUMENT)]
    assert len(set(names)) == len(names)


def examples(value: Any) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every media type that has a schema and an example."""
    if isinstance(value, dict):
        if "schema" in value:
            if "example" in value:
                yield value["schema"], value["example"]
            for each in value.get("examples", {}).values():
                yield value["schema"], each["value"]
        for below in value.values():
            yield from examples(below)
    elif isinstance(value, list):
        for below in value:
            yield from examples(below)


def test_every_example_is_what_its_schema_says() -> None:
    found = list(examples(DOCUMENT["paths"]))
    assert len(found) > 20
    for schema, example in found:
        jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]}).validate(example)


def test_a_psi_tool_request_is_described_as_agents_have_it() -> None:
    described = DOCUMENT["components"]["schemas"]["PsiToolRequest"]
    assert {key: described[key] for key in json_schema()} == json_schema()


def test_the_limits_are_those_of_the_settings() -> None:
    said = document(Settings(max_body=2_048, max_entities=777, burst=99))["info"]["description"]
    for words in ("2048 bytes", "777 entities", "99 requests at once"):
        assert words in said


def test_with_auth_on_nobody_is_let_in_without_a_token() -> None:
    assert {} in DOCUMENT["security"]
    assert {} not in document(Settings(auth=True))["security"]


# -- schemathesis

_STREAM = "/sessions/{session_id}/events"


async def fuzz(served: Served, folder: Path, *more: str, config: str = CONFIG, hooks: str = "") -> None:
    """Let schemathesis loose on a service; whatever it finds is what the test says."""
    file = folder / "schemathesis.toml"
    file.write_text(config, encoding="utf-8")
    hooked = {"PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": hooks} if hooks else {}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "schemathesis.cli", "--config-file", str(file), "run", f"{served.url}/openapi.json"),
        *("--seed", "7", "--warnings", "off", "--continue-on-failure", "-w", "1"),
        *more,
        cwd=folder,
        env={**os.environ, **hooked, "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    if process.returncode:
        raise AssertionError(said)


@asynccontextmanager
async def fuzzed(folder: Path, **more: Any) -> AsyncIterator[Served]:
    """A service that nothing slows down and that keeps files."""
    data = folder / "psi"
    settings = Settings(rate=1e9, burst=1_000_000_000, query_timeout=2.0, data=str(data), auth="credentials" in more)
    async with serving(settings, data=data, real_time=True, **more) as served:
        yield served


# A stream never ends, so each one takes as long as it is waited for.
_ALL_BUT_STREAMS = ("--exclude-path", _STREAM, "--request-timeout", "10")
_STREAMS = ("--include-path", _STREAM, "--request-timeout", "0.2")
_IN_EDN = ("--include-path-regex", "^/(eql|psi-tool|login|auth/tokens)$", "--request-timeout", "10")
_PHASES = ("--phases", "examples,coverage,fuzzing")
HOOKS = "tests.faces.fuzzing"


async def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    async with fuzzed(tmp_path) as served:
        await fuzz(served, tmp_path, *_ALL_BUT_STREAMS, *_PHASES, "--max-examples", "5")


async def test_schemathesis_finds_nothing_in_edn(tmp_path: Path) -> None:
    async with fuzzed(tmp_path) as served:
        await fuzz(served, tmp_path, *_IN_EDN, *_PHASES, "--max-examples", "10", config=EDN_CONFIG, hooks=HOOKS)


async def test_schemathesis_finds_nothing_where_it_is_streamed(tmp_path: Path) -> None:
    async with fuzzed(tmp_path) as served:
        there = f'[parameters]\nsession_id = "{await served.session()}"\n'
        await fuzz(served, tmp_path, *_STREAMS, *_PHASES, "--max-examples", "20", config=there)


@pytest.mark.slow
async def test_schemathesis_finds_nothing_where_a_token_is_needed(tmp_path: Path) -> None:
    with Credentials.open(tmp_path / "data") as credentials:
        made = credentials.create_token(now=datetime.now(UTC), user="ada", name="fuzz", scopes=("admin",), lasts=None)
        async with fuzzed(tmp_path, credentials=credentials) as served:
            key = ("-H", f"Authorization: Bearer {made.text}")
            await fuzz(served, tmp_path, *key, *_ALL_BUT_STREAMS, *_PHASES, "--max-examples", "20")
            await fuzz(
                served, tmp_path, *key, *_IN_EDN, *_PHASES, "--max-examples", "20", config=EDN_CONFIG, hooks=HOOKS
            )


@pytest.mark.slow
async def test_schemathesis_finds_nothing_in_a_while(tmp_path: Path) -> None:
    async with fuzzed(tmp_path) as served:
        await fuzz(served, tmp_path, *_ALL_BUT_STREAMS, "--max-examples", "150")
        await fuzz(served, tmp_path, *_IN_EDN, "--max-examples", "150", config=EDN_CONFIG, hooks=HOOKS)
        await fuzz(served, tmp_path, *_STREAMS, "--max-examples", "150")
