"""The exchange over HTTP, with servers that answer in every way that HTTP allows, and in some that it does not."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from tests.tool.cli import answering, http
from tool import client
from tool.client import Address, BadAddress, NoService, NotHttp, Reply, address, post

URLS = {
    "http://127.0.0.1:8420": ("http", "127.0.0.1", 8420, ""),
    "http://localhost": ("http", "localhost", 80, ""),
    "https://psi.example/": ("https", "psi.example", 443, ""),
    "HTTP://psi.example:81/a/b/": ("http", "psi.example", 81, "/a/b"),
    "http://[::1]:8420": ("http", "::1", 8420, ""),
    "http://[::1]": ("http", "::1", 80, ""),
    "localhost:8420": ("http", "localhost", 8420, ""),
    "[::1]:8420/below": ("http", "::1", 8420, "/below"),
    # What the service prints when it starts is taken for the service.
    "http://127.0.0.1:8420/psi-tool": ("http", "127.0.0.1", 8420, ""),
    "http://psi.example/below/graphql/": ("http", "psi.example", 80, "/below"),
    "http://psi.example/psi-tool/eql": ("http", "psi.example", 80, "/psi-tool"),
}


@pytest.mark.parametrize(("url", "parts"), URLS.items(), ids=URLS.keys())
def test_a_url_is_taken_apart(url: str, parts: tuple[Any, ...]) -> None:
    found = address(url)
    assert (found.scheme, found.host, found.port, found.path) == parts


@pytest.mark.parametrize("url", ["http://127.0.0.1:8420", "https://psi.example/a", "http://[::1]:8420"])
def test_an_address_reads_as_its_url(url: str) -> None:
    assert str(address(url)) == url


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost", "localhost:http", ":8420", "ftp://x", "http://", "http://:80", "http://x:y", "http://x:0"),
        *(
            "http://x:65536",
            "http://::1",
            "http://a b",
            "http://x?a=1",
            "http://u@x",
            "http://x#a",
            "http://x\r\ny",
            "ä",
        ),
    ],
)
def test_a_url_that_no_service_can_have_is_refused(url: str) -> None:
    with pytest.raises(BadAddress, match="http://"):
        address(url)


async def send(url: str, body: bytes = b"{}", silence: float | None = 30.0) -> Reply:
    return await asyncio.to_thread(post, address(url), "/psi-tool", body, {"Content-Type": "application/json"}, silence)


ANSWERS = {
    "with a length": http(200, b"hello"),
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=1\r\nlo\r\n0\r\n\r\n",
    "until the end": b"HTTP/1.0 200 OK\r\nContent-Type: x\r\n\r\nhello",
    "after a word in between": b"HTTP/1.1 100 Continue\r\n\r\n" + http(200, b"hello"),
    "with more behind it": http(200, b"hello") + b"and more",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
async def test_an_answer_is_read_whichever_way_its_end_is_told(answer: bytes) -> None:
    async with answering(answer) as server:
        reply = await send(server.url)
    assert (reply.status, reply.body) == (200, b"hello")


async def test_a_request_says_what_it_is_and_that_it_is_the_only_one() -> None:
    async with answering(http(204)) as server:
        reply = await send(f"{server.url}/below", b'{"a": 1}')
    (came,) = server.came
    assert came.line == "POST /below/psi-tool HTTP/1.1"
    assert came.headers["host"] == server.url.removeprefix("http://")
    assert came.headers["connection"] == "close"
    assert came.body == b'{"a": 1}'
    assert (reply.status, reply.body) == (204, b"")


BROKEN = {
    "nothing": (b"", NoService, "closed without an answer"),
    "half of a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal", NoService, "broke off"),
    "half of the chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", NoService, "broke off"),
    "chunks of no size": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nx", NoService, "broke off"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n", NotHttp, "not HTTP"),
    "a length that is none": (b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n", NotHttp, "the length 'ten'"),
    "a line without an end": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, NotHttp, "too long"),
    "a length beyond all": (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 23 + b"\r\n\r\n{}", NotHttp, "larger than"),
    "a length of many digits": (
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n{}",
        NotHttp,
        "larger than",
    ),
    "a chunk beyond all": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"9" * 20 + b"\r\nabc",
        NotHttp,
        "larger than",
    ),
    "many headers": (b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 5_000, NotHttp, "more than 100 lines"),
    "large headers": (b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"x" * 2_000 + b"\r\n") * 50, NotHttp, "too long"),
    "headers that break off": (b"HTTP/1.1 200 OK\r\nContent-Type: x\r\n", NoService, "broke off"),
    "announcements": (b"HTTP/1.1 100 Continue\r\n\r\n" * 50, NotHttp, "again and again"),
}


@pytest.mark.parametrize(("answer", "error", "words"), BROKEN.values(), ids=BROKEN.keys())
async def test_an_answer_that_is_none_is_told_as_what_it_is(answer: bytes, error: type[Exception], words: str) -> None:
    async with answering(answer) as server:
        with pytest.raises(error, match=words):
            await send(server.url)


async def test_a_length_that_is_only_said_costs_no_memory() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n{}") as server:
        tracemalloc.start()
        try:
            with pytest.raises(NoService, match="broke off"):
                await send(server.url)
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


SILENT = {
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal",
    "half of what ends with the connection": b"HTTP/1.1 200 OK\r\n\r\nhal",
}


@pytest.mark.parametrize("said", SILENT.values(), ids=SILENT.keys())
async def test_a_service_that_says_nothing_more_is_not_waited_for_for_ever(said: bytes) -> None:
    async with answering(said, stays=True) as server:
        with pytest.raises(
            NoService, match=r"nothing came for 0\.2 s; whether the request was carried out is not known"
        ):
            await send(server.url, silence=0.2)


@pytest.mark.parametrize("silence", [0.2, None])
async def test_nor_is_one_that_does_not_say_who_it_is(silence: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.2)
    async with answering(b"", reads=False, stays=True) as server:
        with pytest.raises(NoService, match=r"nothing came for 0\.2 s"):
            await send(server.url.replace("http:", "https:"), silence=silence)


async def test_a_request_that_nobody_takes_is_not_sent_for_ever() -> None:
    async def never_reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await gone.wait()
        writer.close()

    gone = asyncio.Event()
    server = await asyncio.start_server(never_reads, "127.0.0.1", 0)
    try:
        with pytest.raises(NoService, match=r"nothing came for 0\.2 s"):
            await send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", b"x" * 30_000_000, silence=0.2)
    finally:
        gone.set()
        server.close()


async def test_an_answer_that_comes_before_all_was_sent_is_heard() -> None:
    async with answering(http(413, b"too much"), reads=False) as server:
        try:
            reply = await send(server.url, b"x" * 100)
        except NoService:  # the system may throw away what was not read yet, together with the connection
            return
    assert reply.status == 413


def test_nobody_there_is_told_with_the_reason() -> None:
    with pytest.raises(NoService, match="Connection refused"):
        post(Address("http", "127.0.0.1", 1, ""), "/psi-tool", b"", {})


async def test_a_server_without_tls_is_told_as_one() -> None:
    async with answering(http(400), reads=False) as server:
        with pytest.raises(NotHttp, match=f"it speaks no TLS, so try {server.url}$"):
            await send(server.url.replace("http:", "https:"))


async def test_so_is_one_with_tls_that_was_asked_without() -> None:
    async with answering(b"\x15\x03\x01\x00\x02\x02\x46") as server:
        with pytest.raises(NotHttp, match="it speaks TLS, so try https://"):
            await send(server.url)
