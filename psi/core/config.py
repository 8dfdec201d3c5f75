"""What a session is told to be: its model, prompts, skills and tools, read from data with every problem at once.

One reader for all: a schedule's ``session-config``, a new session's ``config`` and the check that a client may ask for
beforehand. Keys and values come from EDN or from JSON, so a keyword may arrive as its text. Knows no runtime; which
tools exist is an argument.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from psi.core.clock import read_instant
from psi.core.errors import ConfigInvalid
from psi.core.message import ROLES, Message, picture_part, says, text_part
from psi.edn import Char, Keyword, Map, ReadError, Symbol, WriteError, dumps, freeze, loads, thaw

__all__ = [
    "BREAKPOINTS",
    "CONFIG_KEYS",
    "NO_CONFIG",
    "THINKING_LEVELS",
    "Key",
    "Model",
    "Problem",
    "SessionConfig",
    "is_text",
    "key_name",
    "read_config",
    "shown",
]

THINKING_LEVELS: Final = ("off", "minimal", "low", "medium", "high", "xhigh")
BREAKPOINTS: Final = ("system", "tools")
_LONGEST_NAME: Final = 200
_SUPPORTED: Final = "a supported key"
_HINTS: Final = 20  # unknown keys that are looked for among the known ones
_WHOLE: Final = "a map, or an EDN string of one"
_NAME: Final = re.compile(r"[^\W\d][\w.*+!?$%&=<>-]*(/[^\W\d][\w.*+!?$%&=<>-]*)?")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what is accepted there, what came, and what is the matter with that."""

    path: str
    expected: str
    got: str
    matter: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        matter = f", which {self.matter}" if self.matter else ""
        return f"{where}expected {self.expected}, got {self.got}{matter}"

    def as_data(self) -> dict[str, Any]:
        return {"path": self.path, "expected": self.expected, "got": self.got, "message": str(self)}


@dataclass(frozen=True, slots=True)
class Model:
    provider: str
    id: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.id}"

    def as_data(self) -> dict[str, Any]:
        return {"provider": self.provider, "id": self.id}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """A config that was read; None and empty stand for what was not said."""

    session_name: str | None = None
    system_prompt: str | None = None
    developer_prompt: str | None = None
    developer_prompt_source: Keyword | None = None
    model: Model | None = None
    thinking_level: Keyword | None = None
    skills: tuple[Map, ...] = ()
    tool_ids: tuple[str, ...] | None = None  # None: every tool there is
    preloaded_messages: tuple[Message, ...] = ()
    cache_breakpoints: frozenset[Keyword] = frozenset()
    prompt_component_selection: Map | None = None

    def as_data(self) -> dict[str, Any]:
        """The config as data that reads back to the same config."""
        found: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value != each.default:
                found[each.name.replace("_", "-")] = _plain(value)
        return found

    def summary(self) -> dict[str, Any]:
        """What may be shown of it anywhere: counts and flags, never a prompt or a message."""
        return {
            "session-name": self.session_name,
            "model": self.model.as_data() if self.model else None,
            "thinking-level": self.thinking_level,
            "skill-count": len(self.skills),
            "tool-count": len(self.tool_ids or ()),
            "has-system-prompt?": bool(self.system_prompt),
            "has-developer-prompt?": bool(self.developer_prompt),
            "preloaded-message-count": len(self.preloaded_messages),
            "has-prompt-component-selection?": self.prompt_component_selection is not None,
        }


NO_CONFIG: Final = SessionConfig()


def _plain(value: Any) -> Any:
    if isinstance(value, Model | Message):
        return value.as_data()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return thaw(value)


@dataclass(slots=True)
class _Report:
    """What is being read, and what was found wrong with it so far."""

    tools: Collection[str]
    kept: bool = False  # it was accepted before
    problems: list[Problem] = field(default_factory=list)

    def expect(self, path: str, expected: str, value: Any) -> None:
        self.problems.append(Problem(path, expected, shown(value)))


