"""A user's message as it comes in, over HTTP or a socket: text, images and files, checked once for all faces.

    read_input({"content": "Look.", "images": ["iVBORw0..."]}, uploads, identity) -> Input(text, content)

Stores nothing and submits nothing. Images are decoded to be checked, and kept as base64; files are references to
uploads, which the text then names.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from psi.core.config import is_text, shown
from psi.core.errors import Forbidden, Invalid
from psi.core.identity import Identity
from psi.core.message import picture_part, says
from psi.edn import Map
from psi.faces.asked import check_name
from psi.faces.uploads import Shelf, Uploads

__all__ = [
    "KEYS",
    "LARGEST_IMAGE",
    "LONGEST_CONTENT",
    "MOST_FILES",
    "MOST_IMAGES",
    "FileUnknown",
    "Input",
    "read_input",
]

KEYS: Final = ("content", "images", "files")

LONGEST_CONTENT: Final = 1 << 20  # characters
MOST_IMAGES: Final = 10
LARGEST_IMAGE: Final = 5 << 20  # bytes, decoded
MOST_FILES: Final = 100
_LONGEST_NAME: Final = 255
_LONGEST_PATH: Final = 4_096

_UNKNOWN: Final = "application/octet-stream"
_IMAGE: Final = re.compile(r"image/[a-z0-9][a-z0-9.+-]{0,100}")
_ALSO_CALLED: Final = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_SAYS_NOTHING: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})

_DATA_URI: Final = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)
_LONGEST_PREFIX: Final = 200  # characters of a data URI before its data

# The keys that an upload is answered with; what came back from there may be sent on as it is.
_OF_A_FILE: Final = ("name", "path", "size", "sha256")


class FileUnknown(Forbidden):
    """Not a 404: it is the session that a message is sent to which is found or not."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"`{place}.path` is none of your uploads; send the file to POST /uploads and give the path it answers",
            code="input/unknown-file",
            argument=f"{place}.path",
        )


@dataclass(frozen=True, slots=True)
class Input:
    """A message that may be submitted: the text, with its files named in it, and its parts, of which that is one."""

    text: str
    content: tuple[Map, ...]


def read_input(data: Any, uploads: Uploads, identity: Identity) -> Input:
    """What a message says, or Invalid or FileUnknown with a sentence about what is wrong. Decodes what may be
    megabytes: some milliseconds for each image."""
    if not isinstance(data, Mapping):
        raise Invalid(f"a message is an object with `content`, got {shown(data)}", code="input/invalid")
    given = {str(key): value for key, value in data.items()}
    for name in given:
        check_name("key", name, KEYS, "input/unknown-key")
    content = _content(given.get("content"))
    images = _several(given, "images", MOST_IMAGES)
    files = _several(given, "files", MOST_FILES)
    shelf = uploads.of(identity.user)
    named = [_file(shelf, f"files[{place}]", each) for place, each in enumerate(files)]
    shown_ones = [_image(f"images[{place}]", each) for place, each in enumerate(images)]
    text = f"{content}\n\n[Uploaded files on disk: {', '.join(named)}]" if named else content
    return Input(text, (*says(text), *shown_ones))


def _content(given: Any) -> str:
    # Lengths are looked at first, here and below: the other checks read every character.
    if isinstance(given, str) and len(given) > LONGEST_CONTENT:
        raise Invalid(
            f"`content` has {len(given)} characters; at most {LONGEST_CONTENT} are accepted, and more goes into a file",
            code="input/content-too-long",
            argument="content",
            limit=LONGEST_CONTENT,
        )
    if not is_text(given) or not given.strip():
        raise Invalid(
            "session submit requires a non-blank `content`", code="session/message-required", argument="content"
        )
    return str(given)


