"""The commands of the command line, declared once: what is typed, what it means, an example.

Parsing, help, shell completion and the reference page are made from this table; a test holds it to the declarations of
psi-tool, so that no action, op or key can be lacking here. It sends nothing and prints nothing.

This is read whenever a request is sent, and starting up is part of what a user waits for. So there are plain classes
and no dataclasses, no typing at run time, and no room of psi.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

__all__ = [
    "BROKEN_PIPE",
    "COMMANDS",
    "CONNECTION",
    "DEFAULT_URL",
    "ERROR",
    "GROUPS",
    "HELP",
    "INTERRUPTED",
    "LATER",
    "NO_SERVICE",
    "OK",
    "OUTPUT",
    "RAW",
    "TERMINATED",
    "WITHOUT_ID",
    "WITHOUT_SESSION",
    "WRONG_USAGE",
    "Command",
    "Option",
    "find",
    "groups",
]

DEFAULT_URL: Final = "http://127.0.0.1:8420"

# Exit codes are part of the public surface; the last three are how a shell counts what a signal ended.
OK: Final = 0
ERROR: Final = 1  # the service said so
WRONG_USAGE: Final = 2
NO_SERVICE: Final = 3
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
TERMINATED: Final = 143

TEXT: Final = "text"
INTEGER: Final = "integer"
MAP: Final = "map"  # EDN or JSON
FLAG: Final = "flag"  # given or not, without a value


class Option:
    """Something that can be typed behind a command: ``--name VALUE``. With ``place`` the value may stand alone; with
    ``file`` it may be read, from @FILE, or from standard input with - or @-."""

    __slots__ = ("choices", "doc", "file", "kind", "name", "place", "required", "shown", "variable")

    def __init__(
        self,
        name: str,
        doc: str,
        shown: str = "",
        *,
        kind: str = TEXT,
        choices: tuple[str, ...] = (),
        required: bool = False,
        place: str = "",
        variable: str = "",
        file: bool = False,
    ) -> None:
        self.name = name
        self.doc = doc
        self.shown = shown  # what stands for the value in help; nothing for a flag
        self.kind = kind
        self.choices = choices
        self.required = required
        self.place = place
        self.variable = variable  # of the environment, taken where the option is not given
        self.file = file or kind == MAP

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def takes_value(self) -> bool:
        return self.kind != FLAG

    @property
    def value(self) -> str:
        """The value as help shows it."""
        return "|".join(self.choices) or self.shown

    @property
    def typed(self) -> str:
        return f"{self.flag} {self.value}" if self.takes_value else self.flag


class Command:
    """One command. ``does`` names who carries it out; a request's options are the keys of the request."""

    __slots__ = ("doc", "does", "examples", "more", "options", "shared", "words")

    def __init__(
        self,
        words: str,
        doc: str,
        options: tuple[Option, ...] = (),
        examples: tuple[str, ...] = (),
        *,
        does: str = "request",
        shared: tuple[Option, ...] = (),
        more: str = "",
    ) -> None:
        self.words = tuple(words.split())
        self.doc = doc
        self.options = options
        self.examples = examples
        self.does = does
        self.shared = shared  # the options that it has in common with others
        self.more = more  # a further paragraph of help

    @property
    def name(self) -> str:
        return " ".join(self.words)

    @property
    def all_options(self) -> tuple[Option, ...]:
        return (*self.options, *self.shared)

    @property
    def usage(self) -> str:
        parts = ["psi-tool", *self.words]
        for option in self.options:
            if option.place:
                parts.append(option.place if option.required else f"[{option.place}]")
        for option in self.options:
            if not option.place:
                parts.append(option.typed if option.required else f"[{option.typed}]")
        return " ".join(parts)


CONNECTION: Final = (
    Option("url", f"where the service is; {DEFAULT_URL} where nothing is said", "URL", variable="PSI_URL"),
    Option("session", "the invoking session", "ID", variable="PSI_SESSION"),
    Option("token", "an API token, for a service that runs with --auth", "TOKEN", variable="PSI_TOKEN"),
)
OUTPUT: Final = (
    Option("json", "answer as JSON, one line; what a pipe gets anyway", kind=FLAG),
    Option("edn", "answer as EDN", kind=FLAG),
)
_ONLY_ID: Final = Option(
    "only-id", "answer with the id of the run, schedule or session alone, of a list one in each line", kind=FLAG
)
SHARED: Final = (*CONNECTION, *OUTPUT, _ONLY_ID)
# What works without a session must not fail because of one that has gone: here it counts only where it is typed.
WITHOUT_SESSION: Final = (
    CONNECTION[0],
    Option("session", "the invoking session; PSI_SESSION does not count here, since none is needed", "ID"),
    *SHARED[2:],
)
# What is asked of the graph has no id of its own.
WITHOUT_ID: Final = (*CONNECTION, *OUTPUT)
HELP: Final = (
    Option("help", "show this and end", kind=FLAG),
    Option("version", "show the version and end", kind=FLAG),
)

