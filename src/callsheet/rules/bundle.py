"""Checks a bundle: each of its streams, what the manifest says of them, and what only the bundle shows.

Owns the look at blobs (each one that a record names is there, with its size; P-REF), at what the manifest says of
streams and native copies (records, digests; P-REF), and the rules that reach from one stream into another: ASR-284,
286 and 290.

Must never know: what stands in a native source (audit holds records against it).
"""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from callsheet.errors import SourceError
from callsheet.records.bundle import Bundle, NativeSource
from callsheet.records.stream import stream_lines
from callsheet.rules.across import Place, Stream, agent_as_terminal, unresolved_terminal
from callsheet.rules.envelope import PART_LISTS
from callsheet.rules.finding import Checked, Finding, Json, Problem, shown, step
from callsheet.rules.stream import Progress, StreamCheck, told
from callsheet.wire.blobs import blob_path
from callsheet.wire.files import read_chunks
from callsheet.wire.inflate import MOST, Torn, inflate, is_compressed

_USUAL = re.compile(rb'"blob":"(sha256:[0-9a-f]{64})","size":([0-9]{1,18})[,}]')
_UNREADABLE = (OSError, KeyError, SourceError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)


class Blobs:
    """Sizes of a bundle's blobs by name, looked up once each."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._sizes: dict[str, int | None] = {}

    def size(self, name: str) -> int | None:
        """Bytes of a blob, or None when it is not in the bundle."""
        if name not in self._sizes:
            self._sizes[name] = self._look(name)
        return self._sizes[name]

    def _look(self, name: str) -> int | None:
        try:
            return self._bundle.size(blob_path(Path(), name).as_posix())
        except ValueError:
            return None

    def settled(self, line: bytes) -> bool:
        """Whether every blob that a line may name is there, judged by the line's text alone."""
        if b'"sha256:' not in line:
            return True
        found = _USUAL.findall(line)
        return len(found) == line.count(b'"sha256:') and all(
            self.size(name.decode()) == int(size) for name, size in found
        )

    def problems(self, record: Json) -> Iterator[tuple[str, Problem]]:
        """What is wrong with the blobs that a record names."""
        for path, reference in _blob_refs(record):
            name, size = reference.get("blob"), reference.get("size")
            if not isinstance(name, str):
                continue
            there = self.size(name)
            if there is None:
                yield "P-REF", Problem(f"{path}/blob", f"the bundle has no blob {shown(name)}")
            elif isinstance(size, int) and size != there:
                yield "P-REF", Problem(f"{path}/size", f"the blob has {there} bytes, not {shown(size)}")


def _blob_refs(record: Json) -> Iterator[tuple[str, Json]]:
    places: list[tuple[str, Any]] = []
    capture = record.get("capture")
    if isinstance(capture, dict):
        places += [(step("/capture", key), entry) for key, entry in capture.items()]
    for member in PART_LISTS:
        held = record.get(member)
        if isinstance(held, list):
            places += [(f"/{member}/{index}", part) for index, part in enumerate(held)]
        elif isinstance(held, dict):
            places.append((f"/{member}", held))
    for path, holder in places:
        reference = holder.get("blob") if isinstance(holder, dict) else None
        if isinstance(reference, dict):
            yield f"{path}/blob", reference


def _untold(_name: str, _done: int, _total: int) -> None:
    return None


