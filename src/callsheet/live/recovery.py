"""Finishing what a recorder left behind that was killed, or whose disk was full.

Owns: the frame log that such a bundle holds, folded once more by the fold that recorded it. The records that are
there already must come out the same; those that were lost with the recorder are added, torn last lines go, and the
bundle becomes final. Nothing is invented: a turn whose end no line tells stays without one. A bundle that is still
being recorded is left alone.

Must never know: processes, how anything is drawn.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from callsheet.errors import SourceError, UsageError
from callsheet.harness import live_agents
from callsheet.harness._port.live import LiveAgent
from callsheet.live.recorder import LOG, PACKED, Book, seal, take_lock
from callsheet.live.streams import GrowingStream
from callsheet.records.bundle import Bundle, NativeSource, is_bundle
from callsheet.wire.files import AtomicFile, read_chunks
from callsheet.wire.inflate import Torn, inflate
from callsheet.wire.lines import split_lines


class Recovered(Struct, frozen=True, kw_only=True):
    """What became of an unfinished bundle.

    Attributes:
        added: Records that were made from the frame log afterwards.
        same: The records that were there came out the same.
    """

    added: int
    same: bool


def is_unfinished(path: Path) -> bool:
    """Whether a bundle is being recorded, or was left unfinished."""
    try:
        return path.is_dir() and is_bundle(path) and Bundle(path).manifest.recording
    except SourceError:
        return False


def recover(path: Path, agents: Iterable[LiveAgent] | None = None) -> Recovered | None:
    """Finishes an unfinished bundle.

    Args:
        path: The bundle.
        agents: Whose folds are known; every agent's that can be run, if not given.

    Returns:
        None when there is nothing to be done: it is finished, it is still being recorded, or it cannot be written to.

    Raises:
        SourceError: Its frame log is of a kind that nobody reads, or it was not made here.
    """
    if not is_unfinished(path) or not os.access(path, os.W_OK):
        return None
    path = path.absolute()
    try:
        lock = take_lock(path)
    except (UsageError, OSError):
        return None
    try:
        # Another process may have finished it before the lock was ours.
        return _recover(path, live_agents() if agents is None else agents) if is_unfinished(path) else None
    finally:
        lock.release()


def _recover(path: Path, agents: Iterable[LiveAgent]) -> Recovered:
    manifest = Bundle(path).manifest
    source = manifest.sources[0] if manifest.sources else None
    agent = next((one for one in agents if source is not None and one.kind == source.kind), None)
    if source is None or agent is None:
        kind = "nothing" if source is None else repr(source.kind)
        raise SourceError(f"was not finished, and its frame log ({kind}) is read by no agent", path=str(path))
    for name in ("native", "streams", "blobs", LOG, PACKED):
        if (path / name).is_symlink():
            raise SourceError(f"was not finished, and is not ours: {name} is a link", path=str(path))
    _clear(path)
    log = path / LOG
    _unpack(path / PACKED, log)
    with tempfile.TemporaryDirectory(prefix=".recovery.", dir=path) as made:
        # Blobs go where they belong; the streams are made beside the old ones, and take their places.
        book = Book(Path(made), log, agent, lambda: None, blobs=path)
        book.source.path = source.path
        with log.open("rb") as file:
            for line in split_lines(read_chunks(file)):
                book.line(line)
                book.flush()
        book.close()
        book.flush()
        added, alike = 0, set()
        for stream in book.streams.values():
            count, begins_alike = _compare(path, stream)
            added += stream.records - count
            alike |= {stream.id} if begins_alike else set()
            stream.file.sync()
            stream.file.close()
        if book.complete():
            # The recorder may have come as far as this, too.
            alike |= {stream.id for stream in book.streams.values() if _compare(path, stream)[1]}
        same = len(alike) == len(book.streams)
        if not same:
            book.desk.diagnose("recovered_anew", "records made before came out otherwise this time")
        book.desk.diagnose(
            "recovered", f"the recorder did not finish: {added:,} records were made afterwards"
        )
        book.desk.sync_blobs()
        for stream in book.streams.values():
            target = path / "streams" / f"{stream.id}.jsonl"
            target.parent.mkdir(mode=0o700, exist_ok=True)
            stream.file.path.replace(target)
        told = NativeSource(id=source.id, kind=source.kind, path=source.path, native=source.native)
        seal(path, book, told, log)
    return Recovered(added=added, same=same)


def _clear(path: Path) -> None:
    """Takes away what was never finished: parts of files, and what an earlier recovery began."""
    for left in (*path.glob(".*.part"), *path.glob("native/.*.part"), *path.glob("blobs/*/*/.*.part")):
        left.unlink(missing_ok=True)
    for left in path.glob(".recovery.*"):
        shutil.rmtree(left, ignore_errors=True)


def _unpack(packed: Path, log: Path) -> None:
    """Makes sure that there is a log: where only the packed one is left, out of that."""
    log.parent.mkdir(mode=0o700, exist_ok=True)
    if log.exists() or not packed.exists():
        log.touch(mode=0o600)
        return
    with packed.open("rb") as file, AtomicFile(log) as out:
        try:
            for piece in inflate(read_chunks(file)):
                out.write(piece)
        except Torn:
            pass  # what came out before the damage is what there is


def _compare(path: Path, stream: GrowingStream) -> tuple[int, bool]:
    """How many whole lines a stream of a bundle had, and whether the new one begins with them."""
    old, new = path / "streams" / f"{stream.id}.jsonl", stream.file.path
    if not old.exists():
        return 0, True
    whole = 0
    count = 0
    with old.open("rb") as file:
        for line in split_lines(read_chunks(file)):
            if line.ended:
                whole += len(line.data) + 1
                count += 1
    return count, _head_digest(old, whole) == _head_digest(new, whole)


def _head_digest(path: Path, size: int) -> str:
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, 1 << 18))):
            hashed.update(chunk)
            size -= len(chunk)
    return hashed.hexdigest() if not size else ""
