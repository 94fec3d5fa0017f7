"""Logs with frames that were lost, moved or changed: what is left is read, and every fact of it has evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.native.held import Record, held

S = "sess_1"
Frame = dict[str, Any]


def sent(frame: Frame) -> Frame:
    return {"dir": "client_to_agent", "ts": "2026-11-30T10:00:00.000Z", "frame": {"jsonrpc": "2.0", **frame}}


def came(frame: Frame) -> Frame:
    return {"dir": "agent_to_client", "ts": "2026-11-30T10:00:01.000Z", "frame": {"jsonrpc": "2.0", **frame}}


def update(name: str, /, **members: Any) -> Frame:
    params = {"sessionId": S, "update": {"sessionUpdate": name, **members}}
    return came({"method": "session/update", "params": params})


HELLO = sent({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
AGENT = came({"id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "toy", "version": "7"}}})
BEGIN = sent({"id": 1, "method": "session/new", "params": {"cwd": "/home/dev/acme-app"}})
BEGUN = came({"id": 1, "result": {"sessionId": S}})
PROMPT = {"id": 2, "method": "session/prompt"}
LOAD = sent({"id": 3, "method": "session/load", "params": {"sessionId": S, "cwd": "/home/dev/acme-app"}})
DONE = {"toolCallId": "c1", "status": "completed", "rawOutput": "done"}


def read(tmp_path: Path, *lines: Any) -> list[Record]:
    path = tmp_path / "frames.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return held(path, tmp_path / "out", "acp")


def test_a_frame_names_the_session_before_its_request(tmp_path: Path) -> None:
    (head, *_) = read(tmp_path, HELLO, AGENT, update("plan", entries=[]), BEGIN, BEGUN)
    assert head["roots"] == {"project": "/home/dev/acme-app"}


def test_the_agent_says_its_name_late(tmp_path: Path) -> None:
    (head, *_) = read(tmp_path, HELLO, BEGIN, BEGUN, AGENT)
    assert head["agent"] == {"name": "toy", "version": "7"}


def test_a_bare_frame_with_half_a_character_is_a_frame(tmp_path: Path) -> None:
    odd = {"jsonrpc": "2.0", "id": 9, "method": "later/method", "params": {"cwd": "\ud800"}}
    found = read(tmp_path, HELLO, AGENT, BEGIN, BEGUN, odd, [odd])
    assert [one["nativeType"] for one in found if one["type"] == "unmapped"][-2:] == ["later/method"] * 2


def test_messages_in_pieces_with_half_a_character(tmp_path: Path) -> None:
    """The blob holds every piece as it was written, the prompt's items, too."""
    good, odd = {"type": "text", "text": "Running "}, {"type": "text", "text": "a \ud800 command"}
    found = read(
        tmp_path,
        HELLO,
        AGENT,
        BEGIN,
        BEGUN,
        sent({**PROMPT, "params": {"sessionId": S, "prompt": [good, odd]}}),
        update("agent_message_chunk", content=good),
        update("agent_message_chunk", content=odd),
    )
    said = [one for one in found if one["type"] == "message"]
    assert [one["capture"]["content"]["state"] for one in said] == ["external"] * 2
    blobs = [one["capture"]["content"]["blob"]["blob"].removeprefix("sha256:") for one in said]
    for name in blobs:
        (path,) = (tmp_path / "out").glob(f"*/blobs/sha256/{name[:2]}/{name[2:]}")
        assert json.loads(path.read_bytes()) == [good, odd]


def test_a_replay_tells_an_end_that_the_log_has_lost(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        HELLO,
        AGENT,
        BEGIN,
        BEGUN,
        sent({**PROMPT, "params": {"sessionId": S, "prompt": []}}),
        update("tool_call", toolCallId="c1", title="ls", kind="execute", status="pending"),
        came({"id": 2, "result": {"stopReason": "end_turn"}}),
        LOAD,
        update("tool_call_update", **DONE),
        update("tool_call_update", **DONE),
        came({"id": 3, "result": {}}),
    )
    assert [one["status"] for one in found if one["type"] == "tool_result"] == ["completed"]


def test_a_result_of_a_replay_whose_terminal_was_told_before(tmp_path: Path) -> None:
    terminal = {"type": "terminal", "terminalId": "t1"}
    second = came({"id": 0, "result": {"protocolVersion": 2, "info": {"name": "toy"}}})
    found = read(
        tmp_path,
        update("terminal_update", terminalId="t1", command="ls"),
        second,
        sent({"id": 3, "method": "session/resume", "params": {"sessionId": S, "cwd": "/home/dev/acme-app"}}),
        update("tool_call_update", **DONE, content=[terminal]),
        came({"id": 3, "result": {}}),
    )
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert result["exec"]["terminalId"] == "t1"
    assert result["native"]["inherited"] == {"session": S}


