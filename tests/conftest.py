"""Settings of all tests: examples are the same in every run, so that a green main stays green; and no test is left out
silently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import settings

settings.register_profile("same every time", derandomize=True, deadline=None)
settings.load_profile("same every time")

_SLOW: Final = pytest.StashKey[set[str]]()
_NAME: Final = "slow tests that were left out"


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.config.getoption("markexpr") and item.get_closest_marker("slow") is not None:
            item.config.stash.setdefault(_SLOW, set()).add(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With xdist the tests are chosen where they run, by each worker for itself, and told elsewhere."""
    told: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if told is not None:
        told[_NAME] = sorted(session.config.stash.get(_SLOW, ()))


@pytest.hookimpl(optionalhook=True)  # xdist's
def pytest_testnodedown(node: Any) -> None:
    told = getattr(node, "workeroutput", {})  # a worker that broke down says nothing
    node.config.stash.setdefault(_SLOW, set()).update(told.get(_NAME, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if count := len(terminalreporter.config.stash.get(_SLOW, ())):
        told = "1 slow test was left out; make test-all runs it"
        terminalreporter.write_line(
            told if count == 1 else f"{count} slow tests were left out; make test-all runs them"
        )
