"""Native shapes of a rollout file, as loose as the files of all generations are.

Owns the structs that a line, its payload and its parts decode into. Every small member is ``Any`` (a wrong type costs
nothing but that member), every large one ``Raw`` (kept as its own text until someone needs it); only what says the type
of something must be a text, for nothing maps what has another one. Members that this version does not know stay in the
native line, which every record cites.

Generations: bare lines (0.20) are a payload each, without ``payload``; later ones are ``{timestamp, type, payload}``,
with ``ordinal`` in paginated files.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.units import Reading, Unit
from callsheet.wire.lossless import clean_text
from callsheet.wire.lossless import decode as decode_any
from callsheet.wire.lossless import mark as mark

ABSENT = Raw()
S = TypeVar("S", bound=Struct)
FAILS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile part may raise (``msgspec.ValidationError`` is a ``DecodeError``)."""

BARE = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
    }
)
"""Types of bare lines (0.20)."""


class Payload(Struct, gc=False):
    """The payload of a line: what any of its types is read for."""

    type: str | None = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    namespace: Any = None
    role: Any = None
    arguments: Raw = ABSENT
    input: Raw = ABSENT
    output: Raw = ABSENT
    content: Raw = ABSENT
    summary: Raw = ABSENT
    action: Raw = ABSENT
    result: Raw = ABSENT
    tools: Raw = ABSENT
    text: Raw = ABSENT
    message: Raw = ABSENT
    internal_chat_message_metadata_passthrough: Raw = ABSENT
    status: Any = None
    turn_id: Any = None
    thread_id: Any = None
    reason: Any = None
    error: Any = None
    duration_ms: Any = None
    started_at_ms: Any = None
    completed_at_ms: Any = None
    item: Raw = ABSENT
    info: Raw = ABSENT
    usage: Raw = ABSENT
    thread_token_usage: Raw = ABSENT
    response_id: Any = None
    cwd: Any = None


class RolloutLine(Struct, gc=False):
    """One line of a rollout."""

    type: str | None = None
    timestamp: Any = None
    ordinal: Any = None
    payload: Payload | None = None
    record_type: Any = None


class LooseLine(RolloutLine, gc=False):
    """A line of which some member fits no shape: it is kept unmapped, under the types that it names."""

    types: str = ""


class SurveyItem(Struct, gc=False):
    """What the survey reads of an item."""

    id: Any = None
    type: str | None = None
    action: Raw = ABSENT


class SurveyPayload(Struct, gc=False):
    """What the survey reads of a payload."""

    type: str | None = None
    id: Any = None
    call_id: Any = None
    role: Any = None
    name: Any = None
    kind: Any = None
    turn_id: Any = None
    item: SurveyItem | None = None
    action: Raw = ABSENT
    message: Raw = ABSENT
    content: Raw = ABSENT
    thread_name: Any = None
    usage: Raw = ABSENT


class SurveyLine(Struct, gc=False):
    """What the survey reads of a line."""

    type: str | None = None
    ordinal: Any = None
    payload: SurveyPayload | None = None
    record_type: Any = None
    id: Any = None
    call_id: Any = None
    role: Any = None
    action: Raw = ABSENT
    content: Raw = ABSENT


def _loose_line(data: bytes) -> RolloutLine:
    line = loosely(RolloutLine, Raw(data), skip="payload")
    inner = members_of(Raw(data)).get("payload", ABSENT)
    if line is not None and mark(inner) == b"{":
        line.payload = loosely(Payload, inner)
        if line.payload is not None:
            return line
    value = decode_any(data)
    return LooseLine(
        type=text(value.get("type")),
        timestamp=value.get("timestamp"),
        ordinal=value.get("ordinal"),
        record_type=value.get("record_type"),
        types=loose_types(value, ("payload", "item")),
    )


def decoded(decoder: msgspec.json.Decoder[S], raw: Raw) -> S | None:
    """What a decoder makes of an object; of one with a member that no reader takes, all the others."""
    try:
        return decoder.decode(raw)
    except FAILS:
        return loosely(cast("type[S]", decoder.type), raw)


def loosely(kind: type[S], raw: Raw, skip: str = "") -> S | None:
    """A struct with every member that decodes; None where the object names no type that is one, or is no object.

    Args:
        kind: The struct.
        raw: The object.
        skip: A member that has a struct of its own.
    """
    members = members_of(raw)
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        found = members.get(field.encode_name)
        if found is None or field.name == skip:
            continue
        values[field.name] = found if field.type is Raw else value_of(found)
    named = members.get("type", ABSENT)
    if not members or not (mark(named) == b'"' or bytes(named) in (b"", b"null")):
        return None
    return kind(**values)


