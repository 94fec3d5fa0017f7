"""Logs of ``codex exec --json``: items and runs of the new format, messages of the old one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.native.codex.conftest import Read, Sheet

from callsheet.harness.codex import CODEX_EXEC
from callsheet.library.importing import Imported, import_sources

STARTED = {"type": "thread.started", "thread_id": "01a2-thread"}
TURN = {"type": "turn.started"}


def log(*lines: Any) -> bytes:
    return b"".join(
        line + b"\n" if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )


def item(state: str, **members: Any) -> dict[str, Any]:
    return {"type": f"item.{state}", "item": members}


def ran(item_id: str | None, state: str = "completed", **members: Any) -> dict[str, Any]:
    named = {} if item_id is None else {"id": item_id}
    done = {"status": "completed", "exit_code": 0} if state == "completed" else {"status": "in_progress"}
    return item(state, **named, type="command_execution", command="ls", **{**done, **members})


def sheet_of(read: Read, *lines: Any) -> Sheet:
    return read({"/logs/run.jsonl": log(*lines)}, log=True)


# -- the new format -----------------------------------------------------------------------------------------------


def test_start_and_end_of_an_item_are_call_and_result(read: Read) -> None:
    sheet = sheet_of(
        read,
        STARTED,
        TURN,
        ran("item_0", "started", aggregated_output="", exit_code=None),
        ran("item_0", aggregated_output="a\n", status="failed", exit_code=2),
    )
    call, result = sheet.one("tool_call"), sheet.one("tool_result")
    assert (call["callId"], call["callIdSource"], call["kind"]) == ("item_0", "native", "execute")
    assert (result["callId"], result["linkage"], result["status"]) == ("item_0", "exact", "failed")
    assert result["exec"] == {"command": "ls", "exitCode": 2, "output": "a\n"}
    assert "content" not in result
    assert "requestedBy" not in call
    assert "name" not in call


def test_an_end_alone_is_both(read: Read) -> None:
    sheet = sheet_of(read, STARTED, ran("item_0"))
    assert sheet.tally().paired == 1


def test_a_start_alone_stays_alone(read: Read) -> None:
    sheet = sheet_of(read, STARTED, TURN, ran("item_0", "started"))
    assert sheet.tally().dangling == 1
    assert sheet.one("turn")["status"] == "running"


def test_item_ids_begin_again_in_every_run(read: Read) -> None:
    run = [STARTED, TURN, ran("item_0", "started"), ran("item_0")]
    sheet = sheet_of(read, *run, *run, *run)
    ids = [(call["callId"], call["callIdSource"]) for call in sheet.last("tool_call")]
    assert ids == [("item_0", "native"), ("item_0#2", "derived"), ("item_0#3", "derived")]
    results = [(one["callId"], one["linkage"], one.get("nativeCallId")) for one in sheet.last("tool_result")]
    assert results == [
        ("item_0", "exact", None),
        ("item_0#2", "derived", "item_0"),
        ("item_0#3", "derived", "item_0"),
    ]
    assert sheet.tally().paired == 3


def test_one_id_on_two_starts_of_a_run_links_nothing(read: Read) -> None:
    sheet = sheet_of(read, STARTED, ran("item_0", "started"), ran("item_0", "started"), ran("item_0"))
    result = sheet.one("tool_result")
    assert (result["linkage"], result.get("callId"), result["nativeCallId"]) == ("ambiguous", None, "item_0")


def test_an_item_without_id_is_linked_to_nothing(read: Read) -> None:
    sheet = sheet_of(read, STARTED, ran(None, "started"), ran(None))
    assert sheet.one("tool_call")["callId"] == "#s0.2"
    assert sheet.one("tool_result")["linkage"] == "none"


@pytest.mark.parametrize("begun", ["", "rust"])
def test_a_search_with_two_ids_is_its_item(begun: str, read: Read) -> None:
    def search(state: str, query: str) -> bytes:
        members = f'"id":"item_3","type":"web_search","id":"ws_9","query":"{query}"'
        return f'{{"type":"item.{state}","item":{{{members}}}}}'.encode()

    sheet = sheet_of(read, STARTED, search("started", begun), search("completed", "rust"))
    (call,) = sheet.last("tool_call")
    assert (call["callId"], call["native"]["id"], call["input"]) == ("item_3", "ws_9", {"query": "rust"})
    assert sheet.one("tool_result")["callId"] == "item_3"
    assert sheet.one("tool_result")["status"] == "unknown"


def test_mcp_items_name_server_and_tool(read: Read) -> None:
    members = {
        "id": "item_0",
        "type": "mcp_tool_call",
        "server": "notes",
        "tool": "read",
        "arguments": {"a": 1},
    }
    failed = {**members, "status": "failed", "error": {"message": "no such note"}, "result": None}
    sheet = sheet_of(read, STARTED, item("started", **members), item("completed", **failed))
    call, result = sheet.one("tool_call"), sheet.one("tool_result")
    provider = {"kind": "mcp", "server": "notes", "tool": "read", "identity": "exact"}
    assert call["provider"] == result["provider"] == provider
    assert (call["name"], call["input"]) == ("read", {"a": 1})
    assert result["error"] == {"message": "no such note"}


@pytest.mark.parametrize(
    ("status", "state"), [("completed", "applied"), ("failed", "unknown"), ("declined", "declined")]
)
def test_changed_files_are_paths(status: str, state: str, read: Read) -> None:
    changes = [{"path": "/w/a", "kind": "add"}, {"path": "/w/b", "kind": "update"}]
    sheet = sheet_of(
        read, STARTED, item("completed", id="i", type="file_change", changes=changes, status=status)
    )
    record = sheet.one("file_change")
    assert record["state"] == state
    assert [one["change"] for one in record["changes"]] == ["add", "modify"]


def test_a_patch_that_never_ended_is_proposed(read: Read) -> None:
    changes = [{"path": "/w/a", "kind": "delete"}]
    sheet = sheet_of(read, STARTED, item("started", id="i", type="file_change", changes=changes))
    assert sheet.one("file_change")["state"] == "proposed"


def test_a_list_of_things_to_do_is_a_plan_that_changes(read: Read) -> None:
    def todo(state: str, done: bool) -> dict[str, Any]:
        return item(state, id="item_1", type="todo_list", items=[{"text": "Read", "completed": done}])

    sheet = sheet_of(read, STARTED, todo("started", False), todo("updated", True), todo("completed", True))
    assert len(sheet.of("plan")) == 3
    plan = sheet.one("plan")
    assert (plan["planId"], plan["entries"]) == ("item_1", [{"text": "Read", "status": "completed"}])
    assert sheet.of("plan")[0]["entries"] == [{"text": "Read"}]  # not completed: pending or begun is not said


def test_warnings_are_notices_and_no_errors(read: Read) -> None:
    sheet = sheet_of(
        read,
        STARTED,
        item("completed", id="item_0", type="error", message="skills were cut"),
        {"type": "error", "message": "Reconnecting... 1/5"},
    )
    assert [one["content"][0]["text"] for one in sheet.of("notice")] == [
        "skills were cut",
        "Reconnecting... 1/5",
    ]
    assert sheet.of("tool_result") == []


@pytest.mark.parametrize(
    ("end", "status", "message"),
    [
        ({"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 2}}, "completed", None),
        ({"type": "turn.failed", "error": {"message": "429"}}, "failed", "429"),
    ],
)
def test_a_turn_ends(end: dict[str, Any], status: str, message: str | None, read: Read) -> None:
    sheet = sheet_of(read, STARTED, TURN, end)
    turn = sheet.one("turn")
    assert (turn["status"], turn.get("error", {}).get("message")) == (status, message)
    assert turn["turnId"] == "#s0.2"
    totals = [(one["scope"], one["cumulative"]) for one in sheet.of("usage")]
    assert totals == ([("session", True)] if "usage" in end else [])


def test_what_nothing_maps_is_kept(read: Read) -> None:
    sheet = sheet_of(
        read,
        STARTED,
        item("updated", id="i", type="agent_message", text="half"),
        item("completed", id="i", type="from_the_future", x=1),
        {"type": "tool.call.required", "call_id": "c"},
        {"type": 7},
        b"not json",
    )
    assert [one.get("nativeType") for one in sheet.of("unmapped")] == [
        "item.updated/agent_message",
        "item.completed/from_the_future",
        "tool.call.required",
        None,
    ]
    assert len(sheet.of("gap")) == 1


def test_agents_have_the_states_that_items_tell(read: Read) -> None:
    members = {"type": "collab_tool_call", "tool": "spawn_agent", "receiver_thread_ids": ["a1"]}
    ended = {"a1": {"status": "completed", "message": "done"}}
    sheet = sheet_of(
        read,
        STARTED,
        item(
            "completed", id="i0", **members, agents_states={"a1": {"status": "running"}}, status="completed"
        ),
        item("completed", id="i1", **{**members, "tool": "wait"}, agents_states=ended, status="completed"),
    )
    states = [(one["agentId"], one["callId"], one["status"]) for one in sheet.of("subagent")]
    assert states == [("a1", "i0", "running"), ("a1", "i0", "completed")]


# -- the old format -----------------------------------------------------------------------------------------------

HEADER = {"workdir": "/w", "model": "m", "provider": "p", "approval": "never", "sandbox": "none"}


def msg(kind: str, **members: Any) -> dict[str, Any]:
    return {"id": "1", "msg": {"type": kind, **members}}


def test_begin_and_end_of_the_old_format(read: Read) -> None:
    sheet = sheet_of(
        read,
        HEADER,
        {"prompt": "Do it."},
        msg("exec_command_begin", call_id="c1", command=["ls"], cwd="/w/src"),
        msg("exec_command_output_delta", call_id="c1", stream="stdout", chunk=[97]),
        msg(
            "exec_command_end",
            call_id="c1",
            stdout="a",
            stderr="b",
            exit_code=1,
            duration={"secs": 2, "nanos": 0},
        ),
    )
    result = sheet.one("tool_result")
    assert result["exec"] == {
        "command": ["ls"],
        "cwd": {"root": "project", "path": "src"},
        "exitCode": 1,
        "stdout": "a",
        "stderr": "b",
    }
    assert (result["status"], result["durationMs"]) == ("unknown", 2000)
    assert [ref["role"] for ref in result["native"]["refs"]] == ["end", "begin"]
    assert [(one["author"], one["content"][0]["text"]) for one in sheet.of("message")] == [("user", "Do it.")]


@pytest.mark.parametrize(
    ("success", "status", "state"), [(True, "completed", "applied"), (False, "failed", "unknown")]
)
def test_a_patch_of_the_old_format(success: bool, status: str, state: str, read: Read) -> None:
    changes = {"/w/a": {"update": {"unified_diff": "@@\n-1\n+2\n", "move_path": "/w/b"}}}
    sheet = sheet_of(
        read,
        HEADER,
        msg("patch_apply_begin", call_id="c1", auto_approved=True, changes=changes),
        msg("patch_apply_end", call_id="c1", stdout="done", stderr="", success=success),
    )
    record = sheet.one("file_change")
    assert (sheet.one("tool_result")["status"], record["state"]) == (status, state)
    assert record["changes"][0]["change"] == "move"


DIFF = (
    "diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n"
    "@@ -1 +1 @@\n-diff --git a/x b/x\n+2\n"
    "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
    "diff --git a/bin b/bin\nnew file mode 100644\nBinary files differ\n"
)


def test_the_diff_of_a_turn_is_one_entity_with_its_files(read: Read) -> None:
    short = DIFF[: DIFF.index("diff --git a/gone")]
    sheet = sheet_of(read, HEADER, msg("turn_diff", unified_diff=short), msg("turn_diff", unified_diff=DIFF))
    record = sheet.one("file_change")
    assert (record["scope"], record["turnId"]) == ("turn", "1")
    assert [(one["change"], one["path"]["path"]) for one in record["changes"]] == [
        ("move", "new"),
        ("delete", "gone"),
        ("add", "bin"),
    ]
    assert "".join(one["patch"]["value"] for one in record["changes"]) == DIFF


def test_usage_of_the_old_format(read: Read) -> None:
    counts = {"input_tokens": 5, "output_tokens": 2}
    sheet = sheet_of(
        read,
        HEADER,
        msg("token_count", **counts),
        msg("token_count", info={"total_token_usage": counts, "last_token_usage": counts}),
        msg("token_count", info=None),
    )
    assert [(one["scope"], one.get("cumulative")) for one in sheet.of("usage")] == [
        ("inference", None),
        ("session", True),
    ]


def test_turns_of_two_runs_in_one_log_are_two(read: Read) -> None:
    run = [HEADER, msg("task_started"), msg("task_complete", last_agent_message="ok")]
    sheet = sheet_of(read, *run, *run)
    assert [turn["status"] for turn in sheet.last("turn")] == ["completed", "completed"]


# -- which log ----------------------------------------------------------------------------------------------------


def test_a_log_without_an_id_is_named_by_its_first_two_lines() -> None:
    head = log(HEADER, {"prompt": "Do it."})
    name = CODEX_EXEC.sessions("/x.jsonl", _files(head))[0].native_id
    assert name.startswith("log-")
    assert CODEX_EXEC.sessions("/x.jsonl", _files(head + log(msg("task_started"))))[0].native_id == name
    other = log(HEADER, {"prompt": "Do something else."})
    assert CODEX_EXEC.sessions("/x.jsonl", _files(other))[0].native_id != name


def test_what_a_caller_wrote_before_the_log_does_not_hide_it(tmp_path: Any) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "run.jsonl").write_bytes(b"Reading prompt from stdin...\n" + log(STARTED, TURN))
    (found,) = import_sources([tmp_path / "in"], tmp_path / "out")
    assert isinstance(found, Imported)
    assert (found.kind, found.session, found.gaps) == ("codex-exec", "01a2-thread", 1)


def test_logs_of_one_thread_keep_a_bundle_each(tmp_path: Any) -> None:
    (tmp_path / "in").mkdir()
    for name in ("first", "second"):
        (tmp_path / "in" / f"{name}.jsonl").write_bytes(
            log(STARTED, TURN, {"type": "error", "message": name})
        )
    found = [one for one in import_sources([tmp_path / "in"], tmp_path / "out") if isinstance(one, Imported)]
    assert len({one.bundle for one in found}) == 2


def _files(data: bytes) -> Any:
    from callsheet.testing.desk import Files

    return Files({"/x.jsonl": data})
