"""The native sources of a bundle, opened as evidence: the file itself where it is unchanged, else the bundle's copy.

Owns: which of the two may be believed (size and digest, as the manifest tells them), reading at a place, and rows
of a SQLite source. A copy is unpacked into a file, never into memory, and never beyond the size that the manifest
tells. At most ``OPEN_MOST`` sources are open at a time.

Must never know: what a line means, records.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from callsheet.errors import SourceError
from callsheet.records.bundle import Bundle, NativeSource
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import Torn, inflate

OPEN_MOST = 16
Used = Literal["file", "copy", "none"]
_SQLITE = b"SQLite format 3\0"


class Source:
    """One native source.

    Attributes:
        entry: What the manifest says of it.
        used: What is read: the unchanged ``file``, the bundle's ``copy``, or ``none`` when neither is there.
        why: Why there is none, or why it is not the file.
        masked: The copy hides something, and what is read is the copy.
    """

    def __init__(self, bundle: Bundle, entry: NativeSource) -> None:
        self.entry = entry
        self.used: Used = "none"
        self.why = ""
        self._bundle = bundle
        self._file: BinaryIO | None = None
        self._rows: sqlite3.Connection | None = None
        self._choose()

    @property
    def masked(self) -> bool:
        """Whether the values that are read have places masked."""
        return self.used == "copy" and bool(self.entry.masked)

    def _choose(self) -> None:
        if self.entry.masked:
            # What was masked must be seen by nobody: the copy is what the records were made from.
            self.why = "places in it are masked, so the file is not read"
        elif self._is_unchanged():
            self.used = "file"
            return
        if self.entry.native is None:
            self.why = f"{self.why}; the bundle has no copy"
            return
        try:
            self._file = self._unpacked()
            self.used = "copy"
        except (OSError, KeyError, SourceError) as error:
            self.why = f"{self.why}; the copy cannot be read: {error}"

    def _is_unchanged(self) -> bool:
        try:
            file = self._opened()
        except (OSError, ValueError) as error:
            self.why = f"the file is not there: {getattr(error, 'strerror', None) or error}"
            return False
        if os.fstat(file.fileno()).st_size != (self.entry.size or 0):
            self.why = "the file has another size now"
        else:
            hashed = hashlib.sha256()
            for chunk in read_chunks(file):
                hashed.update(chunk)
            if hashed.hexdigest() == self.entry.sha256:
                self._file = file
                return True
            self.why = "the file has another content now"
        file.close()
        return False

    def _opened(self) -> BinaryIO:
        handle = os.open(self.entry.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ValueError("not a regular file")
        file = os.fdopen(handle, "rb")
        if self.entry.encoding is None:
            return file
        with file:
            return self._inflated(file)

    def _unpacked(self) -> BinaryIO:
        with self._bundle.open(self.entry.native or "") as packed:
            out = self._inflated(packed)
        hashed = hashlib.sha256()
        for chunk in read_chunks(out):
            hashed.update(chunk)
        if out.tell() != (self.entry.size or 0):
            raise SourceError("it is shorter than the source was")
        if not self.entry.masked and hashed.hexdigest() != self.entry.sha256:
            raise SourceError("it has another content than the source had")
        return out

    def _inflated(self, packed: BinaryIO) -> BinaryIO:
        """The text inside a compressed file, as far as it goes; never more than the manifest tells of."""
        # It has a name because a database is opened by name.
        out = cast(BinaryIO, tempfile.NamedTemporaryFile())  # noqa: SIM115 (it stays open as long as the source)
        size = self.entry.size or 0
        try:
            for piece in inflate(read_chunks(packed), size):
                out.write(piece)
        except Torn:
            pass  # the importer read what came out before the damage, and so does the audit
        out.flush()
        out.seek(0)
        return out

    @property
    def file(self) -> BinaryIO:
        """The open evidence."""
        if self._file is None:
            self._file = self._opened() if self.used == "file" else self._unpacked()
        return self._file

    def close(self) -> None:
        """Lets go of the file; it is opened again when it is read again."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at a place; fewer, when it ends before."""
        if not 0 <= offset <= (self.entry.size or 0) or size < 0:
            return b""
        self.file.seek(offset)
        return self.file.read(min(size, (self.entry.size or 0) - offset))

    def chunks(self) -> Iterator[bytes]:
        """All of it."""
        self.file.seek(0)
        yield from read_chunks(self.file)

    @property
    def is_database(self) -> bool:
        """Whether it is a SQLite file, which has rows and no lines."""
        return self.read(0, len(_SQLITE)) == _SQLITE

    def row(self, table: str, key: Any) -> dict[str, Any] | None:
        """The one row with these key values; None when there is none, or several."""
        if not isinstance(key, dict) or not key:
            return None
        if self._rows is None:
            name = self.entry.path if self.used == "file" else str(self.file.name)
            self._rows = _database(name)
        tables = self._rows.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        if tables.fetchone() is None:
            return None
        where = " AND ".join(f"{_quoted(name)} IS ?" for name in key)
        try:
            found = self._rows.execute(
                f"SELECT * FROM {_quoted(table)} WHERE {where} LIMIT 2", list(key.values())
            )
            names = [column[0] for column in found.description]
            rows = found.fetchall()
        except sqlite3.Error:
            return None
        return dict(zip(names, rows[0], strict=True)) if len(rows) == 1 else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _database(name: str) -> sqlite3.Connection:
    """A database opened so that nothing is written, neither to it nor beside it."""
    opened = sqlite3.connect(f"{Path(name).absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    opened.execute("PRAGMA trusted_schema = OFF")
    return opened


class Sources:
    """The sources of one bundle by id, few of them open at a time."""

    def __init__(self, bundle: Bundle) -> None:
        self.all: dict[str, Source] = {}
        self._open: OrderedDict[str, None] = OrderedDict()
        for entry in bundle.manifest.sources:
            self.all.setdefault(entry.id, Source(bundle, entry))
            self._touch(entry.id)

    def get(self, name: str) -> Source | None:
        """The source with this id, if it can be read."""
        source = self.all.get(name)
        if source is None or source.used == "none":
            return None
        self._touch(name)
        return source

    def _touch(self, name: str) -> None:
        self._open[name] = None
        self._open.move_to_end(name)
        if len(self._open) > OPEN_MOST:
            self.all[self._open.popitem(last=False)[0]].close()

    def close(self) -> None:
        """Lets go of all of them."""
        for source in self.all.values():
            source.close()


def same_file(path: str, other: str) -> bool:
    """Whether two paths end in one file name, in the spelling of any system."""
    return Path(path.replace("\\", "/")).name == Path(other.replace("\\", "/")).name
