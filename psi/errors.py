"""Every refusal psi can give, as one tree.

    PsiError                      anything this package raises on purpose
    ├── Refused                   the caller's request is wrong; nothing was changed
    └── Failed                    the request was right, carrying it out was not possible

Rooms below add their own leaves (``psi.edn.ReadError``, ``psi.graph.AttributeUnreachable`` …). An error has a stable
``code`` that programs match on, a sentence for people, and its facts as fields; ``as_data`` gives the three together,
so that a face never has to know which error it is rendering.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

__all__ = ["Done", "Failed", "PsiError", "Refused"]


class Done(NamedTuple):
    """Something that a request had carried out by the time it failed: it stays done."""

    operation: str
    result: Any


class PsiError(Exception):
    """Raised on purpose, with a sentence that says what was wrong and what is accepted."""

    code: ClassVar[str] = "psi/error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.done: Sequence[Done] = ()

    def facts(self) -> dict[str, Any]:
        """What a program needs to know beyond the sentence; keys are kebab-case."""
        return {}

    def as_data(self) -> dict[str, Any]:
        """The error as plain data: what every face shows, and never a stack trace."""
        return {"code": self.code, "message": self.sentence(), "data": self.disclosed()}

    def sentence(self) -> str:
        """The message, and that something was done all the same, where it was: nobody may take it for undone."""
        if not self.done:
            return self.message
        names = ", ".join(each.operation for each in self.done)
        return f"{self.message}. Before that was carried out, and stays so: {names}"

    def disclosed(self) -> dict[str, Any]:
        """The facts, and what was done all the same, with what came of it."""
        return {**self.facts(), **({"done": [each._asdict() for each in self.done]} if self.done else {})}


class Refused(PsiError):
    """The request is at fault: bad syntax, an unknown name, a value out of bounds. Nothing was changed."""

    code = "psi/refused"


class Failed(PsiError):
    """The request was understood; a resolver, a limit or the outside world stood in the way."""

    code = "psi/failed"
