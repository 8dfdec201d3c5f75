"""A session as it happens: its turns, frame by frame, over a WebSocket or as server-sent events.

stream    what one client is sent, whatever carries it: sync, replay, live frames, heartbeats
socket    the WebSocket protocol: who is asking, messages in, frames out
sse       the same frames as server-sent events
"""

from psi.faces.streams.face import StreamsFace

__all__ = ["StreamsFace"]
