"""Call by call: what both readings say, what one lacks, what contradicts.

Owns ``Compared``, the shape that ``callsheet compare --json`` prints.

Must never know: how the readings were opened, how a comparison is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from callsheet.compare.facts import Told, facts_of, held
from callsheet.compare.match import By, Why, match
from callsheet.compare.side import Call, Side

Which = Literal["left", "right"]
BEGINNINGS = frozenset({"result.startedAt", "result.durationMs"})
"""Facts of a call that waited for a decision: it began when it was asked for, and again when it ran."""

OF_A_REFUSED_CALL = {"failed", "denied"}
"""Statuses of a call that both readings know to be refused: some sources have no word for it (decision 15)."""


class Lacking(Struct, omit_defaults=True):
    """A fact that one reading has and the other lacks, or has only in part.

    Attributes:
        path: The fact.
        by: Which reading lacks it.
        value: What the other says, shortened.
        part: The one that lacks it has a part of it.
    """

    path: str
    by: Which
    value: Any = None
    part: bool = False


class Contradicted(Struct):
    """A fact of which the readings do not say the same; values are shortened."""

    path: str
    left: Any
    right: Any


class Compared(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """One call as two readings have it.

    Attributes:
        left: Where it stands in the first reading: stream, record, callId. Absent where it does not.
        right: The same for the second.
        name: Its tool, by either.
        matched_by: What showed that it is one call.
        why: Why it stands alone.
        agree: How many facts both tell alike.
        lacks: What one of them lacks.
        forms: Facts that both tell in forms which cannot be held against each other.
        contradicts: Facts of which both cannot be true.
    """

    left: dict[str, str] | None = None
    right: dict[str, str] | None = None
    name: str | None = None
    matched_by: By | None = None
    why: Why | None = None
    agree: int = 0
    lacks: list[Lacking] = []
    forms: list[str] = []
    contradicts: list[Contradicted] = []


def compare(left: Side, right: Side) -> Iterator[Compared]:
    """Every call of either reading."""
    for found in match(left.calls, right.calls):
        compared = Compared(
            left=_place(found.left), right=_place(found.right), matched_by=found.by, why=found.why
        )
        compared.name = next((call.name for call in (found.left, found.right) if call and call.name), None)
        if found.left is not None and found.right is not None:
            _hold(compared, left, found.left, right, found.right)
        yield compared


def _place(call: Call | None) -> dict[str, str] | None:
    if call is None:
        return None
    place = {"stream": call.stream, "record": call.record, "callId": call.call_id}
    return place if call.native_id == call.call_id else {**place, "nativeCallId": call.native_id}


def _hold(compared: Compared, left: Side, one: Call, right: Side, other: Call) -> None:
    ours, theirs = facts_of(left, one), facts_of(right, other)
    refused = _is_refused(ours) and _is_refused(theirs)
    waited = any(path.startswith("request.") for path in (*ours, *theirs))
    for path in dict.fromkeys((*ours, *theirs)):
        mine, their = ours.get(path), theirs.get(path)
        if mine is None or their is None:
            told = their if mine is None else mine
            assert told is not None
            compared.lacks.append(Lacking(path, "left" if mine is None else "right", told.shown))
            continue
        match held(mine, their):
            case "same":
                compared.agree += 1
            case "form":
                compared.forms.append(path)
            case "left":
                compared.lacks.append(Lacking(path, "left", their.shown, part=True))
            case "right":
                compared.lacks.append(Lacking(path, "right", mine.shown, part=True))
            case "contradicts" if waited and path in BEGINNINGS:
                compared.forms.append(path)
            case "contradicts" if (
                refused and path == "result.status" and _words(mine, their) == OF_A_REFUSED_CALL
            ):
                compared.forms.append(path)
            case "contradicts":
                compared.contradicts.append(Contradicted(path, mine.shown, their.shown))


def _is_refused(facts: dict[str, Told]) -> bool:
    decision = facts.get("decision.decision")
    return decision is not None and str(decision.shown).startswith("reject")


def _words(one: Told, other: Told) -> set[str]:
    return {str(one.shown), str(other.shown)}
