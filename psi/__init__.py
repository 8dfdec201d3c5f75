"""psi: a graph of attributes that answers queries, and the rooms around it.

Importing ``psi`` imports none of its rooms: whoever needs the engine alone writes ``from psi.graph import Graph`` and
pays for nothing else.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
