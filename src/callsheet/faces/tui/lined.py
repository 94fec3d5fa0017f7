"""One scrolling view that draws the lines of rows that it is asked for, and nothing else.

Owns what of the rows is on the screen, and that of it only those lines are drawn anew that changed.

Must never know: who reads it, where rows come from, what a row says.
"""

from __future__ import annotations

from textual.filter import ANSIToTruecolor
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from callsheet.faces.tui.choice import Choice
from callsheet.faces.tui.layout import Layout
from callsheet.faces.tui.painted import GUTTER, Painted
from callsheet.paint import Look
from callsheet.rows import Rows


class LinedView(ScrollView, inherit_bindings=False):
    """The lines of rows.

    Attributes:
        cursor: Which of the shown rows is selected.
        page: Lines on the screen.
    """

    def __init__(self, rows: Rows, look: Look, *, looks: str, id: str | None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.cursor = 0
        self.page = 1
        self._choice = Choice(rows)
        self._painted = Painted(look, looks)
        self._lines = Layout(self._choice, self._painted)
        self._drawn: list[Strip] = []

    @property
    def rows(self) -> Rows:
        """All rows, shown or not."""
        return self._choice.rows

    def __len__(self) -> int:
        return len(self._choice)

    def position(self, index: int) -> int:
        """The position among all rows of a shown one."""
        return self._choice.position(index)

    def _start_anew(self) -> None:
        """Forgets what was painted and measured."""
        region = self.scrollable_content_region
        self.page = max(region.height, 1)
        self._painted.start_anew(max(region.width - GUTTER, 1))
        self._lines.start_anew()
        self.cursor = max(0, min(self.cursor, len(self) - 1))
        self._sync()
        self.refresh()

    def _window(self) -> list[tuple[int, int]]:
        """For each line of the screen the shown row, and which of its lines it is."""
        before = self._lines.total
        window = self._lines.window(self.scroll_offset.y, self.page)
        if self._lines.total != before:
            self._sync()
        return window

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        window = self._window()
        if y >= len(window):
            return self._painted.blank
        index, inner = window[y]
        strip = self._painted.strip(self.rows, self.position(index), inner)
        return self._painted.selected(strip) if index == self.cursor else strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines of the screen as they are: they fill it and have their ground, so no style is laid over them."""
        strips = [self.render_line(y) for y in crop.line_range]
        if crop.y == 0:
            self._drawn = strips
        for one in self.get_line_filters():
            if not isinstance(one, ANSIToTruecolor):  # our colours are true ones
                strips = [strip.apply_filter(one, self.background_colors[1]) for strip in strips]
        if crop.x or crop.right < self.size.width:
            strips = [strip.crop(crop.x, crop.right) for strip in strips]
        return strips

    def _draw(self) -> None:
        """Draws those lines anew that are not on the screen as they are now."""
        lines = [self.render_line(y) for y in range(self.page)]
        if len(lines) != len(self._drawn):
            self.refresh()
            return
        width = self._painted.cells + GUTTER
        changed = [y for y, line in enumerate(lines) if line is not self._drawn[y]]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))
        self._drawn = lines

    def _sync(self) -> None:
        """Tells the scroll bar how many lines there are."""
        size = Size(self._painted.cells + GUTTER, max(self._lines.total, 1))
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
            self.vertical_scrollbar.window_size = self.page

    def _set_scroll(self, line: float) -> None:
        self._sync()
        self.scroll_to(y=max(0, min(line, self._lines.total - self.page)), animate=False, immediate=True)

    def validate_scroll_y(self, value: float) -> float:
        """Where the screen may begin; rows that come into it from above are measured, so that none jumps."""
        value = round(max(0, min(value, self._lines.total - self.page)))
        grown = self._lines.measure_screen(value, self.page)
        self._sync()
        return max(0, min(value + grown, self._lines.total - self.page))
