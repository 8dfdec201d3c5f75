"""Documents: parsed, measured and validated once, and kept with all that is compiled for them. Executes nothing.

What a document may ask is bounded before anything is asked: its tokens, how deep it goes, and what it would cost if
every list had ten entries, or as many as its ``limit`` says. Where a variable says that, it is known with the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListTypeNode,
    NamedTypeNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_list_type,
    parse,
    validate,
    visit,
)
from graphql.language import Visitor
from graphql.validation.rules import overlapping_fields_can_be_merged as overlapping

from psi.faces.graphql.execute import Compiled
from psi.faces.graphql.limits import Limited

__all__ = ["Document", "Documents"]

_TOKENS: Final = 8_000
_INTROSPECTIONS: Final = 5
_FRAGMENTS: Final = 300  # of a document: validation looks at each beside all that it leads to
_NESTED: Final = 100  # fragments that lead into each other, lists within lists
_KEPT: Final = 512

# Fields under one key are compared with each other, all pairs of them. The library stops after so many, and this is how
# it is told; its own figure stands for a second of comparing.
overlapping.MAX_FIELD_COMPARISONS = 10_000
_LONGEST_KEPT: Final = 32_768  # characters
_STEPS: Final = 100_000
_NOMINAL: Final = 10  # entries that a list is taken to have
_COSTS: Final = {"eql": 50, "live": 50}  # a query in another language, of which nothing is known here


@dataclass(slots=True, eq=False)
class Document:
    """A document that may be executed."""

    text: str
    node: DocumentNode
    operations: Mapping[str | None, OperationDefinitionNode]
    deciding: tuple[str, ...]  # the variables that @skip and @include look at
    is_measured: bool  # whatever its variables are
    selections: dict[Any, Compiled] = field(default_factory=dict)

    def operation(self, name: str | None) -> OperationDefinitionNode | None:
        """The operation that is meant; None where that is not clear, which execution then says."""
        if name is None:
            return next(iter(self.operations.values())) if len(self.operations) == 1 else None
        return self.operations.get(name)

    def is_a(self, kind: OperationType, name: str | None) -> bool:
        found = self.operation(name)
        return found is not None and found.operation is kind


class Documents:
    """The documents that were asked lately. Bounded."""

    def __init__(self, schema: GraphQLSchema, *, depth: int, cost: int) -> None:
        self._schema = schema
        self._depth = depth
        self._cost = cost
        # What is no document is remembered, too: finding that out may be most of the work.
        self._kept: dict[str, Document | list[GraphQLError]] = {}

    def get(self, text: str) -> Document | list[GraphQLError]:
        """The document, or what is wrong with it."""
        found = self._kept.pop(text, None)
        if found is None:
            found = self._make(text)
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
        if len(text) <= _LONGEST_KEPT:
            self._kept[text] = found  # the newest stands last
        return found

    def _make(self, text: str) -> Document | list[GraphQLError]:
        try:
            return self._checked(text)
        except Limited as limited:
            return [limited]
        except RecursionError:
            return [_too_deep(self._depth)]

    def _checked(self, text: str) -> Document | list[GraphQLError]:
        try:
            node = parse(text, max_tokens=_TOKENS)
        except GraphQLError as error:
            if "more than" in error.message and "tokens" in error.message:  # the parser has no class for it
                return [Limited("tokens", f"the document has more than {_TOKENS} tokens", limit=_TOKENS)]
            return [error]
        fragments = sum(isinstance(each, FragmentDefinitionNode) for each in node.definitions)
        if fragments > _FRAGMENTS:
            return [Limited("fragments", f"the document has more than {_FRAGMENTS} fragments", limit=_FRAGMENTS)]
        _check_types(node)
        _Measure(self._schema, node, self._depth, self._cost).check_all()
        errors = validate(self._schema, node, max_errors=20)
        if errors:
            return [_limited(each) for each in errors]
        operations = {
            each.name.value if each.name else None: each
            for each in node.definitions
            if isinstance(each, OperationDefinitionNode)
        }
        variables = _Variables()
        visit(node, variables)
        return Document(text, node, operations, tuple(variables.deciding), not variables.limiting)

    def check(self, document: Document, operation: OperationDefinitionNode, values: Mapping[str, Any]) -> None:
        """Raises Limited where an operation costs too much with these values for its variables."""
        if not document.is_measured:
            _Measure(self._schema, document.node, self._depth, self._cost, values).check(operation)


def _too_deep(limit: int, what: str = "levels") -> Limited:
    return Limited("depth", f"the document goes deeper than {limit} {what}", limit=limit)


def _check_types(node: DocumentNode) -> None:
    """A list of lists of lists is looked into again for every request, from wherever Python's stack then stands."""
    for operation in node.definitions:
        if isinstance(operation, OperationDefinitionNode):
            for variable in operation.variable_definitions or ():
                kind: Any = variable.type
                brackets = 0
                while not isinstance(kind, NamedTypeNode):
                    brackets += isinstance(kind, ListTypeNode)
                    kind = kind.type
                if brackets > _NESTED:
                    raise _too_deep(_NESTED, "lists in the type of a variable")


