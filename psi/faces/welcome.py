"""Whether a stream or a socket may go on: its credentials may end while it is open. Looked at before it is sent to."""

from __future__ import annotations

from psi.core.clock import SECOND, Clock
from psi.core.identity import Identity
from psi.faces.auth import Auth

__all__ = ["Welcome"]


class Welcome:
    """Asks at most once a second: a look costs a read of the credentials."""

    def __init__(self, auth: Auth, identity: Identity | None, clock: Clock) -> None:
        self._auth = auth
        self.identity = identity  # None: nobody has said yet who they are
        self._clock = clock
        self._asked = clock.now().tick

    def check(self) -> None:
        """Raises Unauthenticated once the credentials count no more."""
        if not self._auth.on or self.identity is None:
            return
        now = self._clock.now().tick
        if now - self._asked >= SECOND:
            self._asked = now
            self._auth.still(self.identity)
