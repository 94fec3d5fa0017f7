"""The flow of a sheet: rows one after another, with what only shows between them.

Owns the collapse of neighbouring messages that no person and no model wrote, and the blank line before what
the person says. Holds one row at most.

Must never know: files, terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from callsheet.paint.row import Look, is_small, paint_row
from callsheet.paint.span import Line
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


def paint_rows(rows: Iterable[Nested], look: Look) -> Iterator[Line]:
    """The lines of rows in order.

    Args:
        rows: Rows with their depth.
        look: How to draw.
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
            yield from paint_row(item.row, look, item.depth)
        begun = True
    if run is not None:
        yield from paint_row(run.row(), look, run.first.depth)
