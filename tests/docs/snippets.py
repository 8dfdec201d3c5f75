"""Runs the Python of a Markdown page and holds it to what the page says comes out.

The blocks of one page share a namespace and an event loop, as if typed into one session, with `await` allowed anywhere:

    ```python              runs
    ```python no-run       is only shown
    ```text                directly after a python block: exactly what that block printed
    expression  # => value     the expression equals the value, or its repr reads so

The arrow may also stand on the line below the expression, and a long value may go on over further comment lines.
An arrow that belongs to no top-level expression is an error: the page would claim something that nobody checked.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

__all__ = ["Block", "Untrue", "blocks", "run"]

FENCE = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>.*)")


class Untrue(AssertionError):
    """The page says something that is not so."""

    def __init__(self, page: str, line: int, what: str) -> None:
        super().__init__(f"{page}:{line}: {what}")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `line` is where its first line of content stands in the page."""

    info: str
    source: str
    line: int
    follows: bool = False
    """Nothing but blank lines separates it from the block before."""

    @property
    def end(self) -> int:
        """The line of the closing fence."""
        return self.line + self.source.count("\n")

    @property
    def runs(self) -> bool:
        return self.info == "python"


@dataclass(frozen=True, slots=True)
class Arrow:
    line: int
    alone: bool
    text: str


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    opening: re.Match[str] | None = None
    body: list[str] = []
    start = 0
    follows = False
    for number, line in enumerate(markdown.splitlines(), 1):
        fence = FENCE.fullmatch(line)
        if opening is None:
            if fence:
                opening, body, start = fence, [], number + 1
            elif line.strip():
                follows = False
        elif fence and fence["fence"].startswith(opening["fence"]) and not fence["info"].strip():
            info = " ".join(opening["info"].split())
            yield Block(info, "".join(f"{each}\n" for each in body), start, follows)
            opening, follows = None, True
        else:
            body.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        raise ValueError(f"line {start - 1}: this fence is never closed")


def run(markdown: str, page: str) -> int:
    """Run every python block of the page and say how many ran; raises `Untrue` at the first claim that fails."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    previous: Block | None = None
    printed = ""
    with asyncio.Runner() as runner:
        for block in blocks(markdown):
            if block.runs:
                printed = _execute(block, page, namespace, runner)
                count += 1
            elif block.info == "text" and block.follows and previous is not None and previous.runs:
                _compare_output(block, printed, page)
            previous = block
    return count


def _execute(block: Block, page: str, namespace: dict[str, Any], runner: asyncio.Runner) -> str:
    reached = block.line

    def check(line: int, expected: str, actual: object) -> None:
        nonlocal reached
        reached = line
        if repr(actual) == expected:
            return
        try:
            wanted = eval(expected, namespace)
        except (SyntaxError, NameError):
            raise Untrue(page, line, f"says {expected}\nbut it is {actual!r}") from None
        if actual != wanted:
            raise Untrue(page, line, f"says {wanted!r}\nbut it is {actual!r}")

    output = io.StringIO()
    namespace["__check__"] = check
    try:
        tree = _with_checks(block, page)
        code = compile(tree, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.redirect_stdout(output):
            result = eval(code, namespace)
            if inspect.iscoroutine(result):
                runner.run(result)
    except Untrue:
        raise
    except SyntaxError as error:
        raise Untrue(page, error.lineno or block.line, f"is not Python: {error.msg}") from error
    except Exception as error:  # whatever a snippet raises is reported at its line, chained
        line = _line_in_page(error, page) or reached
        raise Untrue(page, line, f"raises {type(error).__name__}: {error}") from error
    return output.getvalue()


def _line_in_page(error: BaseException, page: str) -> int | None:
    """The innermost line of the page itself that the error passed through."""
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == page:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _with_checks(block: Block, page: str) -> ast.Module:
    """The block with the page's line numbers, where `expr  # => value` became `__check__(line, value, expr)`."""
    # Blank lines in front rather than shifted nodes: SyntaxError and tokens get the page's numbers as well.
    source = "\n" * (block.line - 1) + block.source
    tree = ast.parse(source, page)
    ends = {statement.end_lineno: statement for statement in tree.body}
    for arrow in _arrows(source):
        statement = ends.get(arrow.line - 1 if arrow.alone else arrow.line)
        if not isinstance(statement, ast.Expr):
            raise Untrue(page, arrow.line, "this arrow belongs to no top-level expression")
        expression = statement.value
        call = ast.Call(
            ast.Name("__check__", ast.Load()), [ast.Constant(arrow.line), ast.Constant(arrow.text), expression], []
        )
        statement.value = ast.copy_location(call, expression)
    return ast.fix_missing_locations(tree)


def _arrows(source: str) -> Iterator[Arrow]:
    comments = {
        token.start[0]: (token.string.removeprefix("#").strip(), not token.line[: token.start[1]].strip())
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    for line, (comment, alone) in comments.items():
        if comment.startswith("=>"):
            yield Arrow(line, alone, _value(comment.removeprefix("=>").strip(), line, comments))


def _value(text: str, line: int, comments: dict[int, tuple[str, bool]]) -> str:
    """The text after an arrow, with as many of the comment lines below as it takes to make an expression of it."""
    longer = text
    while True:
        try:
            ast.parse(longer, mode="eval")
        except SyntaxError:
            line += 1
            more, alone = comments.get(line, ("", False))
            if not alone or more.startswith("=>"):
                return text
            longer = f"{longer}\n{more}"
        else:
            return longer


def _compare_output(block: Block, printed: str, page: str) -> None:
    said = [line.rstrip() for line in block.source.rstrip().splitlines()]
    came = [line.rstrip() for line in printed.rstrip().splitlines()]
    if said == came:
        return
    first = next(n for n, (a, b) in enumerate(zip_longest(said, came)) if a != b)
    shown = "\n".join(came) or "(nothing)"
    raise Untrue(page, block.line + first, f"says something else than what was printed:\n{shown}")
