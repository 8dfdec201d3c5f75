"""Entry point of ``psi-tool``: reads arguments, picks the command, returns the exit code. Holds no logic of its own.

Imports what a command needs when it is chosen, so that each pays for itself alone.
"""

from __future__ import annotations

import sys

from tool.commands import BROKEN_PIPE, ERROR, INTERRUPTED, OK, WRONG_USAGE, Command
from tool.output import Unwritten, flush, forget, plain, ready, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tool.arguments import Values

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out what was typed. 0 ok, 1 the service said error, 2 wrong usage, 3 no service reachable."""
    if sys.stdout is None:  # how Python says that it was closed by whoever started us
        return _unwritten("the output could not be written: standard output is closed")
    ready()
    try:
        try:
            return _carry_out(sys.argv[1:] if arguments is None else arguments)
        finally:
            flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # of standard error: our own words are not read either
        forget()
        return BROKEN_PIPE
    except Unwritten as lost:
        forget()
        return BROKEN_PIPE if lost.is_unread else _unwritten(str(lost))


def _unwritten(why: str) -> int:
    from contextlib import suppress

    with suppress(OSError, AttributeError):  # then there is nobody to tell
        sys.stderr.write(f"psi-tool: {why}\n")
    return ERROR


def _carry_out(arguments: Sequence[str]) -> int:
    from tool.arguments import read

    try:
        asked = read(arguments)
        return _run(*asked) if asked is not None else OK
    except SystemExit as ended:  # argparse's way to have said everything
        return ended.code if isinstance(ended.code, int) else OK


def _run(command: Command, values: Values) -> int:
    match command.does:
        case "serve":
            return _serve(values)
        case "token":
            from tool.tokens import run as token

            return token(command, values)
        case "watch":
            from tool.watch import run as watch

            return watch(values)
        case "schema":
            from tool.formats import run as schema

            return schema(values)
        case "completion":
            from tool.completion import script

            text(script(values["shell"]).rstrip("\n"))
            return OK
    from tool.ask import run as ask

    return ask(command, values)


def _serve(flags: Mapping[str, Any]) -> int:
    import os

    from psi.errors import Refused
    from psi.faces.server import serve
    from psi.settings import Settings, SettingsInvalid

    try:
        settings = Settings.read(flags, os.environ)
    except SettingsInvalid as wrong:
        for problem in wrong.problems:
            sys.stderr.write(f"psi-tool serve: {plain(problem)}\n")
        return WRONG_USAGE
    except Refused as wrong:
        sys.stderr.write(f"psi-tool serve: {plain(wrong.message)}\n")
        return WRONG_USAGE
    code = serve(settings)
    try:
        flush()
    except Unwritten:  # a service does not live by what it prints
        forget()
    return code


if __name__ == "__main__":
    sys.exit(main())
