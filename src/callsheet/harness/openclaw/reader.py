"""The second pass: entries in, records out.

Owns: the session record of a stream, the way of each entry and of each row of the shared database to its records, and
the promise that every unit becomes at least one record, an ``unmapped`` or a ``gap``.

Must never know: pairing.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import Desk, Stream
from callsheet.harness._port.cells import Damage, layout_ref
from callsheet.harness._port.parts import is_null, items_of
from callsheet.harness._port.pen import utc_of_ms
from callsheet.harness._port.units import Hole, Unit
from callsheet.harness._port.veil import Veil
from callsheet.harness.openclaw import shelf
from callsheet.harness.openclaw.approvals import Approvals
from callsheet.harness.openclaw.calls import Calls
from callsheet.harness.openclaw.effects import Effects
from callsheet.harness.openclaw.feed import Found, Transcript
from callsheet.harness.openclaw.layout import KIND
from callsheet.harness.openclaw.pen import TreePen
from callsheet.harness.openclaw.processes import Processes
from callsheet.harness.openclaw.results import Asked, Results
from callsheet.harness.openclaw.shapes import NESTED, Entry, Message, blocks_of, details_of, nested_of, text
from callsheet.harness.openclaw.shelf import StateRow
from callsheet.harness.openclaw.survey import Survey
from callsheet.harness.openclaw.talk import Talk
from callsheet.harness.openclaw.traced import Traced
from callsheet.harness.openclaw.trajectory import Trajectory
from callsheet.records import FORMAT, Agent, Gap, Native, Ref, SourceEntry, Turn
from callsheet.records import Session as SessionRecord
from callsheet.registry import Registry, load
from callsheet.wire import lossless


class Reader:
    """Writes the stream of one session."""

    def __init__(
        self,
        desk: Desk,
        veil: Veil,
        transcript: Transcript,
        survey: Survey,
        stream: Stream,
        version: str | None,
        approvals: dict[str, Asked],
        streams: dict[str, str],
        trajectory: Trajectory,
        runs: frozenset[str] = frozenset(),
    ) -> None:
        registry = load(KIND)
        self.desk = desk
        self.transcript = transcript
        self.survey = survey
        self.roots = {"project": survey.cwd} if survey.cwd else {}
        self.pen = TreePen(desk, veil, stream, self.roots)
        self.talk = Talk(self.pen, registry)
        self.traced = Traced(self.pen, survey, registry, trajectory, runs)
        self.calls = Calls(self.pen, survey, registry, self.traced)
        self.results = Results(self.pen, survey, registry, version, approvals, self.traced)
        self.effects = Effects(self.pen, survey, registry)
        self.processes = Processes(self.pen, survey, registry, streams)
        self.approvals = Approvals(self.pen, survey, registry)
        self.head_at = self.title_at = -1
        self.turns = turn_words(registry)

    def body(self) -> None:
        """Writes the records of every entry."""
        for found in self.transcript.units():
            unit = found.unit
            if isinstance(unit, Hole):
                self.pen.gap(found.source, unit)
            elif isinstance(unit, Damage):
                self.pen.broken(found.source, unit)
            elif found.at in self.survey.tree.repeats:
                self.desk.diagnose(
                    "repeated_entry", "repeats an earlier entry", found.source, unit.line.number
                )
            else:
                self._find_call(unit.native)
                self._take(found, unit)
                try:
                    self._unit(unit, found.at)
                except (RecursionError, lossless.NotJson):
                    # What could be read before this depth stands as records; the gap says that it is not all.
                    self.pen.gap(found.source, Hole(unit.line, unit.start, len(unit.data), "too_deep"))
                if not self.pen.written:
                    self.pen.unmapped(native_type(unit.native))
        self.traced.body()

    def _find_call(self, entry: Entry | None) -> None:
        """OpenClaw takes calls of tools that it does not have out of a transcript, and leaves their results."""
        message = entry.message if entry is not None and entry.type == "message" else None
        if message is not None and message.role == "toolResult":
            self.traced.lost(message.toolCallId)

    def _take(self, found: Found, unit: Unit[Entry]) -> None:
        entry = unit.native
        tree = self.survey.tree
        self.pen.dead = tree.is_dead(found.at)
        copies = self.survey.copies.get(found.at) if self.survey.copies else None
        self.pen.take(found.source, unit, entry.timestamp if entry else None, None, copies)
        if tree.is_broken(found.at):
            gap = Gap(
                reason="missing_parent", source=found.source.id, native=self.pen.native("entry", "/parentId")
            )
            gap.line = gap.native.refs[0].line if gap.native is not None else None
            self.pen.stream.write(gap)
            self.desk.diagnose(
                "missing_parent",
                "names a parent that is not in this transcript",
                found.source,
                unit.line.number,
            )

    def _unit(self, unit: Unit[Entry], at: int) -> None:
        entry = unit.native
        if entry is None:
            return
        if entry.type == "message" and entry.message is not None:
            self._message(entry, entry.message, at)
        elif entry.type == "compaction":
            self.talk.compaction(entry)
        elif entry.type == "custom_message":
            self.talk.custom(entry)
        elif entry.type == "branch_summary":
            self.talk.branch(entry)
        elif at in (self.head_at, self.title_at):
            self.pen.cited()  # by the session record

    def _message(self, entry: Entry, message: Message, at: int) -> None:
        role = message.role
        if role == "assistant":
            self._assistant(entry, message, at)
        elif role == "toolResult":
            terminal = self.processes.terminal_of(entry, message, details_of(message.details))
            record, details = self.results.of_message(message, at, terminal)
            self.approvals.reviewed(details, record.call_id)
            self.approvals.pending(details, record.call_id)
            self.processes.result(message, details, terminal, record.call_id)
            self.processes.spawned(message, details, record.call_id)
            self.effects.returned(message, details, record.call_id, record.status)
        elif role == "custom" and message.customType == NESTED:
            self._nested(entry, message, at)
        elif role == "bashExecution":
            self.results.of_person(message, self.calls.of_person(message))
        else:
            self.talk.message(entry, message)

    def _assistant(self, entry: Entry, message: Message, at: int) -> None:
        inference = text(message.responseId) or text(entry.id)
        self.talk.usage(message, inference)
        raws = items_of(message.content)
        blocks = blocks_of(message.content)
        for index, block in enumerate(blocks):
            pointer = f"/message/content/{index}"
            if block.type == "toolCall":
                call_id = self.calls.of_model(block, index, at, inference)
                self.effects.called(block, call_id, pointer)
            elif block.type == "thinking":
                self.talk.thought(block, pointer, inference)
            elif not is_null(raws[index]):
                self.talk.said(entry, raws[index], pointer, inference)
        if not blocks and message.content and bytes(message.content) not in (b"[]", b"null"):
            self.talk.said(entry, message.content, "/message/content", inference)
        self.talk.failed(entry, message, inference)

    def _nested(self, entry: Entry, message: Message, at: int) -> None:
        nested = nested_of(message.details)
        if nested is None:
            self.talk.message(entry, message)
            return
        call_id = self.calls.of_code(nested, at)
        record, details = self.results.of_code(nested, call_id)
        if record.call_id is None:
            return
        self.approvals.reviewed(details, record.call_id)
        path = _path_of(nested.input)
        if nested.toolName in ("write", "edit") and path is not None:
            self.effects.changed(
                nested.toolName, details, call_id, record.status, "/message/details", "nested", path
            )

    # -- rows of the shared database ----------------------------------------------------------------------------

    def row(self, source: SourceEntry, row: StateRow) -> None:
        """Writes the record of a row of the shared database."""
        pen = self.pen
        pen.dead = False
        pen.take(source, Unit(row.cell, 0, row.cell.data, None))
        values = row.values
        table = row.cell.table
        done = False
        if table == shelf.APPROVALS:
            done = self.approvals.row(values)
        elif table == shelf.TASKS:
            done = self.processes.task(values)
        elif table == shelf.AGENTS:
            done = self.processes.run(values)
        elif table == shelf.AUDIT:
            done = self._turn(values)
        if not done:
            pen.unmapped(table)

    def _turn(self, values: dict[str, Any]) -> bool:
        run = text(values.get("run_id"))
        status = self.turns.get(text(values.get("status")) or "")
        if run is None or status is None:
            return False
        self.pen.ts = None
        record = Turn(turn_id=run, status=status, native=self.pen.native("run", ""))
        record.reason = text(values.get("error_code"))
        record.ts = utc_of_ms(values.get("occurred_at"))
        self.traced.ran(record, run)
        self.pen.revise(f"turn {run}", record)
        return True


def turn_words(registry: Registry) -> dict[str, str]:
    """States of a run in the shared database to states of a turn."""
    rows = (row for row in registry.terminal_status if (row.entity, row.source) == ("turn", "audit"))
    return {str(row.value or ""): row.then for row in rows}


def _path_of(raw: Raw) -> str | None:
    try:
        value = msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return text(value.get("path")) if isinstance(value, dict) else None


def native_type(entry: Entry | None) -> str | None:
    """The type of an entry that nothing maps."""
    if entry is None or not isinstance(entry.type, str):
        return None
    custom = text(entry.customType)
    if entry.message is not None and isinstance(entry.message.role, str):
        return f"{entry.type}/{entry.message.role}"
    return f"{entry.type}/{custom}" if custom else entry.type


def head(native_id: str, sources: list[SourceEntry], survey: Survey, version: str | None) -> SessionRecord:
    """The session record of a stream, as far as its transcript tells."""
    return SessionRecord(
        format=FORMAT,
        agent=Agent(name=KIND, version=version),
        native_session_id=native_id,
        sources=sources,
        title=survey.title[0] if survey.title else None,
        forked_from=survey.parent_session,
    )


def write_head(reader: Reader, record: SessionRecord, refs: list[Ref]) -> None:
    """Writes the session record, which cites the transcript's own head and title."""
    survey, pen = reader.survey, reader.pen
    cited = list(refs)
    for source in record.sources or ():
        layout = layout_ref(source, reader.desk.lines(source)) if source.encoding == "sqlite" else None
        if layout is not None:
            cited.append(layout)
    for role, found in (("head", survey.head), ("title", survey.title[1] if survey.title else None)):
        if found is not None and isinstance(found.unit, Unit):
            pen.take(found.source, found.unit)
            cited.append(pen.ref(role, ""))
    record.native = Native(refs=cited) if cited else None
    pen.stream.write(record)
    if survey.head is not None:
        reader.head_at = survey.head.at
    if survey.title is not None:
        reader.title_at = survey.title[1].at
