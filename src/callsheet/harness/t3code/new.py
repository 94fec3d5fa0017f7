"""Threads of T3 Code V2: turn items, runtime requests, runs, subagents.

Owns: the way of each turn item to its records. An item holds call and result in one; it keeps the provider's own id of
the call, no tool name but for dynamic tools, and nothing of what reached the model. What is in no item (a decision in
the outbox, a run's end) is taken from its own row.

Must never know: V1's tables.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.cells import Damage
from callsheet.harness._port.parts import is_null, mark, text_of
from callsheet.harness._port.pen import amount, raw_json, utc, verbatim
from callsheet.harness.t3code import layout
from callsheet.harness.t3code.pen import dig, keep, listed, text
from callsheet.harness.t3code.rows import CALLS, Row, native_id, raw_of, rows
from callsheet.harness.t3code.thread import NO_CONTENT, NO_NAME, ThreadWriter
from callsheet.records import (
    Change,
    Compaction,
    Error,
    Exec,
    FileChange,
    Message,
    Part,
    Patch,
    Plan,
    PlanEntry,
    Reasoning,
    Ref,
    Subagent,
    ToolCall,
    ToolResult,
    Turn,
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
PROGRESS = "Subagent progress"
"""T3 Code's own title of items that pose as reasoning."""
OPERATIONS = {
    "add": "add",
    "create": "add",
    "update": "modify",
    "modify": "modify",
    "delete": "delete",
    "move": "move",
    "rename": "move",
}
NOT_ASKED = "chain of thought is kept only when asked for"


