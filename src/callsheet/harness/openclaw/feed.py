"""Where a transcript's entries come from: a legacy file, an archive, the rows of a database.

Owns ``Transcript``: the feeds of one session in the order of its history, read as often as a pass is made. The second
pass sees the same units at the same positions as the first.

Must never know: what an entry means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from callsheet.harness._port.cells import Cell, Damage, rows_of
from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.openclaw.shapes import ENTRIES, Entry
from callsheet.records import SourceEntry

EVENTS = "transcript_events"
T = TypeVar("T")


class Feed(NamedTuple):
    """A source of entries.

    Attributes:
        source: The source.
        table: The table whose rows are the entries; None for a file of lines.
    """

    source: SourceEntry
    table: str | None = None


class Found(NamedTuple):
    """A unit, hole or damaged table with its source; ``at`` is a unit's position, else -1."""

    source: SourceEntry
    unit: Unit[Entry] | Hole | Damage
    at: int


class Transcript:
    """The entries of one session."""

    def __init__(self, veil: Veil, feeds: list[Feed]) -> None:
        self.veil = veil
        self.feeds = feeds

    def units(self) -> Iterator[Found]:
        """Every unit in order."""
        at = 0
        for feed in self.feeds:
            for unit in self._of(feed):
                if isinstance(unit, Unit):
                    yield Found(feed.source, unit, at)
                    at += 1
                else:
                    yield Found(feed.source, unit, -1)

    def _of(self, feed: Feed) -> Iterator[Unit[Entry] | Hole | Damage]:
        if feed.table is None:
            yield from native_units(self.veil.lines(feed.source), ENTRIES)
            return
        yield from rows_in(self.veil, feed, ENTRIES)


def rows_in(veil: Veil, feed: Feed, reading: Reading[T]) -> Iterator[Unit[T] | Hole | Damage]:
    """The rows of a feed's table that hold a text, and every place where a table of its source broke off."""
    for row in rows_of(veil.lines(feed.source)):
        if isinstance(row, Damage):
            yield row
        elif row.table == feed.table and row.column is None:
            # None of the columns that are known to hold the text does.
            yield Hole(row, 0, len(row.data), "no_decoder")
        elif row.table == feed.table:
            yield from _of_cell(row, reading)


def _of_cell(cell: Cell, reading: Reading[T]) -> Iterator[Unit[T] | Hole]:
    found = list(native_units([cell], reading))
    whole = len(found) == 1 and len(cell.data) == (
        found[0].size if isinstance(found[0], Hole) else len(found[0].data)
    )
    if whole:
        yield from found
    else:
        # A value that is not one JSON object is damaged as a whole: nothing fuses the values of two rows.
        yield Hole(cell, 0, len(cell.data), "bad_json")
