"""What a session last reported of its use, in the source's own words and numbers.

Must never know: files, terminals, what a number means.
"""

from __future__ import annotations

from callsheet.paint import cells
from callsheet.paint.row import NARROWEST
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span
from callsheet.rows import Reported


def paint_usage(usage: Reported, width: int) -> list[Line]:
    """The context, and the newest numbers of each scope; no lines where nothing is reported."""
    told = [usage.context] if usage.context else []
    told += [f"{name}: {counts}" for name, counts in usage.counts()]
    width = max(width, NARROWEST)
    lines: list[Line] = [
        [Span(piece, "quiet")] for words in told for piece in cells.wrap(visible(words), width)
    ]
    return [[Span("usage as last reported", "label")], *lines] if lines else []
