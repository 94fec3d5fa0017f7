"""Conditions over native JSON: pointers that never raise, tests that never read prose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.registry.when import MISSING, follow, holds, matches

VALUE = {"a": {"b": [1, {"c": None}]}, "": 0, "x/y": 1, "~": 2, "1": "one", "~1": 3}


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/a/b/0", 1),
        ("./a/b/0", 1),
        ("/a/b/1/c", None),
        ("/x~1y", 1),
        ("/~0", 2),
        ("/~01", 3),
        ("/1", "one"),
        ("", VALUE),
        (".", VALUE),
        ("/a/b/2", MISSING),
        ("/a/b/-1", MISSING),
        ("/a/b/+0", MISSING),
        ("/a/b/00", MISSING),
        ("/a/b/²", MISSING),
        ("/a/b/" + "9" * 5000, MISSING),
        ("/a/b/0/c", MISSING),
        ("/nothing", MISSING),
    ],
)
def test_pointers(pointer: str, found: Any) -> None:
    assert follow(VALUE, pointer) == found


@pytest.mark.parametrize(
    ("test", "value", "good"),
    [
        (True, True, True),
        (True, 1, False),
        (1, True, False),
        (1, 1.0, True),
        ("", None, False),
        ("a", "a", True),
        ("a", "A", False),
        ({"present": True}, None, True),
        ({"present": True}, MISSING, False),
        ({"present": False}, MISSING, True),
        ({"one_of": ["a", {"present": False}]}, MISSING, True),
        ({"one_of": [1, 2]}, 2, True),
        ({"one_of": [1, 2]}, True, False),
        ({"type": "string"}, "", True),
        ({"type": "number"}, True, False),
        ({"type": "null"}, None, True),
        ({"type": "null"}, MISSING, False),
        ({"type": "object|array"}, [], True),
        ({"not": "a"}, "b", True),
        ({"not": {"present": True}}, MISSING, True),
        ({"type": "string", "not": "a"}, "a", False),
        ("a", MISSING, False),
    ],
)
def test_tests(test: Any, value: Any, good: bool) -> None:
    assert holds(test, value) is good


def test_an_unknown_test_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="unknown test"):
        holds({"contains": "denied"}, "permission denied")


def test_conditions_look_at_the_unit_and_at_its_part() -> None:
    when = {"/type": "user", "./is_error": True}
    assert matches(when, {"type": "user"}, {"is_error": True})
    assert not matches(when, {"type": "user", "is_error": True}, {})
    assert matches({}, None, None)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
TESTS = [True, "a", 1, {"present": True}, {"type": "object"}, {"one_of": ["a", 0]}, {"not": 1}]


@given(JSON, st.text(max_size=12), st.sampled_from(TESTS))
def test_any_value_and_any_pointer_give_an_answer(value: Any, pointer: str, test: Any) -> None:
    assert holds(test, follow(value, pointer)) in (True, False)
