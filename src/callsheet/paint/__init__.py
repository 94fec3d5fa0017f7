"""Paint: rows to lines of spans, and spans to text. No library for user interfaces, no terminal.

``paint_row``, ``paint_head`` and ``paint_foot`` lay out; ``plain`` and ``coloured`` make text of a line.
Whatever an agent wrote passes ``visible`` first, so that nothing of it can act on a terminal; no markup is
read.

Must never know: records' files, terminals, the environment.
"""

from callsheet.paint.flow import paint_rows
from callsheet.paint.head import head_words, paint_foot, paint_head
from callsheet.paint.row import Look, paint_row
from callsheet.paint.safe import visible
from callsheet.paint.span import Line, Span, Style, coloured, line_width, plain

__all__ = [
    "Line",
    "Look",
    "Span",
    "Style",
    "coloured",
    "head_words",
    "line_width",
    "paint_foot",
    "paint_head",
    "paint_row",
    "paint_rows",
    "plain",
    "visible",
]
