"""The audit finds every fact of OpenClaw's sessions again, and names every lie about them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.native.held import held
from tests.native.openclaw.conftest import KEY, SESSION, Made, Store, Traced, captured, database, insert
from tests.native.openclaw.test_captures import SCENARIOS
from tests.native.openclaw.test_databases import approval, settled

from callsheet.audit import Totals, audit_bundle
from callsheet.audit import facts as audit_facts
from callsheet.library.importing import Failure, import_sources
from callsheet.records.bundle import Bundle
from callsheet.registry import load
from callsheet.testing.lies import unseen

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "openclaw"
GOLDEN = sorted(Path(__file__).parent.glob("*/*/native"))
CHILD = "0c1a0000-0000-4000-8000-000000000002"
CHILD_KEY = "agent:main:subagent:two"
TOLD_ELSEWHERE = {
    ("tool_result", "content"),  # proven by captures of the version, not by the entry alone
    ("tool_result", "native.refs"),  # says what the audit reads an approval for
    ("tool_call", "native.refs"),  # says that a call was given to its tool
    *(("session", f"native.extra.{name}") for name in ("leaf", "archive", "schema", "elsewhere")),
}
"""Entries that say which rows a record is about; no member is made of them."""


def bundles(paths: list[Path], out: Path) -> list[Bundle]:
    found = list(import_sources(paths, out, kind="openclaw"))
    assert found
    failed = [one for one in found if isinstance(one, Failure)]
    assert failed == []
    return [Bundle(one.bundle) for one in found if not isinstance(one, Failure)]


# -- made-up sessions that have everything ------------------------------------------------------------------------


def transcript() -> Made:
    """A session of a database: every kind of entry, with the members that the captures lack."""
    made = Made(4)
    made.entries[0]["parentSession"] = "an older one"
    made.add("session_info", name="A title")
    made.prompt("Go on.", provenance={"kind": "internal_system", "sourceTool": "exec"})
    made.message("system", content="Be careful.")
    made.message("odd", content=[{"type": "odd", "x": 1}])
    made.message("user")
    made.message("assistant", content=[])
    made.add("custom_message", customType="note", content="From an extension.")
    made.add("custom_message", customType="empty")
    made.add("branch_summary", summary="What the other branch did.")
    made.add("branch_summary")
    made.message(
        "assistant",
        api="anthropic-messages",
        responseId="msg_0",
        usage={"input": 1, "cost": {"total": 0.5}},
        content=[{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I will."}],
    )
    run_commands(made)
    ask(made)
    change_files(made)
    made.call(("plan", "update_plan", {}))
    made.result(
        "plan", tool="update_plan", details={"plan": [{"step": "Do", "status": "in_progress"}, {"step": "x"}]}
    )
    made.call(("plan2", "update_plan", {}))
    made.result("plan2", tool="update_plan", details={"plan": []})
    cell(made)
    made.call(("spawn", "sessions_spawn", {"task": "Look"}))
    made.result("spawn", tool="sessions_spawn", details={"status": "accepted", "childSessionKey": CHILD_KEY})
    made.call(("spawn2", "sessions_spawn", {"task": "Look"}))
    made.result("spawn2", tool="sessions_spawn", details={"status": "odd", "childSessionKey": "agent:odd"})
    made.add("compaction", summary="So far.", firstKeptEntryId="e1", tokensBefore=900, tokensAfter=90)
    last = made.last
    made.call(("left", "exec", {"command": "never mind"}), stopReason="aborted")
    made.message("assistant", content=[], stopReason="error", errorMessage="Overloaded.")
    made.message("assistant", content=[], stopReason="aborted")
    made.last = last
    made.said()
    return made


def run_commands(made: Made) -> None:
    ran = {
        "status": "completed",
        "exitCode": 3,
        "exitSignal": None,
        "durationMs": 12,
        "cwd": "/home/dev/acme-app",
    }
    for call_id, details, error in (
        ("ok", ran, False),
        (
            "timed",
            {"status": "failed", "exitSignal": "SIGTERM", "timedOut": True, "failureKind": "overall-timeout"},
            True,
        ),
        ("refused", {"status": "failed", "error": "no"}, True),
        (
            "blocked",
            {"status": "blocked", "deniedReason": "plugin-before-tool-call", "reason": "Not now."},
            True,
        ),
        ("reviewed", {"failureKind": "auto-review-denied"}, True),
        ("waved", {"status": "completed", "approvalReviewOutcome": "approved"}, False),
        ("cut", {"persistedDetailsTruncated": True, "status": "completed", "exitCode": 0}, False),
        ("lost", {"openclawSyntheticMissingToolResult": True}, True),
        (
            "waits",
            {"status": "approval-pending", "approvalId": "apr-old", "command": "rm x", "host": "gateway"},
            False,
        ),
        (
            "bg",
            {"status": "running", "sessionId": "tidy-lobster", "pid": 7, "startedAt": 1, "cwd": "/srv"},
            False,
        ),
        ("odd", {"status": "completed"}, None),
    ):
        made.call((call_id, "exec", {"command": call_id}))
        made.result(call_id, details=details, error=error)
    made.call(("weighed", "exec", {"command": "touch x"}))
    review = {"id": "guardian:weighed", "label": "Guardian", "status": "denied", "rationale": "Risky."}
    made.result("weighed", details={**ran, "approvalReviews": [review], "approvalReviewOutcome": "denied"})
    for number in range(2):
        made.call((f"twice{number}", "exec", {"command": "serve"}))
        made.result(f"twice{number}", details={"status": "running", "sessionId": "two-of-them"})
        made.call(("again", "exec", {"command": f"number {number}"}))
        made.result("again", details=ran)
    made.call(("poll", "process", {"action": "poll"}))
    ended = {"sessionId": "tidy-lobster", "status": "completed", "exitCode": 0}
    made.result("poll", tool="process", details=ended)
    made.call(("list", "process", {"action": "list"}))
    listed = {"sessionId": "calm-newt", "status": "running", "command": "make", "cwd": "/srv", "startedAt": 5}
    killed = {"sessionId": "wild-fox", "status": "failed", "exitSignal": "SIGKILL"}
    made.result("list", tool="process", details={"sessions": [listed, killed]})
    made.call(("found", "web_search", {"query": "x"}), ("mcp", "composio__x", {}), (None, None, None))  # type: ignore[arg-type]
    made.result("found", tool="web_search", details={"tookMs": 9, "count": 2})
    made.result("mcp", tool="composio__x", details={"mcpServer": "composio", "mcpTool": "x"})
    made.result("found", tool="web_search", details={"status": "error", "error": "no route"}, error=None)
    made.message("toolResult", toolName="exec", content=[], isError=False)


def ask(made: Made) -> None:
    options = [{"label": "Yes", "value": "y", "description": "Do"}, {"label": "No"}]
    asked = {"id": "q", "header": "H", "question": "Go?", "options": options, "multiSelect": True}
    made.call(("ask", "ask_user", {"questions": [asked, {"question": "Why?"}, {"id": "n", "options": []}]}))
    given = {"q": ["Yes", "and more", "and more yet"], "1": "Because"}
    made.result("ask", tool="ask_user", details={"status": "answered", "answers": {"answers": given}})
    made.call(("ask2", "ask_user", {"questions": [asked]}))
    made.result("ask2", tool="ask_user", details={"status": "no_answer"})
    for mark in ("isSecret", "is_secret", "secret"):
        made.call((mark, "ask_user", {"questions": [{"id": "t", "question": "Token?", mark: True}]}))
        made.result(
            mark,
            tool="ask_user",
            details={"status": "answered", "answers": {"answers": {"t": [f"zz-{mark}-99"]}}},
        )
    for number, told in enumerate(({"name": "KEY", "reason": "To deploy"}, {"name": "KEY"})):
        made.call((f"store{number}", "secrets", {"action": "request", **told}))
        made.result(f"store{number}", tool="secrets", details={"status": "stored", "name": "KEY"})


def change_files(made: Made) -> None:
    for call_id, tool, path, details in (
        (
            "w1",
            "write",
            {"path": "/home/dev/acme-app/a.txt"},
            {"changed": True, "created": True, "patch": "@@"},
        ),
        ("w2", "write", {"file_path": "/etc/b"}, {"changed": True, "created": False, "patch": "@@"}),
        ("e1", "edit", {"path": "c.txt"}, {"changed": True, "patch": "@@ -1 +1 @@"}),
    ):
        made.call((call_id, tool, path))
        made.result(call_id, tool=tool, details=details)
    made.call(("e2", "edit", {"path": "c.txt"}))
    made.result("e2", tool="edit")
    made.call(("p1", "apply_patch", {"input": "*** Begin Patch"}))
    summary = {"added": ["n.txt"], "modified": ["/home/dev/acme-app/m.txt"], "deleted": ["d.txt"]}
    made.result("p1", tool="apply_patch", details={"summary": summary})


def cell(made: Made) -> None:
    made.call(("cell", "exec", {"code": "run()"}))
    for number, (tool, told, result) in enumerate(
        (
            (
                "exec",
                {"command": "x"},
                {"exitCode": 1, "durationMs": 2, "cwd": "/srv", "approvalReviewOutcome": "approved"},
            ),
            (
                "exec",
                {"command": "y"},
                {"exitSignal": "SIGTERM", "timedOut": True, "failureKind": "overall-timeout", "error": "no"},
            ),
            ("write", {"path": "x.txt"}, {"changed": True, "created": True, "patch": "@@"}),
            ("write", {"path": "x.txt"}, {"changed": True, "created": False}),
            ("edit", {"path": "x.txt"}, {"changed": True, "patch": "@@"}),
            (
                "exec",
                {"n": 2**70},
                {"status": "blocked", "deniedReason": "plugin-before-tool-call", "reason": "No."},
            ),
            ("exec", {}, {"failureKind": "auto-review-denied"}),
            ("exec", {}, {"openclawSyntheticMissingToolResult": True}),
            (None, None, None),
        )
    ):
        details = {
            "parentToolCallId": "cell",
            "toolCallId": f"nested{number // 2 * 2}" if number < 2 else f"nested{number}",
            "toolName": tool,
            "input": told,
            "result": {"content": [], "details": result},
            "isError": isinstance(result, dict) and "error" in result,
            "startedAt": 1796075932491,
            "timestamp": 1796075932499,
        }
        made.message("custom", customType="openclaw.nested-tool.v1", details=details)
    made.message("custom", customType="openclaw.nested-tool.v1", details={"parentToolCallId": "again"})
    made.result("cell", details={"status": "completed", "value": 1})


def rows() -> dict[str, list[dict[str, Any]]]:
    shown = {
        "kind": "plugin",
        "title": "Push?",
        "description": "To origin",
        "pluginId": "git",
        "toolName": "push",
    }
    offered = {
        "kind": "exec",
        "commandText": "x",
        "host": "gateway",
        "warningText": "w",
        "allowedDecisions": ["allow-once", "allow-always", "deny"],
    }

    def about(call_id: str | None, row: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {**row, "source_tool_call_id": call_id, **more}

    task: dict[str, Any] = {
        "runtime": "cli",
        "task_kind": "exec",
        "requester_session_key": KEY,
        "owner_key": KEY,
    }
    task |= {"scope_kind": "session", "delivery_status": "none", "notify_policy": "none", "created_at": 1}
    agent: dict[str, Any] = {"requester_session_key": KEY, "controller_session_key": KEY, "created_at": 3}
    audit: dict[str, Any] = {
        "schema_version": 1,
        "source_sequence": 1,
        "kind": "agent_run",
        "actor_type": "agent",
    }
    audit |= {"actor_id": "main", "session_id": SESSION, "session_key": KEY, "agent_id": "main"}
    return {
        "operator_approvals": [
            about(
                "ok",
                settled(1, "allowed", "allow-once", "user", "device", "dev-1"),
                presentation_json=json.dumps(offered),
            ),
            about(
                "refused", settled(2, "denied", "deny", "user", "channel", "chat-7"), source_tool_name="exec"
            ),
            about("timed", settled(3, "expired", "deny", "timeout", "system", "timer")),
            about("bg", settled(4, "cancelled", "deny", "run-aborted", "system", "closed")),
            about(None, approval(5), presentation_json=json.dumps(shown), kind="plugin"),
            about("again", settled(6, "allowed", "allow-always", "user", "runtime", "cli")),
            about("weighed", settled(7, "allowed", "allow-once", "user", "device", "dev-1")),
        ],
        "task_runs": [
            {
                **task,
                "task_id": "t1",
                "source_id": "tidy-lobster",
                "run_id": "exec:tidy-lobster",
                "task": "serve",
                "status": "failed",
                "started_at": 1,
                "ended_at": 9,
                "detail_json": '{"exitCode":4}',
            },
            {
                **task,
                "task_id": "t2",
                "source_id": "calm-newt",
                "task": "make",
                "status": "odd",
                "started_at": 1,
            },
            {
                **task,
                "task_id": "t3",
                "source_id": "wild-fox",
                "task": "x",
                "status": "cancelled",
                "ended_at": 4,
                "detail_json": '{"exitSignal":"SIGTERM"}',
            },
            {**task, "task_id": "t4", "task_kind": "other", "task": "y", "status": "running"},
        ],
        "subagent_runs": [
            {
                **agent,
                "run_id": "r1",
                "child_session_key": CHILD_KEY,
                "payload_json": json.dumps(
                    {
                        "label": "Looker",
                        "execution": {"status": "ended", "endedAt": 8, "outcome": {"status": "ok"}},
                    }
                ),
            },
            {
                **agent,
                "run_id": "r2",
                "child_session_key": "agent:odd",
                "payload_json": json.dumps({"execution": {"status": "running"}}),
            },
            {**agent, "run_id": "r3", "child_session_key": "agent:other", "payload_json": "{}"},
        ],
        "audit_events": [
            {
                **audit,
                "sequence": n,
                "event_id": f"ev{n}",
                "source_id": f"s{n}",
                "occurred_at": n,
                "action": "x",
                "status": status,
                "run_id": f"run{n}",
                "error_code": "E" if n == 2 else None,
            }
            for n, status in ((1, "started"), (2, "failed"), (3, "odd"))
        ],
    }


def whole_store(root: Path) -> Path:
    """A store with all of it: a session with a cold archive, its agent's session, the rows around them."""
    store = Store(root)
    entries = transcript().entries
    child = Made(4, CHILD)
    child.call(("c", "exec", {"command": "x"}))
    child.result("c")
    packed = [json.dumps(entry).encode() + b"\n" for entry in entries[:8]]
    store.session(entries[8:])
    store.session(child.entries[1:], CHILD, CHILD_KEY, made=2, parent_session_key=KEY)
    archive = root / "agents" / "main" / "sessions" / "cold" / "a.jsonl.zst"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(zstandard.compress(b"".join(packed)))
    row = {"session_id": SESSION, "generation": 1, "archive_name": "a.jsonl.zst", "archive_sha256": "0" * 64}
    row |= {
        "event_count": 8,
        "raw_bytes": 1,
        "archive_bytes": 1,
        "last_seq": 7,
        "archived_at": 1,
        "storage": "file",
    }
    insert(store._agent, "session_transcript_cold_archives", row)
    gone = {**row, "session_id": CHILD, "archive_name": "gone.jsonl.zst", "archive_sha256": "1" * 64}
    insert(store._agent, "session_transcript_cold_archives", gone)
    leaf = {"session_id": SESSION, "indexed_seq": 1, "leaf_event_id": entries[-1]["id"], "needs_rebuild": 0}
    insert(
        store._agent,
        "session_transcript_index_state",
        {**leaf, "active_event_count": 1, "active_message_count": 1, "updated_at": 1},
    )
    named = "label = 'Named', fork_source_session_id = 'forked'"
    store.sql(f"UPDATE session_nodes SET {named} WHERE session_key = '{KEY}'")
    store.sql(f"UPDATE session_nodes SET display_name = 'Shown' WHERE session_key = '{CHILD_KEY}'")
    store.rows(rows())
    trace = Traced().began().call("ok").result("ok").call("gone", "frobnicate", {"x": 1}).call("deep", "read")
    trace.call("none").result("none", success=None).add(
        "tool.result", {"toolCallId": "bare", "success": False}
    )
    trace.events.append(json.dumps({**trace.events[0], "type": "tool.call", "data": {"toolCallId": "deep2"}}))
    trace.call("huge", "exec", {"n": 2**70}).result("huge", success=False).add(
        "model.fallback_step", {"to": "x"}
    )
    trace.call("twice").call("twice").result("twice").ended()
    other = Traced(run="run-2").began().ended("error", stopReason="error", promptError="Gone.")
    store.trace([*trace.events, *other.events, *Traced(run="run-3").ended("odd").events])
    store.close()
    return root


