"""Forms with files in them (``multipart/form-data``, RFC 7578), read as they come in. Holds no more of a file than the
last few bytes, opens nothing and knows no request.

    reader = MultipartReader(boundary_of(content_type))
    for chunk in body:
        for event in reader.feed(chunk):
            ...                               # Began, then Data any number of times, then Ended; and so on
    reader.finish()                           # raises where the form breaks off

Whatever comes in, the answer is events or one :class:`MultipartBroken`. Lines end with CRLF, as the standard has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from psi.faces.wire import HttpRefused, Unreadable, UnsupportedMedia

__all__ = [
    "Began",
    "Data",
    "Ended",
    "Event",
    "MultipartBroken",
    "MultipartReader",
    "boundary_of",
    "file_name",
]

MOST_PARTS: Final = 100
LONGEST_HEAD: Final = 8 << 10  # bytes of the headers of one part
LONGEST_PREAMBLE: Final = 8 << 10  # bytes before the first part, which mean nothing

_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_PARAMETER: Final = re.compile(r""";\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]*)""", re.DOTALL)


class MultipartBroken(Unreadable):
    """The body is no form, or not a whole one."""

    code = "http/broken-form"


@dataclass(frozen=True, slots=True)
class Began:
    """A part begins. ``filename`` is None where it is a plain field."""

    name: str | None
    filename: str | None


@dataclass(frozen=True, slots=True)
class Data:
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The part that had begun is whole."""


Event: TypeAlias = Began | Data | Ended
_Step: TypeAlias = tuple[Sequence[Event], bool]


class NoBoundary(UnsupportedMedia):
    """A form that does not say where its parts end."""

    def __init__(self, given: str) -> None:
        HttpRefused.__init__(
            self,
            f"Content-Type {given[:100]!r} cannot be read here; a form names the one `boundary` between its parts",
            accepted=["multipart/form-data; boundary=…"],
        )


class _State(Enum):
    PREAMBLE = auto()
    AFTER_BOUNDARY = auto()
    HEAD = auto()
    BODY = auto()
    EPILOGUE = auto()


def boundary_of(content_type: str) -> bytes:
    """What stands between the parts, as the Content-Type says."""
    found = [value for name, value in _parameters(content_type) if name == "boundary"]
    if len(found) != 1 or not _BOUNDARY.fullmatch(found[0]):
        raise NoBoundary(content_type)
    return found[0].encode("ascii")


def file_name(disposition: str) -> str | None:
    """The file's name in a Content-Disposition: ``filename*`` before ``filename``; None where there is neither."""
    given = dict(_parameters(disposition))
    extended = given.get("filename*")
    if extended is not None:
        charset, _, rest = extended.partition("'")
        _, quote, coded = rest.partition("'")
        if quote and charset.lower() in ("utf-8", "iso-8859-1"):
            return unquote_to_bytes(coded).decode(charset, "replace")
    return given.get("filename")


def _parameters(header: str) -> Iterator[tuple[str, str]]:
    """The parameters behind the value of a header; a name that comes twice comes twice."""
    for found in _PARAMETER.finditer(header):
        value = found[2]
        if value.startswith('"'):
            # Of what browsers write, only \" is an escape: Internet Explorer sent whole paths, C:\new\report.pdf.
            value = value[1:-1].replace('\\"', '"')
        yield found[1].lower(), value


