"""A desk without a disk: runs an adapter of stored files over bytes held in memory.

Owns ``Files`` (a folder as a dictionary), ``MemoryDesk`` (``harness._port.Desk`` over it, with chunks of any
size) and ``read_session``, which gives back every byte an adapter wrote. An adapter that reads or writes past
its port cannot pass here what it passes on disk.

Must never know: any one harness.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from callsheet.errors import SourceError
from callsheet.harness._port import Session, Stored
from callsheet.records import BlobRef, Record, SourceEntry, encode
from callsheet.records.bundle import Diagnostic, stream_id
from callsheet.wire.database import Selection, read_rows, text_of_rows
from callsheet.wire.inflate import Torn, inflate, is_compressed
from callsheet.wire.lines import Line, split_lines


class Files:
    """``harness._port.Folder`` over a dictionary of POSIX paths and bytes."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.content = dict(files)

    @classmethod
    def below(cls, folder: Path) -> Files:
        """Every regular file below a folder on disk, under the path it has there; links are left out."""
        found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        return cls({str(path): path.read_bytes() for path in found})

    def files(self, path: str, pattern: str) -> list[str]:
        """Files below ``path`` that match the pattern, sorted."""
        deep = pattern.startswith("**/")
        name = pattern.removeprefix("**/")
        root = PurePosixPath(path)
        found = []
        for file in self.content:
            at = PurePosixPath(file)
            inside = root in at.parents if deep else at.parent == root
            if inside and at.match(name):
                found.append(file)
        return sorted(found)

    def is_file(self, path: str) -> bool:
        """Whether a file is there."""
        return path in self.content

    def text(self, path: str) -> bytes:
        """The bytes of a file; those inside a compressed one."""
        data = self.content[path]
        if not is_compressed(data):
            return data
        found = bytearray()
        try:
            for piece in inflate([data]):
                found += piece
        except Torn:
            pass  # the engine says so; what came out before the damage is read
        return bytes(found)

    def head(self, path: str, size: int = 65536) -> bytes:
        """First bytes of a file."""
        return self.content.get(path, b"")[:size]

    def tables(self, path: str) -> list[str]:
        """Names of the tables of a database, empty when it cannot be read."""
        try:
            with self.on_disk(path) as file:
                return list(read_rows(file, [])[0].tables)
        except SourceError:
            return []

    def rows(self, path: str, selections: list[Selection]) -> list[list[dict[str, Any]]]:
        """A few rows of a database."""
        with self.on_disk(path) as file:
            return [[dict(row) for row in rows] for rows in read_rows(file, selections)[1]]

    @contextmanager
    def on_disk(self, path: str) -> Iterator[Path]:
        """A copy of a file, and of those that lie beside it under its name (a journal), for SQLite."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in self.content.items():
                if name.startswith(path):
                    Path(folder, "copy" + name.removeprefix(path)).write_bytes(data)
            yield Path(folder, "copy")


class Written(Struct):
    """A stream as it was written: the lines of its records, without LF."""

    id: str
    parent: str | None
    lines: list[bytes]

    @property
    def data(self) -> bytes:
        """The stream's bytes."""
        return b"".join(line + b"\n" for line in self.lines)


class Reading(Struct):
    """All that an adapter wrote for one session.

    Attributes:
        native: The bytes of each source, by its id; of a database the text of its rows.
        databases: Which of them are databases.
    """

    streams: list[Written] = []
    sources: list[SourceEntry] = []
    blobs: dict[str, bytes] = {}
    diagnostics: list[Diagnostic] = []
    native: dict[str, bytes] = {}
    databases: set[str] = set()


class _Stream:
    def __init__(self, written: Written) -> None:
        self.id = written.id
        self._written = written

    def write(self, record: Record) -> str:
        if record.seq != -1:
            raise AssertionError(f"record written twice: {record.id}")
        record.seq = len(self._written.lines)
        record.id = record.id or f"r{record.seq}"
        self._written.lines.append(encode(record))
        return record.id


