"""However deep a document goes, in whatever way, it is answered or refused; nothing breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.faces.graphql.test_socket import client
from tests.faces.serving import Served, serving

LENGTHS = range(50, 1_001, 25)
VERSION = "system { version }"
TAKEN = 'eql(query: "[:a]", entity: {a: $x})'


def chain(length: int) -> str:
    links = " ".join(f"fragment F{place} on Query {{ ...F{place + 1} }}" for place in range(length))
    return f"{links} fragment F{length} on Query {{ {VERSION} }}"


DEEP: Mapping[str, Callable[[int], str]] = {
    "types": lambda length: f"query($x: {'[' * length}Int{']' * length}) {{ {TAKEN} }}",
    "types that are not null": lambda length: f"query($x: {'[' * length}Int{'!]' * length}) {{ {TAKEN} }}",
    "fragments": lambda length: f"{{ ...F0 }} {chain(length)}",
    "fragments that nobody uses": lambda length: f"{{ {VERSION} }} {chain(length)}",
    "fragments in a circle": lambda length: (
        f"{{ ...F0 }} {chain(length).replace('version', 'version } ...F0 a: system { version')}"
    ),
    "selections": lambda length: "{ sessions " + "{ runs { session " * length + "{ phase }" + " } }" * length + " }",
    "selections that do not exist": lambda length: "{ a " * length + "}" * length,
    "inline fragments": lambda length: "{" + "... {" * length + VERSION + "}" * length + "}",
    "inline fragments below an entity": lambda length: (
        "{ system {" + "... {" * length + "version" + "}" * length + "} }"
    ),
    "inline fragments in fragments": lambda length: (
        "{ ...A } "
        + "".join(
            f"fragment {name} on Query {{ {'... {' * (length // 4)} ...{after} {'}' * (length // 4)} }} "
            for name, after in ("AB", "BC", "CD")
        )
        + f"fragment D on Query {{ {VERSION} }}"
    ),
    "lists": lambda length: f"{{ validateSessionConfig(config: {'[' * length}{']' * length}) {{ valid }} }}",
    "objects": lambda length: f'{{ eql(query: "[:a]", entity: {"{a: " * length}1{"}" * length}) }}',
    "a default": lambda length: (
        f"query($x: JSON = {'[' * length}{']' * length}) {{ validateSessionConfig(config: $x) {{ valid }} }}"
    ),
    "lists where a word belongs": lambda length: (
        f"{{ schedules(statuses: {'[' * length}PENDING{']' * length}) {{ status }} }}"
    ),
    "an object where a number belongs": lambda length: (
        f"{{ sessions(limit: {'{a: ' * length}1{'}' * length}) {{ phase }} }}"
    ),
    "introspection": lambda length: (
        "{ __schema { types { fields { type {" + "ofType {" * length + "name" + "}" * length + "} } } } }"
    ),
}


def codes(response: Mapping[str, Any]) -> set[str]:
    return {each.get("extensions", {}).get("code", "") for each in response.get("errors", ())}


async def over_http(served: Served, text: str, **variables: Any) -> set[str]:
    answer = await served.post("/graphql", {"query": text, "variables": variables})
    assert answer.status in (200, 422), answer.text
    return codes(answer.json())


@pytest.mark.parametrize("name", DEEP)
async def test_a_document_of_any_depth_is_answered_or_refused(name: str) -> None:
    async with serving() as served, client(served) as talking:
        await talking.begin()
        for length in LENGTHS:
            text = DEEP[name](length)
            by_post = await over_http(served, text)
            assert "psi/internal" not in by_post, length
            await talking.subscribe(text, str(length))
            answer = await talking.receive()
            if answer["type"] == "next":
                assert (await talking.receive())["type"] == "complete"
            found = codes({"errors": answer["payload"]} if answer["type"] == "error" else answer["payload"])
            assert found == by_post, length


async def test_what_is_too_deep_is_told_so() -> None:
    async with serving() as served:
        for name in ("types", "inline fragments", "selections"):
            assert await over_http(served, DEEP[name](900)) == {"limit/depth"}, name
        for name, most in (("types", 100), ("fragments", 99)):
            assert await over_http(served, DEEP[name](most)) == set(), name
            assert await over_http(served, DEEP[name](most + 1)) == {"limit/depth"}, name


async def test_a_value_for_a_type_of_many_lists_is_read() -> None:
    async with serving() as served:
        for length in (50, 100):
            assert "psi/internal" not in await over_http(served, DEEP["types"](length), x=5)
            assert "psi/internal" not in await over_http(served, DEEP["types"](length), x="x")
