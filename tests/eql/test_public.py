"""What other rooms and users may import."""

from __future__ import annotations

import psi.eql


def test_the_public_names_are_these() -> None:
    assert psi.eql.__all__ == [
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
    assert all(hasattr(psi.eql, name) for name in psi.eql.__all__)
