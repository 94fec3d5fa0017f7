"""Native shapes of a rollout file, as loose as the files of all generations are.

Owns the structs that a line, its payload and its parts decode into. Every small member is ``Any`` (a wrong type costs
nothing but that member), every large one ``Raw`` (kept as its own text until someone needs it). Members that this
version does not know stay in the native line, which every record cites.

Generations: bare lines (0.20) are a payload each, without ``payload``; later ones are ``{timestamp, type, payload}``,
with ``ordinal`` in paginated files.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from callsheet.harness._port.units import Reading
from callsheet.wire.lossless import decode as decode_any

ABSENT = Raw()
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

    type: Any = None
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

    type: Any = None
    timestamp: Any = None
    ordinal: Any = None
    payload: Payload | None = None
    record_type: Any = None


class SurveyItem(Struct, gc=False):
    """What the survey reads of an item."""

    id: Any = None
    type: Any = None
    action: Raw = ABSENT


class SurveyPayload(Struct, gc=False):
    """What the survey reads of a payload."""

    type: Any = None
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


class SurveyLine(Struct, gc=False):
    """What the survey reads of a line."""

    type: Any = None
    ordinal: Any = None
    payload: SurveyPayload | None = None
    record_type: Any = None
    id: Any = None
    call_id: Any = None
    role: Any = None
    action: Raw = ABSENT
    content: Raw = ABSENT


def _loose_line(value: dict[str, Any]) -> RolloutLine:
    return RolloutLine(**{name: value.get(name) for name in ("type", "timestamp", "ordinal", "record_type")})


def _loose_survey(value: dict[str, Any]) -> SurveyLine:
    line = SurveyLine(type=value.get("type"), ordinal=value.get("ordinal"))
    payload = value.get("payload")
    if isinstance(payload, dict):
        small = ("type", "id", "call_id", "role", "name", "turn_id")
        line.payload = msgspec.convert({name: payload.get(name) for name in small}, SurveyPayload)
    return line


def _own(value: dict[str, Any]) -> bool:
    """Whether an object found inside a torn line is a record of its own: it has the marks of one."""
    return isinstance(value.get("type"), str) and isinstance(value.get("payload"), dict)


line_reading: Reading[RolloutLine] = Reading(msgspec.json.Decoder(RolloutLine), _loose_line, _own)
survey_reading: Reading[SurveyLine] = Reading(msgspec.json.Decoder(SurveyLine), _loose_survey, _own)
payload_decoder = msgspec.json.Decoder(Payload)
_parts = msgspec.json.Decoder(list[Raw])
_members = msgspec.json.Decoder(dict[str, Raw])
_value = msgspec.json.Decoder()


class _RawPayload(Struct, gc=False):
    payload: Raw = ABSENT
    item: Raw = ABSENT


_raw_payload = msgspec.json.Decoder(_RawPayload)


def payload_text(data: bytes) -> Raw:
    """The JSON text of a line's payload."""
    return _raw_payload.decode(data).payload


_item_head = msgspec.json.Decoder(SurveyItem)


def item_head(item: Raw) -> tuple[str | None, str | None]:
    """Type and id of an item."""
    try:
        found = _item_head.decode(item)
    except FAILS:
        return None, None
    return text(found.type), text(found.id)


def kind_of(line: RolloutLine | SurveyLine) -> str:
    """The type of a line and its payload, as the registry's ``[[line]]`` rows name it."""
    kind = line.type if isinstance(line.type, str) else ""
    if line.payload is not None and isinstance(line.payload.type, str):
        return f"{kind}/{line.payload.type}"
    if not kind and isinstance(line.record_type, str):
        return f"record_type={line.record_type}"
    return kind


def text(value: Any) -> str | None:
    """The value if it is a non-empty string."""
    return value if type(value) is str and value else None


def mark(raw: Raw) -> bytes:
    """The first byte of a part's text, which tells its JSON type; empty when it is absent."""
    return bytes(memoryview(raw)[:1])


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


def text_of(raw: Raw) -> str | None:
    """The text of a part that is a JSON string, else None."""
    if mark(raw) != b'"':
        return None
    value = value_of(raw)
    return value if isinstance(value, str) else None


def json_in(words: str | None) -> Any:
    """The value of a JSON text that the source keeps as a string (``json_text``), or None."""
    if words is None:
        return None
    try:
        return decode_any(words.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
