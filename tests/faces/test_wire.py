from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from psi.core import errors as core
from psi.edn import Keyword, ReadError, Symbol, Vector, loads
from psi.eql.parse import QueryError
from psi.errors import Failed, PsiError, Refused
from psi.faces.auth import Unauthenticated
from psi.faces.wire import (
    DEEPEST,
    LARGEST,
    BadSession,
    Form,
    NotAcceptable,
    SeveralSessions,
    StoreSilent,
    TooDeep,
    TooLarge,
    Unreadable,
    UnsupportedMedia,
    answer,
    came_as,
    error_body,
    error_response,
    measure,
    read,
    session_of,
    status_of,
    wanted,
    written,
)
from psi.graph import (
    AttributeMissing,
    AttributeUnreachable,
    InvalidEntity,
    LimitExceeded,
    MutationFailed,
    MutationNotFound,
    ResolverFailed,
)
from tool.render import as_json
from tool.request import RequestInvalid

# -- which status


def because(error: PsiError, cause: Exception) -> PsiError:
    error.__cause__ = cause
    return error


STATUSES: list[tuple[PsiError, int]] = [
    (core.Invalid("no"), 400),
    (core.ConfigInvalid([], ["x"]), 400),
    (core.SessionRequired("scheduler"), 400),
    (RequestInvalid("no"), 400),
    (ReadError(1, 1, "a", "b"), 400),
    (QueryError("no"), 400),
    (InvalidEntity(1), 400),
    (Refused("no"), 400),
    (Unreadable("no"), 400),
    (Unauthenticated("who?"), 401),
    (core.Forbidden("no"), 403),
    (core.SessionNotFound("ses-1"), 404),
    (core.ScheduleNotFound("sch-1"), 404),
    (NotAcceptable("no"), 406),
    (core.SessionBusy("ses-1", "streaming", None), 409),
    (core.CapExceeded(50), 409),
    (core.NotCancellable("sch-1", "delivered"), 409),
    (UnsupportedMedia("text/csv"), 415),
    (AttributeUnreachable([]), 422),
    (AttributeMissing([]), 422),
    (MutationNotFound("a/b"), 422),
    (ResolverFailed("a/b", "broken"), 422),
    (LimitExceeded("timeout", "too slow"), 422),
    (TooDeep(), 422),
    (TooLarge(), 422),
    (Failed("no"), 422),
    (core.RuntimeClosed(), 503),
    (StoreSilent(), 503),
    (PsiError("what?"), 500),
    # What was called refused on purpose, and that counts.
    (because(MutationFailed("a/b", "no"), core.Forbidden("no")), 403),
    (because(MutationFailed("a/b", "no"), core.ScheduleNotFound("sch-1")), 404),
    (because(MutationFailed("a/b", "no"), core.CapExceeded(50)), 409),
    (because(ResolverFailed("a/b", "no"), core.Invalid("no")), 400),
    (because(MutationFailed("a/b", "no"), ValueError("no")), 422),
    (because(MutationFailed("a/b", "no"), LimitExceeded("depth", "no")), 422),
]


@pytest.mark.parametrize(("error", "status"), STATUSES, ids=lambda value: getattr(value, "code", None) or str(value))
def test_an_error_has_the_status_of_its_kind(error: PsiError, status: int) -> None:
    assert status_of(error) == status


def test_an_error_is_told_with_its_code_its_sentence_and_its_facts() -> None:
    assert error_body(core.CapExceeded(50)) == {
        "error": {"code": "scheduler/cap-exceeded", "message": "scheduler pending cap exceeded", "details": {"cap": 50}}
    }


def test_the_invoking_session_is_named_once_or_not_at_all() -> None:
    assert session_of(Headers({})) is None
    assert session_of(Headers({"Psi-Session": "ses-1"})) == "ses-1"
    for other in (b"ses-1", b"ses-2", b""):
        with pytest.raises(SeveralSessions, match="2 times") as refused:
            session_of(Headers(raw=[(b"psi-session", b"ses-1"), (b"psi-session", other)]))
        assert (status_of(refused.value), refused.value.facts()) == (400, {"given": 2})


@pytest.mark.parametrize("given", [b"", b" ", b"ses 1", "sés-1".encode(), b"\xd7\xf8", b"ses-1\t", b"s" * 201])
def test_what_cannot_be_the_id_of_a_session_is_refused_by_name(given: bytes) -> None:
    with pytest.raises(BadSession, match="Psi-Session must be the id of a session") as refused:
        session_of(Headers(raw=[(b"psi-session", given)]))
    assert status_of(refused.value) == 400
    assert session_of(Headers({"Psi-Session": "s" * 200})) == "s" * 200


def test_an_error_whose_facts_have_no_edn_form_is_told_in_json() -> None:
    told = error_response(core.Invalid("no", thing=object()), Form.EDN)
    assert told.headers["content-type"] == "application/json; charset=utf-8"
    assert json.loads(bytes(told.body))["error"]["message"] == "no"


def test_an_error_says_in_its_headers_what_belongs_there() -> None:
    assert error_response(Unauthenticated("who?")).headers["www-authenticate"].startswith("Bearer")


