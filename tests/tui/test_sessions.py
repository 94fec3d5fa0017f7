"""The list of sessions: when each began, who worked, what was asked, how its calls stand; of databases too."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tests.tui.driving import EXAMPLES, Driven, drive
from tests.tui.test_keys import call, result, said, stream

from callsheet.faces.tui.sessions_screen import FolderShelf, SessionsScreen, entry_lines
from callsheet.faces.tui.shelf import Counts, Entry, entries_in
from callsheet.library.briefs import brief_of_bundle
from callsheet.library.importing import find_sessions, import_session
from callsheet.paint import plain
from callsheet.records import FORMAT
from callsheet.records.bundle import Bundle, Manifest, StreamEntry, write_manifest
from callsheet.wire.locks import FolderLock

HEAD: dict[str, Any] = {
    "type": "session",
    "format": "callsheet/1",
    "agent": {"name": "codex", "version": "9"},
}


def bundle(folder: Path, name: str, records: list[dict[str, Any]], **more: Any) -> Path:
    made = folder / name
    (made / "streams").mkdir(parents=True)
    stream(made / "streams", [HEAD, *records])
    write_manifest(
        made, Manifest(format=FORMAT, streams=[StreamEntry(id="s", file="streams/s.jsonl")], **more)
    )
    return made


def test_a_bundle_is_listed_by_when_its_session_began(tmp_path: Path) -> None:
    for name, day in (("a", 2), ("b", 9), ("c", 5)):
        at = {"ts": f"2026-03-0{day}T10:20:30Z"}
        bundle(tmp_path, name, [said("user", f"Task {name}.") | at, call(1) | at, result(1) | at])
    bundle(tmp_path, "d", [said("user", "Without a time.")])
    os.utime(tmp_path / "d" / "streams" / "s.jsonl", (10, 10))
    os.utime(tmp_path / "d" / "manifest.json", (86_400 * 400, 86_400 * 400))

    async def test(on: Driven) -> None:
        await on.until(lambda: on.text.count("1 call ") == 3 and "Task b" in on.lines[1])
        titles = [line.strip("▌ ") for line in on.lines[1:9:2]]
        assert titles == [
            "2026-03-09 10:20  Task b.",
            "2026-03-05 10:20  Task c.",
            "2026-03-02 10:20  Task a.",
            "saved 1971-02-05  Without a time.",
        ]
        assert "Codex 9 · 1 call" in on.lines[2]
        assert on.lines[1].startswith("▌")  # whoever chose nothing is at the first

    drive(tmp_path, test)


def test_a_start_that_failed_is_called_so(tmp_path: Path) -> None:
    bundle(tmp_path, "a", [{"type": "unmapped", "nativeType": "recorder"}])
    bundle(tmp_path, "b", [call(1), result(1)])

    async def test(on: Driven) -> None:
        await on.until(lambda: "0 calls" in on.text and "1 call " in on.text)
        assert "nothing ran" in on.text
        assert "no prompt is recorded" in on.text

    drive(tmp_path, test)


def test_every_session_of_a_database_has_its_counts(tmp_path: Path) -> None:
    folder = tmp_path / "openclaw"
    shutil.copytree(EXAMPLES / "openclaw", folder)
    entries = entries_in((folder, None))
    assert len({entry.path for entry in entries}) < len(entries)  # several of one file
    counts = Counts()
    for entry in entries:
        counts.put(entry)
    calls = {
        session.native_id: brief_of_bundle(
            Bundle(import_session(adapter, session, tmp_path / "out").bundle), count=True
        ).calls
        for adapter, session in find_sessions(folder, None)
    }
    assert len(calls) == len(entries)
    assert {entry.name: entry.tally.calls for entry in entries if entry.tally} == calls
    # One that was written anew is read alone.
    first = entries[0]
    before, first.mark, first.tally = first.tally, (first.mark[0] + 1, first.mark[1]), None
    counts.put(first)
    assert first.tally == before

    async def test(on: Driven) -> None:
        await on.until(lambda: f"{sum(calls.values())} calls" in on.lines[-1])
        assert on.text.count("OpenClaw 2026.9.6") == len(entries)
        await on.press("enter")
        await on.read()
        assert on.lines[-1].startswith(tuple(f"{count} calls" for count in calls.values()))

    drive(folder, test)


def test_a_session_that_is_being_recorded_counts_live(tmp_path: Path) -> None:
    made = bundle(tmp_path, "a", [said("user", "Go on.")], recording=True)
    lock = FolderLock(made)

    async def test(on: Driven) -> None:
        await on.until(lambda: "running · Codex 9 · 0 calls" in on.text)
        ask = {"type": "permission", "requestId": "q", "subject": {"callId": "c1"}}
        stream(made / "streams", [HEAD, said("user", "Go on."), call(1), result(1), call(2), ask])
        await on.until(lambda: "2 calls · 1 waiting" in on.lines[2])
        await on.until(lambda: "1 waiting" in on.lines[-1])
        lock.release()
        await on.until(lambda: "running" not in on.text)
        await on.until(
            lambda: "2 calls · 1 undecided" in on.lines[2]
        )  # nobody is there to be answered any more
        await on.until(lambda: "2 calls · 1 undecided" in on.lines[-1])

    drive(lambda looks: SessionsScreen(FolderShelf((tmp_path, None)), looks=looks), test)


def test_a_hostile_name_is_harmless_and_fits() -> None:
    entry = Entry(path=Path("/x/\x1b]0;y\x07"), mark=(0, 0), name="a\x1b[2J\u202e" * 30, why="no\x1b[2J")
    for line in entry_lines(entry, 60):
        assert "\x1b" not in plain(line)
        assert len(plain(line)) <= 60


def test_several_places_are_counted_where_they_do_not_fit(tmp_path: Path) -> None:
    folders = [tmp_path / f"{name * 40}" for name in "abc"]
    for folder in folders:
        folder.mkdir()

    async def test(on: Driven) -> None:
        await on.until(lambda: "no sessions found" in on.text)
        assert "in 3 places: " in on.lines[0]
        assert on.lines[0].endswith("…")

    shelf = FolderShelf(*((folder, None) for folder in folders))
    drive(lambda looks: SessionsScreen(shelf, looks=looks), test, size=(60, 20))
