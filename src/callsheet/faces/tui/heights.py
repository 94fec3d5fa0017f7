"""Heights of many rows: where a row begins, and which row a line belongs to, though most were never painted.

A height is known once its row was painted, and guessed before. Owns the sums; changing one height, adding or taking a
row costs a block of rows, not all of them.

Must never know: rows, terminals.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

BLOCK = 512


class Heights:
    """The heights of rows from top to bottom.

    Args:
        values: A height for each row.

    Attributes:
        total: All lines.
    """

    def __init__(self, values: Iterable[int] = ()) -> None:
        self.fill(values)

    def fill(self, values: Iterable[int]) -> None:
        """Other rows, with a height for each."""
        whole = array("I", values)
        self._blocks = [whole[at : at + BLOCK] for at in range(0, len(whole), BLOCK)] or [array("I")]
        self._sums = [sum(block) for block in self._blocks]
        self.total = sum(self._sums)
        self._count = len(whole)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        for block in self._blocks:
            yield from block

    def __getitem__(self, at: int) -> int:
        block, inner, _ = self._place(at)
        return self._blocks[block][inner]

    def put(self, at: int, height: int) -> int:
        """Sets a row's height; returns by how much it grew."""
        block, inner, _ = self._place(at)
        grown = height - self._blocks[block][inner]
        if grown:
            self._blocks[block][inner] = height
            self._sums[block] += grown
            self.total += grown
        return grown

    def start(self, at: int) -> int:
        """The line at which a row begins; for the place behind the last row, all lines."""
        if at >= self._count:
            return self.total
        block, inner, before = self._place(at)
        return before + sum(self._blocks[block][:inner])

    def find(self, line: int) -> tuple[int, int]:
        """The row that a line belongs to, and which of its lines it is; of a line beyond the end, the last one's."""
        if not self._count:
            return 0, 0
        line = max(0, min(line, self.total - 1))
        first = 0
        for block, lines in zip(self._blocks, self._sums, strict=True):
            if line < lines:
                for inner, height in enumerate(block):
                    if line < height:
                        return first + inner, line
                    line -= height
            line -= lines
            first += len(block)
        return self._count - 1, 0

    def insert(self, at: int, height: int) -> None:
        """Puts a row before the one at a position, or behind all."""
        if at >= self._count:
            block, inner = len(self._blocks) - 1, len(self._blocks[-1])
        else:
            block, inner, _ = self._place(at)
        self._blocks[block].insert(inner, height)
        self._sums[block] += height
        self.total += height
        self._count += 1
        if len(self._blocks[block]) >= 2 * BLOCK:
            self._split(block)

    def take(self, at: int) -> None:
        """Takes a row away."""
        block, inner, _ = self._place(at)
        height = self._blocks[block].pop(inner)
        self._sums[block] -= height
        self.total -= height
        self._count -= 1

    def _split(self, block: int) -> None:
        whole = self._blocks[block]
        halves = [whole[:BLOCK], whole[BLOCK:]]
        self._blocks[block : block + 1] = halves
        self._sums[block : block + 1] = [sum(half) for half in halves]

    def _place(self, at: int) -> tuple[int, int, int]:
        """The block of a row, its place there, and the lines before the block."""
        if not 0 <= at < self._count:
            raise IndexError(at)
        lines = 0
        for number, block in enumerate(self._blocks):
            if at < len(block):
                return number, at, lines
            at -= len(block)
            lines += self._sums[number]
        raise IndexError(at)
