"""The service as a process: opens psi, listens, says where to go, and ends cleanly. Answers no request itself.

first signal     no new connections; runs stop, each with its closure; sockets are told; whoever still hangs is let go
second signal    ends at once
time is up       ends, whatever still hangs: an agent that does not listen must not keep a machine from shutting down
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn

import psi
from psi.agents import Agent
from psi.core.session import Session
from psi.errors import Failed, PsiError
from psi.faces import logs
from psi.faces.app import App, create_app
from psi.faces.connections import Config, Http, Socket
from psi.faces.eql import depth_for
from psi.graph import Limits
from psi.runtime import Psi
from psi.settings import Settings, is_loopback
from psi.store import Credentials

__all__ = ["Server", "Unservable", "bind", "limits_for", "serve", "uvicorn_config"]

log = logging.getLogger("psi.faces.server")

OK, NOT_STARTED = 0, 1

# Seconds. Together they stay below the last, which is below the five that whoever stops a service waits for.
_FOR_RUNS: Final = 2.0
_FOR_SOCKETS: Final = 0.5
_FOR_CLIENTS: Final = 1.0
_AT_THE_LATEST: Final = 4.5

_USUAL_URL: Final = "http://127.0.0.1:8420"  # where the command line looks by itself

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Unservable(Failed):
    """The service cannot start; one sentence says why, and what would help."""

    code = "serve/failed"


class Server(uvicorn.Server):
    """uvicorn's server with another end: what it serves is closed first, then those who hang are let go."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        started: Callable[[], None] = lambda: None,
        closing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(config)
        self._told_started = started
        self._closing = closing
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Begin to end. From the loop's own thread, or from a signal handler through the loop."""
        self.should_exit = True
        self._stopping.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._told_started()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # sets the Date of answers, hence the second
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for each in sockets or ():
            each.close()
        if self._closing is not None:
            await self._closing()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._finished(_FOR_CLIENTS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()  # an upload that stands still, a reader that does not read
        await self._finished(_FOR_SOCKETS)
        for task in self.server_state.tasks:
            task.cancel()

    async def _finished(self, seconds: float) -> None:
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=seconds)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the process, not to the server; and raising them again after a clean end would spoil it."""
        yield


def uvicorn_config(app: App, settings: Settings) -> Config:
    return Config(
        app,
        head_timeout=settings.head_timeout,
        # Twice those that are served at once: the other half may idle between two requests, or be told to come later.
        most_connections=2 * settings.max_connections,
        host=settings.host,
        port=settings.port,
        http=Http,
        ws=Socket,
        # A session's socket takes images, once it is known whose they are.
        ws_max_size=max(settings.max_body, settings.max_message),
        most_of_a_stranger=settings.max_body,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        ws_per_message_deflate=False,  # shared bytes are sent to many; compressing each copy would undo that
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a header that anybody can send says nothing about who sends it
        timeout_keep_alive=75,
    )


def limits_for(settings: Settings) -> Limits:
    return Limits(max_depth=depth_for(settings), max_entities=settings.max_entities)


# -- before it listens


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there, or the reason why not."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as wrong:
        raise Unservable(
            f"host {host!r} is not known: {_reason(wrong)}; give an address of this machine, such as --host 127.0.0.1"
        ) from None
    # A name may stand for several addresses; the service has one, so that port 0 means one port.
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2_048)
        listening.setblocking(False)
    except OSError as wrong:
        listening.close()
        raise Unservable(_why_not(wrong, host, port)) from None
    return listening


def _why_not(wrong: OSError, host: str, port: int) -> str:
    match wrong.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} on {host} is in use; stop what listens there, or choose another with --port "
                "(0 takes a free one)"
            )
        case errno.EADDRNOTAVAIL:
            return f"host {host} is not an address of this machine; --host 127.0.0.1 always is"
        case errno.EACCES:
            return f"port {port} on {host} may not be taken by this user; choose one above 1023 with --port"
    return f"cannot listen on {host} port {port}: {_reason(wrong)}"


def _reason(wrong: Exception) -> str:
    return (wrong.strerror if isinstance(wrong, OSError) else None) or str(wrong)


def prepare(data: str) -> Path:
    """The data folder, for its owner alone where we create it, and one that can be written to."""
    folder = Path(data)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as wrong:
        raise Unservable(
            f"the data folder {data} cannot be written to: {_reason(wrong)}; choose another with --data"
        ) from None
    return folder


# -- the process


def serve(settings: Settings, *, agent: str | Agent | Callable[[Session], Agent] | None = None) -> int:
    """Run the service until it is told to stop; the exit code. ``agent``: one of a program's own, as ``Psi.open`` takes
    it, in place of the one that the settings name."""
    logs.set_up(settings.log_level)
    try:
        with (
            bind(settings.host, settings.port) as listening,
            _Ending() as ending,
            asyncio.Runner(loop_factory=_new_loop) as runner,
        ):
            folder = prepare(settings.data)  # only now: a service that cannot listen leaves no folder behind
            runner.run(_serve(settings, agent or settings.agent, folder, listening, ending))
    except PsiError as wrong:
        sys.stderr.write(f"psi cannot start: {wrong.message}\n")
        return NOT_STARTED
    _say("psi has stopped.\n")
    return OK


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not made for every system
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(settings: Settings, agent: Any, folder: Path, listening: socket.socket, ending: _Ending) -> None:
    async with contextlib.AsyncExitStack() as opened:
        credentials = opened.enter_context(Credentials.open(folder)) if settings.auth else None
        runtime = await opened.enter_async_context(
            Psi.open(folder, agent=agent, limits=limits_for(settings), timeout=settings.query_timeout, grace=_FOR_RUNS)
        )
        app = create_app(runtime, settings, credentials)
        server = Server(
            uvicorn_config(app, settings),
            started=lambda: _say(welcome(settings, *listening.getsockname()[:2])),
            closing=lambda: _close(runtime, app),
        )
        ending.begins_with(server)
        await server.serve(sockets=[listening])


async def _close(runtime: Psi, app: App) -> None:
    """Runs first, so that sockets still hear how they ended."""
    _say("Stopping. Ctrl-C once more ends it at once.\n")
    await runtime.close(_FOR_RUNS)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_FOR_SOCKETS):
            await app.close()


class _Ending:
    """Signals, as long as the process serves: the first one stops the server, the second one the process; and so does
    the clock."""

    def __init__(self) -> None:
        self._is_asked = False
        self._begin: Callable[[], object] = lambda: None
        self._watchdog = threading.Timer(_AT_THE_LATEST, _give_up)
        self._watchdog.daemon = True
        self._before: dict[signal.Signals, Any] = {}

    def begins_with(self, server: Server) -> None:
        loop = asyncio.get_running_loop()
        self._begin = lambda: loop.call_soon_threadsafe(server.stop)
        if self._is_asked:
            server.stop()

    def __enter__(self) -> _Ending:
        if threading.current_thread() is threading.main_thread():  # no other thread may
            self._before = {each: signal.signal(each, self._handle) for each in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        self._watchdog.cancel()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_asked:
            os._exit(128 + number)
        self._is_asked = True
        self._watchdog.start()
        self._begin()


def _give_up() -> None:
    log.error("something did not end in time and was left behind", extra={"seconds": _AT_THE_LATEST})
    os._exit(OK)


# -- what it says


def _say(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may be listening on standard output
        sys.stdout.write(text)
        sys.stdout.flush()


def welcome(settings: Settings, host: str, port: int) -> str:
    """Where to go next."""
    # A socket that listens everywhere has no address that one could go to.
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    place = f"[{reached}]:{port}" if ":" in reached else f"{reached}:{port}"
    url = f"http://{place}"
    command = _command()
    there = "" if url == _USUAL_URL else f" --url {url}"
    key = ' -H "Authorization: Bearer $PSI_TOKEN"' if settings.auth else ""
    request = '{"action": "session", "op": "create", "name": "First"}'
    lines = [
        f"psi {psi.__version__} is listening on {url}",
        *_reached_from(settings, host),
        "",
        f"  start page   {url}/",
        f"  GraphQL      {url}/graphql",
        f"               ws://{place}/graphql for subscriptions",
        f"  EQL          {url}/eql",
        f"  psi-tool     {url}/psi-tool",
        "",
    ]
    if settings.auth:
        lines += [
            "It asks for a token. Make one, once:",
            "",
            f"  export PSI_TOKEN=$({command} token create --plain --name me --data {shlex.quote(settings.data)})",
            "",
        ]
    lines += [
        "A first request, from another terminal:",
        "",
        f"  {command}{there} session create --name First",
        f"  curl {url}/psi-tool{key} -H 'Content-Type: application/json' -d '{request}'",
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join([*lines, ""])


def _reached_from(settings: Settings, host: str) -> list[str]:
    """Who else gets here, where that is more than this machine."""
    lines = []
    if host in ("0.0.0.0", "::"):
        lines.append("It listens on every address of this machine, so other machines reach it, too.")
    if not settings.auth and not is_loopback(host):
        lines.append("WARNING: it asks for no token; anybody on the network can use it, and do everything.")
    return lines


def _command() -> str:
    """psi-tool as it can be typed here: by its name where it is on the path, otherwise by where it is."""
    beside = Path(sys.executable).with_name("psi-tool")
    found = shutil.which("psi-tool")
    if found is not None or not beside.exists():
        return "psi-tool"
    with contextlib.suppress(ValueError):
        return str(beside.relative_to(Path.cwd()))
    return str(beside)
