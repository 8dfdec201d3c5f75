"""The same frames as server-sent events, for clients that cannot use a WebSocket. ``Last-Event-ID`` resumes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from psi.core.commands import Caller
from psi.faces.asked import asked_of
from psi.faces.auth import Auth, Unauthenticated
from psi.faces.sockets import ABORT
from psi.faces.streams.seen import seen_in_address, seen_in_header
from psi.faces.streams.stream import Frame, Gone, Seen, SessionStream, Texts, TooSlow
from psi.faces.welcome import Welcome
from psi.faces.wire import NotAcceptable, liking
from psi.service import Service

__all__ = ["events"]

_EVENTS: Final = "text/event-stream"


def events(request: Request, caller: Caller, service: Service, auth: Auth, texts: Texts) -> Response:
    """The session's frames, until one of the two goes or the credentials end. Raises Refused: what is asked for cannot
    be, or there is no such session."""
    _check_accept(request)
    seen = _seen(request)
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    if request.method == "HEAD":
        service.find(request.path_params["session_id"], caller)
        return Response(media_type=_EVENTS, headers=headers)
    welcome = Welcome(auth, request.scope["psi.identity"], service.clock)
    stream = SessionStream(service, caller, request.path_params["session_id"], texts, seen)
    abort = request.scope.get("extensions", {}).get(ABORT)
    if abort is not None:
        # Its writer is held up where it cannot see that; nobody who does not read would read a farewell either.
        stream.when_too_slow(abort)
    return StreamingResponse(_written(stream, welcome), media_type=_EVENTS, headers=headers)


def _check_accept(request: Request) -> None:
    accept = request.headers.get("accept", "")
    if accept.strip() and liking(accept, _EVENTS) <= 0:
        raise NotAcceptable(f"Accept {accept[:100]!r} takes no {_EVENTS}, and there is nothing else here", [_EVENTS])


def _seen(request: Request) -> Seen | None:
    """In the header that a browser sends by itself when it comes back, or else in the address, which it then repeats
    as it was in the beginning."""
    in_address = seen_in_address(asked_of(request, "run_id", "after"))
    return seen_in_header(request.headers.getlist("last-event-id")) or in_address


async def _written(stream: SessionStream, welcome: Welcome) -> AsyncIterator[bytes]:
    yield b": psi\nretry: 1000\n\n"  # at once, so that a client knows that it is through
    try:
        async for frames in stream.batches():
            welcome.check()
            # A word now and then where there is nothing to be told: what stands in between closes what is silent.
            yield b"".join(map(_event, frames)) or b": still here\n\n"
    except (TooSlow, Gone, Unauthenticated):
        return
    finally:
        stream.close()


def _event(frame: Frame) -> bytes:
    place = f"id: {frame.at.run}:{frame.at.seq}\n" if frame.at is not None else ""
    # `error` is what a browser calls the loss of the connection itself.
    name = "run_error" if frame.type == "error" else frame.type
    return b"%bevent: %b\ndata: %b\n\n" % (place.encode(), name.encode(), frame.data)
