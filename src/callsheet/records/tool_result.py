"""tool_result: what came back, and what reached the model (ASR-257 to 267, 276 to 279, 288 to 291)."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import UNSET

from callsheet.records._shapes import Part, PathRef, Provider, RawValue, Record, Shape


class Error(Shape, kw_only=True):
    """An error as the source recorded it."""

    message: str | None = None
    code: Any = None


class Exec(Shape, kw_only=True):
    """Process details of shell-like tools; every member only from a field made for it (ASR-260, 267, 288).

    ``process_id`` is provenance, verbatim in type (ASR-289, 291); ``terminal_id`` refers to a terminal (ASR-290).
    """

    command: str | list[str] | None = None
    cwd: PathRef | None = None
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool | None = None
    stdout: str | None = None
    stderr: str | None = None
    output: str | None = None
    terminal_id: str | None = None
    process_id: str | int | None = None


class CompactPermission(Shape, kw_only=True):
    """A decision recorded without a request (ASR-277)."""

    decision: str
    decided_by: str | None = None
    rule: str | None = None


class ToolResult(Record, tag="tool_result", kw_only=True):
    """The result of a call.

    Attributes:
        call_id: The call answered; absent for linkage ``none`` and ``ambiguous`` (ASR-257, 262).
        native_call_id: The native id as written; never used for pairing (ASR-262).
        linkage: ``exact``, ``derived``, ``ambiguous`` or ``none``.
        status: ``completed``, ``failed``, ``denied``, ``cancelled``, ``interrupted``, ``unknown`` (ASR-258).
        content: What reached the model; absent with a capture state when not recorded (ASR-259).
        display_content: What the user saw, when different.
        raw: Tool-specific raw output.
        duration_ms: Milliseconds, only from the source (ASR-261).
    """

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = (
        "content",
        "displayContent",
        "raw",
        "exec.stdout",
        "exec.stderr",
        "exec.output",
    )

    call_id: str | None = None
    native_call_id: str | None = None
    linkage: str
    status: str
    content: list[Part] | None = None
    display_content: list[Part] | None = None
    raw: RawValue = UNSET
    error: Error | None = None
    exec: Exec | None = None
    started_at: str | None = None
    completed_at: str | None = None
    duration_ms: int | float | None = None
    provider: Provider | None = None
    permission: CompactPermission | None = None
