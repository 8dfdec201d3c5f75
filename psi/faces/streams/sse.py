"""The same frames as server-sent events, for clients that cannot use a WebSocket. ``Last-Event-ID`` resumes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from psi.core.commands import Caller
from psi.faces.auth import Auth, Unauthenticated
from psi.faces.sockets import ABORT
from psi.faces.streams.stream import Frame, Gone, Seen, SessionStream, Texts, TooSlow
from psi.faces.welcome import Welcome
from psi.service import Service

__all__ = ["events"]


def events(request: Request, caller: Caller, service: Service, auth: Auth, texts: Texts) -> Response:
    """The session's frames, until one of the two goes or the credentials end. Raises SessionNotFound."""
    welcome = Welcome(auth, request.scope["psi.identity"], service.clock)
    stream = SessionStream(service, caller, request.path_params["session_id"], texts, _seen(request))
    abort = request.scope.get("extensions", {}).get(ABORT)
    if abort is not None:
        # Its writer is held up where it cannot see that; nobody who does not read would read a farewell either.
        stream.when_too_slow(abort)
    return StreamingResponse(
        _written(stream, welcome),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )


def _seen(request: Request) -> Seen | None:
    """``RUN:SEQ``: in the header that a browser sends by itself when it comes back, or in the address."""
    last = request.headers.get("last-event-id")
    if last is None:
        last = f"{request.query_params.get('run_id', '')}:{request.query_params.get('after', '')}"
    run, _, seq = last.rpartition(":")
    return Seen(run, int(seq[:18])) if run and seq.isascii() and seq.isdigit() else None


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
