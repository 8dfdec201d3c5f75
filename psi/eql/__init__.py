"""EQL: what is asked, as data.

Text becomes EDN values (:mod:`psi.edn`), values become a frozen tree (:mod:`psi.eql.ast`), and the tree can be written
back. This room knows the grammar and nothing about who answers a query.
"""

from psi.eql.ast import (
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
    calls,
    repeats_calls,
    size,
)
from psi.eql.parse import QueryError, QueryTooDeep, parse
from psi.eql.write import to_edn, unparse

__all__ = [
    "Call",
    "Expression",
    "Ident",
    "Join",
    "Key",
    "Property",
    "Query",
    "QueryError",
    "QueryTooDeep",
    "Recursion",
    "Subquery",
    "Union",
    "Wildcard",
    "calls",
    "parse",
    "repeats_calls",
    "size",
    "to_edn",
    "unparse",
]
