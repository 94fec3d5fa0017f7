"""Measures the workbench in a pseudo-terminal: first screen, the whole, key to paint, memory.

    python benchmarks/workbench.py SOURCE [--keys 60]
    python benchmarks/workbench.py --live [--keys 60] [--rate 1000]

SOURCE is a large session as an agent stored it, or a bundle of one (see make_session.py). The program runs as a person
would start it; a key counts as painted when the last byte that follows it was written. On a machine that others use,
what the program waited for a core is told apart (Linux): the time without it is what a free machine would show.
With ``--live`` an agent sends frames all the while, all of which are recorded and drawn; a key counts as painted when
the bar names another row.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import NamedTuple

PROVISIONAL = "≈".encode()
_ROW = re.compile(rb"(?<![0-9,])([0-9,]+)/[0-9,]+")
"""The selected row and how many there are, as the bar says it."""
QUIET = 0.05
"""Seconds without a byte after which a screen counts as painted."""


class Key(NamedTuple):
    """Milliseconds from a key to the last byte that it led to.

    Attributes:
        whole: All of them.
        free: Without those that the program waited for a core.
        busy: Those that it ran.
    """

    whole: float
    free: float
    busy: float


class Terminal:
    """A program in a pseudo-terminal of 100 by 40 cells."""

    def __init__(self, *command: str) -> None:
        self.start = time.perf_counter()
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.execvp("env", ["env", "TERM=xterm-256color", "COLORTERM=truecolor", *command])
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.seen = b""
        self.at_last = (0.0, 0.0)

    def read(self, most: float) -> tuple[bytes, float]:
        """What is written until it is quiet, and when its last byte came; empty after ``most`` seconds."""
        found, last = b"", time.perf_counter()
        until = last + most
        while time.perf_counter() < (last + QUIET if found else until):
            if select.select([self.file], [], [], 0.002)[0]:
                try:
                    found += os.read(self.file, 1 << 16)
                except OSError:
                    break
                last = time.perf_counter()
                self.at_last = self._ran()
        self.seen += found
        return found, last

    def wait_for(self, text: bytes, most: float = 120) -> float:
        """Seconds since the start until some text is on the screen."""
        until = time.perf_counter() + most
        while text not in self.seen:
            if time.perf_counter() > until:
                raise TimeoutError(f"{text!r} never came")
            if select.select([self.file], [], [], 0.05)[0]:
                self.seen += os.read(self.file, 1 << 16)
        return time.perf_counter() - self.start

    def press(self, key: bytes) -> Key | None:
        """A key, and what it leads to; None where that is nothing."""
        ran, waited = self._ran()
        begin = time.perf_counter()
        os.write(self.file, key)
        found, last = self.read(2)
        ran_by_now, waited_by_now = self.at_last
        whole = (last - begin) * 1000
        return Key(whole, whole - waited_by_now + waited, ran_by_now - ran) if found else None

    def go(self, key: bytes) -> Key | None:
        """A key that leads to another row, while rows come: until the bar names that row, which it did not before."""
        self.seen = b""
        while not (named := _ROW.findall(self.seen)):
            self._take()
        before = named[-1]
        self.seen = b""
        ran, waited = self._ran()
        begin = time.perf_counter()
        os.write(self.file, key)
        while _ROW.findall(self.seen)[-1:] in ([], [before]):
            if time.perf_counter() > begin + 2:
                return None
            self._take()
        whole = (time.perf_counter() - begin) * 1000
        ran_by_now, waited_by_now = self._ran()
        return Key(whole, whole - waited_by_now + waited, ran_by_now - ran)

    def _take(self) -> None:
        if select.select([self.file], [], [], 0.002)[0]:
            self.seen += os.read(self.file, 1 << 16)

    def _ran(self) -> tuple[float, float]:
        """Milliseconds that the program's threads ran, and that the one that draws waited for a core."""
        ran = waited = 0
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            times = (thread / "schedstat").read_text(encoding="ascii").split()
            ran += int(times[0])
            waited += int(times[1]) if thread.name == str(self.pid) else 0
        return ran / 1e6, waited / 1e6

    def memory(self) -> float:
        """Megabytes of the program itself."""
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        return float("nan")

    def close(self) -> None:
        """Ends it as a person would."""
        os.write(self.file, b"\x03")
        os.waitpid(self.pid, 0)


