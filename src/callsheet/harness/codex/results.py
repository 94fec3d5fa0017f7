"""tool_result records: one for each call, of its output and its execution (ASR-257 to 267, 276, 288 to 291).

Owns: which call a result answers (decision 3), its status by the registry's table (decision 4), what reached the model
(the output item, where a later response proves that it was sent, decision 7), and the way of two lines to one record:
the later line of output and execution reads the earlier one again where it stands. An execution that ends after the
model got its output is a later state of the same result.

Must never know: order as evidence. Text is never read as an outcome.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.pen import Pen, Place
from callsheet.harness.codex import contents
from callsheet.harness.codex.calltable import CALL, ITEM, OUTPUT
from callsheet.harness.codex.executions import (
    Execution,
    execution_of,
    provider_of,
    put_error,
    put_exec,
    put_times,
    structured,
)
from callsheet.harness.codex.shapes import (
    Payload,
    decoded,
    line_of,
    payload_decoder,
)
from callsheet.harness.codex.survey import Survey
from callsheet.harness.codex.tape import Tape
from callsheet.records import Ref, ToolResult
from callsheet.registry import Registry, first
from callsheet.registry.versions import in_ranges
from callsheet.registry.when import matches
from callsheet.wire import lossless

NO_OUTPUT = "no output item is recorded: what the model got of this call is not known"
NESTED = "code that the model wrote made this call: what the model got of it is not recorded"
NO_REPLY = "no later response of the model is recorded, so nothing shows that it was sent"
NO_CAPTURE = "no capture shows what this version sent"
SECRET = "it answers a secret question"
STATUSES_MOST = 10_000
"""Different words whose status is remembered."""
HOSTED = "the model's provider ran this: what the model got of it is not recorded"


class Results:
    """Writes the results of one thread."""

    def __init__(self, pen: Pen, tape: Tape, survey: Survey, registry: Registry, version: str | None) -> None:
        self._pen = pen
        self._tape = tape
        self._survey = survey
        self._registry = registry
        self._version = version
        self.statuses = Statuses(registry, version)
        self._proven: dict[bool, bool] = {}
        self._late: dict[str, tuple[str, int, int]] = {}

    # -- the two lines ------------------------------------------------------------------------------------------

    def output(self, payload: Payload, pointer: str, position: int, boundary: int) -> ToolResult | None:
        """An output item: the result, or the first state of one whose execution ends later.

        Args:
            payload: The output item.
            pointer: Where it stands in its line.
            position: The unit's position.
            boundary: How many lines that stand between responses came before it.

        Returns:
            The record that was written.
        """
        call_id = payload.call_id if isinstance(payload.call_id, str) else None
        native = self._pen.native("result", pointer)
        record = ToolResult(linkage="none", status="unknown", native=native)
        self._link(record, call_id)
        execution: Execution | None = None
        if call_id is not None and self._makes_one(call_id):
            if self._survey.calls.position(ITEM, call_id) < position:
                execution, refs = self._reread_execution(call_id)
                native.refs += refs
            else:
                self._late[call_id] = ("", position, boundary)
        if payload.type == "tool_search_output":
            words = {"type": payload.type, "status": payload.status}
            record.status = self.statuses.of({"payload": words} if pointer == "/payload" else words)
        if execution is not None:
            self._put_execution(record, execution)
        self._put_content(record, payload, position, boundary, execution)
        self._pen.write(record)
        if call_id is not None and call_id in self._late:
            self._late[call_id] = (record.id, position, boundary)
        return record

    def waits(self, call_id: str) -> bool:
        """Whether an execution will be told of by its output, which comes later."""
        return call_id not in self._late and self._makes_one(call_id)

    def execution(self, execution: Execution, nested: bool) -> ToolResult | None:
        """An item or event that tells how a call was executed.

        Args:
            execution: What it tells.
            nested: Whether code that the model wrote made the call.

        Returns:
            The record that was written; None when the call's output, which comes later, will tell of it.
        """
        call_id = execution.call_id
        pen = self._pen
        record = ToolResult(
            linkage="none", status="unknown", native=pen.native(execution.role, execution.pointer)
        )
        self._link(record, call_id)
        if self._survey.is_search_id(execution):
            record.linkage = "derived"
        if call_id is not None and self._makes_one(call_id):
            late = self._late.pop(call_id, None)
            if late is None:
                pen.cited()
                return None
            record.supersedes, position, boundary = late
            payload, refs = self._reread_output(call_id)
            assert record.native is not None
            record.native.refs[:0] = refs
            self._put_execution(record, execution)
            self._put_content(record, payload, position, boundary, execution)
        else:
            self._put_execution(record, execution)
            pen.capture(record, "content", "absent", reason=_why_absent(execution, nested))
            put_raw(pen, record, None, structured(execution))
        pen.write(record)
        return record

    def hosted(self, payload: Payload, pointer: str, call_id: str, linkage: str) -> ToolResult:
        """The result that a hosted tool's own call item holds (an image)."""
        record = ToolResult(linkage=linkage, status="unknown", native=self._pen.native("call", pointer))
        record.call_id = call_id
        if self._survey.calls.count(CALL, call_id) > 1:
            record.linkage, record.call_id, record.native_call_id = "ambiguous", None, call_id
        self._pen.capture(record, "content", "absent", reason=HOSTED)
        put_raw(self._pen, record, None, payload.result)
        self._pen.write(record)
        return record

    def _makes_one(self, call_id: str) -> bool:
        """Whether one output and one execution of one call make one result."""
        calls = self._survey.calls
        return (
            calls.count(CALL, call_id) <= 1
            and calls.count(OUTPUT, call_id) == 1
            and calls.count(ITEM, call_id) == 1
        )

    def _link(self, record: ToolResult, call_id: str | None) -> None:
        if call_id is None:
            return
        if self._survey.calls.count(CALL, call_id) > 1:
            record.linkage, record.native_call_id = "ambiguous", call_id
        else:
            record.linkage, record.call_id = "exact", call_id

    # -- reading the other line again ---------------------------------------------------------------------------

    def _place(self, kind: int, call_id: str) -> Place:
        number, line, offset, size = self._survey.calls.spot(kind, call_id)
        return Place(self._tape.stretches[number].source, line, offset, size)

    def _again(self, place: Place) -> tuple[bytes, str]:
        data, sha = self._pen.veil.fetch(place.source, place.offset, place.size)
        return (lossless.clean_text(data) if b"\\u" in data else data), sha

    def _reread_execution(self, call_id: str) -> tuple[Execution | None, list[Ref]]:
        place = self._place(ITEM, call_id)
        data, sha = self._again(place)
        found = execution_of(data)
        role, pointer = (found.role, found.pointer) if found is not None else ("item", None)
        refs = [self._pen.place(place, role, pointer, sha)]
        return found, refs + self._copies(ITEM, call_id, role, pointer)

    def _reread_output(self, call_id: str) -> tuple[Payload, list[Ref]]:
        place = self._place(OUTPUT, call_id)
        data, sha = self._again(place)
        payload, pointer = line_of(data).payload, "/payload"
        if payload is None:
            payload, pointer = decoded(payload_decoder, Raw(data)), ""
        refs = [self._pen.place(place, "result", pointer, sha)]
        return payload or Payload(), refs + self._copies(OUTPUT, call_id, "result", pointer)

    def _copies(self, kind: int, call_id: str, role: str, pointer: str | None) -> list[Ref]:
        """Refs to the lines that repeat a line which is read again."""
        places = self._survey.copies.get(self._survey.calls.position(kind, call_id), ())
        return [self._pen.place(place, role, pointer) for place in places]

    # -- what came of it ----------------------------------------------------------------------------------------

    def _put_execution(self, record: ToolResult, execution: Execution) -> None:
        fields = execution.fields
        record.status = self.statuses.of(execution.words)
        put_exec(self._pen, record, fields)
        if not put_times(record, execution):
            self._pen.desk.diagnose(
                "times_contradict",
                f"{execution.kind}: its own duration does not fit between its start and its end",
                self._pen.source,
                self._pen.unit.line.number,
            )
        record.provider = provider_of(fields)
        put_error(record, fields)

    # -- what reached the model ---------------------------------------------------------------------------------

    def _put_content(
        self, record: ToolResult, payload: Payload, position: int, boundary: int, execution: Execution | None
    ) -> None:
        pen = self._pen
        raw = payload.tools if payload.type == "tool_search_output" else payload.output
        pointer = record.native.refs[0].pointer if record.native else ""
        extra = structured(execution) if execution is not None else None
        call_id = payload.call_id
        if isinstance(call_id, str) and call_id in self._survey.secrets:
            # The answer itself was masked where it stands; the words around it are not worth the risk.
            pen.capture(record, "content", "redacted", reason=SECRET)
            return
        reason = self._unshown(pointer == "/payload", position, boundary)
        if reason is None and isinstance(call_id, str) and self._is_before(call_id, position):
            reason = NO_REPLY  # the response that asked for it is itself the later one
        if reason is None:
            record.content = contents.parts(raw, pen.desk)
            if pen.unit.exact is not None:
                member = "tools" if payload.type == "tool_search_output" else "output"
                pen.readable(record, "content", f"{pointer}/{member}")
            if extra is not None:
                put_raw(pen, record, None, extra)
            return
        pen.capture(record, "content", "absent", reason=reason)
        put_raw(pen, record, raw, extra)

    def _is_before(self, call_id: str, position: int) -> bool:
        """Whether an output stands before the one call that it answers."""
        calls = self._survey.calls
        return calls.count(CALL, call_id) == 1 and calls.position(CALL, call_id) > position

    def _unshown(self, enveloped: bool, position: int, boundary: int) -> str | None:
        """Why an output item is no evidence of what was sent, or None where it is (decision 7c)."""
        shown = self._proven.get(enveloped)
        if shown is None:
            native: dict[str, Any] = {"payload": {}} if enveloped else {}
            shown = self._proven[enveloped] = any(
                rule.names(None) and in_ranges(rule.versions, self._version) and matches(rule.when, native)
                for rule in self._registry.content
            )
        if not shown:
            return NO_CAPTURE
        return None if self._survey.answered(position, boundary) else NO_REPLY