Read = Callable[[_Report, str, Any], Any]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a config: its name, what it takes in words, and who reads it."""

    name: str
    takes: str
    read: Read = field(repr=False)


def read_config(value: Any, *, tools: Collection[str], who: str = "scheduler", kept: bool = False) -> SessionConfig:
    """Read a config from a map, or from an EDN string of one. Raises ConfigInvalid with all problems together.

    ``kept``: it was accepted before, perhaps when more was; a message of its may have parts that are not taken today.
    """
    if is_text(value):
        try:
            value = loads(value)
        except ReadError as problem:
            unread = Problem("", _WHOLE, shown(value), f"cannot be read: {problem}")
            raise ConfigInvalid([unread], (), who) from None
    if not isinstance(value, Mapping):
        raise ConfigInvalid([Problem("", _WHOLE, shown(value))], (), who)
    report = _Report(tools, kept)
    read: dict[str, Any] = {}
    unsupported: list[str] = []
    for key, item in value.items():
        name = key_name(key)
        known = _BY_NAME.get(name)
        if known is None:
            unsupported.append(name)
            # Looking for what a typo may have meant is slow, and after some of them it is no typo any more.
            accepted = _nearest_key(name) if len(unsupported) <= _HINTS else _SUPPORTED
            report.problems.append(Problem(name, accepted, shown(item)))
        elif known.name in read:
            report.expect(known.name, "one value", item)
        else:
            # nil says the same as leaving the key out.
            read[known.name] = None if item is None else known.read(report, known.name, item)
    if report.problems:
        raise ConfigInvalid(report.problems, sorted(unsupported), who)
    return SessionConfig(**{name.replace("-", "_"): item for name, item in read.items() if item is not None})


def _nearest_key(name: str) -> str:
    near = get_close_matches(name[:_LONGEST_NAME], [key.name for key in CONFIG_KEYS], n=1)
    return f"{_SUPPORTED} (did you mean `{near[0]}`?)" if near else _SUPPORTED


def key_name(key: Any) -> str:
    """The kebab-case name that a key stands for, however it was written."""
    return (str(key) if isinstance(key, str) else shown(key)).lstrip(":").replace("_", "-")


def is_text(value: Any) -> bool:
    """A string that can be written, and not one of EDN's other kinds of text."""
    if type(value) is not str and (not isinstance(value, str) or type(value) in _OTHER_TEXT):
        return False
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


_OTHER_TEXT: Final = (Keyword, Symbol, Char)


def shown(value: Any, limit: int = 60) -> str:
    """A value as people recognise it, cut short."""
    try:
        text = dumps(value)
    except WriteError:
        text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


# -- one reader for each kind of value; each returns the normal form, or None after a report


def _word(value: Any) -> str | None:
    """The name a keyword has, also where JSON made it a string."""
    return str(value).removeprefix(":") if is_text(value) or isinstance(value, Keyword) else None


def _text(report: _Report, path: str, value: Any) -> str | None:
    if is_text(value):
        return str(value)
    report.expect(path, "a string", value)
    return None


def _name(report: _Report, path: str, value: Any) -> str | None:
    if is_text(value) and value.strip() and len(value) <= _LONGEST_NAME:
        return str(value)
    report.expect(path, f"a non-blank string of at most {_LONGEST_NAME} characters", value)
    return None


def _filled(report: _Report, path: str, value: Any) -> str | None:
    if is_text(value) and value.strip():
        return str(value)
    report.expect(path, "a non-blank string", value)
    return None


def _keyword(report: _Report, path: str, value: Any) -> Keyword | None:
    name = _word(value)
    if name and _NAME.fullmatch(name):
        return Keyword(name)
    report.expect(path, "a keyword such as :explicit", value)
    return None


def _one_of(names: Iterable[str]) -> Read:
    allowed = tuple(names)

    def read(report: _Report, path: str, value: Any) -> Keyword | None:
        name = _word(value)
        if name in allowed:
            return Keyword(name)
        report.expect(path, f"one of {' '.join(f':{each}' for each in allowed)}", value)
        return None

    return read


def _vector(expected: str, element: Read) -> Read:
    def read(report: _Report, path: str, value: Any) -> tuple[Any, ...] | None:
        if not isinstance(value, list | tuple):
            report.expect(path, expected, value)
            return None
        return tuple(element(report, f"{path}[{place}]", item) for place, item in enumerate(value))

    return read


def _set(expected: str, element: Read) -> Read:
    def read(report: _Report, path: str, value: Any) -> frozenset[Any] | None:
        if not isinstance(value, set | frozenset | list | tuple):
            report.expect(path, expected, value)
            return None
        places = sorted(value, key=shown) if isinstance(value, set | frozenset) else value
        return frozenset(element(report, f"{path}[{place}]", item) for place, item in enumerate(places))

    return read


