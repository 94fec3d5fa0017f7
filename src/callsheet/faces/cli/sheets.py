"""Printing sheets: sessions to text or JSON, with a first look while a large file is still being read.

Owns the order of what a person sees: first look, bar, sheet. Complaints about single lines are few and
counted.

Must never know: what a row says, how it is laid out.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
from msgspec.structs import replace

from callsheet.errors import CallsheetError, RecordError, SourceError, UsageError
from callsheet.faces.cli.agents import finish_recording
from callsheet.faces.cli.folders import list_sessions
from callsheet.faces.cli.terminal import (
    Bar,
    Printer,
    complain,
    is_terminal,
    obeys,
    screen_lines,
    sheet_width,
    write_json,
)
from callsheet.library.opening import OpenSession, Reading, bundles_in, is_stream, native_files, open_sessions
from callsheet.paint import Look, Notes, Span, paint_foot, paint_head, paint_rows
from callsheet.paint.row import look_with_folders
from callsheet.pairing import Tally
from callsheet.records.bundle import Diagnostic, is_bundle
from callsheet.rows import Limits, Nested, Sheet, View, nested_rows

FIRST_LOOK_FROM = 1_000_000
"""Bytes from which a stored file gets a first look."""
FIRST_LOOK_BYTES = 200_000
COMPLAINTS = 20
"""Bad lines of a stream that are named one by one."""
FULL = Limits(title=100_000, text=16_000_000, input=16_000_000, patch=16_000_000, items=10_000)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The options of ``show``."""

    as_json: bool = False
    width: int | None = None
    audit: bool = False
    thoughts: bool = False
    stream: str | None = None
    full: bool = False


class _Complaints:
    """Says the first bad lines one by one, and how many more there were."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._seen: set[tuple[str | None, int | None]] = set()
        self._more = 0

    def __call__(self, error: RecordError) -> None:
        if len(self._seen) < COMPLAINTS:
            self._seen.add((error.path, error.line))
            self._bar.clear()
            complain(str(error))
        else:
            self._more += 1

    def close(self) -> None:
        if self._more:
            complain(f"… {self._more:,} more lines are no legal records")


def print_sheets(source: str, wanted: Wanted) -> int:
    """Prints the sheets of SOURCE.

    Returns:
        The exit code.

    Raises:
        SourceError: Nothing can be read there.
    """
    folder = Path(source)
    if source != "-" and folder.is_dir() and not is_bundle(folder):
        bundles = bundles_in(folder, complain)
        files = Counter[str]() if bundles else native_files(folder)
        count = len(bundles) or files.total()
        if count > 1 and (bundles or wanted.stream is None):
            if wanted.as_json or wanted.stream is not None:
                raise UsageError(
                    f"{source}: holds {count:,} sessions; name one of them (callsheet show {source})"
                )
            list_sessions(folder, bundles, files, Printer(sys.stdout), sheet_width(wanted.width))
            return 0
        source = str(bundles[0]) if bundles else source
    finish_recording(Path(source))
    bar = Bar()
    complaints = _Complaints(bar)
    reading = Reading(
        near=None if wanted.as_json else Path.cwd(),
        view=View(thoughts=wanted.thoughts, audit=wanted.audit, harness=wanted.as_json),
        limits=FULL if wanted.full else Limits(),
        on_bad=complaints,
        progress=bar.advance,
    )
    look = Look(width=sheet_width(wanted.width), full=wanted.full, audit=wanted.audit)
    first = Printer(sys.stderr)
    if _wants_first_look(source, wanted):
        _first_look(Path(source), look, first)
    out = Printer(sys.stdout)
    with open_sessions(source, reading, stream=wanted.stream, on_failure=complain) as sessions:
        for number, session in enumerate(sessions):
            with _opened(session) as (sheet, rows, whole):
                bar.clear()
                first.erase()
                if not len(sheet.pairing):
                    raise SourceError("holds no records", path=session.name)
                if wanted.as_json:
                    _print_json(rows)
                else:
                    if number:
                        out.line([])
                    _print_text(sheet, rows, whole, look, out, session.diagnostics)
    complaints.close()
    return 0


class _Whole:
    """What is known of all streams together.

    Attributes:
        tally: Counts of the session's own stream and those of its subagents.
        of_agents: Calls of subagents.
        everywhere: What is silent about every call of them.
        others: After the rows: counts of all other streams.
        hidden: After the rows: what was left out of the rows of all streams.
    """

    def __init__(self, session: OpenSession, main: Sheet) -> None:
        self.tally = main.tally()
        self.of_agents = 0
        silences = main.silences
        for stream in session.agents:
            try:
                with session.sheet(stream, quiet=True) as sheet:
                    found = sheet.tally()
                    silences.update(sheet.silences)
            except SourceError:
                continue  # it is said when its rows are to be drawn
            self.tally.add(found)
            self.of_agents += found.calls
        self.everywhere = silences.everywhere()
        self.others = Tally()
        self.hidden: Counter[str] = Counter()


@contextmanager
def _opened(session: OpenSession) -> Iterator[tuple[Sheet, Iterator[Nested], _Whole]]:
    """The session's own sheet, read once, the rows of all its streams, and what is known of them together."""
    with session.sheet(session.main) as main:
        whole = _Whole(session, main)

        @contextmanager
        def sheet_of(stream: str) -> Iterator[Sheet]:
            with nullcontext(main) if stream == session.main else session.sheet(stream) as sheet:
                yield sheet
                whole.hidden.update(sheet.hidden)
                if sheet is not main and stream not in session.agents:
                    whole.others.add(sheet.tally())

        yield main, nested_rows(session.main, session.streams, sheet_of), whole


