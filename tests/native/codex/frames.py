"""Frames of an app server in the making, and what became of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.native.codex.conftest import Sheet

from callsheet.audit import audit_bundle
from callsheet.harness.codex import CODEX_APP_SERVER
from callsheet.library.importing import import_session
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from callsheet.testing.check_harness import check_reading
from callsheet.testing.desk import Files, read_session

THREAD = "01a20000-0000-7000-8000-000000000001"
TURN = "01a20000-0000-7000-8000-0000000000aa"
CWD = "/home/dev/acme-app"
PATH = "/logs/frames.jsonl"


class Wire:
    """A frame log, line by line, with a thread and a turn that has begun."""

    def __init__(self, *, raw: bool = False, version: str = "0.163.0") -> None:
        self.lines: list[bytes] = []
        self._ids = 0
        self.send(1, "initialize", clientInfo={"name": "t", "version": "0"}, capabilities={})
        self.reply(1, userAgent=f"t/{version}", from_server=True)
        self.send(2, "thread/start", cwd=CWD, **({"experimentalRawEvents": True} if raw else {}))
        thread = {"id": THREAD, "cwd": CWD, "cliVersion": version}
        self.reply(2, thread=thread, model="demo", from_server=True)
        self.turn("started", "inProgress")

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def line(self, way: str, frame: Any) -> None:
        second = len(self.lines)
        ts = f"2026-11-30T10:{second // 60:02}:{second % 60:02}.000Z"
        self.lines.append(json.dumps({"dir": way, "ts": ts, "frame": frame}).encode())

    def send(self, number: Any, method: str, /, **params: Any) -> None:
        self.line("client", {"id": number, "method": method, "params": params})

    def reply(self, number: Any, /, *, from_server: bool = False, **result: Any) -> None:
        self.line("server" if from_server else "client", {"id": number, "result": result})

    def fail(self, number: Any) -> None:
        self.line("client", {"id": number, "error": {"code": -32603, "message": "no"}})

    def tell(self, method: str, /, *, thread: str = THREAD, turn: str = TURN, **params: Any) -> None:
        named = {"threadId": thread, "turnId": turn, **params}
        self.line("server", {"method": method, "params": named, "emittedAtMs": 1})

    def ask(self, number: Any, method: str, /, **params: Any) -> None:
        self.line(
            "server",
            {"id": number, "method": method, "params": {"threadId": THREAD, "turnId": TURN, **params}},
        )

    def turn(self, word: str, status: str, *, turn: str = TURN, **members: Any) -> None:
        told = {"id": turn, "status": status, "items": [], "error": None, **members}
        self.line("server", {"method": f"turn/{word}", "params": {"threadId": THREAD, "turn": told}})

    def item(
        self, word: str, kind: str, name: str, /, *, turn: str = TURN, times: Any = None, **members: Any
    ) -> None:
        self.tell(f"item/{word}", turn=turn, item={"type": kind, "id": name, **members}, **(times or {}))

    def command(
        self, word: str, name: str, /, command: str = "ls", *, turn: str = TURN, **members: Any
    ) -> None:
        running = {"status": "inProgress", "aggregatedOutput": None, "exitCode": None, "durationMs": None}
        done = {"status": "completed", "aggregatedOutput": "a\n", "exitCode": 0, "durationMs": 3}
        told = {"command": command, "cwd": CWD, "source": "agent", "processId": "7"}
        state = running if word == "started" else done
        times = {"startedAtMs": 1796076238000} if word == "started" else {"completedAtMs": 1796076239000}
        self.item(word, "commandExecution", name, turn=turn, times=times, **{**told, **state, **members})

    def raw(self, kind: str, /, *, turn: str = TURN, **members: Any) -> None:
        self.tell("rawResponseItem/completed", turn=turn, item={"type": kind, **members})

    def call(self, name: str, tool: str = "exec_command", **arguments: Any) -> None:
        self.raw("function_call", call_id=name, name=tool, arguments=json.dumps(arguments), id=f"fc_{name}")

    def output(self, name: str, words: Any) -> None:
        self.raw("function_call_output", call_id=name, output=words)

    def response(self, number: int) -> None:
        usage = {"inputTokens": 1, "outputTokens": 2}
        self.tell("rawResponse/completed", responseId=f"resp_{number}", usage=usage)


def sheet_of(data: bytes, tmp_path: Path, chunk: int = 1 << 18) -> Sheet:
    """Reads a log from bytes; holds the reading to the kit's promises, to the rules and to the audit."""
    tmp_path = Path(tempfile.mkdtemp(dir=tmp_path))
    files = Files({PATH: data})
    assert CODEX_APP_SERVER.recognises("frames.jsonl", files.head(PATH))
    (session,) = CODEX_APP_SERVER.sessions(PATH, files)
    reading = read_session(CODEX_APP_SERVER, session, files, chunk=chunk)
    assert check_reading(reading) == []
    path = tmp_path / "frames.jsonl"
    path.write_bytes(data)
    files = Files({str(path): data})
    (on_disk,) = CODEX_APP_SERVER.sessions(str(path), files)
    bundle = Bundle(import_session(CODEX_APP_SERVER, on_disk, tmp_path / "out").bundle)
    assert list(check_bundle(bundle)) == []
    found = list(audit_bundle(bundle))
    assert found == [], found
    return Sheet(reading)


