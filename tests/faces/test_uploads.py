"""POST /uploads: files that come in whole are kept where they belong, and of all others nothing is left."""

from __future__ import annotations

import asyncio
import hashlib
import stat
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from psi.faces.uploads import Uploads, clean_name
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Answer, Served, serving
from tests.faces.test_multipart import disposition, form

OCTETS = "application/octet-stream"
FORM = "multipart/form-data; boundary=X"


@asynccontextmanager
async def uploading(folder: Path, **more: Any) -> AsyncIterator[Served]:
    """A psi that keeps its data in a folder."""
    data = folder / "data"
    async with serving(Settings(data=str(data), **more), data=data) as served:
        yield served


def kept(folder: Path) -> list[Path]:
    """Every file under the upload root, those on their way in among them."""
    return sorted(path for path in (folder / "data" / "uploads").rglob("*") if not path.is_dir())


def contents(told: Any) -> bytes:
    return Path(told["path"]).read_bytes()


def modes(path: str) -> list[int]:
    """Who may do what with a file, and with the three folders above it."""
    return [stat.S_IMODE(each.stat().st_mode) for each in (Path(path), *Path(path).parents[:3])]


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


async def idle(served: Served) -> None:
    """Until the service works on no request."""
    while tasks := set(served.server.server_state.tasks):
        await asyncio.wait(tasks)


# -- a file as the body


