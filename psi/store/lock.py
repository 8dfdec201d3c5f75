"""A folder that one process has to itself. Two that share one would each close the turns of the other."""

from __future__ import annotations

import os
from pathlib import Path

from psi.errors import Failed

__all__ = ["FolderTaken", "Lock"]

try:
    import fcntl
except ImportError:  # no such locks there; the folder is not guarded
    fcntl = None  # type: ignore[assignment]


class FolderTaken(Failed):
    """Another process uses the folder."""

    code = "store/folder-taken"

    def __init__(self, folder: Path, owner: str) -> None:
        by = f" by process {owner}" if owner else ""
        super().__init__(f"the data folder {folder} is in use{by}; stop that psi, or name another folder with --data")


class Lock:
    """Held from its making to its release, or to the end of the process, however that comes. A folder that is not there
    is made, for its owner alone."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = os.read(self._file, 20).decode("ascii", "replace").strip()
                os.close(self._file)
                raise FolderTaken(folder, owner) from None
        os.truncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        os.close(self._file)
