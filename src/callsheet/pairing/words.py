"""The few words of a record that pairing keeps, packed into two bytes.

Owns: status and linkage of a result, its compact decision, and what shows that it reached the model; the
decision of a permission. Open strings that are not known here become the word that promises nothing:
``unknown`` for a status, ``Linkage.NONE`` for a linkage.

Must never know: other records, order.
"""

from __future__ import annotations

from enum import IntEnum

from callsheet.records import Permission, ToolResult

STATUSES: tuple[str, ...] = ("unknown", "completed", "failed", "denied", "cancelled", "interrupted")
"""Statuses of a result (ASR-258); the first also stands for any other word."""

REJECTIONS: frozenset[str] = frozenset({"reject_once", "reject_always"})
"""Decisions that refuse."""


class Linkage(IntEnum):
    """How a result says it is linked; only ``LINKED`` (exact or derived) may pair (ASR-263)."""

    NONE = 0
    AMBIGUOUS = 1
    LINKED = 2


class Verdict(IntEnum):
    """What a decision amounts to: ``OPEN`` is none yet (ASR-269), ``OTHER`` any word but allow and reject."""

    OPEN = 0
    ALLOWED = 1
    REJECTED = 2
    OTHER = 3


class Reach(IntEnum):
    """What a result's record shows of its way to the model (ASR-259).

    ``NONE``: nothing is known. ``CONTENT``: it has what was sent. ``REQUEST``: it has it, and cites the
    recorded request that carries it.
    """

    NONE = 0
    CONTENT = 1
    REQUEST = 2


PROOFS: frozenset[str] = frozenset(("request", "sent", "proof"))
"""Roles of refs to native lines that show a result on its way to the model."""

_LINKAGES = {"exact": Linkage.LINKED, "derived": Linkage.LINKED, "ambiguous": Linkage.AMBIGUOUS}
_STATUS_CODES = {status: code for code, status in enumerate(STATUSES)}


def verdict_of(decision: str | None) -> Verdict:
    """The verdict of a decision word."""
    if decision is None:
        return Verdict.OPEN
    if decision in REJECTIONS:
        return Verdict.REJECTED
    return Verdict.ALLOWED if decision.startswith("allow_") else Verdict.OTHER


def reach_of(record: ToolResult) -> Reach:
    """What a result's record shows of its way to the model."""
    if record.content is None:
        return Reach.NONE
    refs = record.native.refs if record.native else ()
    return Reach.REQUEST if any(ref.role in PROOFS for ref in refs) else Reach.CONTENT


def pack_result(record: ToolResult) -> int:
    """Status, linkage, compact decision of a result, whether it has a callId, and its reach."""
    compact = verdict_of(record.permission.decision) if record.permission else Verdict.OPEN
    linkage = _LINKAGES.get(record.linkage, Linkage.NONE)
    return (
        _STATUS_CODES.get(record.status, 0)
        | linkage << 3
        | compact << 5
        | (record.call_id is not None) << 7
        | reach_of(record) << 8
    )


def pack_permission(record: Permission) -> int:
    """The verdict of a permission."""
    return verdict_of(record.decision)


def status_in(word: int) -> str:
    """Status of a packed result."""
    return STATUSES[word & 7]


def linkage_in(word: int) -> Linkage:
    """Linkage of a packed result."""
    return Linkage(word >> 3 & 3)


def compact_in(word: int) -> Verdict:
    """Compact decision of a packed result."""
    return Verdict(word >> 5 & 3)


def has_call_id_in(word: int) -> bool:
    """Whether a packed result has a callId."""
    return bool(word >> 7 & 1)


def reach_in(word: int) -> Reach:
    """Reach of a packed result."""
    return Reach(word >> 8 & 3)
