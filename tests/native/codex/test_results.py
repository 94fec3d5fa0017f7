"""One result for each call: of its output, its execution, or both; never by order, never by prose."""

from __future__ import annotations

from typing import Any

import pytest
from tests.native.codex.conftest import Made, Read, text_of

RAN: dict[str, Any] = {
    "command": ["bash", "-lc", "x"],
    "cwd": "file:///home/dev/acme-app/src",
    "status": "completed",
    "exit_code": 0,
}


def test_output_and_execution_are_one_result(made: Made, read: Read) -> None:
    made.call("c1")
    made.ran(
        "c1", **RAN, aggregated_output="whole\n", duration={"secs": 0, "nanos": 1_500_000}, process_id="77"
    )
    made.output("c1", "cut")
    made.said("ok")
    made.replied()
    result = read(made).one("tool_result")
    assert text_of(result) == "cut"
    assert (result["status"], result["linkage"], result["callId"]) == ("completed", "exact", "c1")
    assert result["exec"] == {
        "command": ["bash", "-lc", "x"],
        "cwd": {"root": "project", "path": "src"},
        "exitCode": 0,
        "processId": "77",
        "output": "whole\n",
    }
    assert result["durationMs"] == 1.5
    assert [ref["role"] for ref in result["native"]["refs"]] == ["result", "item"]


def test_an_execution_that_ends_after_the_output_is_a_later_state(made: Made, read: Read) -> None:
    made.call("c1")
    made.output("c1", "still running")
    made.said("waiting")
    made.replied()
    made.ran("c1", **{**RAN, "status": "failed", "exit_code": -1})
    sheet = read(made)
    first, last = sheet.of("tool_result")
    assert (first["status"], last["status"]) == ("unknown", "failed")
    assert last["supersedes"] == first["id"]
    assert text_of(first) == text_of(last) == "still running"
    assert last["exec"]["exitCode"] == -1


def test_without_execution_the_outcome_is_unknown_whatever_the_text_says(made: Made, read: Read) -> None:
    made.call("c1", status="completed")
    made.output("c1", "Process exited with code 3\nboom", status="completed")
    made.said("ok")
    made.replied()
    result = read(made).one("tool_result")
    assert result["status"] == "unknown"
    assert "exec" not in result


def test_without_output_nothing_is_content(made: Made, read: Read) -> None:
    made.call("c1")
    made.ran("c1", **RAN, aggregated_output="x")
    made.said("ok")
    made.replied()
    result = read(made).one("tool_result")
    assert result["capture"]["content"]["state"] == "absent"
    assert result["exec"]["output"] == "x"
    assert "content" not in result


def test_without_a_later_response_the_output_is_raw(made: Made, read: Read) -> None:
    made.call("c1")
    made.replied()
    made.output("c1", "late")
    result = read(made).one("tool_result")
    assert "content" not in result
    assert result["raw"] == {"output": "late"}


def test_a_version_without_a_capture_proves_nothing(read: Read) -> None:
    made = Made(version="9.0.0")
    made.meta()
    made.call("c1")
    made.output("c1", "out")
    made.said("ok")
    made.replied()
    result = read(made).one("tool_result")
    assert "no capture" in result["capture"]["content"]["reason"]
    assert result["raw"] == {"output": "out"}


def test_a_call_id_on_two_calls_links_nothing(made: Made, read: Read) -> None:
    made.call("dup", arguments={"cmd": "a"})
    made.call("dup", arguments={"cmd": "b"})
    made.ran("dup", **{**RAN, "command": ["b"]})
    made.ran("dup", **{**RAN, "command": ["a"]})
    made.output("dup", "A")
    made.output("dup", "B")
    made.said("ok")
    made.replied()
    sheet = read(made)
    results = sheet.last("tool_result")
    assert len(results) == 4
    assert all(one["linkage"] == "ambiguous" and one["nativeCallId"] == "dup" for one in results)
    assert not any("callId" in one for one in results)
    assert [text_of(one) for one in results if text_of(one)] == ["A", "B"]
    assert [one["exec"]["command"] for one in results if "exec" in one] == [["b"], ["a"]]


def test_several_outputs_for_one_call_all_name_it(made: Made, read: Read) -> None:
    made.call("c1", "exec")
    made.item(type="custom_tool_call_output", call_id="c1", output="note", name="exec")
    made.item(type="custom_tool_call_output", call_id="c1", output="end")
    made.said("ok")
    made.replied()
    sheet = read(made)
    assert [(one["callId"], one["linkage"]) for one in sheet.last("tool_result")] == [("c1", "exact")] * 2
    assert sheet.tally().paired == 0


def test_an_output_without_a_call_keeps_its_id(made: Made, read: Read) -> None:
    made.output("gone", "x")
    made.said("ok")
    made.replied()
    sheet = read(made)
    assert sheet.one("tool_result")["callId"] == "gone"
    assert sheet.tally().orphan == 1


