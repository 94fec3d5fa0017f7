"""The new format: threads, turns and items.

Owns: the state of an item over ``item.started``, ``item.updated`` and ``item.completed``. An execution's start is its
call and its end the result; where only the end is there, it is both. Words of the agent count when they are complete.
Errors that are mere warnings are notices, never an outcome.

Must never know: the old format.
"""

from __future__ import annotations

import msgspec

from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.pen import Pen
from callsheet.harness.codex.agents import Agents
from callsheet.harness.codex.calls import own_call
from callsheet.harness.codex.changes import STATES, file_change
from callsheet.harness.codex.contents import text_parts
from callsheet.harness.codex.exec_log.outcomes import Identity, Outcomes, identity
from callsheet.harness.codex.exec_log.shapes import LogLine, ids_in
from callsheet.harness.codex.exec_log.survey import Survey
from callsheet.harness.codex.executions import Execution, Fields, words_of
from callsheet.harness.codex.shapes import (
    ABSENT,
    decoded,
    mark,
    members_of,
    parts_of,
    string,
    text,
    text_of,
    value_of,
)
from callsheet.harness.codex.talk import error_of, write_notice
from callsheet.records import Message, Plan, PlanEntry, Reasoning, Turn, Usage
from callsheet.registry import Registry

POINTER = "/item"
SEARCH = "web_search"
_fields = msgspec.json.Decoder(Fields)


