"""``psi.graph``: the graph describes itself, from the same index that answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from psi.edn import Keyword, Symbol
from psi.graph import Env, Mutation, Operation, Resolver, resolver
from psi.graph.attributes import DATA, FLAG, INTEGER, NAME, WORD, Attribute, Entity, ListOf
from psi.graph.index import Index
from psi.graph.shape import Inputs, Shape

__all__ = ["ATTRIBUTES", "ENTITIES", "OPERATIONS", "ROOT_SEEDS", "root_queryable"]

# What a query starts from when its caller has a session.
ROOT_SEEDS: Final = ("psi.agent-session/session-id",)

ATTRIBUTES: Final = (
    Attribute("psi.graph/root-seeds", ListOf(WORD), "what a query starts from"),
    Attribute("psi.graph/root-queryable-attrs", ListOf(WORD), "every attribute that can be had from the seeds"),
    Attribute("psi.graph/resolver-count", INTEGER, "how many resolvers there are"),
    Attribute("psi.graph/mutation-count", INTEGER, "how many mutations there are"),
    Attribute("psi.graph/resolver-syms", ListOf(NAME), "their names, sorted"),
    Attribute("psi.graph/mutation-syms", ListOf(NAME), "their names, sorted"),
    Attribute("psi.graph/env-built", FLAG, "whether the graph is built"),
    Attribute("psi.graph/nodes", ListOf(DATA), "operations and capabilities: id, type, domain, name"),
    Attribute("psi.graph/edges", ListOf(DATA), "from an operation to the capability that its attribute belongs to"),
    Attribute("psi.graph/capabilities", ListOf(DATA), "one for each domain, with what provides it"),
    Attribute("psi.graph/domain-coverage", ListOf(DATA), "for each domain, how many operations there are"),
    Attribute("psi.graph/resolver-index", ListOf(DATA), "each resolver with its input and output"),
    Attribute("psi.graph/attr-index", DATA, "each attribute with who produces it and from what"),
    Attribute("psi.graph/dependencies", ListOf(DATA), "from attribute, through resolver, to attribute"),
    Attribute("psi.resolver/sym", NAME, "the resolver's name"),
    Attribute("psi.resolver/input", ListOf(DATA), "what it needs"),
    Attribute("psi.resolver/output", ListOf(DATA), "what it gives"),
    Attribute("psi.attr/produced-by", ListOf(NAME), "the resolvers that give the attribute"),
    Attribute("psi.attr/reachable-via", DATA, "for each of them, what it needs"),
)


ENTITIES: Final = (Entity("Graph", "What the graph knows about itself.", "psi.graph"),)


def root_queryable(index: Index, seeds: Iterable[str]) -> list[str]:
    """Every attribute that resolvers alone lead to from the seeds: a least fixed point. The seeds are not among
    them."""
    known = set(seeds)
    waiting = list(index.resolvers.values())
    while waiting:
        ready = [each for each in waiting if all(need.optional or need.attribute in known for need in each.inputs)]
        if not ready:
            break
        waiting = [each for each in waiting if each not in ready]
        known.update(attribute for each in ready for attribute in each.output)
    return sorted(known.difference(seeds))


def _domain(operation: Operation) -> str:
    """The namespace of the operation's own name, or that of what it gives first."""
    space = operation.name.rpartition("/")[0]
    return space or next((attribute.rpartition("/")[0] for attribute in operation.output), "") or "user"


def _operations(index: Index) -> Iterator[tuple[str, Operation]]:
    yield from (("resolver", each) for each in index.resolvers.values())
    yield from (("mutation", each) for each in index.mutations.values())


