"""Sessions as resources, their events, and the files that are sent to them."""

from __future__ import annotations

from typing import Any, Final

from psi.faces.openapi.records import SCHEMAS
from psi.faces.openapi.words import EVENTS, JSON, TEXT, answered, body, closed, operation, parameter, ref, shown, told
from psi.faces.rest import MOST, PAGE
from psi.faces.streams.seen import LARGEST_SEQ, RUN, RUN_AND_SEQ
from psi.settings import Settings

__all__ = ["SCHEMAS", "paths"]

_EXAMPLE_ID: Final = "ses-7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b"
_EXAMPLE_RUN: Final = "run-0b9d6c1e-2f3a-4b5c-8d7e-6f5a4b3c2d1e"
_EXAMPLE_SESSION: Final = {
    "id": _EXAMPLE_ID,
    "name": "First",
    "phase": "idle",
    "owner": "local",
    "created_at": "2026-04-22T13:00:00Z",
    "updated_at": "2026-04-22T13:00:00Z",
    "message_count": 0,
    "pending_schedules": 0,
    "pending_recall": None,
}

_OF_PATH: Final = {
    "name": "session_id",
    "in": "path",
    "required": True,
    "description": "its id, `ses-…`",
    "schema": {"type": "string", "minLength": 1, "pattern": "^[^/]+$"},
}

_SWITCH: Final = {"type": "string", "enum": ["1", "0", "true", "false"]}


def _sessions() -> dict[str, Any]:
    page = told(
        {
            "sessions": {"type": "array", "items": ref("SessionSummary")},
            "next": {"type": ["string", "null"], "description": "where there is more: what `after` has to be to go on"},
        }
    )
    return operation(
        "sessions",
        "The sessions that the caller may see, the oldest first",
        {200: answered("a page of them", shown(page, {"sessions": [_EXAMPLE_SESSION], "next": None}))},
        (400, 404, 406),
        edn=True,
        parameters=[
            parameter("limit", f"how many; {PAGE} unless told", {"type": "integer", "minimum": 1, "maximum": MOST}),
            parameter("after", "the id of the last one of the page before", TEXT),
            parameter("pending_recall", "1: those that wait for a recall", _SWITCH),
        ],
    )


def _create_session() -> dict[str, Any]:
    made = answered("the session", shown(ref("Session"), {**_EXAMPLE_SESSION, "active_run_id": None}))
    made["headers"] = {"Location": {"schema": TEXT}}
    return operation(
        "createSession",
        "Begin a session",
        {201: made},
        (400, 404, 406, 415),
        edn=True,
        parameters=[{"$ref": "#/components/parameters/session"}],
        requestBody=body(
            {
                JSON: {
                    "schema": ref("SessionRequest"),
                    "examples": {
                        "named": {"value": {"name": "First"}},
                        "configured": {"value": {"config": {"session_name": "Review", "thinking_level": "low"}}},
                    },
                }
            },
            required=False,
        ),
    )


def _session() -> dict[str, Any]:
    example = {
        **_EXAMPLE_SESSION,
        "active_run_id": None,
        "messages": [],
        "messages_next": None,
        "messages_previous": None,
    }
    return operation(
        "session",
        "A session with its messages",
        {200: answered("the session; its messages, or as many as fit", shown(ref("SessionWithMessages"), example))},
        (400, 404, 406, 422),
        edn=True,
        parameters=[
            _OF_PATH,
            parameter(
                "messages_after",
                "the index of a message: only those behind it",
                {"type": "integer", "minimum": 0, "maximum": 10**15},
            ),
            parameter(
                "messages_before",
                "the index of a message: only those before it",
                {"type": "integer", "minimum": 0, "maximum": 10**15},
            ),
            parameter("limit", "how many messages at most", {"type": "integer", "minimum": 1, "maximum": MOST}),
            parameter("newest", "1: the newest of them, where there are more; otherwise the oldest", _SWITCH),
        ],
    )


def _delete_session() -> dict[str, Any]:
    return operation(
        "deleteSession",
        "Delete a session with its history; its run is stopped and its schedules are cancelled",
        {200: answered("it is gone", shown(told({"deleted": {"const": True}}), {"deleted": True}))},
        (400, 404, 406, 409),
        edn=True,
        parameters=[
            _OF_PATH,
            parameter("delete_automations", "1: whatever is bound to it goes with it", _SWITCH),
        ],
    )


