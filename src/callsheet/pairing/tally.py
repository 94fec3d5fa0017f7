"""Counts of a whole stream, from pairing alone.

Every call entity, every result entity and every decision counts once (ASR-279). A declined call is one
whose result says denied, or whose latest decision rejects while nothing says it completed.

Must never know: rows, harnesses.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from callsheet.pairing.index import Pairing
from callsheet.pairing.words import Reach, Verdict
from callsheet.records import Gap, Permission, ToolResult, Unmapped


class Tally(Struct, kw_only=True):
    """Counts of one stream. ``completed`` to ``unconfirmed`` add up to ``calls``.

    Attributes:
        undecided: Calls that may have run, by their result, and about which no request and no decision is recorded.
        carried: Results that cite the recorded request which carries them.
        shown: Results that have what was sent without citing one.
        unshown: Results of which it is not recorded what reached the model. These three add up to ``results``.
    """

    records: int = 0
    calls: int = 0
    paired: int = 0
    dangling: int = 0
    results: int = 0
    orphan: int = 0
    ambiguous: int = 0
    completed: int = 0
    failed: int = 0
    declined: int = 0
    cancelled: int = 0
    interrupted: int = 0
    unconfirmed: int = 0
    permissions: int = 0
    unresolved: int = 0
    compact: int = 0
    undecided: int = 0
    shown: int = 0
    carried: int = 0
    unshown: int = 0
    gaps: int = 0
    unmapped: int = 0
    unknown_types: int = 0
    bad_lines: int = 0

    def add(self, other: Tally) -> None:
        """Adds the counts of another stream."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


CallState = Literal["completed", "failed", "declined", "cancelled", "interrupted", "unconfirmed"]
_STATES: dict[str | None, CallState] = {
    "completed": "completed",
    "failed": "failed",
    "denied": "declined",
    "cancelled": "cancelled",
    "interrupted": "interrupted",
}


def state_of(status: str | None, verdict: Verdict) -> CallState:
    """The state of a call whose turn has ended.

    Args:
        status: Status of its paired result; None when it has none.
        verdict: The latest decision about it.
    """
    if verdict is Verdict.REJECTED and status != "completed":
        return "declined"
    return _STATES.get(status, "unconfirmed")


_REACHES: dict[Reach, Literal["unshown", "shown", "carried"]] = {
    Reach.NONE: "unshown",
    Reach.CONTENT: "shown",
    Reach.REQUEST: "carried",
}


def _is_undecided(pairing: Pairing, call_id: str, result: int) -> bool:
    return (
        pairing.status_of(result) not in ("denied", "cancelled")
        and pairing.verdict_of(result) is Verdict.OPEN
        and not pairing.linked(call_id, Permission)
    )


def tally(pairing: Pairing) -> Tally:
    """Counts a stream that was fed whole."""
    found = Tally(records=len(pairing))
    for call_id in pairing.call_ids():
        calls = pairing.calls(call_id)
        found.calls += len(calls)
        result = pairing.result(call_id)
        if result is not None:
            found.paired += 1
            found.undecided += _is_undecided(pairing, call_id, result)
        else:
            found.dangling += len(calls)
        status = pairing.status_of(result) if result is not None else None
        state = state_of(status, pairing.verdict(call_id))
        setattr(found, state, getattr(found, state) + len(calls))
        for number in pairing.results(call_id):
            if number != result:
                word = pairing.pairing_of(number, call_id)
                setattr(found, word, getattr(found, word) + 1)
    for number in pairing.numbers(ToolResult):
        if pairing.is_superseded(number):
            continue
        found.results += 1
        member = _REACHES[pairing.reach_of(number)]
        setattr(found, member, getattr(found, member) + 1)
        found.compact += pairing.verdict_of(number) is not Verdict.OPEN
        if not pairing.has_call_id(number):
            word = pairing.pairing_of(number, None)
            setattr(found, word, getattr(found, word) + 1)
    for number in pairing.numbers(Permission):
        if not pairing.is_superseded(number):
            found.permissions += 1
            found.unresolved += pairing.verdict_of(number) is Verdict.OPEN
    found.gaps = pairing.count(Gap)
    found.unmapped = pairing.count(Unmapped)
    found.unknown_types = pairing.count(None)
    found.bad_lines = pairing.count_bad()
    return found
