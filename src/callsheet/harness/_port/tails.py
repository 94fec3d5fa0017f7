"""The tail of an output that is still coming: bounded, and honest about what stands before it.

Owns the bounds of an output preview (``seam.events``) and the joining of pieces, also of bytes that are cut inside a
character. It is for previews alone: a record holds what the source gave, whole.

Must never know: calls, terminals.
"""

from __future__ import annotations

from callsheet.seam.events import OUTPUT_BYTES, OUTPUT_LINES, TEXT_BYTES

ROOM = 2 * OUTPUT_BYTES
"""Bytes that are kept before the front is cut off: cutting at every piece would cost."""


class Tail:
    """The end of what was written so far."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._size = 0

    def put(self, piece: bytes) -> None:
        """Adds a piece."""
        self._size += len(piece)
        self._kept += piece
        if len(self._kept) > ROOM:
            del self._kept[: len(self._kept) - OUTPUT_BYTES]

    def replace(self, data: bytes) -> None:
        """Takes the place of all that was written."""
        self._size = 0
        self._kept.clear()
        self.put(data)

    def shown(self) -> tuple[str, int]:
        """Text of the tail, and the bytes before it that are not in it."""
        return ending(bytes(self._kept), self._size - len(self._kept))


def ending(data: bytes, before: int = 0) -> tuple[str, int]:
    """The end of an output: at most ``OUTPUT_BYTES`` and ``OUTPUT_LINES``, and how many bytes come before it.

    Args:
        data: Output, or its end.
        before: Bytes that came before ``data``.
    """
    start = max(0, len(data) - OUTPUT_BYTES)
    at = len(data) - 1 if data.endswith(b"\n") else len(data)
    for _ in range(OUTPUT_LINES):
        at = data.rfind(b"\n", start, at)
        if at < 0:
            break
    else:
        start = at + 1
    start = _whole(data, start)
    end = len(data) - _half(data)
    text = data[start:end].decode("utf-8", "replace")
    while len(text.encode()) > OUTPUT_BYTES:
        # Each wrong byte became three; what is shown must fit, too.
        text = text[len(text) // 2 :]
    return text, before + start


def last_words(text: str) -> str:
    """The end of a text that is still being written, at most ``TEXT_BYTES``."""
    if len(text) * 4 <= TEXT_BYTES:
        return text
    data = text.encode("utf-8", "replace")
    start = max(0, len(data) - TEXT_BYTES)
    return data[_whole(data, start) :].decode("utf-8", "replace")


def _whole(data: bytes, start: int) -> int:
    """The first place from ``start`` on where a character begins."""
    while 0 < start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start


def _half(data: bytes) -> int:
    """Bytes at the end that are the beginning of a character whose rest has not come yet."""
    for back in range(1, min(4, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 != 0x80:
            wanted = 2 if lead >= 0xC0 else 1
            wanted += (lead >= 0xE0) + (lead >= 0xF0)
            return back if back < wanted and lead < 0xF8 else 0
    return 0
