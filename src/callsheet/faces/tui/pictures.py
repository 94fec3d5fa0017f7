"""Pictures of the workbench for the documents, made by the workbench itself.

``python -m callsheet.faces.tui.pictures [FOLDER]`` writes SVG files into ``docs/pictures``. The sessions are those of
``examples/`` and a scripted turn of the fake agent; nothing is drawn that the program does not draw.

Must never know: what a row says.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from callsheet.faces.tui.app import First, Workbench, screen_of
from callsheet.faces.tui.canvas import SheetView
from callsheet.faces.tui.live_screen import LiveScreen
from callsheet.faces.tui.running import Running, Wanted
from callsheet.faces.tui.sessions_screen import FolderShelf, SessionsScreen, SessionsView
from callsheet.faces.tui.stored import Stored
from callsheet.seam import Wish
from callsheet.testing.fake import FAKE, fake_command

FOLDER = Path("docs/pictures")
CLAUDE = Path("examples/claude-code/projects/-home-dev-acme-app")
CODEX = Path("examples/codex/sessions/2026/11/30")
SCRIPT: list[dict[str, Any]] = [
    {"think": "The build fails because a directory is missing."},
    {"say": "I will run the build and see."},
    {"call": "c1", "title": "make all", "input": {"command": "make all"}},
    {"output": "c1", "text": "".join(f"cc -c part{number}.c\n" for number in range(14))},
    {"done": "c1", "status": "failed", "output": "part13.c: no such file"},
    {"call": "c2", "title": "rm -r build && mkdir build", "input": {"command": "rm -r build && mkdir build"}},
    {
        "ask": "c2",
        "title": "rm -r build && mkdir build",
        "options": ["allow_once", "allow_always", "reject_once"],
    },
]

Test = Callable[[Workbench, Pilot[Any]], Awaitable[None]]


async def _settle(app: Workbench, pilot: Pilot[Any], ready: Callable[[], bool]) -> None:
    for _ in range(1500):
        if app.screen_stack and ready():
            break
        await pilot.pause(0.02)
    await pilot.pause(0.3)


def _is_read(app: Workbench) -> bool:
    for view in app.screen.query(SessionsView):
        return bool(view.entries) and all(entry.tally is not None for entry in view.entries)
    sheets = list(app.screen.query(SheetView))
    return bool(sheets) and len(sheets[0]) > 0 and not sheets[0].provisional


async def picture(
    path: Path, first: First, *keys: str, looks: str = "dark", size: tuple[int, int] = (110, 32)
) -> None:
    """Writes one picture: a screen, after some keys."""
    app = Workbench(first, looks=looks)
    async with app.run_test(size=size) as pilot:
        await _settle(app, pilot, lambda: _is_read(app))
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.2)
        await pilot.pause(0.6)
        path.write_text(app.export_screenshot(title="callsheet", simplify=True), encoding="utf-8")


async def _live(path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="callsheet-") as folder:
        wanted = Wanted(
            agent=FAKE,
            command=fake_command(turn=SCRIPT),
            wish=Wish(cwd=folder),
            prompt="Why does the build fail?",
            out=Path(folder) / "out",
        )
        running = Running(wanted)
        app = Workbench(lambda looks: LiveScreen(running, looks=looks), looks="dark")
        async with app.run_test(size=(110, 34)) as pilot:
            await _settle(app, pilot, lambda: bool(running.rows.waiting))
            path.write_text(app.export_screenshot(title="callsheet", simplify=True), encoding="utf-8")


async def stored_pictures(folder: Path) -> None:
    """Writes those of stored sessions: they show the same whenever they are made."""
    folder.mkdir(parents=True, exist_ok=True)
    session = screen_of(Stored(sorted(CLAUDE.glob("*.jsonl"))[0]))
    rollout = screen_of(Stored(sorted(CODEX.glob("*.jsonl"))[0]))
    await picture(folder / "sheet.svg", session, "c")
    await picture(folder / "evidence.svg", session, "c", "e", size=(130, 30))
    await picture(folder / "session.svg", session, "s", size=(130, 30))
    await picture(folder / "filter.svg", session, "F", "j", "space", looks="plain", size=(80, 24))
    await picture(folder / "help.svg", session, "question_mark", size=(80, 30))
    await picture(folder / "light.svg", rollout, "c", looks="light")
    await picture(folder / "narrow.svg", rollout, "c", size=(60, 30))


async def pictures(folder: Path) -> None:
    """Writes all of them."""
    await stored_pictures(folder)
    shelf = FolderShelf((CLAUDE, None))
    await picture(folder / "sessions.svg", lambda looks: SessionsScreen(shelf, looks=looks))
    await _live(folder / "live.svg")


if __name__ == "__main__":
    asyncio.run(pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
