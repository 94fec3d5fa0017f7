"""What a record cites: each ref followed to its bytes, and the proof that they are the recorded ones.

Owns: the check of a ref against its source (place, length, digest, line number), the decoded value of the cited
unit, a store of decoded units that is bounded by their bytes, and the rule that refs of one role and pointer
repeat one native unit (decision 2).

Must never know: which member comes from where.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from callsheet.audit.aliases import aliased
from callsheet.audit.branches import Branches
from callsheet.audit.finding import REF, Claim, Evidence, Json
from callsheet.audit.scan import Scan
from callsheet.audit.sources import ROWS, Source, Sources, frame_of
from callsheet.audit.torn import Standing, values_on
from callsheet.registry import Registry
from callsheet.registry.when import MISSING, follow
from callsheet.wire.blobs import digest
from callsheet.wire.damage import BOM
from callsheet.wire.lossless import NotJson, decode

MEMBER = "member"
"""Role of lines (or files) that each say something else of a record."""
_DIGEST = re.compile("[0-9a-f]{64}")
BUDGET = 16 << 20
"""Bytes of native units that stay decoded."""


class Cite(NamedTuple):
    """One ref, followed.

    Attributes:
        number: Its position in ``native.refs``.
        role: Its role.
        source: The source.
        line: 1-based line; 0 for a whole file or a row.
        data: The cited bytes; empty for a whole file.
        root: The decoded unit; ``MISSING`` when it is no JSON.
        pointer: The ref's pointer.
        part: What it points at; ``MISSING`` when that is not there.
        sha256: Digest that the ref tells.
        key: Of a row, its key.
        table: Of a row, its table.
        offset: Where the bytes begin in the source; -1 where they have no place of their own.
    """

    number: int
    role: str
    source: Source
    line: int
    data: bytes
    root: Any
    pointer: str
    part: Any
    sha256: str | None
    key: Any = None
    table: Any = None
    offset: int = -1

    @property
    def place(self) -> str:
        """Where it stands, for people."""
        return f"{self.source.entry.path}:{self.line}" if self.line else self.source.entry.path


def cite_of(number: int, ref: Json, source: Source, data: bytes) -> Cite:
    """A ref with the bytes that it leads to."""
    role = ref["role"] if isinstance(ref.get("role"), str) else ""
    pointer = ref["pointer"] if isinstance(ref.get("pointer"), str) else ""
    line = ref["line"] if isinstance(ref.get("line"), int) else 0
    try:
        root = decode(data.removeprefix(BOM))
    except NotJson:
        root = data.decode("utf-8", "replace") if "table" in ref else MISSING
    return Cite(number, role, source, line, data, root, pointer, follow(root, pointer), ref.get("sha256"))


class Cites(NamedTuple):
    """The refs of one record.

    Attributes:
        good: Those that lead to the recorded bytes.
        claims: What was claimed about the others, and that the good ones are good.
        unread: Some source cannot be read: nothing can be said of the record's facts.
    """

    good: list[Cite]
    claims: list[Claim]
    unread: bool


class Reading:
    """Follows refs of one bundle."""

    def __init__(self, sources: Sources, registries: Iterable[Registry]) -> None:
        self.sources = sources
        self._registries = {kind: one for one in registries for kind in one.harness.kinds}
        self._pieces = {kind: frozenset(one.marks.pieces) for kind, one in self._registries.items()}
        self.scans: dict[str, Scan] = {}
        self._branches: dict[frozenset[str], Branches] = {}
        self.frames: dict[str, object] = {}
        self._decoded: OrderedDict[tuple[str, int, int], Any] = OrderedDict()
        self._size = 0
        self._torn: tuple[tuple[str, int], list[Standing]] | None = None

    def scan(self, source: Source) -> Scan:
        """The scan of a source; it is scanned when it is first cited."""
        scan = self.scans.get(source.entry.id)
        if scan is None:
            scan = self.scans[source.entry.id] = Scan(source, self._registries.get(source.entry.kind))
        return scan

    def branches(self, names: frozenset[str]) -> Branches:
        """The tree of some sources; rows of a database come after what was moved out of it."""
        found = self._branches.get(names)
        if found is None:
            sources = [one for name in names if (one := self.sources.get(name)) is not None]
            sources.sort(key=lambda one: (one.entry.encoding == ROWS, len(one.entry.id), one.entry.id))
            found = self._branches[names] = Branches([self.scan(source) for source in sources])
        return found

    def value_at(self, scan: Scan, line: int) -> Any:
        """The decoded value of a line, of a database's copy that of the row on it."""
        bounds = scan.bounds(line)
        if scan.source.entry.encoding != ROWS or bounds is None:
            return self.root_at(scan.source, line)
        frame = frame_of(scan.source.read(bounds[0], bounds[1] - bounds[0]))
        try:
            return MISSING if frame is None else decode(frame.data)
        except NotJson:
            return MISSING

    def follow(self, record: Json, listed: frozenset[str] | None) -> Cites:
        """Follows every ref of a record.

        Args:
            record: The record.
            listed: Ids of the sources that its session record lists; None when that is not known.
        """
        native = record.get("native")
        refs = native.get("refs") if isinstance(native, dict) else None
        found = Cites([], [], False)
        if not isinstance(refs, list) or not refs:
            why = "the record cites nothing"
            return Cites([], [Claim(("native", "refs"), refs, None, why)], False)
        unread = False
        seen: set[str] = set()
        for index, ref in enumerate(refs):
            if not isinstance(ref, dict):
                found.claims.append(Claim(("native", "refs", index), ref, None, "no ref"))
                continue
            mark = repr(sorted(ref.items()))
            if mark in seen:
                found.claims.append(
                    Claim(("native", "refs", index, "source"), ref.get("source"), None, "cited twice")
                )
                continue
            seen.add(mark)
            name = ref.get("source")
            source = self.sources.all.get(name) if isinstance(name, str) else None
            if source is None or (listed is not None and name not in listed):
                why = (
                    "the session record lists no such source" if source else "the manifest has no such source"
                )
                found.claims.append(Claim(("native", "refs", index, "source"), name, None, why))
            elif self.sources.get(source.entry.id) is None:
                unread = True
            else:
                self._follow(index, ref, source, found)
        found.claims.extend(_repeats(found.good, self._pieces))
        return found._replace(unread=unread)

    def _follow(self, index: int, ref: Json, source: Source, found: Cites) -> None:
        if "table" in ref and (not source.has_lines or ref.get("offset") is None):
            self._row(index, ref, source, found)
            return
        if not source.has_lines and "offset" in ref:
            return  # a place in the lines of chosen rows, which only the bundle's copy has
        path = ("native", "refs", index)
        role = ref["role"] if isinstance(ref.get("role"), str) else ""
        pointer = ref["pointer"] if isinstance(ref.get("pointer"), str) else ""
        scan = self.scan(source)
        offset, size, line = ref.get("offset"), ref.get("bytes"), ref.get("line")
        if offset is None and size is None and line is None:
            found.good.append(Cite(index, role, source, 0, b"", MISSING, pointer, MISSING, None))
            return
        wrong = [
            Claim((*path, name), value, None, "not a number of this source")
            for name, value in (("offset", offset), ("bytes", size))
            if type(value) is not int or not 0 <= value <= scan.size
        ]
        if wrong:
            found.claims.extend(wrong)
            return
        assert isinstance(offset, int)
        assert isinstance(size, int)
        at = scan.line_at(offset) if scan.size else 1  # an empty file has one line, which holds nothing
        if line is not None and line != at:
            found.claims.append(Claim((*path, "line"), line, None, f"byte {offset} stands on line {at}"))
            return
        data = source.read(offset, size)
        if len(data) != size:
            found.claims.append(
                Claim((*path, "bytes"), size, None, f"the source ends after {len(data)} of them")
            )
            return
        bounds = scan.bounds(at) or (-1, -1)
        whole = bounds[0] == offset and offset + size in (bounds[1] - 1, scan.size)
        if not self._is(ref, data, source, is_line=whole):
            found.claims.append(_not_there(path, ref, data, scan, source))
            return
        if "table" in ref and (differs := self._frame_differs(ref, scan, source, at)) is not None:
            found.claims.append(Claim((*path, differs), ref.get(differs), None, "another row stands there"))
            return
        root = MISSING if line is None else self._decode(source, offset, data)
        part = follow(root, pointer)
        if pointer and part is MISSING:
            found.claims.append(Claim((*path, "pointer"), pointer, None, "leads nowhere in the cited line"))
            return
        registry = self._registries.get(source.entry.kind)
        if registry is not None and source.entry.kind in registry.marks.frames:
            root = aliased(registry, root)
        place = f"{source.entry.path}:{line}" if line else source.entry.path
        evidence = Evidence("ref", index, place, pointer)
        found.claims.append(Claim(path, ref.get("sha256"), evidence))
        found.good.append(
            Cite(
                index,
                role,
                source,
                line or 0,
                data,
                root,
                pointer,
                part,
                ref.get("sha256"),
                ref.get("key"),
                ref.get("table"),
                offset,
            )
        )

    @staticmethod
    def _is(ref: Json, data: bytes, source: Source, *, is_line: bool = False) -> bool:
        """Whether these are the recorded bytes. Where something was masked, the digest is that of what it hides."""
        told = ref.get("sha256")
        if digest(data) == told:
            return True
        starred = b"**" in data or b'"*"' in data
        hidden = source.masked and isinstance(told, str) and _DIGEST.fullmatch(told) is not None and starred
        return hidden and (is_line or _is_whole(data))

    def _row(self, index: int, ref: Json, source: Source, found: Cites) -> None:
        """A ref that names a row and no bytes."""
        path = ("native", "refs", index)
        role = ref["role"] if isinstance(ref.get("role"), str) else ""
        pointer = ref["pointer"] if isinstance(ref.get("pointer"), str) else ""
        column = ref.get("column") if isinstance(ref.get("column"), str) else None
        data = source.cell(str(ref["table"]), ref.get("key"), column)
        if data is None:
            found.claims.append(Claim((*path, "key"), ref.get("key"), None, "the source has no such row"))
            return
        if not self._is(ref, data, source):
            why = f"the digest of its value is {digest(data)}"
            found.claims.append(Claim((*path, "sha256"), ref.get("sha256"), None, why))
            return
        try:
            root = decode(data)
        except NotJson:
            root = data.decode("utf-8", "replace")
        part = follow(root, pointer)
        if pointer and part is MISSING:
            found.claims.append(Claim((*path, "pointer"), pointer, None, "leads nowhere in the cited row"))
            return
        found.claims.append(
            Claim(path, ref.get("sha256"), Evidence("ref", index, source.entry.path, pointer))
        )
        line = self.line_of_row(ref)
        found.good.append(
            Cite(
                index,
                role,
                source,
                line,
                data,
                root,
                pointer,
                part,
                ref.get("sha256"),
                ref.get("key"),
                ref["table"],
            )
        )

    def line_of_row(self, ref: Json) -> int:
        """The line of a row that a ref names without one: its text has no place of its own, and a line all the same."""
        source = self.sources.get(str(ref.get("source")))
        if source is None or not source.has_lines:
            return 0
        column = ref.get("column") if isinstance(ref.get("column"), str) else None
        offset, size = source.cell_place(str(ref.get("table")), ref.get("key"), column)
        return self.scan(source).line_at(offset) if size else 0

    @staticmethod
    def _frame_differs(ref: Json, scan: Scan, source: Source, line: int) -> str | None:
        """Which name of a row is not that of the row on the cited line of a database's copy."""
        bounds = scan.bounds(line)
        frame = (
            frame_of(source.read(bounds[0], bounds[1] - bounds[0]).removesuffix(b"\n")) if bounds else None
        )
        if frame is None:
            return None if "key" not in ref else "table"
        for name, value in (("table", frame.table), ("key", frame.key), ("column", frame.column)):
            if ref.get(name) != value and (name in ref or name == "column"):
                return name
        return None

    def _decode(self, source: Source, offset: int, data: bytes) -> Any:
        key = (source.entry.id, offset, len(data))
        if key in self._decoded:
            self._decoded.move_to_end(key)
            return self._decoded[key]
        try:
            root = decode(data.removeprefix(BOM) if offset == 0 else data)
        except NotJson:
            root = MISSING
        self._decoded[key] = root
        self._size += len(data)
        while self._size > BUDGET and len(self._decoded) > 1:
            (_, _, size), _ = self._decoded.popitem(last=False)
            self._size -= size
        return root

    def root_at(self, source: Source, line: int) -> Any:
        """The decoded value of a line, ``MISSING`` when it is none."""
        scan = self.scan(source)
        bounds = scan.bounds(line)
        if bounds is None:
            return MISSING
        data = source.read(bounds[0], bounds[1] - bounds[0]).removesuffix(b"\n")
        return self._decode(source, bounds[0], data)

    def roots_at(self, source: Source, line: int) -> list[Standing]:
        """The values on a line, several where it is torn, each with its place in the source."""
        root = self.root_at(source, line)
        bounds = self.scan(source).bounds(line)
        if bounds is None:
            return []
        if root is not MISSING:
            return [Standing(bounds[0], b"", root)]
        if self._torn is None or self._torn[0] != (source.entry.id, line):
            registry = self._registries.get(source.entry.kind)
            data = source.read(bounds[0], bounds[1] - bounds[0]).removesuffix(b"\n")
            found = values_on(data, registry.marks.whole if registry is not None else [])
            placed = [one._replace(start=one.start + bounds[0]) for one in found]
            self._torn = (source.entry.id, line), placed
        return self._torn[1]

    def line_of(self, cite: Cite) -> Any:
        """The value on a line that a ref's bytes stand in; ``MISSING`` where they stand in none."""
        found = self.roots_at(cite.source, cite.line)
        if len(found) != 1:
            found = [one for one in found if one.start <= cite.offset < one.start + len(one.data)]
        return found[0].value if found else MISSING


