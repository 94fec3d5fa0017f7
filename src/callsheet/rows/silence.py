"""What the source did not record about a call: the words 'not recorded'.

Owns the union of two kinds of knowledge: the registry's ``[[never]]`` table (members that this harness has
no field for; of these, those that a row has a place for) and the capture states of the records at hand. A
member that is there is never listed.

Must never know: how it is worded.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET, Raw

from callsheet.records import Record, ToolCall, ToolResult, type_name
from callsheet.registry import Registry
from callsheet.rows.row import Remark
from callsheet.rows.text import raw_value

_HUMP = re.compile("[A-Z]")
_SILENT = ("absent", "unavailable")
_PLACES = frozenset({"name", "input", "content", "exec.exitCode", "durationMs", "exitCode", "output"})
"""Members that a row has a place for."""
_OF_A_RUN = frozenset({"exec.exitCode", "durationMs"})
"""Members that only a call that ran can have."""


def member_of(record: Any, path: str) -> Any:
    """The value at a member path in wire names (``exec.exitCode``); None when absent."""
    value = record
    for name in path.split("."):
        attribute = _HUMP.sub(lambda hump: "_" + hump.group().lower(), name)
        if isinstance(value, Raw):
            value = raw_value(value)
        value = value.get(name) if isinstance(value, dict) else getattr(value, attribute, None)
        if value is None or value is UNSET:
            return None
    return value


def not_recorded(
    call: ToolCall | None,
    result: ToolResult | None,
    registry: Registry | None,
    *,
    is_command: bool,
    has_run: bool = True,
) -> list[str]:
    """Member paths that the source does not record for this call, in a fixed order.

    Args:
        call: The call, if known.
        result: Its result, if any; of a call without one nothing is said about results.
        registry: The harness's registry.
        is_command: Whether members of ``exec`` mean anything here.
        has_run: Whether the call may have run; of one that did not, no member about a run is missing.
    """
    found: dict[str, None] = {}
    for record in (call, result):
        if record is None:
            continue
        for path, capture in (record.capture or {}).items():
            if capture.state in _SILENT and capture.blob is None and member_of(record, path) is None:
                found[path] = None
        for entry in registry.never if registry else ():
            if entry.record != type_name(record) or entry.member not in _PLACES or entry.kinds:
                continue
            if not has_run and entry.member in _OF_A_RUN:
                continue
            if entry.tools:
                applies = call is not None and call.name in entry.tools
            else:
                applies = is_command or not entry.member.startswith("exec.")
            if applies and member_of(record, entry.member) is None:
                found[entry.member] = None
    if result is not None and result.content is None and "content" not in (result.capture or {}):
        found["content"] = None
    return list(found)


def redacted(*records: Record | None) -> list[str]:
    """Member paths that were taken out on purpose."""
    return [
        path
        for record in records
        if record is not None
        for path, capture in (record.capture or {}).items()
        if capture.state == "redacted"
    ]


def remarks_for(record: Record | None, registry: Registry | None) -> list[Remark]:
    """The registry's cautions about values that stand in a record."""
    if record is None or registry is None:
        return []
    kind = type_name(record)
    return [
        Remark(member=entry.member, note=entry.note)
        for entry in registry.caution
        if entry.record == kind
        and _is(member_of(record, entry.member), entry.value)
        and all(_is(member_of(record, member), value) for member, value in entry.only.items())
    ]


def _is(value: Any, wanted: Any) -> bool:
    return value is not None and (wanted is None or (type(value) is type(wanted) and value == wanted))
