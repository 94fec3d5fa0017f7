"""Every key of the workbench, driven: what it does to the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.tui.driving import CLAUDE, Driven, drive
from textual.events import MouseScrollDown
from textual.geometry import Size

from callsheet.faces.tui.bar import Bar, Part
from callsheet.faces.tui.dialogs import HelpScreen
from callsheet.faces.tui.filters import Filter
from callsheet.faces.tui.keys import LIVE_HELP, SESSIONS_HELP, STORED_HELP, TURN
from callsheet.faces.tui.lines import LinesView
from callsheet.faces.tui.sessions_screen import FolderShelf, SessionsScreen, SessionsView
from callsheet.paint import Span, plain
from callsheet.records.bundle import Diagnostic

Records = list[dict[str, Any]]


def call(number: int, name: str = "Bash", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "callId": f"c{number}", "callIdSource": "native", "name": name, **more}


def result(number: int, status: str = "completed", text: str = "", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {
        "type": "tool_result",
        "callId": f"c{number}",
        "linkage": "exact",
        "status": status,
        "content": content,
        **more,
    }


def said(author: str, text: str) -> dict[str, Any]:
    return {"type": "message", "author": author, "content": [{"type": "text", "text": text}]}


def session(turns: int = 8) -> Records:
    """A session of a few rows of every sort, several times over."""
    records: Records = [
        {"type": "session", "format": "callsheet/1", "agent": {"name": "claude-code", "version": "2.1.200"}}
    ]
    for turn in range(turns):
        n = turn * 10
        records += [
            said("user", f"Please look at part {turn}."),
            call(n, input={"command": f"ls part{turn}"}),
            result(n, text="\n".join(f"file {line} of part {turn}" for line in range(30))),
            call(n + 1, "Read", input={"file_path": f"/app/part{turn}.py"}),
            result(n + 1, text="def parse(): ..."),
            call(n + 2, input={"command": f"make part{turn}"}),
            result(n + 2, "failed", text=f"no rule for part {turn}"),
            call(n + 3, input={"command": f"rm -r part{turn}"}),
            result(n + 3, "denied"),
            {
                "type": "permission",
                "requestId": f"q{turn}",
                "subject": {"callId": f"c{n + 3}"},
                "decision": "reject_once",
                "decidedBy": "user",
            },
            call(
                n + 4,
                "Edit",
                input={"file_path": f"/app/part{turn}.py", "old_string": "a", "new_string": "b"},
            ),
            result(n + 4, text="updated"),
            said("model", f"Part {turn} is done."),
        ]
    return records


def stream(folder: Path, records: Records, name: str = "s") -> Path:
    path = folder / f"{name}.jsonl"
    lines = [json.dumps({"seq": seq, "id": f"r{seq}", **record}) for seq, record in enumerate(records)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return stream(tmp_path, session())


def test_moving(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        assert on.title == "Please look at part 0."
        await on.pilot.pause(0.35)
        await on.press("k")
        assert "not found" not in on.lines[-1]
        await on.press("j")
        assert on.title == "ls part0"
        await on.press("down", "down")
        assert on.title == "make part0"
        await on.press("k", "up")
        assert on.title == "ls part0"
        await on.press("end")
        assert on.title == "Part 7 is done."
        assert "Part 7 is done." in on.text
        await on.press("home")
        assert on.title == "Please look at part 0."
        await on.pilot.pause(0.35)
        await on.press("k")
        assert "not found" not in on.lines[-1]
        await on.press("G")
        assert on.title == "Part 7 is done."
        await on.press("g")
        assert on.title == "Please look at part 0."
        await on.pilot.pause(0.35)
        await on.press("k")
        assert "not found" not in on.lines[-1]
        before = on.sheet.scroll_offset.y
        await on.press("pagedown")
        assert on.sheet.scroll_offset.y > before
        shown = on.title
        assert shown in on.text
        await on.press("space")
        assert on.sheet.scroll_offset.y > before + 30
        await on.press("pageup", "b")
        assert on.sheet.scroll_offset.y == before

    drive(source, test)


@pytest.mark.parametrize(
    ("key", "back", "titles"),
    [
        ("c", "C", ["ls part0", "/app/part0.py", "make part0"]),
        ("x", "X", ["make part0", "make part1", "make part2"]),
        ("d", "D", ["rm -r part0", "rm -r part1", "rm -r part2"]),
        ("r", "R", ["permission"] * 3),
        ("m", "M", ["/app/part0.py", "/app/part1.py", "/app/part2.py"]),
    ],
)
def test_jumps(source: Path, key: str, back: str, titles: list[str]) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        for title in titles:
            await on.press(key)
            assert on.title == title
            assert any(title in line and line.startswith("▌") for line in on.lines)
        await on.press(back)
        assert on.title == titles[1]
        await on.press("home", back)
        assert "before this row" in on.lines[-1]

    drive(source, test)


def test_open_a_row(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("j")
        assert "… 20 more lines" in on.text
        assert "file 12 of part 0" not in on.text
        await on.press("enter")
        assert "… 20 more lines" not in on.text
        assert "file 12 of part 0" in on.text
        await on.press("enter")
        assert "… 20 more lines" in on.text

    drive(source, test, size=(100, 50))


def test_fold_all(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("z")
        rows = [line for line in on.lines[1:-1] if line.strip()]
        assert len(rows) == 28
        assert all("│" not in line for line in rows)
        await on.press("j", "enter")
        assert "file 12 of part 0" in on.text
        await on.press("z")
        assert "… 20 more lines" in on.text

    drive(source, test)


def test_search(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("slash")
        await on.press(*"RULE FOR PART".replace(" ", "_"))
        await on.press("escape")
        await on.press("slash")
        for char in "no rule for":
            await on.press("space" if char == " " else char)
        await on.press("enter")
        await on.until(lambda: on.title == "make part0")
        await on.press("n")
        await on.until(lambda: on.title == "make part1")
        await on.press("N")
        await on.until(lambda: on.title == "make part0")
        await on.press("N")
        await on.until(lambda: on.title == "make part7")
        assert "from the other end" in on.lines[-1]

    drive(source, test)


def test_search_says_when_there_is_nothing(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("n")
        assert "nothing was searched for" in on.lines[-1]
        await on.press("slash", *"zebra", "enter")
        await on.until(lambda: "not found" in on.lines[-1])
        assert on.title == "Please look at part 0."
        await on.pilot.pause(0.35)
        await on.press("k")
        assert "not found" not in on.lines[-1]

    drive(source, test)


def test_filter(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("F", "0", "end", "space", "enter")
        await on.until(lambda: len(on.sheet) == 16)  # the denied calls, and the requests about them
        assert "only declined" in on.lines[-1]
        await on.press("u")
        assert len(on.sheet) == 64
        assert "only" not in on.lines[-1]
        await on.press("F", "0")
        assert "Enter: show these" in on.text
        words = " ".join(line.strip(" │") for line in on.lines)
        assert "all rows are shown (no kind chosen: all kinds, no state chosen: all states)" in words
        await on.press("enter")
        assert len(on.sheet) == 64
        assert "no filter: all rows are shown" in on.lines[-1]
        assert "only" not in on.lines[-1]

    drive(source, test)


def test_filter_of_one_kind_keeps_the_reader(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("x", "x", "x")
        await on.press("F", "0", "j", "space", "enter")
        await on.until(lambda: len(on.sheet) == 24, 3)
        assert on.title == "make part2"
        assert "only command" in on.lines[-1]
        await on.press("j")
        assert on.title == "rm -r part2"
        await on.press("escape")
        assert len(on.sheet) == 64
        assert on.title == "rm -r part2"

    drive(source, test)


def test_side_pane(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("j", "p")
        await on.until(lambda: "file 12 of part 0" in on.text)
        await on.press("j")
        await on.until(lambda: "def parse" in on.text)
        await on.press("p")
        assert not on.screen.pane.display

    drive(source, test, size=(140, 50))


def test_the_pane_is_scrolled_by_keys(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("j", "p", "o")
        assert on.screen.focused is on.screen.pane
        title = on.title
        await on.press("j", "j")
        assert (on.screen.pane.scroll_offset.y, on.title) == (2, title)
        await on.press("G")
        await on.until(lambda: "file 29 of part 0" in on.text)
        await on.press("g", "pagedown", "pageup")
        assert on.screen.pane.scroll_offset.y == 0
        await on.press("o", "j")
        assert on.title != title

    drive(source, test)


def test_session_pane(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("s")
        await on.until(lambda: "40 calls · 24 completed · 8 failed · 8 declined" in on.text)

    drive(source, test)


def test_evidence_without_a_bundle_says_so(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("j", "e")
        await on.until(lambda: "has no native sources" in on.text)

    drive(source, test)


def test_copy(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("j", "y")
        assert on.app.clipboard == "ls part0"
        assert "copied 8 characters" in on.lines[-1]
        await on.press("Y")
        assert "file 12 of part 0" in on.app.clipboard

    drive(source, test)


def test_copied_text_holds_no_control(tmp_path: Path) -> None:
    evil = stream(
        tmp_path, [call(0, input={"command": "echo \x1b[201~;\u202erm -rf\r x"}), result(0, text="a\x07b")]
    )

    async def test(on: Driven) -> None:
        await on.read()
        for key in "yY":
            await on.press(key)
            assert on.app.clipboard.replace("\n", "").isprintable()

    drive(evil, test)


def test_audit_view_and_theme(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("t")
        assert (on.screen.looks, on.app.theme) == ("light", "callsheet-light")
        await on.press("t")
        assert (on.screen.looks, on.app.theme) == ("dark", "callsheet-dark")
        await on.press("a")
        assert "who asked: not recorded" in on.text

    drive(source, test)


def test_help_names_every_key(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("question_mark")
        assert isinstance(on.app.screen, HelpScreen)
        seen = on.text
        for _ in range(60):
            await on.press("j")
            seen += on.text
        for _, keys in STORED_HELP:
            for key in keys:
                assert f"  {key.shown:<12} {key.words[:20]}" in seen
        assert not any(key.words in seen for key in TURN)  # no agent runs
        await on.press("escape")
        assert on.screen.is_current

    drive(source, test, size=(100, 60))


@pytest.mark.parametrize("size", [(80, 24), (60, 20)])
def test_the_help_is_scrolled_by_keys_and_wheel(source: Path, size: tuple[int, int]) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("question_mark")
        view = on.app.screen.query_one(LinesView)
        last = view.max_scroll_y
        page = view.size.height
        assert last > page
        for key, at in (
            ("j", 1),
            ("down", 2),
            ("k", 1),
            ("up", 0),
            ("pagedown", page),
            ("pageup", 0),
            ("space", page),
            ("b", 0),
            ("end", last),
            ("home", 0),
            ("G", last),
            ("g", 0),
        ):
            await on.press(key)
            assert view.scroll_offset.y == at, key
        assert "the next row" in on.text
        await on.press("end")
        assert "provisional" in on.text
        await on.press("home")
        await on.pilot._post_mouse_events([MouseScrollDown], view)
        await on.until(lambda: view.scroll_offset.y > 0)
        for key in ("q", "question_mark", "escape"):
            await on.press(key)
            assert on.screen.is_current
            await on.press("question_mark")
            assert isinstance(on.app.screen, HelpScreen)

    drive(source, test, size=size)


def test_the_help_of_the_list_names_its_own_keys(tmp_path: Path) -> None:
    async def test(on: Driven) -> None:
        await on.until(lambda: "no sessions found" in on.lines[-1])
        await on.press("question_mark")
        assert isinstance(on.app.screen, HelpScreen)
        own = [key for _, keys in SESSIONS_HELP for key in keys]
        assert all(f"  {key.shown:<12} {key.words}" in on.text for key in own)
        others = [key for _, keys in LIVE_HELP for key in keys if key.keys not in {key.keys for key in own}]
        assert others
        assert not any(key.words in on.text for key in others)
        await on.press("q")
        assert isinstance(on.app.screen, SessionsScreen)

    drive(lambda looks: SessionsScreen(FolderShelf((tmp_path, None)), looks=looks), test, size=(100, 50))


def test_a_session_written_elsewhere_is_followed(tmp_path: Path) -> None:
    source = stream(tmp_path, session(2))

    async def test(on: Driven) -> None:
        await on.read()
        await on.press("j", "j")
        top, title = on.sheet.scroll_offset.y, on.title
        stream(tmp_path, session(3))
        await on.until(lambda: len(on.sheet) == 24)
        assert (on.sheet.scroll_offset.y, on.title) == (top, title)
        await on.press("f")
        assert on.title == "Part 2 is done."
        assert "following" in on.lines[-1]
        stream(tmp_path, session(5))
        await on.until(lambda: len(on.sheet) == 40)
        assert on.title == "Part 4 is done."
        await on.press("g")
        assert "following paused" in on.lines[-1]
        stream(tmp_path, session(6))
        await on.until(lambda: len(on.sheet) == 48)
        assert on.title == "Please look at part 0."
        await on.pilot.pause(0.35)
        await on.press("k")
        assert "not found" not in on.lines[-1]
        await on.press("f")
        assert "following" not in on.lines[-1]

    drive(source, test)


def test_what_agents_write_is_listed_and_followed(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-home-dev-app"
    project.mkdir(parents=True)
    lines = (CLAUDE / "858837b5-8915-443b-bfa2-93fd580a1421.jsonl").read_text().splitlines(keepends=True)
    file = project / "858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
    file.write_text("".join(lines[:12]))

    async def test(on: Driven) -> None:
        await on.until(lambda: "1 session" in on.lines[0] and "call" in on.lines[2])
        await on.press("enter")
        await on.read()
        count = len(on.sheet)
        assert "following" in on.lines[-1]
        file.write_text("".join(lines))
        await on.until(lambda: len(on.sheet) > count)
        await on.until(lambda: on.title == "Done.")
        await on.press("escape")
        await on.until(lambda: "3 calls" in on.lines[-1])

    shelf = FolderShelf((tmp_path / "projects", "claude-code"), growing=True)
    drive(lambda looks: SessionsScreen(shelf, looks=looks), test)


def test_quit(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("q")
        await on.until(lambda: not on.app.is_running)

    drive(source, test)


def test_mouse(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        y = next(y for y, line in enumerate(on.lines) if "ls part0" in line)
        await on.pilot.click(offset=(5, y))
        assert on.title == "ls part0"
        await on.pilot.click(offset=(5, y))
        await on.until(lambda: "… 20 more lines" not in on.text)

    drive(source, test)


def test_list_of_sessions(tmp_path: Path, source: Path) -> None:
    from callsheet.records import FORMAT
    from callsheet.records.bundle import Manifest, StreamEntry, write_manifest

    for name, turns in (("one", 2), ("two", 3)):
        bundle = tmp_path / "bundles" / name
        (bundle / "streams").mkdir(parents=True)
        stream(bundle / "streams", session(turns))
        write_manifest(bundle, Manifest(format=FORMAT, streams=[StreamEntry(id="s", file="streams/s.jsonl")]))

    async def test(on: Driven) -> None:
        await on.until(lambda: isinstance(on.app.screen, SessionsScreen) and on.text.count("declined") == 3)
        await on.until(lambda: "25 calls · 5 failed · 5 declined" in on.lines[-1])
        view = on.app.screen.query_one(SessionsView)
        await on.press("j", "k", "end", "home", "pagedown", "g")
        assert view.cursor == 0
        chosen = view.entries[0].path.name
        await on.press("enter")
        await on.read()
        assert on.lines[0].endswith(chosen)
        await on.press("q")
        assert isinstance(on.app.screen, SessionsScreen)
        # A session that goes on: the list counts it again by itself.
        grown = tmp_path / "bundles" / "one"
        stream(grown / "streams", session(9))
        write_manifest(grown, Manifest(format=FORMAT, streams=[StreamEntry(id="s", file="streams/s.jsonl")]))
        await on.until(lambda: "60 calls · 12 failed · 12 declined" in on.lines[-1])

    drive(tmp_path / "bundles", test)


def test_the_page_about_the_workbench_names_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs/workbench.md").read_text(encoding="utf-8")
    for _, keys in (*LIVE_HELP, *SESSIONS_HELP):
        for key in keys:
            assert f"| `{key.shown}` | {key.words} |" in page


def test_no_key_means_two_things() -> None:
    for help_ in (STORED_HELP, LIVE_HELP, SESSIONS_HELP):
        tables = [keys for _, keys in help_]
        names = [name for keys in tables for key in keys for name in key.keys.split(",")]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("wide", [80, 60])
def test_a_folder_without_sessions_says_so(tmp_path: Path, wide: int) -> None:
    async def test(on: Driven) -> None:
        await on.until(lambda: "no sessions found in this folder" in on.lines[-1])
        assert "looking" not in on.text

    drive(tmp_path, test, size=(wide, 30))


def test_search_counts_the_places(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        await on.press("slash", *"rm -r part", "enter")
        await on.until(lambda: " of " in on.lines[-1])
        first, _, total = on.lines[-1].partition(" · ")[0].partition(" of ")
        assert (first, int(total) > 1) == ("1", True)
        await on.press("n")
        await on.until(lambda: on.lines[-1].startswith(f"2 of {total}"))
        await on.press("N", "N")
        await on.until(lambda: on.lines[-1].startswith(f"{total} of {total}, from the other end"))

    drive(source, test)


def test_a_filter_uses_the_words_of_the_rows() -> None:
    assert Filter(kinds=frozenset(("file_change",))).words() == "change"


@pytest.mark.parametrize("wide", [60, 80])
def test_the_bar_keeps_what_matters(wide: int) -> None:
    class Sized(Bar):
        size = Size(wide, 1)

    bar = Sized("plain")
    said = "a turn is running; q again stops it and leaves"
    counts = [Part(Span(words), rank) for words, rank in (("14 calls", 4), ("1 waiting", 1), ("? help", 3))]
    right = [Part(Span("context 10/1,000"), 6), Part(Span("following"), 5), Part(Span("21/21"), 3)]
    bar.put([Part(Span(said), 0, "end"), *counts], right)
    text = plain(bar.line())
    assert len(text) <= wide
    assert text.startswith(said)
    assert "1 waiting" in text
    bar.put(counts, right)
    text = plain(bar.line())
    assert len(text) <= wide
    assert all(words in text for words in ("14 calls · 1 waiting · ? help", "following", "21/21"))
    assert ("context" in text) == (wide == 80)
    bar.put([Part(Span("x" * 100), 0, "end")], right)
    assert plain(bar.line()) == "x" * (wide - 1) + "…"


def test_the_session_pane_names_keys_and_whole_commands(source: Path) -> None:
    async def test(on: Driven) -> None:
        await on.read()
        shown = on.screen.shown
        shown.doubts = [Diagnostic(code="BAD_JSON", message="line 3 is no JSON")]
        shown.hidden = {"harness_messages": 2}
        await on.press("s")
        assert "1 remark on the sources (a)" in on.text
        assert "2 messages of the harness (callsheet show --audit-view)" in on.text
        await on.press("a")
        assert "line 3 is no JSON" in on.text
        assert "(a)" not in on.text

    drive(source, test)