def put_raw(pen: Pen, record: ToolResult, output: Raw | None, result: Raw | None) -> None:
    """``raw`` keeps the output that may not have been sent, and the tool's own structured result."""
    members = []
    if output is not None and output:
        members.append(b'"output":' + bytes(output))
    if result is not None and result:
        members.append(b'"result":' + bytes(result))
    if not members:
        return
    data = b"{" + b",".join(members) + b"}"
    if len(data) <= INLINE_MOST and lossless.lossless(data):
        record.raw = Raw(data)
        return
    pen.capture(record, "raw", "external", blob=pen.desk.blob(data, "application/json"))


class Statuses:
    """The status that an execution's words stand for, by the registry's table."""

    def __init__(self, registry: Registry, version: str | None) -> None:
        self._registry = registry
        self._version = version
        self._known: dict[bytes, str] = {}

    def of(self, words: dict[str, Any]) -> str:
        """The status; unknown where no row fits."""
        key = msgspec.json.encode(words)
        found = self._known.get(key)
        if found is None:
            rule = first(self._registry.status, self._version, words)
            found = (rule.then if rule else None) or "unknown"
            if len(self._known) < STATUSES_MOST:
                self._known[key] = found
        return found


def _why_absent(execution: Execution, nested: bool) -> str:
    if nested:
        return NESTED
    return HOSTED if execution.kind in ("WebSearch", "web_search_end") else NO_OUTPUT
