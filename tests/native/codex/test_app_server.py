"""Frames of an app server: calls with and without raw events, requests, turns, and what must not be kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.codex.conftest import Sheet
from tests.native.codex.frames import CWD, THREAD, TURN, Wire, every_frame, sheet_of

from callsheet.library.importing import Failure, import_sources
from callsheet.testing.lies import unseen


COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
QUESTIONS = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"

ReadWire = Callable[[Wire], Sheet]


@pytest.fixture
def read(tmp_path: Path) -> ReadWire:
    return lambda wire: sheet_of(wire.data, tmp_path)


# -- items --------------------------------------------------------------------------------------------------------


def test_an_item_without_a_raw_one_is_call_and_result(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "call_1", command="make")
    wire.command("completed", "call_1", command="make", status="failed", exitCode=2)
    sheet = read(wire)
    call, result = sheet.one("tool_call"), sheet.one("tool_result")
    assert (call["callId"], call["kind"], call["input"]) == ("call_1", "execute", {"command": "make"})
    assert "name" not in call
    assert "requestedBy" not in call
    assert (result["status"], result["linkage"]) == ("failed", "exact")
    assert result["exec"]["exitCode"] == 2
    assert result["exec"]["output"] == "a\n"
    assert result["exec"]["cwd"] == {"root": "project", "path": "."}
    assert (result["startedAt"], result["completedAt"]) == (
        "2026-11-30T22:03:58.000Z",
        "2026-11-30T22:03:59.000Z",
    )
    assert "content" not in result


def test_no_output_is_an_empty_one_where_a_process_ended(read: ReadWire) -> None:
    wire = Wire()
    for name, code in (("quiet", 0), ("never_ran", None)):
        wire.command("started", name)
        status = "declined" if code is None else "completed"
        wire.command("completed", name, status=status, aggregatedOutput=None, exitCode=code, durationMs=None)
    results = {one["callId"]: one for one in read(wire).last("tool_result")}
    assert results["quiet"]["exec"]["output"] == ""
    assert "output" not in results["never_ran"]["exec"]
    assert results["never_ran"]["status"] == "denied"


def test_the_whole_output_replaces_deltas_that_lost_the_beginning(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "c")
    wire.tell("item/commandExecution/outputDelta", itemId="c", delta="two\n")
    wire.command("completed", "c", aggregatedOutput="one\ntwo\n")
    wire.turn("completed", "completed")
    sheet = read(wire)
    assert sheet.one("tool_result")["exec"]["output"] == "one\ntwo\n"
    assert sheet.of("preview") == []


def test_a_call_that_its_turn_did_not_outlive_keeps_what_was_last_shown(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "c")
    for number in range(700):
        wire.tell("item/commandExecution/outputDelta", itemId="c", delta=f"{number} é\n")
    wire.turn("completed", "interrupted")
    sheet = read(wire)
    preview = sheet.one("preview")
    kept = "".join(f"{number} é\n" for number in range(200, 700))
    assert preview["output"] == kept
    assert preview["omittedBytes"] == sum(len(f"{number} é\n".encode()) for number in range(200))
    assert sheet.last("tool_result") == []
    assert sheet.tally().dangling == 1
    assert sheet.one("turn")["status"] == "interrupted"


def test_an_item_that_ends_after_its_turn_was_a_terminal(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "c")
    wire.turn("completed", "completed")
    wire.turn("started", "inProgress", turn="t2")
    wire.command("completed", "c", status="failed", exitCode=5)
    sheet = read(wire)
    assert len(sheet.last("tool_call")) == 1
    assert sheet.one("tool_result")["exec"]["terminalId"] == "7"
    terminal = sheet.one("terminal")
    assert (terminal["callId"], terminal["status"], terminal["exitCode"]) == ("c", "exited", 5)


def test_a_listed_terminal_runs_until_codex_ends_it(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "c")
    wire.send(5, "thread/backgroundTerminals/list", threadId=THREAD)
    data = [{"itemId": "c", "processId": "7", "command": "sleep 9", "cwd": CWD}]
    wire.reply(5, data=data, nextCursor=None, from_server=True)
    wire.command("completed", "c", status="failed", exitCode=-1)
    first, last = read(wire).of("terminal")
    assert (first["status"], first["callId"], first["command"]) == ("running", "c", "sleep 9")
    assert (last["status"], last["exitCode"], last["supersedes"]) == ("unknown", -1, first["id"])


def test_a_command_that_its_call_waited_for_is_no_terminal(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "c")
    wire.command("completed", "c")
    sheet = read(wire)
    assert sheet.of("terminal") == []
    assert sheet.one("tool_result")["exec"]["processId"] == "7"
    assert "terminalId" not in sheet.one("tool_result")["exec"]


def test_mcp_and_dynamic_tools_have_names(read: ReadWire) -> None:
    wire = Wire()
    members: dict[str, Any] = {"server": "notes", "tool": "read", "arguments": {"id": 1}}
    wire.item("started", "mcpToolCall", "m", status="inProgress", **members)
    failed: dict[str, Any] = {"result": {"content": []}, "error": {"message": "user rejected MCP tool call"}}
    wire.item("completed", "mcpToolCall", "m", status="failed", **members, **failed)
    wire.item("started", "dynamicToolCall", "d", status="inProgress", tool="lookup", arguments={})
    wire.item(
        "completed", "dynamicToolCall", "d", status="completed", tool="lookup", arguments={}, contentItems=[]
    )
    sheet = read(wire)
    calls = {one["callId"]: one for one in sheet.last("tool_call")}
    assert [calls[one]["name"] for one in ("m", "d")] == ["read", "lookup"]
    assert calls["m"]["provider"] == {"kind": "mcp", "server": "notes", "tool": "read", "identity": "exact"}
    result = next(one for one in sheet.last("tool_result") if one["callId"] == "m")
    assert (result["status"], result["error"]) == ("failed", {"message": "user rejected MCP tool call"})


def test_who_asked(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "u", source="userShell")
    wire.command("started", "exec-1")
    wire.call("m")
    assert {one["callId"]: one["requestedBy"] for one in read(wire).last("tool_call")} == {
        "u": "user",
        "exec-1": "code",
        "m": "model",
    }


# -- files --------------------------------------------------------------------------------------------------------


def test_a_patch_is_proposed_then_what_became_of_it(read: ReadWire) -> None:
    wire = Wire()
    changes = [
        {"path": f"{CWD}/new.txt", "kind": {"type": "add"}, "diff": "x\n"},
        {
            "path": f"{CWD}/a.txt",
            "kind": {"type": "update", "move_path": f"{CWD}/b.txt"},
            "diff": "@@ -1 +1 @@\n-a\n+b\n",
        },
    ]
    for name, end in (("done", "completed"), ("no", "declined"), ("half", "failed"), ("open", None)):
        wire.item("started", "fileChange", name, status="inProgress", changes=changes)
        if end is not None:
            wire.item("completed", "fileChange", name, status=end, changes=changes)
    sheet = read(wire)
    told = {one["callId"]: one for one in sheet.last("file_change")}
    assert {name: one["state"] for name, one in told.items()} == {
        "done": "applied",
        "no": "declined",
        "half": "unknown",
        "open": "proposed",
    }
    assert told["done"]["changes"] == [
        {
            "path": {"root": "project", "path": "new.txt"},
            "change": "add",
            "patch": {"format": "full_text", "value": "x\n"},
        },
        {
            "path": {"root": "project", "path": "b.txt"},
            "change": "move",
            "oldPath": {"root": "project", "path": "a.txt"},
            "patch": {"format": "unified", "value": "@@ -1 +1 @@\n-a\n+b\n"},
        },
    ]


def test_the_diff_of_a_turn_is_one_record_in_place_and_no_call_s(read: ReadWire) -> None:
    diff = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n"
    wire = Wire()
    for words in (diff, diff, diff + diff.replace("x", "y"), ""):
        wire.tell("turn/diff/updated", diff=words)
    sheet = read(wire)
    found = sheet.of("file_change")
    assert [len(one["changes"]) for one in found] == [1, 2, 0]
    assert [one.get("supersedes") for one in found] == [None, found[0]["id"], found[1]["id"]]
    assert {(one["scope"], one["turnId"], one.get("callId")) for one in found} == {("turn", TURN, None)}


# -- raw events ---------------------------------------------------------------------------------------------------


def ran_raw(wire: Wire, name: str, words: str = "told", response: int = 1) -> None:
    wire.call(name, cmd="ls")
    wire.response(response)
    wire.command("started", name)
    wire.command("completed", name)
    wire.output(name, words)


def test_raw_events_give_the_exact_call_and_what_reached_the_model(read: ReadWire) -> None:
    wire = Wire(raw=True)
    ran_raw(wire, "c")
    before = read(wire).one("tool_result")
    assert "content" not in before
    assert before["raw"] == {"output": "told"}
    wire.raw("message", role="assistant", content=[{"type": "output_text", "text": "Done."}])
    wire.response(2)
    sheet = read(wire)
    call, result = sheet.one("tool_call"), sheet.one("tool_result")
    assert (call["name"], call["input"], call["requestedBy"]) == ("exec_command", {"cmd": "ls"}, "model")
    assert result["content"] == [{"type": "text", "text": "told"}]
    assert "raw" not in result
    assert result["exec"]["output"] == "a\n"


def test_the_response_that_asked_proves_nothing(read: ReadWire) -> None:
    wire = Wire(raw=True)
    wire.call("c", cmd="ls")
    wire.output("c", "early")
    wire.response(1)
    result = read(wire).one("tool_result")
    assert "content" not in result
    assert result["raw"] == {"output": "early"}


def test_a_version_without_a_capture_has_no_content(read: ReadWire) -> None:
    wire = Wire(raw=True, version="0.999.0")
    ran_raw(wire, "c")
    wire.response(2)
    assert "content" not in read(wire).one("tool_result")


def test_a_tool_without_an_item_has_a_result_all_the_same(read: ReadWire) -> None:
    wire = Wire(raw=True)
    wire.call("w", "write_stdin", session_id=7, chars="x")
    wire.response(1)
    wire.output("w", "ok")
    wire.response(2)
    sheet = read(wire)
    assert sheet.one("tool_result")["status"] == "unknown"
    assert sheet.one("tool_result")["content"] == [{"type": "text", "text": "ok"}]
    assert sheet.tally().paired == 1


def test_an_item_that_ends_after_its_output_is_a_later_state(read: ReadWire) -> None:
    wire = Wire(raw=True)
    wire.call("c", cmd="sleep 9")
    wire.response(1)
    wire.command("started", "c")
    wire.output("c", "still running")
    wire.response(2)
    wire.turn("completed", "completed")
    wire.command("completed", "c", exitCode=3, status="failed")
    sheet = read(wire)
    result = sheet.one("tool_result")
    assert (result["status"], result["exec"]["exitCode"]) == ("failed", 3)
    assert result["content"] == [{"type": "text", "text": "still running"}]
    assert len(sheet.last("tool_result")) == 1


def test_further_outputs_of_a_call_are_results_of_their_own(read: ReadWire) -> None:
    wire = Wire(raw=True)
    wire.raw("custom_tool_call", call_id="cell", name="exec", input="notify('a')")
    for words in ("a", "b"):
        wire.raw("custom_tool_call_output", call_id="cell", output=words)
    results = read(wire).last("tool_result")
    assert [one["callId"] for one in results] == ["cell", "cell"]


def test_messages_of_the_harness_come_from_raw_items_and_those_of_others_from_items(read: ReadWire) -> None:
    wire = Wire(raw=True)
    for role, kind, words in (
        ("developer", "permissions.instructions", "rules"),
        ("user", "user.text", "go"),
    ):
        meta = {"content_item_kinds": [kind]}
        content = [{"type": "input_text", "text": words}]
        wire.raw("message", role=role, content=content, internal_chat_message_metadata_passthrough=meta)
    wire.item("completed", "userMessage", "u", content=[{"type": "text", "text": "go"}])
    wire.item("completed", "agentMessage", "msg_1", text="Done.")
    wire.raw("message", role="assistant", id="msg_1", content=[{"type": "output_text", "text": "Done."}])
    said = [(one["author"], one["content"][0]["text"]) for one in read(wire).of("message")]
    assert said == [("harness", "rules"), ("user", "go"), ("model", "Done.")]


# -- ids on several calls -----------------------------------------------------------------------------------------


def test_a_second_call_with_an_id_makes_the_first_result_ambiguous(read: ReadWire) -> None:
    wire = Wire()
    wire.command("started", "dup", command="echo 1")
    wire.command("completed", "dup", command="echo 1")
    (first,) = read(wire).last("tool_result")
    assert first["linkage"] == "exact"
    wire.command("started", "dup", command="echo 2")
    wire.command("completed", "dup", command="echo 2")
    sheet = read(wire)
    assert [one["callId"] for one in sheet.last("tool_call")] == ["dup", "dup"]
    assert {one["callIdSource"] for one in sheet.last("tool_call")} == {"native"}
    results = sheet.last("tool_result")
    assert [(one["linkage"], one.get("callId"), one["nativeCallId"]) for one in results] == [
        ("ambiguous", None, "dup"),
        ("ambiguous", None, "dup"),
    ]
    assert results[0]["supersedes"] == first["id"]


def test_the_same_in_a_later_turn(read: ReadWire) -> None:
    wire = Wire()
    for turn in (TURN, "t2"):
        wire.command("started", "dup", turn=turn)
        wire.command("completed", "dup", turn=turn)
        wire.turn("completed", "completed", turn=turn)
    assert [one["linkage"] for one in read(wire).last("tool_result")] == ["ambiguous", "ambiguous"]


def test_several_raw_calls_with_one_id(read: ReadWire) -> None:
    wire = Wire(raw=True)
    for number in range(2):
        wire.call("dup", cmd=f"echo {number}")
    for number in range(2):
        wire.command("started", "dup", command=f"echo {number}")
        wire.command("completed", "dup", command=f"echo {number}")
    for number in range(2):
        wire.output("dup", str(number))
    wire.response(1)
    wire.response(2)
    sheet = read(wire)
    assert len(sheet.last("tool_call")) == 2
    assert {one["linkage"] for one in sheet.last("tool_result")} == {"ambiguous"}


# -- requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        ("accept", "allow_once"),
        ("acceptForSession", "allow_session"),
        ({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}, "allow_always"),
        (
            {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "h", "action": "deny"}}},
            "reject_always",
        ),
        ("decline", "reject_once"),
        ("cancel", "cancelled"),
        ("somethingNew", None),
    ],
)
def test_the_client_s_answer_decides(read: ReadWire, given: Any, decision: str | None) -> None:
    wire = Wire()
    wire.command("started", "c")
    options = ["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}, "cancel"]
    wire.ask(0, COMMAND, itemId="c", reason="to see", command="ls", cwd=CWD, availableDecisions=options)
    wire.reply(0, decision=given)
    record = read(wire).one("permission")
    assert record.get("decision") == decision
    assert record["status"] == ("resolved" if decision else "pending")
    assert (record["requestId"], record["subject"], record["description"]) == ("0", {"callId": "c"}, "to see")
    assert record["native"]["command"] == "ls"
    assert [(one["optionId"], one["kind"]) for one in record["options"]] == [
        ("accept", "allow_once"),
        ("acceptWithExecpolicyAmendment", "allow_always"),
        ("cancel", "cancel"),
    ]
    word = next(iter(given)) if isinstance(given, dict) else given
    offered = word in ("accept", "acceptWithExecpolicyAmendment", "cancel")
    assert record.get("selectedOptionId") == (word if offered else None)
    assert "decidedBy" not in record


def test_an_error_and_a_resolved_notice_decide_nothing(read: ReadWire) -> None:
    wire = Wire()
    wire.ask(0, PATCH, itemId="p", reason=None, grantRoot=None)
    wire.fail(0)
    wire.ask(1, PATCH, itemId="q", reason=None, grantRoot=None)
    wire.tell("serverRequest/resolved", requestId=1)
    wire.turn("completed", "interrupted")
    records = read(wire).last("permission")
    assert [(one["status"], one.get("decision")) for one in records] == [("pending", None), ("pending", None)]


def test_a_request_delivered_again_is_one_and_an_id_that_begins_again_another(read: ReadWire) -> None:
    wire = Wire()
    for name in ("a", "a", "b"):
        wire.ask(7, COMMAND, itemId=name, command="ls", cwd=CWD)
    wire.reply(7, decision="decline")
    wire.send(1, "initialize", clientInfo={"name": "t", "version": "0"})
    wire.ask(7, COMMAND, itemId="c", command="ls", cwd=CWD)
    records = read(wire).last("permission")
    assert [(one["requestId"], one["idSource"], one.get("decision")) for one in records] == [
        ("7", "native", None),
        ("7#2", "derived", "reject_once"),
        ("7#3", "derived", None),
    ]


@pytest.mark.parametrize(
    ("granted", "decision"),
    [
        ({"permissions": {"network": {"enabled": True}}, "scope": "turn"}, "allow_once"),
        ({"permissions": {"network": {"enabled": True}}, "scope": "session"}, "allow_session"),
        ({"permissions": {}, "scope": "turn"}, "reject_once"),
    ],
)
def test_permissions_that_are_granted(read: ReadWire, granted: Any, decision: str) -> None:
    wire = Wire()
    asked = {"network": {"enabled": True}, "fileSystem": None}
    wire.ask(0, "item/permissions/requestApproval", itemId="c", reason="docs", permissions=asked, cwd=CWD)
    wire.reply(0, **granted)
    record = read(wire).one("permission")
    assert (record["decision"], record["native"]["extra"]["permissions"]) == (decision, asked)


def test_an_elicitation_that_asks_for_a_tool_is_a_permission_without_a_call(read: ReadWire) -> None:
    wire = Wire()
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_name": "read"}
    params = {"serverName": "notes", "mode": "form", "message": "Run read?", "requestedSchema": {}}
    wire.ask(0, ELICITATION, _meta=meta, **params)
    wire.reply(0, action="decline", content=None, _meta=None)
    wire.ask(1, ELICITATION, _meta=None, **params)
    wire.reply(1, action="accept", content={"name": "x"}, _meta=None)
    sheet = read(wire)
    record, form = sheet.one("permission"), sheet.one("input_request")
    assert (record["title"], record["decision"]) == ("Run read?", "reject_once")
    assert "subject" not in record
    assert (form["mode"], form["status"], form["response"]) == ("form", "answered", {"name": "x"})


def test_questions_and_their_answers(read: ReadWire) -> None:
    wire = Wire()
    questions = [
        {
            "id": "q",
            "header": "H",
            "question": "Which?",
            "isOther": True,
            "isSecret": False,
            "options": [{"label": "A"}],
        },
        {"id": "r", "header": "H", "question": "Why?", "isOther": False, "isSecret": False, "options": None},
    ]
    wire.ask(0, QUESTIONS, itemId="c", questions=questions, isBlocking=True)
    wire.reply(0, answers={"q": {"answers": ["A"]}, "r": {"answers": ["because"]}})
    record = read(wire).one("input_request")
    assert (record["status"], record["callId"], record["blocking"]) == ("answered", "c", True)
    assert record["answers"] == [
        {"questionId": "q", "selected": ["A"]},
        {"questionId": "r", "text": "because"},
    ]


@pytest.mark.parametrize("word", ["hunter2-swordfish", "QZX"], ids=["long", "short"])
def test_a_secret_is_nowhere(tmp_path: Path, word: str) -> None:
    wire = Wire(raw=True)
    question = {
        "id": "token",
        "header": "T",
        "question": "Token?",
        "isSecret": True,
        "options": [{"label": "Skip"}],
    }
    wire.call("c", "request_user_input", questions=[question])
    wire.response(1)
    wire.ask(0, QUESTIONS, itemId="c", questions=[question], isBlocking=True)
    wire.reply(0, answers={"token": {"answers": [word]}})
    wire.output("c", json.dumps({"answers": {"token": {"answers": [word]}}}))
    wire.response(2)
    sheet = sheet_of(wire.data, tmp_path)
    record, result = sheet.one("input_request"), sheet.one("tool_result")
    assert record["status"] == "answered"
    assert record["capture"]["answers"]["state"] == result["capture"]["content"]["state"] == "redacted"
    assert "answers" not in record
    held = [path for path in tmp_path.rglob("out/**/*") if path.is_file()]
    texts = {path.name: unpacked(path) for path in held}
    assert any(name.endswith(".zst") for name in texts)
    marked = json.dumps(word).encode().strip(b'"')
    assert [name for name, data in texts.items() if marked in data] == []


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return zstandard.ZstdDecompressor().stream_reader(data).read() if path.suffix == ".zst" else data


def test_a_review_is_a_permission_with_its_verdict(read: ReadWire) -> None:
    wire = Wire()
    action = {"type": "command", "command": "rm x", "cwd": CWD}
    common: dict[str, Any] = {
        "reviewId": "rv",
        "targetItemId": "c",
        "action": action,
        "startedAtMs": 1796076238000,
    }
    wire.tell("item/autoApprovalReview/started", review={"status": "inProgress"}, **common)
    assert read(wire).one("permission")["status"] == "pending"
    verdict = {"status": "denied", "rationale": "It deletes."}
    wire.tell("item/autoApprovalReview/completed", review=verdict, completedAtMs=1796076239000, **common)
    record = read(wire).one("permission")
    assert (record["decision"], record["decidedBy"]) == ("reject_once", "classifier")
    assert record["decidedAt"] == "2026-11-30T22:03:59.000Z"
    assert record["reviews"] == [
        {"by": {"agent": "guardian"}, "verdict": "denied", "rationale": "It deletes."}
    ]


# -- the rest -----------------------------------------------------------------------------------------------------


def test_summaries_are_kept_and_raw_chains_are_not(tmp_path: Path) -> None:
    wire = Wire()
    wire.tell("item/reasoning/textDelta", itemId="rs", delta="private thoughts", contentIndex=0)
    wire.item("completed", "reasoning", "rs", summary=["**Look**\n\nAt it."], content=["private thoughts"])
    sheet = sheet_of(wire.data, tmp_path)
    summary, raw = sheet.of("reasoning")
    assert summary["content"] == [{"type": "text", "text": "**Look**\n\nAt it."}]
    assert (raw["form"], raw["capture"]["content"]["state"]) == ("raw", "redacted")
    assert b"private" not in b"".join(line for stream in sheet.reading.streams for line in stream.lines)


def test_a_failed_turn_says_why(read: ReadWire) -> None:
    wire = Wire()
    error = {"message": "bad", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 429}}}
    wire.tell("error", error=error, willRetry=False)
    wire.turn("completed", "failed", error=error, durationMs=12)
    sheet = read(wire)
    turn = sheet.one("turn")
    assert (turn["status"], turn["durationMs"]) == ("failed", 12)
    assert turn["error"] == {"message": "bad", "code": "httpConnectionFailed"}
    assert sheet.one("notice")["nativeType"] == "error"


def test_usage_as_reported(read: ReadWire) -> None:
    wire = Wire()
    counts = {"inputTokens": 5, "outputTokens": 2}
    usage = {"last": counts, "total": {"inputTokens": 50}, "modelContextWindow": 100}
    wire.tell("thread/tokenUsage/updated", tokenUsage=usage)
    wire.response(1)
    wire.tell("thread/tokenUsage/updated", tokenUsage=usage)
    told = [
        (one["scope"], one.get("inferenceId"), one.get("contextWindow")) for one in read(wire).of("usage")
    ]
    assert told == [
        ("inference", None, 100),
        ("session", None, 100),
        ("inference", "resp_1", None),
        ("session", None, 100),
    ]


def test_plans_and_hooks(read: ReadWire) -> None:
    wire = Wire()
    wire.tell("turn/plan/updated", plan=[{"step": "a", "status": "inProgress"}], explanation=None)
    wire.tell("turn/plan/updated", plan=[{"step": "a", "status": "completed"}], explanation=None)
    run = {
        "id": "pre-tool-use:0:/h/hooks.json:call:1",
        "sourcePath": "/h/hooks.json",
        "eventName": "preToolUse",
        "handlerType": "command",
        "status": "blocked",
        "durationMs": 4,
        "entries": [{"kind": "feedback", "text": "no"}],
    }
    wire.tell("hook/started", run={**run, "status": "running", "entries": []})
    wire.tell("hook/completed", run=run)
    wire.tell(
        "hook/completed",
        run={**run, "id": "stop:0:/h/hooks.json", "eventName": "stop", "status": "completed"},
    )
    sheet = read(wire)
    assert [one["entries"][0]["status"] for one in sheet.of("plan")] == ["in_progress", "completed"]
    assert len(sheet.last("plan")) == 1
    first, second = sheet.of("hook")
    assert (first["event"], first["callId"], first["status"]) == ("pre_tool_use", "call:1", "blocked")
    assert first["output"] == [{"type": "text", "text": "no"}]
    assert (second["event"], second["status"]) == ("stop", "completed")
    assert "callId" not in second


def test_threads_have_streams_of_their_own(read: ReadWire) -> None:
    wire = Wire(raw=True)
    wire.call("spawn", "spawn_agent", task_name="look")
    child = "01a20000-0000-7000-8000-0000000000cc"
    wire.item(
        "completed", "subAgentActivity", "spawn", kind="started", agentThreadId=child, agentPath="/root/look"
    )
    thread = {"id": child, "cwd": CWD, "cliVersion": "0.163.0", "parentThreadId": THREAD}
    wire.line("server", {"method": "thread/started", "params": {"thread": thread}})
    wire.tell("item/completed", thread=child, item={"type": "agentMessage", "id": "m", "text": "Hi."})
    sheet = read(wire)
    assert sorted(sheet.streams) == [THREAD, child]
    assert sheet.streams[THREAD][0].get("parent") is None
    head = sheet.streams[child][0]
    assert (head["parent"], head["nativeSessionId"]) == ({"session": THREAD}, child)
    (agent,) = sheet.last("subagent", THREAD)
    assert (agent["agentId"], agent["callId"], agent["status"]) == (child, "spawn", "running")


def test_an_agent_s_thread_that_no_frame_describes(read: ReadWire) -> None:
    wire = Wire(raw=True)
    wire.call("spawn", "spawn_agent", message="look")
    wire.call("wait", "wait_agent")
    child = "01a20000-0000-7000-8000-0000000000cc"
    common: dict[str, Any] = {"senderThreadId": THREAD, "receiverThreadIds": [child], "prompt": None}
    started: dict[str, Any] = {"tool": "spawnAgent", "agentsStates": {child: {"status": "pendingInit"}}}
    for word, status in (("started", "inProgress"), ("completed", "completed")):
        wire.item(word, "collabAgentToolCall", "spawn", status=status, **started, **common)
    wire.tell("item/completed", thread=child, item={"type": "agentMessage", "id": "m", "text": "Hi."})
    waited: dict[str, Any] = {"tool": "wait", "agentsStates": {child: {"status": "completed"}}}
    wire.item("started", "collabAgentToolCall", "wait", status="inProgress", **waited, **common)
    wire.item("completed", "collabAgentToolCall", "wait", status="completed", **waited, **common)
    sheet = read(wire)
    head = sheet.streams[child][0]
    assert (head["parent"], head["agent"]["version"]) == ({"session": THREAD}, "0.163.0")
    (agent,) = sheet.last("subagent", THREAD)
    assert (agent["callId"], agent["status"], agent["stream"]) == ("spawn", "completed", child)


def test_noise_is_kept_and_draws_nothing(read: ReadWire) -> None:
    wire = Wire()
    for method in ("account/rateLimits/updated", "thread/status/changed", "something/new", "warning"):
        wire.tell(method, message="x")
    wire.line("note", {"timeout": True})
    wire.line("server", [1])
    sheet = read(wire)
    told = [one["nativeType"] for one in sheet.of("unmapped")]
    assert told[-6:] == [
        "account/rateLimits/updated",
        "thread/status/changed",
        "something/new",
        "warning",
        "note",
        "server",
    ]
    assert {one["type"] for one in sheet.records} == {"session", "turn", "unmapped"}


def test_events_told_twice_count_once(read: ReadWire) -> None:
    wire = Wire(version="0.98.0")
    wire.command("started", "c")
    wire.line(
        "server",
        {
            "method": "codex/event/exec_command_begin",
            "params": {"conversationId": THREAD, "msg": {"type": "exec_command_begin", "call_id": "c"}},
        },
    )
    wire.command("completed", "c")
    sheet = read(wire)
    assert (len(sheet.last("tool_call")), len(sheet.last("tool_result"))) == (1, 1)


def test_any_split_of_the_bytes_gives_the_same(tmp_path: Path) -> None:
    wire = Wire(raw=True)
    ran_raw(wire, "c", "é\ud83d")
    wire.response(2)
    whole = sheet_of(wire.data, tmp_path).reading
    for chunk in (1, 7):
        other = sheet_of(wire.data, tmp_path, chunk)
        assert [one.lines for one in other.reading.streams] == [one.lines for one in whole.streams]


def test_a_broken_line_costs_that_line(read: ReadWire) -> None:
    wire = Wire()
    wire.lines.append(b'{"dir": "server", "frame": {"method"')
    wire.command("started", "c")
    sheet = read(wire)
    assert [one["reason"] for one in sheet.of("gap")] == ["bad_json"]
    assert len(sheet.of("tool_call")) == 1


def test_a_server_that_opened_no_thread(read: ReadWire) -> None:
    wire = Wire()
    del wire.lines[2:]
    (head, second) = read(wire).records
    assert head["type"] == "session"
    assert "nativeSessionId" not in head
    assert second["nativeType"] == "response"


def test_a_connection_with_every_frame(tmp_path: Path) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in every_frame())
    sheet = sheet_of(data, tmp_path)
    kinds = {record["type"] for stream in sheet.streams.values() for record in stream}
    assert kinds >= {"tool_call", "tool_result", "permission", "input_request", "hook", "terminal", "subagent", "plan"}
    assert b"hunter22" not in b"".join(line for stream in sheet.reading.streams for line in stream.lines)


def test_no_lie_about_frames_lies_unseen(tmp_path: Path) -> None:
    log = tmp_path / "frames.jsonl"
    log.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in every_frame()))
    (made,) = import_sources([log], tmp_path / "out", kind="codex-app-server")
    assert not isinstance(made, Failure)
    told: list[tuple[str, str]] = []
    assert list(unseen(made.bundle, told)) == []
    assert len(told) > 500
