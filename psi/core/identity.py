"""Who asks, as a face knows them, and what they may do. Checks no credentials and keeps none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from psi.core.commands import Caller
from psi.core.errors import Invalid

__all__ = ["ADMIN", "ALL_SCOPES", "READ", "SCOPES", "WRITE", "Identity", "read_scopes"]

READ: Final = "read"
WRITE: Final = "write"
ADMIN: Final = "admin"

# From the least to the most; each one implies those before it.
SCOPES: Final = (READ, WRITE, ADMIN)
ALL_SCOPES: Final = frozenset(SCOPES)


class Identity(NamedTuple):
    """Somebody whose credentials were found good, or anybody at all where none are needed."""

    user: str | None  # None: nobody is asked for credentials, so it is whoever runs the process
    scopes: frozenset[str]
    client: str  # what rates are counted by: the id of a token or a login, or the address of the peer

    def caller(self, session: str | None = None) -> Caller:
        """The same to the service, asking from a session."""
        return Caller(session, user=self.user, may_write=WRITE in self.scopes or ADMIN in self.scopes)


def read_scopes(names: Iterable[object]) -> frozenset[str]:
    """Scopes with those that they imply: ``admin`` is allowed to write, and ``write`` to read."""
    given = list(names)
    unknown = [name for name in given if name not in SCOPES]
    if unknown or not given:
        came = ", ".join(map(str, unknown)) or "none"
        raise Invalid(f"scopes must be some of {', '.join(SCOPES)}, got {came}", code="auth/invalid-scopes")
    highest = max(SCOPES.index(str(name)) for name in given)
    return frozenset(SCOPES[: highest + 1])
