"""Texts of rows: what is searched, how a text is wanted, and what is copied.

Must never know: the screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import UNSET, Raw

from callsheet.paint import Look, paint_row, plain, visible
from callsheet.rows import Row

Wanted = Callable[[Row], bool]


def texts_of(row: Row) -> Iterator[str]:
    """Every text of a row that a person may look for."""
    yield row.title
    for text in (row.name, row.error, row.input_text, row.call_id, row.native_call_id):
        if text:
            yield text
    if row.output is not None:
        yield row.output.text
        if row.output.tail:
            yield row.output.tail
    for change in row.changes or ():
        yield change.path
        if change.patch is not None and isinstance(change.patch.value, Raw):
            yield bytes(change.patch.value).decode("utf-8", "replace")
    if row.input is not UNSET and isinstance(row.input, Raw):
        yield bytes(row.input).decode("utf-8", "replace")


def wanted(text: str) -> Wanted:
    """Whether a row holds a text; a text without capitals is found in any case."""
    if text != text.lower():
        return lambda row: any(text in one for one in texts_of(row))
    return lambda row: any(text in one.lower() for one in texts_of(row))


def copied(row: Row, what: str) -> str:
    """A part of a row, made harmless: its ``title``, or all of it as it is drawn."""
    if what == "title":
        return "\n".join(visible(line.expandtabs(8)) for line in row.title.split("\n"))
    return "\n".join(plain(line) for line in paint_row(row, Look(width=10_000, full=True)))
