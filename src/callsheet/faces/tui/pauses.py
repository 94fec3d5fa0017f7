"""What the interpreter does while nobody waits: collecting garbage, and reading in threads.

Python now and then goes through everything that is in memory, which takes as long as a dozen keys. Here it does so only
between keys; what stays (modules, the session that is shown) is set aside and not gone through again. Young garbage is
collected as always. A thread that reads gives way to a key after a millisecond, not after five. Owns the interpreter's
settings, of which a process has one, while the workbench runs.

Must never know: screens, rows.
"""

from __future__ import annotations

import gc
import sys
from time import monotonic

LOOK = 0.25
"""Seconds between two looks whether it is time to collect."""
IDLE = 0.5
"""Seconds after a key before anything is collected."""
DUE = 20
"""Collections of what is no longer young after which a collection of everything is due."""
OVERDUE = 200
"""After so many it does not wait for a pause any more."""
_NEVER = 1_000_000
GIVES_WAY = 0.001
"""Seconds after which a thread gives way to another; a key waits for it four or five times until it is drawn."""


class Pauses:
    """When to collect, and when to give way."""

    def __init__(self) -> None:
        self._thresholds: tuple[int, int, int] | None = None
        self._gave_way = sys.getswitchinterval()
        self._pressed = monotonic()
        self._settle = False

    def begin(self) -> None:
        """Sets aside what was loaded, and collects in pauses from now on."""
        self._thresholds = gc.get_threshold()
        self._gave_way = sys.getswitchinterval()
        gc.set_threshold(*self._thresholds[:2], _NEVER)
        sys.setswitchinterval(GIVES_WAY)
        gc.freeze()

    def end(self) -> None:
        """Collects as before."""
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            sys.setswitchinterval(self._gave_way)
            gc.unfreeze()
            self._thresholds = None

    def pressed(self) -> None:
        """A key was pressed: the next may follow."""
        self._pressed = monotonic()

    def settle(self) -> None:
        """A session was read or closed: what is in memory then is to be set aside anew."""
        self._settle = True

    def look(self) -> None:
        """Collects, if it is time to."""
        old = gc.get_count()[2]
        is_idle = monotonic() > self._pressed + IDLE
        if old > OVERDUE or (is_idle and (self._settle or old > DUE)):
            if self._settle:
                gc.unfreeze()
            gc.collect()
            if self._settle:
                gc.freeze()
            self._settle = False


PAUSES = Pauses()
"""Those of this process."""
