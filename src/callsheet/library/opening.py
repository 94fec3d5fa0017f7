"""What a person may name as SOURCE, opened for reading as sessions.

Owns the answer to 'what is this?' by content: a bundle (folder or zip), a stream of records, or something
that an agent stored, which is imported into a private folder that is gone afterwards. Standard input is
spooled there first. A folder of bundles is never taken for a folder of native sessions.

Must never know: how a sheet is drawn.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from callsheet.errors import RecordError, SourceError, UsageError, reason_of
from callsheet.records import FORMAT, TYPES
from callsheet.records.bundle import Bundle, Diagnostic, is_bundle, main_stream, streams_below
from callsheet.rows import Limits, Sheet, View
from callsheet.rows.text import Blob
from callsheet.wire.blobs import blob_path
from callsheet.wire.locks import is_locked

Progress = Callable[[str, int, int], None]
OnBad = Callable[[RecordError], None]
OpenFile = Callable[[str], AbstractContextManager[BinaryIO]]
_UNREADABLE = (KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, NotImplementedError)
"""What a broken zip or a missing member may raise."""
_DEPTH = 3
"""Folders below a folder in which bundles are looked for."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How sheets are opened.

    Attributes:
        near: A folder; sources below it are named from there.
        outlined: Sheets know their rows before any is made.
    """

    near: Path | None = None

    view: View = View()
    limits: Limits = Limits()
    provisional: bool = False
    outlined: bool = False
    on_bad: OnBad | None = None
    progress: Progress | None = None


class OpenSession:
    """A session whose streams can be opened as sheets.

    Args:
        name: What to call it in messages.
        files: Stream ids and the names of their files.
        agents: Ids of the streams of its subagents.
        open_file: Opens a stream's file by name.
        blob: Reads its blobs.
        spool: The file that standard input was copied to; it is shown as ``-``.
        reading: How sheets are opened.
        diagnostics: What was worth saying about the sources.

    Attributes:
        main: Id of the session's own stream.
        files: Stream ids and the names of their files.
        agents: Ids of the streams of its subagents.
        open_file: Opens a stream's file by name.
        blob: Reads its blobs; None where there are none.
    """

    def __init__(
        self,
        name: str,
        main: str,
        files: dict[str, str],
        open_file: OpenFile,
        blob: Blob | None,
        reading: Reading,
        spool: Path | None = None,
        diagnostics: Sequence[Diagnostic] = (),
        agents: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.diagnostics = diagnostics
        self.main = main
        self.agents = agents
        self.files = files
        self.open_file = open_file
        self.blob = blob
        self._reading = reading
        self._spool = str(spool)

    @property
    def streams(self) -> list[str]:
        """Ids of all streams."""
        return list(self.files)

    @contextmanager
    def sheet(self, stream: str, *, quiet: bool = False) -> Iterator[Sheet]:
        """Opens a stream.

        Args:
            stream: Its id.
            quiet: It is opened another time: nothing is told of its bad lines.

        Raises:
            SourceError: It is not there, or cannot be read.
        """
        name = self.files[stream]
        shown = self.name if len(self.files) == 1 else f"{self.name}/{name}"
        with ExitStack() as stack:
            try:
                file = stack.enter_context(self.open_file(name))
            except _UNREADABLE as error:
                reason = reason_of(error) if isinstance(error, OSError) else "cannot be read"
                raise SourceError(f"stream {name}: {reason}", path=self.name) from None
            size = file.seek(0, 2)
            progress = self._reading.progress
            sheet = Sheet(
                file,
                name=shown,
                blob=self.blob,
                view=self._reading.view,
                limits=self._reading.limits,
                provisional=self._reading.provisional,
                outlined=self._reading.outlined,
                on_bad=None if quiet else self._reading.on_bad,
                on_bytes=None if progress is None else lambda done: progress(shown, done, size),
            )
            for entry in (sheet.session.sources or ()) if sheet.session else ():
                entry.path = "-" if entry.path == self._spool else _named_from(entry.path, self._reading.near)
            yield sheet

    @contextmanager
    def sheets(self) -> Iterator[dict[str, Sheet]]:
        """Opens every stream, the session's own first."""
        with ExitStack() as stack:
            names = [self.main, *(name for name in self.files if name != self.main)]
            yield {name: stack.enter_context(self.sheet(name)) for name in names}


def _named_from(path: str, folder: Path | None) -> str:
    below = folder is not None and Path(path).is_relative_to(folder)
    return str(Path(path).relative_to(folder)) if folder is not None and below else path


@contextmanager
def open_sessions(
    source: str, reading: Reading, *, stream: str | None = None, on_failure: Callable[[str], None]
) -> Iterator[Iterator[OpenSession]]:
    """Opens SOURCE.

    Args:
        source: Path, or ``-``.
        reading: How sheets are opened.
        stream: Only this stream, and what it leads to.
        on_failure: Told of each session of a folder that cannot be read.

    Yields:
        The sessions, one after another; each is read before the next is opened.

    Raises:
        SourceError: Nothing can be read there.
        UsageError: No such stream.
    """
    with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
        path = Path(source)
        if source == "-":
            path = Path(folder) / "stdin.jsonl"
            with path.open("xb") as spool:
                shutil.copyfileobj(sys.stdin.buffer, spool)
        yield _sessions(path, source, Path(folder), reading, stream, on_failure)


