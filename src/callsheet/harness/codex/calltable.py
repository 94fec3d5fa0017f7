"""What a thread records about each call id: how many calls, outputs and executions, and where the last ones stand.

Owns the columns; a few dozen bytes per call id, whatever its lines hold. A call id is known by its hash.

Must never know: what a line means, records.
"""

from __future__ import annotations

from array import array

MOST = 255
CALL, OUTPUT, ITEM = 0, 1, 2
"""Kinds of lines that carry a call id."""
IDENTITY = 1
"""Flag: an execution names the MCP server and tool in fields of their own."""


class CallTable:
    """Counts and places by call id."""

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._counts = (bytearray(), bytearray(), bytearray())
        self._flags = bytearray()
        self._spots = (array("q"), array("q"), array("q"))

    def __len__(self) -> int:
        return len(self._flags)

    def add(
        self, kind: int, call_id: str, position: int, source: int, line: int, offset: int, size: int
    ) -> int:
        """Notes a line; returns how many of its kind this call id has by now."""
        slot = self._slots.get(hash(call_id))
        if slot is None:
            slot = self._slots[hash(call_id)] = len(self._flags)
            for column in self._counts:
                column.append(0)
            self._flags.append(0)
            for spots in self._spots:
                spots.extend((-1, 0, 0, 0))
        counts = self._counts[kind]
        if counts[slot] < MOST:
            counts[slot] += 1
        spots = self._spots[kind]
        spots[slot * 4] = position
        spots[slot * 4 + 1] = source << 48 | offset
        spots[slot * 4 + 2] = line
        spots[slot * 4 + 3] = size
        return counts[slot]

    def flag(self, call_id: str, flag: int) -> None:
        """Sets a flag of a call id that has a line."""
        slot = self._slots.get(hash(call_id))
        if slot is not None:
            self._flags[slot] |= flag

    def has(self, call_id: str, flag: int) -> bool:
        """Whether a flag is set."""
        slot = self._slots.get(hash(call_id))
        return slot is not None and bool(self._flags[slot] & flag)

    def count(self, kind: int, call_id: str) -> int:
        """How many lines of a kind carry this call id."""
        slot = self._slots.get(hash(call_id))
        return 0 if slot is None else self._counts[kind][slot]

    def less(self, kind: int, call_id: str, first: tuple[int, int, int, int, int]) -> None:
        """Takes one line back: it repeats another (decision 2), whose place counts.

        Args:
            kind: The kind of the line.
            call_id: Its call id.
            first: Position, source number, line, offset and size of the line that it repeats.
        """
        slot = self._slots.get(hash(call_id))
        if slot is not None and self._counts[kind][slot]:
            self._counts[kind][slot] -= 1
            position, source, line, offset, size = first
            spot = (position, source << 48 | offset, line, size)
            self._spots[kind][slot * 4 : slot * 4 + 4] = array("q", spot)

    def position(self, kind: int, call_id: str) -> int:
        """Position of the last line of a kind, -1 when there is none."""
        slot = self._slots.get(hash(call_id))
        return -1 if slot is None else self._spots[kind][slot * 4]

    def spot(self, kind: int, call_id: str) -> tuple[int, int, int, int]:
        """Source number, line, offset and size of the last line of a kind."""
        spots = self._spots[kind]
        at = self._slots[hash(call_id)] * 4
        packed = spots[at + 1]
        return packed >> 48, spots[at + 2], packed & 0xFFFF_FFFF_FFFF, spots[at + 3]
