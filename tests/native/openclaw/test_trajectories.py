"""Trajectories: times for the calls of a transcript, and what no transcript has; never texts or outcomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.native.openclaw.conftest import KEY, SESSION, Made, Read, Store, Traced, sheets, stored
from tests.native.openclaw.test_databases import approval, settled

from callsheet.library.importing import Imported, import_sources
from callsheet.testing.desk import Files

SECRET = "hunter2-FAKE-answer"
ASKS = {"questions": [{"id": "q", "question": "Token?", "isSecret": True}]}


def roles(record: dict[str, Any]) -> list[str]:
    return [ref["role"] for ref in record["native"]["refs"]]


def one_call(made: Made, **details: Any) -> list[Any]:
    made.call(("c1", "exec", {"command": "make"}))
    made.result("c1", details={"status": "completed", "exitCode": 0, "durationMs": 12, **details})
    made.said()
    return made.entries


# -- beside a transcript ------------------------------------------------------------------------------------------


def test_a_result_gets_its_times_and_keeps_all_else(store: Store, made: Made, traced: Traced) -> None:
    store.session(one_call(made)).trace(traced.began().call("c1", args="cut").result("c1").events)
    sheet = stored(store)
    result = sheet.result("c1")
    assert (result["startedAt"], result["completedAt"]) == (
        "2026-11-30T10:00:01.000Z",
        "2026-11-30T10:00:01.500Z",
    )
    assert (result["status"], result["durationMs"], result["exec"]["exitCode"]) == ("completed", 12, 0)
    assert result["content"] == [{"type": "text", "text": "done"}]
    assert roles(result) == ["result", "returned", "called"]
    (call,) = sheet.of("tool_call")
    assert (call["input"], roles(call)) == ({"command": "make"}, ["call", "called"])
    assert sheet.reading.diagnostics == []


def test_when_a_call_that_had_to_wait_for_leave_began_is_not_said(
    store: Store, made: Made, traced: Traced
) -> None:
    entries = one_call(made)
    row = settled(1, "allowed", "allow-once", "user", "device", "phone")
    store.session(entries).rows({"operator_approvals": [row]})
    store.trace(traced.call("c1").result("c1").events)
    result = stored(store).result("c1")
    assert "startedAt" not in result
    assert result["completedAt"] == "2026-11-30T10:00:01.000Z"


@pytest.mark.parametrize("synthetic", [True, False])
def test_what_never_ran_has_no_times(store: Store, made: Made, traced: Traced, synthetic: bool) -> None:
    details = (
        {"openclawSyntheticMissingToolResult": True} if synthetic else {"failureKind": "auto-review-denied"}
    )
    made.call(("c1", "exec", {"command": "make"}))
    made.result("c1", details=details, error=True)
    store.session(made.entries).trace(traced.call("c1").result("c1", success=False).events)
    result = stored(store).result("c1")
    assert {"startedAt", "completedAt"} & set(result) == set()
    assert roles(result) == ["result", "returned"]


def test_an_id_on_several_calls_has_no_times(store: Store, made: Made, traced: Traced) -> None:
    for number in range(2):
        made.call(("c1", "exec", {"command": f"make {number}"}))
        made.result("c1", f"made {number}")
        traced.call("c1").result("c1")
    store.session(made.entries).trace(traced.events)
    sheet = stored(store)
    assert all("completedAt" not in one for one in sheet.of("tool_result"))
    assert [one["nativeType"] for one in sheet.of("unmapped")] == ["tool.call", "tool.result"] * 2


def test_a_nested_call_keeps_the_times_of_its_own(store: Store, made: Made, traced: Traced) -> None:
    made.call(("cell", "exec", {"code": "…"}))
    nested = {
        "toolCallId": "n1",
        "parentToolCallId": "cell",
        "toolName": "read",
        "input": {},
        "isError": False,
    }
    nested |= {"result": {"content": []}, "startedAt": 1_000, "timestamp": 2_000}
    made.message("custom", customType="openclaw.nested-tool.v1", details=nested)
    store.session(made.entries).trace(traced.call("n1", "read").result("n1", "read").events)
    result = stored(store).result("n1")
    assert (result["startedAt"], result["completedAt"]) == (
        "1970-01-01T00:00:01.000Z",
        "1970-01-01T00:00:02.000Z",
    )
    assert roles(result) == ["nested", "returned"]


def test_what_contradicts_the_transcript_is_said_and_not_merged(
    store: Store, made: Made, traced: Traced
) -> None:
    entries = one_call(made, durationMs=90_000)
    traced.call("c1", "read").result("c1", success=False)
    store.session(entries).trace(traced.events)
    sheet = stored(store)
    (call,), result = sheet.of("tool_call"), sheet.result("c1")
    assert (call["name"], result["status"], result["durationMs"]) == ("exec", "completed", 90_000)
    assert {"startedAt", "completedAt"} & set(result) == set()
    told = [one.message for one in sheet.reading.diagnostics if one.code == "trajectory_differs"]
    assert [words.split(",")[0].split(":")[0] for words in told] == [
        "the trajectory names the tool 'read'",
        "the trajectory says that the call failed",
        "the trajectory tells 500 ms for what took 90000 ms",
    ]


def test_names_that_the_tool_policy_knows_otherwise_do_not_contradict(
    store: Store, made: Made, traced: Traced
) -> None:
    made.call(("c1", "Bash", {}), ("c2", "apply-patch", {}))
    store.session(made.entries).trace(traced.call("c1", "exec").call("c2", "apply_patch").events)
    assert stored(store).reading.diagnostics == []


# -- what it alone tells ------------------------------------------------------------------------------------------


def test_a_call_that_was_taken_out_of_the_transcript_stands_before_its_result(
    store: Store, made: Made, traced: Traced
) -> None:
    made.call(("c1", "read", {"path": "a"}))
    made.result("c1", tool="read")
    made.result("c2", "Tool frobnicate not found", tool="frobnicate", error=True)
    traced.call("c1", "read").call("c2", "frobnicate", {"x": 1})
    store.session(made.entries).trace(traced.result("c2", "frobnicate", success=False).result("c1").events)
    sheet = stored(store)
    kinds = [(one["type"], one["callId"]) for one in sheet.records if one["type"].startswith("tool_")]
    assert kinds == [("tool_call", "c1"), ("tool_result", "c1"), ("tool_call", "c2"), ("tool_result", "c2")]
    call = sheet.of("tool_call")[1]
    assert (call["title"], call["input"]) == ("frobnicate", {"x": 1})
    assert {"name", "kind", "requestedBy"} & set(call) == set()
    assert {name: one["state"] for name, one in call["capture"].items()} == {
        "name": "absent",
        "input": "truncated",
    }
    assert sheet.tally().orphan == 0


def test_a_result_that_no_transcript_has_is_the_traces_own(store: Store, made: Made, traced: Traced) -> None:
    made.call(("c1", "exec", {"command": "make"}))
    details = {"status": "completed", "exitCode": 2}
    content = [{"type": "text", "text": "cut"}]
    traced.call("c1").result("c1", content=content, details=details)
    store.session(made.entries).trace(traced.events)
    result = stored(store).result("c1")
    assert (result["status"], result["linkage"], result["callId"]) == ("completed", "exact", "c1")
    assert {"content", "exec"} & set(result) == set()
    assert {name: one["state"] for name, one in result["capture"].items()} == {
        "content": "absent",
        "raw": "truncated",
    }
    assert result["raw"] == {"content": content, "details": details}
    assert roles(result) == ["traced", "called"]


@pytest.mark.parametrize(("success", "status"), [(False, "failed"), (None, "unknown"), ("yes", "unknown")])
def test_its_outcome_is_the_traces_word(store: Store, traced: Traced, success: Any, status: str) -> None:
    store.session([]).trace(traced.call("c1").result("c1", success=success).events)
    assert stored(store).result("c1")["status"] == status


def test_a_session_of_a_trajectory_alone_is_one_and_says_so(store: Store, traced: Traced) -> None:
    traced.began().call("c1").result("c1").call("c2").ended("error", promptError="Gone.", stopReason="error")
    store.session([]).trace(traced.events)
    sheet = stored(store)
    assert sheet.codes == {"missing_transcript": 1}
    assert [one["callId"] for one in sheet.of("tool_call")] == ["c1", "c2"]
    assert sheet.tally().dangling == 1
    (first, last) = sheet.of("turn")
    assert first["native"]["extra"] == {
        "provider": "mock",
        "model": "mock-1",
        "api": "anthropic-messages",
        "trigger": "user",
    }
    assert (last["status"], last["reason"], last["error"]) == ("failed", "error", {"message": "Gone."})
    assert last["supersedes"] == first["id"]


def test_calls_of_one_id_in_a_trajectory_alone_are_kept_and_not_paired(store: Store, traced: Traced) -> None:
    store.session([]).trace(traced.call("c1").result("c1").call("c1").result("c1").events)
    sheet = stored(store)
    assert [one["callId"] for one in sheet.of("tool_call")] == ["c1", "c1"]
    assert [(one["linkage"], one.get("callId")) for one in sheet.of("tool_result")] == [
        ("ambiguous", None)
    ] * 2


def run_row(number: int, status: str) -> dict[str, Any]:
    return {
        "event_id": f"e{number}",
        "source_id": f"x{number}",
        "schema_version": 1,
        "source_sequence": number,
        "occurred_at": number,
        "kind": "agent_run",
        "action": "run",
        "status": status,
        "actor_type": "agent",
        "actor_id": "main",
        "agent_id": "main",
        "session_key": KEY,
        "session_id": SESSION,
        "run_id": "run-1",
    }


def test_a_run_that_the_shared_database_tells_of_is_its_turn(
    store: Store, made: Made, traced: Traced
) -> None:
    store.session(one_call(made)).rows({"audit_events": [run_row(1, "started"), run_row(2, "failed")]})
    store.trace(traced.began().ended().events)
    sheet = stored(store)
    first, last = sheet.of("turn")
    assert (first["status"], last["status"]) == ("running", "failed")
    assert roles(first) == ["run", "began", "ended"]
    assert sheet.of("unmapped") == []
    assert first["native"]["extra"]["model"] == "mock-1"


def test_a_run_that_ended_otherwise_is_said(store: Store, made: Made, traced: Traced) -> None:
    store.session(one_call(made)).rows({"audit_events": [run_row(1, "failed")]})
    store.trace(traced.began().ended().events)
    assert stored(store).codes == {"trajectory_differs": 1}


def test_what_repeats_prompts_and_messages_is_not_read(store: Store, made: Made, traced: Traced) -> None:
    for kind in (
        "trace.metadata",
        "context.compiled",
        "prompt.submitted",
        "model.completed",
        "trace.artifacts",
    ):
        traced.add(kind, {"systemPrompt": "You are."})
    traced.add("model.fallback_step", {"reason": "overloaded"})
    store.session(one_call(made)).trace(traced.events)
    sheet = stored(store)
    assert [one["nativeType"] for one in sheet.of("unmapped")] == ["model.fallback_step"]
    assert b"You are." not in sheet.everything()


@pytest.mark.parametrize(
    "odd",
    [
        "{broken",
        "[]",
        "17",
        '"text"',
        "{}",
        '{"type": ["tool.call"]}',
        '{"traceSchema":"openclaw-trajectory","source":"runtime","type":"tool.call","data":[1]}',
        '{"traceSchema":"openclaw-trajectory","source":"runtime","type":"tool.call","data":{"toolCallId":7}}',
        '{"traceSchema":"openclaw-trajectory","source":"runtime","type":"tool.result","data":null}',
        '{"traceSchema":"openclaw-trajectory","source":"runtime","type":"session.ended","runId":null}',
        '{"traceSchema":"openclaw-trajectory","source":"transcript","type":"tool.call","data":{"toolCallId":"c9"}}',
        '{"traceSchema":"openclaw-trajectory","source":"runtime","type":"tool.call","ts":"now",\n"data":{"toolCallId":"c1"}}',
    ],
)
def test_odd_events_are_kept_and_say_nothing(store: Store, made: Made, odd: str) -> None:
    store.session(one_call(made)).trace([odd])
    sheet = stored(store)
    assert len(sheet.of("unmapped")) + len(sheet.of("gap")) == 1
    assert "completedAt" not in sheet.result("c1")


# -- legacy files -------------------------------------------------------------------------------------------------


def test_a_file_beside_a_transcript_gives_it_times(made: Made, traced: Traced) -> None:
    one_call(made)
    files = Files(
        {
            f"/p/{SESSION}.jsonl": made.data,
            f"/p/{SESSION}.trajectory.jsonl": traced.began().call("c1").result("c1").data,
            "/p/other.trajectory.jsonl": Traced("another").call("c1").data,
        }
    )
    for asked in (f"/p/{SESSION}.jsonl", f"/p/{SESSION}.trajectory.jsonl"):
        (sheet,) = sheets(asked, files)
        assert sheet.result("c1")["completedAt"] == "2026-11-30T10:00:01.500Z"
        assert len(sheet.records[0]["sources"]) == 2
    both = sheets("/p", files)
    assert [one.records[0]["nativeSessionId"] for one in both] == [SESSION, "another"]
    assert [one.codes for one in both] == [{}, {"missing_transcript": 1}]


def test_a_file_of_another_session_is_not_taken(made: Made) -> None:
    one_call(made)
    files = Files({"/p/s.jsonl": made.data, "/p/s.trajectory.jsonl": Traced("another").call("c1").data})
    (sheet,) = sheets("/p/s.jsonl", files)
    assert "completedAt" not in sheet.result("c1")
    assert len(sheets("/p", files)) == 2


def test_a_file_that_was_left_when_a_session_moved_into_a_database_is_read_with_it(
    store: Store, made: Made, traced: Traced
) -> None:
    left = store.agent.parents[1] / "sessions"
    left.mkdir()
    (left / f"{SESSION}.trajectory.jsonl").write_bytes(traced.call("c1").result("c1").data)
    store.session(one_call(made)).close()
    (sheet,) = sheets(store.root, Files.below(store.root))
    assert sheet.result("c1")["startedAt"] == "2026-11-30T10:00:00.500Z"
    assert roles(sheet.result("c1")) == ["result", "returned", "called"]


def test_thoughts_in_messages_that_a_file_repeats_are_hidden(
    made: Made, traced: Traced, tmp_path: Path
) -> None:
    messages = [{"role": "assistant", "content": [{"type": "thinking", "thinking": "Secretly, I think."}]}]
    traced.add("model.completed", {"messagesSnapshot": messages})
    (tmp_path / f"{SESSION}.trajectory.jsonl").write_bytes(traced.call("c1").data)
    (done,) = import_sources([tmp_path], tmp_path / "out", kind="openclaw")
    assert isinstance(done, Imported)
    files = [path for path in done.bundle.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"Secretly" in inflated(path)]


def inflated(path: Path) -> bytes:
    import zstandard

    data = path.read_bytes()
    return zstandard.ZstdDecompressor().stream_reader(data).read() if path.suffix == ".zst" else data


# -- secrets ------------------------------------------------------------------------------------------------------


def answered(words: str) -> dict[str, Any]:
    details = {"status": "answered", "answers": {"answers": {"q": [words]}}}
    return {"content": [{"type": "text", "text": f"They said {words}."}], "details": details}


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_to_a_secret_question_stands_nowhere(
    store: Store, made: Made, traced: Traced, tmp_path: Path, whole: bool
) -> None:
    """Whole, in a result of the trajectory alone; or as OpenClaw shortens it, beside the transcript's own."""
    made.call(("ask", "ask_user", ASKS))
    if not whole:
        answer = answered(SECRET)
        made.message("toolResult", toolCallId="ask", toolName="ask_user", isError=False, **answer)
    made.prompt(f"I said {SECRET}, remember?")
    told = SECRET if whole else f"{SECRET[:6]}…{SECRET[-4:]}"
    if whole:
        traced.call("ask", "ask_user", ASKS)
    store.session(made.entries).trace(traced.result("ask", "ask_user", **answered(told)).events).close()
    (done,) = import_sources([store.root], tmp_path / "out", kind="openclaw")
    assert isinstance(done, Imported)
    for path in done.bundle.rglob("*"):
        data = inflated(path) if path.is_file() else b""
        assert SECRET.encode() not in data
        assert told.encode() not in data
        assert json.dumps(told)[1:-1].encode() not in data


def test_a_pending_request_still_stands_beside_its_call(store: Store, made: Made, traced: Traced) -> None:
    made.call(("c1", "exec", {"command": "rm"}))
    store.session(made.entries).rows({"operator_approvals": [approval(1)]}).trace(traced.call("c1").events)
    sheet = stored(store)
    assert sheet.of("tool_result") == []
    assert [one["status"] for one in sheet.of("permission")] == ["pending"]


def test_reading_a_file_alone(read: Read, traced: Traced) -> None:
    sheet = read(traced.began().call("c1", "read", {"path": "a"}).result("c1", "read").ended().data)
    (call,) = sheet.of("tool_call")
    assert (call["kind"], call["title"], call["callId"]) == ("read", "read", "c1")
    assert sheet.records[0]["nativeSessionId"] == SESSION
