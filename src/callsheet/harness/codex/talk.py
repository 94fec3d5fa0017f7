"""Messages, reasoning, usage, turns and compactions of a thread.

Owns: who wrote a message (the kinds that Codex records for its parts since 0.160, the events about what the person
typed in older files, else the role and the harness's own tags, by the registry's ``[[line]]`` rows), summaries apart
from raw chain of thought (decision 11), usage as reported, and the states of a turn.

Must never know: calls and results.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Raw

from callsheet.harness._port.counts import counts_of
from callsheet.harness._port.pen import Pen, number, raw_json
from callsheet.harness.codex import contents
from callsheet.harness.codex.shapes import (
    ABSENT,
    Payload,
    clean_data,
    mark,
    members_of,
    parts_of,
    payload_text,
    string,
    text,
    text_of,
    value_of,
)
from callsheet.harness.codex.survey import Survey
from callsheet.records import Compaction, Error, Message, Notice, Reasoning, Turn, Usage
from callsheet.registry import Registry

NOT_ASKED = "raw chain of thought is kept only when asked for"
ENCRYPTED = "encrypted by the model's provider"

INVENTED = "rollout-"
"""How the ids of turns begin that a migration made up; Codex's own are UUIDs."""
NOTHING = (b"", b"null", b'""')
"""Contents that say nothing."""
_TAG = re.compile(r"\s*<([A-Za-z][A-Za-z_-]{0,40})>")
AGENTS_MD = "# AGENTS.md instructions for "


