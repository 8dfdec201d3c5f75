"""One exchange with the service over HTTP: bytes out, status and bytes in. Knows nothing of what they say.

Written on the socket itself: http.client brings the whole email package with it, which would be half of what a request
command costs. One request for each connection, so little is needed: a length or chunks, or all until the end.
"""

from __future__ import annotations

import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO, Final

__all__ = ["SILENCE", "Address", "BadAddress", "NoService", "NotHttp", "Reply", "address", "insecurity", "post"]

CONNECT_SECONDS: Final = 10.0
SILENCE: Final = 60.0  # seconds in which nothing comes, before a service counts as one that will not answer
# What is read of an answer that somebody else may have made without an end.
_LARGEST_HEAD: Final = 64 << 10  # bytes of all its lines together
_MOST_LINES: Final = 100  # of headers, as they may drip
_MOST_HEADS: Final = 10  # with those that say that the answer is still to come
_LARGEST_BODY: Final = 1 << 30
_PIECE: Final = 1 << 20  # Python takes all the room for a piece before the first byte of it has come
_NOT_KNOWN: Final = "whether the request was carried out is not known"
_PORTS: Final = {"http": 80, "https": 443}
# What the service names when it starts. Who copies one of them means the service.
_ENDPOINTS: Final = ("/psi-tool", "/eql", "/graphql")


class BadAddress(Exception):
    """The URL is none that a service can have."""


class NoService(Exception):
    """Nobody answers there. ``is_taken``: somebody took the connection, and then gave no answer that can be used."""

    def __init__(self, why: str, *, is_taken: bool = False) -> None:
        super().__init__(why)
        self.is_taken = is_taken


class NotHttp(Exception):
    """Somebody answers, but not as an HTTP server does."""


class Address:
    """Where the service is: an ``http`` or ``https`` URL, taken apart."""

    __slots__ = ("host", "path", "port", "scheme")

    def __init__(self, scheme: str, host: str, port: int, path: str) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path  # a prefix, without the slash at its end

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


class Reply:
    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers  # names in lower case
        self.body = body


def address(url: str) -> Address:
    """Take a URL apart; BadAddress with the sentence that says what is accepted."""
    given = url.strip()
    if "://" not in given and given.partition("/")[0].rpartition(":")[2].isdigit():
        given = f"http://{given}"  # a host and a port are all that differs from service to service
    scheme, separator, rest = given.partition("://")
    scheme = scheme.lower()
    authority, slash, path = rest.partition("/")
    if not separator or scheme not in _PORTS or not authority or not _is_plain(rest) or set("?#@") & set(rest):
        raise BadAddress(f"{url!r} is no URL of a service; accepted: http://HOST:PORT or https://HOST:PORT")
    host, colon, port = authority, "", ""
    if not authority.endswith("]"):
        before, colon, after = authority.rpartition(":")
        host, port = (before, after) if colon else (authority, "")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadAddress(f"{url!r}: an IPv6 address stands in brackets, http://[::1]:8420")
    number = _PORTS[scheme] if not colon else int(port) if port.isascii() and port.isdigit() else 0
    if not host or not 0 < number < 65_536:
        raise BadAddress(f"{url!r}: a host and a port from 1 to 65535 are needed, http://HOST:PORT")
    prefix = f"{slash}{path}".rstrip("/")
    for endpoint in _ENDPOINTS:
        if prefix.endswith(endpoint):
            prefix = prefix[: -len(endpoint)].rstrip("/")
            break
    return Address(scheme, host, number, prefix)


def _is_plain(text: str) -> bool:
    """Printable ASCII without spaces: what may stand in a line of the protocol without ending it."""
    return all("!" <= character <= "~" for character in text)


