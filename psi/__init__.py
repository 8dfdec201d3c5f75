"""psi: a live, queryable runtime for agent sessions, on a graph of attributes that answers queries.

Importing ``psi`` imports none of its rooms: whoever needs the engine alone writes ``from psi.graph import Graph`` and
pays for nothing else. ``from psi import Psi`` brings in the embedded runtime.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psi.runtime import Psi

__all__ = ["Psi", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Psi":
        from psi.runtime import Psi

        return Psi
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
