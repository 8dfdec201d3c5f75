"""The values EDN has and Python lacks: keywords, symbols, characters, lists, and collections that can be keys.

Owns what they are and when two of them are equal. Never sees EDN text: that is for the reader and the writer.

    EDN        read as      in a hashable position: a map key, a set element, anything below one
    :a/b       Keyword      Keyword
    a/b        Symbol       Symbol
    "text"     str          String, which keeps the key "a" apart from the key :a
    \\c         Char         Char
    [1 2]      list         Vector
    (1 2)      List         List
    {:a 1}     dict         Map
    #{1 2}     frozenset    frozenset
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Never, Self, final

from psi.edn.errors import WriteError

__all__ = [
    "HASHABLE_DEPTH",
    "Char",
    "Keyword",
    "List",
    "Map",
    "String",
    "Symbol",
    "Vector",
    "freeze",
    "kind_key",
    "thaw",
]

Build = Callable[[list[Any]], Any]

# Python hashes and compares nested tuples by recursion, so what must be hashable may not nest as deep as the rest.
HASHABLE_DEPTH = 200


class _Kind(type):
    """``isinstance`` means this very kind of text; that some descend from Keyword has one reason, given below."""

    def __instancecheck__(cls, value: object) -> bool:
        return type(value) is cls

    def __subclasscheck__(cls, other: type) -> bool:
        return other is cls


class Keyword(str, metaclass=_Kind):
    """``:a/b``, held without its colon and equal to the plain string, so ``{"a/b": 1}[Keyword("a/b")]`` is 1."""

    __slots__ = ()

    @property
    def namespace(self) -> str | None:
        return _split(self)[0]

    @property
    def name(self) -> str:
        return _split(self)[1]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str.__repr__(self)})"


# Two texts of different kinds are never equal; a plain str is equal to any of them. An ``__eq__`` on Keyword would say
# so most plainly, but made every dict lookup that meets a keyword six times slower. Python asks the right operand first
# when its type is a subclass of the left one's, so the rarer kinds descend from Keyword and refuse on its behalf.
if TYPE_CHECKING:
    _AskedBeforeKeyword = str
else:
    _AskedBeforeKeyword = Keyword


class _Distinct(_AskedBeforeKeyword):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) and type(type(other)) is _Kind:
            return False
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        if type(other) is not type(self) and type(type(other)) is _Kind:
            return True
        return str.__ne__(self, other)


@final
class Symbol(_Distinct):
    """``a/b``, equal to the plain string, never to the keyword of that name."""

    __slots__ = ()

    @property
    def namespace(self) -> str | None:
        return _split(self)[0]

    @property
    def name(self) -> str:
        return _split(self)[1]


@final
class String(_Distinct):
    """A string in a hashable position: as a key it is written ``"a"``, where a plain str would be written ``:a``."""

    __slots__ = ()


@final
class Char(_Distinct):
    """One character, ``\\c``."""

    __slots__ = ()

    def __new__(cls, character: str) -> Self:
        if len(character) != 1:
            raise ValueError(f"a Char is one character, found {len(character)}")
        return super().__new__(cls, character)


def _split(text: str) -> tuple[str | None, str]:
    namespace, slash, name = text.partition("/")
    return (namespace, name) if slash and namespace else (None, text)


@final
class Vector(tuple[Any, ...]):
    """``[1 2]`` where it must be hashable; equal to a List of the same elements, as EDN says of sequences."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Vector({tuple.__repr__(self)})"


