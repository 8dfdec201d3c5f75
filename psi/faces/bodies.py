"""Bodies on their way in: how large they may be, in which time they have to come, and that they are what they say.

Plain ASGI, as the guard is that stands around it. Looks into none of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from psi.faces.visit import Visit
from psi.faces.wire import HttpRefused
from psi.settings import Settings

__all__ = ["BodyTimeout", "BodyTooLarge", "Bounded", "Bounds", "Encoded", "SeveralTypes"]

# What takes more than a body usually has: messages with images, and files with the lines of a form around them.
_MESSAGES: Final = re.compile(r"/sessions/[^/]+/messages")
_UPLOADS: Final = re.compile(r"/uploads")
_AROUND_FILES: Final = 1 << 20

# What takes less: there everybody may send something to be read, and all that is to be read is a token.
_LOGIN: Final = re.compile(r"/login")
_LARGEST_LOGIN: Final = 8 << 10  # bytes


class SeveralTypes(HttpRefused):
    code = "http/several-content-types"

    def __init__(self, given: int) -> None:
        super().__init__(f"the header Content-Type is there {given} times; a body is of one type", given=given)


class Encoded(HttpRefused):
    """The body would have to be unpacked first, to a size that nobody can tell beforehand."""

    status = 415
    code = "http/unsupported-encoding"
    headers: ClassVar[Mapping[str, str]] = {"Accept-Encoding": "identity"}

    def __init__(self, given: str) -> None:
        super().__init__(
            f"Content-Encoding {given[:100]!r} is not unpacked here; send the body as it is, without that header",
            accepted=["identity"],
        )


class BodyTooLarge(HttpRefused):
    status = 413
    code = "http/too-large"

    def __init__(self, limit: int, setting: str | None = "max_body") -> None:
        why = "and this is not for more" if setting is None else f"which is the setting {setting}"
        super().__init__(f"the body is larger than {limit} bytes, {why}", limit=limit, setting=setting)


class BodyTimeout(HttpRefused):
    status = 408
    code = "http/body-timeout"
    # What is still missing may come at any time, and would be taken for the next request.
    headers: ClassVar[Mapping[str, str]] = {"Connection": "close"}

    def __init__(self, seconds: float, *, whole: bool) -> None:
        missing = "the body did not come in within" if whole else "nothing more of the body came for"
        super().__init__(f"{missing} {seconds:g} s, which is the setting body_timeout", limit=seconds)


class Bound(NamedTuple):
    """How large a body may be, and which setting says so; ``more`` is what stands around what the setting is about.

    ``whole``: whether all of it has to come in time. What may be large takes as long as its sender's line needs, so
    there it is only never to stand still.
    """

    limit: int
    setting: str | None
    more: int = 0
    whole: bool = False

    @property
    def bytes(self) -> int:
        return self.limit + self.more

    def exceeded(self) -> BodyTooLarge:
        return BodyTooLarge(self.limit, self.setting)


class Bounds:
    """What may be in a body, by where it is sent to."""

    def __init__(self, settings: Settings) -> None:
        self._usual = Bound(settings.max_body, "max_body", whole=True)
        login = Bound(_LARGEST_LOGIN, None, whole=True) if settings.max_body > _LARGEST_LOGIN else self._usual
        self._others = (
            (_MESSAGES, Bound(settings.max_message, "max_message")),
            (_UPLOADS, Bound(settings.max_upload, "max_upload", _AROUND_FILES)),
            (_LOGIN, login),
        )

    def of(self, scope: Scope) -> Bound:
        """How large a body may be: there are two places that take more than the others, and one that takes less."""
        if scope["method"] == "POST":
            for pattern, bound in self._others:
                if pattern.fullmatch(scope["path"]):
                    return bound
        return self._usual

    def check(self, scope: Scope, headers: Headers) -> None:
        """Whether a body can be taken for what its headers say."""
        length = headers.get("content-length", "")
        bound = self.of(scope)
        if length.isascii() and length.isdigit() and int(length.lstrip("0")[:20] or 0) > bound.bytes:
            raise bound.exceeded()
        types = headers.getlist("content-type")
        if len(types) > 1:
            raise SeveralTypes(len(types))
        encoding = ", ".join(headers.getlist("content-encoding"))
        if encoding and any(each.strip().lower() not in ("", "identity") for each in encoding.split(",")):
            raise Encoded(encoding)


class Bounded:
    """What the app reads from: the body, as long as it is not too large and comes in time. What is beyond is not
    kept."""

    def __init__(self, receive: Receive, visit: Visit, bound: Bound, seconds: float) -> None:
        self._receive = receive
        self._visit = visit
        self._bound = bound
        self._limit = bound.bytes
        self._read = 0
        self._seconds = seconds
        self._until: float | None = None  # by the loop's clock, and once somebody has begun to read
        self._is_whole = False
        self._is_refused = False

    async def __call__(self) -> Message:
        if self._is_refused:
            return {"type": "http.disconnect"}
        try:
            message = await self._next()
        except TimeoutError:
            return await self._refuse(BodyTimeout(self._seconds, whole=self._bound.whole))
        if message["type"] == "http.request":
            self._is_whole = not message.get("more_body", False)
            self._read += len(message.get("body", b""))
            if self._read > self._limit:
                return await self._refuse(self._bound.exceeded())
        return message

    async def _next(self) -> Message:
        # Who reads on after the whole body, or while the answer is on its way, waits for the client to leave; that may
        # take as long as it takes.
        if not self._is_whole and self._visit.status is None:
            try:
                async with asyncio.timeout_at(self._deadline()):
                    return await self._receive()
            except TimeoutError:
                if self._visit.status is None:
                    raise
        return await self._receive()

    def _deadline(self) -> float:
        if self._until is None or not self._bound.whole:
            self._until = asyncio.get_running_loop().time() + self._seconds
        return self._until

    async def _refuse(self, refused: HttpRefused) -> Message:
        """The app hears that nobody is there any more; what the sender hears is why."""
        self._is_refused = True
        if self._visit.status is None:
            await self._visit.refuse(self._receive, refused)
        return {"type": "http.disconnect"}
