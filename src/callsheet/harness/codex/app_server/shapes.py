"""Native shapes of an app-server log: lines, JSON-RPC frames, thread items.

Owns the spellings of a line (``{dir, frame}`` with ``ts``, ``ms`` or ``t``) and the members of a ``ThreadItem``,
given as the ``Fields`` that executions of every other source have too.

Must never know: records, what a frame means.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from callsheet.harness._port.frames import FROM_AGENT, received_at
from callsheet.harness._port.parts import ABSENT, text_of, value_of
from callsheet.harness._port.rpc import Frame, frame_in
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


class LogLine(Struct, gc=False):
    """One line of a frame log."""

    dir: Raw = ABSENT
    frame: Raw = ABSENT
    ts: Raw = ABSENT
    ms: Raw = ABSENT
    t: Raw = ABSENT


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
    return None if line is None or way is None else frame_in(line.frame, from_agent=way, pointer="/frame")


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
