"""What a request from the command line costs beside ``python -c pass``: ``python -m tests.benchmarks.cli``.

Ends with a status of 1 when it is more than five times as much. Both are processes of this Python, taking turns, so
that a machine that slows down slows down both; the server is a thread of ours that answers at once. ``allowed`` is what
the modules that the path may use would cost alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from time import perf_counter
from typing import Any

__all__ = ["main", "measured"]

CEILING = 5.0
RUNS = 40

ENVELOPE = json.dumps(
    {
        "psi-tool/action": "session",
        "psi-tool/session-op": "list",
        "psi-tool/overall-status": "ok",
        "psi-tool/duration-ms": 0,
        "psi-tool/session": {"session-count": 0, "sessions": []},
    }
).encode()


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(ENVELOPE)))
        self.end_headers()
        self.wfile.write(ENVELOPE)

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 – as it is declared
        pass


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _seconds(arguments: list[str], env: dict[str, str]) -> float:
    start = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=env, timeout=60)
    return perf_counter() - start


def measured(runs: int = RUNS) -> dict[str, list[float]]:
    """Seconds of each run, by what was run."""
    # As it is after the first time: with the compiled files of our own modules kept, as those of the library are.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with serving() as url:
        lines = {
            "python -c pass": ["-c", "pass"],
            "allowed": ["-c", "import argparse, json, http.client"],
            "psi-tool session list": ["-m", "tool.main", "session", "list", "--url", url],
            "psi-tool '{...}'": ["-m", "tool.main", '{:action "session" :op "list"}', "--url", url],
        }
        for line in lines.values():
            _seconds(line, env)
        taken: dict[str, list[float]] = {name: [] for name in lines}
        for _ in range(runs):
            for name, line in lines.items():
                taken[name].append(_seconds(line, env))
    return taken


def main() -> int:
    taken = measured()
    floor = taken["python -c pass"]
    print(f"{'':24} {'best':>9} {'median':>9} {'ratio':>7} {'of medians':>11} {'promised':>9}")
    worst = 0.0
    for name, seconds in taken.items():
        ratio = min(seconds) / min(floor)
        promised = f"{CEILING:.0f} ×" if name.startswith("psi-tool") else ""
        worst = max(worst, ratio) if promised else worst
        print(
            f"{name:24} {min(seconds) * 1e3:6.1f} ms {median(seconds) * 1e3:6.1f} ms {ratio:5.2f} × "
            f"{median(seconds) / median(floor):9.2f} × {promised:>9}"
        )
    return 0 if worst <= CEILING else 1


if __name__ == "__main__":
    sys.exit(main())