async def test_a_file_is_stored_for_its_owner_alone_and_told(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    async with uploading(tmp_path) as served:
        answer = await served.post("/uploads?name=report.pdf", content, content_type=OCTETS)
    assert answer.status == 201
    told = answer.json()
    assert told == {
        "name": "report.pdf",
        "path": told["path"],
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    assert contents(told) == content
    assert [str(path) for path in kept(tmp_path)] == [told["path"]]
    assert modes(told["path"]) == [0o600, 0o700, 0o700, 0o700]
    assert Path(told["path"]).parts[-4:-2] == ("uploads", "local")


async def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        answers = await asyncio.gather(*(served.post("/uploads?name=a.txt", f"{n}") for n in range(8)))
    paths = [Path(answer.json()["path"]) for answer in answers]
    assert [path.read_text(encoding="utf-8") for path in paths] == [str(n) for n in range(8)]
    assert sorted(paths) == kept(tmp_path)


async def test_the_name_may_stand_in_content_disposition(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        said = "attachment; filename*=UTF-8''na%C3%AFve.txt"
        assert (await served.post("/uploads", b"x", content_disposition=said)).json()["name"] == "naïve.txt"
        query = await served.post("/uploads?name=first.txt", b"x", content_disposition=said)
        assert query.json()["name"] == "first.txt"


@pytest.mark.parametrize("headers", [{}, {"content_disposition": "attachment"}])
async def test_a_file_without_a_name_is_called_file(tmp_path: Path, headers: dict[str, str]) -> None:
    async with uploading(tmp_path) as served:
        answer = await served.post("/uploads", b"x", **headers)
    assert (answer.status, answer.json()["name"], answer.json()["size"]) == (201, "file", 1)


@pytest.mark.parametrize("path", ["/uploads?name=", "/uploads?name=%20"])
async def test_a_name_that_says_nothing_is_refused(tmp_path: Path, path: str) -> None:
    async with uploading(tmp_path) as served:
        assert code(await served.post(path, b"x")) == (400, "uploads/name-required")
        sent = form((disposition("a"), b"one"))
        assert code(await served.post(path, sent, content_type=FORM)) == (400, "uploads/name-required")
    assert kept(tmp_path) == []


async def test_a_file_may_be_empty(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        answer = await served.post("/uploads?name=empty", b"")
    assert (answer.status, answer.json()["size"]) == (201, 0)
    assert [path.read_bytes() for path in kept(tmp_path)] == [b""]


async def test_a_file_may_come_in_chunks_of_which_nobody_knows_how_many(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served, served.connect() as connection:
        await connection.send("POST", "/uploads?name=a", headers={"transfer-encoding": "chunked"})
        connection.writer.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        answer = await connection.answer()
    assert answer.status == 201
    assert contents(answer.json()) == b"abcde"


# -- a form


async def test_a_form_with_one_file_is_answered_like_a_file(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        body = form(('Content-Disposition: form-data; name="note"', b"hello"), (disposition("ü.txt"), b"one"))
        answer = await served.post("/uploads", body, content_type=FORM)
    assert answer.status == 201
    assert (answer.json()["name"], answer.json()["size"]) == ("ü.txt", 3)
    assert [path.read_bytes() for path in kept(tmp_path)] == [b"one"]


async def test_a_form_with_several_files_is_answered_with_all(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        body = form((disposition("a"), b"one"), (disposition(""), b""), (disposition("b"), b""))
        answer = await served.post("/uploads", body, content_type=FORM)
    files = answer.json()["files"]
    assert [(file["name"], file["size"]) for file in files] == [("a", 3), ("b", 0)]
    assert sorted(file["path"] for file in files) == [str(path) for path in kept(tmp_path)]


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (form(('Content-Disposition: form-data; name="note"', b"x")), FORM, (400, "uploads/file-required")),
        (form((disposition(""), b"")), FORM, (400, "uploads/file-required")),
        (b"--X--", FORM, (400, "uploads/file-required")),
        (form((disposition("a"), b"x" * 300_000))[:-4], FORM, (400, "http/broken-form")),
        (form((disposition("a"), b"x" * 300_000), ("no header", b"")), FORM, (400, "http/broken-form")),
        (b"", FORM, (400, "http/broken-form")),
        (b"--X--", "multipart/form-data", (415, "http/unsupported-media-type")),
    ],
)
async def test_a_form_that_cannot_be_used_leaves_nothing(
    tmp_path: Path, body: bytes, content_type: str, expected: tuple[int, str]
) -> None:
    async with uploading(tmp_path) as served:
        assert code(await served.post("/uploads", body, content_type=content_type)) == expected
    assert kept(tmp_path) == []


# -- limits


async def test_an_upload_may_be_as_large_as_the_setting_says_and_no_byte_more(tmp_path: Path) -> None:
    async with uploading(tmp_path, max_upload=300_000, max_body=1_000) as served:
        assert (await served.post("/uploads?name=a", b"x" * 300_000)).status == 201
        answer = await served.post("/uploads?name=a", b"x" * 300_001)
        assert code(answer) == (413, "http/too-large")
        assert answer.json()["error"]["details"] == {"limit": 300_000, "setting": "max_upload"}
        exactly = form((disposition("a"), b"x" * 200_000), (disposition("b"), b"x" * 100_000))
        assert (await served.post("/uploads", exactly, content_type=FORM)).status == 201
        more = form((disposition("a"), b"x" * 200_000), (disposition("b"), b"x" * 100_001))
        assert code(await served.post("/uploads", more, content_type=FORM)) == (413, "http/too-large")
    assert sorted(path.stat().st_size for path in kept(tmp_path)) == [100_000, 200_000, 300_000]


async def test_what_is_far_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async with uploading(tmp_path, max_upload=1_000) as served, served.connect() as connection:
        await connection.send("POST", "/uploads?name=a", headers={"content-length": str(1 << 30)})
        assert code(await connection.answer()) == (413, "http/too-large")


async def test_a_body_without_a_length_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    async with uploading(tmp_path, max_upload=500_000) as served, served.connect() as connection:
        await connection.send("POST", "/uploads?name=a", headers={"transfer-encoding": "chunked"})
        for _ in range(6):
            connection.writer.write(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
        assert code(await connection.answer()) == (413, "http/too-large")
        await idle(served)
    assert kept(tmp_path) == []


async def test_an_upload_is_never_whole_in_memory(tmp_path: Path) -> None:
    size = 16 << 20
    async with uploading(tmp_path) as served, served.connect() as connection:
        tracemalloc.start()
        try:
            await connection.send("POST", "/uploads?name=a", headers={"content-length": str(size)})
            piece = b"x" * (1 << 16)
            for _ in range(size // len(piece)):
                connection.writer.write(piece)
                await connection.writer.drain()
            answer = await connection.answer()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert answer.json()["size"] == size
    assert peak < size // 4


# -- what goes wrong


async def test_an_upload_that_breaks_off_leaves_nothing_behind(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        async with served.connect() as connection:
            await connection.send("POST", "/uploads?name=a", headers={"content-length": "2000000"})
            connection.writer.write(b"x" * 1_000_000)
            await connection.writer.drain()
            while not kept(tmp_path):  # noqa: ASYNC110 – it is the disk that is waited for, and that has no event
                await asyncio.sleep(0)
        await idle(served)
        assert kept(tmp_path) == []
        assert (await served.post("/uploads?name=a", b"whole")).status == 201


async def test_what_a_crash_left_on_its_way_in_goes_when_the_service_starts(tmp_path: Path) -> None:
    left = tmp_path / "data" / "uploads" / ".incoming" / "half"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    whole = Uploads(tmp_path / "elsewhere", 1).of("ada").begin().keep("a.txt")
    async with uploading(tmp_path):
        assert kept(tmp_path) == []
    Uploads(tmp_path / "elsewhere", 1)
    assert contents(whole.as_data()) == b""


async def test_a_disk_that_does_not_take_it_is_told_without_details(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        (tmp_path / "data" / "uploads").write_text("in the way", encoding="utf-8")
        answer = await served.post("/uploads?name=a", b"x")
    assert code(answer) == (503, "uploads/not-stored")
    assert str(tmp_path) not in answer.text


async def test_a_psi_that_keeps_its_data_in_memory_takes_no_uploads(tmp_path: Path) -> None:
    for data in (tmp_path / "not there", tmp_path):
        async with serving(Settings(data=str(data))) as served:
            answer = await served.post("/uploads?name=a", b"x")
            assert code(answer) == (409, "uploads/no-folder")
            assert "in memory" in answer.json()["error"]["message"]
    assert kept(tmp_path) == []


async def test_a_folder_that_another_process_uses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1\n", encoding="ascii")
    async with serving(Settings(data=str(tmp_path))) as served:
        assert code(await served.post("/uploads?name=a", b"x")) == (409, "uploads/no-folder")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_uploads_are_posted(tmp_path: Path, method: str) -> None:
    async with uploading(tmp_path) as served:
        answer = await served.request(method, "/uploads")
        assert (code(answer), answer.headers["allow"]) == ((405, "http/method-not-allowed"), "POST")


# -- whose


async def test_uploads_are_their_users_own(tmp_path: Path) -> None:
    data = tmp_path / "data"
    settings = Settings(data=str(data), auth=True)
    with Credentials.open(tmp_path / "credentials") as credentials:
        keys = {
            user: credentials.create_token(now=datetime.now(UTC), user=user, name="t", scopes=scopes, lasts=None).text
            for user, scopes in (("ada", ("write",)), ("bob", ("write",)), ("eve", ("read",)))
        }
        async with serving(settings, credentials=credentials, data=data) as served:

            async def post(user: str | None, path: str, body: Any) -> Answer:
                headers = {} if user is None else {"authorization": f"Bearer {keys[user]}"}
                return await served.request("POST", path, body, headers)

            mine = (await post("ada", "/uploads?name=a.txt", b"A")).json()
            assert Path(mine["path"]).parent.parent.name == "ada"
            sessions = {user: (await post(user, "/sessions", {})).json()["id"] for user in ("ada", "bob")}
            message = {"content": "See.", "files": [mine]}
            assert (await post("ada", f"/sessions/{sessions['ada']}/messages?wait=1", message)).status == 200
            theirs = await post("bob", f"/sessions/{sessions['bob']}/messages", message)
            assert code(theirs) == (403, "input/unknown-file")
            assert code(await post("eve", "/uploads?name=a.txt", b"A")) == (403, "auth/read-only")
            assert code(await post(None, "/uploads?name=a.txt", b"A")) == (401, "auth/required")
    assert [str(path) for path in kept(tmp_path)] == [mine["path"]]


# -- names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\a b.txt", "a b.txt"),
        ("/", "file"),
        ("..", "file"),
        (".bashrc", "bashrc"),
        ("trailing. . ", "trailing"),
        ("two\nlines\x1b[31m.txt", "twolines[31m.txt"),
        ('a<b>:"|?*.txt', "a_b______.txt"),
        ("  many   blanks .txt", "many blanks .txt"),
        ("naïve ☃.txt", "naïve ☃.txt"),
        ("e\u0301.txt", "é.txt"),
        ("\u202egnp.exe", "gnp.exe"),
        ("half\ud800.txt", "half_.txt"),
        ("", "file"),
    ],
)
def test_a_name_is_kept_as_far_as_it_can_be(given: str, name: str) -> None:
    assert clean_name(given) == name


def test_a_long_name_keeps_its_ending() -> None:
    assert clean_name("x" * 500 + ".tar") == "x" * 196 + ".tar"
    assert clean_name("☃" * 500 + ".png") == "☃" * 65 + ".png"
    assert clean_name("x." + "y" * 500) == "x." + "y" * 198


@pytest.mark.parametrize("query", ["name=a&x=b", "name=a&name=b", "nmae=a"])
async def test_a_parameter_that_is_not_known_or_comes_twice_is_refused(tmp_path: Path, query: str) -> None:
    async with uploading(tmp_path) as served:
        status, why = code(await served.post(f"/uploads?{query}", b"content", content_type=OCTETS))
    assert (status, why.partition("/")[0]) == (400, "rest")
    assert kept(tmp_path) == []
