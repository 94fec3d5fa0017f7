"""Parts of native JSON, taken only as far as a fact needs them.

Owns the way into a ``msgspec.Raw``: its members, its items, its text, its value. A part of another type, or one that
does not decode, yields nothing; it never raises, because every member that a source wrote may be of any type.

Must never know: what a part means.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.wire import lossless
from callsheet.wire.lossless import MAX_SAFE
from callsheet.wire.lossless import mark as mark

ABSENT = Raw()
"""No value; differs from JSON null."""
_FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_items = msgspec.json.Decoder(list[Raw])
_members = msgspec.json.Decoder(dict[str, Raw])
_value = msgspec.json.Decoder()


def whole_text(data: bytes) -> bytes:
    """A JSON text as every reader takes it: half characters, for which the fast lane refuses all of it, replaced."""
    return lossless.clean_text(data) if b"\\u" in data and not lossless.readable(data) else data


def is_null(raw: Raw) -> bool:
    """Whether the part is JSON null."""
    return mark(raw) == b"n"


def members_of(raw: Raw) -> dict[str, Raw]:
    """The members of a JSON object, each as its own text, or an empty mapping for anything else."""
    if mark(raw) != b"{":
        return {}
    try:
        return _members.decode(raw)
    except _FAILS:
        return {}


def items_of(raw: Raw) -> list[Raw]:
    """The items of a JSON array, or an empty list for anything else."""
    if mark(raw) != b"[":
        return []
    try:
        return _items.decode(raw)
    except _FAILS:
        return []


def value_of(raw: Raw) -> Any:
    """The decoded value of a part, or None when it is absent or does not decode."""
    if not raw:
        return None
    try:
        return _value.decode(raw)
    except _FAILS:
        return None


def text_of(raw: Raw) -> str | None:
    """The text of a part that is a JSON string, else None."""
    if mark(raw) != b'"':
        return None
    value = value_of(raw)
    return value if isinstance(value, str) else None


def whole_number_of(raw: Raw) -> int | None:
    """The value of a part that is a JSON integer which every reader keeps (ASR-032), else None."""
    value = value_of(raw) if mark(raw) not in (b'"', b"{", b"[") else None
    return value if type(value) is int and abs(value) <= MAX_SAFE else None


def part_at(raw: Raw, pointer: str) -> Raw:
    """The part at a JSON pointer of object members (no escapes), or ``ABSENT``."""
    for step in pointer.strip("./").split("/"):
        raw = members_of(raw).get(step, ABSENT)
    return raw
