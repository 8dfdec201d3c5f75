"""GraphQL over a WebSocket: the graphql-transport-ws protocol, and what it closes a connection for.

4400 not a message of the protocol     4408 no connection_init in time          1001 the service is going away
4401 subscribe before the connection   4409 the id is in use already
4403 the credentials are refused       4429 connection_init twice, or too many subscriptions
4406 another subprotocol

One task reads; one writes, and takes turns between the subscriptions that have something to say. A client that does not
read holds up its own writer and nobody else; and while too much waits for it, nothing more is taken from it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from graphql import OperationType
from starlette.websockets import WebSocketDisconnect

from psi.core.identity import Identity
from psi.errors import PsiError
from psi.faces.auth import Auth, Unauthenticated
from psi.faces.graphql.channels import Channels, Follower
from psi.faces.graphql.operations import Asked, BadRequest, Operations, Subscribed, errors, written
from psi.faces.metrics import Metrics
from psi.faces.rates import Rates
from psi.faces.sockets import LARGEST, Closed, Line
from psi.faces.welcome import Welcome
from psi.faces.wire import Unreadable, read_json
from psi.settings import Settings

__all__ = ["PROTOCOL", "Connection"]

log = logging.getLogger("psi.graphql")

PROTOCOL: Final = "graphql-transport-ws"

_AT_ONCE: Final = 4  # queries and mutations of one connection that are executed side by side
_MOST_WAITING: Final = 64  # operations that are not answered yet; then nothing more is read until one is
_MOST_UNSENT: Final = 1 << 20  # characters that may wait to be sent before nothing more is read
_MOST_ANSWERS: Final = 1_000


class _Stream:
    """One operation of a connection."""

    __slots__ = ("follower", "is_subscription", "name", "opening", "task")

    def __init__(self, name: str) -> None:
        self.name = name
        self.opening = f'{{"id":{json.dumps(name)},"type":"next","payload":'  # of every message that it is sent
        self.is_subscription = False
        self.follower: Follower | None = None
        self.task: asyncio.Task[None] | None = None


class Connection:
    """One client, from its handshake to its close."""

    def __init__(
        self,
        line: Line,
        operations: Operations,
        channels: Channels,
        auth: Auth,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._line = line
        self._socket = socket = line.socket
        self._operations = operations
        self._channels = channels
        self._auth = auth
        self._settings = settings
        self._metrics = metrics
        self._identity: Identity | None = socket.scope.get("psi.identity")
        self._session: str | None = socket.headers.get("psi-session")
        self._acknowledged = False
        self._initialised = False
        self._streams: dict[str, _Stream] = {}
        self._direct: deque[str] = deque()  # answers that belong to no subscription
        self._unsent = 0  # characters of them
        self._room = asyncio.Event()  # for more of them
        self._room.set()
        self._waiting = asyncio.Semaphore(_MOST_WAITING)
        self._running = asyncio.Semaphore(_AT_ONCE)
        self._welcome = Welcome(auth, self._identity, operations.clock)
        self._ready: deque[_Stream] = deque()
        self._sleeping: asyncio.Future[None] | None = None  # the writer, while it has nothing to do

    async def serve(self) -> None:
        if PROTOCOL not in self._socket.scope.get("subprotocols", ()):
            await self._socket.accept()
            await self._socket.close(4406, "Subprotocol not acceptable")
            return
        await self._socket.accept(subprotocol=PROTOCOL)
        set_largest = self._socket.scope.get("extensions", {}).get(LARGEST)
        if set_largest is not None:
            set_largest(self._settings.max_body)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                guard = self._line.look_after(self._auth, lambda: self._identity, 4403)
                work = [tasks.create_task(each) for each in (self._read(), self._write(), self._watch(), guard)]
                closed = await self._line.ended
                for each in work:
                    each.cancel()
                for stream in list(self._streams.values()):
                    self._drop(stream)
        finally:
            for stream in list(self._streams.values()):
                self._drop(stream)
        await self._line.close(closed)

    # -- reading

    async def _read(self) -> None:
        try:
            while True:
                await self._room.wait()
                message = await self._socket.receive()
                if message["type"] != "websocket.receive":
                    self._line.lost()
                    return
                text = message.get("text")
                if text is not None and len(text) > self._settings.max_body:
                    raise Closed(1009, f"Messages have at most {self._settings.max_body} bytes")
                await self._take(_message(text))
        except Closed as closed:
            self._line.end(closed.code, closed.reason)
        except (WebSocketDisconnect, RuntimeError):
            self._line.lost()

    async def _take(self, message: Mapping[str, Any]) -> None:
        match message.get("type"):
            case "connection_init":
                self._init(_payload(message) or {})
            case "ping":
                payload = _payload(message)
                self._send({"type": "pong", **({"payload": payload} if payload is not None else {})})
            case "pong":
                _payload(message)
            case "subscribe":
                await self._subscribe(message)
            case "complete":
                stream = self._streams.get(_id(message))
                if stream is not None:
                    self._drop(stream)
            case other:
                raise Closed(4400, f"Unknown message type {str(other)[:40]!r}")

    def _init(self, payload: Mapping[str, Any]) -> None:
        if self._initialised:
            raise Closed(4429, "Too many initialisation requests")
        self._initialised = True
        token = _token(payload)
        try:
            if token is not None:
                client = self._identity.client if self._identity is not None else "unknown"
                self._identity = self._auth.identify_token(token, client)
            if self._identity is None or "read" not in self._identity.scopes:
                raise Closed(4403, "Forbidden")
            self._welcome.identity = self._identity
        except Unauthenticated:
            raise Closed(4403, "Forbidden") from None
        session = payload.get("Psi-Session", payload.get("psi-session"))
        if session is not None:
            if not isinstance(session, str):
                raise Closed(4400, "Psi-Session must be a string")
            self._session = session
        self._acknowledged = True
        self._send({"type": "connection_ack"})

    async def _subscribe(self, message: Mapping[str, Any]) -> None:
        name = _id(message)
        if not self._acknowledged or self._identity is None:
            raise Closed(4401, "Unauthorized")
        try:
            self._identity = self._auth.still(self._identity)
        except Unauthenticated:
            raise Closed(4403, "Forbidden") from None
        if name in self._streams:
            raise Closed(4409, f"Subscriber for {name[:60]} already exists")
        rates: Rates | None = self._socket.scope.get("psi.rates")
        wait = rates.take(self._identity.client) if rates is not None else 0.0
        if wait:
            told = f"too many requests; try again in {wait:.1f} s"
            error = {"message": told, "extensions": {"code": "limit/rate", "retryAfter": round(wait, 3)}}
            self._send({"id": name, "type": "error", "payload": [error]})
            return
        try:
            asked = Asked.read(message.get("payload"))
        except BadRequest as bad:
            raise Closed(4400, str(bad)[:120]) from None
        await self._waiting.acquire()
        stream = self._streams[name] = _Stream(name)
        stream.task = self._tasks.create_task(self._operate(stream, asked))
        stream.task.add_done_callback(lambda _: self._waiting.release())

    # -- operations

    async def _operate(self, stream: _Stream, asked: Asked) -> None:
        assert self._identity is not None
        caller = self._identity.caller(self._session)
        try:
            self._operations.check(caller)
            prepared = self._operations.prepare(asked)
            if isinstance(prepared, list):
                self._fail(stream, errors(prepared))
            elif prepared.kind is OperationType.SUBSCRIPTION:
                self._count(stream)
                subscribed = await self._operations.subscribe(prepared, caller)
                if isinstance(subscribed, list):
                    self._fail(stream, errors(subscribed))
                else:
                    await self._follow(stream, subscribed)
            else:
                async with self._running:
                    await self._room.wait()
                    response = await self._operations.run(prepared, caller)
                if "data" in response:
                    self._next(stream, written(response).decode())
                    self._complete(stream)
                else:
                    self._fail(stream, response["errors"])
        except Closed as closed:
            self._line.end(closed.code, closed.reason)
        except PsiError as error:
            self._fail(stream, [{"message": error.message, "extensions": {"code": error.code}}])
        except Exception:
            log.exception("a GraphQL operation failed")
            told = "something went wrong inside psi; its log says what"
            self._fail(stream, [{"message": told, "extensions": {"code": "psi/internal"}}])

    def _count(self, stream: _Stream) -> None:
        most = self._settings.max_subscriptions
        if sum(each.is_subscription for each in self._streams.values()) >= most:
            raise Closed(4429, f"Too many subscriptions: at most {most} on one connection")
        stream.is_subscription = True

    async def _follow(self, stream: _Stream, subscribed: Subscribed) -> None:
        def ready() -> None:
            if stream.follower is not None:
                self._ready.append(stream)
                self._wake()

        follower = self._channels.follow(subscribed, self._settings.socket_queue, ready)
        self._metrics.subscriptions.inc()
        try:
            # Taken together now: what is lost from here on belongs to a later message.
            missed, follower.missed = (follower.missed, 0) if follower.backlog else (0, follower.missed)
            for told in follower.backlog:
                await self._room.wait()
                self._next(stream, await follower.payload(told.value), missed)
                missed = 0
        except BaseException:
            # Dropped meanwhile: nobody else knows this follower yet.
            self._metrics.subscriptions.dec()
            follower.leave()
            raise
        follower.backlog = ()
        stream.follower = follower
        stream.task = None
        for _ in range(len(follower) or follower.done):
            ready()

    def _drop(self, stream: _Stream) -> None:
        """Nothing more of it is sent, whatever is still on its way."""
        self._streams.pop(stream.name, None)
        if stream.task is not None:
            stream.task.cancel()
            stream.task = None
        if stream.follower is not None:
            self._metrics.subscriptions.dec()
            stream.follower.leave()
            stream.follower = None

    # -- writing

    def _send(self, message: Mapping[str, Any]) -> None:
        self._put(written(message).decode())

    def _put(self, text: str) -> None:
        self._direct.append(text)
        self._unsent += len(text)
        if self._unsent > _MOST_UNSENT or len(self._direct) > _MOST_ANSWERS:
            self._room.clear()
        self._wake()

    def _first(self) -> str:
        text = self._direct.popleft()
        self._unsent -= len(text)
        if self._unsent <= _MOST_UNSENT // 2 and len(self._direct) <= _MOST_ANSWERS // 2:
            self._room.set()
        return text

    def _wake(self) -> None:
        # A bare future and no Event, because this is done for every message to every subscriber.
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)
            self._sleeping = None

    def _next(self, stream: _Stream, payload: str, missed: int = 0) -> None:
        if self._streams.get(stream.name) is stream:
            self._put(_framed(stream, payload, missed))

    def _complete(self, stream: _Stream) -> None:
        if self._streams.pop(stream.name, None) is stream:
            self._send({"id": stream.name, "type": "complete"})

    def _fail(self, stream: _Stream, found: list[dict[str, Any]]) -> None:
        if self._streams.pop(stream.name, None) is stream:
            self._send({"id": stream.name, "type": "error", "payload": found})

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        send = self._socket.send
        messages = self._metrics.subscription_messages
        try:
            while True:
                while self._direct or self._ready:
                    self._welcome.check()
                    if self._direct:
                        await send({"type": "websocket.send", "text": self._first()})
                        continue
                    stream = self._ready.popleft()
                    follower = stream.follower
                    if follower is None:
                        continue
                    if len(follower):
                        payload, missed = follower.take()
                        if missed:
                            self._metrics.subscription_missed.inc(missed)
                        messages.inc()
                        await send({"type": "websocket.send", "text": _framed(stream, payload, missed)})
                    elif follower.done:
                        self._drop(stream)
                        self._send({"id": stream.name, "type": "complete"})
                self._sleeping = sleeping = loop.create_future()
                await sleeping
        except Unauthenticated:
            self._line.end(4403, "these credentials count no more")
        except (RuntimeError, WebSocketDisconnect, OSError):
            self._line.lost()

    # -- watching

    async def _watch(self) -> None:
        """Connections that never begin are closed."""
        await asyncio.sleep(self._settings.init_timeout)
        if not self._initialised:
            self._line.end(4408, "Connection initialisation timeout")


def _message(text: str | None) -> Mapping[str, Any]:
    try:
        found = read_json(text or "", "the message")
    except Unreadable as wrong:
        raise Closed(4400, wrong.message[:120]) from None
    if not isinstance(found, Mapping):
        raise Closed(4400, "Messages are JSON objects")
    return found


def _payload(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    payload = message.get("payload")
    if payload is not None and not isinstance(payload, Mapping):
        raise Closed(4400, f"The payload of {message['type']} must be an object")
    return payload


def _id(message: Mapping[str, Any]) -> str:
    name = message.get("id")
    if not isinstance(name, str) or not name:
        raise Closed(4400, "A message of this type needs an id")
    return name


def _token(payload: Mapping[str, Any]) -> str | None:
    """The token, however clients are used to send it."""
    for key in ("Authorization", "authorization", "token", "api_token"):
        value = payload.get(key)
        if isinstance(value, str):
            scheme, _, rest = value.partition(" ")
            return rest.strip() if scheme.lower() == "bearer" and rest else value
    return None


def _framed(stream: _Stream, payload: str, missed: int) -> str:
    """A ``next`` message around a payload that many share."""
    if missed:
        payload = f'{{"extensions":{{"missed":{missed}}},{payload[1:]}'
    return f"{stream.opening}{payload}}}"
