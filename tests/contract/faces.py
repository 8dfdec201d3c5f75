"""Every way to psi, behind one set of words: a story says what it wants, a face says it in its own language.

What comes back has one form, whichever face it came through: :class:`Opened`, :class:`Scheduled` or :class:`Refusal`.
An adapter translates and decides nothing; where a face refuses by itself, before psi has seen anything (a type of
GraphQL, a flag of the command line), that is a refusal, too.

psi-tool's envelope is the same in process, over HTTP in JSON and EDN, and behind the command line, so these share what
reads it and differ in what carries it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import quote

from psi.core.commands import Caller
from psi.core.identity import Identity
from psi.edn import Keyword, dumps
from psi.faces.graphql.names import FIELDS
from psi.graph import ERRORS
from tests.faces.serving import Answer, Served
from tests.tool.cli import environment, psi_tool
from tool.render import as_json

__all__ = [
    "FACES",
    "CommandLine",
    "Eql",
    "Face",
    "GraphQL",
    "HttpEdn",
    "HttpJson",
    "InProcess",
    "Opened",
    "Problem",
    "Refusal",
    "Rest",
    "Scheduled",
]

USAGE = "usage"  # the code of a refusal that the command line makes by itself
INVALID = "graphql/invalid"  # likewise of GraphQL's validation

PREVIEW = 200


# -- what comes back


@dataclass(frozen=True)
class Opened:
    """A session."""

    id: str
    name: str | None
    phase: str
    created: str
    updated: str


@dataclass(frozen=True)
class Scheduled:
    """A schedule: the fields of its summary."""

    id: str
    kind: str
    label: str | None
    message: str
    status: str
    created_at: str
    fire_at: str
    origin: str
    created_session: str | None
    phase: str | None
    error: Mapping[str, Any] | None
    config: Mapping[str, Any] | None


@dataclass(frozen=True)
class Problem:
    path: str
    message: str


@dataclass(frozen=True)
class Refusal:
    """Why nothing was done. None: the face has no place for it."""

    code: str
    message: str | None
    data: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()


class Refused(AssertionError):
    """A story expected this to be done."""


Told = tuple[str, str, str | None]  # role, text and source of a message


class Face(Protocol):
    """What stories can say. ``session``: the invoking one; ``keys``: those of a psi-tool request, with underscores."""

    shows_whole_messages: bool  # in what create, list and cancel answer; otherwise it is a preview

    async def open(self, name: Any = None, config: Any = None) -> Opened | Refusal: ...
    async def sessions(self) -> list[Opened]: ...
    async def create(self, session: str | None, **keys: Any) -> Scheduled | Refusal: ...
    async def scheduled(self, session: str | None) -> list[Scheduled] | Refusal: ...
    async def cancel(self, session: str | None, schedule: Any) -> Scheduled | Refusal: ...
    async def look(self, schedule: str) -> Scheduled | None: ...
    async def pending_count(self, session: str) -> int: ...
    async def joined(self, session: str) -> list[tuple[str, str | None, str | None]]: ...
    async def history(self, session: str) -> list[Told]: ...
    async def misspell(self, session: str) -> Refusal: ...
    async def ask(self, session: str | None, query: str) -> Mapping[str, Any] | Refusal: ...
    async def submit(self, session: str | None, message: Any) -> str | Refusal: ...
    async def stop(self, session: str | None) -> bool | Refusal: ...
    async def close(self, session: str | None) -> str | Refusal: ...


def done(answer: Any) -> Any:
    """The answer, which must not be a refusal."""
    if isinstance(answer, Refusal):
        raise Refused(answer)
    return answer


_NAMES = {
    "schedule-id": "id",
    "kind": "kind",
    "label": "label",
    "message": "message",
    "status": "status",
    "created-at": "created_at",
    "fire-at": "fire_at",
    "origin-session-id": "origin",
    "created-session-id": "created_session",
    "delivery-phase": "phase",
    "error-summary": "error",
    "session-config-summary": "config",
}
_SCHEDULE = " ".join(f":psi.scheduler/{name}" for name in _NAMES)
_OF_SESSION = {"session-id": "id", "session-name": "name", "phase": "phase", "created": "created", "updated": "updated"}
_SESSION = " ".join(f":psi.agent-session/{name}" for name in _OF_SESSION)


def _scheduled(summary: Mapping[str, Any]) -> Scheduled:
    assert set(summary) == set(_NAMES)
    return Scheduled(**{_NAMES[name]: value for name, value in summary.items()})


def _opened(summary: Mapping[str, Any]) -> Opened:
    return Opened(**{_OF_SESSION[name]: value for name, value in summary.items()})


def _bare(data: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by their local names."""
    return {name.rpartition("/")[2]: value for name, value in data.items()}


