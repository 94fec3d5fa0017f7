"""Hashes of stored user records joined to one message, as a request names them.

Owns: the runs of user records. A run begins after an assistant record or a compaction; results that came
between the blocks of one assistant message are tried both apart and together. Each prefix that holds a
result has the native hash, the SHA-256 of ``{"content":[…],"role":"user"}`` in canonical JSON; its ``key``
is what Python hashes that to.

Hashing is dear and mostly idle: as a rule a request brings its own copy of the results (a blob). So the
blocks of a run are kept, at most ``BUDGET`` bytes of them, until a request has passed by, and are hashed
only if it left a result of theirs without a copy.

Must never know: lines, requests, what a key proves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from callsheet.harness.claude_code.deliveries import Result
from callsheet.harness.claude_code.sent_block import UNWRITABLE, canonical, uncached

BUDGET: Final = 8 << 20
"""Bytes of native records whose blocks are kept."""


class Prefix(NamedTuple):
    """The key of joined records, and which results they hold: those from ``first`` to before ``end``."""

    key: int
    first: int
    end: int


class _Run:
    def __init__(self, first: int) -> None:
        self.first = first
        self.end = first
        self.copied_to = first  # results before it have copies: what was copied stays copied
        self.size = 0
        self.kept: list[tuple[list[Any], int]] = []
        self._hash: Any = None

    def add(self, blocks: list[Any], end: int, size: int) -> None:
        self.end = end
        self.size += size
        self.kept.append((blocks, end))

    def prefixes(self) -> Iterator[Prefix]:
        """Hashes what is kept; a record that can't be hashed ends the run."""
        kept, self.kept, self.size = self.kept, [], 0
        for blocks, end in kept:
            try:
                joined = canonical(blocks)
                if b'"cache_control":' in joined:
                    joined = canonical(uncached(blocks))
            except UNWRITABLE:
                self._hash = hashlib.sha256()  # of nothing that a request can name
                continue
            if self._hash is None:
                self._hash = hashlib.sha256(b'{"content":' + joined[:-1])
            else:
                self._hash.update(b"," + joined[1:-1])
            if self.first < end:
                whole = self._hash.copy()
                whole.update(b'],"role":"user"}')
                yield Prefix(hash(whole.hexdigest()), self.first, end)


class Runs:
    """The runs of one file.

    Args:
        results: Every stored result so far; the caller appends to it.
    """

    def __init__(self, results: list[Result]) -> None:
        self._results = results
        self._message_id: str | None = None
        self._open = [_Run(0)]
        self._ended: list[_Run] = []
        self._size = 0

    def add(self, blocks: list[Any], size: int) -> Sequence[Prefix]:
        """Takes a user record in, whose results are among the results already.

        Returns:
            Prefixes that had to be hashed because too much was kept; mostly none.
        """
        if not blocks:
            return ()
        for run in self._open:
            run.add(blocks, len(self._results), size)
        self._size += size
        return self._hashed([*self._ended, *self._open]) if self._size > BUDGET else ()

    def end(self, message_id: str | None = None) -> None:
        """Ends the run at an assistant record with this message id, or at a border that nothing joins."""
        last = self._open[-1]
        if last.kept:
            self._ended.append(last)
        if message_id is not None and message_id == self._message_id:
            self._open = [self._open[0], _Run(len(self._results))]
        else:
            if self._open[0] is not last and self._open[0].kept:
                self._ended.append(self._open[0])
            self._open = [_Run(len(self._results))]
        self._message_id = message_id

    def passed(self) -> Sequence[Prefix]:
        """A request has passed, or the file has ended.

        Returns:
            Prefixes of runs with a result that no request has brought a copy of.
        """
        if not self._size:
            return ()
        runs = [run for run in self._ended + self._open if run.kept and self._lacks_copy(run)]
        if runs:
            return self._hashed(runs)
        self._let_go()
        return ()

    def _lacks_copy(self, run: _Run) -> bool:
        while run.copied_to < run.end and self._results[run.copied_to].copied:
            run.copied_to += 1
        return run.copied_to < run.end

    def _hashed(self, runs: list[_Run]) -> list[Prefix]:
        prefixes = [prefix for run in runs for prefix in run.prefixes()]
        self._let_go()
        return prefixes

    def _let_go(self) -> None:
        """Forgets the runs that ended."""
        self._ended.clear()
        self._size = sum(run.size for run in self._open)
