"""What entries become: calls and results, the tree, questions, processes, files, agents, secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.native.openclaw.conftest import Made, Read, Sheet


def pairs(sheet: Sheet) -> dict[str, str | None]:
    """Each call's command with the text of the result that has its id."""
    results = {one["callId"]: one for one in sheet.of("tool_result") if "callId" in one}
    return {
        call["input"]["command"]: text_of(results[call["callId"]]) if call["callId"] in results else None
        for call in sheet.of("tool_call")
    }


def text_of(result: dict[str, Any]) -> str:
    parts = result["content"] if "content" in result else result["raw"]["content"]
    return "".join(part["text"] for part in parts)


def test_ids_that_restart_are_told_apart_by_the_tree(made: Made, read: Read) -> None:
    made.call(("exec_0", "exec", {"command": "one"}))
    made.result("exec_0", "1")
    made.call(("exec_0", "exec", {"command": "two"}))
    made.result("exec_0", "2")
    sheet = read(made)
    assert pairs(sheet) == {"one": "1", "two": "2"}
    assert [call["callId"] for call in sheet.of("tool_call")] == ["exec_0#e1", "exec_0#e3"]
    assert {call["callIdSource"] for call in sheet.of("tool_call")} == {"derived"}
    assert {call["native"]["callId"] for call in sheet.of("tool_call")} == {"exec_0"}
    assert {result["linkage"] for result in sheet.of("tool_result")} == {"derived"}
    assert {result["nativeCallId"] for result in sheet.of("tool_result")} == {"exec_0"}


def test_results_chain_behind_each_other(made: Made, read: Read) -> None:
    """Results of one message follow each other; the chain still leads to the message."""
    for words in ("a", "b"):
        made.call(("c0", "exec", {"command": f"{words}0"}), ("c1", "exec", {"command": f"{words}1"}))
        made.result("c0", f"{words}0")
        made.add("custom", customType="openclaw.cache-ttl", data={})
        made.result("c1", f"{words}1")
    assert pairs(read(made)) == {"a0": "a0", "a1": "a1", "b0": "b0", "b1": "b1"}


def test_one_id_twice_in_one_message_cannot_be_told_apart(made: Made, read: Read) -> None:
    made.call(("x", "exec", {"command": "one"}), ("x", "exec", {"command": "two"}))
    made.result("x", "1")
    made.result("x", "2")
    sheet = read(made)
    assert [call["callId"] for call in sheet.of("tool_call")] == ["x", "x"]
    for result in sheet.of("tool_result"):
        assert result["linkage"] == "ambiguous"
        assert result["nativeCallId"] == "x"
        assert "callId" not in result


def test_a_result_whose_chain_leads_to_another_message_is_ambiguous(made: Made, read: Read) -> None:
    made.call(("x", "exec", {"command": "one"}))
    made.call(("x", "exec", {"command": "two"}))
    made.said("nothing of x")
    made.result("x", "?")
    (result,) = read(made).of("tool_result")
    assert result["linkage"] == "ambiguous"
    assert "callId" not in result


def test_results_before_their_calls(made: Made, read: Read) -> None:
    """Order in the file is not causality: links are resolved on the whole transcript."""
    made.call(("x", "exec", {"command": "one"}))
    made.result("x", "1")
    made.call(("x", "exec", {"command": "two"}))
    made.result("x", "2")
    head, *entries = made.entries
    shuffled = Made()
    shuffled.entries = [head, *reversed(entries)]
    assert pairs(read(shuffled)) == {"one": "1", "two": "2"}


def test_an_entry_written_twice_is_one_entity(made: Made, read: Read) -> None:
    made.call(("x", "exec", {"command": "one"}))
    made.entries.append(made.entries[-1])
    made.result("x", "1")
    sheet = read(made)
    (call,) = sheet.of("tool_call")
    assert call["callId"] == "x"
    assert [ref["line"] for ref in call["native"]["refs"]] == [2, 3]
    assert sheet.codes["repeated_entry"] == 1
    assert sheet.tally().paired == 1


def test_branches_that_were_left(made: Made, read: Read) -> None:
    fork = made.prompt("first")
    made.said("left")
    made.last = fork
    made.said("kept")
    made.prompt("second")
    marks = {
        part["text"]: record["native"].get("extra", {}).get("branch")
        for record in read(made).of("message")
        for part in record["content"]
    }
    assert marks == {"first": None, "left": "left", "kept": None, "second": None}


def test_a_parent_that_is_not_there(made: Made, read: Read) -> None:
    made.prompt("before")
    made.last = "gone"
    made.prompt("after")
    sheet = read(made)
    (gap,) = sheet.of("gap")
    assert (gap["reason"], gap["line"]) == ("missing_parent", 3)
    assert all("extra" not in record["native"] for record in sheet.of("message"))


