"""Any order gives the same rows, and nothing that a stream may hold breaks the reader."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.records import RECORDS
from callsheet.rows import ROW_KINDS, Row, Sheet, View

Records = list[dict[str, Any]]


def call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "callId": call_id, "callIdSource": "native", "name": "Bash", **more}


def result(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "callId": call_id, "linkage": "exact", "status": "completed", **more}


def text(value: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value}]


def stream(records: Sequence[dict[str, Any]]) -> io.BytesIO:
    whole = [{"seq": number, "id": f"r{number}", **record} for number, record in enumerate(records)]
    return io.BytesIO(b"".join(json.dumps(record).encode() + b"\n" for record in whole))


def rows_of(file: io.BytesIO) -> list[dict[str, Any]]:
    return [msgspec.json.decode(msgspec.json.encode(row)) for row in Sheet(file).rows()]


SHUFFLED: Records = [
    call("a", input={"command": "1"}),
    call("b", name="Grep"),
    call("c"),
    call("c"),
    result("a", content=text("x")),
    result("b", raw={"numFiles": 2}),
    result("c"),
    result("d"),
    {"type": "permission", "requestId": "p", "subject": {"callId": "b"}, "decision": "allow_once"},
    {"type": "file_change", "scope": "call", "callId": "a", "changes": []},
    {"type": "message", "author": "user", "content": text("hi")},
]


@given(st.permutations(list(enumerate(SHUFFLED))))
def test_order_changes_places_not_rows(order: list[tuple[int, dict[str, Any]]]) -> None:
    def known(records: Records) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows_of(stream(records)))

    named = [{**record, "id": f"x{number}"} for number, record in order]
    assert known(named) == known([{**record, "id": f"x{number}"} for number, record in enumerate(SHUFFLED)])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted(
    {field.encode_name for kind in RECORDS for field in msgspec.structs.fields(kind)} - {"seq", "type", "id"}
)
arbitrary = st.builds(
    lambda kind, members, base: {**base, "type": kind, **members},
    st.sampled_from([*(str(kind.__struct_config__.tag) for kind in RECORDS), "novel", ""]),
    st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4),
    st.sampled_from(
        [
            {},
            call("a"),
            result("a"),
            {
                "requestId": "q",
                "mode": "form",
                "event": "e",
                "author": "user",
                "scope": "call",
                "status": "failed",
            },
            {
                "callId": "a",
                "terminalId": "t",
                "planId": "p",
                "agentId": "g",
                "turnId": "t",
                "status": "x",
                "reason": "r",
            },
        ]
    ),
)


@settings(max_examples=300)
@given(st.lists(arbitrary, max_size=8), st.booleans())
def test_no_stream_breaks_the_reader(records: Records, everything: bool) -> None:
    view = View(thoughts=everything, audit=everything)
    sheet = Sheet(stream(records), view=view)
    rows = list(sheet.rows())
    assert len(rows) <= len(records)
    for row in rows:
        assert row.title
        assert row.kind in ROW_KINDS
        assert isinstance(row, Row)
        msgspec.json.encode(row)


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    list(Sheet(io.BytesIO(data)).rows())
