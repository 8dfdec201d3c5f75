"""What stands in a session's history: messages, where they come from, and how they are told as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from psi.edn import Keyword, Map, String, freeze, thaw

__all__ = [
    "ROLES",
    "SCHEDULED",
    "USER",
    "Message",
    "Scheduled",
    "is_picture",
    "picture_part",
    "says",
    "text_part",
    "weight",
    "whole",
    "within",
    "without_pictures",
]

ROLES: Final = ("user", "assistant", "system")

# Where a turn comes from. ``recall`` and ``cron`` join here when they arrive.
USER: Final = Keyword("user")
SCHEDULED: Final = Keyword("scheduled")

_TEXT: Final = Keyword("text")
_IMAGE: Final = Keyword("image")
_OF_A_PICTURE: Final = {"type", "media-type", "data"}


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The schedule that a message was injected by."""

    schedule_id: str
    label: str | None

    def as_data(self) -> dict[str, Any]:
        return {"schedule-id": self.schedule_id, "label": self.label}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a history. ``content`` is a sequence of parts, of which ``{:type :text :text ..}`` is the usual."""

    role: str
    content: tuple[Map, ...]
    timestamp: datetime | None = None
    source: Keyword | None = None
    origin: Scheduled | None = None
    run_id: str | None = None
    closure: Keyword | None = None  # how the turn ended, where that was not with an answer

    @property
    def text(self) -> str:
        """The text parts alone, as one string."""
        return "\n".join(str(part["text"]) for part in self.content if part.get("type") == "text")

    def as_data(self) -> dict[str, Any]:
        """The message as the graph shows it; what it does not have is left out."""
        found: dict[str, Any] = {"role": self.role, "content": [thaw(part) for part in self.content]}
        if self.timestamp is not None:
            found["timestamp"] = self.timestamp
        if self.source is not None:
            found["source"] = self.source
        if self.origin is not None:
            found.update(self.origin.as_data())
        if self.run_id is not None:
            found["run-id"] = self.run_id
        if self.closure is not None:
            found["closure"] = self.closure
        return found


def whole(text: str) -> str:
    """The text as it can be written down. A character whose halves came one after the other, as from a model that tells
    its answer in pieces, is put together; half a character alone is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


# As JSON writes them: what rules a printer takes six characters, a quote or a backslash two.
_ESCAPED: Final = {**dict.fromkeys(map(chr, range(32)), 5), '"': 1, "\\": 1}


def weight(text: str) -> int:
    """How many bytes a text takes in JSON."""
    extra = sum(more * text.count(each) for each, more in _ESCAPED.items()) if len(text) > 1_000 else 0
    return extra + (len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def within(text: str, most: int) -> str:
    """The text, if it takes at most so many bytes in JSON; otherwise its beginning, and at its end that it was cut."""
    if 6 * len(text) <= most or weight(text) <= most:
        return text
    kept = most // 6
    return f"{text[:kept]}… [cut here, after {kept} of {len(text)} characters]"


def picture_part(media_type: str, data: str) -> Map:
    """A picture; ``data`` is base64."""
    return Map({"type": _IMAGE, "media-type": String(media_type), "data": String(data)})


def without_pictures(message: Message) -> Message:
    """The message with the size of each picture in the place of the picture."""
    if all("data" not in part for part in message.content):
        return message
    return replace(message, content=tuple(_size_alone(part) if is_picture(part) else part for part in message.content))


def is_picture(part: Mapping[Any, Any]) -> bool:
    """Whether a part is what :func:`picture_part` makes, and nothing more."""
    return part.keys() == _OF_A_PICTURE and part["type"] == _IMAGE and isinstance(part["data"], String)


def _size_alone(part: Map) -> Map:
    data = part["data"]
    size = len(data) // 4 * 3 - data[-2:].count("=")
    return Map({"type": _IMAGE, "media-type": part["media-type"], "size": size})


def text_part(text: str) -> Map:
    # What freeze would give, at a quarter of its cost: a long history is made of nothing else.
    return Map({"type": _TEXT, "text": String(text)})


def says(text: str | Iterable[Mapping[str, Any]]) -> tuple[Map, ...]:
    """Content from a text, or from parts."""
    return (text_part(text),) if isinstance(text, str) else tuple(freeze(dict(part)) for part in text)
