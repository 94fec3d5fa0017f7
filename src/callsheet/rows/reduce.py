"""The reducer: which records make a row, and where it stands.

A row stands where its first record stands (a turn's notice where its last one does). What folds into a
call's row has no row of its own. The table ``REDUCERS`` names a function for every record type.

Must never know: files, how rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from callsheet.errors import RecordError
from callsheet.pairing import Pairing
from callsheet.records import (
    Compaction,
    FileChange,
    Gap,
    Hook,
    InputRequest,
    Message,
    Notice,
    Permission,
    Plan,
    Preview,
    Reasoning,
    Record,
    Session,
    Subagent,
    Terminal,
    ToolCall,
    ToolResult,
    Turn,
    Unmapped,
    Usage,
)
from callsheet.rows.calls import call_row, result_row
from callsheet.rows.context import Context
from callsheet.rows.events import (
    compaction_row,
    file_change_row,
    gap_row,
    hook_row,
    notice_row,
    quiet_row,
    subagent_row,
    terminal_row,
    turn_row,
)
from callsheet.rows.row import Row
from callsheet.rows.talk import input_request_row, message_row, permission_row, plan_row, thought_row

REDUCERS: dict[type[Record], Callable[[Context, int, Any], Row | None]] = {
    Session: quiet_row,
    ToolCall: lambda context, number, _: call_row(context, number),
    ToolResult: result_row,
    Permission: permission_row,
    InputRequest: input_request_row,
    Terminal: terminal_row,
    Hook: hook_row,
    Message: message_row,
    Reasoning: thought_row,
    Usage: quiet_row,
    Turn: turn_row,
    Plan: plan_row,
    Subagent: subagent_row,
    FileChange: file_change_row,
    Compaction: compaction_row,
    Gap: gap_row,
    Unmapped: quiet_row,
    Notice: notice_row,
    Preview: quiet_row,
}
"""For every record type, what makes a row of an entity: context, number of its first record, its latest
record."""

SILENT: frozenset[type[Record] | None] = frozenset({Session, Usage, Preview, Unmapped, None})
"""Types that make no row unless every record is asked for; None stands for types that nobody knows."""


def folded_numbers(pairing: Pairing) -> bytearray:
    """A mark for every record whose entity is drawn in its call's row."""
    marks = bytearray(len(pairing))
    for call_id in pairing.call_ids():
        if pairing.call(call_id) is None:
            continue
        answer = pairing.result(call_id)
        if answer is not None:
            marks[pairing.first(answer)] = 1
        for kind in (FileChange, Subagent):
            for number in pairing.linked(call_id, kind):
                marks[pairing.first(number)] = 1
    return marks


def row_at(context: Context, number: int) -> Row | None:
    """The row of the entity whose first record is ``number``, as its latest record says; or of a bad line.

    Returns:
        None for a record that draws no row.

    Raises:
        RecordError: The record cannot be read again.
    """
    if context.pairing.is_bad(number):
        return _bad_row(context, number)
    kind = context.pairing.type_of(number)
    record = context.fetch(context.pairing.latest(number))
    if kind is None or not isinstance(record, kind):
        return quiet_row(context, number, record)
    return REDUCERS[kind](context, number, record)


def row_numbers(pairing: Pairing, *, audit: bool) -> Iterator[int]:
    """Where the rows of a stream that was fed whole stand: each entity by its first record, in the rows' order.

    A line that is no record has its own number. Some of these entities draw no row after all (``row_at``).
    """
    folded = folded_numbers(pairing)
    for number in range(len(pairing)):
        if pairing.is_bad(number):
            yield number
            continue
        kind = pairing.type_of(number)
        at = pairing.first(number)
        if kind is Turn:
            if pairing.is_superseded(number):
                continue
        elif at != number or folded[number] or (kind in SILENT and not audit):
            continue
        yield at


def rows_of(context: Context) -> Iterator[Row]:
    """All rows of a stream that was fed to the pairing, in order, one at a time."""
    for number in row_numbers(context.pairing, audit=context.view.audit):
        row = row_at(context, number)
        if row is not None:
            yield row


def _bad_row(context: Context, number: int) -> Row:
    try:
        context.fetch(number)
    except RecordError as error:
        reason = error.message
    else:
        reason = "it cannot be read"
    return Row(
        row=f"#{number}",
        kind="notice",
        state="failed",
        title=f"a line that is no legal record: {reason}"[: context.limits.title],
        record=f"#{number}",
        provisional=context.provisional,
    )