def _sessions(
    path: Path,
    name: str,
    folder: Path,
    reading: Reading,
    stream: str | None,
    on_failure: Callable[[str], None],
) -> Iterator[OpenSession]:
    if not path.exists():
        raise SourceError("no such file or folder", path=name)
    if is_bundle(path):
        yield _of_bundle(path, name, reading, stream)
    elif path.is_file() and zipfile.is_zipfile(path):
        raise SourceError("a zip without manifest.json is no bundle", path=name)
    elif path.is_file() and is_stream(path):
        yield _of_stream(path, name, reading, stream)
    else:
        yield from _of_native(path, name, folder, reading, stream, on_failure)


def is_stream(path: Path) -> bool:
    """Whether a file's first line is a record of a stream: by its members, never by the file's name."""
    with path.open("rb") as file:
        line = file.readline(1 << 24).lstrip(b"\xef\xbb\xbf")
    try:
        head = msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if head.type == "session" and head.format is not None:
        return head.format == FORMAT
    return head.type in TYPES and isinstance(head.seq, int) and isinstance(head.id, str)


class _Head(msgspec.Struct):
    type: str | None = None
    format: str | None = None
    seq: int | None = None
    id: str | None = None


def open_bundle(path: Path, reading: Reading, name: str | None = None) -> OpenSession:
    """The session of a bundle.

    Raises:
        SourceError: No bundle, or none with a stream.
    """
    return _of_bundle(path, str(path) if name is None else name, reading, None)


def _of_bundle(
    path: Path, name: str, reading: Reading, stream: str | None, spool: Path | None = None
) -> OpenSession:
    bundle = Bundle(path)
    entries = bundle.manifest.streams
    if not entries:
        raise SourceError("the bundle has no stream", path=name)
    files = {entry.id: entry.file for entry in entries}
    main = main_stream(entries).id
    if stream is not None:
        if stream not in files:
            raise UsageError(f"{name}: no stream {stream} (there is: {', '.join(files)})")
        main = stream
    below = streams_below(entries, main)
    if stream is not None:
        files = {one: files[one] for one in below}
    agents = [one for one in below if one != main]
    told = bundle.manifest.diagnostics
    if bundle.manifest.recording and is_locked(path):
        reading = msgspec.structs.replace(reading, provisional=True)
    return OpenSession(name, main, files, bundle.open, bundle.blob, reading, spool, told, agents)


def _of_stream(path: Path, name: str, reading: Reading, stream: str | None) -> OpenSession:
    own = path.stem
    if stream not in (None, own):
        raise UsageError(f"{name}: no stream {stream} (there is: {own})")
    around = path.absolute().parent.parent

    def blob(wanted: str) -> bytes:
        return blob_path(around, wanted).read_bytes()

    return OpenSession(name, own, {own: path.name}, lambda _: path.open("rb"), blob, reading)


def _of_native(
    path: Path,
    name: str,
    folder: Path,
    reading: Reading,
    stream: str | None,
    on_failure: Callable[[str], None],
) -> Iterator[OpenSession]:
    from callsheet.library.importing import Failure, import_sources

    read = 0
    shown = False
    first: SourceError | None = None
    for one in import_sources([path], folder / "bundles", native=False, progress=reading.progress):
        if isinstance(one, Failure):
            place = name if one.path == str(path) else one.path
            error = SourceError(one.message, path=place, line=one.line)
            if not path.is_dir():
                raise error
            if not read and first is None:
                first = error  # it may be all that there is to say
                continue
            if first is not None:
                on_failure(str(first))
                first = None
            on_failure(str(error))
            continue
        if first is not None:
            on_failure(str(first))
            first = None
        read += 1
        spool = path if name == "-" else None
        # A database holds many sessions: a stream that is asked for is in one of them.
        if stream is None or any(entry.id == stream for entry in Bundle(one.bundle).manifest.streams):
            shown = True
            yield _of_bundle(one.bundle, name, reading, stream, spool)
        shutil.rmtree(one.bundle, ignore_errors=True)
    if first is not None:
        raise first
    if not read:
        raise SourceError("no session here can be read", path=name)
    if not shown:
        raise UsageError(f"{name}: no stream {stream} in any session here")


def bundles_in(folder: Path, on_failure: Callable[[str], None] | None = None) -> list[Path]:
    """The bundles below a folder, which is none itself.

    Args:
        folder: The folder.
        on_failure: Told of each folder below it that cannot be listed.

    Raises:
        OSError: The folder itself cannot be listed.
    """
    found: list[Path] = []
    folders = [folder]
    for _ in range(_DEPTH):
        inner = []
        for at in folders:
            try:
                inner += [one for one in sorted(at.iterdir()) if not one.name.startswith(".")]
            except OSError as error:
                if at == folder:
                    raise
                if on_failure is not None:
                    on_failure(f"{at}: {reason_of(error)}")
        bundles = {one for one in inner if is_bundle(one)}
        found += [one for one in inner if one in bundles]
        folders = [one for one in inner if one.is_dir() and not one.is_symlink() and one not in bundles]
    return found


def native_files(folder: Path) -> Counter[str]:
    """The files below a folder that hold native sessions, and how many each."""
    from callsheet.library.importing import find_sessions

    try:
        return Counter(session.main for _, session in find_sessions(folder, None))
    except SourceError:
        return Counter()
