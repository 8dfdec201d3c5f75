"""What resolvers are given: read models, and one way to hand on a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from psi.core.agenda import Agenda
from psi.core.clock import Clock, Moment
from psi.core.commands import Caller, Command
from psi.core.session import Session
from psi.graph.index import Index
from psi.store import Store

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    caller: Caller
    clock: Clock
    started: Moment
    sessions: Mapping[str, Session]
    agenda: Agenda
    store: Store
    index: Index  # of the graph that is being asked
    act: Callable[[Command, Caller], Awaitable[Any]]
    counters: Callable[[], Mapping[str, int]]
