"""What the tests of the live shell share: scripts of the fake agent as files, and runs of the command line."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Started = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def agent_of(tmp_path: Path) -> Callable[..., str]:
    """The value of ``--agent`` for a script."""

    def command(**script: Any) -> str:
        path = tmp_path / f"script-{len(list(tmp_path.iterdir()))}.json"
        path.write_text(json.dumps(script), encoding="utf-8")
        return shlex.join([sys.executable, "-m", "callsheet.testing.fake_agent", str(path)])

    return command


@pytest.fixture
def start() -> Iterator[Started]:
    """Starts ``callsheet`` with arguments, in a process group of its own; ends what is left of it."""
    running: list[subprocess.Popen[bytes]] = []

    def run(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "callsheet", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()
