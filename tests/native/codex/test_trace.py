"""A trace bundle beside a thread says which cell made a call: two recorded hops, or nothing.

The shape of the bundle was read from its source; no file of a real run was seen.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.native.codex.conftest import Made, Read, name_of, thread

TRACE = "/h/.codex/trace/trace-1"


def event(seq: int, **payload: Any) -> bytes:
    line = {
        "schema_version": 1,
        "seq": seq,
        "wall_time_unix_ms": 1_796_000_000_000 + seq,
        "rollout_id": "r",
        "thread_id": thread(1),
        "payload": payload,
    }
    return json.dumps(line).encode() + b"\n"


def cell(seq: int, cell_id: str, call_id: str) -> bytes:
    return event(seq, type="code_cell_started", runtime_cell_id=cell_id, model_visible_call_id=call_id)


def started(seq: int, call_id: str, cell_id: str) -> bytes:
    requester = {"type": "code_cell", "runtime_cell_id": cell_id}
    return event(seq, type="tool_call_started", tool_call_id=call_id, requester=requester)


def nested() -> Made:
    made = Made(1)
    made.meta()
    made.item(type="custom_tool_call", call_id="cell", name="exec", input="…")
    made.ran("exec-1", command=["ls"], status="completed", exit_code=0)
    return made


def files(made: Made, trace: bytes, root: str | None = None) -> dict[str, bytes]:
    manifest = json.dumps({"root_thread_id": root or thread(1)}).encode()
    return {name_of(1): made.data, f"{TRACE}/trace.jsonl": trace, f"{TRACE}/manifest.json": manifest}


def parent_of(read: Read, given: dict[str, bytes]) -> tuple[Any, list[str]]:
    sheet = read(given)
    (call,) = [call for call in sheet.of("tool_call") if call["callId"] == "exec-1"]
    return call.get("parentCallId"), [ref["role"] for ref in call["native"]["refs"]]


def test_two_hops_lead_to_the_models_call(read: Read) -> None:
    trace = cell(1, "k1", "cell") + started(2, "exec-1", "k1")
    assert parent_of(read, files(nested(), trace)) == ("cell", ["item", "trace", "trace"])


@pytest.mark.parametrize(
    "trace",
    [
        b"",
        cell(1, "k1", "cell"),
        started(1, "exec-1", "k1"),
        cell(1, "k1", "cell") + started(2, "exec-1", "k2"),
        cell(1, "k1", "cell") + cell(2, "k1", "other") + started(3, "exec-1", "k1"),
        cell(1, "k1", "cell") + started(2, "exec-1", "k1") + started(3, "exec-1", "k2"),
        (cell(1, "k1", "cell") + started(2, "exec-1", "k1")).replace(
            b'"schema_version": 1', b'"schema_version": 2'
        ),
        cell(1, "k1", "cell") + b'{"torn": ',
        b"\x00\xff\n" + b"[]\n" + b'{"schema_version": 1, "payload": 7}\n',
    ],
)
def test_anything_less_gives_no_parent(trace: bytes, read: Read) -> None:
    assert parent_of(read, files(nested(), trace))[0] is None


def test_a_trace_of_another_thread_is_not_read(read: Read) -> None:
    trace = cell(1, "k1", "cell") + started(2, "exec-1", "k1")
    assert parent_of(read, files(nested(), trace, thread(5))) == (None, ["item"])


def test_without_a_trace_there_is_no_parent(read: Read) -> None:
    assert parent_of(read, {name_of(1): nested().data}) == (None, ["item"])
