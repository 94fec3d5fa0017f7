"""Following what agents write, in the workbench: the library's watcher says when, and what happened to a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.native.t3code.conftest import State
from tests.tui.driving import CLAUDE, Driven, drive

from callsheet.faces.tui.app import screen_of
from callsheet.faces.tui.sessions_screen import FolderShelf, SessionsScreen
from callsheet.faces.tui.sheet_screen import SheetScreen
from callsheet.faces.tui.stored import Stored

NAME = "858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
LINES = (CLAUDE / NAME).read_bytes().splitlines(keepends=True)


def watched(path: Path, **more: object) -> Stored:
    return Stored(path, growing=True, **more)  # type: ignore[arg-type]


def test_what_happened_to_the_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"".join(LINES))

    async def test(on: Driven) -> None:
        await on.read()
        count = len(on.sheet)
        path.write_bytes(b"".join(LINES[:8]))
        await on.until(lambda: len(on.sheet) < count)
        await on.until(lambda: "is shorter than it was" in on.lines[-1])
        path.unlink()
        await on.until(lambda: "is no longer there" in on.lines[-1])
        assert len(on.sheet) < count  # what was read stays
        path.write_bytes(b"".join(LINES))
        await on.until(lambda: len(on.sheet) == count)

    drive(screen_of(watched(path)), test)


@pytest.mark.parametrize(("kind", "said"), [(None, "waiting"), ("claude-code", "0 calls")])
def test_a_session_whose_first_line_is_not_there_yet_is_waited_for(
    tmp_path: Path, kind: str | None, said: str
) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"")

    async def test(on: Driven) -> None:
        await on.until(lambda: said in on.lines[-1])
        path.write_bytes(b"".join(LINES))
        await on.until(lambda: isinstance(on.app.screen, SheetScreen) and len(on.sheet) > 0)

    drive(screen_of(watched(path, kind=kind)), test)


def test_of_a_database_only_the_session_that_changed_is_read_again(tmp_path: Path) -> None:
    state = State(tmp_path / "userdata-v2" / "state.sqlite", 2)
    state.sql("PRAGMA journal_mode = WAL")
    for name in ("th-1", "th-2"):
        state.thread(name)
        state.item("command_execution", thread=name, input=f"ls {name}", output="a", exitCode=0)
    shelf = FolderShelf((tmp_path, None), growing=True)
    counted: list[str | None] = []
    count = shelf.count

    def noted(entry: object) -> None:
        counted.append(getattr(entry, "stream", None))
        count(entry)  # type: ignore[arg-type]

    shelf.count = noted  # type: ignore[method-assign]

    async def test(on: Driven) -> None:
        await on.until(lambda: "2 calls" in on.lines[-1])
        assert sorted(map(str, counted)) == ["th-1", "th-2"]
        state.item("command_execution", "running", thread="th-2", input="sleep 9", id="item-x")
        await on.until(lambda: "3 calls" in on.lines[-1])
        assert counted[2:] == ["th-2"]
        await on.until(lambda: "2 calls" in on.lines[2])  # what was written last comes first
        await on.press("g", "enter")
        await on.read()
        assert "following" in on.lines[-1]
        assert "2 calls" in on.lines[-1]
        state.item("command_execution", "running", thread="th-2", input="sleep 10", id="item-y")
        await on.until(lambda: "sleep 10" in on.text)

    try:
        drive(lambda looks: SessionsScreen(shelf, looks=looks), test)
    finally:
        state.close()
