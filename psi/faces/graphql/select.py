"""A selection of GraphQL fields as a question to the graph and a function that lays out the answer. Pure.

The question is an EQL query: which attributes, and what of the entities they lead to. The layout is written as Python
source, once for each selection, because it runs for every entity of a list. It is written for answers that are as they
should be; whatever is not (an attribute that could not be resolved, a nil where none may be, a value of another kind)
raises, and the same answer is laid out again by :func:`careful`, which knows paths, errors and how far a null reaches.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphql import GraphQLError

from psi.eql import Join, Property, Query
from psi.faces.graphql.names import Field
from psi.faces.graphql.types import misfit, unresolved
from psi.faces.graphql.values import converter, instant, words
from psi.graph.attributes import DATA, FLAG, INSTANT, NAME, TEXT, WORD, Enum, ListOf, Many

__all__ = ["DEPARTURES", "Chosen", "Layout", "Layouts", "Selection", "careful", "compile_layout", "compile_weight"]

Layout = Callable[[Mapping[str, Any]], dict[str, Any]]
Layouts = Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]
Report = Callable[[GraphQLError, tuple[str | int, ...]], None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """One field as it was asked for: under which key, and for a join what of the entity below. Without a field it is
    ``__typename``."""

    key: str
    field: Field | None
    below: Selection | None = None
    node: Any = dataclasses.field(default=None, compare=False, repr=False)  # where in the document, for errors


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked of entities of one type."""

    type: str
    chosen: tuple[Chosen, ...]

    @property
    def attributes(self) -> frozenset[str] | None:
        """What has to be known to answer it; None where that leads to other entities."""
        if any(each.below is not None for each in self.chosen):
            return None
        return frozenset(each.field.attribute.name for each in self.chosen if each.field is not None)

    def query(self) -> Query:
        """The same as EQL. A field that is asked twice under different keys is asked once."""
        return _query([self])


def _query(selections: list[Selection]) -> Query:
    plain: dict[str, None] = {}
    joins: dict[str, list[Selection]] = {}
    for selection in selections:
        for each in selection.chosen:
            if each.field is None:
                continue
            if each.below is None:
                plain[each.field.attribute.name] = None
            else:
                joins.setdefault(each.field.attribute.name, []).append(each.below)
    return Query((*map(Property, plain), *(Join(name, _query(below)) for name, below in joins.items())))


# -- the fast way


class Odd(Exception):
    """An answer that the fast way was not written for."""


def _some(value: Any) -> Any:
    """Reached for a value that counts as false: empty text is fine, nil is not."""
    if value is None:
        raise Odd
    return value


def compile_layout(selection: Selection) -> tuple[Layout, Layouts]:
    """A function that makes the object of one entity, and one that makes those of a list."""
    names: dict[str, Any] = {"some": _some, "instant": instant}
    written = _object(selection, names)
    source = f"def one(e):\n    return {written}\n\ndef many(es):\n    return [{written} for e in es]\n"
    exec(compile(source, f"<layout of {selection.type}>", "exec"), names)  # keys are GraphQL names, the rest is ours
    return names["one"], names["many"]


def compile_weight(selection: Selection) -> Callable[[Sequence[Mapping[str, Any]]], int] | None:
    """A function that tells about how large the objects of these entities would be; None where nothing is reached
    twice. What is can make an answer that is larger than all there is."""
    joins = [each for each in selection.chosen if each.below is not None]
    named = [each.field.attribute.name for each in selection.chosen if each.field is not None]
    if len(set(named)) == len(named) and all(
        each.field and each.field.owns and each.below and each.below.attributes is not None for each in joins
    ):
        return None
    names: dict[str, Any] = {"weight": _weight}
    source = f"def weigh(es):\n    return sum([{_weighed(selection, names)} for e in es])\n"
    exec(compile(source, f"<weight of {selection.type}>", "exec"), names)
    found: Callable[[Sequence[Mapping[str, Any]]], int] = names["weigh"]
    return found


_FIELD: Final = 24  # bytes of a field with its key and a short value