def every_frame() -> list[dict[str, Any]]:
    """One connection with a frame of every kind that says something, as decoded lines."""
    wire = Wire(raw=True)
    wire.call("c1", cmd="ls")
    wire.raw("custom_tool_call", call_id="c2", id="ctc", name="exec", input="text")
    wire.raw("web_search_call", id="c3", status="completed", action={"type": "search", "query": "q"})
    wire.response(1)
    for name in ("c1", "exec-1"):
        wire.command("started", name)
        wire.tell("item/commandExecution/outputDelta", itemId=name, delta="a\n")
        wire.command("completed", name, status="failed", exitCode=3)
    wire.tell("item/commandExecution/terminalInteraction", itemId="c1", processId="7", stdin="x")
    wire.send(5, "thread/backgroundTerminals/list", threadId=THREAD)
    data = [{"itemId": "c1", "processId": "7", "command": "ls", "cwd": CWD}]
    wire.reply(5, data=data, from_server=True)
    wire.output("c1", [{"type": "input_text", "text": "told"}])
    change = {"path": f"{CWD}/a", "kind": {"type": "update", "move_path": f"{CWD}/b"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}
    for word, status in (("started", "inProgress"), ("completed", "declined")):
        wire.item(word, "fileChange", "c2", status=status, changes=[change])
        tool: dict[str, Any] = {"server": "s", "tool": "t", "arguments": {"a": 1}, "result": {"content": []}, "error": {"message": "no"}}
        wire.item(word, "mcpToolCall", "m1", status=status, **tool)
        states = {"a1": {"status": "running"}}
        agents: dict[str, Any] = {"tool": "spawnAgent", "receiverThreadIds": ["a1"], "agentsStates": states}
        wire.item(word, "collabAgentToolCall", "c3", status=status, **agents)
    wire.item("completed", "subAgentActivity", "c1", kind="started", agentThreadId="a1", agentPath="/root/a")
    wire.item("completed", "userMessage", "u", content=[{"type": "text", "text": "go"}])
    wire.item("completed", "agentMessage", "msg", text="Done.")
    wire.item("completed", "hookPrompt", "h", fragments=[{"text": "on", "hookRunId": "r"}])
    wire.item("completed", "reasoning", "rs", summary=["**A**"], content=["private"])
    wire.item("completed", "plan", "p", text="Do it.")
    wire.item("completed", "contextCompaction", "cc")
    meta = {"content_item_kinds": ["permissions.instructions"]}
    content = [{"type": "input_text", "text": "rules"}]
    wire.raw("message", role="developer", id="d", content=content, internal_chat_message_metadata_passthrough=meta)
    wire.tell("turn/diff/updated", diff="diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    wire.tell("turn/plan/updated", plan=[{"step": "a", "status": "inProgress"}])
    usage = {"last": {"inputTokens": 1}, "total": {"inputTokens": 2}, "modelContextWindow": 9}
    wire.tell("thread/tokenUsage/updated", tokenUsage=usage)
    run: dict[str, Any] = {"id": "x:0:/h:c1", "sourcePath": "/h", "eventName": "preToolUse", "handlerType": "command"}
    wire.tell("hook/completed", run={**run, "status": "blocked", "durationMs": 1, "entries": [{"text": "no"}]})
    review = {"status": "approved", "rationale": "fine"}
    action = {"command": "ls"}
    wire.tell("item/autoApprovalReview/completed", reviewId="r", targetItemId="c1", review=review, action=action)
    wire.tell("error", error={"message": "bad"}, willRetry=True)
    wire.ask(0, "item/commandExecution/requestApproval", itemId="c1", command="ls", availableDecisions=["accept"])
    wire.reply(0, decision="accept")
    wire.ask(1, "item/permissions/requestApproval", itemId="c1", permissions={"network": {"enabled": True}})
    wire.reply(1, permissions={}, scope="turn")
    form: dict[str, Any] = {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"format": "password"}}}}
    wire.ask(2, "mcpServer/elicitation/request", serverName="s", _meta=None, **form)
    wire.reply(2, action="accept", content={"a": "hunter22"})
    question = {"id": "q", "header": "H", "question": "W?", "isSecret": True, "options": [{"label": "A"}]}
    wire.ask(3, "item/tool/requestUserInput", itemId="c1", questions=[question], isBlocking=True)
    wire.reply(3, answers={"q": {"answers": ["hunter22"]}})
    thread = {"id": "a1", "cwd": CWD, "cliVersion": "0.163.0", "parentThreadId": THREAD}
    wire.line("server", {"method": "thread/started", "params": {"thread": thread}})
    wire.tell("item/completed", thread="a1", item={"type": "agentMessage", "id": "m", "text": "Hi."})
    wire.line("server", {"method": "codex/event/agent_reasoning_raw_content", "params": {"conversationId": THREAD, "msg": {"text": "raw"}}})
    wire.line("note", {"timeout": True})
    wire.turn("completed", "failed", error={"message": "bad", "codexErrorInfo": {"other": {}}}, durationMs=3)
    return [json.loads(line) for line in wire.lines]
