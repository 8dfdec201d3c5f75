"""Executing GraphQL: graphql-core does it, except for entities. Those are asked of the graph, once for a selection.

Parsing, validation, variables, directives, root fields, mutations, introspection and errors above entities are the
library's. Below an entity there are no resolvers to be called: its selection becomes one EQL query, which the compiled
engine answers (:mod:`psi.faces.graphql.select`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphql import FieldNode, GraphQLError, GraphQLList, GraphQLObjectType, GraphQLOutputType
from graphql.execution import Executor
from graphql.execution.collect_fields import CollectedFields, collect_subfields
from graphql.pyutils import Path

from psi.edn import Keyword
from psi.eql import Join, Query
from psi.errors import PsiError
from psi.faces.graphql.limits import Limited
from psi.faces.graphql.names import FIELDS
from psi.faces.graphql.select import DEPARTURES, Chosen, Selection, careful, compile_layout, compile_weight
from psi.faces.graphql.types import Ask, Entities, Entity, refused
from psi.faces.wire import LARGEST, TooLarge

__all__ = ["Compiled", "GraphExecutor", "Layouts", "SureExecutor"]

_ITEMS: Final = Keyword("psi.graphql/items")
_MOST_FIELDS: Final = 25_000  # of objects that are no entities; the usual introspection has 4 200 of them
_MOST_SELECTIONS: Final = 256  # of one document: each variable that decides something doubles what there may be


class Compiled:
    """A selection with all that was made of it."""

    __slots__ = ("_attributes", "_weight", "many", "one", "query", "query_many", "selection")

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.query = selection.query()
        self.query_many = Query((Join(str(_ITEMS), self.query),))
        self.one, self.many = compile_layout(selection)
        self._attributes = selection.attributes
        self._weight = compile_weight(selection)

    def check_size(self, answers: Sequence[Mapping[str, Any]]) -> None:
        """Raises TooLarge for an answer that would be, before it is made."""
        if self._weight is not None and self._weight(answers) > LARGEST:
            raise TooLarge

    def is_known(self, seed: Mapping[str, Any]) -> bool:
        """Whether an entity that is known this well need not be asked for anything."""
        return self._attributes is not None and self._attributes <= seed.keys()


class Layouts:
    """What was laid out of values that last: a list in which little has changed is mostly there already. Bounded as a
    whole, and begun anew when it is full."""

    def __init__(self, most: int = 8_192) -> None:
        self._most = most
        self._count = 0
        # Each with its seed, so that an address that stands for one cannot come to stand for another.
        self._laid: dict[Compiled, dict[int, tuple[Mapping[str, Any], dict[str, Any]]]] = {}

    def __len__(self) -> int:
        return self._count

    def many(self, compiled: Compiled, seeds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The objects of these; nobody may change them."""
        laid = self._laid.get(compiled, {})
        found = [laid.get(id(seed)) for seed in seeds]
        if None not in found:
            return [each[1] for each in found if each is not None]
        missing = {id(seed): seed for seed, known in zip(seeds, found, strict=True) if known is None}
        made = dict(zip(missing, compiled.many(list(missing.values())), strict=True))
        self._keep(compiled, missing, made)
        return [made[id(seed)] if known is None else known[1] for seed, known in zip(seeds, found, strict=True)]

    def _keep(
        self, compiled: Compiled, seeds: Mapping[int, Mapping[str, Any]], made: dict[int, dict[str, Any]]
    ) -> None:
        if self._count + len(made) > self._most:
            self._laid.clear()
            self._count = 0
        if len(made) <= self._most:
            self._laid.setdefault(compiled, {}).update((name, (seeds[name], made[name])) for name in made)
            self._count += len(made)


_LAYOUTS: Final = Layouts()


