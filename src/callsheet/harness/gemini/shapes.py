"""Native shapes of a Gemini CLI chat: lines of a JSONL file, or one JSON document.

Owns: what a unit is (a line, or the whole document), the entries that a unit holds (a message by itself, those
of ``$set`` or of a document), and what marks a file as a chat.

Must never know: records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.documents import document_unit, one_line
from callsheet.harness._port.parts import ABSENT, is_null, items_of, mark, members_of, text_of
from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.records import SourceEntry
from callsheet.wire import lossless
from callsheet.wire.damage import BOM


class ChatLine(Struct, gc=False):
    """One line, or a document."""

    id: Any = None
    type: Any = None
    timestamp: Any = None
    sessionId: Any = None
    startTime: Any = None
    kind: Any = None
    content: Raw = ABSENT
    parts: Raw = ABSENT
    toolCalls: Raw = ABSENT
    thoughts: Raw = ABSENT
    tokens: Raw = ABSENT
    messages: Raw = ABSENT
    set: Raw = msgspec.field(name="$set", default=ABSENT)
    rewind: Raw = msgspec.field(name="$rewindTo", default=ABSENT)


class Entry(NamedTuple):
    """One message of the chat.

    Attributes:
        pointer: Where it stands in its unit.
        members: Its members.
        raw: Its text.
    """

    pointer: str
    members: dict[str, Raw]
    raw: Raw


def _loose(value: dict[str, Any]) -> ChatLine:
    names = ("id", "type", "timestamp", "sessionId")
    line = ChatLine()
    for name in names:
        setattr(line, name, value.get(name))
    return line


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a line of its own."""
    return ("type" in value and "timestamp" in value and "content" in value) or "$set" in value


reading: Reading[ChatLine] = Reading(msgspec.json.Decoder(ChatLine), _loose, _own)


def units_of(veil: Veil, source: SourceEntry, document: bool) -> Iterator[Unit[ChatLine] | Hole]:
    """The units of a chat; a document is one unit, and a broken one is a hole."""
    if not document:
        yield from native_units(veil.lines(source), reading)
        return
    yield document_unit(veil, source, reading)


def entries_of(unit: Unit[ChatLine]) -> Iterator[Entry]:
    """The messages that a unit holds, and whatever stands in their place."""
    line = unit.native
    if line is None:
        return
    if isinstance(line.type, str):
        raw = Raw(one_line(unit.data) if unit.exact is None else lossless.encode_clean(unit.exact))
        yield Entry("", members_of(raw), raw)
    holder, pointer = line.messages, "/messages"
    if line.set:
        holder, pointer = members_of(line.set).get("messages", ABSENT), "/$set/messages"
    if holder and not is_null(holder) and mark(holder) != b"[":
        yield Entry(pointer, {}, holder)
    for number, item in enumerate(items_of(holder)):
        yield Entry(f"{pointer}/{number}", members_of(item), item)


def is_head(line: ChatLine) -> bool:
    """Whether a line is the metadata line of a chat."""
    return isinstance(line.sessionId, str) and line.type is None and not line.messages


_LINE = frozenset({"sessionId", "type", "$set", "$rewindTo"})
_DOCUMENT = re.compile(rb'\s*\{\s*"')
_TYPES = frozenset({"user", "gemini", "model", "info", "error", "warning"})
_GEMINI = re.compile(rb'"type"\s*:\s*"gemini"')


def is_document(head: bytes) -> bool:
    """Whether a file is one JSON value over several lines; not a chat of lines whose first one is torn."""
    first, *rest = head.removeprefix(BOM).lstrip().split(b"\n")
    if not rest or _value(first) is not None:
        return False  # a line longer than the head, or one that is whole
    begun = first.strip() in (b"{", b"[") or (_DOCUMENT.match(head) and not first.rstrip().endswith(b"}"))
    # Lines of a document are indented, or end with a comma: none is a line of a chat.
    return bool(begun) and not any(line.startswith(b"{") and _is_line(line) for line in rest)


def _value(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _is_line(data: bytes) -> bool:
    value = _value(data)
    return isinstance(value, dict) and not _LINE.isdisjoint(value)


def recognises(head: bytes) -> bool:
    """Whether a file's first bytes are those of a chat."""
    if is_document(head):
        whole = b'"projectHash"' in head and b'"messages"' in head and b'"sessionId"' in head
        return whole or (_GEMINI.search(head) is not None and b'"timestamp"' in head)
    for data in head.split(b"\n")[:20]:
        try:
            line = reading.decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(line.sessionId, str) and b'"projectHash"' in data and line.type is None:
            return True
        if line.type == "gemini" and isinstance(line.id, str) and isinstance(line.timestamp, str):
            return True
        if mark(line.set) == b"{" and b'"messages"' in data and b'"timestamp"' in data:
            return True
    return False


def session_of(head: bytes) -> str | None:
    """The session id in a file's first bytes."""
    found = re.search(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"', head)
    return found.group(1).decode("utf-8", "replace") if found else None


def call_id_of(members: dict[str, Raw]) -> str | None:
    """The id of a call, or of a function response."""
    return text_of(members.get("id", ABSENT)) or None
