"""Forms with files in them: as browsers and curl send them, cut anywhere, and broken in every way we could think of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.faces.multipart import Began, Data, Ended, Event, MultipartBroken, MultipartReader, boundary_of, file_name
from psi.faces.wire import UnsupportedMedia


def form(*parts: tuple[str, bytes], boundary: str = "X") -> bytes:
    """A form of parts, each with its headers and its body."""
    written = b"".join(f"--{boundary}\r\n{head}\r\n\r\n".encode() + body + b"\r\n" for head, body in parts)
    return written + f"--{boundary}--\r\n".encode()


def disposition(filename: str) -> str:
    return f'Content-Disposition: form-data; name="file"; filename="{filename}"'


def read(body: bytes, boundary: bytes = b"X", size: int | None = None) -> list[tuple[str | None, bytes]]:
    """The files of a form, by name, fed in pieces of some size."""
    reader = MultipartReader(boundary)
    events: list[Event] = []
    for start in range(0, len(body), size or max(1, len(body))):
        events += reader.feed(body[start : start + (size or len(body))])
    reader.finish()
    found: list[tuple[str | None, bytes]] = []
    is_open = False
    for event in events:
        match event:
            case Began(filename=filename):
                assert not is_open
                is_open = True
                found.append((filename, b""))
            case Data(data):
                assert is_open
                assert data
                found[-1] = (found[-1][0], found[-1][1] + data)
            case Ended():
                assert is_open
                is_open = False
    assert not is_open
    return found


def test_the_parts_of_a_form_come_one_after_the_other() -> None:
    body = form((disposition("a.txt"), b"one"), ('Content-Disposition: form-data; name="note"', b"hello"))
    assert list(MultipartReader(b"X").feed(body)) == [
        Began("file", "a.txt"),
        Data(b"one"),
        Ended(),
        Began("note", None),
        Data(b"hello"),
        Ended(),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
def test_where_the_pieces_are_cut_makes_no_difference(size: int) -> None:
    tricky = b"\r\n--\r\n--Y\r\n-X--\r\n--"
    body = b"preamble\r\n" + form((disposition("a"), tricky), (disposition("b"), b""), (disposition("c"), b"\r\n"))
    assert read(body, size=size) == [("a", tricky), ("b", b""), ("c", b"\r\n")]


@given(st.lists(st.binary(max_size=60), max_size=4), st.integers(1, 40), st.binary(max_size=20))
def test_whatever_is_in_the_files_comes_out_again(bodies: list[bytes], size: int, after: bytes) -> None:
    bodies = [body for body in bodies if b"--limit-of-this" not in body]
    written = form(*((disposition(str(place)), body) for place, body in enumerate(bodies)), boundary="limit-of-this")
    assert read(written + after, b"limit-of-this", size) == [(str(place), body) for place, body in enumerate(bodies)]


@given(st.lists(st.sampled_from([b"\r", b"\n", b"-", b"X", b"a", b"\r\n--X", b"\r\n--X--", b": "]), max_size=30))
def test_anything_at_all_is_read_or_refused(pieces: list[bytes]) -> None:
    body = b"".join(pieces)
    results = []
    for size in (None, 1):
        try:
            results.append(read(body, size=size))
        except MultipartBroken as broken:
            results.append([(broken.code, b"")])
    assert results[0] == results[1]


def test_a_part_without_headers_is_no_file() -> None:
    assert read(b"--X\r\n\r\nbody\r\n--X--") == [(None, b"body")]


def test_a_part_that_ends_right_after_its_headers_is_empty() -> None:
    assert read(b"--X\r\n" + disposition("a").encode() + b"\r\n\r\n--X--") == [("a", b"")]


def test_blanks_may_follow_a_boundary() -> None:
    assert read(b"--X  \t\r\n" + disposition("a").encode() + b"\r\n\r\n1\r\n--X--") == [("a", b"1")]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "breaks off"),
        (b"--X", "breaks off"),
        (b"--X\r\n", "breaks off"),
        (b"--X-", "breaks off"),
        (form((disposition("a"), b"1"))[:-5], "breaks off"),
        (b"--Y\r\n\r\n1\r\n--Y--", "breaks off"),
        (b"x" * 10_000, "does not begin with the boundary"),
        (b"--Xtra\r\n\r\n1\r\n--Xtra--", "no end of a line"),
        (b"--X\r\nno header here\r\n\r\n1\r\n--X--", "is no header"),
        (b"--X\r\nA: \xff\r\n\r\n1\r\n--X--", "not UTF-8"),
        (b"--X\r\nA: " + b"x" * 10_000 + b"\r\n\r\n1\r\n--X--", "larger than 8192 bytes"),
        (b"--X\r\nA: " + b"x" * 10_000, "larger than 8192 bytes"),
        (form(*[(disposition("a"), b"")] * 101), "more than 100 parts"),
        (form((f"{disposition('a')}\r\n{disposition('b')}", b"")), "two Content-Disposition"),
    ],
)
@pytest.mark.parametrize("size", [None, 1])
def test_a_form_that_is_none_says_what_is_wrong(body: bytes, says: str, size: int | None) -> None:
    with pytest.raises(MultipartBroken, match=says):
        read(body, size=size)


def test_no_more_of_a_file_is_held_than_a_boundary_is_long() -> None:
    reader = MultipartReader(b"X")
    list(reader.feed(b"--X\r\n" + disposition("a").encode() + b"\r\n\r\n"))
    for _ in range(50):
        got = sum(len(event.data) for event in reader.feed(b"y" * 1_000) if isinstance(event, Data))
        assert got >= 990


@pytest.mark.parametrize(
    ("header", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('multipart/form-data; charset=utf-8; Boundary="a b:c"', b"a b:c"),
        ("multipart/form-data;boundary=----WebKitFormBoundary7MA4YWxk", b"----WebKitFormBoundary7MA4YWxk"),
    ],
)
def test_the_boundary_stands_in_the_content_type(header: str, boundary: bytes) -> None:
    assert boundary_of(header) == boundary


@pytest.mark.parametrize(
    "header",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        'multipart/form-data; boundary="ends with a blank "',
        f"multipart/form-data; boundary={'x' * 71}",
        "multipart/form-data; boundary=a; boundary=b",
        'multipart/form-data; boundary="é"',
    ],
)
def test_a_boundary_that_cannot_be_one_is_refused(header: str) -> None:
    with pytest.raises(UnsupportedMedia):
        boundary_of(header)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ('form-data; name="f"; filename="a b.txt"', "a b.txt"),
        ("attachment; filename=plain.txt", "plain.txt"),
        ('form-data; filename="say \\"hi\\".txt"', 'say "hi".txt'),
        ('form-data; filename="C:\\new\\report.pdf"', "C:\\new\\report.pdf"),
        ('form-data; filename="semi;colon.txt"', "semi;colon.txt"),
        ("attachment; filename=\"plain\"; filename*=UTF-8''na%C3%AFve%20%E2%98%83.txt", "naïve ☃.txt"),
        ("attachment; filename*=iso-8859-1'en'%A3.txt", "£.txt"),
        ("attachment; filename=\"kept\"; filename*=klingon''x", "kept"),
        ('form-data; filename="ünï.txt"', "ünï.txt"),
        ('form-data; name="f"', None),
        ("", None),
    ],
)
def test_the_name_of_a_file_is_read_as_browsers_write_it(header: str, name: str | None) -> None:
    assert file_name(header) == name
