"""The import engine: native sources in, bundles out.

Owns: opening sources for the adapters, guessing the kind by content, one folder per session under the
output folder, streams, blobs, native copies and the manifest, and what is said to the person. A session's
bundle is built beside its final place and renamed into it, so an interrupted import leaves nothing
half-written; an earlier bundle of the same session is replaced whole. Memory does not grow with a source.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from callsheet.errors import SourceError, UsageError
from callsheet.harness import HARNESSES
from callsheet.harness._port import Session, Stored
from callsheet.library.folders import DiskFolder, is_own, is_stream, open_regular, regular
from callsheet.library.sources import Source, copy_native, masked_places
from callsheet.records import FORMAT, BlobRef, Gap, SourceEntry, ToolCall
from callsheet.records.bundle import (
    Diagnostic,
    Manifest,
    NativeSource,
    StreamEntry,
    stream_id,
    write_manifest,
)
from callsheet.records.stream import StreamWriter
from callsheet.wire.blobs import BlobStore, digest
from callsheet.wire.database import Selection
from callsheet.wire.files import private_folder
from callsheet.wire.lines import CHUNK, Line, split_lines

Progress = Callable[[str, int, int], None]
"""Called with the session's main path, bytes read so far, bytes to read (both passes counted)."""


OPEN_MOST = 64
"""Sources of a session that stay open; the others are opened for each pass."""


class Imported(msgspec.Struct, kw_only=True):
    """What became of one session (the command line prints it with ``--json``)."""

    session: str
    kind: str
    bundle: Path
    stream: str
    records: int
    calls: int
    gaps: int
    diagnostics: list[Diagnostic] = []


class Failure(msgspec.Struct, kw_only=True):
    """A source that gave no session; the others went on."""

    path: str
    message: str
    line: int | None = None


class Found(msgspec.Struct, kw_only=True):
    """Where this user's agents keep sessions."""

    kind: str
    path: Path
    sessions: int


class Workbench:
    """``harness._port.Desk`` for one session."""

    def __init__(self, folder: Path, *, keep_reasoning: bool, progress: Callable[[int], None]) -> None:
        self.keep_reasoning = keep_reasoning
        self.folder = folder
        self.streams: list[StreamEntry] = []
        self.diagnostics: list[Diagnostic] = []
        self.sources: dict[str, Source] = {}
        self.calls = 0
        self.gaps = 0
        self.records = 0
        self._blobs = BlobStore(folder)
        self._progress = progress

    def source(self, path: str, kind: str) -> SourceEntry:
        return self._register(path, kind, None)

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        return self._register(path, kind, selections)

    def _register(self, path: str, kind: str, rows: list[Selection] | None) -> SourceEntry:
        entry = SourceEntry(id=f"s{len(self.sources)}", kind=kind, path=printable(path))
        source = Source(Path(path), entry, self.folder, rows)
        if len(self.sources) >= OPEN_MOST:
            source.close()
        self.sources[entry.id] = source
        if source.torn is not None:
            self.diagnose("torn_zstd", source.torn, entry)
        return entry

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        return split_lines(self._chunks(self.sources[source.id]))

    def _chunks(self, source: Source) -> Iterator[bytes]:
        hashed = None if source.entry.sha256 else hashlib.sha256()
        for chunk in source.chunks():
            if hashed is not None:
                hashed.update(chunk)
            self._progress(len(chunk))
            yield chunk
        if hashed is not None:
            source.entry.sha256 = hashed.hexdigest()
        self._let_go(source)

    def _let_go(self, source: Source) -> None:
        """Closes a source that is not among the first ones: a session may have thousands of files."""
        if int(source.entry.id[1:]) >= OPEN_MOST:
            source.close()

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        kept = self.sources[source.id]
        kept.file.seek(offset)
        data = kept.file.read(size)
        self._let_go(kept)
        return data

    def whole(self, source: SourceEntry) -> bytes:
        return b"".join(self._chunks(self.sources[source.id]))

    @contextmanager
    def stream(self, native_id: str, parent: str | None = None) -> Iterator[StreamWriter]:
        name = stream_id(native_id)
        taken = {entry.id for entry in self.streams}
        base, number = name, 2
        while name in taken:
            name, number = f"{base[:56]}-{number}", number + 1
        path = self.folder / "streams" / f"{name}.jsonl"
        with StreamWriter(path, name) as writer:
            yield writer
        self.calls += writer.types[ToolCall]
        self.gaps += writer.types[Gap]
        self.records += writer.records
        self.streams.append(
            StreamEntry(
                id=name,
                file=f"streams/{name}.jsonl",
                parent=stream_id(parent) if parent else None,
                records=writer.records,
                sha256=writer.sha256,
            )
        )

    def blob(self, data: bytes, mime_type: str | None = None) -> BlobRef:
        return BlobRef(blob=self._blobs.put(data), size=len(data), mime_type=mime_type)

    def diagnose(
        self, code: str, message: str, source: SourceEntry | None = None, line: int | None = None
    ) -> None:
        self.diagnostics.append(
            Diagnostic(code=code, source=source.id if source else None, line=line, message=message)
        )

    def mask(self, source: SourceEntry, secret: str) -> None:
        self.sources[source.id].cover.secret(secret)

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        self.sources[source.id].cover.hide(offset, size)

    def close(self, main: str, native: bool) -> None:
        """Writes native copies and the manifest; the session's own stream comes first."""
        entries = [self._native(source, native) for source in self.sources.values()]
        self.streams.sort(key=lambda entry: (entry.id != main, entry.parent is not None))
        write_manifest(
            self.folder,
            Manifest(format=FORMAT, streams=self.streams, sources=entries, diagnostics=self.diagnostics),
        )

    def _native(self, source: Source, native: bool) -> NativeSource:
        entry = source.entry
        if entry.sha256 is None:
            for _ in self._chunks(source):
                pass
        told = NativeSource(
            id=entry.id,
            kind=entry.kind,
            path=entry.path,
            size=entry.size,
            sha256=entry.sha256,
            encoding=entry.encoding,
        )
        if native:
            told.native = f"native/{entry.id}.zst"
            told.masked = copy_native(source, self.folder / told.native)
            self._let_go(source)
        elif source.cover:
            told.masked = masked_places(source)
        return told

    def release(self) -> None:
        """Closes every source."""
        for source in self.sources.values():
            source.release()


