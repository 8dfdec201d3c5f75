from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from psi.graph import Graph
from tests.graph.recorder import Recorder


@pytest.fixture(params=[0, None], ids=["compiled", "frames"])
def build(request: pytest.FixtureRequest) -> Callable[..., Graph]:
    """Makes a graph of its arguments; every test that takes it runs with compiled code and without."""
    compile_after = cast("int | None", request.param)

    def graph(*operations: Any, **options: Any) -> Graph:
        return Graph(operations, compile_after=compile_after, **options)

    return graph


@pytest.fixture
def told() -> Recorder:
    """Operations that do as they are told, and a record of their calls."""
    return Recorder()
