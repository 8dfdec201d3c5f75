"""An attribute graph that answers queries: operations in, answers out. Usable without the rest of psi.

    index      who provides what                    plan       which calls lead from what is known to what is asked
    level      what one entity is asked             compile    a plan as a Python function
    frame      filling one entity                   drive      batches, awaiting, time
    select     cutting out the answer               explain    plans and reasons for people

It knows nothing of sessions, schedules or faces. ``docs/graph.md`` is the tutorial.
"""

from psi.graph.errors import (
    AllProvidersFailed,
    AsyncOperation,
    AttributeMissing,
    AttributeUnreachable,
    BatchFailed,
    InvalidEntity,
    InvalidOperation,
    InvalidResponse,
    LimitExceeded,
    MutationFailed,
    MutationNotFound,
    ResolverFailed,
)
from psi.graph.graph import CacheInfo, Graph
from psi.graph.level import ERRORS, MUTATION_ERROR
from psi.graph.operations import Env, Mutation, Operation, Resolver, alias, equivalence, mutation, resolver
from psi.graph.request import Limits

__all__ = [
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
