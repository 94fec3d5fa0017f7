"""One pass over a native source: its lines, and what must be counted in it.

Owns, for one source: where each line begins and which lines a record cites; which units the registry's
``[[unit]]`` rows find (native calls and results), by place; which native call ids stand on several calls; the
pairs that a provider rule looks up; and whether the source records its own requests. Memory: a few numbers for
each line and unit, no text.

Must never know: records, the importer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from callsheet.audit.aliases import unwrapped
from callsheet.audit.branches import Entries
from callsheet.audit.jsonrpc import Frames
from callsheet.audit.sources import ROWS, Source, frame_of, names_of
from callsheet.audit.torn import Standing, values_on
from callsheet.audit.values import above, fits, last_index, line_of, unit_index, unit_key, walk
from callsheet.registry import Registry
from callsheet.registry.facts import Spoken, Unit
from callsheet.registry.when import MISSING, follow, matches
from callsheet.wire.damage import BOM
from callsheet.wire.lines import split_lines
from callsheet.wire.lossless import NotJson, decode

BLANK, BARE, CITED = 0, 1, 2
_DOCUMENT_MOST = 256 << 20
"""Bytes of a document that are decoded as one."""
_NO_ID = 0
_FOLDERS = 1000
"""Folders of a thread that are remembered."""


def found_units(unit: Unit | Spoken, root: Any) -> Iterator[tuple[int, str, Any]]:
    """The units of one row in a decoded line: position, pointer, part."""
    for pointer, part in _spread(root, unit.pointer.split("/*"), ""):
        if fits(unit.when, root, pointer, part):
            yield unit_index(pointer), pointer, part


def _spread(value: Any, steps: list[str], base: str) -> Iterator[tuple[str, Any]]:
    """The values at a pointer that was cut at each ``*``, with their pointers."""
    found = follow(value, steps[0])
    if len(steps) == 1:
        if found is not MISSING:
            yield base + steps[0], found
        return
    for index, item in enumerate(found if isinstance(found, list) else ()):
        yield from _spread(item, steps[1:], f"{base}{steps[0]}/{index}")


def _mark(name: Any) -> int:
    """An id as a number."""
    return hash(name) or 1 if isinstance(name, str) else _NO_ID


class Units:
    """The native units of one record type in one source, and which of them a record cites."""

    def __init__(self) -> None:
        self.keys = array("Q")
        self.ids = array("q")
        self.links = array("q")
        self._cited = bytearray()

    def add(self, key: int, native_id: Any, by: Any) -> None:
        """Takes a unit in; units come in the order of the file."""
        self.put(key, _mark(native_id), _mark(by))

    def put(self, key: int, native_id: int, by: int) -> None:
        """Takes a unit in whose ids are hashed already."""
        self.keys.append(key)
        self.ids.append(native_id)
        self.links.append(by)
        self._cited.append(0)

    def cite(self, key: int) -> bool:
        """Marks a unit as cited; False if there is none at this place. Of a torn line, several may have one place."""
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return False
        while self._cited[at] and at + 1 < len(self.keys) and self.keys[at + 1] == key:
            at += 1
        self._cited[at] = 1
        return True

    def cite_all(self) -> None:
        """Marks every unit as cited."""
        self._cited = bytearray(b"\1" * len(self._cited))

    def left(self) -> Iterator[tuple[int, int]]:
        """Lines and positions of the units that nothing cites."""
        for key, cited in zip(self.keys, self._cited, strict=True):
            if not cited:
                yield line_of(key), last_index(key)


class Twin(NamedTuple):
    """One of several calls with one native id: its place, and the hash of the record id that made it."""

    key: int
    by: int


class Scan:
    """What one pass found.

    Attributes:
        starts: Byte offset of each line.
        size: Bytes of the source.
        units: By record type.
        has_units: It is read for units: every line of it has a record of its own.
        requests: A line records a request to the model.
        pairs: By provider row: the (server, tool) pairs that stand anywhere in the source.
        named: By provider row: call id to the pair that lines about this call name; None where they disagree.
        forks: Sessions that lines say they were copied from, each with the last such line.
        sessions: Sessions that first lines name.
        bases: Where first lines say that a history goes on from: thread and ordinal.
        folders: Folders that the thread worked in.
        tells_typed: Lines tell what the person typed.
        rpc: Its requests and replays, where the registry says that it is a log of frames.
        entries: Its entries, where the registry says that it is a tree.
        source: The source.
        replies: Ids of messages of the model, and (in a list) the position of the last one.
    """

    def __init__(self, source: Source, registry: Registry | None) -> None:
        self.source = source
        self.size = source.entry.size or 0
        self.starts = array("Q")
        self._cover = bytearray()
        self.units: dict[str, Units] = {}
        self.requests = False
        self.pairs: set[tuple[str, str]] = set()
        self.named: dict[str, tuple[str, str] | None] = {}
        self.forks: dict[str, int] = {}
        self.sessions: set[str] = set()
        self.bases: list[tuple[str, int]] = []
        self.folders: dict[str, None] = {}
        self.tells_typed = False
        self.replies: tuple[str, int] = ("", -1)
        self._typed: set[int] = set()
        self._again: set[int] = set()
        self.rpc = Frames() if registry is not None and registry.marks.jsonrpc else None
        self._alone: list[tuple[str, int, Any, Any]] = []
        self._runs = array("Q")
        self._twins: dict[int, list[Twin]] | None = None
        self._makers: dict[int, int] | None = None
        self._registry = registry
        self._by_type: dict[str, list[Unit]] = {}
        for unit in registry.unit if registry else ():
            self.units.setdefault(unit.record, Units())
        self._servers = [row for row in registry.provider if row.get("server")] if registry else []
        self._listed = [row for row in registry.provider if row.get("servers")] if registry else []
        self.configured: list[tuple[int, frozenset[str]]] = []
        self.tools: dict[str, str] = {}
        self.has_units = reads = registry is not None and source.entry.kind in registry.harness.kinds
        self.entries = Entries() if registry is not None and registry.marks.parent else None
        self._rows = source.entry.encoding == ROWS
        self._whole = registry.marks.whole if registry is not None else []
        self._frames = registry is not None and source.entry.kind in registry.marks.frames
        if not source.has_lines:
            return
        document = self._document(source) if reads else None
        if registry is not None and registry.marks.no_lines and not self._rows and document is None:
            reads = False
        for line in split_lines(source.chunks()):
            self.starts.append(line.offset)
            data = line.data.removeprefix(BOM) if line.number == 1 else line.data
            # A mark that stands alone, as where files were joined, is a blank.
            empty = not data.replace(BOM, b"").strip(b" \t\r\n")
            self._cover.append(BLANK if empty else BARE)
            if reads and not empty and document is None:
                self._take(line.number, data)
        if document is not None:
            self._take(1, document)
        if self._alone:
            self._take_alone()

    def _document(self, source: Source) -> bytes | None:
        """The text of a source that is one JSON value over several lines, or that can be nothing else; else None."""
        if self._registry is None or not self._registry.marks.document or self.size > _DOCUMENT_MOST:
            return None
        data = source.read(0, self.size).removeprefix(BOM)
        if self._registry.marks.no_lines and not self._rows:
            return data if _is_json(data) else None
        first, _, rest = data.lstrip().partition(b"\n")
        if not rest.strip() or not _is_json(data):
            return None
        return None if _is_json(first) else data

    def _take(self, number: int, data: bytes) -> None:
        if self._rows:
            frame = frame_of(data)
            data = frame.data if frame is not None else b""
        units: dict[str, list[tuple[int, Any, Any]]] = {}
        for standing in values_on(data, self._whole):
            self._take_value(number, standing, units)
        for record, found in units.items():
            for key, native_id, by in sorted(found, key=lambda one: one[0]):
                self.units[record].add(key, native_id, by)

    def _take_value(
        self, number: int, standing: Standing, units: dict[str, list[tuple[int, Any, Any]]]
    ) -> None:
        root, registry = standing.value, self._registry
        if self._frames:
            root = unwrapped(root)
        if self.rpc is not None:
            self.rpc.take(number, root)
        if (
            registry is None
            or not isinstance(root, dict | list)
            or (self.rpc is None and isinstance(root, list))
        ):
            return
        self._take_units(number, root, units)
        marks = registry.marks
        if self.entries is not None:
            self.entries.take(marks, number, standing.data, root)
        for spoken in marks.spoken:
            for _, pointer, part in found_units(spoken, root):
                step = pointer.rpartition("/")[2]
                named = names_of(self.source.entry.path)
                name = named.get(spoken.id) or _value(spoken.id, root, part)
                self.replies = (
                    max(self.replies[0], name if isinstance(name, str) else ""),
                    max(self.replies[1], int(step) if step.isdigit() else -1),
                )
        if marks.requests and not self.requests:
            self.requests = matches(marks.requests, root)
        if marks.fork:
            session = follow(root, marks.fork)
            if isinstance(session, str) and session:
                self.forks[session] = number
        self._note_thread(number, root)
        for row in self._servers:
            self._note_pair(row, root)
        for row in self._listed:
            self._note_listed(row, number, root)

    def _take_units(self, number: int, root: Any, found: dict[str, list[tuple[int, Any, Any]]]) -> None:
        """Notes the units of a value on a line."""
        assert self._registry is not None
        for unit in self._registry.unit:
            for index, pointer, part in found_units(unit, root):
                if self._is_dropped(part) or (unit.again and self._is_again(unit, root, pointer, part)):
                    continue
                told = (unit_key(number, index), _value(unit.id, root, part), _value(unit.by, root, part))
                if unit.alone:
                    self._alone.append((unit.record, *told))
                else:
                    found.setdefault(unit.record, []).append(told)

    def _take_alone(self) -> None:
        """Adds the units that no call of the source answers to."""
        calls = self.units.get("tool_call")
        known = set(calls.ids if calls is not None else ()) - {_NO_ID}
        for record in {one[0] for one in self._alone}:
            fresh, old = Units(), self.units[record]
            told = [(key, name, by) for key, name, by in zip(old.keys, old.ids, old.links, strict=True)]
            for of, key, native_id, by in self._alone:
                mark = _mark(native_id)
                if of == record and mark not in known:
                    told.append((key, mark, _mark(by)))
            for one in sorted(told):
                fresh.put(*one)
            self.units[record] = fresh

    def _is_dropped(self, part: Any) -> bool:
        """Whether a part is an update that the protocol, in the version agreed at this line, does not have."""
        if self.rpc is None or self.rpc.version is None or self._registry is None:
            return False
        until = self._registry.marks.dropped.get(str(follow(part, "/sessionUpdate")))
        return until is not None and self.rpc.version >= until

    def _is_again(self, unit: Unit, root: Any, at: str, part: Any) -> bool:
        told = [
            repr(
                follow(root, above(at, pointer)) if pointer.startswith("../") else _value(pointer, root, part)
            )
            for pointer in unit.again
        ]
        marks = {hash((unit.record, unit.role, *told))}
        name = _value(unit.id, root, part)
        if unit.copied and isinstance(name, str) and name:
            marks.add(hash((unit.record, unit.role, "copied", repr(part))))
        known = not marks.isdisjoint(self._again)
        self._again |= marks
        return known

    def _note_thread(self, number: int, root: Any) -> None:
        """What a line says of the thread, the run, the person's words."""
        assert self._registry is not None
        marks = self._registry.marks
        if marks.run and matches(marks.run, root):
            self._runs.append(number)
        if marks.session and matches(marks.session, root):
            named = (follow(root, pointer) for pointer in marks.sessions)
            self.sessions.update(one for one in named if isinstance(one, str) and one)
            base = follow(root, marks.base) if marks.base else MISSING
            thread, end = follow(base, "/thread_id"), follow(base, "/end_ordinal_exclusive")
            if isinstance(thread, str) and type(end) is int:
                self.bases.append((thread, end))
        if marks.types_in and matches(marks.types_in, root):
            words = follow(root, marks.typed)
            self.tells_typed = True
            self._typed.add(hash(words) if isinstance(words, str) else 0)
        folder = follow(root, marks.folder) if marks.folder else MISSING
        if isinstance(folder, str) and len(self.folders) < _FOLDERS:
            self.folders.setdefault(folder)

    def _note_pair(self, row: dict[str, Any], root: Any) -> None:
        server, tool = follow(root, row["server"]), follow(root, row["tool"])
        if not (isinstance(server, str) and isinstance(tool, str)):
            return
        if "call" not in row:
            self.pairs.add((server, tool))
            return
        call_id = follow(root, row["call"])
        if isinstance(call_id, str) and server and tool:
            pair = (server, tool)
            self.named[call_id] = pair if self.named.setdefault(call_id, pair) == pair else None

    def _note_listed(self, row: dict[str, Any], number: int, root: Any) -> None:
        """Servers that a frame lists, and the tools that a frame names for calls."""
        if matches(row.get("listed", {}), root):
            servers = (one for _, one in walk(root, row["servers"], ()) if isinstance(one, str) and one)
            self.configured.append((number, frozenset(servers)))
        for _, one in walk(root, row["calls"], ()):
            call_id, tool = follow(one, row["call"]), follow(one, row["tool"])
            if isinstance(call_id, str) and isinstance(tool, str):
                self.tools[call_id] = tool

    def servers_at(self, line: int) -> frozenset[str]:
        """The servers that were configured when a line was written."""
        at = bisect_right(self.configured, line, key=itemgetter(0))
        return self.configured[at - 1][1] if at else frozenset()

    def run_of(self, line: int) -> int:
        """How many runs have begun up to a line."""
        return bisect_right(self._runs, line)

    def starts_in(self, native_id: str, run: int) -> int:
        """How many calls of a run have this native id."""
        calls = self.units.get("tool_call")
        wanted = hash(native_id) or 1
        pairs = zip(calls.ids, calls.keys, strict=True) if calls is not None else ()
        return sum(one == wanted and max(self.run_of(line_of(key)) - 1, 0) == run for one, key in pairs)

    def typed(self, words: str) -> bool:
        """Whether the person typed exactly this."""
        return hash(words) in self._typed

    # -- lines --------------------------------------------------------------------------------------------------

    def line_at(self, offset: int) -> int:
        """The 1-based line that a byte stands on; 0 if the source has no lines."""
        return bisect_right(self.starts, offset)

    def bounds(self, line: int) -> tuple[int, int] | None:
        """First byte of a line and the byte after its LF."""
        if not 0 < line <= len(self.starts):
            return None
        return self.starts[line - 1], self.starts[line] if line < len(self.starts) else self.size

    def cite(self, offset: int, size: int) -> None:
        """Marks every line that these bytes touch as cited."""
        if size > 0 and self.starts:
            for line in range(self.line_at(offset), self.line_at(offset + size - 1) + 1):
                if line:
                    self._cover[line - 1] |= CITED

    def bare(self) -> Iterator[int]:
        """Lines that hold something and that no record cites."""
        for index, cover in enumerate(self._cover):
            if cover == BARE:
                yield index + 1

    # -- call ids -----------------------------------------------------------------------------------------------

    def twins(self, native_id: str, repeats: set[int]) -> list[Twin]:
        """The calls with this native id where there are several, without the units that repeat another."""
        if self._twins is None:
            self._twins = _several(self.units.get("tool_call"))
        found = [one for one in self._twins.get(hash(native_id) or 1, ()) if one.key not in repeats]
        return found if len(found) > 1 else []

    def makers(self, native_id: str) -> list[int]:
        """Record ids (hashed; 0 for none) of the calls with this native id."""
        if self._twins is None:
            self._twins = _several(self.units.get("tool_call"))
        if self._makers is None:
            calls = self.units.get("tool_call")
            self._makers = dict(zip(calls.ids, calls.links, strict=True)) if calls is not None else {}
        wanted = hash(native_id) or 1
        if wanted in self._twins:
            return [twin.by for twin in self._twins[wanted]]
        return [self._makers[wanted]] if wanted in self._makers else []

    def answers(self, native_id: str) -> set[int]:
        """Record ids (hashed) that results with this native id say they answer."""
        results = self.units.get("tool_result")
        if results is None:
            return set()
        wanted = hash(native_id) or 1
        return {by for one, by in zip(results.ids, results.links, strict=True) if one == wanted and by}


def _is_json(data: bytes) -> bool:
    try:
        decode(data)
    except NotJson:
        return False
    return True


def _value(pointer: str, root: Any, part: Any) -> Any:
    if not pointer:
        return None
    return follow(part if pointer.startswith(".") else root, pointer)


def _several(units: Units | None) -> dict[int, list[Twin]]:
    """Calls by (hashed) native id, only of ids on more than one."""
    if units is None:
        return {}
    ids = units.ids
    order = sorted(range(len(ids)), key=ids.__getitem__)
    found: dict[int, list[Twin]] = {}
    for before, after in pairwise(order):
        if ids[before] == ids[after] != _NO_ID:
            twins = found.setdefault(ids[after], [Twin(units.keys[before], units.links[before])])
            twins.append(Twin(units.keys[after], units.links[after]))
    return found