def _given(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in keys.items()}


def _refusal(code: str, message: str, data: Mapping[str, Any]) -> Refusal:
    problems = tuple(Problem(each["path"], each["message"]) for each in data.get("problems", ()))
    return Refusal(code, message, data, problems)


# -- faces that the graph answers: what can be asked is asked in EQL


class _Asking:
    """The words that are questions, in terms of ``ask``."""

    async def ask(self, session: str | None, query: str) -> Mapping[str, Any] | Refusal:
        raise NotImplementedError

    async def look(self, schedule: str) -> Scheduled | None:
        ident = f"[:psi.scheduler/schedule-id {dumps(schedule)}]"
        found = await self.ask(None, f"[{{{ident} [{_SCHEDULE}]}}]")
        if isinstance(found, Refusal):
            assert found.code in ("graph/attribute-missing", "graph/attribute-unreachable"), found
            return None
        (entity,) = found.values()
        return _scheduled(_bare(entity))

    async def pending_count(self, session: str) -> int:
        count: int = done(await self.ask(session, "[:psi.scheduler/pending-count]"))["psi.scheduler/pending-count"]
        return count

    async def joined(self, session: str) -> list[tuple[str, str | None, str | None]]:
        """Each schedule with the name of the session it belongs to, and of the one it has made."""
        name = "psi.agent-session/session-name"
        joins = f"{{:psi.scheduler/origin-session [:{name}]}} {{:psi.scheduler/created-session [:{name}]}}"
        query = f"[{{:psi.scheduler/schedules [:psi.scheduler/schedule-id {joins}]}}]"
        return [
            (
                each["psi.scheduler/schedule-id"],
                *((each[f"psi.scheduler/{which}-session"] or {}).get(name) for which in ("origin", "created")),
            )
            for each in done(await self.ask(session, query))["psi.scheduler/schedules"]
        ]

    async def history(self, session: str) -> list[Told]:
        found = done(await self.ask(session, "[:psi.agent-session/message-history]"))
        return [_message(each) for each in found["psi.agent-session/message-history"]]

    async def misspell(self, session: str) -> Refusal:
        """An attribute that there is not, close to one that there is."""
        found = await self.ask(session, "[:psi.scheduler/pending-cuont]")
        assert isinstance(found, Refusal), found
        return found


def _message(told: Mapping[str, Any]) -> Told:
    return told["role"], "".join(part["text"] for part in told["content"]), told.get("source")


class _Envelopes(_Asking):
    """psi-tool, whatever carries the request. Envelopes are seen as JSON."""

    shows_whole_messages = False

    async def send(self, request: Mapping[str, Any], session: str | None) -> Mapping[str, Any] | Refusal:
        raise NotImplementedError

    async def _answer(self, session: str | None, action: str, op: str | None = None, **keys: Any) -> Any:
        request = {"action": action, **({"op": op} if op else {}), **_given(keys)}
        envelope = await self.send(request, session)
        if isinstance(envelope, Refusal):
            return envelope
        assert envelope["psi-tool/action"] == action
        assert envelope.get(f"psi-tool/{action}-op") == op
        if envelope["psi-tool/overall-status"] == "error":
            assert f"psi-tool/{action}" not in envelope
            error = envelope["psi-tool/error"]
            return _refusal(error["code"], error["message"], error["data"])
        assert envelope["psi-tool/overall-status"] == "ok"
        assert "psi-tool/error" not in envelope
        return envelope["psi-tool/result" if op is None else f"psi-tool/{action}"]

    async def open(self, name: Any = None, config: Any = None) -> Opened | Refusal:
        keys = {key: value for key, value in (("name", name), ("config", config)) if value is not None}
        found = await self._answer(None, "session", "create", **keys)
        return found if isinstance(found, Refusal) else _opened(found["session"])

    async def sessions(self) -> list[Opened]:
        found = done(await self._answer(None, "session", "list"))
        assert found["session-count"] == len(found["sessions"])
        return [_opened(each) for each in found["sessions"]]

    async def create(self, session: str | None, **keys: Any) -> Scheduled | Refusal:
        found = await self._answer(session, "scheduler", "create", **keys)
        return found if isinstance(found, Refusal) else _scheduled(found["schedule"])

    async def scheduled(self, session: str | None) -> list[Scheduled] | Refusal:
        found = await self._answer(session, "scheduler", "list")
        if isinstance(found, Refusal):
            return found
        assert found["schedule-count"] == len(found["schedules"])
        return [_scheduled(each) for each in found["schedules"]]

    async def cancel(self, session: str | None, schedule: Any) -> Scheduled | Refusal:
        found = await self._answer(session, "scheduler", "cancel", schedule_id=schedule)
        if isinstance(found, Refusal):
            return found
        assert found["cancelled?"] is True
        return _scheduled(found["schedule"])

    async def ask(self, session: str | None, query: str) -> Mapping[str, Any] | Refusal:
        found: Mapping[str, Any] | Refusal = await self._answer(session, "query", query=query)
        return found

    async def submit(self, session: str | None, message: Any) -> str | Refusal:
        found = await self._answer(session, "session", "submit", message=message)
        return found if isinstance(found, Refusal) else str(found["run-id"])

    async def stop(self, session: str | None) -> bool | Refusal:
        found = await self._answer(session, "session", "stop")
        if isinstance(found, Refusal):
            return found
        assert found["reason"] == (None if found["stopped?"] else "no active run")
        return bool(found["stopped?"])

    async def close(self, session: str | None) -> str | Refusal:
        found = await self._answer(session, "session", "close")
        if isinstance(found, Refusal):
            return found
        assert found["closed?"] is True
        return str(found["session"]["session-id"])


