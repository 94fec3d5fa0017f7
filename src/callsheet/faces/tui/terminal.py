"""Which way to the terminal: standard error, as Textual takes it, or standard output where the former leads elsewhere.

Must never know: screens.
"""

from __future__ import annotations

import sys

from textual.driver import Driver


def driver_for(usual: type[Driver]) -> type[Driver]:
    """The driver to draw with, so that ``2>FILE`` gets errors and no screen."""
    if sys.platform == "win32":
        return usual  # it draws on standard output
    from textual.drivers.linux_driver import LinuxDriver

    if not issubclass(usual, LinuxDriver) or (sys.__stderr__ is not None and sys.__stderr__.isatty()):
        return usual

    class OnStandardOutput(LinuxDriver):
        def __init__(
            self, app: object, *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
        ) -> None:
            super().__init__(app, debug=debug, mouse=mouse, size=size)  # type: ignore[arg-type]
            self._file = sys.__stdout__

    return OnStandardOutput
