"""What can be wrong with EDN text and with a value to be written as EDN.

    psi.errors.Refused
    ├── ReadError      edn/read     the text is not the one EDN value it should be
    └── WriteError     edn/write    the value has no EDN form

Both say where: a line and a column of the text, a path into the value.
"""

from __future__ import annotations

from typing import Any

from psi.errors import Refused

__all__ = ["ReadError", "WriteError"]


class ReadError(Refused):
    """Where the text went wrong, what should have stood there and what did. Lines and columns count from 1."""

    code = "edn/read"

    def __init__(self, line: int, column: int, expected: str, found: str, hint: str = "") -> None:
        sentence = f"line {line}, column {column}: expected {expected}, found {found}"
        super().__init__(f"{sentence}; {hint}" if hint else sentence)
        self.line = line
        self.column = column
        self.expected = expected
        self.found = found
        self.hint = hint

    def facts(self) -> dict[str, Any]:
        return {"line": self.line, "column": self.column, "expected": self.expected, "found": self.found}


class WriteError(Refused):
    """A value EDN has no form for, and the path of keys and positions that leads to it."""

    code = "edn/write"

    def __init__(self, problem: str, path: tuple[Any, ...] = ()) -> None:
        super().__init__(problem)
        self.path = path

    def facts(self) -> dict[str, Any]:
        return {"path": list(self.path)}
