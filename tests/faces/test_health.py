"""How the service is: /healthz, /readyz, /metrics; and the start page."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect

import psi
from psi.settings import Settings
from psi.store import MemoryStore
from tests.faces.serving import Served, serving


class Sulking(MemoryStore):
    """A store that stops answering when it is told to."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.sulks = False

    async def check(self) -> None:
        if self.sulks and self.how == "raises":
            raise OSError("disk gone")


async def numbers(served: Served) -> dict[tuple[str, ...], float]:
    """Each sample under its name and the values of its labels."""
    text = (await served.get("/metrics")).text
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


async def test_a_service_that_runs_says_so_with_its_version() -> None:
    async with serving() as served:
        answer = await served.get("/healthz")
        assert (answer.status, answer.json()) == (200, {"status": "ok", "version": psi.__version__})
        answer = await served.get("/readyz")
        assert (answer.status, answer.json()) == (200, {"status": "ready", "version": psi.__version__})


async def test_a_service_that_is_closing_is_alive_but_not_ready() -> None:
    async with serving() as served:
        await served.psi.close()
        assert (await served.get("/healthz")).status == 200
        answer = await served.get("/readyz")
        assert (answer.status, answer.json()["error"]["code"]) == (503, "psi/closed")
        refused = await served.post("/eql", {"query": "[:psi.system/version]"})
        assert refused.status == 200  # what there is can be asked to the end
        created = await served.tool({"action": "session", "op": "create"})
        assert created["psi-tool/error"]["code"] == "psi/closed"


async def test_a_store_that_does_not_answer_makes_the_service_unready(caplog: pytest.LogCaptureFixture) -> None:
    store = Sulking("raises")
    async with serving(store=store) as served:
        assert (await served.get("/readyz")).status == 200
        store.sulks = True
        answer = await served.get("/readyz")
        assert (answer.status, answer.json()["error"]["code"]) == (503, "psi/store-silent")
        assert "disk gone" not in answer.text
        assert "disk gone" in caplog.text
        store.sulks = False
        assert (await served.get("/readyz")).status == 200


async def test_head_is_get_without_the_body() -> None:
    async with serving() as served:
        answer = await served.request("HEAD", "/healthz")
        assert (answer.status, answer.body) == (200, b"")


# -- metrics


async def test_requests_are_counted_by_method_route_and_status() -> None:
    async with serving() as served:
        await served.session()
        await served.post("/eql", {"query": "[:psi.system/version]"})
        await served.post("/eql", {"query": "[:a"})
        await served.get("/eql")
        found = await numbers(served)
        assert found["psi_http_requests_total", "POST", "/psi-tool", "200"] == 1
        assert found["psi_http_requests_total", "POST", "/eql", "200"] == 1
        assert found["psi_http_requests_total", "POST", "/eql", "400"] == 1
        assert found["psi_http_requests_total", "GET", "/eql", "405"] == 1
        assert found["psi_http_request_seconds_count", "POST", "/eql"] == 2
        assert found["psi_http_request_seconds_bucket", "+Inf", "POST", "/eql"] == 2


async def test_a_label_is_a_pattern_and_never_what_a_client_made_up() -> None:
    async with serving() as served:
        for path in ("/nope", "/secret-1", "/secret-2?token=psi_x", "/auth/tokens/tok-1", "/%2e%2e/etc"):
            await served.get(path)
        await served.request("BREW", "/healthz")
        await served.request("DELETE", "/auth/tokens/tok-2")
        found = [key for key in await numbers(served) if key[0] == "psi_http_requests_total"]
        assert {key[2] for key in found} <= {"unmatched", "/auth/tokens/{id}", "/healthz"}
        assert {key[1] for key in found} <= {"GET", "DELETE", "other"}
        assert "secret" not in str(found)


async def test_a_request_that_the_guard_refuses_is_counted_too() -> None:
    async with serving() as served:
        refused = await served.request("GET", "/eql", headers={"host": "evil.example"})
        assert refused.status == 403
        assert (await numbers(served))["psi_http_requests_total", "GET", "/eql", "403"] == 1


