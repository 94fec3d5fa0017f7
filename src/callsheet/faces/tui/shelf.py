"""The sessions of a list, and what can be said of each: when it began, what was asked, who worked, how its calls stand.

Owns what is read for it and when it is read again: as soon as the session was written anew. The head of a bundle is
read before its counts, so that a long list is in order soon.

Must never know: the screen.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from callsheet.errors import CallsheetError, reason_of
from callsheet.faces.tui.reading import command
from callsheet.harness._port import Session
from callsheet.library.briefs import UNREADABLE, brief_of_stream
from callsheet.library.opening import bundles_in
from callsheet.library.watching import Due, Watched, Watcher
from callsheet.library.workbench import printable
from callsheet.paint import head_words
from callsheet.pairing import Tally
from callsheet.records.bundle import MANIFEST, Bundle, stream_id
from callsheet.rows import Sheet
from callsheet.wire.locks import is_locked

COUNTED_MOST = 50_000_000
"""Bytes of a file up to which it is read for its counts."""

Mark = tuple[int, int]
"""Changes when a session was written anew: when that was, in nanoseconds, and a number besides."""


class Entry(Struct, kw_only=True):
    """A session of the list.

    Attributes:
        path: The bundle, or the file that an agent stored.
        mark: Changes when the session was written anew.
        is_bundle: It is a bundle, not what an agent stored.
        size: Its bytes.
        kind: What it is, as its agent stored it.
        stream: Its stream, where the file holds several sessions.
        name: What it is called as long as nothing else is known.
        head_read: Its head was read, so that what is not known of it is not recorded.
        began: When it began, by its records.
        asked: Its title, or what was first asked.
        who: The agent and its version.
        is_empty: Nobody asked, and nothing ran.
        tally: Counts of all its streams; None where they were not read.
        recording: It is being recorded, or its recorder ended before it could finish.
        running: A recorder has it now.
        written: It was written since somebody follows it.
        why: Why it cannot be read.
    """

    path: Path
    mark: Mark
    size: int = 0
    kind: str | None = None
    is_bundle: bool = False
    stream: str | None = None
    name: str | None = None
    head_read: bool = False
    began: str | None = None
    asked: str | None = None
    who: str | None = None
    is_empty: bool = False
    tally: Tally | None = None
    recording: bool = False
    running: bool = False
    written: bool = False
    why: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """What the entry is known by."""
        return str(self.path), self.stream

    @property
    def waiting(self) -> int:
        """Requests that wait for an answer, as far as one sees: of a session that goes on."""
        return self.tally.unresolved if self.tally and (self.running or self.written) else 0

    @property
    def undecided(self) -> int:
        """Requests of another session of which no decision is recorded."""
        return self.tally.unresolved - self.waiting if self.tally else 0

    @property
    def saved(self) -> str:
        """When it was last written, to the minute."""
        return datetime.fromtimestamp(self.mark[0] / 1e9).astimezone().strftime("%Y-%m-%d %H:%M")

    @property
    def is_large(self) -> bool:
        """It is too large to be read for its counts alone."""
        return not self.is_bundle and self.size > COUNTED_MOST


Root = tuple[Path, str | None]
"""A folder, and the kind of source that is looked for there (None: any)."""


def mark_of(path: Path) -> Mark:
    """The mark of a bundle, whose streams grow while it is recorded, or of a file."""
    if not path.is_dir():
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    abouts = [(path / MANIFEST).stat(), *(one.stat() for one in path.glob("streams/*.jsonl"))]
    return max(one.st_mtime_ns for one in abouts), sum(one.st_size for one in abouts)


def entries_in(*roots: Root) -> list[Entry]:
    """The sessions of some folders: their bundles, or else what agents stored there."""
    found: list[Entry] = []
    for folder, kind in roots:
        for path in bundles_in(folder) if folder.is_dir() and kind is None else ():
            try:
                found.append(Entry(path=path, mark=mark_of(path), is_bundle=True))
            except OSError:
                continue  # it is being replaced; the next look finds it
        if not found or kind is not None:
            found += _stored_in(folder, kind)
    return found


def _stored_in(folder: Path, kind: str | None) -> Iterator[Entry]:
    from callsheet.library.importing import find_sessions

    try:
        sessions = find_sessions(folder, kind)
    except CallsheetError:
        return
    many = Counter(session.main for _, session in sessions)
    for _, session in sessions:
        path = Path(session.main)
        try:
            mark = mark_of(path)
        except OSError:
            continue
        several = many[session.main] > 1
        stream = stream_id(session.native_id) if several else None
        yield _entry(session, mark, stream)


def _entry(session: Session, mark: Mark, stream: str | None) -> Entry:
    return Entry(
        path=Path(session.main),
        mark=mark,
        size=mark[1],
        kind=session.kind,
        stream=stream,
        name=printable(session.native_id),
    )


class Writing:
    """The sessions that agents write in some places, as the library's watcher sees them.

    Args:
        roots: The places.
    """

    def __init__(self, *roots: Root) -> None:
        self._watcher = Watcher(roots, Watched)
        self._marks: dict[Watched, Mark] = {}
        self._has_looked = False

    def entries(self) -> list[Entry]:
        """The sessions now.

        Raises:
            SourceError: At the first look: nothing there can be followed.
        """
        due = {seen.watched for seen in self._watcher.look() if isinstance(seen, Due)}
        there = self._watcher.watched
        many = Counter(one.session.main for one in there)
        before, self._marks = self._marks, {}
        found: list[Entry] = []
        for one in there:
            mark = before.get(one)
            if mark is None or one in due:
                if one in due and self._has_looked:
                    one.told_at = self._watcher.clock()
                mark = _mark_of_files(one)
            self._marks[one] = mark
            several = many[one.session.main] > 1
            entry = _entry(one.session, mark, stream_id(one.session.native_id) if several else None)
            entry.written = one.told_at > float("-inf")
            found.append(entry)
        self._has_looked = True
        return found


def _mark_of_files(one: Watched) -> Mark:
    """Of a session in a database: those of its own last change, not of every change of the file."""
    marks = one.marks.values()
    return max((mark.written for mark in marks), default=0), sum(mark.size for mark in marks)


def in_order(entries: list[Entry], *, by_writing: bool = False) -> list[Entry]:
    """The latest first: by when they began or, where somebody follows them, by when they were written.

    When a bundle was imported says nothing of its session: one that tells no time comes last.
    """

    def place(entry: Entry) -> tuple[str, Mark]:
        if by_writing:
            return "", entry.mark
        otherwise = "" if entry.is_bundle and entry.head_read else entry.saved
        return entry.began or otherwise, entry.mark

    return sorted(entries, key=place, reverse=True)


# -- what is read of them ---------------------------------------------------------------------------------------------


def read_head(entry: Entry) -> None:
    """Puts into an entry what the head of its bundle says; of what an agent stored, that comes with the counts."""
    if entry.is_bundle:
        _read_bundle(entry, entry.path, counts=False)


class Counts:
    """Counts sessions. What an agent stored is imported for it, by a process of its own.

    The sessions of one database are imported together when the first of them is counted.
    """

    def __init__(self) -> None:
        self._of_one: dict[str, dict[str | None, Entry]] = {}

    def put(self, entry: Entry) -> None:
        """Puts its head and its counts into an entry; of a very large file no counts are made."""
        if entry.is_bundle:
            _read_bundle(entry, entry.path, counts=True)
            return
        if entry.is_large:
            return
        ready = self._of_one.get(str(entry.path), {}).pop(entry.stream, None)
        if ready is None or ready.mark != entry.mark:
            together = entry.stream is not None and str(entry.path) not in self._of_one
            found = _imported(entry, None if together else entry.stream)
            if together:
                self._of_one[str(entry.path)] = found
            ready = found.pop(entry.stream, None)
        if ready is None:
            entry.why = "is not in its file any more"
            return
        for name in ("head_read", "began", "asked", "who", "is_empty", "tally", "why"):
            setattr(entry, name, getattr(ready, name))


def _imported(entry: Entry, stream: str | None) -> dict[str | None, Entry]:
    """The sessions of a file, or only one of them, with heads and counts."""
    found: dict[str | None, Entry] = {}
    with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
        words = command(entry.path, Path(folder), settled=True, kind=entry.kind, stream=stream)
        ran = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        for place in bundles_in(Path(folder)):
            one = Entry(path=entry.path, mark=entry.mark)
            main = _read_bundle(one, place, counts=True)
            found[main if entry.stream is not None else None] = one
    if not found:
        said = ran.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        found[entry.stream] = Entry(path=entry.path, mark=entry.mark, why=said or "cannot be read")
    return found


def _read_bundle(entry: Entry, place: Path, *, counts: bool) -> str | None:
    """Puts into an entry what a bundle says; returns the id of its main stream."""
    main: str | None = None
    try:
        bundle = Bundle(place)
        tally = Tally()
        entry.recording = bundle.manifest.recording
        entry.running = entry.recording and is_locked(place)
        for stream in bundle.manifest.streams:
            is_main = main is None and stream.parent is None
            if not is_main and not counts:
                continue
            with bundle.open(stream.file) as file:
                if is_main:
                    main = stream.id
                    brief = brief_of_stream(file)
                    entry.began, entry.asked, entry.is_empty = brief.when, brief.asked, not brief.ran
                    entry.who = head_words(brief.session) if brief.session and brief.session.agent else None
                    file.seek(0)
                if counts:
                    tally.add(Sheet(file).tally())
        entry.head_read = True
        entry.why = None
        if counts:
            entry.tally = tally
    except UNREADABLE as error:
        entry.why = str(error) if isinstance(error, CallsheetError) else reason_of(error)
    return main
