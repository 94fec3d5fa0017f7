"""The workbench in tmux with agents of the Agent Client Protocol: the toy agent of both versions, and real agents."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live.acp.agents import AGENTS
from tests.live.tui.pane import Pane, records_of

TOY = f"{sys.executable} -m callsheet.testing.toy_agent"
LINES = "".join(f"line {number}\n" for number in range(1, 25))
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
FORM = {
    "sessionId": "$session",
    "message": "Who are you?",
    "mode": "form",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Your name"}},
        "required": ["name"],
    },
}


def call(name: str, title: str, status: str, text: str | None = None, *, new: bool = False) -> dict[str, Any]:
    update: dict[str, Any] = {"toolCallId": name, "title": title, "kind": "execute", "status": status}
    if text is not None:
        update["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
    return {"update": {"sessionUpdate": "tool_call" if new else "tool_call_update", **update}}


def ask(version: int, name: str, title: str) -> dict[str, Any]:
    about = {"toolCallId": name, "title": title, "kind": "execute", "status": "pending"}
    subject = {"toolCall": about} if version == 1 else {"subject": {"type": "tool_call", "toolCall": about}}
    more = {} if version == 1 else {"title": f"Run {title}?"}
    return {
        "ask": "session/request_permission",
        "params": {"sessionId": "$session", **more, **subject, "options": OPTIONS},
    }


def script(folder: Path, version: int) -> Path:
    """A turn that asks twice and wants words, then waits to be broken off."""
    new = version == 1
    begin: list[dict[str, Any]] = []
    if version == 2:
        begin = [
            {"update": {"sessionUpdate": "state_update", "state": "running"}},
            {"answer": {"messageId": "u"}},
        ]
    steps = [
        *begin,
        call("c1", "make list", "pending", new=new),
        ask(version, "c1", "make list"),
        call("c1", "make list", "completed", LINES),
        call("c2", "make clean", "pending", new=new),
        ask(version, "c2", "make clean"),
        call("c2", "make clean", "failed", "not allowed"),
        {"ask": "elicitation/create", "params": FORM},
        {"update": {"sessionUpdate": "usage_update", "used": 1200, "size": 200000}},
        call("c3", "make wait", "in_progress", "tick 1\n", new=new),
        {"await": "cancel"},
        call("c3", "make wait", "failed"),
    ]
    end: dict[str, Any] = {"answer": {"stopReason": "cancelled"}}
    if version == 2:
        end = {"update": {"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"}}
    path = folder / "script.json"
    path.write_text(json.dumps({"about": "asks", str(version): [*steps, end]}), encoding="utf-8")
    return path


def run_in(panes: Callable[..., Pane], name: str, command: str, cwd: Path, out: Path, *more: str) -> Pane:
    return panes(
        *(sys.executable, "-m", "callsheet", "run", name, "--agent", command, "--cwd", str(cwd)),
        *("--out", str(out), *more, "--", "Please do the task."),
    )


def looks_around(pane: Pane, *, opened: str) -> None:
    """Opens the first call, and its evidence; then leaves."""
    pane.press("g", "c")
    pane.until("more lines")
    pane.press("Enter")
    pane.until(opened)
    pane.press("Enter", "e")
    pane.until("tool_call", "s0.jsonl", seconds=30)
    pane.press("o", "G")
    pane.until("Never recorded by this source")
    pane.press("Escape", "q")
    pane.until("ended with", seconds=60)


@pytest.mark.parametrize("version", [1, 2])
def test_the_toy_asks_is_allowed_rejected_told_and_interrupted(
    version: int, home: Path, tmp_path: Path, panes: Callable[..., Pane]
) -> None:
    out = tmp_path / "out"
    pane = run_in(panes, "acp", f"{TOY} --version {version} {script(tmp_path, version)}", tmp_path, out)
    pane.until("make list", "1 waiting", "Allow")
    pane.press(pane.number_of("Allow"))
    pane.until("make clean", "1 waiting", "Reject")
    pane.press(pane.number_of("Reject"))
    pane.until("Who are you?", "Your name", "1 waiting")
    pane.press(*"Ada", "Enter")
    pane.until("make wait", "running", "context 1,200/200,000")
    pane.press("C-x")
    pane.until("turn interrupted")
    looks_around(pane, opened="│ line 12")
    found = records_of(out)
    decided = [one for one in found if one["type"] == "permission" and "decision" in one]
    assert [(one["decision"], one["decidedBy"]) for one in decided] == [
        ("allow_once", "user"),
        ("reject_once", "user"),
    ]
    assert "Ada" in json.dumps([one for one in found if one["type"] == "input_request"])
    assert [one["status"] for one in found if one["type"] == "turn"][-1] == "interrupted"


@pytest.mark.parametrize("name", AGENTS)
def test_a_real_agent_asks_is_allowed_and_rejected(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panes: Callable[..., Pane]
) -> None:
    agent = AGENTS[name]
    listing = "; ".join(f"echo line {number}" for number in range(1, 25))
    turns = agent.says(
        [("call_1", "run", {"command": f"touch seen; {listing}", "description": "Lists."})],
        [("call_2", "run", {"command": "touch unwanted", "description": "Touches."})],
        ["Done."],
    )
    with agent.make(home, tmp_path, monkeypatch, *turns) as at:
        mode = ("--mode", at.mode) if at.mode else ()
        pane = run_in(panes, at.name, " ".join(at.command), at.cwd, at.out, *mode)
        pane.until("touch seen", "1 waiting")
        pane.press(pane.number_of("(?:[Aa]llow once|Allow *$)"))
        pane.until("touch unwanted", "1 waiting")
        pane.press(pane.number_of("[Rr]eject"))
        pane.until("turn ", seconds=90)
        looks_around(pane, opened="line 12")
        assert (at.cwd / "seen").exists()
        assert not (at.cwd / "unwanted").exists()
    decided = [
        one["decision"] for one in records_of(at.out) if one["type"] == "permission" and "decision" in one
    ]
    assert [one.split("_")[0] for one in decided] == ["allow", "reject"]
