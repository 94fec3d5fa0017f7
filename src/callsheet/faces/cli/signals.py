"""A command that is told to stop leaves nothing half-done behind: SIGTERM and SIGHUP clean up as SIGINT does.

Owns the turning of a signal into an exit, so that every ``finally`` on the way runs. A signal that was ignored when
the program started (``nohup``) stays ignored.

Must never know: what there is to clean up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def stopping_tidily() -> Iterator[None]:
    """While this is open, a signal to stop ends the program by ``SystemExit``, with the code 128 + its number."""
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, _frame: FrameType | None) -> None:
        for one in taken:
            signal.signal(one, signal.SIG_IGN)  # nothing interrupts the cleaning up
        raise SystemExit(128 + number)

    for number in taken:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
