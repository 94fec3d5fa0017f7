"""Bug reports about rows on a screen: what must be seen, and what must not, held on the workbench itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tui.driving import Driven, drive

from callsheet.paint.row import SPINNER

CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "011-acp-left-in-progress": (("unconfirmed",), ("✗", "●", "cancelled tool", *SPINNER)),
    "013-acp-v1-two-tool-call-same-id": (("git diff", "1 call "), ("2 calls",)),
    "047-stream-partials-then-final": (("Hello there", "ls -a", "1 call "), ("Hello thereHello",)),
    "049-stream-unknown-event-types": (("1 call ",), ("future_event", "rate_limit", "tool_progress")),
    "055-appserver-thought-no-duration": (("Listing files",), (" ms", "0 s", "Thought for")),
    "063-claude-html-injection": (("<",), ()),
    "073-appserver-turn-diff-not-a-call": (("a.txt", "1 declined", "2 calls"), ()),
    "075-render-markup-in-command": (("[bold]x[/bold]", "[red]not a colour[/red]", "'[/]'"), ()),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("width", [60, 120])
def test_what_a_case_demands_of_the_screen(shared: Path, name: str, width: int) -> None:
    seen, unseen = CASES[name]
    folder = shared / "cases" / name
    facts: dict[str, Any] = json.loads((folder / "case.json").read_text())["expected"]["facts"]
    source = folder / json.loads((folder / "case.json").read_text())["input"][0]

    async def test(on: Driven) -> None:
        await on.read()
        text = on.text
        for part in seen:
            assert part in text + " ", text
        for part in unseen:
            assert part not in text, text
        if "calls" in facts:
            shown = on.screen.tally().calls
            assert shown == facts["calls"]
        if name.startswith("047"):
            assert text.count("Hello there") == 1
        # Everything opened: nothing of it is lost, and nothing breaks.
        for _ in range(len(on.sheet)):
            await on.press("enter", "j")
        await on.press("p", "a", "z", "G", "g")
        assert on.screen.is_current

    drive(source, test, size=(width, 45))
