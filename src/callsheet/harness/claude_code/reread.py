"""A call's input, read again where the survey saw it.

Owns one look back at a native line by its offset, for the few results whose companions name the call's command.
"""

from __future__ import annotations

from typing import Any

from callsheet.harness._port import Desk
from callsheet.harness.claude_code.shapes import FAILS, line_decoder, value_of
from callsheet.records import SourceEntry

STEP = 1 << 16
MOST = 1 << 26


def input_at(desk: Desk, source: SourceEntry, offset: int, call_id: str) -> dict[str, Any]:
    """The input object of the ``tool_use`` block with this id on the line at ``offset``; empty if it has none."""
    data = b""
    while len(data) < MOST:
        more = desk.read(source, offset + len(data), STEP)
        cut = more.find(b"\n")
        data += more if cut < 0 else more[:cut]
        if cut >= 0 or not more:
            break
    try:
        message = line_decoder.decode(data).message
    except FAILS:
        return {}  # not of the usual shape: the call's command stays unknown
    blocks = message.content if message is not None and isinstance(message.content, list) else []
    for block in blocks:
        if block.type == "tool_use" and block.id == call_id:
            value = value_of(block.input)
            return value if isinstance(value, dict) else {}
    return {}
