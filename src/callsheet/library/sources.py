"""Native sources as the import engine reads them: plain files, compressed ones and databases by the text inside.

Owns ``Source`` (one consistent file however often it is read, open only while it is needed) and the native copy in the
bundle, without what must not be kept. A compressed source is inflated once, the chosen rows of a database are read
once, into a file without a name in the bundle that is being made; size, digest and every offset are those of the text.

Must never know: harnesses, records but for the source entry.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import msgspec

from callsheet.library.folders import open_regular
from callsheet.records import SourceEntry
from callsheet.wire.database import READ_TRIES, Moved, Selection, text_of_rows
from callsheet.wire.files import AtomicFile, private_folder, read_chunks
from callsheet.wire.inflate import MAGIC, Torn, inflate, is_compressed
from callsheet.wire.lines import CHUNK, split_lines
from callsheet.wire.masks import Cover

LINED = frozenset({".jsonl", ".ndjson", ".log"})
"""Endings of files that grow by lines."""


class Source:
    """A native source.

    Args:
        path: The file.
        entry: Its entry; ``size`` and ``encoding`` are filled in.
        folder: Where a compressed one may be inflated.
        rows: The chosen rows, where it is a database.
        settled: A last line that is still being written is left for later (only in files of lines).

    Attributes:
        rows: The chosen rows, where it is a database.
        cover: What its native copy must not hold.
        torn: What is wrong with a compressed file that could not be read whole.
    """

    def __init__(
        self,
        path: Path,
        entry: SourceEntry,
        folder: Path,
        rows: Sequence[Selection] | None = None,
        *,
        settled: bool = False,
    ) -> None:
        self.path = path
        self.entry = entry
        self.rows = rows
        self.cover = Cover()
        self.torn: str | None = None
        self._inflated = False
        self._file: BinaryIO | None = self._open()
        info = os.fstat(self._file.fileno())
        self._identity = (info.st_dev, info.st_ino)
        if rows is not None:
            self._file.close()
            self._spool_rows(rows, folder)
            info = os.fstat(self.file.fileno())
        elif is_compressed(self._file.read(len(MAGIC))):
            self._inflate(self._file, folder)
            info = os.fstat(self.file.fileno())
        # The size now is what every pass reads: a file that grows meanwhile stays one consistent source.
        size = info.st_size
        if settled and rows is None and not self._inflated and path.suffix in LINED:
            size = _settled(self.file, size)
        entry.size = self.size = size

    def _open(self) -> BinaryIO:
        # Large pieces in order, small ones here and there: a buffer would help with neither.
        return open_regular(self.path, 0)

    def _inflate(self, packed: BinaryIO, folder: Path) -> None:
        packed.seek(0)
        try:
            self._spool(inflate(read_chunks(packed)), folder, "zstd")
        finally:
            packed.close()

    def _spool_rows(self, rows: Sequence[Selection], folder: Path) -> None:
        for left in reversed(range(READ_TRIES)):
            try:
                return self._spool(text_of_rows(self.path, rows), folder, "sqlite")
            except Moved:
                if not left:
                    raise
        return None

    def _spool(self, pieces: Iterator[bytes], folder: Path, encoding: str) -> None:
        text = cast(BinaryIO, tempfile.TemporaryFile(dir=private_folder(folder)))  # noqa: SIM115 (kept open)
        try:
            for piece in pieces:
                text.write(piece)
        except Torn as error:
            self.torn = str(error)
        except BaseException:
            text.close()
            raise
        text.flush()
        self._file, self._inflated = text, True
        self.entry.encoding = encoding

    @property
    def file(self) -> BinaryIO:
        """The open file; after ``close`` it is opened again."""
        if self._file is None:
            file = self._open()
            info = os.fstat(file.fileno())
            if (info.st_dev, info.st_ino) != self._identity:
                file.close()
                raise OSError(errno.ESTALE, "was replaced while it was read", str(self.path))
            self._file = file
        return self._file

    def close(self) -> None:
        """Closes a file that can be opened again."""
        if not self._inflated:
            self.release()

    def release(self) -> None:
        """Closes the file for good."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def chunks(self) -> Iterator[bytes]:
        """The bytes, as many as there were at the beginning."""
        at = 0
        while at < self.size:
            # Others may read from the same file between two chunks.
            self.file.seek(at)
            chunk = self.file.read(min(CHUNK, self.size - at))
            if not chunk:
                return
            at += len(chunk)
            yield chunk


def _settled(file: BinaryIO, size: int) -> int:
    """Where the last line that was written whole ends: at the last LF, or at the end of a line that is a JSON value."""
    at, tail = size, b""
    while at and b"\n" not in tail:
        begin = max(at - CHUNK, 0)
        file.seek(begin)
        tail = file.read(at - begin) + tail
        at = begin
    line = tail[tail.rfind(b"\n") + 1 :]
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return size - len(line)
    return size


class Copied(NamedTuple):
    """What a pass over a source for its native copy found: places masked, and the text's own size and digest."""

    masked: int
    size: int
    sha256: str


class _Counted:
    def __init__(self) -> None:
        self.size = 0
        self.hashed = hashlib.sha256()

    def of(self, source: Source) -> Iterator[bytes]:
        """The chunks of a source, counted and digested on their way."""
        for chunk in source.chunks():
            self.size += len(chunk)
            self.hashed.update(chunk)
            yield chunk


def copy_native(source: Source, path: Path) -> Copied:
    """Writes the compressed native copy, without what must not be kept.

    Raises:
        OSError: The source is gone, or the copy cannot be written.
    """
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    counted = _Counted()
    with AtomicFile(path) as out:
        for piece in _covered(source, counted):
            out.write(compressor.compress(piece))
        out.write(compressor.flush())
    return Copied(source.cover.count, counted.size, counted.hashed.hexdigest())


def masked_places(source: Source) -> Copied:
    """How many places of a source no record and no copy holds."""
    counted = _Counted()
    for _ in _covered(source, counted):
        pass
    return Copied(source.cover.count, counted.size, counted.hashed.hexdigest())


def _covered(source: Source, counted: _Counted) -> Iterator[bytes]:
    if not source.cover:
        yield from counted.of(source)
        return
    for line in split_lines(counted.of(source)):
        yield source.cover.over(line.offset, line.data) + (b"\n" if line.ended else b"")