def _limited(error: GraphQLError) -> GraphQLError:
    """The library has bounds of its own, and says so in words alone."""
    if error.message.startswith("Query is too complex"):
        return Limited("cost", error.message)
    if error.message.startswith("Maximum introspection depth"):
        return Limited("depth", error.message)
    return error


class _Variables(Visitor):
    """Which variables do more than stand for a value."""

    def __init__(self) -> None:
        super().__init__()
        self.deciding: dict[str, None] = {}
        self.limiting = False

    def enter_directive(self, directive: Any, *_: Any) -> None:
        if directive.name.value in ("skip", "include"):
            for argument in directive.arguments:
                if isinstance(argument.value, VariableNode):
                    self.deciding[argument.value.name.value] = None

    def enter_field(self, field: FieldNode, *_: Any) -> None:
        self.limiting = self.limiting or isinstance(_limit(field), VariableNode)


class _Measure:
    """How deep a document goes and what it costs. Works on documents that are not valid, too: fragments may lead back
    to themselves, and fields may not exist."""

    def __init__(
        self,
        schema: GraphQLSchema,
        node: DocumentNode,
        depth: int,
        cost: int,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        self._schema = schema
        self._node = node
        self._values = values  # of the variables; None: not known yet
        self._fragments = {
            each.name.value: each for each in node.definitions if isinstance(each, FragmentDefinitionNode)
        }
        self._depth = depth
        self._most = cost
        self._steps = 0
        self._introspections = 0

    def check_all(self) -> None:
        for each in self._node.definitions:
            if isinstance(each, OperationDefinitionNode):
                self.check(each)

    def check(self, operation: OperationDefinitionNode) -> None:
        root = self._schema.get_root_type(operation.operation)
        self._selection(operation.selection_set, root, 1, frozenset())

    def _selection(
        self,
        selection: SelectionSetNode | None,
        kind: GraphQLNamedType | None,
        depth: int,
        within: frozenset[str],
    ) -> int:
        """The cost of what is below; fragments are looked into where they are used."""
        if selection is None:
            return 0
        if depth > self._depth:
            raise Limited("depth", f"the query is deeper than {self._depth} levels", limit=self._depth)
        total = 0
        for each in selection.selections:
            # Fragments that lead to each other in every order cost nothing and take for ever.
            self._steps += 1
            if self._steps > _STEPS:
                raise Limited("cost", f"the query costs more than {self._most}", limit=self._most)
            if isinstance(each, FieldNode):
                total += self._field(each, kind, depth, within)
            elif isinstance(each, InlineFragmentNode):
                total += self._selection(each.selection_set, kind, depth, within)
            elif isinstance(each, FragmentSpreadNode):
                total += self._fragment(each.name.value, kind, depth, within)
            if total > self._most:
                raise Limited("cost", f"the query costs more than {self._most}", limit=self._most)
        return total

    def _fragment(self, name: str, kind: GraphQLNamedType | None, depth: int, within: frozenset[str]) -> int:
        fragment = self._fragments.get(name)
        if fragment is None or name in within:
            return 0  # validation says what is wrong
        if len(within) == _NESTED:
            raise _too_deep(_NESTED, "fragments within each other")
        return self._selection(fragment.selection_set, kind, depth, within | {name})

    def _field(self, node: FieldNode, kind: GraphQLNamedType | None, depth: int, within: frozenset[str]) -> int:
        name = node.name.value
        if name in ("__schema", "__type"):
            self._introspections += 1
            if self._introspections > _INTROSPECTIONS:
                raise Limited(
                    "introspections",
                    f"the query looks at the schema more than {_INTROSPECTIONS} times",
                    limit=_INTROSPECTIONS,
                )
        found = None
        if isinstance(kind, GraphQLObjectType):
            found = self._schema.get_field(kind, name)
        if found is None or name.startswith("__") or (kind is not None and kind.name.startswith("__")):
            # Unknown, or about the schema itself, which is as large as it is.
            below = get_named_type(found.type) if found is not None else None
            return 1 + self._selection(node.selection_set, below, depth + 1, within)
        is_list = is_list_type(get_nullable_type(found.type))
        below_cost = self._selection(node.selection_set, get_named_type(found.type), depth + 1, within)
        return _COSTS.get(name, 1) + below_cost * (self._entries(node, found) if is_list else 1)

    def _entries(self, node: FieldNode, found: GraphQLField) -> int:
        """How many entries a list is taken to have."""
        if "limit" not in found.args:
            return _NOMINAL
        given = _limit(node)
        if isinstance(given, IntValueNode):
            return max(int(given.value[:9]), 1)
        entries = found.args["limit"].default_value
        if isinstance(given, VariableNode):
            entries = 1 if self._values is None else self._values.get(given.name.value, entries)
        return max(entries, 1) if isinstance(entries, int) else _NOMINAL


def _limit(node: FieldNode) -> ValueNode | None:
    return next((each.value for each in node.arguments or () if each.name.value == "limit"), None)