def printable(path: str) -> str:
    """A path as text that can be written: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def adapter_for(kind: str) -> Stored:
    """The adapter of a kind.

    Raises:
        UsageError: No such kind.
    """
    for adapter in HARNESSES:
        if adapter.kind == kind:
            return adapter
    known = ", ".join(adapter.kind for adapter in HARNESSES)
    raise UsageError(f"unknown kind {kind!r} (known: {known})")


def find_sessions(path: Path, kind: str | None) -> list[tuple[Stored, Session]]:
    """The sessions of a file or folder.

    Raises:
        SourceError: Nothing there, not readable, or a file that fits no kind.
    """
    folder = DiskFolder()
    adapters = [adapter_for(kind)] if kind else list(HARNESSES)
    if path.is_dir():
        if is_own(path):
            raise SourceError("is a bundle of callsheet's own (see: callsheet show)", path=str(path))
        found: list[tuple[Stored, Session]] = []
        claimed: set[str] = set()
        for adapter in adapters:
            # A file that two adapters would read belongs to the first of them, as it does when it is given alone.
            sessions = [one for one in adapter.sessions(str(path), folder) if one.main not in claimed]
            claimed.update(one.main for one in sessions)
            found += [(adapter, session) for session in sessions]
        if not found:
            raise SourceError("no sessions found in this folder", path=str(path))
        return found
    try:
        with open_regular(path) as file:
            head = file.read(CHUNK)
    except (OSError, ValueError) as error:
        raise SourceError(getattr(error, "strerror", None) or str(error), path=str(path)) from None
    if is_stream(head):
        raise SourceError("is a stream of callsheet's own (see: callsheet show)", path=str(path))
    if kind is None:
        adapters = [adapter for adapter in adapters if adapter.recognises(path.name, head)][:1]
    if not adapters:
        raise SourceError(_unfit(head), path=str(path))
    return [(adapter, session) for adapter in adapters for session in adapter.sessions(str(path), folder)]


def import_session(
    adapter: Stored,
    session: Session,
    out: Path,
    *,
    native: bool = True,
    keep_reasoning: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Imports one session into ``out/<stream id>``.

    Raises:
        SourceError: The session cannot be read.
    """
    private_folder(out)
    name = stream_id(session.native_id)
    place = _place(out / name, session.main)
    part = Path(tempfile.mkdtemp(prefix=f".{name[:40]}.", suffix=".part", dir=out))
    done = 0

    def step(size: int) -> None:
        nonlocal done
        done += size
        if progress is not None:
            total = 2 * sum(source.size for source in desk.sources.values())
            progress(session.main, min(done, total), total)

    desk = Workbench(part, keep_reasoning=keep_reasoning, progress=step)
    try:
        adapter.read(session, desk)
        if not desk.streams:
            raise SourceError("holds no records", path=session.main)
        if place.name != name:
            desk.diagnose(
                "same_session", f"another file of this session is in {name}: {printable(session.main)}"
            )
        main = name if any(entry.id == name for entry in desk.streams) else desk.streams[0].id
        fuller = _fuller(place, desk)
        if fuller is not None:
            desk.diagnose("source_shrank", f"an earlier import had more of it, and is kept as {fuller.name}")
        desk.close(main, native)
        final = _publish(part, place, fuller)
    except OSError as error:
        raise SourceError(error.strerror or str(error), path=str(error.filename or session.main)) from None
    finally:
        desk.release()
        shutil.rmtree(part, ignore_errors=True)
    return Imported(
        session=session.native_id,
        kind=session.kind,
        bundle=final,
        stream=main,
        records=desk.records,
        calls=desk.calls,
        gaps=desk.gaps,
        diagnostics=desk.diagnostics,
    )


