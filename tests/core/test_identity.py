from __future__ import annotations

import pytest

from psi.core.commands import NOBODY, Caller
from psi.core.errors import Invalid
from psi.core.identity import ALL_SCOPES, Identity, read_scopes


@pytest.mark.parametrize(
    ("given", "scopes"),
    [
        (["read"], {"read"}),
        (["write"], {"read", "write"}),
        (["admin"], {"read", "write", "admin"}),
        (["read", "admin", "read"], {"read", "write", "admin"}),
    ],
)
def test_a_scope_implies_the_lesser_ones(given: list[str], scopes: set[str]) -> None:
    assert read_scopes(given) == frozenset(scopes)


@pytest.mark.parametrize("given", [[], ["Read"], ["read", "root"], [None], [["read"]]])
def test_anything_else_is_refused(given: list[object]) -> None:
    with pytest.raises(Invalid, match="scopes must be some of read, write, admin"):
        read_scopes(given)


def test_only_who_may_write_is_a_caller_who_may() -> None:
    assert Identity("ada", read_scopes(["read"]), "tok-1").caller() == Caller(None, user="ada", may_write=False)
    assert Identity("ada", read_scopes(["write"]), "tok-1").caller("ses-1") == Caller("ses-1", user="ada")


def test_where_nobody_is_asked_for_credentials_the_caller_is_whoever_runs_the_process() -> None:
    assert Identity(None, ALL_SCOPES, "127.0.0.1").caller() == NOBODY
