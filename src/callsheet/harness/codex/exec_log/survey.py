"""The first pass over a log: how often each item id stands for a call and for an end, and what must not be kept.

Item ids begin at ``item_0`` in every run (ASR-250), so they are counted by run; a run begins with ``thread.started``.

Must never know: records.
"""

from __future__ import annotations

from msgspec import Raw

from callsheet.harness._port.pen import Place
from callsheet.harness._port.units import Hole, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.calltable import CALL, ITEM, CallTable
from callsheet.harness.codex.exec_log.shapes import (
    LogLine,
    event_decoder,
    head_of_item,
    ids_in,
    is_header,
    reading,
)
from callsheet.harness.codex.shapes import ABSENT, clean_data, decoded, members_of, string, text, value_of
from callsheet.records import SourceEntry
from callsheet.registry import Registry

RAW_REASONING = frozenset({"agent_reasoning_raw_content", "agent_reasoning_raw_content_delta"})


class Survey:
    """What the second pass must know beforehand.

    Attributes:
        place: The header of the old format.
        named: The line that names the session, and where in it.
        workdir: The folder in which the agent ran, where the header says it.
        calls: Counts by item id and run.
        executions: Item types and messages that are executions of tools.
    """

    def __init__(self, veil: Veil, source: SourceEntry, registry: Registry, *, keep_reasoning: bool) -> None:
        self.place: Place | None = None
        self.named: tuple[Place, str] | None = None
        self.workdir: str | None = None
        self.calls = CallTable()
        self.executions = frozenset(row.type for row in registry.item if row.execution)
        self._source = source
        self._veil = veil
        self._keep_reasoning = keep_reasoning
        self._runs = 0
        for unit in native_units(veil.lines(source), reading):
            if not isinstance(unit, Hole) and unit.native is not None:
                self._unit(unit, unit.native)

    def _unit(self, unit: Unit[LogLine], line: LogLine) -> None:
        kind = line.type
        if kind == "thread.started":
            if self.named is None and text(line.thread_id):
                self.named = (self._place(unit), "/thread_id")
            self._runs += 1
        elif line.item:
            self._item(line, unit)
        elif line.msg and kind is None:
            self._event(line.msg, unit)
        elif self.place is None and kind is None:
            value = value_of(Raw(clean_data(unit)))
            if isinstance(value, dict) and is_header(value):
                self.place = self._place(unit)
                self.workdir = text(line.workdir)

    def _place(self, unit: Unit[LogLine]) -> Place:
        return Place(self._source, unit.line.number, unit.line.offset + unit.start, len(unit.data))

    @property
    def run(self) -> int:
        """The number of the run that the first pass is in; the first is 0."""
        return max(self._runs - 1, 0)

    def _item(self, line: LogLine, unit: Unit[LogLine]) -> None:
        head = head_of_item(line.item)
        item_id = next(iter(ids_in(bytes(line.item))), string(head.id))
        if text(head.type) in self.executions and item_id is not None:
            if line.type == "item.started":
                self._add(CALL, key_of(self.run, item_id), unit)
            elif line.type == "item.completed":
                self._add(ITEM, key_of(self.run, item_id), unit)

    def _event(self, raw: Raw, unit: Unit[LogLine]) -> None:
        head = head_of_item(raw)
        kind, call_id = text(head.type) or "", string(head.call_id)
        if call_id is not None and kind in self.executions:
            self._add(CALL if kind.endswith("_begin") else ITEM, call_id, unit)
        elif kind == "session_configured" and self.named is None:
            if text(value_of(members_of(raw).get("session_id", ABSENT))):
                self.named = (self._place(unit), "/msg/session_id")
        elif kind in RAW_REASONING and not self._keep_reasoning:
            self._hide(raw, unit)

    def _add(self, kind: int, key: str, unit: Unit[LogLine]) -> None:
        line = unit.line
        self.calls.add(kind, key, 0, 0, line.number, line.offset + unit.start, len(unit.data))

    def _hide(self, raw: Raw, unit: Unit[LogLine]) -> None:
        """Hides raw chain of thought where it stands."""
        event = decoded(event_decoder, raw)
        if event is None:
            return
        for member in (event.text, event.delta):
            at = clean_data(unit).find(bytes(member)) if member else -1
            if at >= 0:
                self._veil.hide(self._source, unit.line.offset + unit.start + at, len(member))


def key_of(run: int, item_id: str) -> str:
    """What an item is counted under."""
    return item_id if run == 0 else f"{run}\0{item_id}"