async def test_what_the_runtime_holds_is_counted() -> None:
    async with serving() as served:
        session = await served.session()
        await served.session()
        body = {"action": "scheduler", "op": "create", "kind": "message", "delay-ms": 5_000, "message": "x"}
        await served.tool(body, session)
        await served.tool({"action": "session", "op": "submit", "message": "/wait 60s"}, session)
        found = await numbers(served)
        assert found["psi_sessions",] == 2
        assert found["psi_schedules_open",] == 1
        assert found["psi_runs_active",] == 1
        assert found["psi_events_total",] == served.psi.service.context().counters()["events-published"] > 0
        assert found["psi_build_info", psi.__version__] == 1
        assert found["psi_subscriptions",] == 0
        assert found["process_resident_memory_bytes",] > 0


async def test_open_sockets_are_counted() -> None:
    async with serving() as served:
        assert (await numbers(served))["psi_sockets",] == 0
        async with connect(f"{served.ws_url}/graphql", subprotocols=["graphql-transport-ws"]):  # type: ignore[list-item]
            assert (await numbers(served))["psi_sockets",] == 1
        async with asyncio.timeout(5):
            while (await numbers(served))["psi_sockets",]:
                pass  # asking is waiting enough: the socket's task ends between two answers


async def test_openmetrics_is_spoken_where_it_is_asked_for() -> None:
    async with serving() as served:
        answer = await served.get("/metrics", accept="application/openmetrics-text; version=1.0.0, text/plain;q=0.5")
        assert answer.type == "application/openmetrics-text"
        assert answer.text.endswith("# EOF\n")
        assert (await served.get("/metrics")).headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_two_services_in_one_process_count_for_themselves() -> None:
    async with serving() as one, serving() as other:
        await one.session()
        assert (await numbers(one))["psi_sessions",] == 1
        assert (await numbers(other))["psi_sessions",] == 0


# -- the start page


async def test_the_start_page_says_what_this_is_and_where_to_go() -> None:
    async with serving() as served:
        answer = await served.get("/")
        assert (answer.status, answer.type) == (200, "text/html")
        for words in (psi.__version__, f"curl {served.url}/psi-tool", f"psi-tool --url {served.url}"):
            assert words in answer.text
        links = re.findall(r'href="([^"]+)"', answer.text)
        assert {"/sessions", "/openapi.json", "/metrics", "/healthz"} <= set(links)
        assert [link for link in links if (await served.get(link)).status != 200] == []
        # What a browser cannot just open is named, and no link.
        for place in ("/graphql", "/eql", "/psi-tool", "/ws/sessions/{id}"):
            assert f"<dt>{place}</dt>" in answer.text


async def test_the_start_page_loads_nothing_and_its_style_is_the_one_that_is_named() -> None:
    import base64
    import hashlib

    async with serving() as served:
        answer = await served.get("/")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        style = re.search(r"<style>(.*?)</style>", answer.text, re.DOTALL)
        assert style is not None
        named = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
        assert f"'sha256-{named}'" in policy
        assert not re.search(r"<script|<img|<link|src=|https?://(?!127\.0\.0\.1)", answer.text)


async def test_the_page_shows_a_host_as_text_and_not_as_markup() -> None:
    async with serving() as served:
        answer = await served.request("GET", "/", headers={"host": "localhost:1<b>"})
        assert (answer.status, answer.type) == (403, "application/json")
    async with serving(Settings(auth=True)) as served:  # where any host will do
        answer = await served.request("GET", "/", headers={"host": "a<b>'c"})
        assert (answer.status, answer.type) == (200, "text/html")
        assert "a&lt;b&gt;" in answer.text


async def first_request(served: Served) -> dict[str, Any]:
    """What the page proposes to send, sent."""
    page = (await served.get("/")).text
    body = re.search(r"-d &#x27;(.*?)&#x27;", page)
    assert body is not None
    return await served.tool(body[1].replace("&quot;", '"'))


async def test_the_first_request_that_the_page_proposes_works() -> None:
    async with serving() as served:
        assert (await first_request(served))["psi-tool/overall-status"] == "ok"
