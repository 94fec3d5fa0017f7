"""Roll: the rows of a session by their position, agents below the calls that started them, each made when asked for.

The order and depth are those of ``nested_rows``; nothing is held of a row but its kind and state. Owns the way from a
position to a stream and a record.

Must never know: files, how rows are drawn.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from callsheet.pairing import Tally
from callsheet.rows.nested import DEEPEST, Nested
from callsheet.rows.outline import KIND_CODES, STATE_CODES, STATE_WORDS
from callsheet.rows.row import ROW_KINDS, Limits, Row, RowKind, State
from callsheet.rows.sheet import Sheet

WHOLE = Limits(title=20_000, text=2_000_000, input=2_000_000, patch=2_000_000, items=2_000)
"""Bounds of a row that a person opened."""

_NONE = 0xFFFFFFFF


class Rows(Protocol):
    """Rows by position: stored, followed or live."""

    def __len__(self) -> int:
        """How many there are now."""
        ...

    def nested(self, at: int, *, whole: bool = False) -> Nested:
        """The row at a position, and its depth; ``whole`` with the bounds of a row that a person opened."""
        ...

    def key(self, at: int) -> int:
        """Its identity, which stays when rows before it are added."""
        ...

    def position(self, key: int) -> int | None:
        """Where the row of an identity stands now; None when it is gone."""
        ...

    def kind(self, at: int) -> RowKind:
        """Its kind."""
        ...

    def state(self, at: int) -> State:
        """Its state."""
        ...

    def tally(self) -> Tally:
        """Counts of all streams."""
        ...


class NoRows:
    """No rows yet."""

    def __len__(self) -> int:
        return 0

    def nested(self, at: int, *, whole: bool = False) -> Nested:  # noqa: ARG002
        """There is none."""
        raise IndexError(at)

    def key(self, at: int) -> int:
        """There is none."""
        raise IndexError(at)

    def position(self, key: int) -> int | None:  # noqa: ARG002
        """There is none."""
        return None

    def kind(self, at: int) -> RowKind:
        """There is none."""
        raise IndexError(at)

    def state(self, at: int) -> State:
        """There is none."""
        raise IndexError(at)

    def tally(self) -> Tally:
        """Nothing."""
        return Tally()


class Roll:
    """The rows of stored streams.

    Args:
        main: Id of the session's own stream.
        sheets: Every stream by id, outlined.
    """

    def __init__(self, main: str, sheets: Mapping[str, Sheet]) -> None:
        self._sheets = [sheets[main], *(sheet for name, sheet in sheets.items() if name != main)]
        self._names = [main, *(name for name in sheets if name != main)]
        self._parents: dict[int, tuple[int, int]] = {}
        self._of = array("H")
        self._numbers = array("I")
        self._depths = bytearray()
        self._kinds = bytearray()
        self._states = bytearray()
        self._made: tuple[int, bool, Nested] | None = None
        left = dict.fromkeys(range(1, len(self._sheets)))
        self._walk(0, 0, left)
        while left:
            stream = next(iter(left))
            del left[stream]
            self._append(stream, _NONE, 1, KIND_CODES["notice"], STATE_CODES["completed"])
            self._parents[stream] = (-1, -1)
            self._walk(stream, 1, left)

    def _walk(self, stream: int, depth: int, left: dict[int, None]) -> None:
        outline = self._sheets[stream].outline
        if not outline.agents:
            count = len(outline.numbers)
            self._of.extend([stream] * count)
            self._numbers.extend(outline.numbers)
            self._depths.extend(bytes([depth]) * count)
            self._kinds.extend(outline.kinds)
            self._states.extend(outline.states)
            return
        places = {name: number for number, name in enumerate(self._names)}
        for number, kind, state in zip(outline.numbers, outline.kinds, outline.states, strict=True):
            self._append(stream, number, depth, kind, state)
            for name in outline.agents.get(number, ()):
                agent = places.get(name)
                if agent in left and depth < DEEPEST:
                    del left[agent]
                    self._parents[agent] = (stream, number)
                    self._walk(agent, depth + 1, left)

    def _append(self, stream: int, number: int, depth: int, kind: int, state: int) -> None:
        self._of.append(stream)
        self._numbers.append(number)
        self._depths.append(depth)
        self._kinds.append(kind)
        self._states.append(state)

    def __len__(self) -> int:
        return len(self._numbers)

    def nested(self, at: int, *, whole: bool = False) -> Nested:
        """The row at a position, and its depth.

        Raises:
            RecordError: A record cannot be read again.
        """
        if self._made is not None and self._made[:2] == (at, whole):
            return self._made[2]
        row = self._row(self._of[at], self._numbers[at], WHOLE if whole else None)
        self._kinds[at] = KIND_CODES[row.kind]
        self._states[at] = STATE_CODES[row.state]
        made = Nested(self._depths[at], row)
        self._made = (at, whole, made)
        return made

    def _row(self, stream: int, number: int, limits: Limits | None) -> Row:
        name = self._names[stream]
        if number == _NONE:
            title = f"agent {name}: no record says which call started it"
            row = Row(row="", kind="notice", state="completed", title=title, record=f"{name}/")
        else:
            made = self._sheets[stream].row(number, limits)
            if made is None:
                raise RuntimeError(f"record {number} draws no row, and was outlined as one that does")
            row = made
        if stream:
            row.row = f"{name}/{row.row}"
            row.parent = f"{name}/{row.parent}" if row.parent else self._parent(stream, number)
            row.stream = name
        return row

    def _parent(self, stream: int, number: int) -> str | None:
        above, call = self._parents[stream]
        if above < 0:
            return None if number == _NONE else f"{self._names[stream]}/"
        row_id = self._sheets[above].row_id(call)
        return f"{self._names[above]}/{row_id}" if above else row_id

    def key(self, at: int) -> int:
        """The identity of a row: of stored ones, which don't move, the position."""
        return at

    def position(self, key: int) -> int | None:
        """The position of an identity, which is the same."""
        return key

    def kind(self, at: int) -> RowKind:
        """The kind of the row at a position."""
        code = self._kinds[at]
        return ROW_KINDS[code - 1] if code else self.nested(at).row.kind

    def state(self, at: int) -> State:
        """The state of the row at a position."""
        code = self._states[at]
        return STATE_WORDS[code - 1] if code else self.nested(at).row.state

    def hidden(self) -> Counter[str]:
        """What has no row, and how often."""
        return sum((sheet.outline.hidden for sheet in self._sheets), Counter())

    def tally(self) -> Tally:
        """Counts of all streams."""
        found = Tally()
        for sheet in self._sheets:
            found.add(sheet.tally())
        return found
