"""Files that users send: ``POST /uploads`` puts one under the data folder, and a message may then refer to it.

    DATA/uploads/USER/UUID/NAME      a file that came in whole
    DATA/uploads/.incoming/UUID      one that is still coming in, or never ended: emptied when a service starts

A file goes to the disk as it comes in and is never held in memory; one that breaks off leaves nothing behind. What is
in a file is nobody's business here.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from psi.core.errors import Conflict, Forbidden, Invalid
from psi.core.session import LOCAL_USER
from psi.faces.asked import asked_of
from psi.faces.bodies import BodyTooLarge
from psi.faces.multipart import Began, Data, Ended, MultipartReader, boundary_of, file_name
from psi.faces.wire import HttpRefused, answer, caller_of, wanted
from psi.settings import Settings

__all__ = ["NoUploads", "Shelf", "Stored", "UploadNotStored", "Uploads", "UploadsFace", "clean_name", "data_folder"]

_T = TypeVar("_T")

FOLDER: Final = "uploads"
INCOMING: Final = ".incoming"

_MULTIPART: Final = "multipart/form-data"
_AT_ONCE: Final = 1 << 18  # bytes that are written together
_LONGEST_NAME: Final = 200  # bytes, which leaves room below what file systems take
_LONGEST_SUFFIX: Final = 20
_UNNAMED: Final = "file"
_AWKWARD: Final = re.compile(r'[<>:"|?*\\/]')  # in a name on one system or another


class NoUploads(Conflict):
    code = "uploads/no-folder"

    def __init__(self) -> None:
        super().__init__(
            "this psi keeps its data in memory and has no folder for uploads; `psi-tool serve` gives it one"
        )


class UploadNotStored(HttpRefused):
    """The disk is full, or does not take it."""

    status = 503
    code = "uploads/not-stored"

    def __init__(self, why: str) -> None:
        super().__init__(f"the upload could not be stored: {why}; nothing is left of it")


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that came in whole. ``path`` is what a message refers to it by."""

    name: str
    path: str
    size: int
    sha256: str

    def as_data(self) -> dict[str, Any]:
        return {"name": self.name, "path": self.path, "size": self.size, "sha256": self.sha256}


def data_folder(settings: Settings) -> Path | None:
    """The folder that the settings name, if the runtime of this very process keeps its data there: a runtime in memory
    has none, and a folder that some other process uses is not ours to write to. Its lock says who does."""
    folder = Path(settings.data)
    try:
        owner = (folder / "lock").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return folder if owner == str(os.getpid()) else None


class Uploads:
    """The files of all users. Without a folder there are none, and none can be added."""

    def __init__(self, data: Path | None, limit: int) -> None:
        self._root = None if data is None else data.resolve() / FOLDER
        self.limit = limit  # bytes of one request
        if self._root is not None:
            # Whoever was sending these is gone: the folder is this process's own.
            shutil.rmtree(self._root / INCOMING, ignore_errors=True)

    @property
    def root(self) -> Path:
        if self._root is None:
            raise NoUploads
        return self._root

    def of(self, user: str | None) -> Shelf:
        """A user's own; None is whoever runs the process, who may refer to all of them."""
        return Shelf(self, user)


class Shelf:
    """One user's uploads."""

    def __init__(self, uploads: Uploads, user: str | None) -> None:
        self._uploads = uploads
        self._user = user

    def find(self, path: str) -> Path | None:
        """The file that a path leads to; None where it leads to none of this user's uploads, wherever else it does."""
        given = Path(path)
        try:
            root = self._uploads.root
            if not given.is_absolute() or ".." in given.parts:
                return None
            # Links are followed before anything is compared, so that none leads out.
            found = given.resolve(strict=True)
            place = found.relative_to(root.resolve(strict=True)).parts
            if not found.is_file():
                return None
        except (NoUploads, OSError, ValueError, RuntimeError):
            return None
        if len(place) != 3 or place[0] == INCOMING or self._user not in (None, place[0]):
            return None
        return found

    def begin(self) -> Incoming:
        """A file that is about to come in."""
        return Incoming(self._uploads.root, self._user or LOCAL_USER)