class InProcess(_Envelopes):
    """``Psi.tool``. Nobody checks a token here; it is taken as its owner's word."""

    def __init__(self, served: Served, token: str | None = None) -> None:
        self._psi = served.psi
        self._caller = Caller()
        if token is not None:
            assert served.credentials is not None
            found = served.credentials.find_token(token, now=datetime.now(UTC))
            assert found is not None
            self._caller = Identity(found.user, found.scopes, found.id).caller()

    async def send(self, request: Mapping[str, Any], session: str | None) -> Mapping[str, Any] | Refusal:
        found: Mapping[str, Any] = as_json(await self._psi.tool(request, caller=self._caller._replace(session=session)))
        return found


class _Http:
    def __init__(self, served: Served, token: str | None = None) -> None:
        self._served = served
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    async def post(self, path: str, body: Any, session: str | None, **more: str) -> Answer:
        invoking = {} if session is None else {"psi-session": session}
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return await self._served.request("POST", path, body, {**self._headers, **invoking, **named})


def _http_refusal(answer: Answer) -> Refusal:
    error = answer.json()["error"]
    inner = error["details"].get("error")
    if inner is not None:  # what was called through the graph has refused; that it was called so is a detail
        return _refusal(inner["code"], inner["message"], inner["data"])
    return _refusal(error["code"], error["message"], error["details"])


class HttpJson(_Http, _Envelopes):
    async def send(self, request: Mapping[str, Any], session: str | None) -> Mapping[str, Any] | Refusal:
        answer = await self.post("/psi-tool", request, session)
        if answer.status != 200:
            return _http_refusal(answer)
        assert answer.type == "application/json"
        found: Mapping[str, Any] = answer.json()
        return found


