"""The reference page of the command line, made from the table of commands. Prints nothing and sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tool.commands import (
    BROKEN_PIPE,
    COMMANDS,
    ERROR,
    INTERRUPTED,
    LATER,
    NO_SERVICE,
    OK,
    RAW,
    SHARED,
    TERMINATED,
    WITHOUT_SESSION,
    WRONG_USAGE,
    Command,
    Option,
    groups,
)

__all__ = ["manual"]

_CODES = (
    (OK, "ok"),
    (ERROR, "the service said error, or refused the request as a whole; or the run that `--wait` waited for failed"),
    (WRONG_USAGE, "wrong usage; nothing was sent, unless `--only-id` finds no id in the answer to a request"),
    (NO_SERVICE, "no service is reachable: nobody is there, or somebody else, or nothing came for a minute"),
    (INTERRUPTED, "interrupted; `watch` ends with 0, since that is how it ends"),
    (BROKEN_PIPE, "whoever read the output has gone"),
    (TERMINATED, "`watch` was told to end"),
)


def manual() -> str:
    """The page, as Markdown."""
    lines = [
        "# The command line: reference",
        "",
        "<!-- Made by `make docs` from tool/commands.py; a test compares. -->",
        "",
        (
            "How to use it: [the command line](cli.md). What requests and answers mean: [psi-tool](psi-tool.md). "
            "`psi-tool COMMAND --help` and `psi-tool help COMMAND` say the same as this page."
        ),
        "",
        "## Options that commands share",
        "",
        (
            "They may stand before the command, behind it or between its words. An option wins over its variable. "
            "Behind `--` nothing is an option. Where `@FILE` is taken, `-` and `@-` read standard input. Every command "
            "takes all of them but `--only-id`; one that has no use for an option ignores it."
        ),
        "",
        *_table(
            ("option", "variable", "what"), ((f"`{each.typed}`", _code(each.variable), each.doc) for each in SHARED)
        ),
        "",
        "## Exit codes",
        "",
        *_table(("code", "means"), ((str(code), meaning) for code, meaning in _CODES)),
        "",
        "## A request",
        "",
        *_command(RAW),
    ]
    for word, doc, below in groups():
        lines += ["", f"## {word}", "", doc]
        if below:
            for command in below:
                lines += ["", f"### {command.name}", "", command.doc, "", *_command(command)]
        else:
            command = next(each for each in COMMANDS if each.words == (word,))
            lines += ["", *_command(command)]
    lines += ["", "## Not in this version", "", *(f"- {sentence}" for sentence in LATER.values())]
    return "\n".join([*lines, ""])


def _command(command: Command) -> Iterator[str]:
    if command is RAW:
        yield command.doc
        yield ""
    usage = command.usage if command.does != "serve" else "psi-tool serve [--SETTING VALUE ...]"
    yield from ("```sh", usage if command is not RAW else "psi-tool REQUEST", "```")
    own = [option for option in command.options if option is not RAW.options[0]]
    if own:
        yield ""
        yield from _table(("option", "needed", "what"), map(_row, own))
    if command.does == "serve":
        yield ""
        yield "Every setting is an option; [settings](settings.md) has them all."
    elif command.more:
        yield ""
        yield command.more
    if command.shared == WITHOUT_SESSION:
        yield ""
        yield "It takes the shared options, but no session from `PSI_SESSION`: none is needed, and one may have gone."
    elif command.shared and command.shared != SHARED:
        yield ""
        yield f"Of the shared options it has a use for {', '.join(f'`{each.flag}`' for each in command.shared)}."
    elif not command.shared:
        yield ""
        yield "It has no use for the shared options."
    yield from ("", "```sh", *command.examples, "```")


def _row(option: Option) -> tuple[str, str, str]:
    typed = option.typed.replace("|", "\\|")
    if option.place:
        typed = f"{option.place}` or `{option.flag}".replace("|", "\\|")
    doc = f"{option.doc} (`{option.variable}`)" if option.variable else option.doc
    return f"`{typed}`", "yes" if option.required else "", doc


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
