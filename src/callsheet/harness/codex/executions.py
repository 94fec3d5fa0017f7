"""How a call was executed, as items and events of every generation tell it.

Owns the loose struct of their members and ``Execution``: process details, times, MCP identity,
the tool's structured result, the native words for the outcome. Every member comes from a field made for it (decision
8); nulls that mean "not available" are left out (ASR-288).

Must never know: outputs, other lines, what an outcome is called in a record.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from callsheet.harness._port import INLINE_MOST
from callsheet.harness._port.pen import Pen, number, raw_json, utc_of_ms, verbatim
from callsheet.harness.codex.shapes import (
    ABSENT,
    FAILS,
    loosely,
    mark,
    members_of,
    payload_text,
    text,
    text_of,
    value_of,
)
from callsheet.records import Error, Exec, PathRef, Provider, ToolResult
from callsheet.registry.via import file_url, secs_nanos
from callsheet.registry.when import MISSING

INT32_LOW, INT32_HIGH = -(1 << 31), (1 << 32) - 1
PERSISTED_MOST = 65_536
"""Bytes to which 0.163 and later cut an item's output before it is stored."""
CUT_MARK = b"command output truncated for persistence"
"""The line that they put in the place of what they left out."""


class Fields(Struct, gc=False):
    """Members of an item or event that tells how a call was executed."""

    type: str | None = None
    id: Any = None
    call_id: Any = None
    process_id: Any = None
    command: Any = None
    cwd: Any = None
    source: Any = None
    status: Any = UNSET
    stdout: Raw = ABSENT
    stderr: Raw = ABSENT
    aggregated_output: Raw = ABSENT
    exit_code: Any = None
    duration: Any = None
    success: Any = UNSET
    error: Any = None
    changes: Raw = ABSENT
    server: Any = None
    tool: Any = None
    namespace: Any = None
    arguments: Raw = ABSENT
    invocation: Raw = ABSENT
    result: Raw = ABSENT
    results: Raw = ABSENT
    content_items: Raw = ABSENT
    query: Any = None
    action: Raw = ABSENT
    path: Any = None
    prompt: Any = None
    saved_path: Any = None
    revised_prompt: Any = None
    connector_id: Any = None
    plugin_id: Any = None


class _Item(Struct, gc=False):
    """The payload of an ``event_msg`` line with an item."""

    item: Fields | None = None
    thread_id: Any = None
    turn_id: Any = None
    started_at_ms: Any = None
    completed_at_ms: Any = None


class _ItemLine(Struct, gc=False):
    payload: _Item | None = None


class _EventLine(Struct, gc=False):
    payload: Fields | None = None


_item_line = msgspec.json.Decoder(_ItemLine)
_event_line = msgspec.json.Decoder(_EventLine)


class Execution(Struct, kw_only=True):
    """How a call was executed.

    Attributes:
        kind: The native type.
        call_id: The call's id.
        pointer: Where the members stand in their line.
        words: What the line says of the outcome, for the status table.
        thread: The thread that the line names.
        fields: The members.
        begins: Whether it is only the beginning.
        own_role: The role of a ref to it, where it is not one of those that follow from its place.
        data: The line; in an exec log the item or message alone.
    """

    kind: str
    call_id: str | None
    pointer: str
    words: dict[str, Any]
    thread: str | None = None
    started_ms: Any = None
    completed_ms: Any = None
    fields: Fields
    begins: bool = False
    own_role: str = ""
    data: bytes

    @property
    def role(self) -> str:
        """The role of a ref to it."""
        if self.own_role:
            return self.own_role
        if self.begins:
            return "begin"
        return "item" if self.pointer.endswith("/item") else "end"

    @property
    def members(self) -> dict[str, Raw]:
        """All members of the item or event, each as its own text."""
        if not self.pointer.startswith("/payload"):
            return members_of(Raw(self.data))
        payload = payload_text(self.data)
        return members_of(members_of(payload).get("item", ABSENT) if self.role == "item" else payload)


def execution_of(data: bytes) -> Execution | None:
    """The execution that an ``event_msg`` line tells of; None when it tells of none."""
    try:
        event = _item_line.decode(data).payload
        plain = None if event is None or event.item is not None else _event_line.decode(data).payload
    except FAILS:
        event, plain = _loosely(data)
    if event is not None and event.item is not None:
        fields, pointer, call_id = event.item, "/payload/item", event.item.id
    elif plain is not None:
        fields, pointer, call_id = plain, "/payload", plain.call_id
    else:
        return None
    return Execution(
        kind=fields.type or "",
        call_id=call_id if isinstance(call_id, str) else None,
        pointer=pointer,
        words=words_of(fields, "payload", pointer != "/payload"),
        thread=text(event.thread_id) if event is not None else None,
        started_ms=event.started_at_ms if event is not None else None,
        completed_ms=event.completed_at_ms if event is not None else None,
        fields=fields,
        data=data,
    )


def _loosely(data: bytes) -> tuple[_Item | None, Fields | None]:
    """The same of a line with a member that no reader takes."""
    payload = payload_text(data)
    members = members_of(payload)
    event = loosely(_Item, raw_json({name: raw for name, raw in members.items() if name != "item"}))
    if event is None:
        return None, None
    if "item" in members:
        event.item = loosely(Fields, members["item"])
        return event, None
    return event, loosely(Fields, payload)


def words_of(fields: Fields, root: str, is_item: bool) -> dict[str, Any]:
    """The small members that the status table may name, at the places where the line has them."""
    small: dict[str, Any] = {"type": fields.type}
    for name in ("status", "success"):
        value = getattr(fields, name)
        if value is not UNSET:
            # What is there and no word fits no row, but is there.
            small[name] = value if value is None or isinstance(value, str | bool) else 0
    if fields.result:
        small["result"] = _outcome(fields.result)
    return {root: {"item": small} if is_item else small}


