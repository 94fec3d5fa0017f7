"""Permission records: approval requests, and the reviews that came before a decision (ASR-268 to 270, 277 to 281).

Owns: the rows of ``operator_approvals``, the request that an older ``exec`` result tells of, the decision and who took
it by the registry's tables, and the automatic reviewer's verdict, which is a review when something else decided.

Must never know: outcomes of calls.
"""

from __future__ import annotations

from typing import Any

from callsheet.harness._port.parts import value_of
from callsheet.harness._port.pen import utc_of_ms
from callsheet.harness.openclaw.pen import TreePen, keep
from callsheet.harness.openclaw.shapes import Details, text
from callsheet.harness.openclaw.survey import Survey
from callsheet.records import Actor, Option, Permission, Ref, Review, Subject
from callsheet.registry import Registry, first

OPTIONS = {"allow-once": "allow_once", "allow-always": "allow_always", "deny": "reject_once"}
"""Kinds of the answers that OpenClaw offers."""


class Approvals:
    """Writes the permissions of one session."""

    def __init__(self, pen: TreePen, survey: Survey, registry: Registry) -> None:
        self._pen = pen
        self._survey = survey
        self._registry = registry
        self._reviews: dict[str, tuple[list[Review], Ref]] = {}

    def reviewed(self, details: Details, call_id: str | None) -> None:
        """Notes the reviews on a result, for the permission of its call."""
        if call_id is None or not details.approvalReviews:
            return
        found = value_of(details.approvalReviews)
        reviews = [
            Review(
                by=Actor(name=text(one.get("label")), address=text(one.get("id"))),
                verdict=text(one.get("status")),
                rationale=text(one.get("rationale")),
            )
            for one in (found if isinstance(found, list) else [])
            if isinstance(one, dict) and (text(one.get("label")) or text(one.get("id")))
        ]
        if reviews and len(self._reviews) < 10_000:
            self._reviews[call_id] = (reviews, self._pen.ref("review", "/message/details/approvalReviews"))

    def pending(self, details: Details, call_id: str | None) -> None:
        """The request that an ``exec`` result of older versions tells of: still open when it was written."""
        request = text(details.approvalId)
        if details.status != "approval-pending" or request is None:
            return
        command = text(details.command)
        subject = Subject(call_id=call_id) if call_id else Subject(command=command) if command else None
        record = Permission(request_id=request, id_source="native", subject=subject, status="pending")
        record.native = self._pen.native("result", "/message/details")
        record.native.command = command
        keep(record.native, host=text(details.host))
        self._pen.revise(f"permission {request}", record)

    def row(self, row: dict[str, Any]) -> bool:
        """Writes the request of a row of ``operator_approvals``."""
        request = text(row.get("approval_id"))
        if request is None:
            return False
        shown = _object(row.get("presentation_json"))
        native = {name: value for name, value in row.items() if value is not None}
        rule = first(self._registry.decision, None, {"row": native})
        who = first(self._registry.decider, None, {"row": native})
        record = Permission(
            request_id=request,
            id_source="native",
            title=text(shown.get("title")),
            description=text(shown.get("description")),
            reason=text(shown.get("warningText")),
            options=_options(shown.get("allowedDecisions")),
            status=rule.then if rule else None,
            decision=rule.decision if rule else None,
            decided_by=who.decidedBy if who else None,
            native=self._pen.native("request", ""),
        )
        if record.decision is not None:
            record.decided_at = utc_of_ms(row.get("resolved_at_ms"))
        offered = [option.option_id for option in record.options or ()]
        if row.get("decision") in offered and row.get("terminal_reason") == "user":
            record.selected_option_id = row["decision"]
        resolver = text(row.get("resolver_id"))
        if who is not None and who.rule is not None and resolver is not None:
            record.decider = Actor(**{who.rule: resolver})
        self._put_subject(record, row, shown)
        assert record.native is not None
        keep(
            record.native,
            kind=text(row.get("kind")),
            host=text(shown.get("host")),
            terminalReason=text(row.get("terminal_reason")),
            resolverKind=text(row.get("resolver_kind")),
            resolverId=resolver,
            pluginId=text(shown.get("pluginId")),
            toolName=text(shown.get("toolName")) or text(row.get("source_tool_name")),
        )
        self._pen.ts = utc_of_ms(row.get("resolved_at_ms")) or utc_of_ms(row.get("created_at_ms"))
        self._pen.revise(f"permission {request}", record)
        return True

    def _put_subject(self, record: Permission, row: dict[str, Any], shown: dict[str, Any]) -> None:
        call_id, command = text(row.get("source_tool_call_id")), text(shown.get("commandText"))
        assert record.native is not None
        record.native.command = command
        if call_id is not None and self._survey.is_shared(call_id):
            record.native.call_id = call_id
            call_id = None
        if call_id is not None:
            record.subject = Subject(call_id=call_id)
        elif command is not None:
            record.subject = Subject(command=command)
        found = self._reviews.get(call_id) if call_id is not None else None
        if found is not None:
            record.reviews = found[0]
            record.native.refs.append(found[1])


def _options(value: Any) -> list[Option] | None:
    if not isinstance(value, list):
        return None
    return [Option(option_id=one, kind=OPTIONS.get(one)) for one in value if isinstance(one, str)] or None


def _object(value: Any) -> dict[str, Any]:
    """An object in a column."""
    return value if isinstance(value, dict) else {}
