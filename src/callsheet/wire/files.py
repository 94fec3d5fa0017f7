"""Private files that are either whole or absent.

Owns: modes (0600 for files, 0700 for folders), writing beside the target and renaming into place, the order of
flush, fsync and rename. A reader never sees a half-written file under its final name.

Must never know: records, JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol

from callsheet.wire.lines import CHUNK


def private_folder(path: Path) -> Path:
    """Makes a folder and its missing parents, for this user only; leaves the modes of existing ones alone."""
    missing = []
    at = path
    while not at.exists():
        missing.append(at)
        at = at.parent
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    return path


def sync_folder(path: Path) -> None:
    """Puts the names in a folder on the disk, where the system can do that."""
    try:
        held = os.open(path, os.O_RDONLY)
    except PermissionError:  # a system that opens no folders
        return
    try:
        os.fsync(held)
    finally:
        os.close(held)


class AtomicFile:
    """A file that appears under its name only when it was written whole; else nothing appears.

    Use as a context manager. Counts and digests what is written.

    Attributes:
        size: Bytes written so far.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self.path = path
        self.size = 0
        self._sync = sync
        self._hash = hashlib.sha256()
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._file = -1

    def __enter__(self) -> AtomicFile:
        private_folder(self.path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        self._file = os.open(self._part, flags, 0o600)
        return self

    def write(self, data: bytes) -> None:
        """Appends bytes."""
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]
        self._hash.update(data)
        self.size += len(data)

    @property
    def sha256(self) -> str:
        """Hex digest of what was written so far."""
        return self._hash.hexdigest()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._sync:
                os.fsync(self._file)
        finally:
            os.close(self._file)
        if kind is None:
            self._part.replace(self.path)
        else:
            self._part.unlink(missing_ok=True)


class Readable(Protocol):
    """Anything that gives bytes until its end."""

    def read(self, size: int = ..., /) -> bytes:
        """At most ``size`` bytes; empty at the end."""


def read_chunks(file: Readable, size: int = CHUNK) -> Iterator[bytes]:
    """Pieces of an open binary file until its end."""
    while chunk := file.read(size):
        yield chunk
