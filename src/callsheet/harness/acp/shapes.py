"""Lines of a frame log: who sent which frame, and when it was received.

Owns the spellings of a line (``{dir, frame}`` with ``ts``, ``ms`` or ``t``; a bare JSON-RPC frame; a batch of
frames), the directions, and the one exception to 'bare frames are from the agent': a method that only a client
calls. A line with another ``dir``, or without a frame, is no frame.

Must never know: what a frame means for a session, records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.frames import FROM_AGENT, received_at
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, whole_text
from callsheet.harness._port.rpc import Frame, frame_in
from callsheet.harness._port.units import Reading, Unit, unit_of
from callsheet.wire import lossless

CLIENT_METHODS = frozenset(
    {
        "initialize",
        "authenticate",
        "logout",
        "session/new",
        "session/load",
        "session/resume",
        "session/list",
        "session/delete",
        "session/fork",
        "session/close",
        "session/prompt",
        "session/cancel",
        "session/set_mode",
        "session/set_model",
        "session/set_config_option",
        "tool_call/cancel",
        "terminal/cancel",
    }
)
"""Methods that only a client calls."""

AGENT_METHODS = frozenset(
    {
        "session/update",
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
        "elicitation/create",
        "elicitation/complete",
    }
)
"""Methods that only an agent calls."""


class LogLine(Struct, gc=False):
    """One line of a frame log, wrapped or bare."""

    dir: Any = None
    frame: Raw = ABSENT
    ts: Any = None
    ms: Any = None
    t: Any = None
    jsonrpc: Any = None
    method: Any = None
    id: Raw = ABSENT
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


def _loose(value: dict[str, Any]) -> LogLine:
    """``dir`` and times are of any type already; the rest is raw: nothing can be refused."""
    return LogLine(dir=value.get("dir"), ts=value.get("ts"), ms=value.get("ms"), t=value.get("t"))


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a line of its own."""
    return ("frame" in value and "dir" in value) or "jsonrpc" in value


log_reading: Reading[LogLine] = Reading(msgspec.json.Decoder(LogLine), _loose, _own)


def received(line: LogLine) -> str | None:
    """When a line was received, RFC 3339 UTC."""
    return received_at(line.ts, line.ms, line.t)


def frames_of(unit: Unit[LogLine]) -> Iterator[Frame]:
    """The frames of a line; none for a line that holds no frame."""
    line = unit.native
    if line is None:
        for number, item in enumerate(unit.value if isinstance(unit.value, list) else ()):
            if isinstance(item, dict):
                yield from _frame(Raw(lossless.encode_clean(item)), f"/{number}", None)
    elif line.frame:
        way = FROM_AGENT.get(line.dir) if isinstance(line.dir, str) else None
        if way is None and line.dir is not None:
            return
        if mark(line.frame) == b"[":
            for number, part in enumerate(items_of(line.frame)):
                yield from _frame(part, f"/frame/{number}", way)
        else:
            yield from _frame(line.frame, "/frame", way)
    elif line.dir is None and (line.jsonrpc is not None or line.method is not None):
        yield from _frame(Raw(unit.readable()), "", None)


def frames_in(data: bytes, *, from_agent: bool) -> list[Frame]:
    """The frames of a line as it went over the pipe: one, those of a batch, or none where it holds none."""
    raw = Raw(whole_text(data).strip(b" \t\r\n"))
    parts = items_of(raw) if mark(raw) == b"[" else [raw]
    return [frame for part in parts for frame in _frame(part, "", from_agent)]


def _frame(raw: Raw, pointer: str, from_agent: bool | None) -> Iterator[Frame]:
    frame = frame_in(raw, from_agent=from_agent is not False, pointer=pointer)
    if frame is not None:
        sender = frame.method not in CLIENT_METHODS if from_agent is None else from_agent
        yield frame if sender == frame.from_agent else frame._replace(from_agent=sender)


def says_acp(data: bytes) -> bool:
    """Whether one line is a frame of this protocol, and of no other that speaks JSON-RPC."""
    unit = unit_of(data, log_reading)
    for frame in frames_of(unit) if unit is not None else ():
        params = members_of(frame.params)
        if frame.method == "initialize":
            # MCP writes a date here, the Codex app server nothing.
            return mark(params.get("protocolVersion", ABSENT)).isdigit()
        if frame.method == "elicitation/create":
            return "sessionId" in params or "requestId" in params
        if frame.method in CLIENT_METHODS | AGENT_METHODS:
            return frame.method.startswith(("session/", "fs/", "terminal/"))
        result = members_of(frame.result)
        if result:
            return mark(result.get("protocolVersion", ABSENT)).isdigit() or "stopReason" in result
    return False
