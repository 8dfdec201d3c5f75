"""A request command: values become a request, the service answers, the answer becomes text and an exit code.

Checks no value that the service checks, and decides nothing about sessions or schedules. On the way of a pipe it
imports json and a socket and nothing heavy; what a terminal gets is made in :mod:`tool.tables`.
"""

from __future__ import annotations

import json
import sys

from tool.client import Address, BadAddress, NoService, NotHttp, Reply, address, post
from tool.commands import DEFAULT_URL, ERROR, MAP, NO_SERVICE, OK, WRONG_USAGE, Command
from tool.output import data, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final, NoReturn

__all__ = ["no_service", "place", "plain_header", "refusal", "run", "say"]

JSON: Final = "application/json"
EDN: Final = "application/edn"
_STATUS: Final = "psi-tool/overall-status"


class _Ended(Exception):
    """Nothing more to do: what was to be said is said."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def run(command: Command, values: Mapping[str, Any]) -> int:
    """Carry out a command that sends a request."""
    try:
        if command.does == "raw":
            body, kind = _raw(values["request"])
            return _tool(body, kind, values)
        if command.does == "query" and values["explain"]:
            return _explain(command, values)
        return _tool(json.dumps(_request(command, values)).encode(), JSON, values)
    except _Ended as ended:
        say(ended.message)
        return ended.code


# -- what is sent


def _raw(given: str) -> tuple[bytes, str]:
    """The request as it was given, and what it is written in."""
    if given == "-":
        body = sys.stdin.buffer.read()
    else:
        body = given.encode("utf-8", "surrogateescape")  # the bytes that were typed, whatever they are
    if not body.strip():
        _wrong("the request is empty; accepted: a map with `action`, as EDN or JSON")
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        # `{"action"` may be either. Said to be neither, the service tells about the one that it looks like.
        return body, "text/plain" if body.lstrip()[1:].lstrip().startswith(b'"') else EDN
    return body, JSON


def _request(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    action, *op = command.words
    request: dict[str, Any] = {"action": action, **({"op": op[0]} if op else {})}
    request |= _keys(command, values)
    request.pop("explain", None)
    return request


def _keys(command: Command, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as keys of a request."""
    found = {}
    for option in command.options:
        value = values[option.name]
        if value is not None:
            found[option.name] = _map(value, option.flag) if option.kind == MAP else value
    return found


def _map(text: str, flag: str) -> Any:
    """JSON as data, anything else as it is: the service reads EDN."""
    if text.startswith("@"):
        text = _file(text[1:], flag)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _file(name: str, flag: str) -> str:
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode()
        with open(name, encoding="utf-8") as file:  # noqa: PTH123 – pathlib costs as much as the rest of this module
            return file.read()
    except OSError as error:
        _wrong(f"{flag}: {name} cannot be read: {error.strerror or error}")
    except UnicodeDecodeError:
        _wrong(f"{flag}: {name} is no UTF-8 text")


# -- the exchange


def place(values: Mapping[str, Any]) -> Address:
    """Where the service is; SystemExit with 2 for a URL that is none."""
    try:
        return address(values["url"] or DEFAULT_URL)
    except BadAddress as error:
        _wrong(f"--url: {error}")


def plain_header(value: str, flag: str) -> str:
    """A value that may stand in a line of the protocol."""
    if not all(" " <= character <= "~" for character in value):
        _wrong(f"{flag} takes printable ASCII only, got {value!r}")
    return value


def _send(path: str, body: bytes, kind: str, values: Mapping[str, Any]) -> tuple[Address, Reply]:
    headers = {"Content-Type": kind, "Accept": EDN if values["edn"] else JSON}
    if values["session"]:
        headers["Psi-Session"] = plain_header(values["session"], "--session")
    if values["token"]:
        headers["Authorization"] = f"Bearer {plain_header(values['token'], '--token')}"
    at = place(values)
    try:
        return at, post(at, path, body, headers)
    except NoService as error:
        raise _Ended(NO_SERVICE, no_service(at, error)) from None
    except NotHttp as error:
        raise _Ended(ERROR, f"what answers at {at} is no psi service: {error}. Check --url or PSI_URL.") from None


