"""Finding the reader's place again when one reading of a session takes the place of another.

The beginning of a file is imported as a file of its own, so ids of records may differ from those of the whole; where a
row stands in its source does not.

Must never know: how a sheet is drawn.
"""

from __future__ import annotations

from callsheet.rows import Row, Rows

REACH = 4_000
"""Rows around the old position that are looked at."""
NEAR = 8
"""Rows that are still looked at when one was found that may be it."""


def mark_of(row: Row) -> tuple[object, ...]:
    """What a row is known by in another reading of the same session."""
    place = row.native[0] if row.native else None
    where = (place.line, place.table, repr(place.key)) if place is not None else (row.row,)
    return (row.kind, row.call_id, row.stream, *where)


def same_place(before: Rows, at: int | None, after: Rows) -> int | None:
    """The position of a row in another reading; the nearest one when it is not there.

    Args:
        before: The rows that were shown.
        at: Position of the row that the reader was at.
        after: The rows that take their place.
    """
    if at is None or not len(after):
        return None
    wanted = before.nested(at).row
    mark, twin = mark_of(wanted), (wanted.title, wanted.kind)
    marked: int | None = None
    named: int | None = None
    for distance in range(REACH):
        for position in {at - distance, at + distance}:
            if not 0 <= position < len(after) or after.kind(position) != wanted.kind:
                continue
            row = after.nested(position).row
            is_named = (row.title, row.kind) == twin
            if mark_of(row) == mark:
                if is_named:
                    return position
                marked = position if marked is None else marked
            elif is_named and named is None:
                named = position
        found = [one for one in (marked, named) if one is not None]
        if found and distance > min(abs(one - at) for one in found) + NEAR:
            break
    # A place in a source means more than a title; an id that was counted out anew means less.
    order = (marked, named) if wanted.native else (named, marked)
    return next((one for one in order if one is not None), min(at, len(after) - 1))
