"""Folders on disk as adapters see them: names, first bytes, a few rows of databases.

Owns ``DiskFolder``. Never follows a link out of the folder it lists, never opens anything that is no regular file
(a FIFO would block for ever). Unreadable folders are empty.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO

from callsheet.wire.database import Selection, read_rows


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file for reading; a pipe or device is refused instead of waited for.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    # Without O_NONBLOCK the open itself would wait for a pipe's writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def regular(path: Path) -> bool:
    """Whether ``path`` is a regular file (links to one count when they are named by the person themselves)."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


_OWN_HEAD = re.compile(rb'"format"\s*:\s*"callsheet/')


def is_stream(head: bytes) -> bool:
    """Whether a file begins as a stream of callsheet's own."""
    return _OWN_HEAD.search(head.split(b"\n", 1)[0]) is not None


def is_own(folder: Path) -> bool:
    """Whether a folder is a bundle: what it holds was imported already."""
    return (folder / "manifest.json").is_file() and (folder / "streams").is_dir()


class DiskFolder:
    """``harness._port.Folder`` over the file system."""

    def files(self, path: str, pattern: str) -> list[str]:
        """Regular files below ``path`` that match the pattern, sorted; links are left out."""
        root = Path(path)
        found: list[str] = []
        deep = pattern.startswith("**/")
        name = pattern.removeprefix("**/")
        for folder, folders, files in os.walk(root):
            if not deep:
                folders.clear()
            folders[:] = sorted(below for below in folders if not is_own(Path(folder, below)))
            for file in files:
                at = Path(folder, file)
                if at.match(name) and not at.is_symlink() and regular(at):
                    found.append(str(at))
        return sorted(found)

    def is_file(self, path: str) -> bool:
        """Whether a regular file is there."""
        return regular(Path(path))

    def head(self, path: str, size: int = 65536) -> bytes:
        """First bytes of a file, empty when it cannot be read."""
        try:
            with open_regular(Path(path)) as file:
                return file.read(size)
        except OSError:
            return b""

    def rows(self, path: str, selections: list[Selection]) -> list[list[dict[str, Any]]]:
        """A few small rows of a database."""
        return [[dict(row) for row in rows] for rows in read_rows(Path(path), selections)[1]]
