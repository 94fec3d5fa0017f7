"""Rows of a session with the agents it started: each agent's rows stand below the call that started it.

Owns depth and order over several streams, and the row ids of agents (``<stream>/<id>``). Every stream is
drawn once, whatever the records say about each other; streams that no call leads to come last.

Must never know: files, how rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from callsheet.rows.row import Row
from callsheet.rows.sheet import Sheet

OpenSheet = Callable[[str], AbstractContextManager[Sheet]]
"""Opens the sheet of a stream by id."""

DEEPEST = 20
"""Levels of agents within agents that are nested; deeper ones come last, like those that nothing leads to."""


class Nested(NamedTuple):
    """A row with its depth.

    Attributes:
        depth: 0 for the session itself.
        row: The row.
    """

    depth: int
    row: Row


def nested_rows(main: str, streams: Sequence[str], open_sheet: OpenSheet) -> Iterator[Nested]:
    """All rows of a bundle.

    Args:
        main: Id of the session's own stream.
        streams: Ids of all streams.
        open_sheet: Opens one.
    """
    left = dict.fromkeys(streams)
    left.pop(main, None)
    yield from _walk(main, "", None, 0, left, open_sheet)
    while left:
        stream = next(iter(left))
        del left[stream]
        yield Nested(
            1,
            Row(
                row=f"{stream}/",
                kind="notice",
                state="completed",
                title=f"agent {stream}: no record says which call started it",
                record=f"{stream}/",
                stream=stream,
            ),
        )
        yield from _walk(stream, f"{stream}/", f"{stream}/", 1, left, open_sheet)


def _walk(
    stream: str, prefix: str, parent: str | None, depth: int, left: dict[str, None], open_sheet: OpenSheet
) -> Iterator[Nested]:
    with open_sheet(stream) as sheet:
        for row in sheet.rows():
            if prefix:
                row.row = prefix + row.row
                row.parent = prefix + row.parent if row.parent else parent
                row.stream = stream
            yield Nested(depth, row)
            for agent in row.agents or ():
                if agent.stream in left and depth < DEEPEST:
                    del left[agent.stream]
                    yield from _walk(agent.stream, f"{agent.stream}/", row.row, depth + 1, left, open_sheet)
