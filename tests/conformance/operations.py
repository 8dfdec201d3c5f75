"""The resolvers of a conformance case: data in, operations out, every call counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from psi.edn import Keyword, List, Symbol, dumps, loads
from psi.errors import Failed
from psi.graph import Env, Mutation, Resolver, alias, equivalence, mutation, resolver

Calls = dict[str, list[int]]


class Failure(Failed):
    """What a case's resolver raises when it is told to."""


def build(case: Mapping[str, Any], calls: Calls) -> Iterator[Resolver | Mutation | tuple[Resolver, Resolver]]:
    for declared in case["resolvers"]:
        match declared["op"]:
            case "alias":
                yield alias(loads(declared["from"]), loads(declared["to"]))
            case "equiv":
                yield equivalence(loads(declared["from"]), loads(declared["to"]))
            case "mutation":
                yield _mutation(declared, calls)
            case _:
                yield _resolver(declared, calls)


def _resolver(declared: Mapping[str, Any], calls: Calls) -> Resolver:
    name = declared["name"]
    answer = _ANSWERS[declared["op"]](declared)
    batch = bool(declared.get("batch"))

    def function(env: Env, data: Any) -> Any:
        calls.setdefault(name, []).append(len(data) if batch else 1)
        return [answer(env, item) for item in data] if batch else answer(env, data)

    return resolver(
        name=name,
        input=loads(declared["input"]) if "input" in declared else [],
        output=loads(declared["output"]),
        batch=batch,
        chunk=declared.get("chunk"),
        priority=declared.get("priority", 0),
        cache=declared.get("cache", True),
    )(function)


def _mutation(declared: Mapping[str, Any], calls: Calls) -> Mutation:
    name = declared["name"]

    def function(env: Env, params: Any) -> Any:
        calls.setdefault(name, []).append(1)
        if "fail" in declared:
            raise Failure(declared["fail"])
        value = loads(declared["value"]) if "value" in declared else None
        return {**(value or {}), **params} if declared.get("echo-params") else value

    return mutation(name, output=loads(declared["output"]) if "output" in declared else [])(function)


Answer = Callable[[Env, Mapping[str, Any]], Any]


def _const(declared: Mapping[str, Any]) -> Answer:
    return lambda env, data: loads(declared["value"])


def _fail(declared: Mapping[str, Any]) -> Answer:
    def answer(env: Env, data: Mapping[str, Any]) -> Any:
        raise Failure(declared["message"])

    return answer


def _table(declared: Mapping[str, Any]) -> Answer:
    key = loads(declared["key"])
    rows = loads(declared["table"])
    failing = loads(declared["fail_on"]) if "fail_on" in declared else []
    missing: dict[str, Any] | None = None if declared.get("missing") == "nil" else {}

    def answer(env: Env, data: Mapping[str, Any]) -> Any:
        value = data.get(key)
        if any(_same(value, bad) for bad in failing):
            raise Failure(f"fail on {dumps(value)}")
        found = [row for known, row in rows.items() if _same(known, value)]
        return found[0] if found else missing

    return answer


def _same(one: Any, other: Any) -> bool:
    return one == other and (isinstance(one, bool) == isinstance(other, bool))


def _fn(declared: Mapping[str, Any]) -> Answer:
    expression = loads(declared["expr"])
    first = next(iter(_output_names(loads(declared["output"]))))

    def answer(env: Env, data: Mapping[str, Any]) -> Any:
        value = evaluate(expression, env, data)
        return value if isinstance(expression, dict) else {first: value}

    return answer


def _output_names(output: Any) -> Iterator[str]:
    for item in output:
        yield from map(str, item) if isinstance(item, Mapping) else [str(item)]


def evaluate(expression: Any, env: Env, data: Mapping[str, Any]) -> Any:
    """The small vocabulary of the cases; anything else is a literal."""
    if isinstance(expression, dict):
        return {key: evaluate(value, env, data) for key, value in expression.items()}
    if isinstance(expression, list):
        return [evaluate(value, env, data) for value in expression]
    if not isinstance(expression, List) or not expression or not isinstance(expression[0], Symbol):
        return expression
    head, *rest = expression
    match str(head):
        case "get":
            return data.get(rest[0])
        case "get-in":
            value: Any = data
            for key in rest:
                value = value.get(key) if isinstance(value, Mapping) else None
            return value
        case "sum-of":
            return sum(_number(_of(element, rest[1])) for element in _elements(data.get(rest[0])))
        case "count-of":
            found = data.get(rest[0])
            return 0 if found is None else len(found)
        case "+":
            return sum(_number(evaluate(value, env, data)) for value in rest)
        case "str":
            return "".join(_text(evaluate(value, env, data)) for value in rest)
        case "default":
            value = evaluate(rest[0], env, data)
            return evaluate(rest[1], env, data) if value is None else value
        case "param":
            return env.params.get(rest[0])
    return expression


def _elements(value: Any) -> Any:
    if isinstance(value, Mapping):
        raise Failure("a map has no elements to sum")
    return () if value is None else value


def _of(element: Any, key: str) -> Any:
    return element.get(key) if isinstance(element, Mapping) else None


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Failure(f"not a number: {value!r}")
    return value  # type: ignore[return-value]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Keyword):
        return str(value)
    return dumps(value)


_ANSWERS: dict[str, Callable[[Mapping[str, Any]], Answer]] = {
    "const": _const,
    "fail": _fail,
    "table": _table,
    "fn": _fn,
}
