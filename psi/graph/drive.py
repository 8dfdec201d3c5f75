"""Carrying a request to its end: fires batches, awaits what must be awaited, keeps time. The only module of this room
that knows asyncio and the clock.

Everything that can go on without waiting goes on first. Then the collected batches are called, all of them; then the
awaitables run side by side, and whenever one is ready its frame goes on, which may collect new batches. Tasks belong to
one task group, so that a failure, a timeout or the caller's cancellation ends them all.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from psi.graph.errors import AsyncOperation, BatchFailed, LimitExceeded
from psi.graph.request import Batch, Request, Waiting

__all__ = ["abandon", "begin", "deadline", "drive", "drive_now"]


def deadline(seconds: float | None) -> Callable[[], bool] | None:
    """A question that answers True once the time is up."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ValueError(f"timeout must be a number of seconds above 0, got {seconds!r}")
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def drive_now(request: Request) -> None:
    """Run to the end without an event loop; refuses what would have to be awaited."""
    request.run()
    while request.batches or request.waiting:
        if request.waiting:
            _refuse_async(request)
        for batch in _taken(request):
            _fire(request, batch)
            if request.waiting:
                _refuse_async(request)
    request.finish()


def _refuse_async(request: Request) -> None:
    raise AsyncOperation(request.waiting[0].name)


def abandon(request: Request) -> None:
    """The request has failed: what was to be awaited will not be."""
    for waiting in request.waiting:
        _close(waiting.awaitable)


# A long request lets others go on now and then: after so many frames it looks whether its slice of time is over.
_FRAMES: Final = 32
_SLICE: Final = 0.01


class _Slice:
    __slots__ = ("_end", "_left")

    def __init__(self) -> None:
        self._end = time.monotonic() + _SLICE
        self._left = _FRAMES

    def is_over(self) -> bool:
        self._left -= 1
        if self._left:
            return False
        self._left = _FRAMES
        return time.monotonic() > self._end


def begin(request: Request) -> None:
    """The request may hold up others for so long, and no longer."""
    request.tired = _Slice().is_over
    request.is_tired = False


async def _run(request: Request) -> None:
    while not request.run():
        await asyncio.sleep(0)
        begin(request)


async def drive(request: Request, timeout: float | None = None) -> None:  # noqa: ASYNC109 – a bound, not a wait
    """Run to the end, awaiting what must be awaited."""
    await _run(request)
    try:
        if request.batches or request.waiting:
            async with asyncio.timeout(timeout):
                await _drive(request)
        request.finish()
    except TimeoutError:
        raise LimitExceeded("timeout", f"the request took longer than its timeout of {timeout} s") from None


async def _drive(request: Request) -> None:
    ready: deque[tuple[Waiting, Any, Exception | None]] = deque()
    arrived = asyncio.Event()
    running = 0

    async def settle(waiting: Waiting) -> None:
        ready.append((waiting, *await _outcome(waiting.awaitable)))
        arrived.set()

    try:
        async with asyncio.TaskGroup() as group:
            while True:
                while request.batches:
                    for batch in _taken(request):
                        _fire(request, batch)
                if len(request.waiting) == 1 and not running:
                    # Alone, it needs no task.
                    only = request.waiting.pop()
                    only.deliver(*await _outcome(only.awaitable))
                else:
                    for waiting in request.waiting:
                        group.create_task(settle(waiting))
                    running += len(request.waiting)
                    request.waiting.clear()
                    if running:
                        await arrived.wait()
                        arrived.clear()
                        while ready:
                            waiting, value, error = ready.popleft()
                            running -= 1
                            waiting.deliver(value, error)
                await _run(request)
                if not (request.batches or request.waiting or running):
                    return
    except BaseExceptionGroup as group_error:
        # The loop above raises alone: tasks hand over what they meet. What remains is our own error or a cancellation.
        cause = _single(group_error)
        raise cause from cause.__cause__


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _single(first) if isinstance(first, BaseExceptionGroup) else first


async def _outcome(awaitable: Awaitable[Any]) -> tuple[Any, Exception | None]:
    try:
        return await awaitable, None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled us: the operation gave up by itself, and that is its failure.
        return None, RuntimeError("it was cancelled")
    except Exception as error:  # noqa: BLE001 – whatever a resolver raises is its answer
        return None, error


def _taken(request: Request) -> list[Batch]:
    batches = list(request.batches.values())
    request.batches.clear()
    return batches


def _fire(request: Request, batch: Batch) -> None:
    """Call a batch resolver, chunk by chunk; what it gives is handed out when all chunks are back."""
    resolver = batch.site.resolver
    keys = list(batch.inputs)
    size = resolver.chunk or len(keys)
    chunks = [keys[start : start + size] for start in range(0, len(keys), size)] if keys else []
    found = request.memory.whole(batch.site) if resolver.cache else {}
    errors: dict[Any, Exception] = {}
    open_chunks = len(chunks)

    def settle(chunk: Sequence[Any], results: Any, error: Exception | None) -> None:
        nonlocal open_chunks
        if error is not None:
            errors.update(dict.fromkeys(chunk, error))
        else:
            _check_length(batch, chunk, results)
            if batch.aligned and len(chunks) == 1 == len(batch.waiters):
                batch.results = results
            else:
                found.update(zip(chunk, results, strict=True))
        open_chunks -= 1
        if not open_chunks:
            batch.settle(request, found, errors)

    for chunk in chunks:
        request.glance(None)
        inputs = [batch.inputs[key] for key in chunk] if len(chunks) > 1 else list(batch.inputs.values())
        try:
            results = resolver.function(request.env(batch.site.params), inputs)
        except Exception as error:  # noqa: BLE001 – whatever a resolver raises is its answer
            settle(chunk, None, error)
            continue
        if isinstance(results, Awaitable):
            request.waiting.append(Waiting(resolver.name, results, partial(settle, chunk)))
        else:
            settle(chunk, results, None)
    if not chunks:
        batch.settle(request, found, errors)


def _check_length(batch: Batch, chunk: Sequence[Any], results: Any) -> None:
    if not isinstance(results, list | tuple) or len(results) != len(chunk):
        got = f"{len(results)} results" if isinstance(results, list | tuple) else type(results).__name__
        problem = f"expected a list of {len(chunk)} results, one for each input, got {got}"
        raise BatchFailed(batch.site.resolver.name, problem)


def _close(awaitable: Awaitable[Any]) -> None:
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()
