"""The terminal: where text goes, how wide, whether in colour, and the bar that says something is being read.

Owns the environment's say in looks (``NO_COLOR``, ``TERM``, ``COLUMNS``, the encoding). Names of files and
messages may hold anything, so they pass ``visible`` like every other text.

Must never know: rows, records.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import TextIO

from callsheet.paint.safe import visible
from callsheet.paint.span import Line, coloured, plain

WIDEST = 120
"""Cells that a sheet uses at most on a wide terminal."""
BAR_AFTER = 1.0
"""Seconds of work before a bar is shown."""

_PLAIN_SIGNS = str.maketrans(
    {
        "✓": "+",
        "✗": "x",
        "⊘": "#",
        "●": "o",
        "│": "|",
        "┆": ":",
        "┊": ":",
        "─": "-",
        "…": "~",
        "·": "-",
        "◌": "o",
        "▸": ">",
    }
)
"""Our own signs for output that cannot hold them; a mark must never turn into another mark."""


def complain(message: str) -> None:
    """Says what is wrong, on one line of stderr."""
    _write(sys.stderr, f"callsheet: {visible(message)}")


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at this stream."""
    return stream.isatty()


def obeys(stream: TextIO) -> bool:
    """Whether a terminal obeys escape sequences, so that what was written can be taken back."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Whether to write colours: a terminal that has them, and nobody said no."""
    return obeys(stream) and not os.environ.get("NO_COLOR")


def sheet_width(wanted: int | None) -> int:
    """Cells of a line: as asked for, else the terminal's up to ``WIDEST``, else 80."""
    return wanted if wanted is not None else min(shutil.get_terminal_size((80, 24)).columns, WIDEST)


def screen_lines() -> int:
    """Lines of the terminal."""
    return shutil.get_terminal_size((80, 24)).lines


def _write(stream: TextIO, text: str) -> None:
    encoding = (stream.encoding or "utf-8").lower().replace("-", "").replace("_", "")
    if not encoding.startswith("utf"):
        text = (
            text.translate(_PLAIN_SIGNS).encode(stream.encoding, "backslashreplace").decode(stream.encoding)
        )
    stream.write(text + "\n")


class Printer:
    """Writes lines of a sheet to a stream, coloured where that is right.

    Attributes:
        lines: Lines written so far.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._text = coloured if has_colour(stream) else plain
        self.lines = 0

    def line(self, line: Line) -> None:
        """Writes one line."""
        _write(self._stream, self._text(line))
        self.lines += 1

    def words(self, text: str) -> None:
        """Writes one line of text that may come from anywhere."""
        _write(self._stream, visible(text))
        self.lines += 1

    def erase(self) -> None:
        """Takes back, on a terminal, all lines written so far."""
        if self.lines:
            self._stream.write(f"\x1b[{self.lines}A\r\x1b[J")
        self.lines = 0
        self._stream.flush()


_LOUD = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters of JSON text that may do something to a terminal, or to a reader of lines."""


def write_json(data: bytes) -> None:
    """Writes one JSON value and a line end to stdout; what a terminal could obey is escaped as JSON allows."""
    if not data.isascii() or b"\x7f" in data:
        # Outside of strings JSON is ASCII, so each of these stands in one.
        data = _LOUD.sub(lambda found: f"\\u{ord(found.group()):04x}", data.decode()).encode()
    sys.stdout.buffer.write(data + b"\n")


class Bar:
    """A bar on stderr for work over a second; nothing where stderr is no terminal, or one that takes nothing back.

    ``advance`` may be called as often as one likes.
    """

    def __init__(self) -> None:
        self._shown = False
        self._on = obeys(sys.stderr)
        self._start = time.monotonic()
        self._next = self._start + BAR_AFTER

    def advance(self, what: str, done: int, total: int) -> None:
        """Tells how far the work is.

        Args:
            what: What is being read.
            done: Bytes read so far.
            total: Bytes to read.
        """
        if not self._on:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.1
        share = min(done / total, 1.0) if total > 0 else 0.0
        filled = round(share * 20)
        name = visible(Path(what).name)[-40:]
        sys.stderr.write(f"\r\x1b[2K[{'#' * filled}{' ' * (20 - filled)}] {share:4.0%} {name}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Takes the bar away."""
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False
