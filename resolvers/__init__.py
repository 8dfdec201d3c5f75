"""What psi's own graph knows, one small module per attribute namespace.

Declares attributes, the resolvers that provide them and the mutations that change things, on top of ``psi.graph`` and
read models. A mutation hands a command on; nothing here starts a task, writes, or sees the engine or a face.
"""

from typing import Final

from psi.graph import Operation
from psi.graph.attributes import Attributes, Entity
from resolvers import graph, run, scheduler, session, system
from resolvers.context import Context

__all__ = ["ATTRIBUTES", "ENTITIES", "OPERATIONS", "ROOT_SEEDS", "Context"]

_MODULES: Final = (scheduler, session, run, graph, system)

ATTRIBUTES: Final = Attributes(attribute for module in _MODULES for attribute in module.ATTRIBUTES)
ENTITIES: Final[tuple[Entity, ...]] = tuple(entity for module in _MODULES for entity in module.ENTITIES)
OPERATIONS: Final[tuple[Operation, ...]] = tuple(operation for module in _MODULES for operation in module.OPERATIONS)
ROOT_SEEDS: Final = graph.ROOT_SEEDS
