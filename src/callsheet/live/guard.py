"""A program under a warden: started with all that descends from it in one hand, and ended with it.

Owns the warden's process (``warden``), what it says of the program's beginning and end, and the lifeline between us and
it. When this process is killed, the lifeline breaks, and the warden ends what is left.

Must never know: what the program says.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

WARDEN = Path(__file__).with_name("warden.py")
BOUND = 10.0
"""Seconds that a warden is waited for: a little more than it gives what it ends."""
Reach = Literal["tree", "group"]
"""What is ended for certain: everything that descends from the program, or only what stayed in its process group."""


class _Status:
    """What a warden says of its program."""

    def __init__(self) -> None:
        self._reader = asyncio.StreamReader()
        self._transport: asyncio.ReadTransport | None = None

    async def open(self, end: int) -> None:
        """Reads a pipe."""
        pipe = os.fdopen(end, "rb", buffering=0)
        try:
            self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(self._reader), pipe
            )
        except BaseException:
            pipe.close()
            raise

    async def said(self) -> tuple[str, int]:
        """What it says next; an empty word when it is gone."""
        word, _, number = (await self._reader.readline()).decode().partition(" ")
        return word, int(number or 0)

    def close(self) -> None:
        """Lets go of the pipe."""
        if self._transport is not None:
            self._transport.close()


class Guarded:
    """A running program, and what it started.

    Attributes:
        pid: Its process id, and that of its process group.
        stdin: Its standard input, if it is a pipe.
        stdout: Its standard output, likewise.
        stderr: Its standard error, likewise.
        returncode: How it ended, negative for a signal; None while it runs.
    """

    def __init__(self, pid: int, warden: asyncio.subprocess.Process, status: _Status, lifeline: int) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = warden.stdin, warden.stdout, warden.stderr
        self.returncode: int | None = None
        self._warden = warden
        self._status = status
        self._lifeline: int | None = lifeline
        self._ended = asyncio.create_task(self._end())

    @classmethod
    async def start(
        cls, command: Sequence[str], *, cwd: str | Path, environment: Mapping[str, str], **streams: Any
    ) -> Guarded:
        """Starts a program in a session of its own.

        Args:
            command: The program and its arguments.
            cwd: Where it runs.
            environment: All of its environment.
            streams: Its standard streams, as ``asyncio.create_subprocess_exec`` takes them.

        Raises:
            OSError: It cannot be started.
        """
        ours, theirs = os.pipe()
        held, lifeline = os.pipe()
        status = _Status()
        warden: asyncio.subprocess.Process | None = None
        try:
            try:
                await status.open(ours)
                locale = f"={environment['LC_CTYPE']}" if "LC_CTYPE" in environment else ""
                warden = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", str(WARDEN), str(theirs), str(held), locale),
                    *command,
                    cwd=cwd,
                    env=environment,
                    pass_fds=(theirs, held),
                    start_new_session=True,
                    **streams,
                )
            finally:
                os.close(theirs)
                os.close(held)
            word, number = await status.said()
        except BaseException:
            os.close(lifeline)
            status.close()
            if warden is not None:
                _close(warden)  # ends it, and the program that it has just begun
            raise
        if word == "pid":
            return cls(number, warden, status, lifeline)
        os.close(lifeline)
        status.close()
        await warden.wait()
        _close(warden)
        raise OSError(number, os.strerror(number) if word else "its warden ended", command[0])

    @property
    def reach(self) -> Reach:
        """What ``sweep`` ends for certain."""
        return "tree" if sys.platform == "linux" else "group"

    async def _end(self) -> int:
        word, number = await self._status.said()
        # A warden that was killed takes the program with it.
        self.returncode = number if word == "exit" else -signal.SIGKILL
        return self.returncode

    async def wait(self) -> int:
        """Waits for the program, not for what it started: how it ended."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Sends a signal to its process group, while it runs: the number may be another's afterwards."""
        if self.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def sweep(self) -> None:
        """Ends all that is left, the program too if it still runs. Bounded; may be called twice."""
        lifeline, self._lifeline = self._lifeline, None
        if lifeline is not None:
            with contextlib.suppress(OSError):
                os.write(lifeline, b".")
            os.close(lifeline)
        waiting = asyncio.ensure_future(_end_of(self._warden))
        await asyncio.wait({waiting}, timeout=BOUND)
        if not waiting.done():
            waiting.cancel()
        await asyncio.wait({self._ended}, timeout=1.0)

    async def close(self) -> None:
        """Lets go of its streams."""
        if not self._ended.done():
            self._ended.cancel()
        await asyncio.gather(self._ended, return_exceptions=True)
        self._status.close()
        _close(self._warden)
        await asyncio.sleep(0)


def _close(warden: asyncio.subprocess.Process) -> None:
    transport = getattr(warden, "_transport", None)
    if transport is not None:
        transport.close()


LOOK = 0.1
"""Seconds after which a process whose pipes are held open is looked at again."""


async def _end_of(process: asyncio.subprocess.Process) -> int:
    """Waits until a process has ended, whoever still holds its pipes.

    ``Process.wait()`` waits for the pipes too, up to Python 3.12: a child that keeps them would keep us for ever.
    """
    while process.returncode is None:
        waiting = asyncio.ensure_future(process.wait())
        await asyncio.wait({waiting}, timeout=LOOK)
        if not waiting.done():
            waiting.cancel()
    return process.returncode
