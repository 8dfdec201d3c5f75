"""Scripts that let a shell complete psi-tool, made from the table of commands. They call nothing when they complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tool.commands import COMMANDS, FLAG, HELP, MAP, SHARED, Command, Option, groups

__all__ = ["options_of", "script"]

_FOLDERS: Final = ("data",)


def script(shell: str) -> str:
    return _SHELLS[shell]()


def options_of(command: Command) -> tuple[Option, ...]:
    """Everything that can be typed behind a command; for ``serve`` that is made from the settings."""
    if command.does != "serve":
        return (*command.all_options, HELP[0])
    from psi.settings import DECLARED

    found = []
    for setting in DECLARED:
        name, doc = setting.name.replace("_", "-"), setting.doc.replace("`", "")
        if isinstance(setting.default, bool):
            found += [Option(name, doc, kind=FLAG), Option(f"no-{name}", f"the opposite of --{name}", kind=FLAG)]
        else:
            words = tuple(setting.kind.metavar.split("|")) if setting.kind.metavar.islower() else ()
            found.append(Option(name, doc, setting.kind.metavar, choices=words, variable=setting.variable))
    return (*found, HELP[0])


def _first_words() -> list[str]:
    return [word for word, _, _ in groups()]


def _with_values() -> list[str]:
    """Every flag that is followed by a value, so that the value is not taken for a word of the command."""
    every = {option.flag for command in COMMANDS for option in options_of(command) if option.takes_value}
    return sorted(every)


def _words_alone(command: Command) -> tuple[str, ...]:
    """The words that may stand alone behind a command."""
    return next((option.choices for option in command.options if option.place and option.choices), ())


# -- bash

_BASH: Final = """\
# bash completion for psi-tool. To use it: eval "$(psi-tool completion bash)"
_psi_tool() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    local command= word skip= place
    COMPREPLY=()
    for ((place = 1; place < COMP_CWORD; place++)); do
        word=${{COMP_WORDS[place]}}
        if [[ $skip ]]; then
            skip=
            continue
        fi
        case $word in
            {valued}) skip=1 ;;
            -*) ;;
            *)
                case "$command $word" in
                    {words}) command="$command $word" ;;
                esac
                ;;
        esac
    done
    case "$command $previous" in
{values}
    esac
    if [[ $current == -* ]]; then
        case $command in
{options}
        esac
        return
    fi
    case $command in
{alone}
    esac
}}
complete -o bashdefault -F _psi_tool psi-tool
"""


def _bash() -> str:
    return _BASH.format(
        valued="|".join(_with_values()),
        words="|".join(sorted({f'" {" ".join(part)}"' for part in _beginnings()})),
        values="\n".join(_bash_values()),
        options="\n".join(_bash_options()),
        alone="\n".join(_bash_alone()),
    )


def _beginnings() -> Iterator[tuple[str, ...]]:
    """Each command, and each word that opens a group."""
    for command in COMMANDS:
        yield command.words
        yield command.words[:1]


def _bash_values() -> Iterator[str]:
    for command in COMMANDS:
        for option in options_of(command):
            if option.takes_value:
                yield f'        " {command.name} {option.flag}") {_bash_value(option)}; return ;;'
    # Before the command is known, and wherever it is the same for all.
    for option in SHARED:
        if option.takes_value:
            yield f'        *" {option.flag}") return ;;'


def _bash_value(option: Option) -> str:
    if option.choices:
        return _bash_reply(option.choices)
    if option.kind == MAP:
        # A file stands behind an @, which belongs to the word.
        return '[[ $current == @* ]] && COMPREPLY=($(compgen -P @ -f -- "${current#@}"))'
    if option.name in _FOLDERS:
        return 'COMPREPLY=($(compgen -d -- "$current"))'
    return ":"


def _bash_reply(words: Iterable[str]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current"))'


def _bash_options() -> Iterator[str]:
    for command in COMMANDS:
        yield f'            " {command.name}") {_bash_reply(option.flag for option in options_of(command))} ;;'
    yield f"            *) {_bash_reply(option.flag for option in (*SHARED, *HELP))} ;;"


def _bash_alone() -> Iterator[str]:
    yield f'        "") {_bash_reply(_first_words())} ;;'
    for word, _, below in groups():
        if below:
            yield f'        " {word}") {_bash_reply(command.words[1] for command in below)} ;;'
    for command in COMMANDS:
        if words := _words_alone(command):
            yield f'        " {command.name}") {_bash_reply(words)} ;;'


# -- zsh

_ZSH: Final = """\
#compdef psi-tool
# zsh completion for psi-tool. To use it, put it into a folder of $fpath under the name _psi-tool.
_psi_tool() {{
    local curcontext=$curcontext state line ret=1
    typeset -A opt_args
    _arguments -C -S \\
{shared}
        '1: :->command' \\
        '*:: :->behind' && ret=0
    case $state in
        command)
            local -a commands=(
{commands}
            )
            _describe -t commands 'psi-tool command' commands && ret=0
            ;;
        behind)
            curcontext=${{curcontext%:*}}-$line[1]:
            case $line[1] in
{behind}
            esac
            ;;
    esac
    return ret
}}

{functions}
if [[ $funcstack[1] == _psi-tool ]]; then
    _psi_tool "$@"
else
    compdef _psi_tool psi-tool
