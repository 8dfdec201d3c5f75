"""The one way in: an input becomes a turn, the turn a run, and the run always leaves a closure.

``start`` reserves the session at once, so that two inputs can never share it; the message is saved before anybody is
told that it was accepted; the closure is saved before the session is free again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from psi.agents.events import (
    AgentEvent,
    CompressionStarted,
    ContextCompressed,
    FinalAnswer,
    McpStatus,
    TextDelta,
    ToolFinished,
)
from psi.agents.interface import Agent, IterationLimit, TurnContext
from psi.agents.tools import Tool
from psi.core import turn as turns
from psi.core.clock import SECOND, Alarm, Clock
from psi.core.errors import RuntimeClosed
from psi.core.message import Message
from psi.core.session import CompactionBegan, CompactionEnded, Phase, RunBegan, RunEnded, RunRefused, Session
from psi.core.turn import Turn
from psi.engine.bus import Bus
from psi.engine.ids import NewId
from psi.engine.runlog import Opened, RunLog
from psi.engine.sessions import Sessions
from psi.store import AddMessages, Change, SaveTurn, Store, StoreFailed

__all__ = ["Run", "Runs"]

log = logging.getLogger("psi.runs")

# How long an agent that was asked to stop may take to do so by itself.
_GRACE: Final = 2.0

# Seconds until a closure that could not be saved is tried again: first so many, then twice as many each time.
_AGAIN: Final = 0.25
_AT_MOST_AGAIN: Final = 5.0

# Events after which an agent lets others go on, if it does not do so by itself.
_TURNS: Final = 64

Told = Callable[[Exception | None], None]


@dataclass(slots=True, eq=False)
class Run:
    """A turn while it is running: its task, its stop signal, what it has said so far."""

    turn: Turn
    message: Message
    agent: Agent
    told: Told
    finished: asyncio.Future[Turn]
    log: RunLog
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    text: list[str] = field(default_factory=list)
    tool_calls: int = 0
    final: FinalAnswer | None = None
    task: asyncio.Task[None] | None = None
    is_saved: bool = False  # its input
    is_unsaved: bool = False  # its end, although it was tried
    last_call: Alarm | None = None

    @property
    def id(self) -> str:
        return self.turn.id

    @property
    def session(self) -> str:
        return self.turn.session


class Runs:
    """The runs there are; at most one for each session."""

    def __init__(
        self,
        clock: Clock,
        bus: Bus,
        store: Store,
        sessions: Sessions,
        tasks: asyncio.TaskGroup,
        agent_for: Callable[[Session], Agent],
        tools: Mapping[str, Tool],
        new_id: NewId,
    ) -> None:
        self._clock = clock
        self._bus = bus
        self._store = store
        self._sessions = sessions
        self._tasks = tasks
        self._agent_for = agent_for
        self._tools = tools
        self._new_id = new_id
        self._active: dict[str, Run] = {}
        self._retrying: set[asyncio.Event] = set()  # closures that wait for the store to take them
        self._closed = False

    def __len__(self) -> int:
        return len(self._active)

    def active(self, run_id: str) -> Run | None:
        return self._active.get(run_id)

    def start(self, session_id: str, message: Message, told: Told) -> Run:
        """Begin a turn. Raises where the session is unknown or busy, or where no agent can take it; then nothing has
        changed. ``told`` hears once: nothing, when the message is saved, or why it could not be."""
        if self._closed:
            raise RuntimeClosed
        session = self._sessions.find(session_id)
        agent = self._agent_for(session)
        run_id = self._new_id("run-")
        self._sessions.step(session_id, RunBegan(run_id, messages=1))
        now = self._clock.now()
        message = replace(message, run_id=run_id, timestamp=now.wall)
        turn = turns.begin(run_id, message, session=session_id, now=now)
        run = Run(turn, message, agent, told, asyncio.get_running_loop().create_future(), RunLog(run_id))
        self._active[run_id] = run
        run.task = self._tasks.create_task(self._carry_out(run), name=run_id)
        return run

    async def submit(self, session_id: str, message: Message) -> Run:
        """The same for those who wait until the message is saved."""
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def told(error: Exception | None) -> None:
            if not accepted.done():
                accepted.set_result(None) if error is None else accepted.set_exception(error)

        run = self.start(session_id, message, told)
        await accepted
        return run

    def stop(self, run_id: str) -> bool:
        """Ask a run to stop. An agent that does not listen is made to after a while."""
        run = self._active.get(run_id)
        if run is None or run.final is not None:
            return False
        if not run.stop.is_set():
            run.stop.set()
            if run.is_saved:
                self._call_last(run)
        return True

    def _call_last(self, run: Run) -> None:
        """An agent that does not stop by itself is made to. Not while its input is being saved: there is no agent yet,
        and whoever waits for a disk is not made faster by being cut off."""
        tick = self._clock.now().tick + round(_GRACE * SECOND)
        run.last_call = self._clock.wake(tick, lambda: _cancel(run))

    async def left(self, run_id: str) -> None:
        """Until a run that was asked to stop has left its session. Not for longer than an agent may take to do so: one
        that cannot even be made to holds up nobody but itself."""
        run = self._active.get(run_id)
        if run is not None and run.task is not None and not run.is_unsaved:
            await asyncio.wait((run.task,), timeout=_GRACE + 1)

    async def close(self, grace: float) -> None:
        """Stop every run, and make those that do not stop in time."""
        self._closed = True
        for run_id in list(self._active):
            self.stop(run_id)
        for each in self._retrying:
            each.set()  # one more time, and then no more
        waiting = [run.task for run in self._active.values() if run.task is not None]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    # -- one run

    async def _carry_out(self, run: Run) -> None:
        try:
            await self._store.commit(AddMessages(run.session, (run.message,)), SaveTurn(run.turn))
        except Exception as error:  # noqa: BLE001 – whatever a store raises, the input was not taken
            self._end(run, RunRefused(run.id, messages=1))
            run.told(error)
            return
        except (
            asyncio.CancelledError
        ):  # psi closes, and cannot wait any longer; if it was saved, the next start sees it
            self._end(run, RunRefused(run.id, messages=1))
            run.told(RuntimeClosed())
            raise
        run.is_saved = True
        if run.stop.is_set():
            self._call_last(run)
        self._bus.publish("run-started", run.session, run.turn.started_at, run.turn)
        self._tell(run, Opened(run.turn, run.message))
        run.told(None)
        ending = await self._drive(run)
        if run.last_call is not None:
            run.last_call.cancel()  # the closure must not be cut off
        counted = replace(
            run.turn,
            message_index=self._sessions.find(run.session).message_count,
            tool_call_count=run.tool_calls,
            event_count=run.log.last + 1,  # the end, too
        )
        turn, said = turns.step(counted, ending, now=self._clock.now())
        messages = tuple(each.message for each in said)
        if not await self._save(run, AddMessages(run.session, messages), SaveTurn(turn)):
            # Told as what the next start will write into the history: an answer that is not saved is none.
            messages = ()
            turn = replace(turn, state=turns.State.INTERRUPTED)
            turn = replace(turn, answer=turns.note_of(turn))
        run.turn = turn
        self._tell(run, turn)
        self._bus.publish("run-finished", run.session, self._clock.now().wall, turn, weight=len(turn.answer or ""))
        # Whoever waits for the answer finds the session free, unless the next turn has begun by then.
        self._end(run, RunEnded(run.id, messages=len(messages)))
        if not run.finished.done():  # somebody who waited for it may have been cancelled, and it with them
            run.finished.set_result(turn)

    async def _save(self, run: Run, *changes: Change) -> bool:
        """Save a closure, however often that takes: what was said must not be lost, and nobody may be told of an end
        that the history does not have. False where psi closes first, or where it can never be saved; then the turn
        stays open in the store, and the next start closes it."""
        wait = _AGAIN
        while True:
            try:
                await self._store.commit(*changes)
            except (StoreFailed, OSError) as error:
                run.is_unsaved = True
                log.warning("a closure could not be saved yet", extra={"run": run.id}, exc_info=error)
                if self._closed:
                    return False
            except asyncio.CancelledError:  # psi closes and does not wait any longer
                if not self._closed or run.task is None:
                    raise
                run.task.uncancel()
                return False
            except Exception:
                # Not the store's state but what it was given: that does not get better by waiting.
                log.exception("a closure cannot be saved", extra={"run": run.id, "session": run.session})
                return False
            else:
                return True
            over = asyncio.Event()
            alarm = self._clock.wake(self._clock.now().tick + round(wait * SECOND), over.set)
            self._retrying.add(over)
            try:
                await over.wait()
            finally:
                self._retrying.discard(over)
                alarm.cancel()
            wait = min(2 * wait, _AT_MOST_AGAIN)

    def _end(self, run: Run, event: RunEnded | RunRefused) -> None:
        del self._active[run.id]
        if run.session in self._sessions:
            self._sessions.step(run.session, event)

    async def _drive(self, run: Run) -> turns.Event:
        """Let the agent work, and say how it ended."""
        try:
            history = await self._store.messages(run.session, pictures=False)
            async with aclosing(_generator(run.agent.run(self._context(run, history)))) as events:
                if not run.stop.is_set():
                    async for event in events:
                        self._take(run, event)
                        if not run.log.last % _TURNS:
                            await asyncio.sleep(0)  # an agent that never waits holds up nobody else
                        if run.stop.is_set() or run.final is not None:
                            break
        except IterationLimit as reached:
            return turns.LimitReached("".join(run.text), reached.limit)
        except asyncio.CancelledError:
            if run.task is not None:
                run.task.uncancel()  # the agent was cut off; the closure is still to come
            text = "".join(run.text)
            return turns.Stopped(text) if run.stop.is_set() and not self._closed else turns.Interrupted(text)
        except (Exception, SystemExit) as error:  # an agent that gives up the process gives up its own turn
            if run.stop.is_set() and run.final is None:
                return turns.Stopped("".join(run.text))
            # What was raised may repeat what was asked: a line of log has the kind, the run's record the words.
            about = {"run": run.id, "session": run.session}
            log.warning("an agent failed with %s", type(error).__name__, extra=about)
            log.debug("how an agent failed", extra=about, exc_info=error)
            return turns.Failed("".join(run.text), type(error).__name__, f"{type(error).__name__}: {_said(error)}")
        if run.final is None and run.stop.is_set():
            text = "".join(run.text)
            return turns.Interrupted(text) if self._closed else turns.Stopped(text)
        final = run.final or FinalAnswer("")
        # What was said is the answer of an agent that does not repeat it.
        return turns.Answered(
            final.content or "".join(run.text), final.context_tokens, final.max_context_tokens, final.token_count
        )

    def _take(self, run: Run, event: AgentEvent) -> None:
        if not isinstance(event, AgentEvent):
            raise TypeError(f"an agent yields the events of psi.agents, got a {type(event).__name__}")
        match event:
            case TextDelta(delta=said) | FinalAnswer(content=said) if not isinstance(said, str):
                raise TypeError(f"the text of {type(event).__name__} must be a str, got a {type(said).__name__}")
            case FinalAnswer(context_tokens=one, max_context_tokens=other, token_count=count) if not all(
                type(each) is int and 0 <= each < 2**63 for each in (one, other, count)
            ):
                raise TypeError("the numbers of a FinalAnswer must be whole numbers of 64 bits, 0 or more")
            case TextDelta(delta):
                run.text.append(delta)
            case FinalAnswer() if not run.stop.is_set():
                run.final = event  # one that comes after the stop changes nothing: somebody was told that it stopped
            case ToolFinished(is_subagent=False):
                run.tool_calls += 1
            case CompressionStarted():
                self._compaction(run, CompactionBegan())
            case ContextCompressed():
                self._compaction(run, CompactionEnded())
            case McpStatus():
                owner, now = self._sessions.owner_of(run.session), self._clock.now().wall
                self._bus.tell_all("mcp-status", owner, now, event, but=run.session)
        if not isinstance(event, FinalAnswer):  # which is told as the end of the turn, once that is saved
            self._tell(run, event)

    def _tell(self, run: Run, event: AgentEvent | Opened | Turn) -> None:
        self._bus.publish("run-event", run.session, self._clock.now().wall, run.log.add(event), keep=False)

    def _compaction(self, run: Run, event: CompactionBegan | CompactionEnded) -> None:
        # An agent may tell of its compression without having begun it, or twice; that is not worth a failed turn.
        expected = Phase.STREAMING if isinstance(event, CompactionBegan) else Phase.COMPACTING
        if self._sessions.find(run.session).phase is expected:
            self._sessions.step(run.session, event)

    def _context(self, run: Run, history: Any) -> TurnContext:
        session = self._sessions.find(run.session)
        allowed = session.config.tool_ids
        tools = self._tools if allowed is None else {name: self._tools[name] for name in allowed}
        return TurnContext(
            session=run.session,
            run=run.id,
            source=run.turn.source,
            prompt=run.message.text,
            history=history,
            config=session.config,
            tools=tools,
            is_stopping=run.stop.is_set,
            wait=lambda seconds: self._wait(run, seconds),
            history_with_pictures=lambda: self._store.messages(run.session),
        )

    async def _wait(self, run: Run, seconds: float) -> None:
        """Until the time is over or the run is to stop, by the one clock."""
        if seconds <= 0 or run.stop.is_set():
            await asyncio.sleep(0)
            return
        over = asyncio.Event()
        alarm = self._clock.wake(self._clock.now().tick + round(seconds * SECOND), over.set)
        stopped = asyncio.ensure_future(run.stop.wait())
        try:
            waiting = asyncio.ensure_future(over.wait())
            try:
                await asyncio.wait((stopped, waiting), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
        finally:
            stopped.cancel()
            alarm.cancel()


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 – an agent's exception may be of any make
        return "(it does not say why)"


def _cancel(run: Run) -> None:
    if run.task is not None:
        run.task.cancel()


async def _generator(events: AsyncIterator[AgentEvent]) -> AsyncGenerator[AgentEvent, None]:
    """An agent may return any async iterator; this one can be closed, and closes what is below it."""
    try:
        async for event in events:
            yield event
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
