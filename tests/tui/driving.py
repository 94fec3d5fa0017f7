"""Driving the workbench without a terminal: what is on the screen, and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from callsheet.faces.tui.app import First, Workbench, screen_for
from callsheet.faces.tui.canvas import SheetView
from callsheet.faces.tui.sheet_screen import SheetScreen

EXAMPLES = Path(__file__).parents[2] / "examples"
CLAUDE = EXAMPLES / "claude-code/projects/-home-dev-acme-app"


class Driven:
    """The program as a test sees it."""

    def __init__(self, app: Workbench, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def lines(self) -> list[str]:
        """The lines of the screen."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    @property
    def screen(self) -> SheetScreen:
        """The screen of the session."""
        assert isinstance(self.app.screen, SheetScreen), self.app.screen
        return self.app.screen

    @property
    def sheet(self) -> SheetView:
        """Its rows."""
        return self.screen.sheet

    @property
    def title(self) -> str:
        """The title of the selected row."""
        at = self.sheet.at
        assert at is not None
        return self.sheet.row(at).title

    async def press(self, *keys: str) -> None:
        """Presses keys and waits until they were handled."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, true: Callable[[], bool], seconds: float = 90) -> None:
        """Waits until something is true."""
        for _ in range(int(seconds / 0.02)):
            if true():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"it never came true; on the screen:\n{self.text}")

    async def read(self) -> None:
        """Waits until the whole session is read."""
        await self.until(
            lambda: bool(self._sheets()) and not self._sheets()[0].provisional and len(self.sheet) > 0
        )

    def _sheets(self) -> list[SheetView]:
        return list(self.app.screen.query(SheetView)) if self.app.screen_stack else []


def drive(
    first: First | Path,
    test: Callable[[Driven], Awaitable[None]],
    *,
    size: tuple[int, int] = (100, 30),
    looks: str = "dark",
) -> None:
    """Runs the program, and a test that drives it."""

    async def run() -> None:
        made = screen_for(first) if isinstance(first, Path) else first
        app = Workbench(made, looks=looks)
        async with app.run_test(size=size) as pilot:
            await test(Driven(app, pilot))
            await pilot.pause()

    asyncio.run(run())
