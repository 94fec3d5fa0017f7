"""permission: a request for approval and, when known, its decision (ASR-268 to 270, 278 to 281)."""

from __future__ import annotations

from typing import ClassVar

from callsheet.records._shapes import Actor, Record, Shape


class Subject(Shape, kw_only=True):
    """What a request is about: exactly one of a call and a command (ASR-268)."""

    call_id: str | None = None
    command: str | None = None


class Option(Shape, kw_only=True):
    """An offered answer; ``kind`` is open (allow_once, allow_session, allow_always, reject_once, …)."""

    option_id: str
    name: str | None = None
    kind: str | None = None


class Review(Shape, kw_only=True):
    """A verdict that came before the resolution (ASR-280, 281)."""

    by: Actor
    verdict: str | None = None
    rationale: str | None = None


class Permission(Record, tag="permission", kw_only=True):
    """A request for approval; without a decision it is unresolved (ASR-269)."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("title", "description", "feedback", "rationale")
    ENTITY_KEY: ClassVar[str | None] = "requestId"

    request_id: str
    subject: Subject | None = None
    title: str | None = None
    description: str | None = None
    options: list[Option] | None = None
    status: str | None = None
    decision: str | None = None
    selected_option_id: str | None = None
    decided_by: str | None = None
    decider: Actor | None = None
    reviews: list[Review] | None = None
    rule: str | None = None
    reason: str | None = None
    rationale: str | None = None
    feedback: str | None = None
    decided_at: str | None = None
