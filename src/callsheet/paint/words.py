"""The words of the sheet: marks, labels, and how states, decisions and silences are said.

Owns every sentence that a row may show besides what the source said. Open words of a source are shown as
they are.

Must never know: layout.
"""

from __future__ import annotations

from collections.abc import Iterator

from callsheet.paint.span import Style
from callsheet.rows import Count, PermissionShown, Row

MARKS: dict[str, tuple[str, Style]] = {
    "running": ("●", "open"),
    "completed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "declined": ("⊘", "refused"),
    "cancelled": ("-", "quiet"),
    "interrupted": ("!", "open"),
    "unconfirmed": ("?", "open"),
}
"""The mark and the style of each state."""

LABELS: dict[str, str] = {
    "read": "read",
    "search": "search",
    "command": "command",
    "file_change": "change",
    "web": "web",
    "mcp_tool": "mcp",
    "subagent": "agent",
    "other": "call",
    "message": "message",
    "thought": "thought",
    "request": "request",
    "hook": "hook",
    "terminal": "terminal",
    "plan": "plan",
    "notice": "notice",
}
"""The label of each row kind, at most eight characters."""

REASONS: dict[str, str] = {
    "no_result": "no result is recorded",
    "several_results": "several results claim this call",
    "several_calls": "several calls have this id",
    "unlinked": "the source does not say which call it answers",
    "no_call": "its call is not recorded",
}
"""Why something is not paired."""

_DECISIONS: dict[str, str] = {
    "allow_once": "allowed once",
    "allow_session": "allowed for the session",
    "allow_always": "allowed always",
    "reject_once": "rejected",
    "reject_always": "rejected always",
    "cancelled": "request cancelled",
    "timeout": "request timed out",
}
_SILENCES: dict[str, str] = {
    "exec.exitCode": "exit code: not recorded",
    "exitCode": "exit code: not recorded",
    "content": "what reached the model: not recorded",
    "name": "tool name: not recorded",
    "input": "arguments: not recorded",
}
"""Silences that are said aloud; the others stand in the JSON."""
_REMARKABLE = frozenset(
    {
        "exec.exitCode",
        "exitCode",
        "durationMs",
        "permission.decision",
        "exec.timedOut",
        "exec.terminalId",
        "raw.success",
    }
)
"""Members whose cautions are drawn, because the row draws what they are about."""


def decision_words(one: PermissionShown) -> str:
    """A decision and who made it; a silence about the one or the other is said."""
    if one.decision is None:
        return "asked, no decision is recorded"
    words = _DECISIONS.get(one.decision, one.decision)
    who = f"by {one.decided_by}" if one.decided_by else "(who decided: not recorded)"
    return f"{words} {who}" + (f", rule {one.rule}" if one.rule else "")


def state_words(row: Row) -> str | None:
    """The state in words, where the mark alone could be misread."""
    if row.state == "completed" or row.kind == "notice":
        return None
    if row.pairing is None:
        if row.state == "unconfirmed" or row.status is None:
            known = row.status not in (None, row.state)
            return f"{row.state} (the source says {row.status})" if known else row.state
        return row.status
    if row.state == "declined":
        return _declined_words(row)
    words: str = row.state
    if row.reason is not None and row.pairing != "paired":
        words += f": {REASONS.get(row.reason, row.reason)}"
    if row.status is not None and row.status != row.state:
        words += f" (the source says {row.status})"
    return words


def _declined_words(row: Row) -> str:
    rejected = [one for one in row.permissions or () if (one.decision or "").startswith("reject")]
    if not rejected:
        return "declined (who decided: not recorded)"
    last = rejected[-1]
    who = f"by {last.decided_by}" if last.decided_by else "(who decided: not recorded)"
    words = f"declined {who}" + (f", rule {last.rule}" if last.rule else "")
    return words + (f" (the source says {row.status})" if row.status is not None else "")


def detail_words(row: Row, *, audit: bool = False) -> Iterator[str]:
    """What stands below a call's title, besides its state: who allowed it, what is not recorded, cautions."""
    declining = row.state == "declined" and row.pairing is not None
    for one in row.permissions or ():
        if not (declining and (one.decision or "").startswith("reject")):
            yield decision_words(one)
    if row.requested_by is not None and row.requested_by != "model":
        yield f"requested by {row.requested_by}"
    elif row.requested_by is None and row.pairing in ("paired", "dangling"):
        yield "who asked: not recorded"
    if row.provider is not None:
        provider = row.provider
        named = ", ".join(
            f"{label} {value}"
            for label, value in (
                ("server", provider.server),
                ("tool", provider.tool),
                ("name", provider.name),
            )
            if value
        )
        yield f"{provider.kind} {named}" if named else f"{provider.kind}, server: unknown"
    for agent in row.agents or ():
        yield " ".join(word for word in ("agent", agent.name, agent.agent_id, agent.status) if word)
    reached = row.reached_model
    if reached is not None and reached.proof and row.native_call_id not in (None, row.call_id):
        # Said aloud only where an id stands on several calls and one of them was sent in place of the others.
        yield "reached the model"
    for member in row.not_recorded or ():
        if member == "content" and reached is not None and reached.reason:
            yield f"{_SILENCES[member]} ({reached.reason})"
        elif member in _SILENCES:
            yield _SILENCES[member]
    for member in row.redacted or ():
        yield f"{member}: taken out on purpose"
    for remark in row.remarks or ():
        if audit or remark.member in _REMARKABLE:
            yield f"note: {remark.note}"


def fact_words(row: Row) -> Iterator[str]:
    """Short facts for the right edge of a row's first line."""
    if row.name is not None and row.name != row.title:
        yield row.name
    if row.count is not None:
        yield count_words(row.count)
    if row.exit_code is not None:
        yield f"exit {row.exit_code}"
    if row.duration_ms is not None:
        yield duration_words(row.duration_ms)


def count_words(count: Count) -> str:
    """A reported number with its unit."""
    unit = count.unit
    if count.value == 1:
        unit = unit[:-2] if unit.endswith("ches") else unit.removesuffix("s")
    return f"{number_words(count.value)} {unit}"


def number_words(value: int | float) -> str:
    """A number with separators, whole where it is whole."""
    return f"{value:,}" if isinstance(value, int) or not float(value).is_integer() else f"{value:,.0f}"


def duration_words(milliseconds: int | float) -> str:
    """A duration in the unit that suits it."""
    if not 0 <= milliseconds < 1e15:
        return f"{milliseconds} ms"
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60:,} h {minutes % 60:02} min"
