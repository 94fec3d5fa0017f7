"""The bars above and below a sheet: which session this is; counts, filter, follow mode, and what was just said.

Must never know: where the numbers come from.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.strip import Strip
from textual.widget import Widget

from callsheet.faces.tui.looks import looks_of, segments
from callsheet.paint import Line, Span, Style
from callsheet.paint.cells import cut, width
from callsheet.pairing import Tally
from callsheet.rows.text import counted


def count_spans(tally: Tally, waiting: int) -> list[Span]:
    """Calls, failures, denials, and what waits for an answer."""
    found = [Span(counted(tally.calls, "call"), "strong")]
    parts: tuple[tuple[int, str, Style], ...] = (
        (tally.failed, "failed", "bad"),
        (tally.declined, "denied", "refused"),
        (waiting, "waiting", "open"),
    )
    return found + [Span(f"{count:,} {word}", style) for count, word, style in parts if count]


class Bar(Widget):
    """One line of spans, packed; what does not fit is left out from the end."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, looks: str, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.looks = looks
        self._left: list[Span] = []
        self._right: list[Span] = []

    def put(self, left: Iterable[Span], right: Iterable[Span] = ()) -> None:
        """Says something else; the right side is said first where there is no room for both."""
        said = (list(left), list(right))
        if said != (self._left, self._right):
            self._left, self._right = said
            self.refresh()

    def line(self) -> Line:
        """The line as it fits."""
        room = self.size.width
        right = _joined(self._right)
        kept: Line = []
        used = sum(width(span.text) for span in right)
        for span in self._left:
            gap = 3 if kept else 0
            size = width(span.text)
            if used + gap + size + 2 > room:
                rest = room - used - gap - 2
                if rest > 8:
                    kept += [
                        *([Span(" · ", "quiet")] if kept else []),
                        Span(cut(span.text, rest), span.style),
                    ]
                    used += gap + rest
                break
            kept += [*([Span(" · ", "quiet")] if kept else []), span]
            used += gap + size
        gap_cells = max(room - used, 1) if right else 0
        return [*kept, Span(" " * gap_cells), *right] if right else kept

    def render_line(self, y: int) -> Strip:
        """The line."""
        width_now = self.size.width
        if y:
            return Strip.blank(width_now)
        return Strip(segments(self.line(), looks_of(self.looks), width_now), width_now)


def _joined(spans: list[Span]) -> Line:
    found: Line = []
    for span in spans:
        found += [*([Span(" · ", "quiet")] if found else []), span]
    return found