@lru_cache(maxsize=8)  # an index never changes
def _described(index: Index) -> dict[str, Any]:
    nodes, edges = [], []
    counts: dict[str, Counter[str]] = {}
    gives: dict[str, set[str]] = {}
    for kind, operation in _operations(index):
        domain = _domain(operation)
        node = f"{kind}/{operation.name}"
        nodes.append(_node(node, kind, domain, operation.name, operation.doc))
        counts.setdefault(domain, Counter())[kind] += 1
        for attribute in operation.output:
            target = attribute.rpartition("/")[0] or domain
            counts.setdefault(target, Counter())
            gives.setdefault(target, set()).add(attribute)
            edges.append({"from": node, "to": f"capability/{target}", "attribute": Keyword(attribute)})
    coverage = [_coverage(domain, counts[domain], len(gives.get(domain, ()))) for domain in sorted(counts)]
    nodes += [_node(f"capability/{domain}", "capability", domain, domain, "") for domain in sorted(counts)]
    capabilities = [
        {
            "id": f"capability/{each['domain']}",
            **each,
            "attributes": [Keyword(name) for name in sorted(gives.get(str(each["domain"]), ()))],
        }
        for each in coverage
    ]
    return {
        "psi.graph/root-seeds": [Keyword(seed) for seed in ROOT_SEEDS],
        "psi.graph/root-queryable-attrs": [Keyword(name) for name in root_queryable(index, ROOT_SEEDS)],
        "psi.graph/resolver-count": len(index.resolvers),
        "psi.graph/mutation-count": len(index.mutations),
        "psi.graph/resolver-syms": [Symbol(name) for name in sorted(index.resolvers)],
        "psi.graph/mutation-syms": [Symbol(name) for name in sorted(index.mutations)],
        "psi.graph/env-built": True,
        "psi.graph/nodes": nodes,
        "psi.graph/edges": edges,
        "psi.graph/capabilities": capabilities,
        "psi.graph/domain-coverage": coverage,
        "psi.graph/resolver-index": [_indexed(index.resolvers[name]) for name in sorted(index.resolvers)],
        "psi.graph/attr-index": _attr_index(index),
        "psi.graph/dependencies": [
            {"from": Keyword(need.attribute), "via": Symbol(each.name), "to": Keyword(given)}
            for each in index.resolvers.values()
            for need in each.inputs
            for given in each.output
        ],
    }


def _node(name: str, kind: str, domain: str, called: str, doc: str) -> dict[str, Any]:
    return {"id": name, "type": Keyword(kind), "domain": Keyword(domain), "name": called, "doc": doc}


def _coverage(domain: str, count: Counter[str], attributes: int) -> dict[str, Any]:
    return {
        "domain": Keyword(domain),
        "operation-count": count["resolver"] + count["mutation"],
        "resolver-count": count["resolver"],
        "mutation-count": count["mutation"],
        "attribute-count": attributes,
    }


def _indexed(found: Resolver) -> dict[str, Any]:
    return {
        "psi.resolver/sym": Symbol(found.name),
        "psi.resolver/input": _inputs(found.inputs),
        "psi.resolver/output": _shape(found.output),
    }


def _inputs(inputs: Inputs) -> list[Any]:
    return [
        {Keyword(need.attribute): _inputs(need.below)} if need.below else Keyword(need.attribute) for need in inputs
    ]


def _shape(shape: Shape) -> list[Any]:
    return [{Keyword(name): _shape(below)} if below else Keyword(name) for name, below in shape.items()]


def _attr_index(index: Index) -> dict[str, Any]:
    producers: dict[str, list[Resolver]] = {attribute: [] for attribute in sorted(index.attributes)}
    for each in index.resolvers.values():
        for attribute in _all_of(each.output):
            producers[attribute].append(each)
    return {
        Keyword(attribute): {
            "psi.attr/produced-by": [Symbol(each.name) for each in found],
            "psi.attr/reachable-via": {Symbol(each.name): _inputs(each.inputs) for each in found},
        }
        for attribute, found in producers.items()
    }


def _all_of(shape: Shape) -> set[str]:
    """What a shape has, at any depth."""
    return {*shape, *(name for below in shape.values() if below for name in _all_of(below))}


_DESCRIBED: Final = [attribute.name for attribute in ATTRIBUTES if attribute.name.startswith("psi.graph/")]


@resolver(name="psi.graph/description", output=_DESCRIBED)
def description(env: Env, _: Any) -> Any:
    return _described(env.context.index)


OPERATIONS: Final[tuple[Resolver | Mutation, ...]] = (description,)
