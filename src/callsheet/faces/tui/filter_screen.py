"""The choice of kinds and states that are shown: a small screen over a sheet.

What is chosen is told by a character, not by its colour, and so is the line that a key would change.

Must never know: sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from callsheet.faces.tui.filters import Filter
from callsheet.faces.tui.looks import looks_of, segments
from callsheet.paint import Line, Span, Style
from callsheet.paint.cells import cut
from callsheet.paint.words import LABELS, MARKS
from callsheet.rows import ROW_KINDS
from callsheet.rows.row import STATES


class Choice(NamedTuple):
    """A line of the list.

    Attributes:
        name: What is chosen by it; None for a heading.
        words: What it says.
        rows: How many rows of it there are.
        mark: Its sign.
        style: How the sign looks.
    """

    name: str | None
    words: str
    rows: int = 0
    mark: str = ""
    style: Style = ""


class ChoicesView(ScrollView, can_focus=True, inherit_bindings=False):
    """The list; one line is the one that Space changes.

    Attributes:
        chosen: Names of what is chosen.
    """

    DEFAULT_CSS = "ChoicesView { overflow-y: auto; overflow-x: hidden; scrollbar-size-vertical: 1; }"

    class Changed(Message):
        """Something else is chosen."""

    def __init__(self, choices: Sequence[Choice], chosen: set[str], looks: str) -> None:
        super().__init__(id="choices")
        self._choices = choices
        self._looks = looks_of(looks)
        self.chosen = chosen
        self.cursor = next(at for at, choice in enumerate(choices) if choice.name)

    def on_resize(self, _: Resize) -> None:
        """As many lines as there are choices."""
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._choices))

    def move(self, by: int) -> None:
        """The next or the previous choice, past headings."""
        places = [at for at, choice in enumerate(self._choices) if choice.name]
        self.go(places[max(0, min(places.index(self.cursor) + by, len(places) - 1))])

    def go(self, at: int) -> None:
        """Another line."""
        self.cursor = at
        top, page = self.scroll_offset.y, max(self.scrollable_content_region.height, 1)
        # With the first choice its heading is shown.
        first = 0 if at == 1 else at
        self.scroll_to(y=min(first, max(top, at - page + 1)), animate=False, immediate=True)
        self.refresh()

    def tick(self) -> None:
        """Chooses what is on the line, or does not choose it."""
        name = self._choices[self.cursor].name
        if name is not None:
            self.chosen ^= {name}
            self.told()

    def told(self) -> None:
        """Says that something else is chosen."""
        self.refresh()
        self.post_message(self.Changed())

    def put(self, chosen: set[str]) -> None:
        """Chooses other things."""
        self.chosen = chosen
        self.told()

    def on_click(self, event: Click) -> None:
        """Changes the line that was clicked."""
        at = self.scroll_offset.y + event.y
        if at < len(self._choices) and self._choices[at].name is not None:
            self.go(at)
            self.tick()

    def render_line(self, y: int) -> Strip:
        """One line."""
        room = self.scrollable_content_region.width
        at = self.scroll_offset.y + y
        if at >= len(self._choices):
            return Strip.blank(room, self._looks[""])
        return Strip(segments(self._line(at, room), self._looks, room), room)

    def _line(self, at: int, room: int) -> Line:
        choice = self._choices[at]
        if choice.name is None:
            return [Span(cut(choice.words, room), "label")]
        here = at == self.cursor
        tick = "[x] " if choice.name in self.chosen else "[ ] "
        count = f"{choice.rows:>8,}"
        words = cut(choice.words, max(room - 17, 4))
        return [
            Span("▌ " if here else "  ", "label"),
            Span(tick, "strong" if here else ""),
            Span(f"{choice.mark} " if choice.mark else "", choice.style),
            Span(f"{words:<{max(room - 14 - (2 if choice.mark else 0), 4)}}", "strong" if here else ""),
            Span(count, "quiet"),
        ]


class FilterScreen(ModalScreen[Filter | None]):
    """Chooses the kinds and states that are shown."""

    DEFAULT_CSS = """
    FilterScreen { align: center middle; }
    FilterScreen Vertical { width: 48; height: auto; max-height: 90%; border: round $primary; padding: 0 1; }
    FilterScreen #choices { height: auto; }
    FilterScreen #shows { height: auto; margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "close", show=False),
        Binding("enter", "apply", "show these", show=False),
        Binding("space", "tick", "choose", show=False),
        Binding("a", "all", "all", show=False),
        Binding("0", "none", "none", show=False),
        Binding("down,j", "go(1)", show=False),
        Binding("up,k", "go(-1)", show=False),
        Binding("home,g,pageup", "go(-99)", show=False),
        Binding("end,G,pagedown", "go(99)", show=False),
    ]

    def __init__(self, chosen: Filter, kinds: Counter[str], states: Counter[str], *, looks: str) -> None:
        super().__init__()
        self._kinds = [kind for kind in ROW_KINDS if kinds[kind]]
        self._states = [state for state in STATES if states[state]]
        self._looks = looks
        self._choices = [
            Choice(None, "Kinds"),
            *(Choice(f"kind:{kind}", LABELS[kind], kinds[kind]) for kind in self._kinds),
            Choice(None, "States"),
            *(Choice(f"state:{state}", state, states[state], *MARKS[state]) for state in self._states),
        ]
        self._begin = {f"kind:{kind}" for kind in self._kinds if kind in chosen.kinds} | {
            f"state:{state}" for state in self._states if state in chosen.states
        }

    def compose(self) -> ComposeResult:
        """The list, and what it comes to."""
        with Vertical() as box:
            box.border_title = "Space: choose · Enter: show these"
            box.border_subtitle = "a: all · 0: none · Esc: close"
            view = ChoicesView(self._choices, self._begin, self._looks)
            view.styles.height = len(self._choices)
            view.styles.max_height = "1fr"
            yield view
            yield Static(self._words(self._begin), id="shows", markup=False)

    @property
    def _view(self) -> ChoicesView:
        return self.query_one(ChoicesView)

    def _filter(self, chosen: set[str]) -> Filter:
        """Of kinds or of states, none chosen means all."""
        kinds = frozenset(kind for kind in self._kinds if f"kind:{kind}" in chosen)
        states = frozenset(state for state in self._states if f"state:{state}" in chosen)
        return Filter(
            kinds=kinds if 0 < len(kinds) < len(self._kinds) else frozenset(ROW_KINDS),
            states=states if 0 < len(states) < len(self._states) else frozenset(STATES),
        )

    def _words(self, chosen: set[str]) -> str:
        found = self._filter(chosen)
        words = "all rows are shown" if found.is_all else f"only {found.words()}"
        return f"{words} ({why})" if (why := ", ".join(self._unchosen(chosen))) else words

    def _unchosen(self, chosen: set[str]) -> Iterator[str]:
        for sort, names in (("kind", self._kinds), ("state", self._states)):
            if not any(f"{sort}:{name}" in chosen for name in names):
                yield f"no {sort} chosen: all {sort}s"

    def on_choices_view_changed(self, _: ChoicesView.Changed) -> None:
        """Says what is shown with it."""
        self.query_one("#shows", Static).update(self._words(self._view.chosen))

    def action_cancel(self) -> None:
        """Leaves everything as it is."""
        self.dismiss(None)

    def action_apply(self) -> None:
        """Shows what is chosen."""
        self.dismiss(self._filter(self._view.chosen))

    def action_tick(self) -> None:
        """Chooses, or takes the choice back."""
        self._view.tick()

    def action_all(self) -> None:
        """Chooses everything."""
        self._view.put({choice.name for choice in self._choices if choice.name})

    def action_none(self) -> None:
        """Chooses nothing."""
        self._view.put(set())

    def action_go(self, by: int) -> None:
        """The next or the previous entry."""
        self._view.move(by)
