"""The audit finds every fact of a frame log, folding the frames itself, and names every lie about it."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from tests.audit.telling import bundles_of, held, unproven
from tests.native.acp.conftest import OPTIONS, SESSION, Log, sheet_of

from callsheet.audit import audit_bundle
from callsheet.records.bundle import Bundle

ROOT = Path(__file__).parents[3]
BY_OTHER_MEANS = {("tool_result", "content"): "proven by captures and a reply, not by the entry alone"}
CLAUDE = "@agentclientprotocol/claude-agent-acp"


def text(words: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": words}}


def bytes_of(data: bytes) -> str:
    return b64encode(data).decode()


def begun(version: int, agent: str, told: str) -> Log:
    log = Log(version)
    whole = json.loads(log.lines[1])
    whole["frame"]["result"]["agentInfo" if version == 1 else "info"] = {"name": agent, "version": told}
    log.lines[1] = json.dumps(whole).encode()
    return log


def first_version() -> Log:
    """v1, as Claude's adapter speaks it, with a client that runs commands."""
    log = begun(1, CLAUDE, "0.101.0")
    log.prompt()
    log.update("agent_thought_chunk", content={"type": "text", "text": "Hm."})
    log.update("agent_message_chunk", content={"type": "text", "text": "Let me "})
    log.update("agent_message_chunk", content={"type": "text", "text": "look."})
    tool = {"claudeCode": {"toolName": "mcp__s__t", "parentToolUseId": "c0"}}
    log.update("tool_call", toolCallId="c1", title="Run", kind="execute", status="pending", rawInput={}, _meta=tool)
    places = [{"path": "/home/dev/acme-app/a", "line": 3}, {"path": "/b", "line": 0}, {"path": 1}]
    log.update("tool_call_update", toolCallId="c1", title=None, rawInput={"n": 1}, locations=places)
    log.ask(7, toolCall={"toolCallId": "c1", "title": "Other words"}, options=OPTIONS)
    log.answer(7, outcome="selected", optionId="ok")
    shown = [text("out"), {"type": "terminal", "terminalId": "t1"}, {"type": "odd", "x": 1}]
    log.update("tool_call_update", toolCallId="c1", content=shown)
    log.update("tool_call_update", toolCallId="c1", status="completed", rawOutput="sent")
    log.update("agent_message_chunk", content={"type": "text", "text": "So."})
    diff = {"type": "diff", "path": "/home/dev/acme-app/a", "oldText": "a", "newText": "b"}
    new = {"type": "diff", "path": "/n", "oldText": None, "newText": "b"}
    log.update("tool_call", toolCallId="c2", title="Edit", rawInput={"n": 2**70}, content=[diff, new])
    log.ask(8, toolCall={"toolCallId": "c2"}, options=OPTIONS)
    log.answer(8, outcome="selected", optionId="no")
    log.update("tool_call_update", toolCallId="c2", status="failed", content=[diff])
    log.update("tool_call", toolCallId="c1", title="Again", status="in_progress")
    log.update("tool_call_update", toolCallId="c1", status="failed")
    log.agent(id=3, method="terminal/create", params={"sessionId": SESSION, "command": "ls", "args": ["-l"], "cwd": "/x"})
    log.client(id=3, result={"terminalId": "t2"})
    for number, (method, result) in enumerate(
        (("output", {"output": "a\n", "truncated": False}), ("wait_for_exit", {"exitCode": 3}), ("release", {}))
    ):
        log.agent(id=4 + number, method=f"terminal/{method}", params={"sessionId": SESSION, "terminalId": "t2"})
        log.client(id=4 + number, result=result)
    ran = {"toolCallId": "c3", "title": "ls", "content": [{"type": "terminal", "terminalId": "t2"}]}
    log.update("tool_call", status="in_progress", **ran)
    log.update("tool_call_update", toolCallId="c3", status="completed")
    info = {"terminal_info": {"terminal_id": "t3", "cwd": "/home/dev/acme-app"}}
    log.update("tool_call", toolCallId="c4", title="x", content=[{"type": "terminal", "terminalId": "t3"}], _meta=info)
    log.update("tool_call_update", toolCallId="c4", _meta={"terminal_output": {"terminal_id": "t3", "data": "hi"}})
    ended = {"terminal_exit": {"terminal_id": "t3", "exit_code": None, "signal": "SIGKILL"}}
    log.update("tool_call_update", toolCallId="c4", status="failed", _meta=ended)
    log.update("tool_call", toolCallId="c5", title="odd", status="_resting")
    log.update("tool_call_update", toolCallId="c5", content=[text("partly "), text("shown" * 4000)])
    log.update("plan", entries=[{"content": "One", "status": "pending"}, {"content": "Two", "status": "completed"}])
    log.update("plan", entries=[])
    log.update("usage_update", used=3, size=10, cost={"amount": 0.5, "currency": "USD"})
    log.update("session_info_update", title="A title")
    log.update("current_mode_update", currentModeId="plan")
    log.ask(9, toolCall={"toolCallId": "c9"}, options=OPTIONS)
    log.answer(9, outcome="cancelled")
    log.ask(9, toolCall={"toolCallId": "c9"}, options=[*OPTIONS, {"optionId": "odd"}])
    log.answer(9, outcome="later")
    log.client(id=2, result={"stopReason": "end_turn"})
    log.agent(id=2, result={"stopReason": "end_turn", "usage": {"totalTokens": 4}})
    log.prompt("More.", id=11)
    log.agent(id=11, error={"code": -32000, "message": "No."})
    log.frame("agent_to_client", "not a frame")
    log.client(id=12, method="session/load", params={"sessionId": SESSION, "cwd": "/home/dev/acme-app"})
    log.update("agent_message_chunk", content={"type": "text", "text": "Once."}, messageId="old")
    log.update("tool_call", toolCallId="old", title="Old", status="completed")
    log.agent(id=12, result={})
    return log


