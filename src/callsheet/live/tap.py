"""The pump of ``callsheet tap``: between an editor and its agent, every byte passed on as it came.

Owns: the agent's process (its standard error is the editor's own), two threads that read and write bytes, whatever
they are, signals and the exit code passed on, and a recorder in a process of its own, which is told of every chunk over
a pipe. The pump never waits for the recorder: what it has not taken yet waits in memory, bounded; when it is gone, or
does not keep up, that is said once on standard error and the conversation goes on. A chunk is told of before it is
passed on, so that a question stands before its answer.

Must never know: what a byte means, records.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

CHUNK = 1 << 16
HEADER = struct.Struct(">BQI")
"""Before every chunk that the recorder is told of: its way, nanoseconds since 1970, its size."""
FROM_CLIENT, FROM_AGENT, EXIT = 0, 1, 2
"""Ways. An ``EXIT`` is the agent's return code as text, negative for a signal; nothing comes after it."""
HELD_MOST = 256 << 20
"""Bytes that wait for the recorder at most."""
PIPE = 1 << 16
"""Bytes that a pipe takes though nobody reads it."""
QUIET = 0.5
"""Seconds without a byte after which the output of an agent that is gone is over, though something holds it open."""
FLUSH = 2.0
"""Seconds that the recorder gets to finish, once the agent is gone; then it is left to finish alone."""
STARTING = 10.0
"""The same for a recorder that has taken nothing yet: on a busy machine its start alone can outlast ``FLUSH``."""
LONGEST = 60.0
"""Seconds at most for a recorder that still takes what waits; one that takes nothing is given up after ``FLUSH``."""
SAID_MOST = 2000
PASSED_ON = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2")
FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to all of its foreground group: the agent has them already."""
_SET_PARENT_DEATH = 1

Say = Callable[[str], None]


class Feed:
    """What the recorder is told, in order, without ever keeping the pump waiting.

    Args:
        command: Starts the recorder, which reads its standard input.
        say: Takes a line for the person, at most once.
    """

    def __init__(self, command: Sequence[str], say: Say) -> None:
        self._say = say
        self._waiting: deque[tuple[int, int, bytes]] = deque()
        self._held = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._over = False
        self._told = 0
        self.gone = False
        try:
            # A session of its own: what ends the editor's group leaves the recorder the time to finish. It does not
            # hold the editor's standard error open, either.
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._process = None
            self._lose(f"the recorder does not start: {error.strerror}")
            return
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The recorder's process id."""
        return self._process.pid if self._process is not None else None

    def tell(self, way: int, data: bytes) -> None:
        """Takes a chunk."""
        if self.gone:
            return
        with self._lock:
            self._held += len(data)
            self._waiting.append((way, time.time_ns(), data))
        if self._held > HELD_MOST:
            self._lose("the recorder does not keep up")
        self._wake.set()

    def _write(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        pipe = process.stdin.fileno()
        while not self.gone:
            self._wake.wait()
            self._wake.clear()
            try:
                while self._waiting:
                    way, at, data = self._waiting.popleft()
                    _put(pipe, HEADER.pack(way, at, len(data)) + data)
                    with self._lock:
                        self._held -= len(data)
                        self._told += len(data)
            except OSError:
                self._left()
                return
            if self._over and not self._waiting:
                break
        with contextlib.suppress(OSError):
            process.stdin.close()

    def _left(self) -> None:
        """Nobody reads the pipe any more."""
        process = self._process
        assert process is not None
        assert process.stderr is not None
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(1.0)
        said = (
            os.read(process.stderr.fileno(), SAID_MOST).decode("utf-8", "replace").splitlines()
            if code
            else []
        )
        self._lose(said[-1] if said else f"the recorder is gone ({_end(code)})")

    def _lose(self, why: str) -> None:
        if self.gone:
            return
        self.gone = True
        self._waiting.clear()
        self._wake.set()
        self._say(f"{why}; the conversation goes on, and what follows of it is not recorded")

    def finish(self) -> None:
        """Lets the recorder take what waits, and finish."""
        process = self._process
        if process is None or self.gone:
            return
        self._over = True
        self._wake.set()
        held, end = self._held + 1, time.monotonic() + LONGEST
        while self._thread.is_alive() and self._held < held and time.monotonic() < end:
            # It takes what waits, if slowly: nobody else could tell it.
            held = self._held
            self._thread.join(FLUSH if self._told > PIPE else STARTING)
        if self._thread.is_alive():
            self._lose("the recorder does not keep up")
            return
        until = time.monotonic() + FLUSH
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process.wait(max(0.0, until - time.monotonic())) != 0:
                self._left()


class Tap:
    """One agent behind a pump.

    Args:
        agent: The agent's command.
        recorder: The recorder's command.
        say: Takes a line for the person.
    """

    def __init__(self, agent: Sequence[str], recorder: Sequence[str], say: Say) -> None:
        self._agent = agent
        self._recorder = recorder
        self._say = say
        self._moved = 0

    def run(self) -> int:
        """Pumps until the agent is gone; returns its return code, negative for a signal.

        Raises:
            OSError: The agent cannot be started.
        """
        process = subprocess.Popen(
            self._agent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._pass_signals_to(process)
        sys.setswitchinterval(0.0005)  # a byte that has come is passed on before other work goes on
        self.feed = Feed(self._recorder, self._say)
        threading.Thread(
            target=self._pump, args=(0, process.stdin.fileno(), FROM_CLIENT), daemon=True
        ).start()
        out = threading.Thread(target=self._pump, args=(process.stdout.fileno(), 1, FROM_AGENT), daemon=True)
        out.start()
        code = process.wait()
        moved = -1
        while out.is_alive() and moved != self._moved:
            moved = self._moved
            out.join(QUIET)
        self.feed.tell(EXIT, str(code).encode())
        self.feed.finish()
        return code

    def _pump(self, source: int, sink: int, way: int) -> None:
        while chunk := _take(source):
            self.feed.tell(way, chunk)
            try:
                _put(sink, chunk)
            except OSError:
                break  # nobody reads it: the one who writes it will be told by his own pipe
            self._moved += 1
        for end in (source, sink):
            _close(end)

    def _pass_signals_to(self, process: subprocess.Popen[bytes]) -> None:
        def pass_on(number: int, _frame: FrameType | None) -> None:
            if signal.Signals(number).name in FROM_TERMINAL and _in_foreground():
                return
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

        for number in (getattr(signal, name) for name in PASSED_ON if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, pass_on)


def _take(source: int) -> bytes:
    """The next bytes; none at the end."""
    while True:
        try:
            return os.read(source, CHUNK)
        except BlockingIOError:
            _wait(source, selectors.EVENT_READ)
        except OSError:
            return b""


def _put(sink: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(sink, left) :]
        except BlockingIOError:
            _wait(sink, selectors.EVENT_WRITE)


def _wait(end: int, event: int) -> None:
    """Waits for an end that was set not to block by whoever shares it."""
    with selectors.DefaultSelector() as selector:
        selector.register(end, event)
        selector.select()


def _close(end: int) -> None:
    """Lets go of an end; the standard streams keep their numbers, so that nothing else gets them."""
    with contextlib.suppress(OSError):
        if end <= 1:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, end)
            os.close(nowhere)
        else:
            os.close(end)


def _in_foreground() -> bool:
    """Whether we are what a terminal's keys go to."""
    with contextlib.suppress(OSError), Path("/dev/tty").open("rb") as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def _die_with_parent() -> None:
    """A pump that is killed takes the agent with it, as the editor that kills it means to."""
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH, signal.SIGKILL)


def _end(code: int | None) -> str:
    if code is None:
        return "it closed its input"
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def leave(code: int) -> None:
    """Ends this process as the agent ended."""
    sys.stderr.flush()
    if code < 0:
        number = -code
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1.0)  # a signal that does not end a process
        code = 128 + number
    os._exit(code)
