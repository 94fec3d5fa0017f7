"""The program: which screen is on, in which colours, and how it ends.

Must never know: rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from textual.app import App
from textual.driver import Driver
from textual.events import Event, InputEvent
from textual.screen import Screen
from textual.theme import Theme

from callsheet.errors import CallsheetError, SourceError
from callsheet.faces.tui.live_screen import LiveScreen
from callsheet.faces.tui.looks import GROUNDS
from callsheet.faces.tui.pauses import LOOK, PAUSES
from callsheet.faces.tui.running import Running
from callsheet.faces.tui.sessions_screen import FolderShelf, SessionsScreen
from callsheet.faces.tui.sheet_screen import SheetScreen
from callsheet.faces.tui.shelf import Root
from callsheet.faces.tui.stored import Feed, Several, Stored
from callsheet.faces.tui.terminal import driver_for
from callsheet.records.bundle import is_bundle

First = Callable[[str], Screen[None]]


_OWN = "ansi_default"
PLAIN = Theme(
    name="callsheet-plain",
    primary=_OWN,
    secondary=_OWN,
    warning=_OWN,
    error=_OWN,
    success=_OWN,
    accent=_OWN,
    foreground=_OWN,
    background=_OWN,
    surface=_OWN,
    panel=_OWN,
    boost=_OWN,
    ansi=True,
    variables={
        f"{part}-{ground}": _OWN
        for part in ("ansi", "block-cursor", "input-cursor", "input-selection", "screen-selection", "footer")
        for ground in ("foreground", "background")
    }
    | dict.fromkeys(("border", "border-blurred", "scrollbar", "scrollbar-hover", "scrollbar-active"), _OWN)
    | dict.fromkeys(("scrollbar-background", "scrollbar-corner-color", "foreground-muted"), _OWN),
)
"""Nothing but the terminal's own colours: for those who want none (NO_COLOR)."""


DARK = Theme(
    name="callsheet-dark",
    primary="#5fafd7",
    secondary="#6fa8a8",
    warning="#e0b050",
    error="#ff7a7a",
    success="#87c05f",
    accent="#d787d7",
    foreground="#d8d8d8",
    background=GROUNDS["dark"],
    surface="#1f2124",
    panel="#26292d",
    dark=True,
)
LIGHT = Theme(
    name="callsheet-light",
    primary="#005f87",
    secondary="#005f5f",
    warning="#7a5200",
    error="#b00000",
    success="#2f6f00",
    accent="#870087",
    foreground="#202020",
    background=GROUNDS["light"],
    surface="#f1efe9",
    panel="#e6e3da",
    dark=False,
)


def wanted_looks(environ: dict[str, str]) -> str:
    """dark, light or plain, as the terminal and its owner say."""
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return "plain"
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if ground in ("7", "15") else "dark"


class Workbench(App[None]):
    """The workbench.

    Args:
        first: Makes the first screen, in the looks that it is given.
        looks: dark, light or plain; as the terminal says when not given.

    Attributes:
        problem: Why there was nothing to show.
    """

    TITLE = "callsheet"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: $background; }
    .-plain Input > .input--cursor { text-style: reverse; }
    """

    def __init__(self, first: First, *, looks: str | None = None) -> None:
        self.looks = looks or wanted_looks(dict(os.environ))
        # Without colours the terminal's own are used for everything, so that none is ever written.
        super().__init__(ansi_color=self.looks == "plain")
        self._first = first
        self.set_class(self.looks == "plain", "-plain")
        self._held = ExitStack()
        self.problem: CallsheetError | None = None

    def get_driver_class(self) -> type[Driver]:
        """What draws."""
        return driver_for(super().get_driver_class())

    def on_mount(self) -> None:
        """Shows the first screen."""
        for theme in (DARK, LIGHT, PLAIN):
            self.register_theme(theme)
        self.theme = f"callsheet-{self.looks}"
        self.push_screen(self._first(self.looks))
        PAUSES.begin()
        self.set_interval(LOOK, PAUSES.look)

    def on_unmount(self) -> None:
        """Lets go of what was read on the way."""
        self._held.close()
        PAUSES.end()

    def hang_up(self) -> None:
        """Ends the reading of keys, whatever became of the terminal.

        A signal, or a terminal that is gone, can keep a driver from ending its reader, which then reads for ever.
        """
        ended = getattr(self._driver, "exit_event", None)
        if ended is not None:
            ended.set()

    async def on_event(self, event: Event) -> None:
        """Notes that somebody is at the keyboard."""
        if isinstance(event, InputEvent):
            PAUSES.pressed()
        await super().on_event(event)

    def on_sessions_screen_chosen(self, event: SessionsScreen.Chosen) -> None:
        """Shows the sheet of a session of the list."""
        self.push_screen(SheetScreen(event.feed, looks=self.looks, alone=False, following=event.following))

    def on_sheet_screen_failed(self, event: SheetScreen.Failed) -> None:
        """Shows the list where the source holds several sessions; ends, saying why, where there is nothing to see."""
        if isinstance(event.error, Several):
            self._held.enter_context(event.error.stack)
            shelf = FolderShelf((event.error.folder, None), name=event.error.name)
            self.switch_screen(SessionsScreen(shelf, looks=self.looks))
        elif len(self.screen_stack) <= 2:
            self.problem = event.error
            self.exit(return_code=2)


def screen_for(source: Path, stream: str | None = None) -> First:
    """What a person who named a source wants to see: one session, or the list of several."""
    if source.is_dir() and not is_bundle(source) and stream is None:
        return lambda looks: SessionsScreen(FolderShelf((source, None)), looks=looks)
    return screen_of(Stored(source, stream=stream))


def screen_of(feed: Feed) -> First:
    """The screen of one session."""
    return lambda looks: SheetScreen(feed, looks=looks)


def run_workbench(running: Running) -> None:
    """Runs an agent in the workbench.

    Raises:
        NotOpened: The agent is not there, or did not start.
        CallsheetError: Nothing can be recorded.
    """
    _run(lambda looks: LiveScreen(running, looks=looks))


def watch_workbench(roots: Sequence[Root]) -> int:
    """Runs the workbench on what agents are writing: one file, or folders.

    Returns:
        The exit code.

    Raises:
        CallsheetError: Nothing can be shown.
    """
    path, kind = roots[0]
    if len(roots) == 1 and path.is_file():
        feed = Stored(path, kind=kind, growing=True)
        return _run(lambda looks: SheetScreen(feed, looks=looks, following=True))
    return _run(lambda looks: SessionsScreen(FolderShelf(*roots, growing=True), looks=looks))


def _run(first: First) -> int:
    app = Workbench(first)
    try:
        app.run()
    finally:
        app.hang_up()
    if app.problem is not None:
        raise app.problem
    return app.return_code or 0


def open_workbench(source: str, *, stream: str | None = None) -> int:
    """Runs the workbench on SOURCE.

    Returns:
        The exit code.

    Raises:
        CallsheetError: Nothing can be shown.
    """
    path = Path(source)
    if not path.exists():
        raise SourceError("no such file or folder", path=source)
    return _run(screen_for(path, stream))
