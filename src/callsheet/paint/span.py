"""Spans: pieces of a line with a style, and their way to plain or coloured text.

Owns the styles by meaning and the escape sequences that stand for them. Text in a span has passed
``safe.visible``.

Must never know: rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from callsheet.paint import cells

Style = Literal[
    "",
    "strong",
    "quiet",
    "hidden",
    "label",
    "good",
    "bad",
    "refused",
    "open",
    "added",
    "removed",
    "place",
]

ANSI: dict[Style, str] = {
    "": "",
    "strong": "1",
    "quiet": "2",
    "hidden": "2;3",
    "label": "36",
    "good": "32",
    "bad": "31",
    "refused": "35",
    "open": "33",
    "added": "32",
    "removed": "31",
    "place": "36;2",
}
"""SGR parameters of each style. ``hidden`` is only for our own words about what is not shown."""


class Span(NamedTuple):
    """A piece of a line in one style.

    Attributes:
        text: The text, made harmless.
        style: What it means.
        tint: The colour that a captured program gave it (``tints.Tint``).
    """

    text: str
    style: Style = ""
    tint: str = ""


Line = list[Span]
"""One line of a sheet, without a line end."""


def line_width(line: Iterable[Span]) -> int:
    """Cells that a line takes."""
    return sum(cells.width(span.text) for span in line)


def plain(line: Line) -> str:
    """The line as text without styles."""
    return "".join(span.text for span in line).rstrip(" ")


def coloured(line: Line) -> str:
    """The line with escape sequences for its styles, every one of them closed."""
    pieces = [
        f"\x1b[{codes}m{span.text}\x1b[0m" if codes and span.text else span.text
        for span in line
        for codes in [";".join(filter(None, (ANSI[span.style], span.tint)))]
    ]
    return "".join(pieces).rstrip(" ")


def packed(spans: Iterable[Span], most: int) -> list[Line]:
    """Spans on lines of at most ``most`` cells, a dot between neighbours; one that is too long is wrapped."""
    lines: list[Line] = []
    used = most
    for span in spans:
        for number, piece in enumerate(cells.wrap(span.text, most)):
            size = cells.width(piece)
            if number or used + 3 + size > most:
                lines.append([Span(piece, span.style)])
                used = size
            else:
                lines[-1] += [Span(" · ", "quiet"), Span(piece, span.style)]
                used += 3 + size
    return lines
