"""``--out`` where nothing can be written: wrong usage, said in one line; only the tap goes on without a record."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from callsheet.testing.fake import fake_command

SESSION = "examples/claude-code/projects/-home-dev-acme-app/858837b5-8915-443b-bfa2-93fd580a1421.jsonl"
AGENT = shlex.join(fake_command(turn=[{"say": "hello"}]))
CLOSED = Path("/proc/self/fdinfo")
"""A folder where nobody can make anything, whoever asks."""

pytestmark = pytest.mark.skipif(not CLOSED.is_dir(), reason="needs a folder where nobody can write (/proc)")


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "callsheet", *arguments]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


@pytest.mark.parametrize("out", [CLOSED, CLOSED / "below"], ids=["a folder", "below one"])
@pytest.mark.parametrize(
    "command",
    [
        ["import", SESSION],
        ["import", SESSION, "--json"],
        ["run", "fake", "--agent", AGENT, "--json"],
        ["run", "fake", "--agent", AGENT, "--plain"],
    ],
    ids=lambda command: " ".join(one for one in command if one in ("import", "run", "--json", "--plain")),
)
def test_nothing_can_be_written_there(command: list[str], out: Path) -> None:
    rest = ["--", "Go."] if command[0] == "run" else []
    done = ran(*command, "--out", str(out), *rest)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"callsheet: {out}: ")


def test_the_tap_goes_on_and_ends_as_its_agent() -> None:
    words = ["tap", "--out", str(CLOSED), "--", "/bin/sh", "-c", "echo said; cat; exit 5"]
    with subprocess.Popen(
        [sys.executable, "-m", "callsheet", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tap:
        assert tap.stderr is not None
        into = tap.stdin
        assert into is not None
        heard = threading.Event()

        def talk() -> None:
            # A recorder that is gone is noticed with the next byte for it.
            while not heard.wait(0.05):
                into.write("on\n")
                into.flush()

        talking = threading.Thread(target=talk)
        talking.start()
        line = tap.stderr.readline()
        heard.set()
        talking.join()
        said, more = tap.communicate()
    assert (tap.returncode, said[:8], more) == (5, "said\non\n", "")
    assert line.startswith(f"callsheet: {CLOSED}: ")
    assert line.endswith("the conversation goes on, and what follows of it is not recorded\n")
