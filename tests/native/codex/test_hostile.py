"""No line raises, none is lost: real lines with members of any type, in any order, with anything between them.

The lines are those of the golden sessions, of both kinds. Each is changed at random places: another type, a number that
no reader keeps, half a surrogate pair, a repeated key. What comes of them is lawful, the same from any desk, and the
audit finds every fact of it again.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.native.codex.conftest import Made, Read, name_of, thread
from tests.native.codex.frames import every_frame

from callsheet.audit import audit_bundle
from callsheet.harness._port import Stored
from callsheet.harness.codex import CODEX, CODEX_APP_SERVER, CODEX_EXEC
from callsheet.library.importing import import_session
from callsheet.records import decode
from callsheet.records.bundle import Bundle
from callsheet.records.stream import BadLine, read_stream, stream_lines
from callsheet.rules import Finding, check_stream
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, Reading, read_session

GOLDEN = Path(__file__).parent
KINDS: dict[str, Stored] = {"codex": CODEX, "codex-exec": CODEX_EXEC, "codex-app-server": CODEX_APP_SERVER}


def older() -> Iterator[dict[str, Any]]:
    """Lines of kinds that the golden sessions do not have."""
    made = Made(version="0.140.0", paginated=False)
    for kind, status in (("spawn", "running"), ("interaction", {"completed": "x"})):
        yield made.add(
            "event_msg",
            type=f"collab_agent_{kind}_end",
            call_id="c1",
            new_thread_id="a1",
            receiver_thread_id="a1",
            new_agent_nickname="n",
            status=status,
        )
    yield made.add(
        "event_msg", type="dynamic_tool_call_response", call_id="c1", tool="t", success=True, content_items=[]
    )
    yield made.add("event_msg", type="view_image_tool_call", call_id="c1", path="/a.png")
    yield made.add(
        "event_msg", type="guardian_assessment", id="g", target_item_id="c1", status="approved", rationale="r"
    )
    yield made.add(
        "event_msg", type="sub_agent_activity", event_id="c1", agent_thread_id="a1", kind="started"
    )
    yield made.add("event_msg", type="error", message="m", codex_error_info="other")
    yield made.add("event_msg", type="warning")
    yield made.add("event_msg", type="agent_reasoning_raw_content", text="raw thought")
    yield made.add("event_msg", type="turn_aborted", turn_id="t", reason="interrupted")
    yield made.add("response_item", type="agent_message", author="/a", recipient="/b", content=[])
    yield made.add(
        "response_item", type="tool_search_output", call_id="c1", status="completed", tools=[{"name": "t"}]
    )


@cache
def lines(kind: str) -> list[dict[str, Any]]:
    """One line of every type."""
    if kind == "codex-app-server":
        return every_frame()
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(GOLDEN.glob("*/*/native/**/*.jsonl")):
        if path.name.startswith("exec") == (kind == "codex-exec"):
            for line in path.read_bytes().splitlines():
                record = json.loads(line)
                found.setdefault(type_of(record), record)
    return [*found.values(), *(older() if kind == "codex" else ())]


def type_of(record: dict[str, Any]) -> str:
    inner = [record.get(name) for name in ("payload", "item", "msg")]
    types = [one.get("type") for one in inner if isinstance(one, dict)]
    item = record.get("payload", {}).get("item") if isinstance(record.get("payload"), dict) else None
    return repr((record.get("type"), types, item.get("type") if isinstance(item, dict) else sorted(record)))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a value."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


WORDS = st.sampled_from(
    [
        "@",
        "",
        "c1",
        "a1",
        "exec-1",
        "cut \ud83d",
        "\x00",
        "\u2028",
        "completed",
        "failed",
        "rollout-3",
        "0.171.0",
        "9" * 5000,
        "2026-11-30T10:00:00+25:00",
        "0001-01-01T00:00:00+23:59",
        "file:///x%00",
        "file://[",
        "mcp__a__b",
        "/../../x",
        "C:\\x",
        "a" * 70000,
        thread(1),
        "*** Begin Patch\n*** Add File: \n*** Move to: ",
        "item_0",
        "~1",
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**53, -(2**64), 10**400, 4294967295, 4294967296]),
    st.sampled_from([0.5, -0.0, 1e308, 1e-400]),
    WORDS,
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=5,
)
JUNK = st.sampled_from(
    [
        b"",
        b"\r",
        b"{}",
        b"[]",
        b'"x"',
        b"null",
        b'{"type":"event_msg"',
        b"\x00\x00\x00",
        b"\xff",
        b"}{",
        b"[" * 3000,
        b'{"type":"response_item","payload":1}',
        b'{"type":"thread.started"}',
        b'{"id":"1","msg":{}}',
    ]
)


@st.composite
def files(draw: st.DrawFn, kind: str, fused: bool = True) -> bytes:
    """The bytes of a rollout or log; ``fused``: its records may stand on one line."""
    known = lines(kind)
    found: list[bytes] = []
    for _ in range(draw(st.integers(1, 6))):
        record: Any = known[draw(st.integers(0, len(known) - 1))]
        for _ in range(draw(st.integers(0, 3))):
            where = places(record)
            record = changed(record, where[draw(st.integers(0, len(where) - 1))], draw(VALUES))
        line = json.dumps(record, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
        line = line.replace(b'"@"', draw(st.sampled_from([b"1e400", b"-0.1e-999", b"9" * 4500])))
        if draw(st.integers(0, 15)) == 0:
            line = line.replace(b'": ', b'": 1, "twice": 1, "twice": ', 1)
        found.append(line)
        if draw(st.integers(0, 4)) == 0:
            found.append(draw(JUNK))
        if draw(st.integers(0, 6)) == 0:
            found.append(found[draw(st.integers(0, len(found) - 1))])
    joints = [b"\n", b"\n", b"\r\n", b""]
    return draw(st.sampled_from(joints if fused else joints[:3])).join(found) + draw(
        st.sampled_from([b"\n", b""])
    )


def reading_of(adapter: Stored, data: bytes, chunk: int = 1 << 18) -> Reading:
    held = Files({name_of(1): data})
    (session,) = adapter.sessions(name_of(1), held)
    reading = read_session(adapter, session, held, chunk=chunk)
    assert check_reading(reading) == []
    return reading


LOOSE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("kind", KINDS)
@settings(LOOSE, max_examples=300)
@given(st.data(), st.integers(1, 300))
def test_any_lines(kind: str, drawn: st.DataObject, chunk: int) -> None:
    data = drawn.draw(files(kind))
    adapter = KINDS[kind]
    reading = reading_of(adapter, data)
    again = reading_of(adapter, data, chunk)
    assert [stream.data for stream in again.streams] == [stream.data for stream in reading.streams]
    for stream in reading.streams:
        found = check_stream(stream_lines(io.BytesIO(stream.data)))
        assert [one for one in found if not is_left_open(one)] == []
        for entry in read_stream(io.BytesIO(stream.data)):
            assert not isinstance(entry, BadLine), entry
            assert entry.record == decode(entry.line.data)


def is_left_open(finding: Finding) -> bool:
    """What the importer does not settle: a key that the source repeats, in a value kept as its own text."""
    return finding.rule == "P-JSON" and finding.path.startswith(("/value/", "/raw/", "/input/", "/changes/"))


@pytest.mark.parametrize("kind", KINDS)
@settings(LOOSE, max_examples=400)
@given(st.data())
def test_any_lines_have_evidence(kind: str, drawn: st.DataObject) -> None:
    data = drawn.draw(files(kind, fused=False))  # the audit counts lines
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name_of(1)).name
        path.write_bytes(data)
        held = Files({str(path): data})
        (session,) = KINDS[kind].sessions(str(path), held)
        made = import_session(KINDS[kind], session, Path(folder) / "out")
        assert list(audit_bundle(Bundle(made.bundle))) == []


def test_nesting_that_no_decoder_takes_is_a_gap(made: Made, read: Read) -> None:
    made.raw(b'{"type":"response_item","payload":' + b"[" * 200_000 + b"]" * 200_000 + b"}")
    made.call("c1")
    sheet = read(made)
    assert [gap["reason"] for gap in sheet.of("gap")] == ["too_deep"]
    assert len(sheet.of("tool_call")) == 1


def test_a_long_output_is_kept_without_being_decoded_twice(made: Made, read: Read) -> None:
    made.call("c1")
    made.output("c1", "x" * (4 << 20))
    made.said("ok")
    made.replied()
    sheet = read(made)
    assert len(sheet.one("tool_result")["content"][0]["text"]) == 4 << 20
