"""Runs the benchmarks: all of them, or those named on the command line."""

from __future__ import annotations

import argparse
import importlib
import sys

# Each is a module beside this one with `main() -> int`, 0 when every promised figure was met; imported when chosen.
BENCHMARKS = ("cli", "edn", "fanout", "graph", "graphql", "scheduler", "streams")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(BENCHMARKS)}")
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    worst = 0
    for name in names or BENCHMARKS:
        print(f"== {name}", flush=True)
        worst = max(worst, importlib.import_module(f"tests.benchmarks.{name}").main() or 0)
        print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
