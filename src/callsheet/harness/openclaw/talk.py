"""Messages, reasoning, usage and compactions of a transcript.

Owns: who wrote a message (the role, and the provenance that OpenClaw puts on prompts it made itself), reasoning of
which the source does not say what it is (decision 11), usage as reported, a failed request's error as words of the
harness.

Must never know: calls and results.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from callsheet.harness._port.parts import is_null, mark, value_of
from callsheet.harness._port.pen import number, raw_json, verbatim
from callsheet.harness.openclaw import contents
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.shapes import Block, Entry, Message, text
from callsheet.records import Compaction, Count, Part, Reasoning, Usage
from callsheet.records import Message as MessageRecord
from callsheet.registry import Registry
from callsheet.registry.via import numbers
from callsheet.registry.when import MISSING, matches

NOT_ASKED = "chain of thought is kept only when asked for"


class Talk:
    """Writes the records of one session that are neither calls nor results."""

    def __init__(self, pen: TreePen, registry: Registry) -> None:
        self._pen = pen
        self._authors: dict[str, list[Any]] = {}
        for row in registry.line:
            if row.becomes == "message" and row.author:
                self._authors.setdefault(row.type, []).append(row)

    def _author(self, kind: str, message: Message | None, default: str) -> str:
        native = {"message": {"provenance": message.provenance}} if message and message.provenance else {}
        for row in self._authors.get(kind, ()):
            if matches(row.when, native):
                return str(row.author)
        return default

    def message(self, entry: Entry, message: Message) -> None:
        """A message of a role that speaks: user, system, or one that this version does not know."""
        pen = self._pen
        role = message.role if isinstance(message.role, str) else ""
        record = MessageRecord(
            author=self._author(f"message/{role}", message, "harness"),
            message_id=text(entry.id),
            native=pen.native("message", "/message/content" if message.content else "/message"),
        )
        assert record.native is not None
        if isinstance(message.provenance, dict):
            keep(record.native, provenance=message.provenance)
        self._put_content(record, message.content, "/message/content")
        pen.write(record)

    def _put_content(self, record: MessageRecord, raw: Raw, pointer: str) -> None:
        if not raw or is_null(raw):
            self._pen.capture(record, "content", "absent")
            return
        record.content = contents.parts(raw, self._pen.desk)
        self._pen.readable(record, "content", pointer)

    def said(self, entry: Entry, block: Raw, pointer: str, inference: str | None) -> None:
        """A text, or any other block, of an assistant message."""
        pen = self._pen
        record = MessageRecord(
            author="model",
            content=[contents.part(block, pen.desk)],
            message_id=text(entry.id),
            inference_id=inference,
            native=pen.native("message", pointer),
        )
        pen.readable(record, "content", pointer)
        pen.write(record)

    def thought(self, block: Block, pointer: str, inference: str | None) -> None:
        """A thinking block."""
        pen = self._pen
        record = Reasoning(inference_id=inference, native=pen.native("message", pointer))
        if not pen.desk.keep_reasoning:
            pen.capture(record, "content", "redacted", reason=NOT_ASKED)
        elif mark(block.thinking) == b'"':
            record.content = [Part(type="text", text=verbatim(block.thinking))]
            pen.readable(record, "content", f"{pointer}/thinking")
        else:
            pen.capture(record, "content", "absent")
        pen.write(record)

    def failed(self, entry: Entry, message: Message, inference: str | None) -> None:
        """The error of a request, which OpenClaw keeps on the model's message: its own words, not the model's."""
        pen = self._pen
        words = text(message.errorMessage)
        if words is None and message.stopReason not in ("error", "aborted"):
            return
        record = MessageRecord(
            author="harness",
            content=[Part(type="text", text=words)] if words else [],
            message_id=text(entry.id),
            inference_id=inference,
            native=pen.native("error", "/message/errorMessage" if words else "/message/stopReason"),
        )
        assert record.native is not None
        keep(record.native, stopReason=text(message.stopReason))
        pen.write(record)

    def usage(self, message: Message, inference: str | None) -> None:
        """What the source reports of a request's usage."""
        if not message.usage or is_null(message.usage):
            return
        pen = self._pen
        found = numbers(value_of(message.usage))
        counts = [] if found is MISSING else [Count(**one) for one in found]
        record = Usage(scope="inference", counts=counts or None, inference_id=inference)
        record.native = pen.native("message", "/message/usage")
        pen.write(record)

    def custom(self, entry: Entry) -> None:
        """A message that OpenClaw or an extension put into the context."""
        pen = self._pen
        record = MessageRecord(
            author=self._author("custom_message", None, "harness"),
            message_id=text(entry.id),
            native=pen.native("message", "/content" if entry.content else ""),
        )
        assert record.native is not None
        keep(record.native, customType=text(entry.customType))
        self._put_content(record, entry.content, "/content")
        pen.write(record)

    def branch(self, entry: Entry) -> None:
        """The summary of a branch that was left, as the model gets it."""
        pen = self._pen
        record = MessageRecord(author=self._author("branch_summary", None, "harness"))
        record.message_id = text(entry.id)
        record.native = pen.native("message", "/summary" if entry.summary else "")
        self._put_content(record, entry.summary, "/summary")
        pen.write(record)

    def compaction(self, entry: Entry) -> None:
        """The context was compacted."""
        pen = self._pen
        record = Compaction(native=pen.native("boundary", ""))
        if entry.summary and not is_null(entry.summary):
            record.summary = contents.parts(entry.summary, pen.desk)
            pen.readable(record, "summary", "/summary")
        before = {
            "firstKeptEntryId": text(entry.firstKeptEntryId),
            "tokensBefore": number(entry.tokensBefore),
        }
        after = {"tokensAfter": number(entry.tokensAfter)}
        for name, told in (("before", before), ("after", after)):
            known = {key: value for key, value in told.items() if value is not None}
            if known:
                setattr(record, name, raw_json(known))
        pen.write(record)
