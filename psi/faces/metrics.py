"""Numbers for whoever watches the service, in the words of Prometheus. Counts; decides nothing.

One registry for each app, so that two of them in one process do not add up to nonsense.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, openmetrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import psi

__all__ = ["Metered", "Metrics"]

# From an answer out of memory to the longest that a query may take.
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

# Methods that HTTP knows; whatever else a client makes up is counted under one name.
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER: Final = "other"

_OPENMETRICS: Final = "application/openmetrics-text"


class Metrics:
    def __init__(self, counters: Callable[[], Mapping[str, int]]) -> None:
        """``counters``: the service's own, asked whenever the numbers are."""
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "psi_http_requests_total", "HTTP requests answered", ("method", "route", "status"), registry=registry
        )
        self.seconds = Histogram(
            "psi_http_request_seconds",
            "seconds from a request to the end of its answer",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self.sockets = Gauge("psi_sockets", "WebSockets that are open", registry=registry)
        self.subscriptions = Gauge("psi_subscriptions", "GraphQL subscriptions that are active", registry=registry)
        self.subscription_messages = Counter(
            "psi_subscription_messages_total", "messages sent to subscribers", registry=registry
        )
        self.subscription_missed = Counter(
            "psi_subscription_missed_total", "messages that slow subscribers have missed", registry=registry
        )
        registry.register(_Runtime(counters))
        ProcessCollector(registry=registry)

    def exposed(self, accept: str = "") -> tuple[bytes, str]:
        """All numbers as text, and the Content-Type of that text."""
        if _OPENMETRICS in accept:
            text: bytes = openmetrics.exposition.generate_latest(self.registry)  # type: ignore[no-untyped-call]
            return text, openmetrics.exposition.CONTENT_TYPE_LATEST
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4


class _Runtime(Collector):
    """What the runtime counts by itself, looked at when somebody asks and not a moment earlier."""

    def __init__(self, counters: Callable[[], Mapping[str, int]]) -> None:
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        counted = self._counters()
        yield InfoMetricFamily("psi_build", "the version that runs", {"version": psi.__version__})
        yield GaugeMetricFamily("psi_sessions", "sessions there are", counted["sessions"])
        yield GaugeMetricFamily("psi_schedules_open", "schedules that are pending or queued", counted["open-schedules"])
        yield GaugeMetricFamily("psi_runs_active", "runs that are under way", counted["active-runs"])
        yield CounterMetricFamily("psi_events_total", "events published", counted["events-published"])


class Metered:
    """Counts every request to the app inside, whoever answers it; ``route_of`` gives the pattern that a request fits.

    Patterns and never paths: a path is whatever a client makes up, and each would be a series of its own for ever.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, route_of: Callable[[Scope], str]) -> None:
        self._app = app
        self._metrics = metrics
        self._route_of = route_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._count_request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._count_socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _count_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_open = False

        async def noted(message: Message) -> None:
            nonlocal is_open
            if message["type"] == "websocket.accept":
                is_open = True
                self._metrics.sockets.inc()
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            if is_open:
                self._metrics.sockets.dec()

    async def _count_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        route = self._route_of(scope)
        status = 500  # an app that ends without an answer
        started = time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._metrics.seconds.labels(method, route).observe(time.perf_counter() - started)
            self._metrics.requests.labels(method, route, str(status)).inc()
