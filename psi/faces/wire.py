"""What stands in HTTP messages: bodies in JSON and EDN, whose session is meant, and which status an error has.

Knows no endpoint and decides nothing. Whatever a body holds, reading it gives data or one clear error.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, TypeVar

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from psi.core.commands import Caller
from psi.core.errors import Conflict, Forbidden, NotFound, RuntimeClosed
from psi.core.identity import Identity
from psi.edn import ReadError, WriteError, dumps, loads
from psi.edn.alike import MOST_ALIKE, Alike, can_be_alike
from psi.edn.strict import Twice, no_constant, once
from psi.eql import QueryTooDeep
from psi.errors import Failed, PsiError, Refused
from psi.graph import (
    AttributeUnreachable,
    MutationFailed,
    MutationNotFound,
    ResolverFailed,
)
from psi.store import StoreFailed, StoreUnreadable
from tool.render import as_json

__all__ = [
    "DEEPEST",
    "LARGEST",
    "BadSession",
    "Form",
    "HttpRefused",
    "NotAcceptable",
    "SeveralSessions",
    "StoreSilent",
    "TooDeep",
    "TooLarge",
    "Unreadable",
    "UnsupportedMedia",
    "answer",
    "caller_of",
    "came_as",
    "decoded",
    "error_body",
    "error_response",
    "form_for",
    "is_utf8",
    "liking",
    "measure",
    "off_loop",
    "read",
    "read_body",
    "read_json",
    "session_of",
    "status_of",
    "wanted",
    "written",
]

# Deeper than any request a person or a program writes, and shallow enough for everything behind the reader.
DEEPEST: Final = 128

# Bytes of an answer, about. An answer shares what it was made from, so that a short query about a few entities can be
# gigabytes once it is written out; and while that is done nobody else is served.
LARGEST: Final = 16 << 20
_SMALL: Final = frozenset((int, float, bool, type(None)))
_SHORT: Final = 32  # characters

_LONGEST_ID: Final = 200
_ID: Final = re.compile(f"[!-~]{{1,{_LONGEST_ID}}}")

_FORM: Final = "psi.form"
_SAFE_DIGITS: Final = 18  # an integer of so many has a hash of its own
_LONG: Final = 1 << 20  # bytes of a body from which on reading it is left to a thread

_T = TypeVar("_T")


class Form(Enum):
    """How a body is written; the value is its media type."""

    JSON = "application/json"
    EDN = "application/edn"

    @property
    def content_type(self) -> str:
        # JSON is UTF-8 by its definition; saying so helps those who look at answers in a browser.
        return f"{self.value}; charset=utf-8"


# -- what is wrong


class HttpRefused(Refused):
    """The request is refused for what it is as HTTP, before anybody has asked what it says."""

    status: ClassVar[int] = 400
    code = "http/refused"
    headers: ClassVar[Mapping[str, str]] = {}  # what an answer says besides

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self._facts = {name.replace("_", "-"): value for name, value in facts.items()}

    def facts(self) -> dict[str, Any]:
        return dict(self._facts)


class Unreadable(HttpRefused):
    """The body is not what its Content-Type says."""

    code = "http/unreadable"


class UnsupportedMedia(HttpRefused):
    status = 415
    code = "http/unsupported-media-type"

    def __init__(self, given: str) -> None:
        accepted = [form.value for form in Form]
        super().__init__(
            f"Content-Type {given[:100]!r} cannot be read here; send {' or '.join(accepted)}", accepted=accepted
        )


class NotAcceptable(HttpRefused):
    status = 406
    code = "http/not-acceptable"

    def __init__(self, message: str, available: Iterable[str] | None = None) -> None:
        super().__init__(message, available=list(available or (form.value for form in Form)))


class SeveralSessions(HttpRefused):
    code = "http/several-sessions"

    def __init__(self, given: int) -> None:
        super().__init__(
            f"the header Psi-Session is there {given} times; a request comes from one session", given=given
        )


class BadSession(HttpRefused):
    code = "http/bad-session"

    def __init__(self) -> None:
        super().__init__(
            f"the header Psi-Session must be the id of a session, 1 to {_LONGEST_ID} printable ASCII characters; "
            "leave it out where there is none"
        )


class TooLarge(HttpRefused):
    status = 422
    code = "http/answer-too-large"

    def __init__(self) -> None:
        super().__init__(f"the answer is larger than about {LARGEST >> 20} MiB; ask for less of it", limit=LARGEST)


class TooDeep(HttpRefused):
    status = 422
    code = "http/answer-too-deep"

    def __init__(self) -> None:
        super().__init__("the answer is nested too deep to be written; ask for less of it")


class StoreSilent(Failed):
    """What is kept cannot be read at the moment."""

    code = "psi/store-silent"

    def __init__(self) -> None:
        super().__init__("the store does not answer")


# The one table. The first kind that fits counts, so the narrower ones stand first.
_STATUSES: Final[tuple[tuple[type[PsiError], int], ...]] = (
    (RuntimeClosed, 503),
    (StoreSilent, 503),
    (StoreFailed, 503),
    (StoreUnreadable, 500),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    # Understood, and still without an answer: nothing leads there, or what was called did not deliver.
    (AttributeUnreachable, 422),
    (MutationNotFound, 422),
    (QueryTooDeep, 422),
    (Failed, 422),
    # Bad syntax, unknown keys, values out of bounds.
    (Refused, 400),
)


def status_of(error: PsiError) -> int:
    """The status that says what kind of error it is."""
    if isinstance(error, HttpRefused):
        return error.status
    if isinstance(error, MutationFailed | ResolverFailed) and isinstance(error.__cause__, Refused):
        # What was called refused on purpose; that it was called through the graph is a detail.
        return status_of(error.__cause__)
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def error_body(error: PsiError, form: Form = Form.JSON) -> dict[str, Any]:
    """The error as a body has it. Its facts are named as the form names things: snake_case in JSON, as REST has it."""
    facts = error.disclosed()
    if form is Form.JSON:
        facts = {name.replace("-", "_"): value for name, value in facts.items()}
    return {"error": {"code": error.code, "message": error.sentence(), "details": facts}}


# -- reading


async def read_body(request: Request) -> tuple[Any, Form]:
    """The body as data, and the form it came in. How large it may be is not decided here."""
    found, form = read(await request.body(), came_as(request.headers.get("content-type")))
    request.scope[_FORM] = form  # whatever goes wrong from here on is told in the same form
    return found, form


def caller_of(request: Request) -> Caller:
    """Who asks, and from which session: the header ``Psi-Session``, where there is one."""
    identity: Identity = request.scope["psi.identity"]
    return identity.caller(session_of(request.headers))


def session_of(headers: Headers) -> str | None:
    """The invoking session, where one is named. Of two, either would be a guess."""
    given = headers.getlist("psi-session")
    if len(given) > 1:
        raise SeveralSessions(len(given))
    if not given:
        return None
    if not _ID.fullmatch(given[0]):
        raise BadSession
    return given[0]


def form_for(request: Request) -> Form:
    """The form for an answer that has to be given whatever the request asks for: an error."""
    try:
        came = request.scope.get(_FORM) or came_as(request.headers.get("content-type"))
        return wanted(request.headers.get("accept"), came)
    except HttpRefused:
        return Form.JSON


def came_as(content_type: str | None) -> Form | None:
    """The form that a Content-Type names; None where it leaves that open."""
    media = (content_type or "").partition(";")[0].strip().lower()
    if not is_utf8(content_type or ""):
        raise UnsupportedMedia(content_type or "")
    # curl says `application/x-www-form-urlencoded` of whatever it is given with -d; a page elsewhere cannot use that,
    # because its Origin gives it away.
    if media in ("", "text/plain", "application/x-www-form-urlencoded"):
        return None
    for form in Form:
        if media == form.value:
            return form
    raise UnsupportedMedia(content_type or "")


def is_utf8(content_type: str) -> bool:
    """Whether what a Content-Type says of the charset is what can be read here; it may say nothing."""
    said = (value.strip(" \"'").lower() for name, _, value in _parameters(content_type) if name == "charset")
    return all(charset in ("utf-8", "utf8", "us-ascii") for charset in said)


def decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as wrong:
        raise Unreadable(f"the body is not UTF-8: byte {wrong.start} cannot be decoded", at=wrong.start) from None


def _parameters(text: str) -> Iterator[tuple[str, str, str]]:
    for each in text.split(";"):
        name, equals, value = each.partition("=")
        yield name.strip().lower(), equals, value.strip()


def read(body: bytes, form: Form | None) -> tuple[Any, Form]:
    """The one value of the body. Without a form: JSON where it is JSON, EDN otherwise."""
    text = decoded(body)
    if not text.strip():
        raise Unreadable("the body is empty; a request in JSON or EDN is expected")
    if form is Form.EDN:
        return _edn(text), Form.EDN
    if form is Form.JSON:
        return read_json(text), Form.JSON
    try:
        return read_json(text), Form.JSON
    except Unreadable as not_json:
        # ``{"a" 1}`` is EDN and only that; which of the two complaints helps is told by what it looks like.
        try:
            return _edn(text), Form.EDN
        except Unreadable as not_edn:
            looks_like_json = text.lstrip()[1:].lstrip().startswith('"')
            raise (not_json if looks_like_json else not_edn) from None


def read_json(text: str, what: str = "the body") -> Any:
    """JSON as its standard has it: no NaN, no key twice, no half characters, nothing after the value."""
    try:
        orjson.loads(text)
        value = json.loads(
            text, object_pairs_hook=once, parse_constant=no_constant, parse_float=_finite, parse_int=_integers()
        )
    except Twice as twice:
        raise Unreadable(f"{what} is not JSON that can be taken at its word: {twice}") from None
    except (ValueError, RecursionError) as wrong:
        why = "it is nested too deep" if isinstance(wrong, RecursionError) else str(wrong)
        raise Unreadable(f"{what} cannot be read as JSON: {why}") from None
    if text.count("[") + text.count("{") > DEEPEST and _is_deep(value):
        raise Unreadable(f"{what} is nested deeper than {DEEPEST} levels")
    return value


async def off_loop(size: int, call: Callable[..., _T], *values: Any) -> _T:
    """What a call gives; from a thread where there is much to do it with, so that others are served meanwhile."""
    return call(*values) if size < _LONG else await asyncio.to_thread(call, *values)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


def _integers() -> Callable[[str], int]:
    """What reads the integers of one text."""
    alike = Alike()

    def read(text: str) -> int:
        value = int(text)
        if len(text) > _SAFE_DIGITS and can_be_alike(value) and alike.meet(value):
            raise ValueError(
                f"it has more than {MOST_ALIKE} integers with one hash; those that are a multiple of "
                "2305843009213693951 apart share one, and whatever is keyed by them is slow"
            )
        return value

    return read


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            below
            for each in level
            if isinstance(each, list | dict)
            for below in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def _edn(text: str) -> Any:
    try:
        return loads(text, max_depth=DEEPEST)
    except ReadError as wrong:
        raise Unreadable(f"the body cannot be read as EDN: {wrong.message}", **wrong.facts()) from None


# -- writing


def wanted(accept: str | None, came: Form | None = None) -> Form:
    """The form that the answer shall have: what Accept likes best, the form of the request among equals."""
    first = came or Form.JSON
    if accept is None or not accept.strip():
        return first
    likings = {form: liking(accept, form.value) for form in Form}
    best = max(likings.values())
    if best <= 0:
        raise NotAcceptable(
            f"Accept {accept[:100]!r} takes none of what there is: {', '.join(form.value for form in Form)}"
        )
    return first if likings[first] == best else next(form for form in Form if likings[form] == best)


def liking(accept: str, wanted: str) -> float:
    """How much a media type of ours is liked; the most specific range that fits decides."""
    found = (-1, 0.0)
    for each in accept.split(","):
        media, _, parameters = each.partition(";")
        ranges = {wanted: 2, f"{wanted.partition('/')[0]}/*": 1, "*/*": 0, "*": 0}
        specific = ranges.get(media.strip().lower())
        if specific is not None:
            found = max(found, (specific, _weight(parameters)))
    return found[1]


def _weight(parameters: str) -> float:
    for name, _, value in _parameters(parameters):
        if name == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0 <= weight <= 1 else 0.0
    return 1.0


def measure(value: Any) -> None:
    """Raises TooLarge for a value that is not worth writing. Stops as soon as that is known."""
    left = LARGEST
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            left -= len(each)
            below: Iterable[Any] = ()
        elif each.__class__ is dict or isinstance(each, Mapping):
            left -= 32 * len(each)  # a key, a short value and what stands around them
            below = each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            left -= 16 * len(each)  # more than a number takes: what counts is the time to write it, too
            below = each
        else:
            continue
        if left < 0:
            raise TooLarge
        # Only what may be large: nearly all values are numbers and short texts, and those are accounted for above.
        waiting += [
            one for one in below if one.__class__ not in _SMALL and not (one.__class__ is str and len(one) <= _SHORT)
        ]


def written(value: Any, form: Form) -> bytes:
    """The value as a body has it."""
    measure(value)
    try:
        return _written_json(value) if form is Form.JSON else dumps(value).encode("utf-8")
    except WriteError as wrong:
        raise NotAcceptable(f"the answer has no EDN form: {wrong.message}; ask for {Form.JSON.value}") from None
    except RecursionError:
        raise TooDeep from None


def _written_json(value: Any) -> bytes:
    plain = as_json(value)
    try:
        return orjson.dumps(plain)
    except TypeError:
        # Integers beyond 64 bits and half characters; rare, and the standard library has a form for both.
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def answer(value: Any, form: Form = Form.JSON, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        written(value, form), status, media_type=form.content_type, headers=dict(headers) if headers else None
    )


def error_response(error: PsiError, form: Form = Form.JSON, headers: Mapping[str, str] | None = None) -> Response:
    """The error as every endpoint tells it."""
    if isinstance(error, HttpRefused):
        headers = {**error.headers, **(headers or {})}
    try:
        return answer(error_body(error, form), form, status_of(error), headers)
    except NotAcceptable:
        # The facts of an error may hold values of somebody's own kind, which only JSON puts in words.
        return answer(error_body(error), Form.JSON, status_of(error), headers)