RAW: Final = Command(
    "",
    "Send any request, written as EDN or JSON; @FILE reads it from a file, - from standard input.",
    (
        Option(
            "request",
            "a map with `action`, as EDN or JSON; @FILE reads it from a file, - from standard input",
            required=True,
            place="REQUEST",
            file=True,
        ),
    ),
    (
        """psi-tool '{:action "scheduler" :op "list"}'""",
        """echo '{"action": "session", "op": "list"}' | psi-tool -""",
    ),
    does="raw",
    shared=SHARED,
)

# A word that opens a group of commands, and what the group is about.
GROUPS: Final = {
    "scheduler": "Prompts for later: one-shot, volatile, in the memory of the service.",
    "session": "The sessions themselves.",
    "token": "API tokens, for a service that runs with --auth. They are kept in its data folder, so run this there.",
}

# Named in the contract, and not part of this version: what to say instead of "no such command".
LATER: Final = {
    "mcp": "psi-tool mcp, the MCP server, is not part of this version; it comes with a later one.",
    "recall": "psi-tool recall, durable recalls, is not part of this version; it comes with a later one.",
    "cron": "psi-tool cron, jobs that come again, is not part of this version; it comes with a later one.",
}

_WHOSE: Final = Option("session-id", "the session that is meant; left out, the invoking one", "ID")
_WHICH: Final = Option("session-id", "the session; left out, the invoking one", "ID", place="SESSION")
_CONFIG_SHOWN: Final = "EDN|JSON|@FILE|@-"

SCOPES: Final = ("read", "write", "admin")
_DATA: Final = Option(
    "data", "the folder that the service keeps its data in; .psi where nothing is said", "DIR", variable="PSI_DATA"
)