class Talk:
    """Writes the records of one thread that are neither calls nor results."""

    def __init__(self, pen: Pen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._window: int | None = None
        self._kinds: dict[str, str] = {}
        self._roles: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self.notices = frozenset(row.type for row in registry.line if row.becomes == "notice")
        for row in registry.line:
            if row.becomes == "message" and row.author:
                table = (
                    self._tags if row.tag else self._kinds if row.type.startswith("content/") else self._roles
                )
                table[row.tag or row.type.rpartition("#")[2].removeprefix("content/")] = row.author

    # -- messages -----------------------------------------------------------------------------------------------

    def message(self, payload: Payload, pointer: str) -> list[Message]:
        """A message; one record for each author of its parts."""
        pen = self._pen
        raw = payload.content
        items = parts_of(raw) if mark(raw) == b"[" else [raw] if bytes(raw) not in NOTHING else []
        if not items:
            return []
        authors = self._authors(payload, items)
        written: list[Message] = []
        start = 0
        for end in range(1, len(items) + 1):
            if end < len(items) and authors[end] == authors[start]:
                continue
            whole = start == 0 and end == len(items)
            at = f"{pointer}/content" if whole else f"{pointer}/content/{start}"
            record = Message(
                author=authors[start],
                content=[contents.part(item, pen.desk) for item in items[start:end]],
                message_id=text(payload.id),
                native=pen.native("message", at),
            )
            pen.readable(record, "content", at if whole else f"{pointer}/content")
            pen.write(record)
            written.append(record)
            start = end
        return written

    def _authors(self, payload: Payload, items: list[Raw]) -> list[str]:
        role = payload.role if isinstance(payload.role, str) else ""
        kinds = self._kinds_of(payload)
        if len(kinds) == len(items):
            by_role = self._roles.get(role, role or "harness")
            return [self._author_of_kind(kind, by_role) for kind in kinds]
        return [self._author(role, items)] * len(items)

    @staticmethod
    def _kinds_of(payload: Payload) -> list[str | None]:
        raw = payload.internal_chat_message_metadata_passthrough
        if not raw or b"content_item_kinds" not in bytes(raw):
            return []
        # One by one: an element that no decoder takes says nothing, and takes nothing from the others.
        kinds = members_of(raw).get("content_item_kinds", ABSENT)
        return [text_of(kind) for kind in parts_of(kinds)] if mark(kinds) == b"[" else []

    def _author_of_kind(self, kind: str | None, by_role: str) -> str:
        if kind is None:
            return by_role
        found = self._kinds.get(kind.partition(".")[0], "harness")
        return by_role if found == "role" else found

    def _author(self, role: str, items: list[Raw]) -> str:
        if role != "user":
            return self._roles.get(role, role or "harness")
        words = [text_of(members_of(item).get("text", ABSENT)) for item in items if mark(item) == b"{"]
        told = [word for word in words if word is not None]
        if self._survey.tells_typed:
            typed = self._survey.typed
            known = hash("".join(told)) in typed or any(hash(word) in typed for word in told)
            return "user" if known else "harness"
        first = told[0] if told else ""
        found = _TAG.match(first)
        tag = "INSTRUCTIONS" if first.startswith(AGENTS_MD) else found.group(1) if found else ""
        closed = f"</{tag}>" in first
        return self._tags.get(tag, "user") if tag and closed else self._roles.get(role, "user")

    def agent_message(self, payload: Payload, pointer: str) -> None:
        """What one agent told another, as the harness handed it over."""
        pen = self._pen
        record = Message(author="harness", content=contents.parts(payload.content, pen.desk))
        record.message_id = text(payload.id)
        record.native = pen.native("message", f"{pointer}/content")
        members = members_of(payload_text(clean_data(pen.unit)))
        texts = ((name, text_of(members.get(name, ABSENT))) for name in ("author", "recipient"))
        told = {name: words for name, words in texts if words is not None}
        if told:
            record.native.extra = raw_json(told)
        pen.readable(record, "content", f"{pointer}/content")
        pen.write(record)

    def notice(self, payload: Payload, native_type: str) -> None:
        """What the harness told the person, or noted: its words, else its members."""
        pen = self._pen
        if mark(payload.message) == b'"':
            write_notice(pen, native_type, payload.message, "/payload/message")
            return
        record = Notice(native_type=native_type, native=pen.native("notice", "/payload"))
        value = payload_text(clean_data(pen.unit))
        if not value:
            return
        if pen.inline(record, "value", value, "/payload"):
            record.value = value
        pen.write(record)

    # -- reasoning ----------------------------------------------------------------------------------------------

    def reasoning(self, payload: Payload, pointer: str) -> None:
        """Summaries, and what is said of raw chain of thought."""
        pen = self._pen
        summary = [contents.part(item, pen.desk) for item in parts_of(payload.summary)]
        raw = parts_of(payload.content)
        if summary:
            record = Reasoning(
                form="summary", content=summary, native=pen.native("summary", f"{pointer}/summary")
            )
            pen.readable(record, "content", f"{pointer}/summary")
            pen.write(record)
        if raw or mark(payload.content) == b'"':
            record = Reasoning(form="raw", native=pen.native("raw", f"{pointer}/content"))
            if pen.desk.keep_reasoning:
                record.content = contents.parts(payload.content, pen.desk)
                pen.readable(record, "content", f"{pointer}/content")
            else:
                pen.capture(record, "content", "redacted", reason=NOT_ASKED)
            pen.write(record)
        elif not summary:
            record = Reasoning(native=pen.native("reasoning", pointer or None))
            if self._is_encrypted(pointer):
                pen.capture(record, "content", "redacted", reason=ENCRYPTED)
            else:
                pen.capture(record, "content", "absent")
            pen.write(record)

    def _is_encrypted(self, pointer: str) -> bool:
        data = clean_data(self._pen.unit)
        whole = payload_text(data) if pointer else Raw(data)
        return mark(members_of(whole).get("encrypted_content", ABSENT)) == b'"'

    # -- usage --------------------------------------------------------------------------------------------------

    def usage_record(self, payload: Payload) -> None:
        """One response's usage, and the thread's total so far (0.160 and later)."""
        pen = self._pen
        counts = counts_of(value_of(payload.usage))
        if counts:
            native = pen.native("usage", "/payload/usage")
            response = text(payload.response_id)
            pen.write(Usage(scope="inference", counts=counts, inference_id=response, native=native))
        total = counts_of(value_of(payload.thread_token_usage))
        if total:
            native = pen.native("total", "/payload/thread_token_usage")
            pen.write(Usage(scope="session", cumulative=True, counts=total, native=native))

    def token_count(self, payload: Payload) -> None:
        """The session's total so far, as reported; written again without any response, it is written again here.

        Where the thread has records of its usage, only the context window is told here alone.
        """
        members = members_of(payload.info)
        window = number(value_of(members.get("model_context_window", ABSENT)))
        window = window if isinstance(window, int) else None
        if self._survey.has_usage:
            if window is not None and window != self._window:
                self._window = window
                native = self._pen.native("window", "/payload/info")
                self._pen.write(Usage(scope="session", context_window=window, native=native))
            return
        counts = counts_of(value_of(members.get("total_token_usage", ABSENT)))
        if not counts:
            return
        record = Usage(scope="session", cumulative=True, counts=counts, context_window=window)
        record.native = self._pen.native("total", "/payload/info")
        self._pen.write(record)

    # -- turns --------------------------------------------------------------------------------------------------

    def turn(self, payload: Payload) -> None:
        """A turn starts, ends, or is aborted."""
        pen = self._pen
        kind = payload.type
        turn_id = string(payload.turn_id)
        source = pen.source.id
        record = Turn(
            turn_id=f"#{source}.{pen.unit.line.number}" if turn_id is None else turn_id,
            id_source="derived" if turn_id is None else "native",
            status={"task_started": "running", "task_complete": "completed"}.get(kind or "", "interrupted"),
            native=pen.native("turn", "/payload"),
        )
        if kind == "turn_aborted":
            record.reason = text(payload.reason)
        record.duration_ms = _positive(payload.duration_ms)
        if isinstance(payload.error, dict):
            record.status = "failed"
            record.error = error_of(payload.error)
        if turn_id is not None and turn_id.startswith(INVENTED):
            assert record.native is not None
            record.native.synthetic = True
            if kind == "task_complete":
                record.status = "unknown" if record.error is None else "failed"
        key = f"turn {record.turn_id}"
        pen.revise(key, record)
        if kind != "task_started":
            pen.forget(key)

    # -- compaction ---------------------------------------------------------------------------------------------

    def compacted(self, payload: Payload) -> None:
        """The context was replaced."""
        pen = self._pen
        record = Compaction(native=pen.native("compaction", "/payload"))
        if mark(payload.message) == b'"' and len(payload.message) > 2:
            record.summary = contents.text_parts(payload.message)
            pen.readable(record, "summary", "/payload/message")
        members = members_of(payload_text(clean_data(pen.unit)))
        told = {
            name: value_of(members[name])
            for name in ("window_id", "window_number", "previous_window_id", "first_window_id")
            if name in members
        }
        if told:
            record.after = raw_json(told)
        pen.write(record)


def write_notice(pen: Pen, native_type: str, words: Raw, pointer: str, item_id: str | None = None) -> None:
    """Words of the harness for the person."""
    record = Notice(native_type=native_type, content=contents.text_parts(words))
    record.native = pen.native("notice", pointer)
    record.native.id = item_id
    pen.readable(record, "content", pointer)
    pen.write(record)


def _positive(value: Any) -> int | float | None:
    found = number(value)
    return found if found is not None and found >= 0 else None


def error_of(value: dict[str, Any]) -> Error | None:
    """An error as the source words it; None where it has no words for it."""
    message, code = value.get("message"), value.get("codex_error_info", value.get("code"))
    whole = number(code)
    fits = code if isinstance(code, str) else whole if isinstance(whole, int) else None
    if isinstance(code, dict):
        fits = next(iter(code), None)
    found = Error(message=message if isinstance(message, str) else None, code=fits)
    return found if found != Error() else None
