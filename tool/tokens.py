"""``psi-tool token create|list|revoke``: API tokens, in the data folder of the service.

Works on the file itself and needs no service: the first token has to come from somewhere, and whoever can write there
owns the service anyway. One that runs notices at once. The arguments are those of a namespace:

    op       create | list | revoke
    data     the data folder; None: PSI_DATA, or what the service takes by itself
    create   user, name, scope ("write"; it implies the lesser ones), expires ("30d"; None: never),
             plain (print the token and nothing else)
    list     user (None: everybody's)
    revoke   id ("tok-…")
    json, edn   the form of the output; neither: readable in a terminal, JSON in a pipe
"""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from psi.core.clock import instant_text
from psi.core.errors import Invalid
from psi.core.identity import SCOPES, WRITE, read_scopes
from psi.core.session import LOCAL_USER
from psi.edn import Keyword, dumps
from psi.engine import SystemClock
from psi.errors import PsiError
from psi.settings import Settings, read_seconds
from psi.store import Credentials, Token, TokenNotFound
from psi.store.credentials import FILE
from tool.output import Writing, plain, text

__all__ = ["run"]

OK, SAID_NO, WRONG_USAGE = 0, 1, 2

_UNTIL_REVOKED: Final = "never"


def run(arguments: Namespace) -> int:
    """Carry out one of them; the exit code."""
    try:
        folder = _folder(arguments)
        {"create": _create, "list": _list, "revoke": _revoke}[arguments.op](arguments, folder, SystemClock().now().wall)
    except PsiError as refused:
        sys.stderr.write(f"psi-tool token {arguments.op}: {plain(refused.message)}\n")
        return WRONG_USAGE if isinstance(refused, Invalid) else SAID_NO
    return OK


def _create(arguments: Namespace, folder: Path, now: datetime) -> None:
    scopes = _scopes(_given(arguments, "scope"))
    lasts = _lifetime(_given(arguments, "expires"))
    with Credentials.open(folder) as credentials:
        made = credentials.create_token(
            now=now,
            user=LOCAL_USER if (user := _given(arguments, "user")) is None else user,
            name=_given(arguments, "name"),
            scopes=scopes,
            lasts=lasts,
        )
    if _given(arguments, "plain"):
        text(made.text)
        return
    if not _is_for_people(arguments):
        text(_written({"token": made.text, **made.token.as_data()}, arguments))
        return
    text(made.text)
    text("")
    text(f"This is the only time that it is shown. {_described(made.token)}")
    text("Use it:  export PSI_TOKEN=…  or  psi-tool --token …  or  the header  Authorization: Bearer …")


def _list(arguments: Namespace, folder: Path, now: datetime) -> None:
    found: list[Token] = []
    if (folder / FILE).exists():  # looking must not leave a file behind
        with Credentials.open(folder) as credentials:
            found = credentials.tokens(_given(arguments, "user"))
    listed = [{**token.as_data(), "state": token.state(now)} for token in found]
    if not _is_for_people(arguments):
        text(_written({"tokens": listed}, arguments))
    elif listed:
        _show(listed)
    else:
        text(f"No tokens in {plain(folder)}. `psi-tool token create` makes one.")


def _revoke(arguments: Namespace, folder: Path, now: datetime) -> None:
    named = _given(arguments, "id")
    if not named:
        raise Invalid("which one? Give its id; `psi-tool token list` shows them")
    if not (folder / FILE).exists():
        raise TokenNotFound(named)
    with Credentials.open(folder) as credentials:
        ended = credentials.revoke(named, now=now)
    if _is_for_people(arguments):
        text(f"{ended.id} is revoked: it and its logins are refused from now on.")
    else:
        text(_written({**ended.as_data(), "state": ended.state(now)}, arguments))


# -- arguments


def _given(arguments: Namespace, name: str) -> Any:
    return getattr(arguments, name, None)


def _folder(arguments: Namespace) -> Path:
    env = {"PSI_DATA": os.environ.get("PSI_DATA", "")}
    return Path(Settings.read({"data": _given(arguments, "data")}, env).data)


def _scopes(given: str | Iterable[str] | None) -> frozenset[str]:
    if given is None:
        return read_scopes([WRITE])
    text = given if isinstance(given, str) else ",".join(given)
    return read_scopes(name for name in re.split(r"[,\s]+", text.strip().lower()) if name)


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


def _is_for_people(arguments: Namespace) -> bool:
    return not _given(arguments, "json") and not _given(arguments, "edn") and sys.stdout.isatty()


def _written(value: dict[str, Any], arguments: Namespace) -> str:
    return dumps(_as_edn(value)) if _given(arguments, "edn") else json.dumps(value, ensure_ascii=False)


def _as_edn(value: Any) -> Any:
    if isinstance(value, dict):
        return {Keyword(key.replace("_", "-")): _as_edn(each) for key, each in value.items()}
    return [_as_edn(each) for each in value] if isinstance(value, list) else value


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
