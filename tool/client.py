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

__all__ = ["Address", "BadAddress", "NoService", "NotHttp", "Reply", "address", "insecurity", "post"]

CONNECT_SECONDS: Final = 10.0
_LONGEST_LINE: Final = 65_536
_PORTS: Final = {"http": 80, "https": 443}
# What the service names when it starts. Who copies one of them means the service.
_ENDPOINTS: Final = ("/psi-tool", "/eql", "/graphql")


class BadAddress(Exception):
    """The URL is none that a service can have."""


class NoService(Exception):
    """Nobody answers there."""


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
    scheme, separator, rest = url.strip().partition("://")
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


def post(at: Address, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
    """Send one request and give its answer. Raises NoService or NotHttp."""
    lines = [
        f"POST {at.path}{path} HTTP/1.1",
        f"Host: {at.authority}",
        "User-Agent: psi-tool",
        "Connection: close",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    head = "\r\n".join(lines).encode("ascii") + b"\r\n\r\n"
    with _connected(at) as connection:
        refused: OSError | None = None
        try:
            connection.sendall(head + body)
        except OSError as error:  # who answers before all is sent, as with a body that is too long, is listened to
            refused = error
        try:
            with connection.makefile("rb") as answer:
                return _reply(answer)
        except OSError as error:
            raise NoService(_reason(refused or error)) from None


def _connected(at: Address) -> socket.socket:
    try:
        # As bytes: an ASCII name needs no IDNA, whose tables cost more than the connection.
        connection = socket.create_connection((at.host.encode("ascii"), at.port), CONNECT_SECONDS)  # type: ignore[arg-type]
    except (OSError, UnicodeError) as error:
        raise NoService(_reason(error)) from None
    connection.settimeout(None)  # a run that is waited for may take its time
    if not at.is_secure:
        return connection
    import ssl

    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=at.host)
    except OSError as error:
        connection.close()
        if said := insecurity(at, error):
            raise NotHttp(said) from None
        raise NoService(_reason(error)) from None


def insecurity(at: Address, error: OSError) -> str:
    """Why there is no TLS with somebody who answers; nothing where another thing is the matter."""
    match getattr(error, "reason", None):
        case "WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "RECORD_LAYER_FAILURE":
            return f"it speaks no TLS, so try {Address('http', at.host, at.port, at.path)}"
        case "CERTIFICATE_VERIFY_FAILED":
            return f"its certificate is not trusted, {getattr(error, 'verify_message', 'for a reason unknown')}"
    return ""


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS:.0f} s"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _reply(answer: BinaryIO) -> Reply:
    while True:
        status, headers = _head(answer)
        if status >= 200:
            break
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Reply(status, headers, _chunks(answer))
    length = headers.get("content-length", "")
    if not length:
        return Reply(status, headers, b"" if status in (204, 304) else answer.read())
    if not (length.isascii() and length.isdigit()):
        raise NotHttp(f"its answer has the length {length!r}")
    return Reply(status, headers, _exactly(answer, int(length)))


def _head(answer: BinaryIO) -> tuple[int, dict[str, str]]:
    first = _line(answer)
    if not first:
        raise NoService("the connection was closed without an answer; whether the request was carried out is not known")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if first.startswith("\x15\x03"):  # how TLS begins to complain
        raise NotHttp("it speaks TLS, so try https://")
    if not version.startswith("HTTP/") or not (code.isascii() and code.isdigit() and len(code) == 3):
        raise NotHttp("its answer is not HTTP")
    headers: dict[str, str] = {}
    while line := _line(answer):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(code), headers


def _line(answer: BinaryIO) -> str:
    line = answer.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise NotHttp("a line of its answer is too long")
    return line.decode("latin-1").rstrip("\r\n")


def _chunks(answer: BinaryIO) -> bytes:
    parts: list[bytes] = []
    while True:
        size = _line(answer).partition(";")[0].strip()
        try:
            length = int(size, 16)
        except ValueError:
            length = -1
        if length < 0:
            raise NoService("the answer broke off")
        if not length:
            return b"".join(parts)
        parts.append(_exactly(answer, length))
        _line(answer)


def _exactly(answer: BinaryIO, length: int) -> bytes:
    found = answer.read(length)
    if len(found) < length:
        raise NoService("the answer broke off")
    return found
