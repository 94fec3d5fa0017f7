"""Sent text of unusual make, read through the whole adapter: the readings also pass the kit."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from tests.native.claude_code.conftest import SESSION, Made, Read, Sheet

from callsheet.harness.claude_code.deliveries import Result
from callsheet.harness.claude_code.runs import Runs
from callsheet.harness.claude_code.sent_block import stored_content

STAMP = "2026-11-30T10:00:09.000Z"


@pytest.fixture
def made() -> Made:
    return Made("2.1.332")


def send(made: Made, *blocks: dict[str, Any]) -> None:
    """A request that brings its own copy of these blocks, and the reply to it."""
    message = {"role": "user", "content": list(blocks)}
    text = json.dumps(message, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    blob = {"type": "api-request-blob", "hash": key, "message": message, "sessionId": SESSION}
    made.raw(json.dumps(blob).encode())
    made.raw(
        json.dumps(
            {
                "type": "api-request",
                "id": f"request {len(made.lines)}",
                "keep": 0,
                "tail": [key],
                "timestamp": "2026-11-30T10:59:00.000Z",
                "version": made.version,
                "sessionId": SESSION,
            }
        ).encode()
    )
    made.said("Done.", message="msg_9")


def block(call_id: str, **members: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, **members}


def exact(sheet: Sheet, record: dict[str, Any], member: str) -> bytes:
    """The bytes of the blob that holds a member exactly."""
    capture = record["capture"][member]
    assert capture["state"] == "external"
    return sheet.reading.blobs[capture["blob"]["blob"]]


# -- one sent block, two results -------------------------------------------------------------------------------


def twins(made: Made) -> Made:
    made.prompt()
    made.call("t", input={"command": "a"}, message="msg_1")
    made.call("t", input={"command": "b"}, message="msg_2")
    return made


def test_one_sent_block_is_not_two_results(made: Made, read: Read) -> None:
    """Two calls of one id, each linked to its result: equal texts at one time are two results, and one was sent."""
    twins(made)
    for number in (1, 2):
        made.result(
            "t", "same", timestamp=STAMP, sourceToolAssistantUUID=json.loads(made.lines[number])["uuid"]
        )
    send(made, block("t", content="same"))
    sheet = read(made)
    results = sheet.of("tool_result")
    assert [result["linkage"] for result in results] == ["derived", "derived"]
    assert [result.get("content") for result in results] == [None, None]
    assert sheet.codes["ambiguous_delivery"] == 1


def test_a_result_written_twice_is_one_result(made: Made, read: Read) -> None:
    made.prompt()
    made.call("t")
    made.result("t", "same")
    made.raw(made.lines[-1])
    send(made, block("t", content="same"))
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert result["content"] == [{"type": "text", "text": "same"}]
    assert sheet.codes["ambiguous_delivery"] == 0


def test_history_logged_again_is_one_result(made: Made, read: Read) -> None:
    made.prompt()
    made.call("t")
    made.result("t", "same")
    for line in made.lines[1:3]:
        again = json.loads(line)
        made.raw(json.dumps({**again, "uuid": again["uuid"].replace("0000-4000", "1111-4000")}).encode())
    send(made, block("t", content="same"))
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert result["content"] == [{"type": "text", "text": "same"}]


# -- text that few readers take --------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", ["\n\n<note>seen by the model</note>", ""])
def test_half_a_character_that_was_sent(made: Made, read: Read, tail: str) -> None:
    made.prompt()
    made.call("t")
    stored = made.record("user", message={"role": "user", "content": [block("t", content="cut \ud83d")]})
    made.raw(json.dumps(stored).encode())
    send(made, block("t", content="cut \ud83d" + tail))
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert result["content"] == [{"type": "text", "text": "cut \ufffd" + tail}]
    assert json.loads(exact(sheet, result, "content")) == "cut \ud83d" + tail


def test_half_a_character_in_a_sent_part(made: Made, read: Read) -> None:
    made.prompt()
    made.call("t")
    made.result("t", "stored otherwise")
    parts = [{"type": "text", "text": "\udc00!"}, {"type": "text", "text": "fine"}]
    send(made, block("t", content=parts))
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert [part["text"] for part in result["content"]] == ["\ufffd!", "fine"]
    assert json.loads(exact(sheet, result, "content")) == parts


def test_what_is_cut_off_is_not_in_the_exact_text(made: Made, read: Read) -> None:
    """The exact text is that of the content, not of all that stands stored."""
    made.prompt()
    made.call("t")
    stored = made.record("user", message={"role": "user", "content": [block("t", content=" \ud83d \n")]})
    made.raw(json.dumps(stored).encode())
    made.add("attachment", attachment={"type": "x"}, rendered=[{"content": "a reminder"}])
    send(made, block("t", content="\ud83d\n\na reminder"))
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert result["content"] == [{"type": "text", "text": "\ufffd"}]
    assert json.loads(exact(sheet, result, "content")) == "\ud83d"


@pytest.mark.parametrize("members", [{}, {"content": None}, {"content": ""}])
def test_a_sent_block_without_content_is_an_empty_text(
    made: Made, read: Read, members: dict[str, Any]
) -> None:
    made.prompt()
    made.call("t")
    made.result("t", "x")
    send(made, block("t", **members))
    (result,) = read(made).of("tool_result")
    assert result["content"] == []
    assert "content" not in result.get("capture", {})


# -- cost ------------------------------------------------------------------------------------------------------


class Counted(list[Result]):
    """Results that count how often they are looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


def test_a_request_looks_only_at_new_results() -> None:
    """Blocks of one message between which requests pass: each result is looked at a bounded number of times."""
    results = Counted()
    runs = Runs(results)
    for number in range(2000):
        content = stored_content("x")
        results.append(Result(f"t{number}", number, number, 0, None, content, copied=True))
        runs.add([{"type": "tool_result"}], 10)
        runs.end("one message")
        assert runs.passed() == ()
    assert results.looks <= 4 * 2000


# -- numbers that no reader keeps -------------------------------------------------------------------------------


@pytest.mark.parametrize("half", ["", "\\ud83d"])
@pytest.mark.parametrize("number", ["1e400", "0.1000000000000000055511151231257827", "12345678901234567890", "7"])
def test_a_part_that_was_sent_keeps_its_numbers(made: Made, read: Read, number: str, half: str) -> None:
    made.prompt()
    made.call("t")
    made.result("t", "stored otherwise")
    odd = f'{{"type":"odd","n":{number}}}'
    at = len(made.lines)
    send(made, block("t", content=[{"type": "text", "text": "HALF"}, "HERE"]))
    made.lines[at] = made.lines[at].replace(b'"HERE"', odd.encode()).replace(b"HALF", b"cut " + half.encode())
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    text, part = result["content"]
    assert text["text"] == "cut " + "\ufffd" * bool(half)
    if number == "7":
        assert part == {"type": "json", "value": {"type": "odd", "n": 7}}
    else:
        assert part["type"] == "file"
        assert sheet.reading.blobs[part["blob"]["blob"]] == odd.encode()
