"""Which rows are shown: all of them, or those that a filter leaves, in their order.

Owns the way from a shown row (its index) to its position among all rows, and back.

Must never know: how rows are drawn, why a row is shown.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable

from callsheet.rows import Rows

Shows = Callable[[int], bool]
"""Whether the row at a position is shown."""


class Choice:
    """The shown ones of some rows; all of them at first.

    Attributes:
        rows: All rows.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._shown: array[int] | None = None

    def __len__(self) -> int:
        return len(self.rows) if self._shown is None else len(self._shown)

    def choose(self, shows: Shows | None) -> None:
        """Shows only some rows; all of them without a choice."""
        count = range(len(self.rows))
        self._shown = None if shows is None else array("I", (at for at in count if shows(at)))

    def position(self, index: int) -> int:
        """The position among all rows of a shown one."""
        return index if self._shown is None else self._shown[index]

    def index_of(self, at: int) -> int | None:
        """Which of the shown rows is at a position; None for one that is not shown."""
        if self._shown is None:
            return at if 0 <= at < len(self.rows) else None
        index = self._first_from(at)
        return index if index < len(self._shown) and self._shown[index] == at else None

    def nearest(self, at: int) -> int:
        """The first of the shown rows from a position on; the last one behind them all."""
        return min(self._first_from(at), len(self) - 1)

    def _first_from(self, at: int) -> int:
        return at if self._shown is None else bisect_left(self._shown, at)

    def insert(self, at: int, shows: Shows | None) -> int | None:
        """Makes room for a row that is new at a position; returns which of the shown rows it is.

        Args:
            at: The position; the rows from there on have moved down.
            shows: Whether a row is shown, where not all are.
        """
        if self._shown is None:
            return at
        index = self._first_from(at)
        for behind in range(index, len(self._shown)):
            self._shown[behind] += 1
        if shows is not None and not shows(at):
            return None
        self._shown.insert(index, at)
        return index
