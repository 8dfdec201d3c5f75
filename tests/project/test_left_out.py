"""A run of tests says what it has left out."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
TESTS = """
import pytest

def test_quick(): pass

@pytest.mark.slow
@pytest.mark.parametrize("number", range({count}))
def test_slow(number): pass
"""


def said(folder: Path, count: int, *options: str) -> str:
    """What pytest prints about one quick test and so many slow ones."""
    shutil.copy(CONFTEST, folder)
    (folder / "test_some.py").write_text(TESTS.format(count=count), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "with xdist"])
def test_slow_tests_that_are_left_out_are_counted_once(workers: tuple[str, ...], tmp_path: Path) -> None:
    for count, words in (
        (3, "3 slow tests were left out; make test-all runs them"),
        (1, "1 slow test was left out; make test-all runs it"),
    ):
        assert f"\n{words}\n" in said(tmp_path, count, "-m", "not slow", *workers)


@pytest.mark.parametrize("options", [(), ("-k", "quick"), ("-m", "slow")], ids=["all", "by name", "slow ones"])
def test_and_nothing_is_said_where_none_is(options: tuple[str, ...], tmp_path: Path) -> None:
    assert "left out" not in said(tmp_path, 2, *options)