# -- outcomes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "error", "details", "status"),
    [
        ("exec", False, {"status": "completed", "exitCode": 3}, "completed"),
        ("exec", False, {"status": "failed", "exitCode": None, "timedOut": True}, "failed"),
        ("exec", True, {"status": "failed", "exitSignal": "SIGKILL", "failureKind": "signal"}, "failed"),
        ("exec", False, {"status": "running", "sessionId": "calm-fox", "pid": 7}, "completed"),
        ("exec", False, {"status": "error", "tool": "exec", "error": "exec denied: x"}, "failed"),
        ("exec", True, {"status": "failed", "failureKind": "auto-review-denied"}, "denied"),
        ("exec", True, {"status": "blocked", "deniedReason": "plugin-before-tool-call"}, "denied"),
        ("exec", True, {"status": "blocked"}, "failed"),
        ("exec", False, {"status": "approval-pending", "approvalId": "a1"}, "unknown"),
        ("process", False, {"status": "failed", "sessionId": "calm-fox", "exitCode": 0}, "completed"),
        ("read", False, {"status": "error", "tool": "read", "error": "no such file"}, "failed"),
        ("web_fetch", False, {"status": 200}, "completed"),
        ("anything", True, {}, "failed"),
        ("anything", False, None, "completed"),
        ("anything", None, None, "unknown"),
        ("anything", "false", None, "unknown"),
        ("exec", True, {"openclawSyntheticMissingToolResult": True}, "unknown"),
    ],
)
def test_status_is_the_sources_word(
    made: Made, read: Read, tool: str, error: Any, details: Any, status: str
) -> None:
    made.call(("c", tool, {}))
    made.result("c", "Exec denied by the user", tool=tool, error=error, details=details)
    (result,) = read(made).of("tool_result")
    assert result["status"] == status


def test_process_details_come_from_fields_alone(made: Made, read: Read) -> None:
    details = {
        "status": "completed",
        "exitCode": 3,
        "exitSignal": None,
        "durationMs": 12,
        "aggregated": "x\n\n(Command exited with code 3)",
        "cwd": "/home/dev/acme-app/sub",
    }
    made.call(("c", "exec", {"command": "false"}))
    made.result("c", "(Command exited with code 3)", details=details)
    made.call(("d", "exec", {"command": "true"}))
    made.result("d", "(Command exited with code 3)")
    first, second = read(made).of("tool_result")
    assert first["exec"] == {"exitCode": 3, "cwd": {"root": "project", "path": "sub"}}
    assert first["durationMs"] == 12
    assert "exec" not in second


@pytest.mark.parametrize("code", [2**32, -(2**31) - 1, 1.5, "3", True, None])
def test_exit_codes_that_are_none(made: Made, read: Read, code: Any) -> None:
    made.call(("c", "exec", {}))
    made.result("c", details={"status": "completed", "exitCode": code})
    (result,) = read(made).of("tool_result")
    assert "exec" not in result


def test_a_legacy_file_proves_no_delivery(made: Made, read: Read) -> None:
    made.call(("c", "exec", {}))
    made.result("c", "words", details={"status": "completed"})
    made.said()
    (result,) = read(made).of("tool_result")
    assert "content" not in result
    assert result["capture"]["content"]["state"] == "absent"
    assert result["raw"] == {
        "content": [{"type": "text", "text": "words"}],
        "details": {"status": "completed"},
    }


def test_the_error_of_a_request_is_no_outcome_of_its_call(made: Made, read: Read) -> None:
    made.call(("c", "write", {"path": "n.md"}), stopReason="error", errorMessage="terminated")
    sheet = read(made)
    assert sheet.tally().dangling == 1
    (message,) = sheet.of("message")
    assert (message["author"], message["content"][0]["text"]) == ("harness", "terminated")
    assert b"terminated" not in json.dumps(sheet.of("tool_call")).encode()


def test_an_mcp_tool_is_named_by_its_result(made: Made, read: Read) -> None:
    made.call(("c", "composio__COMPOSIO__GET", {}))
    made.result(
        "c", tool="composio__COMPOSIO__GET", details={"mcpServer": "composio", "mcpTool": "COMPOSIO__GET"}
    )
    sheet = read(made)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert "provider" not in call
    assert "kind" not in call
    assert result["provider"] == {
        "kind": "mcp",
        "server": "composio",
        "tool": "COMPOSIO__GET",
        "identity": "exact",
    }


# -- code cells, processes, files, plans --------------------------------------------------------------------------


