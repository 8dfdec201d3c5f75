"""What was typed, read: a command of the table with its values, or help, or a sentence about what is wrong.

Options that commands share may stand before the command, behind it or between its words, so the words are found first
and then one parser is built, for that command alone. Sends nothing.
"""

from __future__ import annotations

import argparse
import os
import sys

from tool.commands import (
    COMMANDS,
    CONNECTION,
    FLAG,
    GROUPS,
    HELP,
    INTEGER,
    LATER,
    OUTPUT,
    RAW,
    SHARED,
    WRONG_USAGE,
    Command,
    Option,
    find,
    groups,
)
from tool.output import plain, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final, NoReturn

__all__ = ["EXAMPLES", "Parser", "Values", "overview", "read", "wrong"]

_BEFORE: Final = {option.flag: option for option in (*SHARED, *HELP)}
# How alike two words are, from 0 to 1, before one is offered for the other: nobody who types `version` means `session`.
_NEAR: Final = 0.75
_IGNORED: Final = ", ignored"  # ends the name of what is taken although it means nothing

EXAMPLES: Final = (
    "psi-tool serve",
    'psi-tool session create "First steps"',
    "psi-tool scheduler list --session ses-…",
    """psi-tool '{:action "session" :op "list"}'""",
)


class Values(dict[str, "Any"]):
    """What was given for each option, and which of it was not typed but taken from the environment."""

    def __init__(self) -> None:
        super().__init__()
        self._sources: dict[str, str] = {}

    def give(self, option: Option, value: Any, source: str) -> None:
        self[option.name] = value
        self._sources[option.name] = source

    def source(self, name: str) -> str:
        """Where it was given: the flag, or the variable."""
        return self._sources.get(name, f"--{name}")

    def from_variable(self, name: str) -> str:
        """The value, if the environment gave it."""
        found = self.get(name)
        return found if found and not self.source(name).startswith("--") else ""


class Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. argparse would ask shutil, at the price of importing it for each option."""

    def __init__(self, prog: str, **more: Any) -> None:
        super().__init__(prog, **{"max_help_position": 28, "width": _columns() - 2, **more})


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        wrong(message, self.prog)

    def print_help(self, file: object = None) -> None:
        # argparse would say nothing about an output that cannot be written.
        text(self.format_help().rstrip("\n"))


def wrong(message: str, place: str = "psi-tool") -> NoReturn:
    """End with a sentence about what was typed."""
    sys.stderr.write(f"{place}: {plain(message)}\nHelp: {place} --help\n")
    raise SystemExit(WRONG_USAGE)


def read(arguments: Sequence[str]) -> tuple[Command, Values] | None:
    """The command and its values, by the names of its options; None when there is nothing to do but what was printed.

    Raises SystemExit with 2 for what cannot be meant, after saying so.
    """
    words, rest = _words(list(arguments))
    if _asks(rest, "--version"):
        import psi

        text(f"psi {psi.__version__}")
        return None
    command = RAW if words == ("",) else find(words)
    if command is not None:
        return command, _values(command, rest)
    if words:
        _show_group(words[0], rest)
    else:
        _show_overview(rest)
    return None


def _asks(rest: list[str], *flags: str) -> bool:
    """Whether one of the flags is among the options; what stands behind ``--`` is none."""
    options = rest[: rest.index("--")] if "--" in rest else rest
    return any(flag in options for flag in flags)


# -- finding the words


def _words(arguments: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """The words of the command, and everything else in its order. A raw request is the word that says nothing."""
    rest: list[str] = []
    words: tuple[str, ...] = ()
    dashes: list[str] = []  # behind them nothing is an option
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument == "--" and not dashes:
            dashes = ["--"]
            at += 1
            continue
        if argument.startswith("-") and argument != "-" and not dashes:
            at += _option(argument, words, arguments, at, rest)
            continue
        if not words and not _is_word(argument):
            words = ("",)
            break
        at += 1
        if not words and argument in _ASKING:
            rest.append(_ASKING[argument])
            continue
        words = (*words, argument)
        if words[0] in GROUPS and len(words) == 1:
            continue
        if find(words) is None:
            _unknown(words)
        break
    return words, [*rest, *dashes, *arguments[at:]]


def _option(argument: str, words: tuple[str, ...], arguments: list[str], at: int, rest: list[str]) -> int:
    """Put aside an option that stands before the command is complete; how many arguments that took."""
    name, given, _ = argument.partition("=")
    option = _BEFORE.get("--help" if name == "-h" else name)
    if option is None:
        _unknown_option(name, words)
    taken = 2 if option.takes_value and not given else 1
    if at + taken > len(arguments):
        wrong(f"{name} needs a value: {option.doc}", " ".join(("psi-tool", *words)))
    rest += arguments[at : at + taken]
    return taken


def _unknown_option(name: str, words: tuple[str, ...]) -> NoReturn:
    from tool.completion import options_of

    place = " ".join(("psi-tool", *words))
    if any(name == option.flag for command in COMMANDS for option in options_of(command)):
        wrong(f"{name} is not known here; the options of a command stand behind the command", place)
    wrong(f"there is no option {name}{_near(name, _BEFORE)}", place)


# What one may say instead of an option that asks about psi-tool: `psi-tool help scheduler`.
_ASKING: Final = {option.name: option.flag for option in HELP}


def _is_word(argument: str) -> bool:
    """Commands are words; what begins otherwise, ``{`` above all, is a request."""
    return argument[:1].isalpha()


def _unknown(words: tuple[str, ...]) -> NoReturn:
    if words[0] in LATER:
        sys.stderr.write(f"{LATER[words[0]]}\n")
        raise SystemExit(WRONG_USAGE)
    if words[0] in GROUPS:
        known = [command.words[1] for command in COMMANDS if command.words[0] == words[0]]
        wrong(f"there is no {' '.join(words)}{_near(words[1], known, words[0])}", f"psi-tool {words[0]}")
    known = [word for word, _, _ in groups()]
    wrong(f"there is no command {words[0]}{_near(words[0], known)}")


def _near(given: str, known: Iterable[str], before: str = "") -> str:
    from difflib import get_close_matches

    # The dashes are alike in all of them.
    names = {name.lstrip("-"): name for name in known}
    given = given.lstrip("-")
    near = [name for name in names if len(given) > 2 and name.startswith(given)]
    near = near or get_close_matches(given, names, n=1, cutoff=_NEAR)
    if near:
        return f"; did you mean {f'{before} {names[near[0]]}'.strip()}?"
    return f"; there are: {', '.join(names.values())}"


# -- one command's values


def _values(command: Command, rest: list[str]) -> Values:
    parser = _parser(command)
    values = Values()
    if command.does == "serve":
        values.update(_settings(parser, rest))
        return values
    found = vars(_parsed(parser, rest))
    for option in command.all_options:
        source = option.flag
        value = found.get(option.name)
        alone = found.get(f"{option.name} alone")
        if alone is not None:
            if value is not None:
                parser.error(f"{option.place} is given twice, alone and with {option.flag}")
            value = alone
        if value is None and option.variable:
            value = os.environ.get(option.variable) or None
            source = option.variable
        values.give(option, value, source)
    missing = [option for option in command.options if option.required and values[option.name] is None]
    if missing:
        parser.error("; ".join(f"{option.place or option.flag} is missing: {option.doc}" for option in missing))
    if values.get("json") and values.get("edn"):
        parser.error("--json or --edn, not both")
    if values.get("only-id") and (values.get("json") or values.get("edn")):
        parser.error("--only-id is a form of its own: without --json and --edn")
    if values.get("all") and values.get("session") and not values.from_variable("session"):
        parser.error("--all or --session, not both")
    return values


def _settings(parser: argparse.ArgumentParser, rest: list[str]) -> dict[str, Any]:
    """The flags of ``serve``. Whether a value can be used is not asked here, so that all are named that cannot.
    For argparse a switch has no value, and it would end with the first that has one."""
    from psi.settings import DECLARED

    switches = {setting.flag: setting for setting in DECLARED if isinstance(setting.default, bool)}
    unusable = {}
    kept = []
    for argument in rest:
        flag, given, value = argument.partition("=")
        if given and flag in switches:
            try:
                argument = flag if switches[flag].kind.read(value.strip()) else f"--no-{flag[2:]}"
            except ValueError:
                unusable[switches[flag].name] = value
                continue
        kept.append(argument)
    return {**vars(_parsed(parser, kept)), **unusable}


def _parsed(parser: argparse.ArgumentParser, rest: list[str]) -> argparse.Namespace:
    found, unknown = parser.parse_known_args(_joined(parser, rest))
    if unknown := [each for each in unknown if each != "--"]:
        parser.error(f"what is {unknown[0]!r}? Put a value with spaces in quotes")
    return found


def _joined(parser: argparse.ArgumentParser, rest: list[str]) -> list[str]:
    """Each option with its value as one argument: apart, a value that begins with a dash is an option to argparse."""
    known = parser._option_string_actions
    joined: list[str] = []
    left = iter(rest)
    for argument in left:
        if argument == "--":
            return [*joined, argument, *left]
        name, given, value = argument.partition("=")
        action = known.get(name)
        if action is None:
            if argument.startswith("-") and argument != "-" and not parser._negative_number_matcher.match(argument):
                _not_an_option(parser, argument)
        elif action.nargs is not None and given:
            parser.error(f"{name} takes no value, and got {value!r}")
        elif action.nargs is None and not given:
            behind = next(left, None)
            if behind is None or behind == "--":
                about = "" if action.help in (None, argparse.SUPPRESS) else f": {action.help}".replace("%%", "%")
                parser.error(f"{name} needs a value{about}")
            if behind.partition("=")[0] in known:
                parser.error(f"{name} needs a value; where {behind} is that value, write {name}={behind}")
            argument = f"{name}={behind}"
        joined.append(argument)
    return joined


def _not_an_option(parser: argparse.ArgumentParser, argument: str) -> NoReturn:
    name = argument.partition("=")[0]
    if name in _BEFORE:  # no mistake in spelling: others have it
        parser.error(f"{name} means nothing here; there is no id to give")
    is_text = not argument.startswith("--") or " " in argument
    if is_text and any(not action.option_strings for action in parser._actions):
        parser.error(
            f"there is no option {argument}; a text that begins with a dash stands behind --, as in "
            f"{parser.prog} -- {argument!r}"
        )
    parser.error(f"there is no option {name}{_near(name, [flag for flag in _offered(parser) if flag[:2] == '--'])}")


def _offered(parser: argparse.ArgumentParser) -> Iterable[str]:
    for action in parser._actions:
        if not action.dest.endswith(_IGNORED):
            yield from action.option_strings


def _parser(command: Command) -> Parser:
    description = f"{command.doc}\n\n{command.more}" if command.more else command.doc
    parser = Parser(
        prog=" ".join(("psi-tool", *command.words)),
        usage=None if command.does == "serve" else command.usage,
        description=description,
        epilog=_examples(command.examples),
        formatter_class=Help,
        allow_abbrev=False,
        add_help=False,
    )
    if command.does == "serve":
        from psi.settings import add_flags

        add_flags(parser)
    for option in command.options:
        _add(parser, option)
    common = parser.add_argument_group("options that commands share") if command.shared else parser
    for option in command.shared:
        _add(common, option)
    common.add_argument("-h", "--help", action="help", help=HELP[0].doc)
    # Whoever sets up a line once, with its URL and its form, need not know which command has a use for them.
    has = {option.name for option in command.all_options}
    for option in (*CONNECTION, *OUTPUT):
        if option.name not in has:
            how: dict[str, Any] = {} if option.takes_value else {"action": "store_const", "const": True}
            parser.add_argument(option.flag, dest=f"{option.name}{_IGNORED}", help=argparse.SUPPRESS, **how)
    return parser


def _add(parser: argparse._ActionsContainer, option: Option) -> None:
    doc = option.doc.replace("%", "%%")
    if option.variable:
        doc = f"{doc} [{option.variable}]"
    if option.kind == FLAG:
        parser.add_argument(option.flag, dest=option.name, action="store_const", const=True, help=doc)
        return
    more: dict[str, Any] = {"choices": option.choices} if option.choices else {}
    if option.kind == INTEGER:
        more["type"] = _integer
    if option.place:
        parser.add_argument(f"{option.name} alone", nargs="?", metavar=option.place, help=doc, **more)
        doc = argparse.SUPPRESS  # the same thing, said once
    metavar = None if option.choices else option.value or None
    if option is not RAW.options[0]:
        # What is required is checked when all is read: a mistyped option is the likelier reason that it is missing.
        parser.add_argument(option.flag, dest=option.name, metavar=metavar, help=doc, **more)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a whole number is needed, not {text!r}") from None


# -- help


def overview() -> str:
    """What ``psi-tool`` alone prints."""
    lines = [
        "psi-tool: ask and change a running psi.",
        "",
        "usage: psi-tool COMMAND ...        one of those below",
        "       psi-tool REQUEST            any request, as EDN or JSON; @FILE and - read it",
        "",
        "commands:",
    ]
    for word, doc, below in groups():
        if below:
            ops = " | ".join(command.words[1] for command in below)
            lines.append(f"  {word:<12}{ops}")
        else:
            lines.append(f"  {word:<12}{doc}")
    lines += ["", "options that commands share, before or behind the command:"]
    for option in SHARED:
        variable = f" [{option.variable}]" if option.variable else ""
        lines.append(f"  {option.typed:<16}{option.doc}{variable}")
    lines += ["", _examples(EXAMPLES), "", "More about one: psi-tool COMMAND --help, or psi-tool help COMMAND"]
    return "\n".join(lines)


def _show_overview(rest: list[str]) -> None:
    if rest and not _asks(rest, "-h", "--help"):
        wrong("a command or a request is missing")
    text(overview())


def _show_group(word: str, rest: list[str]) -> None:
    """Only the first word of a group was given."""
    below = [command for command in COMMANDS if command.words[0] == word]
    if not _asks(rest, "-h", "--help"):
        wrong(f"what of it? There are: {', '.join(command.words[1] for command in below)}", f"psi-tool {word}")
    lines = [GROUPS[word], "", "commands:"]
    lines += [f"  {command.name:<20}{command.doc}" for command in below]
    examples = tuple(example for command in below for example in command.examples[:1])
    text("\n".join([*lines, "", _examples(examples), "", f"More about one: psi-tool {word} COMMAND --help"]))


def _examples(examples: tuple[str, ...]) -> str:
    return "\n".join(("examples:" if len(examples) > 1 else "example:", *(f"  {example}" for example in examples)))


def _columns() -> int:
    try:
        told = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
        return max(40, told or 80)  # there are terminals that tell no size
    except (OSError, ValueError, AttributeError):
        return 80