def test_a_call_without_output_stays_alone(made: Made, read: Read) -> None:
    made.call("c1")
    sheet = read(made)
    assert sheet.tally().dangling == 1
    assert sheet.of("tool_result") == []


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ({"status": "completed"}, "completed"),
        ({"status": "failed"}, "failed"),
        ({"status": "declined"}, "denied"),
        ({"status": "in_progress"}, "unknown"),
        ({"status": ["completed"]}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_word_of_the_execution_is_the_outcome(
    words: dict[str, Any], status: str, made: Made, read: Read
) -> None:
    made.call("c1")
    made.ran("c1", exit_code=0, **words)
    assert read(made).one("tool_result")["status"] == status


@pytest.mark.parametrize(
    ("result", "status", "error"),
    [
        ({"Ok": {"content": [], "isError": False}}, "completed", None),
        ({"Ok": {"content": []}}, "completed", None),
        ({"Ok": {"content": [], "isError": True}}, "failed", None),
        ({"Err": "backend is down"}, "failed", "backend is down"),
    ],
)
def test_mcp_events_up_to_0146(result: Any, status: str, error: str | None, made: Made, read: Read) -> None:
    made.call("c1", "my__server__tool", namespace="mcp__my__server")
    made.add(
        "event_msg",
        type="mcp_tool_call_end",
        call_id="c1",
        invocation={"server": "my server", "tool": "tool", "arguments": {"a": 1}},
        duration={"secs": 1, "nanos": 0},
        result=result,
    )
    made.output("c1", "text")
    made.said("ok")
    made.replied()
    sheet = read(made)
    found = sheet.one("tool_result")
    assert (found["status"], found.get("error", {}).get("message")) == (status, error)
    assert found["provider"] == {"kind": "mcp", "server": "my server", "tool": "tool", "identity": "exact"}
    assert found["raw"] == {"result": result}
    call = sheet.one("tool_call")
    assert call["name"] == "my__server__tool"
    assert call["native"]["namespace"] == "mcp__my__server"
    assert "provider" not in call  # the result names both


def test_mcp_by_name_alone_names_no_server(made: Made, read: Read) -> None:
    made.call("c1", "read", namespace="mcp__notes")
    made.call("c2", "mcp__notes__read")
    made.call("c3", "notes__read")
    providers = [call.get("provider") for call in read(made).of("tool_call")]
    assert providers == [{"kind": "mcp", "identity": "unknown"}] * 2 + [None]


def test_code_and_person_ask_through_items_alone(made: Made, read: Read) -> None:
    made.ran("exec-1", **RAN)
    made.ran("u1", **RAN, source="user_shell")
    made.ran("x1", **RAN)
    sheet = read(made)
    asked = [(call["callId"], call.get("requestedBy")) for call in sheet.of("tool_call")]
    assert asked == [("exec-1", "code"), ("u1", "user"), ("x1", None)]
    assert not any("parentCallId" in call for call in sheet.of("tool_call"))
    assert not any("content" in result for result in sheet.of("tool_result"))
    assert sheet.tally().paired == 3


def test_times_that_contradict_each_other_are_left_out(made: Made, read: Read) -> None:
    made.call("c1")
    made.ran("c1", **RAN, duration={"secs": 9, "nanos": 0})  # between its two times lies one second
    sheet = read(made)
    result = sheet.one("tool_result")
    assert result["durationMs"] == 9000
    assert "startedAt" not in result
    assert sheet.codes["times_contradict"] == 1


def test_an_output_that_codex_cut_is_marked_truncated(made: Made, read: Read) -> None:
    mark = "\n... command output truncated for persistence ...\n"
    half = (65_536 - len(mark)) // 2
    text = "a" * half + mark + "b" * (65_536 - half - len(mark))
    made.call("c1")
    made.ran("c1", **RAN, aggregated_output=text)
    made.call("c2")
    made.ran("c2", **RAN, aggregated_output="said by the program: " + mark)
    first, second = read(made).of("tool_result")
    assert first["capture"]["exec.output"]["state"] == "truncated"
    assert first["exec"]["output"] == text
    assert "exec.output" not in second.get("capture", {})


# -- searches -----------------------------------------------------------------------------------------------------

SEARCH = {"type": "search", "query": "rust", "queries": ["rust"]}


def test_a_search_takes_the_id_of_the_only_event_that_searches_for_it(made: Made, read: Read) -> None:
    made.item(type="web_search_call", status="completed", action=SEARCH)
    made.add("event_msg", type="web_search_end", call_id="ws_1", query="rust", action=SEARCH)
    sheet = read(made)
    call, result = sheet.one("tool_call"), sheet.one("tool_result")
    assert (call["callId"], call["callIdSource"]) == ("ws_1", "derived")
    assert (result["callId"], result["linkage"], result["status"]) == ("ws_1", "derived", "unknown")


def test_searches_that_are_alike_stay_apart(made: Made, read: Read) -> None:
    for call_id in ("ws_1", "ws_2"):
        made.item(type="web_search_call", status="completed", action=SEARCH)
        made.add("event_msg", type="web_search_end", call_id=call_id, query="rust", action=SEARCH)
    calls = read(made).of("tool_call")
    assert [call["callId"] for call in calls] == ["#s0.2", "ws_1", "#s0.4", "ws_2"]


def test_an_image_stands_on_its_own_call(made: Made, read: Read) -> None:
    made.item(type="image_generation_call", id="ig_1", status="completed", result="aGk=")
    sheet = read(made)
    result = sheet.one("tool_result")
    assert (result["callId"], result["status"]) == ("ig_1", "unknown")
    assert result["raw"] == {"result": "aGk="}
    assert "content" not in result


# -- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "member", "value"),
    [
        ('{"a": 1}', "input", {"a": 1}),
        ('{"a": ', "inputText", '{"a": '),
        ("", "inputText", ""),
        ('{"a": 1, "a": 2}', "inputText", '{"a": 1, "a": 2}'),
        ('{"a": 12345678901234567890}', "inputText", '{"a": 12345678901234567890}'),
        ('{"a": "\\ud800"}', "inputText", '{"a": "\\ud800"}'),
        ("[1]", "input", [1]),
    ],
)
def test_arguments_are_parsed_where_nothing_is_lost(
    arguments: str, member: str, value: Any, made: Made, read: Read
) -> None:
    made.call("c1", arguments=arguments)
    call = read(made).one("tool_call")
    assert call[member] == value
    assert ("input" in call) != ("inputText" in call)


