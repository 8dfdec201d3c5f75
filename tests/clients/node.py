"""Programs of clients as processes of the tests: started, read from, let go on. Says whether Node can be; installs
nothing."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Script", "needs_node", "node", "running"]

HERE = Path(__file__).resolve().parent
_PATIENCE = 20  # seconds for one line; a machine that is busy starts Node slowly


def _missing() -> str:
    if shutil.which("node") is None:
        return "Node is not installed, so the npm client graphql-ws cannot be tried"
    wanted = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for name, version in wanted.items():
        found = HERE / "node_modules" / name / "package.json"
        if not found.exists() or json.loads(found.read_text(encoding="utf-8"))["version"] != version:
            return f"the npm package {name} {version} is not installed; `make clients` fetches it where npm can"
    return ""


needs_node = pytest.mark.skipif(bool(_missing()), reason=_missing() or "everything is there")


class Script:
    """A script that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self) -> str | None:
        """What it tells next, as it is; None at the end."""
        assert self._process.stdout is not None
        async with asyncio.timeout(_PATIENCE):
            found = await self._process.stdout.readline()
        return found.decode().rstrip("\n") if found else None

    async def told(self) -> Any:
        """What it tells next."""
        line = await self.line()
        assert line is not None, f"the script has ended: {await self.complaints()}"
        return json.loads(line)

    async def rest(self) -> list[Any]:
        """What it tells until it ends, which it must do well."""
        found = []
        while (line := await self.line()) is not None:
            found.append(json.loads(line))
        complaints = await self.complaints()
        assert await self._process.wait() == 0, complaints
        return found

    async def complaint(self) -> str:
        """What it complains about next."""
        assert self._process.stderr is not None
        async with asyncio.timeout(_PATIENCE):
            return (await self._process.stderr.readline()).decode().rstrip("\n")

    async def code(self) -> int:
        """How it ends."""
        async with asyncio.timeout(_PATIENCE):
            return await self._process.wait()

    async def complaints(self) -> str:
        assert self._process.stderr is not None
        return (await self._process.stderr.read()).decode()

    async def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()


def node(*arguments: str) -> AbstractAsyncContextManager[Script]:
    return running("node", *arguments)


@asynccontextmanager
async def running(*command: str, **environment: str) -> AsyncIterator[Script]:
    """Run a program in the folder where the npm packages are."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=HERE,
        env={**os.environ, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Script(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()  # closes its pipes, too
