"""Entry point of ``psi-tool``: reads arguments, picks the command, returns the exit code. Holds no logic of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import psi

__all__ = ["main"]

# Exit codes are part of the public surface; 2, wrong usage, is argparse's own.
OK, NO_SERVICE = 0, 3

NOT_YET = f"""\
psi {psi.__version__} runs inside your Python program: the graph engine, and on it the runtime with psi-tool.
The service is not part of this version, so there is nothing to start. Read docs/scheduling.md and docs/graph.md"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="psi-tool", description="The command line of psi.")
    parser.add_argument("--version", action="version", version=f"psi {psi.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("serve", help="start the service (not part of this version yet)")
    if parser.parse_args(arguments).command == "serve":
        print(NOT_YET, file=sys.stderr)
        return NO_SERVICE
    parser.print_help()
    return OK


if __name__ == "__main__":
    sys.exit(main())
