"""A stream on disk: what is read is what was written, unknown members and types included."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.errors import ProducerError, RecordError, SourceError
from callsheet.records import (
    RECORDS,
    TYPES,
    Gap,
    Message,
    Native,
    Plan,
    Record,
    Ref,
    ToolCall,
    ToolResult,
    Unknown,
    decode,
    encode,
    text_part,
    type_name,
)
from callsheet.records.stream import BadLine, Entry, StreamWriter, read_at, read_stream, stream_lines
from callsheet.testing.strategies import VALUES, record


def entries(data: bytes) -> list[Entry | BadLine]:
    return list(read_stream(io.BytesIO(data), "s.jsonl"))


# -- records and their wire form -----------------------------------------------------------------------------------


def test_every_type_is_listed_once() -> None:
    assert len(TYPES) == len(RECORDS) == len({type_name(kind) for kind in map(_bare, RECORDS)})


def _bare(kind: type[Record]) -> Record:
    """A record of a type with its required members only."""
    filled: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
            filled[field.name] = [] if "list" in str(field.type) else "x"
    return kind(**filled)


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_a_record_comes_back_as_it_was(kind: type[Record]) -> None:
    one = _bare(kind)
    line = encode(one)
    assert decode(line) == one
    assert encode(decode(line)) == line  # type: ignore[arg-type]
    assert json.loads(line)["type"] == type_name(one)


@settings(max_examples=60, deadline=None)
@given(record())
def test_lawful_records_are_read_and_written_alike(value: dict[str, Any]) -> None:
    line = msgspec.json.encode(value)
    read = decode(line)
    assert not isinstance(read, Unknown)
    # What the types know comes back; what they don't lives in the line (Entry).
    again = decode(encode(read))
    assert again == read
    assert (type_name(read), read.seq, read.id) == (value["type"], value["seq"], value["id"])


def test_absent_members_are_not_written_and_an_empty_list_is_a_fact() -> None:
    assert set(json.loads(encode(Message(author="user")))) <= {"type", "seq", "id", "author"}
    assert "content" not in json.loads(encode(Message(author="user")))
    assert json.loads(encode(Message(author="user", content=[])))["content"] == []
    assert json.loads(encode(ToolResult(linkage="none", status="unknown", content=[])))["content"] == []
    assert json.loads(encode(Plan(plan_id="p", entries=[])))["entries"] == []
    assert "refs" not in json.loads(encode(Gap(reason="nul", native=Native())))["native"]


def test_values_stand_as_their_own_text() -> None:
    text = b'{ "n" : 1.50, "s":"\\u00e9" }'
    call = ToolCall(call_id="a", call_id_source="native", input=msgspec.Raw(text))
    assert text in encode(call)
    read = decode(encode(call))
    assert isinstance(read, ToolCall)
    assert isinstance(read.input, msgspec.Raw)
    assert bytes(read.input) == text


def test_null_is_a_value_where_any_value_is_one() -> None:
    read = decode(b'{"type":"tool_call","callId":"a","callIdSource":"native","input":null}')
    assert isinstance(read, ToolCall)
    assert isinstance(read.input, msgspec.Raw)
    assert b'"input":null' in encode(read)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"type":"tool_call"}',
        b'{"type":"tool_call","callId":7,"callIdSource":"native"}',
        b'{"type":"gap","reason":null}',
        b'{"type":7}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_record_is_an_error_with_one_line(line: bytes) -> None:
    with pytest.raises(RecordError) as caught:
        decode(line)
    assert "\n" not in str(caught.value)


def test_unknown_types_and_open_words_are_kept() -> None:
    line = b'{"type":"weather","seq":3,"id":"r3","sky":[1,2]}'
    read = decode(line)
    assert isinstance(read, Unknown)
    assert (read.type, read.seq, read.id, bytes(read.line)) == ("weather", 3, "r3", line)
    assert isinstance(decode(b'{"seq":1}'), Unknown)
    result = decode(b'{"type":"tool_result","linkage":"telepathic","status":"dreamt"}')
    assert isinstance(result, ToolResult)
    assert (result.linkage, result.status) == ("telepathic", "dreamt")


# -- streams -------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["seq", "author", "x", "", "é", "\u2028", "capture2", "_meta"])


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["message", "weather", "tool_call"]),
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.dictionaries(NAMES, VALUES, max_size=2),
)
def test_a_read_write_trip_keeps_unknown_members(
    kind: str, more: dict[str, Any], new: dict[str, Any]
) -> None:
    known = {"message": {"author": "user"}, "tool_call": {"callId": "a", "callIdSource": "native"}}.get(
        kind, {}
    )
    whole = {**more, **known, "type": kind, "seq": 0, "id": "r0"}
    if isinstance(more.get("_meta"), dict) or "_meta" not in more:
        line = msgspec.json.encode(whole)
        (entry,) = entries(line + b"\n")
        assert isinstance(entry, Entry)
        assert entry.line.data == line
        assert msgspec.json.decode(entry.changed()) == whole
        assert msgspec.json.decode(entry.changed(**new)) == {**whole, **new}


def test_a_bad_line_costs_nothing_else() -> None:
    good = b'{"type":"message","seq":0,"id":"r0","author":"user"}'
    found = entries(b"\xef\xbb\xbf" + good + b"\r\n\n{bad\n \t\n" + good[:-2] + b"\n" + good)
    assert [isinstance(one, BadLine) for one in found] == [False, True, True, False]
    bad = found[1]
    assert isinstance(bad, BadLine)
    assert str(bad.error).startswith("s.jsonl:3: ")
    assert [one.line.number for one in found] == [1, 3, 5, 6]


def test_a_record_is_read_again_by_its_place() -> None:
    data = b"\xef\xbb\xbf" + b"".join(
        b'{"type":"message","seq":%d,"id":"r%d","author":"user"}\r\n' % (number, number)
        for number in range(3)
    )
    file = io.BytesIO(data)
    for line in stream_lines(file):
        again = read_at(io.BytesIO(data), line.offset, len(line.data))
        assert again == decode(line.data)


def test_the_writer_numbers_and_names(tmp_path: Path) -> None:
    path = tmp_path / "streams" / "s.jsonl"
    with StreamWriter(path, "s") as writer:
        first = Message(
            author="user", content=[text_part("é")], native=Native(refs=[Ref(source="s0", bytes=1 << 20)])
        )
        assert writer.write(first) == "r0"
        assert writer.write(Message(author="model", id="mine")) == "mine"
        with pytest.raises(ProducerError):
            writer.write(first)
        assert not path.exists()
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [0, 1]
    assert [json.loads(line)["id"] for line in lines] == ["r0", "mine"]
    assert (writer.records, writer.id, writer.types[Message]) == (2, "s", 2)
    assert writer.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_stream_that_fails_is_not_there(tmp_path: Path) -> None:
    def fail() -> None:
        with StreamWriter(tmp_path / "s.jsonl") as writer:
            writer.write(Message(author="user"))
            raise SourceError("torn")

    with pytest.raises(SourceError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError), StreamWriter(tmp_path / "s.jsonl") as writer:
        writer.write(Message(author="\ud800"))
    assert list(tmp_path.iterdir()) == []


def test_a_text_of_several_lines_stands_on_one(tmp_path: Path) -> None:
    pretty = msgspec.Raw(b'{\n  "a": [1,\n 2],\r\n "b": "c\\nd"}\n')
    with StreamWriter(tmp_path / "s.jsonl") as writer:
        for _ in range(2):
            writer.write(
                ToolCall(call_id="c", call_id_source="native", name="t", input=pretty, native=Native(refs=[]))
            )
        writer.write(Message(author="user"))
    lines = (tmp_path / "s.jsonl").read_bytes().split(b"\n")[:-1]
    assert [json.loads(line).get("input") for line in lines] == [{"a": [1, 2], "b": "c\nd"}] * 2 + [None]
    call = ToolCall(call_id="c", call_id_source="native", name="t", input=pretty)
    assert b"\n" not in encode(call)
