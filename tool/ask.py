"""A request command: values become a request, the service answers, the answer becomes text and an exit code.

Checks no value that the service checks, and decides nothing about sessions or schedules. On the way of a pipe it
imports json and a socket and nothing heavy; what a terminal gets is made in :mod:`tool.tables`.
"""

from __future__ import annotations

import json
import sys

from tool.client import SILENCE, Address, BadAddress, NoService, NotHttp, Reply, address, post
from tool.commands import DEFAULT_URL, ERROR, MAP, NO_SERVICE, OK, WRONG_USAGE, Command, Option
from tool.output import EDN, PEOPLE, data, form, has_colours, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final, NoReturn

    from tool.arguments import Values

__all__ = ["place", "plain_header", "run", "say"]

AS_JSON: Final = "application/json"
AS_EDN: Final = "application/edn"
_STATUS: Final = "psi-tool/overall-status"
_FAILED: Final = ("error", "interrupted")  # how a run ends that did not do what it was to do


class _Ended(Exception):
    """Nothing more to do: what was to be said is said."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Twice(ValueError):
    """A key of a JSON map that is there twice; the words are the service's."""


def run(command: Command, values: Values, silence: float = SILENCE) -> int:
    """Carry out a command that sends a request. ``silence``: how long the service may say nothing, in seconds."""
    try:
        if command.does == "raw":
            body, kind = _raw(command.options[0], values["request"])
            return _tool(body, kind, values, None if _waits(body, kind) else silence)
        if command.does == "query" and values["explain"]:
            return _explain(command, values, silence)
        body = json.dumps(_request(command, values)).encode()
        return _tool(body, AS_JSON, values, None if values.get("wait") else silence)
    except _Ended as ended:
        say(ended.message)
        return ended.code


# -- what is sent


def _raw(option: Option, given: str) -> tuple[bytes, str]:
    """The request as it was given, and what it is written in."""
    name = _file_in(given)
    # The bytes that were typed or stand there, whatever they are.
    body = _bytes(name, option) if name else given.encode("utf-8", "surrogateescape")
    if not body.strip():
        _wrong("the request is empty; accepted: a map with `action`, as EDN or JSON")
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        # `{"action"` may be either. Said to be neither, the service tells about the one that it looks like.
        return body, "text/plain" if body.lstrip()[1:].lstrip().startswith(b'"') else AS_EDN
    return body, AS_JSON


def _waits(body: bytes, kind: str) -> bool:
    """Whether the answer comes when a run has ended, which may take as long as it takes."""
    if kind == AS_JSON:
        asked = json.loads(body)
        return isinstance(asked, dict) and bool(asked.get("wait"))
    # Reading EDN would cost more than the request. Mistaken, it only waits for an answer without a limit.
    return b":wait" in body or b'"wait"' in body