fi
"""


def _zsh() -> str:
    alone = [command for command in COMMANDS if len(command.words) == 1]
    behind = [f"                {each.words[0]}) {_zsh_function(each.words)} && ret=0 ;;" for each in alone]
    behind += [f"                {word}) {_zsh_function((word,))} && ret=0 ;;" for word, _, below in groups() if below]
    return _ZSH.format(
        shared="\n".join(f"        {_zsh_option(option)} \\" for option in (*SHARED, *HELP)),
        commands="\n".join(f"                {_zsh_quoted(f'{word}:{doc}')}" for word, doc, _ in groups()),
        behind="\n".join(behind),
        functions="\n".join(_zsh_functions()),
    )


def _zsh_function(words: tuple[str, ...]) -> str:
    return f"_psi_tool_{'_'.join(words)}"


def _zsh_functions() -> Iterator[str]:
    for word, _, below in groups():
        if below:
            yield from _zsh_group(word, below)
    for command in COMMANDS:
        lines = [_zsh_option(option) for option in options_of(command)]
        words = " ".join(_words_alone(command))
        for option in command.options:
            if option.place:
                what = option.doc.replace(":", "\\:")
                lines.append(_zsh_quoted(f"1::{what}:({words})" if words else f"1::{what}: "))
        body = " \\\n".join(f"        {line}" for line in lines)
        yield f"{_zsh_function(command.words)}() {{\n    _arguments -S \\\n{body}\n}}\n"


def _zsh_group(word: str, below: tuple[Command, ...]) -> Iterator[str]:
    shared = "\n".join(f"        {_zsh_option(option)} \\" for option in (*SHARED, HELP[0]))
    ops = "\n".join(f"                {_zsh_quoted(f'{each.words[1]}:{each.doc}')}" for each in below)
    cases = "\n".join(f"                {each.words[1]}) {_zsh_function(each.words)} && ret=0 ;;" for each in below)
    yield f"""\
{_zsh_function((word,))}() {{
    local curcontext=$curcontext state line ret=1
    typeset -A opt_args
    _arguments -C -S \\
{shared}
        '1: :->op' \\
        '*:: :->behind' && ret=0
    case $state in
        op)
            local -a ops=(
{ops}
            )
            _describe -t commands '{word} command' ops && ret=0
            ;;
        behind)
            case $line[1] in
{cases}
            esac
            ;;
    esac
    return ret
}}
"""


def _zsh_option(option: Option) -> str:
    doc = option.doc.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    if not option.takes_value:
        return _zsh_quoted(f"{option.flag}[{doc}]")
    what = option.name
    if option.choices:
        action = f"({' '.join(option.choices)})"
    elif option.kind == MAP:
        action = "{ compset -P @ && _files }"
    elif option.name in _FOLDERS:
        action = "_files -/"
    else:
        action = " "
    return _zsh_quoted(f"{option.flag}=[{doc}]:{what}:{action}")


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# -- fish


def _fish() -> str:
    return "\n".join(
        [
            "# fish completion for psi-tool. To use it, put it into ~/.config/fish/completions/psi-tool.fish",
            *_fish_words(),
            "complete -c psi-tool -f",
            *_fish_lines(),
            "",
        ]
    )


def _fish_words() -> Iterator[str]:
    """A function that tells whether the words before the cursor are those of a command, whatever options stand among
    them."""
    yield "function __psi_tool_at"
    yield "    set -l found"
    yield "    set -l skip 0"
    yield "    set -l words (commandline -opc)"
    yield "    set -e words[1]"
    yield "    for word in $words"
    yield "        if test $skip -eq 1"
    yield "            set skip 0"
    yield "            continue"
    yield "        end"
    yield "        switch $word"
    yield f"            case {' '.join(_with_values())}"
    yield "                set skip 1"
    yield "            case '-*'"
    yield "            case '*'"
    yield '                switch "$found $word"'
    yield f"                    case {' '.join(sorted({_fish_quoted(' ' + ' '.join(each)) for each in _beginnings()}))}"
    yield '                        set found "$found $word"'
    yield "                end"
    yield "        end"
    yield "    end"
    yield '    test "$found" = "$argv"'
    yield "end"


def _fish_lines() -> Iterator[str]:
    nothing_yet = _fish_at("")
    for option in (*SHARED, *HELP):
        yield _fish_option(nothing_yet, option)
    for word, doc, below in groups():
        yield f"complete -c psi-tool -n {nothing_yet} -a {word} -d {_fish_quoted(doc)}"
        if below:  # between the two words, too, the shared options may stand
            yield from (_fish_option(_fish_at(f" {word}"), option) for option in (*SHARED, *HELP))
        for command in below:
            yield (
                f"complete -c psi-tool -n {_fish_at(f' {word}')} -a {command.words[1]} -d {_fish_quoted(command.doc)}"
            )
    for command in COMMANDS:
        here = _fish_at(f" {command.name}")
        for option in options_of(command):
            yield _fish_option(here, option)
        if words := _words_alone(command):
            yield f"complete -c psi-tool -n {here} -a {_fish_quoted(' '.join(words))}"


def _fish_at(words: str) -> str:
    return _fish_quoted(f'__psi_tool_at "{words}"')


def _fish_option(condition: str, option: Option) -> str:
    value = ""
    if option.choices:
        value = f" -x -a {_fish_quoted(' '.join(option.choices))}"
    elif option.name in _FOLDERS or option.kind == MAP:
        value = " -r -F"
    elif option.takes_value:
        value = " -x"
    return f"complete -c psi-tool -n {condition} -l {option.name}{value} -d {_fish_quoted(option.doc)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}
