"""What sessions and schedules refuse.

    Refused
    ├── Invalid            the request can never be right; says what is accepted
    │   └── ConfigInvalid  with every problem of a session-config at once
    ├── Forbidden          the caller is known, and may not
    ├── NotFound           it names something that is not there, or not the caller's
    └── Conflict           it is right, but not now: busy, over a cap, ended already

Each has a stable code and its facts as fields. A face maps the kinds, never single errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from psi.edn import Keyword
from psi.errors import Refused

if TYPE_CHECKING:
    from psi.core.config import Problem

__all__ = [
    "CapExceeded",
    "ConfigInvalid",
    "Conflict",
    "Forbidden",
    "Invalid",
    "NotCancellable",
    "NotFound",
    "RuntimeClosed",
    "ScheduleNotFound",
    "SessionBusy",
    "SessionNotFound",
    "SessionRequired",
]


class _WithFacts(Refused):
    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self._facts = {name.replace("_", "-"): value for name, value in facts.items()}

    def facts(self) -> dict[str, Any]:
        return dict(self._facts)


class Invalid(_WithFacts):
    """A value that is never accepted; ``code`` tells which rule it broke, ``argument`` where it stands."""

    code = "psi/invalid"

    def __init__(self, message: str, *, code: str | None = None, argument: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.argument = argument
        if code is not None:
            self.code = code  # type: ignore[misc]  # one class for all rules, a stable code for each


class Forbidden(_WithFacts):
    code = "auth/forbidden"

    def __init__(self, message: str, *, code: str | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        if code is not None:
            self.code = code  # type: ignore[misc]  # as above


class NotFound(_WithFacts):
    code = "psi/not-found"


class Conflict(_WithFacts):
    code = "psi/conflict"


class ConfigInvalid(Invalid):
    """A session-config with problems, each with its path, what was expected and what came: all of them, or where there
    are very many, the first and how many more."""

    code = "session-config/invalid"
    what: ClassVar[str] = "session-config"
    most: ClassVar[int] = 50  # problems that are told, and unsupported keys

    def __init__(self, problems: Sequence[Problem], unsupported: Sequence[str], who: str = "scheduler") -> None:
        # A schedule has it under `session-config`; to a session it is simply its `config`.
        what = f"{who} session-config" if who == "scheduler" else f"{who} config"
        if unsupported:
            message = f"{what} contains unsupported keys"
        else:
            told = [*map(str, problems[: self.most])]
            if len(problems) > self.most:
                told.append(f"and {len(problems) - self.most:,} more".replace(",", " "))
            message = f"{what} is invalid: {'; '.join(told)}"
        super().__init__(message)
        self.problems = tuple(problems[: self.most])
        self.unsupported = tuple(unsupported[: self.most])
        self._more = {
            name: len(all_of_them) - self.most
            for name, all_of_them in (("more-unsupported-keys", unsupported), ("more-problems", problems))
            if len(all_of_them) > self.most
        }

    def facts(self) -> dict[str, Any]:
        keys = {"unsupported-keys": list(self.unsupported)} if self.unsupported else {}
        return {**keys, "problems": [problem.as_data() for problem in self.problems], **self._more}


class SessionRequired(Invalid):
    """A session's own thing was asked for without saying whose."""

    code = "session/required"

    def __init__(self, action: str) -> None:
        super().__init__(f"psi-tool {action} action requires invoking or explicit `session-id`", action=action)


class SessionNotFound(NotFound):
    code = "session/not-found"

    def __init__(self, session_id: str) -> None:
        super().__init__("session not found", session_id=session_id)


class SessionBusy(Conflict):
    """One run at a time. Nothing was stored for the input that was refused."""

    code = "session/busy"

    def __init__(self, session_id: str, phase: str, run_id: str | None) -> None:
        super().__init__(
            "session is busy: a run is active; wait for its end or stop it",
            session_id=session_id,
            phase=Keyword(phase),
            run_id=run_id,
        )


class RuntimeClosed(Conflict):
    code = "psi/closed"

    def __init__(self) -> None:
        super().__init__("psi is shutting down and accepts nothing new")


class ScheduleNotFound(NotFound):
    """No such schedule, or another session's: the two are not told apart."""

    code = "scheduler/not-found"

    def __init__(self, schedule_id: str) -> None:
        super().__init__("schedule not found", schedule_id=schedule_id)


class NotCancellable(Conflict):
    """The schedule has ended, or its delivery is under way; nothing was changed."""

    code = "scheduler/not-cancellable"

    def __init__(self, schedule_id: str, status: str) -> None:
        super().__init__("schedule is not cancellable", schedule_id=schedule_id, status=Keyword(status))


class CapExceeded(Conflict):
    code = "scheduler/cap-exceeded"

    def __init__(self, cap: int) -> None:
        super().__init__("scheduler pending cap exceeded", cap=cap)
