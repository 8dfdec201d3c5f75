from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.snippets import Untrue, blocks, run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_of_the_page_does_what_the_page_says(page: Path) -> None:
    run(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))


def test_the_readme_shows_code_that_runs() -> None:
    assert any(block.runs for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")))


# The runner itself: a checker that cannot fail would be worse than none.


def page(*lines: str) -> str:
    return "\n".join(lines) + "\n"


TRUE = {
    "an expression equals its value": page("```python", "1 + 1  # => 2", "```"),
    "a value is evaluated where the snippet is": page("```python", "x = [1]", "[1]  # => x", "```"),
    "a repr that is no Python": page("```python", "object  # => <class 'object'>", "```"),
    "an arrow below the expression": page("```python", "(1 +", " 1)", "# => 2", "```"),
    "a value over several lines": page(
        "```python", "dict(a=1, b=2)", "# => {", '#  "a": 1,', '#  "b": 2}', "# and a remark", "```"
    ),
    "await without a function": page("```python", "import asyncio", "await asyncio.sleep(0, 'x')  # => 'x'", "```"),
    "blocks share names": page("```python", "a = 1", "```", "and then", "```python", "a  # => 1", "```"),
    "printed text": page("```python", "print('a')", "print('b ')", "```", "", "```text", "a", "b", "```"),
    "text further away is prose": page("```python", "print('a')", "```", "Compare with:", "```text", "z", "```"),
    "text after text is prose": page("```python", "print('a')", "```", "```text", "a", "```", "```text", "z", "```"),
    "blocks that are not to be run": page("```python no-run", "1 / 0", "```", "~~~clojure", "(/ 1 0)", "~~~"),
    "a longer fence holds a shorter one": page("````markdown", "```python", "1 / 0", "```", "````"),
    "an arrow inside a string is no claim": page("```python", "'# => 2'", "```"),
    "functions see later names": page("```python", "def f():", "    return g", "g = 1", "f()  # => 1", "```"),
}

FALSE = {
    "another value": (page("", "```python", "x = 1", "x  # => 2", "```"), "page.md:4: says 2\nbut it is 1"),
    "another value below the expression": (
        page("```python", "[1,", " 2]", "# => [1,", "#     3]", "```"),
        "page.md:4: says [1, 3]\nbut it is [1, 2]",
    ),
    "another repr": (
        page("```python", "object  # => <class 'thing'>", "```"),
        "page.md:2: says <class 'thing'>\nbut it is <class 'object'>",
    ),
    "an exception": (
        page("```python", "def f():", "    1 / 0", "", "f()", "```"),
        "page.md:3: raises ZeroDivisionError: division by zero",
    ),
    "an exception below the page": (
        page("```python", "x = 1", "int('x')", "```"),
        "page.md:3: raises ValueError: invalid literal for int() with base 10: 'x'",
    ),
    "bad syntax": (page("text", "```python", "x = 1", "x = = 1", "```"), "page.md:4: is not Python: invalid syntax"),
    "an arrow after a statement": (
        page("```python", "x = 1  # => 1", "```"),
        "page.md:2: this arrow belongs to no top-level expression",
    ),
    "an arrow inside a function": (
        page("```python", "def f():", "    1  # => 2", "    return", "```"),
        "page.md:3: this arrow belongs to no top-level expression",
    ),
    "other printed text": (
        page("```python", "print('a')", "print('b')", "```", "```text", "a", "c", "```"),
        "page.md:7: says something else than what was printed:\na\nb",
    ),
    "nothing printed": (
        page("```python", "1", "```", "```text", "a", "```"),
        "page.md:5: says something else than what was printed:\n(nothing)",
    ),
}


@pytest.mark.parametrize("markdown", TRUE.values(), ids=TRUE.keys())
def test_a_true_page_passes(markdown: str) -> None:
    run(markdown, "page.md")


@pytest.mark.parametrize(("markdown", "message"), FALSE.values(), ids=FALSE.keys())
def test_an_untrue_page_fails_at_its_line(markdown: str, message: str) -> None:
    with pytest.raises(Untrue) as caught:
        run(markdown, "page.md")
    assert str(caught.value) == message


def test_a_fence_that_is_never_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2: this fence is never closed"):
        list(blocks(page("text", "```python", "1")))


def test_run_counts_the_blocks_that_ran() -> None:
    assert run(page("```python", "1", "```", "```python no-run", "2", "```", "```python", "3", "```"), "page.md") == 2
