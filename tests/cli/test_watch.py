"""callsheet watch: what is printed of a session that grows, and how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.native.codex.conftest import Made, name_of

from callsheet.faces.cli import main
from callsheet.paint.cells import width

PATIENCE = 120.0


class Watching:
    """A watch that runs as another process."""

    def __init__(self, *words: str | Path) -> None:
        command = [sys.executable, "-m", "callsheet", "watch", *map(str, words)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "80"}
        )
        self.text = b""

    def until(self, words: str) -> str:
        """Everything printed so far, once these words are in it."""
        assert self.process.stdout is not None
        end = time.monotonic() + PATIENCE
        while words.encode() not in self.text:
            ready, _, _ = select.select([self.process.stdout], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{words!r} never came: {self.text.decode()}"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, f"it ended: {self.text.decode()}"
            self.text += more
        return self.text.decode()

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """Its exit code and what it said on stderr."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said.decode().lstrip("\n")  # behind the ^C of the terminal


class Watch(Protocol):
    def __call__(self, *words: str | Path) -> Watching: ...


@pytest.fixture
def watch() -> Iterator[Watch]:
    begun: list[Watching] = []

    def run(*words: str | Path) -> Watching:
        begun.append(Watching(*words))
        return begun[-1]

    yield run
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        for pipe in (one.process.stdout, one.process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def made(tmp_path: Path) -> Made:
    found = Made()
    found.meta()
    found.said("Go.", "user")
    write(tmp_path, found)
    return found


def write(folder: Path, made: Made) -> Path:
    path = folder / Path(name_of(made.number)).name
    path.write_bytes(made.data)
    return path


def told(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_rows_come_as_they_are_written(made: Made, tmp_path: Path, watch: Watch) -> None:
    one = watch(tmp_path)
    one.until("following 1 session in")
    one.until("Go.")
    made.call("c1", arguments={"cmd": "sleep 9\x1b[31m\u202e"})
    write(tmp_path, made)
    one.until("running: no result is recorded")
    made.ran("c1", status="failed", exit_code=3, aggregated_output="\x1b[2Jboom\n")
    write(tmp_path, made)
    text = one.until("boom")
    assert "↻ state" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert all(width(line) <= 80 for line in text.splitlines())
    assert one.stop() == (130, "")


def test_json_is_a_row_a_line_with_what_changed(made: Made, tmp_path: Path, watch: Watch) -> None:
    one = watch(tmp_path, "--json")
    one.until("Go.")
    made.call("c1")
    write(tmp_path, made)
    one.until('"running"')
    made.ran("c1", status="completed", exit_code=0)
    write(tmp_path, made)
    lines = told(one.until('"exitCode"'))
    assert [line["watch"]["event"] for line in lines[:2]] == ["began", "session"]
    rows = [line for line in lines if line["watch"]["event"] == "row"]
    assert all(line["provisional"] for line in rows)
    running, done = (line for line in rows if line["kind"] == "command")
    assert running["watch"]["key"] == done["watch"]["key"]
    assert (running["watch"]["change"], done["watch"]["change"]) == ("new", "changed")
    assert {"state", "exitCode"} <= set(done["watch"]["members"])
    path = write(tmp_path, made)
    path.unlink()
    (last,) = [line for line in told(one.until('"deleted"')) if line["watch"]["event"] == "deleted"]
    assert last["watch"]["path"] == str(path)
    assert one.stop() == (130, "")


def test_of_a_long_session_the_last_rows_are_drawn(made: Made, tmp_path: Path, watch: Watch) -> None:
    for number in range(100):
        made.said(f"say {number}.")
    text = watch(write(tmp_path, made)).until("say 99.")
    assert "81 earlier rows" in text
    assert "say 80." in text
    assert "say 79." not in text


def test_what_happens_to_a_file_is_said(made: Made, tmp_path: Path, watch: Watch) -> None:
    made.said("one")
    path = write(tmp_path, made)
    one = watch(path)
    one.until("one")
    with path.open("r+b") as file:
        file.truncate(len(made.lines[0]) + 1)
    one.until("no longer there")
    code, said = one.stop(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert said == f"callsheet: {path}: is shorter than it was: what it held there is gone\n"


def test_a_reader_that_goes_away_ends_it(made: Made, tmp_path: Path, watch: Watch) -> None:
    one = watch(tmp_path)
    one.until("Go.")
    assert one.process.stdout is not None
    one.process.stdout.close()
    made.said("more")
    write(tmp_path, made)
    assert one.process.wait(PATIENCE) == 0
    assert one.process.stderr is not None
    assert one.process.stderr.read() == b""


@pytest.mark.parametrize(
    "words", [["nowhere"], ["-"], ["--from", "nothing"], ["--width", "3", "."], [__file__]], ids=str
)
def test_what_cannot_be_watched(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["watch", *words])
    said = capsys.readouterr()
    assert (left.value.code, said.out) == (2, "")
    assert said.err.startswith("callsheet: ")
    assert said.err.count("\n") == 1


def test_without_a_source_what_is_installed_is_followed(
    made: Made, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    below = home / ".codex" / "sessions" / "2026"
    below.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    one = watch()
    one.until("following 0 sessions in")
    write(below, made)
    one.until("Go.")
    assert one.stop() == (130, "")


def test_where_nothing_is_installed_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as left:
        main(["watch"])
    assert left.value.code == 2
    assert "no agent has stored sessions here" in capsys.readouterr().err
