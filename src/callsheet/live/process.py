"""A process with all its descendants: started, spoken to over its standard streams, and ended for certain.

Owns: its output as lines, the bounded tail of its standard error, and the end: closed input first, then SIGTERM, then
SIGKILL, and then whatever it has left behind, anywhere (``guard``).

Must never know: what a line means.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence

from callsheet.harness._port.attested import Exit
from callsheet.live.guard import Guarded, Reach
from callsheet.live.limits import Limits
from callsheet.live.transport import CHUNK, Cut, How, LineCutter, NotRead


class Process:
    """A running program and what it started (``Transport``).

    Attributes:
        exit_code: Its exit code, when it ended by itself.
        signal: The name of the signal that ended it.
    """

    ours = True

    def __init__(self, process: Guarded, limits: Limits) -> None:
        self._process = process
        self._limits = limits
        self._tail = bytearray()
        self._errors = asyncio.create_task(self._read_errors())
        self._exited = asyncio.create_task(process.wait())
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
        process = await Guarded.start(
            command,
            cwd=cwd,
            environment={**os.environ, **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=4 * CHUNK,
        )
        return cls(process, limits)

    @property
    def pid(self) -> int:
        """The process id of the program, and of its group."""
        return self._process.pid

    @property
    def reach(self) -> Reach:
        """What ``end`` ends for certain."""
        return self._process.reach

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

    def outcome(self) -> Exit:
        """Its exit code or signal."""
        return Exit(code=self.exit_code, signal=self.signal)

    async def end(self) -> How:
        """Ends the program and all it started: closed input, then SIGTERM, then SIGKILL. Bounded, idempotent."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return await asyncio.shield(self._ending)

    async def _end(self) -> How:
        stream = self._process.stdin
        if stream is not None:
            with contextlib.suppress(OSError, RuntimeError):
                stream.close()
        how: How = "left"
        if not await self._gone(self._limits.leave):
            how = "asked"
            self._process.signal(signal.SIGTERM)
            if not await self._gone(self._limits.leave):
                how = "killed"
                self._process.signal(signal.SIGKILL)
                await self._gone(self._limits.leave)
        await self._process.sweep()
        await asyncio.wait({self._errors}, timeout=self._limits.drain)
        await self._let_go()
        return how

    async def _gone(self, seconds: float) -> bool:
        await asyncio.wait({self._exited}, timeout=seconds)
        if self._exited.done():
            await self.wait()
            return True
        return False

    async def _let_go(self) -> None:
        for task in (self._errors, self._exited):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self._process.close()


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
