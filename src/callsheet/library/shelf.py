"""Where bundles lie: one folder per session below the output folder, and what becomes of an earlier one.

Owns the choice of a bundle's place, the lock under which it is chosen and taken, and the renaming. A bundle is
replaced by a later import of the file it was made from, or when that file is gone (it was moved). Two files of one
session that are both there, say a copy and its original, keep a bundle each; an earlier bundle that holds what its
source has lost since is kept beside the new one. What is no bundle of callsheet's own is never replaced.

Must never know: harnesses, records.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from callsheet.errors import SourceError
from callsheet.library.folders import open_regular, regular, whereabouts
from callsheet.library.workbench import printable
from callsheet.records.bundle import MANIFEST, READ_MOST, Manifest, NativeSource
from callsheet.wire.blobs import digest

_FORMATS = "callsheet/"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder against other imports; where the system has no such lock, goes on without."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems lock nothing
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def place_for(usual: Path, main: str) -> Path:
    """Where a session's bundle belongs: under its name, or beside it when another file of it is there.

    Args:
        usual: The session's own place.
        main: The session's file.
    """
    manifest = _manifest(usual)
    if manifest is None:
        return usual
    own = os.path.realpath(printable(main))
    if any(os.path.realpath(source.path) == own for source in manifest.sources):
        return usual
    if not any(_is_there(source.path) for source in manifest.sources):
        return usual
    return usual.with_name(f"{usual.name[:55]}-{digest(os.fsencode(own))[:8]}")


def _is_there(source: str) -> bool:
    # Neither standard input nor a path that is not UTF-8 can be looked up by what the manifest says of it.
    return source == "-" or "\ufffd" in source or regular(Path(source))


def fuller_place(place: Path, sources: Iterable[NativeSource]) -> Path | None:
    """Where to keep an earlier bundle that was made when the source was longer: it holds what is gone since."""
    manifest = _manifest(place)
    if manifest is None or not manifest.sources:
        return None
    # Several sources may be parts of one file: sessions of one database.
    now: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for source in sources:
        now[source.path] += source.size or 0
    for one in manifest.sources:
        # Bundles of earlier versions name their sources as the person did.
        one.path = whereabouts(one.path)
        before[one.path] += one.size or 0
    shrunk = [one for one in manifest.sources if one.path in now and before[one.path] > now[one.path]]
    mark = next((one.sha256 for one in shrunk if one.sha256), None)
    return place.with_name(f"{place.name[:55]}-{mark[:8]}") if mark else None


def _manifest(folder: Path) -> Manifest | None:
    """The manifest of a bundle of callsheet's own; None where there is none."""
    try:
        with open_regular(folder / MANIFEST) as file:
            size = min(file.seek(0, 2), READ_MOST)
            file.seek(0)
            manifest = msgspec.json.decode(file.read(size), type=Manifest)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return manifest if manifest.format.startswith(_FORMATS) else None


def publish(part: Path, final: Path, fuller: Path | None) -> None:
    """Renames a finished bundle into place, in place of an earlier one of the same session.

    Args:
        part: The finished bundle.
        final: Its place.
        fuller: Where the earlier one is to be kept; None when it may go.

    Raises:
        SourceError: Something else is there.
        OSError: It cannot be renamed.
    """
    old: Path | None = None
    if os.path.lexists(final):
        if _manifest(final) is None:
            raise SourceError("exists and is no bundle; not replaced", path=str(final))
        old = Path(tempfile.mkdtemp(prefix=f".{final.name[:40]}.", suffix=".old", dir=final.parent))
    try:
        if old is not None:
            final.rename(old / "bundle")
        part.rename(final)
    except BaseException:
        if old is not None and (old / "bundle").exists() and not os.path.lexists(final):
            (old / "bundle").rename(final)
        raise
    finally:
        if old is not None:
            if fuller is not None and not os.path.lexists(fuller) and (old / "bundle").exists():
                (old / "bundle").rename(fuller)
            shutil.rmtree(old, ignore_errors=True)