class Rest(HttpJson):
    """Sessions as resources. What is no matter of one session's address, schedules among it, is said by psi-tool."""

    async def _call(self, method: str, path: str, body: Any = None, expected: int = 200) -> Any:
        answer = await self._served.request(method, path, body, self._headers)
        if answer.status >= 400:
            return _http_refusal(answer)
        assert (answer.status, answer.type) == (expected, "application/json")
        return answer.json()

    async def open(self, name: Any = None, config: Any = None) -> Opened | Refusal:
        body = {key: value for key, value in (("name", name), ("config", config)) if value is not None}
        found = await self._call("POST", "/sessions", body, 201)
        return found if isinstance(found, Refusal) else self._opened(found)

    def _opened(self, found: Mapping[str, Any]) -> Opened:
        return Opened(found["id"], found["name"], found["phase"], found["created_at"], found["updated_at"])

    async def sessions(self) -> list[Opened]:
        """All of them, from pages of two."""
        opened: list[Opened] = []
        after = ""
        while True:
            page = done(await self._call("GET", f"/sessions?limit=2{after}"))
            opened += [self._opened(each) for each in page["sessions"]]
            if page["next"] is None:
                return opened
            after = f"&after={page['next']}"

    async def pending_count(self, session: str) -> int:
        return int(done(await self._call("GET", _at(session)))["pending_schedules"])

    async def history(self, session: str) -> list[Told]:
        found = done(await self._call("GET", _at(session)))
        return [(each["role"], each["content"], each["source"]) for each in found["messages"]]

    async def submit(self, session: str | None, message: Any) -> str | Refusal:
        if session is None:
            return await super().submit(session, message)
        found = await self._call("POST", f"{_at(session)}/messages", {"content": message}, 202)
        if isinstance(found, Refusal):
            # What psi-tool calls `message` is `content` here, in what is refused, too.
            return replace(found, message=(found.message or "").replace("`content`", "`message`"))
        return str(found["run_id"])

    async def stop(self, session: str | None) -> bool | Refusal:
        if session is None:
            return await super().stop(session)
        found = await self._call("POST", f"{_at(session)}/stop")
        if isinstance(found, Refusal):
            return found
        assert found == ({"ok": True} if found["ok"] else {"ok": False, "reason": "no active run"})
        return bool(found["ok"])

    async def close(self, session: str | None) -> str | Refusal:
        if session is None:
            return await super().close(session)
        found = await self._call("DELETE", _at(session))
        if isinstance(found, Refusal):
            return found
        assert found == {"deleted": True}
        return session


def _at(session: str) -> str:
    return f"/sessions/{quote(session, safe='')}"


class HttpEdn(_Http, _Envelopes):
    async def send(self, request: Mapping[str, Any], session: str | None) -> Mapping[str, Any] | Refusal:
        body = dumps({Keyword(name): value for name, value in request.items()})
        answer = await self.post("/psi-tool", body, session, content_type="application/edn", accept="application/edn")
        if answer.status != 200:
            return _http_refusal(answer)
        assert answer.type == "application/edn"
        found: Mapping[str, Any] = as_json(answer.edn())
        return found


class CommandLine(_Envelopes):
    """A process for each request, with the friendly commands."""

    def __init__(self, served: Served, token: str | None = None) -> None:
        self._env = environment(PSI_URL=served.url, **({"PSI_TOKEN": token} if token else {}))

    async def send(self, request: Mapping[str, Any], session: str | None) -> Mapping[str, Any] | Refusal:
        keys = dict(request)
        line = [keys.pop("action"), *([keys.pop("op")] if "op" in keys else [])]
        for name, value in keys.items():
            line.append(f"--{name}={value if isinstance(value, str) else json.dumps(value)}")
        ended = await psi_tool(*line, env={**self._env, **({"PSI_SESSION": session} if session else {})})
        if ended.code == 2 or not ended.out:
            assert not ended.out
            assert "Traceback" not in ended.err
            return Refusal(USAGE if ended.code == 2 else "refused", ended.err)
        assert ended.err == ""
        envelope: Mapping[str, Any] = ended.json()
        assert ended.code == (0 if envelope["psi-tool/overall-status"] == "ok" else 1)
        return envelope


# -- the graph's own mutations