def _request(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    action, *op = command.words
    request: dict[str, Any] = {"action": action, **({"op": op[0]} if op else {})}
    request |= _keys(command, values)
    request.pop("explain", None)
    return request


def _keys(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as keys of a request."""
    given = [(option, values[option.name]) for option in command.options if values[option.name] is not None]
    if sum(option.file and _file_in(value) == "-" for option, value in given) > 1:
        _wrong("standard input can be read for one option only")
    found = {}
    for option, value in given:
        text = _text(value, option) if option.file else value
        found[option.name] = _map(text, option) if option.kind == MAP else text
    return found


def _map(text: str, option: Option) -> Any:
    """JSON as data, anything else as it is: the service reads EDN."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except _Twice as twice:
        # As data it would be one key, and the service would never know that there was another.
        _wrong(f"{option.flag} is not JSON that can be taken at its word: {twice}")
    except (ValueError, RecursionError):
        return text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(f"key {json.dumps(key[:100])} is given twice")
        found[key] = value
    return found


def _text(given: str, option: Option) -> str:
    name = _file_in(given)
    if not name:
        return given
    try:
        return _bytes(name, option).decode()
    except UnicodeDecodeError:
        _wrong(f"{option.flag}: {name} is no UTF-8 text")


def _file_in(given: str) -> str:
    """The file that a value names, ``-`` for standard input; nothing for a value that is meant as it stands."""
    return given if given == "-" else given[1:] if given.startswith("@") else ""


def _bytes(name: str, option: Option) -> bytes:
    if name == "-" and sys.stdin is None:  # how Python says that it was closed by whoever started us
        _wrong(f"{option.place or option.flag}: standard input is closed")
    try:
        if name == "-":
            return sys.stdin.buffer.read()
        with open(name, "rb") as file:  # noqa: PTH123 – pathlib costs as much as the rest of this module
            return file.read()
    except OSError as error:
        _wrong(f"{option.place or option.flag}: {name} cannot be read: {error.strerror or error}")


# -- the exchange


def place(values: Values) -> Address:
    """Where the service is; SystemExit with 2 for a URL that is none."""
    try:
        return address(values["url"] or DEFAULT_URL)
    except BadAddress as error:
        _wrong(f"{values.source('url')}: {error}")


def plain_header(values: Values, name: str) -> str:
    """A value that may stand in a line of the protocol; nothing where none was given."""
    value: str = values[name] or ""
    if not all(" " <= character <= "~" for character in value):
        _wrong(f"{values.source(name)} takes printable ASCII only, got {value!r}")
    return value


def _send(path: str, body: bytes, kind: str, values: Values, silence: float | None) -> tuple[Address, Reply]:
    headers = {"Content-Type": kind, "Accept": AS_EDN if form(values) == EDN else AS_JSON}
    if session := plain_header(values, "session"):
        headers["Psi-Session"] = session
    if token := plain_header(values, "token"):
        headers["Authorization"] = f"Bearer {token}"
    at = place(values)
    try:
        return at, post(at, path, body, headers, silence)
    except NoService as error:
        from tool.refusals import no_service

        raise _Ended(NO_SERVICE, no_service(at, error)) from None
    except NotHttp as error:
        from tool.refusals import not_psi

        raise _Ended(NO_SERVICE, not_psi(at, error)) from None


def _tool(body: bytes, kind: str, values: Values, silence: float | None) -> int:
    at, reply = _send("/psi-tool", body, kind, values, silence)
    reader = form(values)
    if reader == EDN:
        # The envelope names its status before anything that somebody else wrote, so the first mention is the one.
        status = reply.body.partition(b":psi-tool/overall-status ")[2]
        if not status or reply.status not in (200, 400):
            raise _refused(at, reply)
        data(reply.body)
        return OK if status.startswith(b":ok") and not _failed_edn(reply.body) else ERROR
    envelope = _json(reply.body)
    if not isinstance(envelope, dict) or _STATUS not in envelope:
        raise _refused(at, reply)
    if values.get("only-id"):
        _show_ids(envelope, values)
    elif reader == PEOPLE:
        _show(at, envelope, values)
    else:
        data(reply.body)
    return OK if envelope[_STATUS] == "ok" and not _failed(envelope) else ERROR


def _show(at: Address, envelope: dict[str, Any], values: Values) -> None:
    from tool.tables import Strange, show

    try:
        show(envelope, variable=values.from_variable("session"))
    except Strange as strange:
        from tool.refusals import other_version

        raise _Ended(NO_SERVICE, other_version(at, strange)) from None


def _show_ids(envelope: dict[str, Any], values: Values) -> None:
    """The ids alone; or a sentence beside them, so that nothing else is ever taken for one."""
    if envelope[_STATUS] != "ok":
        from tool.refusals import helps, sentence

        error = _below(envelope, "psi-tool/error")
        said = (sentence(error), helps(error, values.from_variable("session")))
        raise _Ended(ERROR, "\n".join(filter(None, said)))
    found = _ids(envelope)
    if found is None:
        raise _Ended(WRONG_USAGE, "The request was carried out, and its answer has no id to give.")
    if found:
        data("\n".join(found).encode())


def _ids(envelope: dict[str, Any]) -> list[str] | None:
    """The ids of what the answer is about: the run that was begun, or else what is shown or listed."""
    for action in ("scheduler", "session"):
        told = _below(envelope, f"psi-tool/{action}")
        for one, several, key in (("schedule", "schedules", "schedule-id"), ("session", "sessions", "session-id")):
            listed = told.get(several)
            if isinstance(listed, list):
                return [str(each[key]) for each in listed if isinstance(each, dict) and key in each]
            found = told.get("run-id") or _below(told, one).get(key)
            if found:
                return [str(found)]
    return None


def _below(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = given.get(key)
    return found if isinstance(found, dict) else {}


def _failed(envelope: dict[str, Any]) -> bool:
    """Whether the run that was waited for did not do what it was to do. The service says ok: it has answered."""
    return _below(_below(envelope, "psi-tool/session"), "run").get("state") in _FAILED


def _failed_edn(body: bytes) -> bool:
    if b" :run {" not in body:
        return False
    envelope = _edn(body)
    return isinstance(envelope, dict) and _failed(envelope)


def _explain(command: Command, values: Values, silence: float) -> int:
    """The plan of a query. It comes from /eql, whose errors are not envelopes."""
    keys = _keys(command, values)
    if (named := keys.pop("session-id", None)) is not None:
        values["session"] = named  # which it takes from the header alone
    body = json.dumps({**keys, "explain": True}).encode()
    at, reply = _send("/eql", body, AS_JSON, values, silence)
    failed = reply.status != 200
    reader = form(values)
    if reader == EDN:
        said_so = reply.status in (400, 404, 409, 422) and reply.body.startswith(b"{:error ")
        if not said_so and (failed or not reply.body.startswith(b"{:explain ")):
            raise _refused(at, reply)
        data(reply.body)
        return ERROR if failed else OK
    answer = _json(reply.body)
    said = answer if isinstance(answer, dict) else {}
    is_error = failed and reply.status in (400, 404, 409, 422) and isinstance(said.get("error"), dict)
    if not is_error and (failed or "explain" not in said):
        raise _refused(at, reply)
    if reader != PEOPLE:
        data(reply.body)
    elif is_error:
        from tool.tables import complain

        complain(said["error"], variable=values.from_variable("session"))
    else:
        data(plain(said["explain"]).rstrip("\n").encode("utf-8", "replace"))
    return ERROR if is_error else OK


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _edn(body: bytes) -> Any:
    """Costs a little, and is asked where that does not matter: a run was waited for, or it has failed anyway."""
    from psi.edn import ReadError, loads

    try:
        return loads(body)
    except ReadError:
        return None


# -- what is said


def say(message: str) -> None:
    """A sentence for people, beside the answer; red where somebody sees it. A service may have had a part in it, so
    what would be obeyed by a terminal is left out."""
    message = "".join(each for each in message if each == "\n" or each.isprintable())
    sys.stderr.write(f"\x1b[31m{message}\x1b[0m\n" if has_colours(sys.stderr) else f"{message}\n")


def _refused(at: Address, reply: Reply) -> _Ended:
    from tool.refusals import refusal

    return _Ended(*refusal(at, reply.status, _message(reply.body), reply.headers))


def _message(body: bytes) -> str:
    """What the service says of an error; nothing where it is not said as psi says it."""
    said = _edn(body) if body.startswith(b"{:error ") else _json(body)
    error = said.get("error") if isinstance(said, dict) else None
    return str(error["message"]) if isinstance(error, dict) and "message" in error else ""


def _wrong(message: str) -> NoReturn:
    raise SystemExit(_said(message))


def _said(message: str) -> int:
    sys.stderr.write(f"psi-tool: {plain(message)}\n")
    return WRONG_USAGE
