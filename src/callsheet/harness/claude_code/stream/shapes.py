"""Frames of Claude Code's ``stream-json``: bare lines of its stdout, or lines of a frame log.

Owns the struct of a frame, as loose as the frames are, the way from a line to the frame in it (a unit of its own:
what records cite are the frame's bytes, wherever the log keeps them), and the way from a frame to the shape of a
stored line, so that one set of writers serves both. A bare line is the agent's: what a host sends is not on stdout.

Must never know: what a frame means for a session, records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.frames import FROM_AGENT, received_at
from callsheet.harness._port.parts import ABSENT, items_of, mark, members_of, text_of, value_of
from callsheet.harness._port.units import Reading, Unit, unit_of
from callsheet.harness.claude_code.shapes import (
    NativeLine,
    NativeMessage,
    loose_message,
    members_for,
    text,
)
from callsheet.wire import lossless
from callsheet.wire.spans import Spans

TALK = frozenset({"assistant", "user", "stream_event"})
"""Types of frames that are about the conversation: an agent's carry its id."""
CONTROL = frozenset({"control_request", "control_response", "control_cancel_request"})
"""Types of frames of the control protocol."""
TYPES = TALK | CONTROL | frozenset({"system", "result", "tool_progress"})
"""Types of frames by which a file is known."""


class LogLine(Struct, gc=False):
    """One line: a frame, or what wraps one."""

    dir: Any = None
    frame: Raw = ABSENT
    ts: Any = None
    ms: Any = None
    t: Any = None
    type: Any = None


class Native(Struct, gc=False):
    """One frame."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    timestamp: Any = None
    session_id: Any = None
    parent_tool_use_id: Any = None
    agent_id: Any = None
    message: NativeMessage | None = None
    tool_use_result: Raw = ABSENT
    tool_result_meta: Raw = ABSENT
    tool_use_meta: Raw = ABSENT
    thinking_duration_ms: Any = None
    isSynthetic: Any = None
    isReplay: Any = None
    event: Raw = ABSENT
    content: Raw = ABSENT
    request_id: Any = None
    request: Raw = ABSENT
    response: Raw = ABSENT
    claude_code_version: Any = None
    cwd: Any = None


class Frame(NamedTuple):
    """A frame and where it stands.

    Attributes:
        unit: The frame's own bytes as a unit.
        native: What it holds.
        from_agent: Who sent it.
        ts: When it was received, RFC 3339 UTC; of a bare line the agent's own time.
        wrapped: It stands in a line of a frame log.
    """

    unit: Unit[Any]
    native: Native
    from_agent: bool
    ts: str | None
    wrapped: bool

    @property
    def kind(self) -> str | None:
        """Its type."""
        return text(self.native.type)

    def members(self) -> dict[str, Raw]:
        """Its members, each as its own text."""
        return members_of(Raw(self.unit.readable()))


_native = msgspec.json.Decoder(Native)


def _loose(value: dict[str, Any]) -> LogLine:
    """``type``, ``dir`` and times are of any type already, and the frame is raw: nothing can be refused."""
    return LogLine(
        dir=value.get("dir"),
        ts=value.get("ts"),
        ms=value.get("ms"),
        t=value.get("t"),
        type=value.get("type"),
    )


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a line of its own."""
    return ("frame" in value and "dir" in value) or (value.get("type") in TYPES and "uuid" in value)


reading: Reading[LogLine] = Reading(msgspec.json.Decoder(LogLine), _loose, _own)


def native_of(data: bytes) -> Native:
    """The frame of a JSON object; members of another type than usual are as they are."""
    try:
        return _native.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        members = members_for(Native, data)
        if "message" in members:
            members["message"] = loose_message(members_of(Raw(data)).get("message", ABSENT))
        return Native(**members)


def frame_of(unit: Unit[LogLine]) -> Frame | None:
    """The frame of a line; None for a line that holds none."""
    line = unit.native
    if line is None:
        return None
    if line.dir is None and not line.frame:
        data = unit.readable()
        native = native_of(data)
        return Frame(unit, native, True, text(native.timestamp), False)
    way = FROM_AGENT.get(line.dir) if isinstance(line.dir, str) else None
    span = _span_of(unit.data, line.frame)
    if way is None or span is None or unit.data[span[0] : span[0] + 1] != b"{":
        return None
    data = unit.data[span[0] : span[1]]
    exact = unit.exact["frame"] if isinstance(unit.exact, dict) and not lossless.readable(data) else None
    clean = data if exact is None else lossless.clean_text(data)
    inner: Unit[Any] = Unit(unit.line, unit.start + span[0], data, None, exact)
    return Frame(inner, native_of(clean), way, received_at(line.ts, line.ms, line.t), True)


def _span_of(data: bytes, frame: Raw) -> tuple[int, int] | None:
    """Where the frame stands in its line; usually it is the last member."""
    if frame and data.endswith(bytes(frame) + b"}"):
        return len(data) - len(frame) - 1, len(data) - 1
    return Spans(data).find("/frame")


def line_of(frame: Frame, version: str | None) -> NativeLine:
    """A user or assistant frame in the shape of the line that is stored for it.

    Args:
        frame: The frame.
        version: The agent's version, which no such frame names.
    """
    native = frame.native
    line = NativeLine(
        type=native.type,
        uuid=native.uuid,
        version=version,
        message=native.message,
        toolUseResult=native.tool_use_result,
        isMeta=native.isSynthetic,
        isSidechain=True if text(native.parent_tool_use_id) else None,
        thinkingDurationMs=native.thinking_duration_ms,
        isReplay=native.isReplay,
        subtype=native.subtype,
        content=native.content,
        framed=True,
    )
    meta = items_of(native.tool_result_meta)
    if meta and native.message is not None and isinstance(native.message.content, list):
        told, first = members_of(meta[0]), native.message.content[:1]
        if first and text_of(told.get("id", ABSENT)) == first[0].tool_use_id is not None:
            decided = told.get("permission_decision", ABSENT)
            line.permissionDecision = _renamed(decided)
            line.toolDenialKind = value_of(told.get("non_execution_kind", ABSENT))
    return line


def _renamed(decided: Raw) -> Raw:
    """A decision with the stored spelling of its members."""
    if mark(decided) != b"{":
        return decided
    words = {b'"reason_type"': b'"reasonType"'}
    members = members_of(decided)
    parts = []
    for name, raw in members.items():
        key = msgspec.json.encode(name)
        parts.append(words.get(key, key) + b":" + bytes(raw))
    return Raw(b"{" + b",".join(parts) + b"}")


def is_frame(data: bytes) -> bool:
    """Whether one line is a frame of this protocol, and no line of a stored session."""
    unit = unit_of(data, reading)
    if unit is None or unit.native is None:
        return False
    raw = unit.native.frame or Raw(data)
    members = members_of(raw)
    kind = text_of(members.get("type", ABSENT))
    if kind not in TYPES or "sessionId" in members:
        return False
    if kind in CONTROL:
        return "request_id" in members or bool(members_of(members.get("response", ABSENT)).get("request_id"))
    if kind == "stream_event":
        return "event" in members
    if kind == "system":
        return "subtype" in members and "session_id" in members
    if kind in ("assistant", "user"):
        return "message" in members and ("session_id" in members or "parent_tool_use_id" in members)
    return "session_id" in members
