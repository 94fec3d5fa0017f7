"""What only a person at a terminal sees: colours, the first look at a large file, the bar."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty")

ROOT = Path(__file__).parents[2]
RULES = ROOT / "examples/claude-code/projects/-home-dev-acme-app/5dd2e94d-807f-4903-b8e4-2497aa981da8.jsonl"
BAR = re.compile(rb"\r\x1b\[2K(?:\[[# ]{20}\] +\d+% [^\r\x1b]*)?")
ERASED = re.compile(rb"\x1b\[(\d+)A\r\x1b\[J")


def seen(*args: object, **environ: str) -> bytes:
    """Everything that a program writes to a terminal of 100 by 30, but for the bar, which a slow machine shows."""
    return BAR.sub(b"", written(*args, **environ))


def written(*args: object, **environ: str) -> bytes:
    """Everything that a program writes to a terminal of 100 by 30."""
    ours, theirs = pty.openpty()
    ran = subprocess.Popen(
        [sys.executable, "-m", "callsheet", *(str(arg) for arg in args)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30", **environ},
    )
    os.close(theirs)
    found = bytearray()
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        found += data
    os.close(ours)
    assert ran.wait() == 0
    return bytes(found)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.jsonl"
    filler = b'{"type":"filler","text":"' + b"x" * 900 + b'"}\n'
    path.write_bytes(RULES.read_bytes() + filler * 1300)
    return path


def test_colours_on_a_terminal_only_when_wanted() -> None:
    assert b"\x1b[35m" in seen("show", RULES)
    assert b"\x1b[" not in seen("show", RULES, NO_COLOR="1")


def test_a_terminal_that_obeys_nothing_is_told_nothing_twice(large: Path) -> None:
    found = written("show", large, TERM="dumb")
    assert b"\x1b" not in found
    assert found.count(b"command  rm -rf build") == 1


def test_a_large_file_is_looked_at_first_and_then_drawn_whole(large: Path) -> None:
    found = seen("show", large, NO_COLOR="1")
    erased = ERASED.search(found)
    assert erased is not None
    first, rest = found[: erased.start()], found[erased.end() :]
    lines = first.decode().replace("\r\n", "\n").splitlines()
    assert lines[0] == "provisional: the file is still being read"
    assert "command  rm -rf build" in "\n".join(lines)
    assert int(erased[1]) == len(lines) <= 27
    assert b"8 calls" in rest
    assert b"provisional" not in rest


def test_no_first_look_in_json_or_of_what_is_no_session(large: Path, tmp_path: Path) -> None:
    assert not ERASED.search(seen("show", large, "--json"))
    assert b"provisional" not in seen("show", large, "--json")
    stream = tmp_path / "stream.jsonl"
    line = b'{"type":"message","seq":0,"id":"r0","author":"user","content":[{"type":"text","text":"%s"}]}\n'
    stream.write_bytes(b'{"type":"session","format":"callsheet/1"}\n' + (line % (b"x" * 900)) * 1300)
    assert b"provisional" not in seen("show", stream)
