"""How fast a live turn is shown, what it costs in memory, and how much longer an agent takes to start.

``python benchmarks/live.py [--seconds 60] [--rate 1000]`` runs the fake agent and prints figures, one a line, with the
bound that each must keep; the exit code is 1 if one does not. An event is late by the time between the agent's writing
of a frame and its reader's getting the record that was made of it, on disk already.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from callsheet.live import Session, open_session
from callsheet.records import ToolCall
from callsheet.seam import Completed, Installed, MessagePreview, Recorded, Wish
from callsheet.testing.fake import FAKE, fake_command


class Figure(NamedTuple):
    """A measured value and its bound."""

    name: str
    value: float
    bound: float
    unit: str


def resident() -> float:
    """Megabytes of memory in use now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


async def steady(seconds: int, rate: int, out: Path) -> list[Figure]:
    """A turn at a steady pace: how late events are, and whether memory grows."""
    command = fake_command(turn=[{"pace": seconds * rate, "every": 1 / rate}])
    installed = Installed(command=command, version=None, evidence="given")
    session = await open_session(FAKE, installed, Wish(cwd=str(out)), out=out)
    assert isinstance(session, Session)
    late: list[float] = []
    memory: list[float] = []
    begun = time.monotonic()
    async with session:
        turn = session.start("Go.")
        async for event in turn:
            now = time.time()
            if isinstance(event, MessagePreview):
                late.append((now - float(event.text[-17:])) * 1000)
            elif isinstance(event, Recorded) and isinstance(event.record, ToolCall):
                late.append((now - float(event.record.title or "nan")) * 1000)
                memory.append(resident())
        result = await turn.result()
        took = time.monotonic() - begun
        assert result == Completed("end_turn"), result
        gc.collect()
    late.sort()
    # The first half warms up; memory is flat when the second half adds next to nothing.
    half = memory[len(memory) // 2 :]
    return [
        Figure("frames in a second", seconds * rate / took, 0, ""),
        Figure("p50 from frame to event", late[len(late) // 2], 50, "ms"),
        Figure("p99 from frame to event", late[int(len(late) * 0.99)], 50, "ms"),
        Figure("the latest event", late[-1], 1000, "ms"),
        Figure("memory at the end", memory[-1], 400, "MB"),
        Figure("growth in the second half", half[-1] - half[0], 5, "MB"),
    ]


def alone(command: tuple[str, ...]) -> float:
    """Seconds of the agent's turn, driven by a client that does nothing else."""
    begun = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, method in enumerate(("initialize", "session/new", "session/prompt")):
            frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
            process.stdin.write(json.dumps(frame).encode() + b"\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline()).get("id") != number:
                pass
        process.stdin.close()
    return time.monotonic() - begun


def through(command: tuple[str, ...], out: Path) -> float:
    """Seconds of the same turn through ``callsheet run``."""
    script = out / "script.json"
    script.write_text(command[-1], encoding="utf-8")
    agent = " ".join((*command[:-1], str(script)))
    run = [sys.executable, "-m", "callsheet", "run", "fake", "--agent", agent, "--json", "--out", str(out)]
    begun = time.monotonic()
    subprocess.run([*run, "--", "Go."], check=True, capture_output=True)
    return time.monotonic() - begun


def startup(out: Path) -> Figure:
    """What callsheet adds to the shortest turn; the best of several, on a machine that does other things too."""
    command = fake_command(turn=[{"say": "hello"}])
    own = min(alone(command) for _ in range(7))
    ours = min(through(command, out) for _ in range(7))
    return Figure("start-up over the agent's own", (ours - own) * 1000, 300, "ms")


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=1000)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = [startup(Path(folder)), *asyncio.run(steady(wanted.seconds, wanted.rate, Path(folder)))]
    good = True
    show: Callable[[float], str] = lambda value: f"{value:,.1f}"  # noqa: E731
    for figure in figures:
        kept = not figure.bound or figure.value <= figure.bound
        good = good and kept
        bound = f" (at most {figure.bound:g})" if figure.bound else ""
        sys.stdout.write(
            f"{figure.name}: {show(figure.value)} {figure.unit}{bound}{'' if kept else '  TOO MUCH'}\n"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
