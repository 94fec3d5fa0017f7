"""Damaged and strange files: the bad line says where and why, and costs nothing else.

Every reading here also passes the kit (the fixture ``read``): refs are true and no byte is lost.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.library.importing import Failure, Imported, import_sources
from tests.native.claude_code.conftest import Made, Read, Sheet, text_of


def three(made: Made) -> Made:
    """A prompt, a call with its result, a reply: four lines."""
    made.prompt("Say it.")
    made.call("toolu_a", input={"command": "echo a"})
    made.result("toolu_a", "a")
    made.said("Done.", message="msg_2")
    return made


def gaps(sheet: Sheet) -> list[tuple[str, int, int, int]]:
    return [(gap["reason"], gap["line"], gap["offset"], gap["bytes"]) for gap in sheet.of("gap")]


def is_whole(sheet: Sheet) -> bool:
    """Whether the four lines of ``three`` are all there."""
    said = [part["text"] for message in sheet.of("message") for part in message["content"]]
    return sheet.pairs() == [("echo a", "a")] and said == ["Say it.", "Done."]


def test_a_torn_tail_is_read_when_it_has_grown(made: Made, read: Read) -> None:
    data = three(made).data
    made.call("toolu_b", input={"command": "echo b"})
    grown = made.data
    for cut in (1, 40, len(grown) - len(data) - 2):
        sheet = read(data + grown[len(data) : len(data) + cut])
        assert is_whole(sheet)
        assert gaps(sheet) == [("torn_tail", 5, len(data), cut)]
        assert sheet.codes["torn_tail"] == 1
    assert read(grown).tally().dangling == 1


def test_a_last_line_without_its_lf_is_a_line(made: Made, read: Read) -> None:
    sheet = read(three(made).data[:-1])
    assert is_whole(sheet)
    assert gaps(sheet) == []


def test_two_records_on_one_line(made: Made, read: Read) -> None:
    three(made)
    made.lines[1:3] = [made.lines[1] + made.lines[2]]
    sheet = read(made)
    assert is_whole(sheet)
    assert gaps(sheet) == []
    assert [ref["line"] for record in sheet.of("tool_result") for ref in record["native"]["refs"]] == [2]


def test_very_many_records_on_one_line(made: Made, read: Read) -> None:
    for number in range(1500):
        made.call(f"t{number}", input={"command": f"echo {number}"})
        made.result(f"t{number}", str(number))
    sheet = read(b"".join(made.lines) + b"\n")
    assert sheet.pairs() == [(f"echo {number}", str(number)) for number in range(1500)]
    assert gaps(sheet) == []


def test_a_torn_record_before_a_whole_one_on_one_line(made: Made, read: Read) -> None:
    """A crash cut the first record; the next start of the agent appended to the same line."""
    three(made)
    torn = made.lines[0][:50]
    made.lines[0] = torn + made.lines[0]
    sheet = read(made)
    assert is_whole(sheet)
    assert gaps(sheet) == [("bad_json", 1, 0, len(torn))]


def test_objects_inside_a_torn_record_are_no_records(made: Made, read: Read) -> None:
    three(made)
    inner = b'{"type":"text","text":"never said"}'
    made.lines.insert(1, b'{"type":"assistant","message":{"content":[' + inner + b"]")
    sheet = read(made)
    assert is_whole(sheet)
    assert [gap[:2] for gap in gaps(sheet)] == [("bad_json", 2)]


@pytest.mark.parametrize("count", [1, 512, 4096 * 3])
def test_nul_bytes_around_records(made: Made, read: Read, count: int) -> None:
    three(made)
    nuls = b"\0" * count
    made.lines[0] = made.lines[0] + nuls
    made.lines[1] = nuls + made.lines[1]
    made.lines.insert(3, nuls)
    data = made.data + nuls
    sheet = read(data)
    assert is_whole(sheet)
    assert [(reason, line, size) for reason, line, _, size in gaps(sheet)] == [
        ("nul", 1, count),
        ("nul", 2, count),
        ("nul", 4, count),
        ("nul", 6, count),
    ]


def test_separators_of_other_worlds_end_no_line(made: Made, read: Read) -> None:
    strange = "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg\rh"
    made.prompt(strange)
    made.call("toolu_a", input={"command": strange})
    made.result("toolu_a", strange)
    # As some writers do: unescaped where JSON allows it.
    assert "\u2028".encode() in made.data
    sheet = read(made)
    assert gaps(sheet) == []
    assert sheet.of("message")[0]["content"][0]["text"] == strange
    assert sheet.pairs() == [(strange, strange)]


def test_crlf_and_blank_lines_and_a_byte_order_mark(made: Made, read: Read) -> None:
    data = b"\xef\xbb\xbf" + b"\r\n\r\n".join(three(made).lines) + b"\r\n \t\r\n\n"
    sheet = read(data)
    assert is_whole(sheet)
    assert gaps(sheet) == []


def test_bad_utf8_is_one_gap_a_line(made: Made, read: Read) -> None:
    three(made)
    bad = made.lines[0].replace(b"Say it.", b"Say \xff\xfe it.")
    made.lines.insert(2, bad)
    sheet = read(made)
    assert is_whole(sheet)
    assert [gap[0] for gap in gaps(sheet)] == ["bad_utf8"]
    assert gaps(sheet)[0][3] == len(bad)


def test_a_file_in_another_encoding_is_gaps(made: Made, read: Read) -> None:
    data = three(made).data.decode().encode("utf-16")
    sheet = read(data)
    assert {gap[0] for gap in gaps(sheet)} <= {"bad_utf8", "bad_json", "torn_tail", "nul"}
    assert len(gaps(sheet)) >= 4


@pytest.mark.parametrize("opened", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
def test_depth_bombs(made: Made, read: Read, opened: bytes, depth: int) -> None:
    three(made)
    closed = b"]" if opened == b"[" else b"}"
    bomb = opened * depth + b"1" + closed * depth
    made.lines.insert(2, bomb)
    made.lines.insert(4, made.lines[3].replace(b'"a"', bomb, 1).replace(b"toolu_a", b"toolu_z"))
    made.lines.append(bomb[: len(bomb) // 2])
    sheet = read(made)
    assert ("echo a", "a") in sheet.pairs()
    assert {gap[0] for gap in gaps(sheet)} <= {"too_deep", "bad_json"}
    assert sheet.of("message")[-1]["content"][0]["text"] == "Done."


@pytest.mark.parametrize(
    "line", [b"42", b'"text"', b"[]", b"null", b"true", b"-0.0", b"{}", b'{"type":7}', b'{"type":null}']
)
def test_values_that_are_no_records_are_kept(made: Made, read: Read, line: bytes) -> None:
    three(made)
    made.lines.insert(1, line)
    sheet = read(made)
    assert is_whole(sheet)
    assert gaps(sheet) == []
    (kept,) = [record for record in sheet.of("unmapped") if record["native"]["refs"][0]["line"] == 2]
    assert kept["value"] == json.loads(line)


@pytest.mark.parametrize(
    "line", [b"NaN", b"{'type':'user'}", b'{"a":Infinity}', b"x" * 1000, b'{"a":1}}', b"//", b'{"a":"\x01"}']
)
def test_lines_that_are_no_json(made: Made, read: Read, line: bytes) -> None:
    three(made)
    made.lines.insert(1, line)
    sheet = read(made)
    assert is_whole(sheet)
    assert {gap[:2] for gap in gaps(sheet)} == {("bad_json", 2)}


def test_garbage_behind_a_record(made: Made, read: Read) -> None:
    three(made)
    size = len(made.lines[0])
    made.lines[0] += b" trailing"
    sheet = read(made)
    assert is_whole(sheet)
    assert gaps(sheet) == [("bad_json", 1, size + 1, len(b"trailing"))]


# -- values that do not survive ------------------------------------------------------------------------------------

BIG = 12345678901234567890123


def test_numbers_in_arguments_that_no_reader_keeps(made: Made, read: Read) -> None:
    for number, text in enumerate(
        [str(BIG), "1e400", "0.1000000000000000055511151231257827", "-" + "9" * 5000]
    ):
        record = made.record(
            "assistant",
            message={
                "id": f"m{number}",
                "content": [{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"n": "@"}}],
            },
        )
        made.raw(json.dumps(record).replace('"@"', text).encode())
    sheet = read(made)
    assert [call.get("input") for call in sheet.of("tool_call")] == [None] * 4
    assert [call["inputText"] for call in sheet.of("tool_call")] == [
        f'{{"n": {text}}}'
        for text in (str(BIG), "1e400", "0.1000000000000000055511151231257827", "-" + "9" * 5000)
    ]


def test_repeated_keys_in_arguments_are_kept_as_text(made: Made, read: Read) -> None:
    record = made.record(
        "assistant",
        message={"id": "m", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": "@"}]},
    )
    made.raw(json.dumps(record).replace('"@"', '{"command":"a","command":"b"}').encode())
    (call,) = read(made).of("tool_call")
    assert call["inputText"] == '{"command":"a","command":"b"}'
    assert "input" not in call


def blob_of(sheet: Sheet, record: dict[str, Any], member: str) -> bytes:
    capture = record["capture"][member]
    assert capture["state"] == "external"
    return sheet.reading.blobs[capture["blob"]["blob"]]


def test_numbers_in_a_tools_report_go_to_a_blob(made: Made, read: Read) -> None:
    made.call("toolu_a")
    record = made.record(
        "user",
        message={
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_a", "content": "a"}],
        },
        toolUseResult={"n": "@"},
    )
    made.raw(json.dumps(record).replace('"@"', str(BIG)).encode())
    made.said("Done.", message="msg_2")
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert "raw" not in result
    assert str(BIG).encode() in blob_of(sheet, result, "raw")


def test_large_reports_go_to_a_blob(made: Made, read: Read) -> None:
    made.call("toolu_a")
    report = {"stdout": "é" * 100_000, "stderr": "", "interrupted": False}
    made.result("toolu_a", "short", toolUseResult=report)
    made.said("Done.", message="msg_2")
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert result["content"] == [{"type": "text", "text": "short"}]
    assert msgspec.json.decode(blob_of(sheet, result, "raw")) == report
    assert blob_of(sheet, result, "exec.stdout").decode() == report["stdout"]
    assert "stdout" not in result["exec"]


LONE = "cut \ud83d end"
SEEN = "cut \ufffd end"


def lone(made: Made, record: dict[str, Any]) -> None:
    made.raw(json.dumps(record, ensure_ascii=True).encode())


def test_half_an_emoji_in_words(made: Made, read: Read) -> None:
    lone(made, made.record("user", message={"role": "user", "content": LONE}))
    lone(
        made,
        made.record("assistant", message={"id": "m", "content": [{"type": "thinking", "thinking": LONE}]}),
    )
    sheet = read(made)
    for record in (sheet.of("message")[0], sheet.of("reasoning")[0]):
        assert record["content"] == [{"type": "text", "text": SEEN}]
        assert b"cut \\ud83d end" in blob_of(sheet, record, "content")


def test_half_an_emoji_in_arguments(made: Made, read: Read) -> None:
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": LONE}}
    lone(made, made.record("assistant", message={"id": "m", "content": [block]}))
    (call,) = read(made).of("tool_call")
    assert call["inputText"] == '{"command": "cut \\ud83d end"}'


@pytest.mark.parametrize("replied", [True, False])
def test_half_an_emoji_in_a_result(made: Made, read: Read, replied: bool) -> None:
    made.call("toolu_a")
    content = [{"type": "tool_result", "tool_use_id": "toolu_a", "content": LONE, "is_error": False}]
    report = {"stdout": LONE, "stderr": ""}
    lone(made, made.record("user", message={"role": "user", "content": content}, toolUseResult=report))
    if replied:
        made.said("Done.", message="msg_2")
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert text_of(result) == SEEN
    assert result["exec"]["stdout"] == SEEN
    assert b"cut \\ud83d end" in blob_of(sheet, result, "raw")
    if replied:
        assert blob_of(sheet, result, "content") == b'"cut \\ud83d end"'


def test_half_an_emoji_in_a_key_and_an_id(made: Made, read: Read) -> None:
    made.call("toolu_a")
    lone(
        made,
        made.record(
            "user",
            message={
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": LONE, "content": {LONE: 1}}],
            },
        ),
    )
    lone(made, made.record("system", subtype=LONE, content=LONE))
    lone(made, made.record("novelty", **{LONE: LONE}))
    sheet = read(made)
    assert sheet.tally().orphan == 1
    assert len(sheet.of("unmapped")) == 2


# -- whole files ---------------------------------------------------------------------------------------------------


def test_a_line_of_ten_megabytes(made: Made, read: Read) -> None:
    words = "word " * 2_000_000
    made.call("toolu_a", name="Read", input={"file_path": "/a"})
    made.result("toolu_a", words, toolUseResult={"type": "text", "file": {"content": words}})
    made.said("Done.", message="msg_2")
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert result["content"][0]["text"] == words
    assert msgspec.json.decode(blob_of(sheet, result, "raw"))["file"]["content"] == words


def imported(tmp_path: Path, data: bytes, name: str = "session.jsonl") -> list[Imported | Failure]:
    path = tmp_path / name
    path.write_bytes(data)
    return list(import_sources([path], tmp_path / "out"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n", "fits no known kind"),
        (b"\0" * 4096, "fits no known kind"),
        (b"words\n" * 9, "fits no known kind"),
    ],
)
def test_a_file_that_is_no_session_is_one_clear_failure(tmp_path: Path, data: bytes, message: str) -> None:
    (told,) = imported(tmp_path, data)
    assert isinstance(told, Failure)
    assert message in told.message
    assert told.path == str(tmp_path / "session.jsonl")
    assert not (tmp_path / "out").exists() or list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"\n", b"\0" * 4096, b"words\n" * 9])
def test_the_person_may_say_that_it_is_a_session_all_the_same(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(data)
    (told,) = import_sources([path], tmp_path / "out", kind="claude-code")
    assert isinstance(told, Imported)
    assert told.gaps == len([line for line in data.split(b"\n") if line.strip()])


def test_a_bad_file_costs_the_others_nothing(tmp_path: Path, made: Made) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.jsonl").write_bytes(three(made).data)
    (tmp_path / "in" / "empty.jsonl").write_bytes(b"")
    (tmp_path / "in" / "other.jsonl").write_bytes(b'{"hello":"world"}\n')
    told = list(import_sources([tmp_path / "in", tmp_path / "missing"], tmp_path / "out"))
    assert [Path(one.path).name for one in told if isinstance(one, Failure)] == [
        "empty.jsonl",
        "other.jsonl",
        "missing",
    ]
    assert [one.calls for one in told if isinstance(one, Imported)] == [1]


# -- nested almost too deeply, in every place ----------------------------------------------------------------------

RESULT = {"type": "tool_result", "tool_use_id": "toolu_a"}
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "input": ("assistant", {"message": {"id": "m", "content": [{"type": "tool_use", "id": "t", "name": "AskUserQuestion", "input": "@"}]}}),
    "block": ("assistant", {"message": {"id": "m", "content": ["@"]}}),
    "usage": ("assistant", {"message": {"id": "m", "content": [], "usage": "@"}}),
    "result": ("user", {"message": {"content": [{**RESULT, "content": "@"}]}}),
    "report": ("user", {"message": {"content": [{**RESULT, "content": "x"}]}, "toolUseResult": "@"}),
    "members": ("user", {"message": {"content": [{**RESULT, "content": "x"}]}, "toolUseResult": {"questions": "@", "task": "@", "newTodos": ["@"], "structuredPatch": "@", "filePath": "/a"}}),
    "attachment": ("attachment", {"attachment": "@", "rendered": "@"}),
    "boundary": ("system", {"subtype": "compact_boundary", "compactMetadata": "@", "durationMs": "@"}),
    "message": ("user", {"message": "@"}),
    "unknown": ("novelty", {"content": "@"}),
    "request": ("api-request-blob", {"hash": "0" * 64, "message": {"role": "user", "content": ["@", {**RESULT, "content": "@"}]}}),
}  # fmt: skip


@pytest.mark.parametrize("leaf", ['"x"', '"\\ud83d"', "12345678901234567890", "1e400", '{"a":1,"a":2}'])
@pytest.mark.parametrize("place", [*PLACES, "line"])
def test_deep_values_in_every_place(made: Made, read: Read, place: str, leaf: str) -> None:
    for depth in (1, 30, 450, 600, 900, 1200, 4000):
        session = Made("2.1.332")
        session.call("toolu_a")
        kind, members = PLACES.get(place, ("", {}))
        text = json.dumps(session.record(kind, **members)) if kind else '"@"'
        session.raw(text.replace('"@"', "[" * depth + leaf + "]" * depth).encode())
        session.said("Done.", message="msg_2")
        sheet = read(session)
        assert sheet.of("message")[-1]["content"][0]["text"] == "Done."
        if depth < 30:
            assert gaps(sheet) == []
        if depth > 1100:
            assert [gap[:2] for gap in gaps(sheet)] == [("too_deep", 2)]
