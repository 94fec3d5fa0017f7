"""Numbers that a source reports for a call, at the registry's pointers.

A pointer starts at the root of the native result unit (``/toolUseResult/numFiles``), a record keeps a part
of that unit as ``raw``: Claude Code's ``toolUseResult`` itself or, where the sent content is not recorded,
an object of it and the stored block. This module owns the way from the one to the other. Nothing is counted
here: a number stands in the source, or there is none.

Must never know: which tools exist.
"""

from __future__ import annotations

from typing import Any

from callsheet.records import ToolResult
from callsheet.registry import Tool
from callsheet.registry.when import MISSING, follow
from callsheet.rows.row import Count
from callsheet.rows.text import Blob, stored_value
from callsheet.wire.lossless import MAX_SAFE

_WHOLE = "toolUseResult"


def native_member(raw: Any, pointer: str) -> Any:
    """The value at a pointer of the native unit, looked up in a record's ``raw``.

    Args:
        raw: The decoded ``raw``.
        pointer: A JSON pointer from the native unit's root.

    Returns:
        The value, or ``MISSING``.
    """
    head, _, rest = pointer.lstrip("/").partition("/")
    if head != _WHOLE:
        return follow(raw, pointer)
    if isinstance(raw, dict) and raw and set(raw) <= {_WHOLE, "block"}:
        return follow(raw, pointer)
    return follow(raw, f"/{rest}") if rest else raw


def count_of(result: ToolResult, tool: Tool | None, blob: Blob | None) -> Count | None:
    """The first count of the registry's list that the source reports as a number."""
    if tool is None or not tool.counts:
        return None
    raw = stored_value(result, "raw", result.raw, blob)
    if raw is MISSING:
        return None
    for rule in tool.counts:
        value = native_member(raw, rule.pointer)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX_SAFE:
            return Count(value=value, unit=rule.unit)
    return None
