"""Taking a value out of JSON text, byte for byte (ASR-283).

Owns the spellings under which a secret may stand in a line (plain, escaped, escaped again inside a JSON text that is
itself a string), and the two ways of masking: every occurrence of a spelling inside the line's strings, and whole
strings at a known place. A masked line has the length it had and stays JSON: only the inside of strings becomes
asterisks, and a number that is the secret becomes null. In a line that is no JSON every occurrence is masked.

Must never know: which values are secret, records, files.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable

import msgspec

SHORTEST = 4
"""Characters from which a value is masked wherever it stands; a shorter one would hit words at random."""
SHORTEST_KEY = 8
"""Bytes from which a spelling is masked inside member names too."""
NESTING = 3
"""JSON texts inside strings, down to this depth."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?[0-9][0-9.eE+-]*+')
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*+)"')
_ESCAPE = re.compile(rb"\\u[0-9a-f]{4}")
_AFTER_KEY = re.compile(rb"[ \t\r\n]*:")


def spellings(secret: str) -> list[bytes]:
    """How a value may be spelled in a line, longest first; nothing for one that is too short to look for."""
    if len(secret.strip()) < SHORTEST:
        return []
    clean = secret.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    found = {clean}
    for ascii_only in (False, True):
        text = clean
        for _ in range(NESTING):
            text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            found.add(text)
            found.add(text.replace("/", "\\/"))
    forms = {text.encode("utf-8", "replace") for text in found}
    forms |= {
        re.sub(rb"\\u[0-9a-f]{4}", lambda hit: b"\\u" + hit.group()[2:].upper(), form) for form in forms
    }
    return sorted((form for form in forms if form), key=lambda form: (-len(form), form))


def masked(data: bytes, forms: Iterable[bytes]) -> tuple[bytes, int]:
    """A line without the secrets, and how many places were masked.

    Args:
        data: One line.
        forms: Spellings of all secrets.
    """
    hits = [form for form in forms if form in data]
    if not hits:
        return data, 0
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _everywhere(data, hits)
    count = 0

    def token(found: re.Match[bytes]) -> bytes:
        nonlocal count
        text = found.group()
        if text[:1] != b'"':
            if text in hits:
                count += 1
                return b"null".ljust(len(text)) if len(text) >= 4 else b"0".rjust(len(text))
            return text
        is_key = _AFTER_KEY.match(data, found.end()) is not None
        clean, more = _everywhere(
            text[1:-1], [form for form in hits if not is_key or len(form) >= SHORTEST_KEY]
        )
        count += more
        if more and _STRING.fullmatch(b'"' + clean + b'"') is None:
            clean = b"*" * len(clean)  # the spelling ended inside an escape
        return b'"' + clean + b'"' if more else text

    return _TOKEN.sub(token, data), count


def _everywhere(data: bytes, forms: list[bytes]) -> tuple[bytes, int]:
    count = 0
    for form in forms:
        hits = data.count(form)
        if hits:
            count += hits
            data = data.replace(form, b"*" * len(form))
    return data, count


def hidden(value: bytes) -> bytes:
    """The JSON text of a value with every string in it masked; member names stay."""

    def token(found: re.Match[bytes]) -> bytes:
        if _AFTER_KEY.match(value, found.end()):
            return found.group()
        return b'"' + b"*" * len(found.group(1)) + b'"'

    return _STRING.sub(token, value)


class Cover:
    """What may not be seen of one source: places, and spellings wherever they stand.

    Attributes:
        count: Places masked so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._forms: list[bytes] = []
        self._starts: array[int] = array("q")
        self._sizes: array[int] = array("q")

    def __bool__(self) -> bool:
        return bool(self._forms or self._starts)

    def secret(self, value: str) -> None:
        """Masks a value in every spelling."""
        forms = spellings(value)
        if forms:
            self._forms = sorted({*self._forms, *forms}, key=lambda form: (-len(form), form))

    def hide(self, offset: int, size: int) -> None:
        """Masks the strings of the JSON value at a place."""
        starts, sizes = self._starts, self._sizes
        at = len(starts)
        if starts and starts[-1] >= offset:
            at = bisect_left(starts, offset)
            if at < len(starts) and starts[at] == offset:
                sizes[at] = max(sizes[at], size)
                return
        starts.insert(at, offset)
        sizes.insert(at, size)

    def over(self, offset: int, data: bytes) -> bytes:
        """A line, or a whole JSON value in it, without what may not be seen.

        Args:
            offset: Where it stands in the source.
            data: Its bytes.
        """
        starts = self._starts
        at = bisect_left(starts, offset)
        end = offset + len(data)
        while at < len(starts) and starts[at] < end:
            begin = starts[at] - offset
            stop = begin + self._sizes[at]
            data = data[:begin] + hidden(data[begin:stop]) + data[stop:]
            self.count += 1
            at += 1
        if self._forms:
            data, more = masked(data, self._forms)
            self.count += more
        return data
