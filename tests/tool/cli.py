"""psi-tool as people and programs run it: a process, with pipes or in a terminal; and small servers to answer it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "MODULE",
    "Came",
    "Ended",
    "answering",
    "environment",
    "http",
    "in_terminal",
    "psi_tool",
    "start",
    "time_zone",
]

MODULE = (sys.executable, "-m", "tool.main")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@contextmanager
def time_zone(name: str) -> Iterator[None]:
    """This process in another zone: as in the variable TZ."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        del os.environ["TZ"]
        os.environ.update({} if before is None else {"TZ": before})
        time.tzset()


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str = ""

    def json(self) -> Any:
        """The answer, which has to be one line."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    @property
    def plain(self) -> str:
        """What a terminal showed, without its colours."""
        return _ANSI.sub("", self.out).replace("\r\n", "\n")


def environment(**more: str) -> dict[str, str]:
    """The environment without what could disturb: variables of psi, of colours and of width."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PSI_")}
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        ours.pop(name, None)
    return {**ours, "TERM": "xterm-256color", **more}


async def start(
    *arguments: str, env: Mapping[str, str] | None = None, command: tuple[str, ...] = MODULE, stdin: Any = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        stdin=stdin if stdin is not None else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env) if env is not None else environment(),
    )


async def psi_tool(
    *arguments: str,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    command: tuple[str, ...] = MODULE,
) -> Ended:
    """Run it to its end, with pipes."""
    pipe = asyncio.subprocess.PIPE if stdin is not None else None
    process = await start(*arguments, env=env, command=command, stdin=pipe)
    async with asyncio.timeout(60):
        out, err = await process.communicate(stdin)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@asynccontextmanager
async def in_terminal(
    *arguments: str,
    columns: int = 120,
    rows: int = 40,
    env: Mapping[str, str] | None = None,
    command: tuple[str, ...] = MODULE,
) -> AsyncIterator[Terminal]:
    """Run it in a terminal of its own, which is both its stdout and its stderr."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        stdin=its,
        stdout=its,
        stderr=its,
        env=dict(env) if env is not None else environment(),
        start_new_session=True,
    )
    os.close(its)
    terminal = Terminal(ours, process)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        terminal.close()


class Terminal:
    def __init__(self, file: int, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._file = file
        self._shown = b""
        self._news = asyncio.Event()
        self._open = True
        os.set_blocking(file, False)
        asyncio.get_running_loop().add_reader(file, self._read)

    def _read(self) -> None:
        try:
            found = os.read(self._file, 65_536)
        except BlockingIOError:
            return
        except OSError:  # how Linux says that nobody has the other end any more
            found = b""
        self._shown += found
        if not found:
            self._stop()
        self._news.set()

    def _stop(self) -> None:
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._file)

    def close(self) -> None:
        self._stop()
        os.close(self._file)

    async def shows(self, text: str) -> str:
        """Wait until the text has been shown; everything that was, without its colours."""
        async with asyncio.timeout(30):
            while text not in Ended(0, self._shown.decode("utf-8", "replace")).plain:
                assert self._open, self._shown.decode("utf-8", "replace")
                self._news.clear()
                await self._news.wait()
        return Ended(0, self._shown.decode()).plain

    def type(self, keys: str) -> None:
        os.write(self._file, keys.encode())

    async def ended(self) -> Ended:
        """Wait for the end."""
        async with asyncio.timeout(30):
            code = await self.process.wait()
            while self._open:
                self._news.clear()
                await self._news.wait()
        return Ended(code, self._shown.decode())


# -- servers that answer what a test wants


@dataclass(frozen=True)
class Came:
    """A request as it arrived."""

    line: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Answering:
    url: str
    came: list[Came]
    open_ones: set[asyncio.StreamWriter] = field(default_factory=set)

    def hang_up(self) -> None:
        for writer in self.open_ones:
            writer.close()


def http(status: int, body: bytes | str | Mapping[str, Any] = b"", **headers: str) -> bytes:
    """An HTTP answer."""
    content = (
        json.dumps(body).encode() if isinstance(body, Mapping) else body.encode() if isinstance(body, str) else body
    )
    named = {"content-length": str(len(content)), **{name.replace("_", "-"): text for name, text in headers.items()}}
    head = "".join(f"{name}: {text}\r\n" for name, text in named.items())
    return f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + content


@asynccontextmanager
async def answering(answer: bytes, *, reads: bool = True, stays: bool = False) -> AsyncIterator[Answering]:
    """A server that reads one request of each connection, or does not, and sends these bytes. ``stays``: it keeps the
    connection open until the other end goes."""
    found = Answering("", [])
    open_ones = found.open_ones

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            if reads:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                pairs = (line.partition(":") for line in head[1:] if line)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                found.came.append(Came(head[0], headers, body))
            writer.write(answer)
            await writer.drain()
            if stays:
                await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        open_ones.discard(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        found.hang_up()
        await server.wait_closed()
