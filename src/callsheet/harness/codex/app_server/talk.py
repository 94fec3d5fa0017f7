"""Messages, reasoning, turns, usage, plans, hooks and the diff of a turn, of one thread.

Owns: items that are words (each counts when it is complete; its deltas are shown and thrown away), raw messages of
the harness, summaries apart from raw chain of thought (decision 11), the states of a turn, usage as reported, and the
one cumulative diff of a turn, superseded in place (decision 14).

Must never know: calls and results, requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Raw

from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.pen import Pen, amount, number
from callsheet.harness.codex import contents
from callsheet.harness.codex.app_server.shapes import Item
from callsheet.harness.codex.changes import changes_of_diff
from callsheet.harness.codex.shapes import string, text
from callsheet.harness.codex.talk import NOT_ASKED, error_of
from callsheet.records import (
    Compaction,
    FileChange,
    Hook,
    Message,
    Part,
    Plan,
    PlanEntry,
    Reasoning,
    Turn,
    Usage,
)
from callsheet.registry import Registry
from callsheet.wire.blobs import digest

HANDLERS = {"mcpTool": "mcp_tool"}


class Talk:
    """Writes what is said in one thread."""

    def __init__(self, pen: Pen, registry: Registry) -> None:
        self._pen = pen
        self._kinds = {
            row.type.removeprefix("content/"): row.author
            for row in registry.line
            if row.type.startswith("content/") and row.author
        }
        self._states = {
            (row.entity, row.source, row.value): row.then
            for row in registry.terminal_status
            if row.source in ("turn/status", "plan/status")
        }
        self._hooks = {row.type: row.status for row in registry.hook}
        self._events = {row.native: row for row in registry.hook_event}
        self._diffs: dict[str, str] = {}
        self._responses = 0

    # -- words --------------------------------------------------------------------------------------------------

    def said(self, author: str, item: Item, pointer: str) -> bool:
        """``userMessage``, ``agentMessage``, ``hookPrompt``: words that are complete."""
        pen = self._pen
        member = {"model": "text", "hook": "fragments"}.get(author, "content")
        raw: Raw = getattr(item, member)
        where = f"{pointer}/{member}"
        if mark(raw) not in (b'"', b"["):
            return False
        record = Message(author=author, message_id=text(item.id))
        if author == "hook":
            words = (members_of(one).get("text", ABSENT) for one in items_of(raw))
            record.content = _texts(words)
        else:
            record.content = contents.parts(raw, pen.desk)
        record.native = pen.native("message", where)
        pen.readable(record, "content", where)
        pen.write(record)
        return True

    def raw_message(self, item: Raw, pointer: str) -> bool:
        """A raw message: only what the harness put in, which no item shows; words of person and model are items."""
        pen = self._pen
        members = members_of(item)
        role = text_of(members.get("role", ABSENT))
        meta = members_of(members.get("internal_chat_message_metadata_passthrough", ABSENT))
        kinds = value_of(meta.get("content_item_kinds", ABSENT))
        content = items_of(members.get("content", ABSENT))
        if role not in ("developer", "system", "user") or not content:
            return False
        kind = kinds[0] if isinstance(kinds, list) and kinds else None
        author = "harness" if role == "developer" else role
        if isinstance(kind, str):
            found = self._kinds.get(kind.partition(".")[0], "harness")
            author = author if found == "role" else found
        if author == "user":
            return False
        record = Message(author=author, message_id=text_of(members.get("id", ABSENT)))
        record.content = [contents.part(one, pen.desk) for one in content]
        record.native = pen.native("raw_message", f"{pointer}/content")
        pen.readable(record, "content", f"{pointer}/content")
        pen.write(record)
        return True

    def reasoned(self, item: Item, pointer: str) -> None:
        """Summaries, and that there is raw chain of thought."""
        pen = self._pen
        summary = _texts(items_of(item.summary))
        raw = items_of(item.content)
        if summary:
            where = f"{pointer}/summary"
            record = Reasoning(form="summary", content=summary, native=pen.native("summary", where))
            pen.readable(record, "content", where)
            pen.write(record)
        if raw:
            record = Reasoning(form="raw", native=pen.native("raw", f"{pointer}/content"))
            if pen.desk.keep_reasoning:
                record.content = _texts(raw)
                pen.readable(record, "content", f"{pointer}/content")
            else:
                pen.capture(record, "content", "redacted", reason=NOT_ASKED)
            pen.write(record)
        elif not summary:
            record = Reasoning(native=pen.native("reasoning", pointer))
            pen.capture(record, "content", "absent")
            pen.write(record)

    def planned(self, item: Item, pointer: str) -> None:
        """A plan that the agent wrote as one text."""
        words = text_of(item.text)
        if words is None:
            return
        record = Plan(plan_id=string(item.id) or "proposed", entries=[PlanEntry(text=words)])
        record.id_source = "native" if string(item.id) else "derived"
        record.native = self._pen.native("plan_text", f"{pointer}/text")
        self._pen.revise(f"plan {record.plan_id}", record)

    def plan(self, params: dict[str, Raw], pointer: str) -> bool:
        """``turn/plan/updated``: the steps, without a call."""
        listed = params.get("plan", ABSENT)
        if mark(listed) != b"[":
            return False
        entries = []
        for raw in items_of(listed):
            members = members_of(raw)
            words = text_of(members.get("step", ABSENT))
            if words is not None:
                word = text_of(members.get("status", ABSENT)) or None
                entries.append(
                    PlanEntry(text=words, status=self._states.get(("plan", "plan/status", word), word))
                )
        if not entries and items_of(listed):
            return False
        record = Plan(plan_id="plan", id_source="derived", entries=entries)
        record.native = self._pen.native("steps", f"{pointer}/plan")
        self._pen.revise("plan", record)
        return True

    # -- turns --------------------------------------------------------------------------------------------------

    def turn(self, params: dict[str, Raw], pointer: str) -> tuple[str | None, bool]:
        """``turn/started`` and ``turn/completed``; returns the turn, and whether it is over."""
        pen = self._pen
        told = members_of(params.get("turn", ABSENT))
        turn_id = text_of(told.get("id", ABSENT))
        if not turn_id:
            return None, False
        word = text_of(told.get("status", ABSENT))
        status = self._states.get(("turn", "turn/status", word), "unknown")
        record = Turn(turn_id=turn_id, id_source="native", status=status)
        record.native = pen.native("state", f"{pointer}/turn")
        error = value_of(told.get("error", ABSENT))
        if isinstance(error, dict):
            record.error = error_of({**error, "codex_error_info": error.get("codexErrorInfo")})
        record.duration_ms = amount(value_of(told.get("durationMs", ABSENT)))
        pen.revise(f"turn {turn_id}", record)
        over = status != "running"
        if over:
            pen.forget(f"turn {turn_id}")
            self._diffs.pop(turn_id, None)
        return turn_id, over

    def diff(self, params: dict[str, Raw], pointer: str) -> bool:
        """``turn/diff/updated``: the whole diff of the turn so far, often the same again."""
        pen = self._pen
        turn_id = text_of(params.get("turnId", ABSENT))
        words = params.get("diff", ABSENT)
        diff = text_of(words)
        if turn_id is None or diff is None:
            return False
        told = digest(bytes(words))
        changes = changes_of_diff(pen, diff)
        if self._diffs.get(turn_id) == told or (diff.strip() and not changes):
            return False
        self._diffs[turn_id] = told
        record = FileChange(scope="turn", turn_id=turn_id, state="applied", changes=changes)
        record.native = pen.native("diff", f"{pointer}/diff")
        if not pen.inline(record, "changes", words, f"{pointer}/diff"):
            for change in changes:
                change.patch = None
        pen.revise(f"diff {turn_id}", record)
        return True

    # -- usage --------------------------------------------------------------------------------------------------

    def response(self, params: dict[str, Raw], pointer: str) -> bool:
        """``rawResponse/completed``: one response's usage, with the response's id."""
        self._responses += 1
        counts = counts_of(value_of(params.get("usage", ABSENT)))
        if not counts:
            return False
        record = Usage(scope="inference", counts=counts)
        record.inference_id = text_of(params.get("responseId", ABSENT)) or None
        record.native = self._pen.native("usage", f"{pointer}/usage")
        self._pen.write(record)
        return True

    def usage(self, params: dict[str, Raw], pointer: str) -> bool:
        """``thread/tokenUsage/updated``: the last response, unless it was told with its id, and the total so far."""
        pen = self._pen
        told = members_of(params.get("tokenUsage", ABSENT))
        window = number(value_of(told.get("modelContextWindow", ABSENT)))
        window = window if isinstance(window, int) else None
        last, total = (counts_of(value_of(told.get(name, ABSENT))) for name in ("last", "total"))
        apart = bool(last) and not self._responses
        if apart:
            record = Usage(scope="inference", counts=last, context_window=window)
            record.native = pen.native("last", f"{pointer}/tokenUsage/last")
            pen.write(record)
        self._responses = max(self._responses - 1, 0)
        if total:
            record = Usage(scope="session", cumulative=True, counts=total, context_window=window)
            record.native = pen.native("sum", f"{pointer}/tokenUsage/total")
            pen.write(record)
        return apart or bool(total)

    # -- hooks and compactions ----------------------------------------------------------------------------------

    def hook(self, params: dict[str, Raw], pointer: str) -> bool:
        """``hook/started`` and ``hook/completed``: the run's id is no identity, two runs may have one."""
        pen = self._pen
        run = members_of(params.get("run", ABSENT))
        name = text_of(run.get("eventName", ABSENT))
        if not name:
            return False
        word = text_of(run.get("status", ABSENT)) or ""
        if self._hooks.get(word) is None and word == "running":
            return False
        event = self._events.get(name)
        record = Hook(event=event.event if event is not None else name)
        record.status = self._hooks.get(word, "unknown")
        handler = text_of(run.get("handlerType", ABSENT))
        record.handler_kind = HANDLERS.get(handler or "", handler)
        record.native = pen.native("hook", f"{pointer}/run")
        run_id = text_of(run.get("id", ABSENT))
        record.native.id = run_id
        place = text_of(run.get("sourcePath", ABSENT))
        if event is not None and event.call and run_id and place:
            # <event>:<number>:<file>:<call>
            record.call_id = run_id.partition(f":{place}:")[2] or None
        words = (members_of(raw).get("text", ABSENT) for raw in items_of(run.get("entries", ABSENT)))
        record.output = _texts(words) or None
        record.duration_ms = amount(value_of(run.get("durationMs", ABSENT)))
        pen.write(record)
        return True

    def compacted(self, pointer: str) -> None:
        """The context was replaced; with what, no frame says."""
        self._pen.write(Compaction(native=self._pen.native("compaction", pointer)))


def _texts(items: Iterable[Raw]) -> list[Part]:
    """The texts among some values, a part each."""
    return [part for one in items if mark(one) == b'"' for part in contents.text_parts(one)]