def _weighed(selection: Selection, names: dict[str, Any]) -> str:
    parts = [str(_FIELD * len(selection.chosen))]
    times = Counter(each.field.attribute.name for each in selection.chosen if each.field and each.below is None)
    for each in selection.chosen:
        if each.field is None or (each.below is None and not times[each.field.attribute.name]):
            continue
        kind, read = each.field.attribute.type, f"e.get({each.field.attribute.name!r})"
        count = times.pop(each.field.attribute.name, 1)  # the same under several keys is weighed once
        if each.below is not None:
            written = _weighed(each.below, names)
            name = f"w{len(names)}"
            exec(compile(f"def {name}(es):\n    return sum([{written} for e in es])\n", "<weight>", "exec"), names)
            many = isinstance(kind, Many)
            parts.append(f"(0 if (x := {read}) is None else {name}({'x' if many else '(x,)'}))")
        elif kind is TEXT:
            parts.append(f"{count} * len({read} or '')")
        elif kind is DATA or isinstance(kind, ListOf):
            parts.append(f"{count} * weight({read})")
    return " + ".join(parts)


def _weight(value: Any) -> int:
    """About how many characters an open value takes."""
    total, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            total += len(each) + 3
        elif isinstance(each, Mapping):
            total += 8 + sum(len(key) + 4 if isinstance(key, str) else 16 for key in each)
            waiting += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            total += 2
            waiting += each
        else:
            total += 8
    return total


def _object(selection: Selection, names: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{each.key!r}: {_value(selection, each, names)}" for each in selection.chosen) + "}"


def _value(selection: Selection, chosen: Chosen, names: dict[str, Any]) -> str:
    if chosen.field is None:
        return repr(selection.type)
    attribute = chosen.field.attribute
    read = f"e[{attribute.name!r}]"
    name = f"v{len(names)}"
    if attribute.type in (TEXT, WORD, NAME) and attribute.nullable:
        return read
    if chosen.below is not None:
        one, many = compile_layout(chosen.below)
        names[name] = many if isinstance(attribute.type, Many) else one
        written = f"{name}({{}})"
    elif attribute.type in (TEXT, WORD, NAME) and not attribute.nullable:
        # A keyword or a symbol is a text to JSON.
        return f"({read} or some({read}))"
    elif attribute.type is FLAG and not attribute.nullable:
        return f"({read} is True or {read} is not False and some(None))"
    elif isinstance(attribute.type, Enum):
        names[name] = words(attribute.type)
        written = f"{name}[{{}}]"
    elif attribute.type is INSTANT:
        written = "instant({})"
    else:
        names[name] = converter(attribute)
        written = f"{name}({{}})"
    if attribute.nullable:
        return f"(None if (x := {read}) is None else {written.format('x')})"
    if isinstance(attribute.type, Enum) or attribute.type is INSTANT or chosen.below is not None:
        return written.format(read)  # each of them refuses nil by itself
    return written.format(f"some({read})")


# What the fast way may raise for an answer it was not written for.
DEPARTURES: Final = (Odd, KeyError, TypeError, ValueError, AttributeError)


# -- the careful way


class _Nulled(Exception):
    """A value that may not be null has to be."""


def careful(selection: Selection, entity: Mapping[str, Any], path: tuple[str | int, ...], report: Report) -> Any:
    """The object of one entity with its errors; None where a null had to reach this far."""
    try:
        return _careful(selection, entity, path, report)
    except _Nulled:
        return None


def _careful(
    selection: Selection, entity: Mapping[str, Any], path: tuple[str | int, ...], report: Report
) -> dict[str, Any]:
    return {each.key: _field(selection, each, entity, (*path, each.key), report) for each in selection.chosen}


def _field(
    selection: Selection, chosen: Chosen, entity: Mapping[str, Any], path: tuple[str | int, ...], report: Report
) -> Any:
    if chosen.field is None:
        return selection.type
    attribute = chosen.field.attribute
    try:
        return _told(selection, chosen, entity, path, report)
    except GraphQLError as error:
        report(GraphQLError(error.message, chosen.node, path=list(path), extensions=error.extensions), path)
    except _Nulled:
        pass
    if attribute.nullable:
        return None
    raise _Nulled


def _told(
    selection: Selection, chosen: Chosen, entity: Mapping[str, Any], path: tuple[str | int, ...], report: Report
) -> Any:
    assert chosen.field is not None
    attribute = chosen.field.attribute
    if attribute.name not in entity:
        raise unresolved(attribute.name, entity)
    value = entity[attribute.name]
    if value is None:
        if attribute.nullable:
            return None
        raise GraphQLError(
            f"Cannot return null for non-nullable field {selection.type}.{chosen.field.name}.",
            extensions={"code": "graphql/unfit-value"},
        )
    below = chosen.below
    if below is None:
        try:
            return converter(attribute)(value)
        except (TypeError, ValueError) as problem:
            raise misfit(attribute.name, problem) from None
    if isinstance(attribute.type, Many):
        return [_careful(below, each, (*path, place), report) for place, each in enumerate(value)]
    return _careful(below, value, path, report)