def post(at: Address, path: str, body: bytes, headers: Mapping[str, str], silence: float | None = SILENCE) -> Reply:
    """Send one request and give its answer. Raises NoService or NotHttp. ``silence``: how long nothing may come, in
    seconds; None for a request whose answer takes as long as it takes."""
    lines = [
        f"POST {at.path}{path} HTTP/1.1",
        f"Host: {at.authority}",
        "User-Agent: psi-tool",
        "Connection: close",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    head = "\r\n".join(lines).encode("ascii") + b"\r\n\r\n"
    with _connected(at, silence) as connection:
        refused: OSError | None = None
        try:
            _send(connection, head + body)
        except OSError as error:  # who answers before all is sent, as with a body that is too long, is listened to
            refused = error
        try:
            with connection.makefile("rb") as answer:
                return _reply(answer)
        except OSError as error:
            raise NoService(_reason(refused or error, _silent(silence)), is_taken=True) from None


def _connected(at: Address, silence: float | None) -> socket.socket:
    try:
        # As bytes: an ASCII name needs no IDNA, whose tables cost more than the connection.
        connection = socket.create_connection((at.host.encode("ascii"), at.port), CONNECT_SECONDS)  # type: ignore[arg-type]
    except (OSError, UnicodeError) as error:
        raise NoService(_reason(error, f"no answer within {CONNECT_SECONDS:g} s")) from None
    if not at.is_secure:
        connection.settimeout(silence)
        return connection
    import ssl

    # Nobody needs long to say who they are, however long the answer may take afterwards.
    greeting = CONNECT_SECONDS if silence is None else min(silence, CONNECT_SECONDS)
    connection.settimeout(greeting)
    try:
        secured = ssl.create_default_context().wrap_socket(connection, server_hostname=at.host)
    except OSError as error:
        connection.close()
        if said := insecurity(at, error):
            raise NotHttp(said) from None
        raise NoService(_reason(error, _silent(greeting)), is_taken=True) from None
    secured.settimeout(silence)
    return secured


def _send(connection: socket.socket, given: bytes) -> None:
    """In pieces: of ``sendall`` the limit would be for everything together, however well it went."""
    left = memoryview(given)
    while left:
        left = left[connection.send(left) :]


def insecurity(at: Address, error: OSError) -> str:
    """Why there is no TLS with somebody who answers; nothing where another thing is the matter."""
    match getattr(error, "reason", None):
        case "WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "RECORD_LAYER_FAILURE":
            return f"it speaks no TLS, so try {Address('http', at.host, at.port, at.path)}"
        case "CERTIFICATE_VERIFY_FAILED":
            return f"its certificate is not trusted, {getattr(error, 'verify_message', 'for a reason unknown')}"
    return ""


def _silent(seconds: float | None) -> str:
    return f"nothing came for {seconds:g} s; {_NOT_KNOWN}" if seconds is not None else ""


def _reason(error: Exception, late: str) -> str:
    """``late``: what to say where it took too long for us, and not for the system, which has words of its own."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return late
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _reply(answer: BinaryIO) -> Reply:
    for _ in range(_MOST_HEADS):
        status, headers = _head(answer)
        if status >= 200:
            break
    else:
        raise NotHttp("it announces an answer again and again, and gives none")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Reply(status, headers, _chunks(answer))
    length = headers.get("content-length", "")
    if not length:
        return Reply(status, headers, b"" if status in (204, 304) else _everything(answer))
    if not (length.isascii() and length.isdigit()):
        raise NotHttp(f"its answer has the length {length[:100]!r}")
    return Reply(status, headers, _exactly(answer, _size(length, 10)))


def _head(answer: BinaryIO) -> tuple[int, dict[str, str]]:
    first = _line(answer)
    if not first:
        raise NoService(f"the connection was closed without an answer; {_NOT_KNOWN}", is_taken=True)
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if first.startswith("\x15\x03"):  # how TLS begins to complain
        raise NotHttp("it speaks TLS, so try https://")
    if not version.startswith("HTTP/") or not (code.isascii() and code.isdigit() and len(code) == 3):
        raise NotHttp("its answer is not HTTP")
    headers: dict[str, str] = {}
    room = _LARGEST_HEAD - len(first)
    for _ in range(_MOST_LINES):
        line = _line(answer, room)
        if not line.rstrip("\r\n"):
            if not line:
                raise _broken_off()
            return int(code), headers
        room -= len(line)
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise NotHttp(f"the head of its answer has more than {_MOST_LINES} lines")


def _line(answer: BinaryIO, room: int = _LARGEST_HEAD) -> str:
    """With its end, so that an empty one is told from none."""
    line = answer.readline(room + 1)
    if len(line) > room:
        raise NotHttp("the head of its answer is too long")
    return line.decode("latin-1")


def _chunks(answer: BinaryIO) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        length = _size(_line(answer).partition(";")[0].strip(), 16)
        if not length:
            return b"".join(parts)
        total += length
        parts.append(_exactly(answer, length, total))
        _line(answer)


def _size(written: str, base: int) -> int:
    try:
        found = int(written[:100], base)  # a number of thousands of digits is an error of its own to Python
    except ValueError:
        found = -1
    if found < 0:
        raise _broken_off()
    return found


def _exactly(answer: BinaryIO, length: int, total: int = 0) -> bytes:
    """So many bytes. ``total``: with those that were read before."""
    if max(length, total) > _LARGEST_BODY:
        raise NotHttp(f"its answer is larger than {_LARGEST_BODY >> 30} GiB")
    parts: list[bytes] = []
    while length:
        found = answer.read(min(length, _PIECE))
        if not found:
            raise _broken_off()
        parts.append(found)
        length -= len(found)
    return b"".join(parts)


def _everything(answer: BinaryIO) -> bytes:
    parts: list[bytes] = []
    total = 0
    while found := answer.read(_PIECE):
        total += len(found)
        if total > _LARGEST_BODY:
            raise NotHttp(f"its answer is larger than {_LARGEST_BODY >> 30} GiB")
        parts.append(found)
    return b"".join(parts)


def _broken_off() -> NoService:
    return NoService(f"the answer broke off; {_NOT_KNOWN}", is_taken=True)