class Incoming:
    """A file on its way in. Ends with ``keep`` and ``place``, or with ``drop``, after which nothing is left of it.

    Blocks while it writes: to be used from a thread.
    """

    def __init__(self, root: Path, user: str) -> None:
        self._id = str(uuid4())
        self._root = root
        self._user = user
        self._at = root / INCOMING / self._id
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._final: Path | None = None
        self.size = 0

    def write(self, data: bytes) -> None:
        if self._file is None:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._at.parent.mkdir(mode=0o700, exist_ok=True)
            self._file = os.fdopen(os.open(self._at, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def keep(self, name: str) -> Stored:
        """The file is whole: give it its place."""
        self.write(b"")
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        folder = self._root / self._user / self._id
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
        self._final = folder / name
        self._at.replace(self._final)
        return Stored(name, str(self._final), self.size, self._hash.hexdigest())

    def drop(self) -> None:
        # Whatever goes wrong here has gone wrong before, and was told then.
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            self._at.unlink(missing_ok=True)
        if self._final is not None:
            shutil.rmtree(self._final.parent, ignore_errors=True)


def clean_name(name: str) -> str:
    """A file's name as it can be kept: the last part of a path, without what file systems and terminals stumble on."""
    name = re.split(r"[/\\]", name)[-1]
    name = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode("utf-8"))
    name = "".join(each for each in name if unicodedata.category(each)[0] != "C" and each not in "\u2028\u2029")
    name = " ".join(_AWKWARD.sub("_", name).split()).strip(". ")
    if len(name.encode("utf-8")) > _LONGEST_NAME:
        stem, dot, suffix = name.rpartition(".")
        suffix = f".{suffix}" if dot and len(suffix.encode("utf-8")) <= _LONGEST_SUFFIX else ""
        stem = stem if suffix else name
        room = _LONGEST_NAME - len(suffix.encode("utf-8"))
        name = stem.encode("utf-8")[:room].decode("utf-8", "ignore").rstrip(". ") + suffix
    return name or _UNNAMED


# -- the endpoint


class UploadsFace:
    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads

    async def upload(self, request: Request) -> Response:
        """201 and what was stored: a file, or where a form had several, all of them under ``files``."""
        caller = caller_of(request)
        form = wanted(request.headers.get("accept"))
        if not caller.may_write:
            raise Forbidden("this token may read but not write", code="auth/read-only")
        shelf = self._uploads.of(caller.user)
        _ = self._uploads.root  # refused before anything is read
        receiving = _Receiving(shelf, self._uploads.limit)
        try:
            await self._receive(request, receiving)
            stored = await receiving.keep()
        except OSError as error:
            await receiving.drop()
            raise UploadNotStored(error.strerror or type(error).__name__) from error
        except BaseException:  # the sender may be gone, and this task with them
            await asyncio.shield(receiving.drop())
            raise
        found = [each.as_data() for each in stored]
        return answer(found[0] if len(found) == 1 else {"files": found}, form, 201)

    async def _receive(self, request: Request, receiving: _Receiving) -> None:
        name = _name_of(request)  # of a form it is not asked for, and still has to be right
        content_type = request.headers.get("content-type", "")
        if content_type.partition(";")[0].strip().lower() == _MULTIPART:
            await _receive_form(request.stream(), boundary_of(content_type), receiving)
            return
        await receiving.begin(name)
        async for chunk in request.stream():
            await receiving.take(chunk)


def _name_of(request: Request) -> str:
    """What the file is called; one that nobody has named is a file all the same."""
    given = asked_of(request, "name").get("name")
    if given is None:
        given = file_name(request.headers.get("content-disposition", "")) or _UNNAMED
    if not given.strip():
        raise Invalid(
            "`name` is blank; say what the file is called, as in POST /uploads?name=report.pdf, or leave it out",
            code="uploads/name-required",
            argument="name",
        )
    return given


async def _receive_form(chunks: AsyncIterator[bytes], boundary: bytes, receiving: _Receiving) -> None:
    reader = MultipartReader(boundary)
    is_file = False
    async for chunk in chunks:
        for event in reader.feed(chunk):
            match event:
                case Began(filename=filename):
                    # A form in a browser sends a file without a name where none was chosen.
                    is_file = bool(filename and filename.strip())
                    if filename and is_file:
                        await receiving.begin(filename)
                case Data(data) if is_file:
                    await receiving.take(data)
                case Ended():
                    is_file = False
    reader.finish()
    if not receiving.count:
        raise Invalid("the form has no file in it: one of its parts needs a `filename`", code="uploads/file-required")


class _Receiving:
    """The files of one request: all of them are kept, or none."""

    def __init__(self, shelf: Shelf, limit: int) -> None:
        self._shelf = shelf
        self._limit = limit
        self._files: list[tuple[str, Incoming]] = []
        self._waiting = bytearray()
        self._size = 0

    @property
    def count(self) -> int:
        return len(self._files)

    async def begin(self, name: str) -> None:
        await self._write()
        self._files.append((clean_name(name), self._shelf.begin()))

    async def take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise BodyTooLarge(self._limit, "max_upload")
        self._waiting += data
        if len(self._waiting) >= _AT_ONCE:
            await self._write()

    async def _write(self) -> None:
        if self._waiting:
            data = bytes(self._waiting)
            self._waiting.clear()
            await _finished(self._files[-1][1].write, data)

    async def keep(self) -> list[Stored]:
        await self._write()
        return await _finished(self._keep_all)

    def _keep_all(self) -> list[Stored]:
        return [incoming.keep(name) for name, incoming in self._files]

    async def drop(self) -> None:
        await asyncio.to_thread(self._drop_all)

    def _drop_all(self) -> None:
        for _, incoming in self._files:
            incoming.drop()


async def _finished(call: Callable[..., _T], *values: Any) -> _T:
    """What a thread has come to. Whoever is cancelled waits for it all the same: what is being written must have been
    before it is thrown away."""
    working = asyncio.ensure_future(asyncio.to_thread(call, *values))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise
