"""Notes below a sheet: a caution that many rows have is told once, and each of them has its sign.

Owns the numbers. Must never know: layout.
"""

from __future__ import annotations

from collections.abc import Mapping

from callsheet.paint.words import remark_words
from callsheet.rows import Row

Signs = Mapping[str, str]
"""The sign of each member of a row that has a caution, like ``[1]``."""


class Notes:
    """Numbers cautions as rows come.

    Attributes:
        told: Every note so far with its sign, in order.
    """

    def __init__(self, *, audit: bool = False) -> None:
        self._audit = audit
        self._numbers: dict[str, int] = {}

    @property
    def told(self) -> list[str]:
        """Every note so far, with its sign."""
        return [f"[{number}] {words}" for words, number in self._numbers.items()]

    def signs(self, row: Row) -> Signs:
        """The signs of a row."""
        found: dict[str, str] = {}
        for member, words in remark_words(row, audit=self._audit):
            number = self._numbers.setdefault(words, len(self._numbers) + 1)
            found[member] = found.get(member, "") + f"[{number}]"
        return found
