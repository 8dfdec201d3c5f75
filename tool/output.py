"""Standard output, and text that is safe to show there. Whatever psi-tool prints goes through here.

Decided here and nowhere else: who reads it, a person or a program; that an output which cannot be written ends the
command with a sentence; and which characters never reach a terminal as they are. Knows no request and no answer, and
imports nothing heavy.
"""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Final, TextIO

__all__ = [
    "EDN",
    "JSON",
    "PEOPLE",
    "Unwritten",
    "Writing",
    "data",
    "flush",
    "forget",
    "form",
    "has_colours",
    "is_dumb",
    "plain",
    "ready",
    "text",
]

# Who reads what is printed.
PEOPLE: Final = "people"
JSON: Final = "json"
EDN: Final = "edn"

# What a terminal obeys instead of showing it: control characters, and the marks that turn the direction of writing,
# with which a name could read as another one.
_OBEYED: Final = (
    *(code for code in range(32) if chr(code) not in "\n\t"),
    *range(0x7F, 0xA0),
    0x061C,
    *(0x200E, 0x200F),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
_REPLACED: Final = dict.fromkeys(_OBEYED, "\ufffd")
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in _OBEYED}  # in JSON and in EDN the same text


class Unwritten(Exception):
    """Standard output takes nothing more. An error of its own, since a lost connection is an OSError as well."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"the output could not be written: {error.strerror or error}")
        self.is_unread = isinstance(error, BrokenPipeError)  # whoever read has gone


class Writing:
    """Around everything that writes to standard output: ``with Writing(): ...``."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise Unwritten(error) from None


def ready() -> None:
    """Make the streams such that writing to them fails for no other reason than that nobody takes it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What its encoding has no character for: an answer with a gap in it is worth more than none.
        sys.stdout.reconfigure(errors="replace")
    if sys.stderr is None:  # how Python says that it was closed by whoever started us
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 – for as long as we live


def form(values: Mapping[str, Any]) -> str:
    """PEOPLE, JSON or EDN: what was asked for, or else people in a terminal and a program behind a pipe."""
    if values.get("edn"):
        return EDN
    return PEOPLE if sys.stdout.isatty() and not values.get("json") else JSON


def is_dumb() -> bool:
    """Whether the terminal knows lines and nothing else: no colours and no places."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and not is_dumb()


def text(written: str) -> None:
    """A line, or lines."""
    with Writing():
        sys.stdout.write(f"{written.translate(_ESCAPED) if sys.stdout.isatty() else written}\n")


def data(body: bytes) -> None:
    """JSON, EDN or plain text: a pipe gets the bytes as they are."""
    body = body.rstrip(b"\n") + b"\n"
    with Writing():
        if sys.stdout.isatty():
            body = body.decode("utf-8", "replace").translate(_ESCAPED).encode(sys.stdout.encoding, "replace")
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()


def flush() -> None:
    with Writing():
        sys.stdout.flush()


def forget() -> None:
    """What is still buffered must not be tried again at exit, with a complaint."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def plain(given: object) -> str:
    """Text that somebody else wrote, safe to show."""
    return str(given).translate(_REPLACED)
