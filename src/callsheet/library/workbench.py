"""Where one session is worked on: the engine's side of the port between it and an adapter.

Owns ``Workbench`` (``harness._port.Desk``): sources and their passes, the streams, blobs, diagnostics and native copies
of the bundle that is being made. Memory does not grow with a source; of diagnostics of one kind the first are kept,
the rest are counted.

Must never know: harnesses, where the bundle will lie.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from callsheet.library.folders import whereabouts
from callsheet.library.sources import Copied, Source, copy_native, masked_places
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
from callsheet.wire import database
from callsheet.wire.blobs import BlobStore
from callsheet.wire.database import Selection
from callsheet.wire.lines import Line, split_lines

OPEN_MOST = 64
"""Sources of a session that stay open; the others are opened for each pass."""
TOLD_MOST = 1_000
"""Diagnostics of one code that are told one by one."""
MESSAGE_MOST = 2_000
"""Characters of a diagnostic; a name from the source may be of any length."""


def printable(path: str) -> str:
    """A path as text that can be written: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


class Workbench:
    """``harness._port.Desk`` for one session."""

    def __init__(
        self,
        folder: Path,
        *,
        keep_reasoning: bool = False,
        settled: bool = False,
        progress: Callable[[int, int], None],
    ) -> None:
        self.keep_reasoning = keep_reasoning
        self._settled = settled
        self.folder = folder
        self.streams: list[StreamEntry] = []
        self.diagnostics: list[Diagnostic] = []
        self.sources: dict[str, Source] = {}
        self.secrets: dict[str, None] = {}
        self.calls = 0
        self.agent_calls = 0
        self.gaps = 0
        self.records = 0
        self._blobs = BlobStore(folder)
        self._progress = progress
        self._size = self._read = 0
        self._names: set[str] = set()
        self._open: list[StreamWriter] = []
        self._numbers: dict[str, int] = {}
        self._told: Counter[str] = Counter()

    def source(self, path: str, kind: str) -> SourceEntry:
        """Registers a file."""
        return self._register(path, kind, None)

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        """Registers chosen rows of a database."""
        return self._register(path, kind, selections)

    def _register(self, path: str, kind: str, rows: list[Selection] | None) -> SourceEntry:
        entry = SourceEntry(id=f"s{len(self.sources)}", kind=kind, path=printable(whereabouts(path)))
        source = Source(Path(path), entry, self.folder, rows, settled=self._settled)
        if len(self.sources) >= OPEN_MOST:
            source.close()
        self.sources[entry.id] = source
        self._size += source.size
        if source.torn is not None:
            self.diagnose("torn_zstd", source.torn, entry)
        return entry

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The lines of a source, from its start."""
        return split_lines(self._chunks(self.sources[source.id]))

    def _chunks(self, source: Source) -> Iterator[bytes]:
        hashed = None if source.entry.sha256 else hashlib.sha256()
        for chunk in source.chunks():
            for stream in self._open:
                stream.flush()
            if hashed is not None:
                hashed.update(chunk)
            self._read += len(chunk)
            self._progress(min(self._read, 2 * self._size), 2 * self._size)
            yield chunk
        if hashed is not None:
            source.entry.sha256 = hashed.hexdigest()
        self._let_go(source)

    def _let_go(self, source: Source) -> None:
        """Closes a source that is not among the first ones: a session may have thousands of files."""
        if int(source.entry.id[1:]) >= OPEN_MOST:
            source.close()

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes of a source at a place."""
        kept = self.sources[source.id]
        kept.file.seek(offset)
        data = kept.file.read(size)
        self._let_go(kept)
        return data

    def whole(self, source: SourceEntry) -> bytes:
        """All bytes of a small source."""
        return b"".join(self._chunks(self.sources[source.id]))

    def keep(self, source: SourceEntry, mime_type: str | None = None) -> BlobRef:
        """Keeps all bytes of a source as a blob, without holding them."""
        name, size = self._blobs.put_stream(self._chunks(self.sources[source.id]))
        return BlobRef(blob=name, size=size, mime_type=mime_type)

    def digest(self, source: SourceEntry) -> str:
        """Digest of all bytes of a source."""
        hashed = hashlib.sha256()
        for chunk in self._chunks(self.sources[source.id]):
            hashed.update(chunk)
        return hashed.hexdigest()

    @contextmanager
    def stream(self, native_id: str, parent: str | None = None) -> Iterator[StreamWriter]:
        """Opens a new stream; two of one name get a number."""
        name = base = stream_id(native_id)
        while name in self._names:
            self._numbers[base] = number = self._numbers.get(base, 1) + 1
            name = f"{base[:56]}-{number}"
        self._names.add(name)
        file = f"streams/{name}.jsonl"
        # In the order in which they were begun, as a recorder has them, whatever order they end in.
        entry = StreamEntry(id=name, file=file, parent=stream_id(parent) if parent else None)
        self.streams.append(entry)
        with StreamWriter(self.folder / file, name) as writer:
            self._open.append(writer)
            try:
                yield writer
            finally:
                self._open.remove(writer)
        self.calls += writer.types[ToolCall]
        if parent is not None:
            self.agent_calls += writer.types[ToolCall]
        self.gaps += writer.types[Gap]
        self.records += writer.records
        entry.records, entry.sha256 = writer.records, writer.sha256

    def blob(self, data: bytes, mime_type: str | None = None) -> BlobRef:
        """Keeps bytes under their digest."""
        return BlobRef(blob=self._blobs.put(data), size=len(data), mime_type=mime_type)

    def diagnose(
        self, code: str, message: str, source: SourceEntry | None = None, line: int | None = None
    ) -> None:
        """Says something about a source; of each code at most ``TOLD_MOST`` one by one."""
        self._told[code] += 1
        if self._told[code] <= TOLD_MOST:
            self.diagnostics.append(
                Diagnostic(
                    code=code, source=source.id if source else None, line=line, message=message[:MESSAGE_MOST]
                )
            )

    def mask(self, source: SourceEntry, secret: str) -> None:
        """Names a secret of a source."""
        self.secrets[secret] = None
        self.sources[source.id].cover.secret(secret)

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        """Names a place of a source that is not to be kept."""
        self.sources[source.id].cover.hide(offset, size)

    def copies(self, *, native: bool) -> list[NativeSource]:
        """Writes native copies; what the manifest says of each source."""
        return [self._native(source, native) for source in self.sources.values()]

    def close(self, main: str, entries: list[NativeSource]) -> None:
        """Writes the manifest; the session's own stream comes first."""
        for code, count in self._told.items():
            if count > TOLD_MOST:
                rest = count - TOLD_MOST
                self.diagnostics.append(Diagnostic(code=code, message=f"and {rest:,} more", count=rest))
        for entry in self.streams:
            if entry.parent not in self._names:
                entry.parent = None  # started from a session that is not in this bundle
        self.streams.sort(key=lambda entry: (entry.parent is not None, entry.id != main))
        write_manifest(
            self.folder,
            Manifest(format=FORMAT, streams=self.streams, sources=entries, diagnostics=self.diagnostics),
        )

    def _native(self, source: Source, native: bool) -> NativeSource:
        """Copies a source, unless it is gone meanwhile: then its records stand without it."""
        entry = source.entry
        path = self.folder / "native" / f"{entry.id}.zst"
        copied: Copied | None = None
        try:
            if entry.sha256 is None:
                for _ in self._chunks(source):
                    pass
            if native:
                copied = copy_native(source, path)
            elif source.cover:
                copied = masked_places(source)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ESTALE, errno.EACCES):
                raise  # the copy cannot be written
            self.diagnose("missing_file", f"{entry.path}: {error.strerror or error}", entry)
            copied, native = None, False
        finally:
            self._let_go(source)
        told = NativeSource(
            id=entry.id,
            kind=entry.kind,
            path=entry.path,
            size=entry.size,
            sha256=entry.sha256,
            encoding=entry.encoding,
        )
        if source.rows is not None and not native and not source.cover:
            told.rows = database.told(source.rows)
        if copied is not None:
            told.native = f"native/{path.name}" if native else None
            told.masked = copied.masked
            if (copied.size, copied.sha256) != (entry.size, entry.sha256):
                self.diagnose(
                    "changed_source", "changed while it was read: the copy is of its last state", entry
                )
                told.size, told.sha256 = copied.size, copied.sha256
        return told

    def release(self) -> None:
        """Closes every source."""
        for source in self.sources.values():
            source.release()