@final
class List(tuple[Any, ...]):
    """``(1 2)``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"List({tuple.__repr__(self)})"


@final
class Map(dict[Any, Any]):
    """``{:a 1}`` where it must be hashable: every value is hashable too, and nothing changes once it is made."""

    __slots__ = ("_hash",)

    def __init__(self, entries: Any = ()) -> None:
        super().__init__(entries)
        # Now rather than on demand: a map of maps is hashed from the inside out, so asking later never recurses. A set
        # of hashes and not of items: those can be chosen so that all have one hash, and a set of them is then slow.
        self._hash = hash(frozenset(map(hash, self.items())))

    def __hash__(self) -> int:  # type: ignore[override]
        return self._hash

    def __repr__(self) -> str:
        return f"Map({dict.__repr__(self)})"

    def __reduce__(self) -> tuple[type[Map], tuple[dict[Any, Any]]]:
        return Map, (dict(self),)

    def _immutable(self, *_: object, **__: object) -> Never:
        raise TypeError("a Map cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _immutable
    clear = pop = popitem = setdefault = update = _immutable


def freeze(value: Any) -> Any:
    """The hashable form of a value: what the reader gives for the same EDN in a hashable position."""
    waiting: list[tuple[Iterator[Any], Build, list[Any]]] = []
    children: Iterator[Any] = iter((value,))
    build: Build = _only
    done: list[Any] = []
    while True:
        for child in children:
            opened = _open(child)
            if opened is None:
                done.append(String(child) if type(child) is str else child)
            elif len(waiting) == HASHABLE_DEPTH:
                raise WriteError(f"a value nested deeper than {HASHABLE_DEPTH} levels cannot be made hashable")
            else:
                waiting.append((children, build, done))
                (children, build), done = opened, []
                break
        else:
            frozen = build(done)
            if not waiting:
                return frozen
            children, build, done = waiting.pop()
            done.append(frozen)


def _open(value: Any) -> tuple[Iterator[Any], Build] | None:
    """The parts that still have to be frozen and what to make of them; None for what is hashable as it is.

    Keys and set elements are not looked into: they are hashable already, or they could not be where they are.
    """
    match value:
        case Map() | frozenset() | str():
            return None
        case set():
            return iter(()), lambda _: frozenset(value)
        case Mapping():
            return iter(value.values()), lambda values: Map(zip(value, values, strict=True))
        case List():
            return iter(value), List
        case list() | tuple():
            return iter(value), Vector
    return None


def _only(values: list[Any]) -> Any:
    return values[0]


def thaw(value: Any) -> Any:
    """The plain form of a frozen value, as it would be read outside a hashable position. Sets and keys stay as they
    are."""
    kind = type(value)
    if kind is String:
        return str(value)
    if kind is Vector:
        return [thaw(element) for element in value]
    if kind is List:
        return List(thaw(element) for element in value)
    if kind is Map:
        return {key: thaw(below) for key, below in value.items()}
    return value


def kind_key(value: Any, depth: int = 0) -> Any:
    """A hashable stand-in for a value that is equal to another one exactly when EDN holds the values for equal.

    To Python 1, 1.0 and True are one key, and a keyword is its text. What cannot be hashed, or is too deep to be looked
    through, is equal to itself alone.
    """
    kind = type(value)
    if kind is str or kind is int:
        return value
    if depth > _DEEPEST_KEY:
        return _Itself(value)
    if isinstance(value, Mapping):
        return (Mapping, Map({_name_key(key, depth): kind_key(v, depth + 1) for key, v in value.items()}))
    if isinstance(value, list | tuple):
        keys = [kind_key(element, depth + 1) for element in value]
        # The hash of a text is salted. Without it [1 2] could be chosen to have the hash of any other pair.
        salt = hash(str([*map(hash, keys)])) if len(keys) > 1 else 0
        return (List if kind is List else list, salt, *keys)
    if isinstance(value, set | frozenset):
        return (frozenset, frozenset(kind_key(element, depth + 1) for element in value))
    if kind is String:
        return str(value)
    try:
        hash(value)
    except TypeError:
        return _Itself(value)
    return (kind, value)


class _Itself:
    """Stands for one object, and keeps it from being taken for another that comes to lie in its place."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


_DEEPEST_KEY = 40


def _name_key(key: Any, depth: int) -> Any:
    """A plain str is a keyword where it is a key, so there it must not be taken for a string."""
    if type(key) is str or type(key) is Keyword:
        return str(key)
    return (String, str(key)) if type(key) is String else kind_key(key, depth + 1)
