"""A lock on a folder, held by one process and let go when that process ends, however it ends.

Must never know: what is in the folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


class FolderLock:
    """An exclusive lock; where the system has no such lock, everybody gets it.

    Raises:
        BlockingIOError: Another process holds it.
        OSError: The folder cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._held = -1
        if sys.platform == "win32":
            return
        import fcntl

        held = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(held)
            raise
        self._held = held

    def release(self) -> None:
        """Lets go; may be called twice."""
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)


def is_locked(folder: Path) -> bool:
    """Whether a process holds the folder now."""
    try:
        FolderLock(folder).release()
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
