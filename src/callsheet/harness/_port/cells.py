"""Rows of a database as native units, and the evidence that names their table, key and column.

Owns ``Cell``: the value of a row as the line that ``native_units`` decodes, ``rows_of``, which finds it in the lines of
a database source (``wire.database.text_of_rows``), and ``RowPen``, whose refs are row refs where the unit is a cell.
A ref to a compressed value digests the text inside, as everywhere.

Must never know: what a table means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.pen import Pen
from callsheet.harness._port.units import Hole
from callsheet.harness._port.veil import Veiled, original_of
from callsheet.records import Gap, Native, Ref, SourceEntry
from callsheet.wire.blobs import digest
from callsheet.wire.lines import Line


class Cell(Veiled, frozen=True, gc=False):
    """The value of a row, or the row itself (``column`` is None then).

    Attributes:
        table: The table.
        key: The row's key, as JSON text.
        column: The column.
        quoted: The value stands in its line as a JSON string, because it is no JSON itself.
    """

    table: str = ""
    key: bytes = b"{}"
    column: str | None = None
    quoted: bool = False


class Damage(NamedTuple):
    """A place where a table broke off."""

    line: Line
    table: str
    message: str


class Layout(Struct):
    """The owner's database: its tables with their columns, its version, what was done to read it."""

    tables: dict[str, list[str]] = {}
    user_version: int = 0
    notes: list[str] = []


class _Damaged(Struct):
    table: str = ""
    message: str = ""


class _Frame(Struct):
    table: str = ""
    key: Raw = Raw(b"{}")
    column: str | None = None
    value: Raw = Raw()
    text: str | None = None
    layout: Layout | None = None
    damaged: _Damaged | None = None


_frame = msgspec.json.Decoder(_Frame)


def layout_of(lines: Iterable[Line]) -> Layout:
    """What the database is made of, from the first line of its source."""
    for line in lines:
        return _frame.decode(line.data).layout or Layout()
    return Layout()


def rows_of(lines: Iterable[Line]) -> Iterator[Cell | Damage]:
    """The rows of a database source, in order."""
    for line in lines:
        frame = _frame.decode(line.data)
        if frame.damaged is not None:
            yield Damage(line, frame.damaged.table, frame.damaged.message)
        elif frame.text is not None:
            # What becomes of it stands on one line; in JSON a line break only parts tokens, and blanks around it none.
            data = frame.text.encode().replace(b"\n", b" ").strip(b" \t\r")
            whole = _frame.decode(original_of(line)).text or ""
            yield _cell(line, frame, line.offset, data, whole.encode(), quoted=True)
        elif frame.value:
            end = len(line.data[:-1].rstrip(b" \t\r"))  # blanks behind a value are no part of it
            start = end - len(frame.value)
            original = original_of(line)[start:end]
            yield _cell(line, frame, line.offset + start, line.data[start:end], original, quoted=False)


def _cell(line: Line, frame: _Frame, offset: int, data: bytes, original: bytes, *, quoted: bool) -> Cell:
    return Cell(
        number=line.number,
        offset=offset,
        data=data,
        original=original,
        table=frame.table,
        key=bytes(frame.key),
        column=frame.column,
        quoted=quoted,
    )


def row_ref(source: SourceEntry, cell: Cell, role: str, pointer: str | None = None) -> Ref:
    """A ref to a row."""
    ref = Ref(
        source=source.id,
        table=cell.table,
        key=msgspec.json.decode(cell.key),
        column=cell.column,
        sha256=digest(cell.original),
        role=role,
        pointer=pointer,
    )
    if not cell.quoted:
        ref.line, ref.offset, ref.bytes = cell.number, cell.offset, len(cell.data)
    return ref


def layout_ref(source: SourceEntry, lines: Iterable[Line]) -> Ref | None:
    """A ref to the line that says what the database is made of."""
    for line in lines:
        data = original_of(line)
        return Ref(
            source=source.id,
            line=line.number,
            offset=line.offset,
            bytes=len(data),
            sha256=digest(data),
            role="layout",
        )
    return None


class RowPen(Pen):
    """A pen for units that may be rows."""

    def ref(self, role: str, pointer: str | None = None) -> Ref:
        """A ref to the unit at hand."""
        line = self.unit.line
        if not isinstance(line, Cell):
            return super().ref(role, pointer)
        if self.unit.start == 0 and len(self.unit.data) == len(line.data):
            return row_ref(self.source, line, role, pointer)
        ref = super().ref(role, pointer)
        ref.table, ref.key, ref.column = line.table, msgspec.json.decode(line.key), line.column
        return ref

    def gap(self, source: SourceEntry, hole: Hole) -> None:
        """Writes the gap of bytes that hold no record, and says so."""
        line = hole.line
        if not isinstance(line, Cell):
            super().gap(source, hole)
            return
        ref = row_ref(source, line, "gap")
        size = len(line.original) if line.quoted else hole.size
        gap = Gap(reason=hole.reason, source=source.id, bytes=size, native=Native(refs=[ref]))
        self.stream.write(gap)
        place = f"{line.table} {line.key.decode()}"
        self.desk.diagnose(hole.reason, f"{size} bytes of {place} hold no record", source, line.number)

    def broken(self, source: SourceEntry, damage: Damage) -> None:
        """Writes the gap where a table broke off, and says so."""
        line = damage.line
        ref = Ref(
            source=source.id,
            line=line.number,
            offset=line.offset,
            bytes=len(line.data),
            sha256=digest(original_of(line)),
            table=damage.table,
            role="gap",
        )
        self.stream.write(
            Gap(reason="damaged_table", source=source.id, line=line.number, native=Native(refs=[ref]))
        )
        message = f"rows of {damage.table} could not be read: {damage.message}"
        self.desk.diagnose("damaged_table", message, source, line.number)


def values_of(cell: Cell) -> dict[str, Any]:
    """The columns of a row that is its own unit."""
    found = msgspec.json.decode(cell.data)
    return found if isinstance(found, dict) else {}
