"""Settings of all tests: examples are the same in every run, so that a green main stays green."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same every time", derandomize=True, deadline=None)
settings.load_profile("same every time")
