"""/openapi.json says what is so: checked by hand where words are at stake, and by schemathesis against a service."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
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

# Which texts are queries, names of users or requests of psi-tool is not for a JSON schema to say; and psi-tool answers
# 200 with an envelope that says what is wrong. Everything else is held to all there is.
CONFIG = """
[[operations]]
include-name = "POST /psi-tool"
checks.negative_data_rejection.enabled = false
checks.positive_data_acceptance.enabled = false

[[operations]]
include-path = ["/eql", "/graphql", "/auth/tokens", "/login"]
checks.positive_data_acceptance.enabled = false
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

_UNBOUNDED = {"rate": 1e9, "burst": 1_000_000_000}


async def fuzz(served: Served, folder: Path, *more: str) -> None:
    """Let schemathesis loose on a service; whatever it finds is what the test says."""
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "schemathesis.cli", "--config-file", str(config), "run", f"{served.url}/openapi.json"),
        *("--seed", "7", "--warnings", "off", "--continue-on-failure", "--request-timeout", "10", "-w", "1"),
        # It never ends, and has tests of its own.
        *("--exclude-path", "/sessions/{session_id}/events"),
        *more,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.faces.fuzzing", "NO_COLOR": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    if process.returncode:
        raise AssertionError(said)


async def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    async with serving(Settings(**_UNBOUNDED, query_timeout=2.0), real_time=True) as served:  # type: ignore[arg-type]
        await fuzz(served, tmp_path, "--phases", "examples,coverage,fuzzing", "--max-examples", "5")


async def test_schemathesis_finds_nothing_where_a_token_is_needed(tmp_path: Path) -> None:
    settings = Settings(**_UNBOUNDED, query_timeout=2.0, auth=True)  # type: ignore[arg-type]
    with Credentials.open(tmp_path / "data") as credentials:
        made = credentials.create_token(now=datetime.now(UTC), user="ada", name="fuzz", scopes=("admin",), lasts=None)
        async with serving(settings, credentials=credentials, real_time=True) as served:
            key = ("-H", f"Authorization: Bearer {made.text}")
            await fuzz(served, tmp_path, *key, "--phases", "examples,coverage,fuzzing", "--max-examples", "20")


@pytest.mark.slow
async def test_schemathesis_finds_nothing_in_a_while(tmp_path: Path) -> None:
    async with serving(Settings(**_UNBOUNDED, query_timeout=2.0), real_time=True) as served:  # type: ignore[arg-type]
        await fuzz(served, tmp_path, "--max-examples", "150")
