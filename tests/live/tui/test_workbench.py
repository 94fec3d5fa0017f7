"""The workbench in tmux with the real Claude Code and a scripted model: ask, allow, deny with words, interrupt."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.live.claude_code.house import House, living, shell

from callsheet.testing.scripted_models.messages import say

sdk = pytest.importorskip("claude_agent_sdk", reason="needs the extra `live` (claude-agent-sdk)")
PROGRAM = Path(sdk.__file__).parent / "_bundled" / "claude"
TMUX = shutil.which("tmux")
SOURCE = Path(__file__).parents[3] / "src"

MakeHouse = Callable[..., AbstractContextManager[House]]
pytestmark = pytest.mark.skipif(TMUX is None, reason="needs tmux")


@pytest.fixture
def house(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHouse:
    return lambda scripts, **settings: living(home, tmp_path, PROGRAM, scripts, monkeypatch, settings)


class Pane:
    """A program in a pane of tmux."""

    def __init__(self, folder: Path, *command: str, size: tuple[int, int] = (100, 36)) -> None:
        self._tmux = [TMUX or "tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        words = shlex.join(
            ["env", "-u", "COLUMNS", "-u", "LINES", f"PYTHONPATH={SOURCE}", "TERM=tmux-256color", *command]
        )
        columns, lines = map(str, size)
        self._do("new-session", "-d", "-x", columns, "-y", lines, f"{words}; echo ended with $?; sleep 60")

    def _do(self, *arguments: str) -> str:
        ran = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return ran.stdout

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self._do("capture-pane", "-p")

    def until(self, *texts: str, seconds: float = 60) -> str:
        """Waits until all of some texts are on the screen."""
        end = time.monotonic() + seconds
        while any(text not in self.text for text in texts):
            assert time.monotonic() < end, f"{texts} never came:\n{self.text}"
            time.sleep(0.1)
        return self.text

    def press(self, *keys: str) -> None:
        """Presses keys, as tmux names them."""
        for key in keys:
            self._do("send-keys", key)
            time.sleep(0.2)

    def close(self) -> None:
        """Ends tmux and all in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def panes(tmp_path: Path) -> Iterator[Callable[..., Pane]]:
    made: list[Pane] = []

    def pane(*command: str, **more: Any) -> Pane:
        made.append(Pane(tmp_path, *command, **more))
        return made[-1]

    yield pane
    for one in made:
        one.close()


def run_in(at: House, panes: Callable[..., Pane]) -> Pane:
    return panes(
        *(sys.executable, "-m", "callsheet", "run", "claude-code", "--agent", str(at.program)),
        *("--cwd", str(at.cwd), "--out", str(at.out), "--", "Please do the task."),
    )


def records_of(out: Path) -> list[dict[str, Any]]:
    (bundle,) = [path for path in out.iterdir() if path.is_dir()]
    return [
        json.loads(line)
        for stream in (bundle / "streams").iterdir()
        for line in stream.read_text(encoding="utf-8").splitlines()
    ]


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
        (number,) = re.findall(r"^▌? +([1-9])  .*reject", pane.text, re.MULTILINE)
        pane.press(number)
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
