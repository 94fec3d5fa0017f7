"""The help: a small screen over a sheet or a list.

Must never know: sessions.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from callsheet.faces.tui.keys import STEPPING, Help, bindings
from callsheet.faces.tui.lines import LinesView
from callsheet.paint import Line, Span
from callsheet.paint.cells import cut, wrap
from callsheet.paint.words import MARKS
from callsheet.rows.row import STATES


def help_lines(tables: Help, width: int) -> list[Line]:
    """Every key of some tables, and every sign."""
    lines: list[Line] = [[Span("callsheet: the keys", "strong")]]
    for title, keys in tables:
        lines += [[], [Span(title, "label")]]
        for key in keys:
            head = f"  {key.shown:<12} "
            first, *rest = wrap(key.words, max(width - len(head), 16))
            lines.append([Span(head, "strong"), Span(first)])
            lines += [[Span(" " * len(head)), Span(piece)] for piece in rest]
    lines += [[], [Span("Signs", "label")]]
    for state, meaning in STATES.items():
        mark, style = MARKS[state]
        first, *rest = wrap(f"{state}: {meaning}", max(width - 6, 16))
        lines.append([Span(f"  {mark}   ", style), Span(first)])
        lines += [[Span("      "), Span(piece)] for piece in rest]
    for sign, words in (
        ("▸", "what was asked"),
        ("│", "what came back, as the source has it"),
        ("┆", "our words about what is not drawn; no agent can write there"),
        ("≈", "provisional: the file is still being read"),
    ):
        lines.append([Span(f"  {sign}   ", "label"), Span(cut(words, max(width - 6, 8)))])
    return lines


class HelpScreen(ModalScreen[None]):
    """The keys and the signs.

    Args:
        tables: The keys of the screen below.
        looks: dark, light or plain.
    """

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen LinesView { width: 90%; max-width: 90; height: 90%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(STEPPING),
        Binding("escape,q,question_mark,enter", "dismiss", "close", show=False),
    ]

    def __init__(self, tables: Help, *, looks: str) -> None:
        super().__init__()
        self._tables = tables
        self._view = LinesView(looks, id="keys")
        self._view.border_title = "↓ ↑ PgDn PgUp Home End: scroll · Esc: close"

    def compose(self) -> ComposeResult:
        """The list."""
        yield self._view

    def on_mount(self) -> None:
        """Shows the list."""
        self._view.put(lambda width: help_lines(self._tables, width))
        self._view.focus()

    def action_move(self, by: int) -> None:
        """A line down or up."""
        self._view.move(by)

    def action_page(self, by: int) -> None:
        """A screen down or up."""
        self._view.turn_page(by)

    def action_home(self) -> None:
        """The first line."""
        self._view.to_start()

    def action_end(self) -> None:
        """The last line."""
        self._view.to_end()
