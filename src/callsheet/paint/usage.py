"""What a session last reported of its use, in the source's own words and numbers.

Must never know: files, terminals, what a number means.
"""

from __future__ import annotations

from callsheet.paint import cells
from callsheet.paint.row import NARROWEST
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span, packed
from callsheet.rows import Reported


def paint_usage(usage: Reported, width: int) -> list[Line]:
    """The context, and the newest numbers of each scope; no lines where nothing is reported."""
    width = max(width, NARROWEST)
    lines: list[Line] = [[Span(piece)] for piece in cells.wrap(usage.context, width)] if usage.context else []
    for name, counts in usage.counts():
        lines += [[Span(piece)] for piece in cells.wrap(visible(f"{name}:"), width)]
        lines += packed([Span(visible(count), "quiet") for count in counts], width)
    return [[Span("usage as last reported", "label")], *lines] if lines else []
