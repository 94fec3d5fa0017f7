"""Threads of T3 Code V2: turn items, runtime requests, runs, subagents.

Owns: the way of each turn item to its records. An item holds call and result in one; it keeps the provider's own id of
the call, no tool name but for dynamic tools, and nothing of what reached the model. What is in no item (a decision in
the outbox, a run's end) is taken from its own row.

Must never know: V1's tables.
"""

from __future__ import annotations

from typing import Any

from callsheet.harness._port.cells import Damage
from callsheet.harness._port.parts import mark
from callsheet.harness._port.pen import amount, raw_json, verbatim
from callsheet.harness.t3code import layout
from callsheet.harness.t3code.new_calls import OPERATIONS, NewCalls
from callsheet.harness.t3code.pen import dig, listed, text
from callsheet.harness.t3code.rows import CALLS, Row, native_id, raw_of, rows
from callsheet.records import (
    Change,
    Compaction,
    Error,
    FileChange,
    Message,
    Part,
    Plan,
    PlanEntry,
    Reasoning,
    Ref,
    Turn,
)

PROGRESS = "Subagent progress"
"""T3 Code's own title of items that pose as reasoning."""
NOT_ASKED = "chain of thought is kept only when asked for"


class NewThread(NewCalls):
    """Writes a thread of V2."""

    def write(self) -> None:
        """Writes the stream: the small tables are read first, then item after item."""
        self._requests: dict[str, tuple[dict[str, Any], list[Ref]]] = {}
        self._done: set[str] = set()
        self._again: set[int] = set()
        """Rows of a request that another row tells of."""
        self._agents = {}
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
                if request in self._requests:
                    self._again.add(row.cell.number)
                elif request is not None:
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
        self.head(title, {**provider, "providerSessions": list(dict.fromkeys(natives)) or None}, refs)

    def _left_requests(self) -> None:
        """Requests that no item tells of."""
        for row in rows(self.veil, self.source):
            if not isinstance(row, Row) or row.hole is not None:
                continue
            if row.cell.table not in (layout.REQUESTS, layout.OUTBOX):
                continue
            request = text(row.value.get("requestId", row.value.get("id")))
            if request is None or row.cell.number in self._again:
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
        nameless = text(item.get("id")) is None and native_id(item) is None
        if row.cell.column is None or (kind in CALLS and nameless):
            self.pen.unmapped(kind)  # a row without its text, or a call that nothing names
        elif kind in CALLS:
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
