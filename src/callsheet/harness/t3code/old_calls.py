"""Calls and results of T3 Code V1: what ended, and what a provider refused.

Owns: what the activities ``tool.completed`` and ``tool.denied`` become, with the changes and agents that they tell of.

Must never know: other activities, V2's tables.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, part_at, text_of
from callsheet.harness._port.pen import number, verbatim
from callsheet.harness.t3code.pen import dig, listed, text
from callsheet.harness.t3code.rows import Row
from callsheet.harness.t3code.thread import NO_CONTENT, NO_NAME, ThreadWriter
from callsheet.records import (
    Change,
    Error,
    Exec,
    FileChange,
    Patch,
    Provider,
    Subagent,
    ToolCall,
    ToolResult,
)
from callsheet.wire import lossless

NAMED = frozenset({"mcpToolCall", "dynamicToolCall"})
"""Codex items whose ``tool`` is the tool's own name."""
ASKED = ("command", "arguments", "query", "path", "prompt", "action")
CHANGES = {"add": "add", "update": "modify", "delete": "delete"}


class OldCalls(ThreadWriter):
    """Writes the calls of a thread of V1."""

    def _tool(self, row: Row, value: dict[str, Any]) -> None:
        pen = self.pen
        data = row.part("data")
        found = dig(value, "data", "item")
        item = found if isinstance(found, dict) else {}
        part = "/data/item" if isinstance(found, dict) else "/data" if data else ""
        native = text(item.get("id"))
        own = str(row.key.get("activity_id"))
        shared = native if native is not None and self.survey.is_shared(native) else None
        call_id = native if native and not shared else f"{native or ''}#{own}"
        record = ToolCall(call_id=call_id, call_id_source="native" if call_id == native else "derived")
        record.native = pen.native("activity", row.pointer(part))
        record.native.call_id = shared
        entry = self.items.get(str(value.get("itemType")))
        record.kind = entry.kind if entry else None
        name = (
            text(item.get("tool"))
            if text(item.get("type")) in NAMED
            else text(dig(value, "data", "toolName"))
        )
        record.name = name
        if name is None:
            pen.capture(record, "name", "absent", reason=NO_NAME)
        if text(item.get("server")):
            record.provider = Provider(
                kind="mcp", server=item["server"], tool=text(item.get("tool")), identity="exact"
            )
        if item.get("source") == "userShell":
            record.requested_by = "user"
        self._put_input(record, data, item)
        pen.write(record)
        self._result(row, record, part, data, item, shared)
        self._effects(row, call_id, data, item)

    def _put_input(self, record: ToolCall, data: Raw, item: dict[str, Any]) -> None:
        members = members_of(part_at(data, "item")) if item else {}
        if members.get("arguments") and not is_null(members["arguments"]):
            raw = members["arguments"]
        elif item:
            told = [b'"%s":%s' % (name.encode(), bytes(members[name])) for name in ASKED if name in members]
            raw = Raw(b"{" + b",".join(told) + b"}") if told else ABSENT
        else:
            raw = part_at(data, "input")
        if not raw or is_null(raw):
            self.pen.capture(record, "input", "absent")
        elif self.pen.unit.exact is None and lossless.lossless(bytes(raw)):
            record.input = raw
        else:
            record.input_text = bytes(raw).decode()

    def _result(
        self, row: Row, call: ToolCall, part: str, data: Raw, item: dict[str, Any], shared: str | None
    ) -> None:
        pen = self.pen
        status = self.state("tool_result", "item", item.get("status")) or "unknown"
        exact = call.call_id_source == "native"
        record = ToolResult(call_id=call.call_id, linkage="exact" if exact else "derived", status=status)
        record.native_call_id = shared
        record.native = pen.native("activity", row.pointer(part))
        pen.capture(record, "content", "absent", reason=NO_CONTENT)
        if data and pen.inline(record, "raw", data, row.pointer("/data")):
            record.raw = data
        message = text(dig(item, "error", "message"))
        record.error = Error(message=message) if message else None
        record.duration_ms = number(item.get("durationMs"))
        if item.get("type") == "commandExecution":
            code, process = item.get("exitCode"), item.get("processId")
            record.exec = made = Exec(
                command=text(item.get("command")),
                cwd=pen.path(item["cwd"]) if text(item.get("cwd")) else None,
                exit_code=code if type(code) is int and -(1 << 31) <= code < 1 << 32 else None,
                process_id=process if isinstance(process, str) else None,
            )
            raw = part_at(data, "item/aggregatedOutput")
            if mark(raw) == b'"':
                if len(raw) > INLINE_MOST:
                    words = (text_of(raw) or "").encode("utf-8", "replace")
                    pen.capture(record, "exec.output", "external", blob=pen.desk.blob(words, "text/plain"))
                else:
                    made.output = verbatim(raw)
            if made == Exec():
                record.exec = None
        pen.write(record)

    def _effects(self, row: Row, call_id: str, data: Raw, item: dict[str, Any]) -> None:
        if item.get("type") == "fileChange":
            changes = []
            for index, one in enumerate(listed(item.get("changes"))):
                if not text(one.get("path")):
                    continue
                change = Change(path=self.pen.path(one["path"]))
                word = one.get("kind")
                change.change = CHANGES.get(str(dig(word, "type") if isinstance(word, dict) else word))
                moved = text(dig(word, "move_path"))
                if moved:
                    change.old_path, change.path, change.change = change.path, self.pen.path(moved), "move"
                found = items_of(part_at(data, "item/changes"))
                diff = members_of(found[index]).get("diff", ABSENT) if index < len(found) else ABSENT
                if diff and not is_null(diff):
                    change.patch = Patch(format="unified", value=diff)
                changes.append(change)
            if changes:
                state = self.state("file_change", "item", item.get("status")) or "unknown"
                record = FileChange(scope="call", call_id=call_id, state=state, changes=changes)
                record.native = self.pen.native("activity", row.pointer("/data/item/changes"))
                self.pen.write(record)
        elif item.get("type") == "collabAgentToolCall":
            agents = item.get("receiverThreadIds")
            for number, agent in enumerate(agents if isinstance(agents, list) else []):
                if isinstance(agent, str):
                    word = dig(item, "agentsStates", agent, "status")
                    status = self.state("subagent", "agent", word) or "unknown"
                    made = Subagent(agent_id=agent, call_id=call_id, status=status)
                    made.native = self.pen.native(
                        "activity", row.pointer(f"/data/item/receiverThreadIds/{number}")
                    )
                    self.pen.revise(f"agent {agent}", made)

    def _denied(self, row: Row, value: dict[str, Any]) -> None:
        """A refusal that the provider reported, with the id of the call that did not run."""
        native = text(value.get("toolUseId"))
        shared = native if native is not None and self.survey.is_shared(native) else None
        call_id, source = native or "", "native"
        if native is None or shared is not None:
            call_id, source = f"{native or ''}#{row.key.get('activity_id')}", "derived"
        call = ToolCall(call_id=call_id, call_id_source=source, name=text(value.get("toolName")))
        call.native = self.pen.native("activity", "/payload_json")
        call.native.call_id = shared
        if call.name is None:
            self.pen.capture(call, "name", "absent", reason=NO_NAME)
        self.pen.capture(call, "input", "absent")
        self.pen.write(call)
        linkage = "exact" if source == "native" else "derived"
        record = ToolResult(call_id=call_id, linkage=linkage, status="denied")
        record.native_call_id = shared
        record.native = self.pen.native("activity", "/payload_json")
        self.pen.capture(record, "content", "absent", reason=NO_CONTENT)
        message = text(value.get("detail"))
        record.error = Error(message=message) if message else None
        self.pen.write(record)
