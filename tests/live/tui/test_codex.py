"""The workbench in tmux with the real Codex and a scripted model: ask, allow, decline, words, interrupt, evidence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from tests.live.codex.house import House, living, outputs_in, outside, shell
from tests.live.tui.pane import Pane, records_of

from callsheet.testing.scripted_models.responses import Call, Say, respond

codex_cli_bin = pytest.importorskip("codex_cli_bin", reason="needs the extra `live` (openai-codex-cli-bin)")
PROGRAM = Path(codex_cli_bin.__file__).parent / "bin" / "codex"
ASKS = {"approval": "on-request", "sandbox": "workspace-write"}
TICKS = "i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.2; done"

MakeHouse = Callable[..., AbstractContextManager[House]]


@pytest.fixture
def house(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeHouse:
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.setenv("SCRIPTED_KEY", "none")
    return lambda scripts, **settings: living(home, tmp_path, PROGRAM, scripts, **settings)


def run_in(at: House, panes: Callable[..., Pane]) -> Pane:
    return panes(
        *(sys.executable, "-m", "callsheet", "run", "codex", "--agent", str(at.program)),
        *("--cwd", str(at.cwd), "--out", str(at.out), "--", "Please do the task."),
    )


def test_ask_allow_decline_interrupt(house: MakeHouse, panes: Callable[..., Pane]) -> None:
    listing = "; ".join(f"echo line {number}" for number in range(1, 25))
    script = [
        respond(Say("I look first."), outside("c1", f"touch seen; {listing}")),
        respond(Say("Now I clean up."), outside("c2", "touch unwanted")),
        respond(Say("Then I wait."), shell("c3", TICKS, yield_time_ms=20000)),
        respond(Say("Done.")),
    ]
    with house(script, **ASKS) as at:
        pane = run_in(at, panes)
        # Asked, and allowed.
        pane.until("1 waiting", "touch seen", "1  ")
        pane.press(pane.number_of("allow once"))
        # Declined.
        pane.until("touch unwanted", "1 waiting")
        pane.press(pane.number_of("reject once"))
        # What runs is seen while it runs; then it is broken off.
        pane.until("tick 3", "running", "window 258,400")
        pane.press("C-x")
        pane.until("turn interrupted")
        # A row keeps ten lines until a person opens it; then the evidence of it.
        pane.press("g", "c")
        pane.until("more lines")
        pane.press("Enter")
        pane.until("│ line 12")
        pane.press("Enter", "e")
        pane.until("tool_call", "s0.jsonl", seconds=30)
        pane.press("o", "G")
        pane.until("Never recorded by this source")
        pane.press("Escape", "q")
        pane.until("ended with 3", seconds=30)
        assert (at.cwd / "seen").exists()
        assert not (at.cwd / "unwanted").exists()
    found = records_of(at.out)
    decided = [one for one in found if one["type"] == "permission" and "decision" in one]
    assert [one["decision"] for one in decided] == ["allow_once", "reject_once"]
    assert {one["decidedBy"] for one in decided} == {"user"}
    assert [one["status"] for one in found if one["type"] == "turn"][-1] == "interrupted"


def test_a_question_is_answered_with_words_and_the_next_prompt(
    house: MakeHouse, panes: Callable[..., Pane]
) -> None:
    options = [{"label": "Red", "description": "a"}, {"label": "Blue", "description": "b"}]
    asked = {"questions": [{"id": "w", "header": "Colour", "question": "Which?", "options": options}]}
    script = [
        respond(Call("q", "request_user_input", asked)),
        respond(Say("First.")),
        respond(Say("Second.")),
    ]
    with house(script, features="default_mode_request_user_input = true") as at:
        pane = run_in(at, panes)
        pane.until("Which?", "Blue", "1 waiting")
        pane.press("o", *"green", "Enter")
        pane.until("First.", "turn completed")
        assert "green" in str(outputs_in(at.model))
        pane.press("i", *"go", "Enter")
        pane.until("Second.", "turn completed")
        pane.press("q")
        pane.until("ended with 0", seconds=30)
    (answered,) = [one for one in records_of(at.out) if one["type"] == "input_request" and one.get("answers")]
    assert answered["answers"][0]["text"] == "green"
