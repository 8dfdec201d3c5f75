"""The curl commands of the pages about HTTP, sent to a service and held to the answers that stand below them.

Not by curl itself, which not every machine has: the few options that the pages use are read here. ``$SESSION`` is a
session called First.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from psi.edn import loads
from psi.faces.openapi import document
from psi.settings import Settings
from tests.docs.snippets import Block, blocks
from tests.faces.serving import Answer, Served, serving

DOCS = Path(__file__).resolve().parents[2] / "docs"
BASE = "http://127.0.0.1:8420"
PAGES = ("eql.md", "http.md")


class Curl(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str | None

    @classmethod
    def read(cls, command: str, session: str) -> Curl:
        words = iter(shlex.split(command.replace("\\\n", " ").replace("$SESSION", session)))
        assert next(words) == "curl"
        method, path, headers, body = None, "", {}, None
        for word in words:
            match word:
                case "-X":
                    method = next(words)
                case "-H":
                    name, _, value = next(words).partition(":")
                    headers[name.strip()] = value.strip()
                case "-d":
                    body = next(words)
                case _:
                    assert word.startswith(BASE), word
                    path = word.removeprefix(BASE)
        return cls(method or ("GET" if body is None else "POST"), path or "/", headers, body)


def said(block: Block, session: str) -> Any:
    text = block.source.replace("$SESSION", session)
    return loads(text) if block.info == "edn" else json.loads(text)


async def send(served: Served, command: str, session: str) -> Answer:
    return await served.request(*_parts(Curl.read(command, session)))


def _parts(curl: Curl) -> tuple[str, str, str | None, dict[str, str]]:
    return curl.method, curl.path, curl.body, curl.headers


@pytest.mark.parametrize("name", PAGES)
async def test_a_command_of_the_page_is_answered_as_the_page_says(name: str) -> None:
    compared = 0
    async with serving() as served:
        session = await served.session("First")
        answer: Answer | None = None
        for block in blocks((DOCS / name).read_text(encoding="utf-8")):
            if block.info == "sh":
                answer = await send(served, block.source, session)
            elif block.info in ("json", "edn") and block.follows and answer is not None:
                came = answer.json() if answer.type.endswith("json") else answer.edn()
                assert came == said(block, session), f"{name}:{block.line}: {answer.text}"
                compared += 1
                answer = None
    assert compared


def test_the_page_of_endpoints_has_them_all() -> None:
    page = (DOCS / "http.md").read_text(encoding="utf-8")
    endpoints = {(method.upper(), path) for path, found in document(Settings())["paths"].items() for method in found}
    rows = {(found[1], found[2]) for found in re.finditer(r"^\| `([A-Z]+) (/\S*)` \|", page, re.MULTILINE)}
    assert rows == endpoints


async def test_the_page_of_endpoints_names_every_number_of_the_service() -> None:
    page = (DOCS / "http.md").read_text(encoding="utf-8")
    async with serving() as served:
        text = (await served.get("/metrics")).text
    names = set(re.findall(r"^# TYPE (psi_\w+) ", text, re.MULTILINE))
    assert {name for name in names if not name.endswith("_created")} == set(
        re.findall(r"^\| `(psi_\w+)", page, re.MULTILINE)
    )