class Eql(_Http, _Asking):
    """POST /eql, strict: queries for what is asked, mutations for what is done."""

    shows_whole_messages = True

    async def ask(self, session: str | None, query: str) -> Mapping[str, Any] | Refusal:
        answer = await self.post("/eql", {"query": query, "strict": True}, session)
        if answer.status != 200:
            return _http_refusal(answer)
        found: Mapping[str, Any] = answer.json()
        assert ERRORS not in found
        return found

    async def _call(self, session: str | None, name: str, params: Mapping[str, Any], below: str) -> Any:
        written = dumps({Keyword(key): value for key, value in params.items()})
        found = await self.ask(session, f"[{{({name} {written}) [{below}]}}]")
        return found if isinstance(found, Refusal) else _bare(found[name])

    async def open(self, name: Any = None, config: Any = None) -> Opened | Refusal:
        params = {key: value for key, value in (("name", name), ("config", config)) if value is not None}
        found = await self._call(None, "psi.agent-session/create", params, _SESSION)
        return found if isinstance(found, Refusal) else _opened(found)

    async def sessions(self) -> list[Opened]:
        found = done(await self.ask(None, f"[{{:psi.system/sessions [{_SESSION}]}}]"))
        return [_opened(_bare(each)) for each in found["psi.system/sessions"]]

    async def create(self, session: str | None, **keys: Any) -> Scheduled | Refusal:
        found = await self._call(session, "psi.scheduler/create", _given(keys), _SCHEDULE)
        return found if isinstance(found, Refusal) else _scheduled(found)

    async def scheduled(self, session: str | None) -> list[Scheduled] | Refusal:
        found = await self.ask(session, f"[{{:psi.scheduler/schedules [{_SCHEDULE}]}}]")
        if isinstance(found, Refusal):
            return found
        schedules = [_scheduled(_bare(each)) for each in found["psi.scheduler/schedules"]]
        return [each for each in schedules if each.status in ("pending", "queued")]

    async def cancel(self, session: str | None, schedule: Any) -> Scheduled | Refusal:
        found = await self._call(session, "psi.scheduler/cancel", {"schedule-id": schedule}, _SCHEDULE)
        return found if isinstance(found, Refusal) else _scheduled(found)

    async def submit(self, session: str | None, message: Any) -> str | Refusal:
        found = await self._call(session, "psi.agent-session/submit", {"message": message}, ":psi.run/id")
        return found if isinstance(found, Refusal) else str(found["id"])

    async def stop(self, session: str | None) -> bool | Refusal:
        found = await self._call(session, "psi.agent-session/stop", {}, ":psi.agent-session/stopped?")
        return found if isinstance(found, Refusal) else bool(found["stopped?"])

    async def close(self, session: str | None) -> str | Refusal:
        found = await self._call(session, "psi.agent-session/close", {}, ":psi.agent-session/closed?")
        if isinstance(found, Refusal):
            return found
        assert found["closed?"] is True
        return str(session)


# -- GraphQL


def _camel(name: str) -> str:
    first, *rest = name.replace("_", "-").split("-")
    return first + "".join(part.title() for part in rest)


_FIELDS = {_camel(name): name for name in _NAMES}
_SCHEDULE_FIELDS = " ".join(_FIELDS)
_SESSION_FIELDS = " ".join(map(_camel, _OF_SESSION))
_TYPES = {
    "kind": "ScheduleKind!",
    "message": "String!",
    "delayMs": "Long",
    "at": "String",
    "label": "String",
    "sessionConfig": "JSON",
    "sessionId": "ID",
    "scheduleId": "ID!",
    "name": "String",
    "config": "JSON",
    "id": "ID!",
    "statuses": "[ScheduleStatus!]",
    "query": "EQL!",
}


def _word(name: Any) -> Any:
    """A word of an enum, as the rest of psi writes it."""
    return name if name is None else name.lower().replace("_", "-")


