"""Sessions over HTTP: created, listed, read, told something, stopped and deleted; and everything that is refused."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from psi.agents import AgentEvent, FinalAnswer, TurnContext
from psi.core.commands import CreateSession
from psi.faces.inputs import LARGEST_IMAGE
from psi.settings import Settings
from psi.store import Credentials
from tests.faces.serving import Answer, Served, serving
from tests.faces.test_uploads import idle, uploading

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
START = "2026-01-01T00:00:00Z"


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as found:
        yield found


async def opened(served: Served, **body: Any) -> str:
    answer = await served.post("/sessions", body)
    assert answer.status == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def told(served: Served, session: str, content: str, **more: Any) -> Any:
    """How the run of a message ended."""
    answer = await served.post(f"/sessions/{session}/messages?wait=1", {"content": content, **more})
    assert answer.status == 200, answer.text
    return answer.json()


async def history(served: Served, session: str) -> list[tuple[str, str]]:
    messages = (await served.get(f"/sessions/{session}")).json()["messages"]
    return [(message["role"], message["content"]) for message in messages]


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json()["error"]["code"]


# -- creating


async def test_a_session_is_created_and_told_where_it_is(served: Served) -> None:
    answer = await served.post("/sessions", {"name": "Erste ☃"})
    assert answer.status == 201
    session = answer.json()
    assert session == {
        "id": session["id"],
        "name": "Erste ☃",
        "phase": "idle",
        "owner": "local",
        "created_at": START,
        "updated_at": START,
        "message_count": 0,
        "pending_schedules": 0,
        "pending_recall": None,
        "active_run_id": None,
    }
    assert answer.headers["location"] == f"/sessions/{session['id']}"
    shown = await served.get(answer.headers["location"])
    assert shown.json() == {**session, "messages": [], "messages_next": None, "messages_previous": None}


@pytest.mark.parametrize("body", [b"", {}, {"name": None, "config": None}])
async def test_a_session_needs_nothing(served: Served, body: Any) -> None:
    answer = await served.post("/sessions", body)
    assert (answer.status, answer.json()["name"]) == (201, None)


@pytest.mark.parametrize("mark", ["-", "_"])
async def test_a_config_has_its_keys_in_either_spelling(served: Served, mark: str) -> None:
    messages = [{"role": "user", "content": "Earlier."}, {"role": "assistant", "content": "Yes."}]
    config = {"session-name": "Configured", "thinking-level": "low", "preloaded-messages": messages}
    session = await opened(served, config={key.replace("-", mark): value for key, value in config.items()})
    found = (await served.get(f"/sessions/{session}")).json()
    assert (found["name"], found["message_count"]) == ("Configured", 2)
    assert [message["content"] for message in found["messages"]] == ["Earlier.", "Yes."]
    level = await served.post("/eql", {"query": "[:psi.agent-session/thinking-level]"}, psi_session=session)
    assert level.json() == {"psi.agent-session/thinking-level": "low"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"name": " "}, (400, "session/invalid-name")),
        ({"name": 7}, (400, "session/invalid-name")),
        ({"config": {"thinking_level": "fierce"}}, (400, "session-config/invalid")),
        ({"config": {"colour": "red"}}, (400, "session-config/invalid")),
        ({"config": 7}, (400, "session-config/invalid")),
        ({"nmae": "x"}, (400, "rest/unknown-key")),
        ([], (400, "rest/invalid-request")),
        ("{", (400, "http/unreadable")),
        ("{:name 1}", (400, "http/unreadable")),
    ],
)
async def test_a_session_that_cannot_be_is_refused_and_not_there(
    served: Served, body: Any, expected: tuple[int, str]
) -> None:
    answer = await served.post("/sessions", body)
    assert code(answer) == expected
    assert (await served.get("/sessions")).json() == {"sessions": [], "next": None}


async def test_all_problems_of_a_config_are_told_at_once(served: Served) -> None:
    answer = await served.post("/sessions", {"config": {"thinking_level": "fierce", "session_name": ""}})
    problems = answer.json()["error"]["details"]["problems"]
    assert {problem["path"] for problem in problems} == {"thinking-level", "session-name"}


async def test_of_very_many_problems_some_are_told_and_the_answer_is_the_usual_one(served: Served) -> None:
    config = {"tool-ids": list(range(50_000))}
    answer = await served.post("/sessions", {"config": config})
    assert (answer.status, answer.json()["error"]["code"]) == (400, "session-config/invalid")
    assert answer.json()["error"]["details"]["more_problems"] == 49_950
    envelope = await served.tool({"action": "session", "op": "create", "config": config})
    assert envelope["psi-tool/error"]["message"].endswith("; and 49 950 more")


async def test_pictures_that_a_session_begins_with_are_told_with_their_type_and_size(served: Served) -> None:
    def beginning(**part: Any) -> dict[str, Any]:
        return {"config": {"preloaded_messages": [{"role": "user", "content": [{"type": "image", **part}]}]}}

    odd = await served.post("/sessions", beginning(**{"media-type": 5, "size": "huge"}))
    assert [each["path"] for each in odd.json()["error"]["details"]["problems"]] == [
        "preloaded-messages[0].content[0].media-type",
        "preloaded-messages[0].content[0].size",
        "preloaded-messages[0].content[0].data",
    ]
    made = (await served.post("/sessions", beginning(media_type="image/png", data="iVBORw0KGgo="))).json()["id"]
    (message,) = (await served.get(f"/sessions/{made}")).json()["messages"]
    assert message["images"] == [{"media_type": "image/png", "size": 8}]


async def test_a_mistyped_key_hears_what_was_meant(served: Served) -> None:
    error = (await served.post("/sessions", {"nmae": "x"})).json()["error"]
    assert error["message"] == "unknown key `nmae`; did you mean `name`?"
    assert error["details"] == {"key": "nmae", "accepted": ["name", "config"]}


async def test_a_session_is_created_from_an_invoking_one_that_is_there(served: Served) -> None:
    first = await opened(served)
    assert (await served.post("/sessions", {}, psi_session=first)).status == 201
    assert code(await served.post("/sessions", {}, psi_session="ses-nobody")) == (404, "session/not-found")


# -- listing


async def test_the_list_has_every_session_with_what_it_is_doing(served: Served) -> None:
    first, second = await opened(served, name="First"), await opened(served)
    later = {"action": "scheduler", "op": "create", "kind": "message", "message": "x", "delay-ms": 5_000}
    await served.tool(later, first)
    run = (await served.post(f"/sessions/{second}/messages", {"content": "/wait 5s"})).json()
    page = (await served.get("/sessions")).json()
    assert page["next"] is None
    assert [(each["id"], each["phase"], each["pending_schedules"]) for each in page["sessions"]] == [
        (first, "idle", 1),
        (second, "streaming", 0),
    ]
    assert "messages" not in page["sessions"][0]
    assert (await served.get(f"/sessions/{second}")).json()["active_run_id"] == run["run_id"]


async def test_pages_put_together_are_the_list(served: Served) -> None:
    made = [await opened(served, name=str(n)) for n in range(7)]
    found: list[str] = []
    after = ""
    while True:
        page = (await served.get(f"/sessions?limit=3{after}")).json()
        found += [each["id"] for each in page["sessions"]]
        if page["next"] is None:
            break
        assert page["next"] == found[-1]
        after = f"&after={page['next']}"
    assert found == made


async def test_a_page_is_not_moved_by_what_comes_and_goes_around_it(served: Served) -> None:
    made = [await opened(served) for _ in range(6)]
    page = (await served.get("/sessions?limit=3")).json()
    await served.request("DELETE", f"/sessions/{made[0]}")
    await served.request("DELETE", f"/sessions/{made[4]}")
    newest = await opened(served)
    await told(served, made[1], "/say moved")  # which makes it the last one changed
    rest = (await served.get(f"/sessions?limit=3&after={page['next']}")).json()
    assert [each["id"] for each in rest["sessions"]] == [made[3], made[5], newest]
    assert rest["next"] is None


async def test_a_page_behind_a_session_that_is_gone_is_refused_rather_than_guessed(served: Served) -> None:
    session = await opened(served)
    await served.request("DELETE", f"/sessions/{session}")
    assert code(await served.get(f"/sessions?after={session}")) == (404, "rest/cursor-gone")
    assert code(await served.get("/sessions?after=")) == (404, "rest/cursor-gone")


async def test_nobody_waits_for_a_recall_yet(served: Served) -> None:
    session = await opened(served)
    assert (await served.get("/sessions?pending_recall=1")).json() == {"sessions": [], "next": None}
    found = (await served.get("/sessions?pending_recall=0")).json()["sessions"]
    assert [(each["id"], each["pending_recall"]) for each in found] == [(session, None)]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/sessions?limit=0", '`limit` must be a whole number from 1 to 1000, got "0"'),
        ("/sessions?limit=1001", '`limit` must be a whole number from 1 to 1000, got "1001"'),
        ("/sessions?limit=%C2%B2", '`limit` must be a whole number from 1 to 1000, got "²"'),
        ("/sessions?limit=", '`limit` must be a whole number from 1 to 1000, got ""'),
        ("/sessions?limit=1&limit=2", "parameter `limit` is given twice"),
        ("/sessions?limt=1", "unknown parameter `limt`; did you mean `limit`?"),
        ("/sessions?pending_recall=yes", '`pending_recall` must be one of 1, 0, true, false, got "yes"'),
        ("/sessions/SESSION?messages_after=-1", "`messages_after` must be a whole number"),
        (
            "/sessions/SESSION?after=1",
            "unknown parameter `after`; accepted: `messages_after`, `messages_before`, `limit`, `newest`",
        ),
        ("/sessions/SESSION?newest=5", "`newest` must be one of 1, 0, true, false"),
    ],
)
async def test_a_parameter_that_is_wrong_is_named(served: Served, path: str, says: str) -> None:
    answer = await served.get(path.replace("SESSION", await opened(served)))
    assert answer.status == 400
    assert answer.json()["error"]["message"].startswith(says)


# -- messages


async def test_a_message_begins_a_run_that_answers_it(served: Served) -> None:
    session = await opened(served)
    answer = await served.post(f"/sessions/{session}/messages", {"content": "/wait 1s\n/say Grüße ☃"})
    assert answer.status == 202
    run = answer.json()["run_id"]
    assert answer.json() == {"run_id": run, "session_id": session, "state": "running"}
    assert (await served.get(f"/sessions/{session}")).json()["phase"] == "streaming"
    await served.clock.advance(2)
    found = (await served.get(f"/sessions/{session}")).json()
    assert (found["phase"], found["active_run_id"], found["message_count"]) == ("idle", None, 2)
    same = {"images": [], "source": "user", "run_id": run, "schedule_id": None, "label": None, "closure": None}
    assert found["messages"] == [
        {"index": 0, "role": "user", "content": "/wait 1s\n/say Grüße ☃", "created_at": START, **same},
        {"index": 1, "role": "assistant", "content": "Grüße ☃", "created_at": "2026-01-01T00:00:01Z", **same},
    ]


async def test_whoever_waits_gets_the_run(served: Served) -> None:
    session = await opened(served)
    run = await told(served, session, "Hello ☃")
    assert run == {
        "run_id": run["run_id"],
        "session_id": session,
        "state": "ok",
        "source": "user",
        "started_at": START,
        "finished_at": START,
        "answer": "You said: Hello ☃",
        "error": None,
        "message_index": 1,
        "context_tokens": run["context_tokens"],
        "max_context_tokens": 8_192,
        "token_count": 4,
        "tool_call_count": 0,
    }


@pytest.mark.parametrize(("content", "state"), [("/fail " + "x" * 500, "error"), ("/empty", "empty")])
async def test_a_run_that_does_not_answer_says_how_it_ended(served: Served, content: str, state: str) -> None:
    session = await opened(served)
    run = await told(served, session, content)
    assert run["state"] == state
    if state == "error":
        assert run["error"]["class"] == "DemoFailure"
        assert run["error"]["message"].startswith("This turn failed (DemoFailure).")
        assert "xxx" not in str(run)  # what was raised is for the run's record alone
        assert "x" not in run["answer"].replace("text", "").partition("(")[0]
    closure = (await served.get(f"/sessions/{session}")).json()["messages"][1]
    assert (closure["closure"], closure["content"]) == (state, run["answer"])


async def test_of_two_messages_at_once_one_is_taken_and_of_the_other_nothing_is_stored(served: Served) -> None:
    session = await opened(served)
    answers = await asyncio.gather(
        *(served.post(f"/sessions/{session}/messages", {"content": f"/wait 1s\n/say {n}"}) for n in range(2))
    )
    assert sorted(answer.status for answer in answers) == [202, 409]
    (refused,) = (answer for answer in answers if answer.status == 409)
    (taken,) = (answer for answer in answers if answer.status == 202)
    assert code(refused) == (409, "session/busy")
    assert refused.json()["error"]["details"]["run_id"] == taken.json()["run_id"]
    await served.clock.advance(2)
    assert len(await history(served, session)) == 2


async def test_a_waiting_message_to_a_busy_session_does_not_wait(served: Served) -> None:
    session = await opened(served)
    await served.post(f"/sessions/{session}/messages", {"content": "/wait 5s"})
    assert code(await served.post(f"/sessions/{session}/messages?wait=1", {"content": "x"})) == (409, "session/busy")


async def test_the_run_goes_on_when_whoever_waits_for_it_hangs_up(served: Served) -> None:
    session = await opened(served)
    with served.psi.watch(session) as events:
        async with served.connect() as connection:
            await connection.send("POST", f"/sessions/{session}/messages?wait=1", {"content": "/wait 9s\n/say done"})
            async for event in events:
                if event.type == "run-started":
                    break
        await idle(served)  # nobody is kept waiting for a clock that stands still
    counted = 'psi_http_requests_total{method="POST",route="/sessions/{session_id}/messages",status="499"} 1.0'
    assert counted in (await served.get("/metrics")).text
    assert (await served.get(f"/sessions/{session}")).json()["phase"] == "streaming"
    await served.clock.advance(10)
    assert (await history(served, session))[-1] == ("assistant", "done")


async def test_images_stand_in_the_history_without_their_data(served: Served) -> None:
    session = await opened(served)
    await told(served, session, "Look.", images=[PNG, f"data:image/webp;base64,{PNG}"])
    message = (await served.get(f"/sessions/{session}")).json()["messages"][0]
    assert message["content"] == "Look."
    assert message["images"] == [{"media_type": "image/png", "size": 28}] * 2
    graph = await served.post("/eql", {"query": "[:psi.agent-session/message-history]"}, psi_session=session)
    content = graph.json()["psi.agent-session/message-history"][0]["content"]
    assert content[0] == {"type": "text", "text": "Look."}
    assert content[1] == {"type": "image", "media-type": "image/png", "data": PNG}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, "session/message-required")),
        ({"content": " "}, (400, "session/message-required")),
        ({"content": "x", "images": ["no!"]}, (400, "input/invalid-image")),
        ({"content": "x", "images": [PNG] * 11}, (400, "input/too-many-images")),
        ({"content": "x", "files": [{"name": "p", "path": "/etc/passwd"}]}, (403, "input/unknown-file")),
        ({"content": "x", "contnt": "y"}, (400, "input/unknown-key")),
        (["x"], (400, "input/invalid")),
        ("", (400, "http/unreadable")),
        ('{"content": "x"', (400, "http/unreadable")),
        ('{"content": "x", "content": "y"}', (400, "http/unreadable")),
        ('{"content": "\\ud800"}', (400, "http/unreadable")),
        (b'{"content": "\xff"}', (400, "http/unreadable")),
    ],
)
async def test_of_a_message_that_is_refused_nothing_is_stored(
    served: Served, body: Any, expected: tuple[int, str]
) -> None:
    session = await opened(served)
    assert code(await served.post(f"/sessions/{session}/messages", body)) == expected
    found = (await served.get(f"/sessions/{session}")).json()
    assert (found["phase"], found["messages"], found["message_count"]) == ("idle", [], 0)


@pytest.mark.parametrize("kind", ["application/edn", "text/csv", "application/json; charset=latin-1"])
async def test_a_message_is_json(served: Served, kind: str) -> None:
    session = await opened(served)
    path = f"/sessions/{session}/messages"
    answer = await served.post(path, '{"content": "x"}', content_type=kind, accept="application/json")
    assert code(answer) == (415, "http/unsupported-media-type")


async def test_a_message_may_be_larger_than_other_bodies(tmp_path: Path) -> None:
    large = base64.b64encode(b"\x89PNG\r\n\x1a\n".ljust(LARGEST_IMAGE, b"\1")).decode()
    async with uploading(tmp_path, max_message=9 << 20) as served:
        session = await opened(served)
        run = await told(served, session, "Look.", images=[large])
        assert run["state"] == "ok"
        message = (await served.get(f"/sessions/{session}")).json()["messages"][0]
        assert message["images"] == [{"media_type": "image/png", "size": LARGEST_IMAGE}]
        two = await served.post(f"/sessions/{session}/messages", {"content": "x", "images": [large, large]})
        assert code(two) == (413, "http/too-large")
        assert two.json()["error"]["details"] == {"limit": 9 << 20, "setting": "max_message"}
        elsewhere = await served.post("/sessions", {"name": large})
        assert elsewhere.json()["error"]["details"] == {"limit": 1 << 20, "setting": "max_body"}


async def test_an_upload_is_named_in_the_message(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        session = await opened(served)
        file = (await served.post("/uploads?name=plan.txt", b"x")).json()
        await told(served, session, "/say read", files=[file])
        assert await history(served, session) == [
            ("user", f"/say read\n\n[Uploaded files on disk: {file['path']}]"),
            ("assistant", f"read\nYou said: [Uploaded files on disk: {file['path']}]"),
        ]


# -- reading a history in parts


async def test_a_long_history_can_be_read_in_parts(served: Served) -> None:
    session = await opened(served)
    for n in range(3):
        await told(served, session, f"/say {n}")
    whole = (await served.get(f"/sessions/{session}")).json()["messages"]
    assert [message["index"] for message in whole] == list(range(6))
    parts: list[Any] = []
    after = ""
    while True:
        page = (await served.get(f"/sessions/{session}?limit=4{after}")).json()
        parts += page["messages"]
        if page["messages_next"] is None:
            break
        assert page["messages_next"] == parts[-1]["index"]
        after = f"&messages_after={page['messages_next']}"
    assert parts == whole
    end = (await served.get(f"/sessions/{session}?messages_after=5")).json()
    assert (end["messages"], end["messages_next"]) == ([], None)
    assert (await served.get(f"/sessions/{session}?messages_after=999999")).json()["messages"] == []


async def test_a_history_can_be_read_from_its_end(served: Served) -> None:
    session = await opened(served)
    empty = (await served.get(f"/sessions/{session}?newest=1&limit=5")).json()
    assert (empty["messages"], empty["messages_next"], empty["messages_previous"]) == ([], None, None)
    for n in range(3):
        await told(served, session, f"/say {n}")
    whole = (await served.get(f"/sessions/{session}")).json()["messages"]
    parts: list[Any] = []
    before = ""
    while True:
        page = (await served.get(f"/sessions/{session}?newest=1&limit=4{before}")).json()
        parts = page["messages"] + parts
        if page["messages_previous"] is None:
            break
        assert page["messages_previous"] == parts[0]["index"]
        before = f"&messages_before={page['messages_previous']}"
    assert parts == whole


@pytest.mark.parametrize(
    ("asked", "places", "following", "previous"),
    [
        ("messages_after=0&messages_before=5", [1, 2, 3, 4], None, None),
        ("messages_after=0&messages_before=5&limit=2", [1, 2], 2, None),
        ("messages_after=0&messages_before=5&limit=2&newest=1", [3, 4], None, 3),
        ("messages_after=0&messages_before=5&limit=4&newest=1", [1, 2, 3, 4], None, None),
        ("messages_after=4&messages_before=2", [], None, None),
        ("messages_after=9&newest=1&limit=1", [], None, None),
        ("messages_before=0", [], None, None),
        ("messages_before=99&newest=1&limit=2", [4, 5], None, 4),
    ],
)
async def test_a_window_of_a_history_is_told_from_either_end(
    served: Served, asked: str, places: list[int], following: int | None, previous: int | None
) -> None:
    session = await opened(served)
    for n in range(3):
        await told(served, session, f"/say {n}")
    page = (await served.get(f"/sessions/{session}?{asked}")).json()
    assert [message["index"] for message in page["messages"]] == places
    assert (page["messages_next"], page["messages_previous"]) == (following, previous)


async def test_of_a_history_that_is_too_much_for_one_answer_the_newest_can_be_told_first() -> None:
    async with serving() as served:
        texts = [letter * (5 << 20) for letter in "abcd"]
        config = {"preloaded-messages": [{"role": "user", "content": text} for text in texts]}
        session = (await served.psi.service.act(CreateSession(config=config))).id
        page = (await served.get(f"/sessions/{session}?newest=1")).json()
        assert [message["content"] for message in page["messages"]] == texts[2:]
        assert page["messages_previous"] == 2


async def test_an_answer_that_is_too_much_is_cut_where_it_is_told_and_kept_as_it_is() -> None:
    class Talkative:
        async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
            yield FinalAnswer("漢" * (6 << 20))

    async with serving(agent=Talkative()) as served:
        session = await opened(served)
        ended = await served.post(f"/sessions/{session}/messages?wait=1", {"content": "go"})
        assert (ended.status, ended.json()["state"]) == (200, "ok")
        shown = "漢" * (2 << 20) + f"… [cut here, after {2 << 20} of {6 << 20} characters]"
        assert ended.json()["answer"] == shown
        told = await served.get(f"/sessions/{session}")
        assert (told.status, told.json()["messages"][-1]["content"]) == (200, shown)
        request = {"action": "session", "op": "submit", "message": "again", "wait": True}
        envelope = await served.tool(request, session)
        assert envelope["psi-tool/session"]["run"]["answer"] == shown
        kept = await served.psi.service.context().messages(session)
        assert len(kept[-1].text) == 6 << 20


async def test_a_history_that_is_too_much_for_one_answer_comes_in_several() -> None:
    async with serving() as served:
        texts = [letter * (5 << 20) for letter in "abcd"]
        config = {"preloaded-messages": [{"role": "user", "content": text} for text in texts]}
        session = (await served.psi.service.act(CreateSession(config=config))).id
        first = (await served.get(f"/sessions/{session}")).json()
        assert [message["content"][:1] for message in first["messages"]] == ["a", "b"]
        assert first["messages_next"] == 1
        second = (await served.get(f"/sessions/{session}?messages_after=1")).json()
        assert [message["content"] for message in second["messages"]] == texts[2:]
        assert second["messages_next"] is None


async def test_what_a_schedule_delivers_is_marked_as_its_own(served: Served) -> None:
    session = await opened(served)
    later = {"action": "scheduler", "op": "create", "kind": "message", "message": "/say hi", "delay-ms": 1_000}
    made = await served.tool({**later, "label": "build"}, session)
    await served.clock.advance(2)
    found = (await served.get(f"/sessions/{session}")).json()["messages"]
    schedule = made["psi-tool/scheduler"]["schedule"]["schedule-id"]
    assert [(each["source"], each["schedule_id"], each["label"]) for each in found] == [
        ("scheduled", schedule, "build"),
        ("scheduled", None, None),
    ]


# -- stopping and deleting


async def test_a_run_is_stopped_and_keeps_what_it_has_said(served: Served) -> None:
    session = await opened(served)
    waiting = asyncio.create_task(told(served, session, "/say partly\n/wait 60s\n/say never"))
    with served.psi.watch(session) as events:
        async for event in events:
            if event.type == "run-started":
                break
    stopped = await served.post(f"/sessions/{session}/stop")
    assert (stopped.status, stopped.json()) == (200, {"ok": True})
    run = await waiting
    assert (run["state"], run["answer"]) == ("stopped", "partly")
    again = await served.post(f"/sessions/{session}/stop")
    assert (again.status, again.json()) == (200, {"ok": False, "reason": "no active run"})
    assert (await told(served, session, "/say next"))["answer"] == "next"


async def test_a_session_is_deleted_with_its_run_and_its_schedules(served: Served) -> None:
    session = await opened(served)
    await served.tool(
        {"action": "scheduler", "op": "create", "kind": "message", "message": "x", "delay-ms": 1_000}, session
    )
    await served.post(f"/sessions/{session}/messages", {"content": "/wait 60s"})
    answer = await served.request("DELETE", f"/sessions/{session}?delete_automations=true")
    assert (answer.status, answer.json()) == (200, {"deleted": True})
    assert (await served.get("/sessions")).json()["sessions"] == []
    assert code(await served.request("DELETE", f"/sessions/{session}")) == (404, "session/not-found")
    counted = served.psi.service.context().counters()
    assert (counted["sessions"], counted["open-schedules"], counted["active-runs"]) == (0, 0, 0)


# -- what is not there, and whose it is

PLACES = [
    ("GET", "", None),
    ("DELETE", "", None),
    ("POST", "/messages", {"content": "x"}),
    ("POST", "/messages?wait=1", {"content": ""}),
    ("POST", "/stop", None),
]


@pytest.mark.parametrize(("method", "below", "body"), PLACES)
@pytest.mark.parametrize("name", ["ses-nobody", "%E2%98%83", "a%20b", "%00", "..%5C"])
async def test_an_unknown_session_is_not_found(served: Served, method: str, below: str, body: Any, name: str) -> None:
    assert code(await served.request(method, f"/sessions/{name}{below}", body)) == (404, "session/not-found")


async def test_another_users_session_is_not_found_either(tmp_path: Path) -> None:
    with Credentials.open(tmp_path) as credentials:
        keys = {
            user: credentials.create_token(now=datetime.now(UTC), user=user, name="t", scopes=scopes, lasts=None).text
            for user, scopes in (("ada", ("write",)), ("bob", ("admin",)))
        }
        reading = credentials.create_token(
            now=datetime.now(UTC), user="ada", name="r", scopes=("read",), lasts=None
        ).text
        async with serving(Settings(auth=True), credentials=credentials) as served:

            async def send(key: str | None, method: str, path: str, body: Any = None) -> Answer:
                headers = {} if key is None else {"authorization": f"Bearer {key}"}
                return await served.request(method, path, body, headers)

            session = (await send(keys["ada"], "POST", "/sessions", {"name": "Hers"})).json()
            assert session["owner"] == "ada"
            path = f"/sessions/{session['id']}"
            for method, below, body in PLACES:
                theirs = await send(keys["bob"], method, path + below, body)
                nobodys = await send(keys["bob"], method, f"/sessions/ses-nobody{below}", body)
                assert theirs.status == nobodys.status == 404
                assert theirs.text.replace(session["id"], "ses-nobody") == nobodys.text
                assert code(await send(None, method, path + below, body)) == (401, "auth/required")
            assert (await send(keys["bob"], "GET", "/sessions")).json()["sessions"] == []
            assert code(await send(keys["bob"], "GET", f"/sessions?after={session['id']}")) == (
                404,
                "rest/cursor-gone",
            )
            # Reading is all that a token for reading can do.
            assert (await send(reading, "GET", path)).status == 200
            for method, below, body in (PLACES[1], PLACES[2], PLACES[4]):
                assert code(await send(reading, method, path + below, body)) == (403, "auth/read-only")
            assert code(await send(reading, "POST", "/sessions", {})) == (403, "auth/read-only")
            assert [each["id"] for each in (await send(reading, "GET", "/sessions")).json()["sessions"]] == [
                session["id"]
            ]


# -- as HTTP


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/sessions", "GET, HEAD, POST"),
        ("/sessions/x", "DELETE, GET, HEAD"),
        ("/sessions/x/messages", "POST"),
        ("/sessions/x/stop", "POST"),
    ],
)
async def test_another_method_hears_of_those_there_are(served: Served, path: str, allowed: str) -> None:
    answer = await served.request("PATCH", path)
    assert (code(answer), answer.headers["allow"]) == ((405, "http/method-not-allowed"), allowed)


async def test_head_answers_like_get_without_the_body(served: Served) -> None:
    session = await opened(served)
    for path in ("/sessions", f"/sessions/{session}"):
        answer = await served.request("HEAD", path)
        assert (answer.status, answer.type) == (200, "application/json")
        assert int(answer.headers["content-length"]) == len((await served.get(path)).body)


@pytest.mark.parametrize("path", ["/sessions/", "/sessions/x/", "/sessions/x/messages/", "/sessions//messages"])
async def test_addresses_are_exact(served: Served, path: str) -> None:
    assert code(await served.get(path)) == (404, "http/not-found")


async def test_answers_are_json_or_edn_for_those_who_ask(served: Served) -> None:
    session = await opened(served, name="First")
    answer = await served.get(f"/sessions/{session}", accept="application/edn")
    assert answer.type == "application/edn"
    assert (answer.edn()["id"], answer.edn()["name"]) == (session, "First")
    assert code(await served.post("/sessions", {}, accept="text/html")) == (406, "http/not-acceptable")
    assert len((await served.get("/sessions")).json()["sessions"]) == 1


# -- what outlives the process


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async with uploading(tmp_path) as served:
        first = await opened(served, name="Erste ☃", config={"thinking_level": "low"})
        second = await opened(served)
        file = (await served.post("/uploads?name=a.txt", b"A")).json()
        run = await told(served, first, "/say Grüße", images=[PNG], files=[file])
        before = (await served.get(f"/sessions/{first}")).json()
        under_way = (await served.post(f"/sessions/{second}/messages", {"content": "/say x\n/wait 60s"})).json()
    async with uploading(tmp_path) as served:
        page = (await served.get("/sessions")).json()
        assert [each["id"] for each in page["sessions"]] == [first, second]
        assert (await served.get(f"/sessions/{first}")).json() == before
        interrupted = (await served.get(f"/sessions/{second}")).json()
        assert (interrupted["phase"], interrupted["active_run_id"]) == ("idle", None)
        assert [message["run_id"] for message in interrupted["messages"]] == [under_way["run_id"]] * 2
        assert interrupted["messages"][1]["closure"] == "interrupted"
        again = await told(served, first, "/say again", files=[file])
        assert again["message_index"] == run["message_index"] + 2
        await served.request("DELETE", f"/sessions/{first}")
    async with uploading(tmp_path) as served:
        assert [each["id"] for each in (await served.get("/sessions")).json()["sessions"]] == [second]
