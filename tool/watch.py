"""Following a service: its events and what is scheduled, over GraphQL's WebSocket protocol, until somebody interrupts.

Comes back by itself when the connection is lost, with the number of the last event, and says so when something was
missed. How it looks is for :mod:`tool.board`; a pipe gets one JSON line for each event.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import Any, Final, Protocol

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tool.ask import no_service, place, plain_header, refusal, say
from tool.client import Address
from tool.commands import ERROR, NO_SERVICE, OK
from tool.output import flush, plain, text

__all__ = ["Lines", "Screen", "Watch", "run"]

PROTOCOL: Final = Subprotocol("graphql-transport-ws")
_ACK_SECONDS: Final = 10.0
_LARGEST: Final = 64 * 1024 * 1024  # an answer; the service bounds its own
_PAUSES: Final = (0.25, 0.5, 1.0, 2.0, 5.0)  # seconds before each new attempt; the last one stays

# Where the service stands, asked once for each connection: whether it is the same as before, and its newest event.
_STANDS: Final = '{ eql(query: "[:psi.system/started-at :psi.system/counters]") }'
_EVENTS: Final = """
subscription Events($session: ID, $after: Long) {
  sessionEvents(sessionId: $session, after: $after) { seq type sessionId at data }
}"""
_SCHEDULES: Final = """
subscription Schedules($session: ID) {
  schedules(sessionId: $session, statuses: [PENDING, QUEUED]) {
    scheduleId kind label message status fireAt originSessionId
  }
}"""
_SESSIONS: Final = "subscription Sessions { sessions(limit: 1000) { sessionId sessionDisplayName phase updated } }"
_SESSION: Final = (
    "subscription Session($session: ID!) { session(id: $session) { sessionId sessionDisplayName phase updated } }"
)

# Reasons of the protocol to close for good: asking again would be answered alike.
_FOR_GOOD: Final = {
    4400: "it did not understand psi-tool; are both of the same version?",
    4401: "it wants a token; give one with --token or PSI_TOKEN",
    4403: "it wants a token that is good; give one with --token or PSI_TOKEN, `psi-tool token create` makes one",
    4406: "it does not speak graphql-transport-ws",
}


class Screen(Protocol):
    """Where it is shown. ``tick`` is how often it wants to be called without news; None: never."""

    tick: float | None

    def event(self, event: Mapping[str, Any]) -> None: ...

    def gap(self, reason: str, missed: int | None) -> None: ...

    def answer(self, name: str, value: Any) -> None: ...

    def state(self, words: str) -> None: ...

    def refresh(self) -> None: ...


class Lines:
    """For programs: one JSON line for each event. What is no event goes to stderr."""

    tick = None

    def event(self, event: Mapping[str, Any]) -> None:
        self._line({"session-id" if name == "sessionId" else name: value for name, value in event.items()})

    def gap(self, reason: str, missed: int | None) -> None:
        self._line({"type": "gap", "reason": reason, "missed": missed})

    def answer(self, name: str, value: Any) -> None:
        pass

    def state(self, words: str) -> None:
        if words:
            sys.stderr.write(f"{plain(words)}\n")
            sys.stderr.flush()

    def refresh(self) -> None:
        pass

    def _line(self, data: Mapping[str, Any]) -> None:
        text(json.dumps(data))
        flush()


class Refused(Exception):
    """The service will not have it; asking again is no use."""


def run(values: Mapping[str, Any]) -> int:
    """``psi-tool watch``."""
    at = place(values)
    token = plain_header(values["token"], "--token") if values["token"] else None
    screen: Any = Lines()
    shown: AbstractContextManager[Any] = nullcontext()
    if sys.stdout.isatty() and not values["json"]:
        from tool.board import Board

        screen = shown = Board(at, values["session"])
    watch = Watch(at, token, values["session"], screen)
    try:
        with shown:
            said, code = watch.run()
    except KeyboardInterrupt:
        return OK
    say(said)
    return code


class Watch:
    def __init__(self, at: Address, token: str | None, session: str | None, screen: Screen) -> None:
        self._at = at
        self._token = token
        self._session = session
        self._screen = screen
        self._last: int | None = None  # the newest event that was shown, or was there when watching began
        self._started: str | None = None  # when the service did
        self._connected = False

    def run(self) -> tuple[str, int]:
        """Follow until there is no use: why, and the exit code."""
        failures = 0
        while True:
            why = "the connection was closed"
            self._connected = False
            try:
                with self._connect() as connection:
                    self._follow(connection)
            except Refused as refused:
                return str(refused), ERROR
            except InvalidStatus as answer:
                status = answer.response.status_code
                if status not in (429, 503) or self._started is None:
                    return refusal(self._at, status, _message(answer.response.body)), ERROR
                why = f"the service answers {status}"
            except ConnectionClosed as closed:
                if closed.rcvd is not None and closed.rcvd.code in _FOR_GOOD:
                    return f"The service at {self._at} refused: {_FOR_GOOD[closed.rcvd.code]}.", ERROR
            except (OSError, WebSocketException) as error:
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                if self._started is None:
                    return no_service(self._at, why), NO_SERVICE
            failures = 0 if self._connected else failures + 1
            self._wait(why, _PAUSES[min(failures, len(_PAUSES) - 1)])

    def _connect(self) -> ClientConnection:
        at = self._at
        scheme = "wss" if at.is_secure else "ws"
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return connect(
            f"{scheme}://{at.authority}{at.path}/graphql",
            subprotocols=[PROTOCOL],
            additional_headers=headers,
            user_agent_header="psi-tool",
            compression=None,
            proxy=None,  # as for requests
            max_size=_LARGEST,
            close_timeout=1,
        )

    def _wait(self, why: str, seconds: float) -> None:
        self._screen.state(f"{self._at}: {why}; trying again")
        self._screen.refresh()
        threading.Event().wait(seconds)

    # -- one connection

    def _follow(self, connection: ClientConnection) -> None:
        if connection.subprotocol != PROTOCOL:
            raise Refused(f"What answers at {self._at} does not speak {PROTOCOL}. Check --url or PSI_URL.")
        self._begin(connection)
        asked = {"session": self._session, "after": self._last}
        self._subscribe(connection, "events", _EVENTS, asked)
        if self._screen.tick is not None:
            self._subscribe(connection, "schedules", _SCHEDULES, {"session": self._session})
            query = _SESSIONS if self._session is None else _SESSION
            self._subscribe(connection, "sessions", query, {"session": self._session} if self._session else {})
        self._connected = True
        self._screen.state("")
        self._screen.refresh()
        for message in self._messages(connection):
            self._take(message)

    def _begin(self, connection: ClientConnection) -> None:
        """Introduce ourselves, and find out where the service stands."""
        _send(connection, {"type": "connection_init"})
        until = monotonic() + _ACK_SECONDS
        _expect(connection, "connection_ack", until)
        _send(connection, {"id": "stands", "type": "subscribe", "payload": {"query": _STANDS}})
        payload = _expect(connection, "next", until).get("payload") or {}
        found = (payload.get("data") or {}).get("eql") or {}
        try:
            started = str(found["psi.system/started-at"])
        except (KeyError, TypeError):
            raise Refused(f"The service at {self._at} does not say where it stands: {_problem(payload)}") from None
        newest = (found.get("psi.system/counters") or {}).get("events")
        if self._started is None:
            self._last = newest if isinstance(newest, int) else None  # None: from now on
        elif started != self._started:
            # Another process: 0 asks for its events from the beginning; what the old one did last is not known.
            self._screen.gap("the service was started anew", None)
            self._last = 0
        elif self._last is None:
            # The service does not say how far it is, and no event has said it either.
            self._screen.gap("what happened while the connection was lost is not known", None)
        self._started = started

    def _subscribe(self, connection: ClientConnection, name: str, query: str, variables: Mapping[str, Any]) -> None:
        payload = {"query": query, "variables": dict(variables)}
        _send(connection, {"id": name, "type": "subscribe", "payload": payload})

    def _messages(self, connection: ClientConnection) -> Iterator[dict[str, Any]]:
        """What the service sends, until it closes; the screen is refreshed meanwhile."""
        tick = self._screen.tick
        due = monotonic() + tick if tick else 0.0
        while True:
            try:
                wait = max(0.0, due - monotonic()) if tick else None
                yield from _read(connection, connection.recv(timeout=wait))
            except TimeoutError:
                pass
            if tick and monotonic() >= due:
                self._screen.refresh()
                due = monotonic() + tick

    def _take(self, message: Mapping[str, Any]) -> None:
        name, payload = message.get("id"), message.get("payload")
        match message.get("type"):
            case "next" if isinstance(payload, Mapping):
                data = payload.get("data") or {}
                value = next(iter(data.values()), None)
                if name != "events":
                    self._screen.answer(str(name), value)
                    return
                missed = (payload.get("extensions") or {}).get("missed")
                if missed:
                    self._screen.gap("more happened than could be told", int(missed))
                if isinstance(value, Mapping):
                    self._last = int(value["seq"])
                    self._screen.event(value)
            case "error":
                raise Refused(f"The service at {self._at} refused: {_problem({'errors': payload})}")
            case "complete" if name == "events":
                raise ConnectionError("the service ended the subscription")


def _send(connection: ClientConnection, message: Mapping[str, Any]) -> None:
    connection.send(json.dumps(message))


def _read(connection: ClientConnection, came: str | bytes) -> Iterator[dict[str, Any]]:
    """A message, unless it only asks whether we are there."""
    try:
        message = json.loads(came)
    except ValueError:
        raise Refused("what was answered is not JSON") from None
    if message.get("type") == "ping":
        _send(connection, {"type": "pong"})
    else:
        yield message


def _expect(connection: ClientConnection, kind: str, until: float) -> dict[str, Any]:
    while True:
        for message in _read(connection, connection.recv(timeout=max(0.0, until - monotonic()))):
            if message.get("type") == "error":
                raise Refused(f"the service refused: {_problem({'errors': message.get('payload')})}")
            if message.get("type") == kind:
                return message


def _problem(payload: Mapping[str, Any]) -> str:
    """The first error of a GraphQL answer, in its own words."""
    errors = payload.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], Mapping):
        return str(errors[0].get("message", "it does not say why"))
    return "it does not say why"


def _message(body: bytes | bytearray | None) -> str:
    try:
        return str(json.loads(body or b"")["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