def nested(parent: str, call_id: str, **members: Any) -> dict[str, Any]:
    details = {
        "parentToolCallId": parent,
        "toolCallId": call_id,
        "toolName": "exec",
        "input": {"command": "ls"},
        "result": {
            "content": [{"type": "text", "text": "a"}],
            "details": {"status": "completed", "exitCode": 2},
        },
        "isError": False,
        "startedAt": 1796076796367,
        "timestamp": 1796076796455,
        **members,
    }
    return {
        "customType": "openclaw.nested-tool.v1",
        "excludeFromContext": True,
        "content": "",
        "details": details,
    }


def test_a_code_cell_and_its_calls(made: Made, read: Read) -> None:
    made.call(("cell", "exec", {"code": "await exec()"}))
    made.message("custom", **nested("cell", "tool_search_code:cell:exec:1"))
    made.result("cell", '{"status":"completed"}', details={"status": "completed"})
    sheet = read(made)
    outer, inner = sheet.of("tool_call")
    assert (inner["requestedBy"], inner["parentCallId"]) == ("code", "cell")
    assert outer["requestedBy"] == "model"
    result = sheet.result("tool_search_code:cell:exec:1")
    assert result["linkage"] == "exact"
    assert result["status"] == "completed"
    assert result["exec"]["exitCode"] == 2
    assert result["startedAt"] == "2026-11-30T22:13:16.367Z"
    assert "content" not in result


def test_cells_of_one_id_have_calls_of_their_own(made: Made, read: Read) -> None:
    for _ in range(2):
        made.call(("cell", "exec", {"code": "await exec()"}))
        made.message("custom", **nested("cell", "code:cell:exec:1"))
        made.result("cell")
    sheet = read(made)
    inner = [call for call in sheet.of("tool_call") if call["requestedBy"] == "code"]
    assert [call["parentCallId"] for call in inner] == ["cell#e1", "cell#e4"]
    assert [call["callId"] for call in inner] == ["code:cell:exec:1#e2", "code:cell:exec:1#e5"]
    assert sheet.tally().paired == 4


def test_a_process_and_its_later_reads(made: Made, read: Read) -> None:
    started = {"status": "running", "sessionId": "calm-fox", "pid": 7, "startedAt": 1796076701828}
    made.call(("c", "exec", {"command": "make"}))
    made.result("c", details=started)
    made.call(("p", "process", {"action": "poll", "sessionId": "calm-fox"}))
    polled = {"status": "failed", "sessionId": "calm-fox", "exitCode": 4, "aggregated": "x", "name": "make"}
    made.result("p", tool="process", details=polled)
    sheet = read(made)
    first, last = sheet.of("terminal")
    assert first["status"] == "running"
    assert "command" not in first
    assert last["supersedes"] == first["id"]
    assert (last["status"], last["exitCode"], last["callId"]) == ("exited", 4, "c")
    assert [result["exec"].get("terminalId") for result in sheet.of("tool_result")] == ["calm-fox"] * 2
    assert sheet.result("c")["exec"]["processId"] == 7


def test_one_name_for_two_processes_is_no_link(made: Made, read: Read) -> None:
    for call_id in ("c", "d"):
        made.call((call_id, "exec", {"command": call_id}))
        made.result(call_id, details={"status": "running", "sessionId": "calm-fox"})
    made.call(("p", "process", {"action": "poll"}))
    made.result("p", tool="process", details={"status": "completed", "sessionId": "calm-fox", "exitCode": 0})
    sheet = read(made)
    assert [one["terminalId"] for one in sheet.of("terminal")] == ["calm-fox#e2", "calm-fox#e4"]
    assert "terminalId" not in sheet.result("p")["exec"]


def test_changed_files(made: Made, read: Read) -> None:
    patch = "--- notes.txt\n+++ notes.txt\n@@ -0,0 +1 @@\n+a\n"
    made.call(("w", "write", {"path": "notes.txt", "content": "a\n"}))
    made.result("w", tool="write", details={"changed": True, "created": True, "patch": patch})
    made.call(("e", "edit", {"path": "/etc/hosts", "edits": []}))
    made.result("e", tool="edit", details={"changed": False})
    made.call(("f", "edit", {"path": "notes.txt"}))
    made.result("f", tool="edit", error=True, details={"status": "error", "error": "no match"})
    made.call(("p", "apply_patch", {"input": "*** Begin Patch"}))
    summary = {"added": ["a.txt"], "modified": ["/else/b.txt"], "deleted": []}
    made.result("p", tool="apply_patch", details={"summary": summary})
    first, second = read(made).of("file_change")
    assert first["changes"] == [
        {
            "path": {"root": "host", "path": "notes.txt"},
            "change": "add",
            "patch": {"format": "unified", "value": patch},
        }
    ]
    assert [(one["change"], one["path"]["root"]) for one in second["changes"]] == [
        ("add", "host"),
        ("modify", "host"),
    ]


