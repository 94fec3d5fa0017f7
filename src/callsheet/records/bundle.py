"""A bundle: a session with its subagents' streams, blobs and native copies (profile, 'Bundle').

Owns ``manifest.json``, the names of streams, and opening a bundle for reading, a folder or a .zip of it. A stream's
id is the native session id when that is a safe file name, else its SHA-256.

Must never know: harnesses, pairing, what a record means.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec

from callsheet.errors import SourceError
from callsheet.records._shapes import Shape
from callsheet.records.session import FORMAT
from callsheet.wire.blobs import blob_path, digest
from callsheet.wire.files import AtomicFile

_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class StreamEntry(Shape, kw_only=True):
    """One stream of a bundle; ``parent`` is the id of the stream it was started from."""

    id: str
    file: str
    parent: str | None = None
    records: int | None = None
    sha256: str | None = None


class NativeSource(Shape, kw_only=True):
    """One native source; ``native`` is the copy inside the bundle, ``masked`` counts places masked in it.

    ``encoding`` names how the file was packed; size and digest are those of the text inside.
    """

    id: str
    kind: str
    path: str
    size: int | None = None
    sha256: str | None = None
    native: str | None = None
    masked: int | None = None
    encoding: str | None = None


class Diagnostic(Shape, kw_only=True):
    """Something worth saying about a source; never a fact of the session. ``line`` is 1-based."""

    code: str
    source: str | None = None
    line: int | None = None
    message: str = ""


class Manifest(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """``manifest.json``."""

    format: str
    streams: list[StreamEntry] = []
    sources: list[NativeSource] = []
    diagnostics: list[Diagnostic] = []


def stream_id(native_session_id: str) -> str:
    """The stream id, and file name, of a native session id."""
    if _SAFE.match(native_session_id):
        return native_session_id
    return digest(native_session_id.encode("utf-8", "surrogatepass"))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes ``manifest.json``; a bundle without it is not complete."""
    with AtomicFile(folder / "manifest.json") as file:
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
        try:
            if path.is_file():
                self._zip = zipfile.ZipFile(path)
            text = self.read("manifest.json")
            self.manifest = msgspec.json.decode(text, type=Manifest)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise SourceError(f"no bundle: {error}", path=str(path)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SourceError(f"manifest.json: {error}", path=str(path)) from None
        if self.manifest.format != FORMAT:
            raise SourceError(f"unknown bundle format {self.manifest.format!r}", path=str(path))

    def _inside(self, name: str) -> PurePosixPath:
        # A manifest is a file like any other: its names must not lead out of the bundle.
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts or "\\" in name or not inside.parts:
            raise SourceError(f"name leads out of the bundle: {name!r}", path=str(self.path))
        return inside

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        """Opens a file of the bundle by its manifest name; seekable."""
        inside = self._inside(name)
        if self._zip is not None:
            # Nobody can seek in a member of a zip: it is unpacked into a file, not into memory.
            with self._zip.open(str(inside)) as member, tempfile.TemporaryFile() as unpacked:
                shutil.copyfileobj(member, unpacked)
                unpacked.seek(0)
                yield unpacked
            return
        path = self.path / inside
        if path.is_symlink():
            raise SourceError(f"is a link: {name!r}", path=str(self.path))
        with path.open("rb") as file:
            yield file

    def read(self, name: str) -> bytes:
        """A whole small file of the bundle."""
        with self.open(name) as file:
            return file.read()

    def blob(self, name: str) -> bytes:
        """The bytes of a blob.

        Raises:
            ValueError: No blob name.
            OSError, KeyError: The blob is not there.
        """
        relative = blob_path(Path(), name)
        return self.read(relative.as_posix())


def is_bundle(path: Path) -> bool:
    """Whether ``path`` looks like a bundle (folder or zip with a manifest)."""
    if path.is_dir():
        return (path / "manifest.json").is_file()
    if not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "manifest.json" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False
