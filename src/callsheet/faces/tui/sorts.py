"""Sorts of rows that a key leads to: calls, failures, declined calls, requests, changes of files.

Must never know: the screen, keys.
"""

from __future__ import annotations

from collections.abc import Callable

from callsheet.faces.tui.filters import CALLS
from callsheet.rows import Rows

Sort = Callable[[int], bool]
"""Whether the row at a position is of a sort."""


def _is_call(rows: Rows) -> Sort:
    return lambda at: rows.kind(at) in CALLS


def _is_denial(rows: Rows) -> Sort:
    """A declined call, or a refused request about no call that has a row."""

    def declined(at: int) -> bool:
        if rows.state(at) != "declined":
            return False
        return rows.kind(at) != "request" or rows.nested(at).row.parent is None

    return declined


SORTS: dict[str, Callable[[Rows], Sort]] = {
    "call": _is_call,
    "failed": lambda rows: lambda at: rows.state(at) == "failed",
    "declined": _is_denial,
    "request": lambda rows: lambda at: rows.kind(at) == "request",
    "change": lambda rows: lambda at: rows.kind(at) == "file_change",
}
SORT_WORDS = {
    "call": "call",
    "failed": "failure",
    "declined": "declined call",
    "request": "request",
    "change": "change of files",
}
