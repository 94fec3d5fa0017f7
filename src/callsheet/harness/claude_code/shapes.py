"""Native shapes of a Claude Code session file, as loose as the files are.

Owns the structs that a native line, its message and its blocks decode into. Every small member is ``Any`` (a wrong
type costs nothing but that member), every large one ``Raw`` (kept as its own text until someone needs it). Members
that this version does not know stay in the native line, which every record cites.

Format: the page on Claude Code, sections 2 and 4.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

ABSENT = Raw()


class NativeLine(Struct, gc=False):
    """One line of a session file."""

    type: Any = None
    uuid: Any = None
    parentUuid: Any = None
    timestamp: Any = None
    sessionId: Any = None
    version: Any = None
    cwd: Any = None
    subtype: Any = None
    message: Raw = ABSENT
    toolUseResult: Raw = ABSENT
    attachment: Raw = ABSENT
    content: Raw = ABSENT
    isSidechain: Any = None
    isMeta: Any = None
    isCompactSummary: Any = None
    isApiErrorMessage: Any = None
    agentId: Any = None
    requestSessionId: Any = None
    entrypoint: Any = None
    promptSource: Any = None
    origin: Any = None
    rowSource: Any = None
    turnCompanion: Any = None
    sourceToolUseID: Any = None
    sourceToolAssistantUUID: Any = None
    permissionDecision: Any = None
    toolDenialKind: Any = None
    toolDenialBeforeRun: Any = None
    userFeedback: Any = None
    thinkingDurationMs: Any = None
    attributionMcpServer: Any = None
    attributionMcpTool: Any = None
    rendered: Any = None
    hookText: Any = None
    durationMs: Any = None
    compactMetadata: Raw = ABSENT
    contextUsage: Any = None
    apiBlockIndex: Any = None


class NativeMessage(Struct, gc=False):
    """The ``message`` of a user or assistant line."""

    id: Any = None
    role: Any = None
    model: Any = None
    content: Raw = ABSENT
    usage: Raw = ABSENT


class NativeBlock(Struct, gc=False):
    """One content block."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: Raw = ABSENT
    tool_use_id: Any = None
    content: Raw = ABSENT
    is_error: Any = None
    thinking: Any = None
    source: Any = None


line_decoder = msgspec.json.Decoder(NativeLine)
message_decoder = msgspec.json.Decoder(NativeMessage)
blocks_decoder = msgspec.json.Decoder(list[Raw])
block_decoder = msgspec.json.Decoder(NativeBlock)
value_decoder = msgspec.json.Decoder()
text_decoder = msgspec.json.Decoder(str)

FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile part may raise (``msgspec.ValidationError`` is a ``DecodeError``)."""


def text(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def mark(raw: Raw) -> bytes:
    """The first byte of a part's text, which tells its JSON type; empty when it is absent."""
    return bytes(memoryview(raw)[:1])


def parts_of(raw: Raw) -> list[Raw]:
    """The items of a JSON array, or an empty list for anything else."""
    if not raw:
        return []
    try:
        return blocks_decoder.decode(raw)
    except FAILS:
        return []


def value_of(raw: Raw) -> Any:
    """The decoded value of a part, or None when it is absent or does not decode."""
    if not raw:
        return None
    try:
        return value_decoder.decode(raw)
    except FAILS:
        return None
