"""How many values may share one hash. Numbers have theirs from their value alone, so a text can be written in which all
have the same, and a set, a map or a cache of them takes quadratic time. Texts and names are safe: theirs are salted.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

__all__ = ["MOST_ALIKE", "Alike", "are_alike", "can_be_alike"]

MOST_ALIKE: Final = 100

# A number's hash is its remainder by this. Below it an integer has a hash of its own, and of floats there are not
# enough: some two hundred with one hash.
_MODULUS: Final = sys.hash_info.modulus


def can_be_alike(value: Any) -> bool:
    """Whether others with its hash can be found at will."""
    kind = type(value)
    return kind is Decimal or kind is UUID or (kind is int and not -_MODULUS < value < _MODULUS)


class Alike(dict[int, set[Any]]):
    """Values by their hash."""

    def meet(self, value: Hashable) -> bool:
        """One more; whether there are too many with its hash now. The same value again is none more."""
        met = self.setdefault(hash(value), set())
        met.add(value)
        return len(met) > MOST_ALIKE


def are_alike(values: Sequence[Hashable]) -> bool:
    """Whether too many of these share one hash, be they equal or not. Costs little where there are few."""
    return len(values) > MOST_ALIKE and len(values) - len(set(map(hash, values))) >= MOST_ALIKE
