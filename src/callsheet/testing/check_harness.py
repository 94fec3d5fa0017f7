"""What every adapter of stored files must keep, whatever agent it reads.

Owns ``check_harness``. It runs an adapter over real or invented files, on disk through the import engine
and in memory with other chunk sizes, and says as values what is wrong:

- ``rule``      a record breaks a rule (room ``rules``)
- ``ref``       a cited place does not hold the bytes it says
- ``lost``      native bytes that no record cites, or a file that nobody reads or reports
- ``evidence``  a name, an id or a text that stands in none of the lines its record cites
- ``blob``      a blob is missing, or lies under another name than its digest
- ``unstable``  two imports, another desk or another chunk size give other bytes
- ``open``      a file or folder that others than its owner may read

Must never know: any one harness.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from callsheet.harness._port import Session, Stored
from callsheet.library.importing import import_session
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.desk import Files, Reading, read_session
from callsheet.wire.blobs import blob_path, digest
from callsheet.wire.lines import split_lines
from callsheet.wire.lossless import NotJson, decode, decode_values, lossless

SMALL = 1 << 15
"""Bytes of a source up to which it is also read in chunks of a few bytes."""
_WRAPPER = frozenset({"dir", "frame", "ts", "ms", "t"})
"""Members of a line of a frame log (``harness._port.frames``)."""
_BLANK = b" \t\r\n\xef\xbb\xbf"


class Flaw(NamedTuple):
    """Something an adapter must not do.

    Attributes:
        kind: Which promise is broken (see the module).
        where: Session, stream, record or file.
        what: What is wrong, one line.
    """

    kind: Literal["rule", "line", "ref", "lost", "evidence", "blob", "unstable", "open"]
    where: str
    what: str


def check_harness(adapter: Stored, path: Path | Files, root: str | None = None) -> list[Flaw]:
    """Holds an adapter to its promises over every session of a file or folder.

    Args:
        adapter: The adapter.
        path: A file or folder on disk, or files in memory.
        root: With files in memory: the file or folder to import.

    Returns:
        Flaws; none for an adapter that keeps its word here.
    """
    if isinstance(path, Files):
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            for name, data in path.content.items():
                at = base / name.lstrip("/")
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_bytes(data)
            return check_harness(adapter, base / (root or "").lstrip("/"))
    # A file's neighbours belong to its session, so the whole folder is offered.
    files = Files.below(path if path.is_dir() else path.parent)
    flaws: list[Flaw] = []
    used: set[str] = set()
    for session in adapter.sessions(str(path), files):
        reading = read_session(adapter, session, files)
        used.update(source.path for source in reading.sources)
        flaws += check_reading(reading)
        flaws += _stable(adapter, session, files, reading)
    if path.is_dir():
        flaws += [
            Flaw("lost", name, "a session file of this kind that no session reads")
            for name in files.content
            if name not in used and adapter.recognises(name, files.head(name))
        ]
    return flaws


def check_reading(reading: Reading) -> list[Flaw]:
    """Holds one reading against the native bytes it was made from."""
    seen = _Seen(reading)
    flaws: list[Flaw] = []
    for stream in reading.streams:
        for line in stream.lines:
            record = msgspec.json.decode(line)
            where = f"{stream.id} {record.get('id')}"
            if b"\n" in line:
                flaws.append(Flaw("line", where, "the record stands on several lines"))
            refs = _refs(record)
            if not refs and record.get("type") != "session":
                flaws.append(Flaw("ref", where, "cites no native place"))
            flaws += [Flaw("ref", where, what) for what in seen.untrue(refs)]
            flaws += [Flaw("evidence", where, what) for what in _unproven(record, refs, seen)]
            flaws += [
                Flaw("blob", where, f"no such blob: {name}")
                for name, size in _blobs(record)
                if len(reading.blobs.get(name, b"\0" * (size + 1))) != size
            ]
    for source in reading.sources:
        flaws += [Flaw("lost", source.path, what) for what in seen.lost(source.id)]
    return flaws


class _Seen:
    """The native bytes, and which of them records cite."""

    def __init__(self, reading: Reading) -> None:
        self._data = data = reading.native
        self._databases = reading.databases
        self._cited: dict[str, set[tuple[int, int]]] = {source: set() for source in data}
        self._rows: set[tuple[str, str, bytes]] = set()
        self._starts: dict[str, list[int]] = {
            source: [line.offset for line in split_lines([content])] for source, content in data.items()
        }
        self._texts: dict[tuple[str, int, int], list[str]] = {}

    def untrue(self, refs: list[dict[str, Any]]) -> Iterator[str]:
        for ref in refs:
            source = ref.get("source")
            if source not in self._data:
                yield f"cites an unknown source {source!r}"
                continue
            if "table" in ref:
                self._rows.add((source, ref["table"], msgspec.json.encode(ref.get("key"), order="sorted")))
            if "offset" not in ref:
                continue  # the source as a whole, or a row whose value is no JSON text of its own
            offset, size = ref["offset"], ref.get("bytes", 0)
            data = self._data[source][offset : offset + size]
            if len(data) != size:
                yield f"cites {size} bytes at {offset}, beyond the end of {source}"
            elif ref.get("sha256") != digest(data):
                yield f"digest of {size} bytes at {offset} of {source} is another"
            elif "line" in ref and not self._on_line(source, ref["line"], offset, size):
                yield f"{offset}+{size} of {source} does not lie on line {ref['line']}"
            else:
                self._cited[source].add((offset, offset + size))

    def _on_line(self, source: str, line: int, offset: int, size: int) -> bool:
        starts = self._starts[source]
        if not 0 < line <= max(len(starts), 1):
            return False
        whole = line == 1 and offset == 0 and size == len(self._data[source])  # a file that is one value
        end = starts[line] if line < len(starts) else len(self._data[source]) + 1
        return whole or ((not starts or starts[line - 1] <= offset) and offset + size < end)

    def lost(self, source: str) -> Iterator[str]:
        if source in self._databases:
            yield from self._lost_rows(source)
            return
        data = self._data[source]
        ranges = sorted(self._cited[source])
        at = 0
        for start, end in [*ranges, (len(data), len(data))]:
            hole = data[at:start]
            if hole.strip(_BLANK) and not self._wraps(source, at, start):
                lead = len(hole) - len(hole.lstrip(_BLANK))
                line = data.count(b"\n", 0, at + lead) + 1
                yield f"line {line}: {len(hole.strip(_BLANK))} bytes from {at + lead} are cited by no record"
            at = max(at, end)

    def _wraps(self, source: str, start: int, end: int) -> bool:
        """Whether bytes that nothing cites only wrap frames that are cited: who sent them, and when."""
        data, starts = self._data[source], self._starts[source]
        for number in range(max(bisect_right(starts, start) - 1, 0), len(starts)):
            first = starts[number]
            last = starts[number + 1] if number + 1 < len(starts) else len(data)
            if first >= end:
                break
            cited = [(one, size) for one, size in self._cited[source] if first <= one and size <= last]
            if data[max(first, start) : min(last, end)].strip(_BLANK) and not _is_wrapper(
                data[first:last], [(one - first, size - first) for one, size in cited]
            ):
                return False
        return True

    def _lost_rows(self, source: str) -> Iterator[str]:
        """Of a database: rows that no record cites. Its first line says what it is made of."""
        cited = sorted(self._cited[source])
        for line in list(split_lines([self._data[source]]))[1:]:
            row = msgspec.json.decode(line.data)
            key = msgspec.json.encode(row.get("key"), order="sorted")
            at = bisect_left(cited, (line.offset, 0))
            if (source, row.get("table"), key) not in self._rows and (
                at == len(cited) or cited[at][0] >= line.offset + len(line.data)
            ):
                yield f"line {line.number}: row {key.decode()} of {row.get('table')} is cited by no record"

    def texts(self, ref: dict[str, Any]) -> list[str]:
        """Every string in the cited value, keys and JSON texts inside strings apart."""
        if "offset" not in ref or ref.get("source") not in self._data:
            return []
        key = (ref["source"], ref["offset"], ref.get("bytes", 0))
        if key not in self._texts:
            data = self._data[key[0]][key[1] : key[1] + key[2]].removeprefix(b"\xef\xbb\xbf")
            try:
                self._texts[key] = _strings(decode(data) if lossless(data) else decode_values(data))
            except NotJson:
                self._texts[key] = [data.decode("utf-8", "replace")]
        return self._texts[key]


def _is_wrapper(line: bytes, cited: list[tuple[int, int]]) -> bool:
    """Whether a line is a frame log's, and its frame is cited."""
    if len(cited) != 1:
        return False
    ((start, end),) = cited
    try:
        value = decode(line[:start] + b"null" + line[end:])
    except NotJson:
        return False
    return isinstance(value, dict) and value.get("frame", "") is None and set(value) <= _WRAPPER