def _tool(body: bytes, kind: str, values: Mapping[str, Any]) -> int:
    at, reply = _send("/psi-tool", body, kind, values)
    if values["edn"]:
        # The envelope names its status before anything that somebody else wrote, so the first mention is the one.
        status = reply.body.partition(b":psi-tool/overall-status ")[2]
        if not status or reply.status not in (200, 400):
            raise _refused(at, reply)
        data(reply.body)
        return OK if status.startswith(b":ok") else ERROR
    envelope = _data(reply)
    if not isinstance(envelope, dict) or _STATUS not in envelope:
        raise _refused(at, reply)
    failed = envelope[_STATUS] != "ok"
    if values["only-id"] and not failed and (name := _id_in(envelope)):
        data(name.encode())
    elif _is_for_people(values):
        from tool.tables import show

        show(envelope)
    else:
        data(reply.body)
    return ERROR if failed else OK


def _id_in(envelope: dict[str, Any]) -> str:
    """The id of what the answer is about: the run that was begun, or else the schedule or session that is shown."""
    for action in ("scheduler", "session"):
        told = envelope.get(f"psi-tool/{action}") or {}
        shown = told.get("schedule") or told.get("session") or {}
        found = told.get("run-id") or shown.get("schedule-id") or shown.get("session-id")
        if found:
            return str(found)
    return ""


def _explain(command: Command, values: Mapping[str, Any]) -> int:
    """The plan of a query. It comes from /eql, whose errors are not envelopes."""
    body = json.dumps({**_keys(command, values), "explain": True}).encode()
    at, reply = _send("/eql", body, JSON, values)
    failed = reply.status != 200
    if values["edn"]:
        if failed and (reply.status not in (400, 404, 409, 422) or not reply.body.startswith(b"{:error")):
            raise _refused(at, reply)
        data(reply.body)
        return ERROR if failed else OK
    answer = _data(reply)
    said = answer if isinstance(answer, dict) else {}
    is_error = failed and reply.status in (400, 404, 409, 422) and isinstance(said.get("error"), dict)
    if not is_error and (failed or "explain" not in said):
        raise _refused(at, reply)
    if not _is_for_people(values):
        data(reply.body)
    elif is_error:
        from tool.tables import complain

        complain(said["error"])
    else:
        data(plain(said["explain"]).rstrip("\n").encode("utf-8", "replace"))
    return ERROR if is_error else OK


def _data(reply: Reply) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


# -- what is said


def _is_for_people(values: Mapping[str, Any]) -> bool:
    return not values["json"] and sys.stdout.isatty()


def say(message: str) -> None:
    """A sentence for people, beside the answer; red where somebody sees it. A service may have had a part in it, so
    what would be obeyed by a terminal is left out."""
    import os

    message = "".join(each for each in message if each == "\n" or each.isprintable())
    red = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    sys.stderr.write(f"\x1b[31m{message}\x1b[0m\n" if red else f"{message}\n")


def no_service(at: Address, why: object) -> str:
    return (
        f"No psi service is reachable at {at}: {why}.\n"
        "Start one with `psi-tool serve`, or `make serve` in the project's folder; another place is named with --url "
        "or PSI_URL."
    )


def _refused(at: Address, reply: Reply) -> _Ended:
    said = _data(reply)
    error = said.get("error") if isinstance(said, dict) else None
    message = str(error["message"]) if isinstance(error, dict) and "message" in error else ""
    return _Ended(ERROR, refusal(at, reply.status, message, reply.headers.get("retry-after", "")))


def refusal(at: Address, status: int, message: str, retry_after: str = "") -> str:
    """A refusal of the service as a whole, as a sentence with what helps. ``message``: the service's own words."""
    words = f": {message.rstrip('.')}" if message else ""
    hint = ""
    if status == 401:
        hint = " Give a token with --token or PSI_TOKEN; `psi-tool token create` makes one, where the service runs."
    elif status == 429:
        hint = f" Try again in {retry_after} s." if retry_after else " Try again in a moment."
    elif status == 503:
        hint = " It is starting, stopping or has too much to do: try again in a moment."
    elif status >= 500:
        hint = " The log of the service says more."
    elif not message:
        return f"What answers at {at} is no psi service: it says {status}. Check --url or PSI_URL."
    return f"The service at {at} refused ({status}){words}.{hint}"


def _wrong(message: str) -> NoReturn:
    raise SystemExit(_said(message))


def _said(message: str) -> int:
    sys.stderr.write(f"psi-tool: {plain(message)}\n")
    return WRONG_USAGE
