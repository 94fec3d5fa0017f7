"""The words of the sheet: marks, labels, and how states and silences are said.

Owns, with ``verdicts`` for decisions, every sentence that a row may show besides what the source said. Open
words of a source are shown as they are.

Must never know: layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

from callsheet.paint.span import Style
from callsheet.paint.verdicts import decision_words, declined_words, is_refusal
from callsheet.records import Provider
from callsheet.rows import Count, Row
from callsheet.rows.calls import NEVER_RAN
from callsheet.rows.text import compact

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
EVERYWHERE: dict[str, str] = {
    "requestedBy": "who asked",
    "name": "tool name",
    "input": "arguments",
    "exec.exitCode": "exit code",
}
"""What is silent about every call, as the head of a sheet says it."""
_REACHED: dict[str | None, str] = {
    "request": "reached the model: a recorded request carries it",
    "captures": "reached the model: as captures of this version show",
}
_SUBJECTS: dict[str, str] = {
    "exec.terminalId": "in the background",
    "raw.success": "success",
    "durationMs": "duration",
}
"""Members whose own name would say nothing to a person."""
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|[+-]00:00)?$", re.ASCII)


def state_words(row: Row) -> str | None:
    """The state in words, where the mark alone could be misread."""
    if row.kind == "terminal":
        return _terminal_words(row)
    if row.state == "completed" or row.kind == "notice":
        return None
    if row.pairing is None:
        return _outcome_words(row)
    if row.state == "declined":
        who, more = declined_words(row.permissions or ()), _source_words(row)
        # One pair of parentheses holds all that is said of the source.
        return f"{who[:-1]}; {more[2:]}" if more and who.endswith(")") else who + more
    if row.pairing == "paired" and row.status == "unknown":
        return "outcome: not recorded"
    words: str = row.state
    if row.reason is not None and row.pairing != "paired":
        words += f": {REASONS.get(row.reason, row.reason)}"
    return words + _source_words(row)


def _source_words(row: Row) -> str:
    """The source's own word for the outcome, where it says more than the state."""
    if row.status in (None, row.state):
        return ""
    return " (outcome: not recorded)" if row.status == "unknown" else f" (the source says {row.status})"


def _outcome_words(row: Row) -> str:
    if row.status == "unknown":
        return "outcome: not recorded"
    if row.state == "unconfirmed" or row.status is None:
        return row.state + _source_words(row)
    return row.status


def _terminal_words(row: Row) -> str | None:
    """How a process ended; ``exited`` alone says nothing about success."""
    match row.state, row.status:
        case "completed", _:
            return None
        case "failed", "failed":
            return "the source says failed"
        case "failed", _:
            return "exited"
        case "unconfirmed", "exited":
            return "exited"
        case "cancelled", word:
            return "stopped" if word in (None, "stopped") else f"stopped (the source says {word})"
        case "interrupted", word:
            return "killed" if word in (None, "killed") else f"killed (the source says {word})"
        case _:
            return _outcome_words(row)


