"""Blocks of text under a row: output, messages, answers, bounded by the ten-line collapse.

Owns how many lines are shown and the words for what is hidden: always with its number. Only lines that are
shown are cleaned and measured, so a block of a million lines costs no more than one of ten.

Must never know: rows, records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from callsheet.paint import cells
from callsheet.paint.safe import output_line
from callsheet.paint.span import Line, Span, Style
from callsheet.paint.tints import State, Tinted, pieces, tinted


class Collapse(NamedTuple):
    """Lines that are shown of a longer text: from its head and from its tail."""

    head: int
    tail: int

    @property
    def most(self) -> int:
        """Lines up to which a text is shown whole."""
        return self.head + self.tail


WHOLE = Collapse(10**9, 0)
"""Everything is shown, long lines wrapped."""


def more_lines(count: int) -> str:
    """The words for hidden lines."""
    return f"… {count:,} more line{'' if count == 1 else 's'}"


def hidden(words: str, most: int) -> Line:
    """A line of our own words about what is not shown, in at most ``most`` cells."""
    return [Span(cells.cut(words, most), "hidden")]


def text_lines(text: str) -> list[str]:
    """The lines of a text; a line break at its end begins no further line."""
    lines = text.split("\n")
    if lines and not lines[-1].strip("\r"):
        lines.pop()
    return lines


def block(
    text: str,
    most: int,
    collapse: Collapse,
    *,
    style: Style = "",
    tail: str = "",
    omitted_lines: int = 0,
    omitted: int = 0,
) -> list[Line]:
    """A text as lines of at most ``most`` cells.

    Args:
        text: The text, or its head.
        most: Cells of a line.
        collapse: How much is shown.
        style: Of the text.
        tail: The end of a text whose middle is not at hand.
        omitted_lines: Line breaks in that middle.
        omitted: Characters in it.
    """
    lines = text_lines(text)
    ends = text_lines(tail)
    middle = omitted_lines - 1 if omitted and omitted_lines else 0
    count = len(lines) + len(ends) + max(middle, 0)
    if count <= collapse.most + 1 and collapse.most:  # one hidden line would take a line to say so
        rows = _rows_each(collapse, count)
        between = [hidden(f"… {omitted:,} more characters", most)] if omitted else []
        return [*_lines(lines, most, rows, style), *between, *_lines(ends, most, rows, style)]
    first = lines[: collapse.head]
    last = (ends if omitted else lines)[-collapse.tail :] if collapse.tail else []
    after = hidden(more_lines(count - len(first) - len(last)), most)
    return [*_lines(first, most, 1, style), after, *_lines(last, most, 1, style)]


def _rows_each(collapse: Collapse, lines: int) -> int:
    return collapse.head if collapse is WHOLE else max(1, collapse.most // max(lines, 1))


def _lines(texts: list[str], most: int, rows: int, style: Style) -> list[Line]:
    found: list[Line] = []
    state = State()
    for text in texts:
        if "\x1b" in text or state != _PLAIN:
            lines, state = _fit_tinted(text, most, rows, style, state)
            found += lines
        else:
            found += [[Span(piece, style)] for piece in _fit(output_line, text, most, rows)]
    return found


_PLAIN = State()


def _fit_tinted(line: str, most: int, rows: int, style: Style, state: State) -> tuple[list[Line], State]:
    """One line of the text with the colours that it was captured in, broken as it would be without them."""
    seen: list[Tinted] = []

    def text_of(part: str) -> str:
        seen.append(tinted(part, state))
        return seen[-1].text

    broken = _fit(text_of, line, most, rows)
    text, runs, state = seen[0]
    lines: list[Line] = []
    at = 0
    for piece in broken:
        kept = piece.removesuffix("…")
        at = text.find(kept, at)
        if at < 0:  # a pile of marks was cut, and the places of the colours are lost
            return [[Span(piece, style)] for piece in broken], state
        end = at + len(kept)
        spans = [Span(part, style, tint) for part, tint in pieces(text, runs, at, end)]
        lines.append([*spans, Span(piece[len(kept) :], style)] if kept != piece else spans)
        at = end
    return lines, state


def _fit(text_of: Callable[[str], str], line: str, most: int, rows: int) -> list[str]:
    """One line of the text on at most ``rows`` lines."""
    reach = len(line) if rows > 1000 else (most + 1) * rows * 4
    text = text_of(line[:reach])
    broken = cells.wrap(text, most) if rows > 1 else [text]
    over = len(line) > reach
    if rows == 1:
        return [cells.cut(broken[0] + ("…" if over else ""), most)]
    if len(broken) <= rows and not over:
        return broken
    kept = broken[:rows]
    kept[-1] = cells.cut(kept[-1], most - 1, "") + "…"
    return kept
