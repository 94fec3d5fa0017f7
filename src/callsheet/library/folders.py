"""Folders on disk as adapters see them: names, first bytes, a few rows of databases.

Owns ``DiskFolder``. Never follows a link that lies below the place the person named, never opens anything that is
no regular file (a FIFO would block for ever). Unreadable folders are empty, and are remembered for a message.
Callsheet's own streams and bundles are no sources for any adapter.
"""

from __future__ import annotations

import errno
import os
import stat
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from callsheet.errors import SourceError
from callsheet.wire.damage import BOM
from callsheet.wire.database import Selection, read_rows
from callsheet.wire.inflate import head_of, is_compressed


def open_regular(path: Path, buffering: int = -1) -> BinaryIO:
    """Opens a regular file for reading; a pipe or device is refused instead of waited for.

    Args:
        path: The file.
        buffering: As for ``open``.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    # Without O_NONBLOCK the open itself would wait for a pipe's writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb", buffering)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def _mode(path: Path, *, follow: bool = True) -> int:
    """The mode of what is there; 0 when nothing is, or when it may not be seen."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except (OSError, ValueError):
        return 0


def _is_link(path: Path) -> bool:
    return stat.S_ISLNK(_mode(path, follow=False))


def regular(path: Path) -> bool:
    """Whether ``path`` is a regular file (links to one count when they are named by the person themselves)."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder, or a link to one; never raises, whatever the name."""
    return stat.S_ISDIR(_mode(path))


def whereabouts(path: str) -> str:
    """What a manifest calls a source: its place from the root, or ``-`` for standard input."""
    return path if path == "-" else absolute(path)


def absolute(path: str | Path) -> str:
    """A path from the root, without following links (what it names, it still names elsewhere)."""
    path = str(path)
    # A session may have thousands of files, and making a Path of each is what costs.
    return os.path.normpath(path if os.path.isabs(path) else Path(path).absolute())  # noqa: PTH117


_OWN = "callsheet/"
_OWN_LINES = 50
"""Lines of a file's head among which a session record of callsheet's own is looked for."""


class _Line(msgspec.Struct):
    type: Any = None
    format: Any = None


def is_stream(head: bytes) -> bool:
    """Whether a file begins as a stream of callsheet's own: a session record of it is among the first lines."""
    if is_compressed(head):
        head = head_of(head, 65536)
    if _OWN.encode() not in head:
        return False
    return any(_is_own_session(line) for line in head.split(b"\n", _OWN_LINES)[:_OWN_LINES])


def _is_own_session(data: bytes) -> bool:
    if _OWN.encode() not in data:
        return False
    try:
        line = msgspec.json.decode(data.removeprefix(BOM), type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The head may end inside of the line: a session record of ours begins like this.
        return data.removeprefix(BOM).startswith(b'{"type":"session"') and b'"format":"callsheet/' in data
    return line.type == "session" and isinstance(line.format, str) and line.format.startswith(_OWN)


def is_own(folder: Path) -> bool:
    """Whether a folder is a bundle: what it holds was imported already."""
    return regular(folder / "manifest.json") and is_folder(folder / "streams")


class DiskFolder:
    """``harness._port.Folder`` over the file system.

    Args:
        named: The file or folder that the person named; it may be a link itself.

    Attributes:
        unreadable: Files and folders that could not be read, and why.
    """

    def __init__(self, named: Path) -> None:
        self._named = Path(absolute(named))
        self._base = self._named if is_folder(named) else self._named.parent
        self.unreadable: dict[str, str] = {}
        self._linked: dict[str, bool] = {}

    def _is_linked(self, path: str) -> bool:
        """Whether a link is on the way from the place that was named to a path near it."""
        at = absolute(path)
        if at == str(self._named):
            return False
        above = os.path.split(at)[0]
        if above not in self._linked:
            self._linked[above] = any(map(_is_link, self._way_to(Path(above))))
        return self._linked[above] or any(map(_is_link, self._way_to(Path(at))[:1]))

    def _way_to(self, at: Path) -> list[Path]:
        """A path and the folders above it, up to what it shares with the place that was named."""
        above = (self._base, *self._base.parents)
        return list(takewhile(lambda way: way not in above, (at, *at.parents)))

    def _note(self, error: OSError) -> None:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            self.unreadable.setdefault(str(error.filename), error.strerror or str(error))

    def files(self, path: str, pattern: str) -> list[str]:
        """Regular files below ``path`` that match the pattern, sorted; links are left out."""
        found: list[str] = []
        if self._is_linked(path):
            return found
        deep = pattern.startswith("**/")
        name = pattern.removeprefix("**/")
        for folder, folders, files in os.walk(path, onerror=self._note):
            if not deep:
                folders.clear()
            folders[:] = sorted(below for below in folders if not is_own(Path(folder, below)))
            for file in files:
                at = Path(folder, file)
                if not at.match(name):
                    continue
                mode = _mode(at, follow=False)
                if stat.S_ISREG(mode):
                    found.append(str(at))
                elif not mode:
                    self.unreadable.setdefault(str(at), "cannot be looked at")
        return sorted(found)

    def is_file(self, path: str) -> bool:
        """Whether a regular file is there."""
        return regular(Path(path)) and not self._is_linked(path)

    def head(self, path: str, size: int = 65536) -> bytes:
        """First bytes of a file, empty when it cannot be read; of a stream of callsheet's own no adapter sees any."""
        try:
            if self._is_linked(path):
                return b""
            with open_regular(Path(path)) as file:
                head = file.read(size)
        except OSError as error:
            self._note(error)
            return b""
        return b"" if is_stream(head) else head

    def tables(self, path: str) -> list[str]:
        """Names of the tables of a database, empty when it cannot be read."""
        try:
            return [] if self._is_linked(path) else list(read_rows(Path(path), [])[0].tables)
        except SourceError:
            return []  # what reads it says why

    def rows(self, path: str, selections: list[Selection]) -> list[list[dict[str, Any]]]:
        """A few small rows of a database."""
        if self._is_linked(path):
            return [[] for _ in selections]
        return [[dict(row) for row in rows] for rows in read_rows(Path(path), selections)[1]]
