"""``/healthz``, ``/readyz``, ``/metrics``: how the service is, for whoever looks after it. Changes nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

import psi
from psi.core.errors import RuntimeClosed
from psi.faces.metrics import Metrics
from psi.faces.wire import StoreSilent, answer, error_response
from psi.runtime import Psi

__all__ = ["HealthFace"]

log = logging.getLogger("psi.faces.health")

_PATIENCE: Final = 2.0  # seconds that a store may take to answer before it counts as one that does not


class HealthFace:
    def __init__(self, runtime: Psi, metrics: Metrics) -> None:
        self._runtime = runtime
        self._metrics = metrics

    async def alive(self, request: Request) -> Response:
        """Whether the process answers at all."""
        return answer({"status": "ok", "version": psi.__version__})

    async def ready(self, request: Request) -> Response:
        """Whether it is worth sending work here."""
        if not self._runtime.is_open:
            return error_response(RuntimeClosed())
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._runtime.check()
        except Exception:  # whatever a store raises, and time that is up
            log.exception("the store does not answer")
            return error_response(StoreSilent())
        return answer({"status": "ready", "version": psi.__version__})

    async def metrics(self, request: Request) -> Response:
        text, content_type = self._metrics.exposed(request.headers.get("accept", ""))
        return Response(text, headers={"content-type": content_type})
