"""A bundle: a session with its subagents' streams, blobs and native copies (profile, 'Bundle').

Owns ``manifest.json``, the names of streams, and opening a bundle for reading, a folder or a .zip of it (of its
contents, or of the folder itself). A stream's id is the native session id when that is a safe file name, else its
SHA-256. A bundle may come from anybody: no name leads out of it, nothing that is no regular file is opened, and
nothing unpacks without bounds.

Must never know: harnesses, pairing, what a record means.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import msgspec

from callsheet.errors import SourceError, reason_of
from callsheet.records._shapes import Shape
from callsheet.records.session import FORMAT
from callsheet.wire.blobs import blob_path, digest
from callsheet.wire.files import AtomicFile
from callsheet.wire.lines import CHUNK

MANIFEST = "manifest.json"
READ_MOST = 256_000_000
"""Bytes up to which a file of a bundle is read into memory."""
UNPACK_FREELY = 64_000_000
UNPACK_RATIO = 200
"""A member of a zip that is larger than ``UNPACK_FREELY`` and packed tighter than this is not unpacked: no text is."""

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""What a broken zip, or one of a kind that is not known here, may raise."""


class StreamEntry(Shape, kw_only=True):
    """One stream of a bundle; ``parent`` is the id of the stream it was started from."""

    id: str
    file: str
    parent: str | None = None
    records: int | None = None
    sha256: str | None = None


def main_stream(entries: Sequence[StreamEntry]) -> StreamEntry:
    """The stream of the session itself, among at least one: the first that nothing started."""
    return next((entry for entry in entries if entry.parent is None), entries[0])


def streams_below(entries: Sequence[StreamEntry], root: str) -> list[str]:
    """Ids of a stream and of those that were started from it, by way of others too: a session and its agents.

    Args:
        entries: Streams of a bundle, in the order in which they are answered.
        root: Id of the stream.
    """
    parents = {entry.id: entry.parent for entry in entries}
    below = {root}
    for name in parents:
        way: dict[str, None] = {}
        at: str | None = name
        while at in parents and at not in below and at not in way:
            way[at] = None
            at = parents[at]
        if at in below:
            below.update(way)
    return [name for name in parents if name in below]


class NativeSource(Shape, kw_only=True):
    """One native source; ``native`` is the copy inside the bundle, ``masked`` counts places masked in it.

    ``encoding`` names how the file was packed; size and digest are those of the text inside. Of a database that the
    bundle has no copy of, ``rows`` tells which rows that text is made of.
    """

    id: str
    kind: str
    path: str
    size: int | None = None
    sha256: str | None = None
    native: str | None = None
    masked: int | None = None
    encoding: str | None = None
    rows: list[dict[str, Any]] | None = None


class Diagnostic(Shape, kw_only=True):
    """Something worth saying about a source; never a fact of the session. ``line`` is 1-based.

    ``count`` is how many further ones of this code are not told one by one.
    """

    code: str
    source: str | None = None
    line: int | None = None
    message: str = ""
    count: int | None = None


