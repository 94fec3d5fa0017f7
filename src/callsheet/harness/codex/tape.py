"""The lines of one thread, in the order in which its history goes, whatever files they stand in.

Owns ``Tape``: a thread is read from one or more stretches of files. A revert leaves the old file and goes on in a new
segment that cuts it at an ordinal; a fork by reference begins with lines of another thread; a fork by copy has them in
its own file. Each unit comes with its state: live, dead (reverted), or inherited from a session.

Must never know: what a unit means, records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from msgspec import Struct

from callsheet.harness._port.units import Hole, Reading, Unit, native_units
from callsheet.harness._port.veil import Veil
from callsheet.harness.codex.shapes import RolloutLine, SurveyLine
from callsheet.records import SourceEntry

N = TypeVar("N", RolloutLine, SurveyLine)


class Stretch(Struct, kw_only=True):
    """A part of a file.

    Attributes:
        source: The file.
        session: The session that owns these lines when it is not the thread's own (a fork by reference).
        end: Ordinal at which the history leaves this file; None means its end.
        keep_rest: Whether what lies behind ``end`` belongs to this thread all the same, as dead lines.
        copied_from: The session whose lines this file begins with (a fork by copy), after its own first line.
        copied_ordinal: Lines with a smaller ordinal are copied.
        copied_lines: Lines up to this number are copied.
    """

    source: SourceEntry
    session: str | None = None
    end: int | None = None
    keep_rest: bool = False
    copied_from: str | None = None
    copied_ordinal: int = -1
    copied_lines: int = 0


class Seen(NamedTuple):
    """State of a unit: the session that it is inherited from, and whether a revert made it dead."""

    session: str | None
    dead: bool


LIVE = Seen(None, False)
DEAD = Seen(None, True)


class Tape:
    """The stretches of one thread.

    Args:
        veil: Reads the sources.
        stretches: In order; the thread's own newest file comes last.
    """

    def __init__(self, veil: Veil, stretches: list[Stretch]) -> None:
        self.veil = veil
        self.stretches = stretches

    @property
    def sources(self) -> list[SourceEntry]:
        """The files, each once."""
        return list({stretch.source.id: stretch.source for stretch in self.stretches}.values())

    def units(self, reading: Reading[N]) -> Iterator[tuple[int, Unit[N] | Hole, Seen]]:
        """Every unit with the number of its stretch and its state."""
        for number, stretch in enumerate(self.stretches):
            yield from self._stretch(number, stretch, reading)

    def _stretch(
        self, number: int, stretch: Stretch, reading: Reading[N]
    ) -> Iterator[tuple[int, Unit[N] | Hole, Seen]]:
        plain = LIVE if stretch.session is None else Seen(stretch.session, False)
        copied = Seen(stretch.copied_from, False)
        end = stretch.end
        over = False
        simple = end is None and not stretch.copied_lines and stretch.copied_ordinal < 0
        for unit in native_units(self.veil.lines(stretch.source), reading):
            if simple:
                yield number, unit, plain
                continue
            ordinal = None if isinstance(unit, Hole) or unit.native is None else unit.native.ordinal
            if end is not None and type(ordinal) is int:
                over = ordinal >= end  # a line that says nothing is where the one before it is
            if over:
                if not stretch.keep_rest:
                    return
                yield number, unit, DEAD
            elif unit.line.number > 1 and (
                unit.line.number <= stretch.copied_lines
                or (type(ordinal) is int and ordinal < stretch.copied_ordinal)
            ):
                yield number, unit, copied
            else:
                yield number, unit, plain
