"""The filter tells what is chosen, and where the reader is, by characters: colours may not be there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tui.driving import Driven, drive
from tests.tui.test_keys import session, stream

from callsheet.faces.tui.filter_screen import FilterScreen


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return stream(tmp_path, session())


def lines_of(on: Driven) -> dict[str, str]:
    """The lines of the choices, by what they are about."""
    found = [line.strip(" │") for line in on.lines if "[ ]" in line or "[x]" in line]
    return {line.split("]")[1].rsplit(maxsplit=1)[0].strip(): line for line in found}


def test_ticks_and_the_line_are_characters(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("F")
        await on.until(lambda: isinstance(on.app.screen, FilterScreen))
        assert all("[x]" in line for line in lines_of(on).values())
        assert "all rows are shown" in on.text
        await on.press("space")
        assert lines_of(on)["read"].startswith("▌ [ ]")
        await on.press("j")
        assert lines_of(on)["command"].startswith("▌ [x]")
        assert lines_of(on)["read"].startswith("[ ]")
        assert "only command, change" in on.text
        await on.press("0", "end", "space")
        assert lines_of(on)["⊘ declined"].startswith("▌ [x]")
        assert "only declined (no kind chosen: all kinds)" in " ".join(line.strip(" │") for line in on.lines)
        await on.press("escape")
        assert len(on.sheet) == 64

    for looks in ("dark", "plain"):
        drive(source, test, looks=looks)


@pytest.mark.parametrize("size", [(60, 12), (80, 24)])
def test_every_choice_can_be_reached_on_a_small_screen(source: Path, size: tuple[int, int]) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("F", "end")
        await on.until(lambda: "▌ [x] ⊘ declined" in on.text)
        await on.press("home")
        await on.until(lambda: "▌ [x] read" in on.text and "Kinds" in on.text)

    drive(source, test, size=size)


def test_a_click_chooses(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("F", "0")
        await on.until(lambda: "nothing" not in on.text and "[ ]" in on.text)
        y = next(number for number, line in enumerate(on.lines) if "] command" in line)
        await on.pilot.click(offset=(on.lines[y].index("] command") + 3, y))
        await on.until(lambda: "▌ [x] command" in on.text)

    drive(source, test)
