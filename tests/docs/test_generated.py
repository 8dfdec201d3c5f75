from __future__ import annotations

from pathlib import Path

import pytest

from psi.edn import loads
from resolvers import ATTRIBUTES, OPERATIONS
from tool.declarations import ACTIONS
from tool.pages import attributes, pages
from tool.request import read

DOCS = Path(__file__).resolve().parents[2] / "docs"
PLACES = [
    (action.name, op.name if op else None, (op or action).example)
    for action in ACTIONS
    for op in (action.ops or (None,))
]


@pytest.mark.parametrize(("name", "text"), pages().items(), ids=pages().keys())
def test_the_page_is_what_make_docs_would_write(name: str, text: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("action", "op", "example"), PLACES, ids=lambda value: str(value).partition("\n")[0][:20])
def test_an_example_is_edn_and_a_request_for_what_it_stands_beside(action: str, op: str | None, example: str) -> None:
    assert loads(example)
    asked = read(example)
    assert (asked.action, asked.op) == (action, op)


def test_the_page_of_attributes_has_each_attribute_once_and_each_mutation() -> None:
    rows = [line.split("`")[1] for line in attributes().splitlines() if line.startswith("| `")]
    mutations = [operation.name for operation in OPERATIONS if hasattr(operation, "params")]
    assert sorted(rows) == sorted([*ATTRIBUTES, *mutations])
