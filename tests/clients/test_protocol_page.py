"""docs/protocol.md cannot lie: its programs are run as they stand there, and its tables have every frame and code."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from psi.engine.clock import settle
from psi.faces.server import bind
from psi.settings import Settings
from tests.clients.detour import detour
from tests.clients.node import Script, needs_node, running
from tests.docs.snippets import blocks
from tests.faces.serving import Served, serving

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = list(blocks(TEXT))
PLACE = "127.0.0.1:8420"

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# A browser of its own accord talks to its maker; here it has nobody to talk to but us.
QUIET = [
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]

# As much of a page as the script on ours touches, on the WebSocket of the npm package ws.
DOCUMENT = """
import { WebSocket } from "ws";
const elements = {};
const made = () => {
  const heard = {};
  return { textContent: "", value: "", heard, addEventListener: (type, call) => (heard[type] = call) };
};
globalThis.WebSocket = WebSocket;
globalThis.location = { search: `?session=${process.env.PSI_SESSION}` };
globalThis.document = { getElementById: (id) => (elements[id] ??= made()) };
const shown = async (text) => {
  while (!elements.talk?.textContent.includes(text)) await new Promise((go) => setTimeout(go, 5));
};
const say = (content) => {
  document.getElementById("text").value = content;
  elements.form.heard.submit({ preventDefault() {} });
};
const tell = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
"""

CONVERSATION = """
while (socket?.readyState !== 1) await new Promise((go) => setTimeout(go, 5));
say("Good morning");
await shown("user: Good morning\\nassistant: You said: Good morning\\n");
tell(elements.talk.textContent);
say("/say a\\n/wait 100s");
await shown("assistant: a");
socket.terminate();  // and it comes back by itself
await shown("assistant: a");
await elements.stop.heard.click();
await shown("(stopped)");
tell("stopped");
process.exit(0);
"""

# What a person would do in the browser; and a picture that comes only when they have seen the answer, because the page
# is taken down when it is there as a whole.
PERSON = """
<script>
const opened = setInterval(() => {
  if (socket?.readyState !== 1) return;
  clearInterval(opened);
  element("text").value = "Good morning";
  element("form").requestSubmit();
}, 20);
const answered = setInterval(() => {
  if (element("talk").textContent !== "user: Good morning\\nassistant: You said: Good morning\\n") return;
  clearInterval(answered);
  fetch("/seen");
}, 20);
</script>
<img src="/late.png">
"""


def page() -> str:
    [found] = [block.source for block in BLOCKS if block.info == "html"]
    return found


def script() -> str:
    found = re.search(r"<script>\n(.*)</script>", page(), re.DOTALL)
    assert found is not None
    return found[1]


async def history(served: Served, session: str) -> list[str]:
    return [message["content"] for message in (await served.get(f"/sessions/{session}")).json()["messages"]]


def talking(port: int, session: str, content: str) -> AbstractAsyncContextManager[Script]:
    """talk.py, as it stands on the page."""
    [program] = [block.source for block in BLOCKS if block.source.startswith("# talk.py")]
    code = program.replace(PLACE, f"127.0.0.1:{port}")
    return running(sys.executable, "-c", code, content, PSI_SESSION=session)


async def test_the_program_in_python_prints_what_the_page_says() -> None:
    said = [block.source for block in BLOCKS if block.info == "text"][-1]
    async with serving() as served:
        session = await served.session()
        async with talking(served.port, session, "Good morning") as told:
            assert [await told.line() for _ in said.splitlines()] == said.splitlines()


async def test_the_program_in_python_waits_until_it_is_its_turn() -> None:
    async with serving() as served:
        session = await served.session()
        await served.tool({"action": "session", "op": "submit", "message": "/say other\n/wait 10s"}, session)
        async with talking(served.port, session, "Good morning") as told:
            async with asyncio.timeout(20):
                while not _sockets(served):
                    await settle()
            await served.clock.advance(11)
            assert [await told.line() for _ in range(3)] == ["You said: Good morning", "stream_end", None]
        assert await history(served, session) == [
            "/say other\n/wait 10s",
            "other",
            "Good morning",
            "You said: Good morning",
        ]


REFUSED = {"/fail No luck.": "This turn failed (DemoFailure).", " ": "non-blank"}


@pytest.mark.parametrize(("content", "said"), REFUSED.items())
async def test_the_program_in_python_says_what_went_wrong(content: str, said: str) -> None:
    async with serving() as served, talking(served.port, await served.session(), content) as told:
        code = await told.code()
        complaints = await told.complaints()
    assert code == 1
    assert said in complaints
    assert "Traceback" not in complaints


async def test_the_program_in_python_waits_for_a_service_that_is_away() -> None:
    async with serving() as served, detour(served.port) as way:
        session = await served.session()
        await way.close()
        async with talking(way.port, session, "Good morning") as told:
            assert await told.complaint() == "trying again"
            await way.open()
            assert [await told.line() for _ in range(2)] == ["You said: Good morning", "stream_end"]


async def test_the_program_in_python_comes_back_for_the_rest() -> None:
    async with serving() as served:
        session = await served.session()
        prompt = "/say a\n/wait 10s\n/say b"
        async with talking(served.port, session, prompt) as told:
            assert await _run_begins(served, session)
            cut = set(served.server.server_state.connections)
            for connection in cut:
                connection.shutdown()
            async with asyncio.timeout(10):
                while not (served.server.server_state.connections - cut and _sockets(served)):
                    await settle()
            await served.clock.advance(11)
            assert [await told.line() for _ in range(3)] == ["a", "b", "stream_end"]


async def _run_begins(served: Served, session: str) -> bool:
    async with asyncio.timeout(20):
        while True:
            found = served.psi.service.find(session).run
            run = served.psi.service.run(found) if found is not None else None
            if run is not None and run.log.last >= 2:
                return True
            await settle()


def _sockets(served: Served) -> int:
    text = served.app.metrics.exposed()[0].decode()
    return int(float(re.findall(r"^psi_sockets (\S+)$", text, re.MULTILINE)[0]))


@needs_node
async def test_the_script_of_the_browser_page_talks_comes_back_and_stops() -> None:
    async with serving() as served:
        session = await served.session()
        code = DOCUMENT + script().replace(PLACE, served.host) + CONVERSATION
        async with running("node", "--input-type=module", "--eval", code, PSI_SESSION=session) as told:
            assert await told.told() == "user: Good morning\nassistant: You said: Good morning\n"
            assert await told.told() == "stopped"
        assert (await history(served, session))[-1] == "a"


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed, so the page cannot be opened in it")
async def test_the_page_works_in_a_browser(tmp_path: Path) -> None:
    with bind("127.0.0.1", 0) as listening:
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        async with serving(Settings(allowed_origins=(origin,)), real_time=True) as served:
            session = await served.session()
            content = (page().replace(PLACE, served.host) + PERSON).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(content)}\r\n"

            seen = asyncio.Event()

            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                with suppress(asyncio.IncompleteReadError, OSError):  # browsers open connections that they never use
                    asked = await reader.readuntil(b"\r\n\r\n")
                    if asked.startswith(b"GET /seen"):
                        seen.set()
                    elif asked.startswith(b"GET /late"):
                        await seen.wait()
                    writer.write(f"{head}Connection: close\r\n\r\n".encode() + content)
                    await writer.drain()
                writer.close()

            server = await asyncio.start_server(answer, sock=listening)
            flags = ["--headless", "--disable-gpu", "--dump-dom", f"--user-data-dir={tmp_path}", *QUIET]
            if hasattr(os, "geteuid") and os.geteuid() == 0:
                flags.append("--no-sandbox")
            async with running(str(CHROMIUM), *flags, f"{origin}/chat.html?session={session}") as told:
                lines: list[str] = []
                async with asyncio.timeout(60):  # a browser takes its time to start on a busy machine
                    await seen.wait()
                while (line := await told.line()) is not None:
                    lines.append(line)
            server.close()
            assert await history(served, session) == ["Good morning", "You said: Good morning"]
            text = "\n".join(lines)
            assert '<pre id="talk">user: Good morning\nassistant: You said: Good morning\n</pre>' in text


def test_every_frame_and_every_close_code_stands_on_the_page() -> None:
    faces = PAGE.parents[1] / "psi" / "faces"
    source = "".join((faces / name).read_text(encoding="utf-8") for name in ("frames.py", "streams/stream.py"))
    known = set(re.findall(r'"type": "(\w+)"', source)) | set(re.findall(r'_plain\("(\w+)"', source))
    assert known - {"type"} <= set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE))
    docstring = (faces / "streams/socket.py").read_text(encoding="utf-8").split('"""')[1]
    codes = set(re.findall(r"\b(?:4\d\d\d|1001)\b", docstring))
    assert codes <= set(re.findall(r"^\| (\d{4}) \|", TEXT, re.MULTILINE))
