"""Made-up Claude Code sessions that together give every fact of the registry.

``main_session`` is one of versions that record no requests, ``session_with_requests`` one that does.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from callsheet.audit.sent import message_hash

SESSION = "5e551011-0000-4000-8000-0000000000aa"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n not really").decode()


class Lines:
    """Native lines in the making; each follows the one before, a second later."""

    def __init__(self, session: str, version: str = "2.1.200", agent: str | None = None) -> None:
        self.session = session
        self.version = version
        self.agent = agent
        self.found: list[str] = []
        self.uuids: dict[str, str] = {}
        self._last: str | None = None

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self.found)

    def add(self, kind: str, **members: Any) -> dict[str, Any]:
        number = len(self.found) + 1
        line = {
            "parentUuid": self._last,
            "isSidechain": self.agent is not None,
            "cwd": "/home/dev/acme-app",
            "sessionId": self.session,
            "version": self.version,
            "type": kind,
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            "timestamp": f"2026-11-30T10:{number // 60:02}:{number % 60:02}.000Z",
            **({"agentId": self.agent} if self.agent else {}),
            **members,
        }
        self._last = line["uuid"]
        self.found.append(json.dumps(line))
        return line

    def raw(self, line: Any) -> None:
        self.found.append(line if isinstance(line, str) else json.dumps(line))

    def said(self, *blocks: Any, **members: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        message: dict[str, Any] = {
            "id": f"msg_{len(self.found) + 1}",
            "role": "assistant",
            "model": "m",
            "content": content,
        }
        message["usage"] = {
            "input_tokens": len(self.found),
            "cache": {"ttl_5m": 2},
            "service_tier": "standard",
        }
        return self.add("assistant", message=message, **members)

    def call(self, call_id: str, name: Any, asked: Any, **members: Any) -> dict[str, Any]:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": asked}
        line = self.said(block, **members)
        self.uuids[call_id] = line["uuid"]
        return line

    def result(
        self, call_id: str, use: Any, content: Any = "done", error: bool | None = False, **members: Any
    ) -> dict[str, Any]:
        block: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if error is not None:
            block["is_error"] = error
        if use is not None:
            members["toolUseResult"] = use
        members.setdefault("sourceToolAssistantUUID", self.uuids.get(call_id))
        return self.add("user", message={"role": "user", "content": [block]}, **members)

    def both(
        self, call_id: str, name: str, asked: Any, use: Any, content: Any = "done", **members: Any
    ) -> None:
        self.call(call_id, name, asked)
        self.result(call_id, use, content, **members)

    def attachment(self, kind: str, rendered: Any = None, **members: Any) -> None:
        more = {} if rendered is None else {"rendered": rendered}
        self.add("attachment", attachment={"type": kind, **members}, **more)


def _notice(task: str, status: str, call_id: str) -> str:
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n<tool-use-id>{call_id}</tool-use-id>\n"
        f"<output-file>/tmp/{task}.output</output-file>\n<status>{status}</status>\n</task-notification>"
    )


def main_session() -> str:
    """A session of 2.1.200 and older versions, which record no requests."""
    lines = Lines(SESSION)
    lines.raw({"type": "custom-title", "customTitle": "A given title", "sessionId": SESSION})
    lines.add("user", message={"role": "user", "content": "Go on."}, permissionMode="default")
    lines.add(
        "user",
        message={
            "role": "user",
            "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
        },
    )
    lines.add(
        "user",
        message={
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
            ],
        },
    )
    lines.add(
        "user", isMeta=True, message={"role": "user", "content": "<note>a half \ud83d of a pair</note>"}
    )
    _calls(lines)
    _processes(lines)
    _agents(lines)
    _plans(lines)
    _files(lines)
    _asides(lines)
    lines.said("All done.")
    return lines.text


def _calls(lines: Lines) -> None:
    lines.said({"type": "thinking", "thinking": "Hm.", "signature": "s"}, thinkingDurationMs=812)
    lines.said({"type": "thinking", "thinking": "", "signature": "s"})
    lines.said({"type": "redacted_thinking", "data": "x"})
    lines.said({"type": "fallback", "from": "a", "to": "b"})
    lines.said({"type": "tool_use", "name": "Bash", "input": {"command": "true"}})
    lines.call("c-none", None, {"a": 1})
    lines.said({"type": "tool_use", "id": "c-bare", "name": "Bash"})
    lines.call("c-raw", "Bash", {"__unparsedToolInput": {"raw": '{"command": "ls', "len": 15}})
    lines.call("c-big", "Bash", {"timeout": 12345678901234567890})
    lines.both("c-run", "Bash", {"command": "ls"}, {"stdout": "a\n", "stderr": "", "interrupted": False}, "a")
    lines.both(
        "c-late",
        "Bash",
        {"command": "sleep 9"},
        {
            "stdout": "",
            "stderr": "e",
            "interrupted": False,
            "timedOutAfterMs": 9000,
            "backgroundTaskId": "b9",
        },
    )
    lines.both("c-glob", "Glob", {"pattern": "*"}, {"durationMs": 12, "numFiles": 1, "filenames": ["a"]})
    lines.both("c-web", "WebSearch", {"query": "q"}, {"durationSeconds": 1.5, "results": []})
    lines.both("c-bad", "Read", {"file_path": "/x"}, "Error: no", "no", error=True)
    lines.both(
        "c-half",
        "mcp__one__a",
        {},
        [{"type": "text", "text": "x\ud83d"}],
        [{"type": "text", "text": "x\ud83d"}],
        error=None,
    )
    lines.both(
        "c-no",
        "Bash",
        {"command": "rm"},
        "Error: no",
        "no",
        error=True,
        toolDenialKind="permission-rule",
        permissionDecision={
            "decision": "reject",
            "source": "config",
            "reasonType": "rule",
            "reasonCode": "rule:userSettings",
        },
        userFeedback="not that",
    )
    lines.both(
        "c-crash", "Bash", {"command": "x"}, "Error", "unknown", error=True, toolDenialKind="interrupted"
    )
    lines.both(
        "c-yes",
        "mcp__one__a",
        {},
        {"n": 1},
        permissionDecision={"decision": "accept", "source": "user_temporary", "grantScope": "session"},
        entrypoint="cli",
        attributionMcpServer=None,
    )
    lines.said("Called one.", attributionMcpServer="one", attributionMcpTool="a")
    lines.call("c-mcp", "mcp__two__b", {})
    lines.add(
        "progress", toolUseID="c-mcp", data={"type": "mcp_progress", "serverName": "two", "toolName": "b"}
    )
    first = lines.call("c-twice", "Bash", {"command": "one"})
    lines.call("c-twice", "Bash", {"command": "two"})
    lines.result("c-twice", {"stdout": "two", "stderr": ""}, "two")
    lines.result("c-twice", {"stdout": "one", "stderr": ""}, "one", sourceToolAssistantUUID=first["uuid"])
    lines.call("c-lost", "Bash", {"command": "one"})
    lines.call("c-lost", "Bash", {"command": "two"})
    lines.result("c-lost", {"stdout": "?", "stderr": ""}, "?", sourceToolAssistantUUID="elsewhere")
    lines.both(
        "c-pic",
        "mcp__one__a",
        {},
        None,
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}],
        error=None,
    )
    lines.both(
        "c-much",
        "Bash",
        {"command": "seq"},
        {
            "stdout": "1",
            "stderr": "",
            "persistedOutputPath": "/home/dev/tool-results/b1.txt",
            "persistedOutputSize": 9,
        },
        "<persisted-output>",
    )


def _processes(lines: Lines) -> None:
    lines.both(
        "p-bg",
        "Bash",
        {"command": "npm run dev", "description": "Server"},
        {"stdout": "", "stderr": "", "backgroundTaskId": "b1"},
    )
    lines.both(
        "p-mon",
        "Monitor",
        {"command": "tail -f", "description": "Log"},
        {"taskId": "m1", "timeoutMs": 5, "persistent": False},
    )
    lines.both(
        "p-old",
        "BashOutput",
        {"bash_id": "b1"},
        {
            "shellId": "b1",
            "command": "npm run dev",
            "status": "failed",
            "exitCode": 7,
            "stdout": "up",
            "stderr": "",
            "timestamp": "t",
        },
    )
    lines.both(
        "p-new",
        "TaskOutput",
        {"task_id": "b2"},
        {
            "retrieval_status": "success",
            "task": {
                "task_id": "b2",
                "task_type": "local_bash",
                "status": "completed",
                "description": "Job",
                "output": "out",
                "exitCode": 0,
            },
        },
    )
    lines.both(
        "p-stop",
        "TaskStop",
        {"task_id": "m1"},
        {"message": "ok", "task_id": "m1", "task_type": "local_bash", "command": "tail -f"},
    )
    lines.both(
        "p-far",
        "BashOutput",
        {"bash_id": "b7"},
        {"shellId": "b7", "command": "make", "status": "running", "stdout": "", "stderr": ""},
    )
    lines.both(
        "p-end",
        "TaskStop",
        {"task_id": "b8"},
        {"message": "ok", "task_id": "b8", "task_type": "local_bash", "command": "make x"},
    )
    lines.both("p-kill", "KillShell", {"shell_id": "b9"}, {"message": "ok", "shell_id": "b9"})
    for number, status in ((1, "completed"), (2, "killed")):
        lines.both(
            f"p-n{number}",
            "Bash",
            {"command": f"job {number}"},
            {"stdout": "", "stderr": "", "backgroundTaskId": f"n{number}"},
        )
        lines.add(
            "user",
            origin={"kind": "task-notification"},
            message={"role": "user", "content": _notice(f"n{number}", status, f"p-n{number}")},
        )
    lines.both("p-n3", "Bash", {"command": "job 3"}, {"stdout": "", "stderr": "", "backgroundTaskId": "n3"})
    lines.add(
        "user",
        origin={"kind": "task-notification"},
        message={"role": "user", "content": [{"type": "text", "text": _notice("n3", "failed", "p-n3")}]},
    )
    lines.attachment("queued_command", prompt=_notice("n4", "odd", "p-n3"), commandMode="task-notification")
    lines.add("queue-operation", operation="enqueue", content=_notice("n5", "stopped", "p-n3"))


def _agents(lines: Lines) -> None:
    prompt = {"description": "d", "prompt": "p", "subagent_type": "Explore"}
    lines.both(
        "a-ok",
        "Agent",
        prompt,
        {
            "agentId": "a1",
            "agentType": "Explore",
            "status": "completed",
            "totalDurationMs": 99,
            "totalToolUseCount": 1,
        },
    )
    lines.both("a-bg", "Agent", prompt, {"agentId": "a2", "status": "async_launched", "isAsync": True})
    lines.both("a-old", "Task", prompt, {"agentId": "a3", "totalDurationMs": 4})
    lines.both("a-odd", "Agent", prompt, {"agentId": "a5", "isAsync": True})
    lines.both("a-bad", "Task", prompt, {"agentId": "a6"}, "broke", error=True)
    lines.add(
        "progress", toolUseID="x", parentToolUseID="a-go", data={"type": "agent_progress", "agentId": "a4"}
    )
    lines.add(
        "user",
        origin={"kind": "task-notification"},
        message={"role": "user", "content": _notice("a2", "completed", "a-bg")},
    )
    lines.add(
        "user",
        origin={"kind": "task-notification"},
        message={"role": "user", "content": [{"type": "text", "text": _notice("a2", "failed", "a-bg")}]},
    )
    lines.attachment(
        "queued_command", prompt=_notice("a2", "stopped", "a-bg"), commandMode="task-notification"
    )
    lines.both(
        "a-stop",
        "TaskStop",
        {"task_id": "a1"},
        {"message": "ok", "task_id": "a1", "task_type": "local_agent", "command": "p"},
    )
    lines.add("queue-operation", operation="enqueue", content=_notice("a3", "completed", "a-old"))


def _plans(lines: Lines) -> None:
    lines.both(
        "t-todo",
        "TodoWrite",
        {"todos": []},
        {
            "oldTodos": [],
            "newTodos": [
                {"content": "one", "status": "pending", "activeForm": "o"},
                {"content": "two", "status": "completed", "activeForm": "t"},
            ],
        },
    )
    lines.both("t-make", "TaskCreate", {"subject": "One"}, {"task": {"id": "1", "subject": "One"}})
    lines.both(
        "t-get", "TaskGet", {"taskId": "2"}, {"task": {"id": "2", "subject": "Two", "status": "pending"}}
    )
    lines.both("t-list", "TaskList", {}, {"tasks": [{"id": "1", "subject": "One", "status": "pending"}]})
    lines.both(
        "t-set",
        "TaskUpdate",
        {"taskId": "1"},
        {
            "success": True,
            "taskId": "1",
            "updatedFields": ["status"],
            "statusChange": {"from": "pending", "to": "completed"},
        },
    )
    lines.both("t-plan", "ExitPlanMode", {"plan": "First this."}, {"plan": "First this.", "isAgent": False})


def _files(lines: Lines) -> None:
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}
    lines.both(
        "f-edit",
        "Edit",
        {"file_path": "/home/dev/acme-app/a.py", "old_string": "a", "new_string": "b"},
        {"filePath": "/home/dev/acme-app/a.py", "structuredPatch": [hunk]},
    )
    lines.both(
        "f-new",
        "Write",
        {"file_path": "/else/b.py", "content": "b"},
        {"type": "create", "filePath": "/else/b.py", "content": "b", "structuredPatch": []},
    )
    lines.both(
        "f-book",
        "NotebookEdit",
        {"notebook_path": "/home/dev/acme-app/n.ipynb", "new_source": "x"},
        {"notebook_path": "/home/dev/acme-app/n.ipynb", "new_source": "x"},
    )
    big = hunk | {"oldStart": 12345678901234567890}
    lines.both(
        "f-big",
        "Edit",
        {"file_path": "/c", "old_string": "a", "new_string": "b"},
        {"filePath": "/c", "structuredPatch": [big]},
    )


def _asides(lines: Lines) -> None:
    questions = [
        {
            "question": "Which?",
            "header": "Way",
            "multiSelect": False,
            "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
        },
        {
            "question": "Why?",
            "header": "Ground",
            "multiSelect": True,
            "options": [{"label": "C", "description": "c"}],
        },
    ]
    lines.both(
        "q-yes",
        "AskUserQuestion",
        {"questions": questions},
        {"questions": questions, "answers": {"Which?": "B", "Why?": "just so"}},
    )
    lines.both(
        "q-no",
        "AskUserQuestion",
        {"questions": questions},
        "Error: no",
        "no",
        error=True,
        toolDenialKind="permission-rule",
    )
    lines.add("user", message={"role": "user", "content": "<bash-input>ls</bash-input>"})
    lines.add(
        "user",
        message={"role": "user", "content": "<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>"},
    )
    lines.add(
        "user",
        parentUuid=None,
        message={"role": "user", "content": "<bash-stdout>c</bash-stdout><bash-stderr></bash-stderr>"},
    )
    hook = {
        "hookName": "PreToolUse:Bash",
        "hookEvent": "PreToolUse",
        "toolUseID": "c-run",
        "command": "check",
    }
    lines.attachment("hook_success", **hook, stdout="ok", stderr="", exitCode=0, durationMs=5, content="")
    lines.attachment("hook_cancelled", **hook, timedOut=True, timeoutMs=60, durationMs=60)
    lines.attachment(
        "hook_blocking_error",
        [{"content": "blocked"}],
        hookName="Stop",
        hookEvent="Stop",
        toolUseID="h1",
        blockingError={"blockingError": "no", "command": "block"},
    )
    lines.attachment(
        "hook_permission_decision", hookEvent="PermissionRequest", toolUseID="c-run", decision="allow"
    )
    lines.attachment(
        "hook_permission_decision",
        hookEvent="PermissionRequest",
        toolUseID="c-run",
        decision={"behavior": "deny"},
    )
    lines.attachment("hook_success", hookName="odd", toolUseID="h3", exitCode=0, stdout="", stderr="")
    lines.attachment(
        "async_hook_response",
        hookName="x",
        hookEvent="SessionStart",
        response={"ok": True},
        exitCode=0,
        stdout="",
        stderr="",
    )
    lines.attachment(
        "hook_additional_context",
        content=["Mind the gap."],
        hookName="x",
        hookEvent="SessionStart",
        toolUseID="h2",
    )
    lines.attachment("total_tokens_reminder", text="9 tokens left")
    lines.attachment("queued_command", prompt="And this.", commandMode="prompt")
    lines.attachment("date", [{"content": "Today."}], renderedRole="user")
    lines.add(
        "progress",
        toolUseID="x",
        parentToolUseID="c-run",
        data={
            "type": "hook_progress",
            "hookEvent": "PostToolUse",
            "hookName": "PostToolUse:Bash",
            "command": "fmt",
        },
    )
    lines.add(
        "system",
        subtype="stop_hook_summary",
        toolUseID="h4",
        hookInfos=[{"command": "lint", "durationMs": 3}],
        hookErrors=[],
    )
    lines.add("system", subtype="turn_duration", durationMs=4100)
    lines.add(
        "system",
        subtype="local_command",
        content="<local-command-stdout>9%</local-command-stdout>",
        contextUsage={"raw_max_tokens": 200000, "total_tokens": 18000, "percentage": 9},
    )
    lines.add(
        "system", subtype="microcompact_boundary", microcompactMetadata={"trigger": "auto", "preTokens": 9}
    )
    lines.add("system", subtype="compact_boundary", compactMetadata={"trigger": "manual", "preTokens": 99})
    lines.add("user", isCompactSummary=True, message={"role": "user", "content": "So far: nothing."})
    lines.add("system", subtype="informational", content="news")
    lines.add("system", subtype="api_error", error={"status": 529}, retryAttempt=1)
    lines.attachment("max_turns_reached", maxTurns=3, turnCount=3)
    lines.attachment(
        "hook_system_message", content="Look here.", hookName="x", hookEvent="Stop", toolUseID="h5"
    )
    lines.attachment(
        "hook_stopped_continuation", message="Enough.", hookName="x", hookEvent="Stop", toolUseID="h6"
    )
    lines.raw(
        {"type": "cost-state", "sessionId": SESSION, "totalCost": 1, "modelUsage": {"m": {"inputTokens": 3}}}
    )
    lines.raw('{"type":"user","mess')
    lines.attachment("prompt_snapshot", text="x" * 70_000)


def agent_session(agent: str) -> str:
    """An agent's own file, in which only calls tell of changes."""
    lines = Lines(SESSION, agent=agent)
    lines.add("user", message={"role": "user", "content": "Look."})
    lines.call(
        "g-edit", "Edit", {"file_path": "/home/dev/acme-app/a.py", "old_string": "a", "new_string": "b"}
    )
    lines.call("g-new", "Write", {"file_path": "/b.py", "content": "b"})
    lines.call("g-book", "NotebookEdit", {"notebook_path": "/n.ipynb", "new_source": "x"})
    lines.said("Looked.")
    return lines.text


