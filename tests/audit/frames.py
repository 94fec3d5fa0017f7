"""Made-up logs of Claude Code frames that together give every fact of the registry that only frames have."""

from __future__ import annotations

import json
from typing import Any

SESSION = "f4a3e500-0000-4000-8000-0000000000aa"
SUGGESTIONS = [
    {
        "type": "addRules",
        "rules": [{"toolName": "Bash"}],
        "behavior": "allow",
        "destination": "localSettings",
    },
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
]
QUESTION = {
    "question": "Which?",
    "header": "Pick",
    "multiSelect": False,
    "options": [{"label": "One", "description": "the first"}, {"label": "Two", "description": "the second"}],
}


class Frames:
    """A log in the making: frames of agent and host, with the member that times them."""

    def __init__(self, timed: str | None) -> None:
        self._timed = timed
        self._lines: list[str] = []
        self._asked = 0

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self._lines)

    def _time(self) -> dict[str, Any]:
        at = 1_796_076_000_000 + len(self._lines) * 250
        match self._timed:
            case "ts":
                seconds, rest = divmod(len(self._lines) * 250, 1000)
                return {"ts": f"2026-11-30T10:{seconds // 60:02}:{seconds % 60:02}.{rest:03}Z"}
            case "ms":
                return {"ms": at}
            case _:
                return {"t": at / 1000}

    def agent(self, kind: str, **members: Any) -> None:
        number = len(self._lines) + 1
        frame = {
            "type": kind,
            "session_id": SESSION,
            "uuid": f"00000000-0000-4000-8000-{number:012}",
            **members,
        }
        self._put(frame, "out")

    def host(self, kind: str, **members: Any) -> None:
        self._put({"type": kind, **members}, "in")

    def _put(self, frame: dict[str, Any], way: str) -> None:
        line = frame if self._timed is None else {**self._time(), "dir": way, "frame": frame}
        self._lines.append(json.dumps(line))

    def init(self, **members: Any) -> None:
        self.agent(
            "system",
            subtype="init",
            cwd="/home/dev/acme-app",
            claude_code_version="2.1.332",
            mcp_servers=[{"name": "git.hub"}, {"name": "other"}],
            **members,
        )

    def said(self, message: str, *blocks: Any, **members: Any) -> None:
        content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        told = {"id": message, "role": "assistant", "model": "m", "content": content}
        self.agent("assistant", message=told, **{"parent_tool_use_id": None, **members})

    def calls(self, message: str, call: str, name: str, asked: Any, **members: Any) -> None:
        self.said(message, {"type": "tool_use", "id": call, "name": name, "input": asked}, **members)

    def result(self, call: str, content: Any = "ok", error: bool | None = None, **members: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        block |= {} if error is None else {"is_error": error}
        told = {"role": "user", "content": [block]}
        self.agent("user", message=told, **{"parent_tool_use_id": None, **members})

    def system(self, subtype: str, **members: Any) -> None:
        self.agent("system", subtype=subtype, **members)

    def piece(self, event: dict[str, Any]) -> None:
        self.agent("stream_event", event=event, parent_tool_use_id=None, api_message_id="msg_p")

    def asks(self, request: str, **members: Any) -> None:
        self._put({"type": "control_request", "request_id": request, "request": members}, "out")

    def answers(self, request: str, answer: Any) -> None:
        response = {"subtype": "success", "request_id": request, "response": answer}
        self._put({"type": "control_response", "response": response}, "in")

    def fails(self, request: str) -> None:
        response = {"subtype": "error", "request_id": request, "error": "no such thing"}
        self._put({"type": "control_response", "response": response}, "in")

    def withdraws(self, request: str) -> None:
        self._put({"type": "control_cancel_request", "request_id": request}, "out")

    def may(self, request: str, call: str, answer: Any, **members: Any) -> None:
        told = {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": "x"},
            "tool_use_id": call,
        }
        self.asks(request, **told, **members)
        if answer is not None:
            self.answers(request, answer)


def recorded() -> str:
    """Both directions, times of receipt: everything the control protocol has."""
    log = Frames("ts")
    log.host("control_request", request_id="i", request={"subtype": "initialize"})
    log.host("user", message={"role": "user", "content": "Do it.", "id": "prompt-1"})
    log.init()
    _pieces(log)
    _permissions(log)
    _questions(log)
    _forms(log)
    _hooks(log)
    _tasks(log)
    log.agent(
        "result",
        subtype="success",
        is_error=False,
        duration_ms=12,
        usage={"input_tokens": 3, "output_tokens": 4},
        modelUsage={"m": {"inputTokens": 3, "contextWindow": 200_000}},
    )
    ended = {"dir": "recorder", "ts": "2026-11-30T11:00:00.000Z", "exit": {"code": 0, "signal": None}}
    return log.text + json.dumps(ended, separators=(",", ":")) + "\n"


def _pieces(log: Frames) -> None:
    log.piece({"type": "message_start", "message": {"id": "msg_p"}})
    for index, (call, text) in enumerate(
        (("p-big", '{"n": 123456789012345678901}'), ("p-own", '{"a": 1, "b": "x "}'))
    ):
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {}}
        log.piece({"type": "content_block_start", "index": index, "content_block": block})
        for half in (text[:7], text[7:]):
            delta = {"type": "input_json_delta", "partial_json": half}
            log.piece({"type": "content_block_delta", "index": index, "delta": delta})
        titles = [{"id": call, "display_name": "Run", "tool_name": "Bash"}]
        log.calls("msg_p", call, "Bash", {"a": 1, "b": "x"}, tool_use_meta=titles)
        log.piece({"type": "content_block_stop", "index": index})
    log.piece({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 30}})
    log.result("p-own", error=False)
    # A second call with the id of the first: what the result answered is not known any more.
    log.calls("msg_q", "p-own", "Bash", {"command": "again"})