class SureExecutor(Executor[Any]):
    """graphql-core's executor, which remembers what stands below a field by the ids of objects that it lets go: an
    address that is used again finds what belongs to another field. Here it is remembered by the nodes of the document,
    which stay as long as the execution.

    And it never ends by itself: the schema is as large as it is, but can be asked for a thousand times in one document,
    and nobody else is served meanwhile. So the fields are counted. ``limited``: there were too many, and nothing that
    was answered counts.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.limited: Limited | None = None
        self._fields = 0
        self._collected: dict[Any, CollectedFields] = {}

    def collect_subfields(self, return_type: GraphQLObjectType, field_details_list: Any) -> CollectedFields:
        """Called for every object that is no entity."""
        found = self._below(return_type, field_details_list)
        self._fields += len(found.grouped_field_set)
        if self._fields > _MOST_FIELDS:
            self.limited = Limited("cost", f"the answer has more than {_MOST_FIELDS} fields", limit=_MOST_FIELDS)
            raise self.limited
        return found

    def handle_field_error(self, raw_error: Exception, *where: Any) -> None:
        if self.limited is not None:
            raise self.limited  # of all of it: a null here would only let the next field begin
        super().handle_field_error(raw_error, *where)

    def _below(self, return_type: GraphQLObjectType, field_details_list: Any) -> CollectedFields:
        key = (return_type.name, *(id(each.node) for each in field_details_list))
        found = self._collected.get(key)
        if found is None:
            found = self._collected[key] = collect_subfields(
                self.schema,
                self.fragments,
                self.variable_values,
                self.operation,
                return_type,
                field_details_list,
                self.hide_suggestions,
            )
        return found


class GraphExecutor(SureExecutor):
    """The same, with the graph in the place of resolvers.

    ``selections`` belongs to the document and outlives the execution: what was compiled for it is found there.
    ``deciding``: the variables that @skip and @include look at.
    """

    def __init__(
        self, *arguments: Any, selections: dict[Any, Compiled], deciding: tuple[str, ...], **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._selections = selections
        self._deciding = deciding
        # As they are after their defaults and types have been looked at; a variable of the same name in another
        # operation of the document may be of any kind, and decides nothing.
        values = self.variable_values.coerced
        self.flags = tuple(value if isinstance(value := values.get(name), bool) else None for name in deciding)

    def build_per_event_executor(self, payload: Any) -> GraphExecutor:
        """A fresh executor for an event of a subscription: the library's own is a copy, and shares with all others what
        it remembers."""
        return GraphExecutor(
            self.schema,
            self.fragment_definitions,
            self.fragments,
            payload,
            self.context_value,
            self.operation,
            self.variable_values,
            self.field_resolver,
            self.type_resolver,
            self.subscribe_field_resolver,
            selections=self._selections,
            deciding=self._deciding,
        )

    def complete_object_value(
        self,
        return_type: GraphQLObjectType,
        field_details_list: Any,
        info: Any,
        path: Path,
        result: Any,
        position_context: Any,
    ) -> Any:
        if isinstance(result, Entity):
            return self._entity(self._compiled(return_type, field_details_list), result, path)
        return super().complete_object_value(return_type, field_details_list, info, path, result, position_context)

    def complete_list_value(
        self,
        return_type: GraphQLList[GraphQLOutputType],
        field_details_list: Any,
        info: Any,
        path: Path,
        result: Any,
        position_context: Any,
    ) -> Any:
        if isinstance(result, Entities):
            # A list of entities never has nulls in it, in none of our types.
            item: Any = return_type.of_type
            return self._entities(self._compiled(item.of_type, field_details_list), result, path)
        return super().complete_list_value(return_type, field_details_list, info, path, result, position_context)

    # -- selections

    def _compiled(self, kind: GraphQLObjectType, details: Any) -> Compiled:
        # The nodes are those of the cached document, so they are what they were; which of them count depends on the
        # variables that @skip and @include look at.
        key = (kind.name, self.flags, *(id(each.node) for each in details))
        found = self._selections.get(key)
        if found is None:
            found = Compiled(self._selection(kind, details))
            if len(self._selections) >= _MOST_SELECTIONS:
                del self._selections[next(iter(self._selections))]
            self._selections[key] = found
        return found

    def _selection(self, kind: GraphQLObjectType, details: Any) -> Selection:
        fields = FIELDS[kind.name]
        chosen = []
        grouped = self._below(kind, details).grouped_field_set
        for key, group in grouped.items():
            nodes: list[FieldNode] = [each.node for each in group]
            name = nodes[0].name.value
            if name == "__typename":
                chosen.append(Chosen(key, None))
                continue
            field = fields[name]
            below = None
            if field.leads_to is not None:
                target = self.schema.get_type(field.leads_to)
                assert isinstance(target, GraphQLObjectType)
                below = self._selection(target, group)
            chosen.append(Chosen(key, field, below, nodes))
        return Selection(kind.name, tuple(chosen))

    # -- answers

    async def _entity(self, compiled: Compiled, entity: Entity, path: Path) -> dict[str, Any]:
        async with entity.ask.pace:
            answer = (
                entity.seed if compiled.is_known(entity.seed) else await _asked(entity.ask, compiled.query, entity.seed)
            )
            compiled.check_size((answer,))
            try:
                return compiled.one(answer)
            except DEPARTURES:
                return self._carefully(compiled, answer, path)

    async def _entities(self, compiled: Compiled, entities: Entities, path: Path) -> list[dict[str, Any]]:
        answers = entities.seeds
        async with entities.ask.pace:
            if answers and not compiled.is_known(answers[0]):  # the seeds of a list are alike
                answers = (await _asked(entities.ask, compiled.query_many, {_ITEMS: answers}))[_ITEMS]
            compiled.check_size(answers)
            try:
                if entities.lasting and answers is entities.seeds:
                    return _LAYOUTS.many(compiled, answers)
                return compiled.many(answers)
            except DEPARTURES:
                return [self._carefully(compiled, answer, path.add_key(place)) for place, answer in enumerate(answers)]

    def _carefully(self, compiled: Compiled, answer: Mapping[str, Any], path: Path) -> dict[str, Any]:
        found: list[GraphQLError] = []
        told = careful(compiled.selection, answer, tuple(path.as_list()), lambda error, _: found.append(error))
        # Where the null reaches further up than this entity, the library takes the error that made it from here.
        fatal = found.pop() if told is None else None
        for error in found:
            self.collected_errors.add(error, _path(error.path or ()))
        if fatal is not None:
            raise fatal
        done: dict[str, Any] = told
        return done


async def _asked(ask: Ask, query: Query, seed: Mapping[Any, Any]) -> dict[Any, Any]:
    try:
        return await ask.query(query, seed)
    except PsiError as error:
        raise refused(error) from error


def _path(keys: Sequence[str | int]) -> Path | None:
    found: Path | None = None
    for key in keys:
        found = Path(found, key, None)
    return found
