"""gap, unmapped, preview: what could not be read, what nothing maps, what never became a result."""

from __future__ import annotations

from typing import ClassVar

from msgspec import UNSET

from callsheet.records._shapes import RawValue, Record


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


class Preview(Record, tag="preview", kw_only=True):
    """The last live output of a call whose turn ended without its result (decision 14)."""

    call_id: str
    output: str | None = None
    omitted_bytes: int | None = None
