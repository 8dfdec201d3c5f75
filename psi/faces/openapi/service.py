"""How the service is: its first page, its health, its numbers, and this description."""

from __future__ import annotations

from typing import Any, Final

import psi
from psi.faces.openapi.words import ADMIN_ONLY, HTML, JSON, TEXT, answered, operation, ref
from psi.settings import Settings

__all__ = ["SCHEMAS", "paths"]


def _start() -> dict[str, Any]:
    return operation(
        "start",
        "A small page that says what this is",
        {200: answered("the page", {HTML: {"schema": TEXT}})},
        tag="operation",
        public=True,
    )


def _status(name: str, summary: str, word: str) -> dict[str, Any]:
    example = {"status": word, "version": psi.__version__}
    return operation(
        name,
        summary,
        {200: answered("yes", {JSON: {"schema": ref("Status"), "example": example}})},
        tag="operation",
        public=True,
    )


def _metrics() -> dict[str, Any]:
    return operation(
        "metrics",
        "The numbers of the service, for Prometheus",
        {
            200: answered(
                "text as Prometheus reads it",
                {"text/plain": {"schema": TEXT}, "application/openmetrics-text": {"schema": TEXT}},
            )
        },
        tag="operation",
        description=ADMIN_ONLY,
    )


def _openapi() -> dict[str, Any]:
    return operation(
        "openapi",
        "This document",
        {200: answered("OpenAPI 3.1", {JSON: {"schema": {"type": "object", "required": ["openapi", "paths"]}}})},
        tag="operation",
        public=True,
    )


SCHEMAS: Final[dict[str, Any]] = {
    "Status": {
        "type": "object",
        "properties": {"status": TEXT, "version": TEXT},
        "required": ["status", "version"],
        "additionalProperties": False,
    },
}


def paths(settings: Settings) -> dict[str, Any]:
    return {
        "/": {"get": _start()},
        "/healthz": {"get": _status("healthz", "Whether the process answers at all", "ok")},
        "/readyz": {"get": _status("readyz", "Whether it is worth sending work here", "ready")},
        "/metrics": {"get": _metrics()},
        "/openapi.json": {"get": _openapi()},
    }
