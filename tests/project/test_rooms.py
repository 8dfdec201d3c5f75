"""The contracts of pyproject.toml cover every room, so that a new one cannot slip past them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = {contract["id"]: contract for contract in SETTINGS["tool"]["importlinter"]["contracts"]}
LAYERS = {name for layer in CONTRACTS["direction"]["layers"] for name in re.findall(r"[\w.]+", layer)}


def rooms() -> list[str]:
    modules = [path for path in (ROOT / "psi").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()]
    return ["resolvers", "tool", *sorted(f"psi.{path.stem}" for path in modules if path.stem != "__init__")]


@pytest.mark.parametrize("room", rooms())
def test_the_room_has_its_place_in_the_direction(room: str) -> None:
    assert room in LAYERS


@pytest.mark.parametrize("room", sorted({"psi.core", "psi.edn", "psi.eql", "psi.errors", "psi.graph"} & set(rooms())))
def test_the_room_is_held_to_be_pure(room: str) -> None:
    assert room in CONTRACTS["pure"]["source_modules"]


def test_the_design_page_names_every_room() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert [room for room in rooms() if f"`{room}`" not in page] == []
