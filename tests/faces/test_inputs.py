"""A user's message: what is read from it, and what is refused in which words."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psi.core.errors import Invalid
from psi.core.identity import ALL_SCOPES, Identity
from psi.edn import thaw
from psi.errors import PsiError
from psi.faces.inputs import LARGEST_IMAGE, LONGEST_CONTENT, FileUnknown, Input, read_input
from psi.faces.uploads import Stored, Uploads

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
JPEG = b"\xff\xd8\xff\xe0" + bytes(20)
GIF = b"GIF89a" + bytes(20)
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 " + bytes(8)

ANYBODY = Identity(None, ALL_SCOPES, "127.0.0.1")
ADA = Identity("ada", ALL_SCOPES, "tok-1")
NOWHERE = Uploads(None, 100)


def coded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def read(data: Any) -> Input:
    return read_input(data, NOWHERE, ANYBODY)


def image(given: Any) -> dict[str, Any]:
    _, part = read({"content": "Look.", "images": [given]}).content
    found: dict[str, Any] = thaw(part)
    return found


def refusal(data: Any, uploads: Uploads = NOWHERE, identity: Identity = ANYBODY) -> PsiError:
    with pytest.raises(PsiError) as refused:
        read_input(data, uploads, identity)
    assert isinstance(refused.value, Invalid | FileUnknown)
    return refused.value


def stored(uploads: Uploads, user: str | None, name: str = "a.txt", content: bytes = b"A") -> Stored:
    incoming = uploads.of(user).begin()
    incoming.write(content)
    return incoming.keep(name)


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "data", 1_000)


# -- the text


def test_a_message_is_its_text() -> None:
    found = read({"content": " Hello,\nWelt ☃ "})
    assert found.text == " Hello,\nWelt ☃ "
    assert [thaw(part) for part in found.content] == [{"type": "text", "text": " Hello,\nWelt ☃ "}]


def test_null_and_empty_lists_are_nothing() -> None:
    assert read({"content": "x", "images": None, "files": []}) == read({"content": "x"})


@pytest.mark.parametrize("content", [None, "", "  \n", 7, ["x"], {"text": "x"}, "half \ud800"])
def test_content_is_a_non_blank_text(content: Any) -> None:
    refused = refusal({"content": content})
    assert refused.code == "session/message-required"
    assert refused.message == "session submit requires a non-blank `content`"


def test_content_has_a_longest_length() -> None:
    assert read({"content": "x" * LONGEST_CONTENT}).text == "x" * LONGEST_CONTENT
    refused = refusal({"content": "é" * (LONGEST_CONTENT + 1)})
    assert refused.code == "input/content-too-long"
    assert refused.facts() == {"limit": LONGEST_CONTENT}


@pytest.mark.parametrize("data", [None, [], "Hello", 7])
def test_a_message_is_an_object(data: Any) -> None:
    assert refusal(data).message.startswith("a message is an object with `content`, got ")


def test_an_unknown_key_is_refused_with_the_one_that_was_meant() -> None:
    assert refusal({"content": "x", "image": []}).message == "unknown key `image`; did you mean `images`?"
    assert refusal({"content": "x", "zzz": 1}).message == "unknown key `zzz`; accepted: `content`, `images`, `files`"


# -- images


@pytest.mark.parametrize(
    ("content", "media_type"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")]
)
def test_an_image_is_known_by_its_first_bytes(content: bytes, media_type: str) -> None:
    assert image(coded(content)) == {"type": "image", "media-type": media_type, "data": coded(content)}


@pytest.mark.parametrize(
    ("prefix", "media_type"),
    [
        ("data:image/svg+xml;base64,", "image/svg+xml"),
        ("DATA:Image/JPG;BASE64,", "image/jpeg"),
        ("data:image/gif;charset=utf-8;base64,", "image/gif"),
        ("data:;base64,", "application/octet-stream"),
        ("data:application/octet-stream;base64,", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_what_a_data_uri_says_counts_where_the_bytes_say_nothing(prefix: str, media_type: str) -> None:
    unknown = coded(b"<svg></svg>")
    assert image(prefix + unknown) == {"type": "image", "media-type": media_type, "data": unknown}
    assert image(prefix + coded(PNG)) == {"type": "image", "media-type": "image/png", "data": coded(PNG)}


def test_images_stand_behind_the_text_in_their_order() -> None:
    found = read({"content": "Look.", "images": [coded(PNG), coded(GIF)]})
    assert [thaw(part)["type"] for part in found.content] == ["text", "image", "image"]
    assert [part.get("media-type") for part in found.content] == [None, "image/png", "image/gif"]
    assert found.text == "Look."


@pytest.mark.parametrize("every", [76, 2_000, 10**6])
def test_base64_may_be_wrapped_in_lines(every: int) -> None:
    text = coded(PNG * 200)
    lines = "\r\n".join(text[start : start + every] for start in range(0, len(text), every))
    for sent in (lines, f" {lines}\n", f"\n data:image/png;base64,{lines}\n"):
        assert image(sent)["data"] == text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("not base64!", "`images[0]` is not base64"),
        (coded(PNG)[:-1], "`images[0]` is not base64"),
        (coded(PNG) + "=", "`images[0]` is not base64"),
        ("aGk=aGk=", "`images[0]` is not base64"),
        ("", "`images[0]` is empty"),
        ("data:image/png;base64,", "`images[0]` is empty"),
        ("é" * 8, "must be base64 text"),
        (None, "must be base64 text of an image, or a data URI, got nil"),
        ({"data": "x"}, "must be base64 text"),
        ("data:image/png,abc", "is a data URI, but not one of the form"),
        ("data:image/png;base64" + "x" * 300, "is a data URI, but not one of the form"),
    ],
)
def test_what_is_no_base64_is_refused(given: Any, says: str) -> None:
    refused = refusal({"content": "x", "images": [given]})
    assert refused.code == "input/invalid-image"
    assert says in refused.message


def test_a_data_uri_of_something_else_is_refused() -> None:
    refused = refusal({"content": "x", "images": [coded(PNG), "data:text/html;base64," + coded(b"<p>")]})
    assert refused.code == "input/invalid-image"
    assert refused.message == "`images[1]` is a data URI of `text/html`, and that is no image"


def test_an_image_may_have_five_mebibytes_and_no_byte_more() -> None:
    whole = PNG.ljust(LARGEST_IMAGE, b"\0")
    assert image(coded(whole))["data"] == coded(whole)
    for more in (1, 2, 3):
        refused = refusal({"content": "x", "images": [coded(whole + bytes(more))]})
        assert refused.code == "input/image-too-large"
        assert refused.facts() == {"limit": LARGEST_IMAGE}


def test_ten_images_are_accepted_and_eleven_are_not() -> None:
    assert len(read({"content": "x", "images": [coded(PNG)] * 10}).content) == 11
    refused = refusal({"content": "x", "images": [coded(PNG)] * 11})
    assert (refused.code, refused.message) == ("input/too-many-images", "a message has at most 10 images, got 11")


@pytest.mark.parametrize("name", ["images", "files"])
def test_images_and_files_are_lists(name: str) -> None:
    refused = refusal({"content": "x", name: "one"})
    assert (refused.code, refused.message) == (f"input/invalid-{name}", f'`{name}` must be a list, got "one"')


@given(st.text(max_size=40) | st.binary(max_size=40).map(coded))
def test_whatever_stands_for_an_image_is_read_or_refused(given: str) -> None:
    try:
        part = image(given)
    except Invalid as refused:
        assert refused.code.startswith("input/")  # noqa: PT017 – either is right
    else:
        assert base64.b64decode(part["data"], validate=True)


# -- files


def test_files_are_named_at_the_end_of_the_text(uploads: Uploads) -> None:
    one = stored(uploads, "ada", "a.txt")
    two = stored(uploads, "ada", "ü b.pdf")
    files = [one.as_data(), {"name": "the plan", "path": two.path}, {"path": two.path}]
    found = read_input({"content": "See.", "files": files}, uploads, ADA)
    assert found.text == f"See.\n\n[Uploaded files on disk: {one.path}, the plan ({two.path}), {two.path}]"
    assert [thaw(part) for part in found.content] == [{"type": "text", "text": found.text}]


def test_another_users_upload_is_none(uploads: Uploads) -> None:
    theirs = stored(uploads, "bob")
    refused = refusal({"content": "x", "files": [{"path": theirs.path}]}, uploads, ADA)
    assert refused.code == "input/unknown-file"
    missing = refusal({"content": "x", "files": [{"path": theirs.path + "x"}]}, uploads, ADA)
    assert missing.as_data() == refused.as_data()  # which of the two it is, is not told


def test_whoever_runs_the_process_may_refer_to_all_uploads(uploads: Uploads) -> None:
    theirs = stored(uploads, "bob")
    assert theirs.path in read_input({"content": "x", "files": [{"path": theirs.path}]}, uploads, ANYBODY).text


def test_a_path_leads_to_an_upload_or_nowhere(uploads: Uploads, tmp_path: Path) -> None:
    mine = Path(stored(uploads, "ada").path)
    (tmp_path / "secret").write_text("s", encoding="utf-8")
    beside = mine.with_name("beside")
    beside.symlink_to(tmp_path / "secret")
    (mine.parent.parent / "linked").symlink_to(tmp_path)
    (mine.parent / "deeper").mkdir()
    (mine.parent / "deeper" / "file").write_text("x", encoding="utf-8")
    incoming = uploads.of("ada").begin()
    incoming.write(b"half")
    for path in (
        "/etc/passwd",
        str(tmp_path / "secret"),
        f"{mine.parent}/../{mine.parent.name}/{mine.name}",
        f"{mine.parent}/../../../../secret",
        str(beside),
        str(mine.parent.parent / "linked" / "secret"),
        str(mine.parent),
        str(mine.parent / "deeper" / "file"),
        str(uploads.root),
        str(next((uploads.root / ".incoming").iterdir())),
        str(mine.relative_to(tmp_path)),
        mine.name,
        f"{mine}\0",
        "/" + "x" * 4_000,
        "~/secret",
        f"file://{mine}",
    ):
        refused = refusal({"content": "x", "files": [{"path": path}]}, uploads, ADA)
        assert refused.code == "input/unknown-file", path
    incoming.drop()
    assert read_input({"content": "x", "files": [{"path": str(mine)}]}, uploads, ADA).text.endswith("a.txt]")


def test_without_a_folder_there_is_nothing_to_refer_to() -> None:
    assert refusal({"content": "x", "files": [{"path": "/etc/passwd"}]}).code == "input/unknown-file"


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("a.txt", "`files[0]` must be an object with `name` and `path`"),
        ({}, "`files[0].path` must be the path that POST /uploads has answered, got nil"),
        ({"path": 7}, "`files[0].path` must be the path"),
        ({"path": ""}, "`files[0].path` must be the path"),
        ({"path": "/" * 5_000}, "`files[0].path` must be the path"),
        ({"path": "/x", "nmae": "y"}, "`files[0]` has an unknown key `nmae`; accepted: `name`, `path`"),
    ],
)
def test_a_file_that_is_no_reference_is_refused(file: Any, says: str) -> None:
    refused = refusal({"content": "x", "files": [file]})
    assert refused.code == "input/invalid-file"
    assert refused.message.startswith(says)


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "x" * 256, 7, "half \ud800"])
def test_a_files_name_fits_on_a_line(name: Any, uploads: Uploads) -> None:
    file = {"name": name, "path": stored(uploads, "ada").path}
    assert refusal({"content": "x", "files": [file]}, uploads, ADA).message.startswith("`files[0].name` must be")


def test_there_are_at_most_a_hundred_files() -> None:
    assert refusal({"content": "x", "files": [{}] * 101}).code == "input/too-many-files"
