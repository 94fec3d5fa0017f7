"""The trace bundle that ``CODEX_ROLLOUT_TRACE_ROOT`` makes Codex write: which code cell made which call.

Owns: ``trace.jsonl`` as far as links go. ``code_cell_started`` names the model's call that a cell runs for, and
``tool_call_started`` the cell that asked for a call: two recorded hops give a nested call's parent (ASR-275). A cell
that two calls of the model claim gives none. The payload files hold whole requests and are never opened.

The format is undocumented (``schema_version`` 1) and was read from its source: no file of it was seen.

Must never know: rollouts, records but for their refs.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from callsheet.harness._port import Folder
from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil, original_of
from callsheet.harness.codex.shapes import text, value_of
from callsheet.records import Ref, SourceEntry
from callsheet.wire.blobs import digest

KIND = "codex-trace"
NAME = "trace.jsonl"
SCHEMA = 1


class _Requester(Struct, gc=False):
    type: Any = None
    runtime_cell_id: Any = None


class _Payload(Struct, gc=False):
    type: Any = None
    tool_call_id: Any = None
    requester: _Requester | None = None
    runtime_cell_id: Any = None
    model_visible_call_id: Any = None


class TraceLine(Struct, gc=False):
    """One event of a trace."""

    schema_version: Any = None
    thread_id: Any = None
    payload: _Payload | None = None


def _loose(value: dict[str, Any]) -> TraceLine:
    return TraceLine(schema_version=value.get("schema_version"))


def _own(value: dict[str, Any]) -> bool:
    return "schema_version" in value and isinstance(value.get("payload"), dict)


_reading: Reading[TraceLine] = Reading(msgspec.json.Decoder(TraceLine), _loose, _own)


class Link(NamedTuple):
    """A nested call's parent, and the lines that say so."""

    call_id: str
    refs: list[Ref]


class Trace:
    """The links of one trace.

    Attributes:
        source: The trace.
    """

    def __init__(self, veil: Veil, source: SourceEntry) -> None:
        self.source = source
        self._cells: dict[tuple[str | None, str], tuple[str, Ref] | None] = {}
        self._calls: dict[str, tuple[tuple[str | None, str], Ref] | None] = {}
        for unit in native_units(veil.lines(source), _reading):
            if not isinstance(unit, Hole) and unit.native is not None:
                self._note(unit, unit.native)

    def _note(self, unit: Unit[TraceLine], line: TraceLine) -> None:
        event = line.payload
        if event is None or line.schema_version != SCHEMA:
            return
        thread = text(line.thread_id)
        if event.type == "code_cell_started":
            cell, call = text(event.runtime_cell_id), text(event.model_visible_call_id)
            if cell and call:
                key = (thread, cell)
                known = self._cells.get(key)
                if key not in self._cells:
                    self._cells[key] = (call, self._ref(unit))
                elif known is None or known[0] != call:
                    self._cells[key] = None
        elif event.type == "tool_call_started" and event.requester is not None:
            call, cell = text(event.tool_call_id), text(event.requester.runtime_cell_id)
            if call and cell and event.requester.type == "code_cell":
                asked = self._calls.get(call)
                if call not in self._calls:
                    self._calls[call] = ((thread, cell), self._ref(unit))
                elif asked is None or asked[0] != (thread, cell):
                    self._calls[call] = None

    def _ref(self, unit: Unit[TraceLine]) -> Ref:
        line, start, size = unit.line, unit.start, len(unit.data)
        return Ref(
            source=self.source.id,
            line=line.number,
            offset=line.offset + start,
            bytes=size,
            sha256=digest(original_of(line)[start : start + size]),
            role="trace",
            pointer="/payload",
        )

    def parent(self, call_id: str) -> Link | None:
        """The model's call whose code made this one."""
        asked = self._calls.get(call_id)
        cell = self._cells.get(asked[0]) if asked is not None else None
        if asked is None or cell is None:
            return None
        return Link(cell[0], [asked[1], cell[1]])


def traces_near(folders: list[str], folder: Folder) -> dict[str, str]:
    """Traces in some folders, by the id of the thread that they are about.

    Args:
        folders: Where to look, each with all that is below it.
        folder: Access to them.
    """
    found: dict[str, str] = {}
    for at in folders:
        for path in folder.files(at, f"**/{NAME}"):
            manifest = value_of(msgspec.Raw(folder.head(str(PurePath(path).parent / "manifest.json"))))
            root = manifest.get("root_thread_id") if isinstance(manifest, dict) else None
            if isinstance(root, str) and root:
                found.setdefault(root, path)
    return found
