"""What goes wrong, told in whole sentences, as data, and beside the answer where the query is lenient."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from psi.edn import Keyword, Vector, dumps
from psi.errors import Failed, PsiError, Refused
from psi.graph import (
    ERRORS,
    AllProvidersFailed,
    AttributeMissing,
    AttributeUnreachable,
    BatchFailed,
    Env,
    Graph,
    InvalidResponse,
    LimitExceeded,
    Resolver,
    ResolverFailed,
    resolver,
)
from psi.graph.errors import CAUSES
from tests.graph.recorder import Recorder

Build = Callable[..., Graph]

UNREACHABLE, NODE_ERRORS = map(Keyword, CAUSES)


def refusal(graph: Graph, query: Any, entity: Any = None, **options: Any) -> PsiError:
    """What the query raises, which must be sendable as it is."""
    with pytest.raises(PsiError) as caught:
        graph.query_now(query, entity, **options)
    error = caught.value
    assert str(error) == error.message
    dumps(error.as_data())
    json.dumps(error.as_data())
    return error


class Overdrawn(Refused):
    """An error of our own, as operations may raise it."""

    code = "account/overdrawn"

    def __init__(self, missing: int) -> None:
        super().__init__(f"{missing} more are needed")
        self.missing = missing

    def facts(self) -> dict[str, Any]:
        return {"missing": self.missing}


# -- 14 strict errors


def test_nothing_runs_when_the_root_cannot_be_planned(build: Build, told: Recorder) -> None:
    go, b = told.mutation("m/go", {}), told.resolver("b", ["a"], ["b"], {"b": 1})
    error = refusal(build(go, b), "[(m/go {}) :b :nobody]", {"a": 1})
    assert isinstance(error, AttributeUnreachable)
    assert isinstance(error, Refused)
    assert told.calls == []
    assert error.as_data() == {
        "code": "graph/attribute-unreachable",
        "message": (
            "no path to these attributes:\n- :nobody is unknown: no resolver gives it, and the entity does not have it."
        ),
        "data": {
            "path": Vector(),
            "attributes": [Keyword("nobody")],
            "reasons": [{"attribute": Keyword("nobody"), "kind": Keyword("unknown")}],
        },
    }


def test_entities_below_are_planned_when_they_are_reached(build: Build, told: Recorder) -> None:
    go = told.mutation("m/go", {})
    j = told.resolver("j", ["a"], [{"j": ["id"]}], {"j": [{"id": 1}, {"id": 2}]})
    error = refusal(build(go, j), "[(m/go {}) {:j [:nobody]}]", {"a": 1})
    assert isinstance(error, AttributeUnreachable)
    assert error.path == ("j", 0)
    assert told.names == ["m/go", "j"]


def test_what_a_resolver_did_not_return_is_missing(build: Build, told: Recorder) -> None:
    nothing: Any
    for nothing in ({}, None):
        error = refusal(build(told.resolver("b", ["a"], ["b", "c"], nothing)), "[:b :a :c]", {"a": 1})
        assert isinstance(error, AttributeMissing)
        assert isinstance(error, Failed)
        assert error.attributes == ("b", "c")
        assert error.as_data() == {
            "code": "graph/attribute-missing",
            "message": (
                "required attributes are missing:\n"
                "- :b: resolver b did not return it\n"
                "- :c: resolver b did not return it"
            ),
            "data": {
                "path": Vector(),
                "attributes": [Keyword("b"), Keyword("c")],
                "reasons": {":b": "resolver b did not return it", ":c": "resolver b did not return it"},
            },
        }


def test_all_who_should_have_delivered_are_named(build: Build, told: Recorder) -> None:
    one, other = told.resolver("one", ["a"], ["b"], {}), told.resolver("other", ["a"], ["b"], None)
    assert refusal(build(one, other), "[:b]", {"a": 1}).message == (
        "required attributes are missing:\n- :b: resolver one did not return it; resolver other did not return it"
    )


def test_who_was_not_called_for_want_of_an_input_is_named_too(build: Build, told: Recorder) -> None:
    b, c = told.resolver("b", ["a"], ["b"], {}), told.resolver("c", ["a", "b"], ["c"], {"c": 1})
    d = told.resolver("d", ["c", "b"], ["d"], {"d": 1})
    assert refusal(build(b, c, d), "[:d]", {"a": 1}).message == (
        "required attributes are missing:\n- :d: resolver d was not called, its input is missing: :c, :b"
    )
    assert told.counts == {"b": 1}


def test_where_something_is_missing_is_a_path_from_the_root(build: Build, told: Recorder) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": 1} if data["id"] else {})
    graph = build(name)
    paths = {
        "[{:l [:name]}]": "[:l 1]",
        "[{:deep [{:l [:name]}]}]": "[:deep :l 1]",
        "[{[:id 0] [:name]}]": "[[:id 0]]",
        "[{:>/p [{:l [:name]}]}]": "[:>/p :l 1]",
        "[{:u {:id [:name]}}]": "[:u 1]",
    }
    rows = [{"id": 1}, {"id": 0}]
    for query, path in paths.items():
        error = refusal(graph, query, {"l": rows, "deep": {"l": rows}, "u": rows})
        assert error.message == (
            f"required attributes are missing at {path}:\n- :name: resolver name did not return it"
        )


@pytest.mark.parametrize("shape", [{"id": 1}, {"id": 1, "x": 2}, {"name": 1}])
def test_a_place_in_a_path_counts_what_the_answer_drops(build: Build, told: Recorder, shape: dict[str, Any]) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": 1} if data["id"] else {})
    rows = [shape, None, 5, None, {"id": 0}]
    assert refusal(build(name), "[{:l [:name]}]", {"l": rows}).facts()["path"] == Vector((Keyword("l"), 4))
    assert refusal(build(name), "[{:l [:nobody]}]", {"l": [None, {}]}).facts()["path"] == Vector((Keyword("l"), 1))


def test_a_symbol_is_no_attribute_and_no_call(build: Build, told: Recorder) -> None:
    error = refusal(build(told.mutation("m/go", {})), "[m/go name]")
    assert error.message == (
        "required attributes are missing:\n"
        "- m/go: it names a mutation; call it as (m/go {..})\n"
        "- name: a symbol is not an attribute; write :name"
    )
    assert told.calls == []


def test_what_a_resolver_raised_is_the_cause(build: Build, told: Recorder) -> None:
    raised = ValueError("no such id")
    error = refusal(build(told.resolver("b", ["a"], ["b"], raised)), "[{:l [:b]}]", {"l": [{"b": 1}, {"a": 1}]})
    assert isinstance(error, ResolverFailed)
    assert error.__cause__ is raised
    assert error.operation == "b"
    assert error.as_data() == {
        "code": "graph/resolver-failed",
        "message": "resolver b failed at [:l 1]: ValueError: no such id",
        "data": {
            "path": Vector((Keyword("l"), 1)),
            "operation": "b",
            "reason": "ValueError: no such id",
        },
    }


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (ValueError(), "ValueError"),
        (KeyError("x"), "KeyError: 'x'"),
        (TypeError("unhashable"), "TypeError: unhashable"),
        (StopIteration(), "StopIteration"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
)
def test_whatever_a_resolver_raises_is_told_by_its_kind(
    build: Build, told: Recorder, raised: Exception, reason: str
) -> None:
    for batch in (False, True):
        graph = build(told.resolver("b", ["a"], ["b"], raised, batch=batch))
        called = "batch resolver" if batch else "resolver"
        assert refusal(graph, "[:b]", {"a": 1}).message == f"{called} b failed: {reason}"
        assert refusal(graph, "[{:l [:b]}]", {"l": [{"a": 1}]}).message == f"{called} b failed at [:l 0]: {reason}"


def test_what_is_no_exception_but_an_exit_is_not_held_up(build: Build) -> None:
    class Exit(BaseException):
        pass

    def leave(data: Any) -> Any:
        raise Exit

    told = Recorder()
    for batch in (False, True):
        with pytest.raises(Exit):
            build(told.resolver("b", ["a"], ["b"], leave, batch=batch)).query_now(
                "[{:l [:b]}]", {"l": [{"a": 1}]}, lenient=True
            )


def test_an_error_of_ours_keeps_its_code_and_its_facts(build: Build, told: Recorder) -> None:
    error = refusal(build(told.resolver("b", ["a"], ["b"], Overdrawn(3))), "[:b]", {"a": 1})
    assert error.as_data() == {
        "code": "graph/resolver-failed",
        "message": "resolver b failed: 3 more are needed",
        "data": {
            "path": Vector(),
            "operation": "b",
            "reason": "3 more are needed",
            "error": {"code": "account/overdrawn", "message": "3 more are needed", "data": {"missing": 3}},
        },
    }


def test_the_failure_of_a_dependency_is_told_as_it_is(build: Build, told: Recorder) -> None:
    b, c = told.resolver("b", ["a"], ["b"], ValueError("no")), told.resolver("c", ["b"], ["c"], {"c": 1})
    error = refusal(build(b, c), "[:c]", {"a": 1})
    assert isinstance(error, ResolverFailed)
    assert error.message == "resolver b failed: ValueError: no"


@pytest.mark.parametrize(
    ("response", "shown"),
    [(5, "5"), ("b", '"b"'), ([{"b": 1}], "[{:b 1}]"), (True, "true"), (1j, "1j"), ("x" * 100, '"' + "x" * 78 + "…")],
)
@pytest.mark.parametrize("batch", [False, True])
def test_a_result_that_is_no_map_is_an_invalid_response(
    build: Build, told: Recorder, response: Any, shown: str, batch: bool
) -> None:
    answer = (lambda items: [response for _ in items]) if batch else (lambda data: response)
    graph = build(told.resolver("b", ["a"], ["b"], answer, batch=batch))
    error = refusal(graph, "[{:l [:b]}]", {"l": [{"a": 1}, {"a": 1}]})
    assert isinstance(error, InvalidResponse)
    assert error.response == response
    assert error.as_data() == {
        "code": "graph/invalid-response",
        "message": f"resolver b failed at [:l 0]: expected a map or nothing, got {shown}",
        "data": {
            "path": Vector((Keyword("l"), 0)),
            "operation": "b",
            "reason": f"expected a map or nothing, got {shown}",
        },
    }


def several(told: Recorder) -> list[Resolver]:
    return [
        told.resolver("one", ["a"], ["b"], ValueError("no"), priority=2),
        told.resolver("two", ["a"], ["b"], {}, priority=1),
        told.resolver("three", ["a"], ["b"], 5),
    ]


def test_when_every_provider_failed_all_of_them_are_told(build: Build, told: Recorder) -> None:
    error = refusal(build(*several(told)), "[{:j [:b]}]", {"j": {"a": 1}})
    assert isinstance(error, AllProvidersFailed)
    assert [type(failure) for failure in error.failures] == [ResolverFailed, InvalidResponse]
    one = "resolver one failed at [:j]: ValueError: no"
    three = "resolver three failed at [:j]: expected a map or nothing, got 5"
    assert error.message == f"every provider of :b failed at [:j]: {one}; {three}; two did not return it"
    facts = error.facts()
    assert facts["attribute"] == Keyword("b")
    assert facts["path"] == Vector((Keyword("j"),))
    assert [failure["message"] for failure in facts["failures"]] == [one, three]
    assert facts["silent"] == ["two"]
    assert error.code == "graph/all-providers-failed"
    assert told.names == ["one", "two", "three"]


def test_providers_that_share_the_cause_of_their_failure_fail_with_it(build: Build, told: Recorder) -> None:
    m = told.resolver("m", ["a"], ["m"], ValueError("no"))
    one, other = told.resolver("one", ["m"], ["b"], {"b": 1}), told.resolver("other", ["m"], ["b"], {"b": 2})
    error = refusal(build(m, one, other), "[:b]", {"a": 1})
    assert error.message == "resolver m failed: ValueError: no"


def test_a_batch_that_raised_fails_at_the_first_entity_that_wanted_it(build: Build, told: Recorder) -> None:
    raised = ValueError("no")
    graph = build(told.resolver("b", ["a"], ["b"], raised, batch=True))
    error = refusal(graph, "[{:l [:b]}]", {"l": [{"a": 1}, {"a": 2}]})
    assert isinstance(error, BatchFailed)
    assert error.__cause__ is raised
    assert error.as_data() == {
        "code": "graph/batch-failed",
        "message": "batch resolver b failed at [:l 0]: ValueError: no",
        "data": {"path": Vector((Keyword("l"), 0)), "operation": "b", "reason": "ValueError: no"},
    }


def test_the_first_failure_stops_the_request(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda data: {"b": 1 / data["a"]})
    refusal(build(b), "[{:l [:b]}]", {"l": [{"a": 1}, {"a": 0}, {"a": 2}, {"a": 3}]})
    assert [data["a"] for data in told.inputs("b")] == [1, 0]


def test_the_facts_of_a_limit_are_short_however_deep_it_is_met(build: Build) -> None:
    data: dict[str, Any] = {"n": 0}
    for n in range(20):
        data = {"n": n, "next": data}
    error = refusal(build(), "[:n {:next ...}]", data, max_depth=10)
    assert isinstance(error, LimitExceeded)
    assert error.as_data() == {
        "code": "graph/limit-exceeded",
        "message": "nested deeper than max_depth=10 at [:next :next :next :next :next :next …]",
        "data": {"limit": "max-depth", "path": Vector((Keyword("next"),) * 6), "depth": 11},
    }


# -- 15 lenient


def test_a_lenient_answer_without_failures_has_no_errors(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], {"b": None}))
    assert graph.query_now("[:b {:l [:b]}]", {"a": 1, "l": [{"a": 1}]}, lenient=True) == {"b": None, "l": [{"b": None}]}


def errors(answer: Any) -> Any:
    found = answer[ERRORS]
    dumps(found)
    json.dumps(found)
    return found


def test_what_cannot_be_reached_is_listed_with_its_reason(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("name", ["user/id"], ["user/name"], {}))
    found = graph.query_now("[:user/nmae :a :user/name]", {"a": 1}, lenient=True)
    assert found["a"] == 1
    assert errors(found) == {
        "user/nmae": {
            "cause": UNREACHABLE,
            "message": (
                ":user/nmae is unknown: no resolver gives it, and the entity does not have it. Did you mean :user/name?"
            ),
            "reason": {
                "attribute": Keyword("user/nmae"),
                "kind": Keyword("unknown"),
                "nearest": Keyword("user/name"),
            },
        },
        "user/name": {
            "cause": UNREACHABLE,
            "message": (
                ":user/name is given by name, whose inputs cannot be reached:\n"
                "  - :user/id is given by no resolver: it has to come with the entity."
            ),
            "reason": {
                "attribute": Keyword("user/name"),
                "kind": Keyword("inputs"),
                "resolvers": [
                    {
                        "resolver": "name",
                        "needs": [{"attribute": Keyword("user/id"), "kind": Keyword("not-given")}],
                    }
                ],
            },
        },
    }


def test_a_resolver_that_raised_is_listed_with_what_it_raised(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], Overdrawn(3)))
    message = "resolver b failed: 3 more are needed"
    assert errors(graph.query_now("[:b]", {"a": 1}, lenient=True)) == {
        "b": {
            "cause": NODE_ERRORS,
            "message": message,
            "nodes": [
                {
                    "resolver": "b",
                    "cause": Keyword("node-exception"),
                    "message": message,
                    "error": {
                        "code": "graph/resolver-failed",
                        "message": message,
                        "data": {
                            "path": Vector(),
                            "operation": "b",
                            "reason": "3 more are needed",
                            "error": {
                                "code": "account/overdrawn",
                                "message": "3 more are needed",
                                "data": {"missing": 3},
                            },
                        },
                    },
                }
            ],
        }
    }


def test_a_resolver_that_was_silent_is_listed_as_such(build: Build, told: Recorder) -> None:
    nothing: Any
    for nothing in ({}, None):
        graph = build(told.resolver("b", ["a"], ["b"], nothing))
        message = "resolver b did not return it"
        assert errors(graph.query_now("[:b]", {"a": 1}, lenient=True)) == {
            "b": {
                "cause": NODE_ERRORS,
                "message": message,
                "nodes": [{"resolver": "b", "cause": Keyword("attribute-missing"), "message": message}],
            }
        }


def test_a_resolver_that_was_not_called_says_what_it_was_waiting_for(build: Build, told: Recorder) -> None:
    silent, raising = told.resolver("b", ["a"], ["b"], {}), told.resolver("c", ["a"], ["c"], ValueError("no"))
    graph = build(
        silent, raising, told.resolver("x", ["b"], ["x"], {"x": 1}), told.resolver("y", ["c"], ["y"], {"y": 1})
    )
    found = errors(graph.query_now("[:x :y]", {"a": 1}, lenient=True))
    waiting = "resolver x was not called, its input is missing: :b"
    assert found["x"] == {
        "cause": NODE_ERRORS,
        "message": waiting,
        "nodes": [
            {
                "resolver": "x",
                "cause": Keyword("attribute-missing"),
                "message": waiting,
                "missing": [Keyword("b")],
            }
        ],
    }
    [node] = found["y"]["nodes"]
    assert (node["resolver"], node["cause"], node["message"]) == (
        "y",
        "ancestor-error",
        "resolver c failed: ValueError: no",
    )


def test_every_provider_that_was_tried_is_a_node(build: Build, told: Recorder) -> None:
    found = errors(build(*several(told)).query_now("[:b]", {"a": 1}, lenient=True))
    assert [(node["resolver"], node["cause"]) for node in found["b"]["nodes"]] == [
        ("one", "node-exception"),
        ("two", "attribute-missing"),
        ("three", "node-exception"),
    ]


def test_errors_stand_in_the_map_in_which_something_failed(build: Build, told: Recorder) -> None:
    name = told.resolver("name", ["id"], ["name"], lambda data: {"name": "n"} if data["id"] else {})
    found = build(name).query_now(
        "[{:l [:name]} {:j [:name]}]", {"l": [{"id": 0}, {"id": 1}], "j": {"id": 0}}, lenient=True
    )
    assert ERRORS not in found
    assert list(found["l"][0]) == [ERRORS]
    assert found["l"][1] == {"name": "n"}
    assert list(found["j"][ERRORS]) == ["name"]


def test_what_is_there_in_the_end_is_never_listed(build: Build, told: Recorder) -> None:
    one = told.resolver("one", ["a"], ["b"], ValueError("no"), priority=1)
    other = told.resolver("other", ["a"], ["b"], {"b": 2})
    assert build(one, other).query_now("[:b]", {"a": 1}, lenient=True) == {"b": 2}


def test_the_other_attributes_and_entities_are_answered(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda data: {"b": 6 // data["a"]})
    c = told.resolver("c", ["a"], ["c"], lambda data: {"c": -data["a"]})
    d = told.resolver("d", ["b", "c"], ["d"], lambda data: {"d": data["b"] + data["c"]})
    found = build(b, c, d).query_now("[{:l [:b :c :d]}]", {"l": [{"a": n} for n in (1, 0, 2, 0, 3)]}, lenient=True)
    assert [{key: value for key, value in entity.items() if key != ERRORS} for entity in found["l"]] == [
        {"b": 6, "c": -1, "d": 5},
        {"c": 0},
        {"b": 3, "c": -2, "d": 1},
        {"c": 0},
        {"b": 2, "c": -3, "d": -1},
    ]
    assert [sorted(entity[ERRORS]) for entity in found["l"] if ERRORS in entity] == [["b", "d"], ["b", "d"]]


def test_a_join_that_cannot_be_had_is_listed_where_it_was_asked(build: Build) -> None:
    found = build().query_now("[{:j [:a]} {:kids ...}]", {}, lenient=True)
    assert list(found) == [ERRORS]
    assert {attribute: error["cause"] for attribute, error in errors(found).items()} == {
        "j": UNREACHABLE,
        "kids": UNREACHABLE,
    }


def test_the_leaves_of_a_recursion_list_the_children_they_do_not_have(build: Build) -> None:
    found = build().query_now("[:id {:kids ...}]", {"id": 1, "kids": [{"id": 2}]}, lenient=True)
    assert found["kids"][0]["id"] == 2
    assert errors(found["kids"][0])["kids"]["cause"] == UNREACHABLE
    assert ERRORS not in found


def test_what_is_optional_is_listed_only_if_its_resolver_raised(build: Build, told: Recorder) -> None:
    optional = "{:psi.graph/optional? true}"
    graph = build(told.resolver("b", ["a"], ["b"], {}), told.resolver("c", ["a"], ["c"], ValueError("no")))
    assert graph.query_now(f"[(:b {optional}) (:nobody {optional})]", {"a": 1}, lenient=True) == {}
    assert list(errors(graph.query_now(f"[(:c {optional})]", {"a": 1}, lenient=True))) == ["c"]


def test_only_the_failing_chunk_of_a_batch_fails(build: Build, told: Recorder) -> None:
    b = told.resolver("b", ["a"], ["b"], lambda items: [{"b": 6 // i["a"]} for i in items], batch=True, chunk=2)
    found = build(b).query_now("[{:l [:b]}]", {"l": [{"a": n} for n in (1, 2, 3, 0, 6)]}, lenient=True)
    assert [entity.get("b") for entity in found["l"]] == [6, 3, None, None, 1]
    assert errors(found["l"][2])["b"]["nodes"][0]["message"] == (
        "batch resolver b failed at [:l 2]: ZeroDivisionError: integer division or modulo by zero"
    )


def test_an_ident_that_nobody_knows_is_an_entity_with_errors(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("name", ["id"], ["name"], {}))
    found = graph.query_now("[{[:id 9] [:id :name]}]", lenient=True)[Vector(("id", 9))]
    assert found["id"] == 9
    assert list(errors(found)) == ["name"]


def test_the_errors_can_be_asked_for_by_name_and_are_no_failure_themselves(build: Build, told: Recorder) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], {}))
    assert graph.query_now(f"[:a :{ERRORS}]", {"a": 1}) == {"a": 1}
    assert graph.query_now(f"[:a :{ERRORS}]", {"a": 1}, lenient=True) == {"a": 1}
    assert list(graph.query_now(f"[:{ERRORS} :b]", {"a": 1}, lenient=True)) == [ERRORS]


def test_a_symbol_that_is_no_call_is_told_in_a_lenient_answer_too(build: Build) -> None:
    assert list(errors(build().query_now("[name]", lenient=True))) == ["name"]


# -- 18 the summary


@pytest.mark.parametrize(
    ("answer", "strict", "lenient"),
    [
        ({"b": None}, None, None),
        ({}, AttributeMissing, NODE_ERRORS),
        (None, AttributeMissing, NODE_ERRORS),
        (ValueError("no"), ResolverFailed, NODE_ERRORS),
        (5, InvalidResponse, NODE_ERRORS),
        ("nobody", AttributeUnreachable, UNREACHABLE),
    ],
)
@pytest.mark.parametrize("query", ["[:b]", "[{:j [:b]}]", "[{:l [:b]}]"])
def test_present_missing_unreachable_and_failed(
    build: Build, told: Recorder, query: str, answer: Any, strict: Any, lenient: Any
) -> None:
    graph = build(told.resolver("b", ["a"], ["b"], answer)) if answer != "nobody" else build()
    entity = {"a": 1, "j": {"a": 1}, "l": [{"a": 1}]}
    if strict is None:
        graph.query_now(query, entity)
    else:
        assert type(refusal(graph, query, entity)) is strict
    found = graph.query_now(query, entity, lenient=True)
    below = found if query == "[:b]" else found["j"] if "j" in found else found["l"][0]
    if lenient is None:
        assert below == {"b": None}
    else:
        assert {attribute: error["cause"] for attribute, error in errors(below).items()} == {"b": lenient}


def test_what_is_given_within_something_else_alone_says_within_what() -> None:
    @resolver(input=["user/id"], output=[{"user/jobs": ["job/id", "job/status", {"job/log": ["line/text"]}]}])
    def jobs(env: Env, user: dict[str, Any]) -> dict[str, Any]:
        return {"user/jobs": []}

    graph = Graph([jobs])
    with pytest.raises(AttributeUnreachable) as caught:
        graph.query_now("[:job/status :line/text]", {"job/id": 1})
    assert "- :job/status is given inside :user/jobs alone: ask there, or bring it with the entity." in str(
        caught.value
    )
    assert "- :line/text is given inside :job/log alone: ask there, or bring it with the entity." in str(caught.value)
    reasons = {each["attribute"]: each for each in caught.value.facts()["reasons"]}
    assert (reasons["job/status"]["kind"], reasons["job/status"]["inside"]) == ("inside", ["user/jobs"])
