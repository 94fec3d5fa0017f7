"""Which call of one reading is which call of the other.

Owns the matching, by what identifies a call and never by its position: its callId, where one call of each reading has
it; the id that the source gave it, likewise (a reading that found an id on several calls gives them derived ones); that
id together with the same arguments, where several have it; and last, where the readings share no ids or one of the two
has none, the same tool with the same arguments, or the same command that was run, once in each reading. A call without
a match stays alone, with the reason.

Must never know: what the records say besides.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Literal, NamedTuple

from callsheet.compare.side import Call

By = Literal["callId", "nativeCallId", "nativeCallId and input", "input", "command"]
Why = Literal["not_there", "same_ids"]
"""Why a call is alone: the other reading has no such call; several have its id, and nothing tells them apart."""


class Match(NamedTuple):
    """A call as both readings have it, or as one has it alone.

    Attributes:
        left: The call in the first reading.
        right: The call in the second one.
        by: What showed that they are one call.
        why: Why there is no match.
    """

    left: Call | None
    right: Call | None
    by: By | None = None
    why: Why | None = None


def match(left: Sequence[Call], right: Sequence[Call]) -> Iterator[Match]:
    """Every call of either reading once: those of the first in their order, then what only the second has."""
    found: dict[Call, tuple[Call, By]] = {}
    taken: set[Call] = set()
    shared = {call.native_id for call in left} & {call.native_id for call in right}
    for by, key in _KEYS:
        ours, theirs = _alone(left, key), _alone(right, key)
        for name, one in ours.items():
            other = theirs.get(name)
            if other is None or one in found or other in taken:
                continue
            if by not in ("input", "command") or _may_be_one(one, other, bool(shared)):
                found[one] = other, by
                taken.add(other)
    for call in left:
        if call in found:
            yield Match(call, *found[call])
        else:
            yield Match(call, None, why="same_ids" if call.native_id in shared else "not_there")
    for call in right:
        if call not in taken:
            yield Match(None, call, why="same_ids" if call.native_id in shared else "not_there")


_KEYS: tuple[tuple[By, Callable[[Call], Hashable | None]], ...] = (
    ("callId", lambda call: call.call_id),
    ("nativeCallId", lambda call: call.native_id),
    ("nativeCallId and input", lambda call: (call.native_id, call.name, call.asked) if call.asked else None),
    ("input", lambda call: (call.name, call.asked) if call.name and call.asked else None),
    ("input", lambda call: call.asked or None),
    ("command", lambda call: call.ran or None),
)


def _alone(calls: Sequence[Call], key: Callable[[Call], Hashable | None]) -> dict[Hashable, Call]:
    """The calls that alone in their reading have their key."""
    found: dict[Hashable, Call | None] = {}
    for call in calls:
        name = key(call)
        if name is not None:
            found[name] = None if name in found else call
    return {name: call for name, call in found.items() if call is not None}


def _may_be_one(one: Call, other: Call, shares_ids: bool) -> bool:
    """Whether calls with the same arguments may be one: their names agree, and their ids do not tell them apart."""
    if one.name is not None and other.name is not None and one.name != other.name:
        return False
    return not shares_ids or not (one.has_id and other.has_id)
