"""Paint: rows to lines of spans, and spans to text. No library for user interfaces, no terminal.

``paint_row``, ``paint_head``, ``paint_foot`` and ``paint_usage`` lay out; ``plain`` and ``coloured`` make text of it.
Whatever an agent wrote passes ``visible`` first, so that nothing of it can act on a terminal; no markup is
read.

What is taken from here is loaded then: an error message needs ``visible`` alone.

Must never know: records' files, terminals, the environment.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callsheet.paint.flow import paint_noted, paint_rows
    from callsheet.paint.head import head_words, paint_foot, paint_head
    from callsheet.paint.notes import Notes
    from callsheet.paint.row import Look, paint_row
    from callsheet.paint.safe import visible
    from callsheet.paint.span import Line, Span, Style, coloured, line_width, plain
    from callsheet.paint.usage import paint_usage

_PLACES = {
    "paint_noted": "flow",
    "paint_rows": "flow",
    "head_words": "head",
    "paint_foot": "head",
    "paint_head": "head",
    "paint_usage": "usage",
    "Notes": "notes",
    "Look": "row",
    "paint_row": "row",
    "visible": "safe",
    "Line": "span",
    "Span": "span",
    "Style": "span",
    "coloured": "span",
    "line_width": "span",
    "plain": "span",
}
"""Where each name is."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"callsheet.paint.{_PLACES[name]}"), name)
    return found


__all__ = [
    "Line",
    "Look",
    "Notes",
    "Span",
    "Style",
    "coloured",
    "head_words",
    "line_width",
    "paint_foot",
    "paint_head",
    "paint_noted",
    "paint_row",
    "paint_rows",
    "paint_usage",
    "plain",
    "visible",
]