def _told(name: str, keys: list[Key | None]) -> None:
    """Prints a line of figures; a key that changes nothing on the screen is not counted."""
    found = [key for key in keys if key is not None]
    words = []
    for label, times in (
        ("all", sorted(key.whole for key in found)),
        ("on a free core", sorted(key.free for key in found)),
        ("busy", sorted(key.busy for key in found)),
    ):
        if times:
            p95 = times[min(int(len(times) * 0.95), len(times) - 1)]
            words.append(f"{label} {times[len(times) // 2]:5.1f} / {p95:5.1f}")
    print(f"{name:24} ms, median / p95:  {'   '.join(words)}   of {len(found)}")


def _live(rate: int, keys: int) -> None:
    """Keys while an agent sends frames."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"turn": [{"pace": 120 * rate, "every": 1 / rate}]}), encoding="utf-8")
        agent = f"{sys.executable} -m callsheet.testing.fake_agent {script}"
        run = ("run", "fake", "--agent", agent, "--out", str(Path(folder) / "out"), "--", "Go.")
        terminal = Terminal(sys.executable, "-m", "callsheet", *run)
        terminal.wait_for(b"some words")
        time.sleep(3)
        for name, at, two in (
            ("rows before and after", b"g", (b"j", b"k")),
            ("screens before and after", b"g", (b"\x1b[6~", b"\x1b[5~")),
            ("first and last row", b"g", (b"G", b"g")),
        ):
            os.write(terminal.file, at)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                terminal._take()
            _told(name, [terminal.go(two[number % 2]) for number in range(keys)])
        print(f"load of the machine              {os.getloadavg()[0]:6.2f} on {os.cpu_count()} cores")
        print(f"memory                           {terminal.memory():6.0f} MB")
        terminal.close()


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?")
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--rate", type=int, default=1_000)
    asked = parser.parse_args()
    if asked.live:
        _live(asked.rate, asked.keys)
        return
    terminal = Terminal(sys.executable, "-m", "callsheet", "open", asked.source)
    first = terminal.wait_for(b"tests/test_")
    ran = terminal._ran()[0] / 1000
    print(
        f"first screen                     {first:6.2f} s from the start of the program, which ran {ran:.2f} s of it"
    )
    early: list[Key | None] = []
    terminal.read(0.2)
    while PROVISIONAL in terminal.seen:
        terminal.seen = b""
        early.append(terminal.press(b"j"))
        terminal.read(0.3)  # the bar says again and again that the file is being read
    _told("a key while it is read", early)
    terminal.seen = b""
    os.write(terminal.file, b"G")
    whole = terminal.wait_for(b"Done.")
    print(f"the last row on the screen       {whole:6.2f} s")
    for name, at, key in (
        ("the row before (k)", b"G", b"k"),
        ("a screen up", b"G", b"\x1b[5~"),
        ("the failure before (X)", b"G", b"X"),
        ("the row after (j)", b"g", b"j"),
        ("a screen down", b"g", b"\x1b[6~"),
        ("the next failure (x)", b"g", b"x"),
        ("open or close a row", b"g", b"\r"),
    ):
        os.write(terminal.file, at)
        terminal.read(0.5)
        time.sleep(1)  # a reader looks before the next key
        _told(name, [terminal.press(key) for _ in range(asked.keys)])
    print(f"load of the machine              {os.getloadavg()[0]:6.2f} on {os.cpu_count()} cores")
    print(f"memory                           {terminal.memory():6.0f} MB")
    terminal.close()


if __name__ == "__main__":
    main()
