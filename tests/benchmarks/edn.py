"""How much faster psi.edn is than edn_format, side by side in one process: ``python -m tests.benchmarks.edn``.

Ends with a status of 1 when reading is less than five times as fast. The two take turns, so that a machine that slows
down slows down both; the best run of each counts, being the one least disturbed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import edn_format

from psi import edn
from tests.benchmarks import edn_data

__all__ = ["Row", "main", "rows"]

FLOOR = 5.0
RUNS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One comparison; times are seconds for one document."""

    action: str
    document: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def rows(runs: int = RUNS) -> list[Row]:
    measured = []
    for name, text in {"query": edn_data.query(), "result": edn_data.result()}.items():
        document = f"{name}, {len(text) / 1000:.0f} KB"
        # Enough of the document in one run that the clock's own grain does not show.
        times = max(1, 20_000 // len(text))
        reading = partial(edn.loads, text), partial(edn_format.loads, text)
        writing = partial(edn.dumps, edn.loads(text)), partial(edn_format.dumps, edn_format.loads(text))
        for action, (ours, theirs) in {"read": reading, "write": writing}.items():
            taken = [(_seconds(ours, times), _seconds(theirs, times)) for _ in range(runs)]
            best_of_ours, best_of_theirs = map(min, zip(*taken, strict=True))
            measured.append(Row(action=action, document=document, ours=best_of_ours, theirs=best_of_theirs))
    return measured


def _seconds(run: Callable[[], Any], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        run()
    return (perf_counter() - start) / times


def main() -> int:
    measured = rows()
    print(f"{'':6} {'document':16} {'psi.edn':>10} {'edn_format':>12} {'times faster':>13}")
    for row in measured:
        print(f"{row.action:6} {row.document:16} {row.ours * 1e3:7.2f} ms {row.theirs * 1e3:9.2f} ms {row.ratio:13.1f}")
    return 0 if all(row.ratio >= FLOOR for row in measured if row.action == "read") else 1


if __name__ == "__main__":
    sys.exit(main())
