"""``callsheet import``, ``harnesses``, help: what they print, their exit codes, where they write."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from callsheet.faces.cli import COMMANDS, main
from callsheet.paint.doubts import SENTENCES
from callsheet.registry import HARNESSES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RULES = (
    EXAMPLES
    / "claude-code"
    / "projects"
    / "-home-dev-acme-app"
    / "5dd2e94d-807f-4903-b8e4-2497aa981da8.jsonl"
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with nothing."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_DATA_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def run(capfd: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([str(arg) for arg in args])
    assert isinstance(left.value.code, int)
    out, err = capfd.readouterr()
    return left.value.code, out, err


def test_import_tells_of_each_session(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(
        capfd, "import", EXAMPLES / "claude-code" / "projects", "--out", tmp_path / "out", "--json"
    )
    told: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert len(told) == 10
    for one in told:
        assert set(one) == {
            *("session", "kind", "bundle", "stream", "records", "calls", "agentCalls", "gaps", "diagnostics")
        }
        assert (Path(one["bundle"]) / "streams" / f"{one['stream']}.jsonl").is_file()
        assert list((Path(one["bundle"]) / "native").iterdir())
    rules = next(one for one in told if one["session"].startswith("5dd2e94d"))
    assert rules["calls"] == 8
    assert {tuple(diagnostic) for diagnostic in rules["diagnostics"]} == {
        ("code", "source", "line", "message")
    }


def test_import_in_words(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"nothing\n")
    code, out, err = run(capfd, "import", broken, RULES, "--out", tmp_path / "out", "--no-native")
    bundle = tmp_path / "out" / RULES.stem
    assert code == 0
    assert out.splitlines() == [
        f"{bundle}: 8 calls · 2 remarks · 2026-11-30 22:03 · /home/dev/acme-app · Try rules.",
        f"1 session written to {tmp_path / 'out'}, 1 not read",
        "remarks on the sources (callsheet show BUNDLE --audit-view tells each):",
        "  what the source says of who decided contradicts itself: 2 times",
    ]
    assert len(err.splitlines()) == 1
    assert err.startswith(f"callsheet: {broken}: ")
    assert not (bundle / "native").exists()


def test_files_of_no_known_kind_are_told_in_one_line(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(7)]
    for file in files:
        file.write_bytes(b"nothing\n")
    missing = tmp_path / "none"
    given = ("import", *files[:4], missing, RULES, *files[4:], "--out", tmp_path / "out")
    code, out, err = run(capfd, *given)
    named = ", ".join(map(str, files[:5]))
    assert code == 0
    assert err.splitlines() == [
        f"callsheet: {missing}: no such file or folder",
        f"callsheet: 7 files of no known kind (see: callsheet harnesses): {named}, …",
    ]
    assert f"1 session written to {tmp_path / 'out'}, 8 not read" in out.splitlines()
    code, _, err = run(capfd, *given, "--json")
    assert (code, len(err.splitlines())) == (0, 8)
    code, _, err = run(capfd, "import", *files[:2], "--out", tmp_path / "out")
    assert (code, err.count("\n"), "…" in err) == (2, 1, False)


def test_remarks_of_many_sessions_are_counted(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    shutil.copy(RULES, copy)
    _, out, _ = run(capfd, "import", RULES, copy, "--out", tmp_path / "out")
    assert out.splitlines()[-2:] == [
        "  what the source says of who decided contradicts itself: 4 times in 2 sessions",
        f"  {SENTENCES['same_session']}: another file of this session is in {RULES.stem}: {copy}",
    ]


def test_import_without_source_reads_what_the_user_has(
    capfd: pytest.CaptureFixture[str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capfd, "import")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    project = home / ".claude" / "projects" / "-x"
    project.mkdir(parents=True)
    shutil.copy(RULES, project)
    assert run(capfd, "import")[0] == 0
    assert list(home.rglob(f"callsheet/bundles/{RULES.stem}/manifest.json"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert run(capfd, "import")[0] == 0
    assert (tmp_path / "data" / "callsheet" / "bundles" / RULES.stem / "manifest.json").is_file()


def test_import_of_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "callsheet", "import", "-", "--out", str(tmp_path / "out"), "--json"]
    ran = subprocess.run(command, input=RULES.read_bytes(), capture_output=True, check=True)
    assert json.loads(ran.stdout)["calls"] == 8


@pytest.mark.parametrize(
    "args",
    [
        ["import", "/nowhere"],
        ["import", str(RULES), "--from", "nonsense"],
        ["import", str(EXAMPLES / "README.md")],
    ],
)
def test_what_cannot_be_imported_is_one_line(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, args: list[str]
) -> None:
    code, out, err = run(capfd, *args, "--out", tmp_path / "out")
    assert (code, out, len(err.splitlines())) == (2, "", 1)


def test_harnesses_names_what_is_supported_and_what_was_found(
    capfd: pytest.CaptureFixture[str], home: Path
) -> None:
    code, out, _ = run(capfd, "harnesses", "--json")
    told = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [one["name"] for one in told] == list(HARNESSES)
    assert told[0]["found"] == []
    assert "2.1.332" in told[0]["versionsSeen"]
    project = home / ".claude" / "projects" / "-x"
    project.mkdir(parents=True)
    shutil.copy(RULES, project)
    _, out, _ = run(capfd, "harnesses")
    assert f"found here     {home}/.claude/projects  (1 session)" in out
    assert "2.1.331" not in out
    assert max(len(line) for line in out.splitlines() if str(home) not in line) <= 80
    every = run(capfd, "harnesses", "--versions")[1]
    assert " ".join(told[0]["versionsSeen"]) == " ".join(
        every.partition("versions seen")[2].partition("\n\n")[0].replace(",", " ").split()
    )
    assert all(line.rstrip() == line for line in every.splitlines())


def test_harnesses_names_what_can_be_run(
    capfd: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(home))
    _, out, _ = run(capfd, "harnesses", "--json")
    told = {one["name"]: one["run"] for one in map(json.loads, out.splitlines())}
    assert told["claude-code"] == [{"name": "claude-code", "command": [str(program)]}]
    assert {"name": "acp", "command": None} in told["acp"]
    _, out, _ = run(capfd, "harnesses")
    assert f"callsheet run claude-code  (here: {program})" in out
    assert "callsheet run codex  (not found here)" in out
    assert "callsheet run acp --agent COMMAND\n" in out


def test_help_is_quick() -> None:
    # Processor time: a busy machine must not make this fail.
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(
        [sys.executable, "-m", "callsheet", "--help"], check=True, capture_output=True, text=True
    )
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "Commands:" in ran.stdout
    assert (end.ru_utime - start.ru_utime) + (end.ru_stime - start.ru_stime) < 0.15


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_a_command_what_the_command_says(capfd: pytest.CaptureFixture[str], name: str) -> None:
    _, out, _ = run(capfd, "--help")
    assert f" {name} {COMMANDS[name].summary} " in " ".join([*out.split(), ""])
    _, out, _ = run(capfd, name, "--help")
    assert COMMANDS[name].summary.rstrip(".") in " ".join(out.split())


@pytest.mark.parametrize("command", ["show", "import", "harnesses"])
def test_help_has_examples(capfd: pytest.CaptureFixture[str], command: str) -> None:
    code, out, _ = run(capfd, command, "--help")
    assert code == 0
    assert f"\n    callsheet {command}" in out


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, "--version")
    assert (code, out.split()[0]) == (0, "callsheet")


def test_standard_input_is_called_what_it_is(tmp_path: Path) -> None:
    def ran(*args: object, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "callsheet", *(str(arg) for arg in args)]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=tmp_path)

    done = ran("import", "-", "gone", "--out", "out", stdin=RULES.read_bytes())
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == ["callsheet: gone: no such file or folder"]
    manifest = json.loads((tmp_path / "out" / RULES.stem / "manifest.json").read_bytes())
    assert [source["path"] for source in manifest["sources"]] == ["-"]
    assert b"\n- (54,576 bytes)\n" in ran("show", "out", stdin=b"").stdout
    for stdin in (b"", b"no session\n"):
        for args in (["import", "-", "--out", "other"], ["show", "-"], ["validate", "-"]):
            done = ran(*args, stdin=stdin)
            message = done.stderr.decode()
            assert done.returncode == 2, args
            assert message.startswith("callsheet: -: "), args
            assert message.count("\n") == 1
            assert "/" not in message