def second_version() -> Log:
    """v2: terminals of the agent, upserts that clear, chunks, agents, forms."""
    log = begun(2, CLAUDE, "0.101.0")
    log.prompt()
    log.agent(id=2, result={"messageId": "u1"})
    log.update("state_update", state="running")
    log.update("terminal_update", terminalId="t1", command="make", cwd="/home/dev/acme-app")
    log.update("tool_call_update", toolCallId="c1", name="Bash", title="Make", kind="execute", rawInput={"command": "make"})
    log.update("tool_call_update", toolCallId="c1", title=None, content=[{"type": "terminal", "terminalId": "t1"}])
    for piece in ("ä".encode()[:1], "ä".encode()[1:] + b"\xff"):
        log.update("terminal_output_chunk", terminalId="t1", data=bytes_of(piece))
    log.update("terminal_update", terminalId="t1", exitStatus={"exitCode": 2})
    log.update("tool_call_update", toolCallId="c1", status="failed")
    log.update("terminal_update", terminalId="t2", output={"data": bytes_of(b"x" * 70_000)}, exitStatus={})
    log.update("tool_call_update", toolCallId="c2", content=[{"type": "terminal", "terminalId": "t2"}], status="cancelled")
    log.update("tool_call_content_chunk", toolCallId="c3", content=text("one "))
    log.update("tool_call_content_chunk", toolCallId="c3", content=text("two"))
    picture = {"type": "image", "mimeType": "image/png", "data": bytes_of(b"\x00")}
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    inner = {"type": "resource", "resource": {"uri": "file:///b", "text": "words", "mimeType": "text/plain"}}
    held = {"type": "resource", "resource": {"uri": "file:///c", "blob": bytes_of(b"\x01")}}
    parts = [{"type": "content", "content": one} for one in (picture, link, inner, held)]
    log.update("tool_call_update", toolCallId="c4", status="completed", content=parts)
    changes = [{"operation": "modify", "path": "/a/x"}, {"operation": "move", "oldPath": "/a/y", "path": "/a/z"}]
    patch = "diff --git a/a/x b/a/x\n-x\n+y\ndiff --git a/a/y b/a/z\nrename\n"
    told = {"type": "diff", "changes": changes, "patch": {"format": "git_patch", "text": patch}}
    log.update("tool_call_update", toolCallId="c5", status="completed", content=[told])
    log.update("agent_message", messageId="m1", content=[{"type": "text", "text": "First."}])
    log.update("agent_message_chunk", messageId="m1", content={"type": "text", "text": " More."})
    log.update("agent_thought", messageId="m2", content=[{"type": "text", "text": "Hm."}])
    log.update("notice", severity="info", title="Note", description="this")
    log.update("compaction_update", compactionId="k1", trigger="auto", summary=[{"type": "text", "text": "Short."}])
    log.update("plan_update", plan={"type": "items", "planId": "p1", "entries": [{"content": "One", "status": "pending"}]})
    log.update("subagent_update", sessionId="kid", title="Helper", state={"state": "running"})
    log.update("session_message", messageId="m3", senderSessionId=SESSION, content=[{"type": "text", "text": "Do."}])
    log.update("session_message", messageId="m4", senderSessionId="kid", content=[{"type": "text", "text": "Done."}])
    log.update("agent_message", in_session="kid", messageId="k", content=[{"type": "text", "text": "Kid."}])
    log.update("subagent_update", sessionId="kid", state={"state": "idle", "stopReason": "end_turn"})
    asked = {"type": "command", "command": "rm x", "cwd": "/"}
    log.ask("a", title="Run?", description="A command", subject=asked, options=OPTIONS)
    log.ask("b", title="Run?", subject={**asked, "toolCallId": "c1"}, options=OPTIONS)
    log.ask("c", title="Do?", subject={"type": "tool_call", "toolCall": {"toolCallId": "c6"}}, options=OPTIONS)
    fields = {"name": {"type": "string"}, "pin": {"type": "string", "format": "password"}}
    form = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": fields}}
    log.agent(id="d", method="elicitation/create", params={"sessionId": SESSION, "toolCallId": "c1", **form})
    log.client(id="d", result={"action": "accept", "content": {"name": "me", "pin": "hunter-secret-2"}})
    open_form = {"message": "Say.", "requestedSchema": {"type": "object", "properties": {"name": fields["name"]}}}
    log.agent(id="e", method="elicitation/create", params={"sessionId": SESSION, **open_form})
    log.client(id="e", result={"action": "accept", "content": {"name": "me"}})
    url = {"url": "https://example.com", "message": "Open.", "elicitationId": "e1"}
    log.agent(id="f", method="elicitation/create", params={"sessionId": SESSION, **url})
    log.client(id="f", result={"action": "decline"})
    only = {"message": "Pin?", "requestedSchema": {"type": "object", "properties": {"pin": fields["pin"]}}}
    log.agent(id="g", method="elicitation/create", params={"sessionId": SESSION, **only})
    log.client(id="g", result={"action": "accept", "content": {"pin": "hunter-secret-3"}})
    whole = {"message": "Key?", "_meta": {"x": {"isSecret": True}}, "url": "https://example.com"}
    log.agent(id="h", method="elicitation/create", params={"sessionId": SESSION, **whole})
    log.update("state_update", state="idle", stopReason="error", error={"code": 1, "message": "Broken."})
    return log


