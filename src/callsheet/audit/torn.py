"""What stands on a physical line: one value, or the whole records of a line that is torn or holds several.

Owns the values of a line with their places, so that a count of units, the time of a frame and the frames before one are
the same whether a writer ended each of its lines or not. What makes an object inside a torn line a record of its own
(and no part of the torn one) is the registry's to say: ``marks.whole``.

Must never know: records, importers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from callsheet.registry.when import Conditions, matches
from callsheet.wire.damage import salvage
from callsheet.wire.lossless import NotJson, decode


class Standing(NamedTuple):
    """A value: where it begins on its line, its bytes, what it is."""

    start: int
    data: bytes
    value: Any


def values_on(line: bytes, whole: list[Conditions]) -> Iterator[Standing]:
    """The values on a line, in order.

    Args:
        line: Its bytes, without LF.
        whole: What an object is that is a record of its own, one of these; without any, a torn line holds nothing.
    """
    try:
        value = decode(line)
    except NotJson as error:
        if whole and error.reason != "bad_utf8":
            yield from _pieces(line, whole)
    else:
        yield Standing(0, line, value)


def _pieces(line: bytes, whole: list[Conditions]) -> Iterator[Standing]:
    for piece in salvage(line, unit=lambda value: any(matches(one, value) for one in whole)):
        if piece.reason:
            continue
        try:
            yield Standing(piece.start, piece.data, decode(piece.data))
        except NotJson:
            continue
