"""Patches as supplied, as lines: hunks, unified text, or two texts that nobody compared.

Nothing is computed: a patch that does not have the shape its format promises is drawn as text.

Must never know: rows, records other than ``Patch``.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from callsheet.paint import cells
from callsheet.paint.block import Collapse, block, hidden, more_lines
from callsheet.paint.safe import output_line
from callsheet.paint.span import Line, Span, Style
from callsheet.records import Patch

_STYLES: dict[str, Style] = {"+": "added", "-": "removed", "@": "place"}


def patch_lines(patch: Patch, most: int, collapse: Collapse) -> list[Line]:
    """A patch as lines of at most ``most`` cells, collapsed with the number of hidden lines."""
    value = _value(patch)
    if value is None:
        return []
    texts = _hunks(value) if patch.format == "hunks" else None
    if texts is None and patch.format in ("unified", "git") and isinstance(value, str):
        texts = value.rstrip("\n").split("\n")
    if texts is None and patch.format == "replace":
        texts = _replacement(value)
    if texts is None:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
        return block(text, most, collapse)
    shown = texts if len(texts) == collapse.most + 1 else texts[: collapse.most]
    found = [[Span(cells.cut(output_line(text), most), _STYLES.get(text[:1], ""))] for text in shown]
    if len(texts) > len(shown):
        found.append(hidden(more_lines(len(texts) - len(shown)), most))
    return found


def changed_lines(patch: Patch | None) -> tuple[int, int] | None:
    """Lines that a patch says were added and removed; None when it does not say so by lines."""
    value = _value(patch) if patch is not None else None
    if patch is None or value is None:
        return None
    texts = _hunks(value) if patch.format == "hunks" else None
    if texts is None and patch.format in ("unified", "git") and isinstance(value, str):
        texts = [text for text in value.split("\n") if not text.startswith(("+++ ", "--- "))]
    if not texts:
        return None
    return sum(text[:1] == "+" for text in texts), sum(text[:1] == "-" for text in texts)


def _value(patch: Patch) -> Any:
    if not isinstance(patch.value, Raw):
        return None
    try:
        return msgspec.json.decode(patch.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bytes(patch.value).decode("utf-8", "replace")


def _hunks(value: Any) -> list[str] | None:
    """Lines of hunks ``[{oldStart, oldLines, newStart, newLines, lines}]``; None for any other shape."""
    if not isinstance(value, list):
        return None
    texts: list[str] = []
    for hunk in value:
        lines = hunk.get("lines") if isinstance(hunk, dict) else None
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            return None
        numbers = [hunk.get(name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        if all(isinstance(number, int) for number in numbers):
            texts.append("@@ -{},{} +{},{} @@".format(*numbers))
        texts += [piece for line in lines for piece in _of_one_line(line)]
    return texts


def _of_one_line(line: str) -> list[str]:
    # A line of a patch that holds a line break keeps its sign on every piece.
    head, *rest = line.split("\n")
    return [head, *(head[:1] + piece for piece in rest)]


def _replacement(value: Any) -> list[str] | None:
    if not isinstance(value, dict):
        return None
    old, new = (value.get(name) for name in ("oldText", "newText"))
    if not all(text is None or isinstance(text, str) for text in (old, new)) or (old is None and new is None):
        return None
    texts = [text for text in (old, new) if text is not None]
    if all(text.endswith("\n") for text in texts):  # no line begins behind it, and neither text differs by it
        old, new = (text[:-1] if text is not None else None for text in (old, new))
    return [
        *(f"-{line}" for line in (old or "").split("\n") if old is not None),
        *(f"+{line}" for line in (new or "").split("\n") if new is not None),
    ]