def _place(usual: Path, main: str) -> Path:
    """Where a session's bundle belongs: under its name, or beside it when another file of it is there.

    A bundle is replaced by a later import of the file it was made from, or when that file is gone (it was
    moved). Two files that are both there, say a copy and its original, keep a bundle each.
    """
    manifest = _manifest(usual)
    if manifest is None:
        return usual
    sources = {os.path.realpath(source.path) for source in manifest.sources}
    own = os.path.realpath(printable(main))
    if own in sources or not any(regular(Path(source)) for source in sources):
        return usual
    return usual.with_name(f"{usual.name[:55]}-{digest(os.fsencode(own))[:8]}")


def _fuller(place: Path, desk: Workbench) -> Path | None:
    """Where to keep an earlier bundle that was made when the source was longer: it holds what is gone since."""
    manifest = _manifest(place)
    if manifest is None or not manifest.sources:
        return None
    # Several sources may be parts of one file: sessions of one database.
    now: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for source in desk.sources.values():
        now[source.entry.path] += source.size
    for one in manifest.sources:
        before[one.path] += one.size or 0
    shrunk = [one for one in manifest.sources if one.path in now and before[one.path] > now[one.path]]
    mark = next((one.sha256 for one in shrunk if one.sha256), None)
    return place.with_name(f"{place.name[:55]}-{mark[:8]}") if mark else None


def _manifest(folder: Path) -> Manifest | None:
    try:
        return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def _publish(part: Path, final: Path, fuller: Path | None) -> Path:
    """Renames a finished bundle into place, in place of an earlier one of the same session.

    Args:
        part: The finished bundle.
        final: Its place.
        fuller: Where the earlier one is to be kept; None when it may go.
    """
    old: Path | None = None
    if final.exists() or final.is_symlink():
        if not (final / "manifest.json").is_file():
            raise SourceError("exists and is no bundle; not replaced", path=str(final))
        old = Path(tempfile.mkdtemp(prefix=f".{final.name[:40]}.", suffix=".old", dir=final.parent))
        final.rename(old / "bundle")
    part.rename(final)
    if old is not None and fuller is not None and not fuller.exists():
        (old / "bundle").rename(fuller)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return final


def import_sources(
    paths: list[Path],
    out: Path,
    *,
    kind: str | None = None,
    native: bool = True,
    keep_reasoning: bool = False,
    progress: Progress | None = None,
) -> Iterator[Imported | Failure]:
    """Imports every session of every path; a source that fails is a ``Failure`` and the others go on."""
    seen: set[tuple[str, str, str]] = set()
    for path in paths:
        try:
            found = find_sessions(path, kind)
        except SourceError as error:
            yield Failure(path=printable(error.path or str(path)), message=error.message, line=error.line)
            continue
        taken = {file for _, session in found for file in (session.main, *session.files)}
        for adapter, session in found:
            key = (session.kind, session.native_id, os.path.realpath(session.main))
            if key in seen:
                continue
            seen.add(key)
            try:
                yield import_session(
                    adapter, session, out, native=native, keep_reasoning=keep_reasoning, progress=progress
                )
            except SourceError as error:
                yield Failure(
                    path=printable(error.path or session.main), message=error.message, line=error.line
                )
        if path.is_dir():
            for file in DiskFolder().files(str(path), "**/*.jsonl"):
                if file not in taken:
                    yield Failure(path=printable(file), message=_unfit(DiskFolder().head(file, 1)))


def _unfit(head: bytes) -> str:
    return "fits no known kind of session (see: callsheet harnesses)" if head else "the file is empty"


def discover(environ: Mapping[str, str], home: Path) -> list[Found]:
    """Where the agents of this user keep sessions, and how many are there."""
    folder = DiskFolder()
    found = []
    for adapter in HARNESSES:
        for place in adapter.places(dict(environ), str(home)):
            if Path(place).is_dir():
                sessions = adapter.sessions(place, folder)
                found.append(Found(kind=adapter.kind, path=Path(place), sessions=len(sessions)))
    return found


__all__ = [
    "Failure",
    "Found",
    "Imported",
    "adapter_for",
    "discover",
    "find_sessions",
    "import_session",
    "import_sources",
]
