"""The record types of a stream: six tool records and their companions.

``RECORDS`` lists every type. ``decode`` reads one line of a stream, ``encode`` writes one. A type that is not listed
becomes ``Unknown`` and keeps its line; unknown members of known types live in the line (``stream.Entry``), which is
what is passed on, so that a read-write trip loses nothing.

Must never know: harnesses, pairing, rows.
"""

from __future__ import annotations

from typing import Union

import msgspec
from msgspec import Raw, Struct

from callsheet.errors import RecordError
from callsheet.records._shapes import (
    Actor,
    BlobRef,
    Capture,
    Inherited,
    Location,
    Native,
    Part,
    PathRef,
    Provider,
    Record,
    RecordRef,
    Ref,
    text_part,
)
from callsheet.records.hook import Hook
from callsheet.records.input_request import Answer, InputRequest, Question, QuestionOption
from callsheet.records.message import Compaction, Count, Message, Reasoning, Turn, Usage
from callsheet.records.permission import Option, Permission, Review, Subject
from callsheet.records.rest import Gap, Notice, Preview, Unmapped
from callsheet.records.session import FORMAT, Agent, Parent, Session, SourceEntry
from callsheet.records.terminal import Terminal, TerminalOutput
from callsheet.records.tool_call import ToolCall
from callsheet.records.tool_result import CompactPermission, Error, Exec, ToolResult
from callsheet.records.work import Change, FileChange, Patch, Plan, PlanEntry, Subagent

RECORDS: tuple[type[Record], ...] = (
    Session,
    ToolCall,
    ToolResult,
    Permission,
    InputRequest,
    Terminal,
    Hook,
    Message,
    Reasoning,
    Usage,
    Turn,
    Plan,
    Subagent,
    FileChange,
    Compaction,
    Gap,
    Unmapped,
    Notice,
    Preview,
)
"""Every record type, in the order the docs list them."""

TYPES: dict[str, type[Record]] = {str(kind.__struct_config__.tag): kind for kind in RECORDS}
"""Wire name of the type to its class."""


class Unknown(Struct):
    """A record of a type that this version does not know, kept as its own text."""

    type: str | None
    line: Raw
    seq: int = -1
    id: str = ""


class _Head(Struct):
    type: str | None = None
    seq: int = -1
    id: str = ""


AnyRecord = Union[RECORDS]  # type: ignore[valid-type]  # noqa: UP007 (made from the table)
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(AnyRecord)
_head = msgspec.json.Decoder(_Head)
ENCODER = msgspec.json.Encoder()
"""Writes records; every writer shares it (``encode`` for one that may hold texts as they stood in a source)."""


def type_name(record: Record | Unknown) -> str | None:
    """The record's wire type."""
    return record.type if isinstance(record, Unknown) else str(record.__struct_config__.tag)


def decode(line: bytes) -> Record | Unknown:
    """Reads one line of a stream.

    Args:
        line: The line's bytes, without LF.

    Returns:
        The typed record, or ``Unknown`` for a type that is not in ``RECORDS``.

    Raises:
        RecordError: The line is no JSON object, or a member of a known type has the wrong type.
    """
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = str(error)
    try:
        head = _head.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RecordError(message) from None
    if head.type in TYPES:
        raise RecordError(message)
    return Unknown(head.type, Raw(line), head.seq, head.id)


def encode(record: Record) -> bytes:
    """One line of a stream, without LF: those between the parts of a text kept as it was become blanks."""
    line = ENCODER.encode(record)
    return line.replace(b"\n", b" ") if b"\n" in line else line


__all__ = [
    "ENCODER",
    "FORMAT",
    "RECORDS",
    "TYPES",
    "Actor",
    "Agent",
    "Answer",
    "BlobRef",
    "Capture",
    "Change",
    "CompactPermission",
    "Compaction",
    "Count",
    "Error",
    "Exec",
    "FileChange",
    "Gap",
    "Hook",
    "Inherited",
    "InputRequest",
    "Location",
    "Message",
    "Native",
    "Notice",
    "Option",
    "Parent",
    "Part",
    "Patch",
    "PathRef",
    "Permission",
    "Plan",
    "PlanEntry",
    "Preview",
    "Provider",
    "Question",
    "QuestionOption",
    "Reasoning",
    "Record",
    "RecordRef",
    "Ref",
    "Review",
    "Session",
    "SourceEntry",
    "Subagent",
    "Subject",
    "Terminal",
    "TerminalOutput",
    "ToolCall",
    "ToolResult",
    "Turn",
    "Unknown",
    "Unmapped",
    "Usage",
    "decode",
    "encode",
    "text_part",
    "type_name",
]
