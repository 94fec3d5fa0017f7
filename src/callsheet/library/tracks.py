"""Files that somebody else is writing, watched from outside: what they are now, and what happened to them since.

Owns the mark of a file (which one it is, how long, when written), the marks of a database with its log, what a file
that grows by lines may not do (shrink, begin otherwise, vanish), and the fingerprint of a session's rows in a database,
so that of many sessions in one database only those that changed are read again.

Must never know: records, rows of a sheet, how often one looks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, cast

from callsheet.harness._port import Desk, Session, Stored
from callsheet.library.folders import DiskFolder, is_folder, open_regular
from callsheet.library.sources import LINED
from callsheet.records import SourceEntry
from callsheet.wire.database import Selection, text_of_rows

HEAD = 4096
"""First bytes of a file by which it is known again."""
BESIDE = ("-wal", "-journal")
"""What a database writes beside itself."""

STORES = frozenset({".db", ".sqlite", ".sqlite3"})
"""Endings of databases, in which sessions come and go while the file stays."""
GROWING = LINED | STORES | {".json"}
"""Endings of files that may be sessions."""

Happening = Literal["truncated", "replaced", "deleted"]


class Mark(NamedTuple):
    """One file at one time: device and inode, size, time of the last write."""

    device: int
    inode: int
    size: int
    written: int


def mark_of(path: str) -> Mark | None:
    """The mark of a regular file; None when there is none, or it may not be seen."""
    try:
        info = os.stat(path)  # noqa: PTH116 (thousands of files, a Path for each is what costs)
    except (OSError, ValueError):
        return None
    return Mark(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


Marks = dict[str, Mark]
"""The files of a session, each with its mark; those that are not there are left out."""


def marks_of(files: Iterable[str]) -> Marks:
    """Marks of files, and of what databases among them write beside themselves."""
    found: Marks = {}
    for path in files:
        for name in (path, *(path + ending for ending in BESIDE if not path.endswith(tuple(LINED)))):
            mark = mark_of(name)
            if mark is not None:
                found[name] = mark
    return found


def names_below(root: Path) -> frozenset[str]:
    """Every file below a folder, by name alone; of a file, itself and what lies in the folder of its name."""
    found = []
    if not is_folder(root):
        found.append(str(root) if mark_of(str(root)) is not None else "")
        root = root.with_suffix("")
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".git")]
        found += [os.path.join(folder, name) for name in files if not name.endswith(("-shm", *BESIDE))]  # noqa: PTH118
    return frozenset(found)


def stores_of(files: Iterable[str]) -> Iterator[str]:
    """The databases among files, by their names."""
    return (path for path in files if path.endswith(tuple(STORES)))


def strays_of(files: Iterable[str]) -> dict[str, Mark | None]:
    """Marks of files that belong to no session, and may yet begin one: their first line was not whole."""
    return {path: mark_of(path) for path in files if Path(path).suffix in GROWING}


class Head(NamedTuple):
    """How a file began when it was read: its mark, and a digest of its first bytes."""

    mark: Mark
    size: int
    sha256: str


def head_of(path: str, mark: Mark, most: int | None = None) -> Head | None:
    """The beginning of a file that grows by lines; None for any other, which may be written anew at any time."""
    if Path(path).suffix not in LINED:
        return None
    size = min(mark.size, HEAD) if most is None else most
    try:
        with open_regular(Path(path)) as file:
            data = file.read(size)
    except OSError:
        return None
    return Head(mark, len(data), hashlib.sha256(data).hexdigest())


def happened(path: str, before: Head) -> Happening | None:
    """What happened to a file that should only have grown."""
    now = mark_of(path)
    if now is None:
        return "deleted"
    again = head_of(path, now, before.size)
    if again is not None and (again.size, again.sha256) != (before.size, before.sha256):
        is_same = (now.device, now.inode) == (before.mark.device, before.mark.inode)
        return "truncated" if is_same and now.size < before.size else "replaced"
    return "truncated" if now.size < before.mark.size else None


# -- sessions in databases --------------------------------------------------------------------------------------------


class _Enough(Exception):
    """The adapter has named what it reads."""


class _Probe:
    """A desk that only digests the rows of databases that an adapter asks for."""

    keep_reasoning = False

    def __init__(self) -> None:
        self.hashed = hashlib.sha256()
        self.asked: set[str] = set()

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        lines = text_of_rows(Path(path), selections)
        next(lines)  # how it was read, which may differ from time to time
        for line in lines:
            self.hashed.update(line)
        self.asked.add(path)
        return SourceEntry(id=f"s{len(self.asked)}", kind=kind, path=path)

    def source(self, *_: Any) -> NoReturn:
        raise _Enough

    def __getattr__(self, name: str) -> Any:
        def enough(*_: Any, **__: Any) -> NoReturn:
            raise _Enough

        return enough


def fingerprint(adapter: Stored, session: Session, files: Sequence[str]) -> str | None:
    """A digest of a session's rows; None where it is made of other files besides, or they cannot be read."""
    if any(Path(path).suffix in (*LINED, ".json", ".zst") for path in files):
        return None
    probe = _Probe()
    try:
        adapter.read(session, cast(Desk, probe))
    except _Enough:
        pass
    except Exception:
        return None  # what reads it says what is wrong
    return probe.hashed.hexdigest() if probe.asked == set(files) else None


def sessions_in(roots: Iterable[tuple[Path, str | None]]) -> Iterator[tuple[Stored, Session]]:
    """The sessions of several places, each with the kind that is looked for there."""
    from callsheet.library.importing import search

    for path, kind in roots:
        found, _ = search(path, kind, DiskFolder(path))
        yield from found
