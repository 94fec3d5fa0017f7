"""Native shapes of a Claude Code session file, as loose as the files are.

Owns the structs that a native line, its message and its blocks decode into. Every small member is ``Any`` (a wrong
type costs nothing but that member), every large one ``Raw`` (kept as its own text until someone needs it). Members
that this version does not know stay in the native line, which every record cites.

Format: the page on Claude Code, sections 2 and 4.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.units import Reading
from callsheet.wire.lossless import decode, encode_clean

ABSENT = Raw()


class NativeBlock(Struct, gc=False):
    """One content block. ``text``, ``thinking`` and ``content`` keep their own JSON text."""

    type: Any = None
    id: Any = None
    name: Any = None
    input: Raw = ABSENT
    tool_use_id: Any = None
    content: Raw = ABSENT
    is_error: Any = None
    text: Raw = ABSENT
    thinking: Raw = ABSENT


class NativeMessage(Struct, gc=False):
    """The ``message`` of a user or assistant line."""

    id: Any = None
    model: Any = None
    content: list[NativeBlock] | str | None = None
    usage: Raw = ABSENT


class NativeLine(Struct, gc=False):
    """One line of a session file."""

    type: Any = None
    uuid: Any = None
    parentUuid: Any = None
    timestamp: Any = None
    sessionId: Any = None
    version: Any = None
    subtype: Any = None
    message: NativeMessage | None = None
    toolUseResult: Raw = ABSENT
    attachment: Raw = ABSENT
    content: Raw = ABSENT
    isSidechain: Any = None
    isMeta: Any = None
    isCompactSummary: Any = None
    isApiErrorMessage: Any = None
    entrypoint: Any = None
    promptSource: Any = None
    permissionMode: Any = None
    origin: Any = None
    rowSource: Any = None
    sourceToolAssistantUUID: Any = None
    permissionDecision: Raw = ABSENT
    toolDenialKind: Any = None
    toolDenialBeforeRun: Any = None
    userFeedback: Any = None
    thinkingDurationMs: Any = None
    rendered: Any = None
    durationMs: Any = None
    contextUsage: Any = None


class _RawMessage(Struct, gc=False):
    content: list[Raw] = []


class _RawBlocks(Struct, gc=False):
    message: _RawMessage | None = None


line_decoder = msgspec.json.Decoder(NativeLine)
value_decoder = msgspec.json.Decoder()
_raw_blocks = msgspec.json.Decoder(_RawBlocks)

FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile part may raise (``msgspec.ValidationError`` is a ``DecodeError``)."""

_RAWS = {"toolUseResult", "attachment", "content", "permissionDecision"}


def loose_line(value: dict[str, Any]) -> NativeLine:
    """A line whose message is not of the usual shape: what is usable of it, member by member.

    A message that is a bare text stands as its content; blocks that are no objects have no type, and members of
    another type than usual are as they are.
    """
    members = {
        name: value[name] for name in NativeLine.__struct_fields__ if name in value and name != "message"
    }
    for name in _RAWS & members.keys():
        members[name] = Raw(encode_clean(members[name]))
    return NativeLine(message=_loose_message(value.get("message")), **members)


def is_record(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a record of its own: it has the marks of one."""
    return isinstance(value.get("type"), str) and (
        "uuid" in value or "sessionId" in value or "leafUuid" in value
    )


READING = Reading(line_decoder, loose_line, is_record)
"""How the second pass reads a file."""


def _loose_message(value: Any) -> NativeMessage | None:
    if isinstance(value, str):
        return NativeMessage(content=value)
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    if isinstance(content, list):
        content = [_loose_block(block) for block in content]
    elif not isinstance(content, str):
        content = None if content is None else [_loose_block(content)]
    usage = Raw(encode_clean(value["usage"])) if "usage" in value else ABSENT
    return NativeMessage(id=value.get("id"), model=value.get("model"), content=content, usage=usage)


def _loose_block(value: Any) -> NativeBlock:
    if not isinstance(value, dict):
        return NativeBlock()
    members = {name: value[name] for name in NativeBlock.__struct_fields__ if name in value}
    for name in ("input", "content", "text", "thinking"):
        if name in members:
            members[name] = Raw(encode_clean(members[name]))
    return NativeBlock(**members)


def raw_block(data: bytes, index: int) -> Raw:
    """The JSON text of one content block of a line, read again; ``null`` where the line has no such block."""
    try:
        line = _raw_blocks.decode(data)
        return line.message.content[index] if line.message else Raw(b"null")
    except (*FAILS, IndexError):
        return _loose_raw(data, index)


def _loose_raw(data: bytes, index: int) -> Raw:
    return Raw(encode_clean(block_of(decode(data), index)))


def block_of(value: Any, index: int) -> Any:
    """A content block of a decoded line; a content that is no list is its only block."""
    message = value.get("message") if isinstance(value, dict) else None
    content = message.get("content") if isinstance(message, dict) else message
    return content[index] if isinstance(content, list) and index < len(content) else content


def verbatim(raw: Raw) -> str:
    """A JSON string as a value for a record, kept as its own text: the encoder writes it as it stands.

    Reading a string of several kilobytes only to write it again would cost more than all else together.
    """
    return cast(str, raw)


def text(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if type(value) is str and value else None


def mark(raw: Raw) -> bytes:
    """The first byte of a part's text, which tells its JSON type; empty when it is absent."""
    return bytes(memoryview(raw)[:1])


def is_string(raw: Raw) -> bool:
    """Whether a part is a JSON string."""
    return len(raw) > 0 and memoryview(raw)[0] == 34


def is_text(raw: Raw) -> bool:
    """Whether a part is a non-empty JSON string."""
    return len(raw) > 2 and memoryview(raw)[0] == 34


def value_of(raw: Raw) -> Any:
    """The decoded value of a part, or None when it is absent or does not decode."""
    if not raw:
        return None
    try:
        return value_decoder.decode(raw)
    except FAILS:
        return None