def _permissions(log: Frames) -> None:
    log.calls("msg_r", "r1", "Bash", {"command": "x"})
    more = {
        "display_name": "Run",
        "description": "Does x",
        "decision_reason": "because",
        "decision_reason_type": "rule",
        "decision_reason_rule_source": "userSettings",
        "decision_reason_hook_event": "PreToolUse",
        "decision_reason_hook_source": "settings",
        "blocked_path": "/etc",
        "mcp_server": {"name": "git.hub"},
        "server_policy_ask_only": True,
        "requires_user_interaction": False,
        "permission_suggestions": SUGGESTIONS,
    }
    allow = {"behavior": "allow", "updatedInput": {"command": "y"}, "updatedPermissions": SUGGESTIONS}
    log.may("q1", "r1", {**allow, "decisionClassification": "user_permanent"}, **more)
    log.may("q2", "r1", {**allow, "updatedPermissions": SUGGESTIONS[1:]}, permission_suggestions=SUGGESTIONS)
    log.may("q3", "r1", {"behavior": "deny", "message": "Not so.", "interrupt": True})
    log.may("q4", "r1", None)
    log.withdraws("q4")
    log.may("q5", "r1", None)
    log.fails("q5")
    log.may("q6", "r1", {"behavior": "allow", "updatedInput": {"command": "x"}})
    log.may("q7", "r1", None)
    # Refusals that the result itself does not tell.
    log.calls("msg_r", "r2", "Bash", {"command": "x"})
    log.may("q8", "r2", {"behavior": "deny", "message": "No."})
    log.result("r2", "No.", error=True)
    log.calls("msg_r", "r3", "Bash", {"command": "x"})
    log.system("permission_denied", tool_name="Bash", tool_use_id="r3", decision_reason_type="rule")
    log.result("r3", "No.", error=True)


def _questions(log: Frames) -> None:
    for number, answer in enumerate(
        (
            {"behavior": "allow", "updatedInput": {"questions": [QUESTION], "answers": {"Which?": "One"}}},
            {"behavior": "deny", "message": "No."},
            None,
        )
    ):
        call = f"ask-{number}"
        log.calls("msg_s", call, "AskUserQuestion", {"questions": [QUESTION]})
        log.asks(
            f"question-{number}",
            subtype="can_use_tool",
            tool_name="AskUserQuestion",
            input={"questions": [QUESTION]},
            tool_use_id=call,
        )
        if answer is None:
            log.withdraws(f"question-{number}")
        else:
            log.answers(f"question-{number}", answer)


