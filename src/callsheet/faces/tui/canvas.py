"""The sheet on the screen, with a reader in front of it.

Owns where the reader is: which row is selected, which lines are on the screen, and that neither moves when rows come,
change, or turn out longer than guessed.

Must never know: where rows come from, what a row says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from textual.events import Click, Resize
from textual.message import Message

from callsheet.faces.tui.choice import Shows
from callsheet.faces.tui.lined import LinedView
from callsheet.paint import Line, Look
from callsheet.rows import Row, Rows


class SheetView(LinedView, can_focus=True, inherit_bindings=False):
    """The lines of a session's rows.

    Attributes:
        following: New rows are scrolled to as they come, while the reader is at the end.
    """

    DEFAULT_CSS = (
        "SheetView { overflow-y: scroll; overflow-x: hidden; height: 1fr; scrollbar-size-vertical: 1; }"
    )

    class Selected(Message):
        """Another row is selected, or the selected one has changed."""

        def __init__(self, at: int | None) -> None:
            super().__init__()
            self.at = at

    class Moved(Message):
        """The reader went to another place.

        Attributes:
            when: When they did, by a clock that only grows.
        """

        def __init__(self) -> None:
            super().__init__()
            self.when = monotonic()

    def __init__(self, rows: Rows, look: Look, *, looks: str = "dark", id: str | None = None) -> None:  # noqa: A002
        super().__init__(rows, look, looks=looks, id=id)
        self.following = False
        self._cursor_key: int | None = None

    # -- which rows ---------------------------------------------------------------------------------------------

    @property
    def provisional(self) -> bool:
        """Whether the rows are marked as those of a file that is still being read."""
        return self._painted.provisional

    @property
    def at(self) -> int | None:
        """The position of the selected row."""
        return self.position(self.cursor) if len(self) else None

    def row(self, at: int) -> Row:
        """The row at a position."""
        return self.rows.nested(at).row

    def lines_of(self, at: int) -> list[Line]:
        """The painted lines of a row as it stands on the screen."""
        return self._painted.lines(self.rows, at)

    # -- what changes -------------------------------------------------------------------------------------------

    def put_rows(self, rows: Rows, at: int | None = None, *, provisional: bool = False) -> None:
        """Shows other rows, with the one at a position where the reader was."""
        line = self._line_of_cursor()
        self._choice.rows = rows
        self._choice.choose(None)
        self._painted.provisional = provisional
        self._painted.close_all()
        self._start_anew()
        if at is not None and len(self):
            self.cursor = min(at, len(self) - 1)
            self._show_at(self.cursor, line)
        self._tell()

    def changed(self, changed: Iterable[int], added: Sequence[int] = (), shows: Shows | None = None) -> None:
        """Draws some rows anew in their places, and new ones where they belong.

        What stands above the reader may grow; what they read stays where it is.

        Args:
            changed: Positions of rows that have changed.
            added: Positions of new rows, ascending; the others moved down.
            shows: Whether a row is shown, where not all are.
        """
        was_at_end = self.at_end
        top, inner = self._lines.find(self.scroll_offset.y)
        shift = 0
        for at in added:
            index = self._choice.insert(at, shows)
            if index is None:
                continue
            self._lines.insert_guessed(index)
            if index <= self.cursor and len(self) > 1:
                self.cursor += 1
            if index <= top and index < len(self) - 1:
                top += 1
                shift += 1
        for at in changed:
            self._painted.forget(self.rows.key(at))
            index = self._choice.index_of(at)
            if index is not None:
                grown = self._lines.measure_again(index)
                shift += grown if index < top else 0
        if shift:
            self._set_scroll(self._lines.start(top) + inner)
        self._sync()
        if self.following and was_at_end and len(self):
            self.cursor = len(self) - 1
            self._to_end()
        self._draw()
        self._tell()

    def renewed(self, shows: Shows | None = None) -> None:
        """Draws everything anew: rows changed their order, or other ones of them are shown.

        The reader stays at their row, or goes to the next one that is shown.
        """
        line, was_at_end = self._line_of_cursor(), self.at_end
        at = self.rows.position(self._cursor_key) if self._cursor_key is not None else None
        self._choice.choose(shows)
        self._start_anew()
        if at is not None and len(self):
            self.cursor = self._choice.nearest(at)
        self._show_again(line, was_at_end)
        self._tell()

    def put_look(self, look: Look, looks: str | None = None) -> None:
        """Draws everything in another look."""
        line = self._line_of_cursor()
        self._painted.put_look(look, looks)
        self._start_anew()
        self._show_at(self.cursor, line)

    def tick(self) -> None:
        """Moves the signs of running rows on the screen."""
        self._painted.tick()
        shown = {self.position(index) for index, _ in self._window()}
        for at in shown:
            if self.rows.state(at) == "running":
                self._painted.forget(self.rows.key(at))
        self._draw()

    # -- where the reader is ------------------------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        """Whether the reader is at the end: its last line is on the screen, and they chose no other row there."""
        if self.scroll_offset.y < self._lines.total - self.page:
            return False
        # Rows that have come are counted once they were taken in.
        last = len(self._lines) - 1
        return self.cursor >= last or self._lines.start(self.cursor + 1) <= self.scroll_offset.y

    def _line_of_cursor(self) -> int:
        """On which line of the screen the selected row begins."""
        if not len(self._lines):
            return 0
        return self._lines.start(min(self.cursor, len(self._lines) - 1)) - self.scroll_offset.y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draws the lines of another place."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved())

    def _show_at(self, index: int, line: int) -> None:
        """Puts the first line of a row on a line of the screen."""
        if not len(self):
            return
        line = max(0, min(line, self.page - 1))
        self._lines.measure_up(index - 1, line)
        self._lines.measure(index)
        self._set_scroll(self._lines.start(index) - line)
        self._draw()

    def _show_again(self, line: int, was_at_end: bool) -> None:
        """Shows the selected row where it was; a reader who follows and was at the end, the end."""
        if self.following and was_at_end and len(self):
            self.cursor = len(self) - 1
            self._to_end()
        else:
            self._show_at(self.cursor, line)

    def reveal(self, index: int) -> None:
        """Scrolls as little as is needed to see a row, from its first line."""
        self._lines.measure_up(index, self.page)
        begin, height = self._lines.start(index), self._lines[index]
        top = self.scroll_offset.y
        if begin < top or height >= self.page:
            self._set_scroll(begin)
        elif begin + height > top + self.page:
            self._set_scroll(begin + height - self.page)

    def select(self, index: int) -> None:
        """Selects one of the shown rows and shows it."""
        if not len(self):
            return
        self.cursor = max(0, min(index, len(self) - 1))
        self.reveal(self.cursor)
        self._draw()
        self._tell()
        self.post_message(self.Moved())

    def _tell(self) -> None:
        at = self.at
        self._cursor_key = None if at is None else self.rows.key(at)
        self.post_message(self.Selected(at))

    def find(self, wanted: Callable[[int], bool], by: int) -> bool:
        """Selects the next (or previous) shown row that is wanted; False when there is none."""
        index = self.cursor + by
        while 0 <= index < len(self):
            if wanted(self.position(index)):
                self.select(index)
                return True
            index += by
        return False

    # -- moving -------------------------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Selects another row; a row that is longer than the screen is scrolled through first."""
        if not len(self):
            return
        begin = self._lines.start(self.cursor)
        end = begin + self._lines[self.cursor]
        top = self.scroll_offset.y
        on_screen = begin < top + self.page and end > top
        if on_screen and by > 0 and end > top + self.page:
            self._scroll_by(min(self.page // 2, end - top - self.page))
        elif on_screen and by < 0 and begin < top:
            self._scroll_by(-min(self.page // 2, top - begin))
        else:
            self.select(self.cursor + by)

    def _scroll_by(self, lines: int) -> None:
        self._set_scroll(self.scroll_offset.y + lines)
        self._draw()
        self.post_message(self.Moved())

    def turn_page(self, by: int) -> None:
        """Goes a screen up or down, and selects the first row that begins there; at the end, the last one."""
        top = self.scroll_offset.y
        self._scroll_by(by * max(self.page - 2, 1))
        if self.scroll_offset.y == top:
            self.select(0 if by < 0 else len(self) - 1)
            return
        window = self._window()
        self.cursor = next((index for index, inner in window if inner == 0), window[0][0] if window else 0)
        if by > 0 and self.scroll_offset.y >= self._lines.total - self.page:
            self.cursor = len(self) - 1
        self._draw()
        self._tell()

    def to_start(self) -> None:
        """Goes to the first row."""
        self.select(0)

    def to_end(self) -> None:
        """Goes to the last row."""
        if len(self):
            self.cursor = len(self) - 1
            self._to_end()
            self._draw()
            self._tell()
            self.post_message(self.Moved())

    def _to_end(self) -> None:
        self.reveal(len(self) - 1)
        self._set_scroll(self._lines.total)

    # -- opened and folded --------------------------------------------------------------------------------------

    def toggle(self, index: int | None = None) -> None:
        """Opens a row whole, or closes it again."""
        if not len(self):
            return
        index = self.cursor if index is None else index
        line = max(self._lines.start(index) - self.scroll_offset.y, 0)
        self._painted.toggle(self.rows.key(self.position(index)))
        self._lines.forget(index)
        self._show_at(index, line)
        self._tell()

    def fold_all(self) -> None:
        """Draws one line of each row, or (again) each as usual; what was opened is closed."""
        line = self._line_of_cursor()
        self._painted.folded = not self._painted.folded
        self._painted.close_all()
        self._start_anew()
        self._show_at(self.cursor, line)

    # -- events -------------------------------------------------------------------------------------------------

    def on_resize(self, _: Resize) -> None:
        """Lays out anew for another size, with the selected row where it was, or still at the end."""
        line, was_at_end = self._line_of_cursor(), self.at_end
        self._start_anew()
        self._show_again(line, was_at_end)

    def on_click(self, event: Click) -> None:
        """Selects the row that was clicked; a second click opens it."""
        window = self._window()
        if not 0 <= event.y < len(window):
            return
        index, _ = window[event.y]
        (self.toggle if index == self.cursor else self.select)(index)
