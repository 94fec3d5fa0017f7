"""A process with all its descendants: started, spoken to over its standard streams, and ended for certain.

Owns: starting it in a process group of its own, its output cut into lines of any length that memory allows, the
bounded tail of its standard error, and the end: closed input first, then SIGTERM, then SIGKILL, to the whole tree.
Where the system shows who started whom (Linux), a descendant that left the group is ended too.

Must never know: what a line means.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from callsheet.live.limits import Limits

CHUNK = 1 << 18
POLL = 0.02
ENDED = 0.1
"""Seconds after which a process whose pipes are held open is looked at again."""
How = Literal["left", "asked", "killed"]
"""How a process went: by itself when its input was closed, when it was asked to, or by force."""


class NotRead(Exception):
    """The program does not read its input any more, and asks for more and more."""


class Cut(NamedTuple):
    """The beginning of a line that was longer than a line may be, and its length."""

    head: bytes
    size: int


class LineCutter:
    """Cuts chunks into lines, whatever the chunks are.

    Args:
        most: Bytes of the longest line.
    """

    HEAD = 4096

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: list[bytes] = []
        self._size = 0
        self._cut: bytes | None = None

    def feed(self, chunk: bytes) -> list[bytes | Cut]:
        """The lines that are complete now."""
        pieces = chunk.split(b"\n")
        out: list[bytes | Cut] = []
        for number, piece in enumerate(pieces):
            self._size += len(piece)
            if self._cut is None:
                self._held.append(piece)
                if self._size > self._most:
                    self._cut = b"".join(self._held)[: self.HEAD]
                    self._held.clear()
            if number < len(pieces) - 1:
                out += self.rest(ended=True)
        return out

    def rest(self, *, ended: bool = False) -> list[bytes | Cut]:
        """The line at hand: the last one, which has no line end, or (``ended``) one that has it."""
        size, held, cut = self._size, b"".join(self._held), self._cut
        self._held.clear()
        self._size, self._cut = 0, None
        if cut is not None:
            return [Cut(cut, size)]
        return [held] if held or ended else []


class Process:
    """A running program and what it started.

    Attributes:
        exit_code: Its exit code, when it ended by itself.
        signal: The name of the signal that ended it.
    """

    def __init__(self, process: asyncio.subprocess.Process, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._tail = bytearray()
        self._errors = asyncio.create_task(self._read_errors())
        self._exited = asyncio.create_task(_end_of(process))
        self._ending: asyncio.Task[How] | None = None
        self.exit_code: int | None = None
        self.signal: str | None = None

    @classmethod
    async def start(
        cls, command: Sequence[str], *, cwd: str, environment: dict[str, str], limits: Limits
    ) -> Process:
        """Starts a program in a process group of its own.

        Raises:
            OSError: It cannot be started.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **environment},
            start_new_session=True,
            limit=4 * CHUNK,
        )
        return cls(process, limits)

    @property
    def pid(self) -> int:
        """The process id of the program, and of its group."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The tail of what it wrote to its standard error."""
        return bytes(self._tail).decode("utf-8", "replace")

    async def _read_errors(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while chunk := await stream.read(CHUNK):
            self._tail += chunk
            del self._tail[: max(0, len(self._tail) - self._limits.stderr)]

    async def chunks(self) -> AsyncIterator[list[bytes | Cut]]:
        """The lines of its output, as many at a time as have come, until the output ends or the process is gone."""
        stream = self._process.stdout
        assert stream is not None
        cutter = LineCutter(self._limits.line)
        while True:
            reading = asyncio.ensure_future(stream.read(CHUNK))
            await asyncio.wait({reading, self._exited}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                # The process is gone; a child of it may keep the output open for ever.
                await asyncio.wait({reading}, timeout=self._limits.drain)
            if not reading.done():
                reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reading
                break
            chunk = reading.result()
            if not chunk:
                break
            lines = cutter.feed(chunk)
            if lines:
                yield lines
        if lines := cutter.rest():
            yield lines

    def send(self, frame: bytes) -> None:
        """Writes a line to its input; nothing happens when it is closed.

        Raises:
            NotRead: More waits to be read than may wait.
        """
        stream = self._process.stdin
        if stream is None or stream.is_closing():
            return
        if stream.transport.get_write_buffer_size() > self._limits.unread:
            raise NotRead(f"the agent does not read: {self._limits.unread:,} bytes wait for it")
        with contextlib.suppress(OSError, RuntimeError):
            stream.write(frame + b"\n")

    async def wait(self) -> None:
        """Waits for the program to end."""
        code = await asyncio.shield(self._exited)
        if code < 0:
            self.signal = _name_of(-code)
        else:
            self.exit_code = code

    async def end(self) -> How:
        """Ends the program and all it started: closed input, then SIGTERM, then SIGKILL. Bounded, idempotent."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return await asyncio.shield(self._ending)

    async def _end(self) -> How:
        family = _descendants(self.pid)
        stream = self._process.stdin
        if stream is not None:
            with contextlib.suppress(OSError, RuntimeError):
                stream.close()
        how: How = "left"
        if not await self._gone(self._limits.leave):
            family |= _descendants(self.pid)
            how = "asked"
            self._signal_group(signal.SIGTERM)
            if not await self._gone(self._limits.leave):
                family |= _descendants(self.pid)
                how = "killed"
                self._signal_group(signal.SIGKILL)
                await self._gone(self._limits.leave)
        await self._sweep(family)
        await asyncio.wait({self._errors}, timeout=self._limits.drain)
        await self._let_go()
        return how

    async def _gone(self, seconds: float) -> bool:
        await asyncio.wait({self._exited}, timeout=seconds)
        if self._exited.done():
            await self.wait()
            return True
        return False

    async def _sweep(self, family: set[_Kin]) -> None:
        """Ends what the program left behind."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = self._signal_group(number)
            for kin in family:
                if kin.lives():
                    left = True
                    with contextlib.suppress(OSError):
                        os.kill(kin.pid, number)
            if not left:
                return
            for _ in range(int(self._limits.leave / 3 / POLL)):
                await asyncio.sleep(POLL)
                if not self._signal_group(0) and not any(kin.lives() for kin in family):
                    return

    def _signal_group(self, number: int) -> bool:
        """Sends a signal to the group; whether anybody is in it."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def _let_go(self) -> None:
        for task in (self._errors, self._exited):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()
            await asyncio.sleep(0)


async def _end_of(process: asyncio.subprocess.Process) -> int:
    """Waits until a process has ended, whoever still holds its pipes.

    ``Process.wait()`` waits for the pipes too, up to Python 3.12: a child that keeps them would keep us for ever.
    """
    while process.returncode is None:
        waiting = asyncio.ensure_future(process.wait())
        await asyncio.wait({waiting}, timeout=ENDED)
        if not waiting.done():
            waiting.cancel()
    return process.returncode


class _Kin(NamedTuple):
    """A process that cannot be taken for a later one of the same number: it began at ``start``."""

    pid: int
    start: str

    def lives(self) -> bool:
        found = _stat(self.pid)
        return found is not None and found[1] == self.start and found[2] != "Z"


def _stat(pid: int) -> tuple[int, str, str] | None:
    """Parent, start and state of a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    words = text[text.rfind(")") + 2 :].split()
    return int(words[1]), words[19], words[0]


def _descendants(pid: int) -> set[_Kin]:
    """All that a process started, directly or not; none where the system does not show it."""
    if sys.platform != "linux":
        return set()
    children: dict[int, list[_Kin]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 (names only)
        if entry.isdigit() and (found := _stat(int(entry))) is not None:
            children.setdefault(found[0], []).append(_Kin(int(entry), found[1]))
    family: set[_Kin] = set()
    ahead = [pid]
    while ahead:
        for kin in children.get(ahead.pop(), ()):
            if kin not in family:
                family.add(kin)
                ahead.append(kin.pid)
    return family


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
