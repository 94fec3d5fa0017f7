"""Rows of what has not settled: a call that was announced, a text that is being written, a request that waits.

Owns what such a row says, and which record makes it moot. Pure: where it stands, and for how long, is not known here.

Must never know: streams, positions, how rows are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from callsheet.records import InputRequest, Message, Permission, Reasoning, Record, ToolCall, ToolResult
from callsheet.registry.when import MISSING
from callsheet.rows.calls import kind_of
from callsheet.rows.context import Context
from callsheet.rows.inputs import title_of
from callsheet.rows.row import Limits, Output, Row, RowKind
from callsheet.rows.text import cut, first_line, raw_value
from callsheet.seam import (
    CallPreview,
    MessagePreview,
    OutputPreview,
    RequestClosed,
    ThoughtPreview,
    Waiting,
)

Key = tuple[str, str]
"""What a preview is known by: call, message, thought or request, and its name."""


def moot(record: Record, keys: Iterable[Key]) -> list[Key]:
    """Those of some previews that a record makes moot, the one that it takes the place of first."""
    match record:
        case ToolCall():
            wanted = ("call", record.call_id)
        case ToolResult():
            wanted = ("call", record.call_id or "")
        case Message():
            return [key for key in keys if key[0] == "message"]
        case Reasoning():
            return [key for key in keys if key[0] == "thought"]
        case Permission() | InputRequest():
            wanted = ("request", record.request_id)
        case _:
            return []
    return [wanted] if wanted in keys else []


def call_row(event: CallPreview, context: Context | None) -> Row:
    """The row of a call that was announced.

    Args:
        event: What is known of it.
        context: The session's own stream, where it has begun.
    """
    raw = _whole_json(event.input)
    call = ToolCall(call_id=event.call, call_id_source="native", name=event.name, title=event.title)
    if raw is not None:
        call.input = raw
    tool = context.tool(event.name) if context is not None else None
    title = title_of(call, raw_value(raw) if raw is not None else MISSING, tool, Limits().title)
    row = _running(kind_of(call, None, tool), title.text, f"call {event.call}")
    row.name, row.call_id = event.name, event.call
    if raw is None and event.input:
        row.input_text, row.more_input = cut(event.input, Limits().input), [""]
    return row


def text_row(event: MessagePreview | ThoughtPreview) -> Row:
    """The row of a message or a thought that is being written."""
    kind: RowKind = "thought" if isinstance(event, ThoughtPreview) else "message"
    row = _running(kind, first_line(event.text, Limits().title) or "…", f"{kind} {event.key}")
    row.author = None if kind == "thought" else "model"
    row.output = Output(text=event.text, truncated=True, member="preview")
    return row


def request_row(request: Waiting) -> Row:
    """The row of a request that waits for an answer."""
    title = first_line(request.title or "the agent asks", Limits().title) or "request"
    row = _running("request", title, f"request {request.request_id}")
    row.call_id = request.call
    return row


def closed_row(row: Row, event: RequestClosed) -> Row:
    """The row of a request that waits no more."""
    return row.changed(
        state="completed" if event.how == "answered" else "cancelled",
        status=": ".join(word for word in (event.how, event.said) if word),
    )


def with_output(row: Row, event: OutputPreview | None) -> Row:
    """The row of a call with the end of its output so far, while it runs."""
    if event is None or row.result is not None or row.state != "running":
        return row
    shown = Output(
        text=event.text, truncated=True, omitted_before=event.omitted_bytes or None, member="preview"
    )
    return row.changed(output=shown)


def _running(kind: RowKind, title: str, name: str) -> Row:
    return Row(row=name, kind=kind, state="running", title=cut(title, Limits().title), record=name)


def _whole_json(text: str | None) -> Raw | None:
    if not text:
        return None
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return Raw(text.encode())
