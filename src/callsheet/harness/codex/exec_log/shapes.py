"""Native shapes of an ``exec --json`` log, old and new.

New (0.44 and later): ``{type, thread_id | item | usage | error | message}``. Old (up to 0.43): a header object, the
prompt, then ``{id, msg: {type, …}}``. One log may hold several runs, one after the other.

Must never know: records.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.units import Reading
from callsheet.harness.codex.shapes import ABSENT, decoded, loosely, members_of, text, text_of

ITEMS = frozenset({"item.started", "item.updated", "item.completed"})
TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "error"}) | ITEMS
HEADER = frozenset({"workdir", "model", "provider", "approval", "sandbox"})


class Head(Struct, gc=False):
    """What every item and message is known by."""

    id: Any = None
    type: str | None = None
    call_id: Any = None


class LogLine(Struct, gc=False):
    """One line of a log of either format."""

    type: str | None = None
    id: Any = None
    thread_id: Any = None
    turn_id: Any = None
    item: Raw = ABSENT
    msg: Raw = ABSENT
    usage: Raw = ABSENT
    error: Any = None
    message: Raw = ABSENT
    prompt: Raw = ABSENT
    workdir: Any = None


class Event(Struct, gc=False):
    """Members of the old format's messages that are no execution's."""

    message: Raw = ABSENT
    text: Raw = ABSENT
    delta: Raw = ABSENT
    plan: Raw = ABSENT
    info: Raw = ABSENT
    unified_diff: Any = None
    changes: Raw = ABSENT
    reason: Any = None
    session_id: Any = None


def _loose(data: bytes) -> LogLine:
    return loosely(LogLine, Raw(data)) or LogLine(type=text_of(members_of(Raw(data)).get("type", ABSENT)))


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a record of its own."""
    return is_new(value) or is_event(value)


reading: Reading[LogLine] = Reading(msgspec.json.Decoder(LogLine), None, _own, _loose)
event_decoder = msgspec.json.Decoder(Event)
_head = msgspec.json.Decoder(Head)


def head_of_item(raw: Raw) -> Head:
    """Id and type of an item or message; empty for anything else."""
    return decoded(_head, raw) or Head()


def is_new(value: dict[str, Any]) -> bool:
    """Whether an object is a line of the new format."""
    kind = value.get("type")
    if kind == "thread.started":
        return text(value.get("thread_id")) is not None
    if isinstance(kind, str) and kind in ITEMS:
        item = value.get("item")
        return isinstance(item, dict) and isinstance(item.get("type"), str)
    return False


def is_event(value: dict[str, Any]) -> bool:
    """Whether an object is a message of the old format."""
    event = value.get("msg")
    return isinstance(event, dict) and isinstance(event.get("type"), str) and isinstance(value.get("id"), str)


def is_header(value: dict[str, Any]) -> bool:
    """Whether an object is the header of the old format."""
    return value.keys() >= HEADER


def ids_in(item: bytes) -> list[str]:
    """The ids of an item in the order in which they are written: a web search has two (decision 20)."""
    if item.count(b'"id"') < 2:
        return []
    try:
        pairs = json.loads(item, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    found = pairs if isinstance(pairs, _Pairs) else []
    return [value for name, value in found if name == "id" and isinstance(value, str)]


class _Pairs(list[tuple[str, Any]]):
    """An object with every member as written."""
