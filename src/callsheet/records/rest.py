"""gap, unmapped, notice, preview: what was not read, what nothing maps, what a person saw, what never settled."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET

from callsheet.records._shapes import Part, RawValue, Record


class Gap(Record, tag="gap", kw_only=True):
    """Native bytes that could not be read: bad_json, torn_tail, nul, bad_utf8, too_deep, missing_file, … (open)."""

    reason: str
    source: str | None = None
    line: int | None = None
    offset: int | None = None
    bytes: int | None = None


class Unmapped(Record, tag="unmapped", kw_only=True):
    """A native line or row that nothing maps, whole; it draws no row and is counted."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("value",)

    native_type: str | None = None
    value: RawValue = UNSET


class Notice(Record, tag="notice", kw_only=True):
    """What the harness told the person, or noted, without the model seeing it: a blocked prompt, a limit reached.

    Audit only: it is no part of the conversation.
    """

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ("content", "value")

    native_type: str | None = None
    content: list[Part] | None = None
    value: RawValue = UNSET


class Preview(Record, tag="preview", kw_only=True):
    """The last live output of a call whose turn ended without its result (decision 14)."""

    call_id: str
    output: str | None = None
    omitted_bytes: int | None = None
