"""Ties each sent tool_result block to the stored result it is, or to none.

Owns: the stored results of a file by call id, the texts with records of their own, and the sent blocks that
are not explained yet. A sent block belongs to the stored result with its call id whose text it holds. Where
several results have one id, text alone decides between them; equal texts leave it open, and then none is
claimed. Never by order, nor by ``sourceToolAssistantUUID``: real requests pair one call with another call's
result (capture ``duplicate_ids``). Only a result that stands after a request and is stamped later is known
not to be in it.

Interactive sessions store a reminder after the request that carried it, so a block that the records so far
do not explain waits with its content, in a bounded store (``BUDGET``), for what comes; at the end it is
taken as it is.

Must never know: lines and hashes; records, pairing. Rules: ASR-259, decisions 2, 3 and 7.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, NamedTuple

from msgspec import Struct

from callsheet.harness.claude_code.deliveries import Deliveries, Place, Proof, Request, Result, Twin
from callsheet.harness.claude_code.own_text import BLANKS, OwnTexts
from callsheet.harness.claude_code.sent_block import AS_STORED, DIFFERENT, EXACT, Fit, fit, without_own_end

BUDGET: Final = 8 << 20
"""Bytes of sent blocks that wait for an explanation; the oldest are given up first."""
CROWD: Final = 64
"""Results with one call id that are told apart; where there are more, nothing new is claimed for that id."""
DOUBTS: Final = 10_000
_RECENT = 8  # waiting blocks that a new text is held against; the others are looked at again at the end


class Doubt(NamedTuple):
    """Evidence that decides nothing: a diagnostic about a line."""

    code: str
    line: int
    message: str


class Sent(Struct, gc=False):
    """A tool_result block of a blob.

    Attributes:
        call_id: Its ``tool_use_id``.
        blob: The line of the blob.
        block: Its index there.
        size: About how many bytes it has.
        content: What was sent, while the block waits.
        fits: How it fits the results with this id, in the order in which they are stored.
        request: The request that is known to carry it.
    """

    call_id: str
    blob: Place
    block: int
    size: int
    content: Any = None
    fits: tuple[Fit, ...] = ()
    request: Request | None = None


class Claims:
    """Results, sent blocks, and who has whom.

    Attributes:
        own: Texts that stand in records of their own.
        doubts: Evidence that decided nothing.
        results: Every stored result in file order.
    """

    def __init__(self) -> None:
        self.own = OwnTexts()
        self.doubts: list[Doubt] = []
        self.results: list[Result] = []
        self._by_id: dict[str, tuple[Result, ...]] = {}
        self._crowded: set[str] = set()
        self._waiting: dict[int, Sent] = {}  # in order of arrival, by an arbitrary key
        self._waiting_size = 0

    def doubt(self, code: str, line: int, message: str) -> None:
        """Notes a diagnostic; very many of them are not worth keeping."""
        if len(self.doubts) < DOUBTS:
            self.doubts.append(Doubt(code, line, message))

    def store(self, result: Result) -> None:
        """Takes a stored result in, and takes a claim back that it puts in doubt."""
        self.results.append(result)
        known = self._by_id.get(result.call_id, ())
        for other in known:
            proof = other.proof
            if proof is None:
                continue
            if result.is_same(other):
                result.proof = proof
            elif result.may_be_in(proof.request) and (
                proof.fit.rank < EXACT or result.content.has_text_of(other.content)
            ):
                other.proof = None
                self._undecided(result.call_id, proof.request, [other, result])
        if len(known) < CROWD:
            self._by_id[result.call_id] = (*known, result)
        else:
            self._crowded.add(result.call_id)

    def rendered(self, text: str) -> None:
        """Takes in what an attachment rendered, and looks whether it explains a block that waits."""
        self.own.add(text, rendered=True)
        if self._waiting:
            for key in list(islice(reversed(self._waiting), _RECENT)):
                sent = self._waiting[key]
                if _may_hold(sent.content, text) and self._explains(sent):
                    self._done(key)

    def sent(self, sent: Sent) -> None:
        """Takes a block of a blob in, with its content."""
        if self._explains(sent):
            sent.content = None
            return
        self._waiting[id(sent)] = sent
        self._waiting_size += sent.size
        if self._waiting_size > BUDGET:
            for key in list(self._waiting)[:-1]:
                self._explains(self._waiting[key])
                self._done(key)
                if self._waiting_size <= BUDGET // 2:
                    break

    def prove(self, sent: Sent, request: Request) -> None:
        """A request carries this block."""
        sent.request = request = sent.request or request
        for result, found in zip(self._by_id.get(sent.call_id, ()), sent.fits, strict=False):
            result.copied |= found.rank != DIFFERENT
        if sent.content is None:
            self._settle(sent, request)

    def prove_stored(self, result: Result, request: Request) -> None:
        """A request carries a block that is equal to this stored one."""
        proof = Proof(request, None, 0, AS_STORED)
        known = self._by_id.get(result.call_id, ())
        equal = [one for one in known if one.content == result.content and one.may_be_in(request)]
        self._claim(result.call_id, [(one, proof) for one in equal])

    def close(self) -> Deliveries:
        """Takes what still waits as it is."""
        for key in list(self._waiting):
            self._explains(self._waiting[key])
            self._done(key)
        return Deliveries(self.results, self._twins())

    def _twins(self) -> list[list[Twin]]:
        """Groups of results that share a proof because they may be one record written twice."""
        groups: dict[tuple[str, str | None, int], list[Twin]] = {}
        for one in self.results:
            if one.proof is not None and len(self._by_id[one.call_id]) > 1:
                twin = Twin(one.call_id, one.line, one.offset, one.block)
                groups.setdefault((one.call_id, one.stamp, one.content.whole), []).append(twin)
        return [twins for twins in groups.values() if len(twins) > 1]

    def _explains(self, sent: Sent) -> bool:
        """Looks how a block fits the results with its id, and whether one of them is all there is to it."""
        fits = []
        other = None
        explained = False
        for one in self._by_id.get(sent.call_id, ()):
            found = fit(one.content, sent.content, self.own)
            if found is None:
                found = other = other or Fit(DIFFERENT, True, without_own_end(sent.content, self.own))
            explained |= found.rank == EXACT
            fits.append(found)
        sent.fits = tuple(fits)
        return explained

    def _done(self, key: int) -> None:
        """A block waits no longer."""
        sent = self._waiting.pop(key)
        self._waiting_size -= sent.size
        sent.content = None
        if sent.request is not None:
            self._settle(sent, sent.request)

    def _settle(self, sent: Sent, request: Request) -> None:
        known = self._by_id.get(sent.call_id, ())
        fits = sent.fits
        if len(known) == len(fits) == 1:  # as a rule
            if known[0].may_be_in(request):
                self._claim(sent.call_id, [(known[0], Proof(request, sent.blob, sent.block, fits[0]))])
            return
        possible = [pair for pair in zip(known, fits, strict=False) if pair[0].may_be_in(request)]
        best = max((found.rank for _, found in possible), default=DIFFERENT)
        possible = [(one, found) for one, found in possible if found.rank == best]
        for late in known[len(fits) :]:  # stored since the look: it can still be the same text
            if possible and late.may_be_in(request) and late.content.has_text_of(possible[0][0].content):
                possible.append((late, possible[0][1]))
        self._claim(
            sent.call_id, [(one, Proof(request, sent.blob, sent.block, found)) for one, found in possible]
        )

    def _claim(self, call_id: str, fits: list[tuple[Result, Proof]]) -> None:
        """Gives each proof to its result if they are all one; to none when several differ."""
        if not fits:
            return
        first, proof = fits[0]
        alone = len(fits) == 1 or all(one.is_same(first) for one, _ in fits)
        if not alone or call_id in self._crowded:
            if not any(one.proof for one, _ in fits):
                self._undecided(call_id, proof.request, [one for one, _ in fits])
            return
        for one, proof in fits:
            if one.proof is None or proof.goes_before(one.proof):
                one.proof = proof

    def _undecided(self, call_id: str, request: Request, results: list[Result]) -> None:
        lines = ", ".join(str(one.line) for one in results[:8])
        self.doubt(
            "ambiguous_delivery",
            request.place.line,
            f"sent result of call {call_id[:80]!a}: nothing tells which stored one it is (lines {lines})",
        )


def _may_hold(content: Any, text: str) -> bool:
    """Whether a sent content can end with this text: a quick look at its last part only."""
    if isinstance(content, list):
        content = content[-1].get("text") if content and isinstance(content[-1], dict) else None
    text = text.strip(BLANKS)
    return isinstance(content, str) and content.rfind(text, max(0, len(content) - 65536)) >= 0
