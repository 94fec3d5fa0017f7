"""What other entries become: messages, a person's own command, usage, compaction; and hostile entries."""

from __future__ import annotations

from typing import Any

import pytest
from tests.native.openclaw.conftest import SESSION, Made, Read


def test_what_openclaw_said_is_not_the_persons(made: Made, read: Read) -> None:
    made.prompt("typed")
    made.prompt("[OpenClaw exec completion]", provenance={"kind": "internal_system", "sourceTool": "exec"})
    made.add("custom_message", customType="openclaw.runtime-context", content="context", display=False)
    authors = [record["author"] for record in read(made).of("message")]
    assert authors == ["user", "harness", "harness"]


def test_a_persons_own_command(made: Made, read: Read) -> None:
    made.message("bashExecution", command="ls", output="a\n", exitCode=0, cancelled=False)
    sheet = read(made)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert (call["requestedBy"], call["callIdSource"]) == ("user", "derived")
    assert "name" not in call
    assert result["callId"] == call["callId"]
    assert result["status"] == "unknown"
    assert result["exec"] == {"command": "ls", "exitCode": 0, "output": "a\n"}


def test_compaction_and_usage(made: Made, read: Read) -> None:
    usage = {"input": 1, "cost": {"total": 0.5}, "contextUsage": {"state": "available", "promptTokens": 151}}
    made.message("assistant", content=[], usage=usage, stopReason="stop")
    made.add("compaction", summary="Short.", firstKeptEntryId="e1", tokensBefore=194, tokensAfter=35)
    sheet = read(made)
    (told,), (cut,) = sheet.of("usage"), sheet.of("compaction")
    assert {one["name"]: one["value"] for one in told["counts"]} == {
        "input": 1,
        "cost.total": 0.5,
        "contextUsage.promptTokens": 151,
    }
    assert cut["summary"] == [{"type": "text", "text": "Short."}]
    assert (cut["before"], cut["after"]) == (
        {"firstKeptEntryId": "e1", "tokensBefore": 194},
        {"tokensAfter": 35},
    )


def test_arguments_that_do_not_survive_stay_text(made: Made, read: Read) -> None:
    made.call(("c", "exec", {}))
    text = made.data.replace(b'"arguments": {}', b'"arguments": {"n": 12345678901234567890, "n": 1}')
    (call,) = read(text).of("tool_call")
    assert call["inputText"] == '{"n": 12345678901234567890, "n": 1}'
    assert "input" not in call


def test_the_head_names_the_session(made: Made, read: Read) -> None:
    made.add("session_info", name="Fix the parser")
    sheet = read(made)
    head = sheet.records[0]
    assert (head["nativeSessionId"], head["title"]) == (SESSION, "Fix the parser")
    assert head["roots"] == {"project": "/home/dev/acme-app"}
    assert [ref["role"] for ref in head["native"]["refs"]] == ["head", "title"]


# -- hostile ------------------------------------------------------------------------------------------------------

ANY: list[Any] = [None, 1, True, [], {}, "x", [1, None], {"id": 1}, [{"type": []}], "\ud800"]


@pytest.mark.parametrize("value", ANY)
def test_members_of_any_type(made: Made, read: Read, value: Any) -> None:
    message = [
        "role",
        "content",
        "timestamp",
        "toolCallId",
        "toolName",
        "details",
        "isError",
        "api",
        "responseId",
        "usage",
        "stopReason",
        "errorMessage",
        "provenance",
        "customType",
        "__openclaw",
        "command",
        "output",
        "exitCode",
        "cancelled",
    ]
    entry = [
        "type",
        "id",
        "parentId",
        "timestamp",
        "version",
        "cwd",
        "name",
        "parentSession",
        "customType",
        "message",
        "content",
        "summary",
        "details",
    ]
    details = [
        "status",
        "exitCode",
        "exitSignal",
        "failureKind",
        "durationMs",
        "timedOut",
        "cwd",
        "sessionId",
        "pid",
        "startedAt",
        "error",
        "reason",
        "deniedReason",
        "approvalReviews",
        "approvalId",
        "mcpServer",
        "changed",
        "patch",
        "summary",
        "plan",
        "childSessionKey",
        "answers",
        "sessions",
        "parentToolCallId",
        "toolCallId",
        "toolName",
        "input",
        "result",
    ]
    block = ["type", "text", "thinking", "id", "name", "arguments", "data", "mimeType"]
    for role in ("assistant", "toolResult", "user", "custom", "bashExecution", "odd"):
        for name in message:
            told = {"role": role, "toolCallId": "c", "toolName": "exec", "isError": False, name: value}
            made.add("message", message=told)
    for tool in ("exec", "process", "write", "update_plan", "ask_user", "sessions_spawn", "apply_patch"):
        for name in details:
            made.call((f"{tool}{name}", tool, {"path": value, "questions": value}))
            made.result(f"{tool}{name}", tool=tool, details={name: value})
            made.message("custom", customType="openclaw.nested-tool.v1", details={name: value})
    for kind in ("toolCall", "thinking", "text", "image", "odd"):
        for name in block:
            made.message("assistant", content=[{"type": kind, name: value}])
    for kind in ("compaction", "custom_message", "branch_summary", "session_info", "session", "custom"):
        for name in entry:
            made.add(kind, **{name: value})
    sheet = read(made)
    assert len(sheet.records) > 500


def test_halves_of_surrogate_pairs_stay_exact(made: Made, read: Read) -> None:
    made.call(("c", "exec", {"command": "\ud83d"}))
    made.result("c", "out \ud83d", details={"status": "completed", "aggregated": "\ud83d"})
    sheet = read(made)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert "\\ud83d" in call["inputText"]
    assert result["capture"]["raw"]["state"] == "external"
    assert any(b"\\ud83d" in blob for blob in sheet.reading.blobs.values())


@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_torn_and_nul_lines_cost_nothing_else(made: Made, read: Read, chunk: int) -> None:
    made.call(("c", "exec", {"command": "ls"}))
    made.result("c", "a")
    head, call, result = made.data.splitlines(keepends=True)
    torn = (
        head
        + b"\xff\xfe\n"
        + call.rstrip(b"\n")
        + call[:40]
        + b"\n"
        + b"\0" * 50
        + b"\n"
        + result
        + call[:60]
    )
    sheet = read(torn, chunk=chunk)
    assert sheet.tally().paired == 1
    assert {gap["reason"] for gap in sheet.of("gap")} == {"bad_utf8", "bad_json", "nul", "torn_tail"}


def test_a_ring_of_parents_ends(read: Read) -> None:
    made = Made()
    for number in range(50):
        made.last = f"e{(number + 2) % 50 + 1}"
        made.call(("x", "exec", {"command": str(number)}))
        made.last = f"e{(number + 2) % 50 + 1}"
        made.result("x", str(number))
    assert read(made).tally().calls == 50
