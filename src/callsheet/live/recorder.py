"""The recorder: a bundle that is whole at any moment while a turn runs.

Owns the order in which things reach the disk: a frame, masked, goes into the frame log before the records that are
made of it, a blob before the record that names it, a record before anybody is told of it. What was written is on the
disk for certain after one group of fsyncs (``sync``). The records come from the very fold that imports frame logs,
fed with exactly the lines that were written. At the end the log is compressed and the manifest is final.

Must never know: processes, what a frame means.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from callsheet.errors import SourceError, UsageError
from callsheet.harness._port.attested import Attested, OwnFact, own_line
from callsheet.harness._port.fold import Settled
from callsheet.harness._port.frames import log_line, raw_line
from callsheet.harness._port.live import LiveAgent
from callsheet.harness._port.units import Hole, native_units
from callsheet.harness._port.veil import Veil
from callsheet.live.desk import LiveDesk
from callsheet.live.folders import plainly
from callsheet.live.streams import Appended, GrowingStream, Spot, Written
from callsheet.records import FORMAT, SourceEntry
from callsheet.records.bundle import Manifest, NativeSource, StreamEntry, stream_id, write_manifest
from callsheet.wire import lossless
from callsheet.wire.files import AtomicFile, private_folder, read_chunks, sync_folder
from callsheet.wire.lines import Line
from callsheet.wire.locks import FolderLock

LOG = "native/s0.jsonl"
"""The frame log of a bundle that is being recorded."""
PACKED = "native/s0.zst"
NO_SESSION = "session"
"""Name of the stream of a connection that never names its session."""

_json = msgspec.json.Decoder(msgspec.Raw)


def now() -> str:
    """The time, RFC 3339 UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_json(frame: bytes) -> bool:
    """Whether bytes are one JSON value in UTF-8."""
    try:
        if not frame.isascii():
            frame.decode("utf-8")
        _json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            lossless.decode(frame)
        except lossless.NotJson:
            return False
    return True


class Book:
    """The streams that a fold's records go to, in the making.

    Args:
        folder: The bundle.
        log: Its frame log.
        agent: Whose fold it is.
        before_read: Called before the fold reads the log again.
        blobs: The bundle that keeps the blobs, if another one.
    """

    def __init__(
        self,
        folder: Path,
        log: Path,
        agent: LiveAgent,
        before_read: Callable[[], None],
        blobs: Path | None = None,
    ) -> None:
        self._folder = folder
        self.desk = LiveDesk(blobs or folder, log, before_read)
        self.source = SourceEntry(id="s0", kind=agent.kind, path=str(log))
        self.fold = Attested(agent.fold(self.desk, Veil(self.desk), [self.source]))
        self.streams: dict[str | None, GrowingStream] = {}
        self._files: set[str] = set()
        self.held: list[Written] = []

    def line(self, line: Line) -> None:
        """Folds one line of the log."""
        for unit in native_units([line], self.fold.reading):
            if isinstance(unit, Hole):
                self._settled(self.fold.gap(self.source, unit))
            else:
                self._settled(self.fold.feed(self.source, unit))

    def close(self) -> None:
        """The end of the log."""
        self._settled(self.fold.close())

    def _settled(self, settled: Iterable[Settled]) -> None:
        for session, record in settled:
            stream = self.streams.get(session)
            if stream is None:
                stream = self.streams[session] = self._begin(session)
            self.held.append(stream.put(record))

    def _begin(self, session: str | None) -> GrowingStream:
        name = base = stream_id(session) if session else NO_SESSION
        number = 2
        while name in self._files:
            name, number = f"{base[:56]}-{number}", number + 1
        self._files.add(name)
        return GrowingStream(self._folder, name)

    def flush(self) -> list[Written]:
        """Hands the records to the system."""
        for stream in self.streams.values():
            stream.file.flush()
        written, self.held = self.held, []
        return written

    def complete(self) -> bool:
        """Writes heads anew that were completed since; whether there were any. Nothing is folded any more.

        Raises:
            OSError: One cannot be written.
        """
        completed = [stream.id for stream in self.streams.values() if stream.complete()]
        return bool(completed)

    def entries(self, *, final: bool) -> list[StreamEntry]:
        """What the manifest says of the streams, the session's own first."""
        found = [
            StreamEntry(
                id=stream.id,
                file=f"streams/{stream.id}.jsonl",
                parent=stream.parent if stream.parent in self._files else None,
                records=stream.records if final else None,
                sha256=stream.sha256 if final else None,
            )
            for stream in self.streams.values()
        ]
        return sorted(found, key=lambda entry: entry.parent is not None)


