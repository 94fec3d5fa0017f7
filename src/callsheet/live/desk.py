"""The desk of a fold while a bundle is being recorded, and when it is recovered: blobs, diagnostics, the log so far.

Owns ``LiveDesk`` (``harness._port.Desk``). A blob is whole on disk before the record that names it is written; its
fsync comes with the next group. A live connection has one source, the frame log, and no neighbourhood.

Must never know: harnesses, processes.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from callsheet.errors import ProducerError
from callsheet.harness._port import Stream
from callsheet.records import BlobRef, SourceEntry
from callsheet.records.bundle import Diagnostic
from callsheet.wire.blobs import BlobStore, blob_path
from callsheet.wire.files import read_chunks, sync_folder
from callsheet.wire.lines import Line, split_lines

if TYPE_CHECKING:
    from callsheet.wire.database import Selection

TOLD_MOST = 1_000
"""Diagnostics of one code that are told one by one."""
MESSAGE_MOST = 2_000


class LiveDesk:
    """``harness._port.Desk`` over the frame log of one bundle.

    Args:
        folder: The bundle.
        log: Its frame log.
        before_read: Called before the log is read, so that what is held back is written.
    """

    keep_reasoning = False

    def __init__(self, folder: Path, log: Path, before_read: Callable[[], None]) -> None:
        self._folder = folder
        self._log = log
        self._before_read = before_read
        self._blobs = BlobStore(folder)
        self._unsynced: list[str] = []
        self._told: Counter[str] = Counter()
        self.diagnostics: list[Diagnostic] = []

    def source(self, path: str, kind: str) -> SourceEntry:
        """A live connection has no other source than its log."""
        raise ProducerError(f"a live connection has no source {path} of kind {kind}")

    def database(self, path: str, kind: str, selections: list[Selection]) -> SourceEntry:
        """A live connection has no database."""
        raise ProducerError(f"a live connection has no database {path} ({kind}, {len(selections)} tables)")

    def lines(self, source: SourceEntry) -> Iterator[Line]:
        """The lines so far."""
        del source
        self._before_read()
        with self._log.open("rb") as file:
            yield from split_lines(read_chunks(file))

    def read(self, source: SourceEntry, offset: int, size: int) -> bytes:
        """Bytes of the log."""
        del source
        self._before_read()
        with self._log.open("rb") as file:
            file.seek(offset)
            return file.read(size)

    def whole(self, source: SourceEntry) -> bytes:
        """The log so far."""
        del source
        self._before_read()
        return self._log.read_bytes()

    def keep(self, source: SourceEntry, mime_type: str | None = None) -> BlobRef:
        """Keeps the log so far as a blob."""
        return self.blob(self.whole(source), mime_type)

    def digest(self, source: SourceEntry) -> str:
        """Digest of the log so far."""
        return hashlib.sha256(self.whole(source)).hexdigest()

    def stream(self, native_id: str, parent: str | None = None) -> AbstractContextManager[Stream]:
        """A fold gives its records back; it opens no stream."""
        raise ProducerError(f"a fold opens no stream ({native_id}, {parent})")

    def blob(self, data: bytes, mime_type: str | None = None) -> BlobRef:
        """Keeps bytes under their digest."""
        name = self._blobs.put(data)
        self._unsynced.append(name)
        return BlobRef(blob=name, size=len(data), mime_type=mime_type)

    def diagnose(
        self, code: str, message: str, source: SourceEntry | None = None, line: int | None = None
    ) -> None:
        """Says something about the log; of each code at most ``TOLD_MOST`` one by one."""
        self._told[code] += 1
        if self._told[code] <= TOLD_MOST:
            self.diagnostics.append(
                Diagnostic(
                    code=code, source=source.id if source else None, line=line, message=message[:MESSAGE_MOST]
                )
            )

    def all_diagnostics(self) -> list[Diagnostic]:
        """Those that were told, and of each code how many more there were."""
        more = [
            Diagnostic(code=code, message=f"and {count - TOLD_MOST:,} more", count=count - TOLD_MOST)
            for code, count in self._told.items()
            if count > TOLD_MOST
        ]
        return [*self.diagnostics, *more]

    def mask(self, source: SourceEntry, secret: str) -> None:
        """What a recorder writes was masked before: nothing is left to be masked."""

    def hide(self, source: SourceEntry, offset: int, size: int) -> None:
        """What a recorder writes was masked before: nothing is left to be hidden."""

    def sync_blobs(self) -> None:
        """Puts the blobs since the last time on the disk."""
        names, self._unsynced = self._unsynced, []
        for name in names:
            held = os.open(blob_path(self._folder, name), os.O_RDONLY)
            try:
                os.fsync(held)
            finally:
                os.close(held)
        for folder in {blob_path(self._folder, name).parent for name in names}:
            sync_folder(folder)
            sync_folder(folder.parent)
