"""Native shapes of transcript entries, as loose as the entries of all versions are.

Owns the structs that an entry, its message, a block and a result's details decode into. Every small member is ``Any``
(a wrong type costs nothing but that member), every large one ``Raw`` (kept as its own text until someone needs it).
Members that are not here stay in the native entry, which every record cites.

The same entries stand in ``transcript_events``, in archives, in legacy JSONL files and in those of the pi family.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.parts import ABSENT, items_of, mark
from callsheet.harness._port.units import Reading
from callsheet.wire import lossless

FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile part may raise (``msgspec.ValidationError`` is a ``DecodeError``)."""


class Owned(Struct, gc=False):
    """What OpenClaw adds to a message under ``__openclaw``."""

    runId: Any = None


class Message(Struct, gc=False):
    """The message of an entry, of any role."""

    role: Any = None
    content: Raw = ABSENT
    timestamp: Any = None
    toolCallId: Any = None
    toolName: Any = None
    details: Raw = ABSENT
    isError: Any = None
    api: Any = None
    provider: Any = None
    model: Any = None
    responseId: Any = None
    usage: Raw = ABSENT
    stopReason: Any = None
    errorMessage: Any = None
    provenance: Any = None
    customType: Any = None
    owned: Raw = msgspec.field(name="__openclaw", default=ABSENT)
    command: Any = None
    output: Raw = ABSENT
    exitCode: Any = None
    cancelled: Any = None


class Entry(Struct, gc=False):
    """One entry of a transcript."""

    type: Any = None
    id: Any = None
    parentId: Any = None
    timestamp: Any = None
    version: Any = None
    cwd: Any = None
    name: Any = None
    parentSession: Any = None
    customType: Any = None
    message: Message | None = None
    content: Raw = ABSENT
    summary: Raw = ABSENT
    details: Raw = ABSENT
    firstKeptEntryId: Any = None
    tokensBefore: Any = None
    tokensAfter: Any = None


class Block(Struct, gc=False):
    """One part of a content."""

    type: Any = None
    text: Raw = ABSENT
    thinking: Raw = ABSENT
    id: Any = None
    name: Any = None
    arguments: Raw = ABSENT
    data: Any = None
    mimeType: Any = None


class Details(Struct, gc=False):
    """What a tool reported of itself, as far as facts need it."""

    status: Any = None
    exitCode: Any = None
    exitSignal: Any = None
    failureKind: Any = None
    durationMs: Any = None
    tookMs: Any = None
    timedOut: Any = None
    cwd: Any = None
    sessionId: Any = None
    pid: Any = None
    startedAt: Any = None
    error: Any = None
    reason: Any = None
    deniedReason: Any = None
    openclawSyntheticMissingToolResult: Any = None
    persistedDetailsTruncated: Any = None
    originalDetailsBytesAtLeast: Any = None
    approvalReviews: Raw = ABSENT
    approvalReviewOutcome: Any = None
    approvalId: Any = None
    host: Any = None
    command: Any = None
    mcpServer: Any = None
    mcpTool: Any = None
    changed: Any = None
    created: Any = None
    patch: Raw = ABSENT
    summary: Raw = ABSENT
    plan: Raw = ABSENT
    childSessionKey: Any = None
    answers: Raw = ABSENT
    sessions: Raw = ABSENT


class Nested(Struct, gc=False):
    """A call that a code cell made, with its result (``openclaw.nested-tool.v1``)."""

    parentToolCallId: Any = None
    toolCallId: Any = None
    toolName: Any = None
    input: Raw = ABSENT
    result: Raw = ABSENT
    isError: Any = None
    startedAt: Any = None
    timestamp: Any = None


class NestedResult(Struct, gc=False):
    """The result inside a nested call."""

    content: Raw = ABSENT
    details: Raw = ABSENT


class ContextUsage(Struct, gc=False):
    """How much of the context window a request took."""

    promptTokens: Any = None


class MessageUsage(Struct, gc=False):
    """What a message took, as far as facts need it."""

    contextUsage: ContextUsage | None = None


_usage = msgspec.json.Decoder(MessageUsage)
_blocks = msgspec.json.Decoder(list[Block])
_block = msgspec.json.Decoder(Block)
_details = msgspec.json.Decoder(Details)
_nested = msgspec.json.Decoder(Nested)
_nested_result = msgspec.json.Decoder(NestedResult)
_owned = msgspec.json.Decoder(Owned)
NO_DETAILS = Details()
NESTED = "openclaw.nested-tool.v1"


def loose_entry(value: dict[str, Any]) -> Entry:
    """What can be made of an entry whose ``message`` is no object."""
    names = ("type", "id", "parentId", "timestamp", "version", "cwd", "name", "parentSession", "customType")
    found = Entry()
    for name in names:
        setattr(found, name, value.get(name))
    return found


def _is_entry(value: dict[str, Any]) -> bool:
    return isinstance(value.get("type"), str) and ("id" in value or "message" in value)


ENTRIES = Reading(msgspec.json.Decoder(Entry), loose_entry, _is_entry)
"""How the units of a transcript are read."""


def text(value: Any) -> str | None:
    """The value if it is a text with something in it."""
    return value if isinstance(value, str) and value else None


def blocks_of(raw: Raw) -> list[Block]:
    """The blocks of a content that is a list; a block of another shape keeps its place as an empty one."""
    if mark(raw) != b"[":
        return []
    try:
        return _blocks.decode(raw)
    except FAILS:
        return [_one_block(item) for item in items_of(raw)]


def _one_block(raw: Raw) -> Block:
    try:
        return _block.decode(raw)
    except FAILS:
        return Block()


def details_of(raw: Raw) -> Details:
    """A result's details; empty ones for anything but an object."""
    if mark(raw) != b"{":
        return NO_DETAILS
    try:
        return _details.decode(raw)
    except FAILS:
        return NO_DETAILS


def nested_of(raw: Raw) -> Nested | None:
    """A nested call, if that is what the details of a custom message are."""
    try:
        return _nested.decode(raw) if mark(raw) == b"{" else None
    except FAILS:
        return None


def nested_result_of(raw: Raw) -> NestedResult:
    """The result inside a nested call."""
    try:
        return _nested_result.decode(raw) if mark(raw) == b"{" else NestedResult()
    except FAILS:
        return NestedResult()


def prompt_of(raw: Raw) -> int:
    """Tokens of the request that a message of the model answers; 0 where its usage does not tell."""
    try:
        usage = _usage.decode(raw) if mark(raw) == b"{" else MessageUsage()
    except FAILS:
        return 0
    told = usage.contextUsage.promptTokens if usage.contextUsage is not None else None
    return told if type(told) is int and 0 < told <= lossless.MAX_SAFE else 0


def run_of(message: Message) -> str | None:
    """The run that wrote a message."""
    if mark(message.owned) != b"{":
        return None
    try:
        return text(_owned.decode(message.owned).runId)
    except FAILS:
        return None