def _forms(log: Frames) -> None:
    def form(format_: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"branch": {"type": "string", "format": format_}}}

    asked = {
        "subtype": "elicitation",
        "mcp_server_name": "git.hub",
        "message": "Which branch?",
        "mode": "form",
    }
    for number, (form_, answer) in enumerate(
        (
            (form("date"), {"action": "accept", "content": {"branch": "main"}}),
            (form("password"), {"action": "accept", "content": {"branch": "hunter2-hunter2"}}),
            (form("date"), {"action": "decline"}),
            (form("date"), {"action": "shrug"}),
            (form("date"), None),
        )
    ):
        log.asks(f"form-{number}", **asked, requested_schema=form_)
        if answer is None:
            log.withdraws(f"form-{number}")
        else:
            log.answers(f"form-{number}", answer)
    log.asks("url-1", subtype="elicitation", message="Sign in", mode="url", url="https://example.test/in")
    log.answers("url-1", {"action": "cancel"})


def _hooks(log: Frames) -> None:
    for number, outcome in enumerate(("success", "error", "cancelled", "odd")):
        run = {"hook_id": f"h{number}", "hook_name": "PreToolUse:Bash", "hook_event": "PreToolUse"}
        log.system("hook_started", **run)
        told = {"stdout": f"out {number}", "stderr": f"err {number}", "exit_code": number + 3}
        log.system("hook_response", **run, outcome=outcome, **told)
    for number, answer in enumerate(
        ({"hookSpecificOutput": {"permissionDecision": "deny"}}, {"decision": "block"}, None)
    ):
        called = {"hook_event_name": "PreToolUse", "tool_name": "Bash"}
        log.asks(
            f"callback-{number}",
            subtype="hook_callback",
            callback_id=f"hook_{number}",
            input=called,
            tool_use_id="r1",
        )
        if answer is None:
            log.fails(f"callback-{number}")
        else:
            log.answers(f"callback-{number}", answer)


def _tasks(log: Frames) -> None:
    log.calls("msg_t", "bg", "Bash", {"command": "serve", "run_in_background": True})
    started = {"task_type": "local_bash", "is_backgrounded": True}
    log.system("task_started", task_id="b1", tool_use_id="bg", description="Serves", **started)
    log.system("task_updated", task_id="b1", patch={"status": "completed", "end_time": 1_796_076_307_864})
    log.system("task_notification", task_id="b1", tool_use_id="bg", status="completed", output_file="/tmp/b1")
    log.calls("msg_t", "watch", "Monitor", {"command": "tail", "description": "Watches"})
    log.system("task_started", task_id="b2", tool_use_id="watch", **started)
    log.calls("msg_t", "agent", "Agent", {"description": "Look", "prompt": "Look."})
    log.system(
        "task_started",
        task_id="a1",
        tool_use_id="agent",
        subagent_type="Explore",
        task_type="local_agent",
        is_backgrounded=False,
    )
    own = {"parent_tool_use_id": "agent", "agent_id": "a1"}
    log.calls("msg_u", "inner", "Bash", {"command": "ls"}, **own)
    log.result("inner", error=False, **own)
    log.system("task_updated", task_id="a1", patch={"status": "completed", "end_time": 1_796_076_307_900})
    log.system("task_notification", task_id="a1", tool_use_id="agent", status="completed")


def bare() -> str:
    """Stdout alone: no times of receipt, no host."""
    log = Frames(None)
    log.init()
    name = "mcp__git_hub__get_it"
    named = [{"id": "m1", "display_name": "Get it", "tool_name": "get_it"}]
    log.calls("msg_a", "m1", name, {}, tool_use_meta=named)
    decided = {"decision": "accept", "source": "config", "reason_type": "mode"}
    log.result("m1", tool_result_meta=[{"id": "m1", "permission_decision": decided}])
    log.system("compact_boundary", compact_metadata={"trigger": "auto", "pre_tokens": 9})
    log.system("informational", content="A limit is near.", level="notice")
    words = {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    log.agent("user", message=words, parent_tool_use_id=None)
    log.agent("result", subtype="error_during_execution", is_error=True, errors=["It broke."])
    log.agent("result", subtype="success", is_error=True, result="API Error", terminal_reason="api_error")
    log.agent("result")
    return log.text


def timed(member: str) -> str:
    """A short log whose times of receipt are told in another way, with a decision and a withdrawal."""
    log = Frames(member)
    log.init()
    log.calls("msg_a", "c1", "Bash", {"command": "x"})
    log.may("q1", "c1", {"behavior": "allow"})
    log.may("q2", "c1", None)
    log.withdraws("q2")
    log.asks("cb", subtype="hook_callback", callback_id="h", input={"hook_event_name": "Stop"})
    log.answers("cb", {})
    return log.text


LOGS = {"recorded": recorded(), "bare": bare(), "ms": timed("ms"), "t": timed("t")}
"""File name to text."""
