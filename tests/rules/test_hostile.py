"""Hostile and damaged streams: every one gets its findings, none is an error, and memory stays small."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from callsheet.records import TYPES
from callsheet.records.stream import stream_lines
from callsheet.rules import StreamCheck, check_stream
from callsheet.rules.shape import members
from callsheet.wire.lines import Line

CALL: dict[str, Any] = {"type": "tool_call", "callId": "a", "callIdSource": "native", "name": "Bash"}


def check(*records: Any) -> list[tuple[str, str | None, str]]:
    """Findings of a stream of records (numbered here if they have no seq) and raw lines."""
    texts = []
    for number, record in enumerate(records):
        if isinstance(record, dict):
            record = json.dumps({"seq": number, "id": f"r{number}", **record}).encode()
        texts.append(record)
    return check_bytes(b"\n".join(texts) + b"\n")


def check_bytes(data: bytes) -> list[tuple[str, str | None, str]]:
    return [(one.rule, one.record, one.path) for one in check_stream(stream_lines(io.BytesIO(data)))]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"\xef\xbb\xbf",
        b"{",
        b"}{",
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b'{"type":"tool_call"',
        b'{"seq":NaN}',
        b'{"seq":Infinity}',
        b'{"a":1}{"b":2}',
        b'{"a":"\x00"}',
        b"\x00" * 100,
        b'{"type":"message","seq":0,"id":"r0","author":"\xff"}',
        b'{"type":"\xff\xfe"}',
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" * 100_000,
        b'{"type":"unmapped","seq":0,"id":"r0","value":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"seq":' + b"9" * 100_000 + b"}",
        b'{"seq":1e' + b"9" * 1_000 + b"}",
        b'{"type":"tool_result","durationMs":0.' + b"1" * 100_000 + b"}",
        b'{"type":"tool_result","startedAt":"2026-01-01T00:00:00.' + b"1" * 100_000 + b'Z"}',
    ],
    ids=range(24),
)
def test_no_line_is_an_error(line: bytes) -> None:
    findings = check_bytes(line + b"\n")
    assert all(isinstance(rule, str) for rule, _, _ in findings)
    assert bool(findings) == bool(line.strip(b" \xef\xbb\xbf"))


def test_a_bad_line_costs_only_itself() -> None:
    good = {**CALL, "type": "message", "author": "user"}
    assert check(good, b"{broken", good, b"\xff", good) == [("P-JSON", None, ""), ("P-JSON", None, "")]


ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**53,
    2**80,
    "",
    "text",
    [],
    [None],
    {},
    {"a": None},
    [[[]]],
    {"record": 1},
]


def odd_members() -> Iterator[tuple[str, str]]:
    for kind, cls in TYPES.items():
        for member in members(cls):
            yield kind, member


@pytest.mark.parametrize(("kind", "member"), list(odd_members()))
def test_every_member_may_be_anything(kind: str, member: str) -> None:
    for value in ODD:
        record: dict[str, Any] = {"type": kind, "seq": 0, "id": "r0", member: value}
        for rule, _, path in check_bytes(json.dumps(record).encode() + b"\n"):
            assert rule.startswith(("ASR-", "P-")), path


@pytest.mark.parametrize("odd", [[], {}, None, 5, "\ud800"])
def test_questions_and_answers_may_be_anything(odd: Any) -> None:
    record: dict[str, Any] = {
        "type": "input_request",
        "seq": 0,
        "id": "r0",
        "requestId": "q",
        "mode": "questions",
        "questions": [{"id": "a", "text": "?", "secret": True, "options": [{"label": odd}]}, {"id": odd}],
        "answers": [{"questionId": odd, "text": odd}],
    }
    assert all(
        rule[:4] == "ASR-" or rule[:2] == "P-" for rule, _, _ in check_bytes(json.dumps(record).encode())
    )


def test_wrong_types_inside_arrays_and_objects_are_named_each() -> None:
    found = check(
        {"type": "message", "author": 7, "content": [3, {"type": "text"}, {"type": 1}], "messageId": None}
    )
    assert found == [
        ("P-SHAPE", "r0", "/author"),
        ("P-SHAPE", "r0", "/content/0"),
        ("P-SHAPE", "r0", "/content/2/type"),
        ("P-SHAPE", "r0", "/messageId"),
        ("P-SHAPE", "r0", "/content/1/text"),
    ]


def chain(length: int) -> Iterator[Line]:
    """Revisions of one terminal."""
    record = {"type": "terminal", "terminalId": "t", "status": "running", "output": {"text": "x" * 200}}
    for number in range(length):
        before = {"supersedes": f"r{number - 1}"} if number else {}
        text = json.dumps({**record, "seq": number, "id": f"r{number}", **before})
        yield Line(number + 1, 0, text.encode())


def test_a_hundred_thousand_revisions_are_one_chain() -> None:
    check = StreamCheck()
    for line in chain(100_000):
        assert check.line(line) == []
    assert check.end() == []


def test_a_revision_costs_little_memory_whatever_its_size() -> None:
    check = StreamCheck()
    tracemalloc.start()
    for line in chain(10_000):
        check.line(line)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6_000_000, "600 bytes a record"


def test_memory_does_not_grow_with_the_size_of_records() -> None:
    def peak(size: int) -> int:
        check = StreamCheck()
        text = {"type": "message", "author": "user", "content": [{"type": "text", "text": "x" * size}]}
        tracemalloc.start()
        for number in range(500):
            check.line(Line(number, 0, json.dumps({**text, "seq": number, "id": f"r{number}"}).encode()))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(100_000) < peak(100) + 2_000_000


def test_cycles_and_forward_links_are_broken_chains() -> None:
    one = {"type": "message", "author": "user"}
    assert check({**one, "supersedes": "r1"}, {**one, "supersedes": "r0"}) == [
        ("P-CHAIN", "r0", "/supersedes")
    ]
    assert check({**one, "supersedes": "r0"}) == [("P-CHAIN", "r0", "/supersedes")]
    assert check(one, {**one, "supersedes": "r0"}, {**one, "supersedes": "r0"}) == [
        ("P-CHAIN", "r2", "/supersedes")
    ]


def test_one_hole_in_seq_is_one_finding() -> None:
    one = {"type": "message", "author": "user"}
    assert check(one, {**one, "seq": 5}, {**one, "seq": 6}, {**one, "seq": 7}) == [("P-SEQ", "r1", "/seq")]
    assert check({**one, "seq": 10**400}, {**one, "seq": 10**400 + 1}) == [
        ("P-SEQ", "r0", "/seq"),
        ("P-JSON", "r0", "/seq"),
        ("P-JSON", "r1", "/seq"),
    ]


def test_repeated_ids_are_named_at_every_repeat() -> None:
    one = {"type": "message", "author": "user", "id": "same"}
    assert check(one, one, one) == [("P-ID", "same", "/id"), ("P-ID", "same", "/id")]


def test_unknown_types_and_members_are_welcome() -> None:
    odd = {"type": "vendor.thing", "content": 7, "callId": {}, "native": {"anything": 1}}
    assert check(odd, {**CALL, "vendor": {"a": [1]}, "native": {"refs": [], "vendor": None}}) == []


def test_messages_hold_nothing_a_terminal_obeys() -> None:
    nasty = "\x1b[2J\u202e\x9b\n" * 50
    record = {
        **CALL,
        "callIdSource": nasty,
        "seq": 0,
        "id": nasty,
        "supersedes": nasty,
        "kind": {nasty: nasty},
    }
    for finding in check_stream([Line(1, 0, json.dumps(record).encode())]):
        assert finding.message.isprintable()
        assert len(finding.message) < 400


def test_huge_integers_in_arguments_are_findings_at_their_place() -> None:
    text = (
        b'{"type":"tool_call","seq":0,"id":"r0","callId":"a","callIdSource":"native","name":"b","input":%s}\n'
    )
    wrong = [
        (b'{"a":[9007199254740993]}', "/input/a/0"),
        (b'{"a/b":{"~":-9007199254740992}}', "/input/a~1b/~0"),
        (b'{"a":1e400}', "/input/a"),
        (b'{"a":0.1000000000000000055511151231257827}', "/input/a"),
        (b'{"a":1,"a":2}', "/input/a"),
        (b'"\\udc00"', "/input"),
        (b"12345678901234567890", "/input"),
    ]
    for value, path in wrong:
        assert check_bytes(text % value) == [("ASR-254", "r0", path)], value
    for value in (
        b'{"a":9007199254740991}',
        b"1.5",
        b"0.1",
        b"1e3",
        b"-0.0",
        b'"\\ud83d\\ude00"',
        b"null",
        b'"1e400"',
    ):
        assert check_bytes(text % value) == [], value
