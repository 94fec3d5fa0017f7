"""A stream on disk: one record a line, read in order or by place, written whole.

Owns ``Entry`` (a record with its line and place, so that unknown members survive and a record can be read again
without holding it), ``read_stream`` (bounded memory: one line at a time), ``read_at`` (a seeking reader) and
``StreamWriter`` (gives ``seq`` and ``id``, digests what it writes).

Must never know: harnesses, pairing, what a record means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from callsheet.errors import ProducerError, RecordError
from callsheet.records import ENCODER, Record, Unknown, decode, encode
from callsheet.wire.damage import BOM
from callsheet.wire.files import AtomicFile, Readable, read_chunks
from callsheet.wire.lines import Line, split_lines

BATCH = 256
"""Records encoded at once."""


class Entry(NamedTuple):
    """A record of a stream with its own line.

    Attributes:
        record: The typed record, or ``Unknown``.
        line: The physical line; ``line.data`` is the exact text, unknown members included.
    """

    record: Record | Unknown
    line: Line

    def changed(self, **members: Any) -> bytes:
        """The record's line with some top-level members (wire names) set, everything else kept as it stands."""
        whole: dict[str, msgspec.Raw] = msgspec.json.decode(self.line.data, type=dict[str, msgspec.Raw])
        for name, value in members.items():
            whole[name] = msgspec.Raw(msgspec.json.encode(value))
        return msgspec.json.encode(whole)


class BadLine(NamedTuple):
    """A line of a stream that is no legal record."""

    error: RecordError
    line: Line


def stream_lines(file: Readable) -> Iterator[Line]:
    """The non-blank lines of a stream, without byte-order mark and CR."""
    for line in split_lines(read_chunks(file)):
        data = line.data
        if line.number == 1 and data.startswith(BOM):
            data = data[len(BOM) :]
            line = replace(line, offset=len(BOM))
        if data.endswith(b"\r"):
            data = data[:-1]
        if not data or data.isspace():
            continue
        yield line if data is line.data else replace(line, data=data)


def read_stream(file: BinaryIO, name: str = "-") -> Iterator[Entry | BadLine]:
    """Reads a stream record by record; a bad line is a value and costs nothing else.

    Args:
        file: Open binary file.
        name: The name to put into errors.
    """
    for line in stream_lines(file):
        try:
            yield Entry(decode(line.data), line)
        except RecordError as error:
            yield BadLine(RecordError(error.message, path=name, line=line.number, offset=line.offset), line)


def read_at(file: BinaryIO, offset: int, size: int) -> Record | Unknown:
    """Reads one record again by its place (``Line.offset`` and the length of its data)."""
    file.seek(offset)
    return decode(file.read(size))


class StreamWriter:
    """Writes one stream; every record gets the next ``seq`` and, if it has none, the id ``r<seq>``.

    Attributes:
        id: The stream's id.
        records: Records written so far.
        types: How many of each type were written out, a record and its later revisions counted once.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.id = name
        self._file = AtomicFile(path)
        self._held: list[Record] = []
        self.records = 0
        self.types: Counter[type[Record]] = Counter()
        self.path = path

    def __enter__(self) -> StreamWriter:
        self._file.__enter__()
        return self

    def write(self, record: Record) -> str:
        """Appends a record and returns its id; the record may not be changed afterwards."""
        if record.seq != -1:
            raise ProducerError(f"record written twice: {record.id}")
        record.seq = seq = self.records
        if not record.id:
            record.id = f"r{seq}"
        self.records = seq + 1
        held = self._held
        held.append(record)
        if len(held) >= BATCH:
            self.flush()
        return record.id

    def flush(self) -> None:
        """Writes what is held: records are encoded in batches, which is faster.

        To be called before more of a source is read, so that no record keeps a long line in memory.
        """
        held = self._held
        if held:
            lines = ENCODER.encode_lines(held)
            if lines.count(b"\n") != len(held):
                lines = b"".join([encode(record) + b"\n" for record in held])
            self._file.write(lines)
            self.types.update(type(record) for record in held if record.supersedes is None)
            held.clear()

    @property
    def sha256(self) -> str:
        """Digest of the bytes written so far."""
        self.flush()
        return self._file.sha256

    def __exit__(self, *error: Any) -> None:
        try:
            if error[0] is None:
                self.flush()
        except BaseException as failed:
            self._file.__exit__(type(failed), failed, failed.__traceback__)
            raise
        self._file.__exit__(*error)