class GraphQL(_Http):
    shows_whole_messages = True

    async def send(
        self, session: str | None, kind: str, field: str, arguments: Mapping[str, Any], below: str = ""
    ) -> Any:
        """One root field with its arguments as variables. What is under it, or why there is nothing."""
        declared = ", ".join(f"${name}: {_TYPES[name]}" for name in arguments)
        passed = ", ".join(f"{name}: ${name}" for name in arguments)
        document = (
            f"{kind}{f'({declared})' if declared else ''} "
            f"{{ {field}{f'({passed})' if passed else ''}{f' {{ {below} }}' if below else ''} }}"
        )
        answer = await self.post("/graphql", {"query": document, "variables": dict(arguments)}, session)
        if "error" in answer.json():
            return _http_refusal(answer)
        assert answer.status == 200
        response = answer.json()
        if "errors" in response:
            first = response["errors"][0]
            told = first["extensions"]
            return Refusal(told["code"], first["message"], told.get("data"))
        return response["data"][field]

    async def _act(self, session: str | None, field: str, arguments: Mapping[str, Any], below: str) -> Any:
        found = await self.send(session, "mutation", field, arguments, f"{below} problems {{ path message code }}")
        if isinstance(found, Refusal) or not found["problems"]:
            return found
        problems = found["problems"]
        (code,) = {each["code"] for each in problems}
        if code != "session-config/invalid":
            (only,) = problems
            return Refusal(code, only["message"])
        paths = [each["path"].partition(".")[2] for each in problems]
        return Refusal(
            code, None, None, tuple(Problem(path, each["message"]) for path, each in zip(paths, problems, strict=True))
        )

    def _scheduled(self, found: Mapping[str, Any]) -> Scheduled:
        summary = {_FIELDS[name]: value for name, value in found.items()}
        for name in ("kind", "status", "delivery-phase"):
            summary[name] = _word(summary[name])
        return _scheduled(summary)

    def _opened(self, found: Mapping[str, Any]) -> Opened:
        return Opened(
            found["sessionId"], found["sessionName"], _word(found["phase"]), found["created"], found["updated"]
        )

    async def open(self, name: Any = None, config: Any = None) -> Opened | Refusal:
        arguments = {key: value for key, value in (("name", name), ("config", config)) if value is not None}
        found = await self._act(None, "createSession", arguments, f"session {{ {_SESSION_FIELDS} }}")
        return found if isinstance(found, Refusal) else self._opened(found["session"])

    async def sessions(self) -> list[Opened]:
        return [self._opened(each) for each in done(await self.send(None, "query", "sessions", {}, _SESSION_FIELDS))]

    async def create(self, session: str | None, **keys: Any) -> Scheduled | Refusal:
        arguments = {_camel(name): value for name, value in keys.items()}
        if isinstance(arguments.get("kind"), str):
            arguments["kind"] = arguments["kind"].upper()
        found = await self._act(session, "createSchedule", arguments, f"schedule {{ {_SCHEDULE_FIELDS} }}")
        return found if isinstance(found, Refusal) else self._scheduled(found["schedule"])

    async def scheduled(self, session: str | None) -> list[Scheduled] | Refusal:
        open_ones = {"statuses": ["PENDING", "QUEUED"]}
        found = await self.send(session, "query", "schedules", open_ones, _SCHEDULE_FIELDS)
        return found if isinstance(found, Refusal) else [self._scheduled(each) for each in found]

    async def cancel(self, session: str | None, schedule: Any) -> Scheduled | Refusal:
        arguments = {"scheduleId": schedule}
        found = await self._act(session, "cancelSchedule", arguments, f"schedule {{ {_SCHEDULE_FIELDS} }}")
        return found if isinstance(found, Refusal) else self._scheduled(found["schedule"])

    async def look(self, schedule: str) -> Scheduled | None:
        found = done(await self.send(None, "query", "schedule", {"id": schedule}, _SCHEDULE_FIELDS))
        return None if found is None else self._scheduled(found)

    async def pending_count(self, session: str) -> int:
        found = done(await self.send(None, "query", "session", {"id": session}, "schedulerPendingCount"))
        return int(found["schedulerPendingCount"])

    async def joined(self, session: str) -> list[tuple[str, str | None, str | None]]:
        joins = "originSession { sessionName } createdSession { sessionName }"
        below = f"schedulerSchedules {{ scheduleId {joins} }}"
        found = done(await self.send(None, "query", "session", {"id": session}, below))
        return [
            (
                each["scheduleId"],
                (each["originSession"] or {}).get("sessionName"),
                (each["createdSession"] or {}).get("sessionName"),
            )
            for each in found["schedulerSchedules"]
        ]

    async def history(self, session: str) -> list[Told]:
        found = done(await self.send(None, "query", "session", {"id": session}, "messageHistory"))
        return [_message(each) for each in found["messageHistory"]]

    async def misspell(self, session: str) -> Refusal:
        assert "schedulerPendingCount" in FIELDS["Session"]
        found = await self.send(None, "query", "session", {"id": session}, "schedulerPendingCuont")
        assert isinstance(found, Refusal), found
        return found

    async def ask(self, session: str | None, query: str) -> Mapping[str, Any] | Refusal:
        found = await self.send(session, "query", "eql", {"query": query})
        if isinstance(found, Refusal) or ERRORS not in found:
            return found
        problem = next(iter(found[ERRORS].values()))
        return Refusal(f"graph/{problem['cause']}", problem["message"])

    async def submit(self, session: str | None, message: Any) -> str | Refusal:
        found = await self._act(session, "submitPrompt", {"message": message}, "run { id }")
        return found if isinstance(found, Refusal) else str(found["run"]["id"])

    async def stop(self, session: str | None) -> bool | Refusal:
        found = await self._act(session, "stopRun", {}, "stopped")
        return found if isinstance(found, Refusal) else bool(found["stopped"])

    async def close(self, session: str | None) -> str | Refusal:
        found = await self._act(session, "closeSession", {}, "closedSessionId")
        return found if isinstance(found, Refusal) else str(found["closedSessionId"])


FACES: Mapping[str, Callable[..., Face]] = {
    "in process": InProcess,
    "HTTP JSON": HttpJson,
    "HTTP EDN": HttpEdn,
    "REST": Rest,
    "EQL": Eql,
    "GraphQL": GraphQL,
    "command line": CommandLine,
}
