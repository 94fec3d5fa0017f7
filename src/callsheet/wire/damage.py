"""Whole JSON values inside a damaged line.

Owns: what can be had from a line that is no single JSON value. Two records fused without their LF (``}{``), a
record followed by NUL bytes, a byte-order mark before the first record. Only values that are complete are given
back, each with its place; every byte that belongs to none is reported as a hole. Nothing is repaired or guessed.
Whole values cost what they are long, however many they are; looking for the next one behind a torn one may cost a
bounded multiple of the line (``TRIED``), and what is left then is one hole.

Must never know: records, files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

BOM = b"\xef\xbb\xbf"
TRIED = 4
"""Characters that may be parsed in vain, times the line's length (and a megabyte for short lines)."""
_TRIED_AT_LEAST = 1 << 20
_TRY = 256  # what a failure costs at least, in characters
_WINDOW = 1024  # characters that are looked at first; an object that does not end in them gets more
_NEAR = 16  # so near the end of what is looked at, a failure may be the end's
_BLANKS = re.compile("[ \t\r\n\ufeff]+")
_NULS = re.compile("\0+")
_START = re.compile(r'\{[ \t\r]*+"')


class Piece(NamedTuple):
    """A complete JSON object found in a damaged line, or (``reason`` set) a hole between objects.

    Attributes:
        start: Byte offset inside the line.
        data: The bytes.
        reason: Empty for an object; else ``nul``, ``torn_tail`` or ``bad_json``.
    """

    start: int
    data: bytes
    reason: str = ""


class _Refused(ValueError):
    """A constant that is no JSON."""


def _refuse(name: str) -> Any:
    raise _Refused(name)


# Where a number ends is all that matters here; ``int`` would refuse one of more than 4,300 digits.
_scan = json.JSONDecoder(strict=True, parse_constant=_refuse, parse_int=float)


def salvage(line: bytes, *, ended: bool = True, unit: Callable[[dict[str, Any]], bool]) -> Iterator[Piece]:
    """Takes a line that is no single JSON value apart.

    Args:
        line: The line without its LF, valid UTF-8 (others are one ``bad_utf8`` gap, the caller's affair).
        ended: False when the file ended before the LF: an unfinished last object is then ``torn_tail``.
        unit: Says whether an object found after a hole is a record of its own (and not a part of the torn one).

    Yields:
        Objects and holes in order; together they cover every byte of the line that is not white space.
    """
    text = line.decode("utf-8")
    size = len(text)
    search = _Search(text, unit)
    at = 0
    byte = 0

    def piece(to: int, reason: str = "") -> Piece:
        nonlocal at, byte
        made = Piece(byte, text[at:to].encode("utf-8"), reason)
        at = to
        byte += len(made.data)
        return made

    while at < size:
        blank = _BLANKS.match(text, at)
        if blank is not None:
            piece(blank.end())
            continue
        nuls = _NULS.match(text, at)
        if nuls is not None:
            yield piece(nuls.end(), "nul")
            continue
        _, end = search.object_at(at) if text[at] == "{" else (None, -1)
        if end > 0:
            yield piece(end)
            continue
        start, end = search.after(at + 1)
        yield piece(start, "torn_tail" if start >= size and not ended else "bad_json")
        if end > 0:
            yield piece(end)


class _Search:
    """Where objects stand in a text. What it parses in vain is bounded."""

    def __init__(self, text: str, unit: Callable[[dict[str, Any]], bool]) -> None:
        self._text = text
        self._unit = unit
        self._left = TRIED * len(text) + _TRIED_AT_LEAST
        self._nul = -1

    def after(self, at: int) -> tuple[int, int]:
        """Where the next record begins and ends; a run of NULs, or the end of the text, has no end (-1)."""
        end = self._next_nul(at)
        while (found := _START.search(self._text, at, end)) is not None:
            value, to = self.object_at(found.start())
            if to < 0:
                if self._left < 0:
                    return len(self._text), -1
                at = found.start() + 1
            elif isinstance(value, dict) and self._unit(value):
                return found.start(), to
            else:
                at = to  # a part of the torn one, and all in it
        return end, -1

    def _next_nul(self, at: int) -> int:
        if self._nul < at:
            nul = self._text.find("\0", at)
            self._nul = len(self._text) if nul < 0 else nul
        return self._nul

    def object_at(self, at: int) -> tuple[Any, int]:
        """The object at a place and its end, -1 when there is no whole one."""
        size = _WINDOW
        while True:
            window = self._text[at : at + size]
            try:
                value, end = _scan.raw_decode(window)
                return value, at + end
            except (RecursionError, _Refused):
                spent = len(window)
                break
            except json.JSONDecodeError as error:
                # The message of an unfinished string names its start.
                spent = len(window) if error.msg.startswith("Unterminated") else error.pos
                if spent < len(window) - _NEAR or at + size >= len(self._text):
                    break
            size *= 4
        self._left -= max(spent, _TRY)
        return None, -1
