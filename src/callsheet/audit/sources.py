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
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, NamedTuple, cast

import msgspec

from callsheet.errors import SourceError
from callsheet.records.bundle import Bundle, NativeSource
from callsheet.wire.blobs import digest
from callsheet.wire.database import retold, text_of_rows
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import Torn, inflate, is_compressed
from callsheet.wire.lines import split_lines

OPEN_MOST = 16
ROWS = "sqlite"
"""Encoding of a source that is the chosen rows of a database."""
Used = Literal["file", "copy", "none"]


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
        self._bare: BinaryIO | None = None
        self._rows: sqlite3.Connection | None = None
        self._cells: dict[int, tuple[int, int]] | None = None
        self._choose()

    @property
    def masked(self) -> bool:
        """Whether the values that are read have places masked."""
        return self.used == "copy" and bool(self.entry.masked)

    def _choose(self) -> None:
        if self.entry.masked:
            # What was masked must be seen by nobody: the copy is what the records were made from.
            self.why = "places in it are masked, so the file is not read"
        elif self.entry.encoding == ROWS and self.entry.rows is None:
            self.why = "its rows are read from the copy"
        elif self._is_unchanged():
            self.used = "file"
            return
        if self.entry.native is None:
            self.why = f"{self.why}; the bundle has no copy"
            chosen = self.entry.encoding == ROWS and self.entry.rows is None and not self.entry.masked
            if chosen and Path(self.entry.path).is_file():
                self.used = "file"  # each row has a digest of its own
            return
        try:
            self._file = self._unpacked()
            self.used = "copy"
        except (OSError, KeyError, SourceError) as error:
            self.why = f"{self.why}; the copy cannot be read: {error}"

    def _is_unchanged(self) -> bool:
        try:
            file = self._opened()
        except (OSError, ValueError, SourceError) as error:
            said = error.message if isinstance(error, SourceError) else getattr(error, "strerror", None)
            self.why = f"the file is not there: {said or error}"
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

    def _rendered(self) -> BinaryIO:
        """The chosen rows of a database as the lines that the importer read."""
        out = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (it stays open as long as the source)
        try:
            for line in text_of_rows(Path(self.entry.path), retold(self.entry.rows or [])):
                out.write(line)
        except BaseException:
            out.close()
            raise
        out.flush()
        out.seek(0)
        return out

    def _opened(self) -> BinaryIO:
        handle = os.open(self.entry.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ValueError("not a regular file")
        file = os.fdopen(handle, "rb")
        if self.entry.encoding == ROWS:
            file.close()
            return self._rendered()
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
        wrong = ""
        if self.entry.size is None:
            # A recording that is not finished: its log is what there is of it.
            self.entry.size, self.entry.sha256 = out.tell(), hashed.hexdigest()
        if out.tell() != (self.entry.size or 0):
            wrong = "it is shorter than the source was"
        elif not self.entry.masked and hashed.hexdigest() != self.entry.sha256:
            wrong = "it has another content than the source had"
        if wrong:
            out.close()
            raise SourceError(wrong)
        return out

    def _inflated(self, packed: BinaryIO) -> BinaryIO:
        """The text inside a compressed file, as far as it goes; never more than the manifest tells of."""
        out = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 (it stays open as long as the source)
        growing = self.entry.size is None and not is_compressed(packed.read(4))
        packed.seek(0)
        pieces = read_chunks(packed) if growing else inflate(read_chunks(packed), self.entry.size or 0)
        try:
            for piece in pieces:
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
        if self._bare is not None:
            self._bare.close()
            self._bare = None
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def read(self, offset: int, size: int) -> bytes:
        """Bytes at a place; fewer, when it ends before."""
        if not 0 <= offset <= (self.entry.size or 0) or size < 0:
            return b""
        self.file.seek(offset)
        return self.file.read(min(size, (self.entry.size or 0) - offset))

    def original(self, ref: dict[str, Any]) -> bytes | None:
        """The bytes that a ref cites as the source itself has them, behind every mask.

        None where the source is gone, or has other bytes there than the ref tells the digest of.
        """
        try:
            data = self._behind(ref)
        except (OSError, ValueError, sqlite3.Error):
            return None
        return data if data is not None and digest(data) == ref.get("sha256") else None

    def _behind(self, ref: dict[str, Any]) -> bytes | None:
        if "table" in ref:
            column = ref["column"] if isinstance(ref.get("column"), str) else None
            there = Path(self.entry.path).is_file()
            return self._stored_cell(str(ref["table"]), ref.get("key"), column) if there else None
        offset, size = ref.get("offset"), ref.get("bytes")
        if type(offset) is not int or type(size) is not int or offset < 0 or size < 0:
            return None
        if not self.masked and self.used != "none":
            return self.read(offset, size)
        if self._bare is None:
            self._bare = self._opened()
        self._bare.seek(offset)
        return self._bare.read(min(size, self.entry.size or 0))

    def chunks(self) -> Iterator[bytes]:
        """All of it."""
        self.file.seek(0)
        yield from read_chunks(self.file)

    @property
    def has_lines(self) -> bool:
        """Whether it is read as lines: any source but a database of which the bundle has no copy."""
        return self.entry.encoding != ROWS or self.used == "copy" or self.entry.rows is not None

    def cell(self, table: str, key: Any, column: str | None) -> bytes | None:
        """The value of the one row with this key: its text, or (without column) the row as JSON.

        A database's copy holds the chosen rows as JSON lines; without it the database itself is asked.
        """
        if self.has_lines:
            return self._copied_cell(table, key, column)
        return self._stored_cell(table, key, column)

    def _stored_cell(self, table: str, key: Any, column: str | None) -> bytes | None:
        row = self._row(table, key)
        if row is None or (column is not None and column not in row):
            return None
        if column is None:
            return msgspec.json.encode(
                {name: value for name, value in row.items() if type(value) is not bytes}
            )
        value = row[column]
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")

    def cell_place(self, table: str, key: Any, column: str | None) -> tuple[int, int]:
        """Where the line of a row stands in a database's copy, and its size; twice 0 where there is none."""
        if self._cells is None:
            self._cells = {}
            for line in split_lines(self.chunks()):
                name = _cell_name(line.data)
                if name is not None:
                    # Two rows of one name are no evidence for either.
                    self._cells[name] = (line.offset, len(line.data)) if name not in self._cells else (0, 0)
        return self._cells.get(hash((table, _canonical(key), column)), (0, 0))

    def _copied_cell(self, table: str, key: Any, column: str | None) -> bytes | None:
        offset, size = self.cell_place(table, key, column)
        frame = frame_of(self.read(offset, size)) if size else None
        return None if frame is None else frame.data

    def _row(self, table: str, key: Any) -> dict[str, Any] | None:
        if not isinstance(key, dict) or not key:
            return None
        if self._rows is None:
            self._rows = _database(self.entry.path)
        try:
            named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
            if self._rows.execute(named, (table,)).fetchone() is None:
                return None
            where = " AND ".join(f"{_quoted(name)} IS ?" for name in key)
            wanted = f"SELECT * FROM {_quoted(table)} WHERE {where} LIMIT 2"
            found = self._rows.execute(wanted, list(key.values()))
            names = [column[0] for column in found.description]
            rows = found.fetchall()
        except (sqlite3.Error, OverflowError):
            return None
        return dict(zip(names, rows[0], strict=True)) if len(rows) == 1 else None


class Frame(NamedTuple):
    """One row of a database's copy (``wire.database``): what names it, and its value."""

    table: str
    key: Any
    column: str | None
    data: bytes


class _Frame(msgspec.Struct):
    table: str
    key: msgspec.Raw = msgspec.Raw(b"{}")
    column: str | None = None
    value: msgspec.Raw = msgspec.Raw(b"")
    text: str | None = None


_frame = msgspec.json.Decoder(_Frame)


def frame_of(line: bytes) -> Frame | None:
    """The row on a line of a database's copy; None for any other line."""
    try:
        found = _frame.decode(line)
        data = bytes(found.value) if found.text is None else found.text.encode()
        return Frame(found.table, msgspec.json.decode(found.key), found.column, data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _cell_name(line: bytes) -> int | None:
    frame = frame_of(line)
    return None if frame is None else hash((frame.table, _canonical(frame.key), frame.column))


def _canonical(key: Any) -> bytes:
    return msgspec.json.encode(key, order="sorted")


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


def names_of(path: str) -> dict[str, str]:
    """What the path of a source tells: itself, its file name without suffix, the name of its folder."""
    found = PurePath(path.replace("\\", "/"))
    return {"@path": str(found), "@stem": found.name.partition(".")[0], "@folder": found.parent.name}


def same_file(path: str, other: str) -> bool:
    """Whether two paths end in one file name, in the spelling of any system."""
    return Path(path.replace("\\", "/")).name == Path(other.replace("\\", "/")).name
