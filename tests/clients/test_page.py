"""docs/graphql.md cannot lie: what it asks is asked of a served psi, and its programs are run, as they stand there."""

from __future__ import annotations

import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from graphql import build_schema
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from psi.core.commands import Caller, CancelSchedule, CreateSchedule
from psi.faces.graphql import sdl
from tests.clients.detour import detour
from tests.clients.node import needs_node, running
from tests.docs.snippets import blocks
from tests.faces.serving import Served, serving
from tests.faces.test_docs import send

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graphql.md"
BLOCKS = list(blocks(PAGE.read_text(encoding="utf-8")))
PLACE = "127.0.0.1:8420"


def fits(came: Any, said: Any) -> bool:
    """Equal; text that ends with … stands for any that begins so."""
    if isinstance(said, dict) and isinstance(came, dict):
        return said.keys() == came.keys() and all(fits(came[key], said[key]) for key in said)
    if isinstance(said, list) and isinstance(came, list):
        return len(said) == len(came) and all(map(fits, came, said))
    if isinstance(said, str) and said.endswith("…"):
        return isinstance(came, str) and came.startswith(said[:-1])
    return bool(came == said)


async def first_of(served: Served, query: str) -> Any:
    """The first payload of a subscription."""
    async with connect(f"{served.ws_url}/graphql", subprotocols=[Subprotocol("graphql-transport-ws")]) as socket:
        for message in ({"type": "connection_init"}, {"id": "1", "type": "subscribe", "payload": {"query": query}}):
            await socket.send(json.dumps(message))
        while (message := json.loads(await socket.recv()))["type"] == "connection_ack":
            pass
        return message["payload"]


async def test_whatever_the_page_asks_is_answered_as_it_says() -> None:
    compared = 0
    async with serving() as served:
        session = await served.session("First")
        for block, after in pairwise(BLOCKS):
            if block.info not in ("graphql", "sh"):
                continue
            assert after.info == "json", f"{PAGE.name}:{block.line}: nothing says what this is answered with"
            query = block.source.replace("$SESSION", session)
            if block.info == "sh":
                came = (await send(served, block.source, session)).json()
            elif query.startswith("subscription"):
                came = await first_of(served, query)
            else:
                came = (await served.post("/graphql", {"query": query})).json()
            said = json.loads(after.source.replace("$SESSION", session))
            assert fits(came, said), f"{PAGE.name}:{block.line}: {json.dumps(came)}"
            compared += 1
    assert compared


def test_the_part_of_the_schema_that_the_page_shows_is_in_the_schema() -> None:
    [shown] = [block for block in BLOCKS if block.info == "graphql no-run"]
    lines = [line for line in shown.source.splitlines() if "@attribute" in line]
    assert lines
    assert [line for line in lines if line not in sdl().splitlines()] == []


def test_every_subscription_with_events_and_every_close_code_stands_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    fields = build_schema(sdl()).subscription_type
    assert fields is not None
    of_events = {
        name for name, field in fields.fields.items() if not str(field.description).startswith(("Live:", "An EQL"))
    }
    assert of_events == set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE))
    docstring = (PAGE.parents[1] / "psi/faces/graphql/socket.py").read_text(encoding="utf-8").split('"""')[1]
    assert set(re.findall(r"\b(?:44\d\d|1001)\b", docstring)) == set(re.findall(r"^\| (\d{4}) \|", page, re.MULTILINE))


# -- the two programs


def program(name: str) -> tuple[str, list[str]]:
    """The block that begins with the name of this file, and what the page says it prints."""
    [found] = [block for block in BLOCKS if name in block.source.partition("\n")[0]]
    [printed] = [block for block in BLOCKS if block.info == "text"]
    return found.source, printed.source.splitlines()


def command(name: str, port: int) -> list[str]:
    code = program(name)[0].replace(PLACE, f"127.0.0.1:{port}")
    return [sys.executable, "-c", code] if name.endswith(".py") else ["node", "--input-type=module", "--eval", code]


PROGRAMS = [pytest.param("follow.mjs", marks=needs_node), "follow.py"]


@pytest.mark.parametrize("name", PROGRAMS)
async def test_the_program_on_the_page_prints_what_the_page_says(name: str) -> None:
    said = program(name)[1]
    async with serving() as served:
        session = await served.session("First")
        act, caller = served.psi.service.act, Caller(session)
        made = await act(CreateSchedule(kind="message", message="look", delay_ms=60_000), caller)
        async with running(*command(name, served.port), PSI_SESSION=session) as script:
            printed = [await script.line() for _ in said[:-1]]
            await act(CancelSchedule(schedule_id=made.id), caller)  # the rest happens while it listens
            assert [*printed, await script.line()] == said


@pytest.mark.parametrize("is_refused", [False, True], ids=["was closed", "was closed and others refused"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_the_program_on_the_page_comes_back_after_the_socket(name: str, is_refused: bool) -> None:
    said = program(name)[1]
    async with serving() as served, detour(served.port) as way:
        session = await served.session("First")
        act, caller = served.psi.service.act, Caller(session)
        async with running(*command(name, way.port), PSI_SESSION=session) as script:
            assert await script.line() == said[0]
            await way.close()
            if is_refused:
                # It says so before each attempt or after it; by the second time one has failed.
                assert [await script.complaint() for _ in range(2)] == ["trying again"] * 2
            await way.open()
            made = await act(CreateSchedule(kind="message", message="look", delay_ms=60_000), caller)
            assert await script.line() == said[1]
            await act(CancelSchedule(schedule_id=made.id), caller)
            assert await script.line() == said[2]
