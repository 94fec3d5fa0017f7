"""message, reasoning, usage, turn, compaction: the conversation around the calls (profile, 'Companion records')."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET

from callsheet.records._shapes import Part, RawValue, Record, Shape
from callsheet.records.tool_result import Error


class Message(Record, tag="message", kw_only=True):
    """A message; ``author`` is user, model, system, harness, hook or unknown (open)."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("content",)

    author: str
    content: list[Part] | None = None
    message_id: str | None = None


class Reasoning(Record, tag="reasoning", kw_only=True):
    """Reasoning text; ``form`` summary or raw, absent when the source does not say (decision 11)."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("content",)

    form: str | None = None
    content: list[Part] | None = None
    duration_ms: int | float | None = None


class Count(Shape, kw_only=True):
    """One reported number under the source's own name."""

    name: str
    value: int | float


class Usage(Record, tag="usage", kw_only=True):
    """Usage as reported, nothing computed. ``percent`` only if the source reports one."""

    scope: str
    cumulative: bool | None = None
    counts: list[Count] | None = None
    context_window: int | None = None
    context_used: int | None = None
    percent: int | float | None = None


class Turn(Record, tag="turn", kw_only=True):
    """The state of a turn: running, completed, failed, interrupted, lost or unknown."""

    ENTITY_KEY: ClassVar[str | None] = "turnId"

    turn_id: str
    status: str
    reason: str | None = None
    error: Error | None = None
    duration_ms: int | float | None = None


class Compaction(Record, tag="compaction", kw_only=True):
    """The context was compacted; ``before`` and ``after`` as the source says."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("summary",)

    trigger: str | None = None
    summary: list[Part] | None = None
    before: RawValue = UNSET
    after: RawValue = UNSET


__all__ = ["Compaction", "Count", "Message", "Reasoning", "Turn", "Usage"]
