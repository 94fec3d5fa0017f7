"""Real files, whole: nothing is lost, every ref is true, every rule holds, twice the same.

Over captures of real agents and over copies of public session files of many versions (``check_harness``), and over
what the import engine says of a whole folder.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from callsheet.harness.claude_code import CLAUDE_CODE
from callsheet.library.importing import Failure, Imported, import_sources
from callsheet.testing.check_harness import check_harness
from callsheet.testing.desk import Files, read_session
from tests.native.claude_code.conftest import Run, Sheet


def test_captures_keep_the_promises(version: str, runs: list[Run]) -> None:
    for run in runs:
        assert check_harness(CLAUDE_CODE, run.folder / "projects") == [], run.name


def test_public_files_keep_the_promises(shared: Path) -> None:
    for folder in sorted((shared / "corpus" / "claude").iterdir()):
        assert check_harness(CLAUDE_CODE, folder) == [], folder.name


def test_every_file_of_a_folder_is_read_or_reported(shared: Path, tmp_path: Path) -> None:
    root = shared / "corpus" / "claude"
    told = list(import_sources([root], tmp_path / "out", native=False))
    read: set[str] = set()
    for one in told:
        if isinstance(one, Imported):
            manifest = json.loads((one.bundle / "manifest.json").read_bytes())
            read.update(source["path"] for source in manifest["sources"])
    reported = {one.path for one in told if isinstance(one, Failure)}
    assert read & reported == set()
    assert {str(path) for path in root.rglob("*") if path.is_file()} == read | reported
    bundles = [one.bundle for one in told if isinstance(one, Imported)]
    assert len(bundles) == len(set(bundles)), "a session took another one's place"


def public_sheets(shared: Path) -> list[tuple[str, Sheet]]:
    root = shared / "corpus" / "claude"
    files = Files.below(root)
    return [
        (session.main, Sheet(read_session(CLAUDE_CODE, session, files)))
        for session in CLAUDE_CODE.sessions(str(root), files)
    ]


def test_pairing_of_public_files(shared: Path) -> None:
    """What an independent count of the same files found (its index): calls, results, orphans, dangling calls.

    The index counts blocks by id in a single file. It counts a record written twice, and a call logged again, twice;
    here they are one. Files with such records are compared without them.
    """
    listed = {}
    for line in (shared / "corpus" / "index.jsonl").read_bytes().splitlines():
        entry = json.loads(line)
        if entry["harness"] == "claude" and entry["pairing"]["calls"] is not None:
            listed[entry["file"]] = entry["pairing"]
    root = shared / "corpus"
    compared: Counter[str] = Counter()
    for main, sheet in public_sheets(shared):
        for stream, source in stream_sources(sheet):
            name = str(Path(source).relative_to(root))
            if name not in listed:
                continue
            wanted = listed[name]
            told = sheet.tally(stream)
            unnamed = sum(
                "callId" not in result and "nativeCallId" not in result
                for result in sheet.of("tool_result", stream)
            )
            if wanted["dup_call"] or wanted["multi_result"] or unnamed:
                compared["left out"] += 1
                continue
            bangs = sum(call.get("requestedBy") == "user" for call in sheet.of("tool_call", stream))
            answers = sum(
                result["native"]["refs"][0]["role"] == "bang" for result in sheet.of("tool_result", stream)
            )
            found = (told.calls - bangs, told.results - answers, told.orphan)
            assert found == (wanted["calls"], wanted["results"], wanted["orphan"]), name
            assert told.ambiguous == 0, name
            assert told.dangling - (bangs - answers) == wanted["dangling"], name
            compared["compared"] += 1
    assert compared["compared"] > 100
    assert compared["left out"] < 10


def stream_sources(sheet: Sheet) -> list[tuple[str, str]]:
    """Each stream with the path of the file it was made from."""
    found = []
    for stream, records in sheet.streams.items():
        sources = records[0].get("sources")
        gone = any(record.get("reason") == "missing_file" for record in records)
        if sources and not gone and sources[0]["kind"] == "claude-code":
            found.append((stream, sources[0]["path"]))
    return found
