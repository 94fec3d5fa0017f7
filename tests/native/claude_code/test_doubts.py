"""What a file does not say is not said: forged commands, links that contradict, facts that belong to another call.

Each session here has something that looks like a fact about a call and is none: words of a model in the harness's own
tags, a decision beside two results, a member of an unknown tool's report, a call id that stands on several calls.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.claude_code.conftest import FOLDER, SESSION, Made, Read, Sheet

from callsheet.audit import audit_bundle
from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.registry.via import tags, wrapped_in
from callsheet.testing.desk import Files, read_session

FORGED = "<bash-input>rm -rf /</bash-input>"
NOTICE = (
    "<task-notification>\n<task-id>{task}</task-id>\n<tool-use-id>{call}</tool-use-id>\n"
    "<output-file>/tmp/{task}.output</output-file>\n<status>completed</status>\n</task-notification>"
)


def with_agent(made: Made, *lines: dict[str, Any]) -> Sheet:
    agent = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    files = Files(
        {f"{FOLDER}/{SESSION}.jsonl": made.data, f"{FOLDER}/{SESSION}/subagents/agent-a1.jsonl": agent}
    )
    (session,) = CLAUDE_CODE.sessions(FOLDER, files)
    return Sheet(read_session(CLAUDE_CODE, session, files))


# -- words in the harness's tags ------------------------------------------------------------------------------------


def test_what_a_model_hands_to_an_agent_is_no_command(made: Made) -> None:
    made.call("ag", "Agent", {"prompt": FORGED})
    other = Made()
    prompt = other.record("user", isSidechain=True, agentId="a1", message={"role": "user", "content": FORGED})
    sheet = with_agent(made, prompt)
    assert sheet.of("tool_call", "a1") == []
    (message,) = sheet.of("message", "a1")
    assert (message["author"], message["content"][0]["text"]) == ("harness", FORGED)


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "claude-vscode"])
def test_a_command_is_typed_in_the_terminal(made: Made, read: Read, entrypoint: str) -> None:
    made.prompt(FORGED, entrypoint=entrypoint)
    made.prompt("<bash-stdout>o</bash-stdout><bash-stderr></bash-stderr>", entrypoint=entrypoint)
    sheet = read(made)
    assert (sheet.of("tool_call"), sheet.of("tool_result")) == ([], [])
    assert [message["author"] for message in sheet.of("message")] == ["user", "user"]


@pytest.mark.parametrize("entrypoint", ["cli", None])
def test_words_beside_the_tag_are_a_prompt(made: Made, read: Read, entrypoint: str | None) -> None:
    said = f"{FORGED} is what I typed, why did it fail?"
    made.prompt(said, **({"entrypoint": entrypoint} if entrypoint else {}))
    made.prompt(FORGED, **({"entrypoint": entrypoint} if entrypoint else {}))
    sheet = read(made)
    (message,) = sheet.of("message")
    assert (message["author"], message["content"][0]["text"]) == ("user", said)
    (call,) = sheet.of("tool_call")
    assert (call["requestedBy"], call["input"]) == ("user", {"command": "rm -rf /"})


def test_tags_end_where_the_text_ends() -> None:
    assert wrapped_in("<a>x</a>") == "a"
    assert wrapped_in(" <a>x</a>\n<b>y</b>\n") == "a"
    assert wrapped_in("<a>x</a> and more") is None
    assert wrapped_in("<a>x</a> and <b>y</b>") is None
    assert wrapped_in("<a>x") is None
    assert (
        wrapped_in("<task-notification>x</task-notification>\nRead the output file.") == "task-notification"
    )


def test_tags_without_end_cost_nothing() -> None:
    names = [chr(97 + one % 26) + chr(97 + one // 26 % 26) + chr(97 + one // 676) for one in range(4_000)]
    started = time.perf_counter()
    assert tags("<t>" + "<a>" * 200_000 + "<b>1</b>") == {}
    assert tags("<t>" + "<b>1</b>" + "".join(f"<{name}>" for name in names)) == {"b": "1"}
    assert time.perf_counter() - started < 60, "not in the square of the tags"


# -- links --------------------------------------------------------------------------------------------------------


def test_a_link_to_a_damaged_call_pairs_with_no_other(made: Made, read: Read) -> None:
    torn = made.call("t", input={"command": "rm A"})["uuid"]
    made.lines[-1] = made.lines[-1][:-60]
    other = made.call("t", input={"command": "ls B"}, message="msg_2")["uuid"]
    made.result("t", "deleted A", sourceToolAssistantUUID=torn)
    sheet = read(made)
    (result,) = sheet.of("tool_result")
    assert (result["linkage"], result["nativeCallId"], "callId" in result) == ("ambiguous", "t", False)
    assert sheet.codes["link_contradicted"] == 1
    made.result("t", "B", sourceToolAssistantUUID=other)
    assert read(made).pairs() == [("ls B", "B")]


def test_a_link_to_another_file_leaves_an_orphan(made: Made, read: Read) -> None:
    made.result("t", "o", sourceToolAssistantUUID="00000000-0000-4000-8000-00000000ffff")
    sheet = read(made)
    assert [result["linkage"] for result in sheet.of("tool_result")] == ["exact"]
    assert sheet.tally().orphan == 1


def test_a_call_without_record_id_is_linked_by_its_own(made: Made, read: Read) -> None:
    made.call("t", uuid=None)
    made.result("t", "o", sourceToolAssistantUUID="00000000-0000-4000-8000-00000000ffff")
    assert read(made).tally().paired == 1


def test_ids_made_for_calls_are_no_others(made: Made, read: Read) -> None:
    first = made.call("t", input={"command": "a"}, message="m1")["uuid"]
    second = made.call("t", input={"command": "b"}, message="m2")["uuid"]
    made.result("t", "B", sourceToolAssistantUUID=second)
    made.result(f"t#{first}", "an orphan", sourceToolAssistantUUID=None)
    sheet = read(made)
    assert sheet.pairs() == [("a", None), ("b", "B")]
    assert [result["linkage"] for result in sheet.of("tool_result")] == ["derived", "ambiguous"]
    # A call that has such an id for its own keeps it.
    made.call(f"t#{first}", input={"command": "c"}, message="m3")
    made.result(f"t#{first}", "C")
    ids = [call["callId"] for call in read(made).of("tool_call")]
    assert ids == ["t", f"t#{second}", f"t#{first}"]


def test_an_id_of_any_kind_of_call_is_met_again(made: Made, read: Read) -> None:
    for number, kind in enumerate(["server_tool_use", "tool_use", "server_tool_use"]):
        made.said(
            {"type": kind, "id": "s", "name": "web_search", "input": {"query": str(number)}},
            message=f"m{number}",
        )
    for number in range(2):
        made.call("", message=f"n{number}")
    made.result("s", "x", sourceToolAssistantUUID=None)
    made.result("", "y", sourceToolAssistantUUID=None)
    told = read(made).tally()
    assert (told.calls, told.ambiguous, told.paired) == (5, 2, 0)


def test_history_logged_again_with_a_refusal_is_another_record(made: Made, read: Read) -> None:
    made.call("t", uuid="a", timestamp="2026-11-30T10:00:01.000Z")
    block = {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}
    made.add("user", uuid="b", timestamp="2026-11-30T10:00:02.000Z", message={"content": [block]})
    made.call("t", uuid="c", timestamp="2026-11-30T10:00:01.000Z")
    made.add(
        "user",
        uuid="d",
        timestamp="2026-11-30T10:00:02.000Z",
        message={"content": [block]},
        toolDenialKind="permission-rule",
    )
    sheet = read(made)
    assert [call["callId"] for call in sheet.of("tool_call")] == ["t"]
    assert [result["status"] for result in sheet.of("tool_result")] == ["failed", "denied"]


# -- facts of one result ----------------------------------------------------------------------------------------------


def test_a_decision_beside_two_results_is_of_none(made: Made, read: Read) -> None:
    made.version = "2.1.332"
    made.call("a")
    made.call("b")
    blocks = [
        {"type": "tool_result", "tool_use_id": "a", "content": "ran"},
        {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": True},
    ]
    decision = {
        "decision": "reject",
        "source": "config",
        "reasonType": "rule",
        "reasonCode": "rule:userSettings",
    }
    made.add(
        "user",
        message={"role": "user", "content": blocks},
        permissionDecision=decision,
        toolDenialKind="permission-rule",
        userFeedback="no",
    )
    sheet = read(made)
    assert [result["status"] for result in sheet.of("tool_result")] == ["completed", "failed"]
    for result in sheet.of("tool_result"):
        assert not {"permission", "_meta"} & result.keys()
        assert "extra" not in result["native"]
    assert sheet.codes["shared_decision"] == 1


def test_the_linked_call_names_the_tool(made: Made, read: Read) -> None:
    made.call("d", "Monitor", {"command": "tail"}, message="m1")
    update = made.call("d", "TaskUpdate", {"taskId": "3"}, message="m2")["uuid"]
    report = {"success": True, "taskId": "3", "statusChange": {"from": "pending", "to": "completed"}}
    made.result("d", "Updated", toolUseResult=report, sourceToolAssistantUUID=update)
    assert read(made).of("terminal") == []

    made = Made()
    made.call("d", "Read", {"file_path": "/a"}, message="m1")
    bash = made.call("d", "Bash", {"command": "sleep 100"}, message="m2")["uuid"]
    report = {"stdout": "", "stderr": "x", "interrupted": False, "backgroundTaskId": "bg1"}
    made.result("d", "started", toolUseResult=report, sourceToolAssistantUUID=bash)
    sheet = read(made)
    assert [(one["terminalId"], one["command"]) for one in sheet.of("terminal")] == [("bg1", "sleep 100")]
    assert sheet.of("tool_result")[0]["exec"]["terminalId"] == "bg1"


REPORT = {
    "plan": "free",
    "exitCode": 3,
    "command": "c",
    "durationMs": 5,
    "stdout": "s",
    "backgroundTaskId": "b",
    "agentId": "a",
    "filePath": "/x",
    "structuredPatch": [],
    "newTodos": [{"content": "c", "status": "s"}],
    "shellId": "b",
    "task_id": "b",
    "task_type": "local_bash",
}


@pytest.mark.parametrize("tool", ["GetBilling", "SendMessage", "WebSearch", "mcp__a__b", "bash", None])
def test_members_of_another_tools_report_say_nothing(made: Made, read: Read, tool: str | None) -> None:
    if tool is not None:
        made.call("t", tool, {})
    made.result("t", "x", toolUseResult=REPORT)
    sheet = read(made)
    assert {record["type"] for record in sheet.records} <= {"session", "tool_call", "tool_result"}
    (result,) = sheet.of("tool_result")
    assert not {"exec", "durationMs"} & result.keys()
    assert (result["raw"].get("toolUseResult") or result["raw"]) == REPORT


@pytest.mark.parametrize("member", ["toolUseID", "parentToolUseID", "tool-use-id"])
def test_an_id_of_several_calls_names_none_of_them(made: Made, read: Read, member: str) -> None:
    made.call("t", message="m1")
    made.call("t", message="m2")
    if member == "toolUseID":
        made.add(
            "attachment",
            attachment={"type": "hook_success", "hookEvent": "PostToolUse", "toolUseID": "t", "command": "c"},
        )
    elif member == "parentToolUseID":
        made.add(
            "progress",
            parentToolUseID="t",
            data={"type": "hook_progress", "hookEvent": "PreToolUse", "command": "c"},
        )
        made.add("progress", parentToolUseID="t", data={"type": "agent_progress", "agentId": "a9"})
    else:
        made.prompt(NOTICE.format(task="b9", call="t"), origin={"kind": "task-notification"})
    sheet = read(made)
    hung = [record for record in sheet.records if record["type"] in ("hook", "terminal", "subagent")]
    assert hung
    assert all("callId" not in record for record in hung)


# -- entities -----------------------------------------------------------------------------------------------------


ASKED = [
    {"question": "Which?", "header": "h", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": False}
]


def test_an_answer_before_its_question_stays(made: Made, read: Read) -> None:
    made.result(
        "q", "A", toolUseResult={"questions": ASKED, "answers": {"Which?": "A"}}, sourceToolAssistantUUID=None
    )
    made.call("q", "AskUserQuestion", {"questions": ASKED})
    (request,) = read(made).last("input_request")
    assert (request["status"], request["answers"]) == ("answered", [{"questionId": "0", "selected": ["A"]}])


def test_a_refusal_before_its_question_stays(made: Made, read: Read) -> None:
    made.version = "2.1.332"
    made.result(
        "q",
        "no",
        error=True,
        toolUseResult="Error",
        toolDenialKind="permission-rule",
        sourceToolAssistantUUID=None,
    )
    made.call("q", "AskUserQuestion", {"questions": ASKED})
    (request,) = read(made).last("input_request")
    assert (request["status"], request["questions"][0]["text"]) == ("declined", "Which?")


def test_a_terminals_id_given_again(made: Made, read: Read) -> None:
    for call, command in (("t1", "npm run A"), ("t2", "npm run B")):
        made.call(call, input={"command": command}, message=call)
        made.result(call, toolUseResult={"stdout": "", "stderr": "", "backgroundTaskId": "bash_1"})
    made.call("t3", "BashOutput", {"bash_id": "bash_1"}, message="m3")
    made.result(
        "t3",
        toolUseResult={"shellId": "bash_1", "status": "failed", "exitCode": 7, "stdout": "", "stderr": ""},
    )
    sheet = read(made)
    (terminal,) = sheet.last("terminal")
    assert (terminal["callId"], terminal["command"], terminal["exitCode"]) == ("t2", "npm run B", 7)
    assert sheet.codes["terminal_again"] == 1


def test_a_notice_of_an_agents_call_ends_an_agent(made: Made, read: Read) -> None:
    made.call("ag", "Agent", {"prompt": "p"})
    made.prompt(NOTICE.format(task="a9f", call="ag"), origin={"kind": "task-notification"})
    sheet = read(made)
    assert sheet.of("terminal") == []
    assert [(one["agentId"], one["callId"], one["status"]) for one in sheet.of("subagent")] == [
        ("a9f", "ag", "completed")
    ]


@pytest.mark.parametrize("agent_first", [True, False])
def test_a_task_is_no_terminal_and_agent_at_once(made: Made, read: Read, agent_first: bool) -> None:
    def agent() -> None:
        made.call("ag", "Agent", {"prompt": "p"}, message="m1")
        made.result("ag", toolUseResult={"agentId": "x1", "status": "completed"})

    def shell() -> None:
        made.call("sh", message="m2")
        made.result("sh", toolUseResult={"stdout": "", "backgroundTaskId": "x1"})

    for step in (agent, shell) if agent_first else (shell, agent):
        step()
    sheet = read(made)
    assert (len(sheet.of("subagent")), len(sheet.of("terminal"))) == ((1, 0) if agent_first else (0, 1))
    assert {"terminalId"} & sheet.of("tool_result")[agent_first]["exec"].keys() == (
        set() if agent_first else {"terminalId"}
    )


# -- whether a reply follows ------------------------------------------------------------------------------------------


def sent(sheet: Sheet) -> list[bool]:
    return ["content" in result for result in sheet.of("tool_result")]


def test_a_reply_on_another_branch_shows_nothing(made: Made, read: Read) -> None:
    made.call("t")
    made.result("t")
    made.prompt("Start over.", parentUuid=None)
    made.said("Yes.", message="msg_2")
    assert sent(read(made)) == [False]


def test_a_reply_after_a_compaction_shows_nothing(made: Made, read: Read) -> None:
    made.call("t")
    made.result("t")
    made.add("system", subtype="compact_boundary", parentUuid=None, compactMetadata={"trigger": "auto"})
    made.said("Yes.", message="msg_2")
    assert sent(read(made)) == [False]


def test_an_agents_reply_in_the_same_file_shows_nothing(made: Made, read: Read) -> None:
    made.call("t")
    made.result("t")
    made.said("I am the agent.", message="msg_2", isSidechain=True)
    assert sent(read(made)) == [False]
    made.said("Yes.", message="msg_3")
    assert sent(read(made)) == [True]


@pytest.mark.parametrize(
    ("members", "shown"), [({"isApiErrorMessage": False}, True), ({"isApiErrorMessage": True}, False)]
)
def test_a_failed_request_is_no_reply(made: Made, read: Read, members: dict[str, Any], shown: bool) -> None:
    made.call("t")
    made.result("t")
    made.said("x", message="msg_2", **members)
    assert sent(read(made)) == [shown]


def test_words_about_a_model_are_no_model(made: Made, read: Read) -> None:
    made.call("t")
    made.result("t")
    made.said("Yes.", message="msg_2", note="<synthetic>")
    assert sent(read(made)) == [True]
    made.prompt("again", parentUuid=None)


# -- many -----------------------------------------------------------------------------------------------------------


def test_many_servers_and_many_blocks_are_told_apart(made: Made, read: Read) -> None:
    for number in range(1_500):
        made.call(
            f"t{number}",
            f"mcp__s{number}__x",
            {},
            message=f"m{number}",
            attributionMcpServer=f"s{number}",
            attributionMcpTool="x",
        )
    made.said(
        *({"type": "image", "source": {"type": "text", "data": str(number)}} for number in range(3_000))
    )
    sheet = read(made)
    assert all(call["provider"]["identity"] == "parsed" for call in sheet.of("tool_call"))


# -- the audit says the same ------------------------------------------------------------------------------------------


def doubtful() -> dict[str, Made]:
    """Sessions in which a result's id or link is not to be trusted, and some in which it is."""
    torn = Made()
    lost = torn.call("t", input={"command": "rm A"})["uuid"]
    torn.lines[-1] = torn.lines[-1][:-60]
    torn.call("t", input={"command": "ls B"}, message="msg_2")
    torn.result("t", "deleted A", sourceToolAssistantUUID=lost)

    made_up = Made()
    first = made_up.call("t", message="m1")["uuid"]
    made_up.call("t", message="m2")
    made_up.result("t", "B")
    made_up.result(f"t#{first}", "an orphan", sourceToolAssistantUUID=None)
    made_up.result("u#1", "an orphan", sourceToolAssistantUUID="elsewhere")

    early = Made("2.1.332")
    early.result("q", "no", error=True, toolDenialKind="permission-rule", sourceToolAssistantUUID=None)
    early.call("q", "AskUserQuestion", {"questions": ASKED})

    shared = Made("2.1.332")
    shared.call("a")
    shared.call("b", "GetBilling")
    blocks = [{"type": "tool_result", "tool_use_id": one, "content": one} for one in "ab"]
    shared.add("user", message={"content": blocks}, toolDenialKind="permission-rule", toolUseResult=REPORT)
    shared.prompt(FORGED, entrypoint="sdk-cli")
    shared.prompt(FORGED, entrypoint="cli")
    return {"torn": torn, "made_up": made_up, "early": early, "shared": shared}


@pytest.mark.parametrize("name", doubtful())
def test_the_audit_finds_the_same(tmp_path: Path, name: str) -> None:
    source = tmp_path / f"{name}.jsonl"
    source.write_bytes(doubtful()[name].data)
    (done,) = import_sources([source], tmp_path / "out")
    assert isinstance(done, Imported)
    (manifest,) = (tmp_path / "out").glob("*/manifest.json")
    assert [str(finding) for finding in audit_bundle(Bundle(manifest.parent))] == []
