"""What becomes of the threads of T3 Code V2: items, requests, agents, plans."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.t3code.conftest import SECRET, THREAD, State, nowhere, read, sheets

from callsheet.audit import audit_bundle
from callsheet.harness.t3code import T3CODE
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.testing.check_harness import check_harness

# -- V2: items ----------------------------------------------------------------------------------------------------


def test_a_command_is_call_and_result_in_one(new: State) -> None:
    new.item(
        "command_execution", "failed", native="call_A", input="cargo test", output="boom\n", exitCode=101
    )
    sheet = read(new)
    (call,), (result,) = sheet.of("tool_call"), sheet.of("tool_result")
    assert (call["callId"], call["callIdSource"], call["input"]) == ("call_A", "native", "cargo test")
    assert "name" not in call
    assert call["capture"]["name"]["state"] == "absent"
    assert call["kind"] == "execute"
    assert "requestedBy" not in call
    assert (result["callId"], result["linkage"], result["status"]) == ("call_A", "exact", "failed")
    assert result["exec"] == {"exitCode": 101, "output": "boom\n"}
    assert "content" not in result
    assert "durationMs" not in result
    (ref,) = result["native"]["refs"]
    assert (ref["table"], ref["key"], ref["column"]) == (
        "orchestration_v2_projection_turn_items",
        {"turn_item_id": "item-1", "thread_id": "th-1"},
        "payload_json",
    )


def test_a_report_as_json_text_is_no_output(new: State) -> None:
    report = json.dumps({"stdout": "x", "stderr": ""})
    new.item("command_execution", driver="claudeAgent", input="ls", output=report)
    (result,) = read(new).of("tool_result")
    assert result["raw"] == report
    assert "exec" not in result


@pytest.mark.parametrize("status", ["pending", "running", "waiting"])
def test_an_item_that_has_not_ended_dangles(new: State, status: str) -> None:
    new.item("command_execution", status, input="sleep 9")
    told = read(new).tally()
    assert (told.calls, told.results, told.dangling) == (1, 0, 1)


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("interrupted", "interrupted"),
        ("odd", "unknown"),
    ],
)
def test_status_is_the_items_own(new: State, status: str, word: str) -> None:
    new.item("command_execution", status, input="x", exitCode=0 if word == "failed" else 1)
    (result,) = read(new).of("tool_result")
    assert result["status"] == word


def test_names_and_providers(new: State) -> None:
    new.item("dynamic_tool", toolName="mcp__a__b", input={"x": 1}, output=[{"type": "text", "text": "y"}])
    new.item("dynamic_tool", "failed", toolName="github.get", input={}, output={"error": "Not Found"})
    sheet = read(new)
    assert [call["name"] for call in sheet.of("tool_call")] == ["mcp__a__b", "github.get"]
    assert all("provider" not in call and "kind" not in call for call in sheet.of("tool_call"))
    assert sheet.of("tool_result")[1]["error"] == {"message": "Not Found"}


def test_ids_that_are_weak_or_shared_are_derived(new: State) -> None:
    new.item("command_execution", id="a", native="w", strength="weak", input="1")
    new.item("command_execution", id="b", native="same", input="2")
    new.item("command_execution", id="c", native="same", input="3")
    sheet = read(new)
    assert [call["callId"] for call in sheet.of("tool_call")] == ["#a", "same#b", "same#c"]
    assert {call["callIdSource"] for call in sheet.of("tool_call")} == {"derived"}
    assert [result["linkage"] for result in sheet.of("tool_result")] == ["derived"] * 3
    assert sheet.tally().paired == 3


def test_changed_files(new: State) -> None:
    new.item("file_change", fileName="/work/app/a.rs", additions=1, diffStr="@@ -1 +1 @@\n-a\n+b\n")
    new.item("file_change", "failed", fileName="b.rs", oldStr="x", newStr="y")
    changes = [
        {"operation": "delete", "path": "/else/c"},
        {"operation": "move", "path": "/work/app/e", "oldPath": "/work/app/d"},
    ]
    new.item("file_change", fileName="c", changes=changes)
    first, second, third = read(new).of("file_change")
    assert first["changes"][0]["path"] == {"root": "worktree", "path": "a.rs"}
    assert first["changes"][0]["patch"]["format"] == "unified"
    assert (first["state"], second["state"]) == ("applied", "unknown")
    assert second["changes"][0]["patch"] == {"format": "replace", "value": {"oldText": "x", "newText": "y"}}
    assert [one["change"] for one in third["changes"]] == ["delete", "move"]


def test_progress_is_no_reasoning(new: State) -> None:
    new.item("reasoning", title="Subagent progress", native="task:a:progress", text="Reading")
    new.item("reasoning", native="rs_1", text="private words")
    sheet = read(new)
    (thought,) = sheet.of("reasoning")
    assert thought["capture"]["content"]["state"] == "redacted"
    assert b"private words" not in sheet.everything()
    assert [one["nativeType"] for one in sheet.of("unmapped")] == ["reasoning"]


def test_reasoning_that_was_asked_for(new: State) -> None:
    new.item("reasoning", native="rs_1", text="private words")
    (thought,) = read(new, keep_reasoning=True).of("reasoning")
    assert thought["content"] == [{"type": "text", "text": "private words"}]


def test_agents_and_their_threads(new: State) -> None:
    new.thread("th:child", THREAD)
    new.item("user_message", thread="th:child", createdBy="agent", text="Look", messageId="m")
    new.item("command_execution", thread="th:child", input="ls")
    new.item("subagent", subagentId="node-1", title="Look", prompt="p", result="r", childThreadId="th:child")
    sheet = read(new)
    (agent,) = sheet.of("subagent")
    child = hashlib.sha256(b"th:child").hexdigest()
    assert (agent["agentId"], agent["status"], agent["stream"]) == ("node-1", "completed", child)
    assert [record["author"] for record in sheet.streams[child] if record["type"] == "message"] == ["harness"]
    assert sheet.streams[child][0]["parent"] == {"session": THREAD}


def test_a_fork_is_a_session_of_its_own(new: State) -> None:
    new.item("user_message", text="Go", messageId="m", inputIntent="turn_start")
    new.thread("th-copy", lineage={"parentThreadId": THREAD, "relationshipToParent": "fork"})
    new.item("user_message", thread="th-copy", text="Again", messageId="m2")
    heads = {sheet.records[0]["nativeSessionId"]: sheet.records[0] for sheet in sheets(new.close())}
    own, copy = heads[THREAD], heads["th-copy"]
    assert "parent" not in own
    assert "parent" not in copy
    assert copy["forkedFrom"] == THREAD


def test_plans_and_checkpoints(new: State) -> None:
    steps = [
        {"id": "1", "text": "Fix", "status": "completed"},
        {"id": "2", "text": "Test", "status": "running"},
    ]
    new.item("todo_list", "running", planId="p", steps=steps)
    new.item("todo_list", planId="p", steps=steps[:1])
    new.item("checkpoint", files=[{"path": "a.rs", "kind": "modify", "additions": 1}])
    new.item("checkpoint", files=[])
    sheet = read(new)
    first, last = sheet.of("plan")
    assert last["supersedes"] == first["id"]
    assert [one["status"] for one in first["entries"]] == ["completed", "in_progress"]
    (change,) = sheet.of("file_change")
    assert (change["scope"], change["turnId"]) == ("turn", "run-1")


# -- V2: requests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("accept", "allow_once"),
        ("acceptForSession", "allow_session"),
        ("acceptAlways", "allow_always"),
        ("decline", "reject_once"),
        ("cancel", "cancelled"),
    ],
)
@pytest.mark.parametrize("where", ["request", "outbox"])
def test_a_decision_stands_in_the_request_or_the_outbox(
    new: State, word: str, decision: str, where: str
) -> None:
    new.item("command_execution", native="call_A", input="git push")
    ref = {"nativeRequestRef": {"driver": "codex", "nativeId": "call_A"}}
    new.request("rq", **ref, **({"decision": word} if where == "request" else {}))
    if where == "outbox":
        new.response("rq", decision=word)
    new.item("approval_request", requestId="rq", requestKind="command", prompt="git push")
    (permission,) = read(new).of("permission")
    assert (permission["status"], permission["decision"]) == ("resolved", decision)
    assert permission["subject"] == {"callId": "call_A"}
    assert permission["native"]["command"] == "git push"
    assert "decidedBy" not in permission
    assert "decider" not in permission


def test_a_request_without_its_call_has_a_command(new: State) -> None:
    new.item(
        "approval_request",
        "cancelled",
        native="rq-n",
        requestId="rq",
        requestKind="command",
        prompt="git push",
    )
    new.request("rq", decision="decline", feedback="Not yet.", reason="ask_rule")
    (permission,) = read(new).of("permission")
    assert permission["subject"] == {"command": "git push"}
    assert (permission["feedback"], permission["reason"]) == ("Not yet.", "ask_rule")


def test_a_resolved_request_without_a_decision_says_nothing(new: State) -> None:
    new.request("rq")
    (permission,) = read(new).of("permission")
    assert "status" not in permission
    assert "decision" not in permission
    assert permission["native"]["extra"]["status"] == "resolved"


QUESTIONS = [
    {"id": "a", "question": "Which?", "options": [{"label": "X"}, {"label": "Y", "value": "y"}]},
    {"id": "b", "question": "More?", "multiSelect": True, "allowCustomAnswer": True},
]


@pytest.mark.parametrize("where", ["item", "request", "outbox"])
def test_answers_stand_in_three_places(new: State, where: str) -> None:
    answers = {"a": "Y", "b": ["one", "two"], "other-0": "odd"}
    told: dict[str, Any] = {"questionAnswer": {"answers": answers}} if where == "item" else {}
    new.item("user_input_request", requestId="rq", questions=QUESTIONS, **told)
    new.request("rq", kind="user_input", **({"answers": answers} if where == "request" else {}))
    if where == "outbox":
        new.response("rq", answers=answers)
    (request,) = read(new).of("input_request")
    assert request["status"] == "answered"
    assert request["answers"] == [
        {"questionId": "a", "selected": ["y"]},
        {"questionId": "b", "text": "one"},
        {"questionId": "b", "text": "two"},
    ]
    assert request["questions"][1]["allowOther"] is True


def test_no_answer_is_no_answer(new: State) -> None:
    new.item("user_input_request", requestId="rq", questions=QUESTIONS)
    new.request("rq", kind="user_input", status="expired", resolvedAt=None)
    (request,) = read(new).of("input_request")
    assert request["status"] == "timed_out"


@pytest.mark.parametrize("secret", [SECRET, "ab", 'q"uo\\te ü'])
@pytest.mark.parametrize("mark", ["secret", "isSecret"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_secret_of_v2_is_nowhere(new: State, tmp_path: Path, secret: str, mark: str, whole: bool) -> None:
    question = {"id": "s", "question": "Token?"} | ({} if whole else {mark: True})
    asked: dict[str, Any] = {"questions": [question]} | ({mark: True} if whole else {})
    new.item("user_input_request", requestId="rq", **asked, questionAnswer={"answers": {"s": secret}})
    new.request("rq", kind="user_input", answers={"s": secret})
    new.response("rq", answers={"s": secret})
    if len(secret) > 4:
        new.item("command_execution", input=f"login {secret}", output=f"hello {secret}")
        new.item("assistant_message", text=f"It was {secret}.", messageId="m")
    sheet = read(new)
    (request,) = sheet.of("input_request")
    assert request["status"] == "answered"
    assert "answers" not in request
    assert request["capture"]["answers"]["state"] == "redacted"
    nowhere(sheet.everything(), secret)
    for one in import_sources([new.path], tmp_path / "out"):
        assert isinstance(one, Imported)
        for file in one.bundle.rglob("*"):
            if file.is_file():
                data = file.read_bytes()
                nowhere(
                    zstandard.ZstdDecompressor().stream_reader(data).read()
                    if file.suffix == ".zst"
                    else data,
                    secret,
                )


# -- the database -------------------------------------------------------------------------------------------------


def test_payloads_that_are_no_objects(new: State) -> None:
    for payload in (
        '{"type": "command_exec',
        "[1]",
        "null",
        '"words"',
        "{}",
        '{\n"type": "reasoning"}',
        "12345678901234567890",
    ):
        new.insert(
            "orchestration_v2_projection_turn_items",
            {"turn_item_id": payload[:20], "thread_id": THREAD, "payload_json": payload},
        )
    new.item("command_execution", input="ls")
    sheet = read(new)
    assert sheet.of("gap")
    assert sheet.tally().paired == 1


@pytest.mark.parametrize("value", [None, 1, True, [], {}, "x", [1, None], {"id": 1}])
def test_members_of_any_type(new: State, value: Any) -> None:
    names = (
        "nativeItemRef",
        "title",
        "input",
        "output",
        "exitCode",
        "changes",
        "questions",
        "questionAnswer",
        "steps",
        "files",
        "options",
        "requestId",
        "text",
        "toolName",
        "patterns",
        "results",
        "failure",
        "startedAt",
        "completedAt",
        "subagentId",
        "parentItemId",
        "prompt",
        "status",
    )
    kinds = (
        "command_execution",
        "file_change",
        "file_search",
        "web_search",
        "dynamic_tool",
        "subagent",
        "reasoning",
        "user_message",
        "approval_request",
        "user_input_request",
        "todo_list",
        "proposed_plan",
        "checkpoint",
        "error",
        "compaction",
        "odd",
    )
    number = 0
    for kind in kinds:
        for name in names:
            number += 1
            payload = {"id": f"i{number}", "type": kind, "status": "completed", name: value}
            row = {
                "turn_item_id": f"i{number}",
                "thread_id": THREAD,
                "ordinal": number,
                "payload_json": json.dumps(payload),
            }
            new.insert("orchestration_v2_projection_turn_items", row)
    assert len(read(new).records) > number


def test_each_thread_is_a_session(new: State) -> None:
    new.thread("other")
    new.item("command_execution", thread="other", input="ls")
    new.item("command_execution", input="ls")
    found = sheets(new.close())
    assert [sheet.tally().calls for sheet in found] == [1, 1]


def test_a_newer_schema(new: State, tmp_path: Path) -> None:
    new.item("command_execution", input="ls")
    new.sql(
        "ALTER TABLE orchestration_v2_projection_turn_items ADD COLUMN mood TEXT",
        "CREATE TABLE orchestration_v3_dreams (id TEXT)",
        "DROP TABLE orchestration_v2_thread_launch_workflows",
    )
    (one,) = import_sources([new.close()], tmp_path / "out")
    assert isinstance(one, Imported)
    assert one.calls == 1
    assert {told.code for told in one.diagnostics} == {"unknown_columns", "unknown_tables", "missing_table"}


@pytest.mark.parametrize("seed", range(15))
def test_flipped_pages_never_bring_it_down(new: State, tmp_path: Path, seed: int) -> None:
    for number in range(40):
        new.item("command_execution", input="x" * 300, output=str(number))
    path = new.close()
    data = bytearray(path.read_bytes())
    dice = random.Random(seed)
    for _ in range(3):
        at = dice.randrange(100, len(data))
        data[at : at + 64] = dice.randbytes(64)
    path.write_bytes(data)
    for one in import_sources([path], tmp_path / "out", kind="t3code"):
        if isinstance(one, Failure):
            assert "\n" not in one.message
        else:
            assert list(audit_bundle(Bundle(one.bundle))) == []
    assert path.read_bytes() == bytes(data)
    assert [file.name for file in path.parent.iterdir()] == ["state.sqlite"]


def test_the_kit_finds_nothing(new: State) -> None:
    new.item("command_execution", input="ls", output="x")
    new.request("rq", decision="accept")
    path = new.close()
    assert check_harness(T3CODE, path.parent) == []


# -- captures -----------------------------------------------------------------------------------------------------


def test_the_kit_finds_nothing_in_the_captures(shared: Path, tmp_path: Path) -> None:
    import gzip

    folder = shared / "captures" / "t3code"
    packed = sorted((folder / "t3-v2-replay").glob("*.sqlite.gz"))
    assert packed
    for path in packed:
        (tmp_path / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(path.read_bytes()))
    assert check_harness(T3CODE, tmp_path) == []
    for name in ("t3-v1-engine", "t3-v2-handmade"):
        assert check_harness(T3CODE, folder / name) == []
