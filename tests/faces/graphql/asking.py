"""GraphQL without a transport: a psi on a virtual clock, asked in our way and in strawberry's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import strawberry
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from psi import Psi
from psi.core.commands import NOBODY, Caller
from psi.engine import VirtualClock
from psi.faces.graphql.execute import SureExecutor
from psi.faces.graphql.operations import Asked, Operations, Prepared, Subscribed, errors, told
from psi.faces.graphql.pace import Pace
from psi.faces.graphql.roots import Mutation, Query, Subscription
from psi.faces.graphql.types import CONFIG, Ask
from psi.graph import Operation
from psi.settings import Settings
from psi.store import Store

__all__ = ["Asking", "asking"]


class SureStock(SureExecutor, StrawberryGraphQLCoreExecutionContext):
    """strawberry's own, made sure of what it remembers: what others are compared with must not be wrong by chance."""


STOCK = strawberry.Schema(
    query=Query, mutation=Mutation, subscription=Subscription, config=CONFIG, execution_context_class=SureStock
)


class Asking:
    def __init__(self, psi: Psi, clock: VirtualClock, settings: Settings) -> None:
        self.psi = psi
        self.clock = clock
        self.settings = settings
        self.operations = Operations(psi.service, settings)

    async def __call__(
        self,
        text: str,
        variables: Mapping[str, Any] | None = None,
        caller: Caller = NOBODY,
        operation: str | None = None,
    ) -> dict[str, Any]:
        """The response, as every transport would send it."""
        prepared = self.operations.prepare(Asked(text, variables or {}, operation))
        if isinstance(prepared, list):
            return {"errors": errors(prepared)}
        return await self.operations.run(prepared, caller)

    async def data(self, text: str, variables: Mapping[str, Any] | None = None, caller: Caller = NOBODY) -> Any:
        """The data of a response that must have no errors."""
        response = await self(text, variables, caller)
        assert "errors" not in response, response
        return response["data"]

    async def stock(
        self, text: str, variables: Mapping[str, Any] | None = None, operation: str | None = None
    ) -> dict[str, Any]:
        """The same, executed by strawberry field by field."""
        service = self.psi.service
        ask = Ask(service, NOBODY, service.context(), Pace(60), None, self.settings.max_entities)
        result = await STOCK.execute(
            text, variable_values=dict(variables or {}), context_value=ask, operation_name=operation
        )
        if result.data is None and result.errors and all(each.path is None for each in result.errors):
            # What is told of them is ours, but the sentences are stock's.
            raw = [each.message for each in result.errors]
            return {
                "errors": [{**each, "message": said} for each, said in zip(errors(result.errors), raw, strict=True)]
            }
        return told(result)

    async def subscribe(
        self, text: str, variables: Mapping[str, Any] | None = None, caller: Caller = NOBODY
    ) -> Subscribed:
        prepared = self.operations.prepare(Asked(text, variables or {}))
        assert isinstance(prepared, Prepared), prepared
        found = await self.operations.subscribe(prepared, caller)
        assert isinstance(found, Subscribed), found
        return found

    async def refusal(
        self, text: str, variables: Mapping[str, Any] | None = None, caller: Caller = NOBODY
    ) -> dict[str, Any] | None:
        """Why a subscription is none: the extensions of its error. None where it is one."""
        prepared = self.operations.prepare(Asked(text, variables or {}))
        assert isinstance(prepared, Prepared), prepared
        found = await self.operations.subscribe(prepared, caller)
        if isinstance(found, Subscribed):
            return None
        (error,) = errors(found)
        extensions: dict[str, Any] = error["extensions"]
        return extensions

    async def session(self, name: str = "First") -> str:
        made = await self.psi.tool({"action": "session", "op": "create", "name": name})
        found: str = made["psi-tool/session"]["session"]["session-id"]
        return found

    async def schedule(self, session: str, message: str = "/say hi", delay_ms: int = 5_000, **more: Any) -> str:
        request = {
            "action": "scheduler",
            "op": "create",
            "kind": "message",
            "message": message,
            "delay-ms": delay_ms,
            **more,
        }
        made = await self.psi.tool(request, session)
        assert made["psi-tool/overall-status"] == "ok", made
        found: str = made["psi-tool/scheduler"]["schedule"]["schedule-id"]
        return found


@asynccontextmanager
async def asking(
    settings: Settings | None = None, operations: Iterable[Operation] = (), store: Store | None = None
) -> AsyncIterator[Asking]:
    clock = VirtualClock()
    async with Psi.open(clock=clock, operations=operations, store=store) as psi:
        yield Asking(psi, clock, settings or Settings())
