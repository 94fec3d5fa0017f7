"""The recorder behind ``callsheet tap``: chunks of both directions on standard input, a bundle on disk.

    python -m callsheet.live.tap_recorder OUT PROGRAM CWD

Owns the joining of chunks into lines, each direction by itself, and the end: a pipe that closes ends the recording. It
records as any live run is recorded, and never says who gave an answer: it only saw it pass by. What stops it is one
line on standard error, for the pump to say, and it ends with 1.

Must never know: how bytes are passed on.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from callsheet.errors import CallsheetError, reason_of
from callsheet.harness import LIVE
from callsheet.harness._port.attested import Exit, Launch
from callsheet.live.limits import Limits
from callsheet.live.recorder import Recorder
from callsheet.live.tap import EXIT, FROM_AGENT, HEADER
from callsheet.live.transport import Cut, LineCutter
from callsheet.seam import Wish

AGENT = next(agent for agent in LIVE if agent.name == "acp")
FAILED = 1


class Chunks:
    """The chunks on a pipe.

    Args:
        pipe: Where they come from.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._held = bytearray()
        self.ended = False

    def next(self, patience: float) -> list[tuple[int, int, bytes]]:
        """What has come whole, after waiting a little: way, time, bytes."""
        ready, _, _ = select.select([self._pipe], [], [], patience)
        if ready:
            data = os.read(self._pipe, 1 << 18)
            self.ended = not data
            self._held += data
        found = []
        while len(self._held) >= HEADER.size:
            way, at, size = HEADER.unpack_from(self._held)
            if len(self._held) < HEADER.size + size and not self.ended:
                break  # of the last one, whose pump is gone, what there is counts
            found.append((way, at, bytes(self._held[HEADER.size : HEADER.size + size])))
            del self._held[: HEADER.size + size]
        return found


class TapRecorder:
    """Records one conversation that passes by.

    Args:
        out: Folder for the bundle.
        launch: What was started.
        limits: Bounds.
    """

    def __init__(self, out: Path, launch: Launch, limits: Limits) -> None:
        self._limits = limits
        # Its mask watches both directions; it sends nothing.
        self._watch = AGENT.driver(Wish(cwd=launch.cwd or "/"))
        self._recorder = Recorder.create(out, AGENT)
        self._recorder.own(launch)
        self._cutters = {from_agent: LineCutter(limits.line) for from_agent in (False, True)}
        self._at = {False: 0, True: 0}
        self._lines = 0
        self._exit: Exit | None = None
        self._synced = time.monotonic()

    @property
    def folder(self) -> Path:
        """The bundle."""
        return self._recorder.folder

    def take(self, way: int, at: int, data: bytes) -> None:
        """One chunk."""
        if way == EXIT:
            # What the agent wrote before it went may still be on its way.
            code = int(data)
            name = signal.Signals(-code).name if code < 0 else None
            self._exit = Exit(code=code if code >= 0 else None, signal=name)
            return
        from_agent = way == FROM_AGENT
        self._at[from_agent] = at
        for line in self._cutters[from_agent].feed(data):
            self._line(line, from_agent, at)

    def _line(self, line: bytes | Cut, from_agent: bool, at: int) -> None:
        head, size = (line.head, line.size) if isinstance(line, Cut) else (line, len(line))
        if not head.strip():
            return
        self._lines += 1
        kept = self._watch.mask(head, from_agent=from_agent)
        self._recorder.frame(head, kept, from_agent=from_agent, omitted=size - len(head), ts=_rfc(at))

    def _rest(self) -> None:
        """A last line without an end."""
        for from_agent, cutter in self._cutters.items():
            for line in cutter.rest():
                self._line(line, from_agent, self._at[from_agent])

    def settle(self) -> None:
        """Writes what was taken; on the disk for certain now and then."""
        self._recorder.flush()
        if time.monotonic() - self._synced > self._limits.sync:
            self._recorder.sync()
            self._synced = time.monotonic()

    def finish(self) -> None:
        """The conversation is over."""
        self._rest()
        if self._exit is not None:
            self._recorder.own(self._exit)
        self._recorder.close()
        if self._lines:
            self._recorder.seal()
            self._recorder.release()
        else:
            self._recorder.discard()

    def release(self) -> None:
        """Lets go of the bundle as it is."""
        self._recorder.release()


def _rfc(at: int) -> str:
    told = datetime.fromtimestamp(at // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds")
    return told.replace("+00:00", "Z")


def main(arguments: list[str]) -> int:
    """Records until the pipe closes."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # The conversation decides when it is over: its end closes the pipe.
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(5)  # the conversation goes first
    out, program, cwd = arguments
    limits = Limits()
    recorder: TapRecorder | None = None
    try:
        recorder = TapRecorder(Path(out), Launch(program=program, cwd=cwd), limits)
        chunks = Chunks(0)
        while not chunks.ended:
            for chunk in chunks.next(limits.sync):
                recorder.take(*chunk)
            recorder.settle()
        recorder.finish()
    except Exception as error:
        with contextlib.suppress(Exception):
            if recorder is not None:
                recorder.release()
        with contextlib.suppress(OSError):
            print(
                f"{recorder.folder if recorder is not None else out}: {_words(error)}",
                file=sys.stderr,
                flush=True,
            )
        return FAILED
    return 0


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return reason_of(error)
    if isinstance(error, CallsheetError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())} (a bug in callsheet)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
