"""What a headless run prints without ``--json``: rows as text, each when it has settled; a printed line stays.

What of a row later records may still change, is not said before the end: whether a result reached the model is shown
by a reply that has yet to come.

Must never know: the session's machinery, protocols.
"""

from __future__ import annotations

import sys
from array import array
from pathlib import Path

from callsheet.faces.cli.terminal import Printer, complain, sheet_width
from callsheet.live import Closed, Session
from callsheet.paint import Look, Notes, paint_noted
from callsheet.records import Record, ToolCall, Unknown
from callsheet.records.stream import read_at
from callsheet.rows import View
from callsheet.rows.growing import Growing
from callsheet.seam import Event, Noted, Recorded, TurnResult
from callsheet.wire.blobs import blob_path


class TextLines:
    """Rows as text; each is printed when it has settled."""

    def __init__(self, session: Session) -> None:
        self._bundle = session.bundle
        self._printer = Printer(sys.stdout)
        self._look = Look(width=sheet_width(None))
        self._notes = Notes()
        self._streams: dict[str, _Stream] = {}

    def event(self, event: Event) -> None:
        """A record may settle a row; a note goes to standard error."""
        if isinstance(event, Noted):
            complain(event.text)
        if not isinstance(event, Recorded):
            return
        stream = self._streams.get(event.stream)
        if stream is None:
            stream = self._streams[event.stream] = _Stream(self._bundle, event.stream)
        for first in stream.add(event.record):
            self._row(stream, first, settled=False)
        sys.stdout.flush()

    def _row(self, stream: _Stream, first: int, *, settled: bool) -> None:
        row = stream.growing.row(first)
        if not settled:
            # An agent may run what was declined: without its result no call has settled, whatever was decided.
            if row.state == "running" or (row.result is None and stream.is_call(first)):
                return
            row.reached_model = None
        stream.printed.add(first)
        depth = 0 if stream is next(iter(self._streams.values())) else 1
        for line in paint_noted(row, self._look, self._notes, depth):
            self._printer.line(line)

    def result(self, result: TurnResult) -> None:
        """What is left is printed when the session is closed: it may have late records."""
        del result

    def end(self, closed: Closed) -> None:
        """What never settled is printed as it stands."""
        del closed
        for stream in self._streams.values():
            stream.growing.end_turn()
            for first in stream.left():
                self._row(stream, first, settled=True)
            stream.close()
        sys.stdout.flush()


class _Stream:
    """One stream that grows, and which of its rows are printed."""

    def __init__(self, bundle: Path, name: str) -> None:
        self._file = (bundle / "streams" / f"{name}.jsonl").open("rb")
        self._offsets = array("q", [0])
        self.printed: set[int] = set()
        self.growing = Growing(
            name, self._fetch, lambda blob: blob_path(bundle, blob).read_bytes(), View(harness=False)
        )
        self.growing.begin_turn()

    def _fetch(self, number: int) -> Record | Unknown:
        begin, end = self._offsets[number], self._offsets[number + 1]
        return read_at(self._file, begin, end - begin - 1)

    def add(self, record: Record) -> list[int]:
        """Takes the next record; the rows that it may have settled."""
        # The line says the same in its own spelling, which may be longer: only the file knows where it ends.
        self._file.seek(self._offsets[-1])
        self._offsets.append(self._offsets[-1] + len(self._file.readline()))
        touched = self.growing.add(record)
        return [first for first in (*touched.added, *touched.changed) if first not in self.printed]

    def is_call(self, first: int) -> bool:
        """Whether a row is a call's."""
        return self.growing.pairing.type_of(first) is ToolCall

    def left(self) -> list[int]:
        """The rows that were not printed."""
        every = [self.growing.first_at(index) for index in range(len(self.growing))]
        return [first for first in every if first not in self.printed]

    def close(self) -> None:
        """Lets go of the stream."""
        self._file.close()
