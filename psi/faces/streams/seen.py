"""Up to where a client says that it has a run: a run and a number, in the address or in what a browser sends by itself.

What is said wrongly is refused. A run that is not known, or over, is no mistake: who comes back late cannot know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from psi.core.config import shown
from psi.core.errors import Invalid
from psi.faces.asked import number_of
from psi.faces.streams.stream import Seen

__all__ = ["LARGEST_SEQ", "RUN", "RUN_AND_SEQ", "seen_in_address", "seen_in_header"]

LARGEST_SEQ: Final = 10**15
RUN: Final = "[!-~]{1,200}"
RUN_AND_SEQ: Final = f"({RUN}):([0-9]{{1,15}})"


def seen_in_header(given: Sequence[str]) -> Seen | None:
    """From ``Last-Event-ID``, all that there are. Empty is what a program sends that has seen nothing yet."""
    if len(given) > 1:
        raise _invalid(f"the header Last-Event-ID is there {len(given)} times", "last-event-id")
    if not given or not given[0].strip():
        return None
    found = re.fullmatch(RUN_AND_SEQ, given[0].strip())
    if found is None:
        raise _invalid(
            f"Last-Event-ID must be RUN:SEQ, the id of an event as it came, got {shown(given[0])}", "last-event-id"
        )
    return Seen(found[1], int(found[2]))


def seen_in_address(asked: Mapping[str, str]) -> Seen | None:
    """From ``run_id`` and ``after``: both or neither."""
    run = asked.get("run_id")
    seq = number_of(asked, "after", 0, LARGEST_SEQ)
    if run is None and seq is None:
        return None
    if run is None:
        raise _invalid("`after` counts within a run; `run_id` has to say in which", "run_id")
    if not re.fullmatch(RUN, run):
        raise _invalid(f"`run_id` must be the id of a run, got {shown(run)}", "run_id")
    if seq is None:
        raise _invalid("`run_id` needs `after`: the number of the last frame of that run that was seen", "after")
    return Seen(run, seq)


def _invalid(message: str, argument: str) -> Invalid:
    return Invalid(message, code="rest/invalid-parameter", argument=argument)
