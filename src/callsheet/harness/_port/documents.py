"""Files that are one JSON document, often over several lines.

Owns the document as one native unit, whose refs cite the whole file, and its text without line breaks: a record is one
line, and no part of a document may bring its line breaks along.

Must never know: what a document means.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.records import SourceEntry
from callsheet.wire.damage import BOM
from callsheet.wire.lines import Line

T = TypeVar("T")
BLANKS = b" \t\r\n"


def one_line(data: bytes) -> bytes:
    """A JSON text without line breaks, and without blanks around it: its first byte tells its type."""
    return msgspec.json.format(data, indent=-1) if b"\n" in data else data.strip(BLANKS)


def document_unit(veil: Veil, source: SourceEntry, reading: Reading[T]) -> Unit[T] | Hole:
    """The document of a source; pieces of a broken one are not taken for documents.

    ``Unit.data`` is the text as the source has it, what the decoder made of it has no line breaks.
    """
    data = veil.read(source, 0, source.size or 0)
    text = data.removeprefix(BOM)
    line = Line(1, len(data) - len(text), text)
    found = list(native_units([line], reading))
    unit = found[0] if len(found) == 1 else None
    if isinstance(unit, Unit) and text.lstrip(BLANKS) == unit.data.lstrip(BLANKS):
        unit.start, unit.data = 0, text  # blanks before it are the document's
        try:
            unit.native = reading.decoder.decode(one_line(unit.readable()))
        except msgspec.ValidationError:
            pass  # what the loose reading made of it stands
        return unit
    reason = unit.reason if isinstance(unit, Hole) else "bad_json"
    return Hole(Line(1, 0, data), 0, len(data), reason)
