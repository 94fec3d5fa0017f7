"""Threads of T3 Code V1: messages and activities, approvals, turns.

Owns: the way of each activity to its records. Only ``tool.completed`` has an identity: with Codex its payload holds the
provider's whole item, with Claude a tool's name and input without an id. ``tool.started`` and ``tool.updated`` name
nothing and pair with nothing. An answer stands in the event that a client sent; who sat at that client is not recorded.

Must never know: V2's tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any

from callsheet.harness._port.cells import Damage
from callsheet.harness._port.gitdiff import changes_of_diff
from callsheet.harness._port.parts import mark
from callsheet.harness._port.pen import verbatim
from callsheet.harness.t3code import layout
from callsheet.harness.t3code.old_calls import CHANGES, OldCalls
from callsheet.harness.t3code.pen import keep, listed, text
from callsheet.harness.t3code.rows import Row, rows
from callsheet.records import (
    Change,
    Compaction,
    FileChange,
    Hook,
    Message,
    Part,
    Plan,
    PlanEntry,
    Ref,
    Subagent,
    Terminal,
    Turn,
)

AUTHORS = {"user": "user", "assistant": "model", "system": "system"}
SHELL_TASK = "local_bash"


class OldThread(OldCalls):
    """Writes a thread of V1."""

    def write(self) -> None:
        """Writes the stream: messages and activities in the order of their times."""
        self._pending: dict[str, tuple[dict[str, Any], list[Ref]]] = {}
        self._tasks: dict[str, tuple[str, str | None, str]] = {}
        self._done: set[str] = set()
        self._counts: dict[int, str] = {}
        self._read_answers()
        self._read_head()
        for row in self._in_time():
            if row.cell.table == layout.OLD_MESSAGES:
                self._message(row)
            else:
                self._activity(row)
        for found in rows(self.veil, self.source):
            if isinstance(found, Damage):
                self.damaged(found)
            elif found.cell.table in (layout.OLD_MESSAGES, layout.ACTIVITIES):
                continue
            elif found.hole is not None:
                self.damaged(found)
            elif found.cell.table == layout.OLD_TURNS:
                self._turn(found)
            elif found.cell.table == layout.OLD_PLANS:
                self._proposed(found)
            elif found.cell.table == layout.DIFFS:
                self._diff(found)
        self._left_answers()

    def _in_time(self) -> Iterator[Row]:
        """Messages and activities, merged by their times; each table is in order of them already."""
        return merge(
            *(
                (row for row in rows(self.veil, self.source, table) if isinstance(row, Row))
                for table in (layout.OLD_MESSAGES, layout.ACTIVITIES)
            ),
            key=lambda row: str(row.key.get("created_at") or row.value.get("created_at") or ""),
        )

    # -- what stands around them --------------------------------------------------------------------------------

    def _read_answers(self) -> None:
        for row in rows(self.veil, self.source, layout.PENDING):
            if isinstance(row, Row) and row.hole is None and text(row.value.get("request_id")):
                told = row.value
                value = {
                    "decision": told.get("decision"),
                    "requestStatus": told.get("status"),
                    "resolvedAt": told.get("resolved_at"),
                }
                self._pending[told["request_id"]] = (value, [self.ref(row.cell, "approval")])
        for row in rows(self.veil, self.source, layout.EVENTS):
            if not isinstance(row, Row) or row.hole is not None or not text(row.value.get("requestId")):
                continue
            value, refs = self._pending.setdefault(row.value["requestId"], ({}, []))
            refs.append(self.ref(row.cell, "response"))
            value["actorKind"] = row.key.get("actor_kind")
            for name in ("decision", "answers"):
                if value.get(name) is None and row.value.get(name) is not None:
                    value[name] = row.value[name]
            value.setdefault("resolvedAt", row.key.get("occurred_at"))
        for row in rows(self.veil, self.source, layout.ACTIVITIES):
            if isinstance(row, Row) and row.key.get("kind") in ("approval.resolved", "user-input.resolved"):
                request = text(row.value.get("requestId"))
                if request is not None:
                    value, refs = self._pending.setdefault(request, ({}, []))
                    refs.append(self.ref(row.cell, "resolution"))
                    for name in ("decision", "answers"):
                        if value.get(name) is None and row.value.get(name) is not None:
                            value[name] = row.value[name]

    def _read_head(self) -> None:
        title: str | None = None
        provider: dict[str, Any] = {}
        refs: list[Ref] = []
        sessions: list[str | None] = []
        for table, role in (
            (layout.PROJECTS, "project"),
            (layout.OLD_THREADS, "thread"),
            (layout.OLD_SESSIONS, "provider"),
            (layout.RUNTIME, "runtime"),
        ):
            for row in rows(self.veil, self.source, table):
                if not isinstance(row, Row) or row.hole is not None:
                    continue
                refs.append(self.ref(row.cell, role))
                if table == layout.OLD_THREADS:
                    title = text(row.value.get("title"))
                elif table == layout.OLD_SESSIONS:
                    provider["provider"] = text(row.value.get("provider_name"))
                    sessions += [
                        row.value.get(name) for name in ("provider_thread_id", "provider_session_id")
                    ]
                elif table == layout.RUNTIME:
                    sessions.append(layout.resumed(row.value))
        named = list(dict.fromkeys(one for one in sessions if text(one)))
        self.head(title, {**provider, "providerSessions": named or None}, refs)

    def _left_answers(self) -> None:
        """Approvals and answers to requests of which no activity tells."""
        for row in rows(self.veil, self.source):
            if not isinstance(row, Row) or row.hole is not None:
                continue
            if row.cell.table not in (layout.PENDING, layout.EVENTS):
                continue
            request = text(row.value.get("request_id", row.value.get("requestId")))
            if request is None:
                self.take(row)
                self.pen.unmapped(row.cell.table)
            elif request not in self._done:
                self._done.add(request)
                value, refs = self._pending.get(request, ({}, []))
                self.take(row, value.get("resolvedAt"))
                others = [ref for ref in refs if ref.key != row.key]
                if value.get("answers") is not None:
                    self.question(request, [value], call_id=None, others=others)
                else:
                    self.permission(request, [value], call_id=None, command=None, others=others)

    def _message(self, row: Row) -> None:
        if self.damaged(row):
            return
        value = row.value
        self.take(row, value.get("created_at"))
        author = AUTHORS.get(str(value.get("role")), "harness")
        record = Message(author=author, message_id=text(value.get("message_id")))
        record.native = self.pen.native("message", "")
        raw = row.part("text")
        if mark(raw) == b'"':
            record.content = [Part(type="text", text=verbatim(raw))]
        else:
            self.pen.capture(record, "content", "absent")
        if value.get("is_streaming") == 1 and record.content is not None:
            self.pen.capture(record, "content", "truncated", reason="it was still being written")
        self.pen.write(record)

    def _turn(self, row: Row) -> None:
        value = row.value
        self.take(row, value.get("completed_at") or value.get("started_at") or value.get("requested_at"))
        turn = text(value.get("turn_id"))
        if turn is None:
            self.pen.unmapped(layout.OLD_TURNS)
            return
        status = self.state("turn", "turn", value.get("state")) or "unknown"
        record = Turn(turn_id=turn, status=status, native=self.pen.native("turn", ""))
        self.pen.revise(f"turn {turn}", record)
        files = listed(value.get("checkpoint_files_json"))
        changes = [
            Change(path=self.pen.path(one["path"]), change=CHANGES.get(str(one.get("kind"))))
            for one in files
            if text(one.get("path"))
        ]
        if changes:
            made = FileChange(scope="turn", turn_id=turn, state="applied", changes=changes)
            made.native = self.pen.native("turn", "/checkpoint_files_json")
            self.pen.revise(f"changes {turn}", made)
        count = value.get("checkpoint_turn_count")
        if type(count) is int:
            self._counts[count] = turn

    def _diff(self, row: Row) -> None:
        """What one turn changed, as a git diff; one over several turns is of none of them."""
        value = row.value
        self.take(row, value.get("created_at"))
        since, until = value.get("from_turn_count"), value.get("to_turn_count")
        turn = self._counts.get(until) if type(until) is int and since == until - 1 else None
        diff = text(value.get("diff"))
        changes = changes_of_diff(diff, self.pen.path) if turn is not None and diff else []
        if not changes:
            self.pen.unmapped(layout.DIFFS)
            return
        record = FileChange(scope="turn", turn_id=turn, state="applied", changes=changes)
        record.native = self.pen.native("diff", "/diff")
        if not self.pen.inline(record, "changes", row.part("diff"), "/diff"):
            for change in changes:
                change.patch = None
        self.pen.revise(f"changes {turn}", record)

    def _proposed(self, row: Row) -> None:
        value = row.value
        self.take(row, value.get("created_at"))
        plan, words = text(value.get("plan_id")), text(value.get("plan_markdown"))
        if plan is None or words is None:
            self.pen.unmapped(layout.OLD_PLANS)
            return
        record = Plan(plan_id=plan, entries=[PlanEntry(text=words)], native=self.pen.native("plan", ""))
        self.pen.revise(f"plan {plan}", record)

    # -- activities ---------------------------------------------------------------------------------------------

    def _activity(self, row: Row) -> None:
        if self.damaged(row):
            return
        kind, value = str(row.key.get("kind")), row.value
        self.take(row, row.key.get("created_at"))
        if kind == "tool.completed":
            self._tool(row, value)
        elif kind == "tool.denied":
            self._denied(row, value)
        elif kind == "approval.requested":
            self._approval(value)
        elif kind == "user-input.requested":
            self._question(value)
        elif kind in ("approval.resolved", "user-input.resolved"):
            self._resolved(kind, value)
        elif kind.startswith("task."):
            self._task(kind, value)
        elif kind == "turn.plan.updated":
            self._plan(row, value)
        elif kind == "context-window.updated":
            self.window(value, "/payload_json", "activity")
        elif kind == "context-compaction":
            self.pen.write(Compaction(native=self.pen.native("activity", "/payload_json")))
        elif kind.startswith("setup-script."):
            self._setup(kind, value)
        elif kind in ("runtime.error", "runtime.warning"):
            self._said(value)
        if not self.pen.written:
            self.pen.unmapped(kind)

    def _approval(self, value: dict[str, Any]) -> None:
        request = text(value.get("requestId"))
        if request is None:
            return
        self._done.add(request)
        told, refs = self._pending.get(request, ({}, []))
        command = text(value.get("detail")) if value.get("requestKind") == "command" else None
        both = [{**value, "requestStatus": None}, told]
        self.permission(request, both, call_id=None, command=command, others=refs)

    def _question(self, value: dict[str, Any]) -> None:
        request = text(value.get("requestId"))
        if request is None:
            return
        self._done.add(request)
        told, refs = self._pending.get(request, ({}, []))
        self.question(request, [value, told], call_id=None, others=refs)

    def _resolved(self, kind: str, value: dict[str, Any]) -> None:
        request = text(value.get("requestId"))
        if request is None:
            return
        self.pen.cited()  # by the request, which is written with its end
        if request not in self._done:
            self._done.add(request)
            told, refs = self._pending.get(request, ({}, []))
            others = [ref for ref in refs if ref.line != self.pen.unit.line.number]
            if kind == "user-input.resolved":
                self.question(request, [value, told], call_id=None, others=others)
            else:
                self.permission(request, [value, told], call_id=None, command=None, others=others)

    def _task(self, kind: str, value: dict[str, Any]) -> None:
        task = text(value.get("taskId"))
        if task is None:
            return
        known, name, before = self._tasks.get(task, ("", None, "unknown"))
        known = text(value.get("taskType")) or known
        name = text(value.get("title")) or name or text(value.get("detail"))
        word = value.get("status") if kind == "task.completed" else kind
        entity = "terminal" if known == SHELL_TASK else "subagent"
        status = self.state(entity, "task", word) or before  # a word that says nothing changes nothing
        self._tasks[task] = (known, name, status)
        native = self.pen.native("activity", "/payload_json")
        if known == SHELL_TASK:
            record = Terminal(terminal_id=task, kind="shell", description=name, status=status, native=native)
            self.pen.revise(f"terminal {task}", record)
        else:
            agent = Subagent(agent_id=task, name=name, status=status, native=native)
            self.pen.revise(f"agent {task}", agent)

    def _plan(self, row: Row, value: dict[str, Any]) -> None:
        if not isinstance(value.get("plan"), list):
            return
        plan = str(row.key.get("turn_id"))
        entries = [
            PlanEntry(text=one["step"], status=self.state("plan", "step", one.get("status")))
            for one in listed(value.get("plan"))
            if isinstance(one.get("step"), str)
        ]
        if value["plan"] and not entries:
            return
        record = Plan(plan_id=plan, id_source="derived", entries=entries)
        record.native = self.pen.native("activity", row.pointer("/plan"))
        self.pen.revise(f"plan {plan}", record)

    def _setup(self, kind: str, value: dict[str, Any]) -> None:
        """The project's set-up script in a new worktree: a hook, never a call (ASR-287)."""
        name = f"{value.get('scriptId')} {value.get('terminalId')}"
        record = Hook(
            event="workspace_setup",
            handler_kind="command",
            name=text(value.get("scriptName")),
            status=self.state("hook", "setup", kind) or "unknown",
            native=self.pen.native("activity", "/payload_json"),
        )
        assert record.native is not None
        keep(record.native, terminalId=text(value.get("terminalId")), scriptId=text(value.get("scriptId")))
        self.pen.revise(f"hook {name}", record)

    def _said(self, value: dict[str, Any]) -> None:
        words = text(value.get("message")) or text(value.get("detail"))
        if words is not None:
            record = Message(author="harness", content=[Part(type="text", text=words)])
            record.native = self.pen.native("activity", "/payload_json")
            self.pen.write(record)