HUGE = 2**64
HELLO_2 = sent({"id": 0, "method": "initialize", "params": {"protocolVersion": 2}})
AGENT_2 = came({"id": 0, "result": {"protocolVersion": 2, "info": {"name": "toy", "version": "7"}}})
OPENCODE = came({"id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "OpenCode", "version": "1.18.33"}}})
LOADED = came({"id": 3, "result": {}})
TEXT = {"type": "text", "text": "Hi."}


def test_a_line_that_holds_a_byte_order_mark_alone_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "frames.jsonl"
    lines = [json.dumps(one).encode() for one in (HELLO, AGENT, BEGIN, BEGUN)]
    path.write_bytes(b"\n".join([*lines[:2], b"\xef\xbb\xbf", *lines[2:], b"\xef\xbb\xbf\r", b""]))
    assert [one["type"] for one in held(path, tmp_path / "out", "acp")] == ["session"]


def test_numbers_that_no_reader_keeps_say_nothing(tmp_path: Path) -> None:
    odd = came({"id": 0, "result": {"protocolVersion": HUGE, "agentInfo": {"name": "toy"}}})
    usage = [update("usage_update", used=HUGE, size=200), update("usage_update", used=-HUGE, size=HUGE)]
    found = read(tmp_path, HELLO, odd, BEGIN, BEGUN, *usage)
    (told,) = (one for one in found if one["type"] == "usage")
    assert (told.get("contextUsed"), told["contextWindow"]) == (None, 200)
    assert "extra" not in found[0]["native"]


def test_a_name_that_is_no_text_is_none(tmp_path: Path) -> None:
    call = update("tool_call", toolCallId="c1", title="Odd", name={"of": "Read"}, kind=5, status="pending")
    found = read(tmp_path, HELLO, AGENT, BEGIN, BEGUN, call)
    (record,) = (one for one in found if one["type"] == "tool_call")
    assert record["capture"]["name"]["state"] == "absent"
    assert "kind" not in record


def test_a_block_that_no_reader_keeps_is_told_as_its_text(tmp_path: Path) -> None:
    odd = {"type": "later", "count": HUGE}
    said = [update("agent_message_chunk", content=TEXT), update("agent_message_chunk", content=odd)]
    asked = sent({"id": 4, "method": "session/prompt", "params": {"sessionId": S, "prompt": [odd, TEXT]}})
    told = update("session_message", messageId="m", content=[odd, TEXT])
    found = read(tmp_path, HELLO, AGENT, BEGIN, BEGUN, asked, *said, told)
    texts = [one["content"][0]["text"] for one in found if one["type"] == "message"]
    spelled = f'{{"type": "later", "count": {HUGE}}}'
    assert texts == [f"{spelled}Hi.", f"Hi.{spelled}", spelled]


def test_a_piece_without_content_is_no_word_of_the_model(tmp_path: Path) -> None:
    call = update("tool_call", toolCallId="c1", title="x", status="completed", rawOutput={"output": "done"})
    asked = sent({"id": 4, "method": "session/prompt", "params": {"sessionId": S, "prompt": [TEXT]}})
    start = (HELLO, OPENCODE, BEGIN, BEGUN, asked, call)
    for number, (said, sure) in enumerate([({}, False), ({"content": TEXT}, True)]):
        (tmp_path / str(number)).mkdir()
        found = read(tmp_path / str(number), *start, update("agent_message_chunk", messageId="m", **said))
        assert any("content" in one for one in found if one["type"] == "tool_result") is sure


def test_an_answer_to_a_request_in_a_torn_line_is_one(tmp_path: Path) -> None:
    path = tmp_path / "frames.jsonl"
    mode = sent({"id": 5, "method": "session/set_mode", "params": {"sessionId": S, "modeId": "ask"}})
    torn = json.dumps(mode).replace('"ts"', "ts", 1)
    lines = [*map(json.dumps, (HELLO, AGENT, BEGIN, BEGUN)), torn, json.dumps(came({"id": 5, "result": {}}))]
    path.write_text("".join(f"{line}\n" for line in lines))
    found = held(path, tmp_path / "out", "acp")
    kept = [one["nativeType"] for one in found if one["type"] == "unmapped"]
    assert kept == ["session/set_mode", "session/set_mode response"]


def test_a_whole_message_that_goes_on_in_pieces(tmp_path: Path) -> None:
    whole = update("agent_message", messageId="m", content=[TEXT])
    more = update("agent_message_chunk", messageId="m", content=TEXT)
    other = update("notice", title="Meanwhile.")
    found = read(tmp_path, HELLO_2, AGENT_2, BEGIN, BEGUN, whole, other, more)
    assert [one["content"][0]["text"] for one in found if one.get("messageId")] == ["Hi.", "Hi.Hi."]


def test_a_message_that_a_replay_emptied_is_no_replay_afterwards(tmp_path: Path) -> None:
    load = sent({"id": 3, "method": "session/resume", "params": {"sessionId": S, "cwd": "/home/dev/acme-app"}})
    empty = update("agent_message", messageId="m", content=[])
    more = update("agent_message_chunk", messageId="m", content=TEXT)
    found = read(tmp_path, HELLO_2, AGENT_2, load, empty, LOADED, more)
    marked = ["inherited" in one["native"] for one in found if one["type"] == "message"]
    assert marked == [True, False]


def test_an_agent_that_begins_anew_replays_no_more(tmp_path: Path) -> None:
    more = update("agent_message_chunk", messageId="m", content=TEXT)
    found = read(tmp_path, HELLO, AGENT, LOAD, HELLO, LOADED, more)
    assert ["inherited" in one["native"] for one in found if one["type"] == "message"] == [False]


def test_a_process_ends_once(tmp_path: Path) -> None:
    """What is told of its end later takes nothing back: a terminal is a whole snapshot."""
    ends: list[Any] = [{"exitCode": 137}, {}, None, 5, {"exitCode": None, "signal": ["x"]}, {"signal": "SIGTERM"}]
    told = [update("terminal_update", terminalId="t1", exitStatus=end) for end in ends]
    found = read(tmp_path, HELLO_2, AGENT_2, BEGIN, BEGUN, *told)
    states = [(one["status"], one.get("exitCode"), one.get("signal")) for one in found if one["type"] == "terminal"]
    assert set(states) == {("exited", 137, None)}


def test_an_end_that_says_nothing_may_be_followed_by_one_that_does(tmp_path: Path) -> None:
    told = [update("terminal_update", terminalId="t1", exitStatus=end) for end in ({}, {"signal": "SIGKILL"})]
    found = read(tmp_path, HELLO_2, AGENT_2, BEGIN, BEGUN, *told)
    assert [one["status"] for one in found if one["type"] == "terminal"] == ["unknown", "killed"]


def test_a_diff_without_a_path_is_shown_as_it_is(tmp_path: Path) -> None:
    items = [{"type": "diff", "newText": "b"}, {"type": "diff", "newText": "b", "path": "/a"}]
    call = update("tool_call", toolCallId="c1", title="x", status="completed", content=items)
    found = read(tmp_path, HELLO, AGENT, BEGIN, BEGUN, call)
    (result,) = (one for one in found if one["type"] == "tool_result")
    assert [part["type"] for part in result["displayContent"]] == ["json", "diff"]


def test_a_change_that_is_shown_after_the_end_of_its_call(tmp_path: Path) -> None:
    item = {"type": "diff", "changes": [{"operation": "add", "path": "/a"}]}
    ended = update("tool_call_update", toolCallId="c1", status="completed")
    late = update("tool_call_update", toolCallId="c1", status="in_progress", content=[item])
    found = read(tmp_path, HELLO_2, AGENT_2, BEGIN, BEGUN, ended, late)
    assert [one["state"] for one in found if one["type"] == "file_change"] == ["applied"]


def test_half_a_character_in_a_request_and_in_a_block(tmp_path: Path) -> None:
    options = [{"optionId": "a", "name": "\ud800", "kind": "allow_once"}]
    params = {"sessionId": S, "toolCall": {"toolCallId": "c1"}, "options": options}
    ask = came({"id": 7, "method": "session/request_permission", "params": params})
    answer = sent({"id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "a"}}})
    odd = update("agent_message_chunk", content="\ud800")
    found = read(tmp_path, HELLO, AGENT, BEGIN, BEGUN, ask, answer, odd)
    assert [one["capture"]["title"]["state"] for one in found if one["type"] == "permission"] == ["external"] * 2
    assert [one["content"][0]["type"] for one in found if one["type"] == "message"] == ["json"]


def test_a_command_that_is_no_text_says_nothing(tmp_path: Path) -> None:
    told = [update("terminal_update", terminalId="t1", command=one, exitStatus={}) for one in ("ls", ["x"])]
    found = read(tmp_path, HELLO_2, AGENT_2, BEGIN, BEGUN, *told)
    assert {one["command"] for one in found if one["type"] == "terminal"} == {"ls"}
