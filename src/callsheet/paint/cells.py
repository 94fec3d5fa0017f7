"""Widths in terminal cells: measuring, cutting and wrapping by what a person sees as one character.

Owns the only use of the width table. Text given here has passed ``safe.visible``; a combining mark that
stands alone gets a base of its own, a pile of marks is cut, and what has no width of its own is named, so
that no text draws over its neighbours.

Must never know: rows, colours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from wcwidth import iter_graphemes, wcswidth

MOST_MARKS = 8
"""Code points that one character may have."""
MOST_JOINED = 24
"""Code points that an emoji joined of several may have."""
_BASE = "\u25cc"


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """The characters of a text, as a person counts them, with the cells that each takes.

    A mark that segmentation sets apart, and that has no cells of its own, belongs to the character before it:
    that is where it is drawn.
    """
    if text.isascii():
        for char in text:
            yield char, 1
        return
    held, held_cells = "", 0
    for cluster in iter_graphemes(text):
        cluster = _bounded(cluster)
        cells = wcswidth(cluster)
        is_mark = cells <= 0 and unicodedata.category(cluster[0])[0] == "M"
        if is_mark:
            held = _bounded((held or _BASE) + cluster)
            held_cells = wcswidth(held)
            continue
        if held:
            yield held, held_cells
        held, held_cells = (cluster, cells) if cells > 0 else ("", 0)
        if cells <= 0:  # a piece of a character, such as a Korean vowel without its consonant
            named = "".join(f"<U+{ord(char):04X}>" for char in cluster)
            yield named, len(named)
    if held:
        yield held, held_cells


def _bounded(cluster: str) -> str:
    return cluster[: MOST_JOINED if "\u200d" in cluster else MOST_MARKS]


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


def cut_start(text: str, most: int, mark: str = "…") -> str:
    """The text in at most ``most`` cells; ``mark`` begins one that was cut: of a path, its end tells most."""
    if width(text) <= most:
        return text
    kept: list[str] = []
    room = most - width(mark)
    for cluster, cells in reversed(list(clusters(text))):
        if cells > room:
            break
        kept.append(cluster)
        room -= cells
    return mark * (most >= width(mark)) + "".join(reversed(kept))


def wrap(text: str, most: int) -> list[str]:
    """The text on lines of at most ``most`` cells, broken at blanks where there are any."""
    if text.isascii():
        return [text] if len(text) <= most else _wrap_ascii(text, most)
    lines: list[str] = []
    line: list[tuple[str, int]] = []
    used = 0
    for cluster, cells in clusters(text):
        while used + cells > most and line:
            at = len(line) if cluster == " " else _break(line)
            lines.append("".join(char for char, _ in line[:at]).rstrip(" "))
            line = line[at:]
            used = sum(size for _, size in line)
        if not line and cluster == " " and lines:
            continue  # a blank at which a line was broken begins no line
        line.append((cluster, cells))
        used += cells
    if line or not lines:
        lines.append("".join(char for char, _ in line))
    return lines


def _wrap_ascii(text: str, most: int) -> list[str]:
    lines: list[str] = []
    at = 0
    while len(text) - at > most:
        end = at + most
        if text[end] != " ":
            end = text.rfind(" ", at + most // 2, end) + 1 or end
        lines.append(text[at:end].rstrip(" "))
        at = end
        while text[at : at + 1] == " ":
            at += 1
    if at < len(text):
        lines.append(text[at:])
    return lines


def _break(line: list[tuple[str, int]]) -> int:
    """Where to break: behind the last blank of the line's second half, else at its end."""
    for at in range(len(line) - 1, len(line) // 2 - 1, -1):
        if line[at][0] == " ":
            return at + 1
    return len(line)
