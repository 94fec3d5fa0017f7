"""Where the shown rows stand: a row is made and painted when it comes near the screen, the others are guessed.

Owns which heights are known, and the way from a line to a row. A wrong guess is put right when a row is measured;
whoever asks learns by how much, so that a reader is never moved.

Must never know: the screen, what a row says.
"""

from __future__ import annotations

from callsheet.faces.tui.choice import Choice
from callsheet.faces.tui.heights import Heights
from callsheet.faces.tui.painted import Painted
from callsheet.rows import RowKind

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


class Layout(Heights):
    """The heights of the shown rows.

    Args:
        choice: Which rows are shown.
        painted: How they are painted.
    """

    def __init__(self, choice: Choice, painted: Painted) -> None:
        super().__init__()
        self._choice = choice
        self._painted = painted
        self._measured: set[int] = set()
        self._window: list[tuple[int, int]] = []
        self._window_at: tuple[int, int] | None = None

    def start_anew(self) -> None:
        """Guesses all heights again."""
        self._measured.clear()
        self._window_at = None
        position = self._choice.position
        self.fill(self._guess(position(index)) for index in range(len(self._choice)))

    def _guess(self, at: int) -> int:
        return 1 if self._painted.folded else GUESSES.get(self._choice.rows.kind(at), GUESS)

    def _height(self, at: int) -> int:
        return self._painted.height(self._choice.rows, at)

    def put(self, at: int, height: int) -> int:
        """Sets a row's height; returns by how much it grew."""
        grown = super().put(at, height)
        if grown:
            self._window_at = None
        return grown

    def insert_guessed(self, index: int) -> None:
        """Makes room for a row that was not painted yet."""
        self._window_at = None
        self.insert(index, self._guess(self._choice.position(index)))

    def measure(self, index: int) -> int:
        """Knows the height of a row; returns by how much the guess was too low."""
        at = self._choice.position(index)
        key = self._choice.rows.key(at)
        if key in self._measured:
            return 0
        self._measured.add(key)
        return self.put(index, self._height(at))

    def measure_again(self, index: int) -> int:
        """Knows the height of a row that has changed, where it was known; returns by how much it grew."""
        at = self._choice.position(index)
        return self.put(index, self._height(at)) if self._choice.rows.key(at) in self._measured else 0

    def measure_up(self, index: int, lines: int) -> None:
        """Knows the heights of a row and of those above it, until they fill so many lines."""
        while index >= 0 and lines > 0:
            self.measure(index)
            lines -= self[index]
            index -= 1

    def measure_screen(self, top: int, page: int) -> int:
        """Knows the heights of the rows on a screen; returns how far the first, where it begins above, was too low."""
        if not len(self):
            return 0
        index, inner = self.find(top)
        grown = self.measure(index) if inner else 0
        end = top
        while end < top + page and index < len(self):
            self.measure(index)
            end = self.start(index) + self[index]
            index += 1
        return grown

    def forget(self, index: int) -> None:
        """The height of a row is not known any more."""
        self._measured.discard(self._choice.rows.key(self._choice.position(index)))

    def window(self, top: int, page: int) -> list[tuple[int, int]]:
        """For each line of a screen the shown row, and which of its lines it is."""
        if self._window_at == (top, page):
            return self._window
        lines: list[tuple[int, int]] = []
        if len(self):
            index, inner = self.find(top)
            self.measure(index)
            inner = min(inner, self[index] - 1)
            while len(lines) < page and index < len(self):
                self.measure(index)
                lines += [(index, line) for line in range(inner, self[index])]
                index, inner = index + 1, 0
        self._window, self._window_at = lines[:page], (top, page)
        return self._window
