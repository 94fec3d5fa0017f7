"""The program in a pseudo-terminal: no byte that an agent wrote reaches the terminal as a control."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tui.test_keys import call, result, said, stream

MARK = "PWNED"
HOSTILE = (
    f"\x1b]0;{MARK}-title\x07 \x1b]52;c;{MARK}\x07 \x1b]8;;http://{MARK}\x1b\\link\x1b]8;;\x1b\\ \x1bP{MARK}\x1b\\ "
    f"\x1b_{MARK}\x1b\\ \x1b[2J{MARK}\x1b[6n \x1b[?1049l \x1b[5;5H \x1b[31;5;7;8mred{MARK}\x1b[0m "
    f"\x1bc \x9b2J\x9d0;{MARK}\x9c \u202e{MARK}\u202c \u2066\u200b\ufeff \x00\x08\x0e\x7f "
    f"\r{MARK}\r \t [bold red]{MARK}[/] \ud83d {MARK}"
)
"""Controls, sequences and marks of every sort, each with a word that can be found again."""
OURS = re.compile(
    r"\x1b\[[0-9;:]*m"  # colours
    r"|\x1b\[[0-9;]*[HABCDJK]"  # where to write, what to clear
    r"|\x1b\[\?[0-9;]+[hl]"  # modes: other screen, cursor, mouse, paste
    r"|\x1b\[\?[0-9;]+\$p"  # what the terminal can do
    r"|\x1b\[[<>=?]?[0-9;]*u"  # keyboard protocol
    r"|\x1b\[[0-9;]*[cq]|\x1b\[>[0-9;]*[cq]"
    r"|\x1b\[[0-9;]*t"
    r"|\x1b[=>78]"
    r"|\x1b\]52;c;[A-Za-z0-9+/=]*\x07"  # the clipboard, for the key that copies
    r"|\x1b\]22;[a-z]*\x07"  # the shape of the pointer
    r"|\x1bP>\|[^\x1b]*\x1b\\"
    r"|[\r\n\x0f]"
)
"""What the program itself may write besides text."""


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        width: int = 90,
        errors: Path | None = None,
    ) -> None:
        source = str(Path(__file__).parents[2] / "src")
        whole = {**os.environ, "PYTHONPATH": source, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        whole.pop("NO_COLOR", None)
        whole |= environment or {}
        self.pid, self.file = pty.fork()
        if not self.pid:
            try:
                if errors is not None:
                    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
                os.execve(sys.executable, [sys.executable, "-m", "callsheet", *arguments], whole)
            finally:
                os._exit(127)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        self.seen = b""

    def until(self, text: str, seconds: float = 120) -> None:
        """Reads until a text was written."""
        until = time.monotonic() + seconds
        while text.encode() not in self.seen:
            assert time.monotonic() < until, f"{text!r} never came: {self.seen[-2000:]!r}"
            self.read(0.1)

    def read(self, seconds: float) -> None:
        """Reads for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.file], [], [], left)[0]:
                try:
                    self.seen += os.read(self.file, 1 << 16)
                except OSError:
                    return

    def press(self, keys: str) -> None:
        """Presses keys, one after another."""
        for key in keys:
            os.write(self.file, key.encode())
            self.read(0.25)

    def end(self) -> int:
        """Waits for the end; returns the exit code."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.file)
                return os.waitstatus_to_exitcode(status)
            self.read(0.1)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        raise AssertionError("it did not end")


def harmless(data: bytes) -> None:
    """Whether nothing but our own sequences stands in what was written to a terminal."""
    text = data.decode("utf-8")  # C1 bytes alone would be no UTF-8
    rest = OURS.sub("", text)
    wrong = [char for char in rest if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0]
    assert not wrong, sorted(set(wrong))
    assert not re.search("[\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]", rest)
    for found in re.finditer(r"\x1b[\]PX^_][^\x07\x1b]*", text):
        assert MARK not in found.group()
    # Blinking, reversed and hidden text, and colours that could hide it, are never what an agent says.
    for found in re.finditer(r"\x1b\[([0-9;]*)m", text):
        assert not {"5", "8"} & set(re.sub(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+", "", found[1]).split(";"))


def hostile_session() -> list[dict[str, Any]]:
    return [
        {
            "type": "session",
            "format": "callsheet/1",
            "agent": {"name": HOSTILE, "version": HOSTILE},
            "title": HOSTILE,
            "nativeSessionId": HOSTILE,
            "roots": {"a": f"/x/{HOSTILE}"},
        },
        said("user", HOSTILE),
        call(0, HOSTILE, input={HOSTILE: HOSTILE, "command": HOSTILE}, title=HOSTILE),
        result(0, "failed", f"{HOSTILE}\n{HOSTILE}", error={"message": HOSTILE, "code": HOSTILE}),
        {
            "type": "file_change",
            "scope": "call",
            "callId": "c0",
            "changes": [
                {
                    "path": {"root": "host", "path": f"/x/{HOSTILE}"},
                    "change": HOSTILE,
                    "patch": {"format": "unified", "value": f"@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n"},
                }
            ],
        },
        {
            "type": "permission",
            "requestId": HOSTILE,
            "subject": {"callId": "c0"},
            "title": HOSTILE,
            "options": [{"optionId": HOSTILE, "name": HOSTILE}],
            "decision": HOSTILE,
            "decidedBy": HOSTILE,
            "rule": HOSTILE,
        },
        {"type": "reasoning", "form": "summary", "content": [{"type": "text", "text": HOSTILE}]},
        {"type": "hook", "hookId": "h", "event": HOSTILE, "name": HOSTILE, "stdout": HOSTILE},
        {"type": HOSTILE},
        said("model", HOSTILE),
    ]


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_nothing_of_a_stored_session_is_obeyed(tmp_path: Path, environment: dict[str, str]) -> None:
    records = json.loads(json.dumps(hostile_session()).replace("\\ud83d", "x"))
    source = stream(tmp_path, records)
    terminal = Terminal("open", str(source), environment=environment)
    terminal.until("call")
    terminal.read(1.0)
    terminal.press(
        "jjj\r" + "p" + "jjkk" + "e" + "\x1b" + "s" + "\x1b" + "zz" + "a" + "yY" + "?" + "\x1b" + "G"
    )
    terminal.press("/pwned\rnN" + "F" + "\x1b" + "tt" + "jjjj" + "\r")
    terminal.press("q")
    assert terminal.end() == 0
    assert terminal.seen.count(MARK.encode()) > 20
    harmless(terminal.seen)
    colours = re.findall(rb"\x1b\[[0-9;]*[34]8[;:][0-9;]*m|\x1b\[(?:[0-9;]*;)?[349][0-7]m", terminal.seen)
    assert bool(colours) == (not environment)


def test_nothing_of_a_list_of_sessions_is_obeyed(tmp_path: Path) -> None:
    from callsheet.records import FORMAT
    from callsheet.records.bundle import Manifest, StreamEntry, write_manifest

    for number in range(2):
        bundle = tmp_path / "b" / f"one\x1b[2J\x9b{MARK}\u202e{number}"
        (bundle / "streams").mkdir(parents=True)
        stream(bundle / "streams", json.loads(json.dumps(hostile_session()).replace("\\ud83d", "x")))
        write_manifest(bundle, Manifest(format=FORMAT, streams=[StreamEntry(id="s", file="streams/s.jsonl")]))
    terminal = Terminal("open", str(tmp_path / "b"))
    terminal.until("2 sessions")
    terminal.read(1.0)
    terminal.press("jk\r")
    terminal.read(1.0)
    terminal.press("qq")
    assert terminal.end() == 0
    harmless(terminal.seen)


def test_nothing_of_a_live_turn_is_obeyed(tmp_path: Path) -> None:
    evil = HOSTILE.replace("\ud83d", "x")
    asked = evil.replace("\0", "")  # no argument of a program can hold one
    script = {
        "turn": [
            {"think": evil},
            {"say": evil},
            {"call": "c1", "title": evil, "input": {"command": evil}},
            {"output": "c1", "text": evil * 3},
            {"ask": "c1", "title": evil, "options": ["allow_once", evil]},
            {"done": "c1", "status": "completed", "output": evil},
            {"secret": evil, "title": evil},
            {"stderr": evil},
        ]
    }
    from callsheet.testing.fake import fake_command

    command = " ".join(fake_command(**script)[:-1])
    plan = tmp_path / "script.json"
    plan.write_text(json.dumps(script))
    terminal = Terminal(
        *("run", "fake", "--agent", f"{command} {plan}", "--out", str(tmp_path / "out")),
        *("--cwd", str(tmp_path), "--", asked),
    )
    terminal.until("waiting")
    terminal.read(1.0)
    terminal.press("1")
    terminal.read(1.5)
    terminal.press("geheim\r")
    terminal.until("turn completed")
    terminal.press("gjjj\rq")
    assert terminal.end() == 0
    assert terminal.seen.count(MARK.encode()) > 10
    assert b"geheim" not in terminal.seen
    harmless(terminal.seen)


def test_without_a_terminal_it_is_one_clear_line(tmp_path: Path) -> None:
    import subprocess

    source = stream(tmp_path, [said("user", "x")])
    ran = subprocess.run(
        [sys.executable, "-m", "callsheet", "open", str(source)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "callsheet: the workbench needs a terminal (callsheet show prints a sheet)\n"


@pytest.mark.parametrize("what", ["no such file", "nonsense"])
def test_what_cannot_be_opened_is_one_clear_line(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    if what == "nonsense":
        path.write_text("this is no session\n")
    terminal = Terminal("open", str(path))
    code = terminal.end()
    assert code == 2
    said = terminal.seen.decode().replace("\r", "")
    why = "no such file or folder" if what == "no such file" else "fits no known kind of session"
    assert re.search(f"callsheet: {re.escape(str(path))}: {why}[^\n]*\n?\\Z", said)
    assert "Traceback" not in said


def test_with_errors_elsewhere_the_screen_is_on_the_terminal(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    terminal = Terminal(
        "open", str(stream(tmp_path, [call(1, input={"command": "ls"}), result(1)])), errors=errors
    )
    terminal.until("1 call")
    terminal.press("q")
    assert terminal.end() == 0
    assert errors.read_bytes() == b""


def test_without_bundles_it_says_how_to_make_some(tmp_path: Path) -> None:
    terminal = Terminal("open", environment={"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "none")})
    terminal.until("no bundles yet (callsheet import")
    assert terminal.end() == 2


def test_a_reader_of_keys_that_was_left_holds_nothing_up(tmp_path: Path) -> None:
    """As when the terminal is gone, or a signal comes while the screen is put away: the program ends all the same."""
    (tmp_path / "sitecustomize.py").write_text(
        "from textual.drivers.linux_driver import LinuxDriver\n"
        "LinuxDriver.disable_input = lambda self: None\n"
    )
    source = Path(__file__).parents[2] / "src"
    terminal = Terminal(
        "open",
        str(stream(tmp_path, [call(1, input={"command": "ls"}), result(1)])),
        environment={"PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"},
    )
    terminal.until("1 call")
    terminal.press("q")
    assert terminal.end() == 0