def test_calls_of_other_forms(made: Made, read: Read) -> None:
    made.item(type="custom_tool_call", call_id="c1", name="exec", input="text('{}')", id="ctc_1")
    made.item(type="local_shell_call", call_id="c2", action={"type": "exec", "command": ["ls"]})
    made.item(type="local_shell_call", id="lsh_1", action={"type": "exec", "command": ["ls"]})
    made.item(type="tool_search_call", call_id="c3", arguments={"query": "q"}, execution="client")
    made.item(type="function_call", name="shell", arguments="{}")
    calls = read(made).of("tool_call")
    assert [call["callId"] for call in calls] == ["c1", "c2", "lsh_1", "c3", "#s0.6"]
    assert calls[0]["inputText"] == "text('{}')"
    assert calls[0]["native"]["id"] == "ctc_1"
    assert calls[1]["kind"] == "execute"
    assert calls[3]["input"] == {"query": "q"}
    assert calls[4]["callIdSource"] == "derived"
    assert all(call["requestedBy"] == "model" for call in calls)


# -- changed files ------------------------------------------------------------------------------------------------


def test_changed_files_as_supplied(made: Made, read: Read) -> None:
    made.call("c1", "apply_patch", "*** Begin Patch\n*** Add File: x\n*** End Patch")
    changes = {
        "/home/dev/acme-app/a": {"type": "add", "content": "1\n"},
        "/home/dev/acme-app/b": {
            "type": "update",
            "unified_diff": "@@\n-1\n+2\n",
            "move_path": "/home/dev/acme-app/c",
        },
        "/elsewhere/d": {"type": "delete", "content": "gone\n"},
    }
    made.ran("c1", "FileChange", changes=changes, status="completed")
    (record,) = read(made).of("file_change")
    assert (record["state"], record["callId"]) == ("applied", "c1")
    assert record["changes"] == [
        {
            "path": {"root": "project", "path": "a"},
            "change": "add",
            "patch": {"format": "full_text", "value": "1\n"},
        },
        {
            "path": {"root": "project", "path": "c"},
            "oldPath": {"root": "project", "path": "b"},
            "change": "move",
            "patch": {"format": "unified", "value": "@@\n-1\n+2\n"},
        },
        {
            "path": {"root": "host", "path": "/elsewhere/d"},
            "change": "delete",
            "patch": {"format": "full_text", "value": "gone\n"},
        },
    ]


@pytest.mark.parametrize(("status", "state"), [("declined", "declined"), ("failed", "unknown")])
def test_a_patch_that_was_not_applied(status: str, state: str, made: Made, read: Read) -> None:
    made.call("c1", "apply_patch")
    made.ran("c1", "FileChange", changes={"/a": {"type": "delete", "content": ""}}, status=status)
    assert read(made).one("file_change")["state"] == state


def test_a_patch_without_execution_is_proposed(made: Made, read: Read) -> None:
    words = (
        "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-1\n+2\n"
        "*** Add File: /abs/new\n+*** Delete File: no\n*** Delete File: old\n*** End Patch\n"
    )
    made.item(type="custom_tool_call", call_id="c1", name="apply_patch", input=words)
    record = read(made).one("file_change")
    assert record["state"] == "proposed"
    assert [(one["change"], one["path"]["path"]) for one in record["changes"]] == [
        ("move", "src/b.rs"),
        ("add", "/abs/new"),
        ("delete", "old"),
    ]
