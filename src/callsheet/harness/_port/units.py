"""Native units of a file of JSON lines: usually one line, now and then a part of a damaged one.

Owns the way from physical lines to decoded units, the same for every pass of every adapter: the fast lane, the slow
lane for texts with unpaired surrogates and for objects with members of unexpected types, whole objects out of fused
or NUL-ridden lines, and holes. Nothing is repaired: a hole says where and why.

Must never know: what a unit means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from callsheet.wire import lossless
from callsheet.wire.damage import BOM, salvage
from callsheet.wire.lines import Line
from callsheet.wire.spans import Spans

T = TypeVar("T")
_BLANK = b" \t\r\n"
_BLANKS = frozenset((b"", b" ", b"\t", b"\r"))
"""First bytes of a line that begins with a blank, or is empty."""


class Unit(Struct, Generic[T], gc=False):
    """One native record.

    Attributes:
        line: The physical line it stands on.
        start: Byte offset inside the line.
        data: Its own bytes (the line's, or a part of them).
        native: What the decoder made of it; None when it is JSON but no object, then see ``value``.
        exact: The decoded value with unpaired surrogates, when ``data`` holds some; else None.
        value: The decoded value of a unit that is no object.
        spans: Where its parts stand, once somebody asked.
    """

    line: Line
    start: int
    data: bytes
    native: T | None
    exact: Any = None
    value: Any = None
    spans: Spans | None = None

    def readable(self) -> bytes:
        """Its bytes with U+FFFD for each unpaired surrogate: every reader takes them, and nothing else is changed."""
        return self.data if self.exact is None else lossless.clean_text(self.data)

    def text_at(self, pointer: str) -> bytes | None:
        """The bytes of the part at a JSON pointer, as they were written; None where there is no such part."""
        if self.spans is None:
            self.spans = Spans(self.data)
        return self.spans.text(pointer)


class Hole(NamedTuple):
    """Bytes that hold no record."""

    line: Line
    start: int
    size: int
    reason: str


class Reading(NamedTuple, Generic[T]):
    """How the units of one kind of file are read.

    Attributes:
        decoder: Decodes an object into the struct that a pass needs.
        loose: Makes what can be made of an object that the decoder refuses; None where ``loose_text`` does.
        own: Says whether an object found inside a torn line is a record of its own (and not a part of the torn one).
        loose_text: Does what ``loose`` does from the object's text instead, for records that keep parts of it as they
            were written.
    """

    decoder: msgspec.json.Decoder[T]
    loose: Callable[[dict[str, Any]], T] | None
    own: Callable[[dict[str, Any]], bool]
    loose_text: Callable[[bytes], T] | None = None


def unit_of(line: bytes, reading: Reading[T]) -> Unit[T] | None:
    """A line by itself, for a look at a file; None for one that the fast lane does not take."""
    try:
        native = reading.decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Unit(Line(1, 0, line), 0, line, native)


def native_units(lines: Iterable[Line], reading: Reading[T]) -> Iterator[Unit[T] | Hole]:
    """Decodes physical lines in order; a blank line gives nothing."""
    decode = reading.decoder.decode
    for line in lines:
        data = line.data
        if data[:1] in _BLANKS:
            yield from _hard(line, reading)
            continue
        try:
            if not data.isascii():
                data.decode("utf-8")
            yield Unit(line, 0, data, decode(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield from _hard(line, reading)


def _hard(line: Line, reading: Reading[T]) -> Iterator[Unit[T] | Hole]:
    data = line.data
    start = 0
    if line.number == 1 and data.startswith(BOM):
        start = len(BOM)
        data = data[start:]
    # Where a text begins tells its type: it is read without the blanks before it.
    whole, data = len(data), data.lstrip(_BLANK)
    start += whole - len(data)
    if not data:
        return
    unit = _decoded(line, start, data, reading)
    if isinstance(unit, Unit):
        yield unit
        return
    if unit == "bad_utf8":
        yield Hole(line, start, len(data), unit)
        return
    for piece in salvage(data, ended=line.ended, unit=reading.own):
        at = start + piece.start
        deep = (piece.reason, unit) == ("bad_json", "too_deep") and _is_too_deep(piece.data)
        reason = "too_deep" if deep else piece.reason
        found = reason or _decoded(line, at, piece.data, reading)
        yield Hole(line, at, len(piece.data), found) if isinstance(found, str) else found


def _is_too_deep(data: bytes) -> bool:
    try:
        lossless.decode(data)
    except lossless.NotJson as error:
        return error.reason == "too_deep"
    return False


def _decoded(line: Line, start: int, data: bytes, reading: Reading[T]) -> Unit[T] | str:
    """The unit, or the reason why there is none."""
    try:
        value = lossless.decode(data)
    except lossless.NotJson as error:
        return error.reason
    clean, exact = data, None
    try:
        if b"\\u" in data and not lossless.readable(data):
            clean, exact = lossless.clean_text(data), value
        if not isinstance(value, dict):
            return Unit(line, start, data, None, exact, value)
        try:
            return Unit(line, start, data, reading.decoder.decode(clean), exact)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Members of another type than usual, or numbers that the fast lane refuses.
            if reading.loose_text is not None:
                return Unit(line, start, data, reading.loose_text(clean), exact)
            assert reading.loose is not None
            return Unit(line, start, data, reading.loose(lossless.decode(clean)), exact)
    except (RecursionError, lossless.NotJson):
        return "too_deep"
