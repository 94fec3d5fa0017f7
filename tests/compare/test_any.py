"""Whatever two streams hold: a reading agrees with itself, and left and right are told alike."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.compare.conftest import side

from callsheet.compare import Compared, compare
from callsheet.testing.strategies import damaged, stream

LOOSE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def compared(left: list[Any], right: list[Any]) -> list[Compared]:
    with side(left) as one, side(right) as other:
        return list(compare(one, other))


@LOOSE
@given(stream())
def test_a_reading_agrees_with_itself(records: list[Any]) -> None:
    for call in compared(records, records):
        assert call.contradicts == []
        assert call.forms == []
        assert call.lacks == []
        assert call.left == call.right or call.why == "same_ids"


@LOOSE
@given(stream(), stream(), st.data())
def test_left_and_right_are_told_alike(left: list[Any], right: list[Any], drawn: st.DataObject) -> None:
    is_damaged: bool = drawn.draw(st.booleans())
    if is_damaged:
        at = drawn.draw(st.integers(0, len(right) - 1))
        right[at] = drawn.draw(damaged(right[at]))
    there, back = compared(left, right), compared(right, left)

    def told(calls: list[Compared], *, turned: bool) -> list[Any]:
        sides = ("right", "left") if turned else ("left", "right")
        found = []
        for call in calls:
            places = [getattr(call, which) for which in sides]
            lacks = sorted((lack.path, lack.by == sides[0], lack.part) for lack in call.lacks)
            odd = sorted(one.path for one in call.contradicts)
            found.append((str(places), call.why, call.agree, lacks, sorted(call.forms), odd))
        return sorted(found, key=str)

    assert told(there, turned=False) == told(back, turned=True)
