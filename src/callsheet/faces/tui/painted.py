"""Painted rows: how each row is drawn now, and the lines of those that were drawn last.

Owns the look, which rows are opened or folded, and the one cache of painted lines. A strip is made of a line when it
comes to the screen, and handed out again and again: Textual keeps what it made of it.

Must never know: where a row stands, what a row says.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from rich.segment import Segment
from textual.strip import Strip

from callsheet.faces.tui.looks import looks_of, segments, selected_look
from callsheet.paint import Line, Look, paint_row
from callsheet.rows import Rows

KEPT = 300
"""Painted rows that are kept: more than two screens of them, however little each says."""
GUTTER = 2
"""Cells before each line: the mark of the selected row, and of a provisional one."""


class _Strip(Strip):
    """A strip as wide as its view, which is cut only by what is drawn over it."""

    __slots__ = ()

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """Its pieces: itself where nothing cuts it, and (unlike Textual's) not kept alive by its own cache then."""
        inside = [cut for cut in cuts if cut <= self.cell_length]
        return [self] if inside == [self.cell_length] else super().divide(inside)


class _Row:
    """The lines of a row, and the strips of those of them that were on the screen."""

    __slots__ = ("lines", "strips")

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.strips: dict[int, Strip] = {}


class Painted:
    """How rows are painted.

    Args:
        look: How a sheet is drawn.
        looks: dark, light or plain.

    Attributes:
        cells: Cells of a painted line.
        folded: One line is drawn of each row that was not opened.
        provisional: Each line is marked: it may change.
        blank: A line without a row.
    """

    def __init__(self, look: Look, looks: str) -> None:
        self.cells = 1
        self.folded = False
        self.provisional = False
        self._look = look
        self._tick = 0
        self._opened: dict[int, bool] = {}
        self._rows: OrderedDict[int, _Row] = OrderedDict()
        self._marked: dict[int, tuple[Strip, Strip]] = {}
        self.put_look(look, looks)

    def put_look(self, look: Look, looks: str | None = None) -> None:
        """Draws in another look from now on."""
        self._look = look
        if looks is not None:
            self._looks = looks_of(looks)
            self._under = selected_look(looks)
        self.start_anew(self.cells)

    def start_anew(self, cells: int) -> None:
        """Forgets what was painted; lines have so many cells from now on."""
        self.cells = cells
        self.blank = Strip.blank(cells + GUTTER, self._looks[""])
        self._rows.clear()
        self._marked.clear()

    def forget(self, key: int) -> None:
        """Forgets how a row was painted: it says something else."""
        self._rows.pop(key, None)

    def tick(self) -> None:
        """Moves the signs of running rows that are painted from now on."""
        self._tick += 1

    # -- opened and folded --------------------------------------------------------------------------------------

    def toggle(self, key: int) -> None:
        """Opens a row whole, or closes it again."""
        if not self._opened.pop(key, False):
            self._opened[key] = True
        self.forget(key)

    def close_all(self) -> None:
        """Closes what was opened."""
        self._opened.clear()

    def is_folded(self, key: int) -> bool:
        """Whether only the first line of a row is drawn."""
        return self.folded and key not in self._opened

    # -- painting -----------------------------------------------------------------------------------------------

    def lines(self, rows: Rows, at: int) -> list[Line]:
        """The lines of a row as it stands on the screen."""
        key = rows.key(at)
        whole = self._opened.get(key, False)
        nested = rows.nested(at, whole=whole)
        look = Look(
            width=self.cells,
            full=whole,
            audit=self._look.audit,
            folders=self._look.folders,
            tick=self._tick if nested.row.state == "running" else None,
        )
        lines = paint_row(nested.row, look, nested.depth)
        if self.is_folded(key):
            return lines[:1]
        if at and nested.row.kind == "message" and nested.row.author == "user":
            return [[], *lines]
        return lines

    def height(self, rows: Rows, at: int) -> int:
        """How many lines a row has: at least one."""
        return len(self._row(rows, at).lines)

    def strip(self, rows: Rows, at: int, number: int) -> Strip:
        """A line of a row; for one behind its end, the last."""
        row = self._row(rows, at)
        number = min(number, len(row.lines) - 1)
        found = row.strips.get(number)
        if found is None:
            mark = Segment("≈ " if self.provisional else "  ", self._looks["quiet"])
            body = segments(row.lines[number], self._looks, self.cells)
            found = row.strips[number] = _Strip([mark, *body], self.cells + GUTTER)
        return found

    def _row(self, rows: Rows, at: int) -> _Row:
        key = rows.key(at)
        found = self._rows.get(key)
        if found is not None:
            self._rows.move_to_end(key)
            return found
        found = self._rows[key] = _Row(self.lines(rows, at) or [[]])
        if len(self._rows) > KEPT:
            self._rows.popitem(last=False)
        return found

    def selected(self, strip: Strip) -> Strip:
        """A line as one of the selected row."""
        kept = self._marked.get(id(strip))
        if kept is None or kept[0] is not strip:
            if len(self._marked) > KEPT:
                self._marked.clear()
            kept = self._marked[id(strip)] = (strip, self._as_selected(strip))
        return kept[1]

    def _as_selected(self, strip: Strip) -> Strip:
        under = self._under
        _, *body = strip
        line = [Segment("▌ ", self._looks["label"] + under)]
        line += [Segment(piece.text, (piece.style or self._looks[""]) + under) for piece in body]
        return _Strip(line, strip.cell_length)