def _flag(report: _Report, path: str, value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    report.expect(path, "true or false", value)
    return None


def _entries(report: _Report, path: str, value: Mapping[Any, Any], readers: Mapping[str, Read]) -> dict[str, Any]:
    """The values of a map with these keys and no others."""
    found = {}
    for key, item in value.items():
        name = key_name(key)
        where = f"{path}.{name}"
        if name in found:
            report.expect(where, "one value", item)
        elif name in readers:
            found[name] = readers[name](report, where, item)
        else:
            report.expect(where, f"one of the keys {', '.join(readers)}", item)
    return found


def _model(report: _Report, path: str, value: Any) -> Model | None:
    expected = '{:provider "..." :id "..."} or "provider:id"'
    if is_text(value):
        provider, colon, name = value.partition(":")
        if colon and provider.strip() and name.strip():
            return Model(provider.strip(), name.strip())
    elif isinstance(value, Mapping):
        found = _entries(report, path, value, {"provider": _filled, "id": _filled})
        missing = [name for name in ("provider", "id") if name not in found]
        for name in missing:
            report.problems.append(Problem(f"{path}.{name}", "a non-blank string", "nothing"))
        return None if missing or None in found.values() else Model(found["provider"], found["id"])
    report.expect(path, expected, value)
    return None


def _skill(report: _Report, path: str, value: Any) -> Map | None:
    if is_text(value) and value.strip():
        named: Map = freeze({"name": str(value)})
        return named
    if isinstance(value, Mapping):
        entries = {key_name(key): item for key, item in value.items()}
        if _filled(report, f"{path}.name", entries.get("name")) is None:
            return None
        return _frozen(report, path, entries)
    report.expect(path, 'a skill name or a map such as {:name "..."}', value)
    return None


def _tool(report: _Report, path: str, value: Any) -> str | None:
    if is_text(value) and value in report.tools:
        return str(value)
    known = ", ".join(sorted(report.tools)) or "none"
    report.expect(path, f"the id of a tool this runtime has ({known})", value)
    return None


def _message(report: _Report, path: str, value: Any) -> Message | None:
    if not isinstance(value, Mapping):
        report.expect(path, "a map with :role and :content", value)
        return None
    readers = {"role": _role, "content": _content, "timestamp": _instant}
    found = _entries(report, path, value, readers)
    missing = [name for name in ("role", "content") if name not in found]
    for name in missing:
        report.problems.append(Problem(f"{path}.{name}", _NEEDED[name], "nothing"))
    if missing or found["role"] is None or found["content"] is None:
        return None
    return Message(role=found["role"], content=found["content"], timestamp=found.get("timestamp"))


_NEEDED: Final = {
    "role": "user, assistant or system",
    "content": 'a non-empty string or a vector of parts such as {:type :text :text "..."}',
}


def _role(report: _Report, path: str, value: Any) -> str | None:
    name = _word(value)
    if name in ROLES:
        return name
    report.expect(path, _NEEDED["role"], value)
    return None


def _content(report: _Report, path: str, value: Any) -> tuple[Map, ...] | None:
    if is_text(value) and value:
        return says(str(value))
    if isinstance(value, list | tuple) and value:
        return tuple(filter(None, (_part(report, f"{path}[{place}]", item) for place, item in enumerate(value))))
    report.expect(path, _NEEDED["content"], value)
    return None


def _part(report: _Report, path: str, value: Any) -> Map | None:
    if not isinstance(value, Mapping):
        report.expect(path, 'a part such as {:type :text :text "..."}', value)
        return None
    if report.kept:
        return _kept_part(report, path, value)
    kinds = [_word(item) for key, item in value.items() if key_name(key) == "type"]
    if not kinds:
        report.problems.append(Problem(f"{path}.type", _KINDS, "nothing"))
        return None
    readers = _PARTS.get(kinds[0] or "")
    if readers is None:
        report.expect(f"{path}.type", _KINDS, next(item for key, item in value.items() if key_name(key) == "type"))
        return None
    found = _entries(
        report, path, value, {"type": _one_of(_PARTS), **{name: read for name, (_, read) in readers.items()}}
    )
    for name, (takes, _) in readers.items():
        if name not in found:
            report.problems.append(Problem(f"{path}.{name}", takes, "nothing"))
    if len(found) <= len(readers) or None in found.values():
        return None
    return text_part(found["text"]) if kinds[0] == "text" else picture_part(found["media-type"], found["data"])


def _kept_part(report: _Report, path: str, value: Mapping[Any, Any]) -> Map | None:
    """A part as it was accepted once, when more was: what is kept is taken as it is."""
    entries = {key_name(key): item for key, item in value.items()}
    kind = _keyword(report, f"{path}.type", entries.get("type"))
    return None if kind is None else _frozen(report, path, {**entries, "type": kind})


def _media_type(report: _Report, path: str, value: Any) -> str | None:
    if is_text(value) and _IMAGE.fullmatch(value):
        return str(value)
    report.expect(path, _MEDIA_TYPE, value)
    return None


def _base64(report: _Report, path: str, value: Any) -> str | None:
    try:
        if is_text(value) and value and b64decode(value, validate=True):
            return str(value)
    except ValueError:
        pass
    report.expect(path, _DATA, value)
    return None


_IMAGE: Final = re.compile(r"image/[a-z0-9][a-z0-9.+-]{0,100}")
_MEDIA_TYPE: Final = 'the media type of an image, such as "image/png"'
_DATA: Final = "an image as base64 text"

# What a part may be, and what each has besides its type.
_PARTS: Final[dict[str, dict[str, tuple[str, Read]]]] = {
    "text": {"text": ("a string", _text)},
    "image": {"media-type": (_MEDIA_TYPE, _media_type), "data": (_DATA, _base64)},
}
_KINDS: Final = f"one of {' '.join(f':{each}' for each in _PARTS)}"


def _frozen(report: _Report, path: str, entries: dict[str, Any]) -> Map | None:
    """An open map, kept as it came; all that EDN can write may be in it."""
    try:
        dumps(entries)
        frozen: Map = freeze(entries)
        hash(frozen)
    except (WriteError, TypeError) as problem:
        unwritten = f"cannot be written: {problem}"
        report.problems.append(Problem(path, "values that EDN has, not nested too deep", "a map", unwritten))
        return None
    return frozen


def _instant(report: _Report, path: str, value: Any) -> datetime | None:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    found = read_instant(value) if is_text(value) else None
    if found is None:
        report.expect(path, "an ISO-8601 UTC instant", value)
    return found


def _selection(report: _Report, path: str, value: Any) -> Map | None:
    if not isinstance(value, Mapping):
        report.expect(path, "a map", value)
        return None
    names = _vector("a vector of strings", _text)
    found = _entries(
        report,
        path,
        value,
        {
            "components": _set("a set of keywords", _keyword),
            "tool-names": names,
            "skill-names": names,
            "extension-prompt-contributions": names,
            "agents-md?": _flag,
        },
    )
    frozen: Map = freeze(found)
    return frozen


CONFIG_KEYS: Final = (
    Key("session-name", f"non-blank string, up to {_LONGEST_NAME} characters", _name),
    Key("system-prompt", "string", _text),
    Key("developer-prompt", "string", _text),
    Key("developer-prompt-source", "keyword, e.g. `:explicit`", _keyword),
    Key("model", '`{:provider "..." :id "..."}` or `"provider:id"`', _model),
    Key("thinking-level", " ".join(f"`:{each}`" for each in THINKING_LEVELS), _one_of(THINKING_LEVELS)),
    Key("skills", "vector of names or of maps such as `{:name ..}`", _vector("a vector of skills", _skill)),
    Key("tool-ids", "vector of strings, each a tool the runtime has", _vector("a vector of tool ids", _tool)),
    Key(
        "preloaded-messages",
        "vector of `{:role :content [:timestamp]}`; role user, assistant or system",
        _vector("a vector of messages", _message),
    ),
    Key(
        "cache-breakpoints",
        f"set of {' '.join(f'`:{each}`' for each in BREAKPOINTS)}",
        _set("a set of :system and :tools", _one_of(BREAKPOINTS)),
    ),
    Key(
        "prompt-component-selection",
        "map of `:components` (set), `:tool-names`, `:skill-names`, `:extension-prompt-contributions` (vectors) and "
        "`:agents-md?` (boolean)",
        _selection,
    ),
)
_BY_NAME: Final = {key.name: key for key in CONFIG_KEYS}