# -- reading


@pytest.mark.parametrize(
    ("header", "form"),
    [
        (None, None),
        ("", None),
        ("text/plain", None),
        ("text/plain; charset=UTF-8", None),
        ("application/json", Form.JSON),
        ('Application/JSON ; Charset="utf-8"', Form.JSON),
        ("application/edn;charset=utf8", Form.EDN),
    ],
)
def test_the_content_type_names_the_form(header: str | None, form: Form | None) -> None:
    assert came_as(header) is form


@pytest.mark.parametrize(
    "header", ["text/csv", "application/xml", "application/json; charset=latin-1", "json", "multipart/form-data; x=y"]
)
def test_another_content_type_is_refused_with_what_is_accepted(header: str) -> None:
    with pytest.raises(UnsupportedMedia, match="send application/json or application/edn"):
        came_as(header)


@pytest.mark.parametrize(
    ("body", "form", "value", "came"),
    [
        (b'{"a": [1, 2.5, null, true, "\\u00e4"]}', Form.JSON, {"a": [1, 2.5, None, True, "ä"]}, Form.JSON),
        (b"\xef\xbb\xbf{}", Form.JSON, {}, Form.JSON),
        (b'"\\ud83d\\ude00"', Form.JSON, "😀", Form.JSON),
        (b"123456789012345678901234567890", Form.JSON, 123456789012345678901234567890, Form.JSON),
        (b"{:a [1 nil]}", Form.EDN, {"a": [1, None]}, Form.EDN),
        (b'{"a": 1}', None, {"a": 1}, Form.JSON),
        (b'{"a" 1}', None, {"a": 1}, Form.EDN),
        (b"[:a :b]", None, ["a", "b"], Form.EDN),
        (b"[1]", None, [1], Form.JSON),
    ],
)
def test_a_body_is_read_as_what_it_is(body: bytes, form: Form | None, value: Any, came: Form) -> None:
    assert read(body, form) == (value, came)


BAD = {
    "empty": (b"", Form.JSON, "the body is empty"),
    "only spaces": (b" \n\t", Form.EDN, "the body is empty"),
    "not UTF-8": (b'{"a": "\xff"}', Form.JSON, "not UTF-8: byte 7"),
    "not JSON": (b"{:a 1}", Form.JSON, "cannot be read as JSON: .* line 1 column 2"),
    "not EDN": (b"{:a}", Form.EDN, "cannot be read as EDN: line 1, column 4"),
    "something after JSON": (b"{} {}", Form.JSON, "cannot be read as JSON"),
    "something after EDN": (b"{} {}", Form.EDN, "expected the end of the text"),
    "a key twice in JSON": (b'{"a": {"b": 1, "b": 2}}', Form.JSON, 'key "b" is given twice'),
    "a key twice in EDN": (b"{:b 1 :b 2}", Form.EDN, "cannot be read as EDN"),
    "NaN": (b'{"a": NaN}', Form.JSON, "cannot be read as JSON"),
    "Infinity": (b"[-Infinity]", Form.JSON, "cannot be read as JSON"),
    "a number beyond all bounds": (b"[1e999]", Form.JSON, "cannot be read as JSON"),
    "half a character": (b'["\\ud800"]', Form.JSON, "surrogate"),
    "a control character in a string": (b'["\x01"]', Form.JSON, "cannot be read as JSON"),
    "more digits than anybody needs": (b"1" * 5_000, Form.JSON, "cannot be read as JSON"),
    "JSON integers that all have one hash": (
        json.dumps([(2**61 - 1) * n for n in range(1, 102)]).encode(),
        Form.JSON,
        "it has more than 100 integers with one hash",
    ),
    "EDN integers that all have one hash": (
        " ".join(["[", *(str((2**61 - 1) * n) for n in range(1, 102)), "]"]).encode(),
        Form.EDN,
        "at most 100 numbers with one hash",
    ),
    "JSON too deep": (b"[" * 200 + b"]" * 200, Form.JSON, f"deeper than {DEEPEST} levels"),
    "JSON far too deep": (b'{"a":' * 100_000, Form.JSON, "cannot be read as JSON"),
    "EDN too deep": (b"[" * 200 + b"]" * 200, Form.EDN, f"at most {DEEPEST} levels"),
    "neither, but more like JSON": (b'{"a": }', None, "cannot be read as JSON"),
    "neither, but more like EDN": (b"{:a }", None, "cannot be read as EDN"),
}


@pytest.mark.parametrize(("body", "form", "problem"), BAD.values(), ids=BAD.keys())
def test_a_bad_body_is_refused_with_what_is_wrong(body: bytes, form: Form | None, problem: str) -> None:
    with pytest.raises(Unreadable, match=problem):
        read(body, form)


def test_large_integers_in_json_are_read_as_long_as_they_have_hashes_of_their_own() -> None:
    alike = [(2**61 - 1) * n for n in range(1, 101)]
    found = [*alike, *alike, *range(2**63, 2**63 + 1_000), -(2**70)]
    assert read(json.dumps(found).encode(), Form.JSON)[0] == found


