"""Following sessions that agents started elsewhere are writing: what is new on their sheets, as it comes.

``follow`` yields changes for ever; ``Follower.look`` is one look, for those who have a clock of their own. A session
that changed (``watching`` says which) is imported anew by the one importer there is, into a folder that is gone
afterwards, and its rows are held against marks of those that were told before: four bytes for each member of a row,
never the row.

Owns: what is told of a session. A line that is half written waits for its end.

Must never know: terminals, how a row is drawn.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from callsheet.errors import SourceError
from callsheet.harness._port import Session, Stored
from callsheet.library.importing import failure_of, import_session
from callsheet.library.news import (
    Change,
    Followed,
    RowsGone,
    RowTold,
    Settled,
    key_of,
    marks_of_row,
    members_between,
)
from callsheet.library.opening import OpenSession, Reading, open_bundle
from callsheet.library.watching import WAITING, Due, Happened, Pace, Watched, Watcher
from callsheet.library.workbench import printable
from callsheet.rows import Nested, Sheet, nested_rows

SESSIONS_MOST = 64
"""Sessions whose rows are remembered; one that changes after longer is told anew."""
GONE_MOST = 20
"""Rows of a session that are told one by one when they are no longer there."""


class _Track(Watched):
    """One session, and what was told of it."""

    def __init__(self, adapter: Stored, session: Session) -> None:
        super().__init__(adapter, session)
        self.rows: dict[str, bytes] = {}
        self.complaint: str | None = None


class Follower:
    """Looks again and again.

    Args:
        roots: Files and folders, each with the kind that is looked for there (None: any).
        reading: How rows are made; they are provisional in any case.
        pace: How much of the time reading may take.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        roots: Sequence[tuple[Path, str | None]],
        reading: Reading = Reading(),  # noqa: B008 (frozen)
        pace: Pace = Pace(),  # noqa: B008 (frozen)
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reading = msgspec.structs.replace(reading, provisional=True)
        self._watcher = Watcher(roots, _Track, pace, clock)

    def look(self) -> Iterator[Change]:
        """One look: everything that changed, as far as there is time for it; the rest comes with the next.

        Raises:
            SourceError: At the first look: nothing there can be followed.
        """
        for seen in self._watcher.look():
            if isinstance(seen, Due):
                yield from self._read(seen.watched)
            else:
                yield seen

    def _read(self, track: _Track) -> Iterator[Change]:
        try:
            with self._imported(track) as opened:
                yield from self._told(track, opened)
            track.complaint = None
        except SourceError as error:
            if error.message not in (track.complaint, *WAITING):
                track.complaint = error.message
                path = printable(track.session.main)
                yield Happened(session=track.name, path=path, what="unreadable", message=error.message)

    @contextmanager
    def _imported(self, track: _Track) -> Iterator[OpenSession]:
        with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
            try:
                made = import_session(track.adapter, track.session, Path(folder), native=False, settled=True)
            except SourceError:
                raise
            except Exception as error:
                raise SourceError(failure_of(error, track.session.main).message) from None
            yield open_bundle(made.bundle, self._reading, track.session.main)

    def _told(self, track: _Track, opened: OpenSession) -> Iterator[Change]:
        """The rows that are not as they were told before."""
        session = track.session
        before, track.rows = track.rows, {}
        anew = not track.is_told
        seen: dict[str, int] = {}
        with opened.sheet(opened.main) as main:

            @contextmanager
            def sheet_of(stream: str) -> Iterator[Sheet]:
                if stream == opened.main:
                    yield main
                else:
                    with opened.sheet(stream) as sheet:
                        yield sheet

            changes = self._changed(
                track.name, nested_rows(opened.main, opened.streams, sheet_of), before, track.rows, seen
            )
            first = next(changes, None)
            if first is not None:
                yield Followed(
                    session=track.name,
                    kind=session.kind,
                    path=printable(session.main),
                    head=main.session,
                    anew=anew,
                )
                yield first
                yield from changes
        if first is not None:
            track.told_at = self._watcher.clock()
        track.is_told = True
        gone = [key for key in before if key not in track.rows]
        if gone:
            yield RowsGone(session=track.name, keys=tuple(gone[:GONE_MOST]), count=len(gone))
        if gone or first is not None:
            yield Settled(session=track.name)
        self._forget()

    @staticmethod
    def _changed(
        session: str,
        rows: Iterator[Nested],
        before: dict[str, bytes],
        now: dict[str, bytes],
        seen: dict[str, int],
    ) -> Iterator[RowTold]:
        for depth, row in rows:
            key = key_of(row, seen)
            marks = now[key] = marks_of_row(row)
            was = before.get(key)
            if was == marks:
                continue
            members = None if was is None else members_between(was, marks)
            yield RowTold(session=session, key=key, row=row, depth=depth, members=members)

    def _forget(self) -> None:
        told = [track for track in self._watcher.watched if track.is_told]
        for track in sorted(told, key=lambda one: one.told_at)[:-SESSIONS_MOST]:
            track.rows, track.is_told = {}, False


def follow(
    roots: Sequence[tuple[Path, str | None]],
    reading: Reading = Reading(),  # noqa: B008 (frozen)
    *,
    stop: threading.Event | None = None,
    pace: Pace = Pace(),  # noqa: B008 (frozen)
) -> Generator[Change, None, None]:
    """Follows files and folders until ``stop`` is set.

    Args:
        roots: Files and folders, each with the kind that is looked for there (None: any).
        reading: How rows are made.
        stop: Ends it; between two looks it is waited for.
        pace: How often one looks.

    Yields:
        Changes. In between nothing is held but marks.

    Raises:
        SourceError: Nothing there can be followed.
    """
    stop = stop or threading.Event()
    follower = Follower(roots, reading, pace)
    while not stop.is_set():
        for change in follower.look():
            yield change
            if stop.is_set():
                return
        stop.wait(pace.every)
