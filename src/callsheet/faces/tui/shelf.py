"""The sessions of a folder, and what can be said of each on one line.

Owns what is counted (calls, failed, declined, what waits for an answer) and when it is counted again: as soon as the
session was written anew.

Must never know: the screen.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from callsheet.errors import CallsheetError, reason_of
from callsheet.faces.tui.reading import command
from callsheet.library.briefs import brief_of_stream
from callsheet.library.opening import bundles_in
from callsheet.pairing import Tally
from callsheet.records.bundle import MANIFEST, Bundle, is_bundle, stream_id
from callsheet.rows import Sheet

COUNTED_MOST = 50_000_000
"""Bytes of a file up to which it is read for its counts."""
_UNREADABLE = (OSError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile)


class Entry(Struct, kw_only=True):
    """A session of the list.

    Attributes:
        path: The bundle, or the file that an agent stored.
        mark: Changes when the session was written anew.
        when: Time of its last change, to the minute.
        stream: Its stream, where the file holds several sessions.
        asked: Its title, or what was first asked.
        tally: Counts of all its streams; None where they were not read.
        open: Its last turn has not ended.
        why: Why it cannot be read.
    """

    path: Path
    mark: tuple[int, int]
    when: str
    stream: str | None = None
    asked: str | None = None
    tally: Tally | None = None
    open: bool = False
    why: str | None = None

    @property
    def key(self) -> tuple[str, str | None]:
        """What the entry is known by."""
        return str(self.path), self.stream


def mark_of(path: Path) -> tuple[int, int]:
    """Changes when a session was written anew."""
    found = (path / MANIFEST if path.is_dir() else path).stat()
    return found.st_mtime_ns, found.st_size


def _entry(path: Path, stream: str | None = None) -> Entry:
    mark = mark_of(path)
    when = datetime.fromtimestamp(mark[0] / 1e9).astimezone().strftime("%Y-%m-%d %H:%M")
    return Entry(path=path, mark=mark, when=when, stream=stream)


Root = tuple[Path, str | None]
"""A folder, and the kind of source that is looked for there (None: any)."""


def entries_in(*roots: Root) -> list[Entry]:
    """The sessions of some folders, the latest first: their bundles, or else what agents stored there."""
    found: list[Entry] = []
    for folder, kind in roots:
        for path in bundles_in(folder) if folder.is_dir() and kind is None else ():
            try:
                found.append(_entry(path))
            except OSError:
                continue  # it is being replaced; the next look finds it
        if not found or kind is not None:
            found += _stored_in(folder, kind)
    return sorted(found, key=lambda entry: entry.mark, reverse=True)


def _stored_in(folder: Path, kind: str | None) -> Iterator[Entry]:
    from callsheet.library.importing import find_sessions

    try:
        sessions = find_sessions(folder, kind)
    except CallsheetError:
        return
    mains = [session.main for _, session in sessions]
    for _, session in sessions:
        several = mains.count(session.main) > 1
        try:
            entry = _entry(Path(session.main), stream_id(session.native_id) if several else None)
        except OSError:
            continue
        entry.asked = session.native_id
        yield entry


def counted_entry(entry: Entry) -> Entry:
    """The entry with what its bundle says; what an agent stored is imported for it, by a process of its own.

    Of a file that holds several sessions, or a very large one, no counts are made.
    """
    if is_bundle(entry.path):
        return _counted(entry, entry.path)
    if entry.stream is not None or entry.mark[1] > COUNTED_MOST:
        return entry
    with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
        words = command(entry.path, Path(folder), settled=True)
        ran = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        bundles = bundles_in(Path(folder))
        if not bundles:
            said = ran.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            entry.why = said or "cannot be read"
            return entry
        entry.asked = None
        return _counted(entry, bundles[0])


def _counted(entry: Entry, place: Path) -> Entry:
    try:
        bundle = Bundle(place)
        entry.tally = Tally()
        for stream in bundle.manifest.streams:
            with bundle.open(stream.file) as file:
                if entry.asked is None and stream.parent is None:
                    entry.asked = brief_of_stream(file).asked
                    file.seek(0)
                entry.tally.add(Sheet(file).tally())
    except CallsheetError as error:
        entry.why = str(error)
    except _UNREADABLE as error:
        entry.why = reason_of(error)
    return entry