def test_many_brackets_beside_each_other_are_not_deep() -> None:
    assert read(b"[" + b",".join([b"[]"] * 1_000) + b"]", Form.JSON)[0] == [[]] * 1_000


@given(st.binary(max_size=60), st.sampled_from([None, *Form]))
def test_whatever_the_bytes_are_they_are_read_or_refused(body: bytes, form: Form | None) -> None:
    with suppress(Unreadable):
        read(body, form)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_what_json_can_say_is_read_as_it_was_said(value: Any) -> None:
    assert read(json.dumps(value).encode(), Form.JSON) == (value, Form.JSON)


# -- which form


@pytest.mark.parametrize(
    ("accept", "came", "form"),
    [
        (None, None, Form.JSON),
        (None, Form.EDN, Form.EDN),
        ("", Form.EDN, Form.EDN),
        ("*/*", None, Form.JSON),
        ("*/*", Form.EDN, Form.EDN),
        ("application/*", Form.EDN, Form.EDN),
        ("application/json", Form.EDN, Form.JSON),
        ("APPLICATION/EDN", None, Form.EDN),
        ("application/edn, application/json;q=0.5", None, Form.EDN),
        ("application/edn;q=0.4, application/json;q=0.5", Form.EDN, Form.JSON),
        ("application/edn;q=0, */*", Form.EDN, Form.JSON),
        ("text/html, application/xhtml+xml, */*;q=0.8", Form.EDN, Form.EDN),
        ("application/json;q=0.1, */*;q=0.9", None, Form.EDN),
        ("application/edn; q = 0.5 , application/json; q=0.5", Form.EDN, Form.EDN),
    ],
)
def test_the_answer_has_the_form_that_is_liked_best(accept: str | None, came: Form | None, form: Form) -> None:
    assert wanted(accept, came) is form


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml, image/*", "*/*;q=0", "application/edn;q=nonsense", "application/json;q=7"]
)
def test_where_no_form_is_accepted_that_is_said(accept: str) -> None:
    with pytest.raises(NotAcceptable, match="takes none of what there is: application/json, application/edn"):
        wanted(accept)


# -- writing

VALUES = {
    "big": 2**70,
    "half": "\ud800",
    "keyword": Keyword("a/b"),
    "symbol": Symbol("a/b"),
    "set": frozenset((Keyword("b"), Keyword("a"))),
    "instant": datetime(2026, 4, 22, 13, tzinfo=UTC),
    "uuid": UUID(int=1),
    "decimal": Decimal("1.5"),
    "ratio": Fraction(1, 2),
    "inf": float("inf"),
    "nested": [{"a/b": [None, True, 1.25, "ä"]}],
    Vector((Keyword("user/id"), 1)): {"user/name": "Ada"},
}


@pytest.mark.parametrize("value", [VALUES, *VALUES.values()], ids=["all of them", *map(str, VALUES)])
def test_json_says_what_json_dumps_would_say(value: Any) -> None:
    assert json.loads(written(value, Form.JSON)) == json.loads(json.dumps(as_json(value)))


@given(JSON_VALUES)
def test_json_comes_back_as_it_was(value: Any) -> None:
    assert json.loads(written(value, Form.JSON)) == value


def test_edn_comes_back_as_it_was() -> None:
    value = {"a/b": [Keyword("x"), frozenset((1, 2)), datetime(2026, 4, 22, 13, tzinfo=UTC)]}
    assert loads(written(value, Form.EDN)) == value


def test_a_value_without_an_edn_form_is_not_acceptable_as_edn() -> None:
    with pytest.raises(NotAcceptable, match="ask for application/json"):
        written({"a": object()}, Form.EDN)


def test_an_answer_that_nests_too_deep_is_refused_and_not_an_accident() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = [value]
    with pytest.raises(TooDeep):
        written(value, Form.JSON)


@pytest.mark.parametrize("form", list(Form))
def test_an_answer_that_would_be_gigabytes_is_refused_before_it_is_written(form: Form) -> None:
    value: Any = "x"
    for _ in range(40):
        value = [value, value]  # shared in memory, and written out each time
    with pytest.raises(TooLarge, match="larger than about 16 MiB; ask for less"):
        written(value, form)


@pytest.mark.parametrize(
    "value",
    ["x" * LARGEST * 2, {str(n): None for n in range(1_000_000)}, [[0] * 1_000] * 10_000, [{"a": "x" * 99_999}] * 500],
)
def test_large_is_large_however_it_comes_about(value: Any) -> None:
    with pytest.raises(TooLarge):
        measure(value)


def test_what_people_ask_for_is_not_too_large() -> None:
    measure([{f"psi.scheduler/attribute-{n}": "2026-04-22T13:00:00Z" for n in range(13)}] * 10_000)


def test_an_answer_names_its_form_and_its_characters() -> None:
    assert answer({"a": "ä"}, Form.EDN).headers["content-type"] == "application/edn; charset=utf-8"
    assert bytes(answer({"a": "ä"}).body) == '{"a":"ä"}'.encode()
