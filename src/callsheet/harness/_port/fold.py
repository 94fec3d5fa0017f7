"""A fold: lines of a frame log in, settled records out. The same one reads a log and records a live turn.

Owns the shape of what a fold gives, and of the fold itself. A fold reads no clock and opens nothing; any split of the
bytes gives the same records; a line becomes records or is kept unmapped. It writes append-only: what a later frame
shows to be different is a revision (profile, 'Entities and revisions'). Of a session record, which has no revisions,
the object that was settled is completed later (its title, who started it), and a recorder writes it anew when the
connection is over.

Must never know: where lines come from, what a frame means.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from callsheet.harness._port.units import Hole, Reading, Unit
from callsheet.records import Record, SourceEntry


class Settled(NamedTuple):
    """A record and the session whose stream it belongs to; None for a log without sessions."""

    session: str | None
    record: Record


class Tray:
    """A stream that only collects: ids are those that a stream of its own would give."""

    def __init__(self, session: str | None, out: list[Settled]) -> None:
        self.id = session or ""
        self._session = session
        self._out = out
        self._count = 0

    def write(self, record: Record) -> str:
        """Collects a record and returns its id."""
        record.id = f"r{self._count}"
        self._count += 1
        self._out.append(Settled(self._session, record))
        return record.id


class Folding(Protocol):
    """The fold of one connection."""

    @property
    def reading(self) -> Reading[Any]:
        """How its lines are decoded."""

    def feed(self, source: SourceEntry, unit: Unit[Any]) -> list[Settled]:
        """Folds one line; returns what has settled, in order."""

    def gap(self, source: SourceEntry, hole: Hole) -> list[Settled]:
        """Bytes that hold no frame."""

    def close(self) -> list[Settled]:
        """The end of the connection: what has not settled is written as it stands, and nothing is invented."""
