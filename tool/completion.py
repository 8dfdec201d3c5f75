"""Scripts that let a shell complete psi-tool, made from the table of commands. They call nothing when they complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tool.commands import COMMANDS, FLAG, HELP, SHARED, Command, Option, groups

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


def _is_file_alone(command: Command) -> bool:
    return any(option.place and option.file for option in command.options)


# -- bash

_BASH: Final = """\
# bash completion for psi-tool. To use it: eval "$(psi-tool completion bash)"
_psi_tool() {{
    local line=${{COMP_LINE:0:COMP_POINT}} words=() count=0
    local command= word skip= place current previous value typed kept=
    COMPREPLY=()
    # Bash takes words apart at = : and @, too. What no blank stands between is put together again.
    for ((place = 0; place <= COMP_CWORD; place++)); do
        word=${{COMP_WORDS[place]}}
        ((place == COMP_CWORD)) && word=${{line#"${{line%%[![:blank:]]*}}"}}
        if ((count)) && [[ $line == [![:blank:]]* ]]; then
            words[count - 1]+=$word
        else
            words[count++]=$word
        fi
        line=${{line#"${{line%%[![:blank:]]*}}"}}
        line=${{line#"$word"}}
    done
    current=${{words[count - 1]}} previous=${{words[count - 2]}} value=$current typed=
    if [[ $current == --*=* ]]; then
        previous=${{current%%=*}} value=${{current#*=}} typed=$previous=
    fi
    # Of a word that it takes apart, bash wants to be told the last part alone; an @ belongs to what stands behind it.
    word=$current
    [[ $COMP_WORDBREAKS == *=* ]] && word=${{word##*=}}
    [[ $COMP_WORDBREAKS == *:* ]] && word=${{word##*:}}
    [[ $COMP_WORDBREAKS == *@* && $word == *@* ]] && word=@${{word##*@}}
    kept=${{current%"$word"}}
    for ((place = 1; place < count - 1; place++)); do
        word=${{words[place]}}
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
_psi_tool_words() {{
    COMPREPLY=($(compgen -W "$1" -P "$typed" -- "$value"))
    COMPREPLY=("${{COMPREPLY[@]#"$kept"}}")
}}
_psi_tool_folders() {{
    local IFS=$'\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -P "$typed" -- "$value"))
    COMPREPLY=("${{COMPREPLY[@]#"$kept"}}")
}}
_psi_tool_file() {{
    # A file stands behind an @. With the sign it is no file to bash, so that what bash does for files is done here.
    local IFS=$'\n' file reply
    [[ $value == @* ]] || return
    for file in $(compgen -f -- "${{value#@}}"); do
        printf -v reply '%s%q' "$typed@" "$file"
        [[ -d $file ]] && reply+=/ && compopt -o nospace 2>/dev/null
        COMPREPLY+=("${{reply#"$kept"}}")
    done
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
    if option.file:
        return "_psi_tool_file"
    if option.name in _FOLDERS:
        return "_psi_tool_folders"
    return ":"


def _bash_reply(words: Iterable[str]) -> str:
    return f'_psi_tool_words "{" ".join(words)}"'


def _bash_options() -> Iterator[str]:
    for command in COMMANDS:
        yield f'            " {command.name}") {_bash_reply(option.flag for option in options_of(command))} ;;'
    yield f"            *) {_bash_reply(option.flag for option in (*SHARED, *HELP))} ;;"


def _bash_alone() -> Iterator[str]:
    yield f'        "") {_bash_reply(_first_words())}; _psi_tool_file ;;'
    for word, _, below in groups():
        if below:
            yield f'        " {word}") {_bash_reply(command.words[1] for command in below)} ;;'
    for command in COMMANDS:
        if words := _words_alone(command):
            yield f'        " {command.name}") {_bash_reply(words)} ;;'
        elif _is_file_alone(command):
            yield f'        " {command.name}") _psi_tool_file ;;'


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
            compset -P @ && _files && ret=0
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


_ZSH_FILE: Final = "{ compset -P @ && _files }"


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
                action = f"({words})" if words else _ZSH_FILE if option.file else " "
                lines.append(_zsh_quoted(f"1::{what}:{action}"))
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
    elif option.file:
        action = _ZSH_FILE
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
            *_FISH_FILE,
            "complete -c psi-tool -f",
            *_fish_lines(),
            "",
        ]
    )


# A file stands behind an @; behind `--config=` fish looks at the value alone.
_FISH_FILE: Final = (
    "function __psi_tool_file",
    "    set -l value (string replace -r -- '^--[^=]*=' '' (commandline -ct))",
    "    if string match -q -- '@*' $value",
    "        printf '@%s\\n' (__fish_complete_path (string sub -s 2 -- $value))",
    "    end",
    "end",
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
    yield f"complete -c psi-tool -n {nothing_yet} -a '(__psi_tool_file)'"
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
        elif _is_file_alone(command):
            yield f"complete -c psi-tool -n {here} -a '(__psi_tool_file)'"


def _fish_at(words: str) -> str:
    return _fish_quoted(f'__psi_tool_at "{words}"')


def _fish_option(condition: str, option: Option) -> str:
    value = ""
    if option.choices:
        value = f" -x -a {_fish_quoted(' '.join(option.choices))}"
    elif option.file:
        value = " -x -a '(__psi_tool_file)'"
    elif option.name in _FOLDERS:
        value = " -r -F"
    elif option.takes_value:
        value = " -x"
    return f"complete -c psi-tool -n {condition} -l {option.name}{value} -d {_fish_quoted(option.doc)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}