def test_a_plan_is_revised(made: Made, read: Read) -> None:
    for status in ("pending", "completed"):
        plan = [{"step": "Fix", "status": status}]
        made.call((f"c{status}", "update_plan", {"plan": plan}))
        made.result(f"c{status}", tool="update_plan", details={"status": "updated", "plan": plan})
    first, last = read(made).of("plan")
    assert last["supersedes"] == first["id"]
    assert last["entries"] == [{"text": "Fix", "status": "completed"}]


def test_an_agent_is_a_subagent(made: Made, read: Read) -> None:
    key = "agent:main:subagent:1"
    made.call(("s", "sessions_spawn", {"task": "Look"}))
    made.result("s", tool="sessions_spawn", details={"status": "accepted", "childSessionKey": key})
    (agent,) = read(made).of("subagent")
    assert (agent["agentId"], agent["callId"], agent["status"]) == (key, "s", "running")


# -- questions and secrets ----------------------------------------------------------------------------------------

QUESTIONS = [
    {"id": "which", "header": "H", "question": "Which?", "options": [{"label": "A"}, {"label": "B"}]},
    {"question": "More?", "multiSelect": True},
]


def test_a_question_and_its_answers(made: Made, read: Read) -> None:
    made.call(("q", "ask_user", {"questions": QUESTIONS}))
    answers = {"which": ["A"], "1": ["one", "two"]}
    made.result("q", tool="ask_user", details={"status": "answered", "answers": {"answers": answers}})
    first, last = read(made).of("input_request")
    assert "status" not in first
    assert (last["requestId"], last["idSource"], last["status"]) == ("q", "derived", "answered")
    assert last["answers"] == [
        {"questionId": "which", "selected": ["A"]},
        {"questionId": "1", "text": "one"},
        {"questionId": "1", "text": "two"},
    ]


def test_no_answer_has_no_status(made: Made, read: Read) -> None:
    made.call(("q", "ask_user", {"questions": QUESTIONS}))
    made.result("q", tool="ask_user", details={"status": "no_answer"})
    last = read(made).of("input_request")[-1]
    assert "status" not in last
    assert last["native"]["extra"] == {"status": "no_answer"}


@pytest.mark.parametrize("secret", ["zz-FAKE-token-000111", "ab", 'with "quotes" and \\ and ü'])
@pytest.mark.parametrize("keep", [False, True])
def test_a_secret_is_nowhere(made: Made, read: Read, secret: str, keep: bool) -> None:
    asked = [{"id": "token", "question": "Token?", "isSecret": True}]
    made.call(("q", "ask_user", {"questions": asked}))
    answers = {"answers": {"token": [secret]}}
    made.result("q", f"Token: {secret}", tool="ask_user", details={"status": "answered", "answers": answers})
    if len(secret) > 4:
        made.prompt(f"It was {secret}.")
        made.call(("x", "exec", {"command": f"login {secret}"}))
        made.result("x", f"echo {secret}", details={"status": "completed", "aggregated": secret})
    sheet = read(made, keep_reasoning=keep)
    request = sheet.of("input_request")[-1]
    assert request["status"] == "answered"
    assert "answers" not in request
    assert request["questions"][0]["secret"] is True
    everything = sheet.everything()
    for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        if len(secret) > 4:
            assert form.encode() not in everything
        else:
            assert f"Token: {form}".encode() not in everything
            assert f'["{form}"]'.encode() not in everything


def test_a_stored_secret_was_asked_for(made: Made, read: Read) -> None:
    made.call(("s", "secrets", {"action": "request", "name": "GH", "reason": "To push"}))
    made.result("s", tool="secrets", details={"status": "stored", "name": "GH", "ref": "secret:GH"})
    last = read(made).of("input_request")[-1]
    assert (last["secret"], last["status"]) == (True, "answered")
    assert last["questions"] == [{"id": "secret", "header": "GH", "text": "To push", "secret": True}]
    assert "answers" not in last


def test_thinking_is_kept_only_when_asked_for(made: Made, read: Read) -> None:
    made.message(
        "assistant", content=[{"type": "thinking", "thinking": "private words", "thinkingSignature": "s"}]
    )
    sheet = read(made)
    (thought,) = sheet.of("reasoning")
    assert "form" not in thought
    assert thought["capture"]["content"]["state"] == "redacted"
    assert b"private words" not in sheet.everything()
    (thought,) = read(made, keep_reasoning=True).of("reasoning")
    assert thought["content"] == [{"type": "text", "text": "private words"}]
