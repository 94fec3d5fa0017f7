"""The flow of a sheet: rows one after another, with what only shows between them.

Owns the collapse of neighbouring messages that no person and no model wrote, and the blank line before what
the person says. Holds one row at most.

Must never know: files, terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from callsheet.paint.cells import wrap
from callsheet.paint.notes import Notes
from callsheet.paint.row import NARROWEST, Look, is_small, paint_row
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span
from callsheet.rows import Nested, Output, Row
from callsheet.rows.text import counted


class _Run:
    """Neighbouring small messages of one author at one depth."""

    def __init__(self, first: Nested) -> None:
        self.first = first
        self.count = 1
        self.characters = _characters(first.row)

    def takes(self, item: Nested) -> bool:
        first = self.first
        if (item.depth, item.row.author, item.row.stream) != (
            first.depth,
            first.row.author,
            first.row.stream,
        ):
            return False
        self.count += 1
        self.characters += _characters(item.row)
        return True

    def row(self) -> Row:
        if self.count == 1:
            return self.first.row
        text = f"{counted(self.count, 'message')}, {counted(self.characters, 'character')}"
        return self.first.row.changed(output=Output(text=text, truncated=False))


def _characters(row: Row) -> int:
    output = row.output
    return 0 if output is None else len(output.text) + (output.omitted or 0) + len(output.tail or "")


def paint_rows(rows: Iterable[Nested], look: Look, notes: Notes | None = None) -> Iterator[Line]:
    """The lines of rows in order.

    Args:
        rows: Rows with their depth.
        look: How to draw.
        notes: Gathers cautions, which are told below the sheet; None: each row tells its own.
    """
    run: _Run | None = None
    begun = False
    for item in rows:
        if run is not None:
            if is_small(item.row, look) and run.takes(item):
                continue
            yield from paint_row(run.row(), look, run.first.depth)
            run = None
        if is_small(item.row, look):
            run = _Run(item)
        else:
            if begun and item.row.kind == "message" and item.row.author == "user":
                yield []
            yield from paint_row(item.row, look, item.depth, notes.signs(item.row) if notes else None)
        begun = True
    if run is not None:
        yield from paint_row(run.row(), look, run.first.depth)


def paint_noted(row: Row, look: Look, notes: Notes, depth: int = 0) -> Iterator[Line]:
    """The lines of a row of a sheet without an end: a note is told below the first row that has it.

    Args:
        row: The row.
        look: How to draw.
        notes: Those that were told before; takes those of this row.
        depth: Level of agents within agents.
    """
    known = len(notes.told)
    yield from paint_row(row, look, depth, notes.signs(row))
    for note in notes.told[known:]:
        yield from ([Span(piece, "quiet")] for piece in wrap(visible(note), max(look.width, NARROWEST)))
