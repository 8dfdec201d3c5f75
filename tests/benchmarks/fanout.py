"""What it costs to tell many: a served psi and 1000 WebSocket subscribers: ``python -m tests.benchmarks.fanout``.

The service is one process, as `psi-tool serve` is; the subscribers are another (:mod:`tests.benchmarks.crowd`). They
all follow `scheduleChanged` of one session, where schedules are created and cancelled. An event counts from the instant
it was planned for, so that a service that falls behind cannot hide it by publishing later. Ends with a status of 1 when
a promised figure is missed: 10 events/s to 1000 subscribers, each once and in order, with a p99 below 200 ms; and the
same beside ten subscribers who do not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from time import monotonic_ns
from typing import Any, Final

import uvloop

from psi.core.commands import Caller, CancelSchedule, CreateSchedule, CreateSession
from psi.service import Service
from psi.settings import Settings
from tests.faces.serving import Served, serving

__all__ = ["Row", "main", "rows"]

SUBSCRIBERS: Final = 1_000
STUCK: Final = 10
RATE: Final = 10  # events a second
SECONDS: Final = 10
P99_MS: Final = 200.0
TRIES: Final = 3  # the best counts; others use the machine, too

FASTER: Final = (20, 30, 40, 50, 60, 80, 100)
FASTER_SECONDS: Final = 4

# What those who do not read are sent is long, so that all that lies between is full at once; their queue is short, so
# that they soon miss something.
LONG: Final = "x" * 50_000
SETTINGS: Final = Settings(socket_queue=32)

FIELDS: Final = "scheduleId kind label status createdAt fireAt originSessionId deliveryPhase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Latencies are milliseconds from the planned instant to receipt."""

    about: str
    rate: int
    per_second: float
    p50: float
    p99: float
    worst: float
    is_right: bool  # everybody got everything once, in order
    is_promised: bool = True
    remark: str = ""

    @property
    def kept(self) -> bool:
        return self.is_right and self.p99 < P99_MS


class Subscribers:
    """The other process."""

    def __init__(self, process: asyncio.subprocess.Process, served: Served) -> None:
        self._process = process
        self._served = served

    async def join(self, count: int, query: str, *, reads: bool = True) -> None:
        before = self._following
        await self._order({"do": "join", "port": self._served.port, "count": count, "query": query, "reads": reads})
        assert self._following == before + count

    async def count(self, published: dict[str, int]) -> dict[str, Any]:
        return await self._order({"do": "count", "published": published})

    async def wake(self, published: int) -> dict[str, Any]:
        return await self._order({"do": "wake", "published": published})

    @property
    def _following(self) -> float:
        found = self._served.app.metrics.registry.get_sample_value("psi_subscriptions")
        return found or 0

    async def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the subscribers has ended")
        found: dict[str, Any] = json.loads(line)
        return found


@contextlib.asynccontextmanager
async def _subscribers(served: Served) -> AsyncIterator[Subscribers]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.benchmarks.crowd", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Subscribers(process, served)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _publish(service: Service, session: str, rate: int, seconds: int, message: str) -> dict[str, int]:
    """So many changes a second, made and cancelled in turn; each with the instant it was planned for."""
    caller = Caller(session)
    loop = asyncio.get_running_loop()
    published: dict[str, int] = {}
    begin, begin_ns = loop.time() + 0.05, monotonic_ns() + 50_000_000
    made = ""
    for number in range(rate * seconds):
        wait = begin + number / rate - loop.time()
        await asyncio.sleep(max(wait, 0))
        planned = begin_ns + number * 1_000_000_000 // rate
        if number % 2 == 0:
            create = CreateSchedule(kind="message", message=message, delay_ms=86_000_000, label=f"change {number}")
            made = (await service.act(create, caller)).id
            published[f"{made} PENDING"] = planned
        else:
            await service.act(CancelSchedule(schedule_id=made), caller)
            published[f"{made} CANCELLED"] = planned
    return published


async def _measure(
    served: Served, crowd: Subscribers, session: str, about: str, rate: int, seconds: int, message: str = "look"
) -> Row:
    gc.collect()
    published = await _publish(served.psi.service, session, rate, seconds, message)
    found = await crowd.count(published)
    took = (found["last"] - min(published.values())) / 1e9
    return Row(
        about=about,
        rate=rate,
        per_second=found["messages"] / max(took, seconds - 1 / rate),
        p50=found["p50"],
        p99=found["p99"],
        worst=found["worst"],
        is_right=found["complete"] and not found["wrong"] and not found["gone"],
    )


async def _best(tries: int, measure: Callable[[], Awaitable[Row]]) -> Row:
    """The least disturbed one. A message that is lost is no disturbance."""
    best = await measure()
    for _ in range(tries - 1):
        if best.kept or not best.is_right:
            break
        row = await measure()
        if not row.is_right or row.p99 < best.p99:
            best = row
    return best


async def rows() -> list[Row]:
    async with serving(SETTINGS, real_time=True) as served, _subscribers(served) as crowd:
        session = (await served.psi.service.act(CreateSession(name="busy"))).id
        query = f'subscription {{{{ scheduleChanged(sessionId: "{session}") {{{{ {{}} }}}} }}}}'
        await crowd.join(SUBSCRIBERS, query.format(FIELDS))

        def measure(about: str, rate: int, seconds: int, message: str = "look") -> Callable[[], Awaitable[Row]]:
            return lambda: _measure(served, crowd, session, about, rate, seconds, message)

        found = [await _best(TRIES, measure("as promised", RATE, SECONDS))]
        for rate in FASTER:
            row = await _best(2, measure("how far it goes", rate, FASTER_SECONDS))
            found.append(replace(row, is_promised=False))
            if not row.kept:
                break
        await crowd.join(STUCK, query.format(f"{FIELDS} message"), reads=False)
        before = served.psi.service.seq
        # No more than two tries: who does not answer pings for so long is let go.
        beside = await _best(2, measure(f"beside {STUCK} who do not read", RATE, SECONDS, LONG))
        late = await crowd.wake(served.psi.service.seq - before)
        found.append(
            replace(
                beside,
                is_right=beside.is_right and late["complete"] and late["missed"] > 0,
                remark=f"who were told then that they missed {late['missed']}",
            )
        )
    return found


def main() -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        measured = runner.run(rows())
    print(f"{SUBSCRIBERS} subscribers {'':11} events/s  messages/s    p50 ms    p99 ms  worst ms")
    for row in measured:
        print(
            f"{row.about:29} {row.rate:5} {row.per_second:11.0f} {row.p50:9.1f} {row.p99:9.1f} {row.worst:9.1f}"
            + (f"   {row.remark}" if row.remark else "")
            + ("" if row.is_right else "   not everybody got everything once, in order")
            + ("" if row.kept else "   missed" if row.is_promised else "   too far")
        )
    return 0 if all(row.kept for row in measured if row.is_promised) else 1


if __name__ == "__main__":
    sys.exit(main())
