"""The WebSocket of a session: frames out, messages in.

4004 no such session, or none of yours     4401 no or bad credentials     4008 too slow: come back for the rest
4403 the credentials do not allow it       1001 the service is going away

One task reads, one writes. A client that does not read holds up its own writer and nobody else.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from starlette.websockets import WebSocketDisconnect

from psi.core.commands import SubmitPrompt
from psi.core.config import shown
from psi.core.errors import Invalid, SessionNotFound
from psi.core.identity import Identity
from psi.errors import PsiError
from psi.faces.asked import told_once
from psi.faces.auth import COOKIE, Auth, Unauthenticated
from psi.faces.guard import TooManyRequests
from psi.faces.inputs import read_input
from psi.faces.rates import Rates
from psi.faces.sockets import GOING_AWAY, LARGEST, RAW, Closed, Line, text_head
from psi.faces.streams.seen import seen_in_address
from psi.faces.streams.stream import Frame, Gone, Seen, SessionStream, Texts, TooSlow
from psi.faces.uploads import Uploads
from psi.faces.welcome import Welcome
from psi.faces.wire import Unreadable, off_loop, read_json
from psi.service import Service
from psi.settings import Settings

__all__ = ["Connection"]

log = logging.getLogger("psi.streams")

_AT_ONCE: Final = 1 << 16  # bytes
_TOO_SLOW: Final = "too slow; connect again for what is missing"


class Connection:
    """One client of one session, from its handshake to its close."""

    def __init__(
        self, line: Line, service: Service, auth: Auth, settings: Settings, uploads: Uploads, texts: Texts
    ) -> None:
        self._line = line
        self._socket = socket = line.socket
        self._service = service
        self._auth = auth
        self._settings = settings
        self._uploads = uploads
        self._texts = texts
        self._session: str = socket.path_params["session_id"]
        self._sending = asyncio.Lock()
        self._misunderstood: Invalid | None = None  # in the address

    async def serve(self) -> None:
        await self._socket.accept()
        try:
            identity = await self._identity()
            caller = identity.caller(self._session)
            stream = SessionStream(self._service, caller, self._session, self._texts, self._seen())
            set_largest = self._socket.scope.get("extensions", {}).get(LARGEST)
            if set_largest is not None:
                set_largest(self._settings.max_message)
        except Closed as refused:
            await self._line.close(refused)
            return
        except SessionNotFound:
            await self._line.close(Closed(4004, "no such session"))
            return
        # Its writer may be held up right there.
        stream.when_too_slow(lambda: self._line.end(4008, _TOO_SLOW))
        try:
            async with asyncio.TaskGroup() as tasks:
                guard = self._line.look_after(self._auth, lambda: identity, 4401)
                work = [
                    tasks.create_task(each)
                    for each in (self._write(stream, identity), self._read(identity, stream), guard)
                ]
                closed = await self._line.ended
                for each in work:
                    each.cancel()
        finally:
            stream.close()
        await self._line.close(closed)

    # -- who

    async def _identity(self) -> Identity:
        """From the handshake, from the address, or from a first frame, so that a token need not stand in an address."""
        identity: Identity | None = self._socket.scope.get("psi.identity")
        tokens = self._socket.query_params.getlist("api_token")
        token = tokens[0] if tokens else None
        presented = COOKIE in self._socket.cookies or "authorization" in self._socket.headers
        if len(tokens) > 1 or (token is None and identity is None and presented):
            raise Closed(4401, "these credentials do not count")
        try:
            if token is not None:
                identity = self._auth.identify_token(token, identity.client if identity else "unknown")
            elif identity is None:
                async with asyncio.timeout(self._settings.init_timeout):
                    message = _object(await self._receive())
                if message.get("type") != "auth":
                    raise Closed(4401, "the first frame must be auth")
                identity = self._auth.identify_token(message.get("api_token"))
        except (Unauthenticated, TimeoutError, Unreadable):
            raise Closed(4401, "credentials are needed") from None
        if "read" not in identity.scopes:
            raise Closed(4403, "this token may not read")
        return identity

    def _seen(self) -> Seen | None:
        """What the address says that the client has. Where that is no sense it is told so, and gets everything: its
        address may be all that it knows, and a socket that is closed would be opened again with the same."""
        given = [each for each in self._socket.query_params.multi_items() if each[0] in ("run_id", "after")]
        try:
            return seen_in_address(told_once(given))
        except Invalid as wrong:
            self._misunderstood = wrong
            return None

    # -- out

    async def _write(self, stream: SessionStream, identity: Identity) -> None:
        welcome = Welcome(self._auth, identity, self._service.clock)
        try:
            if self._misunderstood is not None:
                await self._error(f"{self._misunderstood.message}; everything is told", "ws/invalid-parameter")
            async for frames in stream.batches():
                welcome.check()
                await self._send_all(frames)
            self._line.end(GOING_AWAY, "the service is going away")
        except Unauthenticated:
            self._line.end(4401, "these credentials count no more")
        except TooSlow:
            self._line.end(4008, _TOO_SLOW)
        except Gone:
            self._line.end(4004, "the session was closed")
        except (WebSocketDisconnect, RuntimeError, OSError):
            self._line.lost()

    async def _send_all(self, frames: list[Frame]) -> None:
        """As few writes as there can be, where the server takes them; each no larger than a client may have waiting."""
        write: Callable[[bytes], Awaitable[None]] | None = self._socket.scope.get("extensions", {}).get(RAW)
        if write is None:
            for frame in frames:
                await self._send(frame.text)
            return
        parts: list[bytes] = []
        size = 0
        async with self._sending:
            for frame in frames:
                parts += (text_head(len(frame.data)), frame.data)
                size += len(frame.data)
                if size > _AT_ONCE:
                    await write(b"".join(parts))
                    parts, size = [], 0
            if parts:
                await write(b"".join(parts))

    async def _send(self, text: str) -> None:
        async with self._sending:
            await self._socket.send({"type": "websocket.send", "text": text})

    async def _error(self, message: str, code: str) -> None:
        await self._send(orjson.dumps({"type": "error", "message": message, "code": code}).decode())

    # -- in

    async def _receive(self) -> str:
        message = await self._socket.receive()
        if message["type"] != "websocket.receive":
            raise Closed(0, "the client has gone")
        text = message.get("text")
        return text if text is not None else ""

    async def _read(self, identity: Identity, stream: SessionStream) -> None:
        try:
            while True:
                await self._take(await self._receive(), identity, stream)
        except Closed as closed:
            self._line.end(closed.code, closed.reason)
        except (WebSocketDisconnect, RuntimeError, OSError):
            self._line.lost()

    async def _take(self, text: str, identity: Identity, stream: SessionStream) -> None:
        rates: Rates | None = self._socket.scope.get("psi.rates")
        wait = rates.take(identity.client) if rates is not None else 0.0
        if wait:
            refused = TooManyRequests(wait)
            await self._error(refused.message, refused.code)
            return
        try:
            message = await off_loop(len(text), _object, text)
        except Unreadable as wrong:
            await self._error(wrong.message, "ws/not-json")
            return
        match message.get("type"):
            case "message":
                await self._message(message, len(text), identity, stream)
            case "auth":
                pass  # that was settled before; saying it again does no harm
            case other:
                await self._error(f"unknown frame type {json.dumps(other)[:60]}; accepted: message", "ws/unknown-type")

    async def _message(self, message: Mapping[str, Any], size: int, identity: Identity, stream: SessionStream) -> None:
        run: str | None = None
        stream.submits()
        try:
            identity = self._auth.still(identity)
            said = {key: value for key, value in message.items() if key != "type"}
            given = await off_loop(size, read_input, said, self._uploads, identity)
            command = SubmitPrompt(message=given.text, content=given.content, session=self._session)
            run = (await self._service.act(command, identity.caller(self._session))).id
        except Unauthenticated:
            raise Closed(4401, "these credentials count no more") from None
        except PsiError as error:
            await self._error(error.message, error.code)
        except Exception:
            log.exception("a message could not be taken")
            await self._error("something went wrong inside psi; its log says what", "psi/internal")
        finally:
            stream.submitted(run)


def _object(text: str) -> Mapping[str, Any]:
    found = read_json(text, "the frame")
    if not isinstance(found, Mapping):
        raise Unreadable(f"a frame is a JSON object, as text, got {shown(found)}")
    return found
