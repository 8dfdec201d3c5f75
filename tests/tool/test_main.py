from __future__ import annotations

import pytest

import psi
from tool.main import main


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"psi {psi.__version__}\n"


def test_serve_says_that_there_is_no_service_yet_and_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "The service is not part of this version" in said.err
    assert "docs/graph.md" in said.err


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "serve" in capsys.readouterr().out


def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dance"])
    assert ended.value.code == 2
    assert "dance" in capsys.readouterr().err
