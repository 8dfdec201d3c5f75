"""What was read or written of late and will likely be again. Bounded: forgetting only costs time."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Recent"]

K = TypeVar("K", bound=str)
V = TypeVar("V")


class Recent(dict[K, V]):
    """Short texts and what was made of them. When full it starts anew: that is simpler than ageing, and rare."""

    MOST = 4096
    LONGEST = 64

    def keep(self, key: K, value: V) -> V:
        if len(key) <= self.LONGEST:
            if len(self) >= self.MOST:
                self.clear()
            self[key] = value
        return value
