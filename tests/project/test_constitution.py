"""What must stay true of the project as a whole, whatever it does."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module, metadata
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import psi

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = (
    "psi",
    "psi.agents",
    "psi.core",
    "psi.edn",
    "psi.engine",
    "psi.eql",
    "psi.errors",
    "psi.graph",
    "psi.runtime",
    "psi.service",
    "psi.store",
    "resolvers",
    "tool",
)
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

# Taken apart so that this file does not contain them itself.
UNSAID = (
    "pypi" + ".org",
    "files.python" + "hosted",
    "registry" + ".npmjs",
    "/ro" + "ot/",
    "/wo" + "rk/",
    "/tmp/ba" + "sh",
)


def project() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings


def files() -> Iterator[Path]:
    """Every file a clone would have. .gitignore is read here, so that the list of what is not ours stands once."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    ignored = [".git", *(line for line in lines if line and not line.startswith("#"))]

    def ours(name: str) -> bool:
        return not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)

    for folder, folders, names in os.walk(ROOT):
        folders[:] = filter(ours, folders)
        yield from (Path(folder, name) for name in names if ours(name))


def normal(name: str) -> str:
    """A distribution's name in the one form in which two names compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_package_says_what_it_offers_and_has_it(name: str) -> None:
    module = import_module(name)
    assert module.__doc__
    missing = [each for each in module.__all__ if not hasattr(module, each)]
    assert not missing
    assert sorted(set(module.__all__)) == sorted(module.__all__)


def test_the_version_is_stated_once() -> None:
    assert "version" in project()["project"]["dynamic"]
    assert metadata.version(project()["project"]["name"]) == psi.__version__


def test_the_engine_needs_nothing_but_the_standard_library() -> None:
    # -I -S: no site-packages, no environment; only the tree itself is added.
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import psi.edn, psi.eql, psi.graph"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=60)


def test_no_file_names_a_registry_or_a_place_on_somebodys_machine() -> None:
    found = []
    for file in files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(ROOT)} contains {word}" for word in UNSAID if word in text]
    assert not found


def test_constraints_are_names_and_exact_versions_in_order_and_nothing_else() -> None:
    assert [line for line in PINS if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*", line)] == []
    assert sorted(PINS, key=str.upper) == PINS


def test_every_dependency_is_pinned_down_to_the_last() -> None:
    """From what pyproject asks for, through what the installed packages ask for: no name without a pin."""
    pinned = {normal(line.partition("==")[0]) for line in PINS}
    settings = project()
    extras = settings["project"]["optional-dependencies"].values()
    waiting = [*settings["build-system"]["requires"], *settings["project"]["dependencies"], *chain(*extras)]
    needed: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = normal(re.split(r"[^A-Za-z0-9._-]", requirement.strip())[0])
        if name in needed or "extra ==" in requirement:
            continue
        try:
            waiting += metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            # Asked for under a marker that is false here: another system, or an older Python.
            if ";" in requirement:
                continue
            raise
        needed.add(name)
    assert needed - pinned == set()


def test_make_has_its_targets_and_each_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    described = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == described
    assert described >= {"serve", "test", "test-all", "bench", "fmt", "lint", "types", "contracts", "help", "clean"}


def test_continuous_integration_runs_what_a_person_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "exec make test"


@pytest.mark.parametrize("package", ["psi", "resolvers", "tool"])
def test_a_package_tells_type_checkers_that_it_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
