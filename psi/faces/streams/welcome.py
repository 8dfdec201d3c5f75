"""Whether a stream may go on: its credentials may end while it is open. Looked at before frames go out."""

from __future__ import annotations

from psi.core.clock import SECOND, Clock
from psi.core.identity import Identity
from psi.faces.auth import Auth

__all__ = ["Welcome"]


class Welcome:
    """Asks at most once a second: a look costs a read of the credentials."""

    def __init__(self, auth: Auth, identity: Identity, clock: Clock) -> None:
        self._auth = auth
        self._identity = identity
        self._clock = clock
        self._asked = clock.now().tick

    def check(self) -> None:
        """Raises Unauthenticated once the credentials count no more."""
        now = self._clock.now().tick
        if now - self._asked >= SECOND:
            self._asked = now
            self._auth.still(self._identity)
