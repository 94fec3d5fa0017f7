"""tool_result records from ``tool_result`` blocks (ASR-257 to 267, 276 to 279).

Owns: which call a result answers (decision 3), its status and compact permission by the registry's tables (decisions
4 to 6), what reached the model (decision 7), process details, and the error as recorded.

Must never know: other results. Text is never read as an outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.pen import Pen, Place
from callsheet.harness.claude_code import blocks
from callsheet.harness.claude_code.attached import Attached
from callsheet.harness.claude_code.deliveries import Delivery
from callsheet.harness.claude_code.replies import CallPlace
from callsheet.harness.claude_code.seen import Seen
from callsheet.harness.claude_code.sent_block import cut
from callsheet.harness.claude_code.shapes import (
    ABSENT,
    NativeBlock,
    NativeLine,
    is_text,
    mark,
    raw_block,
    text,
    value_of,
)
from callsheet.harness.claude_code.tooluse import (
    EMPTY,
    Report,
    ToolUse,
    duration_ms,
    exec_of,
    report_of,
    tool_use,
)
from callsheet.harness.claude_code.verdicts import Verdict, Verdicts
from callsheet.records import Error, Exec, ToolResult
from callsheet.registry import ContentRule, Registry
from callsheet.registry.versions import in_ranges
from callsheet.registry.when import MISSING, follow, json_type, matches
from callsheet.wire import lossless
from callsheet.wire.spans import Spans

NO_REQUEST = "no recorded request carries it"
NO_CAPTURE = "this file records no requests, and no capture shows what this version sent"
NO_REPLY = "no reply of the model follows, so nothing shows that it was sent"
SEVERAL = "its call id stands on several calls"
OTHER_RECORD = "the result names another record than that of the only readable call with its id"
TAKEN = "the result's id is none of a call, but like one made for a call without an id of its own"
NOTHING = Exec()
STORED: Any = object()
"""The stored text itself, taken over as it stands."""
UNREADABLE = "the request's copy could not be read"


class Results:
    """Turns the result blocks of one file into records."""

    report = "/toolUseResult"
    """Where a line keeps what the tool reports of itself."""

    def __init__(
        self,
        pen: Pen,
        survey: Seen,
        registry: Registry,
        attached: Attached,
        listed: frozenset[str],
        is_agent: Callable[[str], bool],
        was_asked: Callable[[str], bool] = lambda _call: False,
    ) -> None:
        self._pen = pen
        self._listed = listed
        self._is_agent = is_agent
        self._was_asked = was_asked
        self._survey = survey
        self._attached = attached
        self._rules = registry.content
        self._verdicts = Verdicts(registry)
        self._proven: dict[tuple[Any, ...], ContentRule | None] = {}

    def result(
        self, line: NativeLine, block: NativeBlock, index: int, alone: bool
    ) -> tuple[ToolResult, ToolUse, Verdict, CallPlace | None]:
        """Writes the result of one block.

        Args:
            line: The native line.
            block: The block.
            index: Its index in ``message.content``.
            alone: Whether it is the line's only result; ``toolUseResult`` and a decision speak of it only then.

        Returns:
            The record, what the tool reported of itself, the verdict and its call, for the records that hang on them.
        """
        pen = self._pen
        pointer = f"/message/content/{index}"
        raw = line.toolUseResult if alone else ABSENT
        call, doubt = self._answered(line, block)
        use = tool_use(raw, call.name if call else None) if raw else EMPTY
        report = report_of(raw, use)
        verdict = self._verdict(line, block, raw, report, alone)
        record = ToolResult(
            linkage="none",
            status=verdict.status,
            permission=verdict.permission,
            duration_ms=duration_ms(use) if use is not EMPTY else None,
            native=pen.native("result", pointer),
        )
        self._link(record, line, block, doubt)
        if isinstance(block.tool_use_id, str) and self._was_asked(block.tool_use_id):
            record.permission = None  # the request has a record of its own (ASR-278)
        self._say_content(record, line, block, index, raw, call, report)
        if use is not EMPTY:
            self._say_exec(record, use, call.name if call else None)
        if verdict.status != "completed" and mark(raw) == b'"':
            message = value_of(raw)
            if isinstance(message, str) and len(message) <= INLINE_MOST:
                record.error = Error(message=message)
        assert record.native is not None
        if verdict.synthetic:
            record.native.synthetic = True
        decided = line.permissionDecision
        if (
            alone
            and decided
            and mark(decided) == b"{"
            and len(decided) < INLINE_MOST
            and lossless.fits(decided)
        ):
            record.meta = {"callsheet/decision": decided}
        if alone and text(line.userFeedback):
            record.native.extra = Raw(msgspec.json.encode({"userFeedback": line.userFeedback}))
        for code, message in verdict.doubts:
            pen.desk.diagnose(code, message, pen.source, pen.unit.line.number)
        self._write(record, index)
        return record, use, verdict, call

    def _write(self, record: ToolResult, index: int) -> None:
        """Writes the record of a block."""
        del index
        self._pen.write(record)

    def _verdict(
        self, line: NativeLine, block: NativeBlock, raw: Raw, report: Report, alone: bool
    ) -> Verdict:
        """Status and decision of a block, by the tables."""
        return self._verdicts.of(line, block, raw, report, alone)

    # -- which call ---------------------------------------------------------------------------------------------

    def _link(self, record: ToolResult, line: NativeLine, block: NativeBlock, doubt: str | None) -> None:
        call_id = block.tool_use_id
        if not isinstance(call_id, str):
            return
        if not self._survey.duplicates(call_id):
            if doubt is None:
                record.call_id, record.linkage = call_id, "exact"
            else:
                record.native_call_id, record.linkage = call_id, "ambiguous"
                pen = self._pen
                pen.desk.diagnose("link_contradicted", doubt, pen.source, pen.unit.line.number)
            return
        record.native_call_id = call_id
        derived = self._survey.derived_id(call_id, text(line.sourceToolAssistantUUID))
        if derived is None:
            record.linkage = "ambiguous"
        else:
            record.call_id, record.linkage = derived, "derived"

    def _answered(self, line: NativeLine, block: NativeBlock) -> tuple[CallPlace | None, str | None]:
        """The call, as far as it is certain, and why an id that stands on one call (or on none) does not link."""
        call_id = block.tool_use_id
        if not isinstance(call_id, str):
            return None, None
        uuid = text(line.sourceToolAssistantUUID)
        call = self._survey.answered(call_id, uuid)
        if call is None:
            return None, TAKEN if self._survey.is_taken(call_id) else None
        if self._survey.contradicts(call_id, call, uuid):
            return None, OTHER_RECORD
        return call, None

    # -- what reached the model ---------------------------------------------------------------------------------

    def _say_content(
        self,
        record: ToolResult,
        line: NativeLine,
        block: NativeBlock,
        index: int,
        raw: Raw,
        call: CallPlace | None,
        report: Report,
    ) -> None:
        pen = self._pen
        unit = pen.unit
        delivered: Delivery | None = None
        reason: str | None = None
        content: Any = None
        if self._survey.evidence.present:
            delivered = self._survey.evidence.delivery(unit.line.offset + unit.start, index)
            if delivered is None:
                reason = NO_REQUEST
            else:
                content, reason = self._sent(record, block, f"/message/content/{index}", delivered)
        else:
            content = STORED if is_text(block.content) else value_of(block.content)
            reason = self._unshown(line, block, content, call)
            content = content if content is STORED else block.content
        if reason is None:
            if content is STORED:
                record.content = [blocks.text_part(block.content)]
            else:
                record.content = blocks.parts_of(content, pen.desk, delivered.keep if delivered else None)
            if pen.unit.exact is not None and delivered is None:
                self._say_exact_text(record, f"/message/content/{index}/content")
            if report.persistedOutputPath is not None:
                self._say_persisted(record, report)
            if raw and pen.inline(record, "raw", raw, self.report):
                record.raw = raw
            return
        pen.capture(record, "content", "absent", reason=reason)
        self._keep_both(record, index, raw)

    def _sent(
        self, record: ToolResult, block: NativeBlock, pointer: str, delivered: Delivery
    ) -> tuple[Any, str | None]:
        """The content as the request carries it, and the refs that prove it."""
        pen = self._pen
        assert record.native is not None
        content: Any = None
        exact: Any = None
        if delivered.blob is not None:
            role = "sent" if delivered.source == "blob" else "proof"
            record.native.refs.append(pen.place(Place(pen.source, *delivered.blob), role, delivered.pointer))
            if delivered.source == "blob":
                data = pen.desk.read(pen.source, delivered.blob.offset, delivered.blob.size)
                try:
                    content = follow(lossless.decode(data), f"{delivered.pointer}/content")
                except lossless.NotJson:
                    return None, UNREADABLE
                if b"\\u" in data:
                    exact, data = content, lossless.clean_text(data)
                content = Raw(Spans(data).text(f"{delivered.pointer}/content") or b"")
        if delivered.source == "stored":
            content = block.content if delivered.keep or not is_text(block.content) else STORED
            if pen.unit.exact is not None:
                exact = follow(pen.unit.exact, f"{pointer}/content")
        record.native.refs.append(pen.place(Place(pen.source, *delivered.request), "request"))
        if exact is not None and lossless.has_lone(exact):
            # The sent text has half a character: readable where it stands, exact in the blob (ASR-035).
            data = lossless.exact_text(cut(exact, delivered.keep)).encode()
            pen.capture(record, "content", "external", blob=pen.desk.blob(data, "application/json"))
        return content, None

    def _say_persisted(self, record: ToolResult, report: Report) -> None:
        found = self._attached.persisted(report)
        if found is None:
            return
        self._pen.capture(
            record, "content", "truncated", reason=found.reason, size=found.size, blob=found.blob
        )
        if found.ref is not None and found.ref.source in self._listed and record.native is not None:
            record.native.refs.append(found.ref)
            self._attached.cited(found.ref)

    def _unshown(
        self, line: NativeLine, block: NativeBlock, content: Any, call: CallPlace | None
    ) -> str | None:
        """Why a stored block is no evidence of what was sent, or None where it is (decision 7b)."""
        call_id = block.tool_use_id
        if isinstance(call_id, str) and self._survey.duplicates(call_id):
            return SEVERAL
        content = "" if content is STORED else content
        lead: str | None = None
        if type(content) is list and content and type(content[0]) is dict:
            lead = text(content[0].get("type"))
        error = block.is_error if type(block.is_error) is bool else json_type(block.is_error)
        key = (text(line.version), call.name if call else None, error, json_type(content), lead)
        rule = self._proven.get(key, MISSING)
        if rule is MISSING:
            part = {"content": content} | ({} if block.is_error is None else {"is_error": block.is_error})
            rule = next((rule for rule in self._rules if _covers(rule, key[0], key[1], part)), None)
            if len(self._proven) < 10_000:
                self._proven[key] = rule
        if rule is None:
            return NO_CAPTURE
        if rule.needs_reply and not self._survey.reply_follows(
            self._pen.unit.line.number, line.isSidechain is True, call
        ):
            return NO_REPLY
        return None

    def _say_exact_text(self, record: ToolResult, pointer: str) -> None:
        """Keeps text with unpaired surrogates exactly, beside the readable form (ASR-035)."""
        exact = self._pen.exact(pointer)
        if exact is not None and not lossless.lossless(exact.encode()):
            blob = self._pen.desk.blob(exact.encode(), "application/json")
            self._pen.capture(record, "content", "external", blob=blob)

    def _keep_both(self, record: ToolResult, index: int, raw: Raw) -> None:
        """Without content, ``raw`` keeps the stored block and the tool's own report (decision 7)."""
        pen = self._pen
        block = bytes(raw_block(pen.unit.data, index))
        members = [b'"block":' + block]
        if raw:
            members.insert(0, b'"toolUseResult":' + bytes(raw))
        both = Raw(b"{" + b",".join(members) + b"}")
        if pen.unit.exact is None:
            if pen.inline(record, "raw", both, ""):
                record.raw = both
            return
        # A content that is no list is its only block, and so is a message that is no object.
        pointers = (f"/message/content/{index}", "/message/content", "/message")
        parts = ['"block":' + next(filter(None, map(pen.exact, pointers)), "null")]
        if raw:
            parts.insert(0, f'"toolUseResult":{pen.exact(self.report)}')
        exact = ("{" + ",".join(parts) + "}").encode()
        if len(both) <= INLINE_MOST and lossless.lossless(bytes(both)):
            record.raw = both
        if not record.raw or not lossless.lossless(exact):
            pen.capture(record, "raw", "external", blob=pen.desk.blob(exact, "application/json"))

    # -- process details ----------------------------------------------------------------------------------------

    def _say_exec(self, record: ToolResult, use: ToolUse, tool: str | None) -> None:
        made = exec_of(use, tool, self._is_agent)
        if made is None:
            return
        record.exec = made
        for member in ("stdout", "stderr", "output"):
            stream = getattr(made, member)
            if stream is not None and len(stream) > INLINE_MOST // 4:
                whole = value_of(stream) if isinstance(stream, Raw) else stream
                data = whole.encode("utf-8", "replace")
                if len(data) > INLINE_MOST:
                    setattr(made, member, None)
                    self._pen.capture(
                        record, f"exec.{member}", "external", blob=self._pen.desk.blob(data, "text/plain")
                    )
        if made == NOTHING:
            record.exec = None


def _covers(rule: ContentRule, version: str | None, tool: str | None, part: dict[str, Any]) -> bool:
    return rule.names(tool) and in_ranges(rule.versions, version) and matches(rule.when, {}, part)
