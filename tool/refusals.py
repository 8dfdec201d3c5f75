"""What was refused, as sentences for whoever typed the command: what is wrong, what is accepted, what helps.

The service says what is wrong and cannot know that it is read at a command line; this adds what a person can do there.
Three kinds: an error within an answer, a refusal of the service as a whole, and no service at all. Text and data in,
text out: prints nothing, and imports nothing heavy.
"""

from __future__ import annotations

from tool.commands import ERROR, NO_SERVICE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final

    from tool.client import Address, NoService

__all__ = ["helps", "no_service", "not_psi", "other_version", "refusal", "sentence", "unanswered"]

_LOST: Final = "session/not-found"
_HINTS: Final = {
    "session/required": "Say which with --session ID or PSI_SESSION; `psi-tool session create` makes one.",
    _LOST: "`psi-tool session list` shows those there are.",
    "scheduler/not-found": "`psi-tool scheduler list` shows those of the session.",
    "session/busy": "`psi-tool session stop` stops the run.",
    "auth/read-only": "`psi-tool token create --scope write` makes a token that may.",
}
_LEAVE: Final = "It comes from PSI_SESSION; `unset PSI_SESSION` leaves it. "


# -- an error within an answer


def sentence(error: Mapping[str, Any]) -> str:
    """What is wrong, in the service's words."""
    message = str(error.get("message") or "the service said error and no more")
    lost = _facts(error).get("session-id") if error.get("code") == _LOST else None
    return f"{message}: {lost}" if lost else message


def helps(error: Mapping[str, Any], variable: str = "") -> str:
    """What is accepted, and what a person can do; nothing where nothing is known. ``variable``: the session that was
    taken from the environment, and not typed."""
    code = str(error.get("code"))
    facts = _facts(error)
    if code == _LOST and variable and facts.get("session-id") == variable:
        return f"{_LEAVE}{_HINTS[_LOST]}"
    return _HINTS.get(code) or "\n".join(_accepted(str(error.get("message")), facts))


def _facts(error: Mapping[str, Any]) -> Mapping[str, Any]:
    facts = error.get("data")
    return facts if isinstance(facts, dict) else {}


def _accepted(message: str, facts: Mapping[str, Any]) -> Iterator[str]:
    if facts.get("nearest"):
        yield f"Did you mean {facts['nearest']}?"
        return
    for name, bound in (("minimum", "at least"), ("maximum", "at most"), ("cap", "at most")):
        if isinstance(facts.get(name), int):
            yield f"Accepted: {bound} {_amount(facts[name], facts)}."
    accepted = facts.get("accepted")
    if isinstance(accepted, list) and "did you mean" not in message:
        names = [str(each) for each in accepted if str(each) not in message]
        if names:
            yield f"Accepted: {', '.join(map(str, accepted))}."
    elif isinstance(accepted, str) and accepted not in message:
        yield f"Accepted: such as {accepted}."
    problems = facts.get("problems")
    if isinstance(problems, list) and facts.get("unsupported-keys"):
        # Without them the message has the problems itself, and either way each names its own path.
        yield from (str(each["message"]) for each in problems if isinstance(each, dict) and "message" in each)


def _amount(number: int, facts: Mapping[str, Any]) -> str:
    """A bound; of what is counted in milliseconds also as people say it."""
    if not any(name.endswith("-ms") for name in facts):
        return str(number)
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if number >= size and number % size == 0:
            return f"{number} ms ({number // size} {unit}) from now"
    return f"{number} ms from now"


# -- the service as a whole


def refusal(at: Address, status: int, message: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The exit code, and a refusal as a sentence with what helps. ``message``: the service's own words, without which
    it is none of psi; ``headers``: lower-case names."""
    headers = headers or {}
    if not message:
        leads = f" and leads to {headers['location']}" if headers.get("location") else ""
        return NO_SERVICE, not_psi(at, f"it says {status}{leads}")
    hint = ""
    if status == 401:
        # What it says behind that is for those who write HTTP themselves.
        message = message.partition(";")[0].partition(": ")[0]
        hint = " Give a token with --token or PSI_TOKEN; `psi-tool token create` makes one, where the service runs."
    elif status == 429:
        wait = headers.get("retry-after")
        hint = f" Try again in {wait} s." if wait else " Try again in a moment."
    elif status == 503:
        hint = " It is starting, stopping or has too much to do: try again in a moment."
    elif status >= 500:
        hint = " The log of the service says more."
    return ERROR, f"The service at {at} refused ({status}): {message.rstrip('.')}.{hint}"


def not_psi(at: Address, why: object) -> str:
    return f"What answers at {at} is no psi service: {why}. {_elsewhere(at)}"


def other_version(at: Address, why: object) -> str:
    return f"What answers at {at} is no psi service, or one of another version: {why}. {_elsewhere(at)}"


def unanswered(at: Address, why: object) -> str:
    """Somebody is there, and says nothing that could be used."""
    return f"What answers at {at} is no psi service, or one that has stopped: {why}. {_elsewhere(at)}"


def no_service(at: Address, error: NoService) -> str:
    if error.is_taken:
        return unanswered(at, error)
    return (
        f"No psi service is reachable at {at}: {error}.\n"
        "Start one with `psi-tool serve`, or `make serve` in the project's folder; another place is named with --url "
        "or PSI_URL."
    )


def _elsewhere(at: Address) -> str:
    """How to have one all the same, where this port is somebody else's."""
    port = at.port + 1 if 1023 < at.port < 65_535 else 8420
    return f"Start one on another port with `psi-tool serve --port {port}`; --url or PSI_URL says where it is."
