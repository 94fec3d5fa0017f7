"""A turn with an agent, driven: what it does is seen as it happens, and answered in its place."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.tui.driving import Driven, drive

from callsheet.faces.tui.ask_panel import AskPanel
from callsheet.faces.tui.live_screen import LiveScreen
from callsheet.faces.tui.running import Running, Wanted
from callsheet.harness import LIVE
from callsheet.library.opening import Reading, open_sessions
from callsheet.rows import View
from callsheet.seam import Completed, Interrupted, Lost, Wish
from callsheet.testing.fake import FAKE, fake_command


class Turned(Driven):
    """The program with a turn."""

    @property
    def live(self) -> LiveScreen:
        assert isinstance(self.app.screen, LiveScreen)
        return self.app.screen

    @property
    def panel(self) -> AskPanel:
        return self.live.panel

    async def settled(self) -> None:
        await self.until(lambda: self.live.running.result is not None and not self.live.running.busy)


def run(
    tmp_path: Path,
    test: Callable[[Turned], Awaitable[None]],
    *,
    prompt: str | None = "Do it.",
    size: tuple[int, int] = (90, 30),
    agent: Any = FAKE,
    **script: Any,
) -> Running:
    running = Running(
        Wanted(
            agent=agent,
            command=fake_command(**script),
            wish=Wish(cwd=str(tmp_path)),
            prompt=prompt,
            out=tmp_path / "out",
        )
    )

    async def driven(on: Driven) -> None:
        await test(Turned(on.app, on.pilot))

    drive(lambda looks: LiveScreen(running, looks=looks), driven, size=size)
    return running


def stored_rows(bundle: Path) -> list[tuple[str, str, str]]:
    with open_sessions(str(bundle), Reading(view=View(harness=False)), on_failure=pytest.fail) as sessions:
        session = next(iter(sessions))
        with session.sheet(session.main) as sheet:
            return [(row.kind, row.state, row.title) for row in sheet.rows()]


def test_a_turn_is_seen_and_ends_as_it_is_stored(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: "line 7" in on.text)
        await on.until(lambda: "running" in on.lines[-1])
        assert on.sheet.rows.nested(1).row.state == "running"
        await on.settled()
        await on.until(lambda: "turn completed" in on.lines[-1])
        rows = on.live.running.rows
        seen.extend(
            (row.kind, row.state, row.title) for row in (rows.nested(at).row for at in range(len(rows)))
        )
        assert "done with it" in on.text
        await on.press("q")
        await on.until(lambda: not on.app.is_running)

    seen: list[tuple[str, str, str]] = []
    running = run(
        tmp_path,
        test,
        turn=[
            {"call": "c1", "title": "make all", "input": {"command": "make all"}},
            {"output": "c1", "text": "".join(f"line {number}\n" for number in range(8))},
            {"sleep": 1.0},
            {"done": "c1", "status": "completed", "output": "built"},
            {"say": "done with it"},
        ],
    )
    assert running.closed is not None
    assert seen == stored_rows(running.closed.bundle)
    assert [kind for kind, _, _ in seen] == ["message", "command", "terminal", "message"]


ASK = [
    {"call": "c1", "title": "rm -rf build", "input": {"command": "rm -rf build"}},
    {"ask": "c1", "options": ["allow_once", "allow_always", "reject_once"]},
    {"done": "c1", "status": "completed", "output": "gone"},
    {"say": "ok"},
]


@pytest.mark.parametrize(
    ("keys", "decision"), [("1", "allow_once"), ("jj", "reject_once"), ("3", "reject_once")]
)
def test_a_permission_is_answered_in_its_place(tmp_path: Path, keys: str, decision: str) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: bool(on.panel.asks))
        await on.until(lambda: "1 waiting" in on.lines[-1] and "allow_always" in on.text)
        await on.until(lambda: "1-9" in on.text)
        await on.press(*keys)
        if not keys.isdigit():
            await on.press("enter")
        await on.settled()
        assert not on.panel.asks
        assert "waiting" not in on.lines[-1]
        assert on.live.focused is on.sheet

    running = run(tmp_path, test, turn=ASK)
    assert isinstance(running.result, Completed)
    assert running.closed is not None
    stream = next((running.closed.bundle / "streams").iterdir()).read_text()
    records = [json.loads(line) for line in stream.splitlines()]
    asked = [record for record in records if record["type"] == "permission"][-1]
    assert (asked["decision"], asked["decidedBy"]) == (decision, "user")


def test_a_secret_is_typed_hidden_and_never_stored(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: bool(on.panel.asks))
        await on.press(*"hunter2")
        assert "hunter2" not in on.text
        assert "•••" in on.text or "***" in on.text or on.live.query_one("#answer").password  # type: ignore[attr-defined]
        await on.press("enter")
        await on.settled()
        assert "hunter2" not in on.text
        assert "you said" in on.text
        assert on.live.query_one("#answer").value == ""  # type: ignore[attr-defined]

    running = run(tmp_path, test, turn=[{"secret": "token", "echo": True}])
    assert isinstance(running.result, Completed)
    assert running.closed is not None
    files = [path for path in running.closed.bundle.rglob("*") if path.is_file()]
    assert files
    for path in files:
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        assert b"hunter2" not in data, path


def test_the_next_prompt_begins_the_next_turn(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.settled()
        await on.press("i", *"again", "enter")
        await on.until(lambda: on.text.count("echo") == 2 and "again" in on.text)
        await on.settled()
        assert on.text.count("turn completed") == 1

    run(tmp_path, test, turn=[{"say": "echo"}])


def test_a_prompt_can_be_asked_for_first(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: on.live.has_class("-prompt"))
        await on.press(*"hello", "enter")
        await on.settled()
        assert "hello" in on.text

    run(tmp_path, test, prompt=None, turn=[{"say": "echo"}])


def test_words_for_a_running_turn_are_passed_on_or_refused_aloud(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: on.live.running.busy)
        await on.press("i", *"faster", "enter")
        await on.until(lambda: "not passed on: the agent has no such control" in on.lines[-1])

    run(tmp_path, test, turn=[{"sleep": 1.5}])


def test_interrupt(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: "make all" in on.text)
        await on.press("ctrl+x")
        assert "interrupting" in on.text
        await on.settled()
        await on.until(lambda: "turn interrupted" in on.lines[-1])
        assert on.sheet.rows.nested(1).row.state == "unconfirmed"
        await on.press("ctrl+x")
        await on.until(lambda: "no turn is running" in on.lines[-1])
        assert on.live.running.closed is None

    running = run(
        tmp_path,
        test,
        turn=[{"call": "c1", "title": "make all", "input": {}}, {"await": "cancel"}, {"end": "cancelled"}],
    )
    assert isinstance(running.result, Interrupted)


def test_the_second_press_stops_a_deaf_agent(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: "make all" in on.text)
        await on.press("ctrl+x", "ctrl+x")
        await on.until(lambda: on.live.running.closed is not None)
        await on.until(lambda: "turn lost" in on.lines[-1])
        await on.until(lambda: on.sheet.rows.nested(1).row.state == "unconfirmed")

    running = run(
        tmp_path,
        test,
        deaf=["cancel"],
        turn=[{"call": "c1", "title": "make all", "input": {}}, {"sleep": 60}],
    )
    assert isinstance(running.result, Lost)


def test_a_request_that_ends_with_the_turn_says_so(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: bool(on.panel.asks))
        assert "1 waiting" in on.lines[-1]
        await on.press("escape")
        assert on.live.focused is on.sheet
        await on.press("ctrl+x")
        await on.settled()
        await on.until(lambda: not on.panel.asks)
        assert "waiting" not in on.lines[-1]

    run(tmp_path, test, turn=[*ASK[:2], {"end": "cancelled"}])


def test_nothing_is_stolen_from_a_reader(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: len(on.sheet) > 12)
        await on.press("g", "j", "j")
        before, title, top = (
            [line[:78].rstrip() for line in on.lines[1:-1]],
            on.title,
            on.sheet.scroll_offset.y,
        )
        count = len(on.sheet)
        await on.until(lambda: len(on.sheet) > count + 5)
        assert (on.title, on.sheet.scroll_offset.y) == (title, top)
        assert [line[:78].rstrip() for line in on.lines[1:-1]] == before
        assert "following paused" in on.lines[-1]
        await on.press("end")
        await on.until(lambda: "following paused" not in on.lines[-1])
        count = len(on.sheet)
        await on.until(lambda: len(on.sheet) > count)
        assert on.sheet.cursor == len(on.sheet) - 1

    steps: list[dict[str, Any]] = []
    for number in range(60):
        name = f"c{number}"
        steps += [
            {"call": name, "title": f"step {number}", "input": {"command": f"step {number}"}},
            {"done": name, "status": "completed", "output": "a\nb\nc"},
            {"sleep": 0.12},
        ]
    run(tmp_path, test, size=(80, 20), turn=steps)


def test_an_agent_that_is_not_there_is_one_clear_word(tmp_path: Path) -> None:
    running = Running(
        Wanted(
            agent=FAKE,
            command=("/nowhere/agent",),
            wish=Wish(cwd=str(tmp_path)),
            prompt="x",
            out=tmp_path / "out",
        )
    )
    problems = []

    async def test(on: Driven) -> None:
        await on.until(lambda: on.app.problem is not None)
        problems.append(str(on.app.problem))

    drive(lambda looks: LiveScreen(running, looks=looks), test)
    assert problems == ["fake: not found: /nowhere/agent"]


def test_the_session_pane_counts_a_running_turn(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: bool(on.panel.asks))
        await on.press("escape", "s")
        await on.until(lambda: any(line.strip().startswith("1 call") for line in on.lines[:-1]), 8)

    run(tmp_path, test, turn=ASK)


def test_a_request_says_whether_keys_go_to_it(tmp_path: Path) -> None:
    steps = [
        {"call": "c1", "title": "make", "input": {"command": "make"}},
        {"ask": "c1", "title": "make", "options": ["allow_once", "reject_once"]},
    ]

    async def test(on: Turned) -> None:
        await on.until(lambda: "▌ 1  allow_once" in on.text)
        await on.press("escape")
        await on.until(lambda: "Tab: to this request" in on.text)
        assert "▌ 1" not in on.text
        await on.press("tab")
        await on.until(lambda: "▌ 1  allow_once" in on.text)
        assert "Esc: later" in on.text
        await on.press("1")
        await on.settled()

    run(tmp_path, test, turn=steps)


def test_a_reader_who_follows_keeps_the_row_that_they_chose(tmp_path: Path) -> None:
    steps = [
        {"call": "c1", "title": "make", "input": {"command": "make"}},
        {"ask": "c1", "title": "make", "options": ["allow_once", "reject_once"]},
        {"say": "Done."},
    ]

    async def test(on: Turned) -> None:
        await on.until(lambda: "▌ 1  allow_once" in on.text)
        await on.press("escape", "k")
        chosen = on.title
        assert chosen == "make"
        await on.press("e")  # the pane takes room from the rows
        await on.until(lambda: "tool_call" in on.text)
        assert on.title == chosen
        assert "following paused (End)" in on.lines[-1]
        await on.press("escape", "tab", "1")
        await on.settled()
        await on.until(lambda: "turn completed" in on.lines[-1])
        assert on.title == chosen
        await on.press("end")
        assert "paused" not in on.lines[-1]

    run(tmp_path, test, turn=steps, size=(100, 40))


def test_a_request_that_the_agent_takes_back_says_so(tmp_path: Path) -> None:
    asked = {
        "jsonrpc": "2.0",
        "id": "q9",
        "method": "session/request_permission",
        "params": {
            "sessionId": "fake-session",
            "toolCall": {"toolCallId": "c1", "title": "make"},
            "options": [{"optionId": "a", "name": "Allow", "kind": "allow_once"}],
        },
    }
    steps = [
        {"call": "c1", "title": "make", "input": {"command": "make"}},
        {"frame": asked},
        {"sleep": 1.5},
        {"frame": {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "q9"}}},
        {"await": "cancel"},
    ]

    async def test(on: Turned) -> None:
        await on.until(lambda: "1  Allow" in on.text and "1 waiting" in on.lines[-1])
        await on.until(lambda: "1  Allow" not in on.text)
        assert "no longer open: the agent took it back (cancelled)" in on.lines[-1]
        assert "waiting" not in on.lines[-1]
        await on.press("ctrl+x")
        await on.settled()

    acp = next(agent for agent in LIVE if agent.name == "acp")
    run(tmp_path, test, turn=steps, agent=acp)


def test_control_c_leaves_and_stops_the_agent(tmp_path: Path) -> None:
    async def test(on: Turned) -> None:
        await on.until(lambda: "make" in on.text)
        await on.press("ctrl+c")
        await on.until(lambda: not on.app.is_running)

    running = run(tmp_path, test, turn=[{"call": "c1", "title": "make"}, {"await": "cancel"}])
    assert running.closed is not None
    assert running.closed.problems == ()
    assert running.bundle is not None
    assert "make" in [title for _, _, title in stored_rows(running.bundle)]