def legacy_file(path: Path) -> Path:
    """A transcript file of the pi family: a person's commands, ids of every kind, parents that are not there."""
    made = Made(3)
    made.entries[0]["parentSession"] = "an older one"
    made.message("bashExecution", command="ls", output="a\n", exitCode=0, cancelled=False)
    made.message("bashExecution", command="top", cancelled=True)
    made.message("assistant", content=[{"type": "toolCall", "name": "bash", "arguments": {"n": 2**70}}])
    odd = {"type": "message", "timestamp": "2026-11-30T10:00:09.000Z"}
    content = [{"type": "toolCall", "name": "bash"}]
    made.entries.append({**odd, "message": {"role": "assistant", "content": content}})
    for number in range(2):
        made.call(("exec_0", "exec", {"command": f"n{number}"}))
        made.result("exec_0", details={"status": "completed"})
    made.last = "nowhere"
    made.call(("exec_0", "exec", {"command": "lost"}))
    made.entries.append(made.entries[-1])
    made.add("odd", customType="odd")
    made.entries.append("{broken")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(made.data)
    return path


def headless(path: Path) -> Path:
    """A transcript whose first line is gone, with entries that name no role or are of a type that nobody knows."""
    made = Made()
    made.add("message", message={"content": "Whose words are these?"})
    made.message("assistant", content=[[[]], {"type": "toolCall", "id": "one", "name": "exec"}])
    made.add("later_kind", message={"role": "assistant", "content": [{"type": "toolCall", "id": "two"}]})
    poll = {"sessionId": "wise-owl", "status": "completed", "exitCode": 0}
    made.result("poll", tool="process", details=poll)
    made.result("one", details={"sessionId": "wise-owl", "status": "running", "exitCode": None})
    path.write_bytes(made.data.partition(b"\n")[2])
    return path


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    root = tmp_path_factory.mktemp("made")
    alone = database(root / "alone" / "openclaw.sqlite", "state-18.sql")
    insert(alone, "operator_approvals", approval(1))
    task = rows()["task_runs"][1]
    insert(alone, "task_runs", {**task, "requester_session_key": "agent:main:other"})
    insert(alone, "operator_approvals", {**approval(2), "source_session_key": None})
    alone.close()
    legacy_file(root / "pi" / "s.jsonl")
    headless(root / "pi" / "headless.jsonl")
    lone = Store(root / "lone")
    lone.entry(
        "nobody-knows", 0, {"type": "message", "id": "e1", "message": {"role": "user", "content": "Hi."}}
    )
    lone.close()
    (root / "pi" / "traced.trajectory.jsonl").write_bytes(Traced("traced").call("c1").result("c1").data)
    whole_store(root / "openclaw")
    thoughts = import_sources([root / "openclaw"], root / "thoughts", kind="openclaw", keep_reasoning=True)
    kept = [Bundle(one.bundle) for one in thoughts if not isinstance(one, Failure)]
    return [*bundles([root / "openclaw", root / "pi", root / "alone", root / "lone"], root / "out"), *kept]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    return bundles([EXAMPLES, *GOLDEN], tmp_path_factory.mktemp("shipped"))


