"""Chats of the Gemini CLI: what lines and documents become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.harness.gemini import GEMINI
from callsheet.pairing import Pairing, tally
from callsheet.records import decode
from callsheet.testing.check_harness import check_harness, check_reading
from callsheet.testing.desk import Files, read_session

SESSION = "5e551011-0000-4000-8000-000000000001"
HEAD = {"sessionId": SESSION, "projectHash": "ab", "startTime": "2026-11-30T10:00:00.000Z", "kind": "main"}


def message(kind: str, id: str = "m1", **members: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-11-30T10:00:01.000Z", "type": kind, "content": "", **members}


def call(id: str | None = "c1", status: str | None = "success", **members: Any) -> dict[str, Any]:
    answer = {"functionResponse": {"id": id, "name": "run_shell_command", "response": {"output": "hi"}}}
    item = {"id": id, "name": "run_shell_command", "args": {"command": "echo hi"}, "result": [answer], "status": status}
    item.update(timestamp="2026-11-30T10:00:02.000Z", resultDisplay="hi")
    return {name: value for name, value in {**item, **members}.items() if value is not None}


def response(id: str, **told: Any) -> dict[str, Any]:
    return message("user", f"u-{id}", content=[{"functionResponse": {"id": id, "name": "x", "response": told}}])


class Sheet:
    def __init__(self, data: bytes, path: str = "/p/chats/session-1.jsonl") -> None:
        files = Files({path: data})
        (session,) = GEMINI.sessions(path, files)
        self.reading = read_session(GEMINI, session, files)
        assert check_reading(self.reading) == []
        self.lines = self.reading.streams[0].lines
        self.records: list[dict[str, Any]] = [msgspec.json.decode(line) for line in self.lines]

    def last(self, kind: str) -> list[dict[str, Any]]:
        old = {one.get("supersedes") for one in self.records}
        return [one for one in self.records if one["type"] == kind and one["id"] not in old]

    def one(self, kind: str) -> dict[str, Any]:
        (found,) = self.last(kind)
        return found

    @property
    def paired(self) -> int:
        pairing = Pairing()
        for line in self.lines:
            pairing.add(decode(line))
        return tally(pairing).paired


def chat(*lines: Any) -> Sheet:
    return Sheet(b"".join(json.dumps(line).encode() + b"\n" for line in (HEAD, *lines)))


def document(*messages: Any) -> Sheet:
    return Sheet(json.dumps({**HEAD, "messages": messages}, indent=1).encode(), "/p/chats/session-1.json")


def test_a_call_and_what_the_model_got_of_it() -> None:
    sheet = chat(
        message("gemini", toolCalls=[call()]),
        response("c1", output="hi"),
        message("gemini", "m2", content="Done."),
    )
    record = sheet.one("tool_result")
    assert (record["status"], record["linkage"], record["callId"]) == ("completed", "exact", "c1")
    assert record["content"] == [{"type": "text", "text": "hi"}]
    assert [ref["role"] for ref in record["native"]["refs"]] == ["result", "sent"]
    assert not {"exec", "durationMs", "startedAt", "permission"} & set(record)
    asked = sheet.one("tool_call")
    assert (asked["name"], asked["kind"], asked["requestedBy"]) == ("run_shell_command", "execute", "model")
    assert sheet.paired == 1


def test_without_a_reply_nothing_is_known_to_have_reached_the_model() -> None:
    sheet = chat(message("gemini", toolCalls=[call()]), response("c1", output="hi"))
    record = sheet.one("tool_result")
    assert "content" not in record
    assert record["raw"][0]["functionResponse"]["response"] == {"output": "hi"}


@pytest.mark.parametrize(
    ("word", "status"),
    [("success", "completed"), ("error", "failed"), ("cancelled", "cancelled"), ("later", "unknown")],
)
def test_the_status_is_the_sources_word(word: str, status: str) -> None:
    output = {"functionResponse": {"id": "c1", "response": {"output": "Exit Code: 3"}}}
    record = chat(message("gemini", toolCalls=[call(status=word, result=[output])])).one("tool_result")
    assert record["status"] == status
    assert "exec" not in record


@pytest.mark.parametrize("word", ["executing", "awaiting_approval", None])
def test_a_call_that_has_not_ended_dangles(word: str | None) -> None:
    sheet = chat(message("gemini", toolCalls=[call(status=word, result=None)]))
    assert sheet.last("tool_result") == []
    assert len(sheet.last("tool_call")) == 1


def test_a_response_without_a_call_is_an_orphan() -> None:
    sheet = chat(response("gone", error="was canceled by the user"), message("gemini", content="Well."))
    record = sheet.one("tool_result")
    assert (record["callId"], record["status"]) == ("gone", "failed")
    assert record["error"] == {"message": "was canceled by the user"}
    assert sheet.last("tool_call") == []


def test_a_message_that_comes_again_replaces_the_one_before() -> None:
    sheet = chat(
        message("gemini", content="One", toolCalls=[call("c1")]),
        message("gemini", content="One", toolCalls=[call("c1"), call("c2")]),
        message("gemini", content="Two", toolCalls=[call("c1", status="error"), call("c2")]),
    )
    assert [one["content"][0]["text"] for one in sheet.last("message")] == ["Two"]
    assert [(one["callId"], one["status"]) for one in sheet.last("tool_result")] == [
        ("c2", "completed"),
        ("c1", "failed"),
    ]
    assert len(sheet.last("tool_call")) == 2
    assert sheet.paired == 2


def test_set_replaces_messages_and_a_rewind_keeps_what_happened() -> None:
    sheet = chat(
        {"$set": {"messages": [message("user", "u1", content=[{"text": "Hi"}])]}},
        {"$set": {"messages": [message("user", "u1", content=[{"text": "Hi"}])]}},
        {"$set": {"lastUpdated": "2026-11-30T10:00:09.000Z"}},
        message("gemini", "m2", toolCalls=[call()]),
        {"$rewindTo": "m2"},
    )
    assert [one["content"][0]["text"] for one in sheet.last("message")] == ["Hi"]
    assert sheet.paired == 1
    assert [one["nativeType"] for one in sheet.last("unmapped")] == ["$set/messages", "$set/lastUpdated", "$rewindTo"]
    assert [told.code for told in sheet.reading.diagnostics] == ["rewind"]


def test_one_id_on_two_calls_is_told_apart_by_the_message() -> None:
    sheet = chat(
        message("gemini", "m1", toolCalls=[call("exec_0", args={"command": "a"})]),
        message("gemini", "m2", toolCalls=[call("exec_0", args={"command": "b"}, status="error")]),
    )
    told = [(one["callId"], one["callIdSource"], one["native"]["callId"]) for one in sheet.last("tool_call")]
    assert told == [("exec_0#m1", "derived", "exec_0"), ("exec_0#m2", "derived", "exec_0")]
    assert [(one["linkage"], one["nativeCallId"]) for one in sheet.last("tool_result")] == [("derived", "exec_0")] * 2
    assert sheet.paired == 2


def test_a_call_that_is_logged_again_under_another_message_is_one_call() -> None:
    sheet = chat(message("gemini", "m1", toolCalls=[call()]), message("gemini", "m9", toolCalls=[call()]))
    assert len(sheet.last("tool_call")) == 1
    assert sheet.paired == 1


def test_a_call_without_an_id_gets_one() -> None:
    sheet = chat(message("gemini", toolCalls=[call(None)]))
    assert sheet.one("tool_call")["callId"] == "#m1/0"
    assert sheet.one("tool_result")["linkage"] == "derived"


def test_what_is_shown_is_kept_apart() -> None:
    grid = [[{"text": "he", "bold": True}, {"text": "llo"}], [{"text": "x"}]]
    diff = {"filePath": "/w/a.txt", "fileDiff": "@@ -0,0 +1 @@\n+x\n", "isNewFile": True}
    sheet = chat(message("gemini", toolCalls=[call("a", resultDisplay=grid), call("b", resultDisplay=diff)]))
    first, _second = sheet.last("tool_result")
    assert first["displayContent"] == [{"type": "text", "text": "hello\nx"}]
    change = sheet.one("file_change")
    assert (change["state"], change["callId"]) == ("applied", "b")
    assert change["changes"][0]["patch"] == {"format": "unified", "value": diff["fileDiff"]}


def test_thoughts_tokens_and_notices() -> None:
    sheet = chat(
        message("user", "u", content=[{"text": "<session_context>\nx\n</session_context>"}]),
        message("gemini", content="Hi", thoughts=[{"subject": "A", "description": "B"}], tokens={"input": 3}),
        message("info", "i", content="Note"),
    )
    assert [part["text"] for part in sheet.one("reasoning")["content"]] == ["A", "B"]
    assert sheet.one("usage")["counts"] == [{"name": "input", "value": 3}]
    assert [one["author"] for one in sheet.last("message")] == ["harness", "model", "harness"]


def test_documents_of_older_versions() -> None:
    sheet = document(
        message("user", "u", content="Hi\nthere"),
        message("gemini", toolCalls=[call()]),
        {"odd": 1},
    )
    assert sheet.records[0]["nativeSessionId"] == SESSION
    assert sheet.one("tool_call")["input"] == {"command": "echo hi"}
    assert "content" not in sheet.one("tool_result")
    assert all(b"\n" not in line for line in sheet.lines)


def test_agents_are_streams_of_their_sessions_bundle() -> None:
    agent = json.dumps({**HEAD, "sessionId": "kid"}).encode() + b"\n" + json.dumps(message("gemini", content="x")).encode()
    files = Files(
        {
            "/p/chats/session-1.jsonl": json.dumps(HEAD).encode() + b"\n",
            f"/p/chats/{SESSION}/kid.jsonl": agent + b"\n",
        }
    )
    (session,) = GEMINI.sessions("/p", files)
    reading = read_session(GEMINI, session, files)
    assert [(one.id, one.parent) for one in reading.streams] == [(SESSION, None), ("kid", SESSION)]


@pytest.mark.parametrize("damage", [b"{broken", b"\0\0", b"\xff", b"[" * 4000, b'"x"', b"", b'{"type":5,"id":[]}'])
def test_damage_costs_only_itself(damage: bytes) -> None:
    lines = [json.dumps(HEAD).encode(), damage, json.dumps(message("gemini", toolCalls=[call()])).encode(), b'{"id":"m2","ty']
    sheet = Sheet(b"\n".join(lines))
    assert sheet.paired == 1


def test_a_broken_document_is_a_gap() -> None:
    whole = json.dumps({**HEAD, "messages": [message("user")]}, indent=1).encode()
    sheet = Sheet(whole[:-20], "/p/session.json")
    assert sheet.one("gap")["reason"] in ("bad_json", "torn_tail")


@pytest.mark.parametrize("value", [None, True, 0, "x", [], {}, [None], {"a": []}, "\ud800", 10**30, [[[]]]], ids=str)
def test_members_of_any_type_are_survived(value: Any) -> None:
    names = ("id", "timestamp", "type", "content", "toolCalls", "thoughts", "tokens")
    items = ("id", "name", "args", "result", "status", "resultDisplay", "timestamp")
    lines = [message("gemini", f"a{number}") | {name: value} for number, name in enumerate(names)]
    lines += [message("gemini", f"b{number}", toolCalls=[call() | {name: value}]) for number, name in enumerate(items)]
    lines += [{"$set": value}, {"$rewindTo": value}, response("c1", output=value), message("user", content=[value])]
    chat(*lines)
    document(*lines)


def test_captures_and_public_chats_hold(shared: Path) -> None:
    found = [
        path
        for folder in ("captures/gemini-stored", "corpus/gemini")
        for path in sorted((shared / folder).rglob("*.json*"))
        if path.name != "projects.json"
    ]
    assert len(found) > 20
    for path in found:
        head = path.read_bytes()[:65536]
        assert GEMINI.recognises(path.name, head), path
        assert check_harness(GEMINI, path) == [], path
    assert not [path for path in (shared / "captures/claude-code").rglob("projects/**/*.jsonl") if GEMINI.recognises("x", path.read_bytes()[:65536])]
    assert CLAUDE_CODE.kind != GEMINI.kind


def test_every_call_of_the_captures_is_there(shared: Path) -> None:
    for path in sorted((shared / "captures/gemini-stored").rglob("*.jsonl")):
        wanted: dict[str, str] = {}
        for line in path.read_bytes().splitlines():
            for item in json.loads(line).get("toolCalls") or ():
                wanted[item["id"]] = {"success": "completed", "error": "failed"}[item["status"]]
        sheet = Sheet(path.read_bytes())
        found = {one["callId"]: one["status"] for one in sheet.last("tool_result")}
        assert {name: found.get(name) for name in wanted} == wanted
        assert {one["callId"] for one in sheet.last("tool_call")} == set(wanted)


def test_a_message_that_is_logged_again_is_no_reply() -> None:
    told = message("gemini", "m1", toolCalls=[call()])
    again = {"$set": {"messages": [told, response("c1", output="hi")]}}
    assert "content" not in chat(told, response("c1", output="hi"), again).one("tool_result")
    silent = message("gemini", "m2", thoughts=[])
    assert "content" not in chat(told, response("c1", output="hi"), silent).one("tool_result")
    spent = message("gemini", "m2", tokens={"input": 1})
    assert "content" in chat(told, response("c1", output="hi"), spent).one("tool_result")


def test_the_session_cites_the_line_that_names_it() -> None:
    sheet = Sheet(b"".join(json.dumps(line).encode() + b"\n" for line in (message("user", content="Go."), HEAD)))
    head = sheet.records[0]
    assert head["nativeSessionId"] == SESSION
    assert [(ref["line"], ref["role"]) for ref in head["native"]["refs"]] == [(1, "member"), (2, "member")]


def test_a_response_that_does_not_survive_costs_no_line() -> None:
    told = message("user", "u", content=[{"functionResponse": {"id": "c1", "response": [2**60, True]}}])
    sheet = chat(message("gemini", toolCalls=[call()]), told, message("gemini", "m2", content="Done."))
    assert "content" not in sheet.one("tool_result")
    assert [one["native"]["refs"][0]["line"] for one in sheet.last("unmapped") if one["nativeType"] == "user"] == [3]
