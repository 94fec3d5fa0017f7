"""Files beside a session that are another's, too large, too many, or gone before they were read."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from callsheet.harness.claude_code import family
from callsheet.harness.claude_code.stored import Reader
from callsheet.library.importing import Imported, import_sources
from callsheet.records.bundle import Bundle
from callsheet.rules import check_bundle
from tests.native.claude_code.conftest import SESSION, Made

OTHER = "0ddba11a-0000-4000-8000-00000000ffff"


def member(session: str, name: str, folder: str = "tool-results") -> str:
    return f"/home/dev/.claude/projects/-home-dev-app/{session}/{folder}/{name}"


def imported(folder: Path, out: Path) -> tuple[Imported, Bundle]:
    (one,) = import_sources([folder], out)
    assert isinstance(one, Imported), one
    bundle = Bundle(one.bundle)
    assert list(check_bundle(bundle)) == []
    return one, bundle


def records(bundle: Bundle, stream: str = SESSION) -> list[dict[str, Any]]:
    return [json.loads(line) for line in bundle.read(f"streams/{stream}.jsonl").splitlines()]


def session(folder: Path, **use: Any) -> Made:
    made = Made()
    made.prompt()
    made.call("toolu_p", input={"command": "cat big"})
    made.result("toolu_p", "<persisted-output>", toolUseResult={"stdout": "head", **use} if use else "x")
    made.said("Done.", message="msg_2")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{SESSION}.jsonl").write_bytes(made.data)
    return made


@pytest.mark.parametrize(
    ("path", "size", "good"),
    [
        (member(SESSION, "b1.txt"), None, True),
        (member(SESSION, "b1.txt").replace("/", "\\"), None, True),
        (member(OTHER, "b1.txt"), 5, True),  # the folder was renamed since: the size speaks for it
        (member(OTHER, "b1.txt"), 6, False),
        (member(OTHER, "b1.txt"), None, False),
        (member(SESSION, "b1.txt", "elsewhere"), None, False),
        ("b1.txt", None, False),
    ],
)
def test_an_output_of_another_session_is_not_this_one(
    tmp_path: Path, path: str, size: int | None, good: bool
) -> None:
    folder = tmp_path / "in"
    session(folder, persistedOutputPath=path, **({} if size is None else {"persistedOutputSize": size}))
    (folder / SESSION / "tool-results").mkdir(parents=True)
    (folder / SESSION / "tool-results" / "b1.txt").write_bytes(b"whole")
    _, bundle = imported(folder, tmp_path / "out")
    cited = [
        record["type"]
        for record in records(bundle)
        for ref in record.get("native", {}).get("refs", [])
        if ref.get("role") == "file"
    ]
    assert cited == (["tool_result"] if good else ["unmapped"])


def agents(folder: Path, count: int, meta: bytes | None = None) -> list[Path]:
    main = Made()
    main.prompt()
    below = folder / SESSION / "subagents"
    below.mkdir(parents=True)
    found = []
    for number in range(count):
        call_id = f"toolu_{number}"
        main.call(call_id, name="Agent", input={"description": "look", "prompt": "Look."})
        main.result(call_id, "Seen.")
        made = Made()
        made.prompt("Look.", isSidechain=True, agentId=f"a{number}")
        made.said("Seen.", message=f"msg_a{number}", isSidechain=True, agentId=f"a{number}")
        path = below / f"agent-a{number}.jsonl"
        path.write_bytes(made.data)
        told = {"agentType": "Explore", "toolUseId": call_id, "spawnDepth": 1 + number % 2}
        path.with_suffix(".meta.json").write_bytes(meta or json.dumps(told).encode())
        found.append(path)
    (folder / f"{SESSION}.jsonl").write_bytes(main.data)
    return found


def test_thousands_of_agents_take_time_in_proportion(tmp_path: Path) -> None:
    spent = {}
    for count in (100, 1000):
        agents(tmp_path / str(count), count)
        start = time.process_time()
        _, bundle = imported(tmp_path / str(count), tmp_path / "out")
        spent[count] = time.process_time() - start
        linked = [record for record in records(bundle) if record["type"] == "subagent"]
        assert {record["callId"] for record in linked} == {f"toolu_{number}" for number in range(count)}
        assert len(bundle.manifest.streams) == count + 1
    assert spent[1000] < 20 * spent[100], spent


def test_a_large_meta_file_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "META_MOST", 2_000)
    agents(tmp_path / "in", 1, b'{"toolUseId":"toolu_0","junk":"' + b"x" * 2_000 + b'"}')
    one, bundle = imported(tmp_path / "in", tmp_path / "out")
    assert "too_large" in {diagnostic.code for diagnostic in one.diagnostics}
    (gap,) = [record for record in records(bundle, "a0") if record["type"] == "gap"]
    assert (gap["reason"], gap["offset"], gap["bytes"]) == ("no_decoder", 0, 2_034 - 1)


@pytest.mark.parametrize("at", ["head", "body"])
def test_an_agent_file_that_vanishes_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The first sources stay open; of a session with more of them the others are opened for each pass."""
    paths = agents(tmp_path / "in", 40)
    method = getattr(Reader, at)
    gone: list[str] = []

    def vanishing(self: Reader, *args: Any) -> None:
        if self.file.path == str(paths[39]) and not gone:
            paths[39].unlink()
            gone.append(self.file.path)
        method(self, *args)

    monkeypatch.setattr(Reader, at, vanishing)
    one, bundle = imported(tmp_path / "in", tmp_path / "out")
    assert gone
    (gap,) = [record for record in records(bundle, "a39") if record["type"] == "gap"]
    assert gap["reason"] == "missing_file"
    assert records(bundle, "a39")[0]["type"] == "session"
    assert {d.code for d in one.diagnostics} >= {"missing_file"}
    without = [source for source in bundle.manifest.sources if source.native is None]
    assert [source.path for source in without] == [str(paths[39])]
    assert len(bundle.manifest.streams) == 41


def test_a_large_output_is_kept_without_being_held(tmp_path: Path) -> None:
    session(tmp_path / "in")
    folder = tmp_path / "in" / SESSION / "tool-results"
    folder.mkdir(parents=True)
    with (folder / "big.txt").open("wb") as file:
        os.truncate(file.fileno(), 100_000_000)
    tracemalloc.start()
    try:
        _, bundle = imported(tmp_path / "in", tmp_path / "out")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    blobs = [path.stat().st_size for path in (bundle.path / "blobs").glob("**/*") if path.is_file()]
    assert 100_000_000 in blobs
    assert list(bundle.path.glob("**/*.part")) == []
