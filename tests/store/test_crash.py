"""A service that is killed at any moment: what it had acknowledged is there, once, and every turn has its one end."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faces.serving import Connection
from tests.faces.test_server import SERVE, Process, started

SESSIONS = 4

# Turns that are over at once, that last, that call a tool, and that fail: the kill falls into all of them.
PROMPTS = (
    "/say {0}",
    "/say {0}\n/wait 20ms\n/say on",
    '/say {0}\n/tool psi-tool {{"action": "session", "op": "list"}}\n/say on',
    "/say {0}\n/wait 5s",
    "/say {0}\n/fail no",
)


class Ledger:
    """What was said in each session, and what the service has confirmed of it."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}
        self.acknowledged: dict[str, list[str]] = {}
        self._count = 0

    def add(self, session: str) -> None:
        self.said[session] = []
        self.acknowledged[session] = []

    def next(self, session: str, chance: random.Random) -> str:
        self._count += 1
        text = chance.choice(PROMPTS).format(f"number {self._count}")
        self.said[session].append(text)
        return text


async def talk_until_it_dies(process: Process, session: str, ledger: Ledger, chance: random.Random) -> None:
    """Say one thing after the other; what lasts is stopped now and then."""
    try:
        async with process.connect() as connection:
            while True:
                text = ledger.next(session, chance)
                answer = await connection.request("POST", f"/sessions/{session}/messages", {"content": text})
                if answer.status == 202:
                    ledger.acknowledged[session].append(text)
                elif chance.random() < 0.5:
                    await connection.request("POST", f"/sessions/{session}/stop", {})
    except (OSError, asyncio.IncompleteReadError):
        return  # killed: whether the last one was taken, nobody knows


async def ask(connection: Connection, path: str) -> Any:
    answer = await connection.request("GET", path)
    assert answer.status == 200, answer.text
    return answer.json()


async def check(process: Process, ledger: Ledger) -> None:
    async with process.connect() as connection:
        for session, acknowledged in ledger.acknowledged.items():
            shown = await ask(connection, f"/sessions/{session}")
            assert (shown["phase"], shown["active_run_id"]) == ("idle", None)
            assert shown["pending_schedules"] == 0
            messages = shown["messages"]
            told = [message["content"] for message in messages if message["role"] == "user"]
            assert not Counter(told) - Counter(ledger.said[session]), "something was stored twice, or made up"
            missing = Counter(acknowledged) - Counter(told)
            assert not missing, missing
            # Each input is followed by the one closure of its own run, before anything else comes.
            assert len(messages) % 2 == 0
            for said, closure in zip(messages[::2], messages[1::2], strict=True):
                assert (said["role"], closure["role"]) == ("user", "assistant")
                assert said["run_id"] == closure["run_id"]
                assert closure["content"]
            runs = [message["run_id"] for message in messages[::2]]
            assert len(set(runs)) == len(runs)
            # What the sender was told stays in the order in which it was.
            places = [told.index(text) for text in acknowledged]
            assert places == sorted(places)


async def live_and_die(folder: Path, ledger: Ledger, chance: random.Random) -> None:
    """One life of the service: what was before is right, more is said, and it is killed somewhere in it."""
    async with started(*SERVE, "--data", str(folder)) as process:
        await check(process, ledger)
        while len(ledger.said) < SESSIONS:
            ledger.add(await process.session())
        for session in ledger.said:
            request = {"kind": "message", "message": "/say scheduled", "delay-ms": 60_000}
            made = await process.tool({"action": "scheduler", "op": "create", **request}, session)
            assert made["psi-tool/overall-status"] == "ok", json.dumps(made)
        talking = [asyncio.create_task(talk_until_it_dies(process, session, ledger, chance)) for session in ledger.said]
        await asyncio.sleep(chance.uniform(0.02, 0.4))  # real time on purpose: the kill may fall anywhere
        process.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*talking)
        await process.ended()


async def _rounds(folder: Path, count: int, seed: int) -> None:
    ledger, chance = Ledger(), random.Random(seed)
    for _ in range(count):
        await live_and_die(folder, ledger, chance)
    async with started(*SERVE, "--data", str(folder)) as process:
        await check(process, ledger)
        # And it goes on: every session takes a turn and answers it.
        async with process.connect() as connection:
            for session in ledger.said:
                path = f"/sessions/{session}/messages?wait=1"
                answer = (await connection.request("POST", path, {"content": "/say alive"})).json()
                assert (answer["state"], answer["answer"]) == ("ok", "alive")
    assert all(ledger.acknowledged.values())


async def test_a_service_that_is_killed_keeps_what_it_confirmed_and_closes_every_turn(tmp_path: Path) -> None:
    await _rounds(tmp_path, 3, seed=1)


@pytest.mark.parametrize("seed", range(2, 5))
async def test_a_service_that_is_killed_many_times_keeps_what_it_confirmed(tmp_path: Path, seed: int) -> None:
    await _rounds(tmp_path, 12, seed)