def _several(given: Mapping[str, Any], name: str, most: int) -> list[Any]:
    found = given.get(name)
    if found is None:
        return []
    if not isinstance(found, list | tuple):
        raise Invalid(f"`{name}` must be a list, got {shown(found)}", code=f"input/invalid-{name}", argument=name)
    if len(found) > most:
        raise Invalid(
            f"a message has at most {most} {name}, got {len(found)}",
            code=f"input/too-many-{name}",
            argument=name,
            limit=most,
        )
    return list(found)


# -- images


def _image(place: str, given: Any) -> Map:
    if not isinstance(given, str) or not given.isascii():
        raise _bad_image(place, f"must be base64 text of an image, or a data URI, got {shown(given)}")
    said, text = _unwrapped(place, str(given).strip())
    text = "".join(text.split())  # tools wrap base64 in lines
    # Before it is decoded: what is too large is not worth the memory.
    if len(text) // 4 * 3 - text[-2:].count("=") > LARGEST_IMAGE:
        raise Invalid(
            f"`{place}` is larger than {LARGEST_IMAGE >> 20} MiB, which is the most that an image may have, decoded",
            code="input/image-too-large",
            argument=place,
            limit=LARGEST_IMAGE,
        )
    try:
        content = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as wrong:
        raise _bad_image(place, f"is not base64: {str(wrong)[:1].lower()}{str(wrong)[1:]}") from None
    if not content:
        raise _bad_image(place, "is empty")
    # What it is is told by its bytes; what it is called counts where they say nothing.
    media_type = _sniffed(content) or said or _UNKNOWN
    # Written anew: one text for one image, whatever the sender's looked like.
    return picture_part(media_type, base64.b64encode(content).decode("ascii"))


def _unwrapped(place: str, text: str) -> tuple[str | None, str]:
    """The media type that a data URI names, if it names one, and the base64 text in it."""
    if text[:5].lower() != "data:":
        return None, text
    found = _DATA_URI.match(text[:_LONGEST_PREFIX])
    if found is None or not found[2].lower().endswith(";base64"):
        raise _bad_image(place, "is a data URI, but not one of the form `data:image/png;base64,…`")
    said = found[1].strip().lower()
    said = _ALSO_CALLED.get(said, said)
    if said in _SAYS_NOTHING:
        return None, text[found.end() :]
    if not _IMAGE.fullmatch(said):
        raise _bad_image(place, f"is a data URI of `{said[:100]}`, and that is no image")
    return said, text[found.end() :]


def _sniffed(content: bytes) -> str | None:
    """What an image is, by its first bytes."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return None


def _bad_image(place: str, what: str) -> Invalid:
    return Invalid(f"`{place}` {what}", code="input/invalid-image", argument=place)


# -- files


def _file(shelf: Shelf, place: str, given: Any) -> str:
    """The file as the text names it."""
    if not isinstance(given, Mapping):
        raise _bad_file(place, f"must be an object with `name` and `path`, got {shown(given)}")
    for key in given:
        if key not in _OF_A_FILE:
            raise _bad_file(place, f"has an unknown key `{str(key)[:100]}`; accepted: `name`, `path`")
    path = given.get("path")
    if not isinstance(path, str) or len(path) > _LONGEST_PATH or not is_text(path) or not path:
        raise _bad_file(f"{place}.path", f"must be the path that POST /uploads has answered, got {shown(path)}")
    found = shelf.find(path)
    if found is None:
        # Elsewhere, somebody else's and not there at all are one and the same: which it is would be worth knowing.
        raise FileUnknown(place)
    name = given.get("name")
    if name is None:
        name = found.name
    elif not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.strip() or not name.isprintable():
        raise _bad_file(
            f"{place}.name", f"must be a printable string of 1 to {_LONGEST_NAME} characters, got {shown(name)}"
        )
    return str(found) if name == found.name else f"{name} ({found})"


def _bad_file(place: str, what: str) -> Invalid:
    return Invalid(f"`{place}` {what}", code="input/invalid-file", argument=place)
