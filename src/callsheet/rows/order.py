"""The order of rows over several streams that grow: agents below the calls that started them, previews last.

It is the order of ``nested_rows``: a stream that no call leads to comes after the others, below a notice. Owns the
segments of rows that stand together, and the way from a position to a stream and back. Laid out anew, at the cost of a
few steps a stream, when it is asked after something changed.

Must never know: what a row says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sized
from typing import NamedTuple

from callsheet.rows.growing import Growing
from callsheet.rows.nested import DEEPEST


class Segment(NamedTuple):
    """Rows that stand together: some of a stream's, or previews.

    Attributes:
        start: Position of the first.
        stream: Number of the stream; -1 for previews.
        low: The first of them among the stream's rows; -1 for the notice before a stream that no call leads to.
        depth: Their level of agents within agents.
    """

    start: int
    stream: int
    low: int
    depth: int


class Order:
    """Where rows stand.

    Args:
        streams: The streams, the session's own first; more may come.
        numbers: Their numbers by their ids.
        previews: What stands behind all of them.
    """

    def __init__(self, streams: list[Growing], numbers: dict[str, int], previews: Sized) -> None:
        self._streams = streams
        self._numbers = numbers
        self._previews = previews
        self._segments: list[Segment] | None = None
        self._size = 0

    def forget(self) -> None:
        """Something changed: it is laid out anew when it is asked."""
        self._segments = None

    def segments(self) -> list[Segment]:
        """All segments, in order."""
        if self._segments is None:
            self._segments = []
            self._size = 0
            left = dict.fromkeys(range(1, len(self._streams)))
            if self._streams:
                self._walk(0, 0, left)
            while left:
                number = next(iter(left))
                del left[number]
                self._put(number, -1, 1, 1)
                self._walk(number, 1, left)
            self._put(-1, 0, len(self._previews), 0)
        return self._segments

    def __len__(self) -> int:
        self.segments()
        return self._size

    def place(self, at: int) -> tuple[Segment, int]:
        """The segment of a position, and which of its rows it is."""
        segments = self.segments()
        if not 0 <= at < self._size:
            raise IndexError(at)
        segment = segments[bisect_right(segments, at, key=lambda one: one.start) - 1]
        return segment, at - segment.start

    def position(self, stream: int, index: int) -> int | None:
        """Where a row of a stream stands (-1: the notice before it), or (stream -1) a preview."""
        found = None
        for segment in self.segments():
            if segment.stream == stream and (
                segment.low == index if index < 0 else 0 <= segment.low <= index
            ):
                found = segment
        return None if found is None else found.start + index - found.low

    def is_last(self, stream: int, index: int) -> bool:
        """Whether a row is the last one before the previews."""
        records = [segment.stream for segment in self.segments() if segment.stream >= 0]
        return records[-1:] == [stream] and index == len(self._streams[stream]) - 1

    def _put(self, stream: int, low: int, count: int, depth: int) -> None:
        assert self._segments is not None
        if count:
            self._segments.append(Segment(self._size, stream, low, depth))
            self._size += count

    def _walk(self, number: int, depth: int, left: dict[int, None]) -> None:
        growing = self._streams[number]
        low = 0
        for index, child in self._children(growing):
            if child in left and depth < DEEPEST:
                del left[child]
                self._put(number, low, index + 1 - low, depth)
                self._walk(child, depth + 1, left)
                low = index + 1
        self._put(number, low, len(growing) - low, depth)

    def _children(self, growing: Growing) -> list[tuple[int, int]]:
        found = []
        for name, (first, record) in growing.agents.items():
            index, number = growing.index_of(first), self._numbers.get(name)
            if index is not None and number is not None:
                found.append((index, record, number))
        return [(index, number) for index, _, number in sorted(found)]
