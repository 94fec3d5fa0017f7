"""plan, subagent, file_change: what a call set in motion (profile, 'Companion records')."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET

from callsheet.records._shapes import PathRef, RawValue, Record, Shape


class PlanEntry(Shape, kw_only=True):
    """One step; status pending, in_progress, completed or cancelled (open)."""

    text: str
    status: str | None = None


class Plan(Record, tag="plan", kw_only=True):
    """A plan or task list as the agent set it."""

    ENTITY_KEY: ClassVar[str | None] = "planId"

    plan_id: str
    call_id: str | None = None
    entries: list[PlanEntry]


class Subagent(Record, tag="subagent", kw_only=True):
    """Another agent started by this one; ``stream`` is its stream in the same bundle (ASR-286)."""

    ENTITY_KEY: ClassVar[str | None] = "agentId"

    agent_id: str
    call_id: str | None = None
    stream: str | None = None
    name: str | None = None
    status: str | None = None


class Patch(Shape, kw_only=True):
    """A patch as supplied; format unified, git, hunks, full_text or replace. Never computed."""

    format: str
    value: RawValue = UNSET


class Change(Shape, kw_only=True):
    """One changed file; ``change`` is add, modify, delete or move."""

    path: PathRef
    change: str | None = None
    old_path: PathRef | None = None
    patch: Patch | None = None


class FileChange(Record, tag="file_change", kw_only=True):
    """File changes of a call or a turn; ``state`` is the source's word (a requested edit is ``proposed``)."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("changes",)

    scope: str
    call_id: str | None = None
    turn_id: str | None = None
    state: str | None = None
    changes: list[Change] | None = None
