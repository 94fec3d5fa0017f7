"""Native shapes of a Claude Code session file, as loose as the files are.

Owns the structs that a native line, its message and its blocks decode into. Every small member is ``Any`` (a wrong
type costs nothing but that member), every large one ``Raw`` (kept as its own text until someone needs it). Members
that this version does not know stay in the native line, which every record cites.

Format: the page on Claude Code, sections 2 and 4.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.units import Reading
from callsheet.wire.lossless import clean_text, decode
from callsheet.wire.lossless import mark as mark

ABSENT = Raw()
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
"""Types of blocks that are calls."""


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
    framed: Any = None
    isReplay: Any = None


class _RawMessage(Struct, gc=False):
    content: list[Raw] = []


class _RawBlocks(Struct, gc=False):
    message: _RawMessage | None = None


line_decoder = msgspec.json.Decoder(NativeLine)
value_decoder = msgspec.json.Decoder()
_raw_blocks = msgspec.json.Decoder(_RawBlocks)

FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile part may raise (``msgspec.ValidationError`` is a ``DecodeError``)."""

_members = msgspec.json.Decoder(dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])


@cache
def _raws(kind: type[Struct]) -> frozenset[str]:
    """The members that a struct keeps as their own text."""
    pairs = zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True)
    return frozenset(name for name, default in pairs if isinstance(default, Raw))


def members_for(kind: type[Struct], text: bytes | Raw) -> dict[str, Any]:
    """The members of a struct whose decoder refuses an object: each by itself, whatever its type.

    What the struct keeps as text stays as it was written (ASR-035); other members are decoded in the slow lane.

    Args:
        kind: The struct; every member has a default.
        text: The text of an object.
    """
    found = _members.decode(text)
    raws = _raws(kind)
    return {
        name: found[name] if name in raws else decode(bytes(found[name]))
        for name in kind.__struct_fields__
        if name in found
    }


def loose_line(text: bytes) -> NativeLine:
    """A line whose message is not of the usual shape: what is usable of it, member by member.

    A message that is a bare text stands as its content; blocks that are no objects have no type, and members of
    another type than usual are as they are.
    """
    members = members_for(NativeLine, text)
    if "message" in members:
        members["message"] = loose_message(_members.decode(text)["message"])
    return NativeLine(**members)


def is_record(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a record of its own: it has the marks of one."""
    return isinstance(value.get("type"), str) and (
        "uuid" in value or "sessionId" in value or "leafUuid" in value
    )


READING = Reading(line_decoder, None, is_record, loose_line)
"""How the second pass reads a file."""


def loose_message(text: Raw) -> NativeMessage | None:
    """A message of an unusual shape; None when it is no object. Content that is neither text nor list is none."""
    if mark(text) != b"{":
        return None
    members = members_for(NativeMessage, text)
    if "content" in members:
        content = _members.decode(text)["content"]
        if mark(content) == b"[":
            members["content"] = [_loose_block(block) for block in _items.decode(content)]
        elif mark(content) != b'"':
            members["content"] = None
    return NativeMessage(**members)


def _loose_block(text: Raw) -> NativeBlock:
    return NativeBlock(**members_for(NativeBlock, text)) if mark(text) == b"{" else NativeBlock()


def raw_block(data: bytes, index: int) -> Raw:
    """The JSON text of one content block of a line, read again; ``null`` where the line has no such block."""
    found = _blocks_of(data)
    return found[index] if index < len(found) else Raw(b"null")


@lru_cache(maxsize=1)
def _blocks_of(data: bytes) -> list[Raw]:
    """The texts of a line's blocks, read once for all of them; a content that is no list is its only block."""
    try:
        line = _raw_blocks.decode(data)
    except FAILS:
        pass  # half a character, or blocks of an unusual shape
    else:
        return line.message.content if line.message else []
    content = _members.decode(clean_text(data)).get("message", ABSENT)
    if mark(content) == b"{":
        content = _members.decode(content).get("content", ABSENT)
    if mark(content) == b"[":
        return _items.decode(content)
    return [content] if content else []


def verbatim(raw: Raw) -> str:
    """A JSON string as a value for a record, kept as its own text: the encoder writes it as it stands.

    Reading a string of several kilobytes only to write it again would cost more than all else together.
    """
    return cast(str, raw)


def text(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if type(value) is str and value else None


def is_string(raw: Raw) -> bool:
    """Whether a part is a JSON string."""
    return mark(raw) == b'"'


def is_text(raw: Raw) -> bool:
    """Whether a part is a non-empty JSON string."""
    return len(raw) > 2 and mark(raw) == b'"'


def value_of(raw: Raw) -> Any:
    """The decoded value of a part, or None when it is absent or does not decode."""
    if not raw:
        return None
    try:
        return value_decoder.decode(raw)
    except FAILS:
        return None


def is_short(key: tuple[Any, ...]) -> bool:
    """Whether an answer may be remembered under a key: texts of a source may be of any length."""
    return sum(len(part) for part in key if isinstance(part, (str, bytes))) < 2_000