def odd_second_version() -> Log:
    """v2: content that null takes back, an update that the version does not have, frames of no session in a batch."""
    log = Log()
    log.client(id=0, method="initialize", params={"protocolVersion": 2})
    log.frame("agent_to_client", [{"jsonrpc": "2.0", "method": name} for name in ("_toy/early", "_toy/too")])
    log.agent(id=0, result={"protocolVersion": 2, "info": {"name": CLAUDE, "version": "0.101.0"}})
    log.client(id=1, method="session/new", params={"cwd": "/home/dev/acme-app", "mcpServers": []})
    log.agent(id=1, result={"sessionId": SESSION})
    log.update("tool_call_content_chunk", toolCallId="c1", content=text("part 1"))
    log.update("tool_call_content_chunk", toolCallId="c1", content=text("part 2"))
    log.update("tool_call_update", toolCallId="c1", content=None, rawOutput={"ok": True}, status="failed")
    said = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "Here."}}
    update = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": said}}
    log.frame("agent_to_client", [update, {"jsonrpc": "2.0", "method": "_toy/in_batch"}])
    log.update("tool_call", toolCallId="c2", title="Not of this version", status="completed")
    log.update("tool_call_update", toolCallId="c2", title="Of this version", status="completed")
    return log


def others() -> dict[str, Log]:
    """Agents with words of their own, and a log that begins in the middle."""
    codex = begun(1, "@agentclientprotocol/codex-acp", "2.6.0")
    codex.update("tool_call", toolCallId="c1", title="x")
    codex.update("tool_call_update", toolCallId="c1", status="completed", rawOutput={"exit_code": 3})
    opencode = begun(1, "OpenCode", "1.18.33")
    opencode.prompt()
    opencode.update("tool_call", toolCallId="c1", title="x")
    failed = {"error": "No.", "metadata": {"exit": 1}}
    opencode.update("tool_call_update", toolCallId="c1", status="failed", rawOutput=failed)
    opencode.update("tool_call", toolCallId="c2", title="x")
    opencode.update("tool_call_update", toolCallId="c2", status="completed", rawOutput={"output": "sent"})
    opencode.update("agent_message_chunk", content={"type": "text", "text": "So."})
    middle = Log()
    middle.update("agent_message_chunk", content={"type": "text", "text": "So."})
    middle.agent(id=2, result={"stopReason": "cancelled"})
    loaded = Log()
    loaded.client(id=1, method="session/load", params={"sessionId": SESSION, "cwd": "/home/dev/acme-app"})
    loaded.update("agent_message_chunk", content={"type": "text", "text": "Old."})
    loaded.agent(id=1, result={})
    odd = odd_second_version()
    return {"codex": codex, "opencode": opencode, "middle": middle, "loaded": loaded, "odd": odd}


