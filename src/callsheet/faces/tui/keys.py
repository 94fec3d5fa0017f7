"""The keys of the workbench: one table for the bindings, the help screen and the documentation.

Must never know: what an action does.
"""

from __future__ import annotations

from typing import NamedTuple

from textual.binding import Binding


class Key(NamedTuple):
    """A key, or several with one meaning.

    Attributes:
        keys: As Textual names them, with commas between.
        shown: As the help names them.
        action: The action of the screen.
        words: What it does.
    """

    keys: str
    shown: str
    action: str
    words: str


STEPPING: tuple[Key, ...] = (
    Key("down,j", "↓ j", "move(1)", "the next row; a row longer than the screen is scrolled through"),
    Key("up,k", "↑ k", "move(-1)", "the row before"),
    Key("pagedown,space", "PgDn Space", "page(1)", "a screen down"),
    Key("pageup,b", "PgUp b", "page(-1)", "a screen up"),
    Key("home,g", "Home g", "home", "the first row"),
    Key("end,G", "End G", "end", "the last row"),
)
MOVING: tuple[Key, ...] = (
    *STEPPING,
    Key("c", "c", "jump('call', 1)", "the next call"),
    Key("C", "C", "jump('call', -1)", "the call before"),
    Key("x", "x", "jump('failed', 1)", "the next failure"),
    Key("X", "X", "jump('failed', -1)", "the failure before"),
    Key("d", "d", "jump('declined', 1)", "the next call that was declined"),
    Key("D", "D", "jump('declined', -1)", "the declined call before"),
    Key("r", "r", "jump('request', 1)", "the next request or question"),
    Key("R", "R", "jump('request', -1)", "the request before"),
    Key("m", "m", "jump('change', 1)", "the next change of files"),
    Key("M", "M", "jump('change', -1)", "the change before"),
)
LOOKING: tuple[Key, ...] = (
    Key("enter", "Enter", "open_row", "open the row whole, or close it"),
    Key("z", "z", "fold_all", "one line for each row; again: as before"),
    Key("slash", "/", "search", "search; small letters find capitals too"),
    Key("n", "n", "again(1)", "the next place that was searched for"),
    Key("N", "N", "again(-1)", "the place before"),
    Key("F", "F", "filter", "choose kinds and states that are shown"),
    Key("u", "u", "unfilter", "show all rows again"),
    Key("p", "p", "pane", "the selected row whole, beside the sheet"),
    Key("s", "s", "session", "the session as a whole: sources, counts, what has no row"),
    Key("e", "e", "evidence", "where each fact of the row stands in its source, and what was not recorded"),
    Key("o", "o", "enter_pane", "into the pane, to scroll it; again: back to the rows"),
    Key("f", "f", "follow", "follow new rows while you are at the end"),
    Key("y", "y", "copy('title')", "copy the main input"),
    Key("Y", "Y", "copy('row')", "copy the whole row as text"),
    Key("a", "a", "audit", "when each row was, and where it stands"),
    Key("t", "t", "theme", "light or dark"),
)
_THIS_LIST = Key("question_mark", "?", "help", "this list")
_OUT = Key("ctrl+c,ctrl+q", "Ctrl+C", "app.quit", "out")
LEAVING: tuple[Key, ...] = (
    _THIS_LIST,
    Key("escape", "Esc", "back", "close what is open; then back to the list of sessions"),
    Key("q", "q", "leave", "back to the list of sessions, or out"),
    _OUT,
)
TURN: tuple[Key, ...] = (
    Key("i", "i", "prompt", "write the next prompt"),
    Key("tab", "Tab", "ask", "go to an open request"),
    Key("ctrl+x", "Ctrl+X", "interrupt", "interrupt the turn; again: stop the agent"),
)
SESSIONS: tuple[Key, ...] = (
    Key("down,j", "↓ j", "move(1)", "the next session"),
    Key("up,k", "↑ k", "move(-1)", "the session before"),
    Key("pagedown,space", "PgDn Space", "page(1)", "a screen down"),
    Key("pageup,b", "PgUp b", "page(-1)", "a screen up"),
    Key("home,g", "Home g", "home", "the first session"),
    Key("end,G", "End G", "end", "the last session"),
    Key("enter", "Enter", "open", "the sheet of the session"),
)
LEAVING_SESSIONS: tuple[Key, ...] = (_THIS_LIST, Key("q", "q", "leave", "out"), _OUT)

Help = tuple[tuple[str, tuple[Key, ...]], ...]
"""What a help screen lists: the keys of the screen below it, by what they are for."""

STORED_HELP: Help = (("Moving", MOVING), ("Looking", LOOKING), ("Leaving", LEAVING))
LIVE_HELP: Help = (*STORED_HELP[:2], ("A running turn", TURN), *STORED_HELP[2:])
SESSIONS_HELP: Help = (("Sessions", SESSIONS), ("Leaving", LEAVING_SESSIONS))


def bindings(*tables: tuple[Key, ...]) -> list[Binding]:
    """The bindings of some tables."""
    return [Binding(key.keys, key.action, key.words, show=False) for table in tables for key in table]
