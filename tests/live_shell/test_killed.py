"""A recorder that is killed loses nothing that it gave out, and leaves a bundle that can be read, and finished."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from callsheet.live import recover
from callsheet.live.recovery import is_unfinished
from callsheet.records.bundle import Bundle
from callsheet.records.stream import BadLine, read_stream
from callsheet.rules import check_bundle
from callsheet.testing.check_live import imports_alike
from callsheet.testing.fake import FAKE

TURN = [
    {"say": "one"},
    {"call": "c1", "title": "first", "input": {"command": "ls"}},
    {"output": "c1", "text": "some output {n}\n", "times": 50},
    {"done": "c1", "output": "x" * 100_000},
    {"think": "hm"},
    {"call": "c2", "title": "second", "input": {"big": "y" * 3000}},
    {"output": "c2", "text": "half\n"},
    {"ask": "c2"},
    {"done": "c2", "status": "failed", "output": "no"},
    *({"say": f"word {number}"} for number in range(30)),
    {"call": "c3", "title": "third"},
    {"output": "c3", "text": "the last that was seen\n"},
    {"sleep": 30},
]
"""What the agent does; in the end it hangs, with a call open."""


def the_bundle(out: Path) -> Path:
    (bundle,) = out.iterdir()
    return bundle


def records_of(bundle: Path) -> list[dict[str, object]]:
    opened = Bundle(bundle)
    found: list[dict[str, object]] = []
    for entry in opened.manifest.streams:
        with opened.open(entry.file) as file:
            for one in read_stream(file):
                assert not isinstance(one, BadLine), one
                found.append(json.loads(one.line.data))
    return found


def end_of(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


@pytest.mark.parametrize("lines", [1, 2, 4, 5, 7, 8, 9, 10, 12, 14, 15, 16])
def test_killed_after_any_record(
    lines: int, start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start("run", "fake", "--agent", agent_of(turn=TURN), "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    seen = [json.loads(process.stdout.readline()) for _ in range(lines)]
    end_of(process)
    bundle = the_bundle(out)
    assert is_unfinished(bundle)
    assert list(check_bundle(Bundle(bundle))) == []
    before = records_of(bundle)
    assert before[: len(seen)] == seen, "what was given out is there"
    assert recover(bundle, (FAKE,)) is not None
    after = records_of(bundle)
    assert after[: len(before)] == before, "recovery changes nothing that was there"
    assert not is_unfinished(bundle)
    assert list(check_bundle(Bundle(bundle))) == []
    assert imports_alike(FAKE, bundle) == []
    assert sorted(path.name for path in bundle.iterdir()) == sorted(
        {"manifest.json", "native", "streams"} | ({"blobs"} if (bundle / "blobs").exists() else set())
    )
    assert recover(bundle, (FAKE,)) is None


@pytest.mark.parametrize("milliseconds", [0, 20, 60, 110, 170, 240, 350])
def test_killed_while_the_agent_floods(
    milliseconds: int,
    start: Callable[..., subprocess.Popen[bytes]],
    agent_of: Callable[..., str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "out"
    agent = agent_of(turn=[{"ticks": 1_000_000, "every": 0}])
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    process.stdout.readline()
    until = time.monotonic() + milliseconds / 1000
    given = []
    while time.monotonic() < until:
        given.append(process.stdout.readline())
    end_of(process)
    bundle = the_bundle(out)
    assert list(check_bundle(Bundle(bundle))) == []
    before = records_of(bundle)
    assert [json.loads(line) for line in given] == before[1 : len(given) + 1]
    found = recover(bundle, (FAKE,))
    assert found is not None
    assert found.same
    assert records_of(bundle)[: len(before)] == before
    assert list(check_bundle(Bundle(bundle))) == []


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.33, 0.5, 0.77, 0.999])
def test_torn_anywhere(
    keep: float, start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    """As after a loss of power: the files end where they happen to end, each somewhere else."""
    out = tmp_path / "out"
    process = start("run", "fake", "--agent", agent_of(turn=TURN), "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    for _ in range(14):
        process.stdout.readline()
    end_of(process)
    bundle = the_bundle(out)
    stream = next((bundle / "streams").iterdir())
    data = stream.read_bytes()
    stream.write_bytes(data[: int(len(data) * keep)])
    before = records_of(bundle)
    assert list(check_bundle(Bundle(bundle))) == [] or not before
    assert recover(bundle, (FAKE,)) is not None
    after = records_of(bundle)
    assert after[: len(before)] == before
    assert len(after) >= 14
    assert list(check_bundle(Bundle(bundle))) == []


def test_a_torn_log_is_a_gap(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start("run", "fake", "--agent", agent_of(turn=TURN), "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    for _ in range(12):
        process.stdout.readline()
    end_of(process)
    bundle = the_bundle(out)
    log = bundle / "native" / "s0.jsonl"
    log.write_bytes(log.read_bytes()[:-7])
    assert list(check_bundle(Bundle(bundle))) == []
    assert recover(bundle, (FAKE,)) is not None
    records = records_of(bundle)
    gaps = [record for record in records if record["type"] == "gap"]
    assert [gap["reason"] for gap in gaps] == ["torn_tail"]
    assert imports_alike(FAKE, bundle) == []


def test_the_faces_finish_a_recording_that_was_killed(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start("run", "acp", "--agent", agent_of(turn=TURN), "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    for _ in range(12):
        process.stdout.readline()
    bundle = the_bundle(out)
    running = start("show", str(bundle))
    text, said = running.communicate()
    assert b"first" in text
    assert said == b"", "it is being recorded: nothing is touched"
    assert is_unfinished(bundle)
    end_of(process)
    for command, code in (("show", 0), ("validate", 0)):
        one = start(command, str(bundle))
        text, said = one.communicate()
        assert one.returncode == code, said
        assert (b"its recorder did not finish" in said) == (command == "show")
    assert not is_unfinished(bundle)


def test_a_bundle_that_is_being_recorded_is_locked(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    from callsheet.errors import UsageError
    from callsheet.live.recorder import Recorder, take_lock

    out = tmp_path / "out"
    process = start("run", "fake", "--agent", agent_of(turn=TURN), "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    process.stdout.readline()
    bundle = the_bundle(out)
    assert recover(bundle, (FAKE,)) is None
    with pytest.raises(UsageError, match="being recorded by another process"):
        take_lock(bundle)
    with pytest.raises(UsageError, match="being recorded by another process"):
        Recorder(bundle, FAKE)
    end_of(process)
    take_lock(bundle).release()


def test_the_agent_goes_with_its_recorder(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    """The recorder is killed: its end of the pipes closes, and an agent that listens ends."""
    note = tmp_path / "pid"
    write = f"import os, pathlib; pathlib.Path({str(note)!r}).write_text(str(os.getppid()))"
    agent = agent_of(
        turn=[{"spawn": [sys.executable, "-c", write]}, {"sleep": 1}, {"say": "."}, {"await": ""}]
    )
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(tmp_path / "out"), "--", "Go.")
    until = time.monotonic() + 20
    while not (note.exists() and note.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    pid = int(note.read_text())
    assert lives(pid)
    end_of(process)
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not lives(pid)


def lives(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def unfinished(start: Callable[..., subprocess.Popen[bytes]], agent: str, out: Path) -> Path:
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(out), "--", "Go.")
    assert process.stdout is not None
    for _ in range(12):
        process.stdout.readline()
    end_of(process)
    return the_bundle(out)


def test_recovery_itself_may_be_killed(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    bundle = unfinished(start, agent_of(turn=TURN), tmp_path / "out")
    (bundle / ".recovery.left" / "streams").mkdir(parents=True)
    (bundle / ".manifest.json.1.part").write_text("{")
    before = records_of(bundle)
    assert recover(bundle, (FAKE,)) is not None
    # As if the power had gone between the packed log and the last manifest.
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["recording"] = True
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    after = records_of(bundle)
    assert recover(bundle, (FAKE,)) is not None
    assert records_of(bundle) == after
    assert after[: len(before)] == before
    assert not [path for path in bundle.iterdir() if path.name.startswith(".")]
    assert list(check_bundle(Bundle(bundle))) == []


@pytest.mark.parametrize("name", ["native", "streams", "native/s0.jsonl"])
def test_a_bundle_with_links_is_not_finished(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path, name: str
) -> None:
    """Somebody else's bundle may say that it is unfinished, and lead elsewhere."""
    bundle = unfinished(start, agent_of(turn=TURN), tmp_path / "out")
    there = tmp_path / "elsewhere"
    (bundle / name).rename(there)
    (bundle / name).symlink_to(there)
    process = start("validate", str(bundle))
    _, said = process.communicate()
    assert f"was not finished, and is not ours: {name} is a link".encode() in said
    assert is_unfinished(bundle)
