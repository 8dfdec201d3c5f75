"""Many subscribers at once, in a process of their own: ``python -m tests.benchmarks.crowd``. Measures; decides nothing.

The smallest WebSocket client that does, so that what is measured is the service and not this: frames are compared as
bytes, and each is read only once, however many get it. Orders come as lines of JSON on standard input, and each is
answered by a line:

    {"do": "join", "port": 8420, "count": 1000, "query": "subscription …"}     {"joined": 1000}
    {"do": "join", …, "reads": false}           the same, and read nothing before `wake`
    {"do": "count", "published": {key: ns}}     what has come since the last count, in milliseconds since publishing
    {"do": "wake", "published": 100}            those who did not read do: what they got, and what they missed
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import json
import os
import resource
import socket
import struct
import sys
from time import monotonic_ns
from typing import Any, Final

import uvloop

__all__ = ["main"]

_TEXT: Final = 1
_CLOSE: Final = 8
_PING: Final = 9
_PONG: Final = 10

_AT_ONCE: Final = 100  # handshakes under way
_PATIENCE: Final = 20.0  # seconds for what should have come long ago
_STUCK_BUFFER: Final = 4_096  # bytes that the kernel may keep for those who do not read


class Crowd:
    """Everybody who follows, and when which frame came to how many."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.stuck: list[Member] = []
        self.frames: dict[bytes, int] = {}  # each different frame, by the place of its first coming
        self.arrived: list[tuple[int, int]] = []  # which frame, when; one for each coming
        self.progress = asyncio.Event()

    async def join(self, port: int, count: int, query: str, reads: bool) -> int:
        room = asyncio.Semaphore(_AT_ONCE)

        async def one() -> Member:
            async with room:
                member = Member(self, port, query)
                await _connected(member, port, small=not reads)
                await member.is_following
                return member

        joined = await asyncio.gather(*(one() for _ in range(count)))
        if reads:
            self.members += joined
        else:
            self.stuck += joined
            for member in joined:
                member.transport.pause_reading()
        return len(joined)

    async def count(self, published: dict[str, int]) -> dict[str, Any]:
        """What came of these events; keys are ``schedule-id status``."""
        expected = len(published) * len(self.members)
        late = False
        try:
            async with asyncio.timeout(_PATIENCE):
                while len(self.arrived) < expected:
                    self.progress.clear()
                    await self.progress.wait()
        except TimeoutError:
            late = True
        keys = {place: _key(frame) for frame, place in self.frames.items()}
        latencies = sorted(
            (when - published[keys[place]]) / 1e6 for place, when in self.arrived if keys[place] in published
        )
        places = {key: place for place, key in keys.items()}
        in_order = [places.get(key, -1) for key in published]
        wrong = sum(member.got != in_order for member in self.members)
        result = {
            "messages": len(self.arrived),
            "expected": expected,
            "complete": not late,
            "wrong": wrong,  # members who did not get each event once, in order
            "gone": sum(member.closed for member in self.members),
            "p50": _quantile(latencies, 0.50),
            "p99": _quantile(latencies, 0.99),
            "worst": latencies[-1] if latencies else None,
            "last": max((when for _, when in self.arrived), default=0),
        }
        self.frames.clear()
        self.arrived.clear()
        for member in self.members:
            member.got.clear()
        gc.collect()
        return result

    async def wake(self, published: int) -> dict[str, Any]:
        """Let those read who did not; what each got and what it was told to have missed has to add up."""
        self.frames.clear()
        for member in self.stuck:
            member.transport.resume_reading()
        counts: list[tuple[int, int]] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while True:
                    self.progress.clear()
                    missed = {place: _missed(frame) for frame, place in self.frames.items()}
                    counts = [(len(each.got), sum(missed[place] for place in each.got)) for each in self.stuck]
                    if all(sum(each) >= published for each in counts):
                        break
                    await self.progress.wait()
        return {
            "complete": all(sum(each) == published for each in counts),
            "got": min(got for got, _ in counts),
            "missed": max(missed for _, missed in counts),
        }


