"""What every WebSocket of ours has: an end that anybody may bring about, and somebody who looks whether it may stay.

Knows no protocol; that is :mod:`psi.faces.graphql.socket` and :mod:`psi.faces.streams.socket`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from psi.core.identity import Identity
from psi.errors import PsiError
from psi.faces.auth import Auth, Unauthenticated

__all__ = ["ABORT", "GOING_AWAY", "LARGEST", "RAW", "Closed", "Line", "Lines", "text_head"]

log = logging.getLogger("psi.sockets")

GOING_AWAY: Final = 1001

# The name under which our server offers to take bytes that are frames already; another server does not.
RAW: Final = "psi.frames"
ABORT: Final = "psi.abort"  # likewise: cuts the connection of a request, whatever is still to be sent
LARGEST: Final = "psi.largest"  # sets how large a message may be, once it is known who sends it
_RECHECK: Final = 30.0  # seconds between two looks at whether the credentials of an open socket still count


def text_head(size: int) -> bytes:
    """What stands before a text of so many bytes in a frame that a server sends (RFC 6455, 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


class Closed(Exception):
    """The connection is to be closed, with this code and reason. Without a code the client has gone already."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Line:
    """A socket that is open until somebody ends it."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.ended: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()

    def end(self, code: int, reason: str) -> None:
        """Bring it to its end from our side; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(Closed(code, reason))

    def lost(self) -> None:
        """The client has gone."""
        self.end(0, "the client has gone")

    async def close(self, closed: Closed) -> None:
        if not closed.code:
            return
        try:
            async with asyncio.timeout(1):
                await self.socket.close(closed.code, closed.reason)
        except (TimeoutError, RuntimeError, WebSocketDisconnect, OSError):
            log.debug("a socket was gone before it could be closed")

    async def look_after(self, auth: Auth, identity: Callable[[], Identity | None], code: int) -> None:
        """End it when the credentials behind it do."""
        while True:
            await asyncio.sleep(_RECHECK)
            try:
                known = identity()
                if known is not None:
                    auth.still(known)
            except Unauthenticated:
                self.end(code, "these credentials count no more")
                return
            except PsiError as unknown:
                log.warning("whether a socket may stay open could not be found out", exc_info=unknown)


class Lines:
    """The lines of one face."""

    def __init__(self) -> None:
        self._open: set[Line] = set()
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def opened(self, socket: WebSocket) -> Iterator[Line]:
        line = Line(socket)
        self._open.add(line)
        self._none.clear()
        try:
            yield line
        finally:
            self._open.discard(line)
            if not self._open:
                self._none.set()

    async def close(self) -> None:
        """Every client is told that the service goes."""
        for line in self._open:
            line.end(GOING_AWAY, "the service is going away")
        await self._none.wait()