class MultipartReader:
    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\r\n--" + boundary
        # As if a line had ended before the first byte: the first boundary is then like all others.
        self._buffer = bytearray(b"\r\n")
        self._state = _State.PREAMBLE
        self._skipped = 0
        self._parts = 0
        self._unwanted = 0  # bytes of the line's end before a part's body, which are still to come

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """What the form says up to here. To be read to its end before more is fed."""
        steps = {
            _State.PREAMBLE: self._preamble,
            _State.AFTER_BOUNDARY: self._after_boundary,
            _State.HEAD: self._head,
            _State.BODY: self._body,
            _State.EPILOGUE: self._epilogue,
        }
        self._buffer += chunk
        goes_on = True
        while goes_on:
            events, goes_on = steps[self._state]()
            yield from events

    def finish(self) -> None:
        """Nothing more comes."""
        if self._state is not _State.EPILOGUE:
            raise MultipartBroken("the form breaks off before its closing boundary")

    # -- one for each state: what there is to tell, and whether that is all that can be said of what has come

    def _preamble(self) -> _Step:
        place = self._buffer.find(self._delimiter)
        if place < 0:
            passed = max(0, len(self._buffer) - len(self._delimiter) + 1)
            self._skipped += passed
            del self._buffer[:passed]
            if self._skipped > LONGEST_PREAMBLE:
                raise MultipartBroken("the form does not begin with the boundary that its Content-Type names")
            return (), False
        del self._buffer[: place + len(self._delimiter)]
        self._state = _State.AFTER_BOUNDARY
        return (), True

    def _after_boundary(self) -> _Step:
        """``--`` closes the form; a line's end begins a part; blanks before it are allowed, and nothing else is."""
        if self._buffer.startswith(b"--"):
            self._state = _State.EPILOGUE
            return (), True
        end = self._buffer.find(b"\r\n")
        padding = self._buffer[:end] if end >= 0 else self._buffer.removesuffix(b"\r")
        is_half = end < 0 and padding == b"-"  # of the two that close the form
        if not is_half and (padding.strip(b" \t") or len(padding) > LONGEST_HEAD):
            raise MultipartBroken("a boundary of the form is followed by something that is no end of a line")
        if end < 0:
            return (), False
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise MultipartBroken(f"the form has more than {MOST_PARTS} parts", limit=MOST_PARTS)
        # The line's end stays: a part without any header has its empty line right here.
        del self._buffer[:end]
        self._state = _State.HEAD
        return (), True

    def _head(self) -> _Step:
        end = self._buffer.find(b"\r\n\r\n")
        if end > LONGEST_HEAD or (end < 0 and len(self._buffer) > LONGEST_HEAD + 4):
            raise MultipartBroken(f"the headers of a part are larger than {LONGEST_HEAD} bytes", limit=LONGEST_HEAD)
        if end < 0:
            return (), False
        try:
            head = self._buffer[:end].decode("utf-8")
        except UnicodeDecodeError:
            raise MultipartBroken("the headers of a part are not UTF-8") from None
        # The line's end before the body stays, too: where that is empty, it belongs to the next boundary.
        del self._buffer[: end + 2]
        self._unwanted = 2
        self._state = _State.BODY
        return (_began(head),), True

    def _body(self) -> _Step:
        place = self._buffer.find(self._delimiter)
        is_whole = place >= 0
        # What might be the beginning of a boundary is kept until it is known to be one.
        end = place if is_whole else max(0, len(self._buffer) - len(self._delimiter) + 1)
        unwanted = min(self._unwanted, end)
        self._unwanted -= unwanted
        data = bytes(self._buffer[unwanted:end])
        del self._buffer[: end + len(self._delimiter) if is_whole else end]
        told: list[Event] = [Data(data)] if data else []
        if is_whole:
            told.append(Ended())
            self._state = _State.AFTER_BOUNDARY
        return told, is_whole

    def _epilogue(self) -> _Step:
        """What follows the form means nothing; how much of it there may be, the bound of the body says."""
        self._buffer.clear()
        return (), False


def _began(head: str) -> Began:
    name = filename = None
    seen = False
    for line in head.split("\r\n"):
        header, colon, value = line.partition(":")
        if line and not colon:
            raise MultipartBroken("a line among the headers of a part is no header")
        if header.strip().lower() == "content-disposition":
            if seen:
                raise MultipartBroken("a part has two Content-Disposition headers")
            seen = True
            name = dict(_parameters(value)).get("name")
            filename = file_name(value)
    return Began(name, filename)
