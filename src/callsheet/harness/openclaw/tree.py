"""The tree of a transcript: which entry follows which, which branch is the active one.

Owns the columns (some 30 bytes per entry, whatever the entries hold), the nearest assistant message up the chain of
parents (decision 3), links to entries that are not there, entries that repeat another, and which entries a reply
follows.

Must never know: records, calls, what an entry says.
"""

from __future__ import annotations

from array import array
from itertools import pairwise

NONE = -1
"""No parent, no assistant above."""
BROKEN = -2
"""The parent is not in this transcript."""
OTHER, ASSISTANT, REPLY = 0, 1, 2
"""Kinds of entries: an assistant message, and one that a model really sent (no error, not cut off)."""
LIVE, ACTIVE, DEAD = 0, 1, 2
"""States of an entry: before a break or beside everything, on the active branch, on a branch that was left."""


class Tree:
    """The entries of one transcript by position."""

    def __init__(self) -> None:
        self._ids: array[int] = array("q")
        self._up: array[int] = array("q")
        self._kinds = bytearray()
        self._digests: array[int] = array("q")
        self._parents: array[int] = array("q")
        self._above: array[int] = array("q")
        self._states = bytearray()
        self._answered = bytearray()
        self.repeats: dict[int, int] = {}
        """Position of an entry that repeats an earlier one to the letter, to that one's position."""
        self.namesakes: set[int] = set()
        """Positions of entries that share their id with another that says something else."""

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, own: str | None, parent: str | None, kind: int, data: bytes) -> int:
        """Notes an entry; returns its position."""
        self._ids.append(hash(own) if own is not None else 0)
        self._up.append(hash(parent) if parent is not None else 0)
        self._kinds.append(kind)
        self._digests.append(hash(data))
        return len(self._ids) - 1

    def settle(self, leaf: str | None) -> None:
        """Resolves every link.

        Args:
            leaf: Id of the last entry of the active branch, where the source says it; else the last entry is it.
        """
        self._find_repeats()
        self._resolve()
        self._find_above()
        self._find_states(hash(leaf) if leaf is not None else None)
        self._find_answered()

    def _find_repeats(self) -> None:
        ids = self._ids
        order = sorted(range(len(ids)), key=ids.__getitem__)
        for before, at in pairwise(order):
            if not ids[at] or ids[before] != ids[at]:
                continue
            first = self.repeats.get(before, before)
            if self._digests[first] == self._digests[at]:
                self.repeats[at] = first
            else:
                self.namesakes.update((first, at))

    def _resolve(self) -> None:
        ids, up = self._ids, self._up
        parents = self._parents = array("q", [NONE]) * len(ids)
        wanted: dict[int, int] = {}
        for at in range(len(ids)):
            if not up[at]:
                continue
            if at and ids[at - 1] == up[at]:
                parents[at] = at - 1
            else:
                wanted.setdefault(up[at], BROKEN)
        for at, own in enumerate(ids):
            if wanted.get(own) == BROKEN:
                wanted[own] = at
        for at in range(len(ids)):
            if up[at] and parents[at] == NONE:
                parents[at] = wanted[up[at]]

    def _find_above(self) -> None:
        self._above = array("q", [NONE]) * len(self._ids)
        above, parents, kinds = self._above, self._parents, self._kinds
        known = bytearray(len(parents))
        for at in range(len(parents)):
            if known[at]:
                continue
            # Parents may stand behind their children: the way up is walked once, and all on it learn its end.
            way = [at]
            known[at] = 1
            found = NONE
            while (up := parents[way[-1]]) >= 0:
                if kinds[up] or known[up]:
                    # An entry that is on this way already closes a ring that no assistant stands in.
                    found = up if kinds[up] else above[up]
                    break
                known[up] = 1
                way.append(up)
            for one in way:
                above[one] = found

    def _find_states(self, leaf: int | None) -> None:
        parents = self._parents
        states = self._states = bytearray(len(parents))
        at = len(parents) - 1
        if leaf is not None:
            at = next((one for one in range(at, -1, -1) if self._ids[one] == leaf), at)
        while at >= 0 and states[at] != ACTIVE:
            states[at] = ACTIVE
            at = parents[at]
        for at, parent in enumerate(parents):
            if states[at] == LIVE and 0 <= parent < at and states[parent] != LIVE:
                states[at] = DEAD

    def _find_answered(self) -> None:
        parents = self._parents
        answered = self._answered = bytearray(len(parents))
        for at in range(len(parents) - 1, -1, -1):
            if (answered[at] or self._kinds[at] == REPLY) and parents[at] >= 0:
                answered[parents[at]] = 1

    # -- what the second pass asks ------------------------------------------------------------------------------

    def is_broken(self, at: int) -> bool:
        """Whether the entry names a parent that is not there."""
        return self._parents[at] == BROKEN

    def is_dead(self, at: int) -> bool:
        """Whether the entry stands on a branch that was left."""
        return self._states[at] == DEAD

    def assistant(self, at: int) -> int:
        """Position of the nearest assistant message up the chain, or ``NONE``."""
        return self._above[at]

    def is_answered(self, at: int) -> bool:
        """Whether a reply of the model stands below the entry."""
        return bool(self._answered[at])
