"""What other rooms and users may import."""

from __future__ import annotations

import psi.graph


def test_the_public_names_are_these() -> None:
    assert psi.graph.__all__ == [
        "ERRORS",
        "MUTATION_ERROR",
        "AllProvidersFailed",
        "AsyncOperation",
        "AttributeMissing",
        "AttributeUnreachable",
        "BatchFailed",
        "CacheInfo",
        "Env",
        "Graph",
        "InvalidEntity",
        "InvalidOperation",
        "InvalidResponse",
        "LimitExceeded",
        "Limits",
        "Mutation",
        "MutationFailed",
        "MutationNotFound",
        "Operation",
        "Resolver",
        "ResolverFailed",
        "alias",
        "equivalence",
        "mutation",
        "resolver",
    ]
    assert all(hasattr(psi.graph, name) for name in psi.graph.__all__)


def test_the_names_under_which_errors_stand_are_these() -> None:
    assert psi.graph.ERRORS == "psi.graph/attribute-errors"
    assert psi.graph.MUTATION_ERROR == "psi.graph/mutation-error"
