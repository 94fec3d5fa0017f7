"""Files of a bundle that is still being written: appended to, whole lines only; at the end a head may be rewritten.

Owns ``Appended`` (a file that grows, its size and digest, and what happens when the disk is full: the last whole line
stays the last) and ``GrowingStream`` (records of one stream with ``seq`` and id, and where each stands).

Must never know: what a record means, when to sync.
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from callsheet.records import Record, Session, decode, encode
from callsheet.wire.files import AtomicFile, private_folder, read_chunks


class Spot(NamedTuple):
    """Where a record stands: its stream, offset and size with the line end."""

    stream: str
    offset: int
    size: int


class Written(NamedTuple):
    """A record that is written, and where."""

    spot: Spot
    record: Record


class Appended:
    """A private file that only grows.

    Args:
        path: The file.
        empty: It is there already, and empty; else it must not be there.

    Attributes:
        size: Bytes that it has, or will have when what is held is written.
    """

    def __init__(self, path: Path, *, empty: bool = False) -> None:
        self.path = path
        private_folder(path.parent)
        new = 0 if empty else os.O_CREAT | os.O_EXCL
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._file = os.open(path, flags | new, 0o600)
        if os.fstat(self._file).st_size:
            os.close(self._file)
            raise FileExistsError(errno.EEXIST, "there is something in it already", str(path))
        self._held: list[bytes] = []
        self._hash = hashlib.sha256()
        self.size = 0
        self._written = 0
        self._synced = 0

    def put(self, line: bytes) -> int:
        """Takes a line with its line end, to be written by ``flush``; returns its offset."""
        at = self.size
        self._held.append(line)
        self.size += len(line)
        return at

    def flush(self) -> None:
        """Hands what is held to the system.

        Raises:
            OSError: It cannot be written; of a line that was written in part nothing stays.
        """
        if not self._held:
            return
        data = b"".join(self._held)
        self._held.clear()
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError:
            whole = data[: len(data) - len(left)].rfind(b"\n") + 1
            self.size = self._written + whole
            self._hash.update(data[:whole])
            self._written = self.size
            os.ftruncate(self._file, self.size)
            raise
        self._hash.update(data)
        self._written += len(data)

    def sync(self) -> None:
        """Puts what was written on the disk; may run beside ``put`` and ``flush``."""
        written = self._written
        if written > self._synced and self._file >= 0:
            os.fsync(self._file)
            self._synced = written

    def read(self, offset: int, size: int) -> bytes:
        """Bytes that were written."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    @property
    def sha256(self) -> str:
        """Digest of what was written."""
        return self._hash.hexdigest()

    def close(self) -> None:
        """Closes the file."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


class GrowingStream:
    """One stream of a bundle that is being recorded.

    Attributes:
        id: Its id.
        parent: The stream of the session that it was started from, as its head that is written says.
        records: Records so far.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.id = name
        self.parent: str | None = None
        self.records = 0
        self.file = Appended(folder / "streams" / f"{name}.jsonl")
        self._head: tuple[Session, bytes] | None = None
        self._more = 0
        self._sha256: str | None = None

    def put(self, record: Record) -> Written:
        """Takes a record, to be written with the next flush; gives it back as a reader of the stream reads it.

        What a fold settles may hold texts as they stand in the frame; a reader gets them as texts.
        """
        record.seq = self.records
        if not record.id:
            record.id = f"r{record.seq}"
        self.records += 1
        line = encode(record)
        if isinstance(record, Session) and not record.seq:
            self._headed(record, line)
        spot = Spot(self.id, self.file.put(line + b"\n"), len(line) + 1)
        read = decode(line)
        assert isinstance(read, Record), "we wrote a record of a known type"
        return Written(spot, read)

    def _headed(self, record: Session, line: bytes) -> None:
        self._head = record, line
        self.parent = record.parent.session if record.parent is not None else None

    @property
    def sha256(self) -> str:
        """Digest of the file."""
        return self._sha256 or self.file.sha256

    def read(self, spot: Spot) -> bytes:
        """A record's line again."""
        if not spot.offset:
            return self.file.read(0, spot.size + self._more)
        return self.file.read(spot.offset + self._more, spot.size)

    def complete(self) -> bool:
        """Writes the head anew if its session record was completed since; whether it was. Nothing is put any more.

        Raises:
            OSError: It cannot be written; the file is as it was.
        """
        if self._head is None:
            return False
        record, before = self._head
        line = encode(record)
        if line == before:
            return False
        hashed = hashlib.sha256(line + b"\n")
        with self.file.path.open("rb") as old, AtomicFile(self.file.path, sync=True) as new:
            new.write(line + b"\n")
            old.seek(len(before) + 1)
            for chunk in read_chunks(old):
                hashed.update(chunk)
                new.write(chunk)
        self._headed(record, line)
        self._more += len(line) - len(before)
        self._sha256 = hashed.hexdigest()
        return True
