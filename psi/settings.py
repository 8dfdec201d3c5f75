"""Every setting of the service, declared once: name, kind, default and a sentence.

Flags, ``PSI_*`` variables, their checks and the page of settings are all made from these declarations. A ``Settings``
that exists is right: whatever cannot be used is refused when one is made, all problems at once. Reads no environment by
itself, touches no file and opens no socket.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psi.errors import Refused

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _ArgumentGroup

__all__ = [
    "DECLARED",
    "Problem",
    "Setting",
    "Settings",
    "SettingsInvalid",
    "add_flags",
    "is_loopback",
    "read_origin",
    "read_seconds",
]


class Problem(NamedTuple):
    """One thing that cannot be used: where it came from, and a sentence about it."""

    source: str
    message: str

    def __str__(self) -> str:
        return self.message


class SettingsInvalid(Refused):
    """Some settings cannot be used; all of them are named."""

    code = "settings/invalid"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))

    def facts(self) -> dict[str, Any]:
        return {"problems": [problem._asdict() for problem in self.problems]}


# -- kinds of values: how one is read from text, which ones are accepted, and how one is shown


class Kind(NamedTuple):
    accepts: str  # goes on after "must be"
    metavar: str
    read: Callable[[str], Any]  # raises ValueError, without a word: `accepts` says it
    fits: Callable[[Any], bool]
    shows: Callable[[Any], str] = str


def _refuse() -> Any:
    raise ValueError


def _whole(low: int, high: int, metavar: str = "N") -> Kind:
    return Kind(
        f"a whole number from {low} to {high}",
        metavar,
        lambda text: int(text.replace("_", "")) if re.fullmatch(r"[0-9_]{1,20}", text) else _refuse(),
        lambda value: type(value) is int and low <= value <= high,
    )


def _number(low: float, high: float) -> Kind:
    return Kind(
        f"a number from {low:g} to {high:.0f}",
        "N",
        lambda text: float(text) if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", text) else _refuse(),
        lambda value: type(value) in (int, float) and low <= value <= high,
        lambda value: f"{value:g}",
    )


_DURATION: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) *(ms|s|m|min|h|d)?")
_SECONDS: Final = {None: 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def read_seconds(text: str) -> float:
    """A length of time as people write it: ``10``, ``500ms``, ``2m``, ``12h``, ``30d``. ValueError for all else."""
    found = _DURATION.fullmatch(text.strip())
    return float(found[1]) * _SECONDS[found[2]] if found else _refuse()


def _duration(low: float, high: float) -> Kind:
    return Kind(
        f"a number of seconds, or a length such as 500ms, 10s or 2m, from {low:g} to {high:.0f} s",
        "SECONDS",
        read_seconds,
        lambda value: type(value) in (int, float) and low <= value <= high,
        lambda value: f"{value:g} s",
    )


_SIZE: Final = re.compile(r"([0-9]{1,15}) *(?:(k|m|g)(?:ib)?|b)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _read_size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _UNITS[(found[2] or "").lower()] if found else _refuse()


def _show_size(value: int) -> str:
    for unit, letter in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value % unit == 0:
            return f"{value // unit} {letter}"
    return f"{value} bytes"


def _size(low: int, high: int) -> Kind:
    # KB and MB are not accepted: some mean 1000 by the K and some 1024, and a limit should not depend on whom one asks.
    return Kind(
        f"a number of bytes, or one with k, KiB, M, MiB, G or GiB, from {_show_size(low)} to {_show_size(high)}",
        "SIZE",
        _read_size,
        lambda value: type(value) is int and low <= value <= high,
        _show_size,
    )


_SWITCH: Final = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def _switch() -> Kind:
    return Kind(
        "one of 1, 0, true, false, yes, no, on, off",
        "",
        lambda text: _SWITCH[text.lower()] if text.lower() in _SWITCH else _refuse(),
        lambda value: type(value) is bool,
        lambda value: "on" if value else "off",
    )


def _choice(*words: str, accepts: str | None = None) -> Kind:
    return Kind(
        accepts or f"one of {', '.join(words)}",
        "|".join(words),
        lambda text: text.lower(),
        lambda value: value in words,
    )


def _text(accepts: str, metavar: str) -> Kind:
    return Kind(
        accepts, metavar, str, lambda value: isinstance(value, str) and bool(value.strip()) and "\0" not in value
    )


def _host(accepts: str) -> Kind:
    return Kind(
        accepts,
        "HOST",
        lambda text: _host_name(text) or _refuse(),
        lambda value: isinstance(value, str) and _host_name(value) is not None,
    )


def _several(accepts: str, metavar: str, read: Callable[[str], str | None]) -> Kind:
    def each(text: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(read(part) or _refuse() for part in re.split(r"[,\s]+", text.strip(", \t\n"))))

    return Kind(
        accepts,
        metavar,
        each,
        lambda value: isinstance(value, tuple) and all(isinstance(one, str) and read(one) == one for one in value),
        lambda value: ", ".join(value) or "none",
    )


_NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _host_name(text: str) -> str | None:
    """A host in its one form: lower case, an IPv6 address without its brackets. None for what is no host."""
    host = text.strip().lower().removesuffix(".")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        return host if isinstance(_address(host), IPv6Address) else None
    return host if _address(host) or _NAME.fullmatch(host) else None


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine alone.

    A name that we cannot be sure of counts as one that can be reached from elsewhere; so does a spelling such as 127.1.
    """
    host = _host_name(host) or ""
    if host in ("localhost", "127.0.0.1", "::1"):
        return True
    address = _address(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and address.is_loopback


_ORIGIN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[^\s/:?#@\[\]]+)(?::([0-9]{1,5}))?")
_PORTS: Final = {"http": "80", "https": "443"}


def read_origin(text: str) -> str | None:
    """An origin in its one form, ``scheme://host[:port]``, lower case and without a port that goes without saying.
    None for what is no origin; ``null`` and ``*`` are none."""
    found = _ORIGIN.fullmatch(text.strip().lower())
    if found is None:
        return None
    scheme, host, port = found.groups()
    return f"{scheme}://{host}" if port in (None, _PORTS.get(scheme)) else f"{scheme}://{host}:{port}"


# -- the settings


def _setting(default: Any, kind: Kind, doc: str) -> Any:
    return field(default=default, metadata={"kind": kind, "doc": doc})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a service is to run. Made by :meth:`read`, or directly where values are at hand already."""

    host: str = _setting(
        "127.0.0.1",
        _host("an address or a host name to listen on"),
        "where to listen; anything but this machine's own loopback needs `auth`",
    )
    port: int = _setting(8420, _whole(0, 65_535, "PORT"), "the port to listen on; 0 takes a free one and says which")
    data: str = _setting(
        ".psi", _text("a folder", "DIR"), "the folder that psi keeps its data in; created where missing"
    )
    agent: str = _setting(
        "demo", _choice("demo", accepts="demo: this version has no other agent"), "who answers in the sessions"
    )
    auth: bool = _setting(False, _switch(), "whether callers need a token; off, whoever reaches the service may do all")
    allow_unauthenticated_network: bool = _setting(
        False,
        _switch(),
        "listen beyond this machine although `auth` is off: everybody who reaches it may do everything",
    )
    allowed_hosts: tuple[str, ...] = _setting(
        (),
        _several(
            "host names or addresses, without scheme, port or path, with commas between them", "HOSTS", _host_name
        ),
        "names that requests may reach the service by, besides loopback ones; with `auth` on and none named, any",
    )
    allowed_origins: tuple[str, ...] = _setting(
        (),
        _several("origins of the form scheme://host[:port], with commas between them", "ORIGINS", read_origin),
        "web pages from elsewhere that may use the service; its own pages always may",
    )
    max_body: int = _setting(
        1 << 20, _size(64, 1 << 30), "the largest body of a request, and the largest message of a socket"
    )
    max_message: int = _setting(
        72 << 20, _size(64, 1 << 30), "the largest message to a session, its images among it; files are sent as uploads"
    )
    max_upload: int = _setting(25 << 20, _size(64, 1 << 36), "the largest upload: all files of one request together")
    query_depth: int = _setting(20, _whole(1, 1_000), "how deep a GraphQL query may nest")
    query_cost: int = _setting(50_000, _whole(1, 1_000_000_000), "how much a GraphQL query may cost, fields times rows")
    query_timeout: float = _setting(10.0, _duration(0.001, 3_600), "how long a query may take")
    max_entities: int = _setting(100_000, _whole(1, 1_000_000_000), "how many entities a query may lead to")
    rate: float = _setting(
        1_000.0, _number(0.001, 1_000_000_000), "requests a second that a client may send in the long run"
    )
    burst: int = _setting(
        2_000, _whole(1, 1_000_000_000), "requests that a client may send at once, before `rate` counts"
    )
    max_connections: int = _setting(
        4_096, _whole(1, 1_000_000), "requests under way and open sockets, together, of all clients"
    )
    max_subscriptions: int = _setting(100, _whole(1, 1_000_000), "subscriptions of one socket")
    socket_queue: int = _setting(
        256, _whole(1, 1_000_000), "messages that wait for a socket that reads slowly, before it misses some"
    )
    init_timeout: float = _setting(3.0, _duration(0.001, 3_600), "how long a socket may take to introduce itself")
    head_timeout: float = _setting(
        15.0, _duration(0.001, 3_600), "how long a connection may take to say what it asks for, before it is closed"
    )
    body_timeout: float = _setting(
        30.0,
        _duration(0.001, 3_600),
        "how long a body may take to come in; for messages and uploads, how long nothing of it may come",
    )
    log_level: str = _setting("info", _choice("debug", "info", "warning", "error"), "what is worth a line in the log")

    def __post_init__(self) -> None:
        values = {setting.name: getattr(self, setting.name) for setting in DECLARED}
        problems = [
            _problem(setting, setting.name, values[setting.name])
            for setting in DECLARED
            if not setting.kind.fits(values[setting.name])
        ]
        problems += _together(values, {})
        if problems:
            raise SettingsInvalid(problems)

    @classmethod
    def read(cls, flags: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None) -> Settings:
        """Settings from flags (by the setting's name, as argparse gives them; None: not given) and the environment.

        Flags win. A variable that is set to nothing counts as not set. Names among the flags that are no setting are
        somebody else's: argparse has refused what nobody knows.
        """
        problems = list(_mistyped(env or {}))
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}
        for setting in DECLARED:
            given = (flags or {}).get(setting.name)
            source = setting.flag
            if given is None:
                given = (env or {}).get(setting.variable, "").strip() or None
                source = setting.variable
            if given is None:
                continue
            if isinstance(given, list):  # a flag that may be repeated
                given = ",".join(map(str, given))
            sources[setting.name] = source
            try:
                value = setting.kind.read(given.strip()) if isinstance(given, str) else given
            except ValueError:
                value = None  # fits nothing
            if setting.kind.fits(value):
                values[setting.name] = value
            else:
                problems.append(_problem(setting, source, given))
        problems += _together({**_defaults(), **values}, sources)
        if problems:
            raise SettingsInvalid(problems)
        return cls(**values)


class Setting(NamedTuple):
    """A declaration, as pages and flags are made from it."""

    name: str
    kind: Kind
    default: Any
    doc: str

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"PSI_{self.name.upper()}"


DECLARED: Final = tuple(
    Setting(each.name, each.metadata["kind"], each.default, each.metadata["doc"]) for each in fields(Settings)
)

# Read by the command line when it talks to a service, not by the service.
_OF_THE_CLIENT: Final = frozenset({"PSI_URL", "PSI_SESSION", "PSI_TOKEN"})


def _defaults() -> dict[str, Any]:
    return {setting.name: setting.default for setting in DECLARED}


def _problem(setting: Setting, source: str, came: object) -> Problem:
    text = f'"{came}"' if isinstance(came, str) else repr(came)
    text = text if len(text) <= 80 else f"{text[:79]}…"
    return Problem(source, f"{source} must be {setting.kind.accepts}, got {text}")


def _together(values: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong only beside something else."""
    host = values["host"]
    if not isinstance(host, str) or values["auth"] is not False or values["allow_unauthenticated_network"] is True:
        return
    if not is_loopback(host):
        source = sources.get("host", "host")
        yield Problem(
            source,
            f"{source} {host} can be reached from other machines while authentication is off, so anybody there could "
            "do everything; turn it on with --auth, listen on 127.0.0.1, or, where everybody on the network may do "
            "everything, say so with --allow-unauthenticated-network",
        )


def _mistyped(env: Mapping[str, str]) -> Iterator[Problem]:
    """Variables that look like one of ours and are not: ignored, they would be a limit that somebody believes in."""
    known = {setting.variable.removeprefix("PSI_"): setting.variable for setting in DECLARED}
    for name in sorted(env):
        if not name.startswith("PSI_") or name in _OF_THE_CLIENT or name.removeprefix("PSI_") in known:
            continue
        if near := get_close_matches(name.removeprefix("PSI_").upper(), known, n=1, cutoff=0.7):
            yield Problem(name, f"unknown variable {name}; did you mean {known[near[0]]}?")


def add_flags(parser: ArgumentParser | _ArgumentGroup) -> None:
    """Give a parser a flag for each setting. Values stay text, so that :meth:`Settings.read` names all that are bad."""
    from argparse import BooleanOptionalAction

    class Switch(BooleanOptionalAction):
        """On or off; of both, either would be a guess, and some of these switches keep others out."""

        def __call__(
            self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None
        ) -> None:
            before = getattr(namespace, self.dest)
            super().__call__(parser, namespace, values, option)
            if before is not None and before != getattr(namespace, self.dest):
                parser.error(f"{' or '.join(self.option_strings)}, not both")

    for setting in DECLARED:
        default = setting.kind.shows(setting.default)
        about = f"{setting.doc.replace('`', '')} ({setting.variable}; default {default})".replace("%", "%%")
        if isinstance(setting.default, bool):
            parser.add_argument(setting.flag, dest=setting.name, action=Switch, default=None, help=about)
        elif isinstance(setting.default, tuple):
            parser.add_argument(
                setting.flag, dest=setting.name, action="append", metavar=setting.kind.metavar, default=None, help=about
            )
        else:
            parser.add_argument(setting.flag, dest=setting.name, metavar=setting.kind.metavar, default=None, help=about)
