"""Whatever is named, an error is one clear line with the right exit code, for every command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from callsheet.faces.cli import main
from callsheet.library.opening import bundles_in
from callsheet.records.bundle import is_bundle

RULES = (
    Path(__file__).parents[2]
    / "examples/claude-code/projects/-home-dev-acme-app/5dd2e94d-807f-4903-b8e4-2497aa981da8.jsonl"
)
READERS = [["show"], ["import"], ["validate"], ["audit"], ["watch", "--plain"], ["compare", str(RULES)]]


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("hello\n")
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def told(capfd: pytest.CaptureFixture[str], *args: object) -> tuple[int | str | None, list[str], str]:
    with pytest.raises(SystemExit) as left:
        main([str(arg) for arg in args])
    sys.stdout.flush()
    out, err = capfd.readouterr()
    return left.value.code, err.splitlines(), out


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
@pytest.mark.parametrize("name", ["nothing", "empty", "text.txt", "folder.jsonl", "pipe", ""])
def test_what_cannot_be_read(
    capfd: pytest.CaptureFixture[str],
    odd: Path,
    command: list[str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command[0] == "watch" and name in ("empty", "folder.jsonl"):
        pytest.skip("a folder may be followed before there is anything in it")
    monkeypatch.chdir(odd)
    code, lines, out = told(capfd, *command, name)
    assert (code, len(lines), out) == (2, 1, "")
    assert lines[0].startswith(f"callsheet: {name}: " if name else "callsheet: Invalid value for ")


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_what_may_not_be_read(
    capfd: pytest.CaptureFixture[str],
    odd: Path,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    forbidden: Callable[[Path], None],
) -> None:
    monkeypatch.chdir(odd)
    closed = Path("empty")
    forbidden(closed)
    code, lines, out = told(capfd, *command, closed)
    assert (code, lines, out) == (2, ["callsheet: empty: Permission denied"], "")


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Takes a folder's rights away; from root, who has them always, by a stand-in for the system's refusal."""

    def forbid(folder: Path) -> None:
        if os.geteuid():
            folder.chmod(0)
            return
        real = {name: getattr(os, name) for name in ("stat", "listdir", "scandir", "open")}

        def refusing(name: str) -> Callable[..., object]:
            def call(path: object = ".", *args: object, **kwargs: object) -> object:
                inside = str(path).startswith(str(folder) + "/")
                if inside or (name != "stat" and str(path) == str(folder)):
                    raise PermissionError(13, "Permission denied", str(path))
                return real[name](path, *args, **kwargs)

            return call

        for name in real:
            monkeypatch.setattr(os, name, refusing(name))

    return forbid


def test_a_folder_that_may_not_be_read_costs_nobody_else(
    capfd: pytest.CaptureFixture[str],
    odd: Path,
    monkeypatch: pytest.MonkeyPatch,
    forbidden: Callable[[Path], None],
) -> None:
    monkeypatch.chdir(odd)
    assert told(capfd, "import", RULES, "--out", "out")[0] == 0
    forbidden(Path("empty"))
    assert not is_bundle(Path("empty"))
    assert bundles_in(Path()) == [Path("out") / RULES.stem]
    code, lines, out = told(capfd, "validate", ".")
    assert (code, lines) == (1, ["callsheet: empty: Permission denied"])
    assert "No findings" in out


def test_the_one_thing_that_is_wrong_with_a_folder_is_said_once(
    capfd: pytest.CaptureFixture[str], odd: Path
) -> None:
    assert told(capfd, "show", odd / "empty")[1] == [
        f"callsheet: {odd}/empty: no sessions found in this folder"
    ]


def test_an_agent_that_cannot_be_tapped(capfd: pytest.CaptureFixture[str], odd: Path) -> None:
    for name, why in (("nothing", "not found"), ("text.txt", "cannot be executed"), ("empty", "is a folder")):
        code, lines, _ = told(capfd, "tap", "--", odd / name)
        assert (code, lines) == (4, [f"callsheet: {odd / name}: {why}"])


@pytest.mark.parametrize(
    "command",
    [
        ["show", RULES],
        ["show", RULES, "--json"],
        ["validate", "out"],
        ["audit", f"out/{RULES.stem}"],
        ["schema"],
    ],
    ids=lambda command: " ".join(Path(str(word)).name for word in command),
)
def test_a_reader_that_goes_away(tmp_path: Path, command: list[object]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "callsheet", "import", str(RULES), "--out", "out", "--json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert json.loads(done.stdout)["calls"] == 8
    ours, theirs = os.pipe()
    os.close(ours)
    words = [sys.executable, "-m", "callsheet", *map(str, command)]
    ran = subprocess.run(words, stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (0, b"")
    shutil.rmtree(tmp_path / "out")
