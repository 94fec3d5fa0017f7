"""What a headless run prints: records as JSON, or rows as text.

Owns the lines of ``--json`` (docs/headless.md is their promise) and the rows of the plain output: each row once, when
it will not change any more, or when the turn is over.

Must never know: the session's machinery, protocols.
"""

from __future__ import annotations

import sys
from typing import Protocol, cast

import msgspec

from callsheet.faces.cli.terminal import Printer, sheet_width, write_json
from callsheet.live import Closed, Session
from callsheet.live.channel import key_of
from callsheet.paint import Look, paint_row
from callsheet.pairing import Pairing, Place
from callsheet.records import ENCODER, Preview, Record, Unknown, Unmapped, Usage
from callsheet.records import Session as SessionRecord
from callsheet.records.stream import read_at
from callsheet.rows import Context, Limits, Row, View, row_at
from callsheet.seam import (
    Completed,
    Event,
    Failed,
    Interrupted,
    Lost,
    Noted,
    NotStarted,
    Recorded,
    TurnResult,
)

RESULTS: dict[type[TurnResult], str] = {
    Completed: "completed",
    Failed: "failed",
    Interrupted: "interrupted",
    Lost: "lost",
    NotStarted: "not_started",
}
"""Words for the ends of a turn."""

PREVIEWS: dict[str, str] = {
    "CallPreview": "call",
    "OutputPreview": "output",
    "ThoughtPreview": "thought",
    "MessagePreview": "message",
    "RequestOpened": "request",
    "RequestClosed": "request_closed",
    "TurnChanged": "turn",
    "Noted": "note",
}
"""Words for what is no record."""


class Lines(Protocol):
    """Prints a run."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def result(self, result: TurnResult) -> None:
        """The turn has ended."""

    def end(self, closed: Closed) -> None:
        """The session is closed."""


class JsonLines:
    """``--json``: records as they settle, and what is asked for besides.

    Args:
        session: The session.
        previews: Also what is no record.
    """

    def __init__(self, session: Session, *, previews: bool) -> None:
        self._session = session
        self._previews = previews
        self._main: str | None = None
        self._result: TurnResult | None = None

    def event(self, event: Event) -> None:
        """A record as it stands in its stream, or a preview."""
        if isinstance(event, Recorded):
            self._main = self._main or event.stream
            line = ENCODER.encode(event.record)
            if event.stream != self._main:
                line = _of_other(line, event.stream)
            self._print(line)
        elif self._previews:
            self._print(msgspec.json.encode(preview_line(event)))

    def _print(self, line: bytes) -> None:
        write_json(line)
        sys.stdout.buffer.flush()

    def result(self, result: TurnResult) -> None:
        """Kept for the last line."""
        self._result = result

    def end(self, closed: Closed) -> None:
        """The last line."""
        result = self._result
        line: dict[str, object] = {
            "result": RESULTS[type(result)] if result is not None else "lost",
            "bundle": str(closed.bundle),
            "stream": self._main,
        }
        for name in ("reason", "message"):
            words = getattr(result, name, None)
            if words is not None:
                line[name] = words
        self._print(msgspec.json.encode(line))


def _of_other(line: bytes, stream: str) -> bytes:
    """A record of another stream than the session's own names it in ``_meta``."""
    members = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    meta = msgspec.json.decode(members["_meta"], type=dict[str, msgspec.Raw]) if "_meta" in members else {}
    meta["callsheet/stream"] = msgspec.Raw(msgspec.json.encode(stream))
    return msgspec.json.encode({**members, "_meta": meta})


def preview_line(event: Event) -> dict[str, object]:
    """A preview as a line: ``preview`` says which kind, ``key`` what it replaces."""
    name = PREVIEWS[type(event).__name__]
    built = cast(dict[str, object], msgspec.to_builtins(event))
    built.pop("type", None)
    request = built.get("request")
    if isinstance(request, dict):
        kind = _camel_case_of(str(request.pop("type")))
        built["request"] = {"kind": kind, **_members(request)}
    return {"preview": name, "key": ":".join(key_of(event)), **_members(built)}


def _members(built: dict[str, object]) -> dict[str, object]:
    """Members in camelCase, without those that are absent."""
    return {_camel(name): value for name, value in built.items() if value is not None}


def _camel_case_of(name: str) -> str:
    return name[:1].lower() + name[1:]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


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
            from callsheet.faces.cli.terminal import complain

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
