"""How operations are declared, what is refused when they are, and what two declarations have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from functools import partial
from typing import Any

import pytest

from psi.edn import Keyword, Symbol, loads
from psi.errors import Refused
from psi.graph import Env, Graph, InvalidOperation, Mutation, Resolver, alias, equivalence, mutation, resolver
from psi.graph.shape import Input


def answer(env: Env, data: Any) -> dict[str, Any]:
    """Gives nothing."""
    return {}


async def later(env: Env, data: Any) -> dict[str, Any]:
    return {}


def refusal(declare: Callable[[], Any]) -> str:
    with pytest.raises(InvalidOperation) as caught:
        declare()
    return str(caught.value)


# -- resolvers


def test_a_resolver_is_named_after_its_function_and_keeps_its_docstring() -> None:
    @resolver(output=["user/name"])
    def user_name(env: Env, data: Any) -> dict[str, Any]:
        """What the user is called."""
        return {"user/name": "Ann"}

    assert isinstance(user_name, Resolver)
    assert user_name.name == "user_name"
    assert user_name.doc == "What the user is called."


def test_a_name_that_is_given_replaces_that_of_the_function() -> None:
    assert resolver(output=["a"], name="user/by-id")(answer).name == "user/by-id"


def test_what_is_not_said_has_these_defaults() -> None:
    made = resolver(output=["a"])(answer)
    assert (made.inputs, made.batch, made.chunk, made.priority, made.cache, made.is_async) == (
        (),
        False,
        None,
        0,
        True,
        False,
    )


def test_a_resolver_can_be_called_like_the_function_it_was_made_from() -> None:
    @resolver(input=["a"], output=["b"])
    def double(env: Env, data: Any) -> dict[str, Any]:
        return {"b": 2 * data["a"] + env.params.get("plus", 0)}

    assert double(Env({}, None), {"a": 2}) == {"b": 4}
    assert double(Env({"plus": 1}, None), {"a": 2}) == {"b": 5}


def test_an_env_shows_what_it_holds() -> None:
    assert repr(Env({"lang": "uk"}, 7)) == "Env(params={'lang': 'uk'}, context=7)"


def test_a_resolver_is_frozen_and_equal_only_to_itself() -> None:
    one, other = resolver(output=["a"])(answer), resolver(output=["a"])(answer)
    with pytest.raises(FrozenInstanceError):
        one.name = "another"  # type: ignore[misc]
    assert one == one
    assert one != other
    assert len({one, other}) == 2


class Plain:
    def __call__(self, env: Env, data: Any) -> dict[str, Any]:
        return {}


class Later:
    async def __call__(self, env: Env, data: Any) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (answer, False),
        (later, True),
        (Plain(), False),
        (Later(), True),
        (Later().__call__, True),
        (partial(answer), False),
        (partial(later), True),
    ],
)
def test_whether_a_function_must_be_awaited_is_seen_when_it_is_declared(function: Any, is_async: bool) -> None:
    assert resolver(output=["a"])(function).is_async is is_async
    assert mutation("m/go")(function).is_async is is_async


def test_an_object_without_a_name_lends_that_of_its_class() -> None:
    assert resolver(output=["a"])(Plain()).name == "Plain"


# -- inputs and outputs

INPUTS: list[tuple[Any, str, tuple[Input, ...]]] = [
    ([], "[]", ()),
    (["a", "b/c"], "[:a :b/c]", (Input("a"), Input("b/c"))),
    ([":a"], "[:a]", (Input("a"),)),
    (["?a"], "[(? :a)]", (Input("a", optional=True),)),
    ([{"a": ["b"]}], "[{:a [:b]}]", (Input("a", below=(Input("b"),)),)),
    ([{"a": []}], "[{:a []}]", (Input("a", below=()),)),
    ([{"?a": ["b"]}], "[{(? :a) [:b]}]", (Input("a", optional=True, below=(Input("b"),)),)),
    (
        ["a", "?b", {"c": ["?d", {"e": ["f"]}]}],
        "[:a (? :b) {:c [(? :d) {:e [:f]}]}]",
        (
            Input("a"),
            Input("b", optional=True),
            Input("c", below=(Input("d", optional=True), Input("e", below=(Input("f"),)))),
        ),
    ),
    # What is said twice is needed once, in the stricter way.
    (["a", "a"], "[:a :a]", (Input("a"),)),
    (["?a", "a"], "[(? :a) :a]", (Input("a"),)),
    (["a", {"a": ["b"]}], "[:a {:a [:b]}]", (Input("a", below=(Input("b"),)),)),
    ([{"a": ["b"]}, {"a": ["c"]}], "[{:a [:b]} {:a [:c]}]", (Input("a", below=(Input("b"), Input("c"))),)),
]


@pytest.mark.parametrize(("python", "edn", "inputs"), INPUTS)
def test_an_input_says_the_same_in_python_in_edn_text_and_in_edn_data(
    python: Any, edn: str, inputs: tuple[Input, ...]
) -> None:
    assert resolver(input=python, output=["z"])(answer).inputs == inputs
    assert resolver(input=edn, output=["z"])(answer).inputs == inputs
    assert resolver(input=loads(edn), output=["z"])(answer).inputs == inputs


OUTPUTS: list[tuple[Any, str, dict[str, Any]]] = [
    (["a", "b/c"], "[:a :b/c]", {"a": {}, "b/c": {}}),
    (("a",), "[:a]", {"a": {}}),
    ([":a"], "[:a]", {"a": {}}),
    ([{"a": ["b"]}], "[{:a [:b]}]", {"a": {"b": {}}}),
    ([{"a": []}], "[{:a []}]", {"a": {}}),
    (["a", {"a": ["b"]}], "[:a {:a [:b]}]", {"a": {"b": {}}}),
    ([{"a": ["b"], "c": ["d"]}], "[{:a [:b] :c [:d]}]", {"a": {"b": {}}, "c": {"d": {}}}),
    ([{"a": [{"b": ["c"]}]}, {"a": [{"b": ["d"]}]}], "[{:a [{:b [:c :d]}]}]", {"a": {"b": {"c": {}, "d": {}}}}),
    # The branches of a union are all possible.
    ([{"a": {"p": ["x"], "q": ["x", "y"]}}], "[{:a {:p [:x] :q [:x :y]}}]", {"a": {"x": {}, "y": {}}}),
]


@pytest.mark.parametrize(("python", "edn", "output"), OUTPUTS)
def test_an_output_says_the_same_in_python_in_edn_text_and_in_edn_data(
    python: Any, edn: str, output: dict[str, Any]
) -> None:
    for declared in (python, edn, loads(edn)):
        assert resolver(output=declared)(answer).output == output


A_LIST = "expected a list of attributes as"
AN_INPUT = "expected an attribute, '?attribute' or {attribute: [..]}, found"

BAD_INPUTS: list[tuple[Any, str]] = [
    ("a", f"r: {A_LIST} input, found 'a'"),
    (None, f"r: {A_LIST} input, found None"),
    (5, f"r: {A_LIST} input, found 5"),
    ({"a": ["b"]}, f"r: {A_LIST} input, found {{'a': ['b']}}"),
    ([5], f"r: {AN_INPUT} 5"),
    ([None], f"r: {AN_INPUT} None"),
    ([["a"]], f"r: {AN_INPUT} ['a']"),
    ([("x", "a")], f"r: {AN_INPUT} ('x', 'a')"),
    ([("?", "a", "b")], f"r: {AN_INPUT} ('?', 'a', 'b')"),
    ([Symbol("a")], f"r: {AN_INPUT} Symbol('a')"),
    ([""], "r: expected an attribute name, found ''"),
    ([":"], "r: ':' is not an attribute name"),
    (["a b"], "r: 'a b' is not an attribute name"),
    (["{:a [:b]}"], "r: '{:a [:b]}' is not an attribute name"),
    ([{"a": "b"}], f"r: {A_LIST} input, found 'b'"),
    ([{"a": [5]}], f"r: {AN_INPUT} 5"),
    ([{5: ["a"]}], f"r: {AN_INPUT} 5"),
]


@pytest.mark.parametrize(("declared", "message"), BAD_INPUTS)
def test_an_input_that_cannot_be_read_is_refused_by_the_name_of_its_resolver(declared: Any, message: str) -> None:
    assert refusal(lambda: resolver(name="r", input=declared, output=["z"])(answer)) == message


BAD_OUTPUTS: list[tuple[Any, str]] = [
    ([], "r: a resolver must give at least one attribute; output is empty"),
    ([{}], "r: a resolver must give at least one attribute; output is empty"),
    ("[]", "r: a resolver must give at least one attribute; output is empty"),
    ("a", f"r: {A_LIST} output, found 'a'"),
    (None, f"r: {A_LIST} output, found None"),
    ({"a": ["b"]}, f"r: {A_LIST} output, found {{'a': ['b']}}"),
    ([5], "r: expected an attribute name, found 5"),
    ([("a",)], "r: expected an attribute name, found ('a',)"),
    ([Symbol("a")], "r: expected an attribute name, found Symbol('a')"),
    (["a b"], "r: 'a b' is not an attribute name"),
    ([{"a": "b"}], f"r: {A_LIST} output, found 'b'"),
    ([{"a": {"p": "b"}}], f"r: {A_LIST} output, found 'b'"),
]


@pytest.mark.parametrize(("declared", "message"), BAD_OUTPUTS)
def test_an_output_that_cannot_be_read_is_refused_by_the_name_of_its_resolver(declared: Any, message: str) -> None:
    assert refusal(lambda: resolver(name="r", output=declared)(answer)) == message


def test_edn_that_cannot_be_read_is_refused_by_the_name_of_its_resolver() -> None:
    message = "r: line 1, column 6: expected the end of the text, found :b"
    assert refusal(lambda: resolver(name="r", output="[:a] :b")(answer)) == message
    assert refusal(lambda: resolver(name="r", input="[:a] :b", output=["a"])(answer)) == message


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"chunk": 5}, "r: chunk needs batch=True and a size of 1 or more, got 5"),
    ({"batch": True, "chunk": 0}, "r: chunk needs batch=True and a size of 1 or more, got 0"),
    ({"batch": True, "chunk": -1}, "r: chunk needs batch=True and a size of 1 or more, got -1"),
    ({"batch": True, "chunk": True}, "r: chunk needs batch=True and a size of 1 or more, got True"),
    ({"batch": True, "chunk": "5"}, "r: chunk needs batch=True and a size of 1 or more, got '5'"),
    ({"priority": "high"}, "r: priority must be an integer, got 'high'"),
    ({"priority": 1.5}, "r: priority must be an integer, got 1.5"),
    ({"priority": True}, "r: priority must be an integer, got True"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    assert refusal(lambda: resolver(name="r", output=["a"], **options)(answer)) == message


def test_what_cannot_be_called_is_no_resolver_and_no_mutation() -> None:
    function: Any = 5
    assert refusal(lambda: resolver(name="r", output=["a"])(function)) == "r: expected a function, got 5"
    assert refusal(lambda: mutation("m/go")(function)) == "m/go: expected a function, got 5"


def test_a_refusal_carries_its_facts() -> None:
    with pytest.raises(InvalidOperation) as caught:
        resolver(name="r", output=[])(answer)
    assert isinstance(caught.value, Refused)
    assert caught.value.as_data() == {
        "code": "graph/invalid-operation",
        "message": "r: a resolver must give at least one attribute; output is empty",
        "data": {"operation": "r", "problem": "a resolver must give at least one attribute; output is empty"},
    }


# -- mutations


def test_a_mutation_has_the_name_it_was_given_and_says_what_it_takes_and_gives() -> None:
    @mutation("cart/add", params=["item/id", "?note"], output=["cart/size", {"cart/items": ["item/id"]}])
    def add(env: Env, params: Any) -> dict[str, Any]:
        """One more."""
        return {"cart/size": params["item/id"]}

    assert isinstance(add, Mutation)
    assert add.name == "cart/add"
    assert add.params == ("item/id", "note")
    assert add.output == {"cart/size": {}, "cart/items": {"item/id": {}}}
    assert add.doc == "One more."
    assert add(Env({}, None), {"item/id": 3}) == {"cart/size": 3}


@pytest.mark.parametrize("name", [Symbol("cart/add"), Keyword("cart/add"), "cart/add"])
def test_the_name_of_a_mutation_becomes_a_plain_string(name: str) -> None:
    assert type(mutation(name)(answer).name) is str
    assert mutation(name)(answer).name == "cart/add"


@pytest.mark.parametrize("name", ["", " ", None, 5, "cart add", "(cart/add", ":cart/add", "[x]"])
def test_a_mutation_that_no_query_could_name_is_refused(name: Any) -> None:
    assert refusal(lambda: mutation(name)(answer)) == f"{name!r}: a mutation needs a name such as cart/add"


def test_a_mutation_whose_params_or_output_cannot_be_read_is_refused() -> None:
    assert refusal(lambda: mutation("m/go", params="a")(answer)) == f"m/go: {A_LIST} input, found 'a'"
    assert refusal(lambda: mutation("m/go", output="a")(answer)) == f"m/go: {A_LIST} output, found 'a'"


# -- aliases


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        ("b", "z", "-unqualified/b->z--alias"),
        ("x/b", "x/z", "x/b->z--alias"),
        ("x/b", "y/z", "x->y/b->z--alias"),
        ("x.deep/b", "y/z", "x.deep->y/b->z--alias"),
        (":x/b", ":x/z", "x/b->z--alias"),
        (Keyword("x/b"), Keyword("x/z"), "x/b->z--alias"),
    ],
)
def test_an_alias_is_named_after_what_it_connects(source: str, target: str, name: str) -> None:
    assert alias(source, target).name == name


def test_an_alias_gives_the_same_value_under_another_name_and_remembers_nothing() -> None:
    made = alias("a", "b")
    assert made.inputs == (Input("a"),)
    assert made.output == {"b": {}}
    assert made.cache is False
    assert made(Env({}, None), {"a": [1]}) == {"b": [1]}


def test_an_equivalence_is_an_alias_in_each_direction() -> None:
    assert [one.name for one in equivalence("x/a", "y/b")] == ["x->y/a->b--alias", "y->x/b->a--alias"]


def test_an_alias_of_nothing_is_refused() -> None:
    assert refusal(lambda: alias("", "b")) == "->b: expected an attribute name, found ''"
    assert refusal(lambda: alias("a", "b c")) == "a->b c: 'b c' is not an attribute name"


# -- the graph they make


def test_a_graph_takes_operations_and_lists_of_them_at_any_depth() -> None:
    a = resolver(output=["a"], name="a")(answer)
    go = mutation("m/go")(answer)
    nested: list[Any] = [[a, (go,)], equivalence("a", "b")]
    graph = Graph(nested)
    assert list(graph.index.resolvers) == ["a", "-unqualified/a->b--alias", "-unqualified/b->a--alias"]
    assert list(graph.index.mutations) == ["m/go"]
    assert repr(graph) == "<Graph of 3 resolvers and 1 mutations>"


def test_a_graph_can_be_made_of_anything_that_can_be_walked() -> None:
    operations: Iterable[Resolver] = (resolver(output=[name], name=name)(answer) for name in "ab")
    assert list(Graph(operations).index.resolvers) == ["a", "b"]


TWICE = "two operations have this name; give one of them another `name`"


def test_two_operations_of_one_name_are_refused() -> None:
    one, other = resolver(output=["a"], name="x/y")(answer), resolver(output=["b"], name="x/y")(answer)
    assert refusal(lambda: Graph([one, other])) == f"x/y: {TWICE}"
    assert refusal(lambda: Graph([one, one])) == f"x/y: {TWICE}"
    assert refusal(lambda: Graph([one, mutation("x/y")(answer)])) == f"x/y: {TWICE}"
    assert refusal(lambda: Graph([alias("a", "b"), equivalence("b", "a")])) == f"-unqualified/a->b--alias: {TWICE}"


NO_OPERATION = "not an operation; expected what @resolver, @mutation, alias or equivalence give"


@pytest.mark.parametrize("thing", [5, None, "user_by_id", {}, answer, Resolver])
def test_what_is_not_an_operation_is_refused(thing: Any) -> None:
    assert refusal(lambda: Graph([thing])) == f"{thing!r}: {NO_OPERATION}"


def test_an_output_that_is_also_an_input_makes_nobody_its_provider() -> None:
    both = resolver(input=["a"], output=["a", "b"], name="both")(answer)
    index = Graph([both]).index
    assert index.providers("a") == ()
    assert index.providers("b") == (both,)


def test_providers_stand_in_the_order_in_which_they_were_registered() -> None:
    made = [resolver(output=["a"], name=name, priority=place)(answer) for place, name in enumerate("xyz")]
    assert Graph(made).index.providers("a") == tuple(made)


@pytest.mark.parametrize("size", [0, -1])
def test_a_plan_cache_has_room_for_one_query_at_least(size: int) -> None:
    with pytest.raises(ValueError, match=f"^cache_size must be 1 or more, got {size}$"):
        Graph([], cache_size=size)
