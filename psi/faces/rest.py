"""Sessions as resources: ``/sessions`` and what is below it, in JSON with snake_case keys.

Reads a request, hands a command to the service and tells what came of it. Decides nothing about sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from psi.core.clock import instant_text
from psi.core.commands import (
    Caller,
    CloseSession,
    CreateSession,
    ListSessions,
    ShowSession,
    StopRun,
    SubmitPrompt,
)
from psi.core.config import is_text, shown
from psi.core.errors import Invalid, NotFound
from psi.core.identity import Identity
from psi.core.message import Message, weight, within
from psi.core.session import Session
from psi.core.turn import LONGEST_TOLD, Turn, note_of
from psi.engine import Run
from psi.faces.asked import asked_of, check_name, number_of
from psi.faces.inputs import read_input
from psi.faces.uploads import Uploads, UploadsFace
from psi.faces.wire import Form, HttpRefused, answer, caller_of, came_as, off_loop, read, wanted
from psi.service import Service
from resolvers import Context

__all__ = ["MOST", "PAGE", "RestFace", "rest_routes"]

PAGE: Final = 100  # sessions on a page, unless told
MOST: Final = 1_000  # sessions or messages that one answer has

_CREATE_KEYS: Final = ("name", "config")
_SWITCH: Final = {"1": True, "true": True, "0": False, "false": False}
_FAR: Final = 10**15  # further than any history goes
_AROUND_TEXT: Final = 640  # what a message weighs besides its text


class JsonOnly(HttpRefused):
    status = 415
    code = "http/unsupported-media-type"

    def __init__(self, given: str) -> None:
        accepted = [Form.JSON.value]
        super().__init__(f"Content-Type {given[:100]!r} cannot be read here; send {accepted[0]}", accepted=accepted)


class CursorGone(NotFound):
    """Where a page was to begin is not known: the session may have been deleted since."""

    code = "rest/cursor-gone"

    def __init__(self, after: str) -> None:
        super().__init__(
            "`after` must be the id of a session in this list; the one it names is not there, or not any more",
            after=after,
        )


def rest_routes(service: Service, uploads: Uploads) -> list[Route]:
    face = RestFace(service, uploads)
    return [
        # One route for all methods of a path, so that another one hears of all.
        Route("/sessions", face.sessions, methods=["GET", "POST"]),
        Route("/sessions/{session_id}", face.session, methods=["GET", "DELETE"]),
        Route("/sessions/{session_id}/messages", face.submit, methods=["POST"]),
        Route("/sessions/{session_id}/stop", face.stop, methods=["POST"]),
        Route("/uploads", UploadsFace(uploads).upload, methods=["POST"]),
    ]


class RestFace:
    def __init__(self, service: Service, uploads: Uploads) -> None:
        self._service = service
        self._uploads = uploads

    # -- all of them

    async def sessions(self, request: Request) -> Response:
        return await (self._create(request) if request.method == "POST" else self._page(request))

    async def _create(self, request: Request) -> Response:
        form = wanted(request.headers.get("accept"))
        asked_of(request)
        caller = caller_of(request)
        if caller.session is not None:
            self._service.find(caller.session, caller)
        given = _named(await _read(request, empty={}), _CREATE_KEYS)
        made: Session = await self._service.act(
            CreateSession(name=given.get("name"), config=given.get("config")), caller
        )
        told = _session(made, self._service.context(caller))
        return answer(told, form, 201, {"location": f"/sessions/{made.id}"})

    async def _page(self, request: Request) -> Response:
        form = wanted(request.headers.get("accept"))
        asked = asked_of(request, "limit", "after", "pending_recall")
        limit = number_of(asked, "limit", 1, MOST) or PAGE
        recalled = _flag(asked, "pending_recall")
        caller = _caller(request)
        found: Sequence[Session] = await self._service.act(ListSessions(), caller)
        found = _behind(found, asked.get("after"))
        if recalled:
            found = []  # there are no recalls in this version, so that nobody waits for one
        context = self._service.context(caller)
        page = found[:limit]
        return answer(
            {
                "sessions": [_summary(each, context) for each in page],
                "next": page[-1].id if len(found) > limit else None,
            },
            form,
        )

    # -- one of them

    async def session(self, request: Request) -> Response:
        return await (self._close(request) if request.method == "DELETE" else self._show(request))

    async def _show(self, request: Request) -> Response:
        """The session with its messages: all of them, or as many as were asked for or can be written at once."""
        form = wanted(request.headers.get("accept"))
        asked = asked_of(request, "messages_after", "messages_before", "limit", "newest")
        after = number_of(asked, "messages_after", 0, _FAR)
        before = number_of(asked, "messages_before", 0, _FAR)
        limit = number_of(asked, "limit", 1, MOST)
        newest = _flag(asked, "newest")
        caller = _caller(request)
        name = request.path_params["session_id"]
        found: Session = await self._service.act(ShowSession(session=name), caller)
        context = self._service.context(caller)
        asked_for = range(0 if after is None else after + 1, _end_of_history(found, before))
        places = asked_for if limit is None else asked_for[-limit:] if newest else asked_for[:limit]
        messages = await context.messages(name, places.start, len(places), pictures=False)
        placed = list(enumerate(messages, places.start))
        told = _some(reversed(placed))[::-1] if newest else _some(placed)
        first, last = (told[0]["index"], told[-1]["index"]) if told else (asked_for.start, asked_for.stop - 1)
        # Looked at again: while the messages were read it may have gone on, or gone.
        session: Session = await self._service.act(ShowSession(session=name), caller)
        return answer(
            {
                **_session(session, context),
                "messages": told,
                "messages_next": last if not newest and last < asked_for.stop - 1 else None,
                "messages_previous": first if newest and first > asked_for.start else None,
            },
            form,
        )

    async def _close(self, request: Request) -> Response:
        form = wanted(request.headers.get("accept"))
        # What goes with a session are its schedules; jobs that would keep it come with a later version.
        _flag(asked_of(request, "delete_automations"), "delete_automations")
        await self._service.act(CloseSession(session=request.path_params["session_id"]), _caller(request))
        return answer({"deleted": True}, form)

    async def submit(self, request: Request) -> Response:
        """202 and the run once the message is saved; with ``wait``, 200 and how it ended."""
        form = wanted(request.headers.get("accept"))
        waits = _flag(asked_of(request, "wait"), "wait")
        name = request.path_params["session_id"]
        caller = _caller(request)
        # Before anything is made of the body: whose session it is decides what the sender hears first.
        await self._service.act(ShowSession(session=name), caller)
        data, size = await _read(request), len(await request.body())
        given = await off_loop(size, read_input, data, self._uploads, _identity(request))
        command = SubmitPrompt(message=given.text, content=given.content, session=name)
        run: Run = await self._service.act(command, caller)
        if not waits:
            return answer({"run_id": run.id, "session_id": run.session, "state": "running"}, form, 202)
        return answer(_run(await _end_of(run, request)), form)

    async def stop(self, request: Request) -> Response:
        form = wanted(request.headers.get("accept"))
        asked_of(request)
        stopped = await self._service.act(StopRun(session=request.path_params["session_id"]), _caller(request))
        return answer({"ok": True} if stopped else {"ok": False, "reason": "no active run"}, form)


# -- reading


def _identity(request: Request) -> Identity:
    found: Identity = request.scope["psi.identity"]
    return found


def _caller(request: Request) -> Caller:
    """Who asks. The session that is meant stands in the path; the one that is invoked from does not matter."""
    return _identity(request).caller()


async def _read(request: Request, empty: Any = None) -> Any:
    """The body, which is JSON. ``empty``: what no body at all stands for, where that stands for something."""
    content_type = request.headers.get("content-type", "")
    if came_as(content_type) is Form.EDN:
        raise JsonOnly(content_type)
    body = await request.body()
    if not body and empty is not None:
        return empty
    found, _ = await off_loop(len(body), read, body, Form.JSON)
    return found


def _named(data: Any, accepted: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise Invalid(f"the body must be a JSON object, got {shown(data)}", code="rest/invalid-request")
    for key in data:
        check_name("key", key, accepted, "rest/unknown-key")
    return data


def _flag(asked: Mapping[str, str], name: str) -> bool:
    text = asked.get(name, "0")
    found = _SWITCH.get(text.lower())
    if found is None:
        raise Invalid(
            f"`{name}` must be one of 1, 0, true, false, got {shown(text)}",
            code="rest/invalid-parameter",
            argument=name,
        )
    return found


def _behind(sessions: Sequence[Session], after: str | None) -> Sequence[Session]:
    if after is None:
        return sessions
    for place, each in enumerate(sessions):
        if each.id == after:
            return sessions[place + 1 :]
    raise CursorGone(after)


# -- telling


async def _end_of(run: Run, request: Request) -> Turn:
    """The turn when it has ended. The run goes on whether somebody waits for it or not; whoever hangs up is let go."""
    # Shielded: the future is the run's, and others may wait for it.
    ended = asyncio.ensure_future(asyncio.shield(run.finished))
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((ended, gone), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            raise ClientDisconnect
        return ended.result()
    finally:
        ended.cancel()
        gone.cancel()


def _summary(session: Session, context: Context) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name,
        "phase": session.phase.value,
        "owner": session.owner,
        "created_at": instant_text(session.created_at),
        "updated_at": instant_text(session.updated_at),
        "message_count": session.message_count,
        "pending_schedules": context.pending_count(session.id),
        "pending_recall": None,
    }


def _session(session: Session, context: Context) -> dict[str, Any]:
    return {**_summary(session, context), "active_run_id": session.run}


def _end_of_history(session: Session, before: int | None) -> int:
    return session.message_count if before is None else min(before, session.message_count)


def _some(messages: Iterable[tuple[int, Message]]) -> list[dict[str, Any]]:
    """Messages with their places, until they are too much for one answer; at least one."""
    told: list[dict[str, Any]] = []
    left = LONGEST_TOLD
    for index, each in messages:
        one = _message(index, each)
        left -= _AROUND_TEXT + weight(one["content"])
        if told and left < 0:
            break
        told.append(one)
    return told


def _message(index: int, message: Message) -> dict[str, Any]:
    origin = message.origin
    return {
        "index": index,
        "role": message.role,
        "content": within(message.text, LONGEST_TOLD),
        # What they are and how large; the pictures themselves stand in the graph's message-history.
        "images": [_image(part) for part in message.content if part.get("type") == "image"],
        "created_at": instant_text(message.timestamp) if message.timestamp is not None else None,
        "source": message.source,
        "run_id": message.run_id,
        "schedule_id": origin.schedule_id if origin is not None else None,
        "label": origin.label if origin is not None else None,
        "closure": message.closure,
    }


def _image(part: Mapping[Any, Any]) -> dict[str, Any]:
    # What was accepted once may have been anything.
    kind, size = part.get("media-type"), part.get("size")
    return {"media_type": str(kind) if is_text(kind) else None, "size": size if type(size) is int and size > 0 else 0}


def _run(turn: Turn) -> dict[str, Any]:
    # What was raised is in the run's record alone; here stands what the history says.
    error = None if turn.error is None else {"class": turn.error_class, "message": note_of(turn)}
    return {
        "run_id": turn.id,
        "session_id": turn.session,
        "state": turn.state.value,
        "source": turn.source,
        "started_at": instant_text(turn.started_at),
        "finished_at": instant_text(turn.finished_at) if turn.finished_at is not None else None,
        "answer": None if turn.answer is None else within(turn.answer, LONGEST_TOLD),
        "error": error,
        "message_index": turn.message_index,
        "context_tokens": turn.context_tokens,
        "max_context_tokens": turn.max_context_tokens,
        "token_count": turn.token_count,
        "tool_call_count": turn.tool_call_count,
    }
