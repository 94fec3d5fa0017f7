"""The audit finds every fact of T3 Code's threads again, and names every lie about them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.native.t3code.conftest import NOW, THREAD, State

from callsheet.audit import Totals, audit_bundle
from callsheet.audit import facts as audit_facts
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.registry import load
from callsheet.registry.facts import Fact
from callsheet.testing.lies import unseen

EXAMPLES = Path(__file__).parents[3] / "examples" / "t3code"
LATER = "2026-10-26T18:00:07.000Z"
QUESTION = {"id": "q", "header": "H", "question": "Go?", "multiSelect": True, "allowCustomAnswer": True}
QUESTION |= {"options": [{"label": "Yes", "value": "y", "description": "Do"}, {"label": "No"}]}
SECRETS = [{"question": "Token?", "secret": True}, {"question": "Key?", "isSecret": True}]
OFFERED = [{"decision": word, "label": word} for word in ("accept", "acceptForSession", "decline", "odd")]


def bundles(paths: list[Path], out: Path, **options: Any) -> list[Bundle]:
    found = list(import_sources(paths, out, kind="t3code", **options))
    assert found
    assert [one for one in found if isinstance(one, Failure)] == []
    return [Bundle(one.bundle) for one in found if not isinstance(one, Failure)]


# -- made-up threads that have everything -------------------------------------------------------------------------


def row(state: State, table: str, key: str, **payload: Any) -> None:
    """A row of V2 whose payload is all that counts."""
    columns = {key: payload["id"], "thread_id": payload.pop("thread", THREAD)}
    state.insert(f"orchestration_v2_projection_{table}", {**columns, "payload_json": json.dumps(payload)})


def new_threads(path: Path) -> Path:
    """A database of V2: every type of item, with its requests, agents, runs and turns."""
    new = State(path, 2)
    project = {"project_id": "p", "title": "P", "workspace_root": "/work/app", "scripts_json": "[]"}
    new.insert("projection_projects", project)
    thread = {"id": THREAD, "title": "T", "worktreePath": "/work/tree", "modelSelection": {"model": "m"}}
    thread |= {"providerInstanceId": "codex", "lineage": {}}
    row_of = {"thread_id": THREAD, "project_id": "p", "title": "T", "payload_json": json.dumps(thread)}
    new.insert("orchestration_v2_projection_threads", row_of)
    new.thread("child", parent=THREAD)
    new.thread("forked", lineage={"parentThreadId": THREAD, "relationshipToParent": "fork"})
    new.item("user_message", thread="forked", text="Hi", messageId="f", createdBy="user")
    native = {"driver": "codex", "nativeId": "01a2", "strength": "strong"}
    row(new, "provider_threads", "provider_thread_id", id="pt", driver="codex", nativeThreadRef=native)
    calls(new)
    talk(new)
    requests(new)
    agents(new)
    row(new, "runs", "run_id", id="run-1", status="failed", requestedAt=NOW, failure={"message": "No."})
    row(new, "runs", "run_id", id="run-2", status="odd", requestedAt=NOW, completedAt=LATER)
    usage = {"usedTokens": 9, "maxTokens": 10, "updatedAt": NOW}
    row(new, "provider_turns", "provider_turn_id", id="t1", tokenUsage=usage)
    row(new, "provider_turns", "provider_turn_id", id="t2", nativeTurnRef=None, startedAt=NOW)
    launch = {"command_id": "c", "thread_id": THREAD, "setup_committed": 1, "status": "done"}
    new.insert("orchestration_v2_thread_launch_workflows", launch)
    name = base64.urlsafe_b64encode(THREAD.encode()).decode().rstrip("=")
    logs = path.parent / "logs" / "terminals"
    logs.mkdir(parents=True)
    (logs / f"terminal_{name}.log").write_text("$ ls\n")
    (logs / f"terminal_{name}_dDE.log").write_bytes(b"x" * 70_000)
    return new.close()


def calls(new: State) -> None:
    new.item("command_execution", input="ls", output="a\n", exitCode=0, native="c1")
    new.item(
        "command_execution",
        input={"n": 2**70},
        driver="claudeAgent",
        output='{"stdout":"x"}',
        status="failed",
    )
    new.item("command_execution", status="running", input="sleep 9")
    new.item("command_execution", input="weak", strength="weak", outputIndicatesFailure=True)
    new.item("command_execution", input="none", native=None)
    new.item("command_execution", input="big", output="y" * 70_000)
    for number in range(2):
        new.item("command_execution", input=f"n{number}", native="shared")
    new.item("command_execution", native="c-odd", status="odd")
    changed = {"fileName": "/work/tree/a.rs", "diffStr": "@@"}
    new.item("file_change", native="f1", **changed)
    new.item("file_change", native="f2", status="failed", fileName="b.rs", oldStr="a", newStr="b")
    new.item("file_change", strength="weak", fileName="b.rs")
    new.item("file_change", native=None, fileName="b.rs")
    moved = [{"path": "d", "operation": "rename", "oldPath": "c"}, {"path": "e", "operation": "add"}]
    new.item("file_change", native="shared", changes=moved)
    new.item("file_search", pattern="x", results=[{"fileName": "a"}])
    new.item("web_search", patterns=["y"], results=[{"title": "t"}])
    new.item("dynamic_tool", toolName="mcp.x", input={"a": 1}, output={"error": "no"}, status="failed")
    parent = new.item("dynamic_tool", toolName="outer", input={}, native="outer-1")
    new.item("dynamic_tool", input=None, parentItemId=parent, title="Inner")
    new.item("dynamic_tool", toolName="z", input={}, status=None)


def talk(new: State) -> None:
    new.item("user_message", text="Go", messageId="m1", createdBy="user")
    new.item("user_message", text="On", messageId="m2", createdBy="agent")
    new.item("assistant_message", text="Done", messageId="m3")
    new.item("assistant_message", messageId="m4")
    new.item("reasoning", text="Hm")
    new.item("reasoning", text="Working on it", title="Subagent progress")
    new.item("error", failure={"message": "Overloaded"})
    new.item("compaction", summary="So far", beforeTokenCount=9, afterTokenCount=1)
    new.item(
        "todo_list", planId="plan", steps=[{"text": "a", "status": "running"}, {"text": "b", "status": "odd"}]
    )
    new.item("todo_list", planId="none", steps=[])
    new.item("todo_list", startedAt=None, updatedAt=LATER)
    new.item("proposed_plan", planId="p2", markdown="# Do")
    new.item("checkpoint", files=[{"path": "a.rs", "kind": "update"}, {"path": "b.rs", "kind": "modified"}])
    new.item("handoff", startedAt=None, updatedAt=NOW)
    new.item("notification")


def requests(new: State) -> None:
    command = {"requestKind": "command", "prompt": "rm x"}
    new.item("approval_request", requestId="r1", native="none", options=OFFERED, **command)
    new.request("r1", decision="accept", nativeRequestRef={"nativeId": "c1"})
    new.item("approval_request", requestId="r2", native="c1", reason="ask_rule", feedback="No.", **command)
    new.response("r2", decision="decline")
    new.item("approval_request", requestId="r3", native="none", options=OFFERED, **command)
    new.response("r3", decision="acceptForSession")
    new.item("approval_request", requestId="r4", decision="odd", native="none", **command)
    new.request("r5", status="pending", resolvedAt=None)
    new.request("r6", decision="cancel", nativeRequestRef={"nativeId": "c1"})
    new.request("r7", status="expired", resolvedAt=None)
    new.request("r8", nativeRequestRef=None)
    new.response("r9", decision="acceptAlways")
    new.item("approval_request", requestId="r10", native="none", **command)
    new.request("r10", resolvedAt=LATER)
    new.item("approval_request", requestId="r11", native="none")
    new.request("r11", decision="accept", reason="why", feedback="ok")
    asked = [QUESTION, {"question": "Why?"}]
    new.item("user_input_request", requestId="q1", questions=asked, native="c1", responseMode="message")
    new.request("q1", kind="user_input", answers={"q": ["Yes", "and"], "1": "because"})
    new.item(
        "user_input_request",
        requestId="q2",
        questions=[QUESTION],
        native="none",
        questionAnswer={"requestId": "q2", "answers": {"q": "No"}},
    )
    new.item("user_input_request", requestId="q3", questions=[QUESTION], native="none")
    new.response("q3", answers={"q": ["Yes"]})
    new.item("user_input_request", requestId="q4", questions=[QUESTION], native="none")
    new.request("q4", kind="user_input", status="expired")
    new.item("user_input_request", requestId="q5", questions=[], native="none")
    new.request("q5", kind="user_input", status="odd")
    new.item("user_input_request", requestId="q6", native="none", isSecret=True)
    new.request("q6", kind="user_input", answers={"x": ["zz-secret-0006"]})
    new.item("user_input_request", requestId="q7", questions=SECRETS, native="none")
    new.request("q7", kind="user_input", answers={"0": ["zz-secret-0007"], "1": ["zz-secret-0008"]})
    new.request("q8", kind="user_input", answers={"a": "b"})
    new.item(
        "user_input_request",
        requestId="q9",
        secret=True,
        questions=[QUESTION],
        native="none",
        answers={"q": "zz-secret-0010"},
    )
    for number, mark in enumerate(("secret", "isSecret")):
        new.item("user_input_request", requestId=f"q1{number}", questions=[QUESTION], native="none")
        new.request(f"q1{number}", kind="user_input", **{mark: True})


def agents(new: State) -> None:
    new.item(
        "subagent", subagentId="a1", prompt="Look", title="Looker", childThreadId="child", native="call-a1"
    )
    new.item("subagent", subagentId="a2", prompt="Look", strength="weak", status="running", result="r")
    new.item("subagent", subagentId="a3", native=None, status=None)
    new.item("subagent", subagentId="a6", native="shared", prompt="Look", result="r")
    for name, status in (
        ("a1", "completed"),
        ("a2", "failed"),
        ("a3", "odd"),
        ("a4", "completed"),
        ("a6", "odd"),
    ):
        row(new, "subagents", "subagent_id", id=name, status=status, updatedAt=NOW, completedAt=LATER)
    row(new, "subagents", "subagent_id", id="a5", updatedAt=NOW)
    new.item("command_execution", thread="child", input="ls")


def old_thread(path: Path, provider: str = "codex") -> Path:
    """A database of V1: every kind of activity, as Codex and as Claude left them."""
    old = State(path, 1)
    project = {"project_id": "p", "title": "P", "workspace_root": "/work/app", "scripts_json": "[]"}
    old.insert("projection_projects", project)
    if provider == "codex":
        thread = {"thread_id": THREAD, "project_id": "p", "title": "T", "worktree_path": "/work/tree"}
        old.insert("projection_threads", thread)
    session = {
        "thread_id": THREAD,
        "provider_name": provider,
        "provider_session_id": "s",
        "provider_thread_id": "t",
    }
    if provider == "codex":
        old.insert("projection_thread_sessions", session)
    cursor = {"codex": {"threadId": "01a2"}, "codex2": {"threadId": "01a3"}}
    cursor |= {"claudeAgent": {"resume": "5e55"}, "claudeAgent2": {"sessionId": "5e56"}}
    name, resumes = provider.rstrip("2"), json.dumps(cursor[provider])
    runtime = {"thread_id": THREAD, "provider_name": name, "resume_cursor_json": resumes}
    old.insert("provider_session_runtime", runtime)
    old_calls(old)
    old_requests(old)
    old_rest(old)
    return old.close()


def done(old: State, kind: str, **item: Any) -> None:
    old.activity("tool.completed", {"itemType": kind, "data": {"item": item}})


def old_calls(old: State) -> None:
    ran = {
        "type": "commandExecution",
        "command": "ls",
        "cwd": "/work/tree",
        "aggregatedOutput": "a\n",
        "exitCode": 0,
    }
    done(
        old,
        "command_execution",
        id="c1",
        status="completed",
        durationMs=5,
        processId="p1",
        source="userShell",
        **ran,
    )
    done(old, "command_execution", id="c2", status="declined", **ran)
    done(old, "command_execution", **{**ran, "aggregatedOutput": "z" * 70_000}, status="odd")
    for number in range(2):
        done(old, "command_execution", id="shared", n=number, **ran)
    called = {
        "type": "mcpToolCall",
        "server": "s",
        "tool": "t",
        "arguments": {"a": 1},
        "error": {"message": "no"},
    }
    done(old, "mcp_tool_call", id="m1", status="failed", **called)
    done(old, "mcp_tool_call", id="m2", status="failed", **{**called, "arguments": {"n": 2**70}})
    done(old, "web_search", id="w1", type="webSearch", query="x", action={"type": "search"})
    done(old, "image_view", id="i1", type="imageView", path="a.png")
    changes = [
        {"path": "a.rs", "kind": {"type": "update", "move_path": None}, "diff": "@@"},
        {"path": "b.rs", "kind": {"type": "update", "move_path": "c.rs"}, "diff": "@@"},
        {"path": "d.rs", "kind": "add"},
    ]
    done(old, "file_change", id="f1", type="fileChange", status="completed", changes=changes)
    done(old, "file_change", type="fileChange", changes=changes)
    agents = {"a1": {"status": "running"}, "a2": {"status": "errored"}}
    collab = {"type": "collabAgentToolCall", "prompt": "Look", "receiverThreadIds": ["a1", "a2", "a3"]}
    done(old, "collab_agent_tool_call", id="g1", agentsStates=agents, **collab)
    done(old, "collab_agent_tool_call", receiverThreadIds=["a4"], type="collabAgentToolCall", agentsStates={})
    told = {"toolName": "Bash", "input": {"command": "x"}, "result": {"stdout": "y"}}
    old.activity("tool.completed", {"itemType": "dynamic_tool_call", "data": told})
    old.activity("tool.completed", {"itemType": "dynamic_tool_call", "data": {"input": {"n": 2**70}}})
    old.activity("tool.completed", {"itemType": "command_execution"})
    old.activity("tool.denied", {"toolName": "Bash", "toolUseId": "d1", "detail": "Not allowed"})
    old.activity("tool.denied", {"detail": "Not allowed"})
    old.activity("tool.started", {"itemType": "command_execution"})


def old_requests(old: State) -> None:
    for number, (status, decision) in enumerate(
        (("pending", None), ("resolved", "decline"), ("resolved", None))
    ):
        pending = {"request_id": f"p{number}", "thread_id": THREAD, "status": status, "decision": decision}
        old.insert("projection_pending_approvals", {**pending, "resolved_at": LATER if decision else None})
    for number in (0, 1):
        told = {"requestId": f"p{number}", "requestKind": "command", "detail": "rm x", "options": OFFERED}
        old.activity("approval.requested", {**told, "reason": "ask", "feedback": "no"})
    old.activity("approval.requested", {"requestId": "p3", "options": OFFERED})
    old.event("thread.approval-response-requested", {"requestId": "p3", "decision": "acceptForSession"})
    old.activity("approval.requested", {"requestId": "p4", "options": OFFERED, "decision": "accept"})
    old.activity("approval.requested", {"requestId": "p5", "options": OFFERED})
    old.activity("approval.resolved", {"requestId": "p5", "decision": "accept"})
    old.activity("approval.resolved", {"requestId": "p6", "decision": "accept"})
    old.event("thread.approval-response-requested", {"requestId": "p7", "decision": "cancel"})
    old.activity("user-input.requested", {"requestId": "u1", "questions": [QUESTION, {"question": "Why?"}]})
    old.event("thread.user-input-response-requested", {"requestId": "u1", "answers": {"q": "Yes"}})
    old.activity("user-input.requested", {"requestId": "u2", "questions": [QUESTION]})
    old.activity("user-input.resolved", {"requestId": "u2", "answers": {"q": ["No", "later"]}})
    old.activity("user-input.requested", {"requestId": "u3", "questions": SECRETS})
    old.event("thread.user-input-response-requested", {"requestId": "u3", "answers": {"0": "zz-secret-0009"}})
    for number, mark in enumerate(("secret", "isSecret")):
        old.activity(
            "user-input.requested", {"requestId": f"u4{number}", "questions": [QUESTION], mark: True}
        )
    old.activity("user-input.resolved", {"requestId": "u5", "answers": {"q": "x"}})
    old.event("thread.user-input-response-requested", {"requestId": "u6", "answers": {"q": "x"}})
    old.activity("user-input.requested", {"requestId": "u7", "answers": {"q": "x"}, "questions": [QUESTION]})
    given = {"requestId": "u8", "questions": [QUESTION], "questionAnswer": {"answers": {"q": "Yes"}}}
    old.activity("user-input.requested", given)


def old_rest(old: State) -> None:
    for task, kind in (("t", "subagent"), ("b", "local_bash")):
        old.activity("task.started", {"taskId": task, "taskType": kind, "detail": "Look"})
        old.activity("task.progress", {"taskId": task, "title": "Look more"})
        old.activity("task.completed", {"taskId": task, "status": "completed"})
        old.activity("task.completed", {"taskId": f"{task}2", "taskType": kind})
    old.activity(
        "turn.plan.updated", {"plan": [{"step": "Fix", "status": "inProgress"}, {"step": "x", "status": 1}]}
    )
    old.activity("turn.plan.updated", {"plan": []}, turn_id="turn-9")
    old.activity("context-window.updated", {"usedTokens": 12, "maxTokens": 100})
    old.activity("context-compaction", {})
    for kind in ("requested", "started", "failed"):
        old.activity(
            f"setup-script.{kind}", {"scriptId": "s", "scriptName": "pnpm install", "terminalId": "t"}
        )
    old.activity("runtime.error", {"message": "Broke"})
    old.activity("runtime.warning", {"detail": "Nearly"})
    for number, (role, text) in enumerate(
        (("user", "Go"), ("assistant", "Done"), ("system", "s"), ("odd", "o"))
    ):
        told = {
            "message_id": f"m{number}",
            "thread_id": THREAD,
            "role": role,
            "text": text,
            "is_streaming": number // 3,
        }
        old.insert("projection_thread_messages", told)
    plan = {"plan_id": "p", "thread_id": THREAD, "plan_markdown": "# Do", "created_at": NOW}
    old.insert("projection_thread_proposed_plans", plan)
    old.insert("projection_thread_proposed_plans", {**plan, "plan_id": "", "plan_markdown": "lost"})
    files = json.dumps([{"path": "a.rs", "kind": "update"}, {"path": "b.rs", "kind": "modified"}])
    for number, state in enumerate(("completed", "running", "odd"), 1):
        times = {"completed_at": LATER} if number == 1 else {"started_at": LATER} if number == 2 else {}
        turn = {
            "thread_id": THREAD,
            "turn_id": f"turn-{number}",
            "state": state,
            "checkpoint_turn_count": number,
        }
        old.insert("projection_turns", {**turn, "checkpoint_files_json": files, "requested_at": NOW, **times})
    lost = {"thread_id": THREAD, "turn_id": None, "state": "completed", "checkpoint_files_json": "[]"}
    old.insert("projection_turns", lost)
    diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"
    for since, until in ((0, 1), (0, 2)):
        told = {"thread_id": THREAD, "from_turn_count": since, "to_turn_count": until, "diff": diff}
        old.insert("checkpoint_diff_blobs", told)


def made_bundles(root: Path) -> list[Bundle]:
    paths = [new_threads(root / "new" / "state.sqlite")]
    paths += [
        old_thread(root / name / "state.sqlite", name)
        for name in ("codex", "codex2", "claudeAgent", "claudeAgent2")
    ]
    alone = State(root / "alone" / "state.sqlite", 2)
    alone.item(
        "command_execution", thread="alone", input="ls", startedAt=None, updatedAt=LATER, completedAt=None
    )
    paths.append(alone.close())
    # Rows that a column gives to one thread, and their text to another.
    moved = State(root / "moved" / "state.sqlite", 2)
    moved.insert(
        "orchestration_v2_projection_runs",
        {"run_id": "run-9", "thread_id": "moved", "ordinal": 1, "payload_json": '{"threadId": "elsewhere"}'},
    )
    moved.thread("renamed", id="another")
    moved.item("assistant_message", thread="renamed", threadId="elsewhere", text="Hm.")
    paths.append(moved.close())
    found = [bundle for path in paths for bundle in bundles([path], root / "out" / path.parent.name)]
    return [*found, *bundles(paths[:1], root / "thoughts", keep_reasoning=True)]


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    return made_bundles(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    return bundles([EXAMPLES], tmp_path_factory.mktemp("shipped"))


# -- what is held against it --------------------------------------------------------------------------------------


def needed(fact: Fact) -> bool:
    """A table that broke off needs a damaged file, and the stream of an agent is checked by its family."""
    return fact.pointer != "/damaged/table" and fact.member != "stream"


def test_true_bundles_audit_clean_and_need_every_entry(
    made_up: list[Bundle], shipped: list[Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    proven: set[int] = set()
    true_attempts = audit_facts.attempts

    def watched(case: Any, fact: Any, value: Any, bound: Any) -> Iterator[Any]:
        for attempt in true_attempts(case, fact, value, bound):
            if not attempt.wrong:
                proven.add(id(fact))
            yield attempt

    monkeypatch.setattr(audit_facts, "attempts", watched)
    assert [found for bundle in (*made_up, *shipped) for found in audit_bundle(bundle)] == []
    idle = [one for one in load("t3code").fact if id(one) not in proven and needed(one)]
    assert [(one.record, one.role, one.member, one.pointer, one.when) for one in idle] == []


def masked(bundle: Bundle, path: str) -> bool:
    """Whether nobody can tell: the digest of a line of which something is hidden."""
    return path.endswith("/sha256") and any(source.masked for source in bundle.manifest.sources)


def test_no_lie_lies_unseen(made_up: list[Bundle], shipped: list[Bundle]) -> None:
    told: list[tuple[str, str]] = []
    for bundle in (*made_up, *shipped):
        found = [one for one in unseen(bundle.path, told) if not masked(bundle, one.lie.path)]
        assert [(one.kind, one.record, one.lie.path, one.lie.old, one.lie.new) for one in found] == []
    assert len(told) > 5000
    assert {"permission", "input_request", "terminal", "hook", "subagent", "plan"} <= {
        kind for kind, _ in told
    }


def captures(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*/*.sqlite.gz"), *folder.glob("*/state.sqlite")])


def test_captures_audit_clean(shared: Path, tmp_path: Path) -> None:
    totals = Totals()
    paths = captures(shared / "captures" / "t3code")
    assert len(paths) > 15
    for number, path in enumerate(paths):
        data = path.read_bytes()
        copy = tmp_path / str(number) / "state.sqlite"
        copy.parent.mkdir()
        copy.write_bytes(gzip.decompress(data) if path.suffix == ".gz" else data)
        for bundle in bundles([copy], tmp_path / "out" / str(number)):
            assert list(audit_bundle(bundle, totals)) == []
            assert [one for one in unseen(bundle.path) if not masked(bundle, one.lie.path)] == []
    assert totals.facts > 1000
    assert not totals.unread