def _not_there(path: tuple[Any, ...], ref: Json, data: bytes, scan: Scan, source: Source) -> Claim:
    """Which member of a ref is wrong, as far as one can tell: the line it names is there, after all."""
    line = ref.get("line")
    bounds = scan.bounds(line) if isinstance(line, int) else None
    if bounds is not None:
        whole = source.read(bounds[0], bounds[1] - bounds[0]).removesuffix(b"\n")
        if digest(whole) == ref.get("sha256"):
            if ref.get("offset") != bounds[0]:
                return Claim((*path, "offset"), ref.get("offset"), None, f"the line begins at {bounds[0]}")
            return Claim((*path, "bytes"), ref.get("bytes"), None, f"the line has {len(whole)} bytes")
    why = f"the digest of these bytes is {digest(data)}"
    return Claim((*path, "sha256"), ref.get("sha256"), None, why)


def _is_whole(data: bytes) -> bool:
    """Whether bytes are a JSON value to the byte; of masked ones nothing else shows where they end."""
    try:
        decode(data)
    except NotJson:
        return False
    return data == data.strip()


def _repeats(cites: list[Cite], pieces: dict[str, frozenset[str]]) -> Iterator[Claim]:
    """Refs with the role and pointer of the first one, whose part is not the same.

    Args:
        cites: The good refs of a record.
        pieces: By kind of source, the roles whose refs tell of one entity in pieces.
    """
    if not cites or not cites[0].line or cites[0].role == MEMBER:
        return
    if cites[0].role in pieces.get(cites[0].source.entry.kind, ()):
        return
    first = cites[0]
    for cite in cites[1:]:
        alike = (cite.role, cite.pointer, cite.source) == (first.role, first.pointer, first.source)
        if alike and cite.line and not same_part(first, cite):
            why = f"it is no repeat of line {first.line}"
            yield Claim(("native", "refs", cite.number), cite.line, None, why, REF)


def same_part(one: Cite, other: Cite) -> bool:
    """Whether two cited parts are one value."""
    if one.part is MISSING or other.part is MISSING:
        return one.data == other.data
    return bool(one.part == other.part)


def encoded(value: Any) -> str:
    """A native value as JSON text, for people."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, msgspec.EncodeError, UnicodeEncodeError):
        return repr(value)
