"""Small screens over a sheet: the help, and the choice of kinds and states.

Must never know: sessions.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import SelectionList, Static
from textual.widgets.selection_list import Selection

from callsheet.faces.tui.filters import Filter
from callsheet.faces.tui.keys import HELP
from callsheet.faces.tui.lines import LinesView
from callsheet.paint import Line, Span
from callsheet.paint.cells import cut, wrap
from callsheet.paint.words import LABELS, MARKS
from callsheet.rows import ROW_KINDS
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


class FilterScreen(ModalScreen[Filter | None]):
    """Chooses the kinds and states that are shown."""

    DEFAULT_CSS = """
    FilterScreen { align: center middle; }
    FilterScreen Vertical { width: 44; height: 90%; border: round $primary; padding: 0 1; }
    FilterScreen #choices { height: 1fr; border: none; padding: 0; }
    FilterScreen #none { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "close", show=False),
        Binding("enter", "apply", "show these", show=False, priority=True),
        Binding("a", "all", "all", show=False),
        Binding("0", "none", "none", show=False),
        Binding("j", "go(1)", show=False),
        Binding("k", "go(-1)", show=False),
    ]

    def __init__(self, chosen: Filter, kinds: Counter[str], states: Counter[str]) -> None:
        super().__init__()
        self._chosen = chosen
        self._kinds = kinds
        self._states = states

    def compose(self) -> ComposeResult:
        """The list of kinds and states with their numbers."""
        entries = [
            Selection(
                f"{LABELS[kind]:<12}{self._kinds[kind]:>8,}", f"kind:{kind}", kind in self._chosen.kinds
            )
            for kind in ROW_KINDS
            if self._kinds[kind]
        ]
        entries += [
            Selection(
                f"{MARKS[state][0]} {state:<14}{self._states[state]:>4,}",
                f"state:{state}",
                state in self._chosen.states,
            )
            for state in STATES
            if self._states[state]
        ]
        with Vertical() as box:
            box.border_title = "Space: choose · Enter: show these"
            box.border_subtitle = "a: all · 0: none · Esc: close"
            yield SelectionList(*entries, id="choices")
            yield Static(id="none")

    def on_selection_list_selected_changed(self, _: SelectionList.SelectedChanged[str]) -> None:
        """Says what nothing chosen means."""
        none = not self.query_one(SelectionList).selected
        self.query_one("#none", Static).update("nothing chosen: all rows are shown" if none else "")

    def action_cancel(self) -> None:
        """Leaves everything as it is."""
        self.dismiss(None)

    def action_apply(self) -> None:
        """Shows what is chosen; of kinds or of states, none chosen means all."""
        chosen = set(self.query_one(SelectionList).selected)
        kinds = frozenset(kind for kind in ROW_KINDS if f"kind:{kind}" in chosen)
        states = frozenset(state for state in STATES if f"state:{state}" in chosen)
        every = all(f"kind:{kind}" in chosen for kind in ROW_KINDS if self._kinds[kind])
        whole = all(f"state:{state}" in chosen for state in STATES if self._states[state])
        self.dismiss(
            Filter(
                kinds=frozenset(ROW_KINDS) if every or not kinds else kinds,
                states=frozenset(STATES) if whole or not states else states,
            )
        )

    def action_all(self) -> None:
        """Chooses everything."""
        self.query_one(SelectionList).select_all()

    def action_none(self) -> None:
        """Chooses nothing."""
        self.query_one(SelectionList).deselect_all()

    def action_go(self, by: int) -> None:
        """The next or the previous entry."""
        view = self.query_one(SelectionList)
        view.action_cursor_down() if by > 0 else view.action_cursor_up()
