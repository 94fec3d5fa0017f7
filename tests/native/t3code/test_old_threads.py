"""What becomes of the threads of T3 Code V1: activities, answers, messages, turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.t3code.conftest import NOW, SECRET, THREAD, State, nowhere, read

from callsheet.library.importing import Imported, import_sources


def codex(item: dict[str, Any], kind: str = "command_execution") -> dict[str, Any]:
    return {"itemType": kind, "detail": "d", "data": {"threadId": "n", "item": item}}


def test_a_codex_command_of_v1(old: State) -> None:
    old.activity("tool.started", {"itemType": "command_execution", "detail": "x"})
    item = {"type": "commandExecution", "id": "call_A", "command": "x", "cwd": "/work", "status": "failed"}
    old.activity("tool.completed", codex({**item, "aggregatedOutput": "o", "exitCode": 3, "durationMs": 5}))
    sheet = read(old)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert (call["callId"], call["input"], call["kind"]) == ("call_A", {"command": "x"}, "execute")
    assert (result["status"], result["durationMs"]) == ("failed", 5)
    assert result["exec"] == {
        "command": "x",
        "cwd": {"root": "host", "path": "/work"},
        "exitCode": 3,
        "output": "o",
    }
    assert [one["nativeType"] for one in sheet.of("unmapped")] == ["tool.started"]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("completed", "completed"),
        ("declined", "denied"),
        ("failed", "failed"),
        ("inProgress", "unknown"),
        (None, "unknown"),
    ],
)
def test_status_of_v1_is_the_providers_item(old: State, status: str | None, word: str) -> None:
    old.activity(
        "tool.completed",
        {**codex({"type": "commandExecution", "id": "c", "status": status}), "status": "completed"},
    )
    (result,) = read(old).of("tool_result")
    assert result["status"] == word


def test_a_claude_tool_of_v1_has_no_id(old: State) -> None:
    own = old.activity(
        "tool.completed",
        {"itemType": "command_execution", "data": {"toolName": "Bash", "input": {"command": "ls"}}},
    )
    sheet = read(old)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert (call["callId"], call["callIdSource"], call["name"]) == (f"#{own}", "derived", "Bash")
    assert (result["linkage"], result["status"]) == ("derived", "unknown")


def test_an_mcp_tool_of_v1_is_exact(old: State) -> None:
    item = {
        "type": "mcpToolCall",
        "id": "m",
        "server": "github",
        "tool": "get",
        "status": "failed",
        "arguments": {"n": 1},
    }
    old.activity("tool.completed", codex({**item, "error": {"message": "Not Found"}}, "mcp_tool_call"))
    sheet = read(old)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert call["provider"] == {"kind": "mcp", "server": "github", "tool": "get", "identity": "exact"}
    assert (call["input"], result["error"]) == ({"n": 1}, {"message": "Not Found"})


def test_a_refusal_of_v1(old: State) -> None:
    old.activity("tool.denied", {"toolName": "Bash", "toolUseId": "toolu_D", "detail": "Denied by policy"})
    sheet = read(old)
    (result,) = sheet.of("tool_result")
    assert (result["callId"], result["status"]) == ("toolu_D", "denied")
    assert sheet.tally().paired == 1


@pytest.mark.parametrize("where", ["event", "activity", "projection"])
def test_an_approval_of_v1(old: State, where: str) -> None:
    old.activity("approval.requested", {"requestId": "rq", "requestKind": "command", "detail": "git push"})
    if where == "event":
        old.event("thread.approval-response-requested", {"requestId": "rq", "decision": "decline"})
    elif where == "activity":
        old.activity("approval.resolved", {"requestId": "rq", "decision": "decline"})
    else:
        row = {"request_id": "rq", "thread_id": THREAD, "status": "resolved", "decision": "decline"}
        old.insert("projection_pending_approvals", row)
    (permission,) = read(old).of("permission")
    assert (permission["status"], permission["decision"]) == ("resolved", "reject_once")
    assert permission["subject"] == {"command": "git push"}
    assert "decidedBy" not in permission


def test_an_approval_of_v1_that_waits(old: State) -> None:
    old.activity("approval.requested", {"requestId": "rq", "requestKind": "file-change", "detail": "a.rs"})
    row = {"request_id": "rq", "thread_id": THREAD, "status": "pending", "created_at": NOW}
    old.insert("projection_pending_approvals", row)
    old.activity("approval.requested", {"requestId": "other", "detail": "b.rs"})
    told = {one["requestId"]: one for one in read(old).of("permission")}
    assert told["rq"]["status"] == "pending"
    assert "status" not in told["other"]  # no row says where it stands
    assert not any("decision" in one for one in told.values())


def test_case_031(shared: Path, old: State) -> None:
    """The case's activities as rows of the owner's table: the secret is nowhere."""
    (folder,) = (shared / "cases").glob("031-*")
    facts = json.loads((folder / "case.json").read_text())["expected"]["facts"]
    for line in (folder / "activities.jsonl").read_text().splitlines():
        row = json.loads(line)
        columns = {"activity_id": row["id"], "created_at": row["createdAt"], "turn_id": row["turnId"]}
        old.activity(row["kind"], row["payload"], **columns, tone=row["tone"], sequence=row["sequence"])
    sheet = read(old)
    requests = {one["requestId"]: one["status"] for one in sheet.of("input_request")}
    assert (len(requests), requests) == (facts["input_requests"], facts["input_status"])
    for secret in facts["must_not_contain_anywhere"]:
        nowhere(sheet.everything(), secret)


def test_a_secret_of_v1_is_nowhere(old: State, tmp_path: Path) -> None:
    old.activity(
        "user-input.requested",
        {"requestId": "rq", "questions": [{"id": "s", "question": "T?", "secret": True}]},
    )
    old.event("thread.user-input-response-requested", {"requestId": "rq", "answers": {"s": SECRET}})
    old.activity("user-input.resolved", {"requestId": "rq", "answers": {"s": [SECRET]}})
    old.insert(
        "projection_thread_messages",
        {"message_id": "m", "thread_id": THREAD, "role": "user", "text": f"It is {SECRET}"},
    )
    sheet = read(old)
    assert sheet.of("input_request")[-1]["status"] == "answered"
    nowhere(sheet.everything(), SECRET)
    (one,) = import_sources([old.path], tmp_path / "out")
    assert isinstance(one, Imported)
    for file in one.bundle.rglob("*.zst"):
        nowhere(zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read(), SECRET)


def test_set_up_scripts_are_hooks(old: State) -> None:
    told = {"scriptId": "s", "scriptName": "pnpm install", "terminalId": "t"}
    for kind in ("requested", "started", "failed"):
        old.activity(f"setup-script.{kind}", told)
    hooks = read(old).of("hook")
    assert [hook["status"] for hook in hooks] == ["unknown", "unknown", "failed"]
    assert {hook["event"] for hook in hooks} == {"workspace_setup"}
    assert hooks[2]["supersedes"] == hooks[1]["id"]
    assert "exitCode" not in hooks[2]


def test_tasks_windows_plans_and_turns(old: State) -> None:
    old.activity("task.started", {"taskId": "t", "taskType": "subagent", "detail": "Look"})
    old.activity("task.completed", {"taskId": "t", "status": "completed"})
    old.activity("task.started", {"taskId": "b", "taskType": "local_bash", "detail": "make"})
    old.activity("task.completed", {"taskId": "b", "status": "stopped"})
    old.activity("turn.plan.updated", {"plan": [{"step": "Fix", "status": "inProgress"}]})
    old.activity("context-window.updated", {"usedTokens": 12, "maxTokens": 100, "inputTokens": 11})
    files = json.dumps([{"path": "a.rs", "kind": "update"}])
    row = {"thread_id": THREAD, "turn_id": "turn-1", "state": "error", "checkpoint_files_json": files}
    old.insert("projection_turns", row)
    sheet = read(old)
    assert [one["status"] for one in sheet.of("subagent")] == ["running", "completed"]
    assert [one["status"] for one in sheet.of("terminal")] == ["running", "stopped"]
    assert sheet.of("plan")[0]["entries"] == [{"text": "Fix", "status": "in_progress"}]
    (usage,), (turn,), (change,) = sheet.of("usage"), sheet.of("turn"), sheet.of("file_change")
    assert (usage["contextUsed"], usage["contextWindow"]) == (12, 100)
    assert "percent" not in usage
    assert turn["status"] == "failed"
    assert (change["scope"], change["turnId"]) == ("turn", "turn-1")


@pytest.mark.parametrize("value", [None, 1, [], {}, "x", [1, {}], {"id": 1, "item": []}])
def test_members_of_any_type_in_v1(old: State, value: Any) -> None:
    kinds = (
        "tool.completed",
        "tool.denied",
        "approval.requested",
        "approval.resolved",
        "user-input.requested",
        "user-input.resolved",
        "task.started",
        "task.completed",
        "turn.plan.updated",
        "context-window.updated",
        "setup-script.started",
        "runtime.error",
        "odd",
    )
    names = (
        "data",
        "itemType",
        "requestId",
        "questions",
        "answers",
        "decision",
        "taskId",
        "plan",
        "usedTokens",
        "scriptName",
        "message",
        "toolUseId",
    )
    for kind in kinds:
        for name in names:
            old.activity(kind, {name: value}, created_at="2026-10-26T18:00:00.000Z")
    assert read(old).records
