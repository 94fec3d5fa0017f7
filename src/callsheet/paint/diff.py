"""Patches as supplied, as lines: hunks, unified text, or two texts that nobody compared.

Nothing is computed: a patch that does not have the shape its format promises is drawn as text.

Must never know: rows, records other than ``Patch``.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from callsheet.paint import cells
from callsheet.paint.block import Collapse, block, hidden, more_lines
from callsheet.paint.safe import output_line
from callsheet.paint.span import Line, Span, Style
from callsheet.records import Patch

_HUNK = re.compile(r"@@ -[0-9]+(?:,([0-9]{1,9}))? \+[0-9]+(?:,([0-9]{1,9}))? @@")
_STYLES: dict[str, Style] = {"+": "added", "-": "removed", "@": "place"}


def patch_lines(patch: Patch, most: int, collapse: Collapse) -> list[Line]:
    """A patch as lines of at most ``most`` cells, collapsed with the number of hidden lines."""
    value = _value(patch)
    if value is None:
        return []
    texts = _lines_of(patch, value)
    if texts is None:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
        return block(text, most, collapse)
    shown = texts if len(texts) == collapse.most + 1 else texts[: collapse.most]
    found = [[Span(cells.cut(output_line(text), most), style)] for text, style in shown]
    if len(texts) > len(shown):
        found.append(hidden(more_lines(len(texts) - len(shown)), most))
    return found


def changed_lines(patch: Patch | None) -> tuple[int, int] | None:
    """Lines that a patch says were added and removed; None when it does not say so by lines."""
    value = _value(patch) if patch is not None else None
    if patch is None or value is None:
        return None
    if patch.format not in ("hunks", "unified", "git"):
        return None
    lines = _lines_of(patch, value)
    if not lines:
        return None
    return sum(style == "added" for _, style in lines), sum(style == "removed" for _, style in lines)


def _lines_of(patch: Patch, value: Any) -> list[tuple[str, Style]] | None:
    """The lines of a patch with their styles; None when it does not have the shape that its format promises."""
    match patch.format:
        case "hunks":
            texts = _hunks(value)
        case "replace":
            texts = _replacement(value)
        case "unified" | "git" if isinstance(value, str):
            return _unified(value)
        case _:
            return None
    return None if texts is None else [(text, _STYLES.get(text[:1], "")) for text in texts]


def _unified(text: str) -> list[tuple[str, Style]] | None:
    """Lines of a unified diff: hunks whose lines are as many as their heads say, with other lines between them.

    The last hunk may be cut short. A text without any hunk is a patch only as Git's word for a file that was renamed
    or whose mode changed.
    """
    found: list[tuple[str, Style]] = []
    old = new = hunks = 0
    for line in text.rstrip("\n").split("\n"):
        head = _HUNK.match(line)
        sign = line[:1]
        if old > 0 or new > 0:
            if sign not in ("+", "-", " ", "\\", "", "\r"):
                return None
            old -= sign in ("-", " ", "", "\r")
            new -= sign in ("+", " ", "", "\r")
            found.append((line, _STYLES.get(sign, "")))
        elif head is not None:
            old, new = (int(count) if count is not None else 1 for count in head.groups())
            hunks += 1
            found.append((line, "place"))
        else:
            found.append((line, "quiet"))
        if old < 0 or new < 0:
            return None
    return found if hunks or text.startswith("diff --git ") else None


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
