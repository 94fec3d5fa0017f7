"""A desk that shows no secret and no raw chain of thought (ASR-283, decisions 10 and 11).

Owns what was named as not to be kept: values (masked wherever they stand in any source of the session) and places.
Every line and every read goes through it, so that what the second pass sees, and all it writes, cannot hold them; the
engine is told the same for the native copies. Lengths and offsets stay, and refs digest the line as the source has it.

Must never know: what makes a value secret, records.
"""

from __future__ import annotations

from collections.abc import Iterator

from callsheet.harness._port import Desk
from callsheet.records import SourceEntry
from callsheet.wire.blobs import digest
from callsheet.wire.lines import Line
from callsheet.wire.masks import Cover


class Veiled(Line, frozen=True, gc=False):
    """A line of which something was masked; ``original`` is for its digest alone."""

    original: bytes = b""


class Veil:
    """Reads the sources of one session through a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._covers: dict[str, Cover] = {}

    def _cover(self, source: SourceEntry) -> Cover:
        return self._covers.setdefault(source.id, Cover())

    def secret(self, value: str, sources: list[SourceEntry]) -> None:
        """Names a value that no record and no copy of these sources may hold."""
        for source in sources:
            self._cover(source).secret(value)
            self._desk.mask(source, value)

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        """Names a place whose strings are not to be kept."""
        self._cover(source).hide(offset, size)
        self._desk.hide(source, offset, size)

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The lines of a source, masked."""
        cover = self._covers.get(source.id)
        return self._masked(source, cover) if cover else self._desk.lines(source)

    def _masked(self, source: SourceEntry, cover: Cover) -> Iterator[Line]:
        for line in self._desk.lines(source):
            data = cover.over(line.offset, line.data)
            if data == line.data:
                yield line
            else:
                yield Veiled(line.number, line.offset, data, line.ended, line.data)

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes of a source at the place of a line (or of a unit in it), masked."""
        data = self._desk.read(source, offset, size)
        cover = self._covers.get(source.id)
        return cover.over(offset, data) if cover else data

    def both(self, source: SourceEntry, offset: int, size: int) -> tuple[bytes, bytes]:
        """Bytes as ``read`` gives them, and as they stand in the source, for a digest alone."""
        data = self._desk.read(source, offset, size)
        cover = self._covers.get(source.id)
        return (cover.over(offset, data) if cover else data), data

    def fetch(self, source: SourceEntry, offset: int, size: int) -> tuple[bytes, str]:
        """Bytes as ``read`` gives them, and the digest of what stands in the source."""
        masked, data = self.both(source, offset, size)
        return masked, digest(data)

    def sha256(self, source: SourceEntry, offset: int, size: int) -> str:
        """Digest of bytes as they stand in the source."""
        return digest(self._desk.read(source, offset, size))


def original_of(line: Line) -> bytes:
    """The line's bytes as the source has them."""
    return line.original if isinstance(line, Veiled) else line.data