def titled(session: str, *raw: dict[str, Any]) -> str:
    """A session with little but a title."""
    lines = Lines(session)
    for line in raw:
        lines.raw({**line, "sessionId": session})
    lines.add("user", uuid="leaf", message={"role": "user", "content": "Go on."})
    return lines.text


def session_with_requests() -> str:
    """A session of 2.1.332 that records its requests, with what they did to the results on the way."""
    lines = Lines("5e551011-0000-4000-8000-0000000000bb", "2.1.332")
    lines.add("user", message={"role": "user", "content": "Go on."})
    reminder = "<system-reminder>\n9 left\n</system-reminder>"

    def request(number: int, tail: list[str]) -> None:
        lines.raw(
            {
                "type": "api-request",
                "id": f"q{number}",
                "timestamp": f"2026-11-30T11:00:{number:02}.000Z",
                "version": "2.1.332",
                "keep": 0,
                "tail": tail,
                "sessionId": lines.session,
            }
        )

    def sent(*blocks: dict[str, Any]) -> str:
        message = {"role": "user", "content": list(blocks)}
        lines.raw(
            {
                "type": "api-request-blob",
                "hash": message_hash(message),
                "message": message,
                "sessionId": lines.session,
            }
        )
        return message_hash(message)

    def part(call_id: str, content: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": call_id, "content": content}

    lines.both("r-same", "Bash", {"command": "a"}, {"stdout": "a", "stderr": ""}, "a")
    lines.attachment("total_tokens_reminder", [{"content": reminder}])
    request(1, [sent(part("r-same", f"a\n\n{reminder}"))])
    lines.both("r-trim", "Bash", {"command": "b"}, {"stdout": " b ", "stderr": ""}, " b ")
    request(2, [sent(part("r-trim", f"b\n\n{reminder}"))])
    lines.both("r-more", "Bash", {"command": "c"}, {"stdout": "c", "stderr": ""}, "c")
    request(3, [sent(part("r-more", f"c\n\nsaid by nobody\n\n{reminder}"))])
    lines.both("r-list", "mcp__x__y", {}, None, [{"type": "text", "text": "d"}], error=None)
    request(4, [sent(part("r-list", [{"type": "text", "text": "d\n"}, {"type": "text", "text": reminder}]))])
    lines.both("r-stored", "Bash", {"command": "e"}, {"stdout": "e", "stderr": ""}, "e")
    stored = json.loads(lines.found[-1])["message"]
    request(5, [message_hash({"role": "user", "content": stored["content"]})])
    lines.both("r-never", "Bash", {"command": "f"}, {"stdout": "f", "stderr": ""}, "f")
    return lines.text
