"""EDN values in, a query tree out. Refuses what is not EQL and says where; knows no attribute by name.

Positions in messages are steps from the outermost vector (``[0] :user [2]``), because a query may come as data, which
has no lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psi.edn import Char, Keyword, Map, String, Symbol, Vector, dumps, freeze, loads
from psi.edn import WriteError as EdnWriteError
from psi.eql.ast import (
    NO_PARAMS,
    Call,
    Expression,
    Ident,
    Join,
    Key,
    Property,
    Query,
    Recursion,
    Subquery,
    Union,
    Wildcard,
)
from psi.errors import Refused

__all__ = ["MAX_DEPTH", "QueryError", "QueryTooDeep", "parse"]

# Deeper than any query a person or a program writes, and shallow enough for everything behind the parser.
MAX_DEPTH = 64


class QueryTooDeep(Refused):
    """It may well be EQL, and nests deeper than is looked into."""

    code = "eql/too-deep"

    def __init__(self) -> None:
        super().__init__(f"the query nests deeper than {MAX_DEPTH} levels")

    def facts(self) -> dict[str, Any]:
        return {"limit": MAX_DEPTH}


class QueryError(Refused):
    """The query is not EQL. ``at`` holds the steps to the offending place."""

    code = "eql/invalid-query"

    def __init__(self, problem: str, at: tuple[Any, ...] = ()) -> None:
        where = f" at {' '.join(_shown_step(step) for step in at)}" if at else ""
        super().__init__(f"invalid query{where}: {problem}")
        self.problem = problem
        self.at = at

    def facts(self) -> dict[str, Any]:
        at = [step.as_key() if isinstance(step, Ident) else step for step in self.at]
        return {"at": at, "problem": self.problem}


def parse(query: str | bytes | Query | Any) -> Query:
    """Read a query from EDN text, from EDN values, or from plain Python data.

    In text ``"x"`` is a string and therefore no attribute. In Python data a plain ``str`` is an attribute, a tuple of a
    name and params is a parameterised one, any other pair is an ident:
    ``["user/name", ("user/photo", {"size": 40}), ("user/id", 1)]``.
    """
    if isinstance(query, Query):
        return query
    if isinstance(query, str) and not isinstance(query, Keyword | Symbol):
        return _parse_text(query)
    if isinstance(query, bytes):
        return _parse_text(query)
    return _Parser(plain_strings=True).query(query, ())


def _parse_text(text: str | bytes) -> Query:
    return _Parser(plain_strings=False).query(loads(text), ())


class _Parser:
    def __init__(self, *, plain_strings: bool) -> None:
        self._plain_strings = plain_strings

    def query(self, value: Any, at: tuple[Any, ...]) -> Query:
        if len(at) > 2 * MAX_DEPTH:
            raise QueryTooDeep
        if not (_is_vector(value) or (self._plain_strings and type(value) is tuple)):
            raise QueryError(f"expected a vector of attributes and joins, found {_shown(value)}", at)
        children: list[Expression] = []
        for position, item in enumerate(value):
            children.extend(self._expressions(item, (*at, position)))
        return Query(tuple(children))

    def _expressions(self, value: Any, at: tuple[Any, ...]) -> list[Expression]:
        if isinstance(value, Mapping):
            if not value:
                raise QueryError("a join needs a key and a query, found {}", at)
            # A map with several entries is as many joins; nothing that was written is dropped.
            return [self._join(key, below, NO_PARAMS, at) for key, below in value.items()]
        if self._is_plain_ident(value):
            return [Property(self._key(Vector(value), at))]
        if _is_list(value):
            return [self._parameterised(value, at)]
        if value == "*" and (isinstance(value, Symbol) or (self._plain_strings and type(value) is str)):
            return [Wildcard()]
        return [Property(self._key(value, at))]

    def _parameterised(self, value: Any, at: tuple[Any, ...]) -> Expression:
        head, params = self._head_and_params(value, at)
        if isinstance(head, Symbol):
            return Call(head, params)
        if isinstance(head, Mapping):
            if len(head) != 1:
                raise QueryError(f"params need one join to belong to, found {_shown(head)}", at)
            [(key, below)] = head.items()
            return self._join(key, below, params, at)
        return Property(self._key(head, at), params)

    def _head_and_params(self, value: Any, at: tuple[Any, ...]) -> tuple[Any, Map]:
        if not 1 <= len(value) <= 2:
            raise QueryError(f"expected (name {{params}}), found {_shown(value)}", at)
        params = value[1] if len(value) == 2 else NO_PARAMS
        if not isinstance(params, Mapping):
            raise QueryError(f"params must be a map, found {_shown(params)} in {_shown(value)}", at)
        named = {self._param_name(key): item for key, item in params.items()}
        if len(named) < len(params):
            raise QueryError(f"two params have one name in {_shown(params)}", at)
        frozen: Map = _frozen(named, at)
        return value[0], frozen

    def _param_name(self, key: Any) -> Any:
        return str(key) if isinstance(key, Keyword) else key

    def _join(self, key: Any, below: Any, params: Map, at: tuple[Any, ...]) -> Expression:
        if self._is_plain_ident(key):
            key = Vector(key)
        elif _is_list(key):
            key, inner = self._head_and_params(key, at)
            params = Map({**inner, **params}) if params else inner
            if isinstance(key, Symbol):
                return Call(key, params, self._subquery(below, (*at, key)))
        if isinstance(key, Symbol):
            raise QueryError(f"a mutation is called in parentheses: {{({key} {{..}}) [..]}}", at)
        name = self._key(key, at)
        return Join(name, self._subquery(below, (*at, name)), params)

    def _subquery(self, value: Any, at: tuple[Any, ...]) -> Subquery:
        if isinstance(value, Mapping):
            if not value:
                raise QueryError("a union needs at least one branch", at)
            return Union(tuple((self._branch(key, at), self.query(below, (*at, key))) for key, below in value.items()))
        if isinstance(value, Symbol) and value == "...":
            return Recursion()
        if isinstance(value, str) and value == "..." and self._plain_strings:
            return Recursion()
        if isinstance(value, int) and not isinstance(value, bool):
            if value < 0:
                raise QueryError(f"a recursion limit is 0 or more, found {value}", at)
            return Recursion(value)
        if not _is_vector(value):
            raise QueryError(f"expected a vector, a union map, ... or a number below a join, found {_shown(value)}", at)
        return self.query(value, at)

    def _is_plain_ident(self, value: Any) -> bool:
        """In Python data ``("user/id", 1)`` is an ident: what follows the name is no map of params."""
        return (
            self._plain_strings
            and type(value) is tuple
            and len(value) == 2
            and self._is_attribute(value[0])
            and not isinstance(value[1], Mapping)
        )

    def _branch(self, key: Any, at: tuple[Any, ...]) -> str:
        if not self._is_attribute(key):
            raise QueryError(f"a union branch is named by an attribute, found {_shown(key)}", at)
        return _attribute(key)

    def _key(self, value: Any, at: tuple[Any, ...]) -> Key:
        if isinstance(value, Symbol):
            return value
        if self._is_attribute(value):
            return _attribute(value)
        if _is_vector(value):
            if len(value) == 2 and self._is_attribute(value[0]):
                return Ident(_attribute(value[0]), _frozen(value[1], at))
            frozen: Vector = _frozen(value, at)
            return frozen
        raise QueryError(f"expected an attribute, a join, an ident or a mutation call, found {_shown(value)}", at)

    def _is_attribute(self, value: Any) -> bool:
        if isinstance(value, Keyword):
            return True
        if not self._plain_strings or not isinstance(value, str) or isinstance(value, String | Char | Symbol):
            return False
        return bool(value) and not any(c.isspace() or c in "[]{}()\"';\\" for c in value)


def _attribute(name: str) -> str:
    """In Python data a colon before the name is allowed, as it is in the declaration of an operation."""
    return str(name)[1:] if type(name) is str and name.startswith(":") else str(name)


def _frozen(value: Any, at: tuple[Any, ...]) -> Any:
    try:
        frozen = freeze(value)
        hash(frozen)
    except (TypeError, EdnWriteError) as problem:
        raise QueryError(f"expected EDN values in params and idents: {problem}", at) from None
    return frozen


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | Vector)


def _is_list(value: Any) -> bool:
    return isinstance(value, tuple) and not isinstance(value, Vector)


def _shown(value: Any, limit: int = 60) -> str:
    try:
        text = dumps(value)
    except EdnWriteError:
        text = f"a {type(value).__name__}" if isinstance(value, Iterable) else repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _shown_step(step: Any) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if isinstance(step, Ident):
        return _shown(step.as_key())
    if isinstance(step, Symbol):
        return str(step)
    return f":{step}" if isinstance(step, str) else _shown(step)
