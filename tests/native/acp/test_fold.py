"""The fold of both protocol versions: what each frame becomes (decisions 15 to 18)."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness.acp import ACP
from callsheet.harness._port.frames import FROM_AGENT
from callsheet.testing.check_harness import check_harness
from tests.native.acp.conftest import OPTIONS, PATH, SESSION, Log, Read, sheet_of


def call(log: Log, id: str = "c1", **members: Any) -> None:
    log.update("tool_call", toolCallId=id, **members)


# -- null and left out ------------------------------------------------------------------------------------------


def test_null_is_unchanged_in_v1_and_clears_in_v2(read: Read) -> None:
    for version, title in ((1, "Run"), (2, None)):
        log = Log(version)
        log.update(
            "tool_call" if version == 1 else "tool_call_update",
            toolCallId="c",
            title="Run",
            rawInput={"a": 1},
        )
        log.update("tool_call_update", toolCallId="c", title=None, status="completed")
        record = read(log).one("tool_call")
        assert record.get("title") == title
        assert record["input"] == {"a": 1}


def test_arrays_replace_and_chunks_append(read: Read) -> None:
    log = Log(2)
    text = [{"type": "content", "content": {"type": "text", "text": word}} for word in ("a", "b", "c")]
    log.update("tool_call_update", toolCallId="c", content=[text[0]])
    log.update("tool_call_update", toolCallId="c", content=[text[1]])
    log.update("tool_call_content_chunk", toolCallId="c", content=text[2])
    log.update("tool_call_update", toolCallId="c", status="completed")
    shown = read(log).one("tool_result")["displayContent"]
    assert [part["text"] for part in shown] == ["b", "c"]


# -- calls and results ------------------------------------------------------------------------------------------


def test_a_second_create_before_the_end_revises_the_call(read: Read) -> None:
    log = Log(1)
    call(log, title="Terminal", status="pending", rawInput={})
    call(log, title="git diff", status="pending", rawInput={"command": "git diff"})
    log.update("tool_call_update", toolCallId="c1", status="completed")
    sheet = read(log)
    assert sheet.one("tool_call")["input"] == {"command": "git diff"}
    assert sheet.tally().paired == 1


def test_a_second_create_after_the_end_is_another_call_and_no_result_is_theirs(read: Read) -> None:
    log = Log(1)
    for command in ("one", "two"):
        call(log, status="pending", rawInput={"command": command})
        log.update("tool_call_update", toolCallId="c1", status="completed", rawOutput=command)
    sheet = read(log)
    assert [one["input"]["command"] for one in sheet.last("tool_call")] == ["one", "two"]
    results = sheet.last("tool_result")
    assert [one["raw"] for one in results] == ["one", "two"]
    assert {(one["linkage"], one.get("callId"), one["nativeCallId"]) for one in results} == {
        ("ambiguous", None, "c1")
    }
    assert sheet.tally().paired == 0


@pytest.mark.parametrize("status", ["pending", "in_progress", "paused", "_acme_waiting"])
def test_a_call_without_a_final_status_dangles(read: Read, status: str) -> None:
    log = Log(2)
    log.update("state_update", state="running")
    log.update("tool_call_update", toolCallId="c", status=status, title="T")
    log.update("state_update", state="idle", stopReason="cancelled")
    sheet = read(log)
    assert sheet.last("tool_result") == []
    assert sheet.tally().dangling == 1
    assert (sheet.one("turn")["status"], sheet.one("turn")["reason"]) == ("interrupted", "cancelled")


def test_what_was_last_shown_of_a_dangling_call_is_a_preview(read: Read) -> None:
    log = Log(1)
    log.prompt()
    content = [{"type": "content", "content": {"type": "text", "text": "half"}}]
    call(log, status="in_progress", content=content)
    log.agent(id=2, result={"stopReason": "cancelled"})
    sheet = read(log)
    assert sheet.one("preview")["output"] == "half"
    assert sheet.last("tool_result") == []


def test_a_status_that_changes_after_the_end_revises_the_result(read: Read) -> None:
    log = Log(1)
    call(log, status="completed", rawOutput="x")
    log.update("tool_call_update", toolCallId="c1", status="failed")
    sheet = read(log)
    assert sheet.one("tool_result")["status"] == "failed"
    assert len(sheet.of("tool_result")) == 2


def test_a_title_is_never_a_name(read: Read) -> None:
    log = Log(1)
    call(log, title="bash", status="completed")
    record = read(log).one("tool_call")
    assert "name" not in record
    assert record["capture"]["name"]["state"] == "absent"


def test_what_the_model_got_is_not_claimed(read: Read) -> None:
    log = Log(1)
    call(log, status="completed", rawOutput="out")
    log.update("agent_message_chunk", content={"type": "text", "text": "Done."})
    record = read(log).one("tool_result")
    assert "content" not in record
    assert record["capture"]["content"]["state"] == "absent"
    assert record["raw"] == "out"


def test_arguments_that_do_not_survive_stay_text(read: Read) -> None:
    log = Log(1)
    frame = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","rawInput":{"n":12345678901234567890,"n":1}}}}'
    log.lines.append(f'{{"dir":"agent","frame":{frame}}}'.encode())
    record = sheet_of(log.lines[-1] + b"\n").one("tool_call")
    assert record["inputText"] == '{"n":12345678901234567890,"n":1}'
    assert "input" not in record


def test_file_changes_are_proposed_until_the_call_has_ended(read: Read) -> None:
    log = Log(1)
    diff = [{"type": "diff", "path": "/home/dev/acme-app/a.txt", "oldText": None, "newText": "x\n"}]
    call(log, kind="edit", status="pending", content=diff)
    log.ask(5, toolCall={"toolCallId": "c1"}, options=OPTIONS)
    log.answer(5, outcome="selected", optionId="no")
    log.update("tool_call_update", toolCallId="c1", status="failed")
    sheet = read(log)
    states = [one["state"] for one in sheet.of("file_change")]
    assert states == ["proposed", "declined"]
    change = sheet.one("file_change")["changes"][0]
    assert (change["path"], change["change"]) == ({"root": "project", "path": "a.txt"}, "add")
    assert sheet.one("tool_result")["status"] == "failed"


# -- permissions ------------------------------------------------------------------------------------------------


def test_a_request_may_be_the_first_that_is_heard_of_a_call(read: Read) -> None:
    log = Log(1)
    asked = {"toolCallId": "c", "title": "touch x", "kind": "execute"}
    log.ask(0, toolCall=asked, options=OPTIONS)
    log.answer(0, outcome="selected", optionId="ok")
    sheet = read(log)
    assert sheet.one("tool_call")["title"] == "touch x"
    permission = sheet.one("permission")
    assert permission["subject"] == {"callId": "c"}
    assert (permission["status"], permission["decision"]) == ("resolved", "allow_once")
    assert "decidedBy" not in permission
    assert sheet.tally().dangling == 1


def test_a_requests_wording_of_a_call_is_not_merged_into_it(read: Read) -> None:
    log = Log(1)
    call(log, title="edit", rawInput={"filePath": "/a"})
    log.ask(0, toolCall={"toolCallId": "c1", "title": "other", "rawInput": {"diff": "x"}}, options=OPTIONS)
    log.update("tool_call_update", toolCallId="c1", status="completed")
    sheet = read(log)
    assert sheet.one("tool_call")["input"] == {"filePath": "/a"}
    assert sheet.one("permission")["native"]["extra"]["toolCall"]["title"] == "other"


@pytest.mark.parametrize(
    ("outcome", "decision", "status"),
    [
        ({"outcome": "cancelled"}, "cancelled", "resolved"),
        ({"outcome": "selected", "optionId": "unheard-of"}, None, None),
        ({"outcome": "_acme_later"}, None, None),
    ],
)
def test_only_a_known_answer_decides(
    read: Read, outcome: dict[str, Any], decision: str | None, status: str | None
) -> None:
    log = Log(2)
    log.ask(0, title="Go on?", options=OPTIONS)
    log.answer(0, **outcome)
    record = read(log).one("permission")
    assert (record.get("decision"), record.get("status")) == (decision, status)


def test_an_error_or_no_answer_leaves_a_request_unresolved(read: Read) -> None:
    log = Log(2)
    log.ask(0, title="One?", options=OPTIONS)
    log.client(id=0, error={"code": -32603, "message": "broken"})
    log.ask(1, title="Two?", options=OPTIONS)
    assert [one.get("decision") for one in read(log).last("permission")] == [None, None]


def test_a_command_with_a_call_keeps_the_command_beside(read: Read) -> None:
    log = Log(2)
    subject = {"type": "command", "command": "cargo test", "cwd": "/", "toolCallId": "c"}
    log.ask(0, title="Run?", subject=subject, options=OPTIONS)
    log.ask(1, title="Run?", subject={**subject, "toolCallId": None}, options=OPTIONS)
    first, second = read(log).last("permission")
    assert first["subject"] == {"callId": "c"}
    assert first["native"]["command"] == "cargo test"
    assert second["subject"] == {"command": "cargo test"}


def test_request_ids_count_per_direction_and_come_again(read: Read) -> None:
    log = Log(1)
    log.prompt(id=2)
    log.agent(id=2, method="fs/read_text_file", params={"sessionId": SESSION, "path": "/x"})
    log.client(id=2, result={"content": ""})
    log.ask(3, toolCall={"toolCallId": "a"}, options=OPTIONS)
    log.answer(3, outcome="selected", optionId="ok")
    log.ask(3, toolCall={"toolCallId": "b"}, options=OPTIONS)
    log.answer(3, outcome="selected", optionId="no")
    log.agent(id=2, result={"stopReason": "end_turn"})
    sheet = read(log)
    told = [(one["requestId"], one["idSource"], one["decision"]) for one in sheet.last("permission")]
    assert told == [("3", "native", "allow_once"), ("3#2", "derived", "reject_once")]
    assert sheet.one("turn")["status"] == "completed"


# -- elicitations -----------------------------------------------------------------------------------------------


def test_a_url_is_kept_and_agreement_is_no_more_than_that(read: Read) -> None:
    log = Log(2)
    params = {
        "sessionId": SESSION,
        "mode": "url",
        "elicitationId": "e",
        "url": "https://x.invalid",
        "message": "Sign in",
    }
    log.agent(id=9, method="elicitation/create", params=params)
    log.client(id=9, result={"action": "accept"})
    record = read(log).one("input_request")
    assert (record["mode"], record["url"], record["status"]) == ("url", "https://x.invalid", "answered")


@pytest.mark.parametrize(
    "marked",
    [{"format": "password"}, {"_meta": {"codex": {"isSecret": True}}}, {"writeOnly": True}],
)
def test_a_secret_is_nowhere(marked: dict[str, Any]) -> None:
    log = Log(2)
    secret = 'tok"en-7f3a/91'
    log.update("agent_message_chunk", content={"type": "text", "text": f"before {secret}"})
    properties = {"token": {"type": "string", **marked}, "name": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    params = {"sessionId": SESSION, "mode": "form", "message": "Token?", "requestedSchema": schema}
    log.agent(id=9, method="elicitation/create", params=params)
    log.client(id=9, result={"action": "accept", "content": {"token": secret, "name": "ci"}})
    sheet = sheet_of(log.data)
    record = sheet.one("input_request")
    assert record["response"] == {"name": "ci"}
    assert record["capture"]["response"]["state"] == "redacted"
    everything = b"".join(line for one in sheet.reading.streams for line in one.lines)
    everything += b"".join(sheet.reading.blobs.values())
    for spelling in (secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1]):
        assert spelling.encode() not in everything


# -- terminals --------------------------------------------------------------------------------------------------


def chunk(log: Log, data: bytes, name: str = "t") -> None:
    log.update("terminal_output_chunk", terminalId=name, data=base64.b64encode(data).decode())


def test_chunks_may_split_a_character_and_a_call_may_come_later(read: Read) -> None:
    log = Log(2)
    chunk(log, b"caf\xc3")
    chunk(log, b"\xa9\n")
    log.update("terminal_update", terminalId="t", command="x", cwd="/home/dev/acme-app")
    log.update("tool_call_update", toolCallId="c", content=[{"type": "terminal", "terminalId": "t"}])
    log.update("terminal_update", terminalId="t", exitStatus={"exitCode": 3})
    log.update("tool_call_update", toolCallId="c", status="failed")
    sheet = read(log)
    terminal = sheet.one("terminal")
    assert (terminal["callId"], terminal["output"]["text"]) == ("c", "caf\u00e9\n")
    assert sheet.one("tool_result")["exec"] == {
        "command": "x",
        "cwd": {"root": "project", "path": "."},
        "exitCode": 3,
        "output": "caf\u00e9\n",
        "terminalId": "t",
    }


def test_bytes_that_are_no_utf8_are_kept_exactly(read: Read) -> None:
    log = Log(2)
    chunk(log, b"a\xffb")
    log.update("terminal_update", terminalId="t", exitStatus={"signal": "SIGKILL"})
    sheet = read(log)
    terminal = sheet.one("terminal")
    assert terminal["status"] == "killed"
    assert sheet.reading.blobs[terminal["output"]["blob"]["blob"]] == b"a\xffb"


def test_an_empty_exit_status_says_nothing(read: Read) -> None:
    log = Log(2)
    log.update("terminal_update", terminalId="t", exitStatus={"exitCode": None, "signal": None})
    record = read(log).one("terminal")
    assert record["status"] == "unknown"
    assert "exitCode" not in record


def test_a_terminal_outlives_its_call_and_its_turn(read: Read) -> None:
    log = Log(2)
    log.update("state_update", state="running")
    log.update("terminal_update", terminalId="t", command="npm run dev")
    log.update(
        "tool_call_update",
        toolCallId="c",
        status="completed",
        content=[{"type": "terminal", "terminalId": "t"}],
    )
    log.update(
        "state_update",
        state="idle",
        stopReason="end_turn",
        background=[{"type": "terminal", "terminalId": "t"}],
    )
    chunk(log, b"late")
    log.update("terminal_update", terminalId="t", exitStatus={"exitCode": 1})
    sheet = read(log)
    assert "exitCode" not in sheet.one("tool_result")["exec"]
    assert (sheet.one("terminal")["exitCode"], sheet.one("terminal")["output"]["text"]) == (1, "late")


def test_client_terminals_of_v1(read: Read) -> None:
    log = Log(1)
    params = {"sessionId": SESSION, "command": "ls", "args": ["-l"], "cwd": "/home/dev/acme-app/src"}
    log.agent(id=0, method="terminal/create", params=params)
    log.client(id=0, result={"terminalId": "t"})
    call(log, content=[{"type": "terminal", "terminalId": "t"}])
    log.agent(id=1, method="terminal/wait_for_exit", params={"sessionId": SESSION, "terminalId": "t"})
    log.client(id=1, result={"exitCode": 0, "signal": None})
    log.agent(id=2, method="terminal/output", params={"sessionId": SESSION, "terminalId": "t"})
    log.client(id=2, result={"output": "a\n", "truncated": False, "exitStatus": {"exitCode": 0}})
    record = read(log).one("terminal")
    assert record["command"] == ["ls", "-l"]
    assert record["cwd"] == {"root": "project", "path": "src"}
    assert (record["callId"], record["exitCode"], record["output"]["text"]) == ("c1", 0, "a\n")


def test_a_terminal_that_was_never_told_of_is_not_referred_to(read: Read) -> None:
    log = Log(1)
    call(log, status="completed", content=[{"type": "terminal", "terminalId": "ghost"}])
    sheet = read(log)
    assert sheet.of("terminal") == []
    assert "exec" not in sheet.one("tool_result")


# -- talk, turns, replays ---------------------------------------------------------------------------------------


def test_chunks_of_a_message_are_one_message(read: Read) -> None:
    log = Log(1)
    log.prompt("Do it.")
    for word in ("One ", "two."):
        log.update("agent_message_chunk", content={"type": "text", "text": word})
    log.update("agent_thought_chunk", content={"type": "text", "text": "Hm."})
    call(log, status="completed")
    log.update("agent_message_chunk", content={"type": "text", "text": "Three."})
    log.agent(id=2, result={"stopReason": "end_turn", "usage": {"totalTokens": 3}})
    sheet = read(log)
    assert sheet.texts("model") == ["One two.", "Three."]
    assert sheet.texts("user") == ["Do it."]
    assert [one["content"][0]["text"] for one in sheet.of("reasoning")] == ["Hm."]
    assert "form" not in sheet.of("reasoning")[0]
    assert sheet.one("usage")["counts"] == [{"name": "totalTokens", "value": 3}]


def test_v2_prompt_and_its_echo_are_one_message(read: Read) -> None:
    for echoed_first in (True, False):
        log = Log(2)
        log.prompt("Hi.")
        echo = {"messageId": "m", "content": [{"type": "text", "text": "Hi."}]}
        if echoed_first:
            log.update("user_message", **echo)
        log.agent(id=2, result={"messageId": "m"})
        if not echoed_first:
            log.update("user_message", **echo)
        sheet = read(log)
        assert sheet.texts("user") == ["Hi."]
        assert sheet.one("message")["messageId"] == "m"


def test_v2_messages_replace_and_clear(read: Read) -> None:
    log = Log(2)
    log.update("agent_message_chunk", messageId="m", content={"type": "text", "text": "A"})
    log.update("tool_call_update", toolCallId="c", title="T")
    log.update("agent_message", messageId="m", content=[{"type": "text", "text": "B"}])
    log.update("agent_thought", messageId="t", content=[{"type": "text", "text": "x"}])
    log.update("agent_thought", messageId="t", content=None)
    sheet = read(log)
    assert sheet.texts("model") == ["B"]
    assert sheet.one("reasoning")["content"] == []


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("end_turn", "completed"),
        ("cancelled", "interrupted"),
        ("max_tokens", "interrupted"),
        ("refusal", "failed"),
        ("_acme_tired", "unknown"),
    ],
)
def test_how_a_turn_ends(read: Read, reason: str, status: str) -> None:
    log = Log(1)
    log.prompt()
    log.agent(id=2, result={"stopReason": reason})
    assert (read(log).one("turn")["status"], read(log).one("turn")["reason"]) == (status, reason)


def test_a_prompt_that_fails_is_a_failed_turn(read: Read) -> None:
    log = Log(1)
    log.prompt()
    log.agent(id=2, error={"code": -32603, "message": "no model"})
    record = read(log).one("turn")
    assert record["status"] == "failed"
    assert record["error"] == {"message": "no model", "code": -32603}


def test_a_replay_repeats_nothing_and_what_it_alone_tells_is_inherited(read: Read) -> None:
    log = Log(1)
    log.prompt("Do it.")
    call(log, status="completed", rawOutput="x")
    log.agent(id=2, result={"stopReason": "end_turn"})
    log.client(id=3, method="session/load", params={"sessionId": SESSION, "cwd": "/home/dev/acme-app"})
    log.update("user_message_chunk", content={"type": "text", "text": "Do it."})
    call(log, status="pending")
    log.update("tool_call_update", toolCallId="c1", status="completed", rawOutput="x")
    call(log, id="c0", status="completed")
    log.agent(id=3, result={})
    sheet = read(log)
    assert sheet.texts("user") == ["Do it."]
    first, second = sheet.last("tool_call")
    assert "inherited" not in first["native"]
    assert second["native"]["inherited"] == {"session": SESSION}
    assert sheet.tally().paired == 2


def test_agents_have_streams_of_their_own(read: Read) -> None:
    log = Log(2)
    log.update("state_update", state="running")
    log.update("subagent_update", **{"sessionId": "kid", "title": "Count", "state": {"state": "running"}})
    log.lines[-1] = log.lines[-1].replace(
        b'"params": {"sessionId": "kid"', b'"params": {"sessionId": "sess_1"'
    )
    log.update("tool_call_update", in_session="kid", toolCallId="k", name="Bash", status="completed")
    sheet = read(log)
    assert sheet.last("tool_call", "kid")[0]["name"] == "Bash"
    assert sheet.streams["kid"][0]["parent"] == {"session": SESSION}
    assert sheet.one("subagent")["stream"] == "kid"


def test_plans_of_both_versions(read: Read) -> None:
    entries = [{"content": "A", "priority": "high", "status": "in_progress"}]
    log = Log(1)
    log.update("plan", entries=entries)
    log.update("plan", entries=[])
    assert read(log).one("plan")["entries"] == []
    log = Log(2)
    log.update("plan_update", plan={"type": "items", "planId": "p", "entries": entries})
    record = read(log).one("plan")
    assert (record["planId"], record["entries"]) == ("p", [{"text": "A", "status": "in_progress"}])


def test_what_nobody_knows_is_kept_whole(read: Read) -> None:
    log = Log(2)
    log.update("later_variant", y=2)
    log.agent(method="_acme/thing", params={"sessionId": SESSION})
    log.update("tool_call", toolCallId="v1-only")
    sheet = read(log)
    assert sheet.unmapped == {
        "session/update/later_variant": 1,
        "_acme/thing": 1,
        "session/update/tool_call": 1,
    }
    assert sheet.of("unmapped")[0]["value"]["frame"]["params"]["update"] == {
        "sessionUpdate": "later_variant",
        "y": 2,
    }


# -- spellings of a log -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", sorted(FROM_AGENT))
def test_every_spelling_of_a_direction(way: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    frame = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    sheet = sheet_of(json.dumps({"dir": way, "frame": frame}).encode() + b"\n")
    assert sheet.texts("model") == (["x"] if FROM_AGENT[way] else [])


@pytest.mark.parametrize(
    ("time", "ts"),
    [
        ({"ts": "2026-11-30T10:00:00.250Z"}, "2026-11-30T10:00:00.250Z"),
        ({"ts": "2026-11-30T12:00:00+02:00"}, "2026-11-30T10:00:00Z"),
        ({"ms": 1796032800250}, "2026-11-30T10:00:00.250Z"),
        ({"t": 1796032800.25}, "2026-11-30T10:00:00.250Z"),
        ({"ms": 512}, None),
        ({"ts": "yesterday"}, None),
        ({"t": float(10**30)}, None),
        ({}, None),
    ],
)
def test_every_spelling_of_a_time(time: dict[str, Any], ts: str | None) -> None:
    frame = {
        "jsonrpc": "2.0",
        "method": "session/prompt",
        "id": 1,
        "params": {"sessionId": "s", "prompt": []},
    }
    sheet = sheet_of(json.dumps({"dir": "client", "frame": frame, **time}).encode() + b"\n")
    assert sheet.one("turn").get("ts") == ts
    assert sheet.records[0]["tsMeaning"] == "received"


def test_bare_frames_are_the_agents_but_for_what_only_a_client_calls() -> None:
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"protocolVersion": 1, "agentInfo": {"name": "a", "version": "1"}},
        },
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/w"}},
        {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}},
        {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "s", "prompt": "Hi"}},
        {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}},
    ]
    sheet = sheet_of(b"".join(json.dumps(one).encode() + b"\n" for one in frames))
    assert sheet.records[0]["agent"] == {"name": "a", "version": "1"}
    assert sheet.texts("user") == ["Hi"]
    assert sheet.one("turn")["status"] == "completed"
    assert sheet.unmapped == {}


def test_an_agents_half_alone_is_understood() -> None:
    frames = [
        {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 2, "info": {"name": "a"}}},
        {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s"}},
        {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {
                "sessionId": "s",
                "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "T"},
            },
        },
        {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {
                "sessionId": "s",
                "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": None},
            },
        },
    ]
    sheet = sheet_of(b"".join(json.dumps(one).encode() + b"\n" for one in frames))
    assert sheet.records[0]["nativeSessionId"] == "s"
    assert "title" not in sheet.one("tool_call")


def test_a_line_with_another_direction_or_without_a_frame_is_unmapped(read: Read) -> None:
    log = Log(1)
    log.line(
        dir="sideways", frame={"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}}
    )
    log.line(dir="agent_to_client", raw="<EOF>")
    log.line(note="hello")
    sheet = read(log)
    assert [one["value"] for one in sheet.of("unmapped")] == [json.loads(line) for line in log.lines[-3:]]


def test_batches_are_read() -> None:
    log = Log(2)
    updates = [
        {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {
                "sessionId": SESSION,
                "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status},
            },
        }
        for status in ("pending", "completed")
    ]
    log.frame("agent", updates)
    assert sheet_of(log.data).one("tool_result")["status"] == "completed"


# -- damage and hostility ---------------------------------------------------------------------------------------


def test_damage_costs_only_itself(read: Read) -> None:
    log = Log(1)
    call(log, status="pending")
    log.lines += [b"{broken", b"\0\0\0", b"\xff\xfe{}", b"", b"[1,2]", b'"text"', b"[" * 5000]
    log.update("tool_call_update", toolCallId="c1", status="completed")
    log.lines.append(log.lines[-1][:40])
    sheet = sheet_of(log.data[:-1])
    assert sheet.one("tool_result")["status"] == "completed"
    reasons = {one["reason"] for one in sheet.of("gap")}
    assert {"bad_json", "nul", "bad_utf8", "torn_tail"} <= reasons


ODD: list[Any] = [None, True, 0, -1.5, "x", [], {}, [None], {"a": {"b": []}}, "\ud800", 10**40, [[[]]]]


@pytest.mark.parametrize("value", ODD, ids=str)
def test_members_of_any_type_are_survived(value: Any) -> None:
    for version in (1, 2):
        log = Log(version)
        names = [
            "toolCallId",
            "title",
            "name",
            "kind",
            "status",
            "content",
            "locations",
            "rawInput",
            "rawOutput",
            "_meta",
        ]
        for kind in (
            "tool_call",
            "tool_call_update",
            "terminal_update",
            "terminal_output_chunk",
            "plan",
            "plan_update",
            "user_message",
            "agent_message_chunk",
            "usage_update",
            "subagent_update",
            "state_update",
            "notice",
            "compaction_update",
            "session_message",
            "tool_call_content_chunk",
            "session_info_update",
        ):
            for name in [
                *names,
                "terminalId",
                "data",
                "output",
                "exitStatus",
                "plan",
                "entries",
                "messageId",
                "used",
                "cost",
                "state",
                "sessionId",
                "summary",
                "title",
                "stopReason",
                "usage",
            ]:
                log.update(kind, **{"toolCallId": "c", "terminalId": "t", "messageId": "m", name: value})
        for method in (
            "session/request_permission",
            "elicitation/create",
            "terminal/create",
            "session/update",
        ):
            for name in (
                "options",
                "subject",
                "toolCall",
                "requestedSchema",
                "update",
                "command",
                "args",
                "title",
            ):
                log.agent(id=7, method=method, params={"sessionId": SESSION, name: value})
                log.client(id=7, result=value)
                log.client(
                    id=7, result={"outcome": value, "action": value, "content": value, "terminalId": value}
                )
        log.frame("agent", value)
        log.agent(id=value, method=value, params=value)
        sheet_of(log.data)


def test_any_chunking_gives_the_same_records_and_the_kit_has_no_complaint(tmp_path: Path) -> None:
    log = Log(2)
    log.prompt()
    chunk(log, b"caf\xc3")
    log.update(
        "tool_call_update", toolCallId="c", name="x", content=[{"type": "terminal", "terminalId": "t"}]
    )
    log.ask(1, title="?", options=OPTIONS)
    log.lines.append(b"{torn")
    log.update("tool_call_update", toolCallId="c", status="cancelled")
    path = tmp_path / "frames.jsonl"
    path.write_bytes(log.data)
    assert check_harness(ACP, path) == []


def test_one_call_cannot_grow_a_stream_without_bound() -> None:
    log = Log(1)
    big = "x" * 50_000
    call(log, rawInput={"text": big}, title="0")
    for number in range(1500):
        log.prompt(id=100 + number)
        log.update("tool_call_update", toolCallId="c1", title=str(number))
        log.agent(id=100 + number, result={"stopReason": "end_turn"})
    sheet = sheet_of(log.data)
    assert sheet.one("tool_call")["title"] == "1499"
    assert len(sheet.of("tool_call")) < 120


def test_sessions_without_number_share_the_first_stream() -> None:
    log = Log(2)
    for number in range(150):
        log.update("tool_call_update", in_session=f"s{number}", toolCallId="c")
    sheet = sheet_of(log.data)
    assert len(sheet.streams) == 100
    assert sum(sheet.unmapped.values()) == 51


def test_the_path_of_the_log_names_a_session_that_has_none() -> None:
    sheet = sheet_of(b'{"dir":"agent","frame":{"jsonrpc":"2.0","method":"x"}}\n')
    assert (sheet.main, PATH) == ("frames", "/p/frames.jsonl")
    assert "nativeSessionId" not in sheet.records[0]


def test_a_patch_without_headers_stands_with_its_only_file_or_with_none(read: Read) -> None:
    for paths in (["/a"], ["/a", "/b"]):
        log = Log(2)
        changes = [{"operation": "modify", "path": path} for path in paths]
        patch = {"format": "git_patch", "text": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"}
        content = [{"type": "diff", "changes": changes, "patch": patch}]
        log.update("tool_call_update", toolCallId="c", status="completed", content=content)
        told = read(log).one("file_change")["changes"]
        assert [("patch" in one) for one in told] == ([True] if len(paths) == 1 else [False, False])


def test_usage_is_kept_as_it_was_reported(read: Read) -> None:
    log = Log(1)
    log.prompt()
    log.update("usage_update", used=3, size=10, cost={"amount": 0.5, "currency": "USD"})
    log.agent(id=2, result={"stopReason": "end_turn", "usage": {"totalTokens": 4, "cachedReadTokens": 1}})
    session, turn = read(log).of("usage")
    assert (session["scope"], session["contextUsed"], session["contextWindow"]) == ("session", 3, 10)
    assert session["counts"] == [{"name": "cost.amount", "value": 0.5}]
    assert session["_meta"] == {"callsheet/currency": "USD"}
    assert (turn["scope"], [one["value"] for one in turn["counts"]]) == ("turn", [4, 1])
    assert "percent" not in session


def test_modes_and_options_have_no_record_and_are_kept_whole(read: Read) -> None:
    log = Log(1)
    log.update("current_mode_update", currentModeId="plan")
    log.update("config_option_update", configOptions=[{"id": "model"}])
    log.update("available_commands_update", availableCommands=[])
    sheet = read(log)
    kept = {one["nativeType"]: one["value"]["frame"]["params"]["update"] for one in sheet.of("unmapped")}
    assert kept["session/update/current_mode_update"]["currentModeId"] == "plan"
    assert len(kept) == 3


def test_a_cancel_interrupts_the_turn_and_ends_no_call(read: Read) -> None:
    log = Log(1)
    log.prompt()
    log.update("tool_call", toolCallId="c", title="x", status="in_progress")
    log.ask(5, toolCall={"toolCallId": "c"}, options=OPTIONS)
    log.client(method="session/cancel", params={"sessionId": SESSION})
    log.answer(5, outcome="cancelled")
    log.agent(id=2, result={"stopReason": "cancelled"})
    sheet = read(log)
    assert (sheet.one("turn")["status"], sheet.one("turn")["reason"]) == ("interrupted", "cancelled")
    assert sheet.one("permission")["decision"] == "cancelled"
    assert sheet.last("tool_result") == []
    assert sheet.unmapped["session/cancel"] == 1


def test_a_version_that_was_agreed_stands_on_the_session(read: Read) -> None:
    assert [read(Log(version)).records[0]["native"]["extra"] for version in (1, 2)] == [
        {"protocolVersion": 1},
        {"protocolVersion": 2},
    ]
    middle = Log()
    middle.update("agent_message", messageId="m", content=[{"type": "text", "text": "x"}])
    head = read(middle).records[0]
    assert "extra" not in head["native"]
    assert [ref["role"] for ref in head["native"]["refs"]] == ["member"]


def test_two_messages_that_take_turns_cannot_grow_a_stream_without_bound() -> None:
    log = Log(2)
    for number in range(1000):
        log.update("agent_message_chunk", messageId=f"m{number % 2}", content={"type": "text", "text": "x"})
    sheet = sheet_of(log.data)
    assert sum(len(one["content"][0]["text"]) for one in sheet.last("message")) == 1000
    assert max(len(one["native"]["refs"]) for one in sheet.of("message")) <= 100


def test_a_record_has_the_time_of_its_own_frames(read: Read) -> None:
    log = Log(2)
    log.prompt()
    log.line(
        dir="agent_to_client",
        frame={
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {
                "sessionId": SESSION,
                "update": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "x"},
            },
        },
    )
    log.update("state_update", state="idle", stopReason="end_turn")
    assert [one.get("ts") for one in read(log).of("tool_call")] == [None]


def test_content_that_replaces_drops_what_was_appended(read: Read) -> None:
    log = Log(2)
    item = {"type": "content", "content": {"type": "text", "text": "one"}}
    log.update("tool_call_update", toolCallId="c", content=[item])
    log.update(
        "tool_call_content_chunk",
        toolCallId="c",
        content={"type": "content", "content": {"type": "text", "text": "two"}},
    )
    log.update("tool_call_update", toolCallId="c", content=[item], status="completed")
    assert read(log).one("tool_result")["displayContent"] == [{"type": "text", "text": "one"}]


def test_the_changes_of_a_call_stand_before_its_result(read: Read) -> None:
    log = Log(2)
    changes = [{"operation": "modify", "path": "/a"}]
    content = [{"type": "diff", "changes": changes, "patch": {"format": "git_patch", "text": "-x\n+y\n"}}]
    log.update("tool_call_update", toolCallId="c", status="completed", content=content)
    sheet = read(log)
    kinds = [one["type"] for one in sheet.records if one["type"] in ("file_change", "tool_result")]
    assert kinds == ["file_change", "tool_result"]
    assert sheet.one("file_change")["state"] == "applied"
