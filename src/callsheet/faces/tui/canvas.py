"""The sheet on the screen: one scrolling view that paints the lines it is asked for, and nothing else.

A row is made and painted when it comes near the screen; the heights of the others are guessed, and a wrong guess above
the reader never moves what they read. Owns the selected row, which rows are opened or folded, which are shown at all,
and the way from a line to a row.

Must never know: where rows come from, what a row says.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from rich.segment import Segment
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from callsheet.faces.tui.heights import Heights
from callsheet.faces.tui.looks import Looks, looks_of, segments, selected_look
from callsheet.paint import Line, Look, paint_row
from callsheet.rows import Row, RowKind, Rows

GUESSES: dict[RowKind, int] = {
    "read": 5,
    "search": 6,
    "command": 7,
    "file_change": 9,
    "message": 4,
    "thought": 1,
    "hook": 4,
    "notice": 1,
}
"""Lines that a row of each kind is thought to have until it was painted; ``GUESS`` for other kinds."""
GUESS = 6
KEPT = 600
"""Painted rows that are kept."""
GUTTER = 2
"""Cells before each line: the mark of the selected row, and of a provisional one."""

Shows = Callable[[int], bool]
"""Whether the row at a position is shown."""


class SheetView(ScrollView, can_focus=True, inherit_bindings=False):
    """The lines of a session's rows.

    Attributes:
        rows: The rows.
        cursor: Which of the shown rows is selected.
        cells: Cells of a painted line.
        page: Lines on the screen.
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
        super().__init__(id=id)
        self.rows = rows
        self.cursor = 0
        self.following = False
        self.provisional = False
        self._look = look
        self._looks_name = looks
        self._looks: Looks = looks_of(looks)
        self._under = selected_look(looks)
        self._shown: array[int] | None = None
        self._heights = Heights()
        self._measured: set[int] = set()
        self._painted: OrderedDict[int, list[Strip]] = OrderedDict()
        self._opened: dict[int, bool] = {}
        self.folded = False
        self._tick = 0
        self._lines: list[tuple[int, int]] = []
        self._lines_for: tuple[int, int, int] | None = None
        self._marked: dict[int, tuple[Strip, Strip]] = {}
        self._blank = Strip.blank(1)
        self._cursor_key: int | None = None
        self.cells = 1
        self.page = 1
        self._version = 0

    # -- which rows ---------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.rows) if self._shown is None else len(self._shown)

    def position(self, index: int) -> int:
        """The position among all rows of a shown one."""
        return index if self._shown is None else self._shown[index]

    def index_of(self, at: int) -> int | None:
        """Which of the shown rows is at a position; None for one that is not shown."""
        if self._shown is None:
            return at if 0 <= at < len(self.rows) else None
        index = self._first_from(at)
        return index if index < len(self._shown) and self._shown[index] == at else None

    def _first_from(self, at: int) -> int:
        """The first of the shown rows from a position on."""
        return at if self._shown is None else bisect_left(self._shown, at)

    @property
    def at(self) -> int | None:
        """The position of the selected row."""
        return self.position(self.cursor) if len(self) else None

    def row(self, at: int) -> Row:
        """The row at a position."""
        return self.rows.nested(at).row

    # -- what changes -------------------------------------------------------------------------------------------

    def put_rows(self, rows: Rows, at: int | None = None, *, provisional: bool = False) -> None:
        """Shows other rows, with the one at a position where the reader was."""
        line = self._line_of_cursor()
        self.rows = rows
        self.provisional = provisional
        self._shown = None
        self._opened.clear()
        self._start_anew()
        if at is not None and len(self):
            self.cursor = min(at, len(self) - 1)
            self._show_at(self.cursor, line)
        self._tell()

    def show_only(self, shows: Shows | None) -> None:
        """Shows only some rows; the selected one stays selected, or the next one that is shown."""
        at = self.at
        line = self._line_of_cursor()
        self._shown = None
        if shows is not None:
            self._shown = array("I", (number for number in range(len(self.rows)) if shows(number)))
        self._start_anew()
        if at is not None and len(self):
            self.cursor = self._nearest(at)
            self._show_at(self.cursor, line)
        self._tell()

    def _nearest(self, at: int) -> int:
        return min(self._first_from(at), len(self) - 1)

    def changed(self, changed: Iterable[int], added: Sequence[int] = (), shows: Shows | None = None) -> None:
        """Draws some rows anew in their places, and new ones where they belong.

        What stands above the reader may grow; what they read stays where it is.

        Args:
            changed: Positions of rows that have changed.
            added: Positions of new rows, ascending; the others moved down.
            shows: Whether a row is shown, where not all are.
        """
        was_at_end = self.at_end
        top, inner = self._heights.find(self.scroll_offset.y)
        shift = 0
        for at in added:
            index = self._insert(at, shows)
            if index is None:
                continue
            if index <= self.cursor and len(self) > 1:
                self.cursor += 1
            if index <= top and index < len(self) - 1:
                top += 1
                shift += 1
        for at in changed:
            self._painted.pop(self.rows.key(at), None)
            index = self.index_of(at)
            if index is None:
                continue
            if self.rows.key(at) in self._measured:
                grown = self._heights.put(index, self._height(at))
                shift += grown if index < top else 0
        self._version += 1
        if shift:
            self._set_scroll(self._heights.start(top) + inner)
        self._sync()
        if self.following and was_at_end and len(self):
            self.cursor = len(self) - 1
            self._to_end()
        self.refresh()
        self._tell()

    def renewed(self, shows: Shows | None = None) -> None:
        """Draws everything anew after rows changed their order; the reader stays at their row."""
        line, was_at_end = self._line_of_cursor(), self.at_end
        key = self._cursor_key
        self._shown = None
        if shows is not None:
            self._shown = array("I", (number for number in range(len(self.rows)) if shows(number)))
        at = self.rows.position(key) if key is not None else None
        self._start_anew()
        if len(self):
            self.cursor = self._nearest(at) if at is not None else min(self.cursor, len(self) - 1)
            if self.following and was_at_end:
                self.cursor = len(self) - 1
                self._to_end()
            else:
                self._show_at(self.cursor, line)
        self.refresh()
        self._tell()

    def _insert(self, at: int, shows: Shows | None) -> int | None:
        """Makes room for a new row; returns which of the shown rows it is."""
        index = at
        if self._shown is not None:
            index = self._first_from(at)
            if index < len(self._shown):
                self._shown = array("I", (one + (one >= at) for one in self._shown))
            if shows is not None and not shows(at):
                return None
            self._shown.insert(index, at)
        self._heights.insert(index, self._guess(at))
        return index

    def put_look(self, look: Look, looks: str | None = None) -> None:
        """Draws everything in another look."""
        line = self._line_of_cursor()
        self._look = look
        if looks is not None:
            self._looks_name = looks
            self._looks = looks_of(looks)
            self._under = selected_look(looks)
        self._start_anew()
        if len(self):
            self._show_at(min(self.cursor, len(self) - 1), line)

    def _start_anew(self) -> None:
        """Forgets what was painted and measured."""
        self._learn_size()
        self._painted.clear()
        self._marked.clear()
        self._measured.clear()
        self._heights = Heights(self._guess(self.position(index)) for index in range(len(self)))
        self.cursor = max(0, min(self.cursor, len(self) - 1))
        self._version += 1
        self._sync()
        self.refresh()

    def _guess(self, at: int) -> int:
        return 1 if self.folded else GUESSES.get(self.rows.kind(at), GUESS)

    # -- painting -----------------------------------------------------------------------------------------------

    def _learn_size(self) -> None:
        region = self.scrollable_content_region
        self.cells = max(region.width - GUTTER, 1)
        self.page = max(region.height, 1)
        self._blank = Strip.blank(self.cells + GUTTER, self._looks[""])

    def is_open(self, at: int) -> bool:
        """Whether a row is drawn whole."""
        return self._opened.get(self.rows.key(at), False)

    def is_folded(self, at: int) -> bool:
        """Whether only the first line of a row is drawn."""
        return self.folded and self.rows.key(at) not in self._opened

    def lines_of(self, at: int) -> list[Line]:
        """The painted lines of a row as it stands on the screen."""
        whole = self.is_open(at)
        nested = self.rows.nested(at, whole=whole)
        look = Look(
            width=self.cells,
            full=whole,
            audit=self._look.audit,
            folders=self._look.folders,
            tick=self._tick if nested.row.state == "running" else None,
        )
        lines = paint_row(nested.row, look, nested.depth)
        if self.is_folded(at):
            return lines[:1]
        if at and nested.row.kind == "message" and nested.row.author == "user":
            return [[], *lines]
        return lines

    def _strips_of(self, at: int) -> list[Strip]:
        key = self.rows.key(at)
        found = self._painted.get(key)
        if found is not None:
            self._painted.move_to_end(key)
            return found
        width = self.cells
        mark = Segment("≈ " if self.provisional else "  ", self._looks["quiet"])
        # The same strips are handed out again and again: Textual keeps what it made of one.
        found = [
            Strip([mark, *segments(line, self._looks, width)], width + GUTTER)
            for line in self.lines_of(at) or [[]]
        ]
        self._painted[key] = found
        if len(self._painted) > KEPT:
            self._painted.popitem(last=False)
        return found

    def _height(self, at: int) -> int:
        return len(self._strips_of(at))

    def _measure(self, index: int) -> int:
        """Knows the height of a shown row; returns by how much the guess was too low."""
        at = self.position(index)
        key = self.rows.key(at)
        if key in self._measured:
            return 0
        self._measured.add(key)
        return self._heights.put(index, self._height(at))

    def _window(self) -> list[tuple[int, int]]:
        """For each line of the screen the shown row, and which of its lines it is."""
        top = self.scroll_offset.y
        wanted = (top, self.page, self._version)
        if self._lines_for == wanted:
            return self._lines
        lines: list[tuple[int, int]] = []
        if len(self):
            index, inner = self._heights.find(top)
            grown = self._measure(index)
            inner = min(inner, self._heights[index] - 1)
            while len(lines) < self.page and index < len(self):
                grown += self._measure(index)
                lines += [(index, line) for line in range(inner, self._heights[index])]
                index, inner = index + 1, 0
            if grown:
                self._sync()
        self._lines, self._lines_for = lines[: self.page], wanted
        return self._lines

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        window = self._window()
        if y >= len(window):
            return self._blank
        index, inner = window[y]
        painted = self._strips_of(self.position(index))
        strip = painted[min(inner, len(painted) - 1)]
        if index != self.cursor:
            return strip
        kept = self._marked.get(id(strip))
        if kept is None or kept[0] is not strip:
            kept = self._marked[id(strip)] = (strip, self._as_selected(strip))
        return kept[1]

    def _as_selected(self, strip: Strip) -> Strip:
        under = self._under
        _, *body = strip
        line = [Segment("▌ ", self._looks["label"] + under)]
        line += [Segment(piece.text, (piece.style or self._looks[""]) + under) for piece in body]
        return Strip(line, strip.cell_length)

    def _draw_row(self, index: int) -> None:
        """Draws the lines of one row anew, where they are on the screen."""
        lines = [line for line, (number, _) in enumerate(self._window()) if number == index]
        if lines:
            self.refresh(Region(0, lines[0], self.cells + GUTTER, len(lines)))

    # -- where the reader is ------------------------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        """Whether the last line is on the screen."""
        return self.scroll_offset.y >= self._heights.total - self.page

    def _line_of_cursor(self) -> int:
        """On which line of the screen the selected row begins."""
        if not len(self._heights):
            return 0
        return self._heights.start(min(self.cursor, len(self._heights) - 1)) - self.scroll_offset.y

    def _sync(self) -> None:
        """Tells the scroll bar how many lines there are."""
        size = Size(self.cells + GUTTER, max(self._heights.total, 1))
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
            self.vertical_scrollbar.window_size = self.page

    def _set_scroll(self, line: float) -> None:
        self._sync()
        self.scroll_to(y=max(0, min(line, self._heights.total - self.page)), animate=False, immediate=True)

    def validate_scroll_y(self, value: float) -> float:
        """Where the screen may begin; rows that come into it from above are measured, so that none jumps."""
        value = round(max(0, min(value, self._heights.total - self.page)))
        if not len(self._heights):
            return 0
        index, inner = self._heights.find(value)
        grown = self._measure(index) if inner else 0
        line = value
        while line < value + self.page and index < len(self):
            self._measure(index)
            line = self._heights.start(index) + self._heights[index]
            index += 1
        self._sync()
        return max(0, min(value + grown, self._heights.total - self.page))

    def _show_at(self, index: int, line: int) -> None:
        """Puts the first line of a row on a line of the screen."""
        line = max(0, min(line, self.page - 1))
        above, lines = index - 1, 0
        while above >= 0 and lines < line:
            self._measure(above)
            lines += self._heights[above]
            above -= 1
        self._measure(index)
        self._version += 1
        self._set_scroll(self._heights.start(index) - line)
        self.refresh()

    def reveal(self, index: int) -> None:
        """Scrolls as little as is needed to see a row, from its first line."""
        lines, above = 0, index
        while above >= 0 and lines < 2 * self.page:
            self._measure(above)
            lines += self._heights[above]
            above -= 1
        begin, height = self._heights.start(index), self._heights[index]
        top = self.scroll_offset.y
        if begin < top or height >= self.page:
            self._set_scroll(begin)
        elif begin + height > top + self.page:
            self._set_scroll(begin + height - self.page)

    def select(self, index: int) -> None:
        """Selects one of the shown rows and shows it."""
        if not len(self):
            return
        before, top = self.cursor, self.scroll_offset.y
        self.cursor = max(0, min(index, len(self) - 1))
        self._marked.clear()
        self.reveal(self.cursor)
        if self.scroll_offset.y == top:
            self._draw_row(before)
            self._draw_row(self.cursor)
        self._tell()
        self.post_message(self.Moved())

    def _tell(self) -> None:
        at = self.at
        self._cursor_key = None if at is None else self.rows.key(at)
        self.post_message(self.Selected(at))

    def move(self, by: int) -> None:
        """Selects another row; a row that is longer than the screen is scrolled through first."""
        if not len(self):
            return
        begin = self._heights.start(self.cursor)
        end = begin + self._heights[self.cursor]
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
        self.refresh()
        self.post_message(self.Moved())

    def turn_page(self, by: int) -> None:
        """Goes a screen up or down, and selects the first row that begins there."""
        top = self.scroll_offset.y
        self._scroll_by(by * max(self.page - 2, 1))
        if self.scroll_offset.y == top:
            self.select(0 if by < 0 else len(self) - 1)
            return
        window = self._window()
        self.cursor = next((index for index, inner in window if inner == 0), window[0][0] if window else 0)
        self.refresh()
        self._tell()

    def to_start(self) -> None:
        """Goes to the first row."""
        self.select(0)

    def to_end(self) -> None:
        """Goes to the last row."""
        if len(self):
            self.cursor = len(self) - 1
            self._to_end()
            self.refresh()
            self._tell()
            self.post_message(self.Moved())

    def _to_end(self) -> None:
        self.reveal(len(self) - 1)
        self._set_scroll(self._heights.total)

    def find(self, wanted: Callable[[int], bool], by: int) -> bool:
        """Selects the next (or previous) shown row that is wanted; False when there is none."""
        index = self.cursor + by
        while 0 <= index < len(self):
            if wanted(self.position(index)):
                self.select(index)
                return True
            index += by
        return False

    # -- opened and folded --------------------------------------------------------------------------------------

    def toggle(self, index: int | None = None) -> None:
        """Opens a row whole, or closes it again."""
        if not len(self):
            return
        index = self.cursor if index is None else index
        key = self.rows.key(self.position(index))
        if self._opened.get(key):
            del self._opened[key]
        else:
            self._opened[key] = True
        self._painted.pop(key, None)
        self._measured.discard(key)
        line = max(self._heights.start(index) - self.scroll_offset.y, 0)
        self._measure(index)
        self._version += 1
        self._show_at(index, line)
        self._tell()

    def fold_all(self) -> None:
        """Draws one line of each row, or (again) each as usual; what was opened is closed."""
        line = self._line_of_cursor()
        self.folded = not self.folded
        self._opened.clear()
        self._start_anew()
        if len(self):
            self._show_at(self.cursor, line)

    def tick(self) -> None:
        """Moves the signs of running rows on the screen."""
        self._tick += 1
        running = {at for at in {self.position(index) for index, _ in self._window()} if self._is_running(at)}
        for at in running:
            self._painted.pop(self.rows.key(at), None)
        if running:
            self.refresh()

    def _is_running(self, at: int) -> bool:
        return self.rows.state(at) == "running"

    # -- events -------------------------------------------------------------------------------------------------

    def on_resize(self, _: Resize) -> None:
        """Lays out anew for another size, with the selected row where it was, or still at the end."""
        line, was_at_end = self._line_of_cursor(), self.at_end
        self._start_anew()
        if not len(self):
            return
        if self.following and was_at_end:
            self.cursor = len(self) - 1
            self._to_end()
        else:
            self._show_at(self.cursor, line)

    def on_click(self, event: Click) -> None:
        """Selects the row that was clicked; a second click opens it."""
        window = self._window()
        if not 0 <= event.y < len(window):
            return
        index, _ = window[event.y]
        if index == self.cursor:
            self.toggle(index)
        else:
            self.select(index)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draws the lines of another place."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Moved())
