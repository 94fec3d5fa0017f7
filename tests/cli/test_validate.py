"""callsheet validate: exit codes, places, both forms of output, every kind of PATH."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from callsheet.faces.cli import main

CALL = {"type": "tool_call", "callId": "a", "callIdSource": "native", "name": "Bash"}


def stream(*records: dict[str, Any]) -> bytes:
    return b"".join(
        json.dumps({"seq": number, "id": f"r{number}", **record}).encode() + b"\n"
        for number, record in enumerate(records)
    )


def bundle(folder: Path, **streams: bytes) -> Path:
    (folder / "streams").mkdir(parents=True)
    for name, data in streams.items():
        (folder / "streams" / f"{name}.jsonl").write_bytes(data)
    listed = [{"id": name, "file": f"streams/{name}.jsonl"} for name in streams]
    (folder / "manifest.json").write_text(json.dumps({"format": "callsheet/1", "streams": listed}))
    return folder


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


class Run(Protocol):
    def __call__(self, *args: str | Path) -> Result: ...


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str | Path) -> Result:
        with pytest.raises(SystemExit) as left:
            main(["validate", *(str(arg) for arg in args)])
        assert isinstance(left.value.code, int)
        return Result(left.value.code, *capfd.readouterr())

    return call


def test_a_clean_stream_exits_zero(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(stream(CALL))
    result = run(tmp_path / "s.jsonl")
    assert (result.exit_code, result.stdout) == (0, "No findings: 1 stream, 1 record.\n")
    assert run(tmp_path / "s.jsonl", "--json").stdout == ""


def test_findings_exit_one_and_name_file_line_rule_and_record(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(stream(CALL, {**CALL, "status": "completed"}))
    result = run(path)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith(f"{path}:2: ASR-251 /status (record r1): ")
    assert "1 finding in 1 stream, 2 records" in result.stdout


def test_json_is_one_finding_a_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(stream({**CALL, "status": "completed", "error": {}}) + b"{broken\n")
    result = run("--json", path)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(one["rule"], one["record"], one["line"], one["path"]) for one in found] == [
        ("ASR-251", "r0", 1, "/status"),
        ("ASR-251", "r0", 1, "/error"),
        ("P-JSON", None, 2, ""),
    ]
    assert all(set(one) == {"rule", "record", "line", "path", "message", "file"} for one in found)


@pytest.mark.parametrize(("record", "code"), [(CALL, 0), ({**CALL, "exec": 1}, 1)])
def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], code: int) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stream(record))))
    assert run("-").exit_code == code


@pytest.mark.parametrize("zipped", [False, True])
def test_a_bundle_is_checked_with_all_its_streams(run: Run, tmp_path: Path, zipped: bool) -> None:
    result = {"type": "tool_result", "callId": "a", "linkage": "exact", "status": "completed", "content": []}
    path = bundle(
        tmp_path / "b",
        main=stream({**result, "exec": {"terminalId": "t"}}, {**result, "exec": {"terminalId": "none"}}),
        child=stream({"type": "terminal", "terminalId": "t"}),
    )
    if zipped:
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            for file in path.rglob("*.json*"):
                archive.write(file, file.relative_to(path).as_posix())
        path = tmp_path / "b.zip"
    run_ = run(path, "--json")
    found = [json.loads(line) for line in run_.stdout.splitlines()]
    assert [(one["rule"], one["record"], one["stream"]) for one in found] == [("ASR-290", "r1", "main")]
    assert run(path / "streams" / "main.jsonl" if not zipped else path).exit_code == 1


def test_a_folder_of_bundles_is_all_of_them(run: Run, tmp_path: Path) -> None:
    bundle(tmp_path / "out" / "one", a=stream(CALL))
    bundle(tmp_path / "out" / "two", a=stream(CALL), b=stream(CALL))
    assert "No findings: 3 streams, 3 records" in run(tmp_path / "out").stdout


def test_what_cannot_be_read_exits_two_with_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "no bundle")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    for path in (tmp_path / "missing", tmp_path / "empty", tmp_path / "other.zip", broken):
        result = run(path)
        assert (result.exit_code, result.stdout) == (2, ""), path
        assert result.stderr.startswith(f"callsheet: {path}: ")
        assert result.stderr.count("\n") == 1


def test_one_unreadable_path_does_not_cost_the_others(run: Run, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(stream(CALL))
    result = run(tmp_path / "missing", tmp_path / "s.jsonl")
    assert result.exit_code == 1
    assert "No findings: 1 stream" in result.stdout
    assert "missing" in result.stderr


def test_a_missing_stream_of_a_bundle_is_a_finding(run: Run, tmp_path: Path) -> None:
    path = bundle(tmp_path / "b", a=stream(CALL))
    (path / "streams" / "a.jsonl").unlink()
    result = run(path)
    assert result.exit_code == 1
    assert ":manifest.json: P-REF /streams/0/file" in result.stdout


def test_no_usage_is_a_usage_error(run: Run) -> None:
    assert run().exit_code == 2


def test_hostile_ids_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        stream({**CALL, "id": "\x1b]0;title\x07\x9b", "status": 1, "kind": "\u202e", "supersedes": "\x1b"})
    )
    for args in ((path,), (path, "--json")):
        out = run(*args).stdout
        assert not any(bad in out for bad in "\x1b\x07\x9b\u202e")


SESSION = b'{"type":"user","message":{"role":"user","content":"hi"},"sessionId":"5","uuid":"a","version":"2.1.332"}\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (SESSION * 500, "this looks like a session of Claude Code: callsheet import "),
        (b"# Title\n\nText\n" * 50, "no line of its beginning is a record"),
        (b'{"some":"json"}\n' * 50, "no line of its beginning is a record"),
        (b"\x00\xff\xfe" * 5000, "no line of its beginning is a record"),
    ],
)
def test_what_is_no_stream_is_one_line(run: Run, tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    result = run(path)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"callsheet: {path}: is no callsheet stream")
    assert words in result.stderr


@pytest.mark.parametrize(
    "data",
    [
        b"{broken\n" + stream(CALL),
        b"\xef\xbb\xbf" + stream(CALL),
        json.dumps(CALL).encode() + b"\n",
        b'{"type":"novelty","seq":0,"id":"r0"}\n',
    ],
)
def test_a_broken_stream_is_still_a_stream(run: Run, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    result = run(path)
    assert result.exit_code in (0, 1)
    assert result.stderr == ""


def test_missing_files_are_said_alike(run: Run, tmp_path: Path) -> None:
    assert run(tmp_path / "gone").stderr == f"callsheet: {tmp_path}/gone: no such file or folder\n"


def test_findings_that_nobody_reads_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(stream(*({**CALL, "status": 1} for _ in range(5000))))
    command = f"set -o pipefail; {sys.executable} -m callsheet validate {path} | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
