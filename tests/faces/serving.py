"""A psi that is served: a real runtime, the real app, a real uvicorn on a free port of this machine, all on the test's
own event loop; and a small client that shows answers as they came.

    async with serving() as served:
        answer = await served.post("/eql", {"query": "[:psi.system/version]"})
        assert answer.status == 200
        assert answer.json() == {"psi.system/version": psi.__version__}
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from psi import Psi
from psi.agents import DemoAgent
from psi.core.clock import Clock
from psi.edn import loads
from psi.engine import SystemClock, VirtualClock
from psi.faces.app import App, create_app
from psi.faces.server import Server, bind, limits_for, uvicorn_config
from psi.settings import Settings
from psi.store import Credentials

__all__ = ["Answer", "Connection", "Served", "serving"]


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; names of headers in lower case, the last of each."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")

    def json(self) -> Any:
        return json.loads(self.body)

    def edn(self) -> Any:
        return loads(self.body)

    @property
    def type(self) -> str:
        """The media type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0]


class Connection:
    """One HTTP/1.1 connection, kept alive. Sends what it is told, however wrong that is."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self.reader = reader
        self.writer = writer
        self._host = host

    async def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """``body``: bytes and text go as they are, anything else as JSON."""
        await self.send(method, path, body, headers)
        return await self.answer(head_only=method == "HEAD")

    async def send(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        sent = {"host": self._host, **{name.lower(): value for name, value in (headers or {}).items()}}
        if isinstance(body, str):
            content = body.encode("utf-8", "surrogatepass")
        elif body is None or isinstance(body, bytes):
            content = body or b""
        else:
            content = json.dumps(body).encode()
            sent.setdefault("content-type", "application/json")
        if body is not None:
            sent.setdefault("content-length", str(len(content)))
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + content)
        await self.writer.drain()

    async def answer(self, *, head_only: bool = False) -> Answer:
        """The next answer that comes."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if head_only or status in (101, 204, 304):
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, await self._chunks())
        if "content-length" in headers:
            return Answer(status, headers, await self.reader.readexactly(int(headers["content-length"])))
        return Answer(status, headers, await self.reader.read())

    async def _chunks(self) -> bytes:
        found = b""
        while size := int((await self.reader.readline()).strip(), 16):
            found += await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()
        return found

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@dataclass(frozen=True)
class Served:
    """What a test has in its hands. ``clock``: moved by hand, unless the test has asked for the real one."""

    psi: Psi
    app: App
    server: Server
    settings: Settings
    port: int
    clock: Any
    credentials: Credentials | None = None
    headers: dict[str, str] = field(default_factory=dict)  # sent with every request of the short words below

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    @property
    def ws_url(self) -> str:
        return f"ws://{self.host}"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", self.port), self.host)
        try:
            yield connection
        finally:
            await connection.close()

    async def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own."""
        async with self.connect() as connection:
            return await connection.request(method, path, body, {**self.headers, **(headers or {})})

    async def get(self, path: str, **headers: str) -> Answer:
        """Headers as keywords: ``accept="application/edn"``, ``psi_session=...``."""
        return await self.request("GET", path, headers=_named(headers))

    async def post(self, path: str, body: Any = b"", **headers: str) -> Answer:
        return await self.request("POST", path, body, _named(headers))

    async def tool(self, request: Any, session: str | None = None) -> dict[str, Any]:
        """The envelope of a psi-tool request."""
        found: dict[str, Any] = (
            await self.post("/psi-tool", request, **({} if session is None else {"psi_session": session}))
        ).json()
        return found

    async def session(self, name: str = "First", **more: Any) -> str:
        """The id of a fresh session."""
        answer = await self.tool({"action": "session", "op": "create", "name": name, **more})
        found: str = answer["psi-tool/session"]["session"]["session-id"]
        return found


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def serving(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    real_time: bool = False,
    agent: Any = None,
    credentials: Credentials | None = None,
    token: str | None = None,
    config: Callable[[App, Settings], uvicorn.Config] = uvicorn_config,
    **more: Any,
) -> AsyncIterator[Served]:
    """Open psi and serve it until the block ends. ``more`` goes to ``Psi.open``; ``token``: sent with each request."""
    settings = settings or Settings()
    clock = clock or (SystemClock() if real_time else VirtualClock())
    more.setdefault("limits", limits_for(settings))
    more.setdefault("timeout", settings.query_timeout)
    async with Psi.open(clock=clock, agent=agent or DemoAgent(), **more) as psi:
        app = create_app(psi, settings, credentials)
        listening: socket.socket = bind("127.0.0.1", 0)
        port = listening.getsockname()[1]
        ready = asyncio.Event()

        async def closing() -> None:
            await psi.close()
            await app.close()

        server = Server(config(app, settings), started=ready.set, closing=closing)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # Not in a task group: what a test finds wrong shall come out as it is.
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await ready.wait()
            yield Served(psi, app, server, settings, port, clock, credentials, headers)
        finally:
            server.stop()
            await running
