"""Agents whose runs go on step by step, and clients of a stream that can be cut at any moment and come back.

agent    its prompt says what it tells, and after which waits: ``"2 0 3"`` waits a second, tells two things, waits …
Client   keeps what it has of each run, as a page in a browser would, and checks each frame that comes
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any

from psi.agents import AgentEvent, TextDelta, ThinkingDelta, ThinkingEnd, TurnContext
from psi.core.commands import NOBODY, SubmitPrompt
from psi.core.errors import Conflict
from psi.engine import Event
from psi.faces.streams.stream import Frame, Seen, SessionStream, Texts
from psi.service import Service

__all__ = ["LAST", "Client", "Stepping", "reference"]

LAST = frozenset({"stream_end", "stream_stopped", "error"})


class Stepping:
    """Waits a second before each step, and between the things that it tells lets everybody else go on. ``now`` is a run
    that ends as soon as it has begun."""

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        told = 0
        for count in map(int, turn.prompt.replace("now", "").split()):
            await turn.wait(1)
            for _ in range(count):
                await turn.wait(0)
                told += 1
                yield _event(told)


def _event(place: int) -> AgentEvent:
    """Two kinds of text and something between them, so that pieces cannot be taken for each other."""
    match place % 5:
        case 3:
            return ThinkingDelta(f"hm {place} ")
        case 4:
            return ThinkingEnd()
    return TextDelta(f"word {place} ")


def reference(events: list[Event]) -> dict[str, list[str]]:
    """The frames of each run, as somebody who was always there has them."""
    texts = Texts()
    found: dict[str, list[str]] = {}
    for event in events:
        if event.type == "run-event":
            found.setdefault(event.data.run, []).append(texts.of(event.data).text)
    return found


class Client:
    """One who follows a session, over as many connections as it takes."""

    def __init__(self, service: Service, session: str, texts: Texts) -> None:
        self._service = service
        self._session = session
        self._texts = texts
        self.runs: dict[str, list[str]] = {}  # the frames that it has of each run
        self.frames: list[dict[str, Any]] = []  # all that came over this connection
        self.began: set[str] = set()  # over this connection, too
        self.resumed: str | None = None  # the run that it said it had something of
        self._last: Seen | None = None
        self._stream: SessionStream | None = None
        self._coming: AsyncGenerator[Frame, None] | None = None
        self._next: asyncio.Task[Frame] | None = None

    @property
    def is_connected(self) -> bool:
        return self._stream is not None

    def connect(self, *, resumes: bool) -> None:
        """``resumes``: it says what it has. Otherwise it has forgotten everything, as a page that was loaded again."""
        if not resumes:
            self.runs.clear()
            self._last = None
        self.frames, self.began = [], set()
        self.resumed = self._last.run if self._last is not None else None
        self._stream = SessionStream(self._service, NOBODY, self._session, self._texts, self._last)
        self._coming = self._stream.frames()  # type: ignore[assignment]  # which it is

    def resume_at(self, seen: Seen) -> None:
        """It connects and says that it has a run up to there."""
        self._last = seen
        self.connect(resumes=True)

    async def cut(self) -> None:
        """The connection breaks. What was on its way is lost."""
        assert self._stream is not None
        assert self._coming is not None
        if self._next is not None:
            self._next.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await self._next
        await self._coming.aclose()
        self._stream.close()
        self._stream = self._coming = self._next = None

    async def read(self, patience: int = 3) -> bool:
        """Take a frame, if there is one soon."""
        assert self._coming is not None
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._coming))
        for _ in range(patience):
            if self._next.done():
                break
            await asyncio.sleep(0)
        if not self._next.done():
            return False
        found, self._next = self._next.result(), None
        self._take(found)
        return True

    async def read_all(self) -> None:
        while await self.read(50):
            pass

    def submit(self, prompt: str) -> Coroutine[Any, Any, bool]:
        """Say something over this connection; whether it was taken."""
        assert self._stream is not None
        return self._submit(self._stream, self.began, prompt)

    async def _submit(self, stream: SessionStream, began: set[str], prompt: str) -> bool:
        run = None
        stream.submits()
        try:
            run = (await self._service.act(SubmitPrompt(message=prompt, session=self._session))).id
        except Conflict:
            return False
        finally:
            stream.submitted(run)
        began.add(run)
        return True

    def _take(self, came: Frame) -> None:
        shown = json.loads(came.text)
        self.frames.append(shown)
        if came.at is None:
            assert "seq" not in shown
            return
        assert Seen(shown["run_id"], shown["seq"]) == came.at
        of_run = self.runs.setdefault(came.at.run, [])
        of_run.append(came.text)
        assert came.at.seq == len(of_run), f"frame {came.at.seq} came as number {len(of_run)}"
        self._last = came.at