def _strings(value: Any) -> list[str]:
    found: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            found.append(item.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
    return found


def _refs(record: dict[str, Any]) -> list[dict[str, Any]]:
    native = record.get("native")
    return native.get("refs", []) if isinstance(native, dict) else []


def _unproven(record: dict[str, Any], refs: list[dict[str, Any]], seen: _Seen) -> Iterator[str]:
    """Facts of a call or result that stand to the letter in no line it cites."""
    kind = record.get("type")
    if kind not in ("tool_call", "tool_result"):
        return
    texts = [text for ref in refs for text in seen.texts(ref)]
    whole = set(texts)
    if kind == "tool_call":
        if "name" in record and record["name"] not in whole:
            yield f"the name {record['name']!r} stands in no cited line (ASR-252)"
        if record.get("callIdSource") == "native" and record.get("callId") not in whole:
            yield f"the native call id {record.get('callId')!r} stands in no cited line (ASR-250)"
        return
    for part in record.get("content") or ():
        text = part.get("text") if part.get("type") == "text" else None
        if isinstance(text, str) and not _stands(text, texts):
            yield f"content that stands in no cited line: {text[:60]!r} (ASR-259)"
    if record.get("nativeCallId", record.get("callId")) not in whole and record.get("linkage") == "exact":
        yield f"the call id {record.get('callId')!r} stands in no cited line (ASR-262)"
    message = (record.get("error") or {}).get("message")
    if isinstance(message, str) and not _stands(message, texts):
        yield f"an error that stands in no cited line: {message[:60]!r} (ASR-267)"


def _stands(text: str, texts: list[str]) -> bool:
    """Whether a text is part of a cited one, or was put together from its paragraphs."""
    clean = text.replace("\ufffd", "")
    if not clean.strip() or any(text in one for one in texts):
        return True
    pieces = [piece for piece in text.split("\n\n") if piece.strip("\ufffd")]
    return all(any(piece in one for one in texts) for piece in pieces)


def _blobs(value: Any, top: bool = True) -> Iterator[tuple[str, int]]:
    """Every blob that a record names, wherever; what an agent wrote is no naming."""
    if isinstance(value, dict):
        name, size = value.get("blob"), value.get("size")
        if isinstance(name, str) and name.startswith("sha256:") and isinstance(size, int):
            yield name, size
        for key, item in value.items():
            if not (top and key in ("input", "raw", "value")) and not (key == "value" and "type" in value):
                yield from _blobs(item, top=False)
    elif isinstance(value, list):
        for item in value:
            yield from _blobs(item, top=False)


def _stable(adapter: Stored, session: Session, files: Files, reading: Reading) -> Iterator[Flaw]:
    """The same bytes from any desk, any chunk size, and twice."""
    size = max((source.size or 0 for source in reading.sources), default=0)
    for chunk in (3, 61) if size <= SMALL else (4099,):
        other = read_session(adapter, session, files, chunk=chunk)
        if msgspec.json.encode(other.streams) != msgspec.json.encode(reading.streams):
            yield Flaw("unstable", session.main, f"chunks of {chunk} bytes give other records")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        bundle = import_session(adapter, session, out).bundle
        first = _content(bundle)
        for stream in reading.streams:
            if first.get(f"streams/{stream.id}.jsonl") != stream.data:
                yield Flaw("unstable", stream.id, "an import to disk gives other records")
        if import_session(adapter, session, out).bundle != bundle or _content(bundle) != first:
            yield Flaw("unstable", session.main, "a second import gives other bytes")
        yield from check_bundle_files(bundle)


def check_bundle_files(bundle: Path) -> Iterator[Flaw]:
    """A finished bundle on disk: its rules, its blobs, its modes."""
    for finding in check_bundle(Bundle(bundle)):
        what = f"{finding.rule} {finding.path}: {finding.message}"
        yield Flaw("rule", f"{finding.stream} {finding.record}", what)
    for at in _below(bundle):
        path = bundle / at
        if at.startswith("blobs/") and path != blob_path(bundle, f"sha256:{digest(path.read_bytes())}"):
            yield Flaw("blob", at, "lies under a name that is not its digest")
        if os.name == "posix" and path.stat().st_mode & 0o777 != 0o600:
            yield Flaw("open", at, f"mode {path.stat().st_mode & 0o777:o}")
    if os.name == "posix":
        for folder in [bundle, *(path for path in bundle.rglob("*") if path.is_dir())]:
            if folder.stat().st_mode & 0o777 != 0o700:
                yield Flaw("open", str(folder.relative_to(bundle)), f"mode {folder.stat().st_mode & 0o777:o}")


def _content(bundle: Path) -> dict[str, bytes]:
    return {at: (bundle / at).read_bytes() for at in _below(bundle)}


def _below(bundle: Path) -> list[str]:
    return sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())
