"""The shape of every record, as strict types derived from ``records``.

Owns what the reading types leave open: closed enumerations (only where a rule or the profile closes them),
ranges, patterns, and which members are required. ``CLOSED`` is that table; everything else is taken from
``records`` by introspection, so that a new member is checked, and documented, from the day it exists.
Absent differs from null: a member that is not there is fine, a null where a string belongs is not.

``OPEN`` twins serve the walker and the JSON Schemas. ``PROOF`` twins forbid unknown members and serve the
fast lane: what they decode has the right shape, without a look at a single member in Python. ``LENIENT``
twins prove as much of a record with unknown members, which then have to be looked at.

Must never know: findings, streams.
"""

from __future__ import annotations

from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType

from callsheet.records import FORMAT, RECORDS, Record
from callsheet.rules.text import fraction
from callsheet.wire.lossless import MAX_SAFE

EXIT_LOW, EXIT_HIGH = -(1 << 31), (1 << 32) - 1
"""Range of an exit code (ASR-260)."""

_DATE = (
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
COMMON_TIMESTAMP = rf"\A{_DATE}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,9}})?Z\Z"
"""Almost every timestamp; a leap day or another spelling of UTC is looked at closely elsewhere."""

Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
ExitCode = Annotated[int, Meta(ge=EXIT_LOW, le=EXIT_HIGH)]
SafeInteger = Annotated[int, Meta(ge=-MAX_SAFE, le=MAX_SAFE)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
IdSource = Literal["native", "derived"]
Number = int | float
Amount = Annotated[Number, Meta(extra_json_schema={"minimum": 0})]

CLOSED: dict[tuple[str, str], Any] = {
    ("Record", "seq"): Natural,
    ("Record", "id"): Annotated[str, Meta(min_length=1)],
    ("Record", "ts"): Timestamp,
    ("Record", "id_source"): IdSource,
    ("Session", "format"): Literal[FORMAT],
    ("SourceEntry", "size"): Natural,
    ("SourceEntry", "sha256"): Digest,
    ("Ref", "line"): Positive,
    ("Ref", "offset"): Natural,
    ("Ref", "bytes"): Natural,
    ("Ref", "key"): dict[str, Any],
    ("Ref", "sha256"): Digest,
    ("Capture", "state"): Literal["absent", "truncated", "redacted", "unavailable", "external"],
    ("Capture", "original_bytes"): Natural,
    ("BlobRef", "blob"): Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")],
    ("BlobRef", "size"): Natural,
    ("Location", "line"): Positive,
    ("Provider", "identity"): Literal["exact", "parsed", "unknown"],
    ("ToolCall", "call_id_source"): IdSource,
    ("ToolResult", "linkage"): Literal["exact", "derived", "ambiguous", "none"],
    ("ToolResult", "started_at"): Timestamp,
    ("ToolResult", "completed_at"): Timestamp,
    ("ToolResult", "duration_ms"): Amount,
    ("Exec", "exit_code"): ExitCode,
    ("Exec", "process_id"): str | SafeInteger,
    ("Permission", "decided_at"): Timestamp,
    ("InputRequest", "requested_schema"): dict[str, Any],
    ("InputRequest", "response"): str | dict[str, Any],
    ("Terminal", "exit_code"): ExitCode,
    ("Terminal", "started_at"): Timestamp,
    ("Terminal", "completed_at"): Timestamp,
    ("Hook", "exit_code"): ExitCode,
    ("Hook", "duration_ms"): Amount,
    ("Reasoning", "duration_ms"): Amount,
    ("Turn", "duration_ms"): Amount,
    ("Gap", "line"): Positive,
    ("Gap", "offset"): Natural,
    ("Gap", "bytes"): Natural,
    ("Preview", "omitted_bytes"): Natural,
}
"""Python names of (type, member) to the stricter type."""

REQUIRED: frozenset[tuple[str, str]] = frozenset({("Record", "seq"), ("Record", "id"), ("Plan", "entries")})
"""Members that the reading types default, and a stream must have."""

PART_NEEDS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("mimeType", "blob"),
    "audio": ("mimeType", "blob"),
    "file": ("mimeType", "blob"),
    "resource_link": ("uri",),
    "json": ("value",),
    "diff": ("path",),
    "terminal": ("terminalId",),
}
"""Members that a content part of a known type must have (profile, 'Shared shapes')."""


def _owner(kind: type[Struct], name: str) -> str:
    """The class that declares a member: ``Record`` for the envelope."""
    bases = [base for base in kind.__mro__ if issubclass(base, Struct) and base is not Struct]
    return [base.__name__ for base in bases if name in base.__struct_fields__][-1]


class Twins:
    """Strict twins of the record types, made on first use.

    Args:
        forbid: Forbid unknown members.
        proof: Leave numbers with a fraction untyped so that the decoder's hook
        sees
            their text (msgspec calls it for untyped numbers only).
    """

    def __init__(self, *, proof: bool, forbid: bool) -> None:
        self._proof = proof
        self._forbid = forbid
        self._made: dict[type[Struct], type[Struct]] = {}

    def of(self, kind: type[Struct]) -> type[Struct]:
        """The strict twin of a struct type."""
        made = self._made.get(kind)
        if made is None:
            made = self._made[kind] = self._make(kind)
        return made

    def made(self) -> tuple[type[Struct], ...]:
        """Every type that has a twin by now."""
        return tuple(self._made)

    def _make(self, kind: type[Struct]) -> type[Struct]:
        fields: list[tuple[str, Any, Any]] = []
        wire: dict[str, str] = {}
        for field in msgspec.structs.fields(kind):
            owner = _owner(kind, field.name)
            closed = CLOSED.get((owner, field.name))
            required = (owner, field.name) in REQUIRED or (
                field.default is NODEFAULT and field.default_factory is NODEFAULT
            )
            shape = self._strict(field.type if closed is None else closed)
            if not required:
                shape = shape if shape is Any else Union[shape, UnsetType]  # noqa: UP007 (built at run time)
            wire[field.name] = field.encode_name
            fields.append((field.name, shape, NODEFAULT if required else UNSET))
        config = kind.__struct_config__
        return msgspec.defstruct(
            kind.__name__,
            [
                (name, shape) if default is NODEFAULT else (name, shape, default)
                for name, shape, default in fields
            ],
            kw_only=True,
            rename=wire,
            gc=False,
            forbid_unknown_fields=self._forbid,
            namespace={"__doc__": kind.__doc__},
            tag=config.tag,
            tag_field=config.tag_field,
        )

    def _strict(self, shape: Any) -> Any:
        if self._proof and shape in (Number, Amount):
            return Any
        if self._proof and shape == Timestamp:
            return Annotated[str, Meta(pattern=COMMON_TIMESTAMP)]
        if shape is Raw or shape is Any:
            return Any
        origin = get_origin(shape)
        if origin is Annotated or origin is Literal:
            return shape
        if origin is Union or origin is UnionType:
            parts = [part for part in get_args(shape) if part not in (type(None), UnsetType)]
            if self._proof and set(parts) == {int, float}:
                return Any
            strict = [self._strict(part) for part in parts]
            return Any if Any in strict else Union[tuple(strict)]  # noqa: UP007 (built at run time)
        if origin is list:
            return GenericAlias(list, (self._strict(get_args(shape)[0]),))
        if origin is dict:
            return GenericAlias(dict, (str, self._strict(get_args(shape)[1])))
        if isinstance(shape, type) and issubclass(shape, Struct):
            return self.of(shape)
        return shape


OPEN = Twins(proof=False, forbid=False)
PROOF = Twins(proof=True, forbid=True)
LENIENT = Twins(proof=True, forbid=False)


def proof_decoder(twins: Twins = PROOF) -> msgspec.json.Decoder[Any]:
    """A decoder whose success proves the shape of a record of a known type."""
    union: Any = Union[tuple(twins.of(kind) for kind in RECORDS)]  # noqa: UP007 (built at run time)
    return msgspec.json.Decoder(union, float_hook=fraction)


def members(kind: type[Record]) -> dict[str, msgspec.structs.FieldInfo]:
    """Every member of a record type by its wire name, envelope first."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}
