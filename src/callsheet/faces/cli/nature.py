"""What a file is that is no callsheet stream: said in one clear line instead of a finding for each of its lines.

Owns the look at a file's head. A stream with broken lines is still a stream: one line of its head that is meant as a
record is enough.

Must never know: rules, native shapes (the adapters recognise their own).
"""

from __future__ import annotations

from typing import Any

import msgspec

from callsheet.records import TYPES
from callsheet.wire.damage import BOM

HEAD = 1 << 20
"""Bytes of a file that are looked at."""
LINES = 100


class _Line(msgspec.Struct):
    type: Any = None
    seq: Any = None


def not_a_stream(name: str, head: bytes) -> str | None:
    """Why a file is no stream of records; None when it is one, be it broken.

    Args:
        name: The file as the person named it.
        head: Its first bytes.
    """
    if not head.strip(b"\0 \r\n\t" + BOM):
        return None  # nothing in it contradicts the rules of a stream
    lines = [line for line in map(_line, head.split(b"\n", LINES)[:LINES]) if line is not None]
    if any(isinstance(line.type, str) and isinstance(line.seq, int) for line in lines):
        return None
    title = _harness_of(name, head)
    if title is not None:
        return f"is no callsheet stream; this looks like a session of {title}: callsheet import {name}"
    if any(line.type in TYPES for line in lines if isinstance(line.type, str)):
        return None
    return "is no callsheet stream: no line of its beginning is a record"


def _line(data: bytes) -> _Line | None:
    try:
        return msgspec.json.decode(data.removeprefix(BOM), type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _harness_of(name: str, head: bytes) -> str | None:
    from callsheet.harness import HARNESSES as ADAPTERS
    from callsheet.registry import HARNESSES, load

    kind = next((adapter.kind for adapter in ADAPTERS if adapter.recognises(name, head)), None)
    if kind is None:
        return None
    heads = [load(registry).harness for registry in HARNESSES]
    return next((one.title or one.name for one in heads if kind in one.kinds), kind)
