"""EDN: text to Python values and back. Pure, and knows nothing of queries or attributes."""

from psi.edn.errors import ReadError, WriteError
from psi.edn.reader import loads
from psi.edn.values import Char, Keyword, List, Map, String, Symbol, Vector, freeze, kind_key, thaw
from psi.edn.writer import dumps

__all__ = [
    "Char",
    "Keyword",
    "List",
    "Map",
    "ReadError",
    "String",
    "Symbol",
    "Vector",
    "WriteError",
    "dumps",
    "freeze",
    "kind_key",
    "loads",
    "thaw",
]