# -- what is held against it --------------------------------------------------------------------------------------


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
    entries = [
        one
        for one in load("openclaw").fact
        if (one.record, one.member) not in TOLD_ELSEWHERE and one.pointer != "/damaged/table"
    ]
    idle = [(one.record, one.role, one.member, one.pointer) for one in entries if id(one) not in proven]
    assert idle == []


def masked(bundle: Bundle, path: str) -> bool:
    """Whether nobody can tell: the digest of a line of which something is hidden."""
    return path.endswith("/sha256") and any(source.masked for source in bundle.manifest.sources)


def test_no_lie_lies_unseen(made_up: list[Bundle], shipped: list[Bundle]) -> None:
    told: list[tuple[str, str]] = []
    for bundle in (*made_up, *shipped):
        found = [one for one in unseen(bundle.path, told) if not masked(bundle, one.lie.path)]
        assert [(one.kind, one.lie.path, one.lie.old, one.lie.new) for one in found] == []
    assert len(told) > 5000
    assert {"permission", "input_request", "terminal", "subagent", "file_change"} <= {
        kind for kind, _ in told
    }


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_captures_audit_clean(shared: Path, tmp_path: Path, scenario: str) -> None:
    root = tmp_path / "openclaw"
    captured(shared / "captures" / "openclaw" / f"openclaw-{scenario}", root).close()
    totals = Totals()
    for bundle in bundles([root], tmp_path / "out"):
        assert list(audit_bundle(bundle, totals)) == []
        assert [one for one in unseen(bundle.path) if not masked(bundle, one.lie.path)] == []
    assert totals.facts > 50
    assert not totals.unread


