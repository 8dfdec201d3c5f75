"""The same schedules in GraphQL as strawberry does it by itself: types written by hand, a resolver for each list.

What :mod:`tests.benchmarks.graphql` measures psi against. Knows the runtime's read model and nothing of psi's GraphQL.
"""

# No `from __future__ import annotations` here: strawberry reads annotations.
import json
from datetime import datetime
from enum import Enum
from typing import Any, NewType

import strawberry
from strawberry.extensions import ParserCache, ValidationCache
from strawberry.scalars import JSON
from strawberry.schema.config import StrawberryConfig

from psi.core import schedule as core
from psi.core.clock import instant_text
from psi.service import Service

__all__ = ["Stock"]

Instant = NewType("Instant", datetime)


@strawberry.enum
class Kind(Enum):
    MESSAGE = "message"
    SESSION = "session"


@strawberry.enum
class Status(Enum):
    PENDING = "pending"
    QUEUED = "queued"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"
    FAILED = "failed"


@strawberry.type
class Schedule:
    schedule_id: strawberry.ID
    kind: Kind
    label: str | None
    message: str
    source: str
    created_at: Instant
    fire_at: Instant
    status: Status
    origin_session_id: str
    created_session_id: str | None
    delivery_phase: str | None
    error_summary: JSON | None
    session_config_summary: JSON | None


def _told(schedule: core.Schedule) -> Schedule:
    return Schedule(
        schedule_id=strawberry.ID(schedule.id),
        kind=Kind(schedule.kind.value),
        label=schedule.label,
        message=schedule.message,
        source="scheduled",
        created_at=Instant(schedule.created_at),
        fire_at=Instant(schedule.fire_at),
        status=Status(schedule.status.value),
        origin_session_id=schedule.session,
        created_session_id=schedule.created_session,
        delivery_phase=schedule.phase.value.upper() if schedule.phase else None,
        error_summary=JSON(schedule.error.as_data()) if schedule.error else None,
        session_config_summary=JSON(schedule.config.summary()) if schedule.config else None,
    )


@strawberry.type
class Session:
    id: strawberry.Private[str]

    @strawberry.field
    def scheduler_schedules(self, info: strawberry.Info[Service, None]) -> list[Schedule]:
        return [_told(each) for each in info.context.context().schedules(self.id)]


@strawberry.type
class Query:
    @strawberry.field
    def session(self, id: strawberry.ID) -> Session | None:  # noqa: A002
        return Session(id=str(id))

    @strawberry.field
    def schedules(self, info: strawberry.Info[Service, None], session_id: strawberry.ID) -> list[Schedule]:
        return [_told(each) for each in info.context.context().schedules(str(session_id))]

    @strawberry.field
    def schedule(self, info: strawberry.Info[Service, None], id: strawberry.ID) -> Schedule | None:  # noqa: A002
        found = info.context.context().schedule(str(id))
        return None if found is None else _told(found)


class Stock:
    """From text to bytes."""

    def __init__(self, service: Service, *, caches: bool = False) -> None:
        self._service = service
        parsed, validated = ParserCache(maxsize=100), ValidationCache(maxsize=100)
        self._schema = strawberry.Schema(
            query=Query,
            config=StrawberryConfig(scalar_map={Instant: strawberry.scalar(name="Instant", serialize=instant_text)}),
            extensions=[lambda: parsed, lambda: validated] if caches else [],
        )

    async def answer(self, text: str) -> bytes:
        result: Any = await self._schema.execute(text, context_value=self._service)
        assert not result.errors, result.errors
        return json.dumps({"data": result.data}).encode()