def _outcome(raw: Raw) -> Any:
    """``{"Ok": {"isError": …}}`` or ``{"Err": …}`` of an MCP call, without their contents."""
    members = members_of(raw)
    if "Err" in members:
        return {"Err": ""}
    if "Ok" in members:
        flag = value_of(members_of(members["Ok"]).get("isError", ABSENT))
        return {"Ok": {} if flag is None else {"isError": flag}}
    return {}


# -- process details ----------------------------------------------------------------------------------------------


def put_times(result: ToolResult, execution: Execution) -> bool:
    """Sets start, end and duration as recorded (ASR-261).

    Returns:
        False where they contradict each other: then only the duration, the process's own, is kept.
    """
    duration = secs_nanos(execution.fields.duration)
    result.duration_ms = None if duration is MISSING or duration < 0 else number(duration)
    start, end = utc_of_ms(execution.started_ms), utc_of_ms(execution.completed_ms)
    if start is not None and end is not None:
        span = execution.completed_ms - execution.started_ms
        # Both times are cut to milliseconds.
        if span < 0 or (result.duration_ms or 0) > span + 2:
            return False
    result.started_at, result.completed_at = start, end
    return True


def exit_code(value: Any) -> int | None:
    """A recorded numeric exit status within the range of ASR-260."""
    if type(value) is int and INT32_LOW <= value <= INT32_HIGH:
        return value
    return None


def native_path(pen: Pen, value: Any) -> PathRef | None:
    """A recorded path or ``file:`` URL under the session's roots."""
    path = text(value)
    return None if path is None else local_path(pen, path)


def local_path(pen: Pen, path: str) -> PathRef:
    """The same of a text."""
    local = file_url(path)
    return pen.path(local if isinstance(local, str) else path)


def put_exec(pen: Pen, result: ToolResult, fields: Fields) -> None:
    """Sets the process details of a result (ASR-260, 267, 288 to 291)."""
    command = fields.command
    if isinstance(command, list) and not all(isinstance(word, str) for word in command):
        command = None
    process = fields.process_id
    made = Exec(
        command=command if isinstance(command, list) else text(command),
        cwd=native_path(pen, fields.cwd),
        exit_code=exit_code(fields.exit_code),
        process_id=process if isinstance(process, str) else _safe(process),
    )
    result.exec = made
    for member, raw in (
        ("output", fields.aggregated_output),
        ("stdout", fields.stdout),
        ("stderr", fields.stderr),
    ):
        # Rollouts blank stdout and stderr and keep the merged output: an empty text there says nothing.
        if mark(raw) == b'"' and (len(raw) > 2 or member == "output"):
            _stream(pen, result, made, member, raw)
    if made == Exec():
        result.exec = None


def _safe(value: Any) -> int | None:
    found = number(value)
    return found if type(found) is int else None


def _stream(pen: Pen, result: ToolResult, made: Exec, member: str, raw: Raw) -> None:
    if len(raw) > INLINE_MOST:  # and so is the text of every output that Codex cut
        words = (text_of(raw) or "").encode("utf-8", "replace")
        cut = CUT_MARK in words and len(words) == PERSISTED_MOST
        if len(words) > INLINE_MOST:
            pen.capture(result, f"exec.{member}", "external", blob=pen.desk.blob(words, "text/plain"))
            return
        if cut:
            pen.capture(result, f"exec.{member}", "truncated", reason="cut by Codex before it was stored")
    setattr(made, member, verbatim(raw))


# -- the rest -----------------------------------------------------------------------------------------------------


def put_error(result: ToolResult, fields: Fields) -> None:
    """Sets the error as the source words it."""
    error = fields.error
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        code = error.get("code")
        result.error = Error(
            message=error["message"], code=code if isinstance(code, str | int) and code is not True else None
        )
    elif text(error):
        result.error = Error(message=error)
    elif fields.result:
        message = text_of(members_of(fields.result).get("Err", ABSENT))
        if message:
            result.error = Error(message=message)


def provider_of(fields: Fields) -> Provider | None:
    """MCP server and tool, where they stand in fields of their own (ASR-255, 276)."""
    server, tool = fields.server, fields.tool
    if fields.invocation:
        invocation = members_of(fields.invocation)
        server = text_of(invocation.get("server", ABSENT))
        tool = text_of(invocation.get("tool", ABSENT))
    if text(server) is None:
        return None
    return Provider(kind="mcp", server=server, tool=text(tool), identity="exact")


def structured(execution: Execution) -> Raw | None:
    """The tool's own structured result, if the line has one."""
    fields = execution.fields
    for raw in (fields.result, fields.content_items, fields.results):
        if raw and bytes(raw) != b"null":
            return raw
    return None


def arguments_of(execution: Execution) -> tuple[Raw, str]:
    """The arguments of a call that only its execution tells of, and where they stand in it; empty where none are."""
    fields = execution.fields
    if fields.invocation:
        return members_of(fields.invocation).get("arguments", ABSENT), "/invocation/arguments"
    return fields.arguments, "/arguments"


def input_of(execution: Execution) -> Raw | None:
    """What a call was asked for, put together from the members of its execution."""
    fields = execution.fields
    members: dict[str, Any] = {}
    for name in ("command", "query", "path", "prompt", "revised_prompt", "tool"):
        value = getattr(fields, name)
        if value is not None and not (name == "tool" and fields.server is not None):
            members[name] = value
    if fields.action:
        members["action"] = fields.action
    if fields.changes and not members:
        members["changes"] = fields.changes
    return raw_json(members) if members else None
