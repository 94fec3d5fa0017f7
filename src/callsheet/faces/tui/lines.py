"""A scrolling view of lines that are all at hand: the side pane, the evidence, the help.

Must never know: what the lines say.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from callsheet.faces.tui.looks import looks_of, segments
from callsheet.paint import Line

Paint = Callable[[int], list[Line]]
"""Makes the lines for a width."""


class LinesView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines that are laid out anew for each width."""

    DEFAULT_CSS = "LinesView { overflow-y: auto; overflow-x: hidden; scrollbar-size-vertical: 1; }"

    def __init__(self, looks: str, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.looks = looks
        self._paint: Paint = lambda _: []
        self._lines: list[Line] = []

    def put(self, paint: Paint, *, keep: bool = False) -> None:
        """Shows other lines, from the first on, or (``keep``) from where the reader is."""
        self._paint = paint
        self._lay_out()
        if not keep:
            self.scroll_to(y=0, animate=False, immediate=True)

    def move(self, by: int) -> None:
        """Scrolls by lines."""
        self.scroll_to(y=self.scroll_offset.y + by, animate=False)

    def turn_page(self, by: int) -> None:
        """Scrolls by screens."""
        self.move(by * self.size.height)

    def to_start(self) -> None:
        """Goes to the first line."""
        self.scroll_to(y=0, animate=False)

    def to_end(self) -> None:
        """Goes to the last line."""
        self.scroll_to(y=self.virtual_size.height, animate=False)

    def _lay_out(self) -> None:
        width = max(self.size.width - 1, 1)
        self._lines = self._paint(width)
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def on_resize(self, _: Resize) -> None:
        """Lays out for another width."""
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.scrollable_content_region.width
        at = self.scroll_offset.y + y
        line = self._lines[at] if at < len(self._lines) else []
        return Strip(segments(line, looks_of(self.looks), width), width)
