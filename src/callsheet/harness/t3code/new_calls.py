"""Calls and results of T3 Code V2: items that are both.

Owns: the names of calls, their input and output, changed files, and the agents that items tell of.

Must never know: other items, V1's tables.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.parts import is_null, mark, text_of
from callsheet.harness._port.pen import raw_json, utc, verbatim
from callsheet.harness.t3code.pen import dig, keep, listed, text
from callsheet.harness.t3code.rows import Row, native_id, raw_of
from callsheet.harness.t3code.thread import NO_CONTENT, NO_NAME, ThreadWriter
from callsheet.records import (
    Change,
    Error,
    Exec,
    FileChange,
    Patch,
    Subagent,
    ToolCall,
    ToolResult,
)
from callsheet.wire import lossless

OPEN = frozenset({"pending", "running", "waiting", "idle"})
"""Statuses of items that have not ended: the call has no result."""
PLAIN_OUTPUT = frozenset({"codex"})
"""Drivers whose ``output`` is the command's output itself; others keep their tool's report there as JSON text."""
INPUTS = {
    "file_change": ("fileName",),
    "file_search": ("pattern",),
    "web_search": ("patterns",),
    "subagent": ("prompt", "title"),
}
RAWS = {"file_search": "results", "web_search": "results", "subagent": "result", "dynamic_tool": "output"}
OPERATIONS = {
    "add": "add",
    "create": "add",
    "update": "modify",
    "modify": "modify",
    "delete": "delete",
    "move": "move",
    "rename": "move",
}


class NewCalls(ThreadWriter):
    """Writes the calls of a thread of V2."""

    _agents: dict[str, Subagent]
    """What was last said of each agent."""

    def _name(self, item: dict[str, Any]) -> tuple[str, str, str | None]:
        """The id of an item's call, whether it is native, and the native one where that is shared."""
        native, own = native_id(item), text(item.get("id")) or ""
        if native is None:
            return f"#{own}", "derived", None
        if self.survey.is_shared(native) and self.survey.tells_apart(native, own):
            return f"{native}#{own}", "derived", native
        return native, "native", None

    def _call(self, row: Row, item: dict[str, Any], kind: str) -> None:
        pen = self.pen
        call_id, source, shared = self._name(item)
        record = ToolCall(call_id=call_id, call_id_source=source, native=pen.native("item", ""))
        assert record.native is not None
        record.native.call_id = shared
        keep(record.native, driver=text(dig(item, "nativeItemRef", "driver")))
        if kind == "dynamic_tool" and text(item.get("toolName")):
            record.name = item["toolName"]
        else:
            pen.capture(record, "name", "absent", reason=NO_NAME)
        entry = self.items.get(kind)
        record.kind = entry.kind if entry else None
        record.title = text(item.get("title"))
        parent = self.survey.calls.get(str(item.get("parentItemId")))
        if parent is not None and not self.survey.is_shared(parent):
            record.parent_call_id = parent
        self._put_input(record, row, kind)
        pen.write(record)
        if text(item.get("status")) not in OPEN:
            self._result(row, item, kind, call_id, shared)
        if kind == "file_change":
            self._changed(row, item, call_id)
        elif kind == "subagent":
            self._agent(item, call_id)

    def _put_input(self, record: ToolCall, row: Row, kind: str) -> None:
        if kind in INPUTS:
            members = [(name, raw_of(row, name)) for name in INPUTS[kind]]
            told = [
                b'"%s":%s' % (name.encode(), bytes(raw)) for name, raw in members if raw and not is_null(raw)
            ]
            raw = Raw(b"{" + b",".join(told) + b"}") if told else Raw()
        else:
            raw = raw_of(row, "input")
        if not raw or is_null(raw):
            self.pen.capture(record, "input", "absent")
        elif self.pen.unit.exact is None and lossless.lossless(bytes(raw)):
            record.input = raw
        else:
            exact = (
                self.pen.exact("/input") if kind not in INPUTS and self.pen.unit.exact is not None else None
            )
            record.input_text = exact or bytes(raw).decode()

    def _result(self, row: Row, item: dict[str, Any], kind: str, call_id: str, shared: str | None) -> None:
        pen = self.pen
        status = self.state("tool_result", "item", item.get("status")) or "unknown"
        linkage = "exact" if "#" not in call_id or native_id(item) == call_id else "derived"
        record = ToolResult(call_id=call_id, linkage=linkage, status=status, native=pen.native("item", ""))
        record.native_call_id = shared
        if shared is None and self.survey.is_shared(call_id):
            # Two rows with one id of their own and one of the call: nothing tells which is which.
            record.native_call_id, record.call_id, record.linkage = call_id, None, "ambiguous"
        record.ts = utc(item.get("completedAt") or item.get("updatedAt"))
        pen.capture(record, "content", "absent", reason=NO_CONTENT)
        if kind == "command_execution":
            self._put_command(record, row, item)
        else:
            raw = raw_of(row, RAWS.get(kind, ""))
            if raw and not is_null(raw) and pen.inline(record, "raw", raw, f"/{RAWS[kind]}"):
                record.raw = raw
        message = text(dig(item, "output", "error")) if kind == "dynamic_tool" else None
        if message and status != "completed" and len(message) <= INLINE_MOST:
            record.error = Error(message=message)
        pen.write(record)

    def _put_command(self, record: ToolResult, row: Row, item: dict[str, Any]) -> None:
        code = item.get("exitCode")
        made = Exec(exit_code=code if type(code) is int and -(1 << 31) <= code < 1 << 32 else None)
        raw = raw_of(row, "output")
        if raw and not is_null(raw):
            if text(dig(item, "nativeItemRef", "driver")) in PLAIN_OUTPUT and mark(raw) == b'"':
                if len(raw) > INLINE_MOST:
                    data = (text_of(raw) or "").encode("utf-8", "replace")
                    self.pen.capture(
                        record, "exec.output", "external", blob=self.pen.desk.blob(data, "text/plain")
                    )
                else:
                    made.output = verbatim(raw)
            elif self.pen.inline(record, "raw", raw, "/output"):
                record.raw = raw
        record.exec = None if made == Exec() else made
        if item.get("outputOmitted") is True:
            self.pen.capture(record, "exec.output", "absent", reason="T3 Code left the output out")
        if isinstance(item.get("outputIndicatesFailure"), bool):
            assert record.native is not None
            keep(record.native, outputIndicatesFailure=item["outputIndicatesFailure"])

    def _changed(self, row: Row, item: dict[str, Any], call_id: str) -> None:
        changes = []
        for one in listed(item.get("changes")):
            if text(one.get("path")):
                change = Change(
                    path=self.pen.path(one["path"]), change=OPERATIONS.get(str(one.get("operation")))
                )
                if text(one.get("oldPath")):
                    change.old_path = self.pen.path(one["oldPath"])
                changes.append(change)
        if not changes and text(item.get("fileName")):
            changes.append(Change(path=self.pen.path(item["fileName"])))
        if len(changes) == 1:
            changes[0].patch = _patch(row, item)
        if not changes:
            return
        state = self.state("file_change", "item", item.get("status")) or "unknown"
        record = FileChange(scope="call", call_id=call_id, state=state, changes=changes)
        record.native = self.pen.native("item", "")
        self.pen.write(record)

    def _agent(self, item: dict[str, Any], call_id: str | None) -> None:
        agent = text(item.get("subagentId")) or text(item.get("id"))
        if agent is None:
            return
        before, told = self._agents.get(agent), []
        record = Subagent(agent_id=agent, call_id=call_id, name=text(item.get("title")))
        if before is not None:
            record.call_id, record.name = before.call_id or call_id, before.name or record.name
            told = before.native.refs if before.native else []
        known = before.status if before is not None else None
        record.status = self.state("subagent", "item", item.get("status")) or known or "unknown"
        record.stream = self.streams.get(str(item.get("childThreadId")))
        record.native = self.pen.native("item", "")
        if record.call_id and call_id is None:
            # The row of a subagent does not name the call: what named it is cited again.
            record.native.refs += [replace(ref, role="call") for ref in told if ref.role in ("item", "call")][
                -1:
            ]
        self._agents[agent] = record
        self.pen.revise(f"agent {agent}", record)


def _patch(row: Row, item: dict[str, Any]) -> Patch | None:
    diff = raw_of(row, "diffStr")
    if diff and not is_null(diff):
        return Patch(format="unified", value=diff)
    old, new = item.get("oldStr"), item.get("newStr")
    if isinstance(old, str) and isinstance(new, str):
        return Patch(format="replace", value=raw_json({"oldText": old, "newText": new}))
    return None
