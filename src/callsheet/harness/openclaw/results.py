"""tool_result records (ASR-257 to 267, 276 to 279, 288 to 291).

Owns: which call a result answers (decision 3), what reached the model (decision 7), process details from the fields
made for them, the error as recorded, the MCP server and tool where the result names them (ASR-276).

Must never know: other results. Text is never read as an outcome.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Raw

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.parts import is_null, mark, text_of
from callsheet.harness._port.pen import number, utc_of_ms, verbatim
from callsheet.harness.openclaw import contents
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.shapes import (
    Details,
    Message,
    Nested,
    details_of,
    nested_result_of,
    text,
)
from callsheet.harness.openclaw.survey import Survey
from callsheet.harness.openclaw.traced import Traced
from callsheet.harness.openclaw.verdicts import Verdict, Verdicts
from callsheet.records import Error, Exec, Provider, Ref, ToolResult
from callsheet.registry import ContentRule, Registry
from callsheet.registry.versions import in_ranges
from callsheet.wire import lossless

NO_CAPTURE = "no capture shows what this version sent"
MAYBE_CUT = "it is so long that OpenClaw may have sent a part of it only"
NO_REPLY = "no later reply of the model is recorded, so nothing shows that it was sent"
NO_CALL = "it names no call, so nothing shows where it was sent"
SEVERAL = "its call id stands on several calls"
SYNTHETIC = "OpenClaw wrote this in place of a result that it does not have"
NESTED_CALL = "code that the model wrote made this call: its result went to that code, not to the model"
SECRET = "it repeats the answer to a question that asks for a secret"
PERSON = "a person ran this: what the model got of it is not recorded"
CUT = "OpenClaw kept a part of the details only"
SHELLS = frozenset({"exec", "bash", "process", "wait"})
TIMED = frozenset({"web_fetch", "web_search"})
"""Tools that report ``tookMs``."""
LEAST_EXIT, MOST_EXIT = -(1 << 31), (1 << 32) - 1


class Asked(NamedTuple):
    """An approval request that is recorded for a call: its status, and the row that says so."""

    status: str
    ref: Ref


class Results:
    """Turns the results of one session into records."""

    def __init__(
        self,
        pen: TreePen,
        survey: Survey,
        registry: Registry,
        version: str | None,
        approvals: dict[str, Asked],
        traced: Traced,
    ) -> None:
        self._pen = pen
        self._traced = traced
        self._survey = survey
        self._registry = registry
        self._version = version
        self._approvals = approvals
        self._verdicts = Verdicts(registry)
        self._proven: dict[tuple[str | None, str], ContentRule | None] = {}

    # -- the three kinds ----------------------------------------------------------------------------------------

    def of_message(self, message: Message, at: int, terminal: str | None) -> tuple[ToolResult, Details]:
        """Writes the result that a message holds; returns it and its details."""
        pen = self._pen
        details = details_of(message.details)
        call_id = message.toolCallId if isinstance(message.toolCallId, str) else None
        verdict = self._verdict(message.toolName, message.isError, details, call_id)
        record = ToolResult(linkage="none", status=verdict.status, permission=verdict.permission)
        record.native = pen.native("result", "/message")
        if verdict.status == "denied" and call_id in self._approvals and not self._survey.is_shared(call_id):
            record.native.refs.append(self._approvals[call_id].ref)
        self._link(record, call_id, at)
        self._say(record, verdict, details, message.toolName)
        record.exec = self._exec(details, message.toolName, terminal)
        reason = self._unshown(message, at, call_id, verdict)
        if reason is None:
            record.content = contents.parts(message.content, pen.desk)
            pen.readable(record, "content", "/message/content")
            self._put_raw(record, message.details, "/message/details")
        else:
            state = "redacted" if reason is SECRET else "absent"
            pen.capture(record, "content", state, reason=reason)
            members = {"content": message.content, "details": message.details}
            if reason is SECRET:
                pen.capture(record, "raw", "redacted", reason=reason)
            else:
                self._put_both(record, members, "/message")
        if details.persistedDetailsTruncated is True:
            kept = (record.capture or {}).get("raw")
            if kept is None:
                pen.capture(record, "raw", "truncated", reason=CUT)
            elif kept.state == "external":
                kept.reason = CUT
        waited = (call_id in self._approvals) or bool(details.approvalReviews) or bool(details.approvalId)
        self._traced.timed(record, call_id, waited=waited)
        pen.write(record)
        return record, details

    def of_code(self, nested: Nested, call_id: str) -> tuple[ToolResult, Details]:
        """Writes the result that stands inside a nested call."""
        pen = self._pen
        inside = nested_result_of(nested.result)
        details = details_of(inside.details)
        native_id = nested.toolCallId if isinstance(nested.toolCallId, str) else None
        verdict = self._verdict(nested.toolName, nested.isError, details, native_id)
        record = ToolResult(linkage="exact", status=verdict.status, permission=verdict.permission)
        record.call_id = call_id
        record.native = pen.native("nested", "/message/details")
        if native_id != call_id:
            record.native_call_id, record.linkage = native_id, "derived"
        elif self._survey.is_shared(call_id):
            record.native_call_id, record.call_id, record.linkage = native_id, None, "ambiguous"
        self._say(record, verdict, details, nested.toolName)
        record.exec = self._exec(details, nested.toolName, None)
        record.started_at = utc_of_ms(nested.startedAt)
        record.completed_at = utc_of_ms(nested.timestamp)
        pen.capture(record, "content", "absent", reason=NESTED_CALL)
        self._put_raw(record, nested.result, "/message/details/result")
        self._traced.timed(record, native_id, waited=False)
        pen.write(record)
        return record, details

    def of_person(self, message: Message, call_id: str) -> None:
        """Writes the result of a person's own command."""
        pen = self._pen
        status = "cancelled" if message.cancelled is True else "unknown"
        record = ToolResult(call_id=call_id, linkage="derived", status=status)
        record.native = pen.native("bash", "/message")
        record.exec = made = Exec(command=text(message.command), exit_code=exit_code(message.exitCode))
        if mark(message.output) == b'"':
            data = text_of(message.output) or ""
            if len(data) > INLINE_MOST:
                blob = pen.desk.blob(data.encode("utf-8", "replace"), "text/plain")
                pen.capture(record, "exec.output", "external", blob=blob)
            else:
                made.output = verbatim(message.output)
        if made == Exec():
            record.exec = None
        pen.capture(record, "content", "absent", reason=PERSON)
        pen.write(record)

    # -- which call, which outcome ------------------------------------------------------------------------------

    def _verdict(self, tool: Any, error: Any, details: Details, call_id: str | None) -> Verdict:
        # A request names its call by an id alone: of a shared one it says nothing.
        known = call_id is not None and not self._survey.is_shared(call_id)
        approval = self._approvals.get(call_id) if known and call_id is not None else None
        return self._verdicts.of(tool, error, details, approval.status if approval else None)

    def _link(self, record: ToolResult, call_id: str | None, at: int) -> None:
        if call_id is None:
            return
        if not self._survey.is_shared(call_id):
            record.call_id, record.linkage = call_id, "exact"
            return
        record.native_call_id = call_id
        found = self._survey.answered(call_id, at)
        record.call_id, record.linkage = found, "ambiguous" if found is None else "derived"

    def _say(self, record: ToolResult, verdict: Verdict, details: Details, tool: Any) -> None:
        """Facts that stand in members of their own."""
        assert record.native is not None
        if verdict.synthetic:
            record.native.synthetic = True
        record.duration_ms = number(details.durationMs)
        if record.duration_ms is None and text(tool) in TIMED:
            record.duration_ms = number(details.tookMs)
        if text(details.mcpServer):
            record.provider = Provider(
                kind="mcp", server=details.mcpServer, tool=text(details.mcpTool), identity="exact"
            )
        if verdict.status != "completed":
            words = text(details.error) or (text(details.reason) if text(details.deniedReason) else None)
            code = text(details.deniedReason) or text(details.failureKind)
            if (words and len(words) <= INLINE_MOST) or code:
                record.error = Error(message=words, code=code)
        if text(details.approvalReviewOutcome):
            keep(record.native, approvalReviewOutcome=details.approvalReviewOutcome)

    def _exec(self, details: Details, tool: Any, terminal: str | None) -> Exec | None:
        """Process details. The executed command is not among them: a hook may have changed the one asked for."""
        if text(tool) not in SHELLS:
            return None
        made = Exec(
            cwd=self._pen.path(details.cwd) if text(details.cwd) else None,
            exit_code=exit_code(details.exitCode),
            signal=text(details.exitSignal),
            timed_out=details.timedOut if isinstance(details.timedOut, bool) else None,
            terminal_id=terminal,
            process_id=process_id(details.pid),
        )
        return None if made == Exec() else made

    # -- what reached the model ---------------------------------------------------------------------------------

    def _unshown(self, message: Message, at: int, call_id: str | None, verdict: Verdict) -> str | None:
        """Why the stored content is no evidence of what was sent, or None where it is (decision 7d)."""
        if call_id is not None and call_id in self._survey.secrets_given:
            return SECRET
        if verdict.synthetic:
            return SYNTHETIC
        if call_id is None:
            return NO_CALL
        if self._survey.is_shared(call_id):
            return SEVERAL
        tool = text(message.toolName)
        api, window = self._survey.maker(at)
        key = (tool, api)
        if key not in self._proven:
            self._proven[key] = next(
                (
                    rule
                    for rule in self._registry.content
                    if rule.names(tool)
                    and in_ranges(rule.versions, self._version)
                    and (not rule.apis or api in rule.apis)
                ),
                None,
            )
        rule = self._proven[key]
        if rule is None:
            return NO_CAPTURE
        if not rule.fits(bytes(message.content), window):
            return MAYBE_CUT
        if rule.needs_reply and not self._survey.tree.is_answered(at):
            return NO_REPLY
        return None

    def _put_raw(self, record: ToolResult, raw: Raw, pointer: str) -> None:
        if raw and not is_null(raw) and self._pen.inline(record, "raw", raw, pointer):
            record.raw = raw

    def _put_both(self, record: ToolResult, members: dict[str, Raw], pointer: str) -> None:
        """Without content, ``raw`` keeps the stored content and the tool's own report (decision 7)."""
        pen = self._pen
        parts = [b'"%s":%s' % (name.encode(), bytes(raw)) for name, raw in members.items() if raw]
        if not parts:
            return
        both = Raw(b"{" + b",".join(parts) + b"}")
        if pen.unit.exact is None:
            if pen.inline(record, "raw", both, ""):
                record.raw = both
            return
        exact = (
            "{"
            + ",".join(f'"{name}":{pen.exact(f"{pointer}/{name}")}' for name, raw in members.items() if raw)
            + "}"
        )
        pen.capture(record, "raw", "external", blob=pen.desk.blob(exact.encode(), "application/json"))
        if len(both) <= INLINE_MOST and lossless.lossless(bytes(both)):
            record.raw = both


def exit_code(value: Any) -> int | None:
    """A numeric exit status, or None (ASR-260)."""
    return value if type(value) is int and LEAST_EXIT <= value <= MOST_EXIT else None


def process_id(value: Any) -> str | int | None:
    """A native process id, verbatim in type (ASR-289, 291)."""
    if isinstance(value, str):
        return value or None
    found = number(value)
    return found if type(found) is int else None
