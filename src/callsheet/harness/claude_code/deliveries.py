"""What is known of each stored tool result: its place, its facts, and the proof that a request carried it.

Owns: the working form while a file is read (``Result``, ``Proof``), and the packed table that is left when
it has been read: under a hundred bytes a result that was sent, nothing for one that was not.

Must never know: how a proof comes about; records, files.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable
from struct import Struct as Packing
from typing import Literal, NamedTuple

from msgspec import Struct

from callsheet.harness.claude_code.own_text import Ranges
from callsheet.harness.claude_code.sent_block import DIFFERENT, Fit, StoredContent


class Place(NamedTuple):
    """Where a native line stands: 1-based line, byte offset, bytes."""

    line: int
    offset: int
    size: int


class Delivery(NamedTuple):
    """A stored result that a request carried.

    Attributes:
        request: The ``api-request`` that proves it, the first in the file.
        blob: The ``api-request-blob`` with the sent copy; None when the request names stored records
            themselves.
        pointer: JSON pointer to the sent block in the blob's line, empty without blob.
        source: Where the content is to be read: ``stored`` (the stored block) or ``blob`` (the sent copy).
        keep: Ranges of that block's ``content`` that are the result's: of characters in a text, of parts in
            an array. None for all of it. ``sent_block.cut`` takes them out.
    """

    request: Place
    blob: Place | None
    pointer: str
    source: Literal["stored", "blob"]
    keep: Ranges | None


class Request(Struct, gc=False):
    """An ``api-request`` that can be trusted; ``stamp`` is its time, where it has one that sorts."""

    place: Place
    stamp: str | None


class Proof(Struct, gc=False):
    """That a request carried a result, and in what form."""

    request: Request
    blob: Place | None
    block: int
    fit: Fit

    def goes_before(self, other: Proof) -> bool:
        """The first request counts, but one that holds the stored text before one that does not."""
        mine, others = (proof.fit.rank == DIFFERENT for proof in (self, other))
        return (mine, self.request.place.offset) < (others, other.request.place.offset)


class Result(Struct, gc=False):
    """A stored tool_result block; ``copied`` once a request has brought a copy of its text."""

    call_id: str
    line: int
    offset: int
    block: int
    stamp: str | None
    content: StoredContent
    proof: Proof | None = None
    copied: bool = False

    def is_same(self, other: Result) -> bool:
        """Whether it can be one native result written twice: equal call id, time and content (decision 2).

        Two results can be equal in all that and be two; ``Deliveries.tell_apart`` settles it when it is known which
        records repeat others.
        """
        return self.stamp is not None and self.stamp == other.stamp and self.content == other.content

    def may_be_in(self, request: Request) -> bool:
        """False only if it stands after the request and is stamped later than it."""
        if self.offset < request.place.offset or self.stamp is None or request.stamp is None:
            return True
        return self.stamp <= request.stamp


_ROW = Packing("<QQQQQQIBQQ")
_NO_KEEP = (1 << 64) - 1
_STORED, _BLOB = 1, 2


class Twin(NamedTuple):
    """One of several results that one sent block proves: they look like one record written twice."""

    call_id: str
    line: int
    offset: int
    block: int


class Deliveries:
    """The proofs of a whole file, packed.

    Args:
        results: Every stored result.
        twins: Groups of results that share their proof.
    """

    def __init__(self, results: Iterable[Result], twins: Iterable[list[Twin]] = ()) -> None:
        self._twins = list(twins)
        self._struck: set[tuple[int, int]] = set()
        self._offsets = array("Q")
        self._blocks = array("Q")
        self._rows = bytearray()
        self._split: dict[int, Ranges] = {}
        for result in sorted(results, key=lambda result: (result.offset, result.block)):
            if result.proof is not None:
                self._append(result, result.proof)

    def _append(self, result: Result, proof: Proof) -> None:
        keep = proof.fit.keep
        if keep is None:
            start, end = _NO_KEEP, 0
        else:
            start, end = keep[0] if keep else (0, 0)
            if len(keep) > 1:
                self._split[len(self._offsets)] = keep
        self._offsets.append(result.offset)
        self._blocks.append(result.block)
        source = _BLOB if proof.fit.copied else _STORED
        self._rows += _ROW.pack(
            *proof.request.place, *(proof.blob or (0, 0, 0)), proof.block, source, start, end
        )

    def __len__(self) -> int:
        return len(self._offsets)

    def tell_apart(self, copies: Container[int]) -> list[list[Twin]]:
        """Drops the proofs of results that share one and are more than one record.

        Args:
            copies: Offsets of records that repeat an earlier one (decision 2).

        Returns:
            The groups that lost their proof: one sent block, and nothing tells whose it is.
        """
        several = []
        for twins in self._twins:
            left = [twin for twin in twins if twin.offset not in copies]
            if len(left) > 1:
                several.append(left)
                self._struck.update((twin.offset, twin.block) for twin in twins)
        self._twins = []
        return several

    def find(self, offset: int, block: int) -> Delivery | None:
        """The proof of the result at ``message.content[block]`` of the record at ``offset``."""
        if (offset, block) in self._struck:
            return None
        first = bisect_left(self._offsets, offset)
        last = bisect_right(self._offsets, offset, first)
        at = bisect_left(self._blocks, block, first, last)
        if at == last or self._blocks[at] != block:
            return None
        *places, index, source, start, end = _ROW.unpack_from(self._rows, at * _ROW.size)
        blob = Place(*places[3:]) if places[3] else None
        return Delivery(
            request=Place(*places[:3]),
            blob=blob,
            pointer=f"/message/content/{index}" if blob else "",
            source="blob" if source == _BLOB else "stored",
            keep=None if start == _NO_KEEP else self._split.get(at, ((start, end),)),
        )