def _submit(settings: Settings) -> dict[str, Any]:
    begun = told({"run_id": TEXT, "session_id": TEXT, "state": {"const": "running"}})
    run = {
        "run_id": _EXAMPLE_RUN,
        "session_id": _EXAMPLE_ID,
        "state": "ok",
        "source": "user",
        "started_at": "2026-04-22T13:00:00Z",
        "finished_at": "2026-04-22T13:00:01Z",
        "answer": "You said: Hello.",
        "error": None,
        "message_index": 1,
        "context_tokens": 4,
        "max_context_tokens": 8_192,
        "token_count": 3,
        "tool_call_count": 0,
    }
    return operation(
        "submitMessage",
        "Send a message to a session; a run begins that answers it",
        {
            200: answered("with `wait`: how the run ended", shown(ref("Run"), run)),
            202: answered(
                "the message is saved and the run has begun",
                shown(begun, {"run_id": _EXAMPLE_RUN, "session_id": _EXAMPLE_ID, "state": "running"}),
            ),
        },
        (400, 404, 406, 409, 415),
        edn=True,
        description=f"A session has one run at a time. The body has at most {settings.max_message} bytes.",
        parameters=[_OF_PATH, parameter("wait", "1: the answer comes when the run has ended", _SWITCH)],
        requestBody=body({JSON: {"schema": ref("MessageRequest"), "example": {"content": "Hello."}}}),
    )


def _stop() -> dict[str, Any]:
    answers = {
        "anyOf": [
            told({"ok": {"const": True}}),
            told({"ok": {"const": False}, "reason": {"const": "no active run"}}),
        ]
    }
    return operation(
        "stopRun",
        "Ask the session's run to stop",
        {200: answered("whether there was one", shown(answers, {"ok": True}))},
        (400, 404, 406),
        edn=True,
        parameters=[_OF_PATH],
    )


def _events() -> dict[str, Any]:
    seen = closed(
        {
            "run_id": {"type": "string", "pattern": f"^{RUN}$", "description": "the run of the last event"},
            "after": {"type": "integer", "minimum": 0, "maximum": LARGEST_SEQ, "description": "its number in the run"},
        },
        ["run_id", "after"],
    )
    return operation(
        "sessionEvents",
        "What happens in a session, as server-sent events; goes on until one side ends it",
        {200: answered("the frames, as a WebSocket at /ws/sessions/{session_id} has them", {EVENTS: {}})},
        (400, 404, 406),
        edn=True,
        parameters=[
            _OF_PATH,
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "`RUN:SEQ`, the id of the last event that was seen: what came behind it is sent first",
                "schema": {"type": "string", "pattern": f"^({RUN_AND_SEQ})?$"},
            },
            {
                "name": "seen",
                "in": "query",
                "description": "the last event that was seen, for who cannot send headers: `run_id=RUN&after=SEQ`",
                "style": "form",
                "explode": True,  # two parameters of the address, both or neither
                "schema": seen,
            },
        ],
    )


def _upload(settings: Settings) -> dict[str, Any]:
    several = told({"files": {"type": "array", "items": ref("Upload"), "minItems": 2}})
    example = {
        "name": "report.pdf",
        "path": "/srv/psi/uploads/local/5b0c8f6e-3f7d-4a55-9a53-0d7f2b6f2a11/report.pdf",
        "size": 48_213,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    }
    return operation(
        "upload",
        "Send a file that messages can then refer to",
        {
            201: answered(
                "what was stored; where a form had several files, all of them under `files`",
                shown({"anyOf": [ref("Upload"), several]}, example),
            )
        },
        (400, 406, 409, 415),
        edn=True,
        description="The file as the body, or a form with some; no body is a file without a byte. All files of a "
        f"request have at most {settings.max_upload} bytes together. Refused with 409 where psi keeps its data in "
        "memory.",
        parameters=[
            parameter(
                "name",
                "what a file that is the body is called; a Content-Disposition header may say it instead, and without "
                "either it is `file`",
                {"type": "string", "pattern": r"\S"},
            )
        ],
        requestBody=body(
            {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "properties": {"file": {"type": "string", "format": "binary"}},
                        "required": ["file"],
                    }
                },
            },
            required=False,
        ),
    )


def paths(settings: Settings) -> dict[str, Any]:
    return {
        "/sessions": {"get": _sessions(), "post": _create_session()},
        "/sessions/{session_id}": {"get": _session(), "delete": _delete_session()},
        "/sessions/{session_id}/messages": {"post": _submit(settings)},
        "/sessions/{session_id}/stop": {"post": _stop()},
        "/sessions/{session_id}/events": {"get": _events()},
        "/uploads": {"post": _upload(settings)},
    }
