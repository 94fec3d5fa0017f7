"""Where the parts of a JSON text stand in it, byte for byte.

Owns the way from a JSON pointer to the bytes it means, without decoding them: an argument that no reader keeps (a
number too long, a member written twice, half a surrogate pair) can be kept as it was written (ASR-035). Of a member
that is written twice the last one counts, as for every decoder here.

Each container on the way is cut into its members once, so that many pointers into one text cost little more than one.

Must never know: records, what a part means.
"""

from __future__ import annotations

import json
import re

Span = tuple[int, int]
"""First byte and the one after the last."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)
_BLANK = b" \t\r\n"
_QUOTE, _COMMA, _COLON = b'",:'
_OPEN, _CLOSE = frozenset(b"[{"), frozenset(b"]}")


class Spans:
    """The parts of one text.

    Args:
        text: A JSON text that is known to parse.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._parts: dict[int, dict[str, Span]] = {}

    def find(self, pointer: str) -> Span | None:
        """Where the value at a JSON pointer (RFC 6901) stands, without the white space around it; None if nowhere."""
        text = self._text
        span = _trimmed(text, 0, len(text))
        if not pointer:
            return span
        for step in pointer.split("/")[1:]:
            start = span[0]
            if text[start] not in _OPEN:
                return None
            parts = self._parts.get(start)
            if parts is None:
                parts = self._parts[start] = _parts(text, start)
            found = parts.get(step.replace("~1", "/").replace("~0", "~"))
            if found is None:
                return None
            span = found
        return span

    def text(self, pointer: str) -> bytes | None:
        """The bytes of the value at a JSON pointer; None if it is not there."""
        span = self.find(pointer)
        return None if span is None else self._text[span[0] : span[1]]


def _parts(text: bytes, start: int) -> dict[str, Span]:
    """The members of the object, or the items (by their index as text) of the array, that begins at ``start``."""
    found: dict[str, Span] = {}
    named = text[start : start + 1] == b"{"
    name: str | None = None if named else "0"
    begin = start + 1
    deep = 0
    for hit in _TOKEN.finditer(text, begin):
        mark = text[hit.start()]
        if mark in _OPEN:
            deep += 1
        elif deep:
            deep -= mark in _CLOSE
        elif mark == _QUOTE:
            if name is None:
                name = json.loads(hit.group())
        elif mark == _COLON:
            begin = hit.end()
        else:
            span = _trimmed(text, begin, hit.start())
            if name is not None and span[0] < span[1]:
                found[name] = span
            if mark != _COMMA:
                break
            name = None if named else str(len(found))
            begin = hit.end()
    return found


def _trimmed(text: bytes, start: int, end: int) -> Span:
    while start < end and text[start] in _BLANK:
        start += 1
    while end > start and text[end - 1] in _BLANK:
        end -= 1
    return start, end
