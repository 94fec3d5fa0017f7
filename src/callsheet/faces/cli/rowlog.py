"""What a headless run prints without ``--json``: rows as text, each when it will not change any more.

Must never know: the session's machinery, protocols.
"""

from __future__ import annotations

import sys

from callsheet.faces.cli.terminal import Printer, complain, sheet_width
from callsheet.live import Closed, Session
from callsheet.paint import Look, paint_row
from callsheet.pairing import Pairing, Place
from callsheet.records import ENCODER, Preview, Record, Unknown, Unmapped, Usage
from callsheet.records import Session as SessionRecord
from callsheet.records.stream import read_at
from callsheet.rows import Context, Limits, Row, View, row_at
from callsheet.seam import Event, Noted, Recorded, TurnResult


class TextLines:
    """Rows as text; each is printed when it has settled."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._printer = Printer(sys.stdout)
        self._look = Look(width=sheet_width(None))
        self._streams: dict[str, _Growing] = {}

    def event(self, event: Event) -> None:
        """A record may settle a row; a note goes to standard error."""
        if isinstance(event, Noted):
            complain(event.text)
        if not isinstance(event, Recorded):
            return
        growing = self._streams.get(event.stream)
        if growing is None:
            growing = self._streams[event.stream] = _Growing(self._session, event.stream)
        for number in growing.add(event.record):
            self._row(growing, number)
        sys.stdout.flush()

    def _row(self, growing: _Growing, number: int) -> None:
        row = growing.row(number)
        if row is None:
            return
        depth = 0 if growing is next(iter(self._streams.values())) else 1
        for line in paint_row(row, self._look, depth):
            self._printer.line(line)

    def result(self, result: TurnResult) -> None:
        """What is left is printed as it stands."""
        del result

    def end(self, closed: Closed) -> None:
        """What never settled is printed as it stands."""
        del closed
        for growing in self._streams.values():
            for number in growing.rest():
                self._row(growing, number)
            growing.close()
        sys.stdout.flush()


class _Growing:
    """The rows of a stream that grows."""

    def __init__(self, session: Session, stream: str) -> None:
        self._path = session.bundle / "streams" / f"{stream}.jsonl"
        self._file = self._path.open("rb")
        self._at = 0
        self._open: dict[int, None] = {}
        self._printed: set[int] = set()
        self._pairing = Pairing()
        self._context = Context(
            pairing=self._pairing,
            fetch=self._fetch,
            limits=Limits(),
            view=View(harness=False),
            open_turn=True,
        )

    def _fetch(self, number: int) -> Record | Unknown:
        place = self._pairing.place(number)
        return read_at(self._file, place.offset, place.size)

    def add(self, record: Record) -> list[int]:
        """Takes the next record; the rows that will not change any more."""
        size = len(ENCODER.encode(record))
        number = self._pairing.add(record, Place(self._at, size))
        self._at += size + 1
        if isinstance(record, SessionRecord):
            self._context.take_session(record)
        if isinstance(record, SessionRecord | Usage | Preview | Unmapped):
            return []
        home = self._pairing.home(number, record)
        if home in self._printed:
            return []
        row = row_at(self._context, home)
        if row is None or row.state == "running":
            self._open[home] = None
            return []
        self._open.pop(home, None)
        self._printed.add(home)
        return [home]

    def rest(self) -> list[int]:
        """The rows that never settled; none can any more."""
        self._context.open_turn = False
        left = sorted(self._open)
        self._open.clear()
        return left

    def close(self) -> None:
        """Lets go of the stream."""
        self._file.close()

    def row(self, number: int) -> Row | None:
        """A row."""
        return row_at(self._context, number)
