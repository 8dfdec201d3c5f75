"""Operations: how the graph knows things and how it changes them.

A resolver says what it needs and what it gives; a mutation has a name and params. Both are frozen values made by the
decorators below. Calling one calls the function that was decorated, so that an operation can be tested alone.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from psi.edn import ReadError
from psi.graph.errors import InvalidOperation
from psi.graph.shape import Inputs, Shape, ShapeError, inputs_of, output_of

__all__ = ["Env", "Mutation", "Operation", "Resolver", "alias", "equivalence", "mutation", "resolver"]


@dataclass(frozen=True, slots=True)
class Env:
    """What an operation is given besides its input: the params of its place in the query, and the caller's context."""

    params: Mapping[str, Any]
    context: Any


Function: TypeAlias = Callable[[Env, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resolver:
    """Gets ``output`` from ``input``. With ``batch`` it gets a list of inputs and returns as many results, in order."""

    name: str
    function: Function = field(repr=False)
    inputs: Inputs
    output: Shape
    batch: bool = False
    chunk: int | None = None
    priority: int = 0
    cache: bool = True
    is_async: bool = False
    doc: str = field(default="", repr=False)

    def __call__(self, env: Env, data: Any) -> Any:
        return self.function(env, data)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mutation:
    """Changes something when it is called by name in a query: ``(cart/add {:item/id 1})``."""

    name: str
    function: Function = field(repr=False)
    params: tuple[str, ...] = ()
    output: Shape
    is_async: bool = False
    doc: str = field(default="", repr=False)

    def __call__(self, env: Env, params: Any) -> Any:
        return self.function(env, params)


Operation: TypeAlias = Resolver | Mutation


def resolver(
    *,
    output: Any,
    input: Any = (),  # noqa: A002 – the public word of the field; users write it as a keyword
    name: str | None = None,
    batch: bool = False,
    chunk: int | None = None,
    priority: int = 0,
    cache: bool = True,
) -> Callable[[Function], Resolver]:
    """Declare a resolver. The function may be plain or ``async``; its name is the resolver's unless ``name`` is
    given."""

    def declare(function: Function) -> Resolver:
        called = name or _name_of(function)
        _check_callable(called, function)
        inputs, shape = _declared(called, input, output)
        if chunk is not None and (not batch or isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
            raise InvalidOperation(called, f"chunk needs batch=True and a size of 1 or more, got {chunk!r}")
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise InvalidOperation(called, f"priority must be an integer, got {priority!r}")
        if not shape:
            raise InvalidOperation(called, "a resolver must give at least one attribute; output is empty")
        return Resolver(
            name=called,
            function=function,
            inputs=inputs,
            output=shape,
            batch=batch,
            chunk=chunk,
            priority=priority,
            cache=cache,
            is_async=_is_async(function),
            doc=inspect.getdoc(function) or "",
        )

    return declare


def mutation(name: str, *, params: Any = (), output: Any = ()) -> Callable[[Function], Mutation]:
    """Declare a mutation under its qualified name. ``params`` and ``output`` describe; they are not enforced."""

    def declare(function: Function) -> Mutation:
        if not isinstance(name, str) or not name or any(c.isspace() or c in "[]{}()\"';:" for c in name):
            raise InvalidOperation(repr(name), "a mutation needs a name such as cart/add")
        _check_callable(name, function)
        inputs, shape = _declared(name, params, output)
        return Mutation(
            name=str(name),
            function=function,
            params=tuple(item.attribute for item in inputs),
            output=shape,
            is_async=_is_async(function),
            doc=inspect.getdoc(function) or "",
        )

    return declare


def alias(source: str, target: str) -> Resolver:
    """Whoever knows ``source`` knows ``target``: the same value under another name. One direction only."""
    [needed], shape = _declared(f"{source}->{target}", [source], [target])
    given = next(iter(shape))

    def copy(env: Env, data: Any) -> Any:
        return {given: data[needed.attribute]}

    return Resolver(
        name=_alias_name(needed.attribute, given),
        function=copy,
        inputs=(needed,),
        output=shape,
        cache=False,  # copying a value is cheaper than remembering it
        doc=f"{given} is another name for {needed.attribute}",
    )


def equivalence(one: str, other: str) -> tuple[Resolver, Resolver]:
    """Two names for one value, in both directions."""
    return alias(one, other), alias(other, one)


def _declared(called: str, needs: Any, gives: Any) -> tuple[Inputs, Shape]:
    try:
        return inputs_of(needs), output_of(gives)
    except (ShapeError, ReadError) as problem:
        raise InvalidOperation(called, str(problem)) from None


def _check_callable(called: str, function: Any) -> None:
    if not callable(function):
        raise InvalidOperation(called, f"expected a function, got {function!r}")


def _alias_name(source: str, target: str) -> str:
    (space, local), (other_space, other_local) = (_parts(source), _parts(target))
    shared = space if space == other_space else f"{space}->{other_space}"
    return f"{shared or '-unqualified'}/{local}->{other_local}--alias"


def _parts(name: str) -> tuple[str, str]:
    space, _, local = name.rpartition("/")
    return space, local


def _name_of(function: Function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
