"""Following sessions that agents started elsewhere are writing: what is new on their sheets, as it comes.

``follow`` yields changes for ever; ``Follower.look`` is one look, for those who have a clock of their own. A session
that changed is imported anew by the one importer there is, into a folder that is gone afterwards, and its rows are held
against marks of those that were told before: four bytes for each member of a row, never the row.

Owns: which sessions are looked at when (those that change; no more than ``Pace.share`` of the time goes into reading,
so that a large session is read seldom and a small one at once), what is told of them, and what happened to their
files. A line that is half written waits for its end.

Must never know: terminals, how a row is drawn.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from callsheet.errors import SourceError
from callsheet.harness._port import Session, Stored
from callsheet.library.folders import DiskFolder, is_folder, is_own
from callsheet.library.importing import failure_of, import_session, search
from callsheet.library.news import (
    Began,
    Change,
    Followed,
    Happened,
    RowsGone,
    RowTold,
    Settled,
    key_of,
    marks_of_row,
    members_between,
)
from callsheet.library.opening import OpenSession, Reading, open_bundle
from callsheet.library.tracks import (
    Happening,
    Head,
    Mark,
    Marks,
    fingerprint,
    happened,
    head_of,
    mark_of,
    marks_of,
    names_below,
    sessions_in,
    strays_of,
)
from callsheet.library.workbench import printable
from callsheet.rows import Nested, Sheet, nested_rows

SESSIONS_MOST = 64
"""Sessions whose rows are remembered; one that changes after longer is told anew."""
ACTIVE = 60.0
"""Seconds since it changed for which a session is looked at before others."""
FINDING = 9
QUICK = 0.02
"""Looking for files takes at most one part in ten of the time, where it takes longer than these seconds."""
GONE_MOST = 20
"""Rows of a session that are told one by one when they are no longer there."""


class Pace(NamedTuple):
    """How often one looks.

    Attributes:
        every: Seconds between two looks.
        share: Part of the time that reading may take.
    """

    every: float = 0.4
    share: float = 1 / 3


class _Track:
    """One session, and what is known of it since the last look."""

    def __init__(self, adapter: Stored, session: Session) -> None:
        self.adapter = adapter
        self.session = session
        self.marks: Marks = {}
        self.heads: dict[str, Head] = {}
        self.rows: dict[str, bytes] = {}
        self.is_told = False
        self.print: str | None = None
        self.complaint: str | None = None
        self.read_at = 0.0
        self.told_at = float("-inf")

    @property
    def files(self) -> tuple[str, ...]:
        return self.session.files or (self.session.main,)

    @property
    def name(self) -> str:
        """The session's id, as text: it may come from the name of a file."""
        return printable(self.session.native_id)


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
        self._roots = list(roots)
        self._reading = msgspec.structs.replace(reading, provisional=True)
        self._pace = pace
        self._clock = clock
        self._names: dict[Path, frozenset[str]] = {}
        self._strays: dict[str, Mark | None] = {}
        self._tracks: dict[tuple[str, str, str], _Track] = {}
        self._free_at = 0.0
        self._find_at = 0.0
        self._began = False

    def look(self) -> Iterator[Change]:
        """One look: everything that changed, as far as there is time for it; the rest comes with the next.

        Raises:
            SourceError: At the first look: nothing there can be followed.
        """
        yield from self._find()
        now = self._clock()
        # Those that were written of late come first, and among them the one that waited longest.
        order = sorted(self._tracks.values(), key=lambda one: (now - one.told_at > ACTIVE, one.read_at))
        for track in order:
            marks = marks_of(track.files)
            if marks == track.marks:
                continue
            if self._clock() < self._free_at:
                return
            begun = self._clock()
            if self._has_changed(track):
                yield from self._read(track)
            else:
                track.marks = marks
            track.read_at = self._paid(begun)

    def _paid(self, begun: float) -> float:
        """Notes how long reading took; until the rest of the time has gone by, nothing is read."""
        done = self._clock()
        self._free_at = done + (done - begun) * (1 / self._pace.share - 1)
        return done

    # -- which sessions there are ---------------------------------------------------------------------------------

    def _find(self) -> Iterator[Change]:
        """Takes in sessions that are new, or made of other files than before."""
        begun = self._clock()
        if self._began and begun < max(self._free_at, self._find_at):
            return
        names = {root: names_below(root) for root, _ in self._roots}
        cost = self._clock() - begun
        self._find_at = begun + cost + (FINDING * cost if cost > QUICK else 0)
        if self._began and names == self._names and strays_of(self._strays) == self._strays:
            return
        self._names = names
        found = {
            (one.kind, one.native_id, one.main): (adapter, one) for adapter, one in sessions_in(self._roots)
        }
        for key, (adapter, session) in found.items():
            track = self._tracks.get(key)
            if track is None:
                self._tracks[key] = track = _Track(adapter, session)
                if not self._began and len(found) > 1:
                    # What is there already is told when it changes.
                    track.marks = marks_of(track.files)
                    track.print = fingerprint(adapter, session, track.files)
            track.session = session
        for key in [key for key in self._tracks if key not in found]:
            yield from self._lost(self._tracks.pop(key))
        claimed = {path for track in self._tracks.values() for path in track.files}
        self._strays = strays_of(path for below in names.values() for path in below - claimed)
        if not self._began:
            if not found:
                self._nothing()
            self._began = True
            yield Began(sessions=len(found), places=tuple(printable(str(root)) for root, _ in self._roots))
        else:
            self._paid(begun)

    def _nothing(self) -> None:
        """Nothing to follow: a folder, or an empty file, may get its first session yet; anything else will not."""
        for path, kind in self._roots:
            mark = mark_of(str(path))
            if (is_folder(path) and not is_own(path)) or (mark is not None and not mark.size):
                continue
            _, failures = search(path, kind, DiskFolder(path))
            for failure in failures:
                raise SourceError(failure.message, path=failure.path, line=failure.line)

    @staticmethod
    def _lost(track: _Track) -> Iterator[Change]:
        """A session that is not found any more: its file is gone, empty, or another's."""
        if not track.is_told:
            return
        path = track.session.main
        head, mark = track.heads.get(path), mark_of(path)
        what: Happening = "deleted" if mark is None else "replaced"
        if head is not None and mark is not None and mark.size < head.mark.size:
            what = happened(path, head) or what
        yield Happened(session=track.name, path=printable(path), what=what, message=_WORDS[what])

    # -- one session ----------------------------------------------------------------------------------------------

    @staticmethod
    def _has_changed(track: _Track) -> bool:
        """Whether anything of this session was written; of many in one database, it is mostly another."""
        if track.print is None:
            return True
        return fingerprint(track.adapter, track.session, track.files) != track.print

    def _read(self, track: _Track) -> Iterator[Change]:
        session = track.session
        for path, head in track.heads.items():
            what = happened(path, head)
            if what is not None and path in track.files:
                yield Happened(session=track.name, path=printable(path), what=what, message=_WORDS[what])
        # Taken before the files are read: what is written meanwhile makes the session due again.
        track.marks = marks_of(track.files)
        heads = {path: head_of(path, mark) for path, mark in track.marks.items()}
        track.heads = {path: head for path, head in heads.items() if head is not None}
        track.print = fingerprint(track.adapter, session, track.files)
        try:
            with self._imported(track) as opened:
                yield from self._told(track, opened)
            track.complaint = None
        except SourceError as error:
            if error.message not in (track.complaint, *_WAITING):
                track.complaint = error.message
                yield Happened(
                    session=track.name, path=printable(session.main), what="unreadable", message=error.message
                )

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
            track.told_at = self._clock()
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
        told = [track for track in self._tracks.values() if track.is_told]
        for track in sorted(told, key=lambda one: one.told_at)[:-SESSIONS_MOST]:
            track.rows, track.is_told = {}, False


_WORDS: dict[Happening, str] = {
    "truncated": "is shorter than it was: what it held there is gone",
    "replaced": "is another file now",
    "deleted": "is no longer there",
}
_WAITING = (
    "holds no records",
    "the file is empty",
    "the database was written while it was read; try again",
    "the database is being written all the time; try again",
    "the database is locked by the program that owns it; try again when it is idle",
)
"""What is said of a session whose first line is not whole yet, or whose database is busy: it is looked at again."""


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
