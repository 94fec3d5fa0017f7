"""Which sessions are due to be read: those that were written since they were last read, and how often that may be.

One way to watch files and databases, for whoever shows what agents write: ``follow`` tells rows, the workbench shows
whole sheets. Owns: which sessions are looked at when (those that change; no more than ``Pace.share`` of the time goes
into reading, so that a large session is read seldom and a small one at once), and what happened to their files.

Must never know: records, rows, terminals, how a session is read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from callsheet.errors import SourceError
from callsheet.harness._port import Session, Stored
from callsheet.library.folders import DiskFolder, is_folder, is_own
from callsheet.library.importing import search
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
    stores_of,
    strays_of,
)
from callsheet.library.workbench import printable

ACTIVE = 60.0
"""Seconds since it changed for which a session is looked at before others."""
FINDING = 9
QUICK = 0.02
"""Looking for files takes at most one part in ten of the time, where it takes longer than these seconds."""


class Pace(NamedTuple):
    """How often one looks.

    Attributes:
        every: Seconds between two looks.
        share: Part of the time that reading may take.
    """

    every: float = 0.4
    share: float = 1 / 3


class Began(Struct, kw_only=True, frozen=True):
    """Following began.

    Attributes:
        sessions: Sessions that are there.
        places: Where they are looked for.
    """

    sessions: int
    places: tuple[str, ...]


class Happened(Struct, kw_only=True, frozen=True):
    """What happened to a file that should only have grown, or why a session cannot be read."""

    session: str
    path: str
    what: Happening | Literal["unreadable"]
    message: str


class Watched:
    """One session, and what is known of its files since it was last read.

    Attributes:
        adapter: What reads it.
        session: The session.
        marks: Its files as they were when it was last due.
        told_at: When whoever reads it last found something new in it.
        is_told: Something of it was told: that its file is gone is news.
    """

    def __init__(self, adapter: Stored, session: Session) -> None:
        self.adapter = adapter
        self.session = session
        self.marks: Marks = {}
        self.heads: dict[str, Head] = {}
        self.print: str | None = None
        self.read_at = 0.0
        self.told_at = float("-inf")
        self.is_told = False

    @property
    def files(self) -> tuple[str, ...]:
        """All its files."""
        return self.session.files or (self.session.main,)

    @property
    def name(self) -> str:
        """The session's id, as text: it may come from the name of a file."""
        return printable(self.session.native_id)


W = TypeVar("W", bound=Watched)


class Due(NamedTuple, Generic[W]):
    """A session that is to be read now: it was written, it is new, or it is the only one there is."""

    watched: W


