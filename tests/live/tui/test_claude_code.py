"""The workbench in tmux with the real Claude Code and a scripted model: ask, allow, deny with words, interrupt."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.live.claude_code.house import House, living, shell
from tests.live.tui.pane import Pane, records_of

from callsheet.testing.scripted_models.messages import say

sdk = pytest.importorskip("claude_agent_sdk", reason="needs the extra `live` (claude-agent-sdk)")
PROGRAM = Path(sdk.__file__).parent / "_bundled" / "claude"

MakeHouse = Callable[..., AbstractContextManager[House]]


@pytest.fixture
def house(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHouse:
    return lambda scripts, **settings: living(home, tmp_path, PROGRAM, scripts, monkeypatch, settings)


def run_in(at: House, panes: Callable[..., Pane]) -> Pane:
    return panes(
        *(sys.executable, "-m", "callsheet", "run", "claude-code", "--agent", str(at.program)),
        *("--cwd", str(at.cwd), "--out", str(at.out), "--", "Please do the task."),
    )


def test_ask_allow_deny_with_words_interrupt(house: MakeHouse, panes: Callable[..., Pane]) -> None:
    listing = "; ".join(f"echo line {number}" for number in range(1, 25))
    script = [
        say("I look first.", shell("c1", f"touch seen; {listing}")),
        say("Now I clean up.", shell("c2", "rm -rf build")),
        say("Then I wait.", shell("c3", "touch waiting; tail -f /dev/null")),
        say("Done."),
    ]
    with house(script) as at:
        pane = run_in(at, panes)
        # Asked, and allowed.
        pane.until("1 waiting", "touch seen", "1  ")
        pane.press("1")
        # Denied, with words for the agent.
        pane.until("rm -rf build", "1 waiting", "6  reject")
        pane.press(pane.number_of("reject"))
        pane.until("Words for the agent")
        pane.press("u", "s", "e", "Space", "m", "a", "k", "e", "Enter")
        # Allowed, and then broken off.
        pane.until("tail -f", "1 waiting")
        pane.press("1")
        pane.until("running")
        time.sleep(2)
        pane.press("C-x")
        pane.until("turn interrupted")
        # Opened, and the evidence of it.
        # A row keeps ten lines until a person opens it.
        pane.press("g", "c")
        assert "line 12" not in pane.until("more lines").split("rm -rf")[0].split("│ line 1")[-1]
        pane.press("Enter")
        text = pane.until("│ line 12")
        assert "more lines" not in text.split("rm -rf")[0]
        pane.press("Enter", "e")
        pane.until("tool_call", "s0.jsonl", seconds=30)
        pane.press("o", "G")
        pane.until("Never recorded by this source")
        pane.press("Escape", "q")
        pane.until("ended with", seconds=30)
    found = records_of(at.out)
    decided = [one["decision"] for one in found if one["type"] == "permission" and "decision" in one]
    assert decided[:2] == ["allow_once", "reject_once"]
    assert {one["decidedBy"] for one in found if one["type"] == "permission" and "decision" in one} == {
        "user"
    }
    assert any(one.get("feedback") == "use make" for one in found if one["type"] == "permission")
    assert [one["status"] for one in found if one["type"] == "turn"][-1] == "interrupted"
    assert (at.cwd / "seen").exists()


def test_the_next_prompt_and_the_second_press(house: MakeHouse, panes: Callable[..., Pane]) -> None:
    script = [say("First."), say("Second.", shell("c1", "tail -f /dev/null")), say("Third.")]
    with house(script, permissions={"allow": ["Bash"]}) as at:
        pane = run_in(at, panes)
        pane.until("First.", "turn completed")
        pane.press("i", "g", "o", "Enter")
        pane.until("tail -f", "running")
        pane.press("C-x", "C-x")
        pane.until("turn", seconds=60)
        pane.press("q", "q")
        pane.until("ended with", seconds=60)
    assert [one["author"] for one in records_of(at.out) if one["type"] == "message"].count("user") == 2
