"""Keeps a program and all that descends from it, so that nothing of it outlives who started it. A program by itself.

``python -I -S warden.py STATUS LIFELINE LOCALE COMMAND…`` starts COMMAND in a session of its own, with this process's
standard streams and its environment, in which LC_CTYPE is LOCALE (``=VALUE``, or empty for none). It writes to the file
descriptor STATUS, a line each: ``pid N`` or ``error ERRNO``, and later ``exit RETURNCODE`` (negative for a signal). On
Linux what loses its parent becomes this process's child, whatever group it is in and whatever became of its
environment: nothing can leave. The other end of LIFELINE is held by who started it: when a byte comes, all that is left
is ended at once (SIGTERM, then SIGKILL); when it closes without one, who started it is gone, and everything gets the
time to end by itself first. It talks to nobody and reads nothing else.

It imports little: its start stands in the way of every agent's.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
import time

GRACE = 3.0
"""Seconds that everything gets to end by itself when nobody is left to tell it to."""
ASKED = 1.0
"""Seconds that everything gets when it is asked to end."""
FORCED = 5.0
"""Seconds that killed processes are waited for: one may hang in the system for ever."""
PAUSE = 0.02
"""Seconds between two looks at what is left."""
SUBREAPER, PARENT_DEATH = 36, 1
"""Options of ``prctl``."""
ON_LINUX = sys.platform == "linux"


class Warden:
    """Watches one program.

    Args:
        status: Where its beginning and its end are written.
        lifeline: What is read until who started us has had enough.
    """

    def __init__(self, status: int, lifeline: int) -> None:
        self._status = status
        self._lifeline = lifeline
        self._pid = 0
        self._alone = False

    def run(self, command: list[str]) -> None:
        """Starts a program, and ends all that is left of it when it is time."""
        for held in (self._status, self._lifeline):
            os.set_inheritable(held, False)
        if ON_LINUX:
            ctypes.CDLL(None).prctl(SUBREAPER, 1)
        failed = self._start(command)
        if failed:
            self._say(f"error {failed}")
            return
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._say(f"pid {self._pid}")
        _let_go_of_streams()
        signal.signal(signal.SIGCHLD, lambda _number, _frame: self._reap())
        self._reap()  # what ended before there was somebody to tell
        told = os.read(self._lifeline, 1)
        if not told:
            self._wait(GRACE)
        for number, seconds in ((signal.SIGTERM, ASKED), (signal.SIGKILL, FORCED)):
            if self._alone:
                return
            self._end(number, seconds)

    def _start(self, command: list[str]) -> int:
        """Starts it; returns the error number of a program that cannot be started."""
        seen, told = os.pipe()
        us = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            try:
                os.setsid()
                for name in ("SIGPIPE", "SIGXFSZ"):
                    signal.signal(getattr(signal, name), signal.SIG_DFL)  # as Python did not find them
                if ON_LINUX:
                    ctypes.CDLL(None).prctl(PARENT_DEATH, signal.SIGKILL)
                    if os.getppid() != us:
                        os._exit(1)
                os.execvp(command[0], command)
            except OSError as error:
                os.write(told, str(error.errno or errno.EINVAL).encode())
            finally:
                os._exit(127)
        os.close(told)
        failed = os.read(seen, 16)
        os.close(seen)
        return int(failed or b"0")

    def _say(self, words: str) -> None:
        with contextlib.suppress(OSError):  # nobody is there any more
            os.write(self._status, f"{words}\n".encode())

    def _reap(self) -> None:
        """Takes leave of every child that has ended, and says when it is the program."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self._pid:
                    self._say(f"exit {os.waitstatus_to_exitcode(status)}")
        self._alone = True

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._alone and time.monotonic() < until:
            time.sleep(PAUSE)
            self._reap()

    def _end(self, number: int, seconds: float) -> None:
        """Sends a signal to all that is left, and to what comes to light while it ends."""
        until = time.monotonic() + seconds
        asked: set[tuple[int, str]] = set()
        while not self._alone and time.monotonic() < until:
            if not ON_LINUX:
                with contextlib.suppress(OSError):
                    os.killpg(self._pid, number)  # who left the group cannot be found here
            for pid, start in descendants(os.getpid()):
                if (pid, start) not in asked and start_of(pid) == start:
                    asked.add((pid, start))
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
            time.sleep(PAUSE)
            self._reap()


def _let_go_of_streams() -> None:
    """The standard streams are the program's: their ends must be seen when it closes them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def start_of(pid: int) -> str | None:
    """When a process began: with its number a name that no other has."""
    found = _stat(pid)
    return None if found is None else found[1]


def _stat(pid: int) -> tuple[int, str] | None:
    """Parent and start of a process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib costs a start)
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(words[1]), words[19].decode()


def descendants(pid: int) -> list[tuple[int, str]]:
    """All that descends from a process, each with its start; none where the system does not show it."""
    if not ON_LINUX:
        return []
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 (names only)
        if entry.isdigit() and (found := _stat(int(entry))) is not None:
            children.setdefault(found[0], []).append((int(entry), found[1]))
    family = list(children.get(pid, ()))
    for kin, _ in family:
        family += children.get(kin, ())
    return family


def main(arguments: list[str]) -> None:
    """Reads the arguments, and watches."""
    status, lifeline, locale, *command = arguments
    # Python may have set it for itself; the program is to have what was meant for it.
    os.environ.pop("LC_CTYPE", None)
    if locale:
        os.environ["LC_CTYPE"] = locale[1:]
    Warden(int(status), int(lifeline)).run(command)


if __name__ == "__main__":
    main(sys.argv[1:])