class Manifest(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """``manifest.json``.

    Attributes:
        recording: The bundle is being recorded, or its recorder ended before it could finish: streams and the native
            source have no size and no digest yet, and the last line of each may be torn.
    """

    format: str
    recording: bool = False
    streams: list[StreamEntry] = []
    sources: list[NativeSource] = []
    diagnostics: list[Diagnostic] = []


def stream_id(native_session_id: str) -> str:
    """The stream id, and file name, of a native session id."""
    if _SAFE.match(native_session_id):
        return native_session_id
    return digest(native_session_id.encode("utf-8", "surrogatepass"))


def write_manifest(folder: Path, manifest: Manifest, *, sync: bool = False) -> None:
    """Writes ``manifest.json``; a bundle without it is not complete."""
    with AtomicFile(folder / MANIFEST, sync=sync) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


class Bundle:
    """A bundle opened for reading.

    Args:
        path: A folder with ``manifest.json``, or a .zip of one.

    Raises:
        SourceError: No bundle there, or its manifest is broken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None
        self._top = ""
        try:
            if path.is_file():
                self._zip = zipfile.ZipFile(path)
                self._top = _top_of(self._zip)
            text = self.read(MANIFEST)
            self.manifest = msgspec.json.decode(text, type=Manifest)
        except PermissionError as error:
            raise SourceError(reason_of(error), path=str(path)) from None
        except (OSError, KeyError):
            what = f"no bundle: there is no {MANIFEST}" if path.exists() else "no such file or folder"
            raise SourceError(what, path=str(path)) from None
        except _BAD_ZIP as error:
            if isinstance(error, RecursionError):
                raise SourceError(f"{MANIFEST}: nested too deeply", path=str(path)) from None
            if not zipfile.is_zipfile(path):
                what = "is no bundle: a bundle is a folder, or a zip of one (callsheet import makes bundles)"
                raise SourceError(what, path=str(path)) from None
            raise SourceError(f"no bundle: the zip cannot be read ({error})", path=str(path)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SourceError(f"{MANIFEST}: {error}", path=str(path)) from None
        if self.manifest.format != FORMAT:
            raise SourceError(f"unknown bundle format {self.manifest.format!r}", path=str(path))

    def _inside(self, name: str) -> PurePosixPath:
        # A manifest is a file like any other: its names must not lead out of the bundle.
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or set(name) & {"\\", "\0"} or not inside.parts:
            raise SourceError(f"name leads out of the bundle: {name!r}", path=str(self.path))
        return inside

    def _on_disk(self, name: str) -> Path:
        path = self.path
        for part in self._inside(name).parts:
            path = path / part
            if path.is_symlink():
                raise SourceError(f"is a link: {name!r}", path=str(self.path))
        return path

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Opens a file of the bundle by its manifest name; seekable.

        Raises:
            SourceError: The name leads elsewhere, or what is there is nothing to be read.
            OSError, KeyError: It is not there.
            zipfile.BadZipFile, zlib.error, EOFError, RuntimeError: The zip is damaged, or of a kind not known here.
        """
        if self._zip is not None:
            # Nobody can seek in a member of a zip: it is unpacked into a file, not into memory.
            info = self._zip.getinfo(self._top + str(self._inside(name)))
            if info.file_size > max(UNPACK_FREELY, UNPACK_RATIO * info.compress_size):
                sizes = f"{info.compress_size:,} bytes to {info.file_size:,}"
                raise SourceError(f"{name} would unpack from {sizes}: not unpacked", path=str(self.path))
            with self._zip.open(info) as member, tempfile.TemporaryFile() as unpacked:
                shutil.copyfileobj(member, unpacked)
                unpacked.seek(0)
                yield unpacked
            return
        path = self._on_disk(name)
        growing = name != MANIFEST and self.manifest.recording
        # Without O_NONBLOCK the open itself would wait for a pipe's writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SourceError(f"is no regular file: {name!r}", path=str(self.path))
            if not growing:
                yield file
                return
            # What stands behind the last line end is still being written, or was torn when the recorder ended.
            with io.BufferedReader(_Head(file, _whole_lines(file))) as head:
                yield cast(BinaryIO, head)

    def names(self) -> list[str]:
        """Every file in it, by the name that ``open`` takes; links and what they lead to are left out."""
        if self._zip is not None:
            names = (info.filename for info in self._zip.infolist() if not info.is_dir())
            return sorted(name.removeprefix(self._top) for name in names if name.startswith(self._top))
        found = []
        for folder, _, files in os.walk(self.path):
            for name in files:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    found.append(path.relative_to(self.path).as_posix())
        return sorted(found)

    def size(self, name: str) -> int | None:
        """Bytes of a file of the bundle; None when nothing is there that can be read."""
        try:
            if self._zip is not None:
                return self._zip.getinfo(self._top + str(self._inside(name))).file_size
            path = self._on_disk(name)
            return path.stat().st_size if path.is_file() else None
        except (OSError, KeyError, SourceError):
            return None

    def read(self, name: str) -> bytes:
        """A whole file of the bundle, of at most ``READ_MOST`` bytes."""
        with self.open(name) as file:
            # Python sets aside as much memory as is asked for.
            size = file.seek(0, 2)
            file.seek(0)
            data = file.read(min(size, READ_MOST) + 1)
        if len(data) > READ_MOST:
            raise SourceError(f"{name} is larger than {READ_MOST:,} bytes", path=str(self.path))
        return data

    def blob(self, name: str) -> bytes:
        """The bytes of a blob.

        Raises:
            ValueError: No blob name.
            OSError, KeyError: The blob is not there, or cannot be read.
        """
        relative = blob_path(Path(), name)
        try:
            return self.read(relative.as_posix())
        except (SourceError, *_BAD_ZIP) as error:
            raise OSError(str(error)) from None


def _whole_lines(file: BinaryIO) -> int:
    """How many bytes of a file of lines are whole lines."""
    at = file.seek(0, 2)
    while at > 0:
        start = max(0, at - CHUNK)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0


class _Head(io.RawIOBase):
    """The first bytes of a file, as a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._file = file
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._at)
        data = self._file.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def _top_of(archive: zipfile.ZipFile) -> str:
    """The folder inside a zip that holds the bundle: none, or the one that was packed."""
    names = set(archive.namelist())
    if MANIFEST in names:
        return ""
    tops = {name.partition("/")[0] for name in names if not name.startswith("__MACOSX/")}
    top = f"{tops.pop()}/" if len(tops) == 1 else ""
    return top if top + MANIFEST in names else ""


def is_bundle(path: Path) -> bool:
    """Whether ``path`` looks like a bundle (folder or zip with a manifest)."""
    try:
        if path.is_dir():
            return (path / MANIFEST).is_file()
        if not path.is_file():
            return False
        with zipfile.ZipFile(path) as archive:
            return _top_of(archive) + MANIFEST in archive.namelist()
    except (OSError, *_BAD_ZIP):
        return False
