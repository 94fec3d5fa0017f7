"""Arguments and outputs that few readers keep, on lines that the fast lane refuses for one reason or another.

What could change by reading and writing stays as it was written (ASR-032, ASR-035, ASR-254): numbers that no double
holds, members written twice, half characters. Whether the rest of the line is usual must not matter.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.native.claude_code.conftest import Made, Read

LONG = '{"ratio": 0.1000000000000000055511151231257827, "id": 12345678901234567890}'
LOSSY = [
    '{"command":"a","command":"b"}',
    '{"command" : "a", "command" : "a"}',
    '{"n":1e400}',
    LONG,
    '{"deep":[{"k":1,"k":{"x":2e999}}]}',
    '{"command":"cut \\ud83d"}',
    '{"\\ud83d":1,"\\ud83e":2}',
]
PLAIN = ['{"command":"a"}', '{"command": "\\u00e9 \\ud83d\\ude00", "n": 1.50}', '{"n":[1,2.5,null]}']

CALL = '{"type":"tool_use","id":"t","name":"Bash","input":INPUT'
HALF = '{"type":"text","text":"\\ud83d"}'
WAYS = {
    "usual": CALL + "}",
    "a bare text before": '"bare",' + CALL + "}",
    "half a character elsewhere": HALF + "," + CALL + "}",
    "both": "5," + HALF + "," + CALL + "}",
    "a member that nobody reads": CALL + ',"caller":1e999}',
    "a number elsewhere": CALL + ',"is_error":1e999}',
}


def line(made: Made, way: str, given: str) -> bytes:
    record = json.dumps(made.record("assistant", message={"id": "m", "role": "assistant", "content": "HERE"}))
    return record.replace('"HERE"', f"[{WAYS[way].replace('INPUT', given)}]").encode()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", LOSSY)
def test_arguments_that_would_change_stay_text(made: Made, read: Read, way: str, given: str) -> None:
    made.raw(line(made, way, given))
    (call,) = read(made).of("tool_call")
    assert "input" not in call
    assert call["inputText"] == given


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("given", PLAIN)
def test_arguments_that_stay_are_values(made: Made, read: Read, way: str, given: str) -> None:
    made.raw(line(made, way, given))
    (call,) = read(made).of("tool_call")
    assert "inputText" not in call
    assert call["input"] == json.loads(given)


@pytest.mark.parametrize("content", ['{"a":1e400}', '{"a":1,"a":2}', LONG])
@pytest.mark.parametrize("elsewhere", ['"fine"', '"\\ud83d"', "1e999"])
def test_output_that_no_record_can_hold_is_exact_in_a_blob(
    made: Made, read: Read, content: str, elsewhere: str
) -> None:
    """``toolUseResult`` of a result, whatever else is wrong with its line."""
    made.call("t")
    record = json.dumps(
        made.record(
            "user",
            message={
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}],
            },
            toolUseResult="HERE",
            rendered="THERE",
        )
    )
    made.raw(record.replace('"HERE"', content).replace('"THERE"', elsewhere).encode())
    made.said("Done.", message="m2")
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    held: Any = json.dumps(result["raw"]) if "raw" in result else None
    capture = result.get("capture", {}).get("raw")
    if capture is None:
        assert content == '{"a":1,"a":2}'  # it stands in the record as it was written
        assert content.encode() in b"".join(sheet.reading.streams[0].lines)
    else:
        assert content.encode() in sheet.reading.blobs[capture["blob"]["blob"]]
        assert held is None


def test_what_is_kept_for_want_of_content_is_exact(read: Read) -> None:
    """No request carries the result: ``raw`` keeps the stored block, a member written twice included."""
    made = Made("2.1.332")
    made.call("t")
    block = (
        '{"type":"tool_result","tool_use_id":"t","content":[{"type":"x","n":1,"n":2e400}],"note":"\\ud83d"}'
    )
    record = json.dumps(made.record("user", message={"role": "user", "content": ["HERE"]}))
    made.raw(record.replace('"HERE"', block).encode())
    made.raw(b'{"type":"api-request","id":"q","keep":0,"tail":[],"timestamp":"2026-11-30T10:59:00.000Z"}')
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert "content" not in result
    assert block.encode() in sheet.reading.blobs[result["capture"]["raw"]["blob"]["blob"]]


def test_a_block_without_a_type_has_the_type_of_its_line(made: Made, read: Read) -> None:
    made.raw(line(made, "a bare text before", '{"command":"a"}'))
    (kept,) = read(made).of("unmapped")
    assert (kept["nativeType"], kept["value"]) == ("assistant", "bare")
