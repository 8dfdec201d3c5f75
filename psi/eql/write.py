"""The way back: a query tree as EDN values and as text. ``parse(unparse(q)) == q`` for every tree ``parse`` gives."""

from __future__ import annotations

from typing import Any

from psi.edn import Keyword, List, Map, Symbol, Vector, dumps
from psi.eql.ast import Call, Expression, Ident, Join, Key, Property, Query, Recursion, Subquery, Union, Wildcard

__all__ = ["to_edn", "unparse"]


def unparse(query: Query) -> str:
    """The query as EDN text."""
    return dumps(to_edn(query))


def to_edn(query: Query) -> Vector:
    """The query as EDN values."""
    return Vector(_expression(child) for child in query.children)


def _expression(node: Expression) -> Any:
    match node:
        case Wildcard():
            return Symbol("*")
        case Property(key, params):
            return _with_params(_key(key), params)
        case Join(key, query, params):
            return Map({_with_params(_key(key), params): _subquery(query)})
        case Call(name, params, None):
            return List((name, params))
        case Call(name, params, query):
            assert query is not None
            return Map({List((name, params)): _subquery(query)})


def _subquery(query: Subquery) -> Any:
    match query:
        case Query():
            return to_edn(query)
        case Union(branches):
            return Map({Keyword(name): to_edn(branch) for name, branch in branches})
        case Recursion(limit):
            return Symbol("...") if limit is None else limit


def _key(key: Key) -> Any:
    match key:
        case Ident(attribute, value):
            return Vector((Keyword(attribute), value))
        case Symbol() | Vector():
            return key
        case _:
            return Keyword(key)


def _with_params(expression: Any, params: Map) -> Any:
    return List((expression, params)) if params else expression