class Items:
    """Writes the records of a log in the new format."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._rows = {row.type: row for row in registry.item}
        self._outcomes = Outcomes(pen, survey, registry)
        self._agents = Agents(pen, registry, {}, lambda call_id: call_id)
        self._run = -1
        self._turn: Turn | None = None
        self._called: set[str] = set()
        self._asked: dict[str, bytes] = {}

    @property
    def run(self) -> int:
        """The number of the run; the first is 0."""
        return max(self._run, 0)

    def line(self, line: LogLine) -> None:
        """Writes what a line tells, if it tells anything."""
        kind = line.type
        if kind == "thread.started":
            self._run += 1
            self._turn = None
            self._called.clear()
        elif kind in _TURNS:
            self._turned(line, *_TURNS[kind])
        elif kind == "error":
            self._told("error", line.message, "/message")
        elif line.item:
            self._item(line)

    # -- turns --------------------------------------------------------------------------------------------------

    def _turned(self, line: LogLine, status: str, over: bool) -> None:
        pen, before = self._pen, self._turn
        named = string(line.turn_id)
        native = pen.native("turn")
        if before is not None and over and (named is None or named == before.turn_id):
            turn_id, source = before.turn_id, before.id_source
            assert before.native is not None
            native.refs += [msgspec.structs.replace(ref, role="start") for ref in before.native.refs]
        else:
            turn_id = f"#{pen.source.id}.{pen.unit.line.number}" if named is None else named
            source = "derived" if named is None else "native"
        record = Turn(turn_id=turn_id, id_source=source, status=status, native=native)
        if isinstance(line.error, dict):
            record.status, record.error = "failed", error_of(line.error)
        pen.revise(f"turn {turn_id}", record)
        self._turn = None if over else record
        if over:
            pen.forget(f"turn {turn_id}")
        counts = counts_of(value_of(line.usage))
        if counts:
            native = pen.native("total", "/usage")
            pen.write(Usage(scope="session", cumulative=True, counts=counts, native=native))

    # -- items --------------------------------------------------------------------------------------------------

    def _item(self, line: LogLine) -> None:
        fields = decoded(_fields, line.item)
        if fields is None:
            return
        kind = fields.type if isinstance(fields.type, str) else ""
        over = line.type == "item.completed"
        if kind in self._survey.executions:
            self._execution(line, kind, fields)
        elif kind == "todo_list":
            self._plan(line, fields)
        elif over and kind == "reasoning":
            self._reasoned(line)
        elif over and kind == "agent_message":
            self._said(members_of(line.item).get("text", ABSENT), text(fields.id))
        elif over and kind == "error":
            words = members_of(line.item).get("message", ABSENT)
            self._told("item.completed/error", words, f"{POINTER}/message", text(fields.id))

    def _said(self, words: msgspec.Raw, item_id: str | None) -> None:
        if mark(words) != b'"':
            return
        pen, pointer = self._pen, f"{POINTER}/text"
        record = Message(author="model", content=text_parts(words))
        record.native = pen.native("message", pointer)
        record.native.id = item_id
        pen.readable(record, "content", pointer)
        pen.write(record)

    def _told(self, native_type: str, words: msgspec.Raw, pointer: str, item_id: str | None = None) -> None:
        if mark(words) == b'"':
            write_notice(self._pen, native_type, words, pointer, item_id)

    def _reasoned(self, line: LogLine) -> None:
        words = members_of(line.item).get("text", ABSENT)
        if mark(words) != b'"':
            return
        record = Reasoning(form="summary", content=text_parts(words))
        record.native = self._pen.native("summary", f"{POINTER}/text")
        self._pen.readable(record, "content", f"{POINTER}/text")
        self._pen.write(record)

    def _plan(self, line: LogLine, fields: Fields) -> None:
        listed = members_of(line.item).get("items", ABSENT)
        if mark(listed) != b"[":
            return
        entries = []
        for raw in parts_of(listed):
            members = members_of(raw)
            words = text_of(members.get("text", ABSENT))
            if words is not None:
                # That a step is not completed does not say whether it was begun.
                done = value_of(members.get("completed", ABSENT)) is True
                entries.append(PlanEntry(text=words, status="completed" if done else None))
        if not entries and parts_of(listed):
            return
        named = identity(self.run, fields.id) if isinstance(fields.id, str) else None
        record = Plan(plan_id=named.call_id if named else "plan", entries=entries)
        record.id_source = named.source if named else "derived"
        record.native = self._pen.native("item", f"{POINTER}/items")
        self._pen.revise(f"plan {record.plan_id}", record)

    # -- executions ---------------------------------------------------------------------------------------------

    def _execution(self, line: LogLine, kind: str, fields: Fields) -> None:
        written = ids_in(bytes(line.item))
        item_id = written[0] if written else string(fields.id)
        named = identity(self.run, item_id) if item_id is not None else None
        execution = Execution(
            kind=kind,
            call_id=named.call_id if named else None,
            pointer=POINTER,
            words=words_of(fields, "item", False),
            fields=fields,
            begins=line.type == "item.started",
            data=bytes(line.item),
        )
        other = written[-1] if len(written) > 1 and written[-1] != item_id else None
        if line.type == "item.started":
            self._call(execution, named, other)
        elif line.type == "item.completed":
            begun = named is None or self._outcomes.begins(named) or named.key in self._called
            if named is not None and (not begun or self._pen.has(f"call {named.key}")):
                # What is searched for may stand on the end alone: then it is the call's next state.
                self._called.add(named.key)
                self._call(execution, named, other)
            self._ended(execution, named, other)

    def _call(self, execution: Execution, named: Identity | None, other: str | None) -> None:
        pen = self._pen
        record = own_call(pen, self._rows, execution)
        assert record.native is not None
        if named is None:
            record.call_id, record.call_id_source = f"#{pen.source.id}.{pen.unit.line.number}", "derived"
        else:
            record.call_id, record.call_id_source = named.call_id, named.source
            record.native.call_id = named.native if named.source == "derived" else None
        record.native.id = other
        if execution.kind == SEARCH and named is not None and self._outcomes.single(named) is not None:
            asked = bytes(record.input) if isinstance(record.input, msgspec.Raw) else b""
            if self._asked.get(named.key) == asked:
                return
            self._asked[named.key] = asked
            pen.revise(f"call {named.key}", record)
        else:
            pen.write(record)
        if execution.fields.changes and named is not None and not self._outcomes.ends(named):
            self._changed(execution, named, "proposed")

    def _ended(self, execution: Execution, named: Identity | None, other: str | None) -> None:
        record = self._outcomes.result(execution, named)
        assert record.native is not None
        record.native.id = other
        self._pen.write(record)
        if execution.fields.changes:
            self._changed(execution, named, STATES.get(record.status, "unknown"))
        if execution.kind == "collab_tool_call":
            self._agents.of_call(execution, execution.fields.tool == "spawn_agent")

    def _changed(self, execution: Execution, named: Identity | None, state: str) -> None:
        pen, pointer = self._pen, f"{POINTER}/changes"
        call_id = self._outcomes.single(named) if named is not None else None
        native = pen.native(execution.role, pointer)
        record = file_change(pen, execution.fields.changes, call_id, state, native, pointer)
        if record is not None:
            pen.write(record)


_TURNS = {
    "turn.started": ("running", False),
    "turn.completed": ("completed", True),
    "turn.failed": ("failed", True),
}
"""The state of a turn, and whether it is its last."""
