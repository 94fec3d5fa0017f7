"""JSON Schemas of the record types and of a stream's line.

Owns what goes into a schema beyond the shapes: what a member means, the known words of open lists (as
``examples``, for others are allowed), and those rules that one record alone shows and a schema can say
(``_RULES``). Every schema is open: unknown members are allowed except where a rule forbids them.

Must never know: streams; what holds between records no schema can say.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from callsheet.records import FORMAT, RECORDS, TYPES
from callsheet.records.tool_call import FORBIDDEN
from callsheet.rules.meaning import MEANING, WORDS
from callsheet.rules.shape import OPEN, PART_NEEDS

Json = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _has(*members: str) -> Json:
    return {"required": list(members)}


def _says(member: str, *words: str) -> Json:
    return {"properties": {member: {"enum": list(words)}}, "required": [member]}


def _captured(member: str) -> Json:
    return {"properties": {"capture": _has(member)}, "required": ["capture"]}


_RULES: dict[str, list[Json]] = {
    "ToolCall": [
        {"$comment": "ASR-250", "anyOf": [_has("name"), _captured("name")]},
        {"$comment": "ASR-251", "properties": dict.fromkeys(FORBIDDEN, False)},
        {"$comment": "ASR-254", "not": _has("input", "inputText")},
    ],
    "ToolResult": [
        {
            "$comment": "ASR-257, ASR-262",
            "if": _says("linkage", "ambiguous", "none"),
            "then": {"properties": {"callId": False}},
            "else": _has("callId"),
        },
        {"$comment": "ASR-259", "anyOf": [_has("content"), _captured("content")]},
    ],
    "Subject": [{"$comment": "ASR-268", "oneOf": [_has("callId"), _has("command")]}],
    "Permission": [
        {"$comment": "ASR-281", "if": _says("status", "resolved"), "then": _has("decision")},
        {
            "$comment": "ASR-281",
            "if": _says("status", "pending", "held"),
            "then": {"properties": {"decision": False}},
        },
    ],
    "Actor": [{"minProperties": 1}],
    "InputRequest": [{"$comment": "ASR-282", "if": _says("mode", "questions"), "then": _has("questions")}],
    "Hook": [{"$comment": "ASR-273", "properties": {"content": False}}],
    "Part": [{"if": _says("type", kind), "then": _has(*needs)} for kind, needs in PART_NEEDS.items()],
    "Capture": [{"if": _says("state", "external"), "then": _has("blob")}],
}
"""Struct name to what a schema says beyond the types."""


def _improve(name: str, shape: Json, doc: str | None) -> Json:
    """A shape with what its members mean and the rules that it can say."""
    found: Json = {"title": shape.get("title", name)}
    if doc:
        found["description"] = doc.split("\n\n")[0].replace("``", "`").replace("\n", " ")
    found |= {key: value for key, value in shape.items() if key not in ("title", "description")}
    meanings = (
        {**MEANING["Record"], **MEANING.get(name, {})}
        if "seq" in shape.get("properties", {})
        else MEANING.get(name, {})
    )
    for member, value in shape.get("properties", {}).items():
        if value.get("anyOf") == [{"type": "integer"}, {"type": "number"}]:
            value = {"type": "number", **{key: one for key, one in value.items() if key != "anyOf"}}
        words = WORDS.get((name, member))
        found["properties"][member] = {
            **({"description": meanings[member]} if member in meanings else {}),
            **value,
            **({"examples": list(words)} if words else {}),
        }
    rules = _RULES.get(name)
    return {**found, "allOf": rules} if rules else found


def _definitions(kinds: tuple[type[Struct], ...]) -> Json:
    """The improved ``$defs`` of some record types and everything they are made of."""
    _, defined = msgspec.json.schema_components(
        [OPEN.of(kind) for kind in kinds], ref_template="#/$defs/{name}"
    )
    docs = {kind.__name__: kind.__doc__ for kind in OPEN.made()}
    return {name: _improve(name, shape, docs.get(name)) for name, shape in sorted(defined.items())}


def record_schema(name: str) -> Json:
    """JSON Schema of one record type.

    Args:
        name: Wire type, such as ``tool_call``.

    Raises:
        KeyError: There is no such type.
    """
    kind = TYPES[name]
    defined = _definitions((kind,))
    own = defined.pop(kind.__name__)
    return {"$schema": DIALECT, "$id": f"{FORMAT}/{name}", **own, **({"$defs": defined} if defined else {})}


def stream_schema() -> Json:
    """JSON Schema of one line of a stream: any record, those of unknown types included."""
    envelope = {name: {"description": MEANING["Record"][name]} for name in ("type", "seq", "id")}
    return {
        "$schema": DIALECT,
        "$id": f"{FORMAT}/line",
        "title": "A line of a stream",
        "description": "One record. What holds between records, no schema can say: callsheet validate does.",
        "type": "object",
        "required": ["type", "seq", "id"],
        "properties": {
            "type": {**envelope["type"], "type": "string", "examples": list(TYPES)},
            "seq": {**envelope["seq"], "type": "integer", "minimum": 0},
            "id": {**envelope["id"], "type": "string", "minLength": 1},
        },
        "allOf": [
            {"if": _says("type", name), "then": {"$ref": f"#/$defs/{kind.__name__}"}}
            for name, kind in TYPES.items()
        ],
        "$defs": _definitions(RECORDS),
    }
