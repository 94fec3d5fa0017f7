"""The stretches of files that make one thread's history.

Owns: following ``history_base`` from the newest file back (reverts, forks by reference), which ordinals a revert
left dead, and how much of a fork by copy is its parent's: as recorded for agents, else what equals the parent's own
file line by line. What nothing shows stays unmarked, and is said.

Must never know: what becomes of a line.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port import Desk
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.layout import BASE, KIND, Parts, RolloutFile
from callsheet.harness.codex.shapes import ABSENT, FAILS
from callsheet.harness.codex.tape import Stretch
from callsheet.records import SourceEntry
from callsheet.wire.lines import Line
from callsheet.wire.lossless import NotJson, decode


class Lineage(NamedTuple):
    """A thread's stretches.

    Attributes:
        stretches: In the order of the history.
        missing: Threads that the history goes on from and whose files are not there.
        compared: Files that were only compared with.
    """

    stretches: list[Stretch]
    missing: list[str]
    compared: list[SourceEntry]


class Shelf:
    """Opens each file of a session once.

    Args:
        desk: Opens sources.
        own: Paths of the files whose lines are this session's; others are only gone on from, or compared with.
    """

    def __init__(self, desk: Desk, own: frozenset[str]) -> None:
        self._desk = desk
        self._own = own
        self._open: dict[str, SourceEntry] = {}

    def source(self, file: RolloutFile) -> SourceEntry:
        """The source of a file.

        Raises:
            OSError: It cannot be read.
        """
        found = self._open.get(file.path)
        if found is None:
            found = self._open[file.path] = self._desk.source(
                file.path, KIND if file.path in self._own else BASE
            )
        return found


def lineage(desk: Desk, veil: Veil, shelf: Shelf, files: tuple[RolloutFile, ...], parts: Parts) -> Lineage:
    """The stretches of the thread whose segments are given.

    Args:
        desk: Is told what cannot be shown.
        veil: Reads the sources.
        shelf: Opens them.
        files: The thread's segments, oldest first.
        parts: The session's other files.
    """
    chain, missing = _chain(files, parts)
    ends = {file.path: end for file, end in chain}
    stretches: list[Stretch] = []
    for file, end in chain:
        if file in files:
            break
        source = _open(desk, shelf, file, missing)
        if source is not None:
            stretches.append(Stretch(source=source, session=file.thread, end=end))
    compared: list[SourceEntry] = []
    for file in files:
        stretch = Stretch(source=shelf.source(file), end=ends.get(file.path, -1), keep_rest=True)
        if file.path in ends and ends[file.path] is None:
            stretch.end = None
        if file.base is None:
            _mark_copied(desk, veil, shelf, file, stretch, parts, compared)
        stretches.append(stretch)
    return Lineage(stretches, missing, compared)


def _open(desk: Desk, shelf: Shelf, file: RolloutFile, missing: list[str]) -> SourceEntry | None:
    try:
        return shelf.source(file)
    except OSError as error:
        desk.diagnose("missing_file", f"{file.path}: {error.strerror or error}")
        missing.append(file.thread or file.path)
        return None


def _chain(
    files: tuple[RolloutFile, ...], parts: Parts
) -> tuple[list[tuple[RolloutFile, int | None]], list[str]]:
    """Files from the oldest to the newest, each with the ordinal at which the history leaves it."""
    chain: list[tuple[RolloutFile, int | None]] = []
    missing: list[str] = []
    current: RolloutFile | None = files[-1]
    end: int | None = None
    while current is not None:
        chain.insert(0, (current, end))
        base = current.base
        if base is None:
            break
        used = {file.path for file, _ in chain}
        candidates = files if base.thread == files[0].thread else parts.others.get(base.thread, ())
        newer, end = current, base.end
        current = next(
            (
                file
                for file in reversed(candidates)
                if file.path not in used and file.ordinal < base.end and file.started <= newer.started
            ),
            None,
        )
        if current is None:
            missing.append(base.thread)
    return chain, missing


# -- forks by copy ------------------------------------------------------------------------------------------------


def _mark_copied(
    desk: Desk,
    veil: Veil,
    shelf: Shelf,
    file: RolloutFile,
    stretch: Stretch,
    parts: Parts,
    compared: list[SourceEntry],
) -> None:
    """Says which lines at the beginning of a file are another thread's."""
    origin = file.forked_from or (file.parent if file.copied_ordinal >= 0 else None)
    if origin is None:
        return
    stretch.copied_from = origin
    if file.copied_ordinal >= 0:
        stretch.copied_ordinal = file.copied_ordinal
        return
    family = {one.thread: one for group in (parts.files, *parts.agents) for one in group[:1]}
    others = parts.others.get(origin) or ((family[origin],) if origin in family else ())
    others = tuple(other for other in others if other.path != file.path)
    if not others:
        desk.diagnose(
            "fork_unmarked",
            f"it is a fork of {origin}, and nothing here shows how much of it was copied",
            stretch.source,
        )
        return
    try:
        other = shelf.source(others[0])
    except OSError as error:
        desk.diagnose("missing_file", f"{others[0].path}: {error.strerror or error}")
        return
    if all(other.id != one.id for one in compared):
        compared.append(other)
    stretch.copied_lines = _equal_lines(veil, stretch.source, other)


class _Shape(Struct, gc=False):
    type: Any = None
    payload: Raw = ABSENT


_shape = msgspec.json.Decoder(_Shape)


def _equal_lines(veil: Veil, own: SourceEntry, other: SourceEntry) -> int:
    """The number of the last line of a fork that equals its parent's, line by line; 0 when there is none.

    A fork's own first line comes before the copied ones. Times were written anew, so payloads are compared.
    """
    mine = islice(veil.lines(own), 1, None)
    theirs = veil.lines(other)
    last = 0
    first = next(mine, None)
    if first is None:
        return 0
    if _shape_of(first).type != "session_meta":
        next(theirs, None)
    line: Line | None = first
    for parent in theirs:
        if line is None or not _same(line, parent):
            break
        last = line.number
        line = next(mine, None)
    return last


def _shape_of(line: Line) -> _Shape:
    try:
        return _shape.decode(line.data)
    except FAILS:
        return _Shape()


def _same(line: Line, other: Line) -> bool:
    left, right = _shape_of(line), _shape_of(other)
    if left.type != right.type or not left.payload or not right.payload:
        return False
    if bytes(left.payload) == bytes(right.payload):
        return True
    try:
        return bool(decode(bytes(left.payload)) == decode(bytes(right.payload)))
    except NotJson:
        return False
