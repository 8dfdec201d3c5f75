"""Following a service: its events and what is scheduled, over GraphQL's WebSocket protocol, until somebody interrupts.

Comes back by itself when the connection is lost, with the number of the last event, and says so when something was
missed. How it looks is for :mod:`tool.board`; a pipe gets one JSON line for each event.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from time import monotonic
from typing import Any, Final, NoReturn, Protocol

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tool.arguments import Values
from tool.ask import place, plain_header, say
from tool.client import Address, NoService, insecurity
from tool.commands import ERROR, NO_SERVICE, OK, TERMINATED
from tool.output import EDN, PEOPLE, data, form, is_dumb, plain
from tool.refusals import helps, no_service, not_psi, other_version, refusal, sentence, unanswered

__all__ = ["Lines", "Screen", "Watch", "run"]

PROTOCOL: Final = Subprotocol("graphql-transport-ws")
_PATIENCE: Final = 10.0
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
    """Where it is shown."""

    @property
    def tick(self) -> float | None:
        """How often it wants to be called without news, in seconds; None: never."""

    def event(self, event: Mapping[str, Any]) -> None: ...

    def gap(self, reason: str, missed: int | None) -> None: ...

    def answer(self, name: str, value: Any) -> None: ...

    def state(self, words: str) -> None: ...

    def refresh(self) -> None: ...


class Lines:
    """For programs: one line for each event, as JSON unless another form is given. What is no event goes to stderr."""

    tick = None

    def __init__(self, form: Callable[[Mapping[str, Any]], str] = json.dumps) -> None:
        self._form = form

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

    def _line(self, told: Mapping[str, Any]) -> None:
        data(self._form(told).encode("utf-8", "replace"))


class Refused(Exception):
    """The service will not have it, or is none; asking again is no use."""

    def __init__(self, message: str, code: int = ERROR) -> None:
        super().__init__(message)
        self.code = code


def run(values: Values) -> int:
    """``psi-tool watch``."""
    at = place(values)
    token = plain_header(values, "token") or None
    session = None if values["all"] else values["session"]
    variable = "" if values["all"] else values.from_variable("session")
    try:
        with ExitStack() as stack:
            screen: Screen
            reader = form(values)
            if reader == PEOPLE and is_dumb():
                from tool.board import Plain

                screen = Plain(at)
            elif reader == PEOPLE:
                screen = _board(stack, at, session, "from PSI_SESSION; --all shows all" if variable else "")
            elif reader == EDN:
                from tool.render import as_edn

                screen = Lines(as_edn)
            else:
                screen = Lines()
            said, code = Watch(at, token, session, screen, variable=variable).run()
    except KeyboardInterrupt:
        return OK
    say(said)
    return code


def _board(stack: ExitStack, at: Address, session: str | None, note: str) -> Screen:
    from tool.board import Board

    board = Board(at, session, note=note)
    # The terminal is given back however it ends, also while it is being taken.
    stack.callback(board.close)
    signal.signal(signal.SIGTERM, _leave)
    board.open()
    return board


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(TERMINATED)


class Watch:
    """``variable``: the session, if the environment gave it. ``patience``: how long a service may take to be reached
    and to introduce itself, each, in seconds."""

    def __init__(
        self,
        at: Address,
        token: str | None,
        session: str | None,
        screen: Screen,
        *,
        variable: str = "",
        patience: float = _PATIENCE,
    ) -> None:
        self._at = at
        self._patience = patience
        self._variable = variable
        self._token = token
        self._session = session
        self._screen = screen
        self._last: int | None = None  # the newest event that was shown, or was there when watching began
        self._started: str | None = None  # when the service did
        self._connected = False
        self._has_ended = False  # what is watched
        self._knows_gap = False  # it was told already that something is missing before the next event

    def run(self) -> tuple[str, int]:
        """Follow until there is no use: why, and the exit code."""
        failures = 0
        while True:
            why = "the connection was closed"
            self._connected = False
            try:
                # Its own end of a connection would tell the service of an error, whatever it was that ended it here.
                with closing(self._connect()) as connection:
                    self._follow(connection)
            except Refused as refused:
                return str(refused), refused.code
            except ConnectionClosed as closed:
                if closed.rcvd is not None and closed.rcvd.code in _FOR_GOOD:
                    return f"The service at {self._at} refused: {_FOR_GOOD[closed.rcvd.code]}.", ERROR
                if self._started is None:
                    return unanswered(self._at, why), NO_SERVICE
            except (OSError, WebSocketException) as error:
                answer = _answer(error)
                if answer is not None and (answer.response.status_code not in (429, 503) or self._started is None):
                    return self._refusal(answer)
                why = f"the service answers {answer.response.status_code}" if answer is not None else _reason(error)
                if self._started is None:
                    return self._nobody(error), NO_SERVICE
            failures = 0 if self._connected else failures + 1
            self._wait(why, _PAUSES[min(failures, len(_PAUSES) - 1)])

    def _refusal(self, answer: InvalidStatus) -> tuple[str, int]:
        response = answer.response
        headers = {name.lower(): value for name, value in response.headers.raw_items()}
        code, said = refusal(self._at, response.status_code, _message(response.body), headers)
        return said, code

    def _nobody(self, error: Exception) -> str:
        """There is nobody, or somebody else, or somebody who says nothing."""
        if isinstance(error, OSError) and (insecure := insecurity(self._at, error)):
            return not_psi(self._at, insecure)
        if isinstance(error.__cause__, EOFError | OSError):
            return unanswered(self._at, "the connection was closed without a whole answer")
        if isinstance(error, WebSocketException):
            return not_psi(self._at, "its answer is not HTTP, or not that of a WebSocket")
        late = f"within {self._patience:g} s"
        if not isinstance(error, TimeoutError) or error.errno is not None:
            return no_service(self._at, NoService(_reason(error)))
        if str(error) == "timed out":  # the socket's words for a connection that was never made
            return no_service(self._at, NoService(f"no answer {late}"))
        return unanswered(self._at, f"no whole answer came {late}")

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
            open_timeout=self._patience,
            close_timeout=1,
        )

    def _wait(self, why: str, seconds: float) -> None:
        self._screen.state(f"{self._at}: {why}; trying again")
        self._screen.refresh()
        threading.Event().wait(seconds)

    # -- one connection

    def _follow(self, connection: ClientConnection) -> None:
        if connection.subprotocol != PROTOCOL:
            raise Refused(not_psi(self._at, f"it does not speak {PROTOCOL}"), NO_SERVICE)
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
        until = monotonic() + self._patience
        self._expect(connection, "connection_ack", until)
        _send(connection, {"id": "stands", "type": "subscribe", "payload": {"query": _STANDS}})
        payload = _map(self._expect(connection, "next", until).get("payload"))
        found = _map(_map(payload.get("data")).get("eql"))
        if "psi.system/started-at" not in found:
            problem = sentence(_problem(payload.get("errors")))
            raise Refused(other_version(self._at, f"it does not say where it stands, {problem}"), NO_SERVICE)
        started = str(found["psi.system/started-at"])
        newest = _map(found.get("psi.system/counters")).get("events")
        if self._started is None:
            self._last = newest if isinstance(newest, int) else None  # None: from now on
        elif started != self._started:
            # Another process: 0 asks for its events from the beginning; what the old one did last is not known.
            self._screen.gap("the service was started anew", None)
            self._knows_gap = True
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
                yield from self._read(connection, connection.recv(timeout=wait))
            except TimeoutError:
                pass
            if tick and monotonic() >= due:
                self._screen.refresh()
                due = monotonic() + tick

    def _read(self, connection: ClientConnection, came: str | bytes) -> Iterator[dict[str, Any]]:
        """A message, unless it only asks whether we are there."""
        try:
            message = json.loads(came)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise Refused(not_psi(self._at, "what it says is no message of the protocol"), NO_SERVICE)
        if message.get("type") == "ping":
            _send(connection, {"type": "pong"})
        else:
            yield message

    def _expect(self, connection: ClientConnection, kind: str, until: float) -> dict[str, Any]:
        while True:
            for message in self._read(connection, connection.recv(timeout=max(0.0, until - monotonic()))):
                if message.get("type") == "error":
                    raise Refused(self._told(_problem(message.get("payload"))))
                if message.get("type") == kind:
                    return message

    def _take(self, message: Mapping[str, Any]) -> None:
        name, payload = message.get("id"), message.get("payload")
        match message.get("type"):
            case "next" if isinstance(payload, Mapping):
                value = next(iter(_map(payload.get("data")).values()), None)
                if name != "events":
                    self._screen.answer(str(name), value)
                    return
                missed = _map(payload.get("extensions")).get("missed")
                if isinstance(missed, int) and missed and not self._knows_gap:
                    # One may be one, and it is also what is said where nobody knows how many.
                    self._screen.gap("more happened than could be told", missed if missed > 1 else None)
                self._knows_gap = False
                if isinstance(value, Mapping) and isinstance(value.get("seq"), int):
                    self._last = value["seq"]
                    if value.get("type") == "gap":  # nothing has happened: it carries what was told above
                        return
                    self._screen.event(value)
                    self._has_ended = self._session is not None and value.get("type") == "session-closed"
            case "error":
                raise Refused(self._told(_problem(payload)))
            case "complete" if name == "events" and self._has_ended:
                raise Refused(f"Session {self._session} was closed.", OK)
            case "complete" if name == "events":
                raise ConnectionError("the service ended the subscription")

    def _told(self, problem: Mapping[str, Any]) -> str:
        said = f"The service at {self._at} refused: {sentence(problem)}."
        return "\n".join(filter(None, (said, helps(problem, self._variable))))


def _send(connection: ClientConnection, message: Mapping[str, Any]) -> None:
    connection.send(json.dumps(message))


def _problem(errors: Any) -> dict[str, Any]:
    """The first error of a GraphQL answer, as psi-tool has errors: its message, and beside it code and facts."""
    first = _map(errors[0]) if isinstance(errors, list) and errors else {}
    return {"message": first.get("message") or "it does not say why", **_map(first.get("extensions"))}


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _answer(error: Exception) -> InvalidStatus | None:
    """What was answered over HTTP. One that leads elsewhere stands behind the error that it cannot be followed."""
    found = error if isinstance(error, InvalidStatus) else error.__context__
    return found if isinstance(found, InvalidStatus) else None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _message(body: bytes | bytearray | None) -> str:
    try:
        return str(json.loads(body or b"")["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
