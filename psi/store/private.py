"""Files that are nobody else's business."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["make_private"]


def make_private(path: Path) -> None:
    """The folder and the file, each made where it is missing, the file for its owner alone whoever may look into the
    folder. SQLite gives the files that it puts beside it the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
