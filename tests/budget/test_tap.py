"""What the tap adds to a round trip between an editor and its agent (make bench)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 2_000
AGENT = [sys.executable, "-c", "import os\nwhile chunk := os.read(0, 65536):\n os.write(1, chunk)"]
FRAME = b'{"jsonrpc":"2.0","method":"session/update","params":{"text":"' + b"x" * 300 + b'"}}\n'
BULK = 64 << 20
ADDED_MOST = 0.001
"""Seconds that a frame may take longer, there and back, at the median."""


def times(command: Sequence[str]) -> list[float]:
    """How long each round trip took."""
    found = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(ROUNDS):
            began = time.perf_counter()
            process.stdin.write(FRAME)
            left = len(FRAME)
            while left:
                left -= len(process.stdout.read(left))
            found.append(time.perf_counter() - began)
        process.stdin.close()
        process.wait(30)
    return sorted(found[100:])


def bulk(command: Sequence[str]) -> float:
    """Seconds for many bytes of the agent."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        size = 0
        while chunk := process.stdout.read(1 << 20):
            size += len(chunk)
        assert size == BULK
    return time.perf_counter() - began


def test_the_tap_adds_little(tmp_path: Path) -> None:
    tapped = [sys.executable, "-m", "callsheet", "tap", "--out", str(tmp_path / "out"), "--"]
    straight, through = times(AGENT), times([*tapped, *AGENT])
    half, most = len(straight) // 2, int(len(straight) * 0.99)
    for name, found in (("straight", straight), ("through the tap", through)):
        print(f"\n{name}: median {found[half] * 1e6:.0f} µs, 99 % {found[most] * 1e6:.0f} µs", end="")
    flood = [
        sys.executable,
        "-c",
        f"import os\nfor _ in range({BULK >> 16}):\n os.write(1, b'x' * 65535 + b'\\n')",
    ]
    print(
        f"\n{BULK >> 20} MiB: straight {bulk(flood):.2f} s, through the tap {bulk([*tapped, *flood]):.2f} s"
    )
    assert through[half] - straight[half] < ADDED_MOST
