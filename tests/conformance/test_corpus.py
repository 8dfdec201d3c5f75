"""The corpus of Pathom's answers, with and without compiled code. ``deviations.md`` says where and why we differ."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.compare import called_too_often, same
from tests.conformance.run import cases_in, main, run_case

HERE = Path(__file__).parent
CASES = HERE / "cases.jsonl.gz"


@cache
def families() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for case in cases_in(CASES):
        found[case["family"]].append(case)
    return found


@cache
def listed() -> tuple[frozenset[str], frozenset[str]]:
    """The cases that deviations.md lists for their answers, and for their calls."""
    answers, calls = (HERE / "deviations.md").read_text().split("## Calls")
    return frozenset(re.findall(r"`([a-z-]+-\d{4})`", answers)), frozenset(re.findall(r"`([a-z-]+-\d{4})`", calls))


def is_stable(case: dict[str, Any]) -> bool:
    return bool(case["stable"] and case["order_stable"])


@pytest.mark.parametrize("compile_after", [0, None], ids=["compiled", "in frames"])
@pytest.mark.parametrize("family", sorted(families()))
def test_the_answers_are_those_of_pathom_but_for_the_listed_deviations(family: str, compile_after: int | None) -> None:
    listed_answers, listed_calls = listed()
    different, too_often = set(), set()
    for case in families()[family]:
        got = run_case(case, compile_after)
        if not same(case["expect"], got):
            if is_stable(case):
                different.add(case["id"])
        elif called_too_often(case["expect"], got):
            too_often.add(case["id"])
    assert different == {name for name in listed_answers if name.rpartition("-")[0] == family}
    assert too_often <= listed_calls


def test_at_least_97_percent_of_the_stable_cases_give_the_same_answer() -> None:
    stable = {case["id"] for cases in families().values() for case in cases if is_stable(case)}
    different, _ = listed()
    assert different <= stable
    assert len(stable - different) / len(stable) >= 0.97


def test_the_runner_writes_a_line_for_each_case_of_a_plain_or_a_packed_file(tmp_path: Path) -> None:
    some = [cases[0] for cases in families().values()]
    plain = tmp_path / "cases.jsonl"
    plain.write_text("".join(json.dumps(case) + "\n" for case in some))
    out = tmp_path / "out.jsonl"
    assert main([str(plain), str(out)]) == 0
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [answer["id"] for answer in answers] == [case["id"] for case in some]
    assert all(same(case["expect"], answer) for case, answer in zip(some, answers, strict=True) if is_stable(case))
    assert all(len({"ok", "data", "error"} & answer.keys()) == 1 for answer in answers)
