"""The old format (up to 0.43): a header, the prompt, and messages with the ids of the model's own calls.

Owns: beginnings and ends of executions by ``call_id``, plans, the diff of the turn, usage. A result cites the line that
began its call where command, folder, server or files stand only there. An end without a word for its outcome has none:
the exit code alone is no status (decision 4).

Must never know: the new format.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.pen import Pen, Place
from callsheet.harness.codex.calls import own_call
from callsheet.harness.codex.changes import STATES, changes_of_diff, file_change
from callsheet.harness.codex.contents import text_parts
from callsheet.harness.codex.exec_log.outcomes import Outcomes, identity
from callsheet.harness.codex.exec_log.shapes import Event, LogLine, event_decoder, head_of_item
from callsheet.harness.codex.exec_log.survey import Survey
from callsheet.harness.codex.executions import Execution, Fields, put_times, words_of
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
from callsheet.harness.codex.talk import NOT_ASKED, write_notice
from callsheet.records import FileChange, Message, Plan, PlanEntry, Reasoning, Turn, Usage
from callsheet.registry import Registry
from callsheet.wire.lossless import clean_text

POINTER = "/msg"
SEARCH = "web_search_"
OPEN_MOST = 4096
"""Executions that have begun and not ended; of what was begun earlier, command and folder are forgotten."""
_fields = msgspec.json.Decoder(Fields)


class _Begun(NamedTuple):
    """The line that began an execution."""

    place: Place
    sha256: str | None


class Events:
    """Writes the records of a log in the old format."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._rows = {row.type: row for row in registry.item}
        self._outcomes = Outcomes(pen, survey, registry)
        self._begun: dict[str, _Begun] = {}
        self._run = 0

    def header(self) -> None:
        """A run begins: turns are numbered anew."""
        self._run += 1

    def prompt(self, words: Raw) -> None:
        """What the agent was asked to do."""
        self._said("user", words, "/prompt")

    def line(self, line: LogLine) -> None:
        """Writes what a message tells, if it tells anything."""
        raw = line.msg
        head = head_of_item(raw)
        kind = text(head.type) or ""
        if kind in self._survey.executions:
            self._execution(raw, kind, string(head.call_id))
            return
        event = decoded(event_decoder, raw)
        if event is None:
            return
        if kind in _TURNS:
            self._turned(line, event, kind)
        elif kind == "agent_message":
            self._said("model", event.message, f"{POINTER}/message")
        elif kind in _TELLS:
            if mark(event.message) == b'"':
                write_notice(self._pen, f"msg/{kind}", event.message, f"{POINTER}/message")
        elif kind == "agent_reasoning":
            self._reasoned(event.text, "summary")
        elif kind == "agent_reasoning_raw_content":
            self._reasoned(event.text, "raw")
        elif kind == "plan_update":
            self._plan(event.plan)
        elif kind == "turn_diff":
            self._diff(line, event)
        elif kind == "token_count":
            self._usage(raw, event)

    # -- words --------------------------------------------------------------------------------------------------

    def _said(self, author: str, words: Raw, pointer: str) -> None:
        if mark(words) != b'"':
            return
        record = Message(author=author, content=text_parts(words))
        record.native = self._pen.native("message", pointer)
        self._pen.readable(record, "content", pointer)
        self._pen.write(record)

    def _reasoned(self, words: Raw, form: str) -> None:
        if mark(words) != b'"':
            return
        pen = self._pen
        record = Reasoning(form=form, native=pen.native(form, f"{POINTER}/text"))
        if form == "raw" and not pen.desk.keep_reasoning:
            pen.capture(record, "content", "redacted", reason=NOT_ASKED)
        else:
            record.content = text_parts(words)
            pen.readable(record, "content", f"{POINTER}/text")
        pen.write(record)

    # -- turns --------------------------------------------------------------------------------------------------

    def _turned(self, line: LogLine, event: Event, kind: str) -> None:
        pen = self._pen
        named = string(line.id)
        turn_id = f"#{pen.source.id}.{pen.unit.line.number}" if named is None else named
        record = Turn(turn_id=turn_id, status=_TURNS[kind], native=pen.native("turn"))
        record.id_source = "derived" if named is None else "native"
        record.reason = text(event.reason)
        pen.revise(f"turn {self._run} {turn_id}", record)

    def _plan(self, raw: Raw) -> None:
        if mark(raw) != b"[":
            return
        entries = []
        for item in parts_of(raw):
            members = members_of(item)
            words = text_of(members.get("step", ABSENT))
            if words is not None:
                entries.append(PlanEntry(text=words, status=text_of(members.get("status", ABSENT)) or None))
        if not entries and parts_of(raw):
            return
        record = Plan(plan_id="plan", id_source="derived", entries=entries)
        record.native = self._pen.native("plan", f"{POINTER}/plan")
        self._pen.revise(f"plan {self._run}", record)

    def _diff(self, line: LogLine, event: Event) -> None:
        """The diff of the whole turn so far (decision 14)."""
        diff = event.unified_diff
        if not isinstance(diff, str):
            return
        pen, pointer = self._pen, f"{POINTER}/unified_diff"
        turn_id = string(line.id)
        changes = changes_of_diff(pen, diff)
        if diff.strip() and not changes:
            return  # no diff that names files
        record = FileChange(scope="turn", turn_id=turn_id, state="applied", changes=changes)
        record.native = pen.native("diff", pointer)
        words = members_of(line.msg).get("unified_diff", ABSENT)
        if not pen.inline(record, "changes", words, pointer):
            for change in record.changes or ():
                change.patch = None
        pen.revise(f"diff {self._run} {turn_id}", record)

    def _usage(self, raw: Raw, event: Event) -> None:
        """Of one response (0.20), or the session's total so far."""
        pen = self._pen
        if event.info:
            total = counts_of(value_of(members_of(event.info).get("total_token_usage", ABSENT)))
            if total:
                native = pen.native("total", f"{POINTER}/info/total_token_usage")
                pen.write(Usage(scope="session", cumulative=True, counts=total, native=native))
            return
        value = value_of(raw)
        if not isinstance(value, dict):
            return
        counts = counts_of({key: item for key, item in value.items() if key != "type"})
        if counts:
            pen.write(Usage(scope="inference", counts=counts, native=pen.native("usage", POINTER)))

    # -- executions ---------------------------------------------------------------------------------------------

    def _execution(self, raw: Raw, kind: str, call_id: str | None) -> None:
        execution = _execution(kind, call_id, raw)
        if execution is None:
            return
        if execution.begins:
            self._call(execution)
            return
        if call_id is not None:
            named = identity(0, call_id)
            if not self._outcomes.begins(named) or self._pen.has(f"call {named.key}"):
                # What is searched for stands on the end alone: it is the call's next state.
                self._call(execution)
        self._ended(execution)

    def _call(self, execution: Execution) -> None:
        pen, call_id = self._pen, execution.call_id
        record = own_call(pen, self._rows, execution)
        if call_id is None:
            record.call_id, record.call_id_source = f"#{pen.source.id}.{pen.unit.line.number}", "derived"
        else:
            record.call_id = call_id
        if call_id is not None and execution.kind.startswith(SEARCH):
            pen.revise(f"call {call_id}", record)
        else:
            pen.write(record)
        if call_id is None or not execution.begins:
            return
        unit = pen.unit
        place = Place(pen.source, unit.line.number, unit.line.offset + unit.start, len(unit.data))
        self._begun[call_id] = _Begun(place, pen.ref("begin").sha256)
        if len(self._begun) > OPEN_MOST:
            self._begun.pop(next(iter(self._begun)))
        if execution.fields.changes and not self._outcomes.ends(identity(0, call_id)):
            self._changed(execution, "proposed")

    def _ended(self, execution: Execution) -> None:
        pen, call_id = self._pen, execution.call_id
        named = identity(0, call_id) if call_id is not None else None
        single = named is not None and self._outcomes.single(named) is not None
        begun = self._begun.pop(call_id, None) if call_id is not None and single else None
        before = self._again(begun, execution) if begun is not None else None
        record = self._outcomes.result(execution, named)
        put_times(record, execution)
        assert record.native is not None
        if begun is not None and before is not None:
            record.native.refs.append(pen.place(begun.place, "begin", POINTER, begun.sha256))
        pen.write(record)
        if before is not None and before.fields.changes:
            self._changed(before, STATES.get(record.status, "unknown"), begun)

    def _again(self, begun: _Begun, execution: Execution) -> Execution | None:
        """The beginning of an execution, read again; its command and folder go to the end that has none."""
        data, _ = self._pen.veil.fetch(begun.place.source, begun.place.offset, begun.place.size)
        before = _execution("", execution.call_id, members_of(Raw(clean_text(data))).get("msg", ABSENT))
        if before is None:
            return None
        fields = execution.fields
        for member in ("command", "cwd", "invocation"):
            if not getattr(fields, member):
                setattr(fields, member, getattr(before.fields, member))
        return before

    def _changed(self, execution: Execution, state: str, begun: _Begun | None = None) -> None:
        """The files of a patch; they stand at its beginning, and how it went at its end."""
        pen, pointer = self._pen, f"{POINTER}/changes"
        named = identity(0, execution.call_id) if execution.call_id is not None else None
        call_id = self._outcomes.single(named) if named is not None else None
        if begun is None:
            native = pen.native("begin", pointer)
        else:
            native = pen.native("end", POINTER)
            native.refs.insert(0, pen.place(begun.place, "files", pointer, begun.sha256))
        at_end = pen.unit
        if begun is not None:
            # The changes are those of the line that began it, to the letter.
            data, _ = pen.veil.fetch(begun.place.source, begun.place.offset, begun.place.size)
            torn = True if clean_text(data) != data else None
            pen.unit = replace(at_end, data=data, exact=torn, spans=None)
        record = file_change(pen, execution.fields.changes, call_id, state, native, pointer)
        pen.unit = at_end
        if record is not None:
            pen.write(record)


def _execution(kind: str, call_id: str | None, raw: Raw) -> Execution | None:
    fields = decoded(_fields, raw)
    if fields is None:
        return None
    words = words_of(fields, "msg", False)
    return Execution(
        kind=kind,
        call_id=call_id,
        pointer=POINTER,
        words=words,
        fields=fields,
        begins=kind.endswith("_begin"),
        data=bytes(raw),
    )


_TURNS = {"task_started": "running", "task_complete": "completed", "turn_aborted": "interrupted"}
_TELLS = frozenset({"error", "stream_error", "warning", "background_event"})
"""Messages of the harness for the person."""