class Recorder:
    """Records one connection into a bundle of its own.

    Attributes:
        folder: The bundle.
        masked: Frames of which something was masked.

    Raises:
        UsageError: Another process records this bundle.
        OSError: It is no new bundle (``create`` makes one).
    """

    def __init__(self, folder: Path, agent: LiveAgent) -> None:
        self.folder = folder
        self.masked = 0
        self._kind = agent.kind
        self._lock = take_lock(folder)
        self._named = 0
        self._known = -1
        self._number = 0
        try:
            self._log = Appended(folder / LOG, empty=True)
            self._book = Book(folder, folder / LOG, agent, self._log.flush)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(cls, out: Path, agent: LiveAgent) -> Recorder:
        """Makes a new bundle below a folder.

        Raises:
            OSError: Nothing can be written there.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        folder = plainly(out) / f"{agent.name}-{stamp}-{os.urandom(3).hex()}"
        # A bundle without a manifest is none, not even for a moment: it is made beside its place.
        part = folder.with_name(f".{folder.name}.part")
        try:
            private_folder(folder.parent)
            private_folder(part / "native")
            (part / LOG).touch(mode=0o600)
            source = NativeSource(id="s0", kind=agent.kind, path=str(folder / LOG), native=LOG)
            write_manifest(part, Manifest(format=FORMAT, recording=True, sources=[source]), sync=True)
            part.rename(folder)
        except BaseException as error:
            shutil.rmtree(part, ignore_errors=True)
            if isinstance(error, OSError):
                error.filename = str(out)  # what a person named, and not our name for a part of it
            raise
        return cls(folder, agent)

    @property
    def main(self) -> str | None:
        """Id of the session's own stream, once there is one."""
        entries = self._book.entries(final=False)
        return entries[0].id if entries else None

    @property
    def records(self) -> int:
        """Records so far, of all streams."""
        return sum(stream.records for stream in self._book.streams.values())

    def frame(
        self,
        sent: bytes,
        kept: bytes,
        *,
        from_agent: bool,
        answered_by: str | None = None,
        omitted: int = 0,
        ts: str | None = None,
    ) -> None:
        """Takes a frame; it is written with the next ``flush``.

        Args:
            sent: The frame as it came, or goes out; nothing of it is kept that ``kept`` has not.
            kept: The frame as it may be written.
            from_agent: Who sent it.
            answered_by: Who gave the answer that it carries.
            omitted: Bytes of it that nobody has: it was longer than a line may be.
            ts: When it was received; now, if not given.
        """
        if kept != sent:
            self.masked += 1
        kept = kept.strip(b" \t\r").replace(b"\n", b" ")
        ts = ts or now()
        if not omitted and is_json(kept):
            line = log_line(kept, from_agent=from_agent, ts=ts, answered_by=answered_by)
        else:
            line = raw_line(kept, from_agent=from_agent, ts=ts, omitted=omitted)
        self._line(line)

    def own(self, fact: OwnFact) -> None:
        """Takes a fact that only the recorder knows."""
        self._line(own_line(fact, now()))

    def _line(self, data: bytes) -> None:
        self._number += 1
        offset = self._log.put(data + b"\n")
        self._book.line(Line(self._number, offset, data))

    def is_open(self, call: str) -> bool:
        """Whether a call stands in the record, and no result of it."""
        return self._book.fold.is_open(call)

    def flush(self) -> list[Written]:
        """Writes what was taken, log first, and returns the records that stand in their streams now.

        Raises:
            OSError: The disk is full, or fails.
        """
        self._log.flush()
        if len(self._book.streams) != self._named:
            self._manifest()
        return self._book.flush()

    def sync(self) -> None:
        """Puts what was written on the disk; may run beside the other methods, in a thread.

        Raises:
            OSError: The disk fails.
        """
        streams = list(self._book.streams.values())
        self._log.sync()
        self._book.desk.sync_blobs()
        for stream in streams:
            stream.file.sync()
        if len(streams) != self._known:
            # Files of which nobody finds the name are as good as not written.
            for folder in (self.folder / "streams", self.folder / "native", self.folder, self.folder.parent):
                if folder.exists():
                    sync_folder(folder)
            self._known = len(streams)

    def read(self, spot: Spot) -> bytes:
        """A record's line again."""
        for stream in self._book.streams.values():
            if stream.id == spot.stream:
                return stream.read(spot)
        raise SourceError(f"no stream {spot.stream}", path=str(self.folder))

    def close(self) -> list[Written]:
        """The connection has ended: writes what has not settled yet, and returns it."""
        self._book.close()
        return self.flush()

    def seal(self) -> None:
        """Compresses the log and writes the final manifest; may run in a thread, when nothing else does.

        Raises:
            OSError: The disk is full, or fails. The bundle stays as it is, and can be recovered.
        """
        if self.masked:
            what = "frames had places masked before they were written"
            self._book.desk.diagnose("masked", f"{self.masked:,} {what}", self._book.source)
        self.sync()
        self._book.complete()
        seal(self.folder, self._book, self._source(), self._log.path)

    def release(self) -> None:
        """Closes all files and lets go of the bundle; may be called twice."""
        self._log.close()
        for stream in self._book.streams.values():
            stream.file.close()
        self._lock.release()

    def discard(self) -> None:
        """Takes the bundle away again: nothing of the agent is in it."""
        self.release()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _source(self) -> NativeSource:
        return NativeSource(id="s0", kind=self._kind, path=str(self.folder / LOG), native=LOG)

    def _manifest(self) -> None:
        self._named = len(self._book.streams)
        manifest = Manifest(
            format=FORMAT,
            recording=True,
            streams=self._book.entries(final=False),
            sources=[self._source()],
            diagnostics=self._book.desk.all_diagnostics(),
        )
        write_manifest(self.folder, manifest, sync=True)


def take_lock(folder: Path) -> FolderLock:
    """Locks a bundle for recording.

    Raises:
        UsageError: Another process records it.
    """
    try:
        return FolderLock(folder)
    except BlockingIOError:
        raise UsageError(f"{folder}: is being recorded by another process") from None


def seal(folder: Path, book: Book, source: NativeSource, log: Path) -> None:
    """Makes a bundle final: its log compressed, sizes and digests in the manifest."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    hashed = hashlib.sha256()
    size = 0
    with log.open("rb") as file, AtomicFile(folder / PACKED, sync=True) as out:
        for chunk in read_chunks(file):
            hashed.update(chunk)
            size += len(chunk)
            out.write(compressor.compress(chunk))
        out.write(compressor.flush())
    source.native, source.size, source.sha256 = PACKED, size, hashed.hexdigest()
    manifest = Manifest(
        format=FORMAT,
        streams=book.entries(final=True),
        sources=[source],
        diagnostics=book.desk.all_diagnostics(),
    )
    sync_folder(folder / "native")
    write_manifest(folder, manifest, sync=True)
    sync_folder(folder)
    log.unlink()
