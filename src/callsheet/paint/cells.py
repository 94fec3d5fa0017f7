"""Widths in terminal cells: measuring, cutting and wrapping by what a person sees as one character.

Owns the only use of the width table. Text given here has passed ``safe.visible``; a combining mark that
stands alone gets a base of its own, and a pile of marks is cut, so that no text draws over its neighbours.

Must never know: rows, colours.
"""

from __future__ import annotations

from collections.abc import Iterator

from wcwidth import iter_graphemes, wcswidth

MOST_MARKS = 8
"""Code points that one character may have, unless it is an emoji joined of several."""
_BASE = "\u25cc"


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """The characters of a text, as a person counts them, with the cells that each takes."""
    if text.isascii():
        for char in text:
            yield char, 1
        return
    for cluster in iter_graphemes(text):
        if len(cluster) > MOST_MARKS and "\u200d" not in cluster:
            cluster = cluster[:MOST_MARKS]
        cells = wcswidth(cluster)
        if cells <= 0:
            cluster, cells = _BASE + cluster, 1
        yield cluster, cells


def width(text: str) -> int:
    """Cells that a text takes."""
    return len(text) if text.isascii() else sum(cells for _, cells in clusters(text))


def settled(text: str) -> str:
    """The text with a base for every lone mark, and no piles of them."""
    return text if text.isascii() else "".join(cluster for cluster, _ in clusters(text))


def cut(text: str, most: int, mark: str = "…") -> str:
    """The text in at most ``most`` cells; ``mark`` ends one that was cut."""
    if len(text) <= most and text.isascii():
        return text
    kept: list[str] = []
    used = 0
    room = most - width(mark)
    fits_cut = 0
    for cluster, cells in clusters(text):
        if used + cells > most:
            return "".join(kept[:fits_cut]) + (mark if room >= 0 else "")
        kept.append(cluster)
        used += cells
        if used <= room:
            fits_cut = len(kept)
    return "".join(kept)


def wrap(text: str, most: int) -> list[str]:
    """The text on lines of at most ``most`` cells, broken at blanks where there are any."""
    if width(text) <= most:
        return [settled(text)]
    lines: list[str] = []
    line: list[tuple[str, int]] = []
    used = 0
    for cluster, cells in clusters(text):
        while used + cells > most and line:
            at = _break(line)
            lines.append("".join(char for char, _ in line[:at]).rstrip(" "))
            line = line[at:]
            while line and line[0][0] == " " and lines:
                line.pop(0)
            used = sum(size for _, size in line)
        if not line and cluster == " " and lines:
            continue
        line.append((cluster, cells))
        used += cells
    lines.append("".join(char for char, _ in line).rstrip(" "))
    return lines


def _break(line: list[tuple[str, int]]) -> int:
    """Where to break: behind the last blank of the line's second half, else at its end."""
    for at in range(len(line), len(line) // 2, -1):
        if line[at - 1][0] == " ":
            return at
    return len(line)
