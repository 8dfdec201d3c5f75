"""``psi-tool token create|list|revoke``: API tokens, in the data folder of the service.

Works on the file itself and needs no service: the first token has to come from somewhere, and whoever can write there
owns the service anyway. One that runs notices at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from psi.core.clock import instant_text
from psi.core.errors import Invalid
from psi.core.identity import SCOPES, WRITE, read_scopes
from psi.core.session import LOCAL_USER
from psi.engine import SystemClock
from psi.errors import PsiError
from psi.settings import Settings, read_seconds
from psi.store import Credentials, Token, TokenNotFound
from psi.store.credentials import FILE
from tool.arguments import Values
from tool.commands import ERROR, OK, WRONG_USAGE, Command
from tool.output import EDN, PEOPLE, Writing, data, form, plain, text
from tool.render import as_edn

__all__ = ["run"]

_UNTIL_REVOKED: Final = "never"


def run(command: Command, values: Values) -> int:
    """Carry out one of them; the exit code."""
    op = command.words[-1]
    try:
        folder = _folder(values)
        {"create": _create, "list": _list, "revoke": _revoke}[op](values, folder, SystemClock().now().wall)
    except PsiError as refused:
        sys.stderr.write(f"psi-tool {command.name}: {plain(refused.message)}\n")
        return WRONG_USAGE if isinstance(refused, Invalid) else ERROR
    return OK


def _create(values: Values, folder: Path, now: datetime) -> None:
    scopes = _scopes(values["scope"])
    lasts = _lifetime(values["expires"])
    with Credentials.open(folder) as credentials:
        made = credentials.create_token(
            now=now,
            user=LOCAL_USER if values["user"] is None else values["user"],
            name=values["name"],
            scopes=scopes,
            lasts=lasts,
        )
    if values["plain"]:
        text(made.text)
        return
    if form(values) != PEOPLE:
        _write({"token": made.text, **made.token.as_data()}, values)
        return
    text(made.text)
    text("")
    text(f"This is the only time that it is shown. {_described(made.token)}")
    text("Use it:  export PSI_TOKEN=…  or  psi-tool --token …  or  the header  Authorization: Bearer …")


def _list(values: Values, folder: Path, now: datetime) -> None:
    found: list[Token] = []
    if (folder / FILE).exists():  # looking must not leave a file behind
        with Credentials.open(folder) as credentials:
            found = credentials.tokens(values["user"])
    listed = [{**token.as_data(), "state": token.state(now)} for token in found]
    if form(values) != PEOPLE:
        _write({"tokens": listed}, values)
    elif listed:
        _show(listed)
    else:
        text(f"No tokens in {plain(folder)}. `psi-tool token create` makes one.")


def _revoke(values: Values, folder: Path, now: datetime) -> None:
    named = values["id"]
    if not named:
        raise Invalid("which one? Give its id; `psi-tool token list` shows them")
    if not (folder / FILE).exists():
        raise TokenNotFound(named)
    with Credentials.open(folder) as credentials:
        ended = credentials.revoke(named, now=now)
    if form(values) == PEOPLE:
        text(f"{ended.id} is revoked: it and its logins are refused from now on.")
    else:
        _write({**ended.as_data(), "state": ended.state(now)}, values)


# -- arguments


def _folder(values: Values) -> Path:
    env = {"PSI_DATA": os.environ.get("PSI_DATA", "")}
    return Path(Settings.read({"data": values["data"]}, env).data)


def _scopes(given: str | None) -> frozenset[str]:
    return read_scopes([WRITE] if given is None else [given])


def _lifetime(given: str | None) -> timedelta | None:
    if given is None or given == _UNTIL_REVOKED:
        return None
    try:
        return timedelta(seconds=read_seconds(given))
    except (ValueError, OverflowError):
        raise Invalid(
            f'--expires must be a length of time such as 30d, 12h or 90m, or {_UNTIL_REVOKED}, got "{given}"'
        ) from None


# -- output


def _write(value: Mapping[str, Any], values: Values) -> None:
    """JSON names things as REST does, and EDN as EDN does."""
    if form(values) == EDN:
        data(as_edn(value, lambda key: key.replace("_", "-")).encode())
    else:
        data(json.dumps(value, ensure_ascii=False).encode())


def _described(token: Token) -> str:
    ends = f"until {instant_text(token.expires_at)}" if token.expires_at else "until it is revoked"
    return f"{token.id} is for user {plain(token.user)}, may {_may(token)}, and holds {ends}."


def _may(token: Token) -> str:
    return ", ".join(scope for scope in SCOPES if scope in token.scopes)


def _show(tokens: Sequence[Mapping[str, Any]]) -> None:
    from tool.tables import terminal, token_rows

    console = terminal()
    with Writing():
        console.print(token_rows(tokens, console.width))
