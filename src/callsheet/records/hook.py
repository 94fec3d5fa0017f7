"""hook: the run of a hook or set-up script by the harness (ASR-273, 287)."""

from __future__ import annotations

from typing import ClassVar

from callsheet.records._shapes import Part, Record


class Hook(Record, tag="hook", kw_only=True):
    """A hook run; what it injected into the conversation is a message with author ``hook``."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("stdout", "stderr", "output")
    ENTITY_KEY: ClassVar[str | None] = "hookId"

    event: str
    hook_id: str | None = None
    name: str | None = None
    handler_kind: str | None = None
    command: str | list[str] | None = None
    call_id: str | None = None
    status: str | None = None
    decision: str | None = None
    exit_code: int | None = None
    timed_out: bool | None = None
    stdout: str | None = None
    stderr: str | None = None
    output: list[Part] | None = None
    duration_ms: int | float | None = None
