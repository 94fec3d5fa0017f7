"""The bars above and below a sheet: which session this is; counts, filter, follow mode, and what was just said.

Must never know: where the numbers come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from textual.strip import Strip
from textual.widget import Widget

from callsheet.faces.tui.looks import looks_of, segments
from callsheet.paint import Line, Span, Style, visible
from callsheet.paint.cells import cut, cut_start, width
from callsheet.pairing import Tally
from callsheet.rows import Reported
from callsheet.rows.text import counted

GAP = 3
"""Cells between two parts."""
LEAST = 9
"""Cells from which a part of a text is worth showing."""
BETWEEN = " · "
"""What stands between two parts."""


def cut_parts(text: str, most: int) -> str:
    """As many whole parts of a text, from its first on, as have room."""
    parts = text.split(BETWEEN)
    while parts and width(BETWEEN.join(parts)) > most:
        parts.pop()
    return BETWEEN.join(parts)


CUTS: dict[str, Callable[[str, int], str]] = {"start": cut_start, "end": cut, "parts": cut_parts}


class Part(NamedTuple):
    """A piece of a bar.

    Attributes:
        span: What it says.
        rank: The lower, the sooner it gets its place.
        cuts: At which end it may lose a part (of a path its end matters); ``parts`` are left out from the end as
            wholes, so that no name or number is broken; a number may lose nothing.
    """

    span: Span
    rank: int = 5
    cuts: Literal["", "start", "end", "parts"] = ""


def count_parts(tally: Tally, waiting: int, undecided: int = 0) -> list[Part]:
    """Calls, failures, declined calls, what waits for an answer, and what never got one as far as is recorded."""
    found = [Part(Span(counted(tally.calls, "call"), "strong"), 4)]
    parts: tuple[tuple[int, str, Style, int], ...] = (
        (tally.failed, "failed", "bad", 4),
        (tally.declined, "declined", "refused", 4),
        (waiting, "waiting", "open", 1),
        (undecided, "undecided", "open", 4),
    )
    return found + [
        Part(Span(f"{count:,} {word}", style), rank) for count, word, style, rank in parts if count
    ]


def count_spans(tally: Tally, waiting: int, undecided: int) -> list[Span]:
    """What ``count_parts`` says, for a line of its own."""
    return [part.span for part in count_parts(tally, waiting, undecided)]


def usage_parts(usage: Reported) -> Iterator[Part]:
    """The context as the source reports it; where it does not, the newest of the numbers that it has."""
    if usage.context:
        yield Part(Span(usage.context, "quiet"), 6)
    if not usage.says_how_full:
        for name, counts in usage.counts():
            yield Part(Span(visible(f"{name}: {BETWEEN.join(counts)}"), "quiet"), 7, "parts")
            break


class Bar(Widget):
    """One line of parts; where there is no room for all, those of the lowest rank have it."""

    DEFAULT_CSS = "Bar { height: 1; }"

    def __init__(self, looks: str, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.looks = looks
        self._left: list[Part] = []
        self._right: list[Part] = []

    def put(self, left: Iterable[Part], right: Iterable[Part] = ()) -> None:
        """Says something else."""
        said = (list(left), list(right))
        if said != (self._left, self._right):
            self._left, self._right = said
            self.refresh()

    def line(self) -> Line:
        """The line as it fits."""
        parts = [(0, part) for part in self._left] + [(1, part) for part in self._right]
        shown: dict[int, Span] = {}
        sides = [0, 0]  # cells of each side
        for at in sorted(range(len(parts)), key=lambda at: parts[at][1].rank):
            side, part = parts[at]
            gap = GAP if sides[side] else (GAP if sides[1 - side] else 0)
            room = self.size.width - sum(sides) - gap
            text = part.span.text
            if width(text) > room:
                text = CUTS[part.cuts](text, room) if part.cuts and room >= LEAST else ""
            if text:
                shown[at] = Span(text, part.span.style)
                sides[side] += width(text) + gap
        kept, right = (
            _joined([shown[at] for at in sorted(shown) if parts[at][0] == side]) for side in (0, 1)
        )
        gap = max(self.size.width - sum(width(span.text) for span in [*kept, *right]), 1)
        return [*kept, Span(" " * gap), *right] if right else kept

    def render_line(self, y: int) -> Strip:
        """The line."""
        width_now = self.size.width
        if y:
            return Strip.blank(width_now)
        return Strip(segments(self.line(), looks_of(self.looks), width_now), width_now)


def _joined(spans: list[Span]) -> Line:
    found: Line = []
    for span in spans:
        found += [*([Span(BETWEEN, "quiet")] if found else []), span]
    return found