def loose_types(value: Any, inside: tuple[str, ...]) -> str:
    """The types that an object and what stands inside it name, up to one that is no text."""
    found = []
    for name in ("", *inside):
        value = value.get(name) if name and isinstance(value, dict) else value
        kind = value.get("type") if isinstance(value, dict) else None
        if kind is not None and not isinstance(kind, str):
            break
        found += [kind] if kind else []
    return "/".join(found)


def _loose_survey(data: bytes) -> SurveyLine:
    members = members_of(Raw(data))
    line = loosely(SurveyLine, Raw(data), skip="payload")
    inner = members.get("payload", ABSENT)
    if line is not None and mark(inner) == b"{":
        line.payload = loosely(SurveyPayload, inner, skip="item")
        if line.payload is not None:
            item = members_of(inner).get("item", ABSENT)
            line.payload.item = loosely(SurveyItem, item) if item else None
            return line
    return SurveyLine(
        type=text_of(members.get("type", ABSENT)), ordinal=value_of(members.get("ordinal", ABSENT))
    )


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a record of its own: it has the marks of one."""
    return isinstance(value.get("type"), str) and isinstance(value.get("payload"), dict)


line_reading: Reading[RolloutLine] = Reading(msgspec.json.Decoder(RolloutLine), None, _own, _loose_line)
survey_reading: Reading[SurveyLine] = Reading(msgspec.json.Decoder(SurveyLine), None, _own, _loose_survey)


def line_of(data: bytes) -> RolloutLine:
    """A line that was read before."""
    try:
        return line_reading.decoder.decode(data)
    except FAILS:
        return _loose_line(data)


payload_decoder = msgspec.json.Decoder(Payload)
_parts = msgspec.json.Decoder(list[Raw])
_members = msgspec.json.Decoder(dict[str, Raw])
_value = msgspec.json.Decoder()


class _RawPayload(Struct, gc=False):
    payload: Raw = ABSENT
    item: Raw = ABSENT


_raw_payload = msgspec.json.Decoder(_RawPayload)


def payload_text(data: bytes) -> Raw:
    """The JSON text of a line's payload; absent where the line has none, or does not decode."""
    try:
        return _raw_payload.decode(data).payload
    except FAILS:
        return ABSENT


_item_head = msgspec.json.Decoder(SurveyItem)


def item_head(item: Raw) -> tuple[str | None, str | None]:
    """Type and id of an item."""
    found = decoded(_item_head, item) or SurveyItem()
    return text(found.type), text(found.id)


def kind_of(line: RolloutLine | SurveyLine) -> str:
    """The type of a line and its payload, as the registry's ``[[line]]`` rows name it."""
    kind, payload = line.type or "", line.payload
    if payload is not None and payload.type is not None:
        return f"{kind}/{payload.type}"
    if not kind and isinstance(line.record_type, str):
        return f"record_type={line.record_type}"
    return kind


def text(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if type(value) is str and value else None


def string(value: Any) -> str | None:
    """The value if it is a string; an empty id is an id."""
    return value if type(value) is str else None


def parts_of(raw: Raw) -> list[Raw]:
    """The items of a JSON array, or an empty list for anything else."""
    if mark(raw) != b"[":
        return []
    try:
        return _parts.decode(raw)
    except FAILS:
        return []


def members_of(raw: Raw) -> dict[str, Raw]:
    """The members of a JSON object, each as its own text, or an empty mapping for anything else."""
    if mark(raw) != b"{":
        return {}
    try:
        return _members.decode(raw)
    except FAILS:
        return {}


def value_of(raw: Raw) -> Any:
    """The decoded value of a part, or None when it is absent or does not decode."""
    if not raw:
        return None
    try:
        return _value.decode(raw)
    except FAILS:
        return None


def exact_value(raw: Raw) -> Any:
    """The decoded value of a part, numbers of any size among it; None when it is absent or does not decode."""
    found = value_of(raw)
    return clean_value(bytes(raw)) if found is None and raw else found


def text_of(raw: Raw) -> str | None:
    """The text of a part that is a JSON string, else None."""
    if mark(raw) != b'"':
        return None
    value = value_of(raw)
    return value if isinstance(value, str) else None


def clean_data(unit: Unit[Any]) -> bytes:
    """A unit's text in a form that every reader takes; what stands in it stands where it did."""
    return unit.data if unit.exact is None else clean_text(unit.data)


def clean_value(data: bytes) -> Any:
    """A JSON text's value, with U+FFFD for unpaired surrogates; None where it is none."""
    try:
        return decode_any(clean_text(data) if b"\\u" in data else data)
    except ValueError:
        return None


def json_in(words: str | None) -> Any:
    """The value of a JSON text that the source keeps as a string (``json_text``), or None."""
    if words is None:
        return None
    try:
        return decode_any(words.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
