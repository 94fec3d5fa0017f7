"""Measures the workbench in a pseudo-terminal: first screen, the whole, key to paint, memory.

    python benchmarks/workbench.py SOURCE [--keys 60]

SOURCE is a large session as an agent stored it, or a bundle of one (see make_session.py). The program runs as a person
would start it; a key counts as painted when the last byte that follows it was written.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from pathlib import Path

PROVISIONAL = "≈".encode()
QUIET = 0.05
"""Seconds without a byte after which a screen counts as painted."""


class Terminal:
    """A program in a pseudo-terminal of 100 by 40 cells."""

    def __init__(self, *command: str) -> None:
        self.start = time.perf_counter()
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.execvp("env", ["env", "TERM=xterm-256color", "COLORTERM=truecolor", *command])
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.seen = b""

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

    def press(self, key: bytes) -> float:
        """Seconds from a key to the last byte that it led to."""
        begin = time.perf_counter()
        os.write(self.file, key)
        found, last = self.read(2)
        return last - begin if found else float("nan")

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


def _told(name: str, times: list[float]) -> None:
    good = sorted(one * 1000 for one in times if one == one)
    if good:  # a key that changes nothing on the screen is not counted
        p95 = good[min(int(len(good) * 0.95), len(good) - 1)]
        print(f"{name:32} median {good[len(good) // 2]:6.1f} ms   p95 {p95:6.1f} ms   of {len(good)}")


def main() -> None:
    """Runs it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("--keys", type=int, default=60)
    asked = parser.parse_args()
    terminal = Terminal(sys.executable, "-m", "callsheet", "open", asked.source)
    first = terminal.wait_for(b"tests/test_")
    print(f"first screen                     {first:6.2f} s (from the start of the program)")
    early: list[float] = []
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
    for name, key in (
        ("the row before (k)", b"k"),
        ("a screen up", b"\x1b[5~"),
        ("the next failure (x)", b"x"),
        ("open or close a row", b"\r"),
        ("a screen down", b"\x1b[6~"),
    ):
        terminal.read(0.1)
        _told(name, [terminal.press(key) for _ in range(asked.keys)])
        os.write(terminal.file, b"g")
        terminal.read(0.5)
    print(f"memory                           {terminal.memory():6.0f} MB")
    terminal.close()


if __name__ == "__main__":
    main()