@pytest.fixture
def made(tmp_path: Path) -> list[Bundle]:
    logs = {"first": first_version(), "second": second_version(), **others()}
    for name, log in logs.items():
        (tmp_path / f"{name}.jsonl").write_bytes(log.data)
    return [one for name in logs for one in bundles_of("acp", [tmp_path / f"{name}.jsonl"], tmp_path / "out" / name)]


def test_no_lie_about_any_log_lies_unseen(made: list[Bundle]) -> None:
    assert len(made) == 7
    told = [held(bundle) for bundle in made if not any(one.masked for one in bundle.manifest.sources)]
    assert len(told) == 6
    assert sum(told) > 1500


def test_a_log_with_secrets_holds(made: list[Bundle]) -> None:
    """Nobody can tell the digest of what is hidden; all else is found again."""
    (masked,) = [one for one in made if any(source.masked for source in one.manifest.sources)]
    assert [(one.path, one.value, one.message) for one in audit_bundle(masked)] == []


def test_the_logs_have_every_fact_of_the_registry(
    made: list[Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = Log(2)
    for _ in range(3):
        long.update("terminal_output_chunk", terminalId="t1", data=bytes_of(b"x" * (3 << 20)))
    (tmp_path / "long.jsonl").write_bytes(long.data)
    made += bundles_of("acp", [tmp_path / "long.jsonl"], tmp_path / "out" / "long")
    left = unproven("acp", made, monkeypatch)
    missing = [one for one in left if (one.record, one.member) not in BY_OTHER_MEANS]
    assert not missing, "\n".join(f"{one.record} {one.role} {one.member} {one.pointer} {one.table} {one.when}" for one in missing)


def test_the_examples_hold(tmp_path: Path) -> None:
    bundles = bundles_of("acp", [ROOT / "examples" / "acp"], tmp_path)
    assert sum(held(bundle) for bundle in bundles) > 500


@pytest.mark.parametrize("place", ["captures/acp", "corpus/acp", "cases"])
def test_real_logs_hold(shared: Path, tmp_path: Path, place: str) -> None:
    paths = sorted((shared / place).glob("*acp*")) if place == "cases" else [shared / place]
    bundles = bundles_of("acp", paths, tmp_path)
    assert bundles
    for bundle in bundles:
        assert [(one.path, one.value, one.message) for one in audit_bundle(bundle)] == []
    assert sum(held(bundle) for bundle in bundles[::8]) > 100


@pytest.mark.parametrize(
    ("log", "call"), [(first_version(), "c3"), (odd_second_version(), "c1"), (odd_second_version(), "c2")]
)
def test_a_call_that_is_left_out_is_missed(log: Log, call: str, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(log.data)
    (bundle,) = bundles_of("acp", [tmp_path / "log.jsonl"], tmp_path / "out")
    (entry,) = bundle.manifest.streams
    path = bundle.path / entry.file
    lines = [line for line in path.read_bytes().splitlines() if b'"callId":"%s"' % call.encode() not in line]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    found = [one.message.partition(": ")[2] for one in audit_bundle(Bundle(bundle.path))]
    assert {"no tool_call is made of number 1 on this line", "no tool_result is made of number 1 on this line"} <= set(found)


def test_what_null_took_back_is_not_shown() -> None:
    sheet = sheet_of(odd_second_version().data)
    (result,) = [one for one in sheet.of("tool_result") if one["callId"] == "c1"]
    assert result["raw"] == {"ok": True}
    assert "displayContent" not in result


def test_frames_of_no_session_are_kept_one_by_one() -> None:
    kept = sheet_of(odd_second_version().data).of("unmapped")
    told = [(one["nativeType"], one["native"]["refs"][0].get("pointer")) for one in kept]
    assert told == [
        ("_toy/early", "/frame/0"),
        ("_toy/too", "/frame/1"),
        ("_toy/in_batch", "/frame/1"),
        ("session/update/tool_call", None),
    ]
