"""psi-tool itself: a request becomes a command, the service carries it out, and the answer goes into an envelope.

Whatever is wrong with a request, the answer is an envelope; nothing is raised and no stack trace leaves.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from psi.agents import Tool, ToolCall, ToolResult
from psi.core.clock import MILLISECOND, Clock
from psi.core.commands import (
    Caller,
    CancelSchedule,
    CloseSession,
    CreateSchedule,
    CreateSession,
    ListSchedules,
    ListSessions,
    ShowSession,
    StopRun,
    SubmitPrompt,
)
from psi.core.config import shown
from psi.core.errors import Conflict, Invalid, SessionNotFound
from psi.core.session import Session
from psi.edn import Keyword, Symbol
from psi.errors import PsiError, Refused
from psi.graph import MutationFailed
from psi.service import Service
from resolvers.params import named
from tool.declarations import DESCRIPTION
from tool.render import as_json
from tool.request import Request, RequestInvalid, read, read_map
from tool.schema import json_schema

__all__ = ["PsiTool"]

log = logging.getLogger("psi.tool")

OK: Final = Keyword("ok")
ERROR: Final = Keyword("error")
VALIDATE: Final = Keyword("validate")
EXECUTE: Final = Keyword("execute")

Answer = dict[str, Any]


class PsiTool:
    def __init__(self, service: Service, clock: Clock) -> None:
        self._service = service
        self._clock = clock
        self._ops: Final = {
            ("query", None): self._query,
            ("mutate", None): self._mutate,
            ("scheduler", "create"): self._create_schedule,
            ("scheduler", "list"): self._list_schedules,
            ("scheduler", "cancel"): self._cancel_schedule,
            ("session", "create"): self._create_session,
            ("session", "list"): self._list_sessions,
            ("session", "show"): self._show_session,
            ("session", "submit"): self._submit,
            ("session", "stop"): self._stop,
            ("session", "close"): self._close,
        }

    async def __call__(self, request: Any, caller: Caller) -> dict[str, Any]:
        """Carry out a request and give its envelope."""
        started = self._clock.now().tick
        action: str | None = None
        op: str | None = None
        answer: Answer
        status = OK
        try:
            asked = read(request)
            action, op = asked.action, asked.op
            self._check_caller(caller)
            answer = await self._ops[action, op](asked, caller)
        except PsiError as refused:
            if isinstance(refused, RequestInvalid):
                action, op = refused.action, refused.op
            status, answer = ERROR, {"psi-tool/error": _error(refused)}
        except Exception as broken:  # a fault of ours, or of an operation that was added: told, logged, never raised
            log.exception("psi-tool failed", extra={"action": action, "op": op})
            status = ERROR
            answer = {
                "psi-tool/error": {
                    "message": f"psi-tool {action} failed: {type(broken).__name__}",
                    "class": type(broken).__name__,
                    "code": "psi/internal",
                    "phase": EXECUTE,
                    "data": {},
                }
            }
        return {
            "psi-tool/action": None if action is None else Keyword(action),
            **({f"psi-tool/{action}-op": Keyword(op)} if op else {}),
            "psi-tool/overall-status": status,
            "psi-tool/duration-ms": (self._clock.now().tick - started) // MILLISECOND,
            **answer,
        }

    def as_tool(self) -> Tool:
        """psi-tool as an agent sees it: for its own session, with the envelope as its result."""

        async def call(asked: ToolCall) -> ToolResult:
            envelope = as_json(await self(asked.arguments, self._service.acting_for(asked.session)))
            failed = envelope["psi-tool/overall-status"] == "error"
            return ToolResult(json.dumps(envelope, ensure_ascii=False), success=not failed)

        return Tool(name="psi-tool", description=DESCRIPTION, schema=json_schema(), call=call)

    def _check_caller(self, caller: Caller) -> None:
        session = caller.session
        if session is not None and (not isinstance(session, str) or self._service.session(session, caller) is None):
            raise SessionNotFound(session if isinstance(session, str) else shown(session))

    def _meant(self, asked: Request, caller: Caller) -> Caller:
        """The caller in the session that the request names, if it names one."""
        return self._service.within(asked.get("session-id"), caller)

    # -- the graph

    async def _query(self, asked: Request, caller: Caller) -> Answer:
        if asked.get("query") is None:
            raise Invalid("psi-tool query requires `query`: an EQL vector", code="psi-tool/query-required")
        entity = read_map("entity", asked.get("entity"))
        result = await self._service.query(asked.get("query"), self._meant(asked, caller), entity=entity)
        return {"psi-tool/result": result}

    async def _mutate(self, asked: Request, caller: Caller) -> Answer:
        name = asked.get("mutation")
        if not isinstance(name, str) or not name.strip():
            raise Invalid(
                f"psi-tool mutate requires `mutation`: a qualified name, got {shown(name)}",
                code="psi-tool/mutation-required",
            )
        name = str(name).removeprefix(":")
        params = read_map("params", asked.get("params"))
        known = self._service.graph.index.mutations
        if name not in known:
            near = self._service.graph.index.nearest_mutation(name)
            raise Invalid(
                f"Unknown psi-tool mutation: {name}",
                code="psi-tool/unknown-mutation",
                mutation=name,
                nearest=near,
                accepted=sorted(known),
            )
        if accepted := known[name].params:
            params = named(params, name, accepted)
        try:
            result = await self._service.query([(Symbol(name), params)], self._meant(asked, caller))
        except MutationFailed as failed:
            # What the mutation itself refused is the answer; that it was called through the graph is a detail.
            raise failed.__cause__ if isinstance(failed.__cause__, PsiError) else failed from None
        return {"psi-tool/mutation": Symbol(name), "psi-tool/result": result[Symbol(name)]}

    # -- the scheduler

    async def _create_schedule(self, asked: Request, caller: Caller) -> Answer:
        command = CreateSchedule(
            kind=asked.get("kind"),
            message=asked.get("message"),
            delay_ms=asked.get("delay-ms"),
            at=asked.get("at"),
            label=asked.get("label"),
            session_config=asked.get("session-config"),
            session=asked.get("session-id"),
        )
        schedule = await self._service.act(command, caller)
        return {"psi-tool/scheduler": {"schedule": schedule.summary()}}

    async def _list_schedules(self, asked: Request, caller: Caller) -> Answer:
        found = await self._service.act(ListSchedules(session=asked.get("session-id")), caller)
        schedules = [schedule.summary() for schedule in found]
        return {"psi-tool/scheduler": {"schedule-count": len(schedules), "schedules": schedules}}

    async def _cancel_schedule(self, asked: Request, caller: Caller) -> Answer:
        command = CancelSchedule(schedule_id=asked.get("schedule-id"), session=asked.get("session-id"))
        schedule = await self._service.act(command, caller)
        return {"psi-tool/scheduler": {"schedule": schedule.summary(), "cancelled?": True}}

    # -- sessions

    async def _create_session(self, asked: Request, caller: Caller) -> Answer:
        command = CreateSession(name=asked.get("name"), config=asked.get("config"))
        return _session(await self._service.act(command, caller))

    async def _list_sessions(self, asked: Request, caller: Caller) -> Answer:
        sessions = [session.summary() for session in await self._service.act(ListSessions(), caller)]
        return {"psi-tool/session": {"session-count": len(sessions), "sessions": sessions}}

    async def _show_session(self, asked: Request, caller: Caller) -> Answer:
        return _session(await self._service.act(ShowSession(session=asked.get("session-id")), caller))

    async def _submit(self, asked: Request, caller: Caller) -> Answer:
        wait = asked.get("wait")
        if wait is not None and not isinstance(wait, bool):
            raise Invalid(f"`wait` must be true or false, got {shown(wait)}", code="session/invalid-wait")
        command = SubmitPrompt(message=asked.get("message"), session=asked.get("session-id"))
        run = await self._service.act(command, caller)
        told: Mapping[str, Any] = {"run-id": run.id}
        if wait:
            told = {"run-id": run.id, "run": (await asyncio.shield(run.finished)).summary()}
        return _session(self._service.session(run.session), **told)

    async def _stop(self, asked: Request, caller: Caller) -> Answer:
        command = StopRun(session=asked.get("session-id"))
        stopped = await self._service.act(command, caller)
        session = await self._service.act(ShowSession(session=asked.get("session-id")), caller)
        return _session(session, **{"stopped?": stopped, "reason": None if stopped else "no active run"})

    async def _close(self, asked: Request, caller: Caller) -> Answer:
        session = await self._service.act(CloseSession(session=asked.get("session-id")), caller)
        return _session(session, **{"closed?": True})


def _session(session: Session | None, **more: Any) -> Answer:
    return {"psi-tool/session": {"session": session.summary() if session else None, **more}}


def _error(refused: PsiError) -> dict[str, Any]:
    # What is wrong with the request itself, whoever finds it; all else went wrong while it was carried out.
    at_fault = isinstance(refused, Refused) and not isinstance(refused, Conflict) and not refused.done
    return {
        "message": refused.sentence(),
        "class": type(refused).__name__,
        "code": refused.code,
        "phase": VALIDATE if at_fault else EXECUTE,
        "data": refused.disclosed(),
    }
