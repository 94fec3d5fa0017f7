"""Hypothesis strategies for records and streams, as decoded JSON.

Owns ``record`` (one record of a type that breaks no rule), ``stream`` (records that break none together)
and ``damaged`` (a record with one member taken out, replaced or added). Members are drawn from the strict
types of ``rules.shape``, so a new member is drawn from the day it exists; ``_LAWFUL`` adds what types
cannot say, a function per record type.

Hypothesis is an extra: import this module only in tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect as ins

from callsheet.records import TYPES
from callsheet.rules.shape import OPEN, PART_NEEDS
from callsheet.wire.lossless import MAX_SAFE

Json = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

WORDS = st.sampled_from(["a", "b", "toolu_1", "call/~1", "é", "名", "\u202e", "", "a b", "0"])
"""Short strings that clash often, with the characters that pointers, terminals and readers stumble over."""
TEXTS = st.one_of(WORDS, st.text(max_size=12))
DIGESTS = st.integers(0, 2**64).map(lambda number: f"{number:064x}")
TIMES = st.builds(
    "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z".format,
    st.integers(1970, 2100),
    st.integers(1, 12),
    st.integers(1, 28),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 59),
    st.sampled_from(["", ".5", ".254", ".123456", ".123456789"]),
)
NUMBERS = st.one_of(
    st.integers(-MAX_SAFE, MAX_SAFE), st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
"""Any JSON value that every reader keeps (ASR-032)."""

SOURCE, ROOT = "s0", "app"


def _draws(node: ins.Type) -> st.SearchStrategy[Any]:
    """What a type node allows."""
    if isinstance(node, ins.Metadata):
        extra = node.extra_json_schema or {}
        if extra.get("format") == "date-time":
            return TIMES
        return (
            st.one_of(st.integers(0, 10**6), st.floats(0, 1e6)) if "minimum" in extra else _draws(node.type)
        )
    if isinstance(node, ins.StrType):
        if node.pattern is not None:
            return DIGESTS.map(lambda text: f"sha256:{text}") if "sha256:" in node.pattern else DIGESTS
        return TEXTS.filter(bool) if node.min_length else TEXTS
    if isinstance(node, ins.IntType):
        return st.integers(
            -MAX_SAFE if node.ge is None else node.ge, MAX_SAFE if node.le is None else node.le
        )
    if isinstance(node, ins.LiteralType):
        return st.sampled_from(sorted(node.values, key=str))
    if isinstance(node, ins.ListType):
        return st.lists(_draws(node.item_type), max_size=2)
    if isinstance(node, ins.DictType):
        return st.dictionaries(TEXTS, _draws(node.value_type), max_size=2)
    if isinstance(node, ins.UnionType):
        return st.one_of([_draws(kind) for kind in node.types])
    if isinstance(node, ins.StructType):
        return _members(node)
    plain: dict[type, st.SearchStrategy[Any]] = {ins.BoolType: st.booleans(), ins.FloatType: NUMBERS}
    return plain.get(type(node), VALUES)


_OWN: dict[str, st.SearchStrategy[Any]] = {
    "PathRef": st.fixed_dictionaries({"root": st.sampled_from([ROOT, "host"]), "path": TEXTS}),
    "Ref": st.fixed_dictionaries(
        {"source": st.just(SOURCE), "line": st.integers(1, 99)},
        optional={"sha256": DIGESTS, "role": WORDS, "pointer": WORDS},
    ),
}
"""Structs whose members have to fit a session record."""


def _members(node: ins.StructType) -> st.SearchStrategy[Any]:
    name = node.cls.__name__
    if name in _OWN:
        return _OWN[name]
    drawn = {
        field.encode_name: _draws(field.type)
        for field in node.fields
        if not (name == "Location" and field.encode_name == "root")
    }
    if name == "Location":
        drawn["root"] = st.just(ROOT)
    required = {field.encode_name for field in node.fields if field.required}
    whole = st.fixed_dictionaries(
        {key: value for key, value in drawn.items() if key in required},
        optional={key: value for key, value in drawn.items() if key not in required},
    )
    if name == "Part":
        return st.builds(
            _whole_part, whole, st.sampled_from(["text", "json", "resource_link", "vendor"]), TEXTS
        )
    if name == "Actor":
        return whole.map(lambda actor: actor or {"name": "somebody"})
    return whole


def _whole_part(part: Json, kind: str, text: str) -> Json:
    part["type"] = kind
    for member in PART_NEEDS.get(kind, ()):
        part.setdefault(member, text)
    return part


def _capture(record: Json, draw: Draw) -> None:
    """Capture states for members that are not there, of those that may have one."""
    keys = [key for key in TYPES[record["type"]].CAPTURE_KEYS if "." not in key and key not in record]
    record.pop("capture", None)
    if keys and draw(st.booleans()):
        states = st.sampled_from(["absent", "unavailable", "redacted"])
        record["capture"] = {draw(st.sampled_from(keys)): {"state": draw(states)}}


def _call(record: Json, _draw: Draw) -> None:
    if "input" in record:
        record.pop("inputText", None)
    if "name" not in record:
        record["capture"] = {"name": {"state": "absent"}}


def _result(record: Json, draw: Draw) -> None:
    if record["linkage"] in ("ambiguous", "none"):
        record.pop("callId", None)
    else:
        record.setdefault("callId", "a")
    if "content" not in record:
        record["capture"] = {
            "content": {"state": draw(st.sampled_from(["absent", "redacted", "unavailable"]))}
        }
    if "startedAt" in record and "completedAt" in record:
        times = sorted([record["startedAt"], record["completedAt"]], key=lambda time: time.rstrip("Z"))
        record["startedAt"], record["completedAt"] = times
        record.pop("durationMs", None)
    if "exec" in record:
        record["exec"].pop("terminalId", None)
    record.pop("permission", None)


def _permission(record: Json, draw: Draw) -> None:
    if "subject" in record:
        record["subject"] = draw(st.sampled_from([{"callId": "nobody"}, {"command": "ls"}]))
    if record.get("status") == "resolved":
        record.setdefault("decision", "allow_once")
    elif record.get("status") in ("pending", "held"):
        record.pop("decision", None)


def _input_request(record: Json, _draw: Draw) -> None:
    for member in ("answers", "response", "answerRef"):
        record.pop(member, None)
    for index, question in enumerate(record.get("questions", ())):
        question["id"] = str(index)
    if record["mode"] == "questions":
        record.setdefault("questions", [])


def _session(record: Json, _draw: Draw) -> None:
    record.pop("native", None)  # its sources are its own


def _subagent(record: Json, _draw: Draw) -> None:
    record["agentId"] = f"agent {record['agentId']}"


def _gap(record: Json, _draw: Draw) -> None:
    record.pop("source", None)


_LAWFUL: dict[str, Callable[[Json, Draw], None]] = {
    "session": _session,
    "tool_call": _call,
    "tool_result": _result,
    "permission": _permission,
    "input_request": _input_request,
    "subagent": _subagent,
    "gap": _gap,
}


@st.composite
def record(draw: Draw, kind: str | None = None) -> Json:
    """A record that breaks no rule by itself.

    Args:
        draw: Given by Hypothesis.
        kind: Wire type; any type when None.
    """
    name = kind or draw(st.sampled_from(sorted(TYPES)))
    found: Json = {"type": name, **draw(_members(ins.type_info(OPEN.of(TYPES[name]))))}  # type: ignore[arg-type]
    found.pop("supersedes", None)
    _capture(found, draw)
    if name in _LAWFUL:
        _LAWFUL[name](found, draw)
    return found


HEAD: Json = {
    "type": "session",
    "format": "callsheet/1",
    "agent": {"name": "agent", "version": "1"},
    "nativeSessionId": "session",
    "sources": [{"id": SOURCE, "kind": "claude-code", "path": "session.jsonl"}],
    "roots": {ROOT: "/home/dev/app"},
}


@st.composite
def stream(draw: Draw, max_size: int = 8) -> list[Json]:
    """Records that break no rule together: a session record, others in order, perhaps a revision."""
    kinds = sorted(set(TYPES) - {"session"})
    found = [dict(HEAD)]
    terminals: set[str] = set()
    for _ in range(draw(st.integers(0, max_size))):
        one = draw(record(draw(st.sampled_from(kinds))))
        if one["type"] == "terminal":
            one["terminalId"] = f"terminal {len(terminals)}"
            terminals.add(one["terminalId"])
        found.append(one)
    for number, one in enumerate(found):
        one["seq"], one["id"] = number, f"r{number}"
    if len(found) > 1 and draw(st.booleans()):
        number = draw(st.integers(1, len(found) - 1))
        found.append({**found[number], "seq": len(found), "id": "revision", "supersedes": f"r{number}"})
    return found


HOSTILE: st.SearchStrategy[Any] = st.one_of(
    VALUES,
    st.sampled_from(
        [2**53, -(2**53), 2**31, 2**32, -(2**31) - 1, 10**400, 1e308, 5e-324, -1, "", [], {}, [[]], None]
    ),
)
"""Values that a member of another type does not expect."""


@st.composite
def damaged(draw: Draw, whole: Json) -> Json:
    """The record with one member, at any depth, taken out, replaced or added."""
    copy: Json = msgspec.json.decode(msgspec.json.encode(whole))
    holders: list[Any] = [copy]
    for holder in holders:
        inner = holder.values() if isinstance(holder, dict) else holder
        holders.extend(one for one in inner if isinstance(one, (dict, list)) and one)
    holder = draw(st.sampled_from(holders))
    places: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    how = draw(st.sampled_from(["take", "replace", "add"]))
    if how == "add":
        names = st.sampled_from(
            ["status", "content", "callId", "exitCode", "input", "inputText", "secret", "vendor"]
        )
        if isinstance(holder, dict):
            holder[draw(names)] = draw(HOSTILE)
        else:
            holder.append(draw(HOSTILE))
    elif how == "take":
        del holder[draw(st.sampled_from(places))]
    else:
        holder[draw(st.sampled_from(places))] = draw(HOSTILE)
    return copy
