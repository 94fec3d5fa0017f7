"""Native shapes of an app-server log: lines, JSON-RPC frames, thread items.

Owns the spellings of a line (``{dir, frame}`` with ``ts``, ``ms`` or ``t``) and the members of a ``ThreadItem``,
given as the ``Fields`` that executions of every other source have too.

Must never know: records, what a frame means.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct

from callsheet.harness._port.frames import FROM_AGENT, received_at
from callsheet.harness._port.parts import ABSENT, members_of, text_of, value_of
from callsheet.harness._port.units import Reading, Unit
from callsheet.harness.codex.executions import Execution, Fields
from callsheet.harness.codex.shapes import decoded, loosely, string

ITEM = "/params/item"
"""Where an item stands in its frame."""

ASKS = frozenset(
    {
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "item/tool/requestUserInput",
        "item/tool/call",
        "mcpServer/elicitation/request",
        "account/chatgptAuthTokens/refresh",
        "applyPatchApproval",
        "execCommandApproval",
    }
)
"""Requests that the server makes."""


ID_LIMIT = 10**18
"""Numbers of requests are smaller."""


class LogLine(Struct, gc=False):
    """One line of a frame log."""

    dir: Raw = ABSENT
    frame: Raw = ABSENT
    ts: Raw = ABSENT
    ms: Raw = ABSENT
    t: Raw = ABSENT


class Frame(NamedTuple):
    """One JSON-RPC frame.

    Attributes:
        from_server: Who sent it.
        pointer: Where it stands in its line.
        id: The id of a request or response as text, numbers and strings alike; None on a notification.
        method: None on a response.
        params: Parameters of a request or notification.
        result: Of a response.
        error: Of a response.
        number: The id as it is written.
    """

    from_server: bool
    pointer: str
    id: str | None
    method: str | None
    params: Raw
    result: Raw
    error: Raw
    number: Raw = ABSENT


def _loose(_value: dict[str, Any]) -> LogLine:
    """Every member is raw, of any type: nothing can be refused."""
    return LogLine()


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a line of its own."""
    return "frame" in value and "dir" in value


log_reading: Reading[LogLine] = Reading(msgspec.json.Decoder(LogLine), _loose, _own)


def received(line: LogLine) -> str | None:
    """When a line was received, RFC 3339 UTC."""
    return received_at(value_of(line.ts), value_of(line.ms), value_of(line.t))


def frame_of(unit: Unit[LogLine]) -> Frame | None:
    """The frame of a line; None for a line that holds none."""
    line = unit.native
    way = FROM_AGENT.get(text_of(line.dir) or "") if line is not None else None
    return None if line is None or way is None else frame_in(line.frame, from_server=way, pointer="/frame")


def frame_in(raw: Raw, *, from_server: bool, pointer: str = "") -> Frame | None:
    """A JSON value as a frame; None for one that is none."""
    members = members_of(raw)
    method = text_of(members.get("method", ABSENT))
    number = members.get("id", ABSENT)
    name = id_text(number)
    if method is None and (name is None or not ("result" in members or "error" in members)):
        return None
    return Frame(
        from_server,
        pointer,
        name,
        method,
        members.get("params", ABSENT),
        members.get("result", ABSENT),
        members.get("error", ABSENT),
        number,
    )


def id_text(raw: Raw) -> str | None:
    """A JSON-RPC id as text: a string, or an integer; nothing else is one."""
    value = value_of(raw)
    if type(value) is int and abs(value) < ID_LIMIT:
        return str(value)
    return value if isinstance(value, str) else None


# -- items --------------------------------------------------------------------------------------------------------


class Item(Struct, rename="camel", gc=False):
    """A ``ThreadItem``: what any of its types is read for."""

    type: str | None = None
    id: Any = None
    command: Any = None
    cwd: Any = None
    process_id: Any = None
    source: Any = None
    status: Any = UNSET
    aggregated_output: Raw = ABSENT
    exit_code: Any = None
    duration_ms: Any = None
    started_at_ms: Any = None
    completed_at_ms: Any = None
    changes: Raw = ABSENT
    server: Any = None
    tool: Any = None
    namespace: Any = None
    arguments: Raw = ABSENT
    result: Raw = ABSENT
    results: Raw = ABSENT
    content_items: Raw = ABSENT
    query: Any = None
    action: Raw = ABSENT
    path: Any = None
    prompt: Any = None
    error: Any = None
    text: Raw = ABSENT
    content: Raw = ABSENT
    summary: Raw = ABSENT
    fragments: Raw = ABSENT
    kind: Any = None
    agent_thread_id: Any = None
    agent_path: Any = None
    receiver_thread_ids: Raw = ABSENT
    agents_states: Raw = ABSENT


_item = msgspec.json.Decoder(Item)


def item_of(raw: Raw) -> Item | None:
    """A thread item; members that no reader takes are left out; None for what is no object."""
    return decoded(_item, raw) or loosely(Item, raw)


def execution_of(item: Item, pointer: str, *, begins: bool) -> Execution:
    """A thread item as the execution that it tells of."""
    fields = Fields(
        type=item.type,
        id=item.id,
        process_id=item.process_id,
        command=item.command,
        cwd=item.cwd,
        source=item.source,
        status=item.status,
        aggregated_output=item.aggregated_output,
        exit_code=item.exit_code,
        error=item.error,
        changes=item.changes,
        server=item.server,
        tool=item.tool,
        namespace=item.namespace,
        arguments=item.arguments,
        result=item.result,
        results=item.results,
        content_items=item.content_items,
        query=item.query,
        action=item.action,
        path=item.path,
        prompt=item.prompt,
    )
    small: dict[str, Any] = {"type": item.type}
    if item.status is not UNSET:
        small["status"] = item.status if isinstance(item.status, str) else 0
    return Execution(
        kind=item.type or "",
        call_id=string(item.id),
        pointer=pointer,
        words={"frame": {"params": {"item": small}}},
        fields=fields,
        begins=begins,
        own_role="begun" if begins else "done",
        data=b"",
    )
