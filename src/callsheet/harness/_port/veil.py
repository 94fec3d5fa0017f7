"""A desk that shows no secret and no raw chain of thought (ASR-283, decisions 10 and 11).

Owns what was named as not to be kept: values (masked wherever they stand in any source of the session) and places.
Every line and every read goes through it, so that what the second pass sees, and all it writes, cannot hold them; the
engine is told the same for the native copies. Lengths and offsets stay, and refs digest the line as the source has it.

Must never know: what makes a value secret, records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

from callsheet.harness._port import Desk
from callsheet.records import SourceEntry
from callsheet.wire.blobs import digest
from callsheet.wire.lines import Line
from callsheet.wire.masks import hidden, masked, spellings


class Veiled(Line, frozen=True, gc=False):
    """A line of which something was masked; ``original`` is for its digest alone."""

    original: bytes = b""


class Veil:
    """Reads the sources of one session through a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._forms: list[bytes] = []
        self._starts: dict[str, array[int]] = {}
        self._sizes: dict[str, array[int]] = {}
        self._secrets: set[str] = set()

    def secret(self, value: str, sources: list[SourceEntry]) -> None:
        """Names a value that no record and no copy of these sources may hold."""
        if value in self._secrets:
            return
        self._secrets.add(value)
        forms = spellings(value)
        if forms:
            self._forms = sorted({*self._forms, *forms}, key=lambda form: (-len(form), form))
            for source in sources:
                self._desk.mask(source, value)

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        """Names a place whose strings are not to be kept. Places of a source are named in order."""
        starts = self._starts.setdefault(source.id, array("q"))
        sizes = self._sizes.setdefault(source.id, array("q"))
        at = len(starts)
        if starts and starts[-1] >= offset:
            at = bisect_left(starts, offset)
            if at < len(starts) and starts[at] == offset and sizes[at] >= size:
                return
        starts.insert(at, offset)
        sizes.insert(at, size)
        self._desk.hide(source, offset, size)

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The lines of a source, masked."""
        if not self._forms and source.id not in self._starts:
            return self._desk.lines(source)
        return self._masked(source)

    def _masked(self, source: SourceEntry) -> Iterator[Line]:
        for line in self._desk.lines(source):
            data = self._veiled(source, line.offset, line.data)
            if data is line.data:
                yield line
            else:
                yield Veiled(line.number, line.offset, data, line.ended, line.data)

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes of a source at the place of a line (or of a unit in it), masked."""
        return self._veiled(source, offset, self._desk.read(source, offset, size))

    def sha256(self, source: SourceEntry, offset: int, size: int) -> str:
        """Digest of bytes as they stand in the source."""
        return digest(self._desk.read(source, offset, size))

    def _veiled(self, source: SourceEntry, offset: int, data: bytes) -> bytes:
        starts = self._starts.get(source.id)
        if starts is not None:
            sizes = self._sizes[source.id]
            at = bisect_left(starts, offset)
            while at < len(starts) and starts[at] < offset + len(data):
                begin = starts[at] - offset
                end = begin + sizes[at]
                data = data[:begin] + hidden(data[begin:end]) + data[end:]
                at += 1
        return masked(data, self._forms)[0] if self._forms else data


def original_of(line: Line) -> bytes:
    """The line's bytes as the source has them."""
    return line.original if isinstance(line, Veiled) else line.data
