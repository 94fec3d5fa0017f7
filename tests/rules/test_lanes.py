"""The two lanes agree: what the fast lane proves right, the finding lane finds right too."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callsheet.records import TYPES
from callsheet.rules import StreamCheck, check_stream
from callsheet.testing import strategies as drawn
from callsheet.wire.lines import Line

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def lines(records: list[Any], *, spaced: bool = False, ascii_only: bool = False) -> list[Line]:
    """The records as lines of a stream."""
    separators = (", ", ": ") if spaced else (",", ":")
    texts = [
        json.dumps(one, separators=separators, ensure_ascii=ascii_only, allow_nan=False).encode(
            "utf-8", "replace"
        )
        for one in records
    ]
    return [Line(number, 0, text) for number, text in enumerate(texts, 1)]


class Slow(StreamCheck):
    """A check without its fast lane."""

    def line(self, line: Line) -> list[Any]:
        return list(self._look(line))


def both(stream: list[Line]) -> tuple[list[Any], list[Any]]:
    fast, slow = StreamCheck(), Slow()
    found = [finding for line in stream for finding in fast.line(line)] + fast.end()
    wanted = [finding for line in stream for finding in slow.line(line)] + slow.end()
    for name in ("ids", "superseded", "compact", "asked", "next_seq", "records", "agents", "open_terminals"):
        assert getattr(fast.memory, name) == getattr(slow.memory, name), name
    return found, wanted


@pytest.mark.parametrize("kind", sorted(TYPES))
@given(data=st.data())
@quick
def test_a_lawful_record_has_no_finding(kind: str, data: st.DataObject) -> None:
    record = {**data.draw(drawn.record(kind)), "seq": 0, "id": "r0"}
    assert list(check_stream(lines([record]))) == []


@given(drawn.stream(), st.booleans(), st.booleans())
@quick
def test_a_lawful_stream_has_no_finding_however_it_is_written(
    records: list[Any], spaced: bool, ascii_only: bool
) -> None:
    found, wanted = both(lines(records, spaced=spaced, ascii_only=ascii_only))
    assert found == wanted == []


@given(st.data())
@settings(quick, max_examples=250)
def test_a_damaged_stream_has_the_same_findings_in_both_lanes(data: st.DataObject) -> None:
    records = data.draw(drawn.stream(max_size=3))
    number = data.draw(st.integers(0, len(records) - 1))
    records[number] = data.draw(drawn.damaged(records[number]))
    found, wanted = both(lines(records))
    assert found == wanted


@given(st.data())
@quick
def test_text_damage_has_the_same_findings_in_both_lanes(data: st.DataObject) -> None:
    """A member repeated, a number that does not fit, half a character: put into the text, at any place."""
    records = data.draw(drawn.stream(max_size=3))
    stream = lines(records)
    number = data.draw(st.integers(0, len(stream) - 1))
    text = stream[number].data
    comma = [at for at in range(len(text)) if text[at : at + 1] == b","]
    at = data.draw(st.sampled_from(comma))
    piece = data.draw(
        st.sampled_from(
            [
                b',"id":"r0"',
                b',"input":{"a":1,"a":1}',
                b',"raw":9007199254740993',
                b',"raw":[1e400]',
                b',"raw":0.1000000000000000055511151231257827',
                b',"title":"\\ud800"',
                b',"title":"\\u003a"',
                b',"value":{"a":1,"a":"\\u003a"}',
                b',"raw":-0.0',
                b',"_meta":{"x/y":123456789012345678901234567890}',
            ]
        )
    )
    stream[number] = Line(number + 1, 0, text[:at] + piece + text[at:])
    found, wanted = both(stream)
    assert found == wanted


def test_the_fast_lane_is_taken() -> None:
    """Without this, the tests above would hold for a fast lane that proves nothing."""
    records = [
        dict(drawn.HEAD),
        {"type": "tool_call", "callId": "a", "callIdSource": "native", "name": "Bash", "input": {"x": 1.5}},
        {"type": "tool_result", "callId": "a", "linkage": "exact", "status": "failed", "content": []},
        {"type": "message", "author": "user", "content": [{"type": "text", "text": "hi"}]},
    ]
    for number, record in enumerate(records):
        record.update(seq=number, id=f"r{number}")
    check = StreamCheck()
    proved = []
    look = check._look

    def counted(line: Line) -> Any:
        proved.append(line.number)
        return look(line)

    check._look = counted  # type: ignore[method-assign]
    for line in lines(records):
        assert check.line(line) == []
    assert proved == [1], "only the session record goes to the finding lane"


def test_every_member_of_every_type_can_be_proved() -> None:
    """A new record type without a screen would quietly cost its speed."""
    from callsheet.rules.proof import _SCREENS

    slow = {str(kind.__struct_config__.tag) for kind in set(TYPES.values()) - set(_SCREENS)}
    assert slow == {"session", "input_request", "terminal", "subagent"}


def test_msgspec_and_json_agree_on_what_is_drawn() -> None:
    record = {"type": "message", "seq": 0, "id": "r0", "author": "user"}
    assert msgspec.json.encode(record) == lines([record])[0].data
