"""terminal: a process that may outlive its call, each record a whole snapshot (ASR-271, 272, 286, 290)."""

from __future__ import annotations

from typing import ClassVar

from callsheet.records._shapes import BlobRef, PathRef, Record, Shape


class TerminalOutput(Shape, kw_only=True):
    """Output so far, as text or as a blob."""

    text: str | None = None
    blob: BlobRef | None = None


class Terminal(Record, tag="terminal", kw_only=True):
    """A background process or monitor; a later state supersedes the record before."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("output",)
    ENTITY_KEY: ClassVar[str | None] = "terminalId"

    terminal_id: str
    kind: str | None = None
    call_id: str | None = None
    command: str | list[str] | None = None
    description: str | None = None
    cwd: PathRef | None = None
    status: str | None = None
    awaited: bool | None = None
    exit_code: int | None = None
    signal: str | None = None
    output: TerminalOutput | None = None
    started_at: str | None = None
    completed_at: str | None = None