class MemoryDesk:
    """``harness._port.Desk`` over ``Files``.

    Args:
        files: What there is to read.
        chunk: Bytes that come at a time, at least 1; what an adapter writes must not depend on it.
        keep_reasoning: As in the port.
    """

    def __init__(self, files: Files, *, chunk: int = 1 << 18, keep_reasoning: bool = False) -> None:
        self.keep_reasoning = keep_reasoning
        self.reading = Reading()
        self.masks: list[tuple[str, str]] = []
        self.hidden: list[tuple[str, int, int]] = []
        self._files = files
        self._chunk = chunk

    def source(self, path: str, kind: str) -> SourceEntry:
        """Registers a source."""
        if path not in self._files.content:
            raise FileNotFoundError(2, "No such file or directory", path)
        entry = self._entry(path, kind, self._files.text(path))
        entry.encoding = "zstd" if is_compressed(self._files.content[path]) else None
        return entry

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        """Registers rows of a database."""
        with self._files.on_disk(path) as file:
            entry = self._entry(path, kind, b"".join(text_of_rows(file, selections)))
        entry.encoding = "sqlite"
        entry.encoding = "sqlite"
        self.reading.databases.add(entry.id)
        return entry

    def _entry(self, path: str, kind: str, data: bytes) -> SourceEntry:
        entry = SourceEntry(id=f"s{len(self.reading.sources)}", kind=kind, path=path, size=len(data))
        self.reading.native[entry.id] = data
        self.reading.sources.append(entry)
        return entry

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The lines of a source."""
        data = self.reading.native[source.id]
        yield from split_lines(data[at : at + self._chunk] for at in range(0, len(data), self._chunk))
        source.sha256 = hashlib.sha256(data).hexdigest()

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes at a place."""
        return self.reading.native[source.id][offset : offset + size]

    def whole(self, source: SourceEntry) -> bytes:
        """All bytes of a source."""
        data = self.reading.native[source.id]
        source.sha256 = hashlib.sha256(data).hexdigest()
        return data

    def keep(self, source: SourceEntry, mime_type: str | None = None) -> BlobRef:
        """Keeps all bytes of a source."""
        return self.blob(self.whole(source), mime_type)

    def digest(self, source: SourceEntry) -> str:
        """SHA-256 of all bytes of a source."""
        return hashlib.sha256(self.whole(source)).hexdigest()

    @contextmanager
    def stream(self, native_id: str, parent: str | None = None) -> Iterator[_Stream]:
        """Opens a stream; two with one name get a number, as in a bundle."""
        name = base = stream_id(native_id)
        number = 2
        taken = {stream.id for stream in self.reading.streams}
        while name in taken:
            name, number = f"{base[:56]}-{number}", number + 1
        written = Written(name, stream_id(parent) if parent else None, [])
        self.reading.streams.append(written)
        yield _Stream(written)

    def blob(self, data: bytes, mime_type: str | None = None) -> BlobRef:
        """Keeps bytes under their digest."""
        name = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.reading.blobs[name] = data
        return BlobRef(blob=name, size=len(data), mime_type=mime_type)

    def diagnose(
        self, code: str, message: str, source: SourceEntry | None = None, line: int | None = None
    ) -> None:
        """Notes a diagnostic."""
        told = Diagnostic(code=code, source=source.id if source else None, line=line, message=message)
        self.reading.diagnostics.append(told)

    def mask(self, source: SourceEntry, secret: str) -> None:
        """Notes a secret."""
        self.masks.append((source.id, secret))

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        """Notes a place that is not to be kept."""
        self.hidden.append((source.id, offset, size))


def read_session(
    adapter: Stored, session: Session, files: Files, *, chunk: int = 1 << 18, keep_reasoning: bool = False
) -> Reading:
    """Runs an adapter over one session in memory."""
    desk = MemoryDesk(files, chunk=chunk, keep_reasoning=keep_reasoning)
    adapter.read(session, desk)
    return desk.reading
