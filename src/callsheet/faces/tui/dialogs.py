"""The help: a small screen over a sheet or a list.

Must never know: sessions.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from callsheet.faces.tui.keys import HELP
from callsheet.faces.tui.lines import LinesView
from callsheet.paint import Line, Span
from callsheet.paint.cells import cut, wrap
from callsheet.paint.words import MARKS
from callsheet.rows.row import STATES


def help_lines(width: int) -> list[Line]:
    """Every key, and every sign."""
    lines: list[Line] = [[Span("callsheet: the keys", "strong")]]
    for title, keys in HELP:
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
    """The keys and the signs."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen LinesView { width: 90%; max-width: 90; height: 90%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close", show=False),
        Binding("j", "lines(1)", show=False),
        Binding("k", "lines(-1)", show=False),
    ]

    def __init__(self, looks: str) -> None:
        super().__init__()
        self._looks = looks

    def compose(self) -> ComposeResult:
        """The list."""
        yield LinesView(self._looks, id="keys")

    def on_mount(self) -> None:
        """Shows the list."""
        self.query_one(LinesView).put(help_lines)
        self.query_one(LinesView).focus()

    def action_lines(self, by: int) -> None:
        """A line down or up."""
        view = self.query_one(LinesView)
        view.scroll_to(y=view.scroll_offset.y + by, animate=False)