def detail_words(
    row: Row,
    *,
    audit: bool = False,
    everywhere: frozenset[str] = frozenset(),
    signs: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """What stands below a call's title, besides its state: who allowed it, what is not recorded, cautions.

    Args:
        row: The row.
        audit: Everything is said.
        everywhere: Members that are silent in the whole sheet, which says so.
        signs: Signs of notes that the sheet tells; None: the row tells them.
    """
    declining = row.state == "declined" and row.pairing is not None
    for one in row.permissions or ():
        if not (declining and is_refusal(one)):
            yield decision_words(one)
    if audit and row.pairing == "paired" and not row.permissions and row.state not in NEVER_RAN:
        yield "who allowed it: not recorded"
    if row.requested_by is not None and row.requested_by != "model":
        yield f"requested by {row.requested_by}"
    elif (
        row.requested_by is None and row.pairing in ("paired", "dangling") and "requestedBy" not in everywhere
    ):
        yield "who asked: not recorded"
    if row.provider is not None:
        yield _provider_words(row.provider)
    for agent in row.agents or ():
        status = None if agent.status == "unknown" else agent.status
        yield " ".join(word for word in ("agent", agent.name, agent.agent_id, status) if word)
    yield from _silence_words(row, audit=audit, everywhere=everywhere)
    for member in row.redacted or ():
        yield f"{member}: taken out on purpose"
    if signs is None:
        for _, words in remark_words(row, audit=audit):
            yield f"note: {words}"
    else:
        for member, sign in signs.items():
            if member not in _BESIDE or _BESIDE[member](row) is None:
                yield f"note {sign}"


def remark_words(row: Row, *, audit: bool) -> Iterator[tuple[str, str]]:
    """The cautions that are drawn of a row: the member that each is about, and its words."""
    for remark in row.remarks or ():
        if audit or remark.member in _REMARKABLE:
            yield remark.member, f"{member_words(remark.member)}: {remark.note}"


def _provider_words(provider: Provider) -> str:
    named = ", ".join(
        f"{label} {value}"
        for label, value in (("server", provider.server), ("tool", provider.tool), ("name", provider.name))
        if value
    )
    return f"{provider.kind} {named}" if named else f"{provider.kind}, server: not recorded"


def _silence_words(row: Row, *, audit: bool, everywhere: frozenset[str]) -> Iterator[str]:
    reached = row.reached_model
    # One of several calls with one id: that its result, and not another's, was sent is worth a word.
    several = row.native_call_id not in (None, row.call_id)
    if (audit or several) and reached is not None and reached.proof in _REACHED:
        yield _REACHED[reached.proof]
    for member in row.not_recorded or ():
        if member in everywhere:
            continue
        if member == "content" and reached is not None and reached.reason:
            yield f"{_SILENCES[member]} ({reached.reason})"
        elif member in _SILENCES:
            yield _SILENCES[member]


def member_words(member: str) -> str:
    """A member's path as a person would name it: ``exec.exitCode`` is the exit code."""
    if member in _SUBJECTS:
        return _SUBJECTS[member]
    return _HUMP.sub(" ", member.rpartition(".")[2]).lower()


def place_words(row: Row) -> Iterator[str]:
    """When the row's record was written, and where in its sources it stands."""
    if row.ts is not None:
        yield _clock(row.ts)
    before = None
    for place in row.native or ():
        name = "" if place.source == before else PurePath(place.source.replace("\\", "/")).name
        before = place.source
        at = f":{place.line}" if place.line is not None else ""
        if place.table is not None:
            at = f" {place.table} {compact(place.key)}" if place.key is not None else f" {place.table}"
        yield f"{name}{at} {place.role or ''}".strip()


def _clock(ts: str) -> str:
    """The time of day of an RFC 3339 time, with milliseconds; any other text as it stands."""
    found = _TIME.match(ts)
    return f"{found[1]}.{(found[2] or '').ljust(3, '0')[:3]}" if found else ts


_BESIDE: dict[str, Callable[[Row], object]] = {
    "exec.exitCode": lambda row: row.exit_code,
    "exitCode": lambda row: row.exit_code,
    "durationMs": lambda row: row.duration_ms,
}
"""Members that stand at the right edge, where their sign stands beside them."""


def fact_words(row: Row, signs: Mapping[str, str] | None = None) -> Iterator[str]:
    """Short facts for the right edge of a row's first line."""
    signs = signs or {}
    if row.name is not None and row.name != row.title:
        yield row.name
    if row.count is not None:
        yield count_words(row.count)
    if row.exit_code is not None:
        sign = signs.get("exec.exitCode") or signs.get("exitCode")
        yield f"exit {row.exit_code}" + (f" {sign}" if sign else "")
    if row.duration_ms is not None:
        sign = signs.get("durationMs")
        yield duration_words(row.duration_ms) + (f" {sign}" if sign else "")


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
