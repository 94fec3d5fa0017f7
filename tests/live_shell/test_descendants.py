"""Nothing that an agent started outlives the session: children that left its group, its parents, its environment."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from callsheet.live import Closed, Session, open_session
from callsheet.live.guard import Guarded
from callsheet.live.lending import Lender
from callsheet.seam import Installed, Lost, NotStarted, Serve, Served, TurnResult, Wish
from callsheet.testing.fake import FAKE, fake_command
from callsheet.testing.live_run import QUICK

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what left a process group")

DAEMON = """
import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
if "PATH" in os.environ: os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {})
for number in (signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
with open(sys.argv[1] + ".part", "w") as note: note.write(str(os.getpid()))
os.rename(sys.argv[1] + ".part", sys.argv[1])
time.sleep(600)
"""
"""Leaves its parents, its group and its environment, and takes no hint."""


def daemon(note: Path) -> list[str]:
    return [sys.executable, "-c", DAEMON, str(note)]


def lives(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def noted(note: Path) -> int:
    """The process that a note names, once it is there."""
    until = time.monotonic() + 60
    while not note.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return int(note.read_text())


def gone(pid: int) -> bool:
    """Whether a process ends, given time."""
    until = time.monotonic() + 60
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not lives(pid)


async def opened(tmp_path: Path, **script: Any) -> Session:
    installed = Installed(command=fake_command(**script), version="1.0", evidence="test")
    wish = Wish(cwd=str(tmp_path))
    session = await open_session(FAKE, installed, wish, out=tmp_path / "out", limits=QUICK)
    assert isinstance(session, Session), session
    return session


@pytest.mark.parametrize("end", [{"exit": 0}, {"kill": int(signal.SIGKILL)}, {"say": "on"}], ids=str)
def test_a_daemon_ends_with_the_session_though_its_parents_are_gone(
    tmp_path: Path, end: dict[str, Any]
) -> None:
    note = tmp_path / "note"

    async def go() -> tuple[int, bool, Closed]:
        session = await opened(tmp_path, turn=[{"spawn": daemon(note)}, {"sleep": 0.5}, end])
        turn = session.start("Do.")
        await turn.result()
        pid = await asyncio.to_thread(noted, note)
        lived = lives(pid)
        return pid, lived, await session.close()

    pid, lived, closed = asyncio.run(go())
    assert lived, "it ends when the session is closed, not before"
    assert not lives(pid)
    assert (closed.reach, closed.problems) == ("tree", ())


def test_a_daemon_of_a_lent_terminal_ends_when_it_is_released(tmp_path: Path) -> None:
    notes = [tmp_path / "one", tmp_path / "two"]

    async def ask(lender: Lender, method: str, **params: Any) -> Any:
        told = await lender.serve(Serve(key="k", method=method, params=Raw(json.dumps(params).encode())))
        assert isinstance(told, Served), told
        return json.loads(bytes(told.result))

    async def go() -> list[bool]:
        lender = Lender(tmp_path)
        names = []
        for note in notes:
            command, *arguments = daemon(note)
            names.append(
                (await ask(lender, "terminal/create", command=command, args=arguments))["terminalId"]
            )
            status = await ask(lender, "terminal/wait_for_exit", terminalId=names[-1])
            assert status == {"exitCode": 0, "signal": None}
        one, two = [await asyncio.to_thread(noted, note) for note in notes]
        seen = [lives(one), lives(two)]
        await ask(lender, "terminal/release", terminalId=names[0])
        seen += [lives(one), lives(two)]
        await lender.close()
        return [*seen, lives(two)]

    assert asyncio.run(go()) == [True, True, False, True, False]


def test_a_terminal_that_is_started_while_the_session_closes_ends_at_once(tmp_path: Path) -> None:
    note = tmp_path / "note"

    async def go() -> bool:
        lender = Lender(tmp_path)
        command = f"echo $$ > {note}.part; mv {note}.part {note}; sleep 600"
        params = Raw(json.dumps({"command": command}).encode())
        asked = asyncio.create_task(lender.serve(Serve(key="k", method="terminal/create", params=params)))
        await asyncio.sleep(0)
        await lender.close()
        return isinstance(await asked, Served)

    assert not asyncio.run(go())
    assert not note.exists() or gone(int(note.read_text()))


def test_a_child_of_ours_that_is_not_the_agents_is_let_alone(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)

    async def go() -> None:
        session = await opened(tmp_path, turn=[{"say": "hello"}])
        await session.start("Do.").result()
        await session.close()

    try:
        asyncio.run(go())
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_when_we_are_killed_an_agent_that_ignores_everything_ends_too(
    start: Callable[..., subprocess.Popen[bytes]], agent_of: Callable[..., str], tmp_path: Path
) -> None:
    note, own = tmp_path / "note", tmp_path / "own"
    write = f"import os, pathlib; pathlib.Path({str(own)!r}).write_text(str(os.getppid()))"
    agent = agent_of(
        turn=[{"spawn": daemon(note)}, {"spawn": [sys.executable, "-c", write]}, {"sleep": 600}],
        deaf=["eof", "term", "cancel"],
    )
    process = start("run", "fake", "--agent", agent, "--json", "--out", str(tmp_path / "out"), "--", "Go.")
    pids = [noted(note), noted(own)]
    assert all(lives(pid) for pid in pids)
    process.kill()
    process.wait()
    assert all(map(gone, pids))


def test_a_warden_that_is_killed_takes_the_agent_with_it(tmp_path: Path) -> None:
    async def go() -> tuple[int, TurnResult | None, Closed]:
        session = await opened(tmp_path, turn=[{"sleep": 600}], deaf=["eof", "term", "cancel"])
        turn = session.start("Do.")
        warden = int(Path(f"/proc/{session.pid}/stat").read_text().rpartition(")")[2].split()[1])
        pid = int(session.pid or 0)
        os.kill(warden, signal.SIGKILL)
        return pid, await turn.result(), await session.close()

    pid, result, closed = asyncio.run(asyncio.wait_for(go(), 60))
    assert gone(pid)
    assert isinstance(result, Lost | NotStarted)
    assert closed.signal == "SIGKILL"


# -- how a program is started -------------------------------------------------------------------------------------


async def printed(command: list[str], environment: dict[str, str]) -> str:
    program = await Guarded.start(
        command,
        cwd="/",
        environment=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert program.stdout is not None
    text = await program.stdout.read()
    assert await program.wait() == 0
    await program.sweep()
    await program.close()
    return text.decode()


@pytest.mark.parametrize(
    "environment", [{}, {"A": "1"}, {"LC_CTYPE": "C", "LANG": "x", "B": "ö\n"}, {"LC_ALL": "C"}], ids=str
)
def test_a_program_gets_its_environment_and_no_more(environment: dict[str, str]) -> None:
    told = asyncio.run(printed(["/usr/bin/env", "-0"], environment))
    assert dict(one.split("=", 1) for one in told.split("\0") if one) == environment


def test_a_program_ignores_no_signal_that_we_ignore_and_holds_no_file_of_ours() -> None:
    show = "grep -E 'Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd | wc -l"
    told = asyncio.run(printed(["/bin/sh", "-c", show], {"PATH": os.environ["PATH"]})).split()
    # SIGHUP, SIGINT and SIGQUIT are as we found them ourselves (nohup, a job of a shell).
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
        assert not (int(told[1], 16) | int(told[3], 16)) & 1 << (number - 1), number
    assert int(told[-1]) == 4, "the three streams, and the folder that ls reads"


@pytest.mark.parametrize(
    ("name", "number"), [("nothing-of-this-name", errno.ENOENT), ("/etc/passwd", errno.EACCES)]
)
def test_a_program_that_cannot_be_started_is_an_error_of_the_system(name: str, number: int) -> None:
    async def go() -> None:
        await Guarded.start([name], cwd="/", environment=dict(os.environ))

    with pytest.raises(OSError, match=name) as caught:
        asyncio.run(go())
    assert caught.value.errno == number
