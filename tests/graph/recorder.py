"""Operations that do as they are told and write down what they were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from psi.graph import Env, Mutation, Resolver, mutation, resolver


class Recorder:
    """Declares operations in one line each. ``answer`` is a function of the input, a value, or an error to raise."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def resolver(self, name: str, needs: Any, gives: Any, answer: Any, **options: Any) -> Resolver:
        return resolver(name=name, input=needs, output=gives, **options)(self._function(name, answer))

    def mutation(self, name: str, answer: Any, **options: Any) -> Mutation:
        return mutation(name, **options)(self._function(name, answer))

    def _function(self, name: str, answer: Any) -> Callable[[Env, Any], Any]:
        def function(env: Env, data: Any) -> Any:
            self.calls.append((name, data))
            if isinstance(answer, Exception):
                raise answer
            return answer(data) if callable(answer) else answer

        return function

    @property
    def names(self) -> list[str]:
        """Who was called, in order."""
        return [name for name, _ in self.calls]

    @property
    def counts(self) -> dict[str, int]:
        """How often each was called."""
        return dict(Counter(self.names))

    def inputs(self, name: str) -> list[Any]:
        """What one of them was given, call by call."""
        return [data for called, data in self.calls if called == name]
