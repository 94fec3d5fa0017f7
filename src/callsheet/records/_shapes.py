"""Shared shapes of all records: the envelope, provenance, capture states, content parts (profile, 'Shared shapes').

Owns the base struct ``Record`` and the small values records are made of. Absent is ``None`` (or ``UNSET`` where a
JSON null is itself a value); absent members are never written. Members are snake_case here, camelCase on the wire.

Values whose exact text must survive (``input``, ``raw``, ``value``) are ``msgspec.Raw``: bytes of JSON, decoded only
by those who need them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

RawValue = Raw | UnsetType
"""Any JSON value kept as its own text; ``UNSET`` when absent."""


class Shape(Struct, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Base of the small values."""


class Ref(Shape, kw_only=True):
    """Where a fact stands in a native source (profile, 'native').

    A line ref has ``line``, ``offset``, ``bytes``; a row ref ``table``, ``key``, ``column``. ``sha256`` is the digest
    of these bytes (the line without its LF, or a part of a line that holds several records), or of the value in the
    row. ``pointer`` is a JSON pointer to the part that this record is made of.
    """

    source: str
    line: int | None = None
    offset: int | None = None
    bytes: int | None = None
    table: str | None = None
    key: Any = None
    column: str | None = None
    sha256: str | None = None
    role: str | None = None
    pointer: str | None = None


class Inherited(Shape, kw_only=True):
    """The record repeats one of another session (decision 13)."""

    session: str | None = None


class Native(Shape, kw_only=True):
    """Provenance of a record, and native identity that has no place in it."""

    refs: list[Ref] = []
    call_id: str | None = None
    namespace: str | None = None
    command: Any = None
    synthetic: bool | None = None
    inherited: Inherited | None = None
    id: str | None = None
    extra: RawValue = UNSET
    """Further native members worth keeping, as a JSON object."""


class BlobRef(Shape, kw_only=True):
    """Bytes kept under ``blobs/``: name, size in bytes, media type."""

    blob: str
    size: int
    mime_type: str | None = None


class Capture(Shape, kw_only=True):
    """Why a member is not, or not wholly, there: absent, truncated, redacted, unavailable or external."""

    state: str
    reason: str | None = None
    original_bytes: int | None = None
    blob: BlobRef | None = None


class PathRef(Shape, kw_only=True):
    """A path under one of the session's roots; root ``host`` means an absolute path."""

    root: str
    path: str


class Actor(Shape, kw_only=True):
    """Who did something, as far as the source says."""

    session: str | None = None
    agent: str | None = None
    address: str | None = None
    device: str | None = None
    person: str | None = None
    name: str | None = None


class RecordRef(Shape, kw_only=True):
    """A reference to a record, in this session or another."""

    record: str
    session: str | None = None


class Part(Shape, kw_only=True):
    """One content part. ``type`` is open: text, image, audio, file, resource_link, json, diff, terminal, others."""

    type: str
    text: str | None = None
    mime_type: str | None = None
    blob: BlobRef | None = None
    uri: str | None = None
    name: str | None = None
    value: RawValue = UNSET
    path: Any = None
    old_text: str | None = None
    new_text: str | None = None
    terminal_id: str | None = None


class Provider(Shape, kw_only=True):
    """Where a tool comes from (ASR-255): kind mcp, plugin, connector, builtin; identity exact, parsed, unknown."""

    kind: str
    server: str | None = None
    tool: str | None = None
    name: str | None = None
    identity: str


class Location(Shape, kw_only=True):
    """A file a call concerns; ``line`` is 1-based."""

    root: str
    path: str
    line: int | None = None


class Record(Struct, kw_only=True, omit_defaults=True, rename="camel", tag_field="type"):
    """The envelope on every record (profile, 'Envelope')."""

    CAPTURE_KEYS: ClassVar[tuple[str, ...]] = ()
    """Members that may have a capture state."""
    ENTITY_KEY: ClassVar[str | None] = None
    """Wire name of the member that identifies the entity; None means the record id."""

    seq: int = -1
    id: str = ""
    ts: str | None = None
    inference_id: str | None = None
    supersedes: str | None = None
    id_source: str | None = None
    capture: dict[str, Capture] | None = None
    native: Native | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


def text_part(text: str) -> Part:
    """A text content part."""
    return Part(type="text", text=text)