class _Digested:
    """A file whose bytes are digested as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _size(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size


def check_bundle(
    bundle: Bundle, checked: Checked | None = None, progress: Progress = _untold
) -> Iterator[Finding]:
    """Checks a bundle.

    Args:
        bundle: The opened bundle.
        checked: Counts what was checked, if given.
        progress: Told how far each stream is.

    Yields:
        Findings of each stream in the manifest's order, then those that need all streams. A finding about the
        manifest has no line, and a pointer into ``manifest.json`` as its path.
    """
    blobs = Blobs(bundle)
    streams: dict[str, Stream] = {}
    for index, entry in enumerate(bundle.manifest.streams):
        at = f"/streams/{index}"
        if entry.id in streams:
            yield _manifest(f"{at}/id", f"two streams have the id {shown(entry.id)}", entry.id)
            continue
        check = StreamCheck(entry.id, blobs)
        streams[entry.id] = check.memory
        lines = 0
        try:
            with bundle.open(entry.file) as file:
                digested = _Digested(file)
                for line in told(stream_lines(digested), entry.file, _size(file), progress):
                    lines += 1
                    yield from check.line(line)
        except _UNREADABLE as error:
            yield _manifest(f"{at}/file", f"the stream cannot be read: {error}", entry.id)
            continue
        if checked is not None:
            checked.streams += 1
            checked.records += lines
        yield from check.end()
        if entry.records is not None and entry.records != lines:
            yield _manifest(
                f"{at}/records", f"the stream has {lines} records, not {shown(entry.records)}", entry.id
            )
        if entry.sha256 is not None and entry.sha256 != digested.sha256:
            yield _manifest(f"{at}/sha256", "the stream is not the one that was written", entry.id)
    if not bundle.manifest.streams:
        yield Finding("P-REF", None, None, "/streams", "the bundle has no stream")
    for index, entry in enumerate(bundle.manifest.streams):
        if entry.parent is not None and entry.parent not in streams:
            yield _manifest(
                f"/streams/{index}/parent", f"the bundle has no stream {shown(entry.parent)}", entry.id
            )
    for index, source in enumerate(bundle.manifest.sources):
        why = _wrong_copy(bundle, source, progress)
        if why is not None:
            yield Finding("P-REF", None, None, f"/sources/{index}/{why.path}", why.message)
    yield from _between(streams)


def _wrong_copy(bundle: Bundle, source: NativeSource, progress: Progress) -> Problem | None:
    """What is wrong with the native copy of a source; a copy with masked places has a digest of its own."""
    if source.native is None:
        return None
    hashed = hashlib.sha256()
    size = 0
    most = MOST if source.size is None else source.size
    try:
        with bundle.open(source.native) as file:
            packed = _size(file)
            # The log of a recording that is not finished is not compressed yet.
            plain = bundle.manifest.recording and not is_compressed(file.read(4))
            file.seek(0)
            for piece in read_chunks(file) if plain else inflate(read_chunks(file), most):
                hashed.update(piece)
                size += len(piece)
                progress(source.native, min(file.tell(), packed), packed)
    except _UNREADABLE as error:
        return Problem("native", f"the native copy cannot be read: {error}")
    except Torn as error:
        return Problem("native", f"the native copy is not whole: {error}")
    if source.size is not None and size != source.size:
        return Problem("size", f"the native copy has {size} bytes, not {source.size}")
    if source.sha256 is not None and not source.masked and hashed.hexdigest() != source.sha256:
        return Problem("sha256", "the native copy is not that of the source")
    return None


def _manifest(path: str, message: str, stream: str) -> Finding:
    return Finding("P-REF", None, None, path, message, stream)


def _between(streams: dict[str, Stream]) -> Iterator[Finding]:
    agents = {name for memory in streams.values() for name in memory.agents}
    sessions: dict[str, Stream] = {}
    for memory in streams.values():
        if memory.session is not None:
            sessions.setdefault(
                memory.session, memory
            )  # a subagent's stream may bear its parent's session id
    gaps = any(memory.has_missing_session for memory in streams.values())
    for own, memory in streams.items():
        found = []
        for name, places in memory.open_terminals.items():
            there = sum(
                other.terminals[name].entities for other in streams.values() if name in other.terminals
            )
            if there != 1:
                where = "no stream of this bundle has" if not there else "more than one terminal could be"
                found += [unresolved_terminal(name, place, where) for place in places]
        found += [
            agent_as_terminal(name, terminal.first)
            for name, terminal in memory.terminals.items()
            if name in agents
        ]
        for answer in memory.open_answers:
            target = sessions.get(answer.session) or streams.get(answer.session)
            if target is not None and not target.is_message(answer.record):
                found.append(
                    _late("ASR-284", answer.place, "/answerRef", f"no message {shown(answer.record)} there")
                )
        if not gaps:
            found += [
                _late("P-REF", place, "/stream", f"the bundle has no stream {shown(name)}")
                for name, place in memory.children
                if name not in streams
            ]
        for finding in sorted(found, key=lambda one: one.line or 0):
            yield Finding(finding.rule, finding.record, finding.line, finding.path, finding.message, own)


def _late(rule: str, place: Place, path: str, message: str) -> Finding:
    return Finding(rule, place.record, place.line, path, message)