class NewThread(ThreadWriter):
    """Writes a thread of V2."""

    def write(self) -> None:
        """Writes the stream: the small tables are read first, then item after item."""
        self._requests: dict[str, tuple[dict[str, Any], list[Ref]]] = {}
        self._done: set[str] = set()
        self._agents: dict[str, Subagent] = {}
        self._read_requests()
        self._read_head()
        for row in rows(self.veil, self.source):
            if self.damaged(row) or isinstance(row, Damage):
                continue
            if row.cell.table == layout.ITEMS:
                self._item(row)
            elif row.cell.table == layout.REQUESTS:
                continue
            elif row.cell.table == layout.SUBAGENTS:
                self._agent_row(row)
            elif row.cell.table == layout.RUNS:
                self._run(row)
            elif row.cell.table == layout.TURNS:
                self._usage(row)
            elif row.cell.table == layout.LAUNCHES:
                self.take(row, row.value.get("created_at"))
                self.pen.unmapped(row.cell.table)
        self._left_requests()

    # -- what stands around the items ---------------------------------------------------------------------------

    def _read_requests(self) -> None:
        for row in rows(self.veil, self.source, layout.REQUESTS):
            if isinstance(row, Row) and row.unit is not None:
                request = text(row.value.get("id")) or text(row.key.get("runtime_request_id"))
                if request is not None:
                    value = {**row.value, "requestStatus": row.value.get("status")}
                    self._requests[request] = (value, [self.ref(row.cell, "runtime_request")])
        for row in rows(self.veil, self.source, layout.OUTBOX):
            if not isinstance(row, Row) or row.unit is None:
                continue
            request = text(row.value.get("requestId"))
            if request is None:
                continue
            value, refs = self._requests.setdefault(request, ({}, []))
            refs.append(self.ref(row.cell, "response"))
            for name in ("decision", "answers"):
                # An older database keeps them here alone.
                if value.get(name) is None and row.value.get(name) is not None:
                    value[name] = row.value[name]

    def _read_head(self) -> None:
        title: str | None = None
        provider: dict[str, Any] = {}
        refs: list[Ref] = []
        natives = []
        for table, role in (
            (layout.PROJECTS, "project"),
            (layout.THREADS, "thread"),
            (layout.PROVIDERS, "provider"),
        ):
            for row in rows(self.veil, self.source, table):
                if not isinstance(row, Row) or row.hole is not None:
                    continue
                refs.append(self.ref(row.cell, role))
                if table == layout.THREADS:
                    title = text(row.value.get("title"))
                    provider["provider"] = text(row.value.get("providerInstanceId"))
                    provider["model"] = text(dig(row.value, "modelSelection", "model"))
                elif table == layout.PROVIDERS:
                    provider["driver"] = text(row.value.get("driver"))
                    if text(dig(row.value, "nativeThreadRef", "nativeId")):
                        natives.append(row.value["nativeThreadRef"]["nativeId"])
        self.head(title, {**provider, "providerSessions": natives or None}, refs)

    def _left_requests(self) -> None:
        """Requests that no item tells of."""
        for row in rows(self.veil, self.source):
            if not isinstance(row, Row) or row.hole is not None:
                continue
            if row.cell.table not in (layout.REQUESTS, layout.OUTBOX):
                continue
            request = text(row.value.get("requestId", row.value.get("id")))
            if request is None:
                self.take(row)
                self.pen.unmapped(row.cell.table)
            elif request not in self._done:
                self._done.add(request)
                value, refs = self._requests.get(request, ({}, []))
                self.take(row, value.get("createdAt"))
                others = [ref for ref in refs if ref.key != row.key]
                if value.get("kind") == "user_input" or value.get("answers") is not None:
                    self.question(request, [value], call_id=None, others=others)
                else:
                    self.permission(
                        request, [value], call_id=self._call_of(value), command=None, others=others
                    )

    def _call_of(self, request: dict[str, Any]) -> str | None:
        """The call that a request is about: only where its native id is that of one call."""
        native = text(dig(request, "nativeRequestRef", "nativeId"))
        return native if self.survey.has_call(native) else None

    # -- items --------------------------------------------------------------------------------------------------

    def _item(self, row: Row) -> None:
        item = row.value
        kind = text(item.get("type"))
        self.take(row, item.get("startedAt") or item.get("updatedAt"))
        if kind in CALLS:
            self._call(row, item, str(kind))
        elif kind in ("user_message", "assistant_message"):
            self._message(row, item, str(kind))
        elif kind == "reasoning" and not _is_progress(item):
            self._reasoning(row)
        elif kind == "approval_request":
            self._approval(item)
        elif kind == "user_input_request":
            self._question(item)
        elif kind in ("todo_list", "proposed_plan"):
            self._plan(item)
        elif kind == "checkpoint":
            self._checkpoint(item)
        elif kind == "compaction":
            self._compaction(item)
        elif kind == "error" and text(dig(item, "failure", "message")):
            words = Part(type="text", text=item["failure"]["message"])
            self.pen.write(
                Message(author="harness", content=[words], native=self.pen.native("item", "/failure/message"))
            )
        if not self.pen.written:
            self.pen.unmapped(kind)

    def _compaction(self, item: dict[str, Any]) -> None:
        record = Compaction(native=self.pen.native("item", ""))
        if text(item.get("summary")):
            record.summary = [Part(type="text", text=item["summary"])]
        for name, member in (("before", "beforeTokenCount"), ("after", "afterTokenCount")):
            count = amount(item.get(member))
            if count is not None:
                setattr(record, name, raw_json({member: count}))
        self.pen.write(record)

    def _name(self, item: dict[str, Any]) -> tuple[str, str, str | None]:
        """The id of an item's call, whether it is native, and the native one where that is shared."""
        native, own = native_id(item), text(item.get("id")) or ""
        if native is None:
            return f"#{own}", "derived", None
        if self.survey.is_shared(native):
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

    def _agent_row(self, row: Row) -> None:
        value = row.value
        self.take(row, value.get("completedAt") or value.get("updatedAt"))
        self._agent({**value, "subagentId": value.get("id", row.key.get("subagent_id"))}, None)

    def _message(self, row: Row, item: dict[str, Any], kind: str) -> None:
        author = "model" if kind == "assistant_message" else "user"
        if kind == "user_message" and item.get("createdBy") in ("agent", "system"):
            author = "harness"  # handed over, not typed
        raw = raw_of(row, "text")
        record = Message(author=author, message_id=text(item.get("messageId")))
        record.native = self.pen.native("item", "/text" if raw else "")
        if mark(raw) == b'"':
            record.content = [Part(type="text", text=verbatim(raw))]
            self.pen.readable(record, "content", "/text")
        else:
            self.pen.capture(record, "content", "absent")
        self.pen.write(record)

    def _reasoning(self, row: Row) -> None:
        raw = raw_of(row, "text")
        record = Reasoning(native=self.pen.native("item", "/text" if raw else ""))
        if not self.desk.keep_reasoning:
            self.pen.capture(record, "content", "redacted", reason=NOT_ASKED)
        elif mark(raw) == b'"':
            record.content = [Part(type="text", text=verbatim(raw))]
        else:
            self.pen.capture(record, "content", "absent")
        self.pen.write(record)

    def _approval(self, item: dict[str, Any]) -> None:
        request = text(item.get("requestId"))
        if request is None:
            return
        self._done.add(request)
        value, refs = self._requests.get(request, ({}, []))
        native = native_id(item)
        call_id = self._call_of(value) or (native if self.survey.has_call(native) else None)
        command = text(item.get("prompt")) if item.get("requestKind") == "command" else None
        told = [{**item, "status": None, "kind": None}, value]
        self.permission(request, told, call_id=call_id, command=command, others=refs)

    def _question(self, item: dict[str, Any]) -> None:
        request = text(item.get("requestId"))
        if request is None:
            return
        self._done.add(request)
        value, refs = self._requests.get(request, ({}, []))
        native = native_id(item)
        told = [item, value]
        self.question(request, told, call_id=native if self.survey.has_call(native) else None, others=refs)

    def _plan(self, item: dict[str, Any]) -> None:
        plan = text(item.get("planId")) or text(item.get("id")) or ""
        entries = [
            PlanEntry(text=one["text"], status=self.state("plan", "step", one.get("status")))
            for one in listed(item.get("steps"))
            if isinstance(one.get("text"), str)
        ]
        if item.get("type") == "proposed_plan" and text(item.get("markdown")):
            entries = [PlanEntry(text=item["markdown"])]
        if item.get("steps") and not entries:
            return
        record = Plan(plan_id=plan, entries=entries, native=self.pen.native("item", ""))
        self.pen.revise(f"plan {plan}", record)

    def _checkpoint(self, item: dict[str, Any]) -> None:
        changes = [
            Change(path=self.pen.path(one["path"]), change=OPERATIONS.get(str(one.get("kind"))))
            for one in listed(item.get("files"))
            if text(one.get("path"))
        ]
        if changes:
            record = FileChange(
                scope="turn", turn_id=text(item.get("runId")), state="applied", changes=changes
            )
            record.native = self.pen.native("item", "/files")
            self.pen.write(record)

    def _usage(self, row: Row) -> None:
        """The context that a provider's turn used, where the provider told it."""
        used = row.value.get("tokenUsage")
        if isinstance(used, dict):
            self.take(row, used.get("updatedAt"))
            self.window(used, "/tokenUsage", "provider_turn")
        else:
            self.take(row, row.value.get("startedAt"))
            self.pen.unmapped(layout.TURNS)

    def _run(self, row: Row) -> None:
        run = row.value
        turn = text(run.get("id")) or text(row.key.get("run_id")) or ""
        self.take(row, run.get("completedAt") or run.get("startedAt") or run.get("requestedAt"))
        status = self.state("turn", "run", run.get("status")) or "unknown"
        record = Turn(turn_id=turn, status=status, native=self.pen.native("run", ""))
        message = text(dig(run, "failure", "message"))
        record.error = Error(message=message) if message else None
        self.pen.revise(f"turn {turn}", record)


def _is_progress(item: dict[str, Any]) -> bool:
    native = text(dig(item, "nativeItemRef", "nativeId")) or ""
    return item.get("title") == PROGRESS or (native.startswith("task:") and native.endswith(":progress"))


def _patch(row: Row, item: dict[str, Any]) -> Patch | None:
    diff = raw_of(row, "diffStr")
    if diff and not is_null(diff):
        return Patch(format="unified", value=diff)
    old, new = item.get("oldStr"), item.get("newStr")
    if isinstance(old, str) and isinstance(new, str):
        return Patch(format="replace", value=raw_json({"oldText": old, "newText": new}))
    return None
