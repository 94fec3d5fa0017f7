"""Decisions of a row: what was decided, by whom, and the source's own words for it.

The words of a decision that the records know (``decision``, ``decidedBy``, ``rule``) are read from the
source's own; those stand beside them, as recorded, in ``said``. Nothing is concluded from them here.

Must never know: how a decision is worded.
"""

from __future__ import annotations

from typing import Any

import msgspec

from callsheet.records import Permission, Record, ToolResult
from callsheet.rows.context import Context
from callsheet.rows.row import PermissionShown

SAID = "callsheet/decision"
"""The member of ``_meta`` that keeps a decision in the source's own words."""
SAID_MOST = 4_000
"""Bytes up to which these words are carried."""


def decisions_of(context: Context, call_id: str | None, result: ToolResult | None) -> list[PermissionShown]:
    """The decisions about a call: of its requests, else the one recorded on its result (ASR-277)."""
    asked = [permission_shown(one) for one in context.linked(call_id, Permission)]
    if asked or result is None or result.permission is None:
        return asked
    compact = result.permission
    return [
        PermissionShown(
            decision=compact.decision, decided_by=compact.decided_by, rule=compact.rule, said=_said(result)
        )
    ]


def permission_shown(record: Permission) -> PermissionShown:
    """The decision of a request."""
    return PermissionShown(
        decision=record.decision, decided_by=record.decided_by, rule=record.rule, said=_said(record)
    )


def _said(record: Record) -> dict[str, Any] | None:
    said = (record.meta or {}).get(SAID)
    if not isinstance(said, dict) or not said:
        return None
    return said if len(msgspec.json.encode(said)) <= SAID_MOST else None
