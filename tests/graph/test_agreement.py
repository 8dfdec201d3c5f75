"""Whoever answers, the answer is the same: compiled code, frames, the async driver, and a plain, slow reference."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from psi.edn import freeze
from psi.eql import Join, Property, Query, Union, Wildcard, unparse
from psi.errors import PsiError
from psi.graph import ERRORS, Graph
from tests.graph.reference import Answer, Reference, select
from tests.graph.strategies import (
    DATA,
    FOREIGN,
    GLOBAL,
    JOINS,
    LOCAL,
    SUMS,
    Asking,
    Log,
    World,
    entities,
    exact,
    queries,
    worlds,
)

SOME = settings(
    max_examples=int(os.environ.get("EXAMPLES", "150")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)


class Outcome:
    """What one way of running came to: data, or the kind of an error."""

    def __init__(self, way: str, log: Log, data: Any = None, error: PsiError | None = None) -> None:
        self.way = way
        self.log = log
        self.data = data
        self.error = error
        self.kind = type(error).__name__ if error else None

    def __repr__(self) -> str:
        return f"{self.way}: {self.error!r}" if self.error else f"{self.way}: {self.data}"


def outcomes(world: World, query: Query, entity: Mapping[Any, Any], *, lenient: bool) -> Iterator[Outcome]:
    for way in ("compiled", "frames", "async"):
        log = Log()
        compile_after = None if way == "frames" else 0
        graph = Graph(world.operations(log, asynchronous=way == "async"), compile_after=compile_after)
        try:
            if way == "async":
                data = asyncio.run(graph.query(unparse(query), entity, lenient=lenient))
            else:
                data = graph.query_now(query, entity, lenient=lenient)
            yield Outcome(way, log, data)
        except PsiError as error:
            yield Outcome(way, log, error=error)


def noted(world: World, query: Query, entity: Mapping[Any, Any]) -> None:
    for rule in world.rules:
        note(repr(rule))
    note(repr(world.kin))
    note(f"entity {entity!r}")
    note(f"query {unparse(query)}")


def explicit(query: Any) -> Any:
    """The query without its wildcards: they show what was called on the way, which choices decide."""
    match query:
        case Query(children):
            return Query(tuple(explicit(c) for c in children if not isinstance(c, Wildcard) and not _is_open(c)))
        case Union(branches):
            return Union(tuple((name, explicit(branch)) for name, branch in branches))
        case Join():
            return replace(query, query=explicit(query.query))
        case _:
            return query


def _is_open(child: Any) -> bool:
    return isinstance(child, Property) and child.is_placeholder


def agree(query: Query, one: Any, other: Any, *, open_too: bool) -> None:
    """``open_too``: also what wildcards show. What failed inside a value that is shown whole is not compared."""
    closed = explicit(query)
    if open_too or closed == query:
        assert exact(without_errors(one)) == exact(without_errors(other))
    assert exact(select(closed, one)) == exact(select(closed, other))


@SOME
@given(worlds(failing=True, adding=True), queries(), entities())
def test_lenient_answers_agree_on_data_and_on_what_failed(world: World, query: Query, entity: dict[Any, Any]) -> None:
    noted(world, query, entity)
    untouched = deepcopy(entity)
    log = Log()
    expected = Reference(world.operations(log)).answer(query, entity)
    for outcome in outcomes(world, query, entity, lenient=True):
        note(f"{outcome!r}")
        note(f"expected {expected}")
        assert outcome.error is None
        agree(query, outcome.data, expected.data, open_too=world.single)
        assert outcome.log.problems == []
        assert outcome.log.repeated(world.cached) == []
        assert outcome.log.mutations == log.mutations
        assert exact(entity) == exact(untouched)


ANYTHING = Asking(attributes=(*LOCAL, *GLOBAL, *FOREIGN))


@SOME
@given(worlds(tales=True, adding=True), queries(ANYTHING), entities([*DATA, *JOINS]), st.booleans())
def test_values_come_from_the_right_resolver_with_the_right_input(
    world: World, query: Query, entity: dict[Any, Any], lenient: bool
) -> None:
    agrees_with_reference(world, query, entity, lenient=lenient)


# No unions: whether a resolver sees an entity that no branch of the query fits depends on who was first.
SUMMING = Asking(attributes=(*SUMS, *SUMS, "a0", "a4", "a5"), unions=False, unknown=False)


@SOME
@given(worlds(tales=True, sums=True), queries(SUMMING), entities([*DATA, *JOINS]), st.booleans())
def test_nested_inputs_are_got_inside_the_entities_that_resolvers_look_into(
    world: World, query: Query, entity: dict[Any, Any], lenient: bool
) -> None:
    agrees_with_reference(world, query, entity, lenient=lenient)


def agrees_with_reference(world: World, query: Query, entity: dict[Any, Any], *, lenient: bool) -> None:
    noted(world, query, entity)
    expected = Reference(world.operations(Log())).answer(query, entity)
    for outcome in outcomes(world, query, entity, lenient=lenient):
        note(f"{outcome!r}")
        note(f"expected {expected}")
        if lenient:
            assert outcome.error is None
            agree(query, outcome.data, expected.data, open_too=True)
        else:
            check_strict(world, query, expected, outcome)
        assert outcome.log.problems == []
        assert outcome.log.repeated(world.cached) == []
    event("strict and fails" if expected.failures and not lenient else "answers")


@SOME
@given(worlds(failing=True) | worlds(failing=False, adding=True), queries(Asking(unknown=False)), entities())
def test_strict_answers_agree_on_data_or_on_the_kind_of_failure(
    world: World, query: Query, entity: dict[Any, Any]
) -> None:
    noted(world, query, entity)
    untouched = deepcopy(entity)
    log = Log()
    expected = Reference(world.operations(log)).answer(query, entity)
    for outcome in outcomes(world, query, entity, lenient=False):
        note(f"{outcome!r}")
        note(f"expected {expected}")
        check_strict(world, query, expected, outcome)
        assert outcome.log.problems == []
        assert exact(entity) == exact(untouched)
    event("fails" if expected.failures else "succeeds")


def check_strict(world: World, query: Query, expected: Answer, outcome: Outcome) -> None:
    if expected.failures:
        raised = expected.failures - {"AttributeMissing", "AttributeUnreachable"}
        # Which of several lost providers is blamed depends on who was asked first.
        blamed = {"AllProvidersFailed"} if raised and not world.single else set()
        assert outcome.kind in expected.failures | expected.swallowed | blamed
    elif expected.swallowed and world.single:
        assert outcome.kind in expected.swallowed
    elif outcome.error is not None:
        assert world.doubtful
    else:
        assert exact(outcome.data) == exact(without_errors(outcome.data))
        agree(query, outcome.data, without_errors(expected.data), open_too=world.single)
        assert outcome.log.repeated(world.cached) == []


def without_errors(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: without_errors(inner) for key, inner in value.items() if key != ERRORS}
    if isinstance(value, frozenset):
        return frozenset(freeze(without_errors(element)) for element in value)
    if isinstance(value, list | tuple):
        return type(value)(without_errors(element) for element in value)
    return value
