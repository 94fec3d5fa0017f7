"""tool_call records from ``tool_use`` blocks (ASR-250 to 256, 274).

Owns: the call id where one is missing or used twice (decision 3), the arguments with or without loss (ASR-254), the
kind from the registry's exact names (ASR-253) and the MCP identity (decision 9).

Must never know: results.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from callsheet.harness._port.pen import Pen
from callsheet.harness.claude_code.mcp_servers import PREFIX, composite_name
from callsheet.harness.claude_code.seen import Seen
from callsheet.harness.claude_code.shapes import FAILS, NativeBlock, NativeLine, text
from callsheet.records import Provider, ToolCall
from callsheet.registry import Tool
from callsheet.wire import lossless


def call_id(survey: Seen, block: NativeBlock, uuid: str | None, index: int) -> tuple[str, str]:
    """The call id of a block and its source, ``native`` or ``derived``."""
    if type(block.id) is str:
        derived = survey.derived_id(block.id, uuid)
        return (derived, "derived") if derived else (block.id, "native")
    return (survey.free_id(f"#{uuid or ''}/{index}"), "derived")


def provider(name: str, survey: Seen, call_id: Any) -> Provider:
    """Where an ``mcp__`` tool comes from, by the registry's provider rule.

    The prefix says MCP. Server and tool are known only when one recorded pair makes this very name, and no other
    recorded server could have made it.
    """
    named = survey.mcp_calls.get(call_id) if isinstance(call_id, str) else None
    if named is not None and composite_name(*named) == name:
        return Provider(kind="mcp", server=named[0], tool=named[1], identity="parsed")
    return survey.mcp.provider(name)


class _Unparsed(msgspec.Struct):
    raw: str


class _UnparsedInput(msgspec.Struct):
    unparsed: _Unparsed = msgspec.field(name="__unparsedToolInput")


_unparsed = msgspec.json.Decoder(_UnparsedInput)


class Told(NamedTuple):
    """What frames tell of a call beside its block.

    Attributes:
        own: The arguments as the model wrote them, put together from their pieces; None where these were not sent.
        title: A display name.
    """

    own: bytes | None = None
    title: str | None = None


NOTHING = Told()


def put_input(pen: Pen, record: ToolCall, raw: Raw, pointer: str, own: bytes | None = None) -> None:
    """Sets ``input`` or, where that would lose something, ``inputText`` (ASR-254)."""
    if own is not None:
        # The harness normalises what it stores and frames: only the pieces have the model's own text.
        if not lossless.lossless(own):
            record.input_text = own.decode("utf-8", "replace")
            return
        if not raw or lossless.decode(own) != lossless.decode(bytes(raw)):
            record.input = Raw(own)
            return
    if not raw:
        pen.capture(record, "input", "absent")
        return
    data = bytes(raw)
    if b'"__unparsedToolInput"' in data:
        try:
            record.input_text = _unparsed.decode(data).unparsed.raw
            return
        except FAILS:
            pass  # an argument that only looks like it is an argument like any other
    if pen.unit.exact is not None:
        data = (pen.exact(pointer) or data.decode()).encode()
    if lossless.fits(raw) if pen.unit.exact is None else lossless.lossless(data):
        record.input = Raw(data)
    else:
        record.input_text = data.decode()


def tool_call(
    pen: Pen,
    block: NativeBlock,
    index: int,
    line: NativeLine,
    inference: str | None,
    survey: Seen,
    tools: dict[str, Tool],
    told: Told = NOTHING,
) -> str:
    """Writes the call of one block; returns its call id."""
    pointer = f"/message/content/{index}"
    native = pen.native("call", pointer)
    name = block.name
    own_id, id_source = call_id(survey, block, text(line.uuid), index)
    if id_source == "derived" and type(block.id) is str:
        native.call_id = block.id
    record = ToolCall(
        call_id=own_id,
        call_id_source=id_source,
        inference_id=inference,
        requested_by="model",
        title=told.title,
        native=native,
    )
    if type(name) is str:
        record.name = name
        tool = tools.get(name)
        if tool is not None:
            record.kind = tool.kind
        elif name.startswith(PREFIX):
            record.provider = provider(name, survey, block.id)
    else:
        pen.capture(record, "name", "absent")
    put_input(pen, record, block.input, f"{pointer}/input", told.own)
    pen.write(record)
    return own_id