class Member(asyncio.Protocol):
    """One subscriber: greets, subscribes, and notes what comes."""

    def __init__(self, crowd: Crowd, port: int, query: str) -> None:
        self._crowd = crowd
        self._port = port
        self._query = query
        self._rest = b""
        self._is_open = False
        self.got: list[int] = []
        self.closed = False
        self.is_following: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n".encode()
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if not self.is_following.done():
            self.is_following.set_exception(ConnectionError(f"closed before it was subscribed: {exc}"))

    def data_received(self, data: bytes) -> None:
        when = monotonic_ns()
        if self._rest:
            data = self._rest + data
        place = 0
        if not self._is_open:
            place = data.find(b"\r\n\r\n") + 4
            if place < 4:
                self._rest = data
                return
            if not data.startswith(b"HTTP/1.1 101"):
                self.transport.abort()
                return
            self._is_open = True
            self._say({"type": "connection_init"})
        while True:
            size = _frame_at(data, place)
            if size is None:
                break
            start, end = size
            self._take(data[place] & 15, data[start:end], when)
            place = end
        self._rest = data[place:]

    def _take(self, opcode: int, body: bytes, when: int) -> None:
        if opcode == _TEXT and self.is_following.done():
            crowd = self._crowd
            frame = crowd.frames.setdefault(body, len(crowd.frames))
            self.got.append(frame)
            crowd.arrived.append((frame, when))
            crowd.progress.set()
        elif opcode == _TEXT:
            message = json.loads(body)
            if message["type"] == "connection_ack":
                self._say({"id": "1", "type": "subscribe", "payload": {"query": self._query}})
                # The pong comes when the server has read everything before the ping.
                self._say({"type": "ping"})
            elif message["type"] == "pong":
                self.is_following.set_result(None)
            else:
                self.is_following.set_exception(ConnectionError(f"unexpected: {message}"))
        elif opcode == _PING:
            self._send(_PONG, body)
        elif opcode == _CLOSE:
            self.closed = True

    def _say(self, message: dict[str, Any]) -> None:
        self._send(_TEXT, json.dumps(message).encode())

    def _send(self, opcode: int, body: bytes) -> None:
        # Masked with zeros, which is a mask as good as any other for a peer that we trust.
        length = bytes([128 | len(body)]) if len(body) < 126 else b"\xfe" + struct.pack("!H", len(body))
        self.transport.write(bytes([128 | opcode]) + length + bytes(4) + body)


def _frame_at(data: bytes, place: int) -> tuple[int, int] | None:
    """Where the body of the frame at this place begins and ends; None where it has not come whole."""
    left = len(data) - place
    if left < 2:
        return None
    size, start = data[place + 1] & 127, place + 2
    if size == 126:
        if left < 4:
            return None
        size, start = int.from_bytes(data[place + 2 : place + 4], "big"), place + 4
    elif size == 127:
        if left < 10:
            return None
        size, start = int.from_bytes(data[place + 2 : place + 10], "big"), place + 10
    return (start, start + size) if start + size <= len(data) else None


async def _connected(member: Member, port: int, *, small: bool) -> None:
    connecting = socket.socket()
    if small:
        connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _STUCK_BUFFER)
    connecting.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connecting, ("127.0.0.1", port))
    await loop.create_connection(lambda: member, sock=connecting)


def _key(frame: bytes) -> str:
    changed = json.loads(frame)["payload"]["data"]["scheduleChanged"]
    return f"{changed['scheduleId']} {changed['status']}"


def _missed(frame: bytes) -> int:
    found: int = json.loads(frame)["payload"].get("extensions", {}).get("missed", 0)
    return found


def _quantile(ordered: list[float], part: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else None


def main() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65_536), hard))
    gc.disable()  # between two counts there is nothing to be found, and looking for it would be measured
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_obey())
    return 0


async def _obey() -> None:
    crowd = Crowd()
    loop = asyncio.get_running_loop()
    orders = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        order = json.loads(line)
        if order["do"] == "join":
            reads = order.get("reads", True)
            answer: dict[str, Any] = {"joined": await crowd.join(order["port"], order["count"], order["query"], reads)}
        elif order["do"] == "count":
            answer = await crowd.count(order["published"])
        else:
            answer = await crowd.wake(order["published"])
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
