"""Frames of stream-json: what each becomes, and what it never becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.audit.frames import LOGS, QUESTION, SUGGESTIONS, Frames, bare, recorded
from tests.native.claude_code.conftest import Sheet

from callsheet.harness import HARNESSES
from callsheet.harness.claude_code import CLAUDE_CODE_STREAM
from callsheet.library.importing import Failure, import_sources
from callsheet.testing.check_harness import check_harness, check_reading
from callsheet.testing.desk import Files, read_session

PATH = "/p/frames.jsonl"
Read = Callable[[Frames | str], Sheet]


@pytest.fixture
def read() -> Read:
    def reading(log: Frames | str) -> Sheet:
        text = log if isinstance(log, str) else log.text
        files = Files({PATH: text.encode()})
        (session,) = CLAUDE_CODE_STREAM.sessions(PATH, files)
        found = read_session(CLAUDE_CODE_STREAM, session, files)
        assert check_reading(found) == []
        sheet = Sheet(found)
        sheet.main = next(stream.id for stream in found.streams if stream.parent is None)
        sheet.records = sheet.streams[sheet.main]
        return sheet

    return reading


def begun(timed: str | None = None) -> Frames:
    log = Frames(timed)
    log.init()
    return log


# -- the adapter ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOGS)
def test_the_adapter_keeps_its_word(name: str) -> None:
    """Among other things: chunks of a few bytes give the same records as the whole."""
    assert check_harness(CLAUDE_CODE_STREAM, Files({PATH: LOGS[name].encode()}), PATH) == []


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_known_by_its_content_and_by_no_other_adapter(name: str) -> None:
    head = LOGS[name].encode()
    assert [one.kind for one in HARNESSES if one.recognises("x.jsonl", head)][0] == "claude-code-stream"


def test_a_stored_session_is_no_log() -> None:
    line = {"type": "user", "sessionId": "s", "session_id": "s", "uuid": "u", "message": {"content": "x"}}
    assert not CLAUDE_CODE_STREAM.recognises("x.jsonl", json.dumps(line).encode())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'"x"',
        b"nonsense",
        b"{}",
        b'{"type":5,"message":[]}',
        b'{"dir":"sideways","frame":{"type":"assistant"}}',
        b'{"dir":"out","frame":[1]}',
        b'{"type":"assistant","message":{"content":[5,{"type":"tool_use"},{"type":"tool_use","id":{}}]}}',
        b'{"type":"user","message":{"content":[{"type":"tool_result"},{"type":"tool_result","tool_use_id":7}]}}',
        b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"#x"}]},"tool_result_meta":[5]}',
        b'{"type":"assistant","message":{"id":"m","content":"a text"}}',
        b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"half \\ud800 a character"}]}}',
        b'{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"\\ud800"}]},'
        b'"tool_use_result":{"stdout":"\\udc00","stderr":""}}',
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"x","input":{"a":1e999}}]}}',
        b'{"type":"stream_event","event":{"type":"content_block_delta","index":99}}',
        b'{"type":"stream_event","event":5}',
        b'{"type":"system","subtype":"task_started","task_id":"t","task_type":"local_agent","tool_use_id":5}',
        b'{"type":"system","subtype":"hook_started"}',
        b'{"type":"result","uuid":"u","usage":5,"modelUsage":[]}',
        b'{"type":"control_request","request_id":"q","request":5}',
        b'{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool"}}',
        b'{"type":"control_request","request_id":"q","request":{"subtype":"elicitation","requested_schema":[]}}',
        b'{"type":"control_response","response":5}',
        b'{"type":"control_cancel_request","request_id":"nobody"}',
        b'{"type":"system","subtype":"init","session_id":"another","uuid":"u","mcp_servers":5,"cwd":7}',
        b'{"type":"future_event","x":' + b"[" * 500 + b"]" * 500 + b"}",
    ],
)
def test_odd_lines_cost_nothing_but_themselves(line: bytes) -> None:
    """Anywhere in a log, bare or wrapped: no exception, no line lost, no rule broken."""
    for text in (bare(), recorded()):
        lines = text.encode().splitlines()
        wrapped = b'{"ts":"2026-11-30T10:00:00Z","dir":"out","frame":' + line + b"}"
        for one in (line, wrapped):
            for at in (0, len(lines) // 2):
                data = b"\n".join([*lines[:at], one, *lines[at:]]) + b"\n"
                assert check_harness(CLAUDE_CODE_STREAM, Files({PATH: data}), PATH) == []


# -- calls and results ------------------------------------------------------------------------------------------


def test_pieces_are_replaced_by_what_they_complete(read: Read) -> None:
    log = begun()
    log.piece({"type": "message_start"})
    log.piece({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for word in ("Hello ", "there"):
        log.piece({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
    log.said("msg_p", "Hello there")
    sheet = read(log)
    assert [one["content"][0]["text"] for one in sheet.of("message")] == ["Hello there"]
    assert len(sheet.of("message")[0]["native"]["refs"]) == 4


def test_arguments_are_the_models_own_where_pieces_show_them(read: Read) -> None:
    calls = {one["callId"]: one for one in reversed(read(recorded()).of("tool_call"))}
    assert calls["p-big"]["inputText"] == '{"n": 123456789012345678901}'
    assert "input" not in calls["p-big"]
    assert calls["p-own"]["input"] == {"a": 1, "b": "x "}


def test_pieces_of_what_never_came_are_kept(read: Read) -> None:
    log = begun()
    block = {"type": "tool_use", "id": "never", "name": "Bash", "input": {}}
    log.piece({"type": "content_block_start", "index": 0, "content_block": block})
    log.piece({"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"comm'}})
    sheet = read(log)
    assert not sheet.of("tool_call")
    assert len([one for one in sheet.of("unmapped") if one["nativeType"] == "stream_event"]) == 2


def test_a_result_has_content_when_the_model_replied_and_captures_show_that_it_was_sent(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "ls"})
    log.result("c1", "a.txt", error=False, tool_use_result={"stdout": "a.txt", "stderr": ""})
    assert "content" not in read(log).last("tool_result")[0]
    log.calls("msg_1", "c2", "Bash", {"command": "ls"})
    assert "content" not in read(log).last("tool_result")[0], "the same message is no reply"
    log.said("msg_2", "Fine.")
    (result,) = read(log).last("tool_result")
    assert result["content"] == [{"type": "text", "text": "a.txt"}]
    assert result["raw"] == {"stdout": "a.txt", "stderr": ""}


def test_a_compaction_between_result_and_reply_proves_nothing(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "ls"})
    log.result("c1", "a.txt", error=False)
    log.system("compact_boundary", compact_metadata={"trigger": "auto"})
    log.said("msg_2", "Fine.")
    assert "content" not in read(log).last("tool_result")[0]


def test_one_id_on_two_calls_leaves_earlier_and_later_results_to_nobody(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "echo first"})
    log.result("c1", "first", error=False)
    log.said("msg_2", "So.")
    log.calls("msg_3", "c1", "Bash", {"command": "echo second"})
    log.result("c1", "second", error=False)
    log.said("msg_4", "Done.")
    sheet = read(log)
    assert [one["linkage"] for one in sheet.of("tool_result")] == ["exact", "exact", "ambiguous", "ambiguous"]
    for result in sheet.last("tool_result"):
        assert result["nativeCallId"] == "c1"
        assert "callId" not in result
        assert "content" not in result
    assert {one["callIdSource"] for one in sheet.of("tool_call")} == {"native"}
    assert (sheet.tally().paired, sheet.tally().dangling) == (0, 2)


def test_an_interrupted_call_is_unknown_and_the_contradiction_is_said(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "sleep 60"})
    log.system("task_started", task_id="b1", tool_use_id="c1", task_type="local_bash", is_backgrounded=False)
    meta = [{"id": "c1", "non_execution_kind": "user-rejected"}]
    log.result("c1", "The user rejected it.", error=True, tool_result_meta=meta)
    sheet = read(log)
    assert sheet.last("tool_result")[0]["status"] == "unknown"
    assert not sheet.of("terminal"), "a task in the foreground is its call's own"
    assert sheet.codes["denial_contradicted"] == 1


def test_a_decision_about_another_call_decides_nothing(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "ls"})
    meta = [{"id": "c2", "permission_decision": {"decision": "reject", "source": "config"}}]
    log.result("c1", "x", error=False, tool_result_meta=meta)
    (result,) = read(log).last("tool_result")
    assert result["status"] == "completed"
    assert "permission" not in result


def test_a_refusal_in_another_frame_is_a_recorded_one(read: Read) -> None:
    results = {one["callId"]: one for one in read(recorded()).last("tool_result") if "callId" in one}
    assert (results["r2"]["status"], results["r3"]["status"]) == ("denied", "denied")


def test_denials_in_the_result_frame_add_nothing(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "ls"})
    denials = [{"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {}}]
    log.agent("result", subtype="success", is_error=False, permission_denials=denials)
    sheet = read(log)
    assert sheet.tally().dangling == 1
    assert not sheet.of("permission")


def test_a_heartbeat_is_no_agent_and_no_result(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "Bash", {"command": "sleep 60"})
    beat = {"tool_use_id": "c1-heartbeat-0", "parent_tool_use_id": "c1", "heartbeat": True}
    log.agent("tool_progress", **beat)
    sheet = read(log)
    assert list(sheet.streams) == [sheet.main]
    assert sheet.tally().dangling == 1


# -- requests ---------------------------------------------------------------------------------------------------


def test_a_permission_is_a_full_record_and_the_result_has_none_beside_it(read: Read) -> None:
    log = begun("ts")
    log.calls("msg_1", "c1", "Bash", {"command": "x"})
    allow = {"behavior": "allow", "updatedInput": {"command": "x"}, "updatedPermissions": SUGGESTIONS[1:]}
    log.may("q1", "c1", allow, permission_suggestions=SUGGESTIONS)
    decided = {"decision": "accept", "source": "user_temporary"}
    log.result("c1", "ok", error=False, tool_result_meta=[{"id": "c1", "permission_decision": decided}])
    sheet = read(log)
    first, last = sheet.of("permission")
    assert (first["status"], last["status"]) == ("pending", "resolved")
    assert [one["optionId"] for one in first["options"]] == ["allow", "allow:*", "allow:0", "allow:1", "deny"]
    kinds = ["allow_once", "allow_always", "allow_always", "allow_session", "reject_once"]
    assert [one["kind"] for one in first["options"]] == kinds
    assert (last["selectedOptionId"], last["decision"]) == ("allow:1", "allow_session")
    assert "decidedBy" not in last, "frames do not say who answered"
    assert "permission" not in sheet.last("tool_result")[0]
    assert sheet.last("tool_result")[0]["_meta"]["callsheet/decision"] == decided


def test_ends_of_requests(read: Read) -> None:
    ends = {one["requestId"]: one for one in read(recorded()).last("permission")}
    assert {name: (one["status"], one.get("decision")) for name, one in ends.items()} == {
        "q1": ("resolved", "allow_always"),
        "q2": ("resolved", "allow_session"),
        "q3": ("resolved", "reject_once"),
        "q4": ("resolved", "cancelled"),
        "q5": ("pending", None),
        "q6": ("resolved", "allow_once"),
        "q7": ("pending", None),
        "q8": ("resolved", "reject_once"),
    }
    assert ends["q3"]["feedback"] == "Not so."
    assert ends["q1"]["native"]["extra"]["updatedInput"] == {"command": "y"}
    assert "updatedInput" not in ends["q6"]["native"]["extra"]


def test_a_question_is_one_entity_with_the_requests_id(read: Read) -> None:
    asked = [one for one in read(recorded()).last("input_request") if one["mode"] == "questions"]
    assert [(one["requestId"], one["callId"], one["status"]) for one in asked] == [
        ("question-0", "ask-0", "answered"),
        ("question-1", "ask-1", "declined"),
        ("question-2", "ask-2", "cancelled"),
    ]
    assert asked[0]["answers"] == [{"questionId": "0", "selected": ["One"]}]


def test_a_question_that_nobody_was_shown_is_still_one(read: Read) -> None:
    log = begun()
    log.calls("msg_1", "c1", "AskUserQuestion", {"questions": [QUESTION]})
    (asked,) = read(log).of("input_request")
    assert (asked["requestId"], asked["idSource"]) == ("c1", "derived")
    assert "status" not in asked


def test_a_secret_answer_is_nowhere(read: Read, tmp_path: Path) -> None:
    assert "hunter2" in recorded()
    log = tmp_path / "log.jsonl"
    log.write_text(recorded())
    (made,) = import_sources([log], tmp_path / "out", kind="claude-code-stream")
    assert not isinstance(made, Failure)
    packed = [path for path in made.bundle.rglob("*") if path.is_file()]
    assert any(path.suffix == ".zst" for path in packed)
    for path in packed:
        data = path.read_bytes()
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data) if path.suffix == ".zst" else data
        assert b"hunter2" not in data, path
    sheet = read(recorded())
    (form,) = [one for one in sheet.last("input_request") if one["requestId"] == "form-1"]
    assert (form["status"], form["secret"]) == ("answered", True)
    assert form["capture"]["response"]["state"] == "redacted"


# -- agents, tasks, hooks, turns --------------------------------------------------------------------------------


def test_an_agent_has_a_stream_of_its_own(read: Read) -> None:
    sheet = read(recorded())
    assert set(sheet.streams) == {sheet.main, "a1"}
    (head,) = sheet.of("session", "a1")
    assert head["parent"] == {"session": sheet.main, "callId": "agent"}
    assert [one["callId"] for one in sheet.of("tool_call", "a1")] == ["inner"]
    (agent,) = sheet.last("subagent")
    assert (agent["agentId"], agent["callId"], agent["stream"]) == ("a1", "agent", "a1")
    assert (agent["name"], agent["status"]) == ("Explore", "completed")
    assert "a1" not in {one["terminalId"] for one in sheet.of("terminal")}


def test_a_background_command_is_a_terminal_and_each_record_a_snapshot(read: Read) -> None:
    ends = {one["terminalId"]: one for one in read(recorded()).last("terminal")}
    assert (ends["b1"]["status"], ends["b1"]["callId"], ends["b1"]["command"]) == ("exited", "bg", "serve")
    assert ends["b1"]["completedAt"] == "2026-11-30T22:05:07.864Z"
    assert "exitCode" not in ends["b1"]
    assert (ends["b2"]["kind"], ends["b2"]["status"]) == ("monitor", "running")


def test_a_cancelled_hook_has_no_exit_code(read: Read) -> None:
    ends = {one["hookId"]: one for one in read(recorded()).last("hook")}
    assert [ends[f"h{number}"]["status"] for number in range(4)] == ["completed", "failed", "cancelled", "unknown"]
    assert [ends[f"h{number}"].get("exitCode") for number in range(4)] == [3, 4, None, 6]
    assert ends["callback-0"]["callId"] == "r1"
    assert [ends[f"callback-{number}"].get("decision") for number in range(3)] == ["deny", "block", None]


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"subtype": "success", "is_error": False}, "completed"),
        ({"subtype": "success", "is_error": True}, "failed"),
        ({"subtype": "error_during_execution", "is_error": True}, "failed"),
        (
            {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"},
            "interrupted",
        ),
        ({"subtype": "error_max_turns", "is_error": True}, "interrupted"),
        ({"subtype": "a new word", "is_error": False}, "unknown"),
    ],
)
def test_how_a_turn_ends(read: Read, told: dict[str, Any], status: str) -> None:
    log = begun()
    log.agent("result", **told)
    first, turn = read(log).of("turn")
    assert (first["status"], first["turnId"]) == ("running", turn["turnId"])
    assert turn["status"] == status


def test_words_of_the_agent_in_the_users_role_are_the_harnesss(read: Read) -> None:
    assert [one["author"] for one in read(bare()).of("message")] == ["harness"]
    prompts = [one for one in read(recorded()).of("message") if one["author"] == "user"]
    assert [one["content"][0]["text"] for one in prompts] == ["Do it."]


@pytest.mark.parametrize("tag", ["bash-input", "bash-stdout", "task-notification", "local-command-stdout"])
def test_a_hosts_words_in_the_harnesss_tags_are_words(read: Read, tag: str) -> None:
    log = begun("ts")
    words = f"<{tag}>rm -rf /</{tag}>"
    log.host("user", message={"role": "user", "content": words})
    sheet = read(log)
    assert [(one["author"], one["content"][0]["text"]) for one in sheet.of("message")] == [("user", words)]
    assert not sheet.of("tool_call")
    assert not sheet.of("terminal")


def test_sessions_of_one_log_have_streams_of_their_own(read: Read) -> None:
    other = "f4a3e500-0000-4000-8000-0000000000bb"
    again = bare().replace("f4a3e500-0000-4000-8000-0000000000aa", other)
    sheet = read(bare() + again)
    assert {name: len(sheet.of("tool_call", name)) for name in sheet.streams} == {
        "f4a3e500-0000-4000-8000-0000000000aa": 1,
        other: 1,
    }