@pytest.mark.parametrize("place", ["captures/openclaw/openclaw-native-db", "corpus/openclaw-pi", "cases"])
def test_real_sessions_audit_clean(shared: Path, tmp_path: Path, place: str) -> None:
    paths = (
        sorted((shared / place).glob("*openclaw*/session.jsonl")) if place == "cases" else [shared / place]
    )
    totals = Totals()
    for bundle in bundles(paths, tmp_path):
        assert list(audit_bundle(bundle, totals)) == []
    assert totals.facts > 100
    assert not totals.unread


def test_a_transcript_without_its_head(tmp_path: Path) -> None:
    """The file names the session then; what an entry of an unknown type makes is no call; an end stays told."""
    found = held(headless(tmp_path / "headless.jsonl"), tmp_path / "out", "openclaw")
    assert found[0]["nativeSessionId"] == "headless"
    assert [one["callId"] for one in found if one["type"] == "tool_call"] == ["one"]
    assert [one["nativeType"] for one in found if one["type"] == "unmapped"] == ["later_kind/assistant"]
    assert [one["author"] for one in found if one["type"] == "message"] == ["harness", "model"]
    assert [one["exitCode"] for one in found if one["type"] == "terminal"] == [0, 0]


def test_a_bundle_is_evidence_without_its_database(tmp_path: Path) -> None:
    """The rows in the bundle's copy serve when the database is gone."""
    found = bundles([whole_store(tmp_path / "openclaw")], tmp_path / "out")
    shutil.rmtree(tmp_path / "openclaw")
    totals = Totals()
    assert [one for bundle in found for one in audit_bundle(bundle, totals)] == []
    assert totals.facts > 1000
