"""tool_call: a call was requested, and by whom (ASR-250 to 256, 274, 275). Never an outcome."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET

from callsheet.records._shapes import Location, Provider, RawValue, Record


class ToolCall(Record, tag="tool_call", kw_only=True):
    """A requested tool call.

    Attributes:
        call_id: Native call id, or a derived one.
        call_id_source: ``native`` or ``derived``.
        name: The exact native tool name (ASR-252).
        kind: ACP ToolKind, from the source or the registry's exact-name table (ASR-253).
        title: Display label, only if the source has one.
        input: The arguments as JSON text; excludes ``input_text`` (ASR-254).
        input_text: The complete arguments where they are no lossless JSON.
        requested_by: ``model``, ``user``, ``harness``, ``code``; absent means unknown (ASR-274).
        parent_call_id: The call that contains this one, if recorded (ASR-275).
    """

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("name", "input", "inputText")
    ENTITY_KEY: ClassVar[str | None] = "callId"

    call_id: str
    call_id_source: str
    name: str | None = None
    kind: str | None = None
    title: str | None = None
    input: RawValue = UNSET
    input_text: str | None = None
    requested_by: str | None = None
    parent_call_id: str | None = None
    provider: Provider | None = None
    locations: list[Location] | None = None


FORBIDDEN: tuple[str, ...] = (
    "status",
    "content",
    "displayContent",
    "raw",
    "error",
    "exec",
    "permission",
    "exitCode",
    "durationMs",
    "startedAt",
    "completedAt",
)
"""Outcome members that a tool_call may not carry (ASR-251)."""

__all__ = ["FORBIDDEN", "ToolCall"]