def _print_json(rows: Iterator[Nested]) -> None:
    encode = msgspec.json.Encoder().encode
    for item in rows:
        write_json(encode(item.row))


def _print_text(
    sheet: Sheet,
    rows: Iterator[Nested],
    whole: _Whole,
    look: Look,
    out: Printer,
    diagnostics: Sequence[Diagnostic],
) -> None:
    look = replace(look_with_folders(look, sheet.session), everywhere=whole.everywhere)
    notes = Notes(audit=look.audit)
    for line in paint_head(sheet.session, whole.tally, look, diagnostics, of_agents=whole.of_agents):
        out.line(line)
    for line in paint_rows(rows, look, notes):
        out.line(line)
    for line in paint_foot(whole.tally, whole.others, whole.hidden, look, notes.told):
        out.line(line)


def _wants_first_look(source: str, wanted: Wanted) -> bool:
    path = Path(source)
    return (
        source != "-"
        and not wanted.as_json
        and is_terminal(sys.stdout)
        and obeys(sys.stderr)
        and path.is_file()
        and path.stat().st_size >= FIRST_LOOK_FROM
        and not is_bundle(path)
        and not is_stream(path)
    )


def _first_look(path: Path, look: Look, out: Printer) -> None:
    """Draws rows of the beginning of a file, as many as fit on the screen.

    The beginning is imported like a file of its own. If it makes no session (the first line is longer, the
    file is no session at all), nothing is drawn here, and reading the whole file says what is wrong.
    """
    with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
        head = Path(folder) / path.name
        with path.open("rb") as file:
            data = file.read(FIRST_LOOK_BYTES)
        head.write_bytes(data[: data.rfind(b"\n") + 1])
        room = screen_lines() - 3
        try:
            with open_sessions(
                str(head),
                Reading(near=Path.cwd(), view=View(harness=False), provisional=True),
                on_failure=_ignore,
            ) as sessions:
                for session in sessions:
                    with _opened(session) as (sheet, rows, _):
                        out.line([Span("provisional: the file is still being read", "open")])
                        for line in paint_rows(rows, look_with_folders(look, sheet.session)):
                            if out.lines >= room:
                                return
                            out.line(line)
        except CallsheetError:
            return


def _ignore(_: str) -> None:
    """The whole file will say it."""