COMMANDS: Final = (
    Command(
        "serve",
        "Start the service.",
        examples=("psi-tool serve", "psi-tool serve --port 9000 --data /var/lib/psi --auth"),
        does="serve",
        more="Every option is also an environment variable, PSI_ and its name: docs/settings.md.",
    ),
    Command(
        "scheduler create",
        "Schedule a prompt. Exactly one of --delay-ms and --at is needed.",
        (
            Option(
                "kind",
                "message: the prompt comes back as a turn of this session; session: it opens a fresh one",
                choices=("message", "session"),
                required=True,
            ),
            Option("message", "the prompt", "TEXT", required=True),
            Option("delay-ms", "milliseconds from now, 1000 to 86400000 (24 hours)", "N", kind=INTEGER),
            Option("at", "an instant in UTC, such as 2026-04-22T13:00:00Z; one that is past fires at once", "T"),
            Option("label", "a short name for people", "L"),
            Option("session-config", "what the fresh session is to be, for kind session", _CONFIG_SHOWN, kind=MAP),
            _WHOSE,
        ),
        (
            'psi-tool scheduler create --kind message --delay-ms 600000 --message "Check the build."',
            "psi-tool scheduler create --kind session --delay-ms 60000 --message \"Sum up.\" --session-config '{}'",
        ),
        shared=SHARED,
    ),
    Command(
        "scheduler list",
        "The schedules of the session that are still to come.",
        (_WHOSE,),
        ("psi-tool scheduler list",),
        shared=SHARED,
    ),
    Command(
        "scheduler cancel",
        "Cancel a schedule that is still to come.",
        (Option("schedule-id", "the schedule, sch-…", "ID", required=True, place="ID"), _WHOSE),
        ("psi-tool scheduler cancel sch-f81d4fae-7dec-41d0-a765-00a0c91e6bf6",),
        shared=SHARED,
    ),
    Command(
        "session create",
        "A fresh session.",
        (
            Option("name", "what it is called", "NAME", place="NAME"),
            Option("config", "what it is to be", _CONFIG_SHOWN, kind=MAP),
        ),
        (
            'psi-tool session create "First steps"',
            "psi-tool session create --name Builds --config '{:thinking-level :low}'",
        ),
        shared=WITHOUT_SESSION,
    ),
    Command("session list", "Every session, the oldest first.", (), ("psi-tool session list",), shared=WITHOUT_SESSION),
    Command(
        "session show",
        "One session.",
        (_WHICH,),
        ("psi-tool session show ses-7d44e4a1-0f0c-4c5e-9d51-3f5b8c1f2a60",),
        shared=SHARED,
    ),
    Command(
        "session submit",
        "Submit a prompt. Answers with the run, which goes on; with --wait when it has ended.",
        (
            Option("message", "the prompt", "TEXT", required=True, place="MESSAGE"),
            Option(
                "wait",
                "answer when the run has ended, with what it said; one that failed has the exit code 1",
                kind=FLAG,
            ),
            _WHOSE,
        ),
        ('psi-tool session submit "/say Hello." --wait',),
        shared=SHARED,
    ),
    Command(
        "session stop",
        "Ask the session's run to stop.",
        (_WHICH,),
        ("psi-tool session stop",),
        shared=SHARED,
    ),
    Command(
        "session close",
        "Stop the session's run, cancel its schedules and let it go.",
        (_WHICH,),
        ("psi-tool session close",),
        shared=SHARED,
    ),
    Command(
        "query",
        "Ask the attribute graph, in EQL.",
        (
            Option(
                "query",
                "an EQL vector; @FILE reads it from a file, - from standard input",
                "EQL|@FILE|-",
                required=True,
                place="EQL",
                file=True,
            ),
            Option("entity", "what the query starts from: a map of attributes", _CONFIG_SHOWN, kind=MAP),
            _WHOSE,
            Option("explain", "show what would be called; nothing is", kind=FLAG),
        ),
        (
            "psi-tool query '[:psi.scheduler/pending-count]'",
            "psi-tool query '[{:psi.system/sessions [:psi.agent-session/phase]}]' --explain",
            "psi-tool query @sessions.eql",
        ),
        does="query",
        shared=WITHOUT_ID,
    ),
    Command(
        "mutate",
        "Call a mutation of the graph by its name.",
        (
            Option("mutation", "its qualified name", "NAME", required=True, place="NAME"),
            Option("params", "its params: a map", _CONFIG_SHOWN, kind=MAP),
            _WHOSE,
        ),
        ("psi-tool mutate psi.agent-session/create --params '{:name \"First\"}'",),
        shared=WITHOUT_ID,
    ),
    Command(
        "watch",
        "Show what happens, as it happens: events, and countdowns of what is scheduled.",
        (Option("all", "watch all sessions, also where PSI_SESSION names one", kind=FLAG),),
        ("psi-tool watch", "psi-tool watch --session ses-7d44e4a1-0f0c-4c5e-9d51-3f5b8c1f2a60"),
        does="watch",
        shared=(
            CONNECTION[0],
            Option("session", "watch this session only; left out, all of them", "ID", variable="PSI_SESSION"),
            CONNECTION[2],
            Option("json", "one line of JSON for each event; what a pipe gets anyway", kind=FLAG),
            Option("edn", "one line of EDN for each event", kind=FLAG),
        ),
        more="Goes on until it is interrupted, and connects again when the service was away.",
    ),
    Command(
        "schema",
        "Print what psi-tool takes, in the form that a model provider or a client wants. Needs no service.",
        (
            Option(
                "format",
                "openai where nothing is said; graphql prints the SDL, which --json and --edn make a string of",
                choices=("openai", "anthropic", "mcp", "graphql"),
            ),
        ),
        ("psi-tool schema --format anthropic", "psi-tool schema --format graphql > schema.graphql"),
        does="schema",
        shared=OUTPUT,
    ),
    Command(
        "token create",
        "Make a token. It is shown this once and kept nowhere.",
        (
            Option("name", "what it is for", "NAME", place="NAME"),
            Option("user", "whose it is; local where nothing is said", "USER"),
            Option(
                "scope", "what it allows; each includes those before it; write where nothing is said", choices=SCOPES
            ),
            Option("expires", "how long it is good for, such as 12h or 30d; for ever where nothing is said", "LENGTH"),
            Option("plain", "print the token and nothing else", kind=FLAG),
            _DATA,
        ),
        (
            "psi-tool token create laptop --scope read --expires 30d",
            "export PSI_TOKEN=$(psi-tool token create --plain)",
        ),
        does="token",
        shared=OUTPUT,
    ),
    Command(
        "token list",
        "The tokens there are, without their text.",
        (Option("user", "those of one user", "USER"), _DATA),
        ("psi-tool token list",),
        does="token",
        shared=OUTPUT,
    ),
    Command(
        "token revoke",
        "End a token and its logins, at once.",
        (Option("id", "the token, tok-…", "ID", required=True, place="ID"), _DATA),
        ("psi-tool token revoke tok-5f2c1e",),
        does="token",
        shared=OUTPUT,
    ),
    Command(
        "completion",
        "Print a script that lets the shell complete psi-tool.",
        (
            Option(
                "shell",
                "the shell that shall complete",
                choices=("bash", "zsh", "fish"),
                required=True,
                place="bash|zsh|fish",
            ),
        ),
        (
            'eval "$(psi-tool completion bash)"',
            "psi-tool completion zsh > ~/.zfunc/_psi-tool",
            "psi-tool completion fish > ~/.config/fish/completions/psi-tool.fish",
        ),
        does="completion",
    ),
)


def find(words: tuple[str, ...]) -> Command | None:
    for command in COMMANDS:
        if command.words == words:
            return command
    return None


def groups() -> Iterator[tuple[str, str, tuple[Command, ...]]]:
    """Each first word with what it is about and, where it opens a group, the commands in it."""
    for word in dict.fromkeys(command.words[0] for command in COMMANDS):
        found = tuple(command for command in COMMANDS if command.words[0] == word)
        if word in GROUPS:
            yield word, GROUPS[word], found
        else:
            yield word, found[0].doc, ()