class Watcher(Generic[W]):
    """Looks again and again.

    Args:
        roots: Files and folders, each with the kind that is looked for there (None: any).
        make: Makes what is known of a session.
        pace: How much of the time reading may take.
        clock: Seconds that only grow.
        wants: Which sessions are watched; all of them when not given.

    Attributes:
        pace: How much of the time reading may take.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        roots: Sequence[tuple[Path, str | None]],
        make: Callable[[Stored, Session], W],
        pace: Pace = Pace(),  # noqa: B008 (frozen)
        clock: Callable[[], float] = time.monotonic,
        *,
        wants: Callable[[Session], bool] | None = None,
    ) -> None:
        self._roots = list(roots)
        self._make = make
        self._wants = wants
        self.pace = pace
        self.clock = clock
        self._names: dict[Path, frozenset[str]] = {}
        self._strays: dict[str, Mark | None] = {}
        self._stores: Marks = {}
        self._watched: dict[tuple[str, str, str], W] = {}
        self._free_at = 0.0
        self._find_at = 0.0
        self._began = False

    @property
    def watched(self) -> list[W]:
        """The sessions that are there."""
        return list(self._watched.values())

    def look(self) -> Iterator[Began | Happened | Due[W]]:
        """One look: what happened, and which sessions are due, as far as there is time for it.

        A session is to be read before the next step is asked for: that time counts.

        Raises:
            SourceError: At the first look: nothing there can be followed.
        """
        yield from self._find()
        now = self.clock()
        # Those that were written of late come first, and among them the one that waited longest.
        order = sorted(self.watched, key=lambda one: (now - one.told_at > ACTIVE, one.read_at))
        for watched in order:
            marks = marks_of(watched.files)
            if marks == watched.marks:
                continue
            if self.clock() < self._free_at:
                return
            begun = self.clock()
            if self._has_changed(watched):
                yield from self._news_of(watched)
                self._renew(watched)
                yield Due(watched)
            else:
                watched.marks = marks
            watched.read_at = self.paid(begun)

    def paid(self, begun: float) -> float:
        """Notes how long reading took; until the rest of the time has gone by, nothing is due.

        Args:
            begun: When it began, by the clock.

        Returns:
            The time now.
        """
        done = self.clock()
        self._free_at = done + (done - begun) * (1 / self.pace.share - 1)
        return done

    # -- which sessions there are ---------------------------------------------------------------------------------

    def _find(self) -> Iterator[Began | Happened]:
        """Takes in sessions that are new, or made of other files than before."""
        begun = self.clock()
        if self._began and begun < max(self._free_at, self._find_at):
            return
        names = {root: names_below(root) for root, _ in self._roots}
        cost = self.clock() - begun
        self._find_at = begun + cost + (FINDING * cost if cost > QUICK else 0)
        stores = marks_of(stores_of(path for below in names.values() for path in below))
        same = names == self._names and stores == self._stores
        if self._began and same and strays_of(self._strays) == self._strays:
            return
        self._names, self._stores = names, stores
        found = {
            (one.kind, one.native_id, one.main): (adapter, one)
            for adapter, one in sessions_in(self._roots)
            if self._wants is None or self._wants(one)
        }
        for key, (adapter, session) in found.items():
            watched = self._watched.get(key)
            if watched is None:
                self._watched[key] = watched = self._make(adapter, session)
                if not self._began and len(found) > 1:
                    # What is there already is due when it changes.
                    watched.marks = marks_of(watched.files)
                    watched.print = fingerprint(adapter, session, watched.files)
            watched.session = session
        for key in [key for key in self._watched if key not in found]:
            if not self._is_busy(self._watched[key]):
                yield from self._lost(self._watched.pop(key))
        claimed = {path for watched in self.watched for path in watched.files}
        self._strays = strays_of(path for below in names.values() for path in below - claimed)
        if not self._began:
            if not found:
                self._nothing()
            self._began = True
            yield Began(sessions=len(found), places=tuple(printable(str(root)) for root, _ in self._roots))
        else:
            self.paid(begun)

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
    def _is_busy(watched: Watched) -> bool:
        """Whether a session that is not found stands in a database that is there: its owner may be writing it."""
        path = watched.session.main
        before, now = watched.marks.get(path), mark_of(path)
        same = before is not None and now is not None and before[:2] == now[:2]
        return watched.is_told and same and bool(list(stores_of([path])))

    @staticmethod
    def _lost(watched: Watched) -> Iterator[Happened]:
        """A session that is not found any more: its file is gone, empty, or another's."""
        if not watched.is_told:
            return
        path = watched.session.main
        head, mark = watched.heads.get(path), mark_of(path)
        what: Happening = "deleted" if mark is None else "replaced"
        if head is not None and mark is not None and mark.size < head.mark.size:
            what = happened(path, head) or what
        yield Happened(session=watched.name, path=printable(path), what=what, message=_WORDS[what])

    # -- one session ----------------------------------------------------------------------------------------------

    @staticmethod
    def _has_changed(watched: Watched) -> bool:
        """Whether anything of this session was written; of many in one database, it is mostly another."""
        if watched.print is None:
            return True
        return fingerprint(watched.adapter, watched.session, watched.files) != watched.print

    @staticmethod
    def _news_of(watched: Watched) -> Iterator[Happened]:
        for path, head in watched.heads.items():
            what = happened(path, head)
            if what is not None and path in watched.files:
                yield Happened(session=watched.name, path=printable(path), what=what, message=_WORDS[what])

    @staticmethod
    def _renew(watched: Watched) -> None:
        """Marks it before its files are read: what is written meanwhile makes the session due again."""
        watched.marks = marks_of(watched.files)
        heads = {path: head_of(path, mark) for path, mark in watched.marks.items()}
        watched.heads = {path: head for path, head in heads.items() if head is not None}
        watched.print = fingerprint(watched.adapter, watched.session, watched.files)


_WORDS: dict[Happening, str] = {
    "truncated": "is shorter than it was: what it held there is gone",
    "replaced": "is another file now",
    "deleted": "is no longer there",
}
WAITING = (
    "holds no records",
    "the file is empty",
    "the database was written while it was read; try again",
    "the database is being written all the time; try again",
    "the database is locked by the program that owns it; try again when it is idle",
)
"""What is said of a session whose first line is not whole yet, or whose database is busy: it is looked at again."""
